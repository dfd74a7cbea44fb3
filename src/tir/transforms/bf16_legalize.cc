/*!
 * \file src/tir/transforms/bf16_legalize.cc
 * \brief bfloat16 arithmetic in float32, and bfloat16 storage as 16-bit integers.
 */
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>

#include "pass_common.h"
#include "tir/ir/buffer_mutator.h"

namespace tvm {
namespace tir {
namespace {

DataType Float32Like(DataType t) { return DataType::Float(32, t.lanes()); }

/*!
 * \brief Expressions of bfloat16 operators are computed in float32 and rounded once at the end.
 *
 * Conversions that the program asks for stay, so the rounding they do is still done.
 */
class ArithmeticWidener final : public StmtExprMutator {
 private:
  /*! \brief The value in float32, not yet rounded; undefined if `expr` is no bfloat16 operator. */
  PrimExpr Operator(const PrimExpr& expr) {
    if (!expr.dtype().is_bfloat16()) return PrimExpr();
#define TVM_TIR_WIDEN_BINARY(Name) \
  if (const auto* op = expr.as<Name##Node>()) return Name(Wide(op->a), Wide(op->b));
    TVM_TIR_WIDEN_BINARY(Add)
    TVM_TIR_WIDEN_BINARY(Sub)
    TVM_TIR_WIDEN_BINARY(Mul)
    TVM_TIR_WIDEN_BINARY(Div)
    TVM_TIR_WIDEN_BINARY(Mod)
    TVM_TIR_WIDEN_BINARY(Min)
    TVM_TIR_WIDEN_BINARY(Max)
#undef TVM_TIR_WIDEN_BINARY
    if (const auto* op = expr.as<SelectNode>()) {
      return Select(VisitExpr(op->condition), Wide(op->true_value), Wide(op->false_value));
    }
    if (const auto* op = expr.as<BroadcastNode>()) return Broadcast(Wide(op->value), op->lanes);
    if (const auto* op = expr.as<CallNode>()) {
      if (op->op.same_as(builtin::if_then_else())) {
        return Call(Float32Like(op->dtype), op->op,
                    {VisitExpr(op->args[0]), Wide(op->args[1]), Wide(op->args[2])});
      }
      if (IsMath(op)) {
        return Call(Float32Like(op->dtype), op->op,
                    op->args.Map([this](const PrimExpr& arg) { return Wide(arg); }));
      }
    }
    return PrimExpr();
  }

  /*! \brief A function of numbers that means the same in any floating type. */
  static bool IsMath(const CallNode* op) {
    for (const Op& other : {builtin::reinterpret(), builtin::address_of(), builtin::ret()}) {
      if (op->op.same_as(other)) return false;
    }
    if (!op->op->IsInstance<OpNode>() || op->args.empty()) return false;
    for (const PrimExpr& arg : op->args) {
      if (!arg.dtype().is_bfloat16()) return false;
    }
    return true;
  }

  PrimExpr Wide(const PrimExpr& expr) {
    if (!expr.dtype().is_bfloat16()) return VisitExpr(expr);
    PrimExpr wide = Operator(expr);
    return wide.defined() ? wide : cast(Float32Like(expr.dtype()), VisitLeaf(expr));
  }

  PrimExpr VisitLeaf(const PrimExpr& expr) { return StmtExprMutator::VisitExpr(expr); }
  PrimExpr VisitExpr(const PrimExpr& expr) final {
    PrimExpr wide = Operator(expr);
    return wide.defined() ? cast(expr.dtype(), wide) : VisitLeaf(expr);
  }
  PrimExpr VisitExpr_(const CallNode* op) final {
    // isnan and the like: a bool of bfloat16 operands.
    if (!IsMath(op)) return StmtExprMutator::VisitExpr_(op);
    return Call(op->dtype, op->op, op->args.Map([this](const PrimExpr& arg) { return Wide(arg); }));
  }

#define TVM_TIR_WIDEN_COMPARISON(Name)                                        \
  PrimExpr VisitExpr_(const Name##Node* op) final {                           \
    if (!op->a.dtype().is_bfloat16()) return StmtExprMutator::VisitExpr_(op); \
    return Name(Wide(op->a), Wide(op->b));                                    \
  }
  TVM_TIR_WIDEN_COMPARISON(EQ)
  TVM_TIR_WIDEN_COMPARISON(NE)
  TVM_TIR_WIDEN_COMPARISON(LT)
  TVM_TIR_WIDEN_COMPARISON(LE)
  TVM_TIR_WIDEN_COMPARISON(GT)
  TVM_TIR_WIDEN_COMPARISON(GE)
#undef TVM_TIR_WIDEN_COMPARISON
};

/*! \brief bfloat16 values held as the 16 bits that represent them. */
class StorageLowerer final : public BufferMutator {
 public:
  PrimFunc Run(PrimFunc func) {
    // Parameters stay bfloat16, which is what callers pass and what is checked.
    Stmt body = VisitStmt(func->body);
    return WithBody(std::move(func), body);
  }

 private:
  static DataType BitsOf(DataType t) { return DataType::UInt(16, t.lanes()); }

  PrimExpr VisitExpr_(const VarNode* op) final {
    auto it = vars_.find(op);
    return it == vars_.end() ? GetRef<PrimExpr>(op) : PrimExpr(it->second);
  }
  PrimExpr VisitExpr_(const FloatImmNode* op) final {
    if (!op->dtype.is_bfloat16()) return GetRef<PrimExpr>(op);
    return ToBits(FloatImm(DataType::Float(32), op->value));
  }
  PrimExpr VisitExpr_(const CastNode* op) final {
    PrimExpr value = VisitExpr(op->value);
    if (op->value.dtype().is_bfloat16()) {
      if (op->dtype.is_bfloat16()) return value;
      return cast(op->dtype, FromBits(value));
    }
    if (op->dtype.is_bfloat16()) return ToBits(cast(Float32Like(op->dtype), value));
    return value.same_as(op->value) ? GetRef<PrimExpr>(op) : cast(op->dtype, value);
  }
  PrimExpr VisitExpr_(const CallNode* op) final {
    Array<PrimExpr> args = op->args.Map([this](const PrimExpr& arg) { return VisitExpr(arg); });
    if (op->op.same_as(builtin::reinterpret()) && op->dtype.is_bfloat16()) {
      DataType bits = BitsOf(op->dtype);
      return args[0].dtype() == bits ? args[0] : Call(bits, op->op, args);
    }
    DataType dtype = op->dtype.is_bfloat16() ? BitsOf(op->dtype) : op->dtype;
    return args.same_as(op->args) && dtype == op->dtype ? GetRef<PrimExpr>(op)
                                                        : Call(dtype, op->op, args);
  }
  PrimExpr VisitExpr_(const LetNode* op) final {
    PrimExpr value = VisitExpr(op->value);
    Var var = Renewed(op->var);
    PrimExpr body = VisitExpr(op->body);
    if (value.same_as(op->value) && var.same_as(op->var) && body.same_as(op->body)) {
      return GetRef<PrimExpr>(op);
    }
    return Let(var, value, body);
  }
  Stmt VisitStmt_(const LetStmtNode* op) final {
    PrimExpr value = VisitExpr(op->value);
    Var var = Renewed(op->var);
    Stmt body = VisitStmt(op->body);
    if (value.same_as(op->value) && var.same_as(op->var) && body.same_as(op->body)) {
      return GetRef<Stmt>(op);
    }
    return LetStmt(var, value, body);
  }
  Stmt VisitStmt_(const AllocateNode* op) final {
    if (!op->dtype.is_bfloat16()) return BufferMutator::VisitStmt_(op);
    DataType bits = BitsOf(op->dtype);
    const auto* pointer = op->buffer_var->type_annotation.as<PointerTypeNode>();
    Var data(op->buffer_var->name_hint, PointerType(PrimType(bits), pointer->storage_scope));
    vars_[op->buffer_var.get()] = data;
    return Allocate(data, bits, VisitExprs(op->extents), VisitExpr(op->condition),
                    VisitStmt(op->body), op->annotations);
  }
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    Stmt stmt = BufferMutator::VisitStmt_(op);
    auto it = vars_.find(op->node.as<VarNode>());
    if (it == vars_.end()) return stmt;
    op = stmt.as<AttrStmtNode>();
    return AttrStmt(it->second, op->attr_key, op->value, op->body);
  }

  Var Renewed(const Var& var) {
    if (!var->dtype.is_bfloat16()) return var;
    Var bits = var.copy_with_dtype(BitsOf(var->dtype));
    vars_[var.get()] = bits;
    return bits;
  }
  Buffer VisitBuffer(const Buffer& buffer) final {
    auto [it, fresh] = buffers_.try_emplace(buffer.get(), buffer);
    if (!fresh) return it->second;
    auto data = vars_.find(buffer->data.get());
    if (data != vars_.end()) it->second.CopyOnWrite()->data = data->second;
    if (buffer->dtype.is_bfloat16()) it->second.CopyOnWrite()->dtype = BitsOf(buffer->dtype);
    return it->second;
  }

  /*! \brief bfloat16 is the upper half of a float32. */
  static PrimExpr FromBits(const PrimExpr& bits) {
    DataType wide = DataType::UInt(32, bits.dtype().lanes());
    PrimExpr upper = left_shift(cast(wide, bits), make_const(wide, 16));
    return Call(Float32Like(bits.dtype()), builtin::reinterpret(), {upper});
  }
  /*! \brief Rounds to the nearest bfloat16, to the even one of two; a NaN stays one. */
  static PrimExpr ToBits(const PrimExpr& value) {
    DataType wide = DataType::UInt(32, value.dtype().lanes());
    auto number = [&](int64_t n) { return make_const(wide, n); };
    Var bits("bits", wide);
    PrimExpr upper = right_shift(bits, number(16));
    PrimExpr half = number(0x7fff) + bitwise_and(upper, number(1));
    PrimExpr rounded = right_shift(bits + half, number(16));
    PrimExpr is_nan = bitwise_and(bits, number(0x7fffffff)) > number(0x7f800000);
    PrimExpr result = Select(is_nan, bitwise_or(upper, number(0x40)), rounded);
    return cast(BitsOf(value.dtype()),
                Let(bits, Call(wide, builtin::reinterpret(), {value}), result));
  }

  std::unordered_map<const VarNode*, Var> vars_;
  std::unordered_map<const BufferNode*, Buffer> buffers_;
};

}  // namespace

namespace transform {

Pass BF16Legalize() {
  return BodyPass("tir.BF16Legalize", [](const PrimFunc& func, const PassContext&) {
    return ArithmeticWidener()(func->body);
  });
}

Pass BF16StorageLegalize() {
  return CreatePrimFuncPass(
      [](PrimFunc func, IRModule, PassContext) { return StorageLowerer().Run(std::move(func)); }, 0,
      "tir.BF16StorageLegalize");
}

TVM_REGISTER_GLOBAL("tir.transform.BF16Legalize").set_body_typed(BF16Legalize);
TVM_REGISTER_GLOBAL("tir.transform.BF16StorageLegalize").set_body_typed(BF16StorageLegalize);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
