/*!
 * Text of graph functions, in the manner of a Python function whose block of bindings is a `with`
 * statement. Constants print as their shape and type.
 */
#include <tvm/ir/op.h>
#include <tvm/node/repr_printer.h>
#include <tvm/relax/expr.h>

#include <string>

namespace tvm {
namespace relax {
namespace {

template <typename T>
void PrintList(const Array<T>& items, ReprPrinter* p) {
  bool first = true;
  for (const T& item : items) {
    if (!first) p->stream << ", ";
    first = false;
    p->Print(item);
  }
}

/*! \brief Python writes the tuple of one element with a comma. */
template <typename T>
void PrintTuple(const Array<T>& items, ReprPrinter* p) {
  p->stream << "(";
  PrintList(items, p);
  p->stream << (items.size() == 1 ? ",)" : ")");
}

void PrintAnnotation(const RelayExpr& expr, ReprPrinter* p) {
  if (StructInfo info = GetStructInfo(expr); info.defined()) {
    p->stream << ": ";
    p->Print(info);
  }
}

void PrintCallee(const RelayExpr& op, ReprPrinter* p) {
  if (const auto* known = op.as<OpNode>()) {
    const std::string& name = known->name.str();
    const std::string prefix = "relax.";
    p->stream << (name.rfind(prefix, 0) == 0 ? "R." + name.substr(prefix.size()) : name);
  } else {
    p->Print(op);
  }
}

void PrintBlock(const BindingBlock& block, ReprPrinter* p) {
  const bool is_dataflow = block->IsInstance<DataflowBlockNode>();
  if (is_dataflow) {
    p->PrintIndent();
    p->stream << "with R.dataflow():\n";
    p->indent += 4;
  }
  Array<RelayExpr> outputs;
  for (const VarBinding& binding : block->bindings) {
    p->PrintIndent();
    p->Print(binding->var);
    PrintAnnotation(binding->var, p);
    p->stream << " = ";
    p->Print(binding->value);
    p->stream << "\n";
    if (!binding->var->IsInstance<DataflowVarNode>()) outputs.push_back(binding->var);
  }
  if (is_dataflow) {
    p->PrintIndent();
    p->stream << "R.output(";
    PrintList(outputs, p);
    p->stream << ")\n";
    p->indent -= 4;
  }
}

void PrintBody(const RelayExpr& body, ReprPrinter* p) {
  RelayExpr result = body;
  if (const auto* sequence = body.as<SeqExprNode>()) {
    for (const BindingBlock& block : sequence->blocks) PrintBlock(block, p);
    result = sequence->body;
  }
  p->PrintIndent();
  p->stream << "return ";
  p->Print(result);
}

}  // namespace

TVM_REGISTER_REPR(ObjectStructInfoNode,
                  [](const ObjectStructInfoNode*, ReprPrinter* p) { p->stream << "R.Object"; });
TVM_REGISTER_REPR(PrimStructInfoNode, [](const PrimStructInfoNode* n, ReprPrinter* p) {
  p->stream << "R.Prim(\"" << n->dtype << "\")";
});
TVM_REGISTER_REPR(ShapeStructInfoNode, [](const ShapeStructInfoNode* n, ReprPrinter* p) {
  p->stream << "R.Shape(";
  if (n->values) {
    p->stream << "[";
    PrintList(n->values.value(), p);
    p->stream << "]";
  } else {
    p->stream << "ndim=" << n->ndim;
  }
  p->stream << ")";
});
TVM_REGISTER_REPR(TensorStructInfoNode, [](const TensorStructInfoNode* n, ReprPrinter* p) {
  p->stream << "R.Tensor(";
  if (n->shape) {
    PrintTuple(Downcast<ShapeExpr>(n->shape.value())->values, p);
  } else {
    p->stream << "ndim=" << n->ndim;
  }
  p->stream << ", dtype=\"" << n->dtype << "\")";
});
TVM_REGISTER_REPR(TupleStructInfoNode, [](const TupleStructInfoNode* n, ReprPrinter* p) {
  p->stream << "R.Tuple(";
  PrintList(n->fields, p);
  p->stream << ")";
});

TVM_REGISTER_REPR(VarNode, [](const VarNode* n, ReprPrinter* p) { p->stream << n->name_hint; });
TVM_REGISTER_REPR(ConstantNode, [](const ConstantNode* n, ReprPrinter* p) {
  p->stream << "R.const(";
  p->Print(n->struct_info_);
  p->stream << ")";
});
TVM_REGISTER_REPR(ShapeExprNode, [](const ShapeExprNode* n, ReprPrinter* p) {
  p->stream << "R.shape([";
  PrintList(n->values, p);
  p->stream << "])";
});
TVM_REGISTER_REPR(ExternFuncNode, [](const ExternFuncNode* n, ReprPrinter* p) {
  p->stream << "\"" << n->global_symbol << "\"";
});
TVM_REGISTER_REPR(TupleNode, [](const TupleNode* n, ReprPrinter* p) { PrintTuple(n->fields, p); });
TVM_REGISTER_REPR(TupleGetItemNode, [](const TupleGetItemNode* n, ReprPrinter* p) {
  p->Print(n->tuple_value);
  p->stream << "[" << n->index << "]";
});
TVM_REGISTER_REPR(CallNode, [](const CallNode* n, ReprPrinter* p) {
  PrintCallee(n->op, p);
  p->stream << "(";
  PrintList(n->args, p);
  bool first = n->args.empty();
  for (const auto& [key, value] : n->attrs->dict) {
    if (!first) p->stream << ", ";
    first = false;
    p->stream << key << "=";
    p->Print(value);
  }
  if (!n->sinfo_args.empty()) {
    p->stream << (first ? "" : ", ") << "out_sinfo=";
    PrintTuple(n->sinfo_args, p);
  }
  p->stream << ")";
});
TVM_REGISTER_REPR(VarBindingNode, [](const VarBindingNode* n, ReprPrinter* p) {
  p->Print(n->var);
  PrintAnnotation(n->var, p);
  p->stream << " = ";
  p->Print(n->value);
});
TVM_REGISTER_REPR(BindingBlockNode, [](const BindingBlockNode* n, ReprPrinter* p) {
  PrintBlock(GetRef<BindingBlock>(n), p);
});
TVM_REGISTER_REPR(SeqExprNode,
                  [](const SeqExprNode* n, ReprPrinter* p) { PrintBody(GetRef<SeqExpr>(n), p); });
TVM_REGISTER_REPR(FunctionNode, [](const FunctionNode* n, ReprPrinter* p) {
  p->stream << "@R.function\n";
  p->PrintIndent();
  p->stream << "def " << n->attrs.GetAttr<String>(attr::kGlobalSymbol, "main") << "(";
  bool first = true;
  for (const Var& param : n->params) {
    if (!first) p->stream << ", ";
    first = false;
    p->Print(param);
    PrintAnnotation(param, p);
  }
  p->stream << ")";
  if (n->ret_struct_info.defined()) {
    p->stream << " -> ";
    p->Print(n->ret_struct_info);
  }
  p->stream << ":\n";
  p->indent += 4;
  PrintBody(n->body, p);
  p->indent -= 4;
});

}  // namespace relax
}  // namespace tvm
