"""Loop nests of operators whose elements depend on one another: bodies of extern stages."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm import tir

from .launch import is_for_gpu, kernel
from .utils import Extent, as_int, ceil_div, is_constant, prod, smallest

__all__ = ["loop_nest"]


def loop_nest(
    extents: Sequence[Extent],
    body: Callable[..., tir.Stmt],
    serial: Sequence[int] = (),
    name: str = "i",
) -> tir.Stmt:
    """``body`` for every index below the extents.

    Parameters
    ----------
    body : from one loop variable for each extent to a statement.
    serial : positions of the loops whose iterations depend on each other, which run in order. The
        others run in any order: those in front of them outside, the outermost in parallel, and
        those behind them inside, next to each other in memory; where there are none in front,
        blocks of those behind run in parallel. On a GPU this is a kernel, of which each thread runs
        the serial loops for one index of the others.
    """
    kinds = [str(e.dtype) if isinstance(e, tir.PrimExpr) else "int32" for e in extents]
    loop_vars = [tir.Var(f"{name}{k}", kind) for k, kind in enumerate(kinds)]
    stmt = body(*loop_vars)
    free = [k for k in range(len(extents)) if k not in serial]
    if is_for_gpu():
        for k in reversed(serial):
            stmt = tir.For(loop_vars[k], 0, extents[k], tir.ForKind.SERIAL, stmt)

        def one_thread(*place: tir.PrimExpr) -> tir.Stmt:
            values = {loop_vars[k]: at.astype(kinds[k]) for k, at in zip(free, place)}
            return tir.stmt_functor.substitute(stmt, values)

        return kernel([extents[k] for k in free], one_thread)
    first = min(serial, default=len(extents))
    leading, trailing = [k for k in free if k < first], [k for k in free if k > first]
    for k in reversed([*serial, *trailing]):
        if not leading and trailing and k == trailing[0]:
            return _in_blocks(loop_vars, extents, serial, trailing, stmt)
        stmt = tir.For(loop_vars[k], 0, extents[k], tir.ForKind.SERIAL, stmt)
    for k in reversed(leading):
        kind = tir.ForKind.PARALLEL if k == leading[0] else tir.ForKind.SERIAL
        stmt = tir.For(loop_vars[k], 0, extents[k], kind, stmt)
    return stmt


# A thread takes at least as many elements next to each other, four lines of a cache, so that few
# lines belong to two of them; and there are no more blocks than this, enough for any machine.
_LEAST_BLOCK, _MOST_BLOCKS = 64, 16


def _in_blocks(
    loop_vars: Sequence[tir.Var],
    extents: Sequence[Extent],
    serial: Sequence[int],
    trailing: Sequence[int],
    stmt: tir.Stmt,
) -> tir.Stmt:
    """Loops in order inside of a parallel loop over blocks of the first loop behind them.

    stmt : the loops of `trailing` but its first.
    """
    at = trailing[0]
    extent, behind = extents[at], prod(extents[k] for k in trailing[1:])
    block: Extent = _LEAST_BLOCK
    if is_constant(extent) and is_constant(behind):
        size, rest = as_int(extent), as_int(behind)
        block = min(size, max(-(-size // _MOST_BLOCKS), -(-_LEAST_BLOCK // rest)))
    kind = loop_vars[at].dtype
    outer, inner = tir.Var(f"{loop_vars[at].name}_block", kind), tir.Var(loop_vars[at].name, kind)
    stmt = tir.stmt_functor.substitute(stmt, {loop_vars[at]: outer * block + inner})
    stmt = tir.For(inner, 0, smallest(block, extent - outer * block), tir.ForKind.SERIAL, stmt)
    for k in reversed(serial):
        stmt = tir.For(loop_vars[k], 0, extents[k], tir.ForKind.SERIAL, stmt)
    return tir.For(outer, 0, ceil_div(extent, block), tir.ForKind.PARALLEL, stmt)
