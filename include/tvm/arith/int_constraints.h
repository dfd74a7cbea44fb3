/*!
 * \file tvm/arith/int_constraints.h
 * \brief Systems of constraints on integers, and changes of their variables.
 */
#ifndef TVM_ARITH_INT_CONSTRAINTS_H_
#define TVM_ARITH_INT_CONSTRAINTS_H_

#include <tvm/expr/var.h>
#include <tvm/ir/expr.h>
#include <tvm/node/node.h>

namespace tvm {
namespace arith {

/*! \brief Integers `variables` within `ranges` for which all `relations` hold. */
class IntConstraintsNode : public Object {
 public:
  Array<tir::Var> variables;
  /*! \brief Not every variable has one. */
  Map<tir::Var, Range> ranges;
  Array<PrimExpr> relations;
  void Init();
  TVM_DECLARE_NODE(IntConstraintsNode, Object, "arith.IntConstraints", Value(variables),
                   Value(ranges), Value(relations));
};
class IntConstraints : public FromFields<ObjectRef, IntConstraintsNode> {
 public:
  TVM_DEFINE_NODE_REF(IntConstraints, IntConstraintsNode);
};

/*! \brief Two systems, and how solutions of one are solutions of the other. */
class IntConstraintsTransformNode : public Object {
 public:
  IntConstraints src, dst;
  /*! \brief Variables of `src` in terms of those of `dst`. */
  Map<tir::Var, PrimExpr> src_to_dst;
  Map<tir::Var, PrimExpr> dst_to_src;
  TVM_DECLARE_NODE(IntConstraintsTransformNode, Object, "arith.IntConstraintsTransform", Value(src),
                   Value(dst), Value(src_to_dst), Value(dst_to_src));
};
class IntConstraintsTransform : public FromFields<ObjectRef, IntConstraintsTransformNode> {
 public:
  TVM_DEFINE_NODE_REF(IntConstraintsTransform, IntConstraintsTransformNode);
};

/*! \brief Bounds of one variable: lower and upper hold for `coef` times the variable. */
class IntGroupBoundsNode : public Object {
 public:
  PrimExpr coef;
  Array<PrimExpr> lower, equal, upper;
  TVM_DECLARE_NODE(IntGroupBoundsNode, Object, "arith.IntGroupBounds", Value(coef), Value(lower),
                   Value(equal), Value(upper));
};
class IntGroupBounds : public FromFields<ObjectRef, IntGroupBoundsNode> {
 public:
  TVM_DEFINE_NODE_REF(IntGroupBounds, IntGroupBoundsNode);
};

}  // namespace arith
}  // namespace tvm
#endif  // TVM_ARITH_INT_CONSTRAINTS_H_
