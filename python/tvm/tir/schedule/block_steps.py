"""Methods of a schedule on blocks: reductions, places, buffers between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tvm.error
from tvm.ir import PrimExpr

from ..block import Block
from ..buffer import Buffer
from ..index_map import IndexMap
from . import _ffi_api
from .base import State
from .instruction import InstructionKind
from .random_variables import BlockRV, LoopRV

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
        block : computes each element once, or reduces; reads what is written under `loop` at
            indices that are its own variables or that can be undone, as those of another layout. A
            reduction adds in each iteration what that gives, if the first one gives first terms.
        loop : around the producer and around its whole reduction, if it is one.
        preserve_unit_loops, index : as in :meth:`compute_at`.

        Raises
        ------
        ScheduleError : an iteration does not give what instances of the block need, or a sum would
            begin or add again.
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
        read_buffer_index: int | str | Buffer,
        storage_scope: str,
        consumer_blocks: Sequence[BlockRV | str] | None = None,
    ) -> BlockRV:
        """Copy a buffer to another scope, from which its consumers then read.

        The copy holds the whole buffer, or, inside of another block, what belongs to that block. It
        is made in front of the first consumer, in the loops that this shares with the producer.

        Parameters
        ----------
        read_buffer_index : which of the regions that `block` reads, or the buffer, or its name.
        consumer_blocks : blocks to read the copy; all that read the buffer when None.

        Returns
        -------
        The block that copies.

        Raises
        ------
        ScheduleError : several blocks write the buffer, or it has no final value where the copy
            would be made.
        """
        block = self._rv(block)
        index = self._buffer_index(block, read_buffer_index, "read")
        others = self._blocks(consumer_blocks)
        return self._apply("cache_read", [block, index, storage_scope, others])[0]

    def cache_write(
        self,
        block: BlockRV | str,
        write_buffer_index: int | str | Buffer,
        storage_scope: str,
        consumer_blocks: Sequence[BlockRV | str] | None = None,
    ) -> BlockRV:
        """Let a block write to another scope, and copy to the buffer when it is done.

        Parameters
        ----------
        write_buffer_index : which of the regions that `block` writes, or the buffer, or its name.
        consumer_blocks : blocks that read what is in the other scope; None for none.

        Returns
        -------
        The block that copies, in front of the first block that reads the buffer.
        """
        block = self._rv(block)
        index = self._buffer_index(block, write_buffer_index, "write")
        others = self._blocks(consumer_blocks)
        return self._apply("cache_write", [block, index, storage_scope, others])[0]

    def cache_inplace(
        self, block: BlockRV | str, read_buffer_index: int | str | Buffer, storage_scope: str
    ) -> list[BlockRV]:
        """Copy a buffer that a block changes in place to another scope, and back afterwards.

        Returns
        -------
        The block that copies there, and the one that copies back.
        """
        block = self._rv(block)
        index = self._buffer_index(block, read_buffer_index, "read")
        return self._apply("cache_inplace", [block, index, storage_scope])

    def reindex_cache_read(
        self,
        block: BlockRV | str,
        read_buffer_index: int | str | Buffer,
        storage_scope: str,
        index_map: IndexMap | Callable[..., Any],
    ) -> BlockRV:
        """Copy what each instance of a block reads to an element that its variables name.

        Parameters
        ----------
        index_map : from the variables of the block to indices of the new buffer.

        Raises
        ------
        ScheduleError : an instance reads more than one element, or two instances that read
            different elements would share one.
        """
        block = self._rv(block)
        index = self._buffer_index(block, read_buffer_index, "read")
        mapped = _index_map(index_map, len(self._block(block).iter_vars))
        return self._apply("reindex_cache_read", [block, index, storage_scope, mapped])[0]

    def reindex_cache_write(
        self,
        block: BlockRV | str,
        write_buffer_index: int | str | Buffer,
        storage_scope: str,
        index_map: IndexMap | Callable[..., Any],
    ) -> BlockRV:
        """The same as :meth:`reindex_cache_read` for what a block writes."""
        block = self._rv(block)
        index = self._buffer_index(block, write_buffer_index, "write")
        mapped = _index_map(index_map, len(self._block(block).iter_vars))
        return self._apply("reindex_cache_write", [block, index, storage_scope, mapped])[0]

    def reindex(self, block: BlockRV | str, buffer: tuple[str, int] | str | Buffer) -> BlockRV:
        """Copy a buffer to one whose indices are the variables of the block that uses it.

        Parameters
        ----------
        buffer : ``("read", 0)`` or ``("write", 0)``, or the buffer, or its name.

        Raises
        ------
        ScheduleError : the block accesses the buffer at more than one place.
        """
        block = self._rv(block)
        return self._apply("reindex", [block, self._buffer_of(block, buffer)])[0]

    def read_at(
        self,
        loop: LoopRV,
        block: BlockRV | str,
        read_buffer_index: int | str | Buffer,
        storage_scope: str,
    ) -> BlockRV:
        """In each iteration of a loop, copy what its blocks read of a buffer to another scope.

        The copy is one block with loops of its own and the mark ``auto_copy``; a copy in shared
        memory has what all threads need.

        Parameters
        ----------
        loop : around `block`; all blocks under it read the copy.
        read_buffer_index : which of the regions that `block` reads, or the buffer, or its name.

        Raises
        ------
        ScheduleError : the buffer is written under the loop, or an iteration reads no box whose
            size is constant.
        """
        block = self._rv(block)
        index = self._buffer_index(block, read_buffer_index, "read")
        return self._apply("read_at", [loop, block, index, storage_scope])[0]

    def write_at(
        self,
        loop: LoopRV,
        block: BlockRV | str,
        write_buffer_index: int | str | Buffer,
        storage_scope: str,
    ) -> BlockRV:
        """Let a block write to another scope, and copy back at the end of each iteration.

        Parameters
        ----------
        loop : around `block` and around its whole reduction, if it is one.
        write_buffer_index : which of the regions that `block` writes, or the buffer, or its name.

        Raises
        ------
        ScheduleError : an iteration writes no whole box, or other blocks access the buffer there.
        """
        block = self._rv(block)
        index = self._buffer_index(block, write_buffer_index, "write")
        return self._apply("write_at", [loop, block, index, storage_scope])[0]

    def cache_index(
        self, block: BlockRV | str, storage_scope: str, cse_thresh: int = 0
    ) -> list[BlockRV]:
        """Compute what a block derives from its variables alone in tables before it::

            for i, j in T.grid(80, 80):     for i in range(80):
                B[i, j] = A[i, j // 2]          index_var_0[i] = i // 2
                                            for i, j in T.grid(80, 80):
                                                B[i, j] = A[i, index_var_0[j]]

        Parameters
        ----------
        cse_thresh : how often an instance has to compute something for it to get a table; 0 takes
            the largest expressions, however often they are there.

        Returns
        -------
        The blocks that fill the tables, the largest expression first.

        Raises
        ------
        ScheduleError : there are blocks inside of `block`.
        """
        return self._apply("cache_index", [block, storage_scope, cse_thresh])

    def rolling_buffer(self, block: BlockRV | str, write_buffer_index: int | str | Buffer) -> None:
        """Keep of a buffer what one iteration needs, and write only what those before did not::

            for o in range(8):                  for o in range(8):
                for i in range(6):                  for i in range(6):
                    B[o * 4 + i] = ...                  if o < 1 or i >= 2:
                for i in range(4):                          B[(o * 4 + i) % 6] = ...
                    ... B[o * 4 + i + 2]            for i in range(4):
                                                        ... B[(o * 4 + i + 2) % 6]

        The outermost loop of which the iterations overlap in an axis shortens that axis. Variables
        that it feeds become opaque: its iterations stay in their order from here on.

        Parameters
        ----------
        write_buffer_index : which of the regions that `block` writes, or the buffer, or its name.

        Raises
        ------
        ScheduleError : the buffer is a result of the function, no loop is around all its accesses
            (see :meth:`compute_at`), iterations do not overlap, what the block reads is not all
            written when it runs, or a loop around it runs in parallel.
        """
        block = self._rv(block)
        index = self._buffer_index(block, write_buffer_index, "write")
        self._apply("rolling_buffer", [block, index])

    def unsafe_hide_buffer_access(
        self, block: BlockRV | str, buf_type: str, buf_index_array: Sequence[int]
    ) -> None:
        """Leave regions out of what a block declares that it accesses.

        What a block does besides calling code from elsewhere is known without that.

        Parameters
        ----------
        buf_type : "read" or "write".
        buf_index_array : positions of the regions.

        Raises
        ------
        ScheduleError : another `buf_type`, or a position without a region.
        """
        self._apply("unsafe_hide_buffer_access", [block, buf_type, list(buf_index_array)])

    def can_decompose_padding(self, block: BlockRV | str, loop: LoopRV) -> bool:
        """Whether :meth:`decompose_padding` would be carried out."""
        kind = InstructionKind.get("DecomposePadding")
        return _ffi_api.ScheduleWouldApply(self, kind, [self._rv(block), loop])

    def decompose_padding(self, block: BlockRV | str, loop: LoopRV) -> BlockRV:
        """Write constant padding in a block of its own, right before `loop`::

            for i in range(140):                        for i in range(140):
                B[i] = T.if_then_else(                      B[i] = 0.0
                    6 <= i and i < 134, A[i - 6], 0.0)  for i in range(128):
                                                            B[i + 6] = A[i]

        Returns
        -------
        The block of the padding; `block` now runs only over what is inside.

        Raises
        ------
        ScheduleError : `block` is no such store, the padding is no constant, or a condition is no
            bound of one variable.
        """
        return self._apply("decompose_padding", [block, loop])[0]

    def pad_einsum(self, block: BlockRV | str, padding: Sequence[int]) -> None:
        """Run a sum of products over multiples of `padding`, on copies that are zero elsewhere.

        Parameters
        ----------
        padding : for each variable of `block`, of what its extent is to be a multiple.

        Raises
        ------
        ScheduleError : an index is not a variable of the block, a variable is not a loop over its
            whole domain, or zeros would change the sum.
        """
        self._apply("pad_einsum", [block, list(padding)])

    def transform_layout(
        self,
        block: BlockRV | str,
        buffer: tuple[str, int] | str | Buffer,
        index_map: IndexMap | Callable[..., Any],
        pad_value: Any = None,
        *,
        assume_injective_transform: bool = False,
    ) -> None:
        """Lay out a buffer by a map of its indices, wherever it is accessed::

            B[i, j]    becomes    B[i // 16, j // 16, i % 16, j % 16]

        A buffer that the caller gives is given in the new layout from then on.

        Parameters
        ----------
        buffer : ``("read", 0)`` or ``("write", 0)``, or the buffer, or its name.
        pad_value : what stands in elements that the layout adds: a number, or a function of the
            new indices. The block that writes all of the buffer writes it as well; of a buffer that
            is only read, it is assumed.
        index_map : indices of an element in the new layout, as a function of those it has; where it
            returns ``IndexMap.AXIS_SEPARATOR``, groups of axes are kept apart as by
            :meth:`set_axis_separator`.
        assume_injective_transform : do not prove that the map can be undone.

        Raises
        ------
        ScheduleError : two elements would share a place, or the layout adds elements and there is
            no `pad_value`.
        """
        block = self._rv(block)
        which = self._buffer_of(block, buffer)
        regions = self._block(block)
        described = (regions.reads if which[0] == "read" else regions.writes)[which[1]]
        mapped, separators = _separated_map(index_map, len(described.buffer.shape))
        if callable(pad_value):
            pad_value = IndexMap.from_func(
                pad_value, len(mapped.final_indices), index_dtype="int32"
            )
        options = [pad_value, assume_injective_transform]
        self._apply("transform_layout", [block, which, mapped, *options])
        if separators:
            self.set_axis_separator(block, which, separators)

    def transform_block_layout(
        self, block: BlockRV | str, index_map: IndexMap | Callable[..., Any]
    ) -> None:
        """Run a block over loops and variables that a map computes of those it has.

        Raises
        ------
        ScheduleError : the map cannot be undone, mixes spatial and reducing variables, or the
            variables are not loops over their whole domains.
        """
        block = self._rv(block)
        mapped = _index_map(index_map, len(self._block(block).iter_vars))
        self._apply("transform_block_layout", [block, mapped])

    def reorder_block_iter_var(self, block: BlockRV | str, new_order: Sequence[int]) -> None:
        """Put the variables of a block, with their values, into another order."""
        self._apply("reorder_block_iter_var", [block, list(new_order)])

    def set_scope(
        self, block: BlockRV | str, buffer_index: int | str | Buffer, storage_scope: str
    ) -> None:
        """Move a buffer of the function's own, which `block` writes, to another scope."""
        block = self._rv(block)
        index = self._buffer_index(block, buffer_index, "write")
        self._apply("set_scope", [block, index, storage_scope])

    def unsafe_set_dtype(
        self, block: BlockRV | str, buffer_index: int | str | Buffer, dtype: str
    ) -> None:
        """Keep a buffer of the function's own in another element type; results may differ.

        What is stored is converted to `dtype`, what is loaded back to the type it had.
        """
        block = self._rv(block)
        index = self._buffer_index(block, buffer_index, "write")
        self._apply("unsafe_set_dtype", [block, index, dtype])

    # Blocks around loops

    def blockize(
        self,
        target: LoopRV | BlockRV | str | Sequence[BlockRV | str],
        preserve_unit_iters: bool = True,
    ) -> BlockRV:
        """Put a block around the nest of loops below a loop::

            for i_0, j_0 in T.grid(8, 8):          for i_0, j_0 in T.grid(8, 8):
                for i_1, j_1 in T.grid(16, 16):        with T.block("B_o"):
                    with T.block("B"):                     vi_o, vj_o = ...
                        vi, vj = ...                       for i_1, j_1 in T.grid(16, 16):
                                                               with T.block("B"): ...

        Parameters
        ----------
        target : a loop; a block, around which alone the new one goes; or several blocks, whose
            nests stand side by side. The new block then has all of them in it, each with the loops
            that are around it alone, and variables of equal values outside are one.
        preserve_unit_iters : keep variables of the new block that have one value.

        Raises
        ------
        ScheduleError : the loops hold more than one block, or a variable of the block is no sum of
            what the loops inside and a multiple of their number give. Of several blocks: they do
            not follow each other in one loop or block, or loops outside decide whether one runs or
            go on with its reduction.
        """
        if isinstance(target, (list, tuple)):
            given = [self._rv(block) for block in target]
            return self._apply(
                "blockize", [given[0] if len(given) == 1 else given, preserve_unit_iters]
            )[0]
        return self._apply("blockize", [self._rv(target), preserve_unit_iters])[0]

    def tensorize(
        self,
        block_or_loop: LoopRV | BlockRV | str,
        tensor_intrin: str,
        preserve_unit_iters: bool = True,
    ) -> None:
        """Let a tensor intrinsic do what the loops below a loop, or those in a block, do.

        Parameters
        ----------
        tensor_intrin : the name that :meth:`tvm.tir.TensorIntrin.register` was given.

        Raises
        ------
        ValueError : no intrinsic has that name.
        ScheduleError : the program does something else than the intrinsic's description; the
            message says where they differ.
        """
        target = self._rv(block_or_loop)
        self._apply("tensorize", [target, tensor_intrin, preserve_unit_iters])

    def set_axis_separator(
        self,
        block: BlockRV | str,
        buffer: tuple[str, int] | str | Buffer,
        axis_separators: Sequence[int] | None,
    ) -> None:
        """Keep groups of axes of a buffer apart in memory that has several dimensions.

        Parameters
        ----------
        buffer : ("read", index) or ("write", index) of a region of `block`, or the buffer, or its
            name.
        axis_separators : the first axis of each group but the first; None or nothing for one group.

        Raises
        ------
        ScheduleError : the separators do not increase, or are no axes of the buffer.
        """
        block = self._rv(block)
        use, index = self._buffer_of(block, buffer)
        separators = [int(axis) for axis in axis_separators or ()]
        self._apply("set_axis_separator", [block, [use, index], separators])

    def storage_align(
        self,
        block: BlockRV | str,
        buffer_index: int | str | Buffer,
        axis: int,
        factor: int,
        offset: int,
    ) -> None:
        """Give an axis of a buffer that `block` writes a stride of ``k * factor + offset``.

        Rows of shared memory then start in different banks.
        """
        block = self._rv(block)
        index = self._buffer_index(block, buffer_index, "write")
        self._apply("storage_align", [block, index, axis, factor, offset])

    # What a buffer is called by

    def _rv(self, block: Any) -> Any:
        """The block of a name; what is no text stays what it is."""
        return self._apply("get_block", [block, None])[0] if isinstance(block, str) else block

    def _block(self, block: BlockRV | str) -> Block:
        return _ffi_api.ScheduleGet(self, self._rv(block))

    def _blocks(self, blocks: Sequence[BlockRV | str] | BlockRV | str | None) -> list | None:
        if blocks is None:
            return None
        if isinstance(blocks, (str, BlockRV)):
            blocks = [blocks]
        return [self._rv(block) for block in blocks]

    def _buffer_index(
        self, block: BlockRV | str, buffer: int | str | Buffer, use: str
    ) -> int | PrimExpr:
        """Position of a buffer among the regions a block reads or writes."""
        if not isinstance(buffer, (str, Buffer)):
            return buffer
        node = self._block(block)
        regions = node.reads if use == "read" else node.writes
        for index, region in enumerate(regions):
            same = region.buffer.name == buffer if isinstance(buffer, str) else False
            if same or region.buffer.same_as(buffer):
                return index
        names = ", ".join(str(region.buffer.name) for region in regions) or "none"
        name = buffer if isinstance(buffer, str) else buffer.name
        raise tvm.error.ScheduleError(
            f"block {node.name_hint} {use}s no buffer {name}; the buffers it {use}s are {names}"
        )

    def _buffer_of(
        self, block: BlockRV | str, buffer: tuple[str, int] | str | Buffer
    ) -> tuple[str, Any]:
        """Whether a block reads or writes a buffer, and at which position."""
        if not isinstance(buffer, (str, Buffer)):
            use, index = buffer
            return use, index
        node = self._block(block)
        for use, regions in (("read", node.reads), ("write", node.writes)):
            for index, region in enumerate(regions):
                same = region.buffer.name == buffer if isinstance(buffer, str) else False
                if same or region.buffer.same_as(buffer):
                    return use, index
        regions = [*node.reads, *node.writes]
        names = ", ".join(str(region.buffer.name) for region in regions) or "none"
        name = buffer if isinstance(buffer, str) else buffer.name
        raise tvm.error.ScheduleError(
            f"block {node.name_hint} accesses no buffer {name}; those it accesses are {names}"
        )


def _separated_map(
    index_map: IndexMap | Callable[..., Any], ndim: int
) -> tuple[IndexMap, list[int]]:
    if isinstance(index_map, IndexMap):
        return index_map, []
    return IndexMap.from_func_with_separators(index_map, ndim, index_dtype="int32")


def _index_map(index_map: IndexMap | Callable[..., Any], ndim: int) -> IndexMap:
    if isinstance(index_map, IndexMap):
        return index_map
    return IndexMap.from_func(index_map, ndim, index_dtype="int32")
