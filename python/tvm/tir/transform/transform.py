"""The passes of the lowering pipeline, in the order it runs them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tvm.ir.transform import Pass

from . import _ffi_api

if TYPE_CHECKING:
    from tvm.target import Target

__all__ = [
    "BindTarget",
    "HoistIfThenElse",
    "InjectVirtualThread",
    "LoopPartition",
    "LowerIntrin",
    "LowerTVMBuiltin",
    "LowerThreadAllreduce",
    "LowerWarpMemory",
    "MakePackedAPI",
    "MergeDynamicSharedMemoryAllocations",
    "PromoteAccumulators",
    "RemoveNoOp",
    "RewriteUnsafeSelect",
    "Simplify",
    "SkipAssert",
    "SplitHostDevice",
    "StorageFlatten",
    "StorageRewrite",
    "ThreadSync",
    "UnifyThreadBinding",
    "UnrollLoop",
    "VectorizeLoop",
    "VerifyGPUCode",
    "VerifyMemory",
    "WidenIndex",
]


def Simplify() -> Pass:
    """Simplify expressions with what loops and conditions say about their variables."""
    return _ffi_api.Simplify()


def StorageFlatten(cache_line_bytes: int = 64) -> Pass:
    """Multi-dimensional accesses become one-dimensional, realizes become allocations."""
    return _ffi_api.StorageFlatten(cache_line_bytes)


def WidenIndex() -> Pass:
    """Loop variables and index arithmetic become int64."""
    return _ffi_api.WidenIndex()


def LoopPartition() -> Pass:
    """Split loops so that their likely conditions hold throughout the main segment.

    The option ``tir.LoopPartition`` is a dict; ``partition_const_loop`` also splits loops of
    constant extent.
    """
    return _ffi_api.LoopPartition()


def VectorizeLoop(enable: bool = True, vector_bits: int = 256) -> Pass:
    """Vectorised loops become vector code of at most `vector_bits` bits, or serial loops."""
    return _ffi_api.VectorizeLoop(enable, vector_bits)


def HoistIfThenElse() -> Pass:
    """Make tests that a loop does not change outside of it, one copy of the loop per outcome."""
    return _ffi_api.HoistIfThenElse()


def UnrollLoop() -> Pass:
    """Write out loops marked for it, and short ones where a pragma asks for it.

    The option ``tir.UnrollLoop`` is a dict with ``auto_max_step``, ``auto_max_depth``,
    ``auto_max_extent`` and ``explicit_unroll``.
    """
    return _ffi_api.UnrollLoop()


def StorageRewrite() -> Pass:
    """Share memory between allocations whose lifetimes do not overlap; hoist constant ones."""
    return _ffi_api.StorageRewrite()


def PromoteAccumulators(max_elements: int = 64) -> Pass:
    """Keep the tile that a reduction accumulates into in registers across its loops."""
    return _ffi_api.PromoteAccumulators(max_elements)


def RemoveNoOp() -> Pass:
    """Drop statements without effect."""
    return _ffi_api.RemoveNoOp()


def RewriteUnsafeSelect() -> Pass:
    """Selects whose unchosen operand may not be safe become if_then_else."""
    return _ffi_api.RewriteUnsafeSelect()


def SkipAssert() -> Pass:
    """Drop assertions."""
    return _ffi_api.SkipAssert()


def LowerIntrin() -> Pass:
    """Replace functions that generators need not know by simpler ones."""
    return _ffi_api.LowerIntrin()


def BindTarget(target: Target) -> Pass:
    """Functions without a target get this one as their attribute ``target``."""
    return _ffi_api.BindTarget(target)


def SplitHostDevice() -> Pass:
    """Statements that run on threads become kernels, which the host calls as packed functions."""
    return _ffi_api.SplitHostDevice()


def LowerTVMBuiltin() -> Pass:
    """Write the arguments of packed calls to the stack, as the C interface wants them."""
    return _ffi_api.LowerTVMBuiltin()


def MakePackedAPI() -> Pass:
    """Give functions the calling convention of packed functions, with checks of the arguments."""
    return _ffi_api.MakePackedAPI()


def InjectVirtualThread() -> Pass:
    """Virtual threads become repetitions of each statement that differs between them."""
    return _ffi_api.InjectVirtualThread()


def VerifyMemory() -> Pass:
    """Raise ValueError when a function for a GPU accesses arrays outside of its kernels."""
    return _ffi_api.VerifyMemory()


def VerifyGPUCode(constraints: Mapping[str, int]) -> Pass:
    """Raise ValueError naming the first limit that a kernel exceeds.

    Parameters
    ----------
    constraints : any of ``max_threads_per_block``, ``max_shared_memory_per_block`` and
        ``max_local_memory_per_block`` (bytes), ``max_thread_x``, ``max_thread_y``,
        ``max_thread_z``, ``max_vthread``, ``max_vector_bytes``.
    """
    return _ffi_api.VerifyGPUCode(dict(constraints))


def UnifyThreadBinding() -> Pass:
    """Bind each thread axis of a launch once, where the launch begins."""
    return _ffi_api.UnifyThreadBinding()


def ThreadSync(storage_scope: str) -> Pass:
    """Insert barriers between accesses of different threads to memory of a scope.

    Parameters
    ----------
    storage_scope : "shared", dynamic shared memory included, or "warp".

    Raises
    ------
    ValueError : another scope, or (when run) accesses that need a barrier where threads diverge.
    """
    return _ffi_api.ThreadSync(storage_scope)


def MergeDynamicSharedMemoryAllocations() -> Pass:
    """Make all dynamic shared memory of a kernel parts of one allocation."""
    return _ffi_api.MergeDynamicSharedMemoryAllocations()


def LowerThreadAllreduce() -> Pass:
    """Reduce over threads by shuffles within a warp, or by a tree in shared memory."""
    return _ffi_api.LowerThreadAllreduce()


def LowerWarpMemory() -> Pass:
    """Memory of scope "warp" becomes registers that other threads read by shuffles."""
    return _ffi_api.LowerWarpMemory()
