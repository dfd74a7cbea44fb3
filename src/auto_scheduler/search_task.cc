/*!
 * \file search_task.cc
 * \brief Tasks, and hardware limits from targets.
 */
#include <tvm/auto_scheduler/search_task.h>
#include <tvm/runtime/registry.h>
#include <tvm/runtime/threading_backend.h>

namespace tvm {
namespace auto_scheduler {

TVM_REGISTER_NODE(HardwareParamsNode);
TVM_REGISTER_NODE(SearchTaskNode);

HardwareParams::HardwareParams(int num_cores, int vector_unit_bytes, int cache_line_bytes,
                               int max_shared_memory_per_block, int max_local_memory_per_block,
                               int max_threads_per_block, int max_vthread_extent, int warp_size) {
  auto node = make_object<HardwareParamsNode>();
  node->num_cores = num_cores;
  node->vector_unit_bytes = vector_unit_bytes;
  node->cache_line_bytes = cache_line_bytes;
  node->max_shared_memory_per_block = max_shared_memory_per_block;
  node->max_local_memory_per_block = max_local_memory_per_block;
  node->max_threads_per_block = max_threads_per_block;
  node->max_vthread_extent = max_vthread_extent;
  node->warp_size = warp_size;
  data_ = std::move(node);
}

SearchTask::SearchTask(ComputeDAG compute_dag, String workload_key, String desc, Target target,
                       Optional<Target> target_host, Optional<HardwareParams> hardware_params,
                       LayoutRewriteOption layout_rewrite_option, Array<String> task_input_names) {
  auto node = make_object<SearchTaskNode>();
  node->hardware_params =
      hardware_params.defined() ? hardware_params.value() : HardwareParams::FromTarget(target);
  node->compute_dag = std::move(compute_dag);
  node->workload_key = std::move(workload_key);
  node->desc = std::move(desc);
  node->target = NameMachine(target);
  node->target_host = std::move(target_host);
  node->layout_rewrite_option = layout_rewrite_option;
  node->task_input_names = std::move(task_input_names);
  data_ = std::move(node);
}

TVM_REGISTER_GLOBAL("auto_scheduler.HardwareParams")
    .set_body_typed([](int num_cores, int vector_unit_bytes, int cache_line_bytes,
                       int max_shared_memory_per_block, int max_local_memory_per_block,
                       int max_threads_per_block, int max_vthread_extent, int warp_size) {
      return HardwareParams(num_cores, vector_unit_bytes, cache_line_bytes,
                            max_shared_memory_per_block, max_local_memory_per_block,
                            max_threads_per_block, max_vthread_extent, warp_size);
    });
TVM_REGISTER_GLOBAL("auto_scheduler.GetDefaultHardwareParams").set_body_typed([](Target target) {
  return HardwareParams::FromTarget(target);
});
TVM_REGISTER_GLOBAL("auto_scheduler.SearchTask")
    .set_body_typed([](ComputeDAG compute_dag, String workload_key, String desc, Target target,
                       Optional<Target> target_host, Optional<HardwareParams> hardware_params,
                       int layout_rewrite_option, Array<String> task_input_names) {
      return SearchTask(compute_dag, workload_key, desc, target, target_host, hardware_params,
                        static_cast<LayoutRewriteOption>(layout_rewrite_option), task_input_names);
    });

}  // namespace auto_scheduler
}  // namespace tvm
