/*!
 * \file split_reduction_rule.cc
 * \brief Tiled products whose reduction is shared by blocks.
 */
#include <tvm/expr/op.h>

#include <algorithm>

#include "../structure_rules.h"
#include "gpu_rules.h"

namespace tvm {
namespace auto_scheduler {

namespace {

// Results of one thread, above which its operands are read from shared memory often enough.
constexpr int64_t kResultsOfThread = 16;
// A multiprocessor has four schedulers, each of which wants a warp.
constexpr int64_t kWarpsOfMultiprocessor = 4;
// Below this, a second kernel takes longer than what the first one saves.
constexpr int64_t kShortestReduction = 1024;
// Reductions besides the one that is shared, such as windows, stay whole.
constexpr int64_t kLargestWindow = 64;
// Tiles of a row or a column use nothing twice, and have a structure of their own.
constexpr int64_t kSmallestSide = 4;
constexpr int kLevelsInside = 3;

int64_t ExtentOf(const Iterator& iter) { return iter.ConstExtent(); }

/*! \brief Whether a stage can be computed where its consumer computes one element. */
bool CommonLoops(const SearchTask& task, const State& state, int stage_id, int consumer) {
  const Stage& target = state->stages[consumer];
  if (HasReduceIter(target) || IsTiled(target)) return false;
  return MatchesElementwise(task, state, stage_id, consumer);
}

/*! \brief Position of the longest reduction among a stage's loops. */
int LongestReduction(const Stage& stage) {
  int longest = -1;
  for (int i = 0; i < static_cast<int>(stage->iters.size()); ++i) {
    if (stage->iters[i]->iter_kind != IteratorKind::kReduction) continue;
    if (longest < 0 || ExtentOf(stage->iters[i]) > ExtentOf(stage->iters[longest])) longest = i;
  }
  return longest;
}

class SplitReduction final : public SketchRule {
 public:
  const char* Name() const final { return "split reduction"; }

  Condition MeetCondition(const SearchTask& task, const State& state, int stage_id) const final {
    const Stage& stage = state->stages[stage_id];
    if (!IsWhole(stage) || IsTiled(stage) || !HasReduceIter(stage) ||
        !NeedsMultiLevelTiling(task, state, stage_id)) {
      return Condition::kSkip;
    }
    const auto [space, reduction] = CumulativeExtents(stage);
    if (space == -1 || reduction < kShortestReduction) return Condition::kSkip;
    const MachineFacts machine = task->Machine();
    const int64_t filling =
        kResultsOfThread * kWarpsOfMultiprocessor * machine.warp_size * machine.num_cores;
    const auto sides =
        std::count_if(stage->iters.begin(), stage->iters.end(), [](const Iterator& iter) {
          return iter->iter_kind == IteratorKind::kSpatial && ExtentOf(iter) >= kSmallestSide;
        });
    const int64_t shared = ExtentOf(stage->iters[LongestReduction(stage)]);
    const bool applies = space <= filling && sides >= 2 && CanBeCut(shared, kLevelsInside) &&
                         reduction / shared <= kLargestWindow &&
                         AttrNames(stage, "auto_scheduler_no_split_at_inner").empty();
    return applies ? Condition::kApply : Condition::kSkip;
  }

  Result Apply(const SearchTask& task, const State& state, int stage_id) const final {
    State result = state;
    const Iterator shared =
        state->stages[stage_id]->iters[LongestReduction(state->stages[stage_id])];
    const int partial = ComputePartsOf(task, &result, stage_id, shared, kLevelsInside);
    result.cache_write(partial, "local", task->compute_dag);
    const int copied_out = partial + 1;
    std::vector<int> split_steps;
    Tile(&result, partial, &split_steps);
    const int threads = FollowTile(&result, copied_out, split_steps);
    result.compute_at(partial, copied_out, result->stages[copied_out]->iters[threads]);
    return {{result, stage_id - 1}};
  }

 private:
  /*! \brief Blocks (of the parts too), virtual threads, threads, steps, registers. */
  static void Tile(State* state, int stage_id, std::vector<int>* split_steps) {
    constexpr int kLevelsOfSpace = 5, kRegisterLevel = 3;
    std::vector<Array<Iterator>> space(kLevelsOfSpace);
    Array<Iterator> reductions, loops;
    const Array<Iterator> iters = (*state)->stages[stage_id]->iters;
    loops.push_back(iters[0]);
    for (size_t i = 1; i < iters.size(); ++i) {
      if (iters[i]->iter_kind == IteratorKind::kReduction) {
        reductions.push_back(iters[i]);
        continue;
      }
      split_steps->push_back(static_cast<int>((*state)->transform_steps.size()));
      const Array<Iterator> levels =
          state->split(stage_id, iters[i],
                       Array<Optional<PrimExpr>>(static_cast<size_t>(kLevelsOfSpace - 1), NullOpt));
      for (int level = 0; level < kLevelsOfSpace; ++level) space[level].push_back(levels[level]);
    }
    // The loops of the shared reduction come last, behind the windows.
    const size_t n_windows = reductions.size() - kLevelsInside;
    const Iterator outer = reductions[n_windows], inner = reductions[n_windows + 1];
    const Iterator written_out = reductions[n_windows + 2];
    auto append = [&loops](const Array<Iterator>& level) {
      for (const Iterator& iter : level) loops.push_back(iter);
    };
    for (int level = 0; level < kRegisterLevel; ++level) append(space[level]);
    append({outer, inner});
    append(Array<Iterator>(reductions.begin(), reductions.begin() + n_windows));
    append(space[kRegisterLevel]);
    loops.push_back(written_out);
    append(space[kRegisterLevel + 1]);
    state->reorder(stage_id, loops);
  }

  /*! \return Position of the innermost loop of threads. */
  static int FollowTile(State* state, int stage_id, const std::vector<int>& split_steps) {
    constexpr int kLevels = 4;
    std::vector<Array<Iterator>> space(kLevels);
    const Array<Iterator> iters = (*state)->stages[stage_id]->iters;
    for (size_t i = 0; i < split_steps.size(); ++i) {
      const Array<Iterator> parts =
          state->follow_split(stage_id, iters[i + 1], split_steps[i], kLevels - 1);
      for (int level = 0; level < kLevels; ++level) space[level].push_back(parts[level]);
    }
    Array<Iterator> loops{iters[0]};
    for (const Array<Iterator>& level : space) {
      for (const Iterator& iter : level) loops.push_back(iter);
    }
    state->reorder(stage_id, loops);
    return (kLevels - 1) * static_cast<int>(split_steps.size());
  }
};

}  // namespace

namespace {

// Stand-ins for the lengths of a shared reduction, whose quotient is the number of parts.
constexpr int kStandIn = 2;

}  // namespace

bool CanBeCut(int64_t extent, int levels_inside) {
  return extent % (kStandIn << levels_inside) == 0;
}

int ComputePartsOf(const SearchTask& task, State* state, int stage_id, const Iterator& shared,
                   int levels_inside) {
  const Array<Iterator> parts =
      state->split(stage_id, shared,
                   Array<Optional<PrimExpr>>(static_cast<size_t>(levels_inside),
                                             Optional<PrimExpr>(PrimExpr(Integer(kStandIn)))));
  const int partial = state->rfactor(stage_id, parts[0], 0, task->compute_dag);
  const int whole = partial + 1;
  const int consumer = SingleConsumer(task, *state, whole);
  if (consumer != -1 && CommonLoops(task, *state, whole, consumer)) {
    // Else parts would be as long as what is asked for.
    FollowPadding(state, whole, consumer);
    state->compute_at(whole, consumer, (*state)->stages[consumer]->iters.back());
  }
  return partial;
}

std::shared_ptr<const SketchRule> RuleSplitReduction() {
  return std::make_shared<SplitReduction>();
}

}  // namespace auto_scheduler
}  // namespace tvm
