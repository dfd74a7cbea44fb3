/*!
 * \file graph.cc
 * \brief Order of operations, readers of tensors, attach paths.
 */
#include "graph.h"

#include <tvm/runtime/registry.h>

#include <algorithm>
#include <unordered_set>

namespace tvm {
namespace te {

namespace {

void VisitProducersFirst(const Operation& op, std::unordered_set<const Object*>* seen,
                         std::vector<Operation>* order) {
  if (!seen->insert(op.get()).second) return;
  for (const Tensor& input : op->InputTensors()) VisitProducersFirst(input->op, seen, order);
  order->push_back(op);
}

}  // namespace

std::vector<Operation> OperationsInOrder(const Array<Operation>& outputs) {
  std::unordered_set<const Object*> seen;
  std::vector<Operation> order;
  for (const Operation& op : outputs) VisitProducersFirst(op, &seen, &order);
  return order;
}

TensorMap<std::vector<Stage>> ReadersOfTensors(const Schedule& sch) {
  TensorMap<std::vector<Stage>> readers;
  for (const Stage& stage : sch->stages) {
    if (stage->attach_type == kInlinedAlready) continue;
    for (const Tensor& input : stage->op->InputTensors()) readers[input].push_back(stage);
  }
  return readers;
}

std::vector<IterVar> LoopsAround(const Stage& stage) {
  std::vector<IterVar> loops;
  Stage inner = stage.attached_by();
  while (inner->attach_type == kScope || inner->attach_type == kScanUpdate) {
    const Stage& outer = inner->attach_stage;
    TVM_CHECK(outer->attach_type != kInline && outer->attach_type != kInlinedAlready, ScheduleError)
        << "compute_at(" << StageName(inner) << "): its target " << outer->op->name
        << " is inlined and has no loops";
    const Array<IterVar>& leaves = outer->leaf_iter_vars;
    // The steps of a scan are inside all of its loops.
    size_t depth = leaves.size();
    if (inner->attach_type == kScope) {
      auto it = std::find_if(leaves.begin(), leaves.end(),
                             [&](const IterVar& leaf) { return leaf.same_as(inner->attach_ivar); });
      TVM_CHECK(it != leaves.end(), ScheduleError)
          << "compute_at(" << StageName(inner) << "): loop " << inner->attach_ivar->var->name_hint
          << " of stage " << outer->op->name
          << " was split, fused or cached away after the stage was attached to it; attach again";
      depth = static_cast<size_t>(it - leaves.begin()) + 1;
    }
    for (size_t i = depth; i != 0; --i) loops.push_back(leaves[i - 1]);
    TVM_CHECK(loops.size() < 10000, ScheduleError)
        << "compute_at(" << stage->op->name << "): stages are attached to each other in a circle";
    inner = outer.attached_by();
  }
  return loops;
}

std::string StageName(const Stage& stage) {
  return stage->op.defined() ? std::string(stage->op->name) : "a group";
}

std::string StageNames(const Schedule& sch) {
  std::string names;
  for (const Stage& stage : sch->stages) {
    if (!names.empty()) names += ", ";
    names += stage->op->name;
  }
  return names;
}

TVM_REGISTER_GLOBAL("te.StageLoopsAround").set_body_typed([](const Stage& stage) {
  const std::vector<IterVar> loops = LoopsAround(stage);
  return Array<IterVar>(loops.begin(), loops.end());
});

}  // namespace te
}  // namespace tvm
