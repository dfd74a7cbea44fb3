/*!
 * \file src/te/node_check.cc
 * \brief Programs that are put together field by field pass through the checks of constructors.
 */
#include <tvm/te/operation.h>
#include <tvm/te/scan_op.h>
#include <tvm/te/schedule.h>

namespace tvm {
namespace te {
namespace {

template <typename T>
void ExpectAllDefined(const char* what, const Array<T>& values) {
  for (const T& value : values) {
    TVM_CHECK(value.defined(), ValueError) << what << " is missing";
  }
}

void ExpectMember(const StageNode* stage, const IterVar& iv) {
  TVM_CHECK(iv.defined(), ValueError) << "te.Stage: a loop is missing";
  for (const IterVar& known : stage->all_iter_vars) {
    if (known.same_as(iv)) return;
  }
  TVM_FATAL(ValueError) << "te.Stage: the loop " << iv << " is not among those of the stage";
}

}  // namespace

TVM_REGISTER_NODE_CHECK(PlaceholderOpNode, [](const PlaceholderOpNode* op) {
  ExpectAllDefined("te.PlaceholderOp: an extent", op->shape);
});
TVM_REGISTER_NODE_CHECK(ComputeOpNode, [](const ComputeOpNode* op) {
  ExpectAllDefined("te.ComputeOp: an axis", op->axis);
  for (const IterVar& axis : op->axis) {
    TVM_CHECK(axis->dom.defined(), ValueError)
        << "te.ComputeOp: the axis " << axis << " has no range";
  }
  ExpectAllDefined("te.ComputeOp: an expression", op->body);
  // The constructor finds the reduction axes in the expressions.
  ComputeOp rebuilt(op->name, op->tag, op->attrs, op->axis, op->body);
  bool same = rebuilt->reduce_axis.size() == op->reduce_axis.size();
  for (size_t i = 0; same && i < op->reduce_axis.size(); ++i) {
    same = rebuilt->reduce_axis[i].same_as(op->reduce_axis[i]);
  }
  TVM_CHECK(same, ValueError) << "te.ComputeOp " << op->name << ": the expressions reduce over "
                              << rebuilt->reduce_axis << ", the node says " << op->reduce_axis;
});
TVM_REGISTER_NODE_CHECK(ExternOpNode, [](const ExternOpNode* op) {
  ExpectAllDefined("te.ExternOp: an input", op->inputs);
  ExpectAllDefined("te.ExternOp: a buffer", op->input_placeholders);
  ExpectAllDefined("te.ExternOp: a buffer", op->output_placeholders);
  ExternOp(op->name, op->tag, op->attrs, op->inputs, op->input_placeholders,
           op->output_placeholders, op->body);
});
TVM_REGISTER_NODE_CHECK(ScanOpNode, [](const ScanOpNode* op) {
  ExpectAllDefined("te.ScanOp: a start", op->init);
  ExpectAllDefined("te.ScanOp: an update", op->update);
  ExpectAllDefined("te.ScanOp: a state", op->state_placeholder);
  ExpectAllDefined("te.ScanOp: an input", op->inputs);
  ScanOp(op->name, op->tag, op->attrs, op->scan_axis, op->init, op->update, op->state_placeholder,
         op->inputs);
});
TVM_REGISTER_NODE_CHECK(TensorNode, [](const TensorNode* tensor) {
  ExpectAllDefined("te.Tensor: an extent", tensor->shape);
  int index = tensor->value_index;
  TVM_CHECK(index >= 0 && index < tensor->op->num_outputs(), ValueError)
      << "te.Tensor: result " << index << " of " << tensor->op->name << ", which has "
      << tensor->op->num_outputs();
  TVM_CHECK(tensor->dtype == tensor->op->output_dtype(index) &&
                tensor->shape.size() == tensor->op->output_shape(index).size(),
            ValueError)
      << "te.Tensor: " << tensor->op->name << " gives another type or number of axes";
});

TVM_REGISTER_NODE_CHECK(IterVarAttrNode, [](const IterVarAttrNode* attr) {
  ExpectAllDefined("te.IterVarAttr: a tensor", attr->prefetch_data);
  ExpectAllDefined("te.IterVarAttr: an offset", attr->prefetch_offset);
  for (const PrimExpr& key : attr->pragma_keys) {
    TVM_CHECK(key.as<tir::StringImmNode>() != nullptr, ValueError)
        << "te.IterVarAttr: the name of a pragma must be a text, got " << key;
  }
  TVM_CHECK(attr->prefetch_data.size() == attr->prefetch_offset.size() &&
                attr->pragma_keys.size() == attr->pragma_values.size(),
            ValueError)
      << "te.IterVarAttr: lists that belong together differ in length";
});
TVM_REGISTER_NODE_CHECK(StageNode, [](const StageNode* stage) {
  ExpectAllDefined("te.Stage: a loop", stage->all_iter_vars);
  ExpectAllDefined("te.Stage: a relation", stage->relations);
  for (const IterVar& iv : stage->leaf_iter_vars) ExpectMember(stage, iv);
  for (const IterVarRelation& relation : stage->relations) {
    if (const auto* split = relation.as<SplitNode>()) {
      for (const IterVar& iv : {split->parent, split->outer, split->inner}) ExpectMember(stage, iv);
      TVM_CHECK(split->factor.defined() || split->nparts.defined(), ValueError)
          << "te.Split: neither factor nor nparts is given";
    } else if (const auto* fuse = relation.as<FuseNode>()) {
      for (const IterVar& iv : {fuse->outer, fuse->inner, fuse->fused}) ExpectMember(stage, iv);
    }
  }
  for (const auto& [iv, attr] : stage->iter_var_attrs) {
    TVM_CHECK(iv.defined() && attr.defined(), ValueError) << "te.Stage: an attribute is missing";
  }
});
TVM_REGISTER_NODE_CHECK(ScheduleNode, [](const ScheduleNode* schedule) {
  ExpectAllDefined("te.Schedule: an output", schedule->outputs);
  ExpectAllDefined("te.Schedule: a stage", schedule->stages);
  ExpectAllDefined("te.Schedule: a group", schedule->groups);
  for (const Stage& stage : schedule->stages) {
    TVM_CHECK(stage->op.defined() && stage->origin_op.defined(), ValueError)
        << "te.Schedule: a stage has no operation";
  }
  for (const auto& [op, stage] : schedule->stage_map) {
    TVM_CHECK(op.defined() && stage.defined(), ValueError)
        << "te.Schedule: an entry of the stage map is missing";
  }
});

}  // namespace te
}  // namespace tvm
