#include <tvm/node/repr_printer.h>
#include <tvm/relax/type.h>

namespace tvm {
namespace relax {

TVM_REGISTER_NODE(ShapeTypeNode);
TVM_REGISTER_NODE(DynTensorTypeNode);
TVM_REGISTER_NODE(ObjectTypeNode);
TVM_REGISTER_NODE(PackedFuncTypeNode);

TVM_REGISTER_GLOBAL("relax.ObjectType").set_body_typed([]() {
  return ObjectRef(make_object<ObjectTypeNode>());
});
TVM_REGISTER_GLOBAL("relax.PackedFuncType").set_body_typed([]() {
  return ObjectRef(make_object<PackedFuncTypeNode>());
});

// Types print as the struct info that says no more than they do.
TVM_REGISTER_REPR(ShapeTypeNode, [](const ShapeTypeNode* node, ReprPrinter* p) {
  p->stream << "R.Shape(ndim=" << node->ndim << ')';
});
TVM_REGISTER_REPR(DynTensorTypeNode, [](const DynTensorTypeNode* node, ReprPrinter* p) {
  p->stream << "R.Tensor(ndim=" << node->ndim;
  if (!node->dtype.is_void()) p->stream << ", dtype=\"" << node->dtype << '"';
  p->stream << ')';
});
TVM_REGISTER_REPR(ObjectTypeNode,
                  [](const ObjectTypeNode* node, ReprPrinter* p) { p->stream << "R.Object"; });
TVM_REGISTER_REPR(PackedFuncTypeNode, [](const PackedFuncTypeNode* node, ReprPrinter* p) {
  p->stream << "R.PackedFunc";
});

}  // namespace relax
}  // namespace tvm
