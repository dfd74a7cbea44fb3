/*!
 * \file src/tir/transforms/loop_partition.cc
 * \brief Loops are split where a likely condition starts or stops to hold.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/arith/bound.h>
#include <tvm/arith/int_set.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/builtin.h>
#include <tvm/tir/op.h>

#include <unordered_set>

#include "pass_common.h"

namespace tvm {
namespace tir {
namespace {

bool Uses(const PrimExpr& expr, const Var& var) {
  return UsesVar(expr, [&var](const VarNode* used) { return used == var.get(); });
}

/*! \brief A likely condition of a loop body with the loops between it and that body. */
struct Candidate {
  PrimExpr call;
  std::unordered_map<const VarNode*, arith::IntSet> inner_loops;
};

/*! \brief Finds the likely conditions that mention a variable. */
class CandidateFinder final : public StmtExprVisitor {
 public:
  explicit CandidateFinder(Var var) : var_(std::move(var)) {}
  std::vector<Candidate> found;

 private:
  void VisitExpr_(const CallNode* op) final {
    if (op->op.same_as(builtin::likely()) && Uses(op->args[0], var_)) {
      found.push_back({GetRef<PrimExpr>(op), loops_});
      return;
    }
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitStmt_(const ForNode* op) final {
    loops_.emplace(op->loop_var.get(),
                   arith::IntSet::FromRange(Range::FromMinExtent(op->min, op->extent)));
    StmtExprVisitor::VisitStmt_(op);
    loops_.erase(op->loop_var.get());
  }

  Var var_;
  std::unordered_map<const VarNode*, arith::IntSet> loops_;
};

/*! \brief Drops the given likely calls, which hold. */
class ConditionRemover final : public StmtExprMutator {
 public:
  explicit ConditionRemover(const std::unordered_set<const Object*>& calls) : calls_(calls) {}

 private:
  PrimExpr VisitExpr_(const CallNode* op) final {
    if (calls_.count(op) != 0) return const_true();
    PrimExpr expr = StmtExprMutator::VisitExpr_(op);
    const auto* call = expr.as<CallNode>();
    if (call->op.same_as(builtin::if_then_else())) {
      if (const int64_t* known = as_const_int(call->args[0])) return call->args[*known ? 1 : 2];
    }
    return expr;
  }
  PrimExpr VisitExpr_(const AndNode* op) final { return VisitExpr(op->a) && VisitExpr(op->b); }
  PrimExpr VisitExpr_(const OrNode* op) final { return VisitExpr(op->a) || VisitExpr(op->b); }
  PrimExpr VisitExpr_(const SelectNode* op) final {
    PrimExpr expr = StmtExprMutator::VisitExpr_(op);
    const auto* select = expr.as<SelectNode>();
    const int64_t* known = as_const_int(select->condition);
    if (known == nullptr) return expr;
    return *known ? select->true_value : select->false_value;
  }
  Stmt VisitStmt_(const IfThenElseNode* op) final {
    Stmt stmt = StmtExprMutator::VisitStmt_(op);
    const auto* branch = stmt.as<IfThenElseNode>();
    const int64_t* known = as_const_int(branch->condition);
    if (known == nullptr) return stmt;
    if (*known) return branch->then_case;
    return branch->else_case.defined() ? branch->else_case : Evaluate(0);
  }

  const std::unordered_set<const Object*>& calls_;
};

class LoopPartitioner final : public StmtMutator {
 public:
  explicit LoopPartitioner(bool constant_loops) : constant_loops_(constant_loops) {}

 private:
  Stmt VisitStmt_(const ForNode* op) final {
    bool constant = is_const_int(op->min) && is_const_int(op->extent);
    // A split inside of a tail has constants where the whole loop has variables; those follow the
    // decision taken for the outer loop.
    bool allowed = constant_loops_ || in_tail_ || !constant;
    if (op->kind != ForKind::kThreadBinding && allowed) {
      if (Stmt split = TryPartition(op); split.defined()) return split;
    }
    Range range = Range::FromMinExtent(op->min, op->extent);
    analyzer_.Bind(op->loop_var, range, true);
    return StmtMutator::VisitStmt_(op);
  }

  /*! \brief The loop in up to three segments, or undefined when no condition can be hoisted. */
  Stmt TryPartition(const ForNode* op) {
    CandidateFinder finder(op->loop_var);
    finder(op->body);
    if (finder.found.empty()) return Stmt();
    PrimExpr begin = op->min;
    PrimExpr end = analyzer_.Simplify(op->min + op->extent);
    PrimExpr main_begin = begin;
    PrimExpr main_end = end;
    std::unordered_set<const Object*> hoisted, kept;
    for (const Candidate& candidate : finder.found) {
      PrimExpr condition = Downcast<Call>(candidate.call)->args[0];
      // Outer variables keep their value: the bound is an expression over them.
      arith::IntSet holds = arith::DeduceBound(op->loop_var, condition,
                                               std::unordered_map<const VarNode*, arith::IntSet>{},
                                               candidate.inner_loops);
      if (!IsUsable(holds, op->loop_var, candidate)) {
        kept.insert(candidate.call.get());
        continue;
      }
      hoisted.insert(candidate.call.get());
      DataType index = begin.dtype();
      if (holds.HasLowerBound()) main_begin = max(main_begin, cast(index, holds.min()));
      if (holds.HasUpperBound()) main_end = min(main_end, cast(index, holds.max()) + 1);
    }
    // A condition that stands in several places goes only if it can go everywhere.
    for (const Object* call : kept) hoisted.erase(call);
    if (hoisted.empty()) return Stmt();
    // Segments lie inside of the loop and in order, whatever the bounds turn out to be.
    main_begin = analyzer_.Simplify(min(main_begin, end));
    main_end = analyzer_.Simplify(max(main_end, main_begin));
    if (analyzer_.CanProveEqual(main_begin, main_end)) {
      // Nowhere do all conditions hold for every inner iteration: inner loops are split instead.
      return Stmt();
    }
    bool needs_constants = op->kind == ForKind::kUnrolled || op->kind == ForKind::kVectorized;
    if (needs_constants && !(is_const_int(main_begin) && is_const_int(main_end))) return Stmt();
    Array<Stmt> segments;
    segments.push_back(Tail(op, begin, main_begin));
    segments.push_back(Main(op, main_begin, main_end, hoisted));
    segments.push_back(Tail(op, main_end, end));
    return SeqStmt::Flatten(segments);
  }

  /*! \brief Whether a deduced set bounds the loop by what is known outside of it. */
  static bool IsUsable(const arith::IntSet& holds, const Var& var, const Candidate& candidate) {
    if (holds.IsNothing() || (!holds.HasLowerBound() && !holds.HasUpperBound())) return false;
    auto inside = [&](const VarNode* used) {
      return used == var.get() || candidate.inner_loops.count(used) != 0;
    };
    if (holds.HasLowerBound() && UsesVar(holds.min(), inside)) return false;
    return !holds.HasUpperBound() || !UsesVar(holds.max(), inside);
  }

  /*! \brief Iterations [begin, end) of `body`; what is inside has still to be visited. */
  Stmt Segment(const ForNode* op, const PrimExpr& begin, const PrimExpr& end, const Stmt& body,
               bool retry) {
    PrimExpr extent = analyzer_.Simplify(end - begin);
    if (is_zero(extent) || is_negative_const(extent)) return Evaluate(0);
    if (is_one(extent)) {
      return VisitStmt(Substitute(body, Map<Var, PrimExpr>{{op->loop_var, begin}}));
    }
    Var var = op->loop_var.copy_with_suffix("");
    Stmt inner = Substitute(body, Map<Var, PrimExpr>{{op->loop_var, var}});
    if (retry) {
      return VisitStmt(
          For(var, begin, extent, op->kind, inner, op->thread_binding, op->annotations));
    }
    analyzer_.Bind(var, Range::FromMinExtent(begin, extent), true);
    return For(var, begin, extent, op->kind, VisitStmt(inner), op->thread_binding, op->annotations);
  }

  Stmt Main(const ForNode* op, const PrimExpr& begin, const PrimExpr& end,
            const std::unordered_set<const Object*>& hoisted) {
    return Segment(op, begin, end, ConditionRemover(hoisted)(op->body), true);
  }

  Stmt Tail(const ForNode* op, const PrimExpr& begin, const PrimExpr& end) {
    bool outer = in_tail_;
    in_tail_ = true;
    // The same split would be found again, so only what is inside is split further.
    Stmt segment = Segment(op, begin, end, RenewBindings(op->body), false);
    in_tail_ = outer;
    return segment;
  }

  bool constant_loops_;
  bool in_tail_ = false;
  arith::Analyzer analyzer_;
};

}  // namespace

namespace transform {

Pass LoopPartition() {
  return BodyPass("tir.LoopPartition", [](const PrimFunc& func, const PassContext& ctx) {
    bool constant_loops = false;
    for (const auto& [key, value] : ctx->GetConfig<Map<String, Any>>("tir.LoopPartition", {})) {
      TVM_CHECK(key == "partition_const_loop", ValueError)
          << "tir.LoopPartition has no option " << key << "; there is partition_const_loop";
      constant_loops = value.cast<bool>();
    }
    return LoopPartitioner(constant_loops)(func->body);
  });
}

using Options = Map<String, Any>;
TVM_REGISTER_PASS_CONFIG_OPTION("tir.LoopPartition", Options);
TVM_REGISTER_GLOBAL("tir.transform.LoopPartition").set_body_typed(LoopPartition);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
