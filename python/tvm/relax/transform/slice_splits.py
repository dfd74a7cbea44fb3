"""Pieces of splits as slices, which kernels that read them take in."""

from __future__ import annotations

from itertools import pairwise

from tvm import tir
from tvm.ir import IRModule, RelayExpr

from .. import op
from ..expr import Call, TupleGetItem, Var
from ..rewriter import FunctionRewriter, map_functions
from ..struct_info import settled_shape
from .graph_pass import graph_pass

__all__ = ["SliceSplits"]

# More pieces, as those of a sequence, go to as many kernels, of which few take slices in: one
# kernel that computes all of them costs less than its share of each call.
_MOST_PIECES = 8


class _Slicer(FunctionRewriter):
    def rewrite(self, var: Var, value: RelayExpr) -> RelayExpr:
        if not isinstance(value, TupleGetItem):
            return value
        pieces = self.values.get(value.tuple_value)
        if not isinstance(pieces, Call) or str(getattr(pieces.op, "name", "")) != "relax.split":
            return value
        data = pieces.args[0]
        shape = settled_shape(data)
        if shape is None:
            return value
        settings = op.attrs_of(pieces)
        axis = int(settings["axis"]) % len(shape)
        bounds = _bounds(settings["indices_or_sections"], shape[axis])
        if bounds is None or len(bounds) > _MOST_PIECES:
            return value
        begin, end = bounds[int(value.index)]
        if (begin, end) == (0, shape[axis]):
            return data
        return op.strided_slice(data, [axis], [begin], [end])


def _bounds(cuts: object, extent: int) -> list[tuple[int, int]] | None:
    """Begin and end of each piece; None where a cut is not known."""
    if isinstance(cuts, (int, tir.IntImm)):
        count = int(cuts)
        size = -(-extent // count)
        return [(i * size, extent if i + 1 == count else (i + 1) * size) for i in range(count)]
    if not isinstance(cuts, (list, tuple)) or not all(
        isinstance(cut, (int, tir.IntImm)) for cut in cuts
    ):
        return None
    places = [0, *(min(max(int(cut), 0), extent) for cut in cuts), extent]
    return list(pairwise(places))


@graph_pass("SliceSplits")
def SliceSplits(mod: IRModule) -> IRModule:
    """The module with each piece of a split read as a slice of the whole.

    A split computes all of its pieces, in a kernel of its own; of a slice only what is read is
    computed, in the place where it is read. Splits whose sizes are not known stay, and those into
    many pieces.
    """
    return map_functions(mod, lambda func: _Slicer(func).run())
