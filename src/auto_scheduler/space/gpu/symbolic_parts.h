/*!
 * \file symbolic_parts.h
 * \brief The parts of a GPU's search space that symbolic tuners use.
 */
#ifndef TVM_AUTO_SCHEDULER_SPACE_GPU_SYMBOLIC_PARTS_H_
#define TVM_AUTO_SCHEDULER_SPACE_GPU_SYMBOLIC_PARTS_H_

#include <tvm/auto_scheduler/search_space.h>

#include <vector>

namespace tvm {
namespace auto_scheduler {

/*!
 * \brief What a kernel must respect: threads, virtual threads, shared memory, registers, vectors
 *        that divide their rows, one block that fits a multiprocessor.
 */
std::vector<Constraint> GpuConstraints(const LoopProgram& program, const MachineFacts& machine,
                                       const arith::VarContext& context);

/*! \brief The columns of GPUs: occupancy, waves, coalescing, banks, intensity at each level. */
FeatureGroup GpuFeatures();

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_SPACE_GPU_SYMBOLIC_PARTS_H_
