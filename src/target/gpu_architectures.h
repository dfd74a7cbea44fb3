/*!
 * \file gpu_architectures.h
 * \brief What NVIDIA's architectures have, for machines without the GPU that a target means.
 */
#ifndef TVM_TARGET_GPU_ARCHITECTURES_H_
#define TVM_TARGET_GPU_ARCHITECTURES_H_

#include <cstdint>
#include <string>

namespace tvm {

/*!
 * \brief One architecture, and the board that it is best known by.
 *
 * Limits of a multiprocessor are those of the table of compute capabilities in the CUDA C++
 * programming guide; a board's figures are from its data sheet, and options of a target override
 * the number of multiprocessors and the size of the cache. Latencies were measured by chasing
 * pointers: V100 and T4 by Jia et al., "Dissecting the NVidia Turing T4 GPU via Microbenchmarking",
 * 2019; A100, RTX 4090 and H100 by Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU
 * Architecture", 2024. Other boards have those of the relative that was measured.
 */
struct GpuArchitecture {
  /*! \brief 80 for sm_80. */
  int number;
  const char* board;
  // One multiprocessor: resident threads and blocks, bytes of shared memory, multiply-adds a cycle.
  int threads, blocks, shared_bytes, multiply_adds;
  // float16 multiply-adds a cycle of its tensor cores, with sums of float32 and dense operands.
  int tensor_multiply_adds;
  // The board: multiprocessors, bytes of the L2 cache, cycles and bytes a second.
  int multiprocessors;
  int64_t l2_bytes;
  double clock_rate, memory_bandwidth;
  // Cycles from a load to its value, out of the L2 cache and out of memory.
  int l2_latency, memory_latency;

  /*!
   * \brief The newest architecture of the table that is no newer than `arch`; the oldest for one
   *        that is older than all. Without a name it is sm_80, for which code is generated then.
   * \throws ValueError if `arch` is not "sm_" and a number, with "a" or "f" behind it or not.
   */
  static const GpuArchitecture& Of(const std::string& arch);
  /*! \brief 80 for "sm_80", also of architectures that are not in the table; errors as for Of. */
  static int NumberOf(const std::string& arch);
};

}  // namespace tvm

#endif  // TVM_TARGET_GPU_ARCHITECTURES_H_
