"""Moves of elements after what they feed, where that leaves one move instead of several."""

from __future__ import annotations

from collections.abc import Mapping

from tvm.ir import IRModule, RelayExpr

from ..analysis import get_var2val
from ..dpl import DFPattern, is_op, rewrite_call, wildcard
from ..expr import Call, Function, Tuple, Var
from ..op import attrs_of, concat, get_op, matmul, permute_dims, take
from ..rewriter import map_functions
from ..struct_info import TensorStructInfo
from .graph_pass import graph_pass

__all__ = ["ReorderPermuteDimsAfterConcat", "ReorderTakeAfterMatmul"]


def _rank(expr: RelayExpr) -> int:
    info = expr.struct_info
    return info.ndim if isinstance(info, TensorStructInfo) else -1


def _takes_last(func: Function) -> Function:
    values = get_var2val(func)
    x, table, indices = wildcard(), wildcard(), wildcard()
    taken = is_op("relax.take")(table, indices)
    pattern = is_op("relax.matmul")(x, taken)

    def rewrite(call: Call, found: Mapping[DFPattern, RelayExpr]) -> RelayExpr:
        data, weights, places = found[x], found[table], found[indices]
        move = values.get(found[taken])
        axis = attrs_of(move).get("axis") if isinstance(move, Call) else None
        # Columns are taken of a matrix: elements of the result depend on one column each.
        if _rank(weights) != 2 or _rank(places) != 1 or _rank(data) < 1 or axis not in (1, -1):
            return call
        dtype = attrs_of(call).get("out_dtype")
        return take(matmul(data, weights, dtype), places, axis=_rank(data) - 1)

    return rewrite_call(pattern, rewrite, func)


@graph_pass("ReorderTakeAfterMatmul")
def ReorderTakeAfterMatmul(mod: IRModule) -> IRModule:
    """The module with columns taken of a product, in the place of a product with columns taken.

    ``x @ take(weights, indices, axis=1)`` becomes ``take(x @ weights, indices)``: which columns are
    wanted is known when the function runs only, and the product can be fused with what is around.
    """
    return map_functions(mod, _takes_last)


def _order(call: Call) -> list[int] | None:
    axes = attrs_of(call).get("axes")
    rank = _rank(call)
    if rank < 0:
        return None
    if axes is None:
        return list(range(rank))[::-1]
    return [int(axis) % rank for axis in axes]


def _permutes_last(func: Function) -> Function:
    values = get_var2val(func)
    joined = wildcard()
    pattern = is_op("relax.concat")(joined)

    def permuted(part: RelayExpr) -> Call | None:
        value = values.get(part) if isinstance(part, Var) else part
        is_move = isinstance(value, Call) and value.op.same_as(get_op("permute_dims"))
        return value if is_move else None

    def rewrite(call: Call, found: Mapping[DFPattern, RelayExpr]) -> RelayExpr:
        parts = found[joined]
        parts = values.get(parts, parts) if isinstance(parts, Var) else parts
        axis = attrs_of(call).get("axis")
        if not isinstance(parts, Tuple) or len(parts.fields) < 2 or axis is None:
            return call
        moves = [move for move in map(permuted, parts.fields) if move is not None]
        if len(moves) < len(parts.fields):
            return call
        orders = [_order(move) for move in moves]
        if orders[0] is None or any(order != orders[0] for order in orders):
            return call
        rank = len(orders[0])
        whole = concat([move.args[0] for move in moves], axis=orders[0][int(axis) % rank])
        return permute_dims(whole, attrs_of(moves[0]).get("axes"))

    return rewrite_call(pattern, rewrite, func)


@graph_pass("ReorderPermuteDimsAfterConcat")
def ReorderPermuteDimsAfterConcat(mod: IRModule) -> IRModule:
    """The module with one change of axes after a concatenation whose parts all had the same one.

    Weights that are stored transposed, and of which `CombineParallelMatmul` makes one, are joined
    as they are stored.
    """
    return map_functions(mod, _permutes_last)
