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

PrimStructInfo::PrimStructInfo(DataType dtype) {
  auto node = make_object<PrimStructInfoNode>();
  node->dtype = dtype;
  data_ = std::move(node);
}

ShapeStructInfo::ShapeStructInfo(Array<PrimExpr> values) {
  auto node = make_object<ShapeStructInfoNode>();
  node->ndim = static_cast<int>(values.size());
  node->values = std::move(values);
  data_ = std::move(node);
}

ShapeStructInfo::ShapeStructInfo(int ndim) {
  TVM_CHECK(ndim >= -1, ValueError) << "ShapeStructInfo: ndim is a rank or -1, got " << ndim;
  auto node = make_object<ShapeStructInfoNode>();
  node->ndim = ndim;
  data_ = std::move(node);
}

TensorStructInfo::TensorStructInfo(RelayExpr shape, DataType dtype) {
  const auto* literal = shape.as<ShapeExprNode>();
  TVM_CHECK(literal != nullptr, ValueError)
      << "TensorStructInfo: shape must be a ShapeExpr, got " << shape->GetTypeKey();
  auto node = make_object<TensorStructInfoNode>();
  node->ndim = static_cast<int>(literal->values.size());
  node->shape = std::move(shape);
  node->dtype = dtype;
  data_ = std::move(node);
}

TensorStructInfo::TensorStructInfo(DataType dtype, int ndim) {
  TVM_CHECK(ndim >= -1, ValueError) << "TensorStructInfo: ndim is a rank or -1, got " << ndim;
  auto node = make_object<TensorStructInfoNode>();
  node->ndim = ndim;
  node->dtype = dtype;
  data_ = std::move(node);
}

TupleStructInfo::TupleStructInfo(Array<StructInfo> fields) {
  auto node = make_object<TupleStructInfoNode>();
  node->fields = std::move(fields);
  data_ = std::move(node);
}

TVM_REGISTER_GLOBAL("relax.ObjectStructInfo").set_body_typed(&ObjectStructInfo::Create);
TVM_REGISTER_GLOBAL("relax.PrimStructInfo").set_body_typed([](DataType dtype) {
  return PrimStructInfo(dtype);
});
TVM_REGISTER_GLOBAL("relax.ShapeStructInfo")
    .set_body_typed([](Optional<Array<PrimExpr>> values, int ndim) {
      if (!values) return ShapeStructInfo(ndim);
      const int rank = static_cast<int>(values.value().size());
      TVM_CHECK(ndim == -1 || ndim == rank, ValueError)
          << "ShapeStructInfo: ndim is " << ndim << " but there are " << rank << " values";
      return ShapeStructInfo(values.value());
    });
TVM_REGISTER_GLOBAL("relax.TensorStructInfo")
    .set_body_typed([](Optional<RelayExpr> shape, DataType dtype, int ndim) {
      if (!shape) return TensorStructInfo(dtype, ndim);
      TensorStructInfo info(shape.value(), dtype);
      TVM_CHECK(ndim == -1 || ndim == info->ndim, ValueError)
          << "TensorStructInfo: ndim is " << ndim << " but the shape has " << info->ndim
          << " extents";
      return info;
    });
TVM_REGISTER_GLOBAL("relax.TupleStructInfo").set_body_typed([](Array<StructInfo> fields) {
  return TupleStructInfo(fields);
});

}  // namespace relax
}  // namespace tvm
