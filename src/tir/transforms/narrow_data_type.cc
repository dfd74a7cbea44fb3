/*!
 * \file src/tir/transforms/narrow_data_type.cc
 * \brief Index arithmetic in fewer bits where its values are known to fit.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/lanes.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>

#include <cstdint>
#include <unordered_set>
#include <utility>

#include "index_mutator.h"
#include "pass_common.h"

namespace tvm {
namespace tir {
namespace {

/*! \brief Whether all values are at hand in `bits` bits. */
bool FitsIn(int bits, const arith::ConstIntBound& bound) {
  int64_t max = (int64_t{1} << (bits - 1)) - 1;
  return bound->min_value >= -max - 1 && bound->max_value <= max;
}

/*!
 * \brief Variables in expressions that may need more than `bits` bits.
 *
 * Such an expression is computed wide; extending narrow variables in it would gain nothing.
 */
class WideVarFinder final : public StmtExprVisitor {
 public:
  explicit WideVarFinder(int bits) : bits_(bits) {}
  std::unordered_set<const VarNode*> found;

 private:
  void VisitExpr(const PrimExpr& expr) final {
    DataType type = expr.dtype();
    bool outer = wide_;
    wide_ = wide_ || (type.is_int() && type.is_scalar() && type.bits() > bits_ &&
                      !FitsIn(bits_, analyzer_.const_int_bound(expr)));
    StmtExprVisitor::VisitExpr(expr);
    wide_ = outer;
  }
  void VisitExpr_(const VarNode* op) final {
    if (wide_) found.insert(op);
  }
  // What an element or a call gives does not depend on how wide its operands are.
  void VisitExpr_(const BufferLoadNode* op) final {
    bool outer = std::exchange(wide_, false);
    StmtExprVisitor::VisitExpr_(op);
    wide_ = outer;
  }
  void VisitExpr_(const CallNode* op) final {
    bool outer = std::exchange(wide_, false);
    StmtExprVisitor::VisitExpr_(op);
    wide_ = outer;
  }
  void VisitExpr_(const CastNode* op) final {
    bool outer = wide_;
    wide_ = wide_ && op->value.dtype().is_int();
    StmtExprVisitor::VisitExpr_(op);
    wide_ = outer;
  }
  void VisitStmt_(const ForNode* op) final {
    analyzer_.Bind(op->loop_var, Range::FromMinExtent(op->min, op->extent), true);
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const LetStmtNode* op) final {
    if (op->value.dtype().is_int() && op->value.dtype().is_scalar()) {
      analyzer_.const_int_bound.Update(op->var, analyzer_.const_int_bound(op->value), true);
    }
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const AttrStmtNode* op) final {
    bool launch = op->attr_key == attr::thread_extent || op->attr_key == attr::virtual_thread;
    if (const auto* iv = launch ? op->node.as<IterVarNode>() : nullptr) {
      analyzer_.Bind(iv->var, Range::FromMinExtent(make_zero(iv->var->dtype), op->value), true);
    }
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const BlockNode* op) final {
    for (const IterVar& axis : op->iter_vars) analyzer_.Bind(axis->var, axis->dom, true);
    StmtExprVisitor::VisitStmt_(op);
  }

  int bits_;
  bool wide_ = false;
  arith::Analyzer analyzer_;
};

/*!
 * \brief Loop variables, indices, extents and comparisons in `bits` bits.
 *
 * A wide expression is rewritten if it and everything inside of it provably fits. Elsewhere, narrow
 * variables are extended where they are used.
 */
class TypeNarrower final : public IndexMutator {
 public:
  TypeNarrower(int bits, const Stmt& body) : narrow_(DataType::Int(bits)) {
    WideVarFinder finder(bits);
    finder(body);
    stays_ = std::move(finder.found);
  }

 private:
  bool IsWide(DataType t) const { return t.is_int() && t.bits() > narrow_.bits(); }
  bool IsToNarrow(const Var& var) const {
    return IsWide(var->dtype) && stays_.count(var.get()) == 0;
  }
  DataType Narrow(DataType t) const { return narrow_.with_lanes(t.lanes()); }

  bool Fits(const PrimExpr& expr) {
    if (expr.dtype().is_vector()) {
      if (const auto* ramp = expr.as<RampNode>()) {
        PrimExpr last = LastOfRamp(ramp);
        return Fits(ramp->base) && Fits(ramp->stride) && Fits(last);
      }
      const auto* broadcast = expr.as<BroadcastNode>();
      return broadcast != nullptr && Fits(broadcast->value);
    }
    return FitsIn(narrow_.bits(), analyzer_.const_int_bound(expr));
  }

  /*! \brief The wide expression in the narrow type, or undefined where it may not fit. */
  PrimExpr TryNarrow(const PrimExpr& expr) {
    DataType type = Narrow(expr.dtype());
    if (expr.dtype().is_scalar() && !Fits(expr)) return PrimExpr();
    if (const auto* imm = expr.as<IntImmNode>()) return IntImm(type, imm->value);
    if (const auto* var = expr.as<VarNode>()) {
      // Cutting a wide variable short is no less work than to use it.
      if (stays_.count(var) != 0) return PrimExpr();
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

  // What is cut short or becomes a real number in the end need not be wide before.
  PrimExpr VisitExpr_(const CastNode* op) final {
    if (IsWide(op->value.dtype()) && !IsWide(op->dtype)) {
      if (PrimExpr value = TryNarrow(op->value); value.defined()) return cast(op->dtype, value);
    }
    return IndexMutator::VisitExpr_(op);
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
    if (!IsToNarrow(op->loop_var) || !Fits(op->min) || !Fits(op->extent) || !Fits(end)) {
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
    if (IsToNarrow(op->var)) {
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
    PrimExpr extent = stays_.count(iv->var.get()) ? VisitExpr(op->value) : Index(op->value);
    if (!IsToNarrow(iv->var) || IsWide(extent.dtype())) {
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

  Stmt VisitStmt_(const BlockRealizeNode* op) final {
    Array<IterVar> axes;
    Array<PrimExpr> values;
    for (size_t i = 0; i < op->iter_values.size(); ++i) {
      const IterVar& axis = op->block->iter_vars[i];
      analyzer_.Bind(axis->var, axis->dom, true);
      Range dom = Region(axis->dom, IsToNarrow(axis->var));
      PrimExpr value = dom->min.dtype() == narrow_ ? TryNarrow(op->iter_values[i]) : PrimExpr();
      if (!IsToNarrow(axis->var) || !value.defined()) {
        axes.push_back(axis);
        values.push_back(VisitExpr(op->iter_values[i]));
        continue;
      }
      Var var = axis->var.copy_with_dtype(narrow_);
      vars_[axis->var.get()] = var;
      axes.push_back(IterVar(dom, var, axis->iter_type, axis->thread_tag));
      values.push_back(value);
    }
    PrimExpr predicate = VisitExpr(op->predicate);
    Block block = Downcast<Block>(VisitStmt(op->block));
    block.CopyOnWrite()->iter_vars = axes;
    return BlockRealize(values, predicate, block);
  }
  Stmt VisitStmt_(const BlockNode* op) final {
    auto regions = [this](const Array<BufferRegion>& all) {
      return all.Map([this](const BufferRegion& one) {
        return BufferRegion(one->buffer, one->region.Map([this](const Range& range) {
          return Region(range, true);
        }));
      });
    };
    Array<BufferRegion> reads = regions(op->reads), writes = regions(op->writes);
    Array<MatchBufferRegion> views = op->match_buffers.Map([&](const MatchBufferRegion& match) {
      return MatchBufferRegion(match->buffer, regions({match->source})[0]);
    });
    Block block = Downcast<Block>(IndexMutator::VisitStmt_(op));
    BlockNode* node = block.CopyOnWrite();
    node->reads = reads;
    node->writes = writes;
    node->match_buffers = views;
    return block;
  }
  /*! \brief Both bounds in one type, the narrow one where both fit and `free` says so. */
  Range Region(const Range& range, bool free) {
    PrimExpr min = free ? Index(range->min) : VisitExpr(range->min);
    PrimExpr extent = free ? Index(range->extent) : VisitExpr(range->extent);
    if (min.dtype() != extent.dtype()) {
      min = VisitExpr(range->min);
      extent = VisitExpr(range->extent);
    }
    return Range::FromMinExtent(min, extent);
  }

  DataType narrow_;
  /*! \brief Variables that keep their type. */
  std::unordered_set<const VarNode*> stays_;
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
    return target_bits == 64 ? func->body : TypeNarrower(target_bits, func->body)(func->body);
  });
}

TVM_REGISTER_GLOBAL("tir.transform.NarrowDataType").set_body_typed(NarrowDataType);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
