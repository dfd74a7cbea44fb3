"""Methods of a schedule on blocks: reductions, places, buffers between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import cache, inline, reduction
from . import compute_at as _compute_at
from . import rfactor as _rfactor
from .random_variables import INLINED, BlockRV, LoopRV
from .state import State
from .tree import BlockNode, FuncTree

__all__ = ["BlockSteps"]


class BlockSteps(State):
    """Primitives on blocks."""

    # Reductions

    def decompose_reduction(self, block: BlockRV, loop: LoopRV) -> BlockRV:
        """Write the first values of a reduction in a block of their own, right before `loop`::

            for i, k in T.grid(8, 8):          for i in range(8):
                with T.block("C"):                 with T.block("C_init"): ...
                    with T.init(): ...             for k in range(8):
                    ...                                with T.block("C_update"): ...

        Returns
        -------
        The block of the first values; `block` now is the update.

        Raises
        ------
        ScheduleError : `block` is no reduction, or a loop around `loop` belongs to the reduction.
        """
        arguments = {"block": block, "loop": loop}

        def act() -> tuple[FuncTree, Any]:
            tree, node = self._block(block)
            return tree, reduction.decompose_reduction(tree, node, self._loop(loop)[1])

        made = self._step("decompose_reduction", arguments, act)
        return self._record("decompose_reduction", arguments, [made])[0]

    def rfactor(self, loop: LoopRV, factor_axis: int) -> BlockRV:
        """Keep a partial result for every iteration of a loop of a reduction, then combine them::

            for i, k_0, k_1 in ...:        for i, k_0, k_1 in ...:
                C[i] += A[i, k_0, k_1]         C_rf[i, k_0] += A[i, k_0, k_1]
                                           for i, k_0 in ...:
                                               C[i] += C_rf[i, k_0]

        Parameters
        ----------
        loop : around one block, which computes one sum, product, maximum or minimum per element.
        factor_axis : which axis of the partial results is the loop; negative from the end.

        Returns
        -------
        The block of the partial results, whose loop may run in parallel; the block the loop was
        around now combines them.
        """
        factor_axis = self._number(factor_axis)
        arguments = {"loop": loop, "factor_axis": factor_axis}

        def act() -> tuple[FuncTree, Any]:
            tree, node = self._loop(loop)
            return tree, _rfactor.rfactor(tree, node, factor_axis)

        return self._record("rfactor", arguments, [self._step("rfactor", arguments, act)])[0]

    # Places

    def compute_at(
        self,
        block: BlockRV,
        loop: LoopRV,
        preserve_unit_loops: bool = False,
        index: int = -1,
    ) -> None:
        """Compute a producer under a loop of its consumers: in each iteration what that needs.

        Parameters
        ----------
        loop : around all blocks that read what `block` writes; or a place that
            :meth:`sample_compute_location` returned.
        preserve_unit_loops : keep new loops of one iteration.
        index : where among what is under `loop`: -1 as late, -2 as early as possible.

        Raises
        ------
        ScheduleError : a consumer is elsewhere, `block` writes a result of the function, or its
            values depend on where it runs.
        """
        index = self._number(index)
        options = {"preserve_unit_loops": preserve_unit_loops, "index": index}
        arguments = {"block": block, "loop": loop, **options}

        def act() -> FuncTree:
            tree, node = self._block(block)
            if isinstance(loop, LoopRV) and loop.place is not None:
                if loop.place == INLINED:
                    inline.compute_inline(tree, node)
                return tree
            _compute_at.compute_at(tree, node, self._loop(loop)[1], preserve_unit_loops, index)
            return tree

        self._do("compute_at", arguments, act)

    def reverse_compute_at(
        self,
        block: BlockRV,
        loop: LoopRV,
        preserve_unit_loops: bool = False,
        index: int = -1,
    ) -> None:
        """Compute a consumer under a loop of its producer: in each iteration what that allows.

        Parameters
        ----------
        block : computes each element once; reads what is written under `loop` at indices that are
            its own variables.
        loop : around the producer and around its whole reduction, if it is one.
        preserve_unit_loops, index : as in :meth:`compute_at`.
        """
        index = self._number(index)
        options = {"preserve_unit_loops": preserve_unit_loops, "index": index}
        arguments = {"block": block, "loop": loop, **options}

        def act() -> FuncTree:
            tree, node = self._block(block)
            place = self._loop(loop)[1]
            _compute_at.reverse_compute_at(tree, node, place, preserve_unit_loops, index)
            return tree

        self._do("reverse_compute_at", arguments, act)

    def compute_inline(self, block: BlockRV) -> None:
        """Put what a block computes into all blocks that read it; the block is gone.

        Raises
        ------
        ScheduleError : the block is not one store to a buffer of the function's own.
        """
        self._inline("compute_inline", block, inline.compute_inline)

    def reverse_compute_inline(self, block: BlockRV) -> None:
        """Let the only producer of what a block reads compute what the block does.

        Raises
        ------
        ScheduleError : producer and block do not run over the same elements, one by one, or
            another block reads what the producer writes.
        """
        self._inline("reverse_compute_inline", block, inline.reverse_compute_inline)

    def _inline(
        self, method: str, block: BlockRV, primitive: Callable[[FuncTree, BlockNode], None]
    ) -> None:
        def act() -> FuncTree:
            tree, node = self._block(block)
            primitive(tree, node)
            return tree

        self._do(method, {"block": block}, act)

    # Buffers

    def cache_read(
        self,
        block: BlockRV,
        read_buffer_index: int,
        storage_scope: str,
        consumer_blocks: Sequence[BlockRV] | None = None,
    ) -> BlockRV:
        """Copy a buffer to another scope, from which its consumers then read.

        Parameters
        ----------
        read_buffer_index : which of the regions that `block` reads.
        consumer_blocks : blocks to read the copy, besides `block`; all that read the buffer when
            None.

        Returns
        -------
        The block that copies.
        """
        read_buffer_index = self._number(read_buffer_index)
        others = None if consumer_blocks is None else list(consumer_blocks)
        arguments: dict[str, Any] = {
            "block": block,
            "read_buffer_index": read_buffer_index,
            "storage_scope": storage_scope,
        }
        if others is not None:
            arguments["consumer_blocks"] = others

        def act() -> tuple[FuncTree, Any]:
            tree, node = self._block(block)
            readers = None if others is None else [self._block(other)[1] for other in others]
            return tree, cache.cache_read(tree, node, read_buffer_index, storage_scope, readers)

        return self._record("cache_read", arguments, [self._step("cache_read", arguments, act)])[0]

    def cache_write(self, block: BlockRV, write_buffer_index: int, storage_scope: str) -> BlockRV:
        """Let a block write to another scope, and copy to the buffer when it is done.

        Returns
        -------
        The block that copies.
        """
        write_buffer_index = self._number(write_buffer_index)
        arguments = {
            "block": block,
            "write_buffer_index": write_buffer_index,
            "storage_scope": storage_scope,
        }

        def act() -> tuple[FuncTree, Any]:
            tree, node = self._block(block)
            return tree, cache.cache_write(tree, node, write_buffer_index, storage_scope)

        made = self._step("cache_write", arguments, act)
        return self._record("cache_write", arguments, [made])[0]

    def set_scope(self, block: BlockRV, buffer_index: int, storage_scope: str) -> None:
        """Move a buffer of the function's own, which `block` writes, to another scope."""
        buffer_index = self._number(buffer_index)
        arguments = {
            "block": block,
            "buffer_index": buffer_index,
            "storage_scope": storage_scope,
        }

        def act() -> FuncTree:
            tree, node = self._block(block)
            cache.set_scope(tree, node, buffer_index, storage_scope)
            return tree

        self._do("set_scope", arguments, act)

    def storage_align(
        self, block: BlockRV, buffer_index: int, axis: int, factor: int, offset: int
    ) -> None:
        """Give an axis of a buffer that `block` writes a stride of ``k * factor + offset``.

        Rows of shared memory then start in different banks.
        """
        numbers = (buffer_index, axis, factor, offset)
        buffer_index, axis, factor, offset = (self._number(number) for number in numbers)
        arguments = {
            "block": block,
            "buffer_index": buffer_index,
            "axis": axis,
            "factor": factor,
            "offset": offset,
        }

        def act() -> FuncTree:
            tree, node = self._block(block)
            cache.storage_align(tree, node, buffer_index, axis, factor, offset)
            return tree

        self._do("storage_align", arguments, act)
