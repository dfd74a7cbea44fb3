"""How a call of a graph operator is made and what is known about its result."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tvm import te
from tvm.ir import GlobalVar, RelayExpr

from ..dtensor import dtensor_fields
from ..expr import Call, Constant, PrimValue, ShapeExpr, Tuple, const, dict_attrs
from ..struct_info import (
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    open_shape,
)
from .registry import get_op, has_rule, op_spec, rule_of

__all__ = [
    "attrs_of",
    "infer_struct_info",
    "known_call",
    "make_call",
    "number_operands",
    "register_dtensor_rule",
]


def attrs_of(call: Call) -> dict[str, Any]:
    """Settings of a call as plain Python values; lists become tuples."""
    return {str(k): _plain(v) for k, v in call.attrs.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return str(value)
    literal = getattr(value, "value", None)
    if literal is not None:
        return literal
    return tuple(_plain(v) for v in value) if isinstance(value, Sequence) else value


def _scalar_value(expr: RelayExpr) -> bool | int | float | None:
    """The number a rank-0 constant or a scalar of the host is, None for everything else."""
    if isinstance(expr, PrimValue):
        return getattr(expr.value, "value", None)
    if isinstance(expr, Constant) and not len(expr.data.shape):
        return expr.values().item()
    return None


def number_operands(args: Sequence[RelayExpr]) -> list[bool | int | float | None]:
    """For each operand of a call, the number it is computed with, or None for a tensor.

    Scalars of the host are numbers, and so are scalar constants, as long as some other operand is a
    tensor that their type can be told from: of a choice between two constants none is.
    """
    numbers = [_scalar_value(arg) for arg in args]
    if any(
        n is None and not isinstance(arg, ShapeExpr) and not _is_condition(arg, args)
        for n, arg in zip(numbers, args)
    ):
        return numbers
    return [n if isinstance(arg, PrimValue) else None for n, arg in zip(numbers, args)]


def _is_condition(arg: RelayExpr, args: Sequence[RelayExpr]) -> bool:
    """Whether an operand is of truth values, and others are not."""
    kinds = [getattr(each.struct_info, "dtype", None) for each in (arg, *args)]
    return kinds[0] == "bool" and any(kind != "bool" for kind in kinds)


def _signature(expr: RelayExpr) -> Any:
    """What the result's struct info can depend on, as a hashable value."""
    if isinstance(expr, ShapeExpr):
        return ("shape", tuple(getattr(v, "value", v) for v in expr.values))
    if isinstance(expr, Tuple):
        return ("tuple", tuple(_signature(field) for field in expr.fields))
    return _info_signature(expr.struct_info)


def _info_signature(info: StructInfo) -> Any:
    if isinstance(info, TupleStructInfo):
        return ("tuple", tuple(_info_signature(field) for field in info.fields))
    return ("tensor", open_shape(info), str(info.dtype))


def _placeholder(signature: Any, name: str) -> Any:
    kind = signature[0]
    if kind == "shape":
        return signature[1]
    if kind == "tuple":
        return [_placeholder(field, f"{name}_{i}") for i, field in enumerate(signature[1])]
    if kind == "number":
        return 1
    return te.placeholder(signature[1], dtype=signature[2], name=name)


@functools.lru_cache(maxsize=4096)
def _infer(name: str, args: tuple[Any, ...], attrs: tuple[tuple[str, Any], ...]) -> StructInfo:
    operands = [_placeholder(signature, f"arg{i}") for i, signature in enumerate(args)]
    result: Any = op_spec(name).compute(*operands, **dict(attrs))
    if isinstance(result, te.Tensor):
        return _tensor_info(result)
    return TupleStructInfo([_tensor_info(tensor) for tensor in result])


def _tensor_info(tensor: te.Tensor) -> TensorStructInfo:
    return TensorStructInfo(list(tensor.shape), str(tensor.dtype))


_dtensor_rule: Callable[[Call], StructInfo] | None = None


def register_dtensor_rule(rule: Callable[[Call], StructInfo]) -> None:
    """Say what is known of results of operators whose operands lie on several devices."""
    global _dtensor_rule
    _dtensor_rule = rule


def _has_dtensor(args: Sequence[RelayExpr]) -> bool:
    return any(
        arg.struct_info is not None and dtensor_fields(arg.struct_info)
        for arg in args
        if not isinstance(arg, GlobalVar)
    )


def infer_struct_info(call: Call) -> StructInfo:
    """Struct info of the result of an operator call.

    Raises
    ------
    ValueError, TypeError : the operator does not accept operands of these shapes or types.
    """
    if _dtensor_rule is not None and _has_dtensor(call.args):
        return _dtensor_rule(call)
    if has_rule(call.op):
        return rule_of(call.op)(call)
    signature = tuple(
        ("number",) if number is not None else _signature(arg)
        for arg, number in zip(call.args, number_operands(call.args))
    )
    return _infer(str(call.op.name), signature, tuple(sorted(attrs_of(call).items())))


def make_call(name: str, /, *args: RelayExpr | float, **attrs: Any) -> Call:
    """Call of the operator ``relax.<name>`` with its struct info filled in.

    Parameters
    ----------
    args : expressions; a number becomes a scalar constant of the first expression's element type.
    attrs : settings; those that are None, and element types that are "void", are left out.
    """
    attrs = {k: v for k, v in attrs.items() if not (k.endswith("dtype") and v == "void")}
    dtype = next(
        (str(a.struct_info.dtype) for a in args
         if isinstance(a, RelayExpr) and isinstance(a.struct_info, TensorStructInfo)),
        None,
    )  # fmt: skip
    operands = [a if isinstance(a, RelayExpr) else const(a, dtype) for a in args]
    return known_call(Call(get_op(name), operands, dict_attrs(attrs)))


def known_call(call: Call) -> Call:
    """The call with what is known of its result, if that can be told from its operands already."""
    if any(arg.struct_info is None for arg in call.args if not isinstance(arg, GlobalVar)):
        return call
    return Call(call.op, call.args, call.attrs, call.sinfo_args, infer_struct_info(call))
