#include <tvm/relax/expr.h>
#include <tvm/relax/struct_info.h>
#include <tvm/runtime/registry.h>

namespace tvm {
namespace relax {

TVM_REGISTER_NODE(ObjectStructInfoNode);
TVM_REGISTER_NODE(PrimStructInfoNode);
TVM_REGISTER_NODE(ShapeStructInfoNode);
TVM_REGISTER_NODE(TensorStructInfoNode);
TVM_REGISTER_NODE(TupleStructInfoNode);

ObjectStructInfo ObjectStructInfo::Create() {
  return ObjectStructInfo(make_object<ObjectStructInfoNode>());
}

void ShapeStructInfoNode::Init() {
  TVM_CHECK(ndim >= -1, ValueError) << "ShapeStructInfo: ndim is a rank or -1, got " << ndim;
  if (!values.defined()) return;
  const int rank = static_cast<int>(values.value().size());
  TVM_CHECK(ndim == -1 || ndim == rank, ValueError)
      << "ShapeStructInfo: ndim is " << ndim << " but there are " << rank << " values";
  ndim = rank;
}

void TensorStructInfoNode::Init() {
  TVM_CHECK(ndim >= -1, ValueError) << "TensorStructInfo: ndim is a rank or -1, got " << ndim;
  if (!shape.defined()) return;
  const auto* literal = shape.value().as<ShapeExprNode>();
  TVM_CHECK(literal != nullptr, ValueError)
      << "TensorStructInfo: shape must be a ShapeExpr, got " << shape.value()->GetTypeKey();
  const int rank = static_cast<int>(literal->values.size());
  TVM_CHECK(ndim == -1 || ndim == rank, ValueError)
      << "TensorStructInfo: ndim is " << ndim << " but the shape has " << rank << " extents";
  ndim = rank;
}

TVM_REGISTER_GLOBAL("relax.ObjectStructInfo").set_body_typed(&ObjectStructInfo::Create);

}  // namespace relax
}  // namespace tvm
