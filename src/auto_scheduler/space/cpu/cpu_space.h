/*!
 * \file cpu_space.h
 * \brief The parts that the search spaces of processors are made of.
 */
#ifndef TVM_AUTO_SCHEDULER_SPACE_CPU_CPU_SPACE_H_
#define TVM_AUTO_SCHEDULER_SPACE_CPU_CPU_SPACE_H_

#include <tvm/auto_scheduler/search_space.h>

#include <optional>
#include <vector>

#include "../structure_rules.h"

namespace tvm {
namespace auto_scheduler {

/*!
 * \brief Whether `op` reduces along the last axis of what it reads, as a sum of each row does: then
 *        neighbours in memory are steps of the reduction, which no axis of space can be lanes of.
 */
bool ReducesAlongRows(const te::Operation& op);

/*! \brief Whether some tiled stage reads its padded input through a window only. */
bool HasWindowStage(const SearchTask& task);

/*!
 * \brief The states that complete `sketch`, whose lengths are variables, with new lengths open:
 *        where stages run and what each loop is run as.
 * \param producer_locations Also the places other than the root for stages that only move elements.
 */
std::vector<State> CompleteSketch(const SearchTask& task, const State& sketch,
                                  bool producer_locations);

/*!
 * \brief The number whose divisors are the tiles that need not divide an axis of this extent.
 *
 * It is at most the extent, and has the heights of tiles that fill 16 and 32 vector registers among
 * its divisors where the extent leaves room for them. 0 where the axis is too short to be cut.
 */
int64_t RaggedTiles(int64_t extent);

/*!
 * \brief The axis of space along which register tiles with a remainder are estimated to take
 * clearly less time than those that divide all axes, as for 197 or 50 rows of a matrix, or seven
 * rows of an image of which two have as many pixels as the registers hold; else -1.
 */
int RaggedAxis(const te::Operation& op, const MachineFacts& machine);

/*!
 * \brief The operand that register tiles of a stage read in vectors, if it changes at run time and
 *        either lies against the order in which they read it, or has rows so far apart that a copy
 *        pays.
 */
std::optional<PackedOperand> OperandToPack(const SearchTask& task, const State& state,
                                           int stage_id);

/*! \brief What a schedule for processors must respect. */
std::vector<Constraint> ProcessorConstraints(const LoopProgram& program,
                                             const MachineFacts& machine,
                                             const arith::VarContext& context);

/*! \brief The columns of processors: register tile, loads, caches, cores. */
FeatureGroup ProcessorFeatures();
/*! \brief Columns that only the bound reads: visits of register tiles, last tiles, pieces. */
FeatureGroup BoundFeatures();

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_SPACE_CPU_CPU_SPACE_H_
