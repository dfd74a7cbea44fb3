/*!
 * \file src/tir/transforms/vectorize_loop.cc
 * \brief Vectorised loops become code on vectors of the machine's width.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/lanes.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/analysis.h>

#include <algorithm>

#include "pass_common.h"

namespace tvm {
namespace tir {
namespace {

/*! \brief `expr` with `lanes` lanes; a scalar is broadcast. */
PrimExpr WithLanes(PrimExpr expr, int lanes) {
  if (expr.dtype().lanes() == lanes) return expr;
  ICHECK(expr.dtype().is_scalar());
  return Broadcast(std::move(expr), lanes);
}

/*!
 * \brief Rewrites a body for `lanes` consecutive values of a variable at once.
 *
 * An expression that does not depend on the variable stays scalar, any other gets `lanes` lanes. A
 * statement that cannot be carried out on vectors runs as a serial loop over the lanes. Where the
 * last lanes are beyond a loop's end, what is left takes narrower vectors.
 */
class Vectorizer final : public StmtExprMutator {
 public:
  Vectorizer(Var var, PrimExpr base, int lanes)
      : var_(std::move(var)), base_(std::move(base)), lanes_(lanes) {
    ramp_ = Ramp(base_, make_const(base_.dtype(), 1), lanes_);
  }

  Stmt VisitStmt(const Stmt& stmt) final {
    bool outer = scalarize_;
    scalarize_ = false;
    Stmt result = StmtExprMutator::VisitStmt(stmt);
    if (scalarize_) result = Scalarize(stmt);
    scalarize_ = outer;
    return result;
  }

 private:
  Stmt Scalarize(const Stmt& stmt) {
    Var lane = var_.copy_with_suffix("_lane");
    Stmt body = Substitute(stmt, Map<Var, PrimExpr>{{var_, base_ + lane}});
    return For(lane, make_zero(lane->dtype), LaneCount(lanes_, lane->dtype), ForKind::kSerial,
               body);
  }
  PrimExpr GiveUp(const PrimExpr& expr) {
    scalarize_ = true;
    return expr;
  }
  Stmt GiveUpStmt(const Stmt& stmt) {
    scalarize_ = true;
    return stmt;
  }
  PrimExpr Wide(const PrimExpr& expr) { return WithLanes(expr, lanes_); }

  // ---- expressions ----
  PrimExpr VisitExpr_(const VarNode* op) final {
    if (op == var_.get()) return ramp_;
    auto it = lets_.find(op);
    return it == lets_.end() ? GetRef<PrimExpr>(op) : PrimExpr(it->second);
  }

  /*! \brief Sum or difference, which keeps a ramp a ramp. */
  template <typename Node, typename F>
  PrimExpr Linear(const Node* op, F combine) {
    PrimExpr a = VisitExpr(op->a);
    PrimExpr b = VisitExpr(op->b);
    if (a.same_as(op->a) && b.same_as(op->b)) return GetRef<PrimExpr>(op);
    if (a.dtype().lanes() == b.dtype().lanes()) {
      const auto* x = a.template as<RampNode>();
      const auto* y = b.template as<RampNode>();
      if (x != nullptr && y != nullptr) {
        PrimExpr stride = combine(x->stride, y->stride);
        PrimExpr base = combine(x->base, y->base);
        // Equal ramps cancel to a value that is the same in every lane.
        return is_zero(stride) ? base : Ramp(base, stride, x->lanes);
      }
    } else if (const auto* x = a.template as<RampNode>()) {
      return Ramp(combine(x->base, b), x->stride, x->lanes);
    } else if (const auto* y = b.template as<RampNode>()) {
      PrimExpr zero = make_zero(y->stride.dtype());
      return Ramp(combine(a, y->base), combine(zero, y->stride), y->lanes);
    }
    return Elementwise(a, b, combine);
  }
  template <typename F>
  PrimExpr Elementwise(const PrimExpr& a, const PrimExpr& b, F combine) {
    int lanes = CommonLanes(a.dtype().lanes(), b.dtype().lanes());
    return combine(WithLanes(a, lanes), WithLanes(b, lanes));
  }

  PrimExpr VisitExpr_(const AddNode* op) final {
    return Linear(op, [](PrimExpr a, PrimExpr b) { return a + b; });
  }
  PrimExpr VisitExpr_(const SubNode* op) final {
    return Linear(op, [](PrimExpr a, PrimExpr b) { return a - b; });
  }
  PrimExpr VisitExpr_(const MulNode* op) final {
    PrimExpr a = VisitExpr(op->a);
    PrimExpr b = VisitExpr(op->b);
    if (a.same_as(op->a) && b.same_as(op->b)) return GetRef<PrimExpr>(op);
    const auto* ramp = a.as<RampNode>();
    PrimExpr factor = b;
    if (ramp == nullptr) {
      ramp = b.as<RampNode>();
      factor = a;
    }
    if (ramp != nullptr && factor.dtype().is_scalar()) {
      return Ramp(ramp->base * factor, ramp->stride * factor, ramp->lanes);
    }
    return Elementwise(a, b, [](PrimExpr x, PrimExpr y) { return x * y; });
  }

  /*! \brief A ramp that stays between two multiples of the divisor divides as a scalar does. */
  const RampNode* WithinOneQuotient(const PrimExpr& a, const PrimExpr& b) {
    const auto* ramp = a.as<RampNode>();
    if (ramp == nullptr || !b.dtype().is_scalar() || !is_positive_const(b)) return nullptr;
    PrimExpr last = LastOfRamp(ramp);
    return analyzer_.CanProveEqual(floordiv(ramp->base, b), floordiv(last, b)) ? ramp : nullptr;
  }
  PrimExpr VisitExpr_(const FloorDivNode* op) final {
    PrimExpr a = VisitExpr(op->a);
    PrimExpr b = VisitExpr(op->b);
    if (a.same_as(op->a) && b.same_as(op->b)) return GetRef<PrimExpr>(op);
    if (const RampNode* ramp = WithinOneQuotient(a, b)) return floordiv(ramp->base, b);
    return Elementwise(a, b, [](PrimExpr x, PrimExpr y) { return floordiv(x, y); });
  }
  PrimExpr VisitExpr_(const FloorModNode* op) final {
    PrimExpr a = VisitExpr(op->a);
    PrimExpr b = VisitExpr(op->b);
    if (a.same_as(op->a) && b.same_as(op->b)) return GetRef<PrimExpr>(op);
    if (const RampNode* ramp = WithinOneQuotient(a, b)) {
      return Ramp(floormod(ramp->base, b), ramp->stride, ramp->lanes);
    }
    return Elementwise(a, b, [](PrimExpr x, PrimExpr y) { return floormod(x, y); });
  }

#define TVM_TIR_VECTORIZE_BINARY(Name, Func)                                     \
  PrimExpr VisitExpr_(const Name##Node* op) final {                              \
    PrimExpr a = VisitExpr(op->a);                                               \
    PrimExpr b = VisitExpr(op->b);                                               \
    if (a.same_as(op->a) && b.same_as(op->b)) return GetRef<PrimExpr>(op);       \
    return Elementwise(a, b, [](PrimExpr x, PrimExpr y) { return Func(x, y); }); \
  }
  TVM_TIR_VECTORIZE_BINARY(Div, div)
  TVM_TIR_VECTORIZE_BINARY(Mod, truncmod)
  TVM_TIR_VECTORIZE_BINARY(Min, min)
  TVM_TIR_VECTORIZE_BINARY(Max, max)
  TVM_TIR_VECTORIZE_BINARY(EQ, equal)
  TVM_TIR_VECTORIZE_BINARY(NE, not_equal)
  TVM_TIR_VECTORIZE_BINARY(LT, less)
  TVM_TIR_VECTORIZE_BINARY(LE, less_equal)
  TVM_TIR_VECTORIZE_BINARY(GT, greater)
  TVM_TIR_VECTORIZE_BINARY(GE, greater_equal)
  TVM_TIR_VECTORIZE_BINARY(And, logical_and)
  TVM_TIR_VECTORIZE_BINARY(Or, logical_or)
#undef TVM_TIR_VECTORIZE_BINARY

  PrimExpr VisitExpr_(const CastNode* op) final {
    PrimExpr value = VisitExpr(op->value);
    if (value.same_as(op->value)) return GetRef<PrimExpr>(op);
    return cast(op->dtype.with_lanes(value.dtype().lanes()), value);
  }
  PrimExpr VisitExpr_(const SelectNode* op) final {
    PrimExpr condition = VisitExpr(op->condition);
    PrimExpr t = VisitExpr(op->true_value);
    PrimExpr f = VisitExpr(op->false_value);
    if (condition.same_as(op->condition) && t.same_as(op->true_value) &&
        f.same_as(op->false_value)) {
      return GetRef<PrimExpr>(op);
    }
    int lanes =
        CommonLanes(condition.dtype().lanes(), CommonLanes(t.dtype().lanes(), f.dtype().lanes()));
    return Select(condition, WithLanes(t, lanes), WithLanes(f, lanes));
  }
  PrimExpr VisitExpr_(const LetNode* op) final {
    PrimExpr value = VisitExpr(op->value);
    Var var = op->var;
    if (value.dtype() != op->var->dtype) {
      var = Var(op->var->name_hint, value.dtype());
      lets_[op->var.get()] = var;
    }
    PrimExpr body = VisitExpr(op->body);
    if (value.same_as(op->value) && body.same_as(op->body)) return GetRef<PrimExpr>(op);
    return Let(var, value, body);
  }
  PrimExpr VisitExpr_(const CallNode* op) final {
    PrimExpr expr = GetRef<PrimExpr>(op);
    bool changed = false;
    Array<PrimExpr> args;
    for (const PrimExpr& arg : op->args) {
      args.push_back(VisitExpr(arg));
      changed = changed || !args.back().same_as(arg);
    }
    if (!changed) return expr;
    if (op->op.same_as(builtin::if_then_else())) {
      // The branch not taken may not be evaluated, so lanes that disagree need a loop.
      if (args[0].dtype().is_vector()) return GiveUp(expr);
      int lanes = CommonLanes(args[1].dtype().lanes(), args[2].dtype().lanes());
      return Call(op->dtype.with_lanes(lanes), op->op,
                  {args[0], WithLanes(args[1], lanes), WithLanes(args[2], lanes)});
    }
    bool elementwise =
        op->op->IsInstance<OpNode>() && SideEffect(expr) <= CallEffectKind::kReadState &&
        !op->op.same_as(builtin::address_of()) && !op->op.same_as(builtin::tvm_struct_get()) &&
        !op->op.same_as(builtin::call_pure_extern()) &&
        !op->op.same_as(builtin::call_llvm_pure_intrin()) && op->dtype.is_scalar();
    if (!elementwise) return GiveUp(expr);
    // Elementary functions are written for vectors of known length.
    if (lanes_ < 0 && Downcast<Op>(op->op).GetAttr<bool>(kTElementary, false)) return GiveUp(expr);
    int lanes = 1;
    for (const PrimExpr& arg : args) lanes = CommonLanes(lanes, arg.dtype().lanes());
    Array<PrimExpr> wide;
    for (const PrimExpr& arg : args) {
      // The name of an intrinsic is no operand.
      wide.push_back(arg.as<StringImmNode>() != nullptr ? arg : WithLanes(arg, lanes));
    }
    return Call(op->dtype.with_lanes(lanes), op->op, wide);
  }
  PrimExpr VisitExpr_(const BufferLoadNode* op) final {
    PrimExpr expr = GetRef<PrimExpr>(op);
    Array<PrimExpr> indices = VisitExprs(op->indices);
    if (indices.same_as(op->indices)) return expr;
    if (!VectorAccess(op->buffer, indices)) return GiveUp(expr);
    return BufferLoad(op->buffer, indices);
  }

  /*! \brief Only the last index may be a vector, and only of scalar elements. */
  static bool VectorAccess(const Buffer& buffer, const Array<PrimExpr>& indices) {
    for (size_t i = 0; i + 1 < indices.size(); ++i) {
      if (indices[i].dtype().is_vector()) return false;
    }
    return buffer->dtype.is_scalar();
  }

  // ---- statements ----
  Stmt VisitStmt_(const BufferStoreNode* op) final {
    Array<PrimExpr> indices = VisitExprs(op->indices);
    PrimExpr value = VisitExpr(op->value);
    bool moves = !indices.empty() && indices.back().dtype().is_vector();
    // All lanes storing to one place is a dependence from lane to lane: a reduction.
    if (scalarize_ || !moves || !VectorAccess(op->buffer, indices)) {
      return GiveUpStmt(GetRef<Stmt>(op));
    }
    return BufferStore(op->buffer, Wide(value), indices);
  }
  Stmt VisitStmt_(const IfThenElseNode* op) final {
    PrimExpr condition = VisitExpr(op->condition);
    if (!scalarize_ && condition.dtype().is_vector()) return Guarded(op);
    if (scalarize_) return GiveUpStmt(GetRef<Stmt>(op));
    Stmt then_case = VisitStmt(op->then_case);
    Stmt else_case = op->else_case.defined() ? VisitStmt(op->else_case) : Stmt();
    return IfThenElse(condition, then_case, else_case);
  }

  /*!
   * \brief A branch on which lanes may disagree: vector code where all lanes take it, and a loop
   * over the lanes where they may not.
   */
  Stmt Guarded(const IfThenElseNode* op) {
    if (!HoldsBetween(op->condition)) return GiveUpStmt(GetRef<Stmt>(op));
    PrimExpr last_lane = LastOfRamp(ramp_.as<RampNode>());
    PrimExpr first = Substitute(op->condition, Map<Var, PrimExpr>{{var_, base_}});
    PrimExpr last = Substitute(op->condition, Map<Var, PrimExpr>{{var_, last_lane}});
    auto implies = [this](const PrimExpr& fact, const PrimExpr& claim) {
      arith::ConstraintContext given(&analyzer_, fact);
      return analyzer_.CanProve(claim);
    };
    PrimExpr fact_first = WithoutLikely(first), fact_last = WithoutLikely(last);
    bool together = implies(fact_first, fact_last) && implies(fact_last, fact_first);
    PrimExpr all = together ? first : likely(fact_first && fact_last);
    Stmt otherwise = op->else_case;
    if (!together) {
      otherwise = LeadingLanes(op);
      if (!otherwise.defined()) otherwise = Scalarize(RenewBindings(GetRef<Stmt>(op)));
    } else if (otherwise.defined()) {
      otherwise = VisitStmt(otherwise);
    }
    return IfThenElse(all, VisitStmt(op->then_case), otherwise);
  }

  /*!
   * \brief A branch that leading lanes alone take, fewer than all: vectors of half the lanes, a
   * quarter, ... as the digits of their number say. Undefined where others may take it.
   */
  Stmt LeadingLanes(const IfThenElseNode* op) {
    // How many widths there are between a scalable vector and one lane is not known.
    if (op->else_case.defined() || lanes_ < 0 || (lanes_ & (lanes_ - 1)) != 0) return Stmt();
    PrimExpr count = LeadingCount(op->condition);
    if (!count.defined()) return Stmt();
    count = max(count, make_zero(count.dtype()));
    auto number = [&count](int value) { return make_const(count.dtype(), value); };
    Array<Stmt> parts;
    for (int width = lanes_ / 2; width > 0; width /= 2) {
      PrimExpr twice = number(2 * width);
      PrimExpr base = base_ + cast(base_.dtype(), floordiv(count, twice) * twice);
      Stmt body = RenewBindings(op->then_case);
      body = width == 1 ? Substitute(body, Map<Var, PrimExpr>{{var_, base}})
                        : Vectorizer(var_, base, width)(body);
      parts.push_back(IfThenElse(floormod(count, twice) >= number(width), body));
    }
    return SeqStmt::Flatten(parts);
  }

  /*! \brief How many leading lanes a condition holds for, if for those only; may be negative. */
  PrimExpr LeadingCount(const PrimExpr& condition) {
    if (const auto* op = condition.as<AndNode>()) {
      PrimExpr a = LeadingCount(op->a), b = LeadingCount(op->b);
      if (!a.defined() || !b.defined() || a.dtype() != b.dtype()) return PrimExpr();
      return min(a, b);
    }
    if (const auto* call = condition.as<CallNode>()) {
      return call->op.same_as(builtin::likely()) ? LeadingCount(call->args[0]) : PrimExpr();
    }
    auto below = [this](const PrimExpr& small, const PrimExpr& limit) {
      PrimExpr lanes = VisitExpr(small), last = VisitExpr(limit);
      const auto* ramp = lanes.as<RampNode>();
      if (ramp == nullptr || !is_one(ramp->stride) || last.dtype().is_vector()) return PrimExpr();
      return last - ramp->base;
    };
    auto or_equal = [](const PrimExpr& count) {
      return count.defined() ? count + make_const(count.dtype(), 1) : count;
    };
    if (const auto* op = condition.as<LTNode>()) return below(op->a, op->b);
    if (const auto* op = condition.as<GTNode>()) return below(op->b, op->a);
    if (const auto* op = condition.as<LENode>()) return or_equal(below(op->a, op->b));
    if (const auto* op = condition.as<GENode>()) return or_equal(below(op->b, op->a));
    return PrimExpr();
  }

  static PrimExpr WithoutLikely(const PrimExpr& condition) {
    if (const auto* op = condition.as<AndNode>()) {
      return WithoutLikely(op->a) && WithoutLikely(op->b);
    }
    const auto* call = condition.as<CallNode>();
    return call != nullptr && call->op.same_as(builtin::likely()) ? call->args[0] : condition;
  }

  /*! \brief Whether a condition that holds at both ends of a range of the variable holds inside. */
  bool HoldsBetween(const PrimExpr& condition) {
    if (const auto* op = condition.as<AndNode>()) {
      return HoldsBetween(op->a) && HoldsBetween(op->b);
    }
    if (const auto* call = condition.as<CallNode>()) {
      return call->op.same_as(builtin::likely()) && HoldsBetween(call->args[0]);
    }
    auto linear = [this](const auto* op) {
      return op != nullptr && IsLinear(op->a) && IsLinear(op->b);
    };
    return linear(condition.as<LTNode>()) || linear(condition.as<LENode>()) ||
           linear(condition.as<GTNode>()) || linear(condition.as<GENode>());
  }
  bool IsLinear(const PrimExpr& expr) {
    PrimExpr wide = VisitExpr(expr);
    return wide.dtype().is_scalar() || wide.as<RampNode>() != nullptr;
  }
  Stmt VisitStmt_(const ForNode* op) final {
    PrimExpr min = VisitExpr(op->min);
    PrimExpr extent = VisitExpr(op->extent);
    if (scalarize_ || min.dtype().is_vector() || extent.dtype().is_vector()) {
      return GiveUpStmt(GetRef<Stmt>(op));
    }
    Stmt body = VisitStmt(op->body);
    return For(op->loop_var, min, extent, op->kind, body, op->thread_binding, op->annotations);
  }
  // A value per lane is a vector, if all that uses it works on vectors.
  Stmt VisitStmt_(const LetStmtNode* op) final {
    PrimExpr value = VisitExpr(op->value);
    if (scalarize_) return GiveUpStmt(GetRef<Stmt>(op));
    if (value.as<RampNode>()) {
      // Known as a ramp, it keeps accesses contiguous.
      return VisitStmt(Substitute(op->body, Map<Var, PrimExpr>{{op->var, op->value}}));
    }
    if (value.dtype() == op->var->dtype) return LetStmt(op->var, value, VisitStmt(op->body));
    Var wide(op->var->name_hint, value.dtype());
    lets_[op->var.get()] = wide;
    Stmt body = VisitStmt(op->body);
    lets_.erase(op->var.get());
    if (UsesVar(body, [op](const VarNode* var) { return var == op->var.get(); })) {
      return GiveUpStmt(GetRef<Stmt>(op));
    }
    return LetStmt(wide, value, body);
  }
  // Memory per lane or a test per lane: these run lane by lane.
  Stmt VisitStmt_(const AllocateNode* op) final { return GiveUpStmt(GetRef<Stmt>(op)); }
  Stmt VisitStmt_(const WhileNode* op) final { return GiveUpStmt(GetRef<Stmt>(op)); }
  Stmt VisitStmt_(const AssertStmtNode* op) final { return GiveUpStmt(GetRef<Stmt>(op)); }
  Stmt VisitStmt_(const EvaluateNode* op) final {
    const auto* call = op->value.as<CallNode>();
    if (call != nullptr && call->op.same_as(builtin::prefetch())) {
      // The lanes share a cache line or two: the first stands for all.
      return Substitute(GetRef<Stmt>(op), Map<Var, PrimExpr>{{var_, base_}});
    }
    return GiveUpStmt(GetRef<Stmt>(op));
  }
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    PrimExpr value = VisitExpr(op->value);
    if (!value.same_as(op->value)) return GiveUpStmt(GetRef<Stmt>(op));
    return StmtExprMutator::VisitStmt_(op);
  }

  Var var_;
  PrimExpr base_;
  int lanes_;
  PrimExpr ramp_;
  bool scalarize_ = false;
  arith::Analyzer analyzer_;
  std::unordered_map<const VarNode*, Var> lets_;
};

/*! \brief What decides how a loop is vectorised. */
struct BodyTraits {
  /*! \brief Bits of the widest element read or written; 0 if none is. */
  int widest_element = 0;
  bool has_vectors = false;
  bool has_elementary_functions = false;

  explicit BodyTraits(const Stmt& body) {
    PostOrderVisit(body, [this](const ObjectRef& node) {
      if (const auto* store = node.as<BufferStoreNode>()) {
        widest_element = std::max(widest_element, store->buffer->dtype.bits());
      } else if (const auto* expr = node.as<PrimExprNode>()) {
        has_vectors = has_vectors || expr->dtype.is_vector();
        if (const auto* load = node.as<BufferLoadNode>()) {
          widest_element = std::max(widest_element, load->buffer->dtype.bits());
        } else if (const auto* call = node.as<CallNode>()) {
          const auto* op = call->op.as<OpNode>();
          has_elementary_functions =
              has_elementary_functions ||
              (op != nullptr && GetRef<Op>(op).GetAttr<bool>(kTElementary, false));
        }
      }
    });
  }
};

class LoopVectorizer final : public StmtMutator {
 public:
  LoopVectorizer(int vector_bits, int interleaved)
      : vector_bits_(vector_bits), interleaved_(interleaved) {}

 private:
  // More whole pieces than this are a loop: written out they would only add code.
  static constexpr int64_t kMaxWrittenPieces = 4;

  Stmt VisitStmt_(const ForNode* op) final {
    if (op->kind != ForKind::kVectorized) return StmtMutator::VisitStmt_(op);
    // Inner vectorised loops first. Lanes of lanes do not exist, so a loop over vector code is
    // serial.
    Stmt body = VisitStmt(op->body);
    BodyTraits traits(body);
    if (std::optional<int> scalable = LanesOfCount(analyzer_.Simplify(op->extent));
        scalable && *scalable < 0 && !traits.has_vectors) {
      return Vectorizer(op->loop_var, op->min, *scalable)(body);
    }
    if (traits.has_vectors) {
      return For(op->loop_var, op->min, op->extent, ForKind::kSerial, body);
    }
    // A boolean takes a byte.
    int bits = std::max(traits.widest_element, 8);
    int lanes = std::max(1, vector_bits_ / bits);
    if (traits.has_elementary_functions) {
      // Functions of half types are computed in float32, so that one vector of them becomes two.
      lanes = std::max(lanes, interleaved_ * vector_bits_ / std::max(bits, 32));
    }
    if (traits.widest_element == 0) lanes = 1;
    DataType index = op->loop_var->dtype;
    const int64_t* extent = as_const_int(op->extent);
    if (extent == nullptr) {
      // The trip count is known at run time only: whole pieces, then one by one.
      PrimExpr width = make_const(index, lanes);
      PrimExpr pieces = floordiv(op->extent, width);
      PrimExpr done = pieces * width;
      Var rest = op->loop_var.copy_with_suffix("_rest");
      Stmt tail = Substitute(body, Map<Var, PrimExpr>{{op->loop_var, op->min + done + rest}});
      return SeqStmt::Flatten(
          {PieceLoop(op, body, pieces, lanes),
           For(rest, make_zero(index), op->extent - done, ForKind::kSerial, RenewBindings(tail))});
    }
    Array<Stmt> parts;
    int64_t pieces = *extent / lanes;
    int64_t done = pieces * lanes;
    if (pieces > kMaxWrittenPieces) {
      parts.push_back(PieceLoop(op, body, make_const(index, pieces), lanes));
    } else {
      for (int64_t i = 0; i < pieces; ++i) {
        parts.push_back(Piece(op, body, make_const(index, i * lanes), lanes));
      }
    }
    // What is left takes vectors of half, a quarter, ... of the width.
    for (int width = PowerOfTwoBelow(lanes); done < *extent; width /= 2) {
      if (*extent - done < width) continue;
      parts.push_back(Piece(op, body, make_const(index, done), width));
      done += width;
      width *= 2;
    }
    for (size_t i = 1; i < parts.size(); ++i) parts.Set(i, RenewBindings(parts[i]));
    return SeqStmt::Flatten(parts);
  }

  static int PowerOfTwoBelow(int lanes) {
    int width = 1;
    while (width * 2 <= lanes) width *= 2;
    return width;
  }

  Stmt PieceLoop(const ForNode* op, const Stmt& body, const PrimExpr& pieces, int lanes) {
    Var piece = op->loop_var.copy_with_suffix("_piece");
    PrimExpr offset = piece * make_const(piece->dtype, lanes);
    return For(piece, make_zero(piece->dtype), pieces, ForKind::kSerial,
               Piece(op, body, offset, lanes));
  }

  /*! \brief The body for `lanes` values of the loop variable from min + offset. */
  Stmt Piece(const ForNode* op, const Stmt& body, const PrimExpr& offset, int lanes) {
    PrimExpr base = op->min + offset;
    if (lanes == 1) return Substitute(body, Map<Var, PrimExpr>{{op->loop_var, base}});
    return Vectorizer(op->loop_var, base, lanes)(body);
  }

  int vector_bits_;
  int interleaved_;
  arith::Analyzer analyzer_;
};

class VectorizeSkipper final : public StmtMutator {
  Stmt VisitStmt_(const ForNode* op) final {
    Stmt stmt = StmtMutator::VisitStmt_(op);
    if (op->kind != ForKind::kVectorized) return stmt;
    For loop = Downcast<For>(stmt);
    loop.CopyOnWrite()->kind = ForKind::kSerial;
    return loop;
  }
};

}  // namespace

namespace transform {

Pass VectorizeLoop(bool enable, int vector_bits, int interleaved) {
  TVM_CHECK(vector_bits >= 8, ValueError)
      << "VectorizeLoop: vector_bits must be at least 8, got " << vector_bits;
  TVM_CHECK(interleaved >= 1, ValueError)
      << "VectorizeLoop: interleaved must be at least 1, got " << interleaved;
  return BodyPass("tir.VectorizeLoop",
                  [enable, vector_bits, interleaved](const PrimFunc& func, const PassContext&) {
                    if (!enable) return VectorizeSkipper()(func->body);
                    return LoopVectorizer(vector_bits, interleaved)(func->body);
                  });
}

TVM_REGISTER_GLOBAL("tir.transform.VectorizeLoop").set_body_typed(VectorizeLoop);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
