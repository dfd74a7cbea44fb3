"""Methods of a schedule on blocks: reductions, places, buffers between them."""

from __future__ import annotations

from collections.abc import Sequence

from .random_variables import BlockRV, LoopRV
from .state import State

__all__ = ["BlockSteps"]


class BlockSteps(State):
    """Primitives on blocks."""

    # Reductions

    def decompose_reduction(self, block: BlockRV | str, loop: LoopRV) -> BlockRV:
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
        return self._apply("decompose_reduction", [block, loop])[0]

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
        return self._apply("rfactor", [loop, factor_axis])[0]

    # Places

    def compute_at(
        self,
        block: BlockRV | str,
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
        self._apply("compute_at", [block, loop, preserve_unit_loops, index])

    def reverse_compute_at(
        self,
        block: BlockRV | str,
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
        self._apply("reverse_compute_at", [block, loop, preserve_unit_loops, index])

    def compute_inline(self, block: BlockRV | str) -> None:
        """Put what a block computes into all blocks that read it; the block is gone.

        Raises
        ------
        ScheduleError : the block is not one store to a buffer of the function's own.
        """
        self._apply("compute_inline", [block])

    def reverse_compute_inline(self, block: BlockRV | str) -> None:
        """Let the only producer of what a block reads compute what the block does.

        Raises
        ------
        ScheduleError : producer and block do not run over the same elements, one by one, or
            another block reads what the producer writes.
        """
        self._apply("reverse_compute_inline", [block])

    # Buffers

    def cache_read(
        self,
        block: BlockRV | str,
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
        others = None if consumer_blocks is None else list(consumer_blocks)
        return self._apply("cache_read", [block, read_buffer_index, storage_scope, others])[0]

    def cache_write(
        self, block: BlockRV | str, write_buffer_index: int, storage_scope: str
    ) -> BlockRV:
        """Let a block write to another scope, and copy to the buffer when it is done.

        Returns
        -------
        The block that copies.
        """
        return self._apply("cache_write", [block, write_buffer_index, storage_scope])[0]

    def set_scope(self, block: BlockRV | str, buffer_index: int, storage_scope: str) -> None:
        """Move a buffer of the function's own, which `block` writes, to another scope."""
        self._apply("set_scope", [block, buffer_index, storage_scope])

    def storage_align(
        self, block: BlockRV | str, buffer_index: int, axis: int, factor: int, offset: int
    ) -> None:
        """Give an axis of a buffer that `block` writes a stride of ``k * factor + offset``.

        Rows of shared memory then start in different banks.
        """
        self._apply("storage_align", [block, buffer_index, axis, factor, offset])
