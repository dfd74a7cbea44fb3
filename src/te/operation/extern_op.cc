/*!
 * \file extern_op.cc
 * \brief Tensors written by a statement that te does not look into.
 */
#include <tvm/arith/int_set.h>
#include <tvm/runtime/registry.h>
#include <tvm/te/operation.h>
#include <tvm/tir/op.h>
#include <tvm/tir/stmt_functor.h>

#include <unordered_map>
#include <utility>

#include "op_utils.h"

namespace tvm {
namespace te {

TVM_REGISTER_NODE(ExternOpNode);

ExternOp::ExternOp(String name, String tag, Map<String, ObjectRef> attrs, Array<Tensor> inputs,
                   Array<Buffer> input_placeholders, Array<Buffer> output_placeholders, Stmt body) {
  TVM_CHECK(inputs.size() == input_placeholders.size(), ValueError)
      << "extern " << name << ": " << inputs.size() << " inputs but " << input_placeholders.size()
      << " input buffers; give one buffer per input";
  TVM_CHECK(!output_placeholders.empty(), ValueError)
      << "extern " << name << ": no output buffer given";
  auto node = make_object<ExternOpNode>();
  node->name = std::move(name);
  node->tag = std::move(tag);
  node->attrs = std::move(attrs);
  node->inputs = std::move(inputs);
  node->input_placeholders = std::move(input_placeholders);
  node->output_placeholders = std::move(output_placeholders);
  node->body = std::move(body);
  data_ = std::move(node);
}

DataType ExternOpNode::output_dtype(size_t i) const { return output_placeholders[i]->dtype; }

Array<PrimExpr> ExternOpNode::output_shape(size_t i) const { return output_placeholders[i]->shape; }

Array<Tensor> ExternOpNode::InputTensors() const {
  std::vector<Tensor> unique;
  for (const Tensor& input : inputs) {
    if (std::find(unique.begin(), unique.end(), input) == unique.end()) unique.push_back(input);
  }
  return Array<Tensor>(unique.begin(), unique.end());
}

Operation ExternOpNode::ReplaceInputs(const Operation& self, const TensorMap<Tensor>& rmap) const {
  Array<Tensor> replaced;
  bool changed = false;
  for (const Tensor& input : inputs) {
    auto it = rmap.find(input);
    replaced.push_back(it == rmap.end() ? input : it->second);
    changed |= it != rmap.end();
  }
  if (!changed) return self;
  return ExternOp(name, tag, attrs, replaced, input_placeholders, output_placeholders, body);
}

void ExternOpNode::PropBoundToInputs(const Operation& self, arith::Analyzer* analyzer,
                                     const IntSetMap& dom_map, TensorMap<TensorDom>* out) const {
  for (const Tensor& input : inputs) {
    auto it = out->find(input);
    if (it == out->end()) continue;
    it->second.resize(input.ndim());
    for (size_t i = 0; i < input.ndim(); ++i) {
      const PrimExpr& extent = input->shape[i];
      it->second[i].push_back(arith::IntSet::FromMinExtent(tir::make_zero(extent.dtype()), extent));
    }
  }
}

void ExternOpNode::GatherBound(const Operation& self, arith::Analyzer* analyzer,
                               const TensorMap<TensorDom>& requests, RangeMap* out) const {}

Stmt ExternOpNode::BuildRealize(const Stage& stage, LoweringContext* ctx, const Stmt& body) const {
  return RealizeWhole(stage, ctx, body);
}

namespace {

/*! \brief The body's own buffers exchanged for those of the tensors. */
class PlaceholderBinder final : public tir::StmtExprMutator {
 public:
  void Bind(const Buffer& placeholder, const Buffer& actual) {
    buffers_.emplace(placeholder.get(), actual);
    pointers_.emplace(placeholder->data.get(), actual->data);
  }

 private:
  Buffer Use(const Buffer& buffer) const {
    auto it = buffers_.find(buffer.get());
    return it == buffers_.end() ? buffer : it->second;
  }
  Stmt VisitStmt_(const tir::BufferStoreNode* op) override {
    Stmt stmt = StmtExprMutator::VisitStmt_(op);
    op = stmt.as<tir::BufferStoreNode>();
    return tir::BufferStore(Use(op->buffer), op->value, op->indices);
  }
  PrimExpr VisitExpr_(const tir::BufferLoadNode* op) override {
    PrimExpr expr = StmtExprMutator::VisitExpr_(op);
    op = expr.as<tir::BufferLoadNode>();
    return tir::BufferLoad(Use(op->buffer), op->indices);
  }
  PrimExpr VisitExpr_(const VarNode* op) override {
    auto it = pointers_.find(op);
    return it == pointers_.end() ? GetRef<PrimExpr>(op) : PrimExpr(it->second);
  }
  std::unordered_map<const Object*, Buffer> buffers_;
  std::unordered_map<const VarNode*, Var> pointers_;
};

}  // namespace

Stmt ExternOpNode::BuildProvide(const Stage& stage, LoweringContext* ctx) const {
  PlaceholderBinder binder;
  for (size_t i = 0; i < inputs.size(); ++i) {
    binder.Bind(input_placeholders[i], ctx->buffers.at(inputs[i]));
  }
  for (int i = 0; i < num_outputs(); ++i) {
    binder.Bind(output_placeholders[i], ctx->buffers.at(stage->op.output(i)));
  }
  return tir::AttrStmt(tir::StringImm(name), tir::attr::extern_scope, PrimExpr(0), binder(body));
}

TVM_REGISTER_GLOBAL("te.ExternOp")
    .set_body_typed([](String name, String tag, Map<String, ObjectRef> attrs, Array<Tensor> inputs,
                       Array<Buffer> input_placeholders, Array<Buffer> output_placeholders,
                       Stmt body) {
      return ExternOp(name, tag, attrs, inputs, input_placeholders, output_placeholders, body);
    });

}  // namespace te
}  // namespace tvm
