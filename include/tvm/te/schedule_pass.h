/*!
 * \file tvm/te/schedule_pass.h
 * \brief From a schedule to a function: bounds, loop nests, buffers.
 */
#ifndef TVM_TE_SCHEDULE_PASS_H_
#define TVM_TE_SCHEDULE_PASS_H_

#include <tvm/te/schedule.h>
#include <tvm/tir/function.h>

namespace tvm {
namespace arith {
class VarContext;
}  // namespace arith

namespace te {

/*! \brief Keys of AttrStmt that te makes. */
namespace attr {
/*! \brief `node` is the array [tensor, buffer]: the buffer holds the tensor in the body. */
constexpr const char* tensor_buffer = "tensor_buffer";
}  // namespace attr

/*! \brief Inlines every stage, outputs apart, whose body is elementwise in its inputs. */
void AutoInlineElemWise(Schedule sch);
/*! \brief Like AutoInlineElemWise, for bodies that broadcast along some axes. */
void AutoInlineBroadcast(Schedule sch);
/*! \brief Inlines every stage without a reduction, outputs apart. */
void AutoInlineInjective(Schedule sch);
/*! \brief Whether no axis is reduced over, so that reads may be replaced by the body. */
bool IsInjective(const Operation& op);

/*!
 * \brief The domain of every loop of a normalized schedule.
 *
 * With a VarContext, extents of splits are what it knows about its knobs (exact quotients where
 * they exist); without one they round up.
 */
Map<IterVar, Range> InferBound(const Schedule& sch);
Map<IterVar, Range> InferBound(const Schedule& sch, const arith::VarContext& var_context);

/*!
 * \brief The loop nests of a normalized schedule with the bounds of InferBound.
 *
 * Buffers are multi-dimensional and realized where their stage is attached. Loops of one trip are
 * left out unless `keep_trivial_loop`. The outermost attributes `tensor_buffer` say which buffer
 * holds which tensor; SchedulePostProcToPrimFunc uses them up.
 */
Stmt ScheduleOps(const Schedule& sch, const Map<IterVar, Range>& bounds,
                 bool keep_trivial_loop = false);

/*!
 * \brief Stages marked by the pragma `tensor_core` multiply on tensor cores.
 *
 * Expects the result of ScheduleOps for `schedule`, or the schedule that was normalized for it. A
 * marked stage adds up products of two tensors in registers ("local"), which are copies of tiles
 * in shared or global memory; its result is copied out again. What the 32 threads of a warp do
 * together has to make up whole fragments of 16 x 16, 32 x 8 or 8 x 32 elements and steps of 16.
 * Copies become tvm_load_matrix_sync and tvm_store_matrix_sync, start values tvm_fill_fragment and
 * products tvm_mma_sync, on memory of the wmma scopes. No pragma is left.
 *
 * Returns `stmt` itself if nothing is marked; raises a ScheduleError for what does not fit.
 * \param extern_buffer the buffers that tensors will be bound to, as for
 *        SchedulePostProcToPrimFunc: their strides must suit fragments.
 */
Stmt SchedulePostProcRewriteForTensorCore(const Stmt& stmt, const Schedule& schedule,
                                          const Map<Tensor, Buffer>& extern_buffer = {});

/*!
 * \brief Buffers with the layouts that stages of `schedule` ask for, and accesses where they lie.
 *
 * Expects the result of ScheduleOps for `schedule`; the buffers of `extern_buffer` must have the
 * shapes of the layouts already. ScheduleError where something else than loads and stores of
 * elements reaches such a buffer.
 */
Stmt ApplyLayouts(const Stmt& stmt, const Schedule& schedule,
                  const Map<Tensor, Buffer>& extern_buffer = {});

/*!
 * \brief Wraps the result of ScheduleOps as a function.
 * \param args a Tensor, Buffer or Var per parameter; a tensor becomes a buffer parameter.
 * \param binds buffers to use for tensors of `args`.
 */
tir::PrimFunc SchedulePostProcToPrimFunc(const Array<ObjectRef>& args, const Stmt& body,
                                         const Map<Tensor, Buffer>& binds = {});

}  // namespace te
}  // namespace tvm
#endif  // TVM_TE_SCHEDULE_PASS_H_
