/*!
 * \file src/tir/transforms/known_elements.cc
 * \brief What elements of buffers hold at a point of a program.
 */
#include "known_elements.h"

#include <tvm/arith/iter_affine_map.h>
#include <tvm/arith/iter_map_inverse.h>
#include <tvm/expr/analysis.h>
#include <tvm/node/structural_equal.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <utility>

namespace tvm {
namespace tir {
namespace {

bool IsPure(const PrimExpr& expr) {
  return expr.dtype().is_scalar() && SideEffect(expr) <= CallEffectKind::kPure;
}

bool Uses(const PrimExpr& expr, const VarNode* var) {
  return UsesVar(expr, [var](const VarNode* used) { return used == var; });
}

bool UsesAny(const PrimExpr& expr, const Map<Var, Range>& vars) {
  return !vars.empty() &&
         UsesVar(expr, [&vars](const VarNode* used) { return vars.count(GetRef<Var>(used)) != 0; });
}

/*! \brief The same map of variables with others in their place, which are in these ranges. */
Map<Var, PrimExpr> Renamed(const Map<Var, Range>& vars, Map<Var, Range>* renamed) {
  Map<Var, PrimExpr> others;
  for (const auto& [var, range] : vars) {
    Var other(std::string(var->name_hint) + "_other", var->dtype);
    others.Set(var, other);
    renamed->Set(other, range);
  }
  return others;
}

void BindAll(const Map<Var, Range>& vars, arith::Analyzer* analyzer) {
  for (const auto& [var, range] : vars) analyzer->Bind(var, range, /*allow_override=*/true);
}

/*! \brief Values of `vars` at which `indices` are `at`; empty if they cannot be told. */
Map<Var, PrimExpr> Solve(const Array<PrimExpr>& indices, const Array<PrimExpr>& at,
                         const Map<Var, Range>& vars, arith::Analyzer* analyzer) {
  Map<Var, PrimExpr> found;
  for (size_t d = 0; d < indices.size(); ++d) {
    for (const auto& [var, range] : vars) {
      if (found.count(var) || !Uses(indices[d], var.get())) continue;
      PrimExpr rest = analyzer->Simplify(indices[d] - var);
      if (!UsesAny(rest, vars)) found.Set(var, analyzer->Simplify(at[d] - rest));
    }
  }
  if (found.size() == vars.size()) return found;
  auto map = arith::DetectIterMap(indices, vars, arith::IterMapLevel::kBijective);
  if (map->indices.empty()) return {};
  Map<Var, PrimExpr> inverse = arith::InverseAffineIterMap(map->indices, at);
  return inverse.size() == vars.size() ? inverse : Map<Var, PrimExpr>();
}

}  // namespace

bool KnownElements::Same(const Fact& a, const Fact& b) {
  StructuralEqual equal;
  return a.buffer.same_as(b.buffer) && equal(a.indices, b.indices) && equal(a.value, b.value) &&
         equal(a.guard, b.guard);
}

bool KnownElements::Has(const Fact& fact) const {
  return std::any_of(facts_.begin(), facts_.end(),
                     [&fact](const Fact& other) { return Same(fact, other); });
}

bool KnownElements::Differ(const Fact& fact, const BufferStoreNode* op, arith::Analyzer* analyzer) {
  if (!fact.buffer.same_as(op->buffer)) return false;
  BindAll(fact.over, analyzer);
  arith::ConstraintContext guard(analyzer, fact.guard);
  for (size_t i = 0; i < fact.indices.size(); ++i) {
    const PrimExpr& index = op->indices[i];
    if (index.dtype() == fact.indices[i].dtype() &&
        analyzer->CanProve(NE(index, fact.indices[i]))) {
      return true;
    }
  }
  return false;
}

void KnownElements::Store(const BufferStoreNode* op, const PrimExpr& value,
                          arith::Analyzer* analyzer) {
  const bool plain = std::all_of(op->indices.begin(), op->indices.end(), IsPure);
  std::vector<Fact> kept;
  for (Fact& fact : facts_) {
    if (fact.buffer->data.get() == op->buffer->data.get() && !Differ(fact, op, analyzer)) {
      // Of many elements, all but this one stay as they are.
      if (!fact.buffer.same_as(op->buffer) || !plain || fact.over.empty()) continue;
      PrimExpr another = const_false();
      for (size_t d = 0; d < fact.indices.size(); ++d) {
        another = another || NE(fact.indices[d], op->indices[d]);
      }
      fact.guard = fact.guard && another;
    }
    kept.push_back(std::move(fact));
  }
  facts_ = std::move(kept);
  if (plain && IsPure(value)) facts_.push_back({op->buffer, op->indices, value, const_true(), {}});
}

void KnownElements::Assume(const BufferLoadNode* load, const PrimExpr& value,
                           const PrimExpr& guard) {
  const bool plain = std::all_of(load->indices.begin(), load->indices.end(), IsPure);
  if (plain) facts_.push_back({load->buffer, load->indices, value, guard, {}});
}

void KnownElements::Forget(const VarNode* data) {
  auto reads = [data](const Fact& fact) { return fact.buffer->data.get() == data; };
  facts_.erase(std::remove_if(facts_.begin(), facts_.end(), reads), facts_.end());
}

void KnownElements::ForgetVar(const VarNode* var) {
  auto mentions = [var](const Fact& fact) {
    return Uses(fact.value, var) || Uses(fact.guard, var) ||
           std::any_of(fact.indices.begin(), fact.indices.end(),
                       [var](const PrimExpr& index) { return Uses(index, var); });
  };
  facts_.erase(std::remove_if(facts_.begin(), facts_.end(), mentions), facts_.end());
}

void KnownElements::ForgetWrites(const Stmt& stmt) {
  PostOrderVisit(stmt, [this](const ObjectRef& node) {
    if (const auto* store = node.as<BufferStoreNode>()) Forget(store->buffer->data.get());
    // A pointer that is passed on may be written through.
    if (const auto* var = node.as<VarNode>(); var && var->dtype.is_handle()) Forget(var);
  });
}

PrimExpr KnownElements::ValueAt(const Fact& fact, const Array<PrimExpr>& at,
                                arith::Analyzer* analyzer) {
  Map<Var, PrimExpr> point;
  if (!fact.over.empty()) {
    point = Solve(fact.indices, at, fact.over, analyzer);
    if (point.empty()) return PrimExpr();
    for (const auto& [var, range] : fact.over) {
      const PrimExpr value = point.at(var);
      if (!analyzer->CanProve(value >= range->min && value < range->min + range->extent)) {
        return PrimExpr();
      }
    }
  }
  for (size_t d = 0; d < at.size(); ++d) {
    const PrimExpr index = Substitute(fact.indices[d], point);
    if (at[d].dtype() != index.dtype() || !analyzer->CanProveEqual(at[d], index)) {
      return PrimExpr();
    }
  }
  if (!analyzer->CanProve(Substitute(fact.guard, point))) return PrimExpr();
  return Substitute(fact.value, point);
}

PrimExpr KnownElements::Lookup(const BufferLoadNode* op, arith::Analyzer* analyzer) const {
  for (const Fact& fact : facts_) {
    if (!fact.buffer.same_as(op->buffer)) continue;
    PrimExpr value = ValueAt(fact, op->indices, analyzer);
    if (value.defined()) return value;
  }
  return PrimExpr();
}

void KnownElements::Meet(const KnownElements& other, const PrimExpr& condition) {
  std::vector<Fact> met;
  for (const Fact& fact : facts_) {
    Fact kept = fact;
    if (!other.Has(fact)) {
      if (!condition.defined()) continue;
      kept.guard = kept.guard && condition;
    }
    met.push_back(kept);
  }
  if (condition.defined()) {
    for (const Fact& fact : other.facts_) {
      if (Has(fact)) continue;
      Fact kept = fact;
      kept.guard = kept.guard && !condition;
      met.push_back(kept);
    }
  }
  facts_ = std::move(met);
}

std::optional<KnownElements::Writes> KnownElements::WritesOf(const Stmt& body) {
  class Collector final : public StmtExprVisitor {
   public:
    Writes writes;
    bool complete = true;

   private:
    void VisitStmt_(const ForNode* op) final {
      inner_.Set(op->loop_var, Range::FromMinExtent(op->min, op->extent));
      StmtExprVisitor::VisitStmt_(op);
      inner_.erase(op->loop_var);
    }
    void VisitStmt_(const LetStmtNode* op) final {
      // Whatever it is, it may be another one in each trip.
      inner_.Set(op->var, Range());
      StmtExprVisitor::VisitStmt_(op);
      inner_.erase(op->var);
    }
    void VisitStmt_(const IfThenElseNode* op) final {
      VisitExpr(op->condition);
      const PrimExpr around = condition_;
      const bool lasts = IsPure(op->condition) && !UsesAny(op->condition, inner_);
      if (lasts) condition_ = around && op->condition;
      VisitStmt(op->then_case);
      if (lasts) condition_ = around && !op->condition;
      if (op->else_case.defined()) VisitStmt(op->else_case);
      condition_ = around;
    }
    void VisitStmt_(const BlockNode* op) final { complete = false; }
    void VisitStmt_(const BufferStoreNode* op) final {
      writes[op->buffer->data.get()].push_back({op, inner_, condition_});
      StmtExprVisitor::VisitStmt_(op);
    }
    void VisitExpr_(const VarNode* op) final { complete = complete && !op->dtype.is_handle(); }
    Map<Var, Range> inner_;
    PrimExpr condition_ = const_true();
  };
  Collector collector;
  collector(body);
  if (!collector.complete) return std::nullopt;
  return std::move(collector.writes);
}

KnownElements KnownElements::EnterLoop(const ForNode* loop, arith::Analyzer* analyzer) {
  const std::optional<Writes> writes = WritesOf(loop->body);
  KnownElements first, after;
  const bool in_order = loop->kind == ForKind::kSerial || loop->kind == ForKind::kUnrolled;
  if (!writes) {
    ForgetWrites(loop->body);
    return *this;
  }
  for (const Fact& fact : facts_) {
    auto found = writes->find(fact.buffer->data.get());
    if (found == writes->end()) {
      first.facts_.push_back(fact);
      after.facts_.push_back(fact);
      continue;
    }
    // Where a dimension moves with the loop alone, earlier trips have written what lies before it.
    Fact now = fact, later = fact;
    bool is_known = in_order;
    for (const Write& write : found->second) {
      bool is_bounded = false;
      for (size_t d = 0; d < fact.indices.size() && write.store->buffer.same_as(fact.buffer); ++d) {
        const PrimExpr& index = write.store->indices[d];
        if (!IsPure(index) || index.dtype() != loop->loop_var.dtype() ||
            fact.indices[d].dtype() != index.dtype()) {
          continue;
        }
        const PrimExpr rest = analyzer->Simplify(index - loop->loop_var);
        if (Uses(rest, loop->loop_var.get()) || UsesAny(rest, write.inner)) continue;
        const PrimExpr trip = fact.indices[d] - rest;
        const PrimExpr skipped =
            !Substitute(write.condition, Map<Var, PrimExpr>{{loop->loop_var, trip}});
        const PrimExpr end = loop->min + loop->extent;
        now.guard = now.guard && (trip < loop->min || trip >= loop->loop_var || skipped);
        later.guard = later.guard && (trip < loop->min || trip >= end || skipped);
        is_bounded = true;
        break;
      }
      is_known = is_known && is_bounded;
    }
    if (!is_known) continue;
    first.facts_.push_back(now);
    after.facts_.push_back(later);
  }
  *this = std::move(first);
  return after;
}

void KnownElements::LeaveLoop(const ForNode* loop, const KnownElements& first, KnownElements after,
                              arith::Analyzer* analyzer) {
  const std::optional<Writes> writes = WritesOf(loop->body);
  const Range range = Range::FromMinExtent(loop->min, loop->extent);
  const bool in_order = loop->kind == ForKind::kSerial || loop->kind == ForKind::kUnrolled;
  if (writes && in_order) {
    for (Fact& fact : facts_) {
      if (first.Has(fact)) continue;
      BindAll(fact.over, analyzer);
      analyzer->Bind(loop->loop_var, range, /*allow_override=*/true);
      // A later trip, `later` trips on, does not write what this one knows.
      const Var later("later", loop->loop_var.dtype());
      bool lasts = true;
      auto found = writes->find(fact.buffer->data.get());
      if (found != writes->end()) {
        analyzer->Bind(later, Range::FromMinExtent(make_const(later.dtype(), 1), loop->extent));
        for (const Write& write : found->second) {
          Map<Var, Range> others;
          Map<Var, PrimExpr> next = Renamed(write.inner, &others);
          next.Set(loop->loop_var, loop->loop_var + later);
          bool differs = false;
          const bool bounded = std::all_of(others.begin(), others.end(), [](const auto& other) {
            return other.second.defined();
          });
          if (bounded) BindAll(others, analyzer);
          for (size_t d = 0; bounded && !differs && d < fact.indices.size() &&
                             write.store->buffer.same_as(fact.buffer);
               ++d) {
            const PrimExpr written = Substitute(write.store->indices[d], next);
            differs = IsPure(written) && written.dtype() == fact.indices[d].dtype() &&
                      analyzer->CanProve(NE(written, fact.indices[d]));
          }
          lasts = lasts && differs;
        }
      }
      if (!lasts) continue;
      // Solving for a variable that moves no index is not possible.
      const bool moves =
          std::any_of(fact.indices.begin(), fact.indices.end(),
                      [&](const PrimExpr& index) { return Uses(index, loop->loop_var.get()); });
      if (!moves) continue;
      // The variable may be bound once more behind the loop.
      const Var own = loop->loop_var.copy_with_suffix("");
      const Map<Var, PrimExpr> renamed{{loop->loop_var, own}};
      Fact lasting = fact;
      lasting.indices.clear();
      for (const PrimExpr& index : fact.indices) {
        lasting.indices.push_back(Substitute(index, renamed));
      }
      lasting.value = Substitute(fact.value, renamed);
      lasting.guard = Substitute(fact.guard, renamed);
      lasting.over.Set(own, range);
      after.facts_.push_back(lasting);
    }
  }
  *this = std::move(after);
  ForgetVar(loop->loop_var.get());
}

}  // namespace tir
}  // namespace tvm
