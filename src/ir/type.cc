#include <tvm/ir/type.h>
#include <tvm/ir/type_relation.h>
#include <tvm/node/repr_printer.h>

namespace tvm {

TVM_REGISTER_NODE(TypeNode);
TVM_REGISTER_NODE(PrimTypeNode, "ir.PrimType");
TVM_REGISTER_NODE(PointerTypeNode, "ir.PointerType");
TVM_REGISTER_NODE(TupleTypeNode, "ir.TupleType");
TVM_REGISTER_NODE(TypeVarNode, "ir.TypeVar");
TVM_REGISTER_NODE(TypeConstraintNode);
TVM_REGISTER_NODE(FuncTypeNode, "ir.FuncType");
TVM_REGISTER_NODE(TypeRelationNode, "ir.TypeRelation");
TVM_REGISTER_NODE(AnyTypeNode);

std::optional<Type> Type::FromAny(const Any& value) {
  if (std::optional<DataType> dtype = value.TryCast<DataType>()) return PrimType(*dtype);
  return std::nullopt;
}

void PointerTypeNode::Init() {
  // "global" is the default scope: one spelling, so that equal types compare equal.
  if (!storage_scope.defined() || storage_scope == "global") storage_scope = "";
}

TupleType TupleType::Empty() { return TupleType(Array<Type>()); }

AnyType AnyType::Make() { return AnyType(ObjectPtr<Object>(make_object<AnyTypeNode>())); }

}  // namespace tvm
