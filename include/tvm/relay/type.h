/*!
 * \file tvm/relay/type.h
 * \brief Types of relay that are not found in graphs of tensors alone.
 */
#ifndef TVM_RELAY_TYPE_H_
#define TVM_RELAY_TYPE_H_

#include <tvm/ir/tensor_type.h>

namespace tvm {
namespace relay {

/*! \brief An extent that is known when the program runs. */
class AnyNode : public PrimExprNode {
 public:
  void Init() { dtype = DataType::Int(32); }
  TVM_DECLARE_NODE(AnyNode, PrimExprNode, "tir.Any");
};
class Any : public PrimExpr {
 public:
  TVM_DLL static Any Make();
  TVM_DEFINE_REF(Any, PrimExpr, AnyNode);
};

/*! \brief A type that inference has to find. */
class IncompleteTypeNode : public TypeNode {
 public:
  TypeKind kind = TypeKind::kType;
  TVM_DECLARE_NODE(IncompleteTypeNode, TypeNode, "relay.IncompleteType", Default(kind));
};
class IncompleteType : public FromFields<Type, IncompleteTypeNode> {
 public:
  TVM_DEFINE_NODE_REF(IncompleteType, IncompleteTypeNode);
};

/*! \brief A cell that holds a value and can be written. */
class RefTypeNode : public TypeNode {
 public:
  Type value;
  TVM_DECLARE_NODE(RefTypeNode, TypeNode, "relay.RefType", Value(value));
};
class RefType : public FromFields<Type, RefTypeNode> {
 public:
  TVM_DEFINE_NODE_REF(RefType, RefTypeNode);
};

}  // namespace relay
}  // namespace tvm

#endif  // TVM_RELAY_TYPE_H_
