/*!
 * \file hardware_params.cc
 * \brief Hardware limits from targets.
 */
#include <tvm/auto_scheduler/search_task.h>
#include <tvm/runtime/threading_backend.h>

namespace tvm {
namespace auto_scheduler {

HardwareParams HardwareParams::FromTarget(const Target& target) {
  auto limit = [&target](const char* key, int64_t otherwise) {
    return static_cast<int>(target->GetInt(key, otherwise));
  };
  int cache_line_bytes = limit("cache_line_bytes", 64);
  if (target->GetTargetDeviceType() == kDLCPU) {
    int num_cores = limit("num_cores", runtime::threading::MaxConcurrency());
    // Without a known vector width, the widest in use (512 bits) keeps every vector loop legal.
    int vector_unit_bytes = limit("vector_width", 512) / 8;
    return HardwareParams(num_cores, vector_unit_bytes, cache_line_bytes);
  }
  // A GPU counts no cores here; one thread loads 16 bytes at a time; spilled locals go to memory.
  constexpr int kNoCores = -1, kVectorBytes = 16, kUnlimitedLocal = 2147483647;
  int warp_size = limit("thread_warp_size", 32);
  return HardwareParams(kNoCores, kVectorBytes, cache_line_bytes,
                        limit("max_shared_memory_per_block", 49152), kUnlimitedLocal,
                        limit("max_threads_per_block", 1024), warp_size / 4, warp_size);
}

}  // namespace auto_scheduler
}  // namespace tvm
