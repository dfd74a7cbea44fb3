"""Templates of the operator library for processors, with the names and knobs of TVM's records.

Their schedules are those of `topi.x86`. Each template comes with the function that schedules the
computation inside a larger one, which is what a network compiled by records has.
"""

from . import conv3d, layout_transform
from .batch_matmul import schedule_batch_matmul
from .conv2d import schedule_blocked_conv2d
from .dense import schedule_dense
