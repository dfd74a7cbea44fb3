/*!
 * \file arith/int_constraints.cc
 * \brief Nodes for systems of constraints on integers.
 */
#include <tvm/arith/int_constraints.h>
#include <tvm/expr/op.h>
#include <tvm/node/repr_printer.h>

namespace tvm {
namespace arith {

TVM_REGISTER_NODE(IntConstraintsNode);
TVM_REGISTER_NODE(IntConstraintsTransformNode);
TVM_REGISTER_NODE(IntGroupBoundsNode);

TVM_REGISTER_REPR(IntConstraintsNode, [](const IntConstraintsNode* node, ReprPrinter* p) {
  p->stream << "IntConstraints(" << node->variables << ", " << node->ranges << ", "
            << node->relations << ')';
});

TVM_REGISTER_REPR(IntConstraintsTransformNode,
                  [](const IntConstraintsTransformNode* node, ReprPrinter* p) {
                    p->stream << "IntConstraintsTransform(\n\t" << node->src << "\n\t" << node->dst
                              << "\n\t" << node->src_to_dst << "\n\t" << node->dst_to_src << "\n)";
                  });

TVM_REGISTER_REPR(IntGroupBoundsNode, [](const IntGroupBoundsNode* node, ReprPrinter* p) {
  p->stream << "IntGroupBounds(coef=" << node->coef << ", lower=" << node->lower
            << ", equal=" << node->equal << ", upper=" << node->upper << ')';
});

void IntConstraintsNode::Init() {
  for (const PrimExpr& relation : relations) {
    TVM_CHECK(relation.dtype().is_bool(), ValueError)
        << "IntConstraints: relations are conditions, got " << relation;
  }
}

}  // namespace arith
}  // namespace tvm
