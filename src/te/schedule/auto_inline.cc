/*!
 * \file auto_inline.cc
 * \brief Inlining of operations that cost nothing to recompute.
 */
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/te/schedule_pass.h>
#include <tvm/tir/stmt_functor.h>

#include <functional>

namespace tvm {
namespace te {

namespace {

/*! \brief Whether every read of the operation satisfies `accept(read, axes)`. */
bool AllReads(const ComputeOpNode* op,
              const std::function<bool(const tir::ProducerLoadNode*)>& accept) {
  bool all = true;
  for (const PrimExpr& expr : op->body) {
    tir::PostOrderVisit(expr, [&](const ObjectRef& node) {
      if (const auto* load = node.as<tir::ProducerLoadNode>()) all = all && accept(load);
    });
  }
  return all;
}

bool IsElemWise(const Operation& op) {
  const auto* compute = op.as<ComputeOpNode>();
  if (compute == nullptr || !compute->reduce_axis.empty()) return false;
  return AllReads(compute, [&](const tir::ProducerLoadNode* load) {
    if (load->indices.size() != compute->axis.size()) return false;
    for (size_t i = 0; i < load->indices.size(); ++i) {
      if (!load->indices[i].same_as(compute->axis[i]->var)) return false;
    }
    return true;
  });
}

bool IsBroadcast(const Operation& op) {
  const auto* compute = op.as<ComputeOpNode>();
  if (compute == nullptr || !compute->reduce_axis.empty()) return false;
  return AllReads(compute, [&](const tir::ProducerLoadNode* load) {
    // Indices are axes in order; an axis may be left out, and an axis of one element read at 0.
    size_t next = 0;
    for (const PrimExpr& index : load->indices) {
      if (tir::is_zero(index)) continue;
      while (next < compute->axis.size() && !index.same_as(compute->axis[next]->var)) ++next;
      if (next++ == compute->axis.size()) return false;
    }
    return true;
  });
}

void InlineWhere(const Schedule& sch, bool (*accept)(const Operation&)) {
  for (const Stage& stage : sch->stages) {
    if (!stage->is_output && stage->attach_type == kGroupRoot && accept(stage->op)) {
      Stage(stage).compute_inline();
    }
  }
}

}  // namespace

bool IsInjective(const Operation& op) {
  const auto* compute = op.as<ComputeOpNode>();
  return compute != nullptr && compute->reduce_axis.empty();
}

void AutoInlineElemWise(Schedule sch) { InlineWhere(sch, IsElemWise); }
void AutoInlineBroadcast(Schedule sch) { InlineWhere(sch, IsBroadcast); }
void AutoInlineInjective(Schedule sch) { InlineWhere(sch, IsInjective); }

TVM_REGISTER_GLOBAL("te.AutoInlineElemWise").set_body_typed(AutoInlineElemWise);
TVM_REGISTER_GLOBAL("te.AutoInlineBroadcast").set_body_typed(AutoInlineBroadcast);
TVM_REGISTER_GLOBAL("te.AutoInlineInjective").set_body_typed(AutoInlineInjective);
TVM_REGISTER_GLOBAL("te.IsInjective").set_body_typed(IsInjective);

}  // namespace te
}  // namespace tvm
