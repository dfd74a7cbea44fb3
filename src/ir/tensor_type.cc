#include <tvm/ir/tensor_type.h>

namespace tvm {

TVM_REGISTER_NODE(TensorTypeNode);

TensorType::TensorType(Array<PrimExpr> shape, DataType dtype) {
  for (const PrimExpr& extent : shape) {
    TVM_CHECK(extent.defined() && extent.dtype().is_int() && extent.dtype().is_scalar(), TypeError)
        << "TensorType: extents must be integer scalars, got " << extent;
  }
  auto node = make_object<TensorTypeNode>();
  node->shape = std::move(shape);
  node->dtype = dtype;
  data_ = std::move(node);
}

TensorType TensorType::Scalar(DataType dtype) { return TensorType({}, dtype); }

TVM_REGISTER_NODE_CHECK(TensorTypeNode,
                        [](const TensorTypeNode* node) { TensorType(node->shape, node->dtype); });

TVM_REGISTER_GLOBAL("ir.TensorType").set_body_typed([](Array<PrimExpr> shape, DataType dtype) {
  return TensorType(shape, dtype);
});

}  // namespace tvm
