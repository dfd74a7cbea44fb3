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
// With parts, they have about so many, as far as divisors allow.
constexpr int64_t kBlocksOfParts = 4;
// Below this, a second kernel takes longer than what the first one saves.
constexpr int64_t kShortestShared = 1 << 14;

/*!
 * \brief A length of parts, of more work than a warp has lanes, with which each multiprocessor has
 *        some blocks and each result more parts than a warp has lanes, as far as divisors allow;
 *        0 if the reduction has no such divisor but itself.
 *
 * Threads that share a part, or its results, are at most as many as either, so this is about the
 * longest such length.
 */
int64_t LengthOfPart(int64_t reduction, int64_t results, const MachineFacts& machine) {
  const int64_t most = std::min(reduction * results / (kBlocksOfParts * machine.num_cores),
                                reduction / (machine.warp_size + 1));
  const std::vector<int64_t>& divisors = Divisors(reduction);
  const auto end = divisors.end() - 1;  // the reduction itself
  const auto least = std::upper_bound(divisors.begin(), end, int64_t{machine.warp_size});
  if (least == end) return 0;
  const auto above = std::upper_bound(least, end, most);
  return above == least ? *least : *(above - 1);
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
                         LengthOfPart(reduction, space, machine) > 0;
    return applies ? Condition::kApply : Condition::kSkip;
  }

  Result Apply(const SearchTask& task, const State& state, int stage_id) const final {
    Iterator fused;
    Array<Iterator> space;
    const auto [results, reduction] = CumulativeExtents(state->stages[stage_id]);
    State result = FuseAllReductionIters(state, stage_id, &fused, &space);
    // A stand-in, so that the parts have a stage of their own; deriving sketches opens it.
    const int64_t length = LengthOfPart(reduction, results, task->Machine());
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
