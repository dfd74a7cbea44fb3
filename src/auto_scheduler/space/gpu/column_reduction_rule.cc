/*!
 * \file column_reduction_rule.cc
 * \brief Reductions of columns: neighbouring threads have neighbouring results, others share each.
 */
#include <tvm/expr/op.h>
#include <tvm/te/operation.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <unordered_set>

#include "../structure_rules.h"
#include "gpu_rules.h"

namespace tvm {
namespace auto_scheduler {

namespace {

// What comes from memory at a time; rows of results that are shorter waste some of it.
constexpr int64_t kLeastRowBytes = 32;

/*! \brief The last axis along which there are several results; -1 if there is one alone. */
int LastAxis(const te::ComputeOpNode* compute) {
  for (int i = static_cast<int>(compute->axis.size()) - 1; i >= 0; --i) {
    if (!tir::is_one(compute->axis[i]->dom->extent)) return i;
  }
  return -1;
}

class ColumnReduction final : public SketchRule {
 public:
  const char* Name() const final { return "column reduction"; }

  Condition MeetCondition(const SearchTask& task, const State& state, int stage_id) const final {
    const Stage& stage = state->stages[stage_id];
    if (IsCacheWriteStage(state, stage_id) || stage->origin == StageOrigin::kPadAxes ||
        IsTiled(stage) || !HasReduceIter(stage) || NeedsMultiLevelTiling(task, state, stage_id)) {
      return Condition::kSkip;
    }
    const auto [space, reduction] = CumulativeExtents(stage);
    if (space == -1 || reduction <= task->hardware_params->warp_size ||
        WhatIsReduced(stage) != ReducedMemory::kColumns) {
      return Condition::kSkip;
    }
    // One thread a result is the program of one thread a column, and threads that are neighbours
    // in a column read memory that is far apart. But a consumer with more loops than results may
    // be one kernel with them.
    const bool has_kernel = IsAlone(task, state, stage_id) || HasParts(state, stage) ||
                            LoopsOfConsumer(task, state, stage_id) > 0;
    return has_kernel ? Condition::kApplyAndSkipRest : Condition::kApply;
  }

  Result Apply(const SearchTask& task, const State& state, int stage_id) const final {
    Iterator fused;
    Array<Iterator> space;
    State result = FuseAllReductionIters(state, stage_id, &fused, &space);
    const Optional<PrimExpr> warp = PrimExpr(Integer(task->hardware_params->warp_size));
    const Array<Iterator> shared = result.split(stage_id, fused, {warp});
    result.bind(stage_id, shared[1], IteratorAnnotation::kThreadY);
    const int target =
        LoopsOfConsumer(task, state, stage_id) > 0 ? SingleConsumer(task, state, stage_id) : -1;
    if (target == -1) {
      const Iterator all = space.size() > 1 ? result.fuse(stage_id, space) : space[0];
      const Array<Iterator> parts = result.split(stage_id, all, {warp});
      result.bind(stage_id, parts[1], IteratorAnnotation::kThreadX);
      return {{result, stage_id - 1}};
    }
    const int last = LastAxis(state->stages[stage_id]->op.as<te::ComputeOpNode>());
    const auto source = static_cast<int>(result->transform_steps.size());
    const Array<Iterator> written =
        result.split(target, result->stages[target]->iters[last], {warp});
    result.bind(target, written[1], IteratorAnnotation::kThreadX);
    const Array<Iterator> columns = result.follow_split(stage_id, space[last], source, 1);
    result.bind(stage_id, columns[1], IteratorAnnotation::kThreadX);
    result.compute_at(stage_id, target, result->stages[target]->iters[last]);
    return {{result, stage_id - 1}};
  }

 private:
  /*! \brief Whether nobody's loops could hold the stage, so that it has a kernel of its own. */
  static bool IsAlone(const SearchTask& task, const State& state, int stage_id) {
    const int target = SingleConsumer(task, state, stage_id);
    if (target == -1 || NeedsMultiLevelTiling(task, state, target) ||
        IsTiled(state->stages[target])) {
      return true;
    }
    return CurrentDAG(task, state)
               ->access()
               .GetNumCommonOuterIterator(state->stages[stage_id]->op, state->stages[target]->op) ==
           0;
  }
};

}  // namespace

ReducedMemory WhatIsReduced(const Stage& stage) {
  const auto* compute = stage->op.as<te::ComputeOpNode>();
  if (compute == nullptr) return ReducedMemory::kOther;
  const int last = LastAxis(compute);
  std::unordered_set<const tir::VarNode*> reduced, space;
  for (const te::IterVar& axis : compute->reduce_axis) reduced.insert(axis->var.get());
  for (const te::IterVar& axis : compute->axis) space.insert(axis->var.get());
  // Where a part begins is no place of a result.
  if (stage->origin == StageOrigin::kRfactor) space.erase(compute->axis[0]->var.get());
  auto mentions = [](const PrimExpr& index, const std::unordered_set<const tir::VarNode*>& vars) {
    return tir::UsesVar(index, [&vars](const tir::VarNode* var) { return vars.count(var) != 0; });
  };
  bool rows = true, columns = last >= 0, reads = false;
  auto look = [&](const tir::ProducerLoadNode* load) {
    const te::Tensor tensor = Downcast<te::Tensor>(load->producer);
    const Array<PrimExpr>& indices = load->indices;
    if (std::none_of(indices.begin(), indices.end(),
                     [&](const PrimExpr& index) { return mentions(index, reduced); })) {
      return;
    }
    reads = true;
    int d = static_cast<int>(indices.size()) - 1;
    while (d > 0 && tir::is_one(tensor->shape[d])) --d;
    rows = rows && mentions(indices[d], reduced) && !mentions(indices[d], space);
    columns = columns && tir::UsesVar(indices[d], [&](const tir::VarNode* var) {
                return var == compute->axis[last]->var.get();
              });
    // Neighbours in memory, as many as there are dimensions that no reduction moves in.
    int64_t neighbours = 1;
    for (; d >= 0 && !mentions(indices[d], reduced); --d) {
      const int64_t* extent = tir::as_const_int(tensor->shape[d]);
      neighbours *= extent == nullptr ? 1 : *extent;
    }
    columns = columns && neighbours * tensor->dtype.bytes() >= kLeastRowBytes;
  };
  for (const PrimExpr& body : compute->body) {
    tir::PostOrderVisit(body, [&](const ObjectRef& node) {
      if (const auto* load = node.as<tir::ProducerLoadNode>()) look(load);
    });
  }
  if (!reads) return ReducedMemory::kOther;
  return rows ? ReducedMemory::kRows : columns ? ReducedMemory::kColumns : ReducedMemory::kOther;
}

int LoopsOfConsumer(const SearchTask& task, const State& state, int stage_id) {
  const int target = SingleConsumer(task, state, stage_id);
  if (target == -1 || NeedsMultiLevelTiling(task, state, target) ||
      IsTiled(state->stages[target])) {
    return 0;
  }
  const auto& access = CurrentDAG(task, state)->access();
  const int common =
      access.GetNumCommonOuterIterator(state->stages[stage_id]->op, state->stages[target]->op);
  return common == static_cast<int>(state->stages[target]->iters.size()) ? common : 0;
}

std::shared_ptr<const SketchRule> RuleColumnReduction() {
  return std::make_shared<ColumnReduction>();
}

}  // namespace auto_scheduler
}  // namespace tvm
