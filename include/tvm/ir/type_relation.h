/*!
 * \file tvm/ir/type_relation.h
 * \brief Types that follow from others by a function.
 */
#ifndef TVM_IR_TYPE_RELATION_H_
#define TVM_IR_TYPE_RELATION_H_

#include <tvm/ir/attrs.h>
#include <tvm/ir/env_func.h>
#include <tvm/ir/type.h>

namespace tvm {

/*! \brief The last of `args` is what `func` gives for the first `num_inputs` and the attributes. */
class TypeRelationNode : public TypeConstraintNode {
 public:
  EnvFunc func;
  Array<Type> args;
  int num_inputs = 0;
  /*! \brief Attributes of the call that the function looks at; null if it looks at none. */
  Attrs attrs;
  TVM_DECLARE_NODE(TypeRelationNode, TypeConstraintNode, "TypeRelation", Value(func), Value(args),
                   Value(num_inputs), Maybe(attrs));
  TVM_NODE_ARGS(Value(func), Value(args), Value(num_inputs), Default(attrs));
};
class TypeRelation : public FromFields<TypeConstraint, TypeRelationNode> {
 public:
  TVM_DEFINE_NODE_REF(TypeRelation, TypeRelationNode);
};

}  // namespace tvm

#endif  // TVM_IR_TYPE_RELATION_H_
