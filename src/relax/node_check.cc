/*!
 * \file src/relax/node_check.cc
 * \brief Graphs that are put together field by field have all their parts.
 */
#include <tvm/relax/expr.h>
#include <tvm/relax/struct_info.h>

namespace tvm {
namespace relax {
namespace {

void ExpectDefined(const char* what, const ObjectRef& part) {
  TVM_CHECK(part.defined(), ValueError) << what << " is missing";
}

template <typename T>
void ExpectAllDefined(const char* what, const Array<T>& parts) {
  for (const T& part : parts) ExpectDefined(what, part);
}

}  // namespace

TVM_REGISTER_NODE_CHECK(ConstantNode, [](const ConstantNode* node) {
  ExpectDefined("relax.Constant: the tensor", node->data);
});
TVM_REGISTER_NODE_CHECK(ShapeExprNode, [](const ShapeExprNode* node) {
  ExpectAllDefined("relax.ShapeExpr: an extent", node->values);
});
TVM_REGISTER_NODE_CHECK(CallNode, [](const CallNode* node) {
  ExpectDefined("relax.Call: the callee", node->op);
  ExpectAllDefined("relax.Call: an argument", node->args);
  ExpectDefined("relax.Call: the table of attributes", node->attrs);
  ExpectAllDefined("relax.Call: a type of a result", node->sinfo_args);
});
TVM_REGISTER_NODE_CHECK(TupleNode, [](const TupleNode* node) {
  ExpectAllDefined("relax.Tuple: a field", node->fields);
});
TVM_REGISTER_NODE_CHECK(TupleGetItemNode, [](const TupleGetItemNode* node) {
  ExpectDefined("relax.TupleGetItem: the tuple", node->tuple_value);
  TupleGetItem(node->tuple_value, node->index);
});
TVM_REGISTER_NODE_CHECK(VarBindingNode, [](const VarBindingNode* node) {
  ExpectDefined("relax.VarBinding: the variable", node->var);
  ExpectDefined("relax.VarBinding: the value", node->value);
});
TVM_REGISTER_NODE_CHECK(BindingBlockNode, [](const BindingBlockNode* node) {
  ExpectAllDefined("relax.BindingBlock: a binding", node->bindings);
});
TVM_REGISTER_NODE_CHECK(DataflowBlockNode, [](const DataflowBlockNode* node) {
  ExpectAllDefined("relax.DataflowBlock: a binding", node->bindings);
});
TVM_REGISTER_NODE_CHECK(SeqExprNode, [](const SeqExprNode* node) {
  ExpectAllDefined("relax.SeqExpr: a block", node->blocks);
  ExpectDefined("relax.SeqExpr: the result", node->body);
});
TVM_REGISTER_NODE_CHECK(FunctionNode, [](const FunctionNode* node) {
  ExpectAllDefined("relax.Function: a parameter", node->params);
  ExpectDefined("relax.Function: the body", node->body);
});
TVM_REGISTER_NODE_CHECK(ShapeStructInfoNode, [](const ShapeStructInfoNode* node) {
  int known = node->values.defined() ? static_cast<int>(node->values.value().size()) : node->ndim;
  TVM_CHECK(node->ndim >= -1 && known == node->ndim, ValueError)
      << "relax.ShapeStructInfo: " << node->ndim << " axes, but " << known << " extents";
});
TVM_REGISTER_NODE_CHECK(TensorStructInfoNode, [](const TensorStructInfoNode* node) {
  TVM_CHECK(node->ndim >= -1, ValueError)
      << "relax.TensorStructInfo: ndim is a rank or -1, got " << node->ndim;
  if (!node->shape.defined()) return;
  const auto* literal = node->shape.value().as<ShapeExprNode>();
  TVM_CHECK(literal != nullptr && static_cast<int>(literal->values.size()) == node->ndim,
            ValueError)
      << "relax.TensorStructInfo: the shape does not have " << node->ndim << " axes";
});
TVM_REGISTER_NODE_CHECK(TupleStructInfoNode, [](const TupleStructInfoNode* node) {
  ExpectAllDefined("relax.TupleStructInfo: a field", node->fields);
});

}  // namespace relax
}  // namespace tvm
