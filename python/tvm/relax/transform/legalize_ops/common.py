"""How single operators become calls of kernels."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tvm import tir
from tvm.ir import Op, RelayExpr

from ...block_builder import BlockBuilder
from ...dtensor import dtensor_fields
from ...expr import Call, Constant, Tuple, TupleGetItem, const
from ...op import attrs_of, has_op, number_operands, op_spec
from ...op.rules import known_shape
from ...struct_info import TensorStructInfo, TupleStructInfo
from .neural import NEURAL_FUNCTIONS
from .operators import SHAPE_ONLY, TE_FUNCTIONS
from .stepwise import STEPWISE_FUNCTIONS

__all__ = [
    "Legalization",
    "default_legalization",
    "is_computed",
    "on_mesh",
    "register_legalize",
    "register_on_mesh",
    "registered",
]

Legalization = Callable[[BlockBuilder, Call], RelayExpr]
"""From the builder that takes kernels and bindings, and a call, to what stands in its place."""

_REGISTERED: dict[str, Legalization] = {}

_COMPUTED = {**TE_FUNCTIONS, **NEURAL_FUNCTIONS}

# Kernels that are not called like the operator.
_KERNEL_NAMES = {
    "concat": "concatenate",
    "permute_dims": "transpose",
    "astype": "cast",
    "flatten": "reshape",
    "leakyrelu": "leaky_relu",
    "full_like": "full",
    "ones_like": "ones",
    "zeros_like": "zeros",
    "collapse_sum_like": "collapse_sum",
    "collapse_sum_to": "collapse_sum",
}

# A kernel of the name of a function of C would be called in its place, by itself.
_PREFIXED = frozenset(
    ("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil", "clip",
     "cos", "cosh", "erf", "exp", "floor", "isfinite", "isinf", "isnan", "log", "logical_not",
     "negative", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "square", "tan",
     "tanh", "trunc")
)  # fmt: skip


def register_legalize(
    op_name: str, legal_func: Legalization | None = None
) -> Legalization | Callable[[Legalization], Legalization]:
    """Say how an operator ("relax.add") becomes something else, from now on; also a decorator."""
    if legal_func is None:

        def decorate(function: Legalization) -> Legalization:
            _REGISTERED[op_name] = function
            return function

        return decorate
    _REGISTERED[op_name] = legal_func
    return legal_func


_on_mesh: Legalization | None = None


def register_on_mesh(legal: Legalization) -> None:
    """Say what stands in the place of operators whose operands lie on several devices."""
    global _on_mesh
    _on_mesh = legal


def on_mesh(call: Call) -> Legalization | None:
    """What `register_on_mesh` was told, for a call whose result lies on several devices."""
    return _on_mesh if dtensor_fields(call.struct_info) else None


def registered(op_name: str) -> Legalization | None:
    """What `register_legalize` was told of an operator, or its attribute "FLegalize"; else None."""
    return _REGISTERED.get(op_name) or Op.get(op_name).get_attr("FLegalize")


def is_computed(op: Op) -> bool:
    """Whether an operator has a computation that only legalisation knows."""
    return str(op.name) in _COMPUTED


def default_legalization(call: Call, stepwise: bool = True) -> Legalization | None:
    """The kernel of an operator's te computation; None if there is none, or shapes are unknown.

    Parameters
    ----------
    stepwise : of single steps, as TVM's kernels are, for schedules; else of as few as possible.
    """
    name = str(call.op.name)
    if not has_op(call.op) and name not in _COMPUTED:
        return None
    if not _is_known(call.struct_info) or not all(map(_operand_is_known, call.args)):
        return None
    if _known_value(call) is not None:
        return _constant
    compute = STEPWISE_FUNCTIONS.get(name) if stepwise else None
    compute = compute or _COMPUTED.get(name) or op_spec(name).compute
    return functools.partial(_kernel_call, compute)


def _known_value(call: Call) -> Constant | None:
    """The value of a call whose operands are numbers."""
    name = str(call.op.name)
    if name == "relax.arange":
        numbers: list[Any] = number_operands(call.args)
        dtype = str(call.struct_info.dtype)
        return None if None in numbers else const(np.arange(*numbers), dtype)
    if name == "relax.astype" and isinstance(call.args[0], Constant):
        return call.args[0].astype(str(call.struct_info.dtype)) if _is_scalar(call) else None
    return None


def _is_scalar(call: Call) -> bool:
    return known_shape(call.struct_info) == []


def _constant(builder: BlockBuilder, call: Call) -> RelayExpr:
    value = _known_value(call)
    assert value is not None
    return value


def _kernel_call(compute: Callable[..., Any], builder: BlockBuilder, call: Call) -> RelayExpr:
    name = str(call.op.name)
    short = name.rsplit(".", 1)[-1]
    numbers = number_operands(call.args)
    settings = attrs_of(call)
    if name == "relax.full" and isinstance(call.args[1], Constant):
        # The call says the type of what is written everywhere.
        settings["dtype"] = str(call.struct_info.dtype)
        numbers[1] = _number_of(call.args[1], settings["dtype"])
    operands = [
        _fields(builder, arg) if number is None else number
        for arg, number in zip(call.args, numbers)
    ]
    if name in SHAPE_ONLY:
        like = SHAPE_ONLY[name]
        operands[like] = call.args[like].struct_info.shape
        if name != "relax.collapse_sum_like":
            settings["dtype"] = str(call.struct_info.dtype)
    hint = f"tir_{short}" if short in _PREFIXED else _KERNEL_NAMES.get(short, short)
    # Which operands are weights that may be laid out anew, the graph knows.
    unmarked = {"layout_free_buffers": None}
    result = builder.call_te(
        compute, *operands, primfunc_name_hint=hint, primfunc_attrs=unmarked, **settings
    )
    info = call.struct_info
    if isinstance(info, TupleStructInfo) and len(info.fields) == 1:
        # A kernel of one result gives that, and no tuple.
        return Tuple([builder.emit(result)])
    return result


def _number_of(value: Constant, dtype: str) -> bool | int | float | None:
    """The number that a constant of rank 0 is in a type; None if the type has no such number."""
    number = value.values().item()
    if dtype == "bool":
        return bool(number)
    if not dtype.startswith(("int", "uint")):
        return number
    low, high = tir.min_value(dtype).value, tir.max_value(dtype).value
    return int(number) if low <= number <= high else None


def _fields(builder: BlockBuilder, arg: RelayExpr) -> RelayExpr:
    """A variable that holds a tuple as the tuple of its parts."""
    info = arg.struct_info
    if not isinstance(info, TupleStructInfo) or isinstance(arg, Tuple):
        return arg
    return Tuple([builder.emit(TupleGetItem(arg, i)) for i in range(len(info.fields))])


def _is_known(info: Any) -> bool:
    if isinstance(info, TupleStructInfo):
        return all(_is_known(field) for field in info.fields)
    if not isinstance(info, TensorStructInfo):
        return False
    return known_shape(info) is not None and str(info.dtype) != "void"


def _operand_is_known(arg: RelayExpr) -> bool:
    info = arg.struct_info
    if isinstance(info, TensorStructInfo | TupleStructInfo):
        return _is_known(info)
    return getattr(info, "values", None) is not None or getattr(info, "value", None) is not None
