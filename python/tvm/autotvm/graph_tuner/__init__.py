"""Layouts chosen for all operators of a network together.

Each operator was tuned alone; where neighbours chose different blocks of channels, data is moved
between them. Choosing for all is a quadratic assignment: Liu et al., "Optimizing CNN Model
Inference on CPUs" (USENIX ATC 2019).
"""

from .base_graph_tuner import BaseGraphTuner
from .dynamic_programming_tuner import DPTuner
from .pbqp_tuner import PBQPTuner
