"""What a schedule looks like inside: references to loops and blocks, scopes, dependences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, IntFlag

import tvm._ffi
from tvm.ir import IRModule
from tvm.runtime import Object

from ..block import Block, BlockRealize
from ..function import PrimFunc
from ..statement import For
from . import _ffi_api
from .base import State
from .random_variables import BlockRV, LoopRV

__all__ = [
    "BlockScope",
    "CachedFlags",
    "DepKind",
    "Dependency",
    "ScheduleDebugMask",
    "ScheduleState",
    "StmtSRef",
]


class ScheduleDebugMask(IntFlag):
    """What is checked after each step; any of them checks that the function is well formed."""

    VERIFY_SREF_TREE = 1
    VERIFY_CACHED_FLAGS = 2


class DepKind(IntEnum):
    """Why one block runs after another: it reads, overwrites, or replaces what that one used."""

    RAW = 0
    WAW = 1
    WAR = 2
    OPAQUE = 3


@tvm._ffi.register_object("tir.StmtSRef")
class StmtSRef(Object):
    """A loop or block of a schedule, which stays the same one while the program changes."""

    @property
    def stmt(self) -> Block | For | None:
        """The loop or block as it is now; None once it is gone."""
        return _ffi_api.StmtSRefStmt(self)

    @property
    def parent(self) -> StmtSRef | None:
        """The loop or block directly around; None at the outermost block."""
        return _ffi_api.StmtSRefParent(self)


@dataclass(frozen=True)
class Dependency:
    """`dst` must run after `src`."""

    src: StmtSRef
    dst: StmtSRef
    kind: DepKind


class BlockScope:
    """Dependences between the blocks directly inside of a block."""

    def __init__(self, dependencies: Sequence[Dependency]) -> None:
        self.dependencies = tuple(dependencies)

    def get_deps_by_src(self, block: StmtSRef) -> list[Dependency]:
        """Blocks that wait for `block`."""
        return [dep for dep in self.dependencies if dep.src.same_as(block)]

    def get_deps_by_dst(self, block: StmtSRef) -> list[Dependency]:
        """Blocks that `block` waits for."""
        return [dep for dep in self.dependencies if dep.dst.same_as(block)]


@dataclass(frozen=True)
class CachedFlags:
    """What holds of a block in its scope, by what blocks declare.

    Parameters
    ----------
    affine_binding : its variables are sums of digits of the loops around it.
    region_cover : what it reads of buffers that its scope writes is written, below the loops
        around reader and writer, before.
    stage_pipeline : the same of all blocks directly inside of it, none of which overwrites what one
        before it read.
    """

    affine_binding: bool
    region_cover: bool
    stage_pipeline: bool


class ScheduleState:
    """A view of the program that a schedule works on.

    Parameters
    ----------
    mod : a module or function, of which a schedule is made; or a schedule, which is looked at.
    debug_mask : as for :class:`Schedule`.
    """

    def __init__(
        self,
        mod: IRModule | PrimFunc | State,
        *,
        debug_mask: str | int = "none",
    ) -> None:
        self._schedule = mod if isinstance(mod, State) else State(mod, None, debug_mask, "detail")

    @property
    def mod(self) -> IRModule:
        """The module as it is now."""
        return self._schedule.mod

    def get_sref(self, stmt: Block | BlockRealize | For | BlockRV | LoopRV) -> StmtSRef | None:
        """The reference to a loop or block of the module; None if it is not part of it."""
        if isinstance(stmt, BlockRealize):
            stmt = stmt.block
        return _ffi_api.ScheduleGetSRef(self._schedule, stmt)

    def get_block_scope(self, block_sref: StmtSRef) -> BlockScope:
        """Dependences between the blocks directly inside of a block.

        Raises
        ------
        ValueError : the reference is to a loop.
        """
        rows = _ffi_api.BlockScopeDependencies(block_sref)
        return BlockScope([Dependency(src, dst, DepKind(int(kind))) for src, dst, kind in rows])

    def replace(
        self,
        src_sref: StmtSRef,
        tgt_stmt: Block | BlockRealize | For,
        block_sref_reuse: Mapping[Block, Block] | None = None,
    ) -> None:
        """Put another statement in the place of a loop or block, whatever it computes.

        References to loops stay where the variable of the loop does, and those to blocks as
        `block_sref_reuse` says. The module that was there before is not changed.

        Parameters
        ----------
        tgt_stmt : a block for a block, a loop or the realization of a block for a loop.
        block_sref_reuse : from blocks of the module to those in `tgt_stmt` that are the same.

        Raises
        ------
        TypeError : `tgt_stmt` is another statement.
        ValueError : what is replaced is gone, or `tgt_stmt` holds no block.
        """
        _ffi_api.ReplaceStmt(src_sref, tgt_stmt, dict(block_sref_reuse or {}))

    def _get_cached_flags(self, block_sref: StmtSRef) -> CachedFlags:
        """What holds of a block in its scope.

        Raises
        ------
        ValueError : the reference is to a loop.
        """
        return CachedFlags(*(bool(flag) for flag in _ffi_api.BlockFlags(block_sref)))
