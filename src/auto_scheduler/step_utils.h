/*!
 * \file step_utils.h
 * \brief Checked access to the stages and loops that a step names, and their modification.
 */
#ifndef TVM_AUTO_SCHEDULER_STEP_UTILS_H_
#define TVM_AUTO_SCHEDULER_STEP_UTILS_H_

#include <tvm/auto_scheduler/loop_state.h>
#include <tvm/auto_scheduler/transform_step.h>

namespace tvm {
namespace auto_scheduler {

inline Stage CheckedStage(const State& state, int stage_id) {
  TVM_CHECK(stage_id >= 0 && stage_id < static_cast<int>(state->stages.size()), ValueError)
      << "State: stage " << stage_id << " does not exist; the state has " << state->stages.size()
      << " stages";
  return state->stages[stage_id];
}

inline Iterator CheckedIter(const State& state, int stage_id, int iter_id) {
  Stage stage = CheckedStage(state, stage_id);
  TVM_CHECK(iter_id >= 0 && iter_id < static_cast<int>(stage->iters.size()), ValueError)
      << "State: stage " << stage->op->name << " has no loop " << iter_id << "; it has "
      << stage->iters.size() << " loops";
  return stage->iters[iter_id];
}

/*! \brief Replace a stage by a copy that `edit` has changed. */
template <typename FEdit>
inline void EditStage(State* state, int stage_id, const FEdit& edit) {
  StateNode* node = state->CopyOnWrite();
  Stage stage = node->stages[stage_id];
  edit(stage.CopyOnWrite());
  node->stages.Set(stage_id, stage);
}

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_STEP_UTILS_H_
