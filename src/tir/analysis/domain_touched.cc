/*!
 * \file src/tir/analysis/domain_touched.cc
 * \brief The part of a buffer that a statement reads or writes.
 */
#include "domain_touched.h"

#include <tvm/arith/analyzer.h>
#include <tvm/arith/int_set.h>
#include <tvm/arith/iter_affine_map.h>
#include <tvm/arith/pattern.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/stmt_functor.h>

#include <optional>
#include <unordered_set>
#include <utility>

namespace tvm {
namespace tir {

namespace {

using arith::Analyzer, arith::EvalSet, arith::IntSet;

using Domains = std::unordered_map<const VarNode*, IntSet>;

/*! \brief Makes domains smaller where a condition holds. */
class DomainNarrower {
 public:
  DomainNarrower(Domains* domains, Analyzer* analyzer) : domains_(domains), analyzer_(analyzer) {}

  void Assume(const PrimExpr& condition, bool holds) {
    const auto* call = condition.as<CallNode>();
    if (call != nullptr && call->op.same_as(builtin::likely())) {
      Assume(call->args[0], holds);
    } else if (const auto* inner = condition.as<NotNode>()) {
      Assume(inner->a, !holds);
    } else if (const auto* both = condition.as<AndNode>(); both != nullptr && holds) {
      Assume(both->a, true);
      Assume(both->b, true);
    } else if (const auto* either = condition.as<OrNode>(); either != nullptr && !holds) {
      Assume(either->a, false);
      Assume(either->b, false);
    } else if (const auto* lt = condition.as<LTNode>()) {
      holds ? AtLeast(lt->b - lt->a, 1) : AtLeast(lt->a - lt->b, 0);
    } else if (const auto* le = condition.as<LENode>()) {
      holds ? AtLeast(le->b - le->a, 0) : AtLeast(le->a - le->b, 1);
    } else if (const auto* gt = condition.as<GTNode>()) {
      holds ? AtLeast(gt->a - gt->b, 1) : AtLeast(gt->b - gt->a, 0);
    } else if (const auto* ge = condition.as<GENode>()) {
      holds ? AtLeast(ge->a - ge->b, 0) : AtLeast(ge->b - ge->a, 1);
    } else if (const auto* eq = condition.as<EQNode>(); eq != nullptr && holds) {
      AtLeast(eq->a - eq->b, 0);
      AtLeast(eq->b - eq->a, 0);
    } else if (eq != nullptr) {
      NotZero(eq->a - eq->b);
    } else if (const auto* ne = condition.as<NENode>()) {
      Assume(EQ(ne->a, ne->b), !holds);
    } else if (condition.dtype().is_int() && !condition.dtype().is_bool()) {
      // A number is a condition as in C.
      Assume(NE(condition, make_zero(condition.dtype())), holds);
    }
  }

 private:
  /*! \brief That `value`, a variable or its negation and a constant, is no less than `least`. */
  void AtLeast(const PrimExpr& value, int64_t least) {
    if (!value.dtype().is_int() || !value.dtype().is_scalar()) return;
    for (auto& [node, domain] : *domains_) {
      Var var = GetRef<Var>(node);
      Array<PrimExpr> linear = arith::DetectLinearEquation(value, {var});
      if (linear.size() != 2) continue;
      const int64_t* factor = as_const_int(linear[0]);
      PrimExpr simple = analyzer_->Simplify(linear[1]);
      const int64_t* rest = as_const_int(simple);
      if (factor == nullptr || rest == nullptr || (*factor != 1 && *factor != -1)) continue;
      PrimExpr bound = make_const(var.dtype(), *factor == 1 ? least - *rest : *rest - least);
      IntSet half = *factor == 1 ? IntSet::Interval(bound, arith::PosInf())
                                 : IntSet::Interval(arith::NegInf(), bound);
      domain = Intersect({domain, half}, analyzer_);
    }
  }

  /*! \brief That `value` is not zero, which matters where that is the end of its domain. */
  void NotZero(const PrimExpr& value) {
    if (!value.dtype().is_int() || !value.dtype().is_scalar()) return;
    const IntSet set = EvalSet(value, *domains_, analyzer_);
    if (set.HasLowerBound() && analyzer_->CanProveGreaterEqual(set.min(), 0)) AtLeast(value, 1);
    if (set.HasUpperBound() && analyzer_->CanProve(set.max() <= 0)) {
      AtLeast(analyzer_->Simplify(make_zero(value.dtype()) - value), 1);
    }
  }

  Domains* domains_;
  Analyzer* analyzer_;
};

class TouchCollector : public StmtExprVisitor {
 public:
  TouchCollector(const Buffer& buffer, bool loads, bool stores, bool conditions = false)
      : buffer_(buffer),
        loads_(loads),
        stores_(stores),
        conditions_(conditions),
        touched_(buffer->shape.size()) {}

  Array<Range> Run(const Stmt& body) {
    PostOrderVisit(body, [this](const ObjectRef& node) {
      if (const auto* store = node.as<BufferStoreNode>()) {
        written_.insert(store->buffer->data.get());
      }
    });
    VisitStmt(body);
    Array<Range> out;
    for (size_t i = 0; i < touched_.size(); ++i) {
      Range whole = Range::FromMinExtent(make_zero(buffer_->shape[i].dtype()), buffer_->shape[i]);
      out.push_back(touched_[i].empty()
                        ? Range::FromMinExtent(whole->min, make_zero(whole->min.dtype()))
                        : Union(touched_[i], &analyzer_).CoverRange(whole));
    }
    return out;
  }

 private:
  using StmtExprVisitor::VisitExpr_;
  using StmtExprVisitor::VisitStmt_;

  void VisitStmt_(const ForNode* op) override {
    Loop(op->loop_var, Range::FromMinExtent(op->min, op->extent),
         [&] { StmtExprVisitor::VisitStmt_(op); });
  }

  template <typename F>
  void Loop(const Var& var, const Range& range, F visit) {
    domains_[var.get()] = Relax(range);
    loops_.emplace_back(var, range);
    visit();
    loops_.pop_back();
    domains_.erase(var.get());
  }

  void VisitStmt_(const LetStmtNode* op) override {
    VisitExpr(op->value);
    const VarNode* var = op->var.get();
    domains_[var] = EvalSet(op->value, domains_, &analyzer_);
    VisitStmt(op->body);
    domains_.erase(var);
  }

  void VisitExpr_(const LetNode* op) override {
    VisitExpr(op->value);
    const VarNode* var = op->var.get();
    domains_[var] = EvalSet(op->value, domains_, &analyzer_);
    VisitExpr(op->body);
    domains_.erase(var);
  }

  void VisitStmt_(const BlockRealizeNode* op) override {
    const Array<IterVar>& iters = op->block->iter_vars;
    for (size_t i = 0; i < iters.size(); ++i) {
      domains_[iters[i]->var.get()] = EvalSet(op->iter_values[i], domains_, &analyzer_);
      values_[iters[i]->var.get()] = Substitute(op->iter_values[i], values_);
    }
    Where(op->predicate, true, [&] { StmtExprVisitor::VisitStmt_(op); });
    for (const IterVar& iter : iters) {
      domains_.erase(iter->var.get());
      values_.erase(iter->var.get());
    }
  }

  void VisitStmt_(const IfThenElseNode* op) override {
    VisitExpr(op->condition);
    Where(op->condition, true, [&] { VisitStmt(op->then_case); });
    if (op->else_case.defined()) {
      Where(op->condition, false, [&] { VisitStmt(op->else_case); });
    }
  }

  void VisitExpr_(const CallNode* op) override {
    if (!op->op.same_as(builtin::if_then_else())) {
      StmtExprVisitor::VisitExpr_(op);
      return;
    }
    VisitExpr(op->args[0]);
    Where(op->args[0], true, [&] { VisitExpr(op->args[1]); });
    Where(op->args[0], false, [&] { VisitExpr(op->args[2]); });
  }

  template <typename F>
  void Where(const PrimExpr& condition, bool holds, F visit) {
    if (!conditions_) {
      visit();
      return;
    }
    Domains outer = domains_;
    const size_t facts = facts_.size();
    DomainNarrower(&domains_, &analyzer_).Assume(condition, holds);
    if (holds) AddFacts(condition);
    // Where nothing is left, nothing is done.
    bool reached = true;
    for (const auto& [var, domain] : domains_) reached = reached && !domain.IsNothing();
    if (reached) visit();
    domains_ = std::move(outer);
    facts_.resize(facts);
  }

  /*! \brief Remember bounds of sums, which say more of an index than bounds of their terms. */
  void AddFacts(const PrimExpr& condition) {
    const auto* call = condition.as<CallNode>();
    if (call != nullptr && call->op.same_as(builtin::likely())) return AddFacts(call->args[0]);
    if (const auto* both = condition.as<AndNode>()) {
      AddFacts(both->a);
      AddFacts(both->b);
      return;
    }
    bool bound = condition.as<LTNode>() || condition.as<LENode>() || condition.as<GTNode>() ||
                 condition.as<GENode>();
    if (bound) facts_.push_back(Substitute(condition, values_));
  }

  void VisitStmt_(const AttrStmtNode* op) override {
    const auto* thread = op->node.as<IterVarNode>();
    if (thread && (op->attr_key == "thread_extent" || op->attr_key == "virtual_thread")) {
      Loop(thread->var, Range::FromMinExtent(make_zero(op->value.dtype()), op->value),
           [&] { StmtExprVisitor::VisitStmt_(op); });
    } else {
      StmtExprVisitor::VisitStmt_(op);
    }
  }

  void VisitExpr_(const BufferLoadNode* op) override {
    if (loads_ && op->buffer.same_as(buffer_)) Touch(op->indices);
    StmtExprVisitor::VisitExpr_(op);
  }

  void VisitStmt_(const BufferStoreNode* op) override {
    if (stores_ && op->buffer.same_as(buffer_)) Touch(op->indices);
    StmtExprVisitor::VisitStmt_(op);
  }

  IntSet Relax(const Range& range) { return EvalSet(range, domains_, &analyzer_); }

  void Touch(const Array<PrimExpr>& indices) {
    for (size_t i = 0; i < touched_.size(); ++i) {
      if (ReadsWritten(indices[i])) {
        touched_[i].push_back(IntSet::Everything());
        continue;
      }
      // An index that no loop moves is one place, and stays as it is written.
      const bool moves =
          UsesVar(indices[i], [this](const VarNode* var) { return domains_.count(var) != 0; });
      IntSet set =
          moves ? EvalSet(indices[i], domains_, &analyzer_) : IntSet::SinglePoint(indices[i]);
      const PrimExpr index = facts_.empty() ? indices[i] : Substitute(indices[i], values_);
      for (const PrimExpr& fact : facts_) {
        if (std::optional<IntSet> narrower = Bounded(index, fact)) {
          set = Intersect({set, *narrower}, &analyzer_);
        }
      }
      touched_[i].push_back(set);
    }
  }

  /*! \brief Values of an index that is made of a sum that a fact bounds; nothing if it is not. */
  std::optional<IntSet> Bounded(const PrimExpr& index, const PrimExpr& fact) {
    Map<Var, Range> ranges;
    bool shared = false;
    for (const auto& [var, range] : loops_) {
      auto uses = [&var = var](const VarNode* used) { return used == var.get(); };
      bool in_index = UsesVar(index, uses), in_fact = UsesVar(fact, uses);
      if (!in_index && !in_fact) continue;
      shared |= in_index && in_fact;
      const int64_t* extent = as_const_int(range->extent);
      if (extent == nullptr || *extent < 1 || !as_const_int(range->min)) return std::nullopt;
      ranges.Set(var, range);
    }
    if (!shared || !index.dtype().is_int() || !index.dtype().is_scalar()) return std::nullopt;
    arith::IterMapResult found =
        arith::DetectIterMap({index}, ranges, arith::IterMapLevel::kNoCheck, fact);
    if (!found->IsExact()) return std::nullopt;
    const arith::IterSumExpr& sum = found->indices[0];
    if (sum->args.empty()) return IntSet::SinglePoint(sum->base);
    const arith::IterSplitExpr& split = sum->args[0];
    const int64_t* scale = as_const_int(split->scale);
    // Sizes that depend on outer loops are none that memory can have.
    if (!as_const_int(split->extent) || scale == nullptr || *scale < 0) return std::nullopt;
    const PrimExpr reach = (split->extent - make_const(index.dtype(), 1)) * split->scale;
    return IntSet::Interval(sum->base, analyzer_.Simplify(sum->base + reach));
  }

  /*! \brief Whether an index is read from where the body writes: it has no one value. */
  bool ReadsWritten(const PrimExpr& index) const {
    bool found = false;
    PostOrderVisit(index, [&](const ObjectRef& node) {
      const auto* load = node.as<BufferLoadNode>();
      found = found || (load != nullptr && written_.count(load->buffer->data.get()) != 0);
    });
    return found;
  }

  Buffer buffer_;
  bool loads_, stores_, conditions_;
  std::vector<Array<IntSet>> touched_;
  Domains domains_;
  std::vector<std::pair<Var, Range>> loops_;
  /*! \brief What variables of blocks are, and bounds that hold here, in terms of loops. */
  std::unordered_map<const VarNode*, PrimExpr> values_;
  std::vector<PrimExpr> facts_;
  std::unordered_set<const VarNode*> written_;
  Analyzer analyzer_;
};

}  // namespace

Array<Range> DomainTouched(const Stmt& body, const Buffer& buffer, bool consider_loads,
                           bool consider_stores) {
  TVM_CHECK(body.defined() && buffer.defined(), ValueError)
      << "DomainTouched: needs a statement and a buffer, got None";
  return TouchCollector(buffer, consider_loads, consider_stores).Run(body);
}

Array<Range> DomainTouchedWhere(const Stmt& body, const Buffer& buffer) {
  return TouchCollector(buffer, true, true, true).Run(body);
}

TVM_REGISTER_GLOBAL("arith.DomainTouched").set_body_typed(DomainTouched);

}  // namespace tir
}  // namespace tvm
