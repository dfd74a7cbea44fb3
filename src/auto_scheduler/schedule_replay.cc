/*!
 * \file schedule_replay.cc
 * \brief Carries the steps of a state out on a te schedule.
 */
#include "schedule_replay.h"

#include <tvm/auto_scheduler/compute_dag.h>

#include "utils.h"

namespace tvm {
namespace auto_scheduler {

ScheduleReplay::ScheduleReplay(const Array<te::Operation>& ops, const Array<te::Operation>& outputs,
                               Array<Step> steps, const arith::VarContext* context)
    : schedule(te::create_schedule(outputs)), steps_(std::move(steps)), context_(context) {
  for (const te::Operation& op : ops) {
    stages_.push_back(schedule[op]);
    axes_.emplace_back();
    ResetAxes(static_cast<int>(stages_.size()) - 1);
  }
}

void ScheduleReplay::Run(const std::vector<bool>* mask) {
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (mask == nullptr || (*mask)[i]) steps_[i]->ApplyToSchedule(this);
  }
}

te::Stage& ScheduleReplay::stage(int stage_id) {
  TVM_CHECK(stage_id >= 0 && stage_id < static_cast<int>(stages_.size()), ValueError)
      << "apply steps: stage " << stage_id << " does not exist; the program has " << stages_.size()
      << " stages";
  return stages_[stage_id];
}

const Array<te::IterVar>& ScheduleReplay::axes(int stage_id) {
  stage(stage_id);
  return axes_[stage_id];
}

te::IterVar ScheduleReplay::axis(int stage_id, int iter_id) {
  const Array<te::IterVar>& all = axes(stage_id);
  TVM_CHECK(iter_id >= 0 && iter_id < static_cast<int>(all.size()), ValueError)
      << "apply steps: stage " << stages_[stage_id]->op->name << " has no loop " << iter_id
      << "; it has " << all.size() << " loops";
  return all[iter_id];
}

void ScheduleReplay::ReplaceLoops(int stage_id, size_t first, size_t count,
                                  const Array<te::IterVar>& made) {
  const Array<te::IterVar> before = axes(stage_id);
  axes_[stage_id] = Replace(before, first, count, made);
  const te::Stage& host = stages_[stage_id];
  for (te::Stage& attached : stages_) {
    if (attached->attach_type != te::kScope || !attached->attach_stage.same_as(host)) continue;
    for (size_t i = first; i < first + count; ++i) {
      if (attached->attach_ivar.same_as(before[i])) attached.compute_at(host, made.back());
    }
  }
}

void ScheduleReplay::SetOrder(int stage_id, const Array<te::IterVar>& order) {
  axes(stage_id);
  axes_[stage_id] = order;
}

void ScheduleReplay::InsertStage(const StepNode& step, const te::Stage& stage) {
  const int added = *step.AddedStage();
  stages_.insert(stages_.begin() + added, stage);
  axes_.insert(axes_.begin() + added, Array<te::IterVar>());
  ResetAxes(added);
  if (added == step.stage_id) ResetAxes(added + 1);
}

void ScheduleReplay::ResetAxes(int stage_id) {
  axes_[stage_id] = stages_[stage_id]->leaf_iter_vars;
}

}  // namespace auto_scheduler
}  // namespace tvm
