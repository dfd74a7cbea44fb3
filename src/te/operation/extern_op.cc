/*!
 * \file extern_op.cc
 * \brief Tensors written by a statement that te does not look into.
 */
#include <tvm/node/repr_printer.h>
#include <tvm/runtime/registry.h>
#include <tvm/te/operation.h>

#include <utility>

#include "placeholder_binder.h"

namespace tvm {
namespace te {

TVM_REGISTER_NODE(ExternOpNode);

TVM_REGISTER_REPR(ExternOpNode, [](const ExternOpNode* node, ReprPrinter* p) {
  p->stream << "extern(" << std::string(node->name) << ')';
});

void ExternOpNode::Init() {
  TVM_CHECK(inputs.size() == input_placeholders.size(), ValueError)
      << "extern " << name << ": " << inputs.size() << " inputs but " << input_placeholders.size()
      << " input buffers; give one buffer per input";
  TVM_CHECK(!output_placeholders.empty(), ValueError)
      << "extern " << name << ": no output buffer given";
}

DataType ExternOpNode::output_dtype(size_t i) const { return output_placeholders[i]->dtype; }

Array<PrimExpr> ExternOpNode::output_shape(size_t i) const { return output_placeholders[i]->shape; }

Array<Tensor> ExternOpNode::InputTensors() const { return UniqueTensors(inputs); }

Operation ExternOpNode::ReplaceInputs(const Operation& self, const TensorMap<Tensor>& rmap) const {
  Array<Tensor> replaced = ReplaceTensors(inputs, rmap);
  if (replaced.same_as(inputs)) return self;
  return ExternOp(name, tag, attrs, replaced, input_placeholders, output_placeholders, body);
}

void ExternOpNode::PropBoundToInputs(const Operation& self, arith::Analyzer* analyzer,
                                     const IntSetMap& dom_map, TensorMap<TensorDom>* out) const {
  RequestWhole(inputs, out);
}

void ExternOpNode::GatherBound(const Operation& self, arith::Analyzer* analyzer,
                               const TensorMap<TensorDom>& requests, RangeMap* out) const {}

Stmt ExternOpNode::BuildRealize(const Stage& stage, LoweringContext* ctx, const Stmt& body) const {
  return RealizeWhole(stage, ctx, body);
}

Stmt ExternOpNode::BuildProvide(const Stage& stage, LoweringContext* ctx) const {
  Stmt bound = BindPlaceholders(stage->op, ctx->buffers, inputs, input_placeholders,
                                output_placeholders, body);
  return tir::AttrStmt(tir::StringImm(name), tir::attr::extern_scope, PrimExpr(0), bound);
}

}  // namespace te
}  // namespace tvm
