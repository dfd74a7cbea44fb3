"""Copies to shared memory by way of registers, and loads that a predicate guards."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import error
from tvm.ir import PrimExpr
from tvm.ir.transform import Pass

from .. import expr, stmt
from ..block import Block, BlockRealize
from ..buffer import Buffer, BufferRegion, decl_buffer
from ..function import PrimFunc
from ..functor import StmtExprMutator
from ..op import call_intrin
from ..stmt_functor import substitute
from .function_pass import prim_func_pass
from .hoist_expression import loop_with_body

__all__ = [
    "LOCAL_STAGE",
    "InjectPTXLDG32",
    "ManifestSharedMemoryLocalStage",
    "stage_through_registers",
]

LOCAL_STAGE = "tir.manifest_shared_memory_local_stage"
"""The annotation of blocks that copy through registers."""


def _region(buffer: Buffer, indices: list[PrimExpr]) -> BufferRegion:
    return BufferRegion(buffer, [tvm.ir.Range.from_min_extent(index, 1) for index in indices])


class _Stager(StmtExprMutator):
    """Splits annotated copies in two nests; the block around allocates what is between."""

    def __init__(self) -> None:
        self._allocated: list[Buffer] = []

    def visit_block_(self, op: Block) -> Any:
        outer, self._allocated = self._allocated, []
        block = self._visit_below(op)
        made, self._allocated = self._allocated, outer
        return block if not made else _with(block, alloc_buffers=[*block.alloc_buffers, *made])

    def visit_for_(self, op: stmt.For) -> Any:
        return self._nest(op)

    def visit_block_realize_(self, op: BlockRealize) -> Any:
        return self._nest(op)

    def _nest(self, op: stmt.Stmt) -> Any:
        loops: list[stmt.For] = []
        inner = op
        while isinstance(inner, stmt.For):
            # Loops over threads stay around both parts: each thread has registers of its own.
            if inner.kind == stmt.ForKind.THREAD_BINDING:
                return self._visit_below(op)
            loops.append(inner)
            inner = inner.body
        if not isinstance(inner, BlockRealize) or LOCAL_STAGE not in inner.block.annotations:
            return self._visit_below(op)
        return self._staged(loops, inner)

    def _staged(self, loops: list[stmt.For], realize: BlockRealize) -> stmt.Stmt:
        block = realize.block
        store = block.body
        if not isinstance(store, stmt.BufferStore) or block.init is not None:
            raise error.ValueError(
                f"ManifestSharedMemoryLocalStage: block {block.name_hint} does more than to store "
                f"one value; the annotation {LOCAL_STAGE} is for blocks that copy"
            )
        if len(block.iter_vars) != 0:
            raise error.ValueError(
                f"ManifestSharedMemoryLocalStage: block {block.name_hint} has variables of its "
                "own; run ConvertBlocksToOpaque before"
            )
        name = f"{store.buffer.name}_local"
        extents = [loop.extent for loop in loops] or [1]
        local = decl_buffer(extents, str(store.buffer.dtype), name, scope="local")
        self._allocated.append(local)
        places = [loop.loop_var - loop.min for loop in loops] or [tvm.tir.const(0)]
        load = Block(
            [],
            block.reads,
            [_region(local, places)],
            "",
            stmt.BufferStore(local, store.value, places),
        )
        annotations = {key: value for key, value in block.annotations.items() if key != LOCAL_STAGE}
        put = _with(
            block,
            reads=[_region(local, places)],
            body=stmt.BufferStore(store.buffer, expr.BufferLoad(local, places), store.indices),
            annotations=annotations,
        )
        first = _loops(loops, BlockRealize([], realize.predicate, load))
        fresh = {
            loop.loop_var: expr.Var(loop.loop_var.name, str(loop.loop_var.dtype)) for loop in loops
        }
        renamed = [_with_var(loop, fresh) for loop in loops]
        second = substitute(BlockRealize([], realize.predicate, put), fresh)
        return stmt.SeqStmt([first, _loops(renamed, second)])


def _with_var(loop: stmt.For, fresh: dict[expr.Var, expr.Var]) -> stmt.For:
    return stmt.For(
        fresh[loop.loop_var],
        substitute(loop.min, fresh),
        substitute(loop.extent, fresh),
        loop.kind,
        loop.body,
        loop.thread_binding,
        loop.annotations,
    )


def _loops(loops: list[stmt.For], body: stmt.Stmt) -> stmt.Stmt:
    """`body` inside of loops like the given ones."""
    for loop in reversed(loops):
        body = loop_with_body(loop, body)
    return body


def _with(block: Block, **changed: Any) -> Block:
    """The block with other fields."""
    fields = {
        "iter_vars": block.iter_vars,
        "reads": block.reads,
        "writes": block.writes,
        "name_hint": block.name_hint,
        "body": block.body,
        "init": block.init,
        "alloc_buffers": block.alloc_buffers,
        "match_buffers": block.match_buffers,
        "annotations": block.annotations,
    }
    return Block(**(fields | changed))


def stage_through_registers(body: stmt.Stmt) -> stmt.Stmt:
    """A statement with the copies in it that ask for it made in two steps."""
    return _Stager().visit(body)


@tvm._ffi.register_func("tir.transform.ManifestSharedMemoryLocalStage")
def ManifestSharedMemoryLocalStage() -> Pass:
    """Copy to shared memory in two steps: all loads to registers, then all stores.

    For blocks with the annotation ``tir.manifest_shared_memory_local_stage`` whose body stores one
    value. The block's loops, up to the next block or loop over threads, are written twice, and the
    block around gets a buffer of scope "local" with an element for each trip. With a software
    pipeline the loads of one trip then run beside the computation of another. Lowering runs this
    pass where a block asks for it.

    Raises
    ------
    ValueError : (when run) such a block does something else, or has variables.
    """

    def run(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc:
        body = stage_through_registers(func.body)
        return func if body.same_as(func.body) else func.with_body(body)

    return prim_func_pass(run, opt_level=0, name="tir.ManifestSharedMemoryLocalStage")


class _GuardedLoads(StmtExprMutator):
    def visit_buffer_store_(self, op: stmt.BufferStore) -> stmt.Stmt:
        value = op.value
        if (
            op.buffer.scope() != "local"
            or str(op.buffer.dtype) != "float32"
            or not isinstance(value, expr.Call)
            or getattr(value.op, "name", "") != "tir.if_then_else"
        ):
            return op
        guard, load, otherwise = value.args
        if (
            not isinstance(load, expr.BufferLoad)
            or load.buffer.scope() not in ("", "global")
            or str(load.dtype) != "float32"
            or not isinstance(otherwise, expr.FloatImm)
            or otherwise.value != 0
            or len(op.indices) != 1
            or len(load.indices) != 1
        ):
            return op
        place = op.indices[0]
        return stmt.Evaluate(
            call_intrin("float32", "tir.ptx_ldg32", op.buffer.data, guard, load, place)
        )


@tvm._ffi.register_func("tir.transform.InjectPTXLDG32")
def InjectPTXLDG32(enable_inject_ptx_intrin: bool = True) -> Pass:
    """Let guarded loads from global memory to registers be one instruction without a branch.

    A store ``local[i] = T.if_then_else(guard, A[j], T.float32(0))`` becomes
    ``T.ptx_ldg32(local, guard, A[j], i)``. For functions with flat accesses whose target is CUDA;
    the build runs it under the option ``tir.ptx_ldg32``.

    Parameters
    ----------
    enable_inject_ptx_intrin : False makes the pass do nothing.
    """

    def run(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc:
        target = func.attrs.get("target") if func.attrs is not None else None
        if not enable_inject_ptx_intrin or (target is not None and target.kind.name != "cuda"):
            return func
        body = _GuardedLoads().visit(func.body)
        return func if body.same_as(func.body) else func.with_body(body)

    return prim_func_pass(run, opt_level=0, name="tir.InjectPTXLDG32")
