/*!
 * \file sketch_rule.cc
 * \brief The derivation of sketches, and Ansor's rules for a CPU.
 */
#include <tvm/auto_scheduler/sketch_rule.h>
#include <tvm/runtime/packed_func.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <string>

#include "sketch_utils.h"

namespace tvm {
namespace auto_scheduler {

namespace {

/*! \brief Always applies last, so that every stage is passed sooner or later. */
class SkipStage final : public SketchRule {
 public:
  const char* Name() const final { return "skip stage"; }
  Condition MeetCondition(const SearchTask&, const State&, int) const final {
    return Condition::kApply;
  }
  Result Apply(const SearchTask&, const State& state, int stage_id) const final {
    return {{state, stage_id - 1}};
  }
};

class AlwaysInline final : public SketchRule {
 public:
  const char* Name() const final { return "always inline"; }
  Condition MeetCondition(const SearchTask& task, const State& state, int stage_id) const final {
    const Stage& stage = state->stages[stage_id];
    bool inlines = stage->op_type == StageKind::kCompute && !IsOutputStage(task, state, stage_id) &&
                   !HasReduceIter(stage) &&
                   CurrentDAG(task, state)->access().IsStrictlyInlineable(stage->op);
    return inlines ? Condition::kApplyAndSkipRest : Condition::kSkip;
  }
  Result Apply(const SearchTask&, const State& state, int stage_id) const final {
    State result = state;
    result.compute_inline(stage_id);
    return {{result, stage_id - 1}};
  }
};

constexpr const char* kConstTensorIndices = "auto_scheduler_simplify_const_tensor_indices";

/*!
 * \brief Unrolls the loops that index small constant matrices, such as those of a winograd
 *        transform, so that the constants fold away.
 */
class SimplifyConstTensor final : public SketchRule {
 public:
  const char* Name() const final { return "simplify constant tensor"; }
  Condition MeetCondition(const SearchTask&, const State& state, int stage_id) const final {
    return state->stages[stage_id]->op->attrs.count(kConstTensorIndices)
               ? Condition::kApplyAndSkipRest
               : Condition::kSkip;
  }
  Result Apply(const SearchTask&, const State& state, int stage_id) const final {
    State result = state;
    const Stage stage = state->stages[stage_id];
    const std::vector<std::string> names = AttrNames(stage, kConstTensorIndices);
    Array<Iterator> outer, inner, unrolled;
    for (const Iterator& iter : stage->iters) {
      if (std::find(names.begin(), names.end(), std::string(iter->name)) != names.end()) {
        unrolled.push_back(result.unroll(stage_id, iter));
      } else {
        Array<Iterator> parts = result.split(stage_id, iter, {Optional<PrimExpr>(NullOpt)});
        outer.push_back(parts[0]);
        inner.push_back(parts[1]);
      }
    }
    for (const Iterator& iter : inner) outer.push_back(iter);
    for (const Iterator& iter : unrolled) outer.push_back(iter);
    result.reorder(stage_id, outer);
    return {{result, stage_id - 1}};
  }
};

/*! \brief Splits a long reduction over cores or lanes where space alone cannot fill them. */
class AddRfactor final : public SketchRule {
 public:
  const char* Name() const final { return "add rfactor"; }
  Condition MeetCondition(const SearchTask& task, const State& state, int stage_id) const final {
    const Stage& stage = state->stages[stage_id];
    if (!HasReduceIter(stage) || IsCacheWriteStage(state, stage_id) ||
        IsRfactorStage(state, stage_id)) {
      return Condition::kSkip;
    }
    auto [space, reduction] = CumulativeExtents(stage);
    if (space == -1 || reduction == -1) return Condition::kSkip;
    int64_t cores = task->hardware_params->num_cores;
    bool needed = NeedsMultiLevelTiling(task, state, stage_id)
                      ? space <= reduction && space <= 16 * cores
                      : reduction > 1 && reduction > cores;
    return needed ? Condition::kApply : Condition::kSkip;
  }
  Result Apply(const SearchTask& task, const State& state, int stage_id) const final {
    Iterator fused;
    Array<Iterator> space_iters;
    State base = FuseAllReductionIters(state, stage_id, &fused, &space_iters);
    const int n_space = static_cast<int>(space_iters.size());
    // The DAG needs a length to be built; DeriveSketches opens it afterwards.
    Array<Iterator> parts = base.split(stage_id, fused, {Optional<PrimExpr>(Integer(1))});
    Result results;
    for (int part = 0; part < 2; ++part) {
      State result = base;
      int rfactor_stage = result.rfactor(stage_id, parts[part], n_space, task->compute_dag);
      if (part == 1) {
        // Neighbouring elements of the reduction become lanes of a vector.
        const Array<Iterator> iters = result->stages[rfactor_stage]->iters;
        Array<Iterator> order;
        for (int i = 0; i < static_cast<int>(iters.size()); ++i) {
          if (i != n_space) order.push_back(iters[i]);
        }
        order.push_back(iters[n_space]);
        result.reorder(rfactor_stage, order);
      }
      results.emplace_back(result, rfactor_stage - 1);
    }
    return results;
  }
};

/*! \brief Gives a tiled stage without elementwise consumer one, to be held in its tiles. */
class AddCacheWrite final : public SketchRule {
 public:
  explicit AddCacheWrite(bool always_fuse) : always_fuse_(always_fuse) {}
  const char* Name() const final { return "add cache write"; }
  Condition MeetCondition(const SearchTask& task, const State& state, int stage_id) const final {
    int consumer;
    if (!NeedsMultiLevelTiling(task, state, stage_id) ||
        HasSingleElementwiseMatchedConsumer(task, state, stage_id, &consumer)) {
      return Condition::kSkip;
    }
    return always_fuse_ ? Condition::kApplyAndSkipRest : Condition::kApply;
  }
  Result Apply(const SearchTask& task, const State& state, int stage_id) const final {
    State result = state;
    int cache_stage = result.cache_write(stage_id, "local", task->compute_dag);
    return {{result, cache_stage}};
  }

 private:
  bool always_fuse_;
};

class MultiLevelTiling final : public SketchRule {
 public:
  explicit MultiLevelTiling(SketchOptions options) : options_(std::move(options)) {}
  const char* Name() const final { return "multi-level tiling"; }
  Condition MeetCondition(const SearchTask& task, const State& state, int stage_id) const final {
    return NeedsMultiLevelTiling(task, state, stage_id) ? Condition::kApplyAndSkipRest
                                                        : Condition::kSkip;
  }
  Result Apply(const SearchTask&, const State& state, int stage_id) const final {
    std::vector<int> split_steps;
    return {{DoMultiLevelTiling(state, stage_id, options_.tiling_structure, OuterOrder::kNatural,
                                &split_steps),
             stage_id - 1}};
  }

 private:
  SketchOptions options_;
};

/*! \brief Tiles a stage and computes it inside the tiles of its elementwise consumer. */
class MultiLevelTilingWithFusion final : public SketchRule {
 public:
  explicit MultiLevelTilingWithFusion(SketchOptions options) : options_(std::move(options)) {}
  const char* Name() const final { return "multi-level tiling with fusion"; }
  Condition MeetCondition(const SearchTask& task, const State& state, int stage_id) const final {
    int consumer;
    if (!NeedsMultiLevelTiling(task, state, stage_id) ||
        !HasSingleElementwiseMatchedConsumer(task, state, stage_id, &consumer)) {
      return Condition::kSkip;
    }
    // The copy made by a cache write serves nothing but fusion.
    bool skip_rest = options_.always_fuse || IsCacheWriteStage(state, stage_id);
    return skip_rest ? Condition::kApplyAndSkipRest : Condition::kApply;
  }
  Result Apply(const SearchTask& task, const State& state, int stage_id) const final {
    int consumer = -1;
    ICHECK(HasSingleElementwiseMatchedConsumer(task, state, stage_id, &consumer));
    std::vector<int> split_steps;
    State tiled = DoMultiLevelTiling(state, stage_id, options_.tiling_structure,
                                     OuterOrder::kNatural, &split_steps);
    const int n_axes = static_cast<int>(split_steps.size());
    Result results;
    for (int level : options_.fusion_levels) {
      if (options_.tiling_structure[level - 1] != 'S') continue;
      for (OuterOrder order : options_.outer_orders) {
        State result = FollowTiling(tiled, consumer, split_steps, level, order);
        Iterator target = result->stages[consumer]->iters[level * n_axes - 1];
        result.compute_at(stage_id, consumer, target);
        results.emplace_back(result, stage_id - 1);
      }
    }
    return results;
  }

 private:
  SketchOptions options_;
};

/*! \brief A rule given by two functions, as from Python. */
class CustomRule final : public SketchRule {
 public:
  CustomRule(PackedFunc meet_condition, PackedFunc apply)
      : meet_condition_(std::move(meet_condition)), apply_(std::move(apply)) {}
  const char* Name() const final { return "custom rule"; }
  Condition MeetCondition(const SearchTask& task, const State& state, int stage_id) const final {
    return meet_condition_(task, state, stage_id).template cast<Condition>();
  }
  Result Apply(const SearchTask& task, const State& state, int stage_id) const final {
    Result results;
    Array<Array<Any>> pairs = apply_(task, state, stage_id).template cast<Array<Array<Any>>>();
    for (const Array<Any>& pair : pairs) {
      TVM_CHECK(pair.size() == 2, ValueError)
          << "custom sketch rule: apply must return pairs [state, next stage], got a list of "
          << pair.size();
      results.emplace_back(pair[0].cast<State>(), pair[1].cast<int>());
    }
    return results;
  }

 private:
  PackedFunc meet_condition_;
  PackedFunc apply_;
};

/*! \brief Opens the length of each split right before an rfactor, which was 1 for a stand-in. */
State OpenRfactorSplits(const State& state) {
  Array<Step> steps = state->transform_steps;
  bool changed = false;
  for (size_t i = 1; i < steps.size(); ++i) {
    const auto* split = steps[i - 1].as<SplitStepNode>();
    if (!steps[i]->IsInstance<RfactorStepNode>() || split == nullptr) continue;
    steps.Set(i - 1, SplitStep(split->stage_id, split->iter_id, split->extent,
                               {Optional<PrimExpr>(NullOpt)}, split->inner_to_outer));
    changed = true;
  }
  if (!changed) return state;
  State result = state;
  result.CopyOnWrite()->transform_steps = steps;
  result.CopyOnWrite()->concrete = false;
  return result;
}

}  // namespace

std::shared_ptr<const SketchRule> RuleSkipStage() { return std::make_shared<SkipStage>(); }
std::shared_ptr<const SketchRule> RuleAlwaysInline() { return std::make_shared<AlwaysInline>(); }
std::shared_ptr<const SketchRule> RuleSimplifyConstTensor() {
  return std::make_shared<SimplifyConstTensor>();
}
std::shared_ptr<const SketchRule> RuleAddRfactor() { return std::make_shared<AddRfactor>(); }
std::shared_ptr<const SketchRule> RuleAddCacheWrite(const SketchOptions& options) {
  return std::make_shared<AddCacheWrite>(options.always_fuse);
}
std::shared_ptr<const SketchRule> RuleMultiLevelTiling(const SketchOptions& options) {
  return std::make_shared<MultiLevelTiling>(options);
}
std::shared_ptr<const SketchRule> RuleMultiLevelTilingWithFusion(const SketchOptions& options) {
  return std::make_shared<MultiLevelTilingWithFusion>(options);
}

SketchRules DefaultCPUSketchRules(const SketchOptions& options) {
  return {RuleAlwaysInline(),
          RuleSimplifyConstTensor(),
          RuleAddRfactor(),
          RuleAddCacheWrite(options),
          RuleMultiLevelTilingWithFusion(options),
          RuleMultiLevelTiling(options),
          RuleSkipStage()};
}

std::vector<State> DeriveSketches(const SearchTask& task, const SketchRules& rules) {
  std::vector<State> sketches;
  SketchRule::Result open;
  const State& init = task->compute_dag->init_state;
  open.emplace_back(init, static_cast<int>(init->stages.size()) - 1);
  // Breadth first, so that sketches of fewer derivations come first.
  for (size_t next = 0; next < open.size(); ++next) {
    const auto [state, stage_id] = open[next];
    if (stage_id < 0) {
      sketches.push_back(OpenRfactorSplits(state));
      continue;
    }
    for (const auto& rule : rules) {
      SketchRule::Condition condition = rule->MeetCondition(task, state, stage_id);
      if (condition == SketchRule::Condition::kSkip) continue;
      for (auto& result : rule->Apply(task, state, stage_id)) open.push_back(std::move(result));
      if (condition == SketchRule::Condition::kApplyAndSkipRest) break;
    }
  }
  return sketches;
}

TVM_REGISTER_GLOBAL("auto_scheduler.SketchPolicyGenerateSketches")
    .set_body_typed([](SearchTask task, String tiling_structure,
                       Array<Array<PackedFunc>> custom_rules) {
      SketchOptions options;
      options.tiling_structure = tiling_structure;
      SketchRules rules;
      for (const Array<PackedFunc>& rule : custom_rules) {
        rules.push_back(std::make_shared<CustomRule>(rule[0], rule[1]));
      }
      for (const auto& rule : DefaultCPUSketchRules(options)) rules.push_back(rule);
      return Array<State>(DeriveSketches(task, rules));
    });
TVM_REGISTER_GLOBAL("auto_scheduler.SearchPolicyUtilsGetConsumers")
    .set_body_typed([](SearchTask task, State state, int stage_id) {
      std::vector<int> ids = GetConsumers(task, state, stage_id);
      return Array<int64_t>(ids.begin(), ids.end());
    });
TVM_REGISTER_GLOBAL("auto_scheduler.SearchPolicyUtilsIsElementwiseMatch")
    .set_body_typed([](SearchTask task, State state, int stage_id, int target_stage_id) {
      return CurrentDAG(task, state)
          ->access()
          .ElementWiseMatch(state->stages[stage_id]->op, state->stages[target_stage_id]->op);
    });
TVM_REGISTER_GLOBAL("auto_scheduler.SearchPolicyUtilsIsTiled")
    .set_body_typed([](State state, int stage_id) { return IsTiled(state->stages[stage_id]); });
TVM_REGISTER_GLOBAL("auto_scheduler.SearchPolicyUtilsHasCacheWriteStage")
    .set_body_typed([](State state, int stage_id) { return IsCacheWriteStage(state, stage_id); });
TVM_REGISTER_GLOBAL("auto_scheduler.SearchPolicyUtilsHasRfactorStage")
    .set_body_typed([](State state, int stage_id) { return IsRfactorStage(state, stage_id); });

}  // namespace auto_scheduler
}  // namespace tvm
