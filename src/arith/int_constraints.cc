/*!
 * \file arith/int_constraints.cc
 * \brief Nodes for systems of constraints on integers.
 */
#include <tvm/arith/int_constraints.h>
#include <tvm/expr/op.h>

namespace tvm {
namespace arith {

TVM_REGISTER_NODE(IntConstraintsNode);
TVM_REGISTER_NODE(IntConstraintsTransformNode);
TVM_REGISTER_NODE(IntGroupBoundsNode);

void IntConstraintsNode::Init() {
  for (const PrimExpr& relation : relations) {
    TVM_CHECK(relation.dtype().is_bool(), ValueError)
        << "IntConstraints: relations are conditions, got " << relation;
  }
}

}  // namespace arith
}  // namespace tvm
