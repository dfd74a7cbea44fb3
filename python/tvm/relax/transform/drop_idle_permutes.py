"""Changes of axes that move no element, or that one axis of a single element makes look hard."""

from __future__ import annotations

from tvm.ir import IRModule, RelayExpr

from .. import op
from ..expr import Call, Function, Var
from ..rewriter import FunctionRewriter, map_functions
from ..struct_info import settled_shape
from .graph_pass import graph_pass

__all__ = ["DropIdlePermutes"]


class _Dropper(FunctionRewriter):
    def __init__(self, func: Function) -> None:
        super().__init__(func)
        # By what stands for a change of axes: what it is made of, and in which order.
        self._moves: dict[RelayExpr, tuple[RelayExpr, list[int]]] = {}

    def rewrite(self, var: Var, value: RelayExpr) -> RelayExpr:
        order = _order(value)
        if order is None:
            return value
        assert isinstance(value, Call)
        (source,) = value.args
        before = self.values.get(source) if isinstance(source, Var) else None
        if before is not None and before in self._moves:
            source, earlier = self._moves[before]
            order = [earlier[axis] for axis in order]
            value = op.permute_dims(source, order)
        moved = self._shorter(source, order, value)
        self._moves[moved] = source, order
        return moved

    def _shorter(self, source: RelayExpr, order: list[int], value: RelayExpr) -> RelayExpr:
        """The change of axes as a view, or of a view without the axes of one element."""
        shape, result = settled_shape(source), settled_shape(value)
        if shape is None or result is None:
            return value
        long = [axis for axis in order if shape[axis] != 1]
        kept = sorted(long)
        if long == kept:
            return op.reshape(source, result)
        if shape[-1] != 1 and result[-1] != 1:
            return value
        # A last axis of one element hides which elements are neighbours.
        short = self.emit(op.reshape(source, [shape[axis] for axis in kept]))
        moved = self.emit(op.permute_dims(short, [kept.index(axis) for axis in long]))
        return op.reshape(moved, result)


def _order(value: RelayExpr | None) -> list[int] | None:
    """The axes of a ``permute_dims`` of known rank."""
    if not isinstance(value, Call) or str(getattr(value.op, "name", "")) != "relax.permute_dims":
        return None
    rank = value.args[0].struct_info.ndim
    if rank == -1:
        return None
    axes = op.attrs_of(value).get("axes")
    return list(range(rank))[::-1] if axes is None else [int(axis) % rank for axis in axes]


@graph_pass("DropIdlePermutes")
def DropIdlePermutes(mod: IRModule) -> IRModule:
    """The module with ``permute_dims`` that only move dimensions of one element as views.

    Products of several dimensions (``einsum``) and the layout of images with one channel have them.
    One that follows another becomes one with it, and where the last dimension before or behind it
    has one element, it is that of the other dimensions between two views.
    """
    return map_functions(mod, lambda func: _Dropper(func).run())
