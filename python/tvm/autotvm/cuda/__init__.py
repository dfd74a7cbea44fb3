"""Templates of the operator library for GPUs, with the names and knobs of TVM's records.

Their schedules are those of `topi.cuda`. `schedule_template` schedules the computation of a
template inside a larger one, which is what a network compiled by records has.
"""

from . import convolution, matmul
from .tiles import schedule_template
