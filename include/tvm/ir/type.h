/*!
 * \file tvm/ir/type.h
 * \brief Types of values: scalars, pointers, tuples, functions.
 */
#ifndef TVM_IR_TYPE_H_
#define TVM_IR_TYPE_H_

#include <tvm/ir/span.h>

namespace tvm {

class TypeNode : public Object {
 public:
  mutable Span span;
  TVM_DECLARE_ABSTRACT_NODE(TypeNode, Object, "Type", Ignore(span));
};
class Type : public ObjectRef {
 public:
  TVM_DEFINE_REF(Type, ObjectRef, TypeNode);
};

/*! \brief A scalar or vector of a low-level function. */
class PrimTypeNode : public TypeNode {
 public:
  DataType dtype;
  TVM_DECLARE_NODE(PrimTypeNode, TypeNode, "PrimType", Value(dtype));
};
class PrimType : public Type {
 public:
  TVM_DLL explicit PrimType(DataType dtype);
  TVM_DEFINE_REF(PrimType, Type, PrimTypeNode);
};

/*! \brief Address of elements of a type in a memory scope ("" is global). */
class PointerTypeNode : public TypeNode {
 public:
  Type element_type;
  String storage_scope;
  TVM_DECLARE_NODE(PointerTypeNode, TypeNode, "PointerType", Value(element_type),
                   Value(storage_scope));
};
class PointerType : public Type {
 public:
  TVM_DLL explicit PointerType(Type element_type, String storage_scope = "");
  TVM_DEFINE_REF(PointerType, Type, PointerTypeNode);
};

class TupleTypeNode : public TypeNode {
 public:
  Array<Type> fields;
  TVM_DECLARE_NODE(TupleTypeNode, TypeNode, "TupleType", Value(fields));
};
class TupleType : public Type {
 public:
  TVM_DLL explicit TupleType(Array<Type> fields);
  /*! \brief The type with no fields, which stands for "no value". */
  TVM_DLL static TupleType Empty();
  TVM_DEFINE_REF(TupleType, Type, TupleTypeNode);
};

inline Type VoidType() { return TupleType::Empty(); }
inline bool IsVoidType(const Type& type) {
  const auto* tuple = type.as<TupleTypeNode>();
  return tuple != nullptr && tuple->fields.empty();
}

/*! \brief What a type parameter stands for. */
enum class TypeKind : int { kType = 0, kShapeVar = 1, kBaseType = 2, kConstraint = 4 };

/*! \brief A type parameter; the variable of types that a FuncType binds. */
class TypeVarNode : public TypeNode {
 public:
  static constexpr bool kIsVariable = true;
  String name_hint;
  TypeKind kind = TypeKind::kType;
  TVM_DECLARE_NODE(TypeVarNode, TypeNode, "TypeVar", Ignore(name_hint), Value(kind));
};
class TypeVar : public Type {
 public:
  TVM_DLL TypeVar(String name_hint, TypeKind kind = TypeKind::kType);
  TVM_DEFINE_REF(TypeVar, Type, TypeVarNode);
};

/*! \brief From argument types to a result type, for every choice of the type parameters. */
class FuncTypeNode : public TypeNode {
 public:
  Array<TypeVar> type_params;
  Array<Type> arg_types;
  Type ret_type;
  TVM_DECLARE_NODE(FuncTypeNode, TypeNode, "FuncType", Bind(type_params), Value(arg_types),
                   Value(ret_type));
};
class FuncType : public Type {
 public:
  TVM_DLL FuncType(Array<Type> arg_types, Type ret_type, Array<TypeVar> type_params = {});
  TVM_DEFINE_REF(FuncType, Type, FuncTypeNode);
};

/*! \brief What graph expressions have before inference. */
class AnyTypeNode : public TypeNode {
 public:
  TVM_DECLARE_NODE(AnyTypeNode, TypeNode, "AnyType");
};
class AnyType : public Type {
 public:
  TVM_DLL static AnyType Make();
  TVM_DEFINE_REF(AnyType, Type, AnyTypeNode);
};

}  // namespace tvm

#endif  // TVM_IR_TYPE_H_
