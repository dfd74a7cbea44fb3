/*!
 * \file row_reduction_rule.cc
 * \brief Reductions of rows and windows, which the threads of a block share.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/op.h>
#include <tvm/expr/substitute.h>
#include <tvm/te/operation.h>
#include <tvm/tir/analysis.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "../structure_rules.h"
#include "gpu_rules.h"

namespace tvm {
namespace auto_scheduler {

namespace {

/*! \brief Loops of a consumer that leave one result to reduce inside of them. */
struct OneResult {
  /*! \brief How many loops those are. */
  int outer;
  /*! \brief If not 0, the last one is what is left of an axis of the consumer whose so many
   *         neighbours share a result. */
  int group;
};

/*!
 * \brief Whether all that a target reads of an operation, directly or through others, is at
 *        floordiv(axis of the target, group) in the last dimension that is not 1.
 */
bool IsReadByGroups(const ComputeDAG& dag, const te::Operation& op, const te::Operation& target,
                    int axis, int group) {
  // The place in that dimension as an expression in the axes of `at`.
  std::function<bool(const te::Operation&, const PrimExpr&)> walk = [&](const te::Operation& at,
                                                                        const PrimExpr& place) {
    const auto* compute = at.as<te::ComputeOpNode>();
    if (at.same_as(target)) {
      arith::Analyzer analyzer;
      for (const te::IterVar& iter : compute->axis) analyzer.Bind(iter->var, iter->dom);
      return analyzer.CanProveEqual(place, floordiv(compute->axis[axis]->var, group));
    }
    for (const te::Operation& reader : dag->access().GetDirectConsumers(at)) {
      const auto* reads = reader.as<te::ComputeOpNode>();
      if (reads == nullptr) return false;
      arith::Analyzer analyzer;
      for (const te::IterVar& iter : reads->axis) analyzer.Bind(iter->var, iter->dom);
      for (const te::IterVar& iter : reads->reduce_axis) analyzer.Bind(iter->var, iter->dom);
      for (const Array<PrimExpr>& indices : ReadsOf(reader, at)) {
        Map<tir::Var, PrimExpr> values;
        for (size_t i = 0; i < indices.size(); ++i) values.Set(compute->axis[i]->var, indices[i]);
        const PrimExpr there = analyzer.Simplify(tir::Substitute(place, values));
        const bool by_reduction = std::any_of(
            reads->reduce_axis.begin(), reads->reduce_axis.end(), [&](const te::IterVar& iter) {
              return tir::UsesVar(there,
                                  [&](const tir::VarNode* var) { return var == iter->var.get(); });
            });
        if (by_reduction || !walk(reader, there)) return false;
      }
    }
    return true;
  };
  return walk(op, op.as<te::ComputeOpNode>()->axis[axis]->var);
}

/*! \brief Nothing where a consumer's loops would leave several results to each block. */
std::optional<OneResult> LoopsOfOneResult(const SearchTask& task, const State& state, int stage_id,
                                          int target) {
  const te::Operation& op = state->stages[stage_id]->op;
  const auto* compute = op.as<te::ComputeOpNode>();
  const auto* reader = state->stages[target]->op.as<te::ComputeOpNode>();
  const ComputeDAG dag = CurrentDAG(task, state);
  const int common = dag->access().GetNumCommonOuterIterator(op, state->stages[target]->op);
  const auto n_axes = static_cast<int>(compute->axis.size());
  int several = -1;
  for (int i = common; i < n_axes; ++i) {
    if (tir::is_one(compute->axis[i]->dom->extent)) continue;
    if (several != -1) return std::nullopt;
    several = i;
  }
  if (several == -1) return common == 0 ? std::nullopt : std::optional(OneResult{common, 0});
  if (several != common || reader == nullptr || several >= static_cast<int>(reader->axis.size())) {
    return std::nullopt;
  }
  const int64_t* groups = tir::as_const_int(compute->axis[several]->dom->extent);
  const int64_t* whole = tir::as_const_int(reader->axis[several]->dom->extent);
  if (groups == nullptr || whole == nullptr || *whole % *groups != 0) return std::nullopt;
  const auto group = static_cast<int>(*whole / *groups);
  return IsReadByGroups(dag, op, state->stages[target]->op, several, group)
             ? std::optional(OneResult{common + 1, group})
             : std::nullopt;
}

class RowReduction final : public SketchRule {
 public:
  const char* Name() const final { return "row reduction"; }

  Condition MeetCondition(const SearchTask& task, const State& state, int stage_id) const final {
    if (NeedsMultiLevelTiling(task, state, stage_id) || !IsSharedByThreads(task, state, stage_id)) {
      return Condition::kSkip;
    }
    // One thread a result would read its row alone, far away from what its neighbours read.
    if (WhatIsReduced(state->stages[stage_id]) == ReducedMemory::kRows) {
      return Condition::kApplyAndSkipRest;
    }
    // Results that are written one by one are spread.
    return LoopsOfConsumer(task, state, stage_id) > 0 ? Condition::kSkip : Condition::kApply;
  }

  Result Apply(const SearchTask& task, const State& state, int stage_id) const final {
    Iterator fused;
    Array<Iterator> space;
    State result = FuseAllReductionIters(state, stage_id, &fused, &space);
    const Optional<PrimExpr> warp = PrimExpr(Integer(task->hardware_params->warp_size));
    const int target = SingleConsumer(task, result, stage_id);
    std::optional<OneResult> loops;
    if (target != -1 && !NeedsMultiLevelTiling(task, result, target) &&
        !HasReduceIter(result->stages[target])) {
      loops = LoopsOfOneResult(task, result, stage_id, target);
    }
    int source = -1;
    if (loops) {
      source = IsTiled(result->stages[target]) ? SplitOfThreads(result, target, loops->outer)
                                               : LayOut(&result, target, *loops, warp);
    }
    if (source == -1) {
      const Array<Iterator> parts = result.split(stage_id, fused, {warp});
      result.bind(stage_id, parts[1], IteratorAnnotation::kThreadX);
      return {{result, stage_id - 1}};
    }
    // The consumer runs in the same block, so its threads are those of the reduction.
    const Array<Iterator> parts = result.follow_split(stage_id, fused, source, 1);
    result.bind(stage_id, parts[1], IteratorAnnotation::kThreadX);
    result.compute_at(stage_id, target, result->stages[target]->iters[loops->outer - 1]);
    return {{result, stage_id - 1}};
  }

 private:
  /*!
   * \brief Has threads share the loops of a consumer inside of those of one result. Of a group of
   *        neighbours they share what each of them has, so that no thread's place depends on where
   *        the group ends.
   * \return The split that says how many threads there are.
   */
  static int LayOut(State* state, int target, const OneResult& loops,
                    const Optional<PrimExpr>& warp) {
    size_t first = loops.outer;
    if (loops.group != 0) {
      state->fixed_split(target, (*state)->stages[target]->iters[loops.outer - 1], loops.group);
      if (first + 1 < (*state)->stages[target]->iters.size()) ++first;
    }
    const Array<Iterator> iters = (*state)->stages[target]->iters;
    const Array<Iterator> inside(iters.begin() + first, iters.end());
    ICHECK(!inside.empty());
    const Iterator shared = inside.size() > 1 ? state->fuse(target, inside) : inside[0];
    const auto source = static_cast<int>((*state)->transform_steps.size());
    const Array<Iterator> parts = state->split(target, shared, {warp});
    state->bind(target, parts[1], IteratorAnnotation::kThreadX);
    return source;
  }

  /*! \brief The split of threads of a consumer that holds a stage under so many loops already; -1
   *         if it holds none there. */
  static int SplitOfThreads(const State& state, int target, int outer) {
    if (!state.HasAttachedStages(target, outer - 1)) return -1;
    const Array<int64_t>& splits = state->stages[target]->split_steps;
    for (size_t i = splits.size(); i-- > 0;) {
      if (state->transform_steps[splits[i]]->IsInstance<SplitStepNode>()) {
        return static_cast<int>(splits[i]);
      }
    }
    return -1;
  }
};

}  // namespace

std::shared_ptr<const SketchRule> RuleRowReduction() { return std::make_shared<RowReduction>(); }

}  // namespace auto_scheduler
}  // namespace tvm
