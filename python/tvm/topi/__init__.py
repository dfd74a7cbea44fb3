"""Operator library: each operator is a function from te tensors to a te tensor."""

from . import nn, tag, utils
from .broadcast import *
from .linalg import *
from .math import *
from .nn.elemwise import *
from .reduction import *
from .transform import *
