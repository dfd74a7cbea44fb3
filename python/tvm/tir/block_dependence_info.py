"""Which blocks of a program depend on each other."""

from __future__ import annotations

from tvm.ir import IRModule

from .block import Block
from .function import PrimFunc
from .schedule import BlockScope, ScheduleState, StmtSRef

__all__ = ["BlockDependenceInfo"]


class BlockDependenceInfo:
    """The dependences between the blocks of a program, for analyses that schedule nothing.

    Parameters
    ----------
    mod : a module, or one function, whose blocks stay as they are.

    Examples
    --------
    >>> from tvm import te, tir
    >>> A = te.placeholder((8,), name="A")
    >>> B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    >>> C = te.compute((8,), lambda i: B[i] * 2.0, name="C")
    >>> func = te.create_prim_func([A, C])
    >>> info = tir.BlockDependenceInfo(func)
    >>> root = info.get_sref(func.body.block)
    >>> first, second = (info.get_sref(loop.body.block) for loop in func.body.block.body)
    >>> [found.dst.stmt.name_hint for found in info.get_block_scope(root).get_deps_by_src(first)]
    ['C']
    """

    def __init__(self, mod: IRModule | PrimFunc) -> None:
        self._state = ScheduleState(mod)

    def get_sref(self, block: Block) -> StmtSRef | None:
        """The block of the program that a statement is; None if it is none of its blocks."""
        return self._state.get_sref(block)

    def get_block_scope(self, block_sref: StmtSRef) -> BlockScope:
        """The dependences between the blocks inside of a block.

        Raises
        ------
        ValueError : it is no block of this program.
        """
        return self._state.get_block_scope(block_sref)
