/*!
 * \file sketch_utils.h
 * \brief Questions about the stages of a state, and the tiling primitives that rules share.
 */
#ifndef TVM_AUTO_SCHEDULER_SKETCH_UTILS_H_
#define TVM_AUTO_SCHEDULER_SKETCH_UTILS_H_

#include <tvm/auto_scheduler/sketch_rule.h>
#include <tvm/auto_scheduler/transform_step.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace tvm {
namespace auto_scheduler {

/*! \brief Loop order at the outermost level of a tiled nest. */
enum class OuterOrder : int {
  kNatural = 0,
  /*! \brief The last axis, the channels of a channels-last tensor, outside the others. */
  kLastAxisFirst = 1,
};

/*! \brief The DAG whose operations the stages of `state` are. */
ComputeDAG CurrentDAG(const SearchTask& task, const State& state);

/*! \brief Stages that read `stage_id`, looking through inlined ones; ascending. */
std::vector<int> GetConsumers(const SearchTask& task, const State& state, int stage_id);
std::vector<int> GetProducers(const SearchTask& task, const State& state, int stage_id);
/*! \brief The stage in whose loops all readers are computed, or the only reader; -1 if none. */
int SingleConsumer(const SearchTask& task, const State& state, int stage_id);

bool HasReduceIter(const Stage& stage);
bool NeedsMultiLevelTiling(const SearchTask& task, const State& state, int stage_id);
bool IsOutputStage(const SearchTask& task, const State& state, int stage_id);
/*! \brief Whether the stage was made by a cache_write, to be copied out by the next stage. */
bool IsCacheWriteStage(const State& state, int stage_id);
/*! \brief Whether the stage is one of the two halves of an rfactor. */
bool IsRfactorStage(const State& state, int stage_id);
/*! \brief Whether some reader has a copy of the stage, made by a cache_read. */
bool HasCacheReadStage(const State& state, int stage_id);
/*! \brief Whether the stage computes an operation of the task all by itself, padded or not. */
inline bool IsWhole(const Stage& stage) {
  return stage->origin == StageOrigin::kOriginal || stage->origin == StageOrigin::kPadAxes;
}
/*! \brief Whether some loop of the stage comes from a split. */
bool IsTiled(const Stage& stage);
/*! \brief Whether threads of a block share a reduction of the stage. */
bool HasCrossThreadReduction(const Stage& stage);

/*!
 * \brief Whether a consumer, or what it inlines, reads a stage element by element. Of a stage whose
 *        axes were padded it reads those elements that were asked for.
 */
bool MatchesElementwise(const SearchTask& task, const State& state, int stage_id, int consumer);

/*! \brief The only consumer, if it reads elementwise and can hold the stage in its tiles. */
bool HasSingleElementwiseMatchedConsumer(const SearchTask& task, const State& state, int stage_id,
                                         int* consumer);

/*! \brief Products of the literal extents of space and of reduction loops; -1 if one is symbolic.
 */
std::pair<int64_t, int64_t> CumulativeExtents(const Stage& stage);

/*! \brief The state that `steps` lead to from the task's initial one. */
State Replay(const SearchTask& task, const Array<Step>& steps);
/*! \brief The lengths of a step that tuners choose: of a split, of tiles in flight; else null. */
const Array<Optional<PrimExpr>>* LengthsOf(const Step& step);
/*! \brief A step that has lengths, with as many others. */
Step WithLengths(const Step& step, const Array<Optional<PrimExpr>>& lengths);
Step WithLengths(const Step& step, const std::vector<int64_t>& lengths);
/*! \brief Step ids of the splits of a tiled stage's space axes, in axis order. */
std::vector<int64_t> SpaceSplitSteps(const State& state, int stage_id);

/*! \brief All index lists with which `op` reads `producer`; none unless it computes elements. */
std::vector<Array<PrimExpr>> ReadsOf(const te::Operation& op, const te::Operation& producer);

/*!
 * \brief Up to `most` of some alternatives, in their order, the first among them.
 *
 * Alternatives that are products of choices, in lexicographic order, repeat themselves at regular
 * distances, so those that are kept lie at irregular ones: each choice of each factor is among
 * them.
 */
template <typename T>
std::vector<T> SomeOf(std::vector<T> all, size_t most) {
  if (all.size() <= most) return all;
  constexpr double kGoldenRatio = 0.6180339887498949;
  const double step = static_cast<double>(all.size()) / static_cast<double>(most);
  std::vector<T> kept;
  kept.reserve(most);
  for (size_t i = 0, next = 0; i < most; ++i) {
    const double within = std::fmod(static_cast<double>(i) * kGoldenRatio, 1.0);
    // Steps of little more than one may end where the one before did.
    next = std::max(next, static_cast<size_t>((static_cast<double>(i) + within) * step));
    kept.push_back(std::move(all[next++]));
  }
  return kept;
}

/*! \brief Names listed in an attribute of the stage's operation. */
std::vector<std::string> AttrNames(const Stage& stage, const std::string& key);

/*! \brief Fuse the reduction loops of a stage behind its space loops. */
State FuseAllReductionIters(const State& state, int stage_id, Iterator* fused,
                            Array<Iterator>* space_iters);

/*!
 * \brief Tile a stage by a structure such as "SSRSRS", with open lengths.
 * \param space_split_steps Receives the step ids of the splits of the space axes, in axis order.
 * \param ragged_axis The space axis, not the last one, that only the outermost and the innermost
 *        level have a part of, since the innermost need not divide it; -1 for none.
 */
State DoMultiLevelTiling(const State& state, int stage_id, const std::string& structure,
                         OuterOrder order, std::vector<int>* space_split_steps,
                         int ragged_axis = -1);

/*! \brief Whether a SplitStep is that of a ragged axis, see DoMultiLevelTiling. */
bool IsRaggedSplit(const Array<Step>& steps, size_t split);

/*!
 * \brief Make loops of a consumer, which nothing was done to, as long as the axes of a padded stage
 *        that it reads, with a test where it writes; loops of one trip come to stand behind them.
 */
void FollowPadding(State* state, int stage_id, int consumer);

/*!
 * \brief Tile a consumer like the stage that it will hold.
 * \param n_split Number of levels to follow; what is left of each axis becomes the last level.
 */
State FollowTiling(const State& state, int stage_id, const std::vector<int>& split_steps,
                   int n_split, OuterOrder order);

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_SKETCH_UTILS_H_
