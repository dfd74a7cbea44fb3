"""Graph operators; each function makes a call whose struct info is known."""

from . import basic, nn
from . import computations as computations
from . import nn_computations as nn_computations
from . import tensor_computations as tensor_computations
from .base import (
    attrs_of,
    call_dps_packed,
    call_tir,
    infer_struct_info,
    make_call,
    number_operands,
)
from .basic import *
from .registry import OpPattern, OpSpec, get_op, has_op, op_spec, register

__all__ = [
    "OpPattern",
    "OpSpec",
    "attrs_of",
    "call_dps_packed",
    "call_tir",
    "get_op",
    "has_op",
    "infer_struct_info",
    "make_call",
    "nn",
    "number_operands",
    "op_spec",
    "register",
    *basic.__all__,
]
