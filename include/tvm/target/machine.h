/*!
 * \file tvm/target/machine.h
 * \brief Which machine a target means, and what sketches, features and constraints know of it.
 */
#ifndef TVM_TARGET_MACHINE_H_
#define TVM_TARGET_MACHINE_H_

#include <tvm/target/target.h>

#include <cstdint>

namespace tvm {

/*! \brief The first architecture of CUDA that copies into shared memory while a thread goes on. */
constexpr int kAsyncCopiesFrom = 80;

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
  /*! \brief What a block may have where its launch asks for it; at least the former. */
  int64_t max_dynamic_shared_memory_per_block;
  int64_t max_local_memory_per_block;
  int64_t max_threads_per_block;
  int64_t max_vthread_extent;
  int64_t warp_size;
  int64_t max_registers_per_thread;
  int64_t registers_per_block;
  // What one multiprocessor holds at a time.
  int64_t threads_per_multiprocessor;
  int64_t blocks_per_multiprocessor;
  int64_t registers_per_multiprocessor;
  int64_t shared_memory_per_multiprocessor;
  /*! \brief float32 multiply-adds that one multiprocessor begins in a cycle. */
  int64_t multiply_adds_per_cycle;
  /*!
   * \brief float16 multiply-adds with sums of float32 that the tensor cores of one multiprocessor
   *        begin in a cycle; 0 where there are none.
   */
  int64_t tensor_multiply_adds_per_cycle;
  /*! \brief 80 for sm_80; 0 for GPUs that are not programmed in CUDA. */
  int compute_capability;
  /*! \brief Cycles a second. */
  double clock_rate;
  /*! \brief Bytes a second between memory and the last cache. */
  double memory_bandwidth;
  /*! \brief Cycles from a load to its value, out of the last cache and out of memory. */
  int64_t cache_latency, memory_latency;

  /*! \throws ValueError if `-arch` of a GPU is none, such as "sm_8x". */
  static MachineFacts Of(const Target& target);
};

/*!
 * \brief The target with the machine that it means written out.
 *
 * `llvm` becomes `llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=znver4 -num-cores=16` where that is
 * this machine, so that what is kept of the target, as in a record, is not taken for another's.
 */
Target NameMachine(const Target& target);

/*!
 * \brief Whether what was found out about programs for `recorded` holds for those for `target`.
 *
 * True for the same kind and the same processor, whatever the number of its cores. What a
 * simulated device gave never holds for a real one. A recorded target that names no processor, as
 * old records have it, passes for any.
 */
bool IsSameMachine(const Target& target, const Target& recorded);

}  // namespace tvm

#endif  // TVM_TARGET_MACHINE_H_
