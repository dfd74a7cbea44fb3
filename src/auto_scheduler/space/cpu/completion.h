/*!
 * \file completion.h
 * \brief Rules that complete a structural sketch: where stages run and what each loop is run as.
 */
#ifndef TVM_AUTO_SCHEDULER_SPACE_CPU_COMPLETION_H_
#define TVM_AUTO_SCHEDULER_SPACE_CPU_COMPLETION_H_

#include <tvm/auto_scheduler/search_task.h>

#include <vector>

namespace tvm {
namespace auto_scheduler {

/*! \brief Whether some tiled stage reads its padded input through a window only. */
bool HasWindowStage(const SearchTask& task);

/*!
 * \brief The states that complete `sketch`, whose lengths are variables, with new lengths open.
 * \param producer_locations Also the places other than the root for stages that only move elements.
 */
std::vector<State> CompleteSketch(const SearchTask& task, const State& sketch,
                                  bool producer_locations);

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_SPACE_CPU_COMPLETION_H_
