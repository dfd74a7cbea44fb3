/*!
 * \file kernel_times.h
 * \brief How long each resource of a GPU is busy with a kernel, as expressions in knobs.
 */
#ifndef TVM_AUTO_SCHEDULER_SPACE_GPU_KERNEL_TIMES_H_
#define TVM_AUTO_SCHEDULER_SPACE_GPU_KERNEL_TIMES_H_

#include <tvm/auto_scheduler/loop_program.h>
#include <tvm/target/machine.h>

#include "kernel_facts.h"

namespace tvm {
namespace auto_scheduler {

/*!
 * \brief The least cycles that each resource takes for one kernel. All float64 and >= 0.
 *
 * A bound for each resource of the machine after Williams et al., "Roofline", CACM 52(4), 2009:
 * arithmetic, shared memory and cache of the fullest multiprocessor, and memory; each weakened
 * where too few warps are resident to hide latencies.
 */
struct KernelTimes {
  PrimExpr tensor_cores, arithmetic, shared_memory, cache, memory;
  /*! \brief Cycles of the kernel with its launch: resources overlap, but never perfectly so. */
  PrimExpr total;
};

/*!
 * \param facts What the kernel takes, estimated or read from its machine code.
 * \throws ValueError if the kernel uses tensor cores, which the machine has not.
 */
KernelTimes KernelTimesOf(const LoopProgram& program, int kernel, const KernelFacts& facts,
                          const Traffic& traffic, const MachineFacts& machine);

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_SPACE_GPU_KERNEL_TIMES_H_
