/*!
 * \file random_rules.h
 * \brief Ansor's random decisions, which spaces put together (OSDI 2020, sections 4.2 and 5.1).
 */
#ifndef TVM_AUTO_SCHEDULER_SPACE_RANDOM_RULES_H_
#define TVM_AUTO_SCHEDULER_SPACE_RANDOM_RULES_H_

#include <tvm/auto_scheduler/search_space.h>

#include <memory>
#include <utility>
#include <vector>

namespace tvm {
namespace auto_scheduler {

using RandomRulePtr = std::shared_ptr<const RandomRule>;

/*! \name Making a program of a sketch */
/*! @{ */
/*!
 * \brief Gives every open split lengths that divide the loop.
 * \param space Says which lengths need not divide it, and what those may be.
 */
RandomRulePtr InitFillTileSize(int max_innermost_split_factor, const SearchSpace* space = nullptr);
/*! \brief Moves untiled stages into, between and out of the loops of their readers. */
RandomRulePtr InitComputeLocation();
/*!
 * \brief Finds the extents of all loops; a state for which that fails is of no use.
 * \param space Is asked before whether the lengths fit.
 */
RandomRulePtr InitBounds(const SearchSpace* space = nullptr);
/*! \brief Fuses outer loops of each root stage, until there are enough trips for all cores. */
RandomRulePtr InitParallel();
/*! \brief Draws how far loops of stages that reduce are unrolled, from `max_steps`. */
RandomRulePtr InitUnroll(std::vector<int> max_steps);
/*! \brief Runs inner loops as vectors of at most `max_vectorize_size` elements. */
RandomRulePtr InitVectorization(int max_vectorize_size);
/*! @} */

/*! \name Making another program of one */
/*! @{ */
/*!
 * \brief Moves a factor from one part of a split to another.
 * \param space Says which lengths need not divide their loop, which stay, and whether the new ones
 *        fit.
 */
RandomRulePtr MutateTileSize(int max_innermost_split_factor, const SearchSpace* space = nullptr);
/*! \brief Draws anew one of the lengths that need not divide their loop, as `space` says. */
RandomRulePtr MutateFreeLength(const SearchSpace* space);
/*! \brief Draws how far one stage is unrolled anew. */
RandomRulePtr MutateAutoUnroll(std::vector<int> max_steps);
/*! \brief Moves one stage to another loop of its readers. */
RandomRulePtr MutateComputeLocation();
/*! \brief Fuses more or fewer loops into an outermost parallel one. */
RandomRulePtr MutateParallel();
/*! @} */

/*!
 * \brief Loops at which a stage can be computed, as (stage, loop), outermost first; empty unless
 *        all that read it are computed in one place.
 */
std::vector<std::pair<int, int>> ComputeLocations(const SearchTask& task, const State& state,
                                                  int stage_id);

/*!
 * \brief How many loops of a stage, from `first` on, a parallel loop can be made of.
 * \param max_trips Stop once there are more than this many trips.
 * \param trips Receives the product of their extents.
 */
int CountParallelLoops(const State& state, int stage_id, int first, int64_t max_trips,
                       int64_t* trips);

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_SPACE_RANDOM_RULES_H_
