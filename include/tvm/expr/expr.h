/*!
 * \file tvm/expr/expr.h
 * \brief Scalar and vector expressions. IntImm and FloatImm are in tvm/ir/expr.h.
 *
 * Integers wrap nowhere: overflow of a signed operation is a mistake of whoever built the program,
 * and passes may assume that it does not happen. All operands of one operator have the same type
 * and lanes; the functions in tvm/tir/op.h promote, the constructors here only check. Evaluation
 * order of operands is free, expressions without a Call of effect have none.
 */
#ifndef TVM_EXPR_EXPR_H_
#define TVM_EXPR_EXPR_H_

#include <tvm/expr/buffer.h>
#include <tvm/expr/var.h>
#include <tvm/ir/op.h>

namespace tvm {
namespace tir {

using IntImmNode = tvm::IntImmNode;
using FloatImmNode = tvm::FloatImmNode;

/*! \brief Text as an argument of a call or attribute; its dtype is handle. */
class StringImmNode : public PrimExprNode {
 public:
  String value;
  void Init();
  TVM_DECLARE_NODE(StringImmNode, PrimExprNode, "tir.StringImm", Value(value));
};

class StringImm : public FromFields<PrimExpr, StringImmNode> {
 public:
  TVM_DEFINE_NODE_REF(StringImm, StringImmNode);
};

/*! \brief Conversion of `value` to dtype; float to integer truncates. */
class CastNode : public PrimExprNode {
 public:
  PrimExpr value;
  void Init();
  TVM_DECLARE_NODE(CastNode, PrimExprNode, "tir.Cast", Value(value));
  TVM_NODE_ARGS(Value(dtype), Value(value));
};

class Cast : public FromFields<PrimExpr, CastNode> {
 public:
  TVM_DEFINE_NODE_REF(Cast, CastNode);
};

/*! \brief Declares a node with operands `a` and `b` and its reference. */
#define TVM_TIR_DECLARE_BINARY(Name, TypeKey)                                \
  class Name##Node : public PrimExprNode {                                   \
   public:                                                                   \
    PrimExpr a;                                                              \
    PrimExpr b;                                                              \
    void Init();                                                             \
    TVM_DECLARE_NODE(Name##Node, PrimExprNode, TypeKey, Value(a), Value(b)); \
  };                                                                         \
  class Name : public FromFields<PrimExpr, Name##Node> {                     \
   public:                                                                   \
    TVM_DEFINE_NODE_REF(Name, Name##Node);                                   \
  }

TVM_TIR_DECLARE_BINARY(Add, "tir.Add");
TVM_TIR_DECLARE_BINARY(Sub, "tir.Sub");
TVM_TIR_DECLARE_BINARY(Mul, "tir.Mul");
/*! \brief a / b: for integers rounds toward zero, as in C. */
TVM_TIR_DECLARE_BINARY(Div, "tir.Div");
/*! \brief a - b * trunc(a / b): integers only, the sign follows `a`. */
TVM_TIR_DECLARE_BINARY(Mod, "tir.Mod");
/*! \brief Rounds toward minus infinity. */
TVM_TIR_DECLARE_BINARY(FloorDiv, "tir.FloorDiv");
/*! \brief a - b * floor(a / b): the sign follows `b`. */
TVM_TIR_DECLARE_BINARY(FloorMod, "tir.FloorMod");
TVM_TIR_DECLARE_BINARY(Min, "tir.Min");  // NaN where an operand is
TVM_TIR_DECLARE_BINARY(Max, "tir.Max");  // the same
/*! \brief Comparisons give bool with the lanes of their operands. */
TVM_TIR_DECLARE_BINARY(EQ, "tir.EQ");
TVM_TIR_DECLARE_BINARY(NE, "tir.NE");
TVM_TIR_DECLARE_BINARY(LT, "tir.LT");
TVM_TIR_DECLARE_BINARY(LE, "tir.LE");
TVM_TIR_DECLARE_BINARY(GT, "tir.GT");
TVM_TIR_DECLARE_BINARY(GE, "tir.GE");
/*! \brief Logical, not short-circuit: both operands must be safe to evaluate. */
TVM_TIR_DECLARE_BINARY(And, "tir.And");
TVM_TIR_DECLARE_BINARY(Or, "tir.Or");

#undef TVM_TIR_DECLARE_BINARY

class NotNode : public PrimExprNode {
 public:
  PrimExpr a;
  void Init();
  TVM_DECLARE_NODE(NotNode, PrimExprNode, "tir.Not", Value(a));
};

class Not : public FromFields<PrimExpr, NotNode> {
 public:
  TVM_DEFINE_NODE_REF(Not, NotNode);
};

/*!
 * \brief One of two values; both are evaluated, so both must be safe.
 *
 * A scalar condition chooses between vectors as a whole. A branch that may only be evaluated when
 * chosen is the call `tir.if_then_else`.
 */
class SelectNode : public PrimExprNode {
 public:
  PrimExpr condition;
  PrimExpr true_value;
  PrimExpr false_value;
  void Init();
  TVM_DECLARE_NODE(SelectNode, PrimExprNode, "tir.Select", Value(condition), Value(true_value),
                   Value(false_value));
};

class Select : public FromFields<PrimExpr, SelectNode> {
 public:
  TVM_DEFINE_NODE_REF(Select, SelectNode);
};

/*! \brief Element of a buffer; a vector index in the last place reads a vector. */
class BufferLoadNode : public PrimExprNode {
 public:
  Buffer buffer;
  Array<PrimExpr> indices;
  void Init();
  TVM_DECLARE_NODE(BufferLoadNode, PrimExprNode, "tir.BufferLoad", Value(buffer), Value(indices));
};

class BufferLoad : public FromFields<PrimExpr, BufferLoadNode> {
 public:
  TVM_DEFINE_NODE_REF_COW(BufferLoad, BufferLoadNode);
};

/*! \brief Element of a tensor that is not a buffer yet; lowering replaces it by a BufferLoad. */
class ProducerLoadNode : public PrimExprNode {
 public:
  DataProducer producer;
  Array<PrimExpr> indices;
  void Init();
  TVM_DECLARE_NODE(ProducerLoadNode, PrimExprNode, "tir.ProducerLoad", Value(producer),
                   Value(indices));
};

class ProducerLoad : public FromFields<PrimExpr, ProducerLoadNode> {
 public:
  TVM_DEFINE_NODE_REF(ProducerLoad, ProducerLoadNode);
};

/*!
 * \brief The vector [base, base + stride, ..., base + (lanes - 1) * stride]. The lanes of a
 * scalable vector stand as in its type: minus the factor of vscale.
 */
class RampNode : public PrimExprNode {
 public:
  PrimExpr base;
  PrimExpr stride;
  int lanes = 1;
  void Init();
  TVM_DECLARE_NODE(RampNode, PrimExprNode, "tir.Ramp", Value(base), Value(stride), Value(lanes));
};

class Ramp : public FromFields<PrimExpr, RampNode> {
 public:
  TVM_DEFINE_NODE_REF(Ramp, RampNode);
};

/*! \brief A scalar in every lane. */
class BroadcastNode : public PrimExprNode {
 public:
  PrimExpr value;
  int lanes = 1;
  void Init();
  TVM_DECLARE_NODE(BroadcastNode, PrimExprNode, "tir.Broadcast", Value(value), Value(lanes));
};

class Broadcast : public FromFields<PrimExpr, BroadcastNode> {
 public:
  TVM_DEFINE_NODE_REF(Broadcast, BroadcastNode);
};

/*! \brief `body` with `var` standing for `value`. */
class LetNode : public PrimExprNode {
 public:
  Var var;
  PrimExpr value;
  PrimExpr body;
  void Init();
  TVM_DECLARE_NODE(LetNode, PrimExprNode, "tir.Let", Value(value), Bind(var), Value(body));
  TVM_NODE_ARGS(Value(var), Value(value), Value(body));
};

class Let : public FromFields<PrimExpr, LetNode> {
 public:
  TVM_DEFINE_NODE_REF(Let, LetNode);
};

/*!
 * \brief Call of an intrinsic (an Op, see tvm/tir/builtin.h) or of a function of the module.
 *
 * `tir.call_extern` takes the symbol's name as its first argument.
 */
class CallNode : public PrimExprNode {
 public:
  RelayExpr op;
  Array<PrimExpr> args;
  TVM_DECLARE_NODE(CallNode, PrimExprNode, "tir.Call", Value(op), Value(args));
  TVM_NODE_ARGS(Value(dtype), Value(op), Value(args));
};

class Call : public FromFields<PrimExpr, CallNode> {
 public:
  TVM_DEFINE_NODE_REF(Call, CallNode);
};

/*! \brief The lanes of all `vectors` in a row, picked by constant `indices`. */
class ShuffleNode : public PrimExprNode {
 public:
  Array<PrimExpr> vectors;
  Array<PrimExpr> indices;
  void Init();
  TVM_DECLARE_NODE(ShuffleNode, PrimExprNode, "tir.Shuffle", Value(vectors), Value(indices));
};

class Shuffle : public FromFields<PrimExpr, ShuffleNode> {
 public:
  /*! \brief All lanes of all vectors, one after the other. */
  static PrimExpr Concat(Array<PrimExpr> vectors);
  TVM_DEFINE_NODE_REF(Shuffle, ShuffleNode);
};

/*!
 * \brief A commutative, associative operator on tuples: `result` over `lhs` and `rhs`.
 *
 * `identity_element` leaves the other operand unchanged.
 */
class CommReducerNode : public Object {
 public:
  Array<Var> lhs;
  Array<Var> rhs;
  Array<PrimExpr> result;
  Array<PrimExpr> identity_element;
  /*! \brief The operator applied to two tuples of values. */
  Array<PrimExpr> operator()(Array<PrimExpr> a, Array<PrimExpr> b) const;
  void Init();
  TVM_DECLARE_NODE(CommReducerNode, Object, "tir.CommReducer", Bind(lhs), Bind(rhs), Value(result),
                   Value(identity_element));
};

class CommReducer : public FromFields<ObjectRef, CommReducerNode> {
 public:
  TVM_DEFINE_NODE_REF(CommReducer, CommReducerNode);
};

/*! \brief Element `value_index` of `source` combined over `axis` where `condition` holds. */
class ReduceNode : public PrimExprNode {
 public:
  CommReducer combiner;
  Array<PrimExpr> source;
  /*! \brief Start value to use instead of the identity; empty for the identity. */
  Array<PrimExpr> init;
  Array<IterVar> axis;
  PrimExpr condition;
  int value_index = 0;
  void Init();
  TVM_DECLARE_NODE(ReduceNode, PrimExprNode, "tir.Reduce", Value(combiner), Bind(axis),
                   Value(source), Value(init), Maybe(condition), Value(value_index));
  TVM_NODE_ARGS(Value(combiner), Value(source), Value(axis), Value(condition), Value(value_index),
                Default(init));
};

class Reduce : public FromFields<PrimExpr, ReduceNode> {
 public:
  TVM_DEFINE_NODE_REF(Reduce, ReduceNode);
};

}  // namespace tir
}  // namespace tvm
#endif  // TVM_EXPR_EXPR_H_
