"""Blocks of tensor programs, and the regions of buffers they touch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tvm._ffi
from tvm.ir.script_text import Scriptable
from tvm.runtime import Object

from . import _ffi_api
from .buffer import Buffer, BufferRegion
from .expr import IterVar, _number_like, convert
from .statement import Stmt, _annotations

__all__ = ["Block", "BlockRealize", "MatchBufferRegion"]


@tvm._ffi.register_object("tir.MatchBufferRegion")
class MatchBufferRegion(Object, Scriptable):
    """Inside of a block, `buffer` is a view of the region `source`.

    Variables that stand alone as an extent, a stride or the offset of the view take the values the
    region has.

    Raises
    ------
    TypeError : the elements differ in type. ValueError : the extents differ.
    """

    def __init__(self, buffer: Buffer, source: BufferRegion) -> None:
        self.__init_handle_by_constructor__(_ffi_api.MatchBufferRegion, buffer, source)


@tvm._ffi.register_object("tir.Block")
class Block(Stmt):
    """A computation over its own variables, which a :class:`BlockRealize` gives values.

    Parameters
    ----------
    iter_vars : variables with domain and type; data-parallel ones write different elements.
    reads, writes : regions of buffers the block accesses.
    name_hint : name by which a schedule finds the block.
    body : what is computed.
    init : run in the first iteration over the reduction variables.
    alloc_buffers : buffers that live as long as the block runs.
    match_buffers : views of regions.
    annotations : values by name.
    """

    def __init__(
        self,
        iter_vars: Sequence[IterVar],
        reads: Sequence[BufferRegion],
        writes: Sequence[BufferRegion],
        name_hint: str,
        body: Stmt,
        init: Stmt | None = None,
        alloc_buffers: Sequence[Buffer] | None = None,
        match_buffers: Sequence[MatchBufferRegion] | None = None,
        annotations: Mapping[str, Any] | None = None,
        span: Any = None,
    ) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.Block,
            list(iter_vars),
            list(reads),
            list(writes),
            name_hint,
            body,
            init,
            list(alloc_buffers or ()),
            list(match_buffers or ()),
            _annotations(annotations),
        )


@tvm._ffi.register_object("tir.BlockRealize")
class BlockRealize(Stmt):
    """Runs `block` with `iter_values` for its variables, if `predicate` holds.

    Raises
    ------
    ValueError : not one value per variable. TypeError : a value has another type than its variable.
    """

    def __init__(
        self, iter_values: Sequence[Any], predicate: Any, block: Block, span: Any = None
    ) -> None:
        values = [_number_like(v, iv.var) for v, iv in zip(iter_values, block.iter_vars)]
        values += [convert(v) for v in list(iter_values)[len(values) :]]
        self.__init_handle_by_constructor__(
            _ffi_api.BlockRealize, values, convert(predicate), block
        )


# Newer TVM's names of the two.
SBlock = Block
SBlockRealize = BlockRealize
