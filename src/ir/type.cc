#include <tvm/ir/type.h>
#include <tvm/node/repr_printer.h>

namespace tvm {

TVM_REGISTER_NODE(TypeNode);
TVM_REGISTER_NODE(PrimTypeNode);
TVM_REGISTER_NODE(PointerTypeNode);
TVM_REGISTER_NODE(TupleTypeNode);
TVM_REGISTER_NODE(TypeVarNode);
TVM_REGISTER_NODE(FuncTypeNode);
TVM_REGISTER_NODE(AnyTypeNode);

PrimType::PrimType(DataType dtype) {
  auto node = make_object<PrimTypeNode>();
  node->dtype = dtype;
  data_ = std::move(node);
}

PointerType::PointerType(Type element_type, String storage_scope) {
  auto node = make_object<PointerTypeNode>();
  node->element_type = std::move(element_type);
  // "global" is the default scope: one spelling, so that equal types compare equal.
  node->storage_scope = storage_scope == "global" ? String("") : std::move(storage_scope);
  data_ = std::move(node);
}

TupleType::TupleType(Array<Type> fields) {
  auto node = make_object<TupleTypeNode>();
  node->fields = std::move(fields);
  data_ = std::move(node);
}

TupleType TupleType::Empty() { return TupleType(Array<Type>()); }

TypeVar::TypeVar(String name_hint, TypeKind kind) {
  auto node = make_object<TypeVarNode>();
  node->name_hint = std::move(name_hint);
  node->kind = kind;
  data_ = std::move(node);
}

FuncType::FuncType(Array<Type> arg_types, Type ret_type, Array<TypeVar> type_params) {
  auto node = make_object<FuncTypeNode>();
  node->type_params = std::move(type_params);
  node->arg_types = std::move(arg_types);
  node->ret_type = std::move(ret_type);
  data_ = std::move(node);
}

AnyType AnyType::Make() { return AnyType(ObjectPtr<Object>(make_object<AnyTypeNode>())); }

TVM_REGISTER_GLOBAL("ir.PrimType").set_body_typed([](DataType dtype) { return PrimType(dtype); });

TVM_REGISTER_GLOBAL("ir.PointerType").set_body_typed([](Type element, String scope) {
  return PointerType(element, scope);
});

TVM_REGISTER_GLOBAL("ir.TupleType").set_body_typed([](Array<Type> fields) {
  return TupleType(fields);
});

TVM_REGISTER_GLOBAL("ir.TypeVar").set_body_typed([](String name, TypeKind kind) {
  return TypeVar(name, kind);
});

TVM_REGISTER_GLOBAL("ir.FuncType")
    .set_body_typed([](Array<Type> args, Type ret, Array<TypeVar> type_params) {
      return FuncType(args, ret, type_params);
    });

}  // namespace tvm
