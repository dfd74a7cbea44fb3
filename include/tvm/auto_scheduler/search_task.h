/*!
 * \file tvm/auto_scheduler/search_task.h
 * \brief What is searched: one DAG on one target with its hardware limits.
 */
#ifndef TVM_AUTO_SCHEDULER_SEARCH_TASK_H_
#define TVM_AUTO_SCHEDULER_SEARCH_TASK_H_

#include <tvm/auto_scheduler/compute_dag.h>
#include <tvm/target/machine.h>

namespace tvm {
namespace auto_scheduler {

/*! \brief The facts about a machine that records hold. Sizes are in bytes. */
class HardwareParamsNode : public Object {
 public:
  /*! \brief Cores that run parallel loops; -1 for a GPU. */
  int num_cores{1};
  int vector_unit_bytes{64};
  int cache_line_bytes{64};
  int max_shared_memory_per_block{0};
  int max_local_memory_per_block{0};
  int max_threads_per_block{0};
  int max_vthread_extent{0};
  int warp_size{0};

  /*! \throws ValueError that names a field that no machine has. */
  void Init() const;

  TVM_DECLARE_NODE(HardwareParamsNode, Object, "auto_scheduler.HardwareParams", Value(num_cores),
                   Value(vector_unit_bytes), Value(cache_line_bytes),
                   Default(max_shared_memory_per_block), Default(max_local_memory_per_block),
                   Default(max_threads_per_block), Default(max_vthread_extent), Default(warp_size));
};

class HardwareParams : public FromFields<ObjectRef, HardwareParamsNode> {
 public:
  /*! \brief The limits among the facts of `target`'s machine. */
  static HardwareParams FromTarget(const Target& target);
  TVM_DEFINE_NODE_REF(HardwareParams, HardwareParamsNode);
};

class SearchTaskNode : public Object {
 public:
  ComputeDAG compute_dag;
  String workload_key;
  String desc;
  /*! \brief What is compiled for, with the machine written out. */
  Target target;
  Optional<Target> target_host;
  /*! \brief Those of the target unless a constructor is given others. */
  HardwareParams hardware_params;
  LayoutRewriteOption layout_rewrite_option{LayoutRewriteOption::kNoRewrite};
  Array<String> task_input_names;

  /*! \brief The facts of the target's machine, those in `hardware_params` as they stand there. */
  MachineFacts Machine() const;
  /*! \brief Writes the machine out in the target. */
  void Init();

  TVM_DECLARE_NODE(SearchTaskNode, Object, "auto_scheduler.SearchTask", Value(compute_dag),
                   Value(workload_key), Value(desc), Value(target), Value(target_host),
                   Maybe(hardware_params), Value(layout_rewrite_option), Value(task_input_names));
};

class SearchTask : public FromFields<ObjectRef, SearchTaskNode> {
 public:
  TVM_DEFINE_NODE_REF(SearchTask, SearchTaskNode);
};

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_SEARCH_TASK_H_
