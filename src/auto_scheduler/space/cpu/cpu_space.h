/*!
 * \file cpu_space.h
 * \brief The parts that the search spaces of processors are made of.
 */
#ifndef TVM_AUTO_SCHEDULER_SPACE_CPU_CPU_SPACE_H_
#define TVM_AUTO_SCHEDULER_SPACE_CPU_CPU_SPACE_H_

#include <tvm/auto_scheduler/search_space.h>

#include <vector>

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

/*! \brief What a schedule for processors must respect. */
std::vector<Constraint> ProcessorConstraints(const LoopProgram& program,
                                             const MachineFacts& machine,
                                             const arith::VarContext& context);

/*! \brief The columns of processors: register tile, loads, caches, cores. */
FeatureGroup ProcessorFeatures();

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_SPACE_CPU_CPU_SPACE_H_
