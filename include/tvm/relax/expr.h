/*!
 * \file tvm/relax/expr.h
 * \brief Graph expressions: values, calls, and functions made of blocks of bindings.
 *
 * A function is in administrative normal form: every argument of a call is a variable, a constant,
 * a shape or a global name, and every intermediate value is bound to a variable.
 */
#ifndef TVM_RELAX_EXPR_H_
#define TVM_RELAX_EXPR_H_

#include <tvm/ir/function.h>
#include <tvm/relax/struct_info.h>
#include <tvm/runtime/ndarray.h>

namespace tvm {
namespace relax {

/*! \brief A graph expression; `struct_info_` is a StructInfo, or undefined before inference. */
using Expr = RelayExpr;
using ExprNode = RelayExprNode;

/*! \brief A variable, visible to the end of the function from its binding or parameter list on. */
class VarNode : public ExprNode {
 public:
  static constexpr bool kIsVariable = true;
  String name_hint;
  void Init();
  TVM_DECLARE_NODE(VarNode, ExprNode, "relax.expr.Var", Ignore(name_hint));
  TVM_NODE_ARGS(Value(name_hint), Value(struct_info_));
};

class Var : public FromFields<Expr, VarNode> {
 public:
  TVM_DEFINE_NODE_REF(Var, VarNode);
};

/*! \brief A variable visible only inside its dataflow block. */
class DataflowVarNode : public VarNode {
 public:
  TVM_DECLARE_NODE(DataflowVarNode, VarNode, "relax.expr.DataflowVar");
};

class DataflowVar : public FromFields<Var, DataflowVarNode> {
 public:
  TVM_DEFINE_NODE_REF(DataflowVar, DataflowVarNode);
};

/*! \brief A tensor known when the graph is built. */
class ConstantNode : public ExprNode {
 public:
  runtime::NDArray data;
  /*! \brief The struct info follows from `data` unless it is given. */
  void Init();
  TVM_DECLARE_NODE(ConstantNode, ExprNode, "relax.expr.Constant", Value(data));
  TVM_NODE_ARGS(Value(data), Default(struct_info_));
};

class Constant : public FromFields<Expr, ConstantNode> {
 public:
  TVM_DEFINE_NODE_REF(Constant, ConstantNode);
};

/*! \brief A shape as a value. */
class ShapeExprNode : public ExprNode {
 public:
  Array<PrimExpr> values;
  void Init();
  TVM_DECLARE_NODE(ShapeExprNode, ExprNode, "relax.expr.ShapeExpr", Value(values));
};

class ShapeExpr : public FromFields<Expr, ShapeExprNode> {
 public:
  TVM_DEFINE_NODE_REF(ShapeExpr, ShapeExprNode);
};

/*! \brief A scalar of the host as a value. */
class PrimValueNode : public ExprNode {
 public:
  PrimExpr value;
  void Init();
  TVM_DECLARE_NODE(PrimValueNode, ExprNode, "relax.expr.PrimValue", Value(value));
};

class PrimValue : public FromFields<Expr, PrimValueNode> {
 public:
  TVM_DEFINE_NODE_REF(PrimValue, PrimValueNode);
};

/*! \brief A text as a value. */
class StringImmNode : public ExprNode {
 public:
  String value;
  void Init();
  TVM_DECLARE_NODE(StringImmNode, ExprNode, "relax.expr.StringImm", Value(value));
};

class StringImm : public FromFields<Expr, StringImmNode> {
 public:
  TVM_DEFINE_NODE_REF(StringImm, StringImmNode);
};

/*! \brief An element type as a value. */
class DataTypeImmNode : public ExprNode {
 public:
  DataType value;
  void Init();
  TVM_DECLARE_NODE(DataTypeImmNode, ExprNode, "relax.expr.DataTypeImm", Value(value));
};

class DataTypeImm : public FromFields<Expr, DataTypeImmNode> {
 public:
  TVM_DEFINE_NODE_REF(DataTypeImm, DataTypeImmNode);
};

/*! \brief Calls `op`: an operator, a function of the module, or a named runtime function. */
class CallNode : public ExprNode {
 public:
  RelayExpr op;
  Array<RelayExpr> args;
  /*! \brief Settings that are not graph values; numbers, strings and lists of them. */
  DictAttrs attrs;
  /*! \brief Results of a callee that says nothing about them itself. */
  Array<StructInfo> sinfo_args;
  /*! \brief ValueError if `op` is a value that is known to be no function. */
  void Init();
  TVM_DECLARE_NODE(CallNode, ExprNode, "relax.expr.Call", Value(op), Value(args), Maybe(attrs),
                   Value(sinfo_args));
  TVM_NODE_ARGS(Value(op), Value(args), Value(attrs), Value(sinfo_args), Value(struct_info_));
};

class Call : public FromFields<Expr, CallNode> {
 public:
  TVM_DEFINE_NODE_REF(Call, CallNode);
};

/*! \brief A function of the runtime's registry, called by name. */
class ExternFuncNode : public BaseFuncNode {
 public:
  String global_symbol;
  /*! \brief Nothing but a function is known of it unless struct info is given. */
  void Init();
  TVM_DECLARE_NODE(ExternFuncNode, BaseFuncNode, "relax.expr.ExternFunc", Value(global_symbol));
  TVM_NODE_ARGS(Value(global_symbol), Default(struct_info_));
};

class ExternFunc : public FromFields<BaseFunc, ExternFuncNode> {
 public:
  TVM_DEFINE_NODE_REF(ExternFunc, ExternFuncNode);
};

class TupleNode : public ExprNode {
 public:
  Array<RelayExpr> fields;
  void Init();
  TVM_DECLARE_NODE(TupleNode, ExprNode, "relax.expr.Tuple", Value(fields));
};

class Tuple : public FromFields<Expr, TupleNode> {
 public:
  TVM_DEFINE_NODE_REF(Tuple, TupleNode);
};

class TupleGetItemNode : public ExprNode {
 public:
  RelayExpr tuple_value;
  int index = 0;
  /*! \brief IndexError when the tuple is known to have no such field. */
  void Init();
  TVM_DECLARE_NODE(TupleGetItemNode, ExprNode, "relax.expr.TupleGetItem", Value(tuple_value),
                   Value(index));
};

class TupleGetItem : public FromFields<Expr, TupleGetItemNode> {
 public:
  TVM_DEFINE_NODE_REF(TupleGetItem, TupleGetItemNode);
};

/*! \brief Gives the value of an expression a name. */
class BindingNode : public Object {
 public:
  /*! \brief Listed before `var`, which is not visible in it. */
  RelayExpr value;
  TVM_DECLARE_ABSTRACT_NODE(BindingNode, Object, "relax.expr.Binding", Value(value));
};

class Binding : public ObjectRef {
 public:
  /*! \brief The variable, of whichever kind of binding this is. */
  Var var() const;
  TVM_DEFINE_REF(Binding, ObjectRef, BindingNode);
};

class VarBindingNode : public BindingNode {
 public:
  Var var;
  TVM_DECLARE_NODE(VarBindingNode, BindingNode, "relax.expr.VarBinding", Bind(var));
  TVM_NODE_ARGS(Value(var), Value(value));
};

class VarBinding : public FromFields<Binding, VarBindingNode> {
 public:
  TVM_DEFINE_NODE_REF(VarBinding, VarBindingNode);
};

/*!
 * \brief Gives a value a name and says what is known of it, which is checked when it runs.
 *
 * Symbolic extents of `struct_info` that are new are bound to the extents of the value.
 */
class MatchCastNode : public BindingNode {
 public:
  StructInfo struct_info;
  Var var;
  TVM_DECLARE_NODE(MatchCastNode, BindingNode, "relax.expr.MatchCast", Bind(struct_info),
                   Bind(var));
  TVM_NODE_ARGS(Value(var), Value(value), Value(struct_info));
};

class MatchCast : public FromFields<Binding, MatchCastNode> {
 public:
  TVM_DEFINE_NODE_REF(MatchCast, MatchCastNode);
};

/*! \brief Bindings carried out one after the other; they may have side effects. */
class BindingBlockNode : public Object {
 public:
  Array<Binding> bindings;
  TVM_DECLARE_NODE(BindingBlockNode, Object, "relax.expr.BindingBlock", Value(bindings));
};

class BindingBlock : public FromFields<ObjectRef, BindingBlockNode> {
 public:
  TVM_DEFINE_NODE_REF(BindingBlock, BindingBlockNode);
};

/*!
 * \brief Bindings without side effects, which may be reordered, merged and dropped.
 *
 * DataflowVars end with the block; a plain Var bound in it is one of its outputs.
 */
class DataflowBlockNode : public BindingBlockNode {
 public:
  TVM_DECLARE_NODE(DataflowBlockNode, BindingBlockNode, "relax.expr.DataflowBlock");
};

class DataflowBlock : public FromFields<BindingBlock, DataflowBlockNode> {
 public:
  TVM_DEFINE_NODE_REF(DataflowBlock, DataflowBlockNode);
};

/*!
 * \brief Blocks, then a result.
 *
 * What is known of it is what is known of the result. It is not written down here: there it would
 * speak of extents that the blocks bind, before them.
 */
class SeqExprNode : public ExprNode {
 public:
  Array<BindingBlock> blocks;
  RelayExpr body;
  TVM_DECLARE_NODE(SeqExprNode, ExprNode, "relax.expr.SeqExpr", Value(blocks), Value(body));
};

class SeqExpr : public FromFields<Expr, SeqExprNode> {
 public:
  TVM_DEFINE_NODE_REF(SeqExpr, SeqExprNode);
};

/*! \brief The value of one branch, chosen by a scalar bool when it runs. */
class IfNode : public ExprNode {
 public:
  RelayExpr cond;
  RelayExpr true_branch;
  RelayExpr false_branch;
  TVM_DECLARE_NODE(IfNode, ExprNode, "relax.expr.If", Value(cond), Value(true_branch),
                   Value(false_branch));
  TVM_NODE_ARGS(Value(cond), Value(true_branch), Value(false_branch), Default(struct_info_));
};

class If : public FromFields<Expr, IfNode> {
 public:
  TVM_DEFINE_NODE_REF(If, IfNode);
};

/*! \brief A graph function. Attribute "Primitive" marks one that becomes a single kernel. */
class FunctionNode : public BaseFuncNode {
 public:
  Array<Var> params;
  RelayExpr body;
  StructInfo ret_struct_info;
  bool is_pure = true;
  /*! \brief `ret_struct_info` defaults to that of `body`. */
  void Init();
  TVM_DECLARE_NODE(FunctionNode, BaseFuncNode, "relax.expr.Function", Bind(params), Value(body),
                   Maybe(ret_struct_info), Value(is_pure));
  TVM_NODE_ARGS(Value(params), Value(body), Value(ret_struct_info), Value(is_pure), Value(attrs));
};

class Function : public FromFields<BaseFunc, FunctionNode> {
 public:
  TVM_DEFINE_NODE_REF(Function, FunctionNode);
};

/*! \brief What is known about a value; an undefined reference when nothing is recorded. */
StructInfo GetStructInfo(const RelayExpr& expr);

}  // namespace relax
}  // namespace tvm
#endif  // TVM_RELAX_EXPR_H_
