"""Chains of products, and products of sums, computed in the order that costs least."""

from __future__ import annotations

from collections.abc import Mapping

from tvm import arith, tir
from tvm.ir import IRModule, PrimExpr, Range, RelayExpr

from ..analysis import computable_at_compile_time, defined_symbolic_vars, get_var2val
from ..dpl import DFPattern, is_op, rewrite_call, wildcard
from ..expr import Call, Constant, Function, Var
from ..op import add, attrs_of, matmul, permute_dims
from ..rewriter import map_functions
from ..struct_info import TensorStructInfo
from .graph_pass import graph_pass

__all__ = ["AdjustMatmulOrder", "ExpandMatmulOfSum"]

Shape = list[PrimExpr]


class _KnownEarly:
    """Whether operands are known before a function runs: constants, and what parameters behind the
    inputs give."""

    def __init__(self, func: Function) -> None:
        inputs = func.attrs.get("num_input", None) if func.attrs is not None else None
        params = [] if inputs is None else list(func.params)[int(inputs) :]
        self._vars = {*params, *computable_at_compile_time(func)}

    def __call__(self, expr: RelayExpr) -> bool:
        return isinstance(expr, Constant) or (isinstance(expr, Var) and expr in self._vars)


def _shape_of(expr: RelayExpr) -> Shape | None:
    info = expr.struct_info
    if not isinstance(info, TensorStructInfo) or info.shape is None:
        return None
    values = info.shape.struct_info.values
    return None if values is None else list(values)


def _operations(left: RelayExpr, right: RelayExpr) -> PrimExpr | None:
    """Multiplications that a product takes; None if extents are not known."""
    depth, result = _shape_of(left), _shape_of(matmul(left, right))
    if depth is None or result is None:
        return None
    count: PrimExpr = depth[-1]
    for extent in result:
        count = count * extent
    return count


def _reordered(
    given: Call,
    factors: tuple[RelayExpr, RelayExpr, RelayExpr],
    early: _KnownEarly,
    analyzer: arith.Analyzer,
) -> RelayExpr:
    """The product of three factors in the order that is known to be cheaper, or the given one."""
    a, b, c = factors
    dtype = attrs_of(given).get("out_dtype")

    def first_two() -> RelayExpr:
        return matmul(matmul(a, b, dtype), c, dtype)

    def last_two() -> RelayExpr:
        return matmul(a, matmul(b, c, dtype), dtype)

    # A product of operands that are known early can be computed early as well.
    if early(a) and early(b):
        return first_two()
    if early(b) and early(c):
        return last_two()
    # A vector in the middle makes a product of the other two impossible.
    if len(_shape_of(b) or ()) < 2:
        return given
    parts = [
        _operations(a, b), _operations(matmul(a, b), c),
        _operations(b, c), _operations(a, matmul(b, c)),
    ]  # fmt: skip
    costs = [part for part in parts if part is not None]
    if len(costs) < len(parts):
        return given
    left, right = costs[0] + costs[1], costs[2] + costs[3]
    if analyzer.can_prove(left < right):
        return first_two()
    return last_two() if analyzer.can_prove(right < left) else given


def _analyzer_of(func: Function) -> arith.Analyzer:
    """Symbolic extents are positive, and not above what "tir_var_upper_bound" says."""
    limits = func.attrs.get("tir_var_upper_bound", {}) if func.attrs is not None else {}
    limits = {str(name): int(value) for name, value in limits.items()}
    analyzer = arith.Analyzer()
    for var in defined_symbolic_vars(func):
        limit = limits.get(str(var.name), 2**31 - 1)
        analyzer.bind(var, Range.from_min_extent(tir.const(1, var.dtype), limit))
    return analyzer


def _is_transposition(call: RelayExpr | None) -> bool:
    if not isinstance(call, Call) or call.struct_info.ndim != 2:
        return False
    axes = attrs_of(call).get("axes")
    return axes is None or [int(axis) for axis in axes] == [1, 0]


def _adjusted(func: Function) -> Function:
    early, analyzer, values = _KnownEarly(func), _analyzer_of(func), get_var2val(func)
    a, b, c = wildcard(), wildcard(), wildcard()
    dims, product = is_op("relax.permute_dims"), is_op("relax.matmul")
    first, last = product(a, b), product(b, c)
    first_transposed, last_transposed = dims(first), dims(last)
    pattern = (
        product(first, c) | product(a, last)
        | product(first_transposed, c) | product(a, last_transposed)
    )  # fmt: skip

    def rewrite(call: Call, found: Mapping[DFPattern, RelayExpr]) -> RelayExpr:
        x, y, z = found[a], found[b], found[c]
        if first_transposed in found:
            if not _is_transposition(values.get(found[first_transposed])):
                return call
            x, y = permute_dims(y), permute_dims(x)
        elif last_transposed in found:
            if not _is_transposition(values.get(found[last_transposed])):
                return call
            y, z = permute_dims(z), permute_dims(y)
        return _reordered(call, (x, y, z), early, analyzer)

    return rewrite_call(pattern, rewrite, func)


@graph_pass("AdjustMatmulOrder")
def AdjustMatmulOrder(mod: IRModule) -> IRModule:
    """The module with products of three factors in the order that takes fewer multiplications.

    One of the first two factors, or of the last two, may be transposed. Two neighbours that are
    known before the function runs (parameters behind those that "num_input" counts, constants, and
    what follows from them) are multiplied first in any case. Symbolic extents are positive, at most
    what the attribute "tir_var_upper_bound" says by name; where that leaves open what is cheaper,
    the order stays.
    """
    return map_functions(mod, _adjusted)


def _expanded(func: Function) -> Function:
    early, values = _KnownEarly(func), get_var2val(func)
    x, y, z = wildcard(), wildcard(), wildcard()
    total = is_op("relax.add")(y, z)
    transposed = is_op("relax.permute_dims")(total)
    pattern = is_op("relax.matmul")(x, total | transposed)

    def rewrite(call: Call, found: Mapping[DFPattern, RelayExpr]) -> RelayExpr:
        terms = [found[y], found[z]]
        if all(early(term) for term in terms):
            return call
        shapes = [_shape_of(term) for term in terms]
        if shapes[0] is None or shapes[1] is None or len(shapes[0]) != len(shapes[1]):
            return call
        if not all(tir.analysis.expr_deep_equal(a, b) for a, b in zip(*shapes)):
            return call
        if transposed in found:
            move = values.get(found[transposed])
            if not isinstance(move, Call):
                return call
            axes = attrs_of(move).get("axes")
            terms = [permute_dims(term, axes) for term in terms]
        dtype = attrs_of(call).get("out_dtype")
        return add(matmul(found[x], terms[0], dtype), matmul(found[x], terms[1], dtype))

    return rewrite_call(pattern, rewrite, func)


@graph_pass("ExpandMatmulOfSum")
def ExpandMatmulOfSum(mod: IRModule) -> IRModule:
    """The module with ``x @ y + x @ z`` in the place of ``x @ (y + z)``.

    The sum may be transposed. A sum of values that are known before the function runs stays, since
    it can be computed early. With weights that have adapters of low rank, the products that appear
    are what `AdjustMatmulOrder` makes cheap.
    """
    return map_functions(mod, _expanded)
