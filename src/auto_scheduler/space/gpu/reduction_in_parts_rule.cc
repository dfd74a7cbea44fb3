/*!
 * \file reduction_in_parts_rule.cc
 * \brief Long reductions of few results, shared by blocks.
 */
#include <tvm/expr/op.h>

#include <algorithm>

#include "../structure_rules.h"
#include "../tile_sizes.h"
#include "gpu_rules.h"

namespace tvm {
namespace auto_scheduler {

namespace {

// With a block a result, multiprocessors would have no more than so many.
constexpr int64_t kBlocksOfMultiprocessor = 2;
// Below this, a second kernel takes longer than what the first one saves.
constexpr int64_t kShortestShared = 1 << 14;

/*! \brief The least divisor that is more work than a warp has lanes; 0 if there is none but the
 *         number itself. */
int64_t ShortestPart(int64_t reduction, int64_t warp_size) {
  const std::vector<int64_t>& divisors = Divisors(reduction);
  const auto found = std::upper_bound(divisors.begin(), divisors.end(), warp_size);
  return found == divisors.end() || *found == reduction ? 0 : *found;
}

class ReductionInParts final : public SketchRule {
 public:
  const char* Name() const final { return "reduction in parts"; }

  Condition MeetCondition(const SearchTask& task, const State& state, int stage_id) const final {
    const Stage& stage = state->stages[stage_id];
    if (stage->origin != StageOrigin::kOriginal || IsTiled(stage) || !HasReduceIter(stage) ||
        NeedsMultiLevelTiling(task, state, stage_id) || HasParts(state, stage)) {
      return Condition::kSkip;
    }
    const auto [space, reduction] = CumulativeExtents(stage);
    const MachineFacts machine = task->Machine();
    const bool applies = space != -1 && reduction >= kShortestShared &&
                         space <= kBlocksOfMultiprocessor * machine.num_cores &&
                         ShortestPart(reduction, machine.warp_size) > 0;
    return applies ? Condition::kApply : Condition::kSkip;
  }

  Result Apply(const SearchTask& task, const State& state, int stage_id) const final {
    Iterator fused;
    Array<Iterator> space;
    const int64_t reduction = CumulativeExtents(state->stages[stage_id]).second;
    State result = FuseAllReductionIters(state, stage_id, &fused, &space);
    // A stand-in, so that the parts have a stage of their own; deriving sketches opens it.
    const int64_t length = ShortestPart(reduction, task->Machine().warp_size);
    const Array<Iterator> parts = result.split(
        stage_id, fused, {Optional<PrimExpr>(PrimExpr(IntImm(DataType::Int(32), length)))});
    const int partial = result.rfactor(stage_id, parts[0], 0, task->compute_dag);
    // Both kernels are reductions, to be laid out as any other.
    return {{result, partial + 1}};
  }
};

}  // namespace

bool HasParts(const State& state, const Stage& stage) {
  return std::any_of(state->stages.begin(), state->stages.end(), [&stage](const Stage& other) {
    return other->origin == StageOrigin::kRfactor && other->source == stage->id;
  });
}

std::shared_ptr<const SketchRule> RuleReductionInParts() {
  return std::make_shared<ReductionInParts>();
}

}  // namespace auto_scheduler
}  // namespace tvm
