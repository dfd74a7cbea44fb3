"""Changes of layout that undo each other."""

from __future__ import annotations

from tvm import arith, tir
from tvm.ir import IRModule, Range, RelayExpr
from tvm.tir import IndexMap

from ..analysis import remove_all_unused
from ..expr import Call, Function, Tuple, Var
from ..op import get_op
from ..op.rules import known_shape
from ..rewriter import FunctionRewriter, map_functions
from ..struct_info import TensorStructInfo
from .graph_pass import graph_pass

__all__ = ["OptimizeLayoutTransform"]


def _is_layout_transform(value: RelayExpr | None) -> bool:
    return isinstance(value, Call) and value.op.same_as(get_op("layout_transform"))


def _shape_of(value: RelayExpr) -> list[tir.PrimExpr] | None:
    info = value.struct_info
    shape = known_shape(info) if isinstance(info, TensorStructInfo) else None
    return None if shape is None else list(shape)


def _back_at_the_same_place(
    first: IndexMap, second: IndexMap, shape: list[tir.PrimExpr], analyzer: arith.Analyzer
) -> bool:
    """Whether an element of this shape is where it was after both maps."""
    if len(first.initial_indices) != len(shape):
        return False
    if len(second.initial_indices) != len(first.final_indices):
        return False
    places = [tir.Var(f"i{n}", "int64") for n in range(len(shape))]
    for place, extent in zip(places, shape):
        analyzer.bind(place, Range(tir.const(0, "int64"), extent))
    moved = list(second.map_indices(list(first.map_indices(places))))
    return len(moved) == len(places) and all(
        analyzer.can_prove_equal(a, b) for a, b in zip(moved, places)
    )


class _Optimizer(FunctionRewriter):
    def __init__(self, func: Function, mod: IRModule) -> None:
        super().__init__(func)
        self._mod = mod
        self.changed = False

    def rewrite(self, var: Var, value: RelayExpr) -> RelayExpr:
        if not _is_layout_transform(value):
            return value
        source = value.args[0]
        kept = self._before_padding_was_cut(value, source)
        undone = self.values.get(source if kept is None else kept)
        if undone is None or not _is_layout_transform(undone):
            return value
        original = undone.args[0]
        before, after = _shape_of(original), _shape_of(value)
        if before is None or after is None or len(before) != len(after):
            return value
        analyzer = arith.Analyzer()
        equal = all(analyzer.can_prove_equal(a, b) for a, b in zip(before, after))
        first, second = undone.attrs["index_map"], value.attrs["index_map"]
        if not equal or not _back_at_the_same_place(first, second, before, analyzer):
            return value
        self.changed = True
        return original

    def _before_padding_was_cut(self, value: Call, source: RelayExpr) -> RelayExpr | None:
        """What `source` is the front part of, if `value` may hold anything in place of the rest."""
        call = self.values.get(source) if isinstance(source, Var) else None
        if not isinstance(call, Call) or not call.op.same_as(get_op("call_tir")):
            return None
        kernel = self._mod.functions.get(call.args[0])
        cuts = kernel is not None and (kernel.attrs or {}).get("operator_name") == "remove_pad"
        args = call.args[1]
        if not cuts or not isinstance(args, Tuple) or len(args.fields) != 1:
            return None
        return args.fields[0] if value.attrs.get("pad_value", None) is None else None


@graph_pass("OptimizeLayoutTransform")
def OptimizeLayoutTransform(mod: IRModule) -> IRModule:
    """The module without pairs of changes of layout after which every element is where it was.

    Between the two, padding may have been cut off by a kernel whose attribute "operator_name" is
    "remove_pad", if the second change says nothing about what padding holds. `AlterOpImpl` leaves
    such pairs between kernels of the same layout.
    """

    def optimized(func: Function) -> Function:
        optimizer = _Optimizer(func, mod)
        result = optimizer.run()
        return remove_all_unused(result) if optimizer.changed else func

    return map_functions(mod, optimized)
