"""Graph operators; each function makes a call whose struct info is known."""

from . import ccl, distributed, fourier, grad, image, inspect, nn, random
from . import computations as computations
from . import gradient_computations as gradient_computations
from . import host_functions as host_functions
from . import nn_computations as nn_computations
from . import operators as operators
from . import tensor_computations as tensor_computations
from .base import (
    attrs_of,
    infer_struct_info,
    known_call,
    make_call,
    number_operands,
)
from .binary import *
from .builtin import builtin, memory, vm
from .calls import *
from .composed import *
from .create import *
from .gradients import register_gradient
from .linear_algebra import *
from .manipulate import *
from .quantization import dequantize, integer_limits, quantize
from .registry import (
    OpPattern,
    OpSpec,
    get_op,
    has_op,
    has_rule,
    is_pure,
    op_spec,
    register,
    register_rule,
)
from .selection import *
from .statistical import *
from .unary import *
