/*!
 * \file tvm/relay/expr.h
 * \brief Expressions of relay: calls may be nested, shared, and bound by let.
 *
 * They are what users build, print and rewrite; what runs is the relax graph they are translated
 * to.
 */
#ifndef TVM_RELAY_EXPR_H_
#define TVM_RELAY_EXPR_H_

#include <tvm/ir/adt.h>
#include <tvm/ir/function.h>
#include <tvm/relay/type.h>
#include <tvm/runtime/ndarray.h>

namespace tvm {
namespace relay {

using Expr = RelayExpr;

/*! \brief An expression, and where its value lives once devices are planned. */
class ExprNode : public RelayExprNode {
 public:
  /*! \brief A VirtualDevice; null while nothing says where the value lives. */
  mutable ObjectRef known_device_;
  TVM_DECLARE_ABSTRACT_NODE(ExprNode, RelayExprNode, "relay.Expr", Ignore(known_device_));
};

/*! \brief A variable, known by identity. */
class VarNode : public ExprNode {
 public:
  static constexpr bool kIsVariable = true;
  String name_hint;
  /*! \brief What the program says of its type; null if that is left to inference. */
  Type type_annotation;
  TVM_DECLARE_NODE(VarNode, ExprNode, "relay.Var", Ignore(name_hint), Maybe(type_annotation));
  TVM_NODE_ARGS(Value(name_hint), Default(type_annotation));
};
class Var : public FromFields<Expr, VarNode> {
 public:
  TVM_DEFINE_NODE_REF(Var, VarNode);
};

/*! \brief A tensor known when the program is built. */
class ConstantNode : public ExprNode {
 public:
  runtime::NDArray data;
  TVM_DECLARE_NODE(ConstantNode, ExprNode, "relay.Constant", Value(data));
};
class Constant : public FromFields<Expr, ConstantNode> {
 public:
  TVM_DEFINE_NODE_REF(Constant, ConstantNode);
};

/*! \brief Calls an operator, a function, or a value that is one. */
class CallNode : public ExprNode {
 public:
  RelayExpr op;
  Array<RelayExpr> args;
  /*! \brief Settings of an operator; null where there are none. */
  DictAttrs attrs;
  /*! \brief Types of the operands, as inference found them, or the arguments of a generic function.
   */
  Array<Type> type_args;
  TVM_DECLARE_NODE(CallNode, ExprNode, "relay.Call", Value(op), Value(args), Maybe(attrs),
                   Ignore(type_args));
  TVM_NODE_ARGS(Value(op), Value(args), Default(attrs), Default(type_args));
};
class Call : public FromFields<Expr, CallNode> {
 public:
  TVM_DEFINE_NODE_REF(Call, CallNode);
};

/*! \brief Several values as one. */
class TupleNode : public ExprNode {
 public:
  Array<RelayExpr> fields;
  TVM_DECLARE_NODE(TupleNode, ExprNode, "relay.Tuple", Value(fields));
};
class Tuple : public FromFields<Expr, TupleNode> {
 public:
  TVM_DEFINE_NODE_REF(Tuple, TupleNode);
};

/*! \brief One field of a tuple. */
class TupleGetItemNode : public ExprNode {
 public:
  RelayExpr tuple_value;
  int index = 0;
  TVM_DECLARE_NODE(TupleGetItemNode, ExprNode, "relay.TupleGetItem", Value(tuple_value),
                   Value(index));
};
class TupleGetItem : public FromFields<Expr, TupleGetItemNode> {
 public:
  TVM_DEFINE_NODE_REF(TupleGetItem, TupleGetItemNode);
};

/*! \brief Gives a value a name in `body`. A function may call itself by it. */
class LetNode : public ExprNode {
 public:
  Var var;
  RelayExpr value;
  RelayExpr body;
  TVM_DECLARE_NODE(LetNode, ExprNode, "relay.Let", Bind(var), Value(value), Value(body));
};
class Let : public FromFields<Expr, LetNode> {
 public:
  TVM_DEFINE_NODE_REF(Let, LetNode);
};

/*! \brief The value of the branch that a boolean scalar chooses. */
class IfNode : public ExprNode {
 public:
  RelayExpr cond;
  RelayExpr true_branch;
  RelayExpr false_branch;
  TVM_DECLARE_NODE(IfNode, ExprNode, "relay.If", Value(cond), Value(true_branch),
                   Value(false_branch));
};
class If : public FromFields<Expr, IfNode> {
 public:
  TVM_DEFINE_NODE_REF(If, IfNode);
};

/*! \brief A new cell that holds a value. */
class RefCreateNode : public ExprNode {
 public:
  RelayExpr value;
  TVM_DECLARE_NODE(RefCreateNode, ExprNode, "relay.RefCreate", Value(value));
};
class RefCreate : public FromFields<Expr, RefCreateNode> {
 public:
  TVM_DEFINE_NODE_REF(RefCreate, RefCreateNode);
};

/*! \brief The value that a cell holds. */
class RefReadNode : public ExprNode {
 public:
  RelayExpr ref;
  TVM_DECLARE_NODE(RefReadNode, ExprNode, "relay.RefRead", Value(ref));
};
class RefRead : public FromFields<Expr, RefReadNode> {
 public:
  TVM_DEFINE_NODE_REF(RefRead, RefReadNode);
};

/*! \brief Puts a value into a cell; its own value is the empty tuple. */
class RefWriteNode : public ExprNode {
 public:
  RelayExpr ref;
  RelayExpr value;
  TVM_DECLARE_NODE(RefWriteNode, ExprNode, "relay.RefWrite", Value(ref), Value(value));
};
class RefWrite : public FromFields<Expr, RefWriteNode> {
 public:
  TVM_DEFINE_NODE_REF(RefWrite, RefWriteNode);
};

/*! \brief What a value may look like, with names for its parts. */
class PatternNode : public Object {
 public:
  mutable Span span;
  TVM_DECLARE_ABSTRACT_NODE(PatternNode, Object, "relay.Pattern", Ignore(span));
};
class Pattern : public ObjectRef {
 public:
  TVM_DEFINE_REF(Pattern, ObjectRef, PatternNode);
};

/*! \brief Any value. */
class PatternWildcardNode : public PatternNode {
 public:
  TVM_DECLARE_NODE(PatternWildcardNode, PatternNode, "relay.PatternWildcard");
};
class PatternWildcard : public Pattern {
 public:
  TVM_DLL static PatternWildcard Make();
  TVM_DEFINE_REF(PatternWildcard, Pattern, PatternWildcardNode);
};

/*! \brief Any value, which the variable then is. */
class PatternVarNode : public PatternNode {
 public:
  Var var;
  TVM_DECLARE_NODE(PatternVarNode, PatternNode, "relay.PatternVar", Bind(var));
};
class PatternVar : public FromFields<Pattern, PatternVarNode> {
 public:
  TVM_DEFINE_NODE_REF(PatternVar, PatternVarNode);
};

/*! \brief A value of one constructor whose parts match. */
class PatternConstructorNode : public PatternNode {
 public:
  Constructor constructor;
  Array<Pattern> patterns;
  TVM_DECLARE_NODE(PatternConstructorNode, PatternNode, "relay.PatternConstructor",
                   Value(constructor), Value(patterns));
};
class PatternConstructor : public FromFields<Pattern, PatternConstructorNode> {
 public:
  TVM_DEFINE_NODE_REF(PatternConstructor, PatternConstructorNode);
};

/*! \brief A tuple whose fields match. */
class PatternTupleNode : public PatternNode {
 public:
  Array<Pattern> patterns;
  TVM_DECLARE_NODE(PatternTupleNode, PatternNode, "relay.PatternTuple", Value(patterns));
};
class PatternTuple : public FromFields<Pattern, PatternTupleNode> {
 public:
  TVM_DEFINE_NODE_REF(PatternTuple, PatternTupleNode);
};

/*! \brief A pattern and what a match is where it fits. */
class ClauseNode : public Object {
 public:
  Pattern lhs;
  RelayExpr rhs;
  TVM_DECLARE_NODE(ClauseNode, Object, "relay.Clause", Value(lhs), Value(rhs));
};
class Clause : public FromFields<ObjectRef, ClauseNode> {
 public:
  TVM_DEFINE_NODE_REF(Clause, ClauseNode);
};

/*! \brief The value of the first clause that fits. */
class MatchNode : public ExprNode {
 public:
  RelayExpr data;
  Array<Clause> clauses;
  /*! \brief Whether the program says that one of the clauses always fits. */
  bool complete = true;
  TVM_DECLARE_NODE(MatchNode, ExprNode, "relay.Match", Value(data), Value(clauses),
                   Default(complete));
};
class Match : public FromFields<Expr, MatchNode> {
 public:
  TVM_DEFINE_NODE_REF(Match, MatchNode);
};

/*! \brief A function. The attribute "Primitive" marks one that becomes a single kernel. */
class FunctionNode : public BaseFuncNode {
 public:
  Array<Var> params;
  RelayExpr body;
  /*! \brief What the program says of its result; null if that is left to inference. */
  Type ret_type;
  Array<TypeVar> type_params;
  /*! \brief Where its result lives, as ExprNode has it. */
  mutable ObjectRef known_device_;
  void Init() {
    if (!attrs.defined()) attrs = DictAttrs(Map<String, runtime::Any>());
  }
  TVM_DECLARE_NODE(FunctionNode, BaseFuncNode, "relay.Function", Bind(type_params), Bind(params),
                   Value(body), Maybe(ret_type), Ignore(known_device_));
  TVM_NODE_ARGS(Value(params), Value(body), Default(ret_type), Default(type_params),
                Default(attrs));
};
class Function : public FromFields<BaseFunc, FunctionNode> {
 public:
  TVM_DEFINE_NODE_REF(Function, FunctionNode);
};

}  // namespace relay
}  // namespace tvm

#endif  // TVM_RELAY_EXPR_H_
