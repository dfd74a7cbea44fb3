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
  /*! \brief A DataType, or its name, where a type is expected, is a PrimType. */
  TVM_DLL static std::optional<Type> FromAny(const Any& value);
  TVM_DEFINE_REF(Type, ObjectRef, TypeNode);
};

/*! \brief A scalar or vector of a low-level function. */
class PrimTypeNode : public TypeNode {
 public:
  DataType dtype;
  TVM_DECLARE_NODE(PrimTypeNode, TypeNode, "PrimType", Value(dtype));
};
class PrimType : public FromFields<Type, PrimTypeNode> {
 public:
  TVM_DEFINE_NODE_REF(PrimType, PrimTypeNode);
};

/*! \brief Address of elements of a type in a memory scope ("" is global). */
class PointerTypeNode : public TypeNode {
 public:
  Type element_type;
  String storage_scope;
  void Init();
  TVM_DECLARE_NODE(PointerTypeNode, TypeNode, "PointerType", Value(element_type),
                   Default(storage_scope));
};
class PointerType : public FromFields<Type, PointerTypeNode> {
 public:
  TVM_DEFINE_NODE_REF(PointerType, PointerTypeNode);
};

class TupleTypeNode : public TypeNode {
 public:
  Array<Type> fields;
  TVM_DECLARE_NODE(TupleTypeNode, TypeNode, "TupleType", Value(fields));
};
class TupleType : public FromFields<Type, TupleTypeNode> {
 public:
  /*! \brief The type with no fields, which stands for "no value". */
  TVM_DLL static TupleType Empty();
  TVM_DEFINE_NODE_REF(TupleType, TupleTypeNode);
};

inline Type VoidType() { return TupleType::Empty(); }
inline bool IsVoidType(const Type& type) {
  const auto* tuple = type.as<TupleTypeNode>();
  return tuple != nullptr && tuple->fields.empty();
}

/*! \brief What a type parameter stands for. */
enum class TypeKind : int {
  kType = 0,
  kShapeVar = 1,
  kBaseType = 2,
  kConstraint = 4,
  kAdtHandle = 5,
  kTypeData = 6
};

/*! \brief A type parameter; the variable of types that a FuncType binds. */
class TypeVarNode : public TypeNode {
 public:
  static constexpr bool kIsVariable = true;
  String name_hint;
  TypeKind kind = TypeKind::kType;
  TVM_DECLARE_NODE(TypeVarNode, TypeNode, "TypeVar", Ignore(name_hint), Value(kind));
  TVM_NODE_ARGS(Value(name_hint), Default(kind));
};
class TypeVar : public FromFields<Type, TypeVarNode> {
 public:
  TVM_DEFINE_NODE_REF(TypeVar, TypeVarNode);
};

/*! \brief What the type parameters of a function have to fulfil. */
class TypeConstraintNode : public TypeNode {
 public:
  TVM_DECLARE_ABSTRACT_NODE(TypeConstraintNode, TypeNode, "TypeConstraint");
};
class TypeConstraint : public Type {
 public:
  TVM_DEFINE_REF(TypeConstraint, Type, TypeConstraintNode);
};

/*! \brief From argument types to a result type, for every choice of the type parameters. */
class FuncTypeNode : public TypeNode {
 public:
  Array<TypeVar> type_params;
  Array<Type> arg_types;
  Type ret_type;
  Array<TypeConstraint> type_constraints;
  TVM_DECLARE_NODE(FuncTypeNode, TypeNode, "FuncType", Bind(type_params), Value(arg_types),
                   Value(ret_type), Default(type_constraints));
  TVM_NODE_ARGS(Value(arg_types), Value(ret_type), Default(type_params), Default(type_constraints));
};
class FuncType : public FromFields<Type, FuncTypeNode> {
 public:
  TVM_DEFINE_NODE_REF(FuncType, FuncTypeNode);
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
