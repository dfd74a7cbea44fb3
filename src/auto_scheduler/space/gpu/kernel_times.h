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
 * where too few warps are resident to hide latencies. Copies that go on by themselves need tiles in
 * flight for that and no warps.
 */
struct KernelTimes {
  PrimExpr tensor_cores, arithmetic, shared_memory, cache, memory;
  /*!
   * \brief What the blocks of the fullest multiprocessor wait for tiles at least, if each has
   *        nothing else to do.
   *
   * A block with A tiles on their way starts the copy of tile t + A when it has tile t, so that T
   * tiles take 1 + (T - 1) / A times the latency of a copy (Little's law: no more than A tiles of
   * each resident block arrive within one latency). Where threads wait for each tile, A is 1, and
   * only other resident blocks compute meanwhile.
   */
  PrimExpr latency;
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
