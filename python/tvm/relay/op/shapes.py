"""Shapes in type rules: extents may be numbers, expressions, or known only at run time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import arith, error, te, tir
from tvm.ir import RelayExpr, TensorType, TupleType, Type
from tvm.relax.expr import Constant as RelaxConstant

from ..expr import Constant
from ..ty import Any as AnyExtent

__all__ = [
    "broadcast",
    "computed_type",
    "extent_number",
    "fields_of",
    "normal_axis",
    "number_of",
    "product",
    "sums_bytes",
    "tensor",
]

_ANALYZER = arith.Analyzer()


def tensor(where: str, type_: Type | None, what: str = "operand") -> TensorType:
    """The type as that of a tensor.

    Raises
    ------
    TypeError : it is none, or not known.
    """
    if isinstance(type_, TensorType):
        return type_
    raise error.TypeError(f"{where}: {what} must be a tensor, its type is {type_}")


def fields_of(where: str, type_: Type | None) -> list[TensorType]:
    """Types of the tensors of a tuple."""
    if not isinstance(type_, TupleType):
        raise error.TypeError(f"{where}: takes a tuple of tensors, the type given is {type_}")
    return [tensor(where, field) for field in type_.fields]


def extent_number(extent: Any) -> int | None:
    """The extent as a number, None if it is an expression or unknown."""
    if isinstance(extent, int):
        return extent
    return int(extent) if isinstance(extent, tir.IntImm) else None


def simplified(extent: Any) -> Any:
    """An extent in its simple form; one that contains an unknown extent is unknown."""
    if isinstance(extent, (int, tir.IntImm, AnyExtent, tir.Var)):
        return extent
    return AnyExtent() if _is_unknown(extent) else _ANALYZER.simplify(extent)


def _is_unknown(extent: Any) -> bool:
    """Whether an extent is computed from an unknown one, which visitors of expressions refuse."""
    if isinstance(extent, AnyExtent):
        return True
    parts = [getattr(extent, name, None) for name in ("a", "b", "value")]
    operands = [part for part in parts if isinstance(part, tir.PrimExpr)]
    if isinstance(extent, tir.Call):
        operands += [arg for arg in extent.args if isinstance(arg, tir.PrimExpr)]
    return any(_is_unknown(operand) for operand in operands)


def product(extents: Sequence[Any]) -> Any:
    """The number of elements of a shape, 1 without axes."""
    result: Any = 1
    for extent in extents:
        number = extent_number(extent)
        result = result * (extent if number is None else number)
    return simplified(result)


def normal_axis(where: str, axis: int, rank: int) -> int:
    """An axis counted from the front.

    Raises
    ------
    ValueError : there is no such axis.
    """
    if not -rank <= axis < rank:
        raise error.ValueError(f"{where}: axis {axis} of a tensor of {rank} axes")
    return axis % rank


def _merged(where: str, a: Any, b: Any, shapes: Any) -> Any:
    number_a, number_b = extent_number(a), extent_number(b)
    if number_a == 1:
        return b
    if number_b == 1:
        return a
    if number_a is not None and number_b is not None:
        if number_a != number_b:
            left, right = (list(shape) for shape in shapes)
            raise error.ValueError(f"{where}: shapes {left} and {right} do not broadcast")
        return a
    if isinstance(a, AnyExtent):
        return b if number_b is not None else a
    if isinstance(b, AnyExtent):
        return a if number_a is not None else b
    return a if number_a is not None else b if number_b is not None else a


def broadcast(where: str, a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
    """The shape that two shapes broadcast to.

    Raises
    ------
    ValueError : they do not.
    """
    shapes = (a, b)
    rank = max(len(a), len(b))
    a, b = [1] * (rank - len(a)) + list(a), [1] * (rank - len(b)) + list(b)
    return [_merged(where, x, y, shapes) for x, y in zip(a, b)]


def number_of(expr: Any) -> Any:
    """The number, or nested list of numbers, that a constant expression is; None for others."""
    if isinstance(expr, (Constant, RelaxConstant)):
        return expr.data.numpy().tolist()
    return None


class _Unknowns:
    """Variables that stand for unknown extents while te computes with them."""

    def __init__(self) -> None:
        self.made: list[tir.Var] = []

    def placeholder(self, type_: Type, name: str) -> Any:
        if isinstance(type_, TupleType):
            return [self.placeholder(f, f"{name}_{i}") for i, f in enumerate(type_.fields)]
        shape = []
        for extent in type_.shape:
            if isinstance(extent, AnyExtent):
                extent = te.size_var(f"any{len(self.made)}")
                self.made.append(extent)
            shape.append(extent)
        return te.placeholder(shape, dtype=str(type_.dtype), name=name)

    def type_of(self, result: Any) -> Type:
        if isinstance(result, te.Tensor):
            return TensorType([self._extent(e) for e in result.shape], str(result.dtype))
        return TupleType([self.type_of(tensor) for tensor in result])

    def _extent(self, extent: Any) -> Any:
        number = extent_number(extent)
        if number is not None:
            return number
        if self.made:
            free = [extent] if isinstance(extent, tir.Var) else tir.analysis.undefined_vars(extent)
            if any(var.same_as(new) for var in free for new in self.made):
                return AnyExtent()
        return _ANALYZER.simplify(extent)


def computed_type(where: str, compute: Any, types: Sequence[Type], settings: Any) -> Type:
    """The type of a te computation's results for operands of the types.

    Raises
    ------
    ValueError, TypeError : the computation refuses them.
    """
    unknowns = _Unknowns()
    operands = [unknowns.placeholder(t, f"arg{i}") for i, t in enumerate(types)]
    return unknowns.type_of(compute(*operands, **settings))


def sums_bytes(operands: Sequence[RelayExpr], out_dtype: str) -> bool:
    """Whether an operator of relax multiplies bytes with constant signed ones, and sums up in
    int32."""
    data, weight = operands
    return (
        out_dtype == "int32"
        and str(data.struct_info.dtype) in ("int8", "uint8")
        and isinstance(weight, RelaxConstant)
        and str(weight.struct_info.dtype) == "int8"
    )
