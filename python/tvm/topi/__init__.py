"""Operator library: each operator is a function from te tensors to a te tensor."""

from tvm._older_names import hints_for

from . import cuda, generic, image, nn, random, sparse, tag, tensor_operators, utils, vision, x86
from .broadcast import *
from .creation import *
from .fourier import *
from .indexing import *
from .linalg import *
from .linear_systems import *
from .math import *
from .nn.elemwise import *
from .reduction import *
from .scan import *
from .scatter import *
from .schedule_registry import *
from .signal import *
from .sort import *
from .transform import *
from .utils import get_const_int as get_const_int
from .utils import get_const_tuple as get_const_tuple

__getattr__ = hints_for(__name__)
