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
TVM_REGISTER_NODE(FuncStructInfoNode);

ObjectStructInfo ObjectStructInfo::Create() {
  return ObjectStructInfo(make_object<ObjectStructInfoNode>());
}

FuncStructInfo FuncStructInfo::OpaqueFunc() {
  return FuncStructInfo(NullOpt, ObjectStructInfo::Create(), false);
}

void PrimStructInfoNode::Init() {
  if (!value.defined()) return;
  TVM_CHECK(dtype == value.value()->dtype, ValueError)
      << "PrimStructInfo: dtype is " << dtype << " but the value " << value.value() << " is "
      << value.value()->dtype;
}

void ShapeStructInfoNode::Init() {
  TVM_CHECK(ndim >= -1, ValueError) << "ShapeStructInfo: ndim is a rank or -1, got " << ndim;
  if (!values.defined()) return;
  Array<PrimExpr> extents;
  bool same = true;
  for (const PrimExpr& extent : values.value()) {
    const auto* literal = extent.as<IntImmNode>();
    TVM_CHECK(literal != nullptr || extent->dtype == DataType::Int(64), ValueError)
        << "ShapeStructInfo: the value in ShapeStructInfo can only have dtype of int64, but "
        << extent << " is " << extent->dtype;
    bool fits = extent->dtype == DataType::Int(64);
    same = same && fits;
    extents.push_back(fits ? extent : IntImm(DataType::Int(64), literal->value));
  }
  if (!same) values = extents;
  const int rank = static_cast<int>(extents.size());
  TVM_CHECK(ndim == -1 || ndim == rank, ValueError)
      << "ShapeStructInfo: ndim is " << ndim << " but there are " << rank << " values";
  ndim = rank;
}

void TensorStructInfoNode::Init() {
  TVM_CHECK(ndim >= -1, ValueError) << "TensorStructInfo: ndim is a rank or -1, got " << ndim;
  if (!shape.defined()) return;
  StructInfo info = GetStructInfo(shape.value());
  const auto* known = info.as<ShapeStructInfoNode>();
  const bool fits =
      shape.value()->IsInstance<ShapeExprNode>() || shape.value()->IsInstance<VarNode>();
  TVM_CHECK(fits && known != nullptr, ValueError)
      << "TensorStructInfo: shape must be a ShapeExpr or a variable that holds a shape, got "
      << shape.value()->GetTypeKey() << " of " << info;
  const int rank = known->ndim;
  TVM_CHECK(ndim == -1 || ndim == rank, ValueError)
      << "TensorStructInfo: ndim is " << ndim << " but the shape has " << rank << " extents";
  ndim = rank;
}

TVM_REGISTER_GLOBAL("relax.ObjectStructInfo").set_body_typed(&ObjectStructInfo::Create);
TVM_REGISTER_GLOBAL("relax.FuncStructInfoOpaque").set_body_typed(&FuncStructInfo::OpaqueFunc);

}  // namespace relax
}  // namespace tvm
