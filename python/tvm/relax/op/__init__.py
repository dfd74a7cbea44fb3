"""Graph operators; each function makes a call whose struct info is known."""

from . import computations, nn
from .base import attrs_of, call_tir, infer_struct_info, make_call, scalar_value
from .basic import *  # noqa: F403
from .registry import OpPattern, OpSpec, get_op, has_op, op_spec, register
