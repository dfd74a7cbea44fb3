/*!
 * \file tvm/target/machine.h
 * \brief The facts about a target's machine that sketches, features and constraints read.
 */
#ifndef TVM_TARGET_MACHINE_H_
#define TVM_TARGET_MACHINE_H_

#include <tvm/target/target.h>

#include <cstdint>

namespace tvm {

/*!
 * \brief Sizes of a machine, in bytes where nothing else is said.
 *
 * Each is an option of the target where the user gave it, else what the target's probe found out.
 * This is the only place that says what holds for a target that has neither.
 */
struct MachineFacts {
  /*! \brief Cores of a processor, multiprocessors of a GPU. */
  int num_cores;
  /*! \brief One vector register of a processor; the widest load of a GPU's thread. */
  int vector_bytes;
  int num_vector_registers;
  int cache_line_bytes;
  /*! \brief Data caches L1, L2, L3 that one core can use. */
  int64_t cache_bytes[3];
  // The rest is 0 for processors.
  int64_t max_shared_memory_per_block;
  int64_t max_local_memory_per_block;
  int64_t max_threads_per_block;
  int64_t max_vthread_extent;
  int64_t warp_size;

  static MachineFacts Of(const Target& target);
};

}  // namespace tvm

#endif  // TVM_TARGET_MACHINE_H_
