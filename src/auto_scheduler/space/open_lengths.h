/*!
 * \file open_lengths.h
 * \brief Completed sketches whose split lengths are open, for tuners that draw numbers.
 */
#ifndef TVM_AUTO_SCHEDULER_SPACE_OPEN_LENGTHS_H_
#define TVM_AUTO_SCHEDULER_SPACE_OPEN_LENGTHS_H_

#include <tvm/auto_scheduler/search_space.h>

#include <vector>

namespace tvm {
namespace auto_scheduler {

/*! \brief The sketches of a space, each completed in all ways, with all lengths open again. */
std::vector<State> OpenCompletedSketches(const SearchSpace& space, const SearchTask& task,
                                         const SpaceOptions& options);

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_SPACE_OPEN_LENGTHS_H_
