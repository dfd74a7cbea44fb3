/*!
 * \file structure_rules.cc
 * \brief Ansor's rules for loop structures.
 */
#include "structure_rules.h"

#include <algorithm>
#include <string>

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
  explicit AlwaysInline(bool also_costly) : also_costly_(also_costly) {}
  const char* Name() const final { return "always inline"; }
  Condition MeetCondition(const SearchTask& task, const State& state, int stage_id) const final {
    const Stage& stage = state->stages[stage_id];
    bool inlines =
        stage->op_type == StageKind::kCompute && stage->origin != StageOrigin::kCacheRead &&
        !IsOutputStage(task, state, stage_id) && !HasReduceIter(stage) &&
        (also_costly_ || CurrentDAG(task, state)->access().IsStrictlyInlineable(stage->op));
    return inlines ? Condition::kApplyAndSkipRest : Condition::kSkip;
  }
  Result Apply(const SearchTask&, const State& state, int stage_id) const final {
    State result = state;
    result.compute_inline(stage_id);
    return {{result, stage_id - 1}};
  }

 private:
  bool also_costly_;
};

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
    std::optional<PackedOperand> packed;
    if (options_.packed_operand) packed = options_.packed_operand(task, state, stage_id);
    const int ragged_axis =
        options_.ragged_axis ? options_.ragged_axis(state->stages[stage_id]->op) : -1;
    Result results;
    auto add = [&](int ragged, const std::vector<int>& levels) {
      std::vector<int> split_steps;
      State tiled = DoMultiLevelTiling(state, stage_id, options_.tiling_structure,
                                       OuterOrder::kNatural, &split_steps, ragged);
      FollowPadding(&tiled, stage_id, consumer);
      const int n_axes = static_cast<int>(split_steps.size());
      for (int level : levels) {
        if (options_.tiling_structure[level - 1] != 'S') continue;
        const int n_outer = level * n_axes - (ragged >= 0 ? level - 1 : 0);
        for (OuterOrder order : options_.outer_orders) {
          if (packed && packed->turned) break;
          if (order != OuterOrder::kNatural && !HasOrders(state->stages[stage_id])) continue;
          State held = FollowTiling(tiled, consumer, split_steps, level, order);
          held.compute_at(stage_id, consumer, held->stages[consumer]->iters[n_outer - 1]);
          results.emplace_back(held, stage_id - 1);
        }
        if (!packed) continue;
        State held = FollowTiling(tiled, consumer, split_steps, level, OuterOrder::kNatural);
        PutSharedLoopsInside(&held, consumer, n_axes, packed->space_axes);
        held.compute_at(stage_id, consumer, held->stages[consumer]->iters[n_outer - 1]);
        Pack(task, &held, stage_id, consumer, *packed);
        results.emplace_back(held, stage_id);
      }
    };
    add(/*ragged=*/-1, options_.fusion_levels);
    // The levels differ in the parts between the outermost and the innermost one, of which a ragged
    // axis has none, so one of them will do.
    if (ragged_axis >= 0) add(ragged_axis, {options_.fusion_levels.back()});
    return results;
  }

 private:
  /*!
   * \brief Whether the outermost loops of a stage differ with their order: of a row, a vector or a
   *        single pixel all orders are one program, which would be measured as often.
   */
  static bool HasOrders(const Stage& stage) {
    bool last = false, others = false;
    for (const Iterator& iter : stage->iters) {
      if (iter->iter_kind != IteratorKind::kSpatial) continue;
      others = others || last;
      last = iter.ConstExtent() != 1;
    }
    return last && others;
  }

  /*! \brief Of the outermost loops of a consumer, those over which panels are shared go last. */
  static void PutSharedLoopsInside(State* state, int consumer, int n_axes,
                                   const std::vector<int>& space_axes) {
    const Array<Iterator> loops = (*state)->stages[consumer]->iters;
    Array<Iterator> order;
    for (int axis : space_axes) order.push_back(loops[axis]);
    for (int axis = 0; axis < n_axes; ++axis) {
      if (std::find(space_axes.begin(), space_axes.end(), axis) == space_axes.end()) {
        order.push_back(loops[axis]);
      }
    }
    for (size_t i = n_axes; i < loops.size(); ++i) order.push_back(loops[i]);
    state->reorder(consumer, order);
  }

  /*! \brief Copy the panels that a trip of the consumer's outermost loops reads. */
  static void Pack(const SearchTask& task, State* state, int stage_id, int consumer,
                   const PackedOperand& packed) {
    const Array<Stage>& stages = (*state)->stages;
    const auto operand = std::find_if(stages.begin(), stages.end(), [&](const Stage& stage) {
      return stage->op.same_as(packed.operand);
    });
    ICHECK(operand != stages.end());
    const int panels = state->pack_read(static_cast<int>(operand - stages.begin()), "global",
                                        {stage_id}, packed.order, task->compute_dag);
    const int host = consumer + 1;  // the stages behind the panels have moved
    state->compute_at(panels, host, (*state)->stages[host]->iters[packed.space_axes.size() - 1]);
  }

  SketchOptions options_;
};

}  // namespace

std::shared_ptr<const SketchRule> RuleSkipStage() { return std::make_shared<SkipStage>(); }
std::shared_ptr<const SketchRule> RuleAlwaysInline(bool also_costly) {
  return std::make_shared<AlwaysInline>(also_costly);
}
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

SketchRules RulesForCaches(const SketchOptions& options, bool inline_costly) {
  return {RuleAlwaysInline(inline_costly),
          RuleSimplifyConstTensor(),
          RuleAddRfactor(),
          RuleAddCacheWrite(options),
          RuleMultiLevelTilingWithFusion(options),
          RuleMultiLevelTiling(options),
          RuleSkipStage()};
}

}  // namespace auto_scheduler
}  // namespace tvm
