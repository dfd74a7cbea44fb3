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
class ExprNode : public RelayExprNode {
 public:
  TVM_DECLARE_ABSTRACT_NODE(ExprNode, RelayExprNode, "relax.Expr");
};

class Expr : public RelayExpr {
 public:
  TVM_DEFINE_REF(Expr, RelayExpr, ExprNode);
};

/*! \brief A variable, visible to the end of the function from its binding or parameter list on. */
class VarNode : public ExprNode {
 public:
  static constexpr bool kIsVariable = true;
  String name_hint;
  TVM_DECLARE_NODE(VarNode, ExprNode, "relax.expr.Var", Ignore(name_hint));
};

class Var : public Expr {
 public:
  Var(String name_hint, StructInfo struct_info);
  TVM_DEFINE_REF(Var, Expr, VarNode);
};

/*! \brief A variable visible only inside its dataflow block. */
class DataflowVarNode : public VarNode {
 public:
  TVM_DECLARE_NODE(DataflowVarNode, VarNode, "relax.expr.DataflowVar");
};

class DataflowVar : public Var {
 public:
  DataflowVar(String name_hint, StructInfo struct_info);
  TVM_DEFINE_REF(DataflowVar, Var, DataflowVarNode);
};

/*! \brief A tensor known when the graph is built. */
class ConstantNode : public ExprNode {
 public:
  runtime::NDArray data;
  TVM_DECLARE_NODE(ConstantNode, ExprNode, "relax.expr.Constant", Value(data));
};

class Constant : public Expr {
 public:
  /*! \brief The struct info follows from `data`. */
  explicit Constant(runtime::NDArray data);
  TVM_DEFINE_REF(Constant, Expr, ConstantNode);
};

/*! \brief A shape as a value. */
class ShapeExprNode : public ExprNode {
 public:
  Array<PrimExpr> values;
  TVM_DECLARE_NODE(ShapeExprNode, ExprNode, "relax.expr.ShapeExpr", Value(values));
};

class ShapeExpr : public Expr {
 public:
  explicit ShapeExpr(Array<PrimExpr> values);
  TVM_DEFINE_REF(ShapeExpr, Expr, ShapeExprNode);
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
  TVM_DECLARE_NODE(CallNode, ExprNode, "relax.expr.Call", Value(op), Value(args), Value(attrs),
                   Value(sinfo_args));
};

class Call : public Expr {
 public:
  /*! \brief `struct_info` may be undefined: a block builder fills it in. */
  Call(RelayExpr op, Array<RelayExpr> args, DictAttrs attrs, Array<StructInfo> sinfo_args,
       StructInfo struct_info);
  TVM_DEFINE_REF(Call, Expr, CallNode);
};

/*! \brief A function of the runtime's registry, called by name. */
class ExternFuncNode : public ExprNode {
 public:
  String global_symbol;
  TVM_DECLARE_NODE(ExternFuncNode, ExprNode, "relax.expr.ExternFunc", Value(global_symbol));
};

class ExternFunc : public Expr {
 public:
  explicit ExternFunc(String global_symbol);
  TVM_DEFINE_REF(ExternFunc, Expr, ExternFuncNode);
};

class TupleNode : public ExprNode {
 public:
  Array<RelayExpr> fields;
  TVM_DECLARE_NODE(TupleNode, ExprNode, "relax.expr.Tuple", Value(fields));
};

class Tuple : public Expr {
 public:
  explicit Tuple(Array<RelayExpr> fields);
  TVM_DEFINE_REF(Tuple, Expr, TupleNode);
};

class TupleGetItemNode : public ExprNode {
 public:
  RelayExpr tuple_value;
  int index = 0;
  TVM_DECLARE_NODE(TupleGetItemNode, ExprNode, "relax.expr.TupleGetItem", Value(tuple_value),
                   Value(index));
};

class TupleGetItem : public Expr {
 public:
  /*! \brief IndexError when the tuple is known to have no such field. */
  TupleGetItem(RelayExpr tuple_value, int index);
  TVM_DEFINE_REF(TupleGetItem, Expr, TupleGetItemNode);
};

/*! \brief Gives the value of an expression a name. */
class VarBindingNode : public Object {
 public:
  /*! \brief Listed before `var`, which is not visible in it. */
  RelayExpr value;
  Var var;
  TVM_DECLARE_NODE(VarBindingNode, Object, "relax.expr.VarBinding", Value(value), Bind(var));
};

class VarBinding : public ObjectRef {
 public:
  VarBinding(Var var, RelayExpr value);
  TVM_DEFINE_REF(VarBinding, ObjectRef, VarBindingNode);
};

/*! \brief Bindings carried out one after the other; they may have side effects. */
class BindingBlockNode : public Object {
 public:
  Array<VarBinding> bindings;
  TVM_DECLARE_NODE(BindingBlockNode, Object, "relax.expr.BindingBlock", Value(bindings));
};

class BindingBlock : public ObjectRef {
 public:
  explicit BindingBlock(Array<VarBinding> bindings);
  TVM_DEFINE_REF(BindingBlock, ObjectRef, BindingBlockNode);
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

class DataflowBlock : public BindingBlock {
 public:
  explicit DataflowBlock(Array<VarBinding> bindings);
  TVM_DEFINE_REF(DataflowBlock, BindingBlock, DataflowBlockNode);
};

/*! \brief Blocks, then a result. */
class SeqExprNode : public ExprNode {
 public:
  Array<BindingBlock> blocks;
  RelayExpr body;
  TVM_DECLARE_NODE(SeqExprNode, ExprNode, "relax.expr.SeqExpr", Value(blocks), Value(body));
};

class SeqExpr : public Expr {
 public:
  SeqExpr(Array<BindingBlock> blocks, RelayExpr body);
  TVM_DEFINE_REF(SeqExpr, Expr, SeqExprNode);
};

/*! \brief A graph function. Attribute "Primitive" marks one that becomes a single kernel. */
class FunctionNode : public BaseFuncNode {
 public:
  Array<Var> params;
  RelayExpr body;
  StructInfo ret_struct_info;
  bool is_pure = true;
  TVM_DECLARE_NODE(FunctionNode, BaseFuncNode, "relax.expr.Function", Bind(params), Value(body),
                   Value(ret_struct_info), Value(is_pure));
};

class Function : public BaseFunc {
 public:
  /*! \brief `ret_struct_info` defaults to that of `body`. */
  Function(Array<Var> params, RelayExpr body, StructInfo ret_struct_info, bool is_pure,
           DictAttrs attrs);
  TVM_DEFINE_REF(Function, BaseFunc, FunctionNode);
};

/*! \brief What is known about a value; an undefined reference when nothing is recorded. */
StructInfo GetStructInfo(const RelayExpr& expr);

}  // namespace relax
}  // namespace tvm
#endif  // TVM_RELAX_EXPR_H_
