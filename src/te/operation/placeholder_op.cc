/*!
 * \file placeholder_op.cc
 * \brief Inputs of the program.
 */
#include <tvm/arith/int_set.h>
#include <tvm/node/repr_printer.h>
#include <tvm/runtime/registry.h>
#include <tvm/te/operation.h>
#include <tvm/te/schedule.h>

namespace tvm {
namespace te {

TVM_REGISTER_NODE(PlaceholderOpNode);

TVM_REGISTER_REPR(PlaceholderOpNode, [](const PlaceholderOpNode* node, ReprPrinter* p) {
  p->stream << "placeholder(" << std::string(node->name) << ')';
});

void PlaceholderOpNode::Init() {
  if (!tag.defined()) tag = "";
  for (const PrimExpr& extent : shape) {
    TVM_CHECK(extent.dtype().is_int() || extent.dtype().is_uint(), TypeError)
        << "placeholder " << name << ": extents must be integers, got " << extent << " of dtype "
        << extent.dtype();
  }
}

Operation PlaceholderOpNode::ReplaceInputs(const Operation& self,
                                           const TensorMap<Tensor>& rmap) const {
  return self;
}

void PlaceholderOpNode::PropBoundToInputs(const Operation& self, arith::Analyzer* analyzer,
                                          const IntSetMap& dom_map,
                                          TensorMap<TensorDom>* out) const {}

void PlaceholderOpNode::GatherBound(const Operation& self, arith::Analyzer* analyzer,
                                    const TensorMap<TensorDom>& requests, RangeMap* out) const {}

Stmt PlaceholderOpNode::BuildRealize(const Stage& stage, LoweringContext* ctx,
                                     const Stmt& body) const {
  return body;
}

Stmt PlaceholderOpNode::BuildProvide(const Stage& stage, LoweringContext* ctx) const {
  return tir::Evaluate(PrimExpr(0));
}

Tensor placeholder(Array<PrimExpr> shape, DataType dtype, String name) {
  return PlaceholderOp(std::move(name), std::move(shape), dtype).output(0);
}

TVM_REGISTER_GLOBAL("te.Placeholder")
    .set_body_typed([](Array<PrimExpr> shape, DataType dtype, String name) {
      return placeholder(shape, dtype, name);
    });

}  // namespace te
}  // namespace tvm
