"""Loop nests of operators whose elements depend on one another: bodies of extern stages."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm import tir

from .launch import is_for_gpu, kernel
from .utils import Extent

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
    serial : positions of the loops whose iterations depend on each other. They run innermost and
        in order; the others run in any order, the outermost of them in parallel. On a GPU this is
        a kernel, of which each thread runs the serial loops for one index of the others.
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
    for k in reversed([*free, *serial]):
        parallel = bool(free) and k == free[0]
        kind = tir.ForKind.PARALLEL if parallel else tir.ForKind.SERIAL
        stmt = tir.For(loop_vars[k], 0, extents[k], kind, stmt)
    return stmt
