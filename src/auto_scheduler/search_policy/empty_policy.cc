/*!
 * \file empty_policy.cc
 * \brief The policy that searches nothing.
 */
#include <tvm/auto_scheduler/sketch_policy.h>
#include <tvm/runtime/registry.h>

namespace tvm {
namespace auto_scheduler {

TVM_REGISTER_NODE(EmptyPolicyNode);

Array<Candidate> EmptyPolicyNode::Propose(int n) {
  if (proposed_ || n < 1) return {};
  proposed_ = true;
  State plain = search_task->compute_dag->init_state;
  return {MeasureInput(search_task, search_task->compute_dag.InferBound(plain))};
}

void EmptyPolicyNode::Observe(const Array<Candidate>&, const Array<MeasureResult>&) {
  proposed_ = true;
}

TVM_REGISTER_GLOBAL("auto_scheduler.EmptyPolicy").set_body_typed([](SearchTask task, int verbose) {
  auto node = make_object<EmptyPolicyNode>();
  node->search_task = std::move(task);
  node->verbose = verbose;
  return SearchPolicy(ObjectPtr<Object>(std::move(node)));
});

}  // namespace auto_scheduler
}  // namespace tvm
