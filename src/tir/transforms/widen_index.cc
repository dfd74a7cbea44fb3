/*!
 * \file src/tir/transforms/widen_index.cc
 * \brief Loop variables and indices of 64 bits.
 */
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>

#include <limits>

#include "index_mutator.h"
#include "pass_common.h"

namespace tvm {
namespace tir {
namespace {

const DataType kWide = DataType::Int(64);

bool IsNarrowInteger(DataType t) { return t.is_int() && t.bits() < 64; }

/*! \brief `expr` as int64, with the conversion moved down to the leaves of its arithmetic. */
PrimExpr Widen(const PrimExpr& expr) {
  if (!IsNarrowInteger(expr.dtype())) return expr;
#define TVM_TIR_WIDEN_OPERANDS(Name, Func) \
  if (const auto* op = expr.as<Name##Node>()) return Func(Widen(op->a), Widen(op->b));
  TVM_TIR_WIDEN_OPERANDS(Add, add)
  TVM_TIR_WIDEN_OPERANDS(Sub, sub)
  TVM_TIR_WIDEN_OPERANDS(Mul, mul)
  TVM_TIR_WIDEN_OPERANDS(FloorDiv, floordiv)
  TVM_TIR_WIDEN_OPERANDS(FloorMod, floormod)
  TVM_TIR_WIDEN_OPERANDS(Div, truncdiv)
  TVM_TIR_WIDEN_OPERANDS(Mod, truncmod)
  TVM_TIR_WIDEN_OPERANDS(Min, min)
  TVM_TIR_WIDEN_OPERANDS(Max, max)
#undef TVM_TIR_WIDEN_OPERANDS
  if (const auto* op = expr.as<SelectNode>()) {
    return Select(op->condition, Widen(op->true_value), Widen(op->false_value));
  }
  if (const auto* op = expr.as<RampNode>()) {
    return Ramp(Widen(op->base), Widen(op->stride), op->lanes);
  }
  return cast(kWide.with_lanes(expr.dtype().lanes()), expr);
}

class IndexWidener final : public IndexMutator {
 private:
  PrimExpr Index(const PrimExpr& expr) final { return Widen(VisitExpr(expr)); }
  /*! \brief The rewritten expression in the type it had before. */
  PrimExpr Value(const PrimExpr& expr) final {
    PrimExpr result = VisitExpr(expr);
    return result.dtype() == expr.dtype() ? result : cast(expr.dtype(), result);
  }
  Var WideCopy(const Var& var) {
    Var wide = var.copy_with_dtype(kWide.with_lanes(var->dtype.lanes()));
    vars_[var.get()] = wide;
    return wide;
  }

  PrimExpr VisitExpr_(const VarNode* op) final {
    auto it = vars_.find(op);
    return it == vars_.end() ? GetRef<PrimExpr>(op) : PrimExpr(it->second);
  }

  // A widened operand makes its whole operator wide.
#define TVM_TIR_WIDEN_BINARY(Name, Func)                                   \
  PrimExpr VisitExpr_(const Name##Node* op) final {                        \
    PrimExpr a = VisitExpr(op->a);                                         \
    PrimExpr b = VisitExpr(op->b);                                         \
    if (a.same_as(op->a) && b.same_as(op->b)) return GetRef<PrimExpr>(op); \
    if (a.dtype() == b.dtype()) return Func(a, b);                         \
    return Func(Widen(a), Widen(b));                                       \
  }
  TVM_TIR_WIDEN_BINARY(Add, add)
  TVM_TIR_WIDEN_BINARY(Sub, sub)
  TVM_TIR_WIDEN_BINARY(Mul, mul)
  TVM_TIR_WIDEN_BINARY(Div, div)
  TVM_TIR_WIDEN_BINARY(Mod, truncmod)
  TVM_TIR_WIDEN_BINARY(FloorDiv, floordiv)
  TVM_TIR_WIDEN_BINARY(FloorMod, floormod)
  TVM_TIR_WIDEN_BINARY(Min, min)
  TVM_TIR_WIDEN_BINARY(Max, max)
  TVM_TIR_WIDEN_BINARY(EQ, equal)
  TVM_TIR_WIDEN_BINARY(NE, not_equal)
  TVM_TIR_WIDEN_BINARY(LT, less)
  TVM_TIR_WIDEN_BINARY(LE, less_equal)
  TVM_TIR_WIDEN_BINARY(GT, greater)
  TVM_TIR_WIDEN_BINARY(GE, greater_equal)
#undef TVM_TIR_WIDEN_BINARY

  PrimExpr VisitExpr_(const CastNode* op) final {
    PrimExpr value = VisitExpr(op->value);
    return value.same_as(op->value) ? GetRef<PrimExpr>(op) : cast(op->dtype, value);
  }
  PrimExpr VisitExpr_(const SelectNode* op) final {
    PrimExpr condition = VisitExpr(op->condition);
    PrimExpr t = VisitExpr(op->true_value);
    PrimExpr f = VisitExpr(op->false_value);
    if (condition.same_as(op->condition) && t.same_as(op->true_value) &&
        f.same_as(op->false_value)) {
      return GetRef<PrimExpr>(op);
    }
    if (t.dtype() != f.dtype()) t = Widen(t), f = Widen(f);
    return Select(condition, t, f);
  }
  PrimExpr VisitExpr_(const RampNode* op) final {
    PrimExpr base = VisitExpr(op->base);
    PrimExpr stride = VisitExpr(op->stride);
    if (base.same_as(op->base) && stride.same_as(op->stride)) return GetRef<PrimExpr>(op);
    if (base.dtype() != stride.dtype()) base = Widen(base), stride = Widen(stride);
    return Ramp(base, stride, op->lanes);
  }
  PrimExpr VisitExpr_(const CallNode* op) final {
    if (op->op.same_as(builtin::if_then_else())) {
      PrimExpr condition = VisitExpr(op->args[0]);
      PrimExpr t = VisitExpr(op->args[1]);
      PrimExpr f = VisitExpr(op->args[2]);
      if (t.dtype() != f.dtype()) t = Widen(t), f = Widen(f);
      if (condition.same_as(op->args[0]) && t.same_as(op->args[1]) && f.same_as(op->args[2])) {
        return GetRef<PrimExpr>(op);
      }
      return Call(t.dtype(), op->op, {condition, t, f});
    }
    // The declared types of any other function are part of its meaning.
    Array<PrimExpr> args = op->args.Map([this](const PrimExpr& arg) { return Value(arg); });
    return args.same_as(op->args) ? GetRef<PrimExpr>(op) : Call(op->dtype, op->op, args);
  }
  PrimExpr VisitExpr_(const ShuffleNode* op) final {
    Array<PrimExpr> vectors = op->vectors.Map([this](const PrimExpr& v) { return Value(v); });
    return vectors.same_as(op->vectors) ? GetRef<PrimExpr>(op) : Shuffle(vectors, op->indices);
  }
  PrimExpr VisitExpr_(const LetNode* op) final {
    PrimExpr value = VisitExpr(op->value);
    Var var = value.dtype() == op->var->dtype ? op->var : WideCopy(op->var);
    PrimExpr body = VisitExpr(op->body);
    if (value.same_as(op->value) && body.same_as(op->body)) return GetRef<PrimExpr>(op);
    return Let(var, value, body);
  }

  Stmt VisitStmt_(const ForNode* op) final {
    PrimExpr min = Index(op->min);
    PrimExpr extent = Index(op->extent);
    Var var = IsNarrowInteger(op->loop_var->dtype) ? WideCopy(op->loop_var) : op->loop_var;
    Stmt body = VisitStmt(op->body);
    if (min.same_as(op->min) && extent.same_as(op->extent) && body.same_as(op->body) &&
        var.same_as(op->loop_var)) {
      return GetRef<Stmt>(op);
    }
    return For(var, min, extent, op->kind, body, op->thread_binding, op->annotations);
  }
  Stmt VisitStmt_(const LetStmtNode* op) final {
    PrimExpr value = VisitExpr(op->value);
    Var var = value.dtype() == op->var->dtype ? op->var : WideCopy(op->var);
    Stmt body = VisitStmt(op->body);
    if (value.same_as(op->value) && body.same_as(op->body)) return GetRef<Stmt>(op);
    return LetStmt(var, value, body);
  }
  Stmt VisitStmt_(const AllocateNode* op) final {
    Array<PrimExpr> extents = Indices(op->extents);
    PrimExpr condition = VisitExpr(op->condition);
    Stmt body = VisitStmt(op->body);
    if (extents.same_as(op->extents) && condition.same_as(op->condition) &&
        body.same_as(op->body)) {
      return GetRef<Stmt>(op);
    }
    return Allocate(op->buffer_var, op->dtype, extents, condition, body, op->annotations);
  }
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    PrimExpr value = op->value.defined() ? Value(op->value) : op->value;
    Stmt body = VisitStmt(op->body);
    if (value.same_as(op->value) && body.same_as(op->body)) return GetRef<Stmt>(op);
    return AttrStmt(op->node, op->attr_key, value, body);
  }

  std::unordered_map<const VarNode*, Var> vars_;
};

/*! \brief Whether some buffer that is accessed has elements that 32 bits cannot number. */
bool HasLargeBuffer(const Stmt& body) {
  bool found = false;
  auto look_at = [&found](const Buffer& buffer) {
    PrimExpr elements = IntImm(kWide, 1);
    // Extents of 32 bits may be products that do not fit these.
    for (const PrimExpr& extent : buffer->shape) elements = mul(elements, Widen(extent));
    const int64_t* known = as_const_int(elements);
    found = found || (known != nullptr && *known > std::numeric_limits<int32_t>::max());
  };
  PostOrderVisit(body, [&look_at](const ObjectRef& node) {
    if (const auto* load = node.as<BufferLoadNode>()) look_at(load->buffer);
    if (const auto* store = node.as<BufferStoreNode>()) look_at(store->buffer);
  });
  return found;
}

}  // namespace

namespace transform {

Pass WidenIndex(bool only_large) {
  return BodyPass("tir.WidenIndex", [only_large](const PrimFunc& func, const PassContext&) {
    return only_large && !HasLargeBuffer(func->body) ? func->body : IndexWidener()(func->body);
  });
}

TVM_REGISTER_GLOBAL("tir.transform.WidenIndex").set_body_typed(WidenIndex);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
