/*!
 * \file tvm/tir/transform.h
 * \brief Passes over PrimFuncs. Each leaves functions it has nothing to say about untouched.
 *
 * The order in which the lowering pipeline runs them is the order below.
 */
#ifndef TVM_TIR_TRANSFORM_H_
#define TVM_TIR_TRANSFORM_H_

#include <tvm/ir/transform.h>
#include <tvm/tir/function.h>

#include <functional>

namespace tvm {

class Target;

namespace tir {
namespace transform {

using tvm::transform::Pass;
using tvm::transform::PassContext;

/*! \brief A module pass that applies `pass_func` to every PrimFunc. */
Pass CreatePrimFuncPass(std::function<PrimFunc(PrimFunc, IRModule, PassContext)> pass_func,
                        int opt_level, String name, Array<String> required = {});

/*! \brief Simplifies expressions with what loops and conditions say about their variables. */
Pass Simplify();

/*!
 * \brief `prefetch_scope` attributes and `pragma_prefetch` loops become Prefetch statements.
 *
 * Needs: multi-dimensional accesses. Guarantees: neither request is left. A region that does not
 * move with the loop is not prefetched.
 */
Pass InjectPrefetch();

/*!
 * \brief Multi-dimensional accesses become one-dimensional, realizes become allocations.
 *
 * Needs: BufferRealize around every use of a buffer that is no parameter. Guarantees: every access
 * has one index, in elements of the access's scalar type. Honours storage_alignment.
 *
 * \param cache_line_bytes Alignment claimed for allocations.
 * \param create_bound_attributes Say in `buffer_bound` attributes how many elements parameters
 * have, for InstrumentBoundCheckers.
 */
Pass StorageFlatten(int cache_line_bytes = 64, bool create_bound_attributes = false);

/*!
 * \brief Operators of bfloat16 and of 8-bit floating point are computed in float32 and rounded once
 * at the end of an expression.
 *
 * Guarantees: values of these types are only loaded, stored, chosen, passed on and converted.
 */
Pass BF16Legalize();

/*!
 * \brief The same for bfloat16, with conversions as shifts and reinterpretations, and with float32
 * in variables and in memory that the function allocates and nothing but accesses knows of.
 */
Pass BF16ComputeLegalize();

/*!
 * \brief bfloat16 values are held as the uint16 that represents them.
 *
 * For targets without the type. Needs: BF16Legalize or BF16ComputeLegalize. Pointers become those
 * to uint16; arrays of the signature stay bfloat16.
 */
Pass BF16StorageLegalize();

/*! \brief What BF16ComputeLegalize does, for 8-bit floating point, in float16 or float32. */
Pass FP8ComputeLegalize(const String& promote_dtype = "float32");

/*! \brief What BF16StorageLegalize does, for 8-bit floating point, which becomes uint8. */
Pass FP8StorageLegalize();

/*!
 * \brief Loop variables, indices, extents and comparisons of at most `target_bits` bits where every
 * intermediate value provably fits.
 */
Pass NarrowDataType(int target_bits);

/*!
 * \brief Splits a loop so that its `likely` conditions hold throughout the main segment.
 *
 * Needs: conditions linear in the loop variable. Guarantees: the main segment has none of the
 * conditions it was split for; loops keep kind and annotations. A loop with the annotation or
 * pragma `pragma_loop_partition_hint` is split at all its conditions, `likely` or not.
 *
 * Options tir.LoopPartition: partition_const_loop (also loops of constant extent, which are split
 * otherwise only with a hint), no_unroll_loop_with_extent_one (segments of one trip stay loops),
 * unroll_loop_with_partition_hint_no_interval (a hinted loop that cannot be split is unrolled).
 */
Pass LoopPartition();

/*!
 * \brief Vectorised loops become vector code in pieces of machine width plus power-of-two rest.
 *
 * Needs: flat accesses. Guarantees: no kVectorized loop is left. A piece has at most
 * `vector_bits` / (bits of the widest element accessed) lanes.
 *
 * \param enable False makes the loops serial.
 * \param vector_bits Width of a vector register in bits.
 * \param interleaved Vectors that a piece with elementary functions takes at once. Their chains of
 *        operations overlap when the code generator writes every operation for all of the vectors
 *        before the next one.
 */
Pass VectorizeLoop(bool enable = true, int vector_bits = 256, int interleaved = 1);

/*!
 * \brief Virtual threads become repetitions of each statement that differs between them.
 *
 * Up to 15 of a constant number are written out, more or a symbolic number run in a loop. Memory
 * allocated inside that differs between them gets a part for each.
 *
 * Needs: flat accesses. Guarantees: no attribute virtual_thread is left.
 */
Pass InjectVirtualThread();

/*!
 * \brief Buffers under `double_buffer_scope` are filled for the next trip of the loop around their
 * allocation while this trip reads the other half.
 *
 * Needs: flat accesses. Guarantees: no request is left. A buffer filled from what the same loop
 * computes cannot be filled a trip ahead and keeps its single half.
 *
 * Option tir.InjectDoubleBuffer: split_loop, 1 or even: trips per step of the loop, which then know
 * their half at compile time.
 */
Pass InjectDoubleBuffer();

/*!
 * \brief Shares memory between allocations that are not alive at the same time, and moves
 * allocations of constant size to the top of their thread's scope.
 *
 * Needs: flat accesses.
 */
Pass StorageRewrite();

/*!
 * \brief Writes out loops of kind kUnrolled, and short ones where a pragma asks for it.
 *
 * Options tir.UnrollLoop: auto_max_step, auto_max_depth, auto_max_extent, explicit_unroll.
 */
Pass UnrollLoop();

/*!
 * \brief Tests that a loop does not change are made outside of it, one copy of the loop per
 * outcome.
 *
 * Needs: unrolled loops. A remainder of a tile becomes a loop nest of its own this way, whatever
 * the loop order; a padded border stops costing a test per element.
 *
 * Option tir.HoistIfThenElse: support_block_scope_hoisting (also 'hosting'): kernels of a launch
 * are rewritten too, where the test is the same for all threads of a block. Without it they stay.
 */
Pass UnswitchLoops();

/*!
 * \brief Keeps the tile that a reduction accumulates into in registers across its loops.
 *
 * Needs: flat accesses, unrolled and vectorised tile. A nest of serial loops whose accesses to a
 * buffer all have the same few indices, none of which the loops change, works on a small "local"
 * allocation with constant indices instead, loaded before (or taken over from the store that
 * initialises it) and stored after.
 *
 * \param max_elements Upper bound on vectors plus scalars promoted for one nest.
 */
Pass PromoteAccumulators(int max_elements = 64);

/*!
 * \brief Reads rows where an innermost loop reads columns, and transposes them in registers.
 *
 * Needs: flat accesses, vectors made. A vector whose lanes lie apart and that moves on by one
 * element a trip costs a load and an insertion for each element. Blocks of 4 to 16 trips read the
 * rows instead, and interleave them, the base two logarithm of a row's elements times each.
 */
Pass TransposeInRegisters();

/*! \brief Drops statements without effect: empty loops, branches, unused lets and allocations. */
Pass RemoveNoOp();

/*! \brief Selects whose unchosen operand may not be safe become if_then_else. */
Pass RewriteUnsafeSelect();

/*!
 * \brief Accesses of allocations, and of buffers with a `buffer_bound`, become assertions.
 *
 * Needs: flat accesses and the attributes StorageFlatten makes when asked. Guarantees: no attribute
 * is left. Accesses that are provably inside cost nothing; kernels of a launch are not checked.
 */
Pass InstrumentBoundCheckers();

/*! \brief Unrolled and parallel loops without thread bindings become serial. */
Pass ConvertForLoopsToSerial();

/*!
 * \brief Scalable vectors get the lanes that they have where vscale is 1; for machines whose
 * vectors have one length.
 */
Pass FixScalableVectors();

/*! \brief Drops AssertStmts. */
Pass SkipAssert();

/*! \brief Sigmoid, exp10, log1p and the like become simpler functions every generator knows. */
Pass LowerIntrin();

/*!
 * \brief Makes loop variables and index arithmetic 64 bits wide, so address computations need no
 * extension in inner loops.
 *
 * Needs: flat accesses. Guarantees: every loop variable and index is int64; parameters keep their
 * type and are cast where used.
 *
 * \param only_large Leave functions alone all of whose buffers have elements that 32 bits number.
 */
Pass WidenIndex(bool only_large = false);

/*! \brief Functions without a target get this one as their attribute `target`. */
Pass BindTarget(const Target& target);

/*!
 * \brief Raises ValueError when a function for a GPU accesses arrays outside of its kernels.
 *
 * Needs: the attribute target; those with the key "gpu" are checked.
 */
Pass VerifyMemory();

/*!
 * \brief Raises ValueError naming the first limit that a kernel exceeds.
 * \param limits Of max_threads_per_block, max_shared_memory_per_block (bytes),
 * max_local_memory_per_block (bytes), max_thread_x, max_thread_y, max_thread_z, max_vthread,
 * max_vector_bytes; what is not given is not checked.
 */
Pass VerifyGPUCode(const Map<String, Integer>& limits);

/*!
 * \brief Thread axes of a launch are bound once each, where it begins.
 *
 * Needs: loops bound to one axis have the same extent. Guarantees: thread_extent attributes of a
 * launch are directly nested, one per tag; no loop of kind kThreadBinding is left.
 */
Pass UnifyThreadBinding();

/*!
 * \brief Barriers where threads may meet on one element of shared memory, at least one access
 * being a store.
 *
 * An element is told apart from others when one thread alone accesses it. Memory of one launch
 * must not be accessed by several threads under conditions that differ between threads.
 *
 * \param scope "shared" (dynamic shared memory included), "shared.dyn" (that alone) or "warp".
 */
Pass ThreadSync(String scope);

/*!
 * \brief Copies from global to shared memory in async_scope become cp.async, groups of them commits
 * and waits.
 *
 * Copies of other sizes than 4, 8 and 16 bytes stay what they are. Guarantees: no attribute of
 * asynchronous copies is left.
 */
Pass InjectPTXAsyncCopy();

/*!
 * \brief All allocations of scope "shared.dyn" in a kernel become parts of one.
 *
 * Needs: flat accesses; sizes that the host knows.
 */
Pass MergeDynamicSharedMemoryAllocations();

/*!
 * \brief tvm_thread_allreduce becomes shuffles where the threads are neighbours within a warp of
 * the target's thread_warp_size, and a tree in shared memory elsewhere.
 *
 * Needs: constant thread extents; barriers of other accesses in place. Guarantees: the result is in
 * the result buffers of all threads.
 */
Pass LowerThreadAllreduce();

/*!
 * \brief Memory of scope "warp" becomes registers, read from other threads by shuffles.
 *
 * Needs: the extent of threadIdx.x divides the target's thread_warp_size; each thread stores
 * elements of its own.
 */
Pass LowerWarpMemory();

/*!
 * \brief The function takes its arguments as `(const TVMAny* args, int32 num_args, TVMAny* ret)`.
 *
 * Arrays must be in memory of the target's device, all on the same one; on other devices than a
 * processor, host code runs inside the attributes device_type and device_id and makes that device
 * the current one first.
 *
 * Needs: a global_symbol. Guarantees: arguments are checked (count, type, ndim, dtype, shape,
 * strides, alignment) with messages that name function, argument, expected and actual value;
 * shape variables are bound to the first place where they occur alone.
 */
Pass MakePackedAPI();

/*!
 * \brief Outermost statements that only a device can run get the attribute "target" around them.
 *
 * These are launches (thread_extent), device_scope and pipeline_exec_scope, in functions whose
 * target has a host.
 */
Pass AnnotateDeviceRegions();

/*!
 * \brief Each statement with an attribute "target" becomes a function `<function>_kernel`.
 *
 * The rest calls it, with pointers and then numbers. Where the target is a processor, the call
 * gives an error code, which is checked.
 */
Pass SplitHostDevice();

/*!
 * \brief Calls between functions for different targets become launches.
 *
 * Needs: functions with the attribute target, at most one allocation of scope "shared.dyn" in a
 * kernel. Guarantees: a kernel is called as a packed function with its arguments and the extents
 * of the launch, and has calling_conv kDeviceKernelLaunch and tir.kernel_launch_params. Functions
 * for another target of the same device are called by name.
 */
Pass LowerDeviceKernelLaunch();

/*! \brief The only function that has a name outside of the module gets tir.is_entry_func. */
Pass AnnotateEntryFunc();

/*!
 * \brief tvm_call_packed becomes tvm_call_packed_lowered on an array of TVMAny on the stack.
 *
 * Each call has an array of its own, bound by a LetStmt around the statement with the call.
 * Allocations stay: generators place them in the frame or in a workspace of the device.
 */
Pass LowerTVMBuiltin();

// ---- blocks ----------------------------------------------------------------------------------
// In the order in which they are applied. Functions without blocks stay as they are.

/*!
 * \brief Reductions over threads become what each thread does, an exchange, and a write back.
 *
 * ValueError where the operator of the reduction or the place of the block does not allow that.
 */
Pass LowerCrossThreadReduction();

/*! \brief A block's init becomes a statement under the test for the first reduction trip. */
Pass LowerInitBlock();

/*!
 * \brief Buffers move from the block that allocates them to the innermost block around all their
 * uses.
 */
Pass PlanAndUpdateBufferAllocationLocation();

/*! \brief Block variables are replaced by the values they are given. */
Pass ConvertBlocksToOpaque();

/*! \brief Views of regions are replaced by accesses of the buffers they view. */
Pass LowerMatchBuffer();

/*!
 * \brief Buffers of opaque blocks are no larger than what is touched, and accesses are moved along.
 */
Pass CompactBufferAllocation();

/*!
 * \brief Loops annotated with stages and orders run their parts on different trips at once.
 *
 * The annotations software_pipeline_stage and software_pipeline_order have a number for each
 * statement of the body. Needs: opaque blocks without views. Guarantees: three loops take the place
 * of one, buffers have as many copies as parts use at once, and asynchronous stages
 * (software_pipeline_async_stages) have attributes that commit and wait.
 */
Pass InjectSoftwarePipeline();

/*!
 * \brief Opaque blocks become their bodies, under their predicates.
 * \param marks_likely Whether LoopPartition may cut loops where predicates begin to hold.
 */
Pass LowerOpaqueBlock(bool marks_likely = false);

/*! \brief All passes of this section if any function of the module has blocks, else none. */
Array<Pass> LowerBlockPasses(const IRModule& mod);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
#endif  // TVM_TIR_TRANSFORM_H_
