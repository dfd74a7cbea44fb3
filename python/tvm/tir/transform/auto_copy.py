"""Blocks that copy a tile, shared out among the threads of a kernel."""

from __future__ import annotations

import math
from typing import Any

import tvm
from tvm import error
from tvm.arith import Analyzer
from tvm.ir import PrimExpr, Range
from tvm.ir.transform import Pass

from .. import expr, stmt
from ..block import Block, BlockRealize
from ..buffer import Buffer, decl_buffer
from ..buffer_mutator import BufferMutator
from ..function import PrimFunc
from ..functor import StmtExprMutator, StmtExprVisitor
from ..op import call_intrin
from ..stmt_functor import substitute
from .function_pass import prim_func_pass
from .shared_memory_stage import LOCAL_STAGE, stage_through_registers

__all__ = ["LowerAutoCopy"]

_AUTO_COPY = "auto_copy"
_REQUESTS = (_AUTO_COPY, "vector_bytes", "local_stage")
# Rows and columns of a fragment.
_TILE = 16
_TAGS = ("threadIdx.x", "threadIdx.y", "threadIdx.z")
# Eight rows begin at eight places of 16 bytes, which are all banks, where a row is an odd number of
# such places long.
_PAD_BYTES = 16


class _Threads(StmtExprVisitor):
    """The threads of a launch by tag."""

    def __init__(self) -> None:
        self.extents: dict[str, int] = {}

    def visit_for_(self, op: stmt.For) -> None:
        if op.kind == stmt.ForKind.THREAD_BINDING:
            tag = str(op.thread_binding.thread_tag)
            if tag in _TAGS and isinstance(op.extent, tvm.tir.IntImm):
                self.extents[tag] = max(self.extents.get(tag, 1), int(op.extent))
        self._visit_below(op)


def _place(op: stmt.For) -> PrimExpr:
    """Which of the threads of a loop this one is."""
    return op.loop_var - op.min


def _block(op: Block, body: stmt.Stmt, annotations: dict[str, Any]) -> Block:
    """The block with another body and other annotations."""
    return Block(
        op.iter_vars,
        op.reads,
        op.writes,
        op.name_hint,
        body,
        op.init,
        op.alloc_buffers,
        op.match_buffers,
        annotations,
    )


_Nest = tuple[list[stmt.For], stmt.Stmt, stmt.BufferStore, expr.BufferLoad]


def _nest_of(op: Block) -> _Nest | None:
    """Loops of a copy, what is in them, its store and its load; None for other blocks."""
    loops: list[stmt.For] = []
    body = op.body
    while isinstance(body, stmt.For) and body.kind == stmt.ForKind.SERIAL:
        loops.append(body)
        body = body.body
    store = body.then_case if isinstance(body, stmt.IfThenElse) else body
    load = store.value if isinstance(store, stmt.BufferStore) else None
    if isinstance(load, expr.Cast):
        load = load.value
    if (
        not isinstance(store, stmt.BufferStore)
        or not isinstance(load, expr.BufferLoad)
        or (isinstance(body, stmt.IfThenElse) and body.else_case is not None)
        or not all(isinstance(loop.extent, tvm.tir.IntImm) for loop in loops)
    ):
        return None
    return loops, body, store, load


def _is_fragment(buffer: Buffer) -> bool:
    return buffer.scope().startswith("wmma.")


def _is_of_fragments(nest: _Nest) -> bool:
    _, _, store, load = nest
    return _is_fragment(store.buffer) or _is_fragment(load.buffer)


class _Fragments(StmtExprMutator):
    """Copies between fragments of tensor cores and memory, by the instructions of a warp."""

    def __init__(self) -> None:
        self._analyzer = Analyzer()

    def visit_block_(self, op: Block) -> Any:
        nest = _nest_of(op) if op.annotations.get(_AUTO_COPY) else None
        if nest is None:
            return self._visit_below(op)
        loops, body, store, load = nest
        loads = _is_fragment(store.buffer)
        fragment, memory = (store, load) if loads else (load, store)
        if (
            not body.same_as(store)
            or not load.same_as(store.value)
            or _is_fragment(memory.buffer)
            or len(fragment.buffer.shape) < 2
            or len(memory.buffer.shape) < 2
        ):
            raise self._unfit(op, "a guard, a conversion, two fragments or a single axis")
        row, column = self._mover(loops, fragment, -2), self._mover(loops, fragment, -1)
        if row is None or column is None or row.same_as(column):
            raise self._unfit(op, "fragments whose rows and columns are not loops of the block")
        if self._mover(loops, memory, -1) is column and self._mover(loops, memory, -2) is row:
            layout = "row_major"
        elif self._mover(loops, memory, -1) is row and self._mover(loops, memory, -2) is column:
            layout = "col_major"
        else:
            raise self._unfit(op, "rows in memory that are neither rows nor columns of fragments")
        at = {loop.loop_var: loop.loop_var * _TILE for loop in (row, column)}
        call = self._instruction(fragment, memory, at, loads, layout)
        made: stmt.Stmt = stmt.Evaluate(call)
        for loop in reversed(loops):
            extent = loop.extent
            if loop is row or loop is column:
                if int(extent) % _TILE or not self._analyzer.can_prove_equal(loop.min, 0):
                    raise self._unfit(
                        op, f"{extent} rows or columns, which are no whole tiles of 16"
                    )
                extent = int(extent) // _TILE
            made = stmt.For(loop.loop_var, loop.min, extent, loop.kind, made)
        kept = {key: value for key, value in op.annotations.items() if key not in _REQUESTS}
        return _block(op, made, kept)

    @staticmethod
    def _unfit(op: Block, what: str) -> Exception:
        return error.ValueError(
            f"LowerAutoCopy: block {op.name_hint} copies fragments of a warp with {what}; copy "
            "whole tiles of 16 x 16 elements between a fragment and memory of one type"
        )

    def _mover(self, loops: list[stmt.For], access: Any, axis: int) -> stmt.For | None:
        """The loop with which an axis moves, alone of all axes, by one."""
        for loop in loops:
            steps = []
            for index in access.indices:
                after = substitute(index, {loop.loop_var: loop.loop_var + 1})
                steps.append(self._analyzer.simplify(after - index))
            expected = [0] * len(steps)
            expected[axis] = 1
            if all(isinstance(s, tvm.tir.IntImm) and int(s) == e for s, e in zip(steps, expected)):
                return loop
        return None

    def _instruction(
        self, fragment: Any, memory: Any, at: dict[Any, Any], loads: bool, layout: str
    ) -> PrimExpr:
        simplify = self._analyzer.simplify
        places = [simplify(substitute(index, at)) for index in fragment.indices]
        number: Any = tvm.tir.const(0, "int32")
        for axis, (place, extent) in enumerate(zip(places, fragment.buffer.shape)):
            tiled = axis >= len(places) - 2
            size = tvm.tir.floordiv(extent, _TILE) if tiled else extent
            number = number * size + (tvm.tir.floordiv(place, _TILE) if tiled else place)
        first = expr.BufferLoad(memory.buffer, [substitute(i, at) for i in memory.indices])
        address = call_intrin("handle", "tir.address_of", first)
        name = "tir.tvm_load_matrix_sync" if loads else "tir.tvm_store_matrix_sync"
        shape = (_TILE, _TILE, _TILE)
        row = memory.buffer.shape[-1]
        data = fragment.buffer.data
        return call_intrin("handle", name, data, *shape, simplify(number), address, row, layout)


class _Variables(StmtExprVisitor):
    """The variables of a statement, and the memory that it reads."""

    def __init__(self) -> None:
        self.found: set[expr.Var] = set()
        self.read: set[expr.Var] = set()

    def visit_var_(self, op: expr.Var) -> None:
        self.found.add(op)

    def visit_buffer_load_(self, op: expr.BufferLoad) -> None:
        self.read.add(op.buffer.data)
        self._visit_below(op)


class _Distributor(StmtExprMutator):
    """Rewrites annotated copies; the threads that run them are those of the launch around.

    `read` is the memory that the function reads.
    """

    def __init__(self, read: set[expr.Var]) -> None:
        self._read = read
        self._launch: dict[str, int] | None = None
        self._around: dict[str, stmt.For] = {}
        self._analyzer = Analyzer()
        self.padded: set[Buffer] = set()
        self.fragments = False

    def visit_for_(self, op: stmt.For) -> Any:
        self._analyzer.bind(op.loop_var, Range.from_min_extent(op.min, op.extent))
        if op.kind != stmt.ForKind.THREAD_BINDING:
            return self._visit_below(op)
        outermost = self._launch is None
        if outermost:
            threads = _Threads()
            threads.visit(op)
            self._launch = threads.extents
        tag = str(op.thread_binding.thread_tag)
        outer = self._around.get(tag)
        self._around[tag] = op
        result = self._visit_below(op)
        if outer is None:
            del self._around[tag]
        else:
            self._around[tag] = outer
        if outermost:
            self._launch = None
        return result

    def visit_block_(self, op: Block) -> Any:
        nest = _nest_of(op) if op.annotations.get(_AUTO_COPY) else None
        if nest is None:
            # Whoever scheduled a copy further has said how it is made.
            return self._visit_below(op)
        if _is_of_fragments(nest):
            # Rewritten when the rows of shared memory have their final length.
            self.fragments = True
            return self._visit_below(op)
        kept = {key: value for key, value in op.annotations.items() if key not in _REQUESTS}
        return _block(op, self._copy(op, nest), kept)

    def _copy(self, op: Block, nest: _Nest) -> stmt.Stmt:
        loops, body, store, load = nest
        stage = {LOCAL_STAGE: 1} if op.annotations.get("local_stage") else None
        if store.buffer.scope().startswith("shared") and len(store.buffer.shape) > 1:
            self.padded.add(store.buffer)
        lanes = self._lanes(op, loops, store, load)
        threads = self._partners(body, store, load)
        if not threads and lanes == 1 and stage is None:
            return op.body
        return self._shared_out(loops, body, lanes, threads, stage)

    def _partners(self, body: stmt.Stmt, store: Any, load: Any) -> dict[str, int]:
        """The threads that make one copy together, by tag.

        Those that need the same tile, where barriers are between a copy and its readers: in shared
        memory, or out of it to memory that the function does not read.
        """
        into, out = store.buffer.scope(), load.buffer.scope()
        meets = into.startswith("shared") or (
            out.startswith("shared")
            and into in ("", "global")
            and store.buffer.data not in self._read
        )
        if not meets or self._launch is None:
            return {}
        used = _Variables()
        used.visit(body)
        own = {tag for tag, loop in self._around.items() if loop.loop_var in used.found}
        return {tag: extent for tag, extent in self._launch.items() if tag not in own}

    def _lanes(self, op: Block, loops: list[stmt.For], store: Any, load: Any) -> int:
        """Elements that a thread copies at once: neighbours, of as many bytes as asked for."""
        wanted = int(op.annotations.get("vector_bytes", 0))
        element = max(tvm.DataType(str(b.dtype)).itemsize for b in (store.buffer, load.buffer))
        if not loops or wanted <= element:
            return 1
        var = loops[-1].loop_var
        for access in (store, load):
            before = access.indices
            after = [substitute(index, {var: var + 1}) for index in before]
            moved = [self._analyzer.simplify(b - a) for a, b in zip(before, after)]
            steps = [int(m) if isinstance(m, tvm.tir.IntImm) else 2 for m in moved]
            if steps != [0] * (len(steps) - 1) + [1]:
                return 1
        return math.gcd(wanted // element, int(loops[-1].extent))

    def _shared_out(
        self,
        loops: list[stmt.For],
        body: stmt.Stmt,
        lanes: int,
        threads: dict[str, int],
        stage: dict[str, Any] | None,
    ) -> stmt.Stmt:
        """The nest as vectors that the threads take in turn, neighbours by neighbours."""
        total = math.prod(int(loop.extent) for loop in loops)
        count = math.prod(threads.values())
        made: list[tuple[expr.Var, str]] = []
        me: Any = tvm.tir.const(0, "int32")
        for tag in reversed(_TAGS):
            if tag not in threads:
                continue
            if tag in self._around:
                place = _place(self._around[tag])
            else:
                place = expr.Var(tag.replace(".", "_"), "int32")
                made.append((place, tag))
                self._analyzer.bind(place, Range(0, threads[tag]))
            me = me * threads[tag] + place
        turns = -(-total // (count * lanes))
        turn, lane = expr.Var("turn", "int32"), expr.Var("lane", "int32")
        self._analyzer.bind(turn, Range(0, turns))
        self._analyzer.bind(lane, Range(0, lanes))
        vector = turn * count + me
        at = vector * lanes + lane
        values = {}
        rest = at
        for loop in reversed(loops):
            extent = int(loop.extent)
            value = tvm.tir.floormod(rest, extent) if loop is not loops[0] else rest
            value = self._analyzer.simplify(value)
            values[loop.loop_var] = (value + loop.min).astype(str(loop.loop_var.dtype))
            rest = self._analyzer.simplify(tvm.tir.floordiv(rest, extent))
        body = _Simplifier(self._analyzer).visit(substitute(body, values))
        if turns * count * lanes != total:
            body = stmt.IfThenElse(at < total, body)
        if stage is not None:
            store = body
            while isinstance(store, stmt.IfThenElse):
                store = store.then_case
            block = Block([], [], [], "auto_copy", store, annotations=stage)
            condition = tvm.tir.const(True, "bool")
            inner = body
            while isinstance(inner, stmt.IfThenElse):
                condition = tvm.tir.all(condition, inner.condition)
                inner = inner.then_case
            body = BlockRealize([], condition, block)
        if lanes > 1:
            body = stmt.For(lane, 0, lanes, stmt.ForKind.VECTORIZED, body)
        else:
            body = substitute(body, {lane: tvm.tir.const(0, "int32")})
        body = stmt.For(turn, 0, turns, stmt.ForKind.SERIAL, body)
        for var, tag in reversed(made):
            axis = expr.IterVar(None, expr.Var(tag, "int32"), expr.IterVar.ThreadIndex, tag)
            kind = stmt.ForKind.THREAD_BINDING
            body = stmt.For(var, 0, threads[tag], kind, body, axis)
        return body


class _Simplifier(StmtExprMutator):
    """Simplifies the indices of accesses."""

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer

    def _indices(self, op: Any) -> list[PrimExpr]:
        return [self._analyzer.simplify(self.visit(index)) for index in op.indices]

    def visit_buffer_load_(self, op: expr.BufferLoad) -> Any:
        return expr.BufferLoad(op.buffer, self._indices(op))

    def visit_buffer_store_(self, op: stmt.BufferStore) -> Any:
        return stmt.BufferStore(op.buffer, self.visit(op.value), self._indices(op))


class _Opaque(StmtExprVisitor):
    """Memory whose pointer is passed on, which relies on its layout."""

    def __init__(self) -> None:
        self.data: set[expr.Var] = set()

    def visit_var_(self, op: expr.Var) -> None:
        self.data.add(op)

    def visit_block_(self, op: Block) -> None:
        self.data.update(match.source.buffer.data for match in op.match_buffers)
        self._visit_below(op)


class _Padder(BufferMutator):
    """Rows of shared memory longer by what moves each one to other banks than the last."""

    def __init__(self, padded: set[Buffer]) -> None:
        super().__init__()
        self._padded = padded

    def map_buffer(self, buffer: Buffer) -> Buffer:
        if buffer not in self._padded:
            return super().map_buffer(buffer)
        element = tvm.DataType(str(buffer.dtype)).itemsize
        *rows, row = buffer.shape
        return decl_buffer(
            [*rows, row + _PAD_BYTES // element],
            str(buffer.dtype),
            buffer.name,
            buffer.data,
            scope=buffer.scope(),
        )


def _conflicts(buffer: Buffer) -> bool:
    """Whether eight rows begin at fewer than eight places of the banks."""
    row = buffer.shape[-1]
    if buffer.strides or not isinstance(row, tvm.tir.IntImm):
        return False
    element = tvm.DataType(str(buffer.dtype)).itemsize
    return _PAD_BYTES % element == 0 and int(row) * element % (2 * _PAD_BYTES) == 0


@tvm._ffi.register_func("tir.transform.LowerAutoCopy")
def LowerAutoCopy() -> Pass:
    """Share copies of tiles out among the threads of a kernel.

    For blocks with the annotation ``auto_copy``, as ``Schedule.read_at`` and ``write_at`` make
    them: a serial loop nest of constant extents around one store of an element; others stay as they
    are. Threads that need the same tile of shared memory copy it together, neighbouring ones
    neighbouring elements, in turns, and so do those that bring it back to arrays. Other copies
    each thread makes for itself. The annotation ``vector_bytes`` says how many bytes a thread takes
    at once, and ``local_stage`` that all loads go to registers before the first store. Rows of
    shared memory that is filled so are padded where several of them would begin at one bank. Copies
    between memory and fragments of tensor cores (scopes ``wmma.*``) become loads and stores of a
    warp, 16 x 16 elements each. Lowering runs this pass where a block asks for it.

    Raises
    ------
    ValueError : (when run) such a block copies less than whole fragments.
    """

    def run(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc:
        accesses = _Variables()
        accesses.visit(func.body)
        distributor = _Distributor(accesses.read | accesses.found)
        body = distributor.visit(func.body)
        if body.same_as(func.body) and not distributor.fragments:
            return func
        body = stage_through_registers(body)
        opaque = _Opaque()
        opaque.visit(body)
        padded = {b for b in distributor.padded if b.data not in opaque.data and _conflicts(b)}
        func = _Padder(padded).function(func.with_body(body))
        return func.with_body(_Fragments().visit(func.body)) if distributor.fragments else func

    return prim_func_pass(run, opt_level=0, name="tir.LowerAutoCopy")
