/*!
 * \file steps_stage.cc
 * \brief Steps that move a stage or add one: CA CI CR CHR PKR PDR PDA CHW RF.
 */
#include <tvm/auto_scheduler/compute_dag.h>
#include <tvm/auto_scheduler/transform_step.h>
#include <tvm/te/pack_read.h>
#include <tvm/te/pad_axes.h>

#include "schedule_replay.h"
#include "step_utils.h"
#include "utils.h"

namespace tvm {
namespace auto_scheduler {

TVM_REGISTER_NODE(ComputeAtStepNode);
TVM_REGISTER_NODE(ComputeInlineStepNode);
TVM_REGISTER_NODE(ComputeRootStepNode);
TVM_REGISTER_NODE(CacheReadStepNode);
TVM_REGISTER_NODE(PackReadStepNode);
TVM_REGISTER_NODE(PadReadStepNode);
TVM_REGISTER_NODE(PadAxesStepNode);
TVM_REGISTER_NODE(CacheWriteStepNode);
TVM_REGISTER_NODE(RfactorStepNode);

namespace {

/*!
 * \brief Place a stage; where it runs decides its ranges, so they become unknown.
 * \param target Identity of the stage that it is attached to, -1 for none.
 */
void PlaceStage(State* state, int stage_id, ComputeAtKind kind, int target, int target_iter) {
  CheckedStage(*state, stage_id);
  EditStage(state, stage_id, [&](StageNode* stage) {
    stage->compute_at = kind;
    stage->attach_stage = target;
    stage->attach_iter = target_iter;
    if (kind == ComputeAtKind::kInlined) return;
    Array<Iterator> iters;
    for (Iterator iter : stage->iters) {
      iter.CopyOnWrite()->range = NullOpt;
      iters.push_back(iter);
    }
    stage->iters = iters;
  });
}

/*! \brief Refuse to reset the loops of a stage while another one is computed inside them. */
void CheckNothingAttached(const State& state, int stage_id, const char* primitive) {
  const int id = state->stages[stage_id]->id;
  for (const Stage& stage : state->stages) {
    TVM_CHECK(stage->attach_stage != id, ScheduleError)
        << primitive << "(" << state->stages[stage_id]->op->name << "): stage " << stage->op->name
        << " is computed at one of its loops; move that stage first";
  }
}

/*!
 * \brief Rebuild the DAG for the history so far and put its operations into the stages.
 */
void InsertStage(State* state, const ComputeDAG& dag, const StepNode& step, StageOrigin origin,
                 const String& scope) {
  ICHECK(dag.defined()) << "a step that adds a stage needs the DAG it is applied to";
  ComputeDAG current = dag.ReplayAndGetDAG((*state)->transform_steps);
  ICHECK_EQ(current->ops.size(), (*state)->stages.size() + 1);
  const int position = *step.AddedStage();
  const int source = (*state)->stages[step.stage_id]->id;
  const bool reset_source = position == step.stage_id;
  StateNode* node = state->CopyOnWrite();
  // Stages never go, so their number has not been an identity yet.
  Stage added(current->ops[position], static_cast<int>(node->stages.size()));
  StageNode* added_node = added.CopyOnWrite();
  added_node->origin = origin;
  added_node->source = source;
  added_node->scope = scope;
  node->stages.insert(node->stages.begin() + position, added);
  for (int i = 0; i < static_cast<int>(node->stages.size()); ++i) {
    if (i == position) continue;
    Stage stage = node->stages[i];
    const te::Operation& op = current->ops[i];
    if (reset_source && stage->id == source) {
      const Stage plain(op, source);
      StageNode* reset = stage.CopyOnWrite();
      reset->op = op;
      reset->iters = plain->iters;
      reset->split_steps = {};
      reset->auto_unroll_max_step = plain->auto_unroll_max_step;
      reset->storage_offset = plain->storage_offset;
    } else if (!stage->op.same_as(op)) {
      stage.CopyOnWrite()->op = op;
    } else {
      continue;
    }
    node->stages.Set(i, stage);
  }
  node->current_compute_dag = current;
}

}  // namespace

void ComputeAtStepNode::ApplyToState(State* state, const ComputeDAG& dag) const {
  CheckedIter(*state, target_stage_id, target_iter_id);
  TVM_CHECK(target_stage_id > stage_id, ScheduleError)
      << "compute_at(" << CheckedStage(*state, stage_id)->op->name << "): the target "
      << (*state)->stages[target_stage_id]->op->name << " does not come after it";
  PlaceStage(state, stage_id, ComputeAtKind::kIter, (*state)->stages[target_stage_id]->id,
             target_iter_id);
}

void ComputeAtStepNode::ApplyToSchedule(ScheduleReplay* replay) const {
  te::Stage stage = replay->stage(stage_id);
  stage.compute_at(replay->stage(target_stage_id), replay->axis(target_stage_id, target_iter_id));
}

void ComputeInlineStepNode::ApplyToState(State* state, const ComputeDAG& dag) const {
  const Stage stage = CheckedStage(*state, stage_id);
  for (const Iterator& iter : stage->iters) {
    TVM_CHECK(iter->iter_kind == IteratorKind::kSpatial, ScheduleError)
        << "compute_inline(" << stage->op->name << "): the stage reduces over " << iter->name
        << ", and a reduction cannot be substituted into its readers";
  }
  CheckNothingAttached(*state, stage_id, "compute_inline");
  PlaceStage(state, stage_id, ComputeAtKind::kInlined, -1, -1);
}

void ComputeInlineStepNode::ApplyToSchedule(ScheduleReplay* replay) const {
  te::Stage stage = replay->stage(stage_id);
  stage.compute_inline();
}

void ComputeRootStepNode::ApplyToState(State* state, const ComputeDAG& dag) const {
  PlaceStage(state, stage_id, ComputeAtKind::kRoot, -1, -1);
}

void ComputeRootStepNode::ApplyToSchedule(ScheduleReplay* replay) const {
  te::Stage stage = replay->stage(stage_id);
  stage.compute_root();
}

namespace {

void InsertCopy(State* state, const ComputeDAG& dag, const StepNode& step,
                const Array<int64_t>& readers, StageOrigin origin, const String& scope) {
  CheckedStage(*state, step.stage_id);
  for (int64_t reader : readers) CheckedStage(*state, static_cast<int>(reader));
  InsertStage(state, dag, step, origin, scope);
}

Array<te::Operation> OperationsOf(ScheduleReplay* replay, const Array<int64_t>& stage_ids) {
  Array<te::Operation> ops;
  for (int64_t id : stage_ids) ops.push_back(replay->stage(static_cast<int>(id))->origin_op);
  return ops;
}

}  // namespace

void CacheReadStepNode::ApplyToState(State* state, const ComputeDAG& dag) const {
  InsertCopy(state, dag, *this, reader_stage_ids, StageOrigin::kCacheRead, scope_name);
}

void CacheReadStepNode::ApplyToSchedule(ScheduleReplay* replay) const {
  te::Stage stage = replay->stage(stage_id);
  te::Tensor cache = replay->schedule.cache_read(stage->origin_op.output(0), scope_name,
                                                 OperationsOf(replay, reader_stage_ids));
  replay->InsertStage(*this, replay->schedule[cache->op]);
}

void PackReadStepNode::ApplyToState(State* state, const ComputeDAG& dag) const {
  InsertCopy(state, dag, *this, reader_stage_ids, StageOrigin::kCacheRead, scope_name);
}

void PackReadStepNode::ApplyToSchedule(ScheduleReplay* replay) const {
  te::Stage stage = replay->stage(stage_id);
  te::Tensor cache = te::PackRead(replay->schedule, stage->origin_op.output(0), scope_name,
                                  OperationsOf(replay, reader_stage_ids), order);
  replay->InsertStage(*this, replay->schedule[cache->op]);
}

void PadReadStepNode::ApplyToState(State* state, const ComputeDAG& dag) const {
  InsertCopy(state, dag, *this, reader_stage_ids, StageOrigin::kPadRead, /*scope=*/"");
}

void PadReadStepNode::ApplyToSchedule(ScheduleReplay* replay) const {
  te::Stage stage = replay->stage(stage_id);
  te::Tensor copy = te::PadRead(replay->schedule, stage->origin_op.output(0),
                                OperationsOf(replay, reader_stage_ids), shape);
  replay->InsertStage(*this, replay->schedule[copy->op]);
}

void PadAxesStepNode::ApplyToState(State* state, const ComputeDAG& dag) const {
  CheckedStage(*state, stage_id);
  CheckNothingAttached(*state, stage_id, "pad_axes");
  InsertStage(state, dag, *this, StageOrigin::kPadAxes, /*scope=*/"");
}

void PadAxesStepNode::ApplyToSchedule(ScheduleReplay* replay) const {
  te::Stage stage = replay->stage(stage_id);
  te::Tensor sums = te::PadAxes(replay->schedule, stage->origin_op.output(0), extents);
  replay->InsertStage(*this, replay->schedule[sums->op]);
}

void CacheWriteStepNode::ApplyToState(State* state, const ComputeDAG& dag) const {
  TVM_CHECK(CheckedStage(*state, stage_id)->op_type == StageKind::kCompute, ScheduleError)
      << "cache_write(" << (*state)->stages[stage_id]->op->name
      << "): the stage is an input, which nothing writes; use cache_read";
  CheckNothingAttached(*state, stage_id, "cache_write");
  InsertStage(state, dag, *this, StageOrigin::kCacheWrite, scope_name);
}

void CacheWriteStepNode::ApplyToSchedule(ScheduleReplay* replay) const {
  te::Stage stage = replay->stage(stage_id);
  Array<te::Tensor> outputs;
  for (int i = 0; i < stage->origin_op->num_outputs(); ++i) {
    outputs.push_back(stage->origin_op.output(i));
  }
  Array<te::Tensor> cached = replay->schedule.cache_write(outputs, scope_name);
  replay->InsertStage(*this, replay->schedule[cached[0]->op]);
}

void RfactorStepNode::ApplyToState(State* state, const ComputeDAG& dag) const {
  const Iterator it = CheckedIter(*state, stage_id, iter_id);
  TVM_CHECK(it->iter_kind == IteratorKind::kReduction, ScheduleError)
      << "rfactor(" << it->name << "): only a reduction loop can be factored";
  CheckNothingAttached(*state, stage_id, "rfactor");
  InsertStage(state, dag, *this, StageOrigin::kRfactor, /*scope=*/"");
}

void RfactorStepNode::ApplyToSchedule(ScheduleReplay* replay) const {
  te::Stage stage = replay->stage(stage_id);
  Array<te::Tensor> partial =
      replay->schedule.rfactor(stage->origin_op.output(0), replay->axis(stage_id, iter_id),
                               factor_iter_id, replay->context());
  replay->InsertStage(*this, replay->schedule[partial[0]->op]);
}

}  // namespace auto_scheduler
}  // namespace tvm
