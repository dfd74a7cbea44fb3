/*!
 * \file schedule_replay.h
 * \brief Carries the steps of a state out on a te schedule.
 */
#ifndef TVM_AUTO_SCHEDULER_SCHEDULE_REPLAY_H_
#define TVM_AUTO_SCHEDULER_SCHEDULE_REPLAY_H_

#include <tvm/auto_scheduler/transform_step.h>
#include <tvm/te/schedule.h>

#include <vector>

namespace tvm {
namespace auto_scheduler {

/*!
 * \brief A te schedule whose stages and loops are addressed by the ids that steps use.
 *
 * te numbers stages by its own topological order; `stages` keeps the order of the state instead.
 */
class ScheduleReplay {
 public:
  /*!
   * \brief The schedule of `ops` with nothing done to it yet; `steps` is the whole history.
   * \param context What is known of lengths that are variables; null if there are none.
   */
  ScheduleReplay(const Array<te::Operation>& ops, const Array<te::Operation>& outputs,
                 Array<Step> steps, const arith::VarContext* context = nullptr);

  /*! \brief Carry out all steps, or those whose entry in `mask` is true. */
  void Run(const std::vector<bool>* mask = nullptr);

  te::Stage& stage(int stage_id);
  const Array<te::IterVar>& axes(int stage_id);
  te::IterVar axis(int stage_id, int iter_id);
  /*!
   * \brief Loops [first, first + count) of a stage have become `made`.
   *
   * Stages attached to one of them move to the innermost of `made`, which te leaves to its caller.
   */
  void ReplaceLoops(int stage_id, size_t first, size_t count, const Array<te::IterVar>& made);
  void SetOrder(int stage_id, const Array<te::IterVar>& order);
  /*! \brief The stage of the schedule that `step` has added. */
  void InsertStage(const StepNode& step, const te::Stage& stage);

  const Array<Step>& steps() const { return steps_; }
  const arith::VarContext* context() const { return context_; }
  const std::vector<te::Stage>& stages() const { return stages_; }

  te::Schedule schedule;

 private:
  /*! \brief Take the loops of a stage anew from the schedule, after it has reset them. */
  void ResetAxes(int stage_id);

  Array<Step> steps_;
  const arith::VarContext* context_;
  std::vector<te::Stage> stages_;
  std::vector<Array<te::IterVar>> axes_;
};

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_SCHEDULE_REPLAY_H_
