#include <tvm/ir/tensor_type.h>

namespace tvm {

TVM_REGISTER_NODE(TensorTypeNode, "ir.TensorType");

void TensorTypeNode::Init() {
  for (const PrimExpr& extent : shape) {
    TVM_CHECK(extent.dtype().is_int() && extent.dtype().is_scalar(), TypeError)
        << "TensorType: extents must be integer scalars, got " << extent;
  }
}

TensorType TensorType::Scalar(DataType dtype) { return TensorType({}, dtype); }

}  // namespace tvm
