"""Symbolic extents as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tvm import arith, tir
from tvm.ir import PrimExpr, RelayExpr

from ..expr import Call, Function, ShapeExpr, Var
from ..rewriter import FunctionRewriter
from ..struct_info import ShapeStructInfo, StructInfo, TensorStructInfo, TupleStructInfo

__all__ = ["ExtentBinder", "extents_of"]

Extents = Mapping[tir.Var, int]


def extents_of(name: str, info: StructInfo | None, shape: Sequence[int]) -> dict[tir.Var, int]:
    """Values of the symbolic extents of a parameter that is given a tensor of a shape.

    Raises
    ------
    ValueError : one extent would have two values.
    """
    found: dict[tir.Var, int] = {}
    if not isinstance(info, TensorStructInfo) or info.shape is None:
        return found
    for extent, value in zip(info.shape.values, shape):
        if isinstance(extent, tir.Var) and found.setdefault(extent, int(value)) != int(value):
            raise ValueError(
                f"BindParams: '{name}' has shape {tuple(shape)}, which makes its extent {extent} "
                f"both {found[extent]} and {value}"
            )
    return found


class ExtentBinder(FunctionRewriter):
    """Rebuilds a function with symbolic extents replaced; `constants` replaces parameters."""

    def __init__(
        self, func: Function, extents: Extents, constants: Mapping[Var, RelayExpr]
    ) -> None:
        super().__init__(func)
        self._extents = extents
        self.params = []
        for param in func.params:
            if param not in constants:
                info = self.struct_info(param.struct_info)
                new = param if not extents else Var(str(param.name_hint), info)
                self._replaced[param] = new
                self.params.append(new)
        self._replaced.update(constants)

    def struct_info(self, info: StructInfo) -> StructInfo:
        """Struct info with the extents replaced."""
        if isinstance(info, TensorStructInfo) and info.shape is not None:
            return TensorStructInfo(self._all(info.shape.values), str(info.dtype))
        if isinstance(info, ShapeStructInfo) and info.values is not None:
            return ShapeStructInfo(self._all(info.values))
        if isinstance(info, TupleStructInfo):
            return TupleStructInfo([self.struct_info(field) for field in info.fields])
        return info

    def rewrite(self, var: Var, value: RelayExpr) -> RelayExpr:
        if not self._extents:
            return value
        if isinstance(value, ShapeExpr):
            return ShapeExpr(self._all(value.values))
        if isinstance(value, Call):
            results = [self.struct_info(info) for info in value.sinfo_args]
            return Call(
                value.op, value.args, value.attrs, results, self.struct_info(value.struct_info)
            )
        return value

    def _all(self, extents: Sequence[PrimExpr]) -> list[PrimExpr | int]:
        return [self._extent(extent) for extent in extents]

    def _extent(self, extent: PrimExpr) -> PrimExpr | int:
        values = {var: tir.const(value, str(var.dtype)) for var, value in self._extents.items()}
        known = arith.Analyzer().simplify(tir.stmt_functor.substitute(extent, values))
        # Extents that are numbers are plain ones, whatever type the symbolic ones had.
        return int(known) if isinstance(known, tir.IntImm) else known
