/*!
 * \file device_model.h
 * \brief An analytic model of a GPU, for machines that have none.
 */
#ifndef TVM_AUTO_SCHEDULER_SPACE_GPU_DEVICE_MODEL_H_
#define TVM_AUTO_SCHEDULER_SPACE_GPU_DEVICE_MODEL_H_

#include <tvm/auto_scheduler/loop_program.h>
#include <tvm/target/machine.h>

#include <vector>

namespace tvm {
namespace auto_scheduler {

/*! \brief What one compiled kernel takes, read from its machine code. */
struct KernelUse {
  int64_t registers = 0;
  int64_t shared_bytes = 0;
};

/*!
 * \brief Seconds that a program without knobs would take on a machine; the same on every call.
 *
 * The times of its kernels' resources (kernel_times.h), with what is known of the machine code, and
 * a fixed time for every launch. It ranks programs by what is known to matter; it is no
 * measurement.
 *
 * \param used One for each kernel, in order; empty to take estimates from the loops.
 * \throws ValueError if the program has no kernel, if `used` has another number of kernels, or if
 *         no block of one fits a multiprocessor.
 */
double ModeledSeconds(const LoopProgram& program, const MachineFacts& machine,
                      const std::vector<KernelUse>& used);

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_SPACE_GPU_DEVICE_MODEL_H_
