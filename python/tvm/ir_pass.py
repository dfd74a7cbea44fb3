"""Statement-level passes under their names of TVM 0.6, carried out by :mod:`tvm.tir.transform`.

A pass of this module takes a statement (or, where it says so, an expression) and gives the
rewritten one. Names of that version that have no counterpart raise an AttributeError that says
what to use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tvm import te, tir
from tvm.arith import Analyzer
from tvm.ir import IRModule, PrimExpr, structural_equal
from tvm.ir.transform import Pass, PassContext

__all__ = [
    "CanonicalSimplify",
    "Equal",
    "HoistIfThenElse",
    "InjectDoubleBuffer",
    "InjectPrefetch",
    "InstrumentBoundCheckers",
    "LoopPartition",
    "PostOrderVisit",
    "RemoveNoOp",
    "RewriteForTensorCore",
    "RewriteUnsafeSelect",
    "Simplify",
    "SkipVectorize",
    "StorageFlatten",
    "StorageRewrite",
    "Substitute",
    "UnrollLoop",
    "VectorizeLoop",
    "VerifyCompactBuffer",
]

# Names of 0.6 that a statement alone cannot express, and what does the same today.
_HINTS = {
    "MakeAPI": "tvm.tir.transform.MakePackedAPI, a pass over modules; tvm.build applies it",
    "SplitHostDevice": "tvm.build, which splits functions for the target",
    "ThreadSync": "tvm.build, which inserts barriers for the target",
    "LowerThreadAllreduce": "tvm.build, which lowers reductions across threads",
    "LowerWarpMemory": "tvm.build, which lowers warp memory",
    "LowerTVMBuiltin": "tvm.build, which lowers built-in calls",
    "LowerIntrin": "tvm.tir.transform.LowerIntrin, a pass over modules",
    "InjectVirtualThread": "tvm.lower, which expands virtual threads",
    "BindDeviceType": "tvm.build with a target",
    "CombineContextCall": "tvm.build, whose host code needs no such pass",
    "DecorateDeviceScope": "tvm.build with a target",
    "ConvertSSA": "nothing: every pass keeps bindings unique",
    "Inline": "te.Schedule's compute_inline",
    "LiftAttrScope": "nothing: no pass needs lifted attributes",
    "CoProcSync": "nothing: co-processors synchronise by their own intrinsics",
    "NarrowChannelAccess": "nothing: channels are not part of the language",
    "VerifyGPUCode": "tvm.tir.analysis.verify_gpu_code",
    "VerifyMemory": "tvm.tir.analysis.verify_memory",
}


def _on_statement(stmt: tir.Stmt, pass_: Pass, config: Mapping[str, Any] | None = None) -> Any:
    free = tir.analysis.undefined_vars(stmt)
    func = tir.PrimFunc(free, stmt)
    with PassContext(config=config):
        return pass_(IRModule.from_expr(func, "main"))["main"].body


def Simplify(stmt: Any) -> Any:
    """A statement or an expression, simplified."""
    if isinstance(stmt, PrimExpr):
        return Analyzer().simplify(stmt)
    return _on_statement(stmt, tir.transform.Simplify())


def CanonicalSimplify(stmt: Any) -> Any:
    """The same as :func:`Simplify`: there is one normal form."""
    return Simplify(stmt)


def Equal(lhs: Any, rhs: Any) -> bool:
    """Whether two statements or expressions have the same structure."""
    return structural_equal(lhs, rhs)


def Substitute(node: Any, vmap: Mapping[Any, Any]) -> Any:
    """`node` with variables replaced."""
    return tir.stmt_functor.substitute(node, vmap)


def PostOrderVisit(node: Any, fvisit: Callable[[Any], Any]) -> None:
    """Call `fvisit` on every node, leaves first."""
    tir.stmt_functor.post_order_visit(node, fvisit)


def VerifyCompactBuffer(stmt: tir.Stmt) -> bool:
    """Whether all buffers a statement uses are row-major without gaps."""
    return tir.analysis.verify_compact_buffer(stmt)


def StorageFlatten(stmt: tir.Stmt, cache_line_bytes: int = 64) -> tir.Stmt:
    """Flat accesses in place of multi-dimensional ones."""
    return _on_statement(stmt, tir.transform.StorageFlatten(cache_line_bytes))


def InjectPrefetch(stmt: tir.Stmt) -> tir.Stmt:
    """Prefetch statements in place of requests."""
    return _on_statement(stmt, tir.transform.InjectPrefetch())


def InjectDoubleBuffer(stmt: tir.Stmt, split_loop: int = 1) -> tir.Stmt:
    """Two halves for every buffer marked for double buffering."""
    config = {"tir.InjectDoubleBuffer": {"split_loop": split_loop}}
    return _on_statement(stmt, tir.transform.InjectDoubleBuffer(), config)


def LoopPartition(stmt: tir.Stmt, partition_const_loop: bool = False) -> tir.Stmt:
    """Main segments and tails in place of loops with likely conditions."""
    config = {"tir.LoopPartition": {"partition_const_loop": partition_const_loop}}
    return _on_statement(stmt, tir.transform.LoopPartition(), config)


def VectorizeLoop(stmt: tir.Stmt) -> tir.Stmt:
    """Vector code in place of vectorised loops."""
    return _on_statement(stmt, tir.transform.VectorizeLoop())


def SkipVectorize(stmt: tir.Stmt) -> tir.Stmt:
    """Serial loops in place of vectorised ones."""
    return _on_statement(stmt, tir.transform.VectorizeLoop(False))


def UnrollLoop(
    stmt: tir.Stmt,
    auto_max_step: int = 0,
    auto_max_depth: int = 8,
    auto_max_extent: int = 0,
    explicit_unroll: bool = True,
) -> tir.Stmt:
    """Copies in place of unrolled loops."""
    options = {
        "auto_max_step": auto_max_step,
        "auto_max_depth": auto_max_depth,
        "auto_max_extent": auto_max_extent,
        "explicit_unroll": explicit_unroll,
    }
    return _on_statement(stmt, tir.transform.UnrollLoop(), {"tir.UnrollLoop": options})


def StorageRewrite(stmt: tir.Stmt) -> tir.Stmt:
    """Shared memory for allocations that are not alive together."""
    return _on_statement(stmt, tir.transform.StorageRewrite())


def RemoveNoOp(stmt: tir.Stmt) -> tir.Stmt:
    """The statement without parts that do nothing."""
    return _on_statement(stmt, tir.transform.RemoveNoOp())


def RewriteUnsafeSelect(stmt: tir.Stmt) -> tir.Stmt:
    """Branches in place of selects with unsafe operands."""
    return _on_statement(stmt, tir.transform.RewriteUnsafeSelect())


def HoistIfThenElse(stmt: tir.Stmt) -> tir.Stmt:
    """Tests outside of the loops that do not change them."""
    return _on_statement(stmt, tir.transform.HoistIfThenElse())


def RewriteForTensorCore(stmt: tir.Stmt, schedule: te.Schedule, binds: Any = None) -> tir.Stmt:
    """Products marked ``tensor_core``: :func:`tvm.te.SchedulePostProcRewriteForTensorCore`."""
    return te.SchedulePostProcRewriteForTensorCore(stmt, schedule, binds)


def InstrumentBoundCheckers(stmt: tir.Stmt) -> tir.Stmt:
    """Assertions before accesses of buffers with a known bound."""
    return _on_statement(stmt, tir.transform.InstrumentBoundCheckers())


def __getattr__(name: str) -> Any:
    hint = _HINTS.get(name)
    if hint is not None:
        raise AttributeError(f"tvm.ir_pass.{name} of TVM 0.6 is gone; use {hint}")
    raise AttributeError(f"module 'tvm.ir_pass' has no attribute {name!r}")
