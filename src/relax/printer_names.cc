/*!
 * \file src/relax/printer_names.cc
 * \brief What the text of a graph function has to introduce, and the registered printers.
 */
#include <tvm/node/repr_printer.h>
#include <tvm/tir/stmt_functor.h>

#include "printer.h"

namespace tvm {
namespace relax {

namespace {

class Collector {
 public:
  Collector(std::vector<tir::Var>* extents, bool* calls_module)
      : extents_(extents), calls_module_(calls_module) {}

  void Visit(const PrimExpr& extent) {
    tir::PostOrderVisit(extent, [this](const ObjectRef& node) {
      const auto* var = node.as<tir::VarNode>();
      if (var != nullptr && seen_.insert(var).second) extents_->push_back(GetRef<tir::Var>(var));
    });
  }
  /*! \brief A setting of a call. */
  void Visit(const Any& value) {
    if (!value.is_object()) return;
    const Object* node = value.object();
    if (node->IsInstance<PrimExprNode>()) {
      Visit(GetRef<PrimExpr>(static_cast<const PrimExprNode*>(node)));
    } else if (node->IsInstance<ArrayNode>()) {
      VisitAll(GetRef<Array<Any>>(static_cast<const ArrayNode*>(node)));
    } else if (node->IsInstance<MapNode>()) {
      for (const auto& [key, item] : static_cast<const MapNode*>(node)->entries()) Visit(item);
    }
  }
  void Visit(const StructInfo& info) {
    if (const auto* tensor = info.as<TensorStructInfoNode>()) {
      if (tensor->shape) VisitAll(Downcast<ShapeExpr>(tensor->shape.value())->values);
    } else if (const auto* parts = info.as<distributed::DTensorStructInfoNode>()) {
      Visit(parts->tensor_sinfo);
    } else if (const auto* shape = info.as<ShapeStructInfoNode>()) {
      if (shape->values) VisitAll(shape->values.value());
    } else if (const auto* tuple = info.as<TupleStructInfoNode>()) {
      VisitAll(tuple->fields);
    } else if (const auto* scalar = info.as<PrimStructInfoNode>()) {
      if (scalar->value) Visit(scalar->value.value());
    } else if (const auto* func = info.as<FuncStructInfoNode>()) {
      if (!func->params) return;
      VisitAll(func->params.value());
      Visit(func->ret);
    }
  }
  void Visit(const RelayExpr& expr) {
    if (expr.as<GlobalVarNode>() != nullptr) *calls_module_ = true;
    if (const auto* shape = expr.as<ShapeExprNode>()) VisitAll(shape->values);
    if (const auto* scalar = expr.as<PrimValueNode>()) Visit(scalar->value);
    if (const auto* branch = expr.as<IfNode>()) {
      Visit(branch->true_branch);
      Visit(branch->false_branch);
    }
    if (const auto* func = expr.as<FunctionNode>()) {
      for (const Var& param : func->params) Visit(GetStructInfo(param));
      Visit(func->ret_struct_info);
      Visit(func->body);
    }
    if (const auto* tuple = expr.as<TupleNode>()) VisitAll(tuple->fields);
    if (const auto* field = expr.as<TupleGetItemNode>()) Visit(field->tuple_value);
    if (const auto* call = expr.as<CallNode>()) {
      Visit(call->op);
      VisitAll(call->args);
      VisitAll(call->sinfo_args);
      if (call->attrs.defined()) Visit(Any(call->attrs->dict));
    }
    if (const auto* sequence = expr.as<SeqExprNode>()) {
      for (const BindingBlock& block : sequence->blocks) {
        for (const Binding& binding : block->bindings) {
          Visit(GetStructInfo(binding.var()));
          Visit(binding->value);
        }
      }
      Visit(sequence->body);
    }
  }

 private:
  template <typename T>
  void VisitAll(const Array<T>& items) {
    for (const T& item : items) Visit(item);
  }

  std::vector<tir::Var>* extents_;
  bool* calls_module_;
  std::unordered_set<const Object*> seen_;
};

}  // namespace

void CollectNames(const FunctionNode* func, std::vector<tir::Var>* extents, bool* calls_module) {
  Collector collector(extents, calls_module);
  for (const Var& param : func->params) collector.Visit(GetStructInfo(param));
  collector.Visit(func->ret_struct_info);
  collector.Visit(func->body);
}

TVM_REGISTER_REPR(StructInfoNode, [](const StructInfoNode* node, ReprPrinter* p) {
  RelaxPrinter(p->stream).PrintPart(GetRef<StructInfo>(node));
});
template <typename Node>
void PrintExpr(const Node* node, ReprPrinter* p) {
  RelaxPrinter(p->stream, p->indent).PrintPart(GetRef<RelayExpr>(node));
}
TVM_REGISTER_REPR(VarNode, &PrintExpr<VarNode>);
TVM_REGISTER_REPR(ConstantNode, &PrintExpr<ConstantNode>);
TVM_REGISTER_REPR(ShapeExprNode, &PrintExpr<ShapeExprNode>);
TVM_REGISTER_REPR(PrimValueNode, &PrintExpr<PrimValueNode>);
TVM_REGISTER_REPR(StringImmNode, &PrintExpr<StringImmNode>);
TVM_REGISTER_REPR(DataTypeImmNode, &PrintExpr<DataTypeImmNode>);
TVM_REGISTER_REPR(CallNode, &PrintExpr<CallNode>);
TVM_REGISTER_REPR(ExternFuncNode, &PrintExpr<ExternFuncNode>);
TVM_REGISTER_REPR(TupleNode, &PrintExpr<TupleNode>);
TVM_REGISTER_REPR(TupleGetItemNode, &PrintExpr<TupleGetItemNode>);
TVM_REGISTER_REPR(SeqExprNode, &PrintExpr<SeqExprNode>);
TVM_REGISTER_REPR(IfNode, &PrintExpr<IfNode>);
TVM_REGISTER_REPR(BindingNode, [](const BindingNode* node, ReprPrinter* p) {
  RelaxPrinter(p->stream).PrintPart(GetRef<Binding>(node));
});
TVM_REGISTER_REPR(BindingBlockNode, [](const BindingBlockNode* node, ReprPrinter* p) {
  RelaxPrinter(p->stream, p->indent).PrintPart(GetRef<BindingBlock>(node));
});
TVM_REGISTER_REPR(FunctionNode, [](const FunctionNode* node, ReprPrinter* p) {
  RelaxPrinter(p->stream, p->indent).Print(node);
});

}  // namespace relax
}  // namespace tvm
