/*!
 * \file src/tir/transforms/narrow_data_type.cc
 * \brief Index arithmetic in fewer bits where its values are known to fit.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>

#include <cstdint>

#include "index_mutator.h"
#include "pass_common.h"

namespace tvm {
namespace tir {
namespace {

/*!
 * \brief Loop variables, indices, extents and comparisons in `bits` bits.
 *
 * A wide expression is rewritten if it and everything inside of it provably fits. Elsewhere, narrow
 * variables are extended where they are used.
 */
class TypeNarrower final : public IndexMutator {
 public:
  explicit TypeNarrower(int bits) : narrow_(DataType::Int(bits)) {}

 private:
  bool IsWide(DataType t) const { return t.is_int() && t.bits() > narrow_.bits(); }
  DataType Narrow(DataType t) const { return narrow_.with_lanes(t.lanes()); }

  bool Fits(const PrimExpr& expr) {
    if (expr.dtype().is_vector()) {
      if (const auto* ramp = expr.as<RampNode>()) {
        PrimExpr last =
            ramp->base + ramp->stride * make_const(ramp->stride.dtype(), ramp->lanes - 1);
        return Fits(ramp->base) && Fits(ramp->stride) && Fits(last);
      }
      const auto* broadcast = expr.as<BroadcastNode>();
      return broadcast != nullptr && Fits(broadcast->value);
    }
    arith::ConstIntBound bound = analyzer_.const_int_bound(expr);
    int64_t max = (int64_t{1} << (narrow_.bits() - 1)) - 1;
    return bound->min_value >= -max - 1 && bound->max_value <= max;
  }

  /*! \brief The wide expression in the narrow type, or undefined where it may not fit. */
  PrimExpr TryNarrow(const PrimExpr& expr) {
    DataType type = Narrow(expr.dtype());
    if (expr.dtype().is_scalar() && !Fits(expr)) return PrimExpr();
    if (const auto* imm = expr.as<IntImmNode>()) return IntImm(type, imm->value);
    if (const auto* var = expr.as<VarNode>()) {
      auto it = vars_.find(var);
      return it != vars_.end() ? PrimExpr(it->second) : cast(type, expr);
    }
#define TVM_TIR_NARROW_BINARY(Name)                              \
  if (const auto* op = expr.as<Name##Node>()) {                  \
    PrimExpr a = TryNarrow(op->a), b = TryNarrow(op->b);         \
    return a.defined() && b.defined() ? Name(a, b) : PrimExpr(); \
  }
    TVM_TIR_NARROW_BINARY(Add)
    TVM_TIR_NARROW_BINARY(Sub)
    TVM_TIR_NARROW_BINARY(Mul)
    TVM_TIR_NARROW_BINARY(Div)
    TVM_TIR_NARROW_BINARY(Mod)
    TVM_TIR_NARROW_BINARY(FloorDiv)
    TVM_TIR_NARROW_BINARY(FloorMod)
    TVM_TIR_NARROW_BINARY(Min)
    TVM_TIR_NARROW_BINARY(Max)
#undef TVM_TIR_NARROW_BINARY
    if (const auto* op = expr.as<SelectNode>()) {
      PrimExpr t = TryNarrow(op->true_value), f = TryNarrow(op->false_value);
      if (!t.defined() || !f.defined()) return PrimExpr();
      return Select(VisitExpr(op->condition), t, f);
    }
    if (const auto* op = expr.as<RampNode>()) {
      if (!Fits(expr)) return PrimExpr();
      PrimExpr base = TryNarrow(op->base), stride = TryNarrow(op->stride);
      return base.defined() && stride.defined() ? Ramp(base, stride, op->lanes) : PrimExpr();
    }
    if (const auto* op = expr.as<BroadcastNode>()) {
      PrimExpr value = TryNarrow(op->value);
      return value.defined() ? Broadcast(value, op->lanes) : PrimExpr();
    }
    if (const auto* op = expr.as<CastNode>()) {
      // Extending a narrow value is undone; what was wider still is narrowed itself.
      if (op->value.dtype().is_int() && op->value.dtype().bits() <= narrow_.bits()) {
        return cast(type, VisitExpr(op->value));
      }
      if (IsWide(op->value.dtype())) return TryNarrow(op->value);
    }
    // Anything else whose value is known to fit: computed wide, kept narrow.
    return expr.dtype().is_scalar() ? cast(type, VisitExpr(expr)) : PrimExpr();
  }

  PrimExpr VisitExpr(const PrimExpr& expr) final { return IndexMutator::VisitExpr(expr); }
  PrimExpr VisitExpr_(const VarNode* op) final {
    auto it = vars_.find(op);
    return it == vars_.end() ? GetRef<PrimExpr>(op) : cast(op->dtype, it->second);
  }

  /*! \brief An index: its type is free. */
  PrimExpr Index(const PrimExpr& expr) final {
    if (IsWide(expr.dtype())) {
      if (PrimExpr narrow = TryNarrow(expr); narrow.defined()) return narrow;
    }
    return VisitExpr(expr);
  }

#define TVM_TIR_NARROW_COMPARISON(Name)                    \
  PrimExpr VisitExpr_(const Name##Node* op) final {        \
    if (IsWide(op->a.dtype())) {                           \
      PrimExpr a = TryNarrow(op->a), b = TryNarrow(op->b); \
      if (a.defined() && b.defined()) return Name(a, b);   \
    }                                                      \
    return IndexMutator::VisitExpr_(op);                   \
  }
  TVM_TIR_NARROW_COMPARISON(EQ)
  TVM_TIR_NARROW_COMPARISON(NE)
  TVM_TIR_NARROW_COMPARISON(LT)
  TVM_TIR_NARROW_COMPARISON(LE)
  TVM_TIR_NARROW_COMPARISON(GT)
  TVM_TIR_NARROW_COMPARISON(GE)
#undef TVM_TIR_NARROW_COMPARISON

  Stmt VisitStmt_(const ForNode* op) final {
    analyzer_.Bind(op->loop_var, Range::FromMinExtent(op->min, op->extent), true);
    PrimExpr end = op->min + op->extent;
    if (!IsWide(op->loop_var->dtype) || !Fits(op->min) || !Fits(op->extent) || !Fits(end)) {
      return IndexMutator::VisitStmt_(op);
    }
    PrimExpr min = TryNarrow(op->min), extent = TryNarrow(op->extent);
    if (!min.defined() || !extent.defined()) return IndexMutator::VisitStmt_(op);
    Var var = op->loop_var.copy_with_dtype(narrow_);
    vars_[op->loop_var.get()] = var;
    return For(var, min, extent, op->kind, VisitStmt(op->body), op->thread_binding,
               op->annotations);
  }
  Stmt VisitStmt_(const LetStmtNode* op) final {
    if (IsWide(op->var->dtype)) {
      if (PrimExpr value = TryNarrow(op->value); value.defined()) {
        arith::ConstIntBound bound = analyzer_.const_int_bound(op->value);
        analyzer_.const_int_bound.Update(op->var, bound, true);
        Var var = op->var.copy_with_dtype(narrow_);
        vars_[op->var.get()] = var;
        return LetStmt(var, value, VisitStmt(op->body));
      }
    }
    return IndexMutator::VisitStmt_(op);
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
    bool launch = op->attr_key == attr::thread_extent || op->attr_key == attr::virtual_thread;
    const auto* iv = op->node.as<IterVarNode>();
    if (!launch || iv == nullptr) return IndexMutator::VisitStmt_(op);
    analyzer_.Bind(iv->var, Range::FromMinExtent(make_zero(iv->var->dtype), op->value), true);
    PrimExpr extent = Index(op->value);
    if (!IsWide(iv->var->dtype) || IsWide(extent.dtype())) {
      Stmt body = VisitStmt(op->body);
      if (extent.same_as(op->value) && body.same_as(op->body)) return GetRef<Stmt>(op);
      return AttrStmt(op->node, op->attr_key, extent, body);
    }
    // One axis may be named by several attributes: all of them mean the same variable.
    auto [it, fresh] = vars_.try_emplace(iv->var.get(), iv->var);
    if (fresh) it->second = iv->var.copy_with_dtype(narrow_);
    Range dom = iv->dom.defined()
                    ? Range::FromMinExtent(make_zero(narrow_), cast(narrow_, iv->dom->extent))
                    : iv->dom;
    IterVar axis(dom, it->second, iv->iter_type, iv->thread_tag);
    return AttrStmt(axis, op->attr_key, extent, VisitStmt(op->body));
  }

  DataType narrow_;
  std::unordered_map<const VarNode*, Var> vars_;
  arith::Analyzer analyzer_;
};

}  // namespace

namespace transform {

Pass NarrowDataType(int target_bits) {
  TVM_CHECK(target_bits == 8 || target_bits == 16 || target_bits == 32 || target_bits == 64,
            ValueError)
      << "NarrowDataType: target_bits must be 8, 16, 32 or 64, got " << target_bits;
  return BodyPass("tir.NarrowDataType", [target_bits](const PrimFunc& func, const PassContext&) {
    return target_bits == 64 ? func->body : TypeNarrower(target_bits)(func->body);
  });
}

TVM_REGISTER_GLOBAL("tir.transform.NarrowDataType").set_body_typed(NarrowDataType);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
