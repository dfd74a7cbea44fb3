"""Loop nests of operators whose elements depend on one another: bodies of extern stages."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm import tir

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
        in order; the others run in any order, the outermost of them in parallel.
    """
    kinds = [str(e.dtype) if isinstance(e, tir.PrimExpr) else "int32" for e in extents]
    loop_vars = [tir.Var(f"{name}{k}", kind) for k, kind in enumerate(kinds)]
    stmt = body(*loop_vars)
    free = [k for k in range(len(extents)) if k not in serial]
    for k in reversed([*free, *serial]):
        parallel = bool(free) and k == free[0]
        kind = tir.ForKind.PARALLEL if parallel else tir.ForKind.SERIAL
        stmt = tir.For(loop_vars[k], 0, extents[k], kind, stmt)
    return stmt
