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

}  // namespace relax
}  // namespace tvm
