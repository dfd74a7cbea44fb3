"""Passes over functions; the lowering pipeline runs most of them, in the order of this file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tvm.ir.transform import Pass

from ..function import PrimFunc
from . import _ffi_api
from .function_pass import prim_func_pass

if TYPE_CHECKING:
    from tvm.target import Target

__all__ = [
    "AnnotateDeviceRegions",
    "AnnotateEntryFunc",
    "Apply",
    "BindTarget",
    "BF16Legalize",
    "BF16StorageLegalize",
    "CompactBufferAllocation",
    "BF16ComputeLegalize",
    "ConvertBlocksToOpaque",
    "ConvertForLoopsToSerial",
    "ConvertSSA",
    "FP8ComputeLegalize",
    "FP8StorageLegalize",
    "FP16ComputeLegalize",
    "FP16StorageLegalize",
    "Filter",
    "FlattenBuffer",
    "InjectVirtualThread",
    "InjectDoubleBuffer",
    "InjectPrefetch",
    "InstallDebugSpans",
    "InstrumentBoundCheckers",
    "LoopPartition",
    "LowerCrossThreadReduction",
    "LowerDeviceKernelLaunch",
    "LowerInitBlock",
    "LowerIntrin",
    "LowerTVMBuiltin",
    "LowerThreadAllreduce",
    "LowerWarpMemory",
    "MakePackedAPI",
    "MergeDynamicSharedMemoryAllocations",
    "MergeSharedMemoryAllocations",
    "LowerMatchBuffer",
    "LowerOpaqueBlock",
    "NarrowDataType",
    "PlanAndUpdateBufferAllocationLocation",
    "PromoteAccumulators",
    "TransposeInRegisters",
    "RemoveAssume",
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
    "UnswitchLoops",
    "VectorizeLoop",
    "VerifyGPUCode",
    "VerifyMemory",
    "WidenIndex",
    "FixScalableVectors",
]


# ---- functions with blocks --------------------------------------------------------------------


def LowerCrossThreadReduction() -> Pass:
    """Let threads combine what each of them reduced, where loops of a reduction are bound to them.

    Raises
    ------
    ValueError : the operator of the block is not known, or other statements or spatial loops are
        inside of its reduction; or a thread of a kernel reads what only others have written, in
        memory of its own or in global memory that no thread waits for.
    """
    return _ffi_api.LowerCrossThreadReduction()


def LowerInitBlock() -> Pass:
    """A block's init becomes a statement under the test for the first reduction trip."""
    return _ffi_api.LowerInitBlock()


def PlanAndUpdateBufferAllocationLocation() -> Pass:
    """Allocate the buffers of blocks in the innermost loop or block around all their uses."""
    return _ffi_api.PlanAndUpdateBufferAllocationLocation()


def ConvertBlocksToOpaque() -> Pass:
    """Replace block variables by the values they are given."""
    return _ffi_api.ConvertBlocksToOpaque()


def LowerMatchBuffer() -> Pass:
    """Replace views of regions by accesses of the buffers they view."""
    return _ffi_api.LowerMatchBuffer()


def CompactBufferAllocation(is_strict: bool = True) -> Pass:
    """Make the buffers that a function allocates no larger than what is touched of them.

    Indices begin at zero then. What counts for shared memory is what all threads of a block touch,
    for that of a warp what its threads do. Buffers whose pointer is passed on stay as they are.

    Parameters
    ----------
    is_strict : whether buffers may only become smaller. Otherwise one that is declared smaller
        than what is touched grows.
    """
    return _ffi_api.CompactBufferAllocation(is_strict)


def LowerOpaqueBlock() -> Pass:
    """Replace opaque blocks by their bodies, and loops over threads by launch attributes.

    Buffers of blocks are allocated where the block was, with the block annotation
    ``buffer_dim_align`` as one of the allocation. Loops of one iteration without annotations are
    dropped. Annotations of loops and blocks that begin with ``pragma_`` become attributes, if they
    are numbers or texts.
    """
    return _ffi_api.LowerOpaqueBlock()


# ---- phase 1 ----------------------------------------------------------------------------------


def InjectPrefetch() -> Pass:
    """Turn requests to read ahead into Prefetch statements with their regions.

    The requests are ``prefetch_scope`` attributes, from a stage's ``prefetch``, and the loop pragma
    ``prefetch``, whose value is a number of trips: everything the loop only reads is then fetched
    that many trips ahead.
    """
    return _ffi_api.InjectPrefetch()


def StorageFlatten(cache_line_size: int = 64, create_bound_attribute: bool = False) -> Pass:
    """Multi-dimensional accesses become one-dimensional, realizes become allocations.

    With `create_bound_attribute` the sizes of buffers are kept for
    :func:`InstrumentBoundCheckers`.
    """
    return _ffi_api.StorageFlatten(cache_line_size, create_bound_attribute)


def FlattenBuffer() -> Pass:
    """Buffers get one axis, and one more for each of their axis separators.

    For functions whose memory is allocated; realizations are left to :func:`StorageFlatten`.
    Booleans become bytes, and declarations of buffers go.

    Raises
    ------
    ValueError : (when run) blocks with views of regions are left.
    """
    return _ffi_api.FlattenBuffer()


def ConvertSSA() -> Pass:
    """Bind every variable of a module once: those bound again get copies."""
    return _ffi_api.ConvertSSA()


def BF16Legalize() -> Pass:
    """Compute bfloat16 and 8-bit floating point in float32, rounded once an expression."""
    return _ffi_api.BF16Legalize()


def BF16ComputeLegalize() -> Pass:
    """Compute bfloat16 in float32, also in variables and in memory that the function allocates.

    Conversions are shifts and reinterpretations of bits. Memory stays bfloat16 whose pointer is
    passed on, or that is viewed as another type.
    """
    return _ffi_api.BF16ComputeLegalize()


def BF16StorageLegalize() -> Pass:
    """Hold bfloat16 values as uint16, for targets without the type; after BF16ComputeLegalize.

    Pointers become those to uint16. Arrays of the signature stay bfloat16, as callers pass them.
    """
    return _ffi_api.BF16StorageLegalize()


def FP8ComputeLegalize(promote_dtype_str: str = "float32") -> Pass:
    """Compute 8-bit floating point in a wider type, as `BF16ComputeLegalize` does bfloat16.

    Numbers too large for the narrow type become infinity, or NaN where it has none.

    Parameters
    ----------
    promote_dtype_str : "float16" or "float32", in which to compute.
    """
    return _ffi_api.FP8ComputeLegalize(promote_dtype_str)


def FP8StorageLegalize() -> Pass:
    """Hold 8-bit floating point as uint8, as `BF16StorageLegalize` holds bfloat16."""
    return _ffi_api.FP8StorageLegalize()


def FP16ComputeLegalize() -> Pass:
    """Compute float16 in float32, as `BF16ComputeLegalize` does bfloat16.

    `tvm.build` runs it for processors that convert halves by no instruction.
    """
    return _ffi_api.FP16ComputeLegalize()


def FP16StorageLegalize() -> Pass:
    """Hold float16 as uint16, as `BF16StorageLegalize` holds bfloat16.

    Raises
    ------
    ValueError : a function from elsewhere is called with a half.
    """
    return _ffi_api.FP16StorageLegalize()


def NarrowDataType(target_bits: int) -> Pass:
    """Index arithmetic in `target_bits` bits (8, 16, 32 or 64) where all values provably fit."""
    return _ffi_api.NarrowDataType(target_bits)


def Simplify() -> Pass:
    """Simplify expressions with what loops and conditions say about their variables.

    The option ``tir.Simplify`` is a dict of flags, False unless given:
    ``convert_boolean_to_and_of_ors`` distributes `or` over `and`;
    ``apply_constraints_to_boolean_branches`` simplifies each operand of `and` and `or` where the
    other one decides nothing; ``propagate_knowns_to_prove_conditional`` and
    ``propagate_knowns_to_simplify_expressions`` use what elements hold that were stored before,
    and what ``T.assume`` says. ``transitively_prove_inequalities`` is always on.
    """
    return _ffi_api.Simplify()


# ---- phase 2 ----------------------------------------------------------------------------------


def LoopPartition() -> Pass:
    """Split loops so that their likely conditions hold throughout the main segment.

    The option ``tir.LoopPartition`` is a dict. ``partition_const_loop`` also splits loops of
    constant extent; ``no_unroll_loop_with_extent_one`` keeps segments of one trip as loops;
    ``unroll_loop_with_partition_hint_no_interval`` unrolls a loop that has the pragma
    ``loop_partition_hint`` but cannot be split. A loop with that pragma is split at all its
    conditions, likely or not, whatever its extent.
    """
    return _ffi_api.LoopPartition()


def VectorizeLoop(
    enable_vectorize: bool = True, vector_bits: int = 256, interleaved: int = 1
) -> Pass:
    """Vectorised loops become vector code of at most `vector_bits` bits, or serial loops.

    All of them become serial without `enable_vectorize`. Loops with elementary functions (exp,
    tanh, erf, ...) take `interleaved` vectors at once, so that the long chains of operations of
    these functions overlap. That is for code generators that split vectors wider than a register,
    as LLVM does.
    """
    return _ffi_api.VectorizeLoop(enable_vectorize, vector_bits, interleaved)


def InjectDoubleBuffer() -> Pass:
    """Fill a double-buffered stage for the next trip of the loop around it during this one.

    The option ``tir.InjectDoubleBuffer`` is a dict; ``split_loop`` (1 or even) is the number of
    trips per step of the resulting loop, which then know their half of the buffer at compile time.
    A stage filled from what the same loop computes keeps its single buffer.
    """
    return _ffi_api.InjectDoubleBuffer()


def StorageRewrite() -> Pass:
    """Share memory between allocations whose lifetimes do not overlap.

    Allocations move to the top of the thread that uses them if their size is known there. Memory
    that is read for the last time where other memory is made, element by element, is written in
    place. Scopes with a name of their own after that of a rank (``local.acc``, ``global:tag``) are
    memory of a special machine: all allocations are parts of one, of the sizes that the global
    function ``tvm.info.mem.<scope>`` tells as a ``MemoryInfo``.

    Raises
    ------
    ValueError : (when run) more is in use at once than there is of a special scope.
    """
    return _ffi_api.StorageRewrite()


def UnrollLoop() -> Pass:
    """Write out loops marked for it, and short ones where a pragma asks for it.

    The option ``tir.UnrollLoop`` is a dict with ``auto_max_step``, ``auto_max_depth``,
    ``auto_max_extent`` and ``explicit_unroll``.
    """
    return _ffi_api.UnrollLoop()


# ---- phase 3 ----------------------------------------------------------------------------------


def RemoveAssume() -> Pass:
    """Drop statements that only say what holds (``T.assume``), once nothing needs them."""
    return _ffi_api.RemoveAssume()


def RemoveNoOp() -> Pass:
    """Drop statements without effect, and stores of what an element holds.

    The option ``tir.RemoveNoOp`` is a dict. With ``use_dataflow_analysis`` stores that later ones
    overwrite unread go as well, and those of a value that is known to be there.
    ``max_simplification_steps`` is accepted: proofs are bounded by themselves.
    """
    return _ffi_api.RemoveNoOp()


def RewriteUnsafeSelect() -> Pass:
    """Selects whose unchosen operand may not be safe become if_then_else."""
    return _ffi_api.RewriteUnsafeSelect()


def UnswitchLoops() -> Pass:
    """Make tests that a loop does not change outside of it, one copy of the loop per outcome.

    Those of expressions too, and out of loops that hold other statements.

    The option ``tir.HoistIfThenElse`` is a dict; ``support_block_scope_hoisting`` also rewrites
    kernels, where the test is the same for all threads of a block.
    """
    return _ffi_api.UnswitchLoops()


def PromoteAccumulators(max_elements: int = 64) -> Pass:
    """Keep the tile that a reduction accumulates into in registers across its loops."""
    return _ffi_api.PromoteAccumulators(max_elements)


def TransposeInRegisters() -> Pass:
    """Read rows where an innermost loop reads columns, and transpose them in registers.

    A vector whose lanes lie apart in memory, and that moves on by one element each trip, costs a
    load and an insertion for each element. Blocks of 4 to 16 trips read rows instead, and
    interleave them two at a time.
    """
    return _ffi_api.TransposeInRegisters()


# ---- build ------------------------------------------------------------------------------------


def SkipAssert() -> Pass:
    """Drop assertions."""
    return _ffi_api.SkipAssert()


def InstallDebugSpans() -> Pass:
    """Let debuggers and profilers show the text of each function as the source of its code.

    The text goes to the file ``<global_symbol>.tir`` in the current folder, and every statement's
    ``span`` says the line that it has there. LLVM code then carries these lines as its debug
    information. Lowering runs this pass last under the option ``tir.enable_debug``.

    Raises
    ------
    ValueError : (when run) a function has no global symbol, or the file cannot be written.
    """
    return _ffi_api.InstallDebugSpans()


def InstrumentBoundCheckers() -> Pass:
    """Assert that accesses are inside of their buffers; the error names buffer and element.

    Needs the attributes that StorageFlatten creates when asked. The option
    ``tir.instrument_bound_checkers`` makes lowering do both.
    """
    return _ffi_api.InstrumentBoundCheckers()


def FixScalableVectors() -> Pass:
    """Scalable vectors get the lanes that they have where ``vscale`` is 1.

    For machines whose vectors have one length: a scalable program is right for any ``vscale``.
    """
    return _ffi_api.FixScalableVectors()


def LowerIntrin() -> Pass:
    """Replace functions that generators need not know by simpler ones."""
    return _ffi_api.LowerIntrin()


def BindTarget(target: Target) -> Pass:
    """Functions without a target get this one as their attribute ``target``.

    Functions that only others of the module call get the part of it that they run on: the host,
    if only host code calls them, else the target without its host. Those with ``tir.is_host_func``
    get the host.
    """
    return _ffi_api.BindTarget(target)


def AnnotateEntryFunc() -> Pass:
    """The only function with a name outside of the module gets ``tir.is_entry_func``."""
    return _ffi_api.AnnotateEntryFunc()


def AnnotateDeviceRegions() -> Pass:
    """Put an attribute ``target`` around what only a device runs, such as launches of threads.

    Of functions whose target has a host; the attribute's node is the target without it.
    """
    return _ffi_api.AnnotateDeviceRegions()


def SplitHostDevice() -> Pass:
    """Each statement with an attribute ``target`` becomes a function, which the rest calls.

    It is called ``<function>_kernel``, has pointers and then numbers as parameters, and gives an
    error code if its target is a processor.
    """
    return _ffi_api.SplitHostDevice()


def LowerDeviceKernelLaunch() -> Pass:
    """Calls between functions for different targets become launches of kernels.

    A kernel is called as a packed function, with its arguments and the extents of the launch. A
    function for another target of the same device is called by its name.
    """
    return _ffi_api.LowerDeviceKernelLaunch()


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


def MergeSharedMemoryAllocations() -> Pass:
    """Make all dynamic shared memory of a kernel parts of one allocation.

    With the option ``tir.merge_static_smem`` the same is done to that of a size known at compile
    time (scope "shared").
    """
    return _ffi_api.MergeDynamicSharedMemoryAllocations()


# The name that earlier releases of TVM gave it.
MergeDynamicSharedMemoryAllocations = MergeSharedMemoryAllocations


def LowerThreadAllreduce() -> Pass:
    """Reduce over threads by shuffles within a warp, or by a tree in shared memory."""
    return _ffi_api.LowerThreadAllreduce()


def LowerWarpMemory() -> Pass:
    """Memory of scope "warp" becomes registers that other threads read by shuffles."""
    return _ffi_api.LowerWarpMemory()


# ---- for pipelines of one's own ---------------------------------------------------------------


def WidenIndex(only_large: bool = False) -> Pass:
    """Loop variables and index arithmetic become int64.

    With ``only_large``, in functions of buffers with more than 2^31 - 1 elements only.
    """
    return _ffi_api.WidenIndex(only_large)


def ConvertForLoopsToSerial() -> Pass:
    """Make parallel and unrolled loops serial."""
    return _ffi_api.ConvertForLoopsToSerial()


def Apply(ftransform: Callable[[PrimFunc], PrimFunc | None]) -> Pass:
    """A pass that replaces every function by ``ftransform(func)``; None drops the function.

    >>> tagged = tvm.tir.transform.Apply(lambda f: f.with_attr("tag", 1))
    """

    def apply(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc | None:
        return ftransform(func)

    return prim_func_pass(apply, opt_level=0, name="tir.Apply")


def Filter(fcond: Callable[[PrimFunc], bool]) -> Pass:
    """A pass that keeps only functions for which ``fcond`` is true."""

    def keep(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc | None:
        return func if fcond(func) else None

    return prim_func_pass(keep, opt_level=0, name="tir.Filter")
