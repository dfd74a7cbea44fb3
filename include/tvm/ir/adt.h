/*!
 * \file tvm/ir/adt.h
 * \brief Types that a module defines by the ways of making their values.
 */
#ifndef TVM_IR_ADT_H_
#define TVM_IR_ADT_H_

#include <tvm/ir/expr.h>

namespace tvm {

/*! \brief The name of a type that a module defines; equal names of one kind are one type. */
class GlobalTypeVarNode : public TypeNode {
 public:
  String name_hint;
  TypeKind kind = kDefined;
  TVM_DECLARE_NODE(GlobalTypeVarNode, TypeNode, "GlobalTypeVar", Value(name_hint), Default(kind));

  /*! \brief The kind of types that modules define. */
  static constexpr TypeKind kDefined = TypeKind::kAdtHandle;
};
class GlobalTypeVar : public FromFields<Type, GlobalTypeVarNode> {
 public:
  TVM_DEFINE_NODE_REF(GlobalTypeVar, GlobalTypeVarNode);
};

/*! \brief A generic type applied to arguments, such as a list of integers. */
class TypeCallNode : public TypeNode {
 public:
  Type func;
  Array<Type> args;
  TVM_DECLARE_NODE(TypeCallNode, TypeNode, "TypeCall", Value(func), Value(args));
};
class TypeCall : public FromFields<Type, TypeCallNode> {
 public:
  TVM_DEFINE_NODE_REF(TypeCall, TypeCallNode);
};

/*! \brief One way of making values of a defined type: a name and the types of what is kept. */
class ConstructorNode : public RelayExprNode {
 public:
  String name_hint;
  Array<Type> inputs;
  GlobalTypeVar belong_to;
  /*! \brief What marks its values when programs run; given when a module takes the type. */
  mutable int tag = -1;
  TVM_DECLARE_NODE(ConstructorNode, RelayExprNode, "relay.Constructor", Value(name_hint),
                   Value(inputs), Value(belong_to), Ignore(tag));
};
class Constructor : public FromFields<RelayExpr, ConstructorNode> {
 public:
  TVM_DEFINE_NODE_REF(Constructor, ConstructorNode);
};

/*! \brief The definition of a type: its parameters and its constructors. */
class TypeDataNode : public TypeNode {
 public:
  GlobalTypeVar header;
  Array<TypeVar> type_vars;
  Array<Constructor> constructors;
  TVM_DECLARE_NODE(TypeDataNode, TypeNode, "relay.TypeData", Value(header), Bind(type_vars),
                   Value(constructors));
};
class TypeData : public FromFields<Type, TypeDataNode> {
 public:
  TVM_DEFINE_NODE_REF(TypeData, TypeDataNode);
};

}  // namespace tvm

#endif  // TVM_IR_ADT_H_
