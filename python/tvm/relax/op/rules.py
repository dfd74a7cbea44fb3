"""What rules of struct info share: operands that must be tensors, extents that must agree.

A rule takes a call and gives the struct info of its result. What it cannot know it leaves open: a
shape of which only the rank is known, or not even that; an element type that is void.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tvm import arith, error, tir
from tvm.ir import IntImm, PrimExpr, VDevice

from ..expr import Call, ShapeExpr, Var
from ..struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)

__all__ = [
    "UNKNOWN",
    "axes_of",
    "axis_of",
    "common_dtype",
    "common_vdevice",
    "differ",
    "equal",
    "extents",
    "is_float",
    "is_integer",
    "known_shape",
    "number",
    "opaque_tensor",
    "product",
    "same_as_operand",
    "setting",
    "shape_argument",
    "simplified",
    "tensor",
    "tensors",
    "unary_rule",
    "with_shape",
]

UNKNOWN = "void"
"""The element type of a tensor of which it is not known."""

Extents = list[PrimExpr]


def _name(call: Call) -> str:
    return str(call.op.name)


def tensor(call: Call, index: int, what: str = "operand") -> TensorStructInfo:
    """The struct info of an operand that must be a tensor.

    Raises
    ------
    TypeError : it is something else, or there is no such operand.
    """
    if index >= len(call.args):
        raise error.TypeError(f"{_name(call)}: {what} (operand {index}) is missing")
    info = call.args[index].struct_info
    if not isinstance(info, TensorStructInfo):
        raise error.TypeError(
            f"{_name(call)}: {what} (operand {index}) must be a tensor, got {info}"
        )
    return info


def tensors(call: Call, index: int = 0) -> list[TensorStructInfo]:
    """The struct infos of an operand that must be a tuple of tensors.

    Raises
    ------
    TypeError : it is something else.
    """
    info = call.args[index].struct_info
    if not isinstance(info, TupleStructInfo) or not all(
        isinstance(field, TensorStructInfo) for field in info.fields
    ):
        raise error.TypeError(
            f"{_name(call)}: operand {index} must be a tuple of tensors, got {info}"
        )
    return list(info.fields)


def shape_argument(call: Call, index: int) -> ShapeStructInfo:
    """The struct info of an operand that must be a shape.

    Raises
    ------
    TypeError : it is something else.
    """
    info = call.args[index].struct_info
    if not isinstance(info, ShapeStructInfo):
        raise error.TypeError(f"{_name(call)}: operand {index} must be a shape, got {info}")
    return info


def setting(call: Call, name: str, default: Any = None) -> Any:
    """A setting of the call as plain Python values; lists become tuples."""
    value = call.attrs.get(name, None)
    return default if value is None else plain(value)


def plain(value: Any) -> Any:
    """Numbers, texts and tuples of an attribute."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (IntImm, tir.FloatImm, tir.StringImm)):
        return value.value
    if isinstance(value, PrimExpr):
        return value
    return tuple(plain(item) for item in value)


def known_shape(info: TensorStructInfo) -> Extents | None:
    """The extents of a tensor, None if they are unknown; a variable may hold a known shape."""
    if info.shape is None:
        return None
    values = info.shape.struct_info.values
    return None if values is None else list(values)


def extents(shape: Iterable[Any]) -> Extents:
    """Extents as expressions: plain numbers become int64."""
    return [v if isinstance(v, PrimExpr) else tir.const(int(v), "int64") for v in shape]


def number(extent: Any) -> int | None:
    """The value of a literal extent, None for everything else."""
    if isinstance(extent, int):
        return extent
    return extent.value if isinstance(extent, IntImm) else None


_analyzer = arith.Analyzer()


def simplified(extent: Any) -> Any:
    """An extent in its simplest form; what is taken away stands at the end of sums, as in texts of
    TVM."""
    if number(extent) is not None:
        return extent
    short = _analyzer.simplify(extent)
    if not isinstance(short, tir.Add | tir.Sub):
        return short
    added: list[Any] = []
    taken: list[Any] = []
    _terms(short, added, taken)
    # Constants are behind what is variable of their sign.
    first, *rest = sorted(added, key=lambda term: number(term) is not None)
    for term in rest:
        first = tir.Add(first, term)
    for term in taken:
        first = tir.Sub(first, term)
    return first


def _terms(value: Any, added: list[Any], taken: list[Any]) -> None:
    """The terms of a sum by their sign, in the order in which they stand."""
    if isinstance(value, tir.Add):
        _terms(value.a, added, taken)
        _terms(value.b, added, taken)
    elif isinstance(value, tir.Sub):
        _terms(value.a, added, taken)
        _terms(value.b, taken, added)
    else:
        added.append(value)


def equal(a: Any, b: Any) -> bool:
    """Whether two extents are known to be equal."""
    x, y = number(a), number(b)
    if x is not None and y is not None:
        return x == y
    if x is None and y is None and a.same_as(b):
        return True
    return _analyzer.can_prove_equal(a, b)


def differ(a: Any, b: Any) -> bool:
    """Whether two extents are known to differ."""
    x, y = number(a), number(b)
    if x is not None and y is not None:
        return x != y
    if a.same_as(b):
        return False
    gap = number(_analyzer.simplify(a - b))
    return gap is not None and gap != 0


def product(shape: Sequence[Any]) -> Any:
    """The number of elements of a shape, int64."""
    total: Any = tir.const(1, "int64")
    for extent in shape:
        x, y = number(total), number(extent)
        total = total * extent if x is None or y is None else tir.const(x * y, "int64")
    return simplified(total)


def axis_of(call: Call, axis: int, rank: int) -> int:
    """The position that an axis, which may count from the end, stands for.

    Raises
    ------
    IndexError : there is no such axis.
    """
    if not -rank <= axis < rank:
        raise error.IndexError(f"{_name(call)}: axis {axis} of a tensor of {rank} dimensions")
    return axis % rank


def axes_of(call: Call, axes: Sequence[int], rank: int) -> list[int]:
    """The positions that several axes stand for.

    Raises
    ------
    IndexError : there is no such axis.
    ValueError : an axis is named twice.
    """
    places = [axis_of(call, int(axis), rank) for axis in axes]
    if len(set(places)) != len(places):
        raise error.ValueError(f"{_name(call)}: an axis is named twice in {list(axes)}")
    return places


def is_float(dtype: Any) -> bool:
    """Whether an element type is a floating-point one, or unknown."""
    return str(dtype).startswith(("float", "bfloat")) or str(dtype) == UNKNOWN


def is_integer(dtype: Any) -> bool:
    """Whether an element type is an integer one (bool is), or unknown."""
    return str(dtype).startswith(("int", "uint", "bool")) or str(dtype) == UNKNOWN


def common_dtype(call: Call, infos: Iterable[TensorStructInfo | PrimStructInfo]) -> str:
    """The element type that operands share, unknown if that of one is.

    Raises
    ------
    TypeError : two are known to differ.
    """
    found = UNKNOWN
    unknown = False
    for info in infos:
        dtype = str(info.dtype)
        if dtype == UNKNOWN:
            unknown = True
        elif found == UNKNOWN:
            found = dtype
        elif dtype != found:
            raise error.TypeError(f"{_name(call)}: operands of types {found} and {dtype}")
    return UNKNOWN if unknown else found


def common_vdevice(call: Call, infos: Iterable[StructInfo]) -> VDevice | None:
    """The device that operands share, as far as it is decided.

    Raises
    ------
    ValueError : two live on different devices.
    """
    found = None
    for info in infos:
        vdevice = info.vdevice if isinstance(info, TensorStructInfo) else None
        if vdevice is None:
            continue
        if found is not None and found != vdevice:
            raise error.ValueError(f"{_name(call)}: operands live on {found} and on {vdevice}")
        found = vdevice
    return found


def with_shape(
    shape: Sequence[Any] | ShapeExpr | Var, dtype: Any, vdevice: VDevice | None = None
) -> TensorStructInfo:
    """A tensor of a known shape."""
    return TensorStructInfo(shape, str(dtype), vdevice)


def opaque_tensor(dtype: Any, ndim: int = -1, vdevice: VDevice | None = None) -> TensorStructInfo:
    """A tensor of which only rank and element type are known."""
    return TensorStructInfo(None, str(dtype), vdevice, ndim)


def same_as_operand(
    info: TensorStructInfo, dtype: str | None = None, vdevice: VDevice | None = None
) -> TensorStructInfo:
    """What is known about a tensor holds for the result, except for the element type."""
    where = info.vdevice if vdevice is None else vdevice
    kind = str(info.dtype) if dtype is None else dtype
    if info.shape is not None:
        return with_shape(info.shape, kind, where)
    return opaque_tensor(kind, info.ndim, where)


def unary_rule(floats: bool = False, dtype: str | None = None) -> Any:
    """The rule of operators that treat each element by itself.

    Parameters
    ----------
    floats : whether only floating-point operands are accepted.
    dtype : element type of the result, if it is not the operand's.
    """

    def infer(call: Call) -> TensorStructInfo:
        info = tensor(call, 0)
        if floats and not is_float(info.dtype):
            raise error.TypeError(f"{_name(call)}: takes a floating-point tensor, got {info.dtype}")
        return same_as_operand(info, dtype)

    return infer
