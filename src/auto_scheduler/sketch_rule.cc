/*!
 * \file sketch_rule.cc
 * \brief The derivation of sketches.
 */
#include <tvm/auto_scheduler/sketch_rule.h>
#include <tvm/auto_scheduler/transform_step.h>
#include <tvm/runtime/registry.h>

#include "sketch_utils.h"

namespace tvm {
namespace auto_scheduler {

namespace {

/*! \brief Opens the lengths of each split right before an rfactor, which were stand-ins. */
State OpenRfactorSplits(const State& state) {
  Array<Step> steps = state->transform_steps;
  bool changed = false;
  for (size_t i = 1; i < steps.size(); ++i) {
    const auto* split = steps[i - 1].as<SplitStepNode>();
    if (!steps[i]->IsInstance<RfactorStepNode>() || split == nullptr) continue;
    const Array<Optional<PrimExpr>> open(split->lengths.size(), NullOpt);
    steps.Set(i - 1, SplitStep(split->stage_id, split->iter_id, split->extent, open,
                               split->inner_to_outer));
    changed = true;
  }
  if (!changed) return state;
  State result = state;
  result.CopyOnWrite()->transform_steps = steps;
  result.CopyOnWrite()->concrete = false;
  return result;
}

/*! \brief States on the way to sketches; rules that go on for ever make more of them. */
constexpr size_t kMostStates = 1 << 16;
/*!
 * \brief States of one number of derivations. Alternatives of one stage multiply with those of all
 *        others: a chain of eight products would have millions.
 */
constexpr size_t kMostAtOnce = 256;

}  // namespace

std::vector<State> DeriveSketches(const SearchTask& task, const SketchRules& rules) {
  std::vector<State> sketches;
  const State& init = task->compute_dag->init_state;
  SketchRule::Result open = {{init, static_cast<int>(init->stages.size()) - 1}};
  // Breadth first, so that sketches of fewer derivations come first.
  for (size_t made = 1; !open.empty();) {
    SketchRule::Result next;
    for (const auto& [state, stage_id] : open) {
      if (stage_id < 0) {
        sketches.push_back(OpenRfactorSplits(state));
        continue;
      }
      for (const auto& rule : rules) {
        SketchRule::Condition condition = rule->MeetCondition(task, state, stage_id);
        if (condition == SketchRule::Condition::kSkip) continue;
        for (auto& result : rule->Apply(task, state, stage_id)) {
          next.push_back(std::move(result));
          ++made;
        }
        TVM_CHECK(made <= kMostStates, RuntimeError)
            << "sketch rule " << rule->Name() << ": sketches of " << task->workload_key
            << " take more than " << kMostStates
            << " steps; a rule must go on to an earlier stage in the end";
        if (condition == SketchRule::Condition::kApplyAndSkipRest) break;
      }
    }
    open = SomeOf(std::move(next), kMostAtOnce);
  }
  return sketches;
}

/*! \brief The consumers' stages, each mapped to itself: rules that users wrote ask for `items()`.
 */
TVM_REGISTER_GLOBAL("auto_scheduler.SearchPolicyUtilsGetConsumers")
    .set_body_typed([](SearchTask task, State state, int stage_id) {
      Map<int64_t, int64_t> ids;
      for (int id : GetConsumers(task, state, stage_id)) ids.Set(id, id);
      return ids;
    });
TVM_REGISTER_GLOBAL("auto_scheduler.SearchPolicyUtilsIsElementwiseMatch")
    .set_body_typed([](SearchTask task, State state, int stage_id, int target_stage_id) {
      return CurrentDAG(task, state)
          ->access()
          .ElementWiseMatch(state->stages[stage_id]->op, state->stages[target_stage_id]->op);
    });
TVM_REGISTER_GLOBAL("auto_scheduler.SearchPolicyUtilsIsTiled")
    .set_body_typed([](State state, int stage_id) { return IsTiled(state->stages[stage_id]); });
TVM_REGISTER_GLOBAL("auto_scheduler.SearchPolicyUtilsHasCacheReadStage")
    .set_body_typed([](State state, int stage_id) { return HasCacheReadStage(state, stage_id); });
TVM_REGISTER_GLOBAL("auto_scheduler.SearchPolicyUtilsHasCrossThreadReduction")
    .set_body_typed([](State state, int stage_id) {
      return HasCrossThreadReduction(state->stages[stage_id]);
    });
TVM_REGISTER_GLOBAL("auto_scheduler.SearchPolicyUtilsHasCacheWriteStage")
    .set_body_typed([](State state, int stage_id) { return IsCacheWriteStage(state, stage_id); });
TVM_REGISTER_GLOBAL("auto_scheduler.SearchPolicyUtilsHasRfactorStage")
    .set_body_typed([](State state, int stage_id) { return IsRfactorStage(state, stage_id); });

}  // namespace auto_scheduler
}  // namespace tvm
