/*!
 * \file gpu_rules.cc
 * \brief Rules for loop structures that only graphics processors need.
 */
#include "gpu_rules.h"

#include <algorithm>

#include "../structure_rules.h"

namespace tvm {
namespace auto_scheduler {

namespace {

/*! \brief The loop of a tiled stage at the end of its outermost reduction tile. */
Iterator EndOfOuterReduction(const Stage& stage) {
  Iterator first, last_of_tile;
  for (const Iterator& iter : stage->iters) {
    if (iter->iter_kind != IteratorKind::kReduction) continue;
    if (!first.defined()) first = iter;
    if (iter->split_part == 0) last_of_tile = iter;
  }
  // Axes that are kept whole stand in the innermost tile.
  return last_of_tile.defined() ? last_of_tile : first;
}

class AddCacheRead final : public SketchRule {
 public:
  const char* Name() const final { return "add cache read"; }
  Condition MeetCondition(const SearchTask& task, const State& state, int stage_id) const final {
    std::vector<int> consumers = GetConsumers(task, state, stage_id);
    // What is a copy already needs none.
    if (consumers.empty() || state->stages[stage_id]->origin == StageOrigin::kCacheRead) {
      return Condition::kSkip;
    }
    const Stage& reader = state->stages[consumers[0]];
    if (!NeedsMultiLevelTiling(task, state, consumers[0]) || HasCrossThreadReduction(reader)) {
      return Condition::kSkip;
    }
    const auto& direct = CurrentDAG(task, state)->access().GetDirectProducers(reader->op);
    bool reads_it = std::any_of(direct.begin(), direct.end(), [&](const te::Operation& op) {
      return op.same_as(state->stages[stage_id]->op);
    });
    return reads_it ? Condition::kApplyAndSkipRest : Condition::kSkip;
  }
  Result Apply(const SearchTask& task, const State& state, int stage_id) const final {
    State result = state;
    int added = 0;
    for (int consumer : GetConsumers(task, state, stage_id)) {
      int cache = result.cache_read(stage_id, "shared", {consumer + added}, task->compute_dag);
      ++added;
      const int reader = consumer + added;
      result.compute_at(cache, reader, EndOfOuterReduction(result->stages[reader]));
    }
    return {{result, stage_id}};
  }
};

class SpecialComputeLocation final : public SketchRule {
 public:
  const char* Name() const final { return "special compute location"; }
  Condition MeetCondition(const SearchTask& task, const State& state, int stage_id) const final {
    const Stage& stage = state->stages[stage_id];
    if (stage->op_type == StageKind::kPlaceholder || IsOutputStage(task, state, stage_id) ||
        HasReduceIter(stage) || GetProducers(task, state, stage_id).empty()) {
      return Condition::kSkip;
    }
    std::vector<int> consumers = GetConsumers(task, state, stage_id);
    bool applies =
        consumers.size() == 1 && state->stages[consumers[0]]->op->attrs.count(kConstTensorIndices);
    return applies ? Condition::kApplyAndSkipRest : Condition::kSkip;
  }
  Result Apply(const SearchTask& task, const State& state, int stage_id) const final {
    const int target = GetConsumers(task, state, stage_id)[0];
    const Array<Iterator>& iters = state->stages[target]->iters;
    auto unrolled = std::find_if(iters.begin(), iters.end(), [](const Iterator& iter) {
      return iter->annotation == IteratorAnnotation::kUnroll;
    });
    State result = state;
    if (unrolled != iters.begin()) result.compute_at(stage_id, target, *(unrolled - 1));
    return {{result, stage_id - 1}};
  }
};

class CrossThreadReduction final : public SketchRule {
 public:
  explicit CrossThreadReduction(bool of_products_only) : of_products_only_(of_products_only) {}
  const char* Name() const final { return "cross thread reduction"; }
  Condition MeetCondition(const SearchTask& task, const State& state, int stage_id) const final {
    const bool applies = IsSharedByThreads(task, state, stage_id) &&
                         (!of_products_only_ || NeedsMultiLevelTiling(task, state, stage_id));
    return applies ? Condition::kApply : Condition::kSkip;
  }
  Result Apply(const SearchTask& task, const State& state, int stage_id) const final {
    Iterator fused;
    Array<Iterator> space;
    State result = FuseAllReductionIters(state, stage_id, &fused, &space);
    const Optional<PrimExpr> warp = PrimExpr(Integer(task->hardware_params->warp_size));

    const int target = SingleConsumer(task, result, stage_id);
    int common = 0;
    if (target != -1 && !NeedsMultiLevelTiling(task, result, target)) {
      common =
          CurrentDAG(task, result)
              ->access()
              .GetNumCommonOuterIterator(result->stages[stage_id]->op, result->stages[target]->op);
    }
    if (common == 0) {
      Array<Iterator> parts = result.split(stage_id, fused, {warp});
      result.bind(stage_id, parts[1], IteratorAnnotation::kThreadX);
      return {{result, stage_id - 1}};
    }
    // The consumer runs in the same block, so its threads are those of the reduction.
    const Array<int64_t> splits = result->stages[target]->split_steps;
    const auto source =
        static_cast<int>(splits.empty() ? result->transform_steps.size() : splits[0]);
    if (splits.empty()) {
      Array<Iterator> parts = result.split(target, result->stages[target]->iters.back(), {warp});
      result.bind(target, parts[1], IteratorAnnotation::kThreadX);
    }
    Array<Iterator> parts = result.follow_split(stage_id, fused, source, 1);
    result.bind(stage_id, parts[1], IteratorAnnotation::kThreadX);
    result.compute_at(stage_id, target, result->stages[target]->iters[common - 1]);
    return {{result, stage_id - 1}};
  }

 private:
  bool of_products_only_;
};

class SpreadReduction final : public SketchRule {
 public:
  const char* Name() const final { return "spread reduction"; }
  Condition MeetCondition(const SearchTask& task, const State& state, int stage_id) const final {
    const Stage& stage = state->stages[stage_id];
    if (IsCacheWriteStage(state, stage_id) || stage->origin == StageOrigin::kPadAxes ||
        !HasReduceIter(stage)) {
      return Condition::kSkip;
    }
    if (!NeedsMultiLevelTiling(task, state, stage_id)) {
      // Whose consumer runs over the results alone, would have as many of them in a block as
      // threads share a sum.
      const bool applies =
          IsSharedByThreads(task, state, stage_id) && LoopsOfConsumer(task, state, stage_id) > 0;
      if (!applies) return Condition::kSkip;
      return WhatIsReduced(stage) == ReducedMemory::kRows ? Condition::kApplyAndSkipRest
                                                          : Condition::kApply;
    }
    auto [space, reduction] = CumulativeExtents(stage);
    const MachineFacts machine = task->Machine();
    const bool needed = space != -1 && reduction >= kWarpsOfReduction * machine.warp_size &&
                        space <= kWarpsOfResults * machine.warp_size * machine.num_cores;
    if (!needed) return Condition::kSkip;
    if (SingleConsumer(task, state, stage_id) == -1) {
      // Alone, each result has a block already where threads share sums.
      const bool is_new =
          IsOutputStage(task, state, stage_id) && !IsSharedByThreads(task, state, stage_id);
      return is_new ? Condition::kApply : Condition::kSkip;
    }
    if (LoopsOfConsumer(task, state, stage_id) == 0) return Condition::kSkip;
    // Fewer results than a warp has lanes are nothing for tiles of threads.
    return space < machine.warp_size ? Condition::kApplyAndSkipRest : Condition::kApply;
  }
  Result Apply(const SearchTask& task, const State& state, int stage_id) const final {
    Iterator fused;
    Array<Iterator> space;
    State result = FuseAllReductionIters(state, stage_id, &fused, &space);
    const int target = SingleConsumer(task, result, stage_id);
    const int common = LoopsOfConsumer(task, result, stage_id);
    const Optional<PrimExpr> warp = PrimExpr(Integer(task->hardware_params->warp_size));
    if (target == -1) {
      Array<Iterator> parts = result.split(stage_id, fused, {warp});
      result.bind(stage_id, parts[1], IteratorAnnotation::kThreadX);
      return {{result, stage_id - 1}};
    }
    // A block has some results, and as many threads as share the sum of each.
    Array<Iterator> results =
        result.split(target, result->stages[target]->iters.back(), {Optional<PrimExpr>()});
    const int source = static_cast<int>(result->transform_steps.size());
    Array<Iterator> written = result.split(target, results[1], {warp});
    result.bind(target, written[1], IteratorAnnotation::kThreadX);
    Array<Iterator> parts = result.follow_split(stage_id, fused, source, 1);
    result.bind(stage_id, parts[1], IteratorAnnotation::kThreadX);
    result.compute_at(stage_id, target, result->stages[target]->iters[common - 1]);
    return {{result, stage_id - 1}};
  }

 private:
  // With one thread a result, multiprocessors would have no more than so many warps.
  static constexpr int64_t kWarpsOfResults = 2;
  // Of shorter sums, tiles that reuse what they read take no longer.
  static constexpr int64_t kWarpsOfReduction = 8;
};

}  // namespace

std::shared_ptr<const SketchRule> RuleAddCacheRead() { return std::make_shared<AddCacheRead>(); }
std::shared_ptr<const SketchRule> RuleSpecialComputeLocation() {
  return std::make_shared<SpecialComputeLocation>();
}
bool IsSharedByThreads(const SearchTask& task, const State& state, int stage_id) {
  const Stage& stage = state->stages[stage_id];
  if (IsCacheWriteStage(state, stage_id) || stage->origin == StageOrigin::kPadAxes) return false;
  if (!HasReduceIter(stage)) return false;
  auto [space, reduction] = CumulativeExtents(stage);
  if (space == -1 || reduction == -1) return false;
  const HardwareParams& limits = task->hardware_params;
  return NeedsMultiLevelTiling(task, state, stage_id)
             ? space <= limits->max_threads_per_block && space < reduction
             : reduction > 1 && reduction > limits->warp_size;
}

std::shared_ptr<const SketchRule> RuleCrossThreadReduction(bool of_products_only) {
  return std::make_shared<CrossThreadReduction>(of_products_only);
}

std::shared_ptr<const SketchRule> RuleSpreadReduction() {
  return std::make_shared<SpreadReduction>();
}

}  // namespace auto_scheduler
}  // namespace tvm
