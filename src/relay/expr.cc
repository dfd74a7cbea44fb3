/*!
 * \file src/relay/expr.cc
 * \brief Registers the expressions and types of relay.
 */
#include <tvm/ir/type_repr.h>
#include <tvm/node/repr_printer.h>
#include <tvm/relay/expr.h>
#include <tvm/runtime/registry.h>

namespace tvm {
namespace relay {

TVM_REGISTER_NODE(AnyNode);
TVM_REGISTER_NODE(IncompleteTypeNode, "relay.IncompleteType");
TVM_REGISTER_NODE(RefTypeNode, "relay.RefType");
TVM_REGISTER_NODE(ExprNode);
TVM_REGISTER_NODE(VarNode, "relay.Var");
TVM_REGISTER_NODE(ConstantNode, "relay.Constant");
TVM_REGISTER_NODE(CallNode, "relay.Call");
TVM_REGISTER_NODE(TupleNode, "relay.Tuple");
TVM_REGISTER_NODE(TupleGetItemNode, "relay.TupleGetItem");
TVM_REGISTER_NODE(LetNode, "relay.Let");
TVM_REGISTER_NODE(IfNode, "relay.If");
TVM_REGISTER_NODE(RefCreateNode, "relay.RefCreate");
TVM_REGISTER_NODE(RefReadNode, "relay.RefRead");
TVM_REGISTER_NODE(RefWriteNode, "relay.RefWrite");
TVM_REGISTER_NODE(FunctionNode, "relay.Function");
TVM_REGISTER_NODE(PatternNode);
TVM_REGISTER_NODE(PatternWildcardNode);
TVM_REGISTER_NODE(PatternVarNode, "relay.PatternVar");
TVM_REGISTER_NODE(PatternConstructorNode, "relay.PatternConstructor");
TVM_REGISTER_NODE(PatternTupleNode, "relay.PatternTuple");
TVM_REGISTER_NODE(ClauseNode, "relay.Clause");
TVM_REGISTER_NODE(MatchNode, "relay.Match");

Any Any::Make() {
  auto node = make_object<AnyNode>();
  node->Init();
  return Any(ObjectPtr<Object>(std::move(node)));
}
TVM_REGISTER_GLOBAL("tir.Any").set_body_typed(&Any::Make);

PatternWildcard PatternWildcard::Make() {
  return PatternWildcard(ObjectPtr<Object>(make_object<PatternWildcardNode>()));
}
TVM_REGISTER_GLOBAL("relay.PatternWildcard").set_body_typed(&PatternWildcard::Make);

/*! \brief Prints a program with the printer of the text format, which Python has. */
void PrintProgram(const Object* node, ReprPrinter* p) {
  const runtime::PackedFunc* print = runtime::Registry::Get("relay.ir.AsText");
  if (print == nullptr) {
    p->stream << node->GetTypeKey();
    return;
  }
  p->stream << (*print)(GetRef<ObjectRef>(node), false, nullptr).cast<String>();
}

TVM_REGISTER_REPR(VarNode, &PrintProgram);
TVM_REGISTER_REPR(ConstantNode, &PrintProgram);
TVM_REGISTER_REPR(CallNode, &PrintProgram);
TVM_REGISTER_REPR(TupleNode, &PrintProgram);
TVM_REGISTER_REPR(TupleGetItemNode, &PrintProgram);
TVM_REGISTER_REPR(LetNode, &PrintProgram);
TVM_REGISTER_REPR(IfNode, &PrintProgram);
TVM_REGISTER_REPR(RefCreateNode, &PrintProgram);
TVM_REGISTER_REPR(RefReadNode, &PrintProgram);
TVM_REGISTER_REPR(RefWriteNode, &PrintProgram);
TVM_REGISTER_REPR(FunctionNode, &PrintProgram);
TVM_REGISTER_REPR(MatchNode, &PrintProgram);
TVM_REGISTER_REPR(ClauseNode, &PrintProgram);
TVM_REGISTER_REPR(PatternVarNode, &PrintProgram);
TVM_REGISTER_REPR(PatternWildcardNode, &PrintProgram);
TVM_REGISTER_REPR(PatternConstructorNode, &PrintProgram);
TVM_REGISTER_REPR(PatternTupleNode, &PrintProgram);
TVM_REGISTER_REPR(RefTypeNode, [](const RefTypeNode* node, ReprPrinter* p) {
  p->stream << "I.RelayRef(";
  PrintInnerType(node->value, p);
  p->stream << ')';
});
TVM_REGISTER_REPR(IncompleteTypeNode, [](const IncompleteTypeNode*, ReprPrinter* p) {
  p->stream << "I.IncompleteType()";
});
TVM_REGISTER_REPR(AnyNode, [](const AnyNode*, ReprPrinter* p) { p->stream << "?"; });

// Only caches of inference change: expressions are built before their types are known.
TVM_REGISTER_GLOBAL("relay.SetCheckedType")
    .set_body_typed([](const RelayExpr& expr, const Type& type) { expr->checked_type_ = type; });

// Devices are planned for the expressions that there are, like types.
TVM_REGISTER_GLOBAL("relay.SetVirtualDevice")
    .set_body_typed([](const RelayExpr& expr, const ObjectRef& device) {
      if (const auto* function = expr.as<FunctionNode>()) {
        function->known_device_ = device;
      } else {
        const auto* node = expr.as<ExprNode>();
        TVM_CHECK(node != nullptr, TypeError)
            << expr->GetTypeKey() << ": has no value that lives anywhere";
        node->known_device_ = device;
      }
    });

}  // namespace relay
}  // namespace tvm
