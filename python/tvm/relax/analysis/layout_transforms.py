"""Layouts of what kernels read that fit a layout of what they write."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm import arith, error, tir
from tvm.ir import PrimExpr, structural_equal
from tvm.tir import Block, Buffer, IndexMap
from tvm.tir.functor import StmtExprVisitor

__all__ = ["suggest_layout_transforms"]

Transforms = dict[Block, dict[Block | Buffer, IndexMap]]


def _as_index_map(given: IndexMap | Callable[..., Any]) -> IndexMap:
    if isinstance(given, IndexMap):
        return given
    if not callable(given):
        raise AssertionError(
            "suggest_layout_transforms: a transformation is an IndexMap or a function of indices, "
            f"got {given}"
        )
    return IndexMap.from_func(given)


class _Blocks(StmtExprVisitor):
    """The blocks of a function in order, and whether blocks contain blocks."""

    def __init__(self) -> None:
        self.found: list[Block] = []
        self.nested = False
        self._inside = False

    def visit_block_(self, op: Block) -> None:
        if op.name_hint == "root" and not self.found and not len(op.iter_vars):
            self._visit_below(op)
            return
        self.nested = self.nested or self._inside
        self.found.append(op)
        outer, self._inside = self._inside, True
        self._visit_below(op)
        self._inside = outer


class _Accesses(StmtExprVisitor):
    """The indices that a block reads and writes buffers at."""

    def __init__(self, block: Block) -> None:
        self.reads: dict[Buffer, list[list[PrimExpr]]] = {}
        self.writes: dict[Buffer, list[list[PrimExpr]]] = {}
        self.visit(block.body)
        if block.init is not None:
            self.visit(block.init)

    def visit_buffer_load_(self, op: tir.BufferLoad) -> None:
        self.reads.setdefault(op.buffer, []).append(list(op.indices))
        self._visit_below(op)

    def visit_buffer_store_(self, op: tir.BufferStore) -> None:
        self.writes.setdefault(op.buffer, []).append(list(op.indices))
        self._visit_below(op)


def _vars_of(expr: PrimExpr) -> list[tir.Var]:
    return [expr] if isinstance(expr, tir.Var) else list(tir.analysis.undefined_vars(expr))


def _substituted(expr: PrimExpr, values: Mapping[tir.Var, PrimExpr]) -> PrimExpr:
    return tir.stmt_functor.substitute(expr, dict(values))


def _written_axes(block: Block, indices: Sequence[PrimExpr]) -> list[tir.Var] | None:
    """The block's axes that a write is at, if it is at one different axis in each dimension."""
    own = [axis.var for axis in block.iter_vars]
    axes = [index for index in indices if isinstance(index, tir.Var)]
    distinct = len({id(v) for v in axes}) == len(axes) == len(set(axes))
    known = all(any(v.same_as(axis) for axis in own) for v in axes)
    return axes if len(axes) == len(indices) and distinct and known else None


def _axis_of(index: PrimExpr, axes: Sequence[tir.Var], own: Sequence[tir.Var]) -> Any:
    """Which written axis a dimension is read along: an axis, None for none, False for unknown."""
    used = [var for var in _vars_of(index) if any(var.same_as(a) for a in own)]
    if used and not len(arith.detect_linear_equation(index, used)):
        return False
    written = [var for var in used if any(var.same_as(axis) for axis in axes)]
    if len(written) > 1:
        return False
    return written[0] if written else None


def _laid_out(
    dims: Sequence[tir.Var | None],
    axes: Sequence[tir.Var],
    transform: IndexMap,
    require_all: bool,
) -> IndexMap | None:
    """The transformation of dimensions that follow written axes, from that of what is written.

    Parameters
    ----------
    dims : the written axis of each dimension, None for others, which stay where they are.
    axes : the written axes, one for each index of the transformation.
    require_all : whether every axis has to be among the dimensions.
    """
    followed = [dim for dim in dims if dim is not None]
    positions = [next(k for k, axis in enumerate(axes) if axis.same_as(dim)) for dim in followed]
    # Dimensions in another order are another layout already.
    if positions != sorted(set(positions)) or (require_all and len(positions) != len(axes)):
        return None
    fresh = [tir.Var(f"d{k}", str(transform.initial_indices[0].dtype)) for k in range(len(dims))]
    values: dict[tir.Var, PrimExpr] = {}
    for own, position in zip([v for v, d in zip(fresh, dims) if d is not None], positions):
        values[transform.initial_indices[position]] = own
    outputs = []
    for expr in transform.final_indices:
        read = _vars_of(expr)
        there = [var in values for var in read]
        if read and not any(there):
            continue
        if not all(there):
            return None
        outputs.append(_substituted(expr, values))
    final: list[PrimExpr] = []
    for var, dim in zip(fresh, dims):
        if dim is None:
            final.append(var)
        elif outputs:
            final.append(outputs.pop(0))
    return IndexMap(fresh, [*final, *outputs], None)


def _is_bijective(transform: IndexMap, shape: Sequence[PrimExpr]) -> bool:
    finals = list(transform.final_indices)
    if all(isinstance(e, tir.Var) for e in finals) and len(set(finals)) == len(shape):
        return True
    try:
        transform.inverse(list(shape))
    except error.TVMError:
        return False
    return True


def _is_identity(transform: IndexMap) -> bool:
    finals, initials = transform.final_indices, transform.initial_indices
    return len(finals) == len(initials) and all(a.same_as(b) for a, b in zip(finals, initials))


class _Suggester:
    def __init__(self, transforms: Mapping[Buffer, IndexMap]) -> None:
        self.of_buffer: dict[Buffer, IndexMap] = dict(transforms)
        self.suggested: Transforms = {}
        # What has been put into suggestions: each layout is changed once.
        self._stated: set[Buffer] = set()

    def look(self, block: Block) -> None:
        """Suggest for one block, whose readers have been looked at."""
        accesses = _Accesses(block)
        if len(accesses.writes) != 1:
            return
        buffer, writes = next(iter(accesses.writes.items()))
        transform = self.of_buffer.get(buffer)
        axes = _written_axes(block, writes[0])
        if transform is None or axes is None or not self._alike(writes):
            return
        own = [axis.var for axis in block.iter_vars]
        slots = [v if any(v.same_as(a) for a in axes) else None for v in own]
        in_order = [v for v in slots if v is not None]
        if not all(a.same_as(b) for a, b in zip(in_order, axes)):
            return
        block_map = _laid_out(slots, axes, transform, require_all=True)
        extents = [axis.dom.extent for axis in block.iter_vars]
        if block_map is None or not _is_bijective(block_map, extents):
            return
        if not _is_bijective(transform, buffer.shape):
            return
        found: dict[Block | Buffer, IndexMap] = {block: block_map}
        self._state(found, buffer, transform)
        for read, indices in accesses.reads.items():
            layout = None if read.same_as(buffer) else self._of_read(indices, axes, own, transform)
            if layout is None or _is_identity(layout) or not _is_bijective(layout, read.shape):
                continue
            known = self.of_buffer.setdefault(read, layout)
            if structural_equal(known, layout, map_free_vars=True):
                self._state(found, read, layout)
        self.suggested[block] = found

    def _state(
        self, found: dict[Block | Buffer, IndexMap], buffer: Buffer, transform: IndexMap
    ) -> None:
        if buffer not in self._stated:
            self._stated.add(buffer)
            found[buffer] = transform

    @staticmethod
    def _alike(accesses: Sequence[Sequence[PrimExpr]]) -> bool:
        return all(
            structural_equal(a, b) for indices in accesses[1:] for a, b in zip(accesses[0], indices)
        )

    @staticmethod
    def _of_read(
        accesses: Sequence[Sequence[PrimExpr]],
        axes: Sequence[tir.Var],
        own: Sequence[tir.Var],
        transform: IndexMap,
    ) -> IndexMap | None:
        """The layout of a buffer that a block reads; None if there is none or several."""
        layouts = []
        for indices in accesses:
            dims = [_axis_of(index, axes, own) for index in indices]
            if any(dim is False for dim in dims):
                return None
            layouts.append(_laid_out(dims, axes, transform, require_all=False))
        first = layouts[0]
        for other in layouts[1:]:
            if first is None or other is None:
                return None
            if not structural_equal(first, other, map_free_vars=True):
                return None
        return first


def suggest_layout_transforms(
    func: tir.PrimFunc, write_buffer_transforms: Sequence[IndexMap | Callable[..., Any]]
) -> Transforms:
    """Transformations of blocks and buffers that go with given layouts of the results.

    A buffer that a block reads along the axes that it writes, in their order, is laid out alike;
    dimensions that it does not have are left out, and those that it has besides stay in place.

    Parameters
    ----------
    func : a function of blocks that are not inside of each other, whose last parameters are the
        results.
    write_buffer_transforms : the layout of each result.

    Returns
    -------
    For each block that something is suggested for, index maps by the block itself (for
    ``transform_block_layout``) and by buffers (for ``transform_layout``), each buffer once.

    Raises
    ------
    ValueError : there are more layouts than buffers, or one has another number of indices than its
        buffer has dimensions. AssertionError : a layout is neither an IndexMap nor a function.
    """
    maps = [_as_index_map(given) for given in write_buffer_transforms]
    buffers = [func.buffer_map[param] for param in func.params if param in func.buffer_map]
    if len(maps) >= len(buffers):
        raise error.ValueError(
            "Incompatible PrimFunc and write_transformations: there are "
            f"{len(maps)} layouts of results for {len(buffers)} buffers"
        )
    results = buffers[len(buffers) - len(maps) :] if maps else []
    for buffer, transform in zip(results, maps):
        if len(transform.initial_indices) != len(buffer.shape):
            raise error.ValueError(
                f"Mismatch between output buffer shape and index map: {buffer.name} has "
                f"{len(buffer.shape)} dimensions, the map {len(transform.initial_indices)} indices"
            )
    blocks = _Blocks()
    blocks.visit(func.body)
    if blocks.nested or not maps:
        return {}
    suggester = _Suggester(dict(zip(results, maps)))
    for block in reversed(blocks.found):
        suggester.look(block)
    return suggester.suggested
