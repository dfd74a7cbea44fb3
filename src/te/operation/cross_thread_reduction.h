/*!
 * \file cross_thread_reduction.h
 * \brief Reductions whose loops are bound to the threads of a block.
 */
#ifndef TVM_TE_OPERATION_CROSS_THREAD_REDUCTION_H_
#define TVM_TE_OPERATION_CROSS_THREAD_REDUCTION_H_

#include "op_utils.h"

namespace tvm {
namespace te {

/*! \brief Whether a reduction loop of the stage is bound to a thread axis. */
bool ReducesOverThreads(const Stage& stage);

/*!
 * \brief The loops of a stage for which ReducesOverThreads holds.
 *
 * Each thread combines what its serial reduction loops give, tvm_thread_allreduce combines the
 * threads, and every thread stores the result, or those for which the stage's predicate holds.
 */
Stmt ProvideCrossThreadReduction(const ComputeOpNode* op, const Stage& stage, LoweringContext* ctx);

}  // namespace te
}  // namespace tvm
#endif  // TVM_TE_OPERATION_CROSS_THREAD_REDUCTION_H_
