/*!
 * \file hardware_params.cc
 * \brief Between the facts of a machine and those that records hold.
 */
#include <tvm/auto_scheduler/search_task.h>

#include <algorithm>
#include <utility>

namespace tvm {
namespace auto_scheduler {

void HardwareParamsNode::Init() const {
  TVM_CHECK(num_cores >= 1 || num_cores == -1, ValueError)
      << "HardwareParams: num_cores must be >= 1, or -1 for a GPU, got " << num_cores;
  const auto require = [](const char* field, int value, int least) {
    TVM_CHECK(value >= least, ValueError)
        << "HardwareParams: " << field << " must be >= " << least << ", got " << value;
  };
  require("vector_unit_bytes", vector_unit_bytes, 1);
  require("cache_line_bytes", cache_line_bytes, 1);
  require("max_shared_memory_per_block", max_shared_memory_per_block, 0);
  require("max_local_memory_per_block", max_local_memory_per_block, 0);
  require("max_threads_per_block", max_threads_per_block, 0);
  require("max_vthread_extent", max_vthread_extent, 0);
  require("warp_size", warp_size, 0);
}

HardwareParams HardwareParams::FromTarget(const Target& target) {
  const MachineFacts facts = MachineFacts::Of(target);
  // A GPU counts no cores in records.
  const int num_cores = facts.warp_size == 0 ? facts.num_cores : -1;
  return HardwareParams(num_cores, facts.vector_bytes, facts.cache_line_bytes,
                        static_cast<int>(facts.max_shared_memory_per_block),
                        static_cast<int>(facts.max_local_memory_per_block),
                        static_cast<int>(facts.max_threads_per_block),
                        static_cast<int>(facts.max_vthread_extent),
                        static_cast<int>(facts.warp_size));
}

MachineFacts SearchTaskNode::Machine() const {
  MachineFacts facts = MachineFacts::Of(target);
  if (facts.warp_size > 0) {
    // Of a processor they are 0, and such a record may stand under a GPU's target.
    for (const auto& [field, value] :
         {std::pair{"max_threads_per_block", hardware_params->max_threads_per_block},
          {"max_vthread_extent", hardware_params->max_vthread_extent},
          {"warp_size", hardware_params->warp_size}}) {
      TVM_CHECK(value >= 1, ValueError) << "SearchTask: hardware_params of a task for " << target
                                        << ": " << field << " must be >= 1, got " << value;
    }
  }
  if (hardware_params->num_cores > 0) facts.num_cores = hardware_params->num_cores;
  facts.vector_bytes = hardware_params->vector_unit_bytes;
  facts.cache_line_bytes = hardware_params->cache_line_bytes;
  // Whoever grants a block less than the target does means all of it, whoever grants more as well.
  const int64_t granted = hardware_params->max_shared_memory_per_block;
  if (granted < facts.max_shared_memory_per_block) {
    facts.max_dynamic_shared_memory_per_block = granted;
  }
  facts.max_dynamic_shared_memory_per_block =
      std::max(facts.max_dynamic_shared_memory_per_block, granted);
  facts.max_shared_memory_per_block = hardware_params->max_shared_memory_per_block;
  facts.max_local_memory_per_block = hardware_params->max_local_memory_per_block;
  facts.max_threads_per_block = hardware_params->max_threads_per_block;
  facts.max_vthread_extent = hardware_params->max_vthread_extent;
  facts.warp_size = hardware_params->warp_size;
  return facts;
}

}  // namespace auto_scheduler
}  // namespace tvm
