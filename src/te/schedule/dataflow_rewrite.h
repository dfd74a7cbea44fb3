/*!
 * \file dataflow_rewrite.h
 * \brief Replacing operations under the stages that depend on them.
 */
#ifndef TVM_TE_SCHEDULE_DATAFLOW_REWRITE_H_
#define TVM_TE_SCHEDULE_DATAFLOW_REWRITE_H_

#include <tvm/te/schedule.h>

namespace tvm {
namespace te {

/*! \brief The stage's operation becomes `op`; original and new operation both map to the stage. */
void ReplaceStageOp(const Schedule& sch, const Stage& stage, const Operation& op);

/*!
 * \brief Makes every stage read `vmap[t]` in place of t, and so on down to the outputs.
 *
 * \param vmap receives the outputs of all operations that had to be rebuilt.
 */
void ReplaceDataFlow(const Schedule& sch, TensorMap<Tensor>* vmap);

/*! \brief Inserts a stage for `op` before position `pos`. */
Stage InsertStage(const Schedule& sch, size_t pos, const Operation& op);

/*! \brief Position of the stage in the schedule. */
size_t StagePosition(const Schedule& sch, const Stage& stage);

}  // namespace te
}  // namespace tvm
#endif  // TVM_TE_SCHEDULE_DATAFLOW_REWRITE_H_
