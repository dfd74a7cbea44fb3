/*!
 * \file dataflow_rewrite.h
 * \brief Replacing operations under the stages that depend on them.
 */
#ifndef TVM_TE_SCHEDULE_DATAFLOW_REWRITE_H_
#define TVM_TE_SCHEDULE_DATAFLOW_REWRITE_H_

#include <tvm/te/schedule.h>

#include <functional>
#include <string>

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

/*! \brief A name no operation of the schedule has. */
std::string UniqueName(const Schedule& sch, const std::string& base);

/*!
 * \brief Makes a stage copy its results from another operation, which computes them in `scope`.
 * \param axes of the copy. \param indices where element `axes` is in the results of `cache`.
 */
Array<Tensor> CopyOut(const Schedule& sch, const Stage& stage, const Operation& cache,
                      const Array<IterVar>& axes, const Array<PrimExpr>& indices,
                      const String& scope);

/*!
 * \brief The tensor as the schedule has it now.
 * \throws ScheduleError in the name of `primitive` without readers, or if one does not read it.
 */
Tensor ReadTensor(const Schedule& sch, const Tensor& tensor, const Array<Operation>& readers,
                  const char* primitive);

/*!
 * \brief Makes readers of a tensor read a copy of it, which gets a stage behind the tensor's.
 * \param adapt What else becomes of a reader that has the copy in place of the tensor.
 */
void ReadFromCopy(const Schedule& sch, const Tensor& tensor, const Tensor& copy,
                  const String& scope, const Array<Operation>& readers,
                  const std::function<Operation(const Operation&)>& adapt = nullptr);

}  // namespace te
}  // namespace tvm
#endif  // TVM_TE_SCHEDULE_DATAFLOW_REWRITE_H_
