/*!
 * \file src/tir/transforms/simplify.cc
 * \brief Simplification of expressions with what surrounding loops and branches say.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/node/structural_equal.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/analysis.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "known_elements.h"
#include "pass_common.h"
#include "pass_option.h"

namespace tvm {
namespace tir {
namespace {

constexpr const char* kSimplifyOption = "tir.Simplify";

struct SimplifyOptions {
  bool convert_boolean_to_and_of_ors = false;
  bool apply_constraints_to_boolean_branches = false;
  bool propagate_knowns_to_prove_conditional = false;
  bool propagate_knowns_to_simplify_expressions = false;

  static SimplifyOptions FromContext(const transform::PassContext& ctx) {
    SimplifyOptions options;
    // The analyzer always follows chains of inequalities.
    bool transitively_prove_inequalities = true;
    const std::pair<const char*, bool*> known[] = {
        {"transitively_prove_inequalities", &transitively_prove_inequalities},
        {"convert_boolean_to_and_of_ors", &options.convert_boolean_to_and_of_ors},
        {"apply_constraints_to_boolean_branches", &options.apply_constraints_to_boolean_branches},
        {"propagate_knowns_to_prove_conditional", &options.propagate_knowns_to_prove_conditional},
        {"propagate_knowns_to_simplify_expressions",
         &options.propagate_knowns_to_simplify_expressions}};
    for (const auto& [key, value] : ctx->GetConfig<Map<String, Any>>(kSimplifyOption, {})) {
      bool* target = nullptr;
      for (const auto& [name, place] : known) {
        if (key == name) target = place;
      }
      TVM_CHECK(target != nullptr, ValueError)
          << kSimplifyOption << " has no option " << key
          << "; there are transitively_prove_inequalities, convert_boolean_to_and_of_ors, "
             "apply_constraints_to_boolean_branches, propagate_knowns_to_prove_conditional and "
             "propagate_knowns_to_simplify_expressions";
      *target = OptionEntry<bool>(kSimplifyOption, key, value);
    }
    return options;
  }
};

/*! \brief What is said by a disjunction: that one of these holds. */
using Clause = std::vector<PrimExpr>;

/*! \brief Whether everything that one clause allows is allowed by the other one, too. */
bool Implies(const Clause& a, const Clause& b) {
  StructuralEqual equal;
  return std::all_of(a.begin(), a.end(), [&](const PrimExpr& one) {
    return std::any_of(b.begin(), b.end(),
                       [&](const PrimExpr& other) { return equal(one, other); });
  });
}

/*! \brief A disjunction of conjunctions as a conjunction of disjunctions, by distribution. */
void CollectClauses(const PrimExpr& expr, std::vector<Clause>* clauses) {
  // Distribution doubles; beyond this many clauses the expression stays as it is.
  constexpr size_t kMaxClauses = 64;
  if (const auto* both = expr.as<AndNode>()) {
    CollectClauses(both->a, clauses);
    CollectClauses(both->b, clauses);
    return;
  }
  if (const auto* either = expr.as<OrNode>()) {
    std::vector<Clause> left, right;
    CollectClauses(either->a, &left);
    CollectClauses(either->b, &right);
    if (left.size() * right.size() <= kMaxClauses) {
      for (const Clause& a : left) {
        for (const Clause& b : right) {
          Clause joined = a;
          for (const PrimExpr& other : b) {
            if (!Implies({other}, a)) joined.push_back(other);
          }
          clauses->push_back(std::move(joined));
        }
      }
      return;
    }
  }
  clauses->push_back({expr});
}

PrimExpr AndOfOrs(const PrimExpr& expr, arith::Analyzer* analyzer) {
  std::vector<Clause> clauses;
  CollectClauses(expr, &clauses);
  PrimExpr result;
  for (size_t i = 0; i < clauses.size(); ++i) {
    bool is_implied = false;
    for (size_t j = 0; j < clauses.size() && !is_implied; ++j) {
      // Of two that say the same the first stays.
      is_implied =
          j != i && Implies(clauses[j], clauses[i]) && (j < i || !Implies(clauses[i], clauses[j]));
    }
    if (is_implied) continue;
    PrimExpr joined;
    for (const PrimExpr& one : clauses[i]) joined = joined.defined() ? Or(joined, one) : one;
    PrimExpr simple = analyzer->Simplify(joined);
    if (is_one(simple)) continue;
    if (is_zero(simple)) return simple;
    result = result.defined() ? And(result, simple) : simple;
  }
  return result.defined() ? result : const_true();
}

class StmtSimplifier final : public StmtMutator {
 public:
  StmtSimplifier(const PrimFunc& func, SimplifyOptions options) : options_(options) {
    for (const auto& [param, buffer] : func->buffer_map) {
      for (const PrimExpr& extent : buffer->shape) {
        if (extent.as<VarNode>() != nullptr) {
          analyzer_.MarkPositive(Downcast<Var>(extent));
        } else if (!extent->IsInstance<IntImmNode>()) {
          // What the shape of an argument says holds throughout.
          facts_.push_back(analyzer_.EnterConstraint(extent >= 0));
        }
      }
    }
  }

  Stmt Run(const Stmt& body) { return VisitStmt(body); }

 private:
  bool Propagates() const {
    return options_.propagate_knowns_to_prove_conditional ||
           options_.propagate_knowns_to_simplify_expressions;
  }

  PrimExpr VisitExpr(const PrimExpr& expr) final {
    PrimExpr result = expr;
    if (options_.propagate_knowns_to_simplify_expressions) result = WithKnown(result);
    if (result.dtype().is_bool() && result.dtype().is_scalar()) return Boolean(result);
    return analyzer_.Simplify(result);
  }

  PrimExpr Boolean(const PrimExpr& expr) {
    PrimExpr result = analyzer_.Simplify(expr);
    if (options_.apply_constraints_to_boolean_branches) result = UnderEachOther(result);
    if (options_.convert_boolean_to_and_of_ors) result = AndOfOrs(result, &analyzer_);
    return result;
  }

  /*! \brief Operands of `and` and `or` simplified where the other operand decides nothing. */
  PrimExpr UnderEachOther(const PrimExpr& expr) {
    const auto* both = expr.as<AndNode>();
    const auto* either = expr.as<OrNode>();
    if (both == nullptr && either == nullptr) return expr;
    PrimExpr a = UnderEachOther(both ? both->a : either->a);
    PrimExpr b = UnderEachOther(both ? both->b : either->b);
    auto under = [&](const PrimExpr& fact, const PrimExpr& rest) {
      arith::ConstraintContext holds(&analyzer_, both ? fact : PrimExpr(Not(fact)));
      return UnderEachOther(analyzer_.Simplify(rest));
    };
    b = under(a, b);
    a = under(b, a);
    return analyzer_.Simplify(both ? PrimExpr(And(a, b)) : PrimExpr(Or(a, b)));
  }

  /*! \brief Loads of elements that are known replaced by what they hold. */
  PrimExpr WithKnown(const PrimExpr& expr) {
    if (known_.empty()) return expr;
    class Replacer final : public ExprMutator {
     public:
      explicit Replacer(StmtSimplifier* self) : self_(self) {}

     private:
      PrimExpr VisitExpr_(const BufferLoadNode* op) final {
        PrimExpr load = ExprMutator::VisitExpr_(op);
        PrimExpr value = self_->known_.Lookup(load.as<BufferLoadNode>(), &self_->analyzer_);
        return value.defined() ? value : load;
      }
      StmtSimplifier* self_;
    };
    return Replacer(this)(expr);
  }

  /*! \brief Whether a condition is known to hold or not to. */
  std::optional<bool> Decide(const PrimExpr& condition) {
    PrimExpr proof = bindings_.empty() ? condition : Substitute(condition, bindings_);
    if (Propagates()) proof = WithKnown(proof);
    PrimExpr simple = proof.same_as(condition) ? condition : analyzer_.Simplify(proof);
    if (const int64_t* known = as_const_int(simple)) return *known != 0;
    if (SideEffect(simple) > CallEffectKind::kPure) return std::nullopt;
    // What simplification by itself leaves open is worth a proof only with facts beyond it.
    if (proof.same_as(condition)) return std::nullopt;
    if (analyzer_.CanProve(simple)) return true;
    if (analyzer_.CanProve(Not(simple))) return false;
    return std::nullopt;
  }

  /*! \brief The fact that a condition states, with variables replaced by what is bound to them. */
  PrimExpr Fact(const PrimExpr& condition) const {
    return bindings_.empty() ? condition : Substitute(condition, bindings_);
  }

  Stmt VisitStmt_(const ForNode* op) final {
    PrimExpr min = VisitExpr(op->min);
    PrimExpr extent = VisitExpr(op->extent);
    // A launch reads its grid from thread-bound loops, so those stay even when they run once.
    if (is_one(extent) && op->kind != ForKind::kThreadBinding && op->annotations.empty()) {
      // Substitute before recursing: an inner extent may mention this loop's variable.
      return VisitStmt(Substitute(op->body, Map<Var, PrimExpr>{{op->loop_var, min}}));
    }
    if (is_zero(extent)) return Evaluate(0);
    analyzer_.Bind(op->loop_var, Range::FromMinExtent(min, extent), true);
    KnownElements after;
    if (Propagates()) after = known_.EnterLoop(op, &analyzer_);
    const KnownElements first = known_;
    Stmt body = Scoped(op->body);
    if (Propagates()) known_.LeaveLoop(op, first, std::move(after), &analyzer_);
    if (min.same_as(op->min) && extent.same_as(op->extent) && body.same_as(op->body)) {
      return GetRef<Stmt>(op);
    }
    return For(op->loop_var, min, extent, op->kind, body, op->thread_binding, op->annotations);
  }

  Stmt VisitStmt_(const WhileNode* op) final {
    if (Propagates()) known_.ForgetWrites(op->body);
    KnownElements before = known_;
    PrimExpr condition = VisitExpr(op->condition);
    Stmt body = Scoped(op->body);
    known_ = std::move(before);
    if (condition.same_as(op->condition) && body.same_as(op->body)) return GetRef<Stmt>(op);
    return While(condition, body);
  }

  Stmt VisitStmt_(const AttrStmtNode* op) final {
    if (op->attr_key == attr::thread_extent || op->attr_key == attr::virtual_thread) {
      const auto* iv = op->node.as<IterVarNode>();
      ICHECK(iv != nullptr);
      PrimExpr extent = VisitExpr(op->value);
      analyzer_.Bind(iv->var, Range::FromMinExtent(make_zero(extent.dtype()), extent), true);
    }
    return StmtMutator::VisitStmt_(op);
  }

  Stmt VisitStmt_(const LetStmtNode* op) final {
    PrimExpr value = VisitExpr(op->value);
    const bool pure = SideEffect(value) <= CallEffectKind::kPure;
    // Index arithmetic is worth more where it is used; a statement's name repeats no work there.
    if (is_const_number(value) || value.as<VarNode>() != nullptr ||
        (pure && value.dtype().is_int() && value.dtype().is_scalar())) {
      return VisitStmt(Substitute(op->body, Map<Var, PrimExpr>{{op->var, value}}));
    }
    if (pure) bindings_.Set(op->var, Fact(value));
    Stmt body = VisitStmt(op->body);
    if (Propagates()) known_.ForgetVar(op->var.get());
    if (value.same_as(op->value) && body.same_as(op->body)) return GetRef<Stmt>(op);
    return LetStmt(op->var, value, body);
  }

  Stmt VisitStmt_(const IfThenElseNode* op) final {
    PrimExpr condition = VisitExpr(op->condition);
    PrimExpr fact = condition;
    if (const auto* call = condition.as<CallNode>(); call && call->op.same_as(builtin::likely())) {
      fact = call->args[0];
    }
    if (std::optional<bool> known = Decide(fact)) {
      if (*known) return VisitStmt(op->then_case);
      return op->else_case.defined() ? VisitStmt(op->else_case) : Evaluate(0);
    }
    // A fact about memory may stop to hold in the branch, when it is written.
    const bool lasting = SideEffect(fact) <= CallEffectKind::kPure;
    KnownElements before = known_;
    Stmt then_case, else_case;
    {
      arith::ConstraintContext constraint(&analyzer_, lasting ? Fact(fact) : const_true());
      then_case = Scoped(op->then_case);
    }
    std::swap(before, known_);
    if (op->else_case.defined()) {
      arith::ConstraintContext constraint(&analyzer_,
                                          lasting ? PrimExpr(Not(Fact(fact))) : const_true());
      else_case = Scoped(op->else_case);
    }
    known_.Meet(before, lasting ? PrimExpr(Not(Fact(fact))) : PrimExpr());
    if (condition.same_as(op->condition) && then_case.same_as(op->then_case) &&
        else_case.same_as(op->else_case)) {
      return GetRef<Stmt>(op);
    }
    return IfThenElse(condition, then_case, else_case);
  }

  Stmt VisitStmt_(const AssertStmtNode* op) final {
    PrimExpr condition = VisitExpr(op->condition);
    if (is_one(condition)) return VisitStmt(op->body);
    arith::ConstraintContext constraint(&analyzer_, condition);
    Stmt body = Scoped(op->body);
    if (condition.same_as(op->condition) && body.same_as(op->body)) return GetRef<Stmt>(op);
    return AssertStmt(condition, op->message, body);
  }

  Stmt VisitStmt_(const BufferStoreNode* op) final {
    BufferStore store = Downcast<BufferStore>(StmtMutator::VisitStmt_(op));
    const auto* load = store->value.as<BufferLoadNode>();
    if (load != nullptr && load->buffer.same_as(store->buffer) &&
        StructuralEqual()(load->indices, store->indices) &&
        SideEffect(store->value) <= CallEffectKind::kReadState) {
      return Evaluate(0);
    }
    if (Propagates()) known_.Store(store.get(), store->value, &analyzer_);
    return store;
  }

  Stmt VisitStmt_(const EvaluateNode* op) final {
    static const Op assume = Op::Get("tir.assume");
    const auto* call = op->value.as<CallNode>();
    if (call != nullptr && call->op.same_as(assume)) {
      if (Propagates()) Assume(call->args[0]);
      return GetRef<Stmt>(op);
    }
    Stmt stmt = StmtMutator::VisitStmt_(op);
    if (Propagates()) known_.ForgetWrites(stmt);
    return stmt;
  }

  /*! \brief A part of the program; facts that it states hold in the rest of it, and no further. */
  Stmt Scoped(const Stmt& part) {
    size_t outer = facts_.size();
    Stmt stmt = VisitStmt(part);
    while (facts_.size() > outer) {
      facts_.back()();
      facts_.pop_back();
    }
    return stmt;
  }

  void Assume(const PrimExpr& fact) {
    if (const auto* both = fact.as<AndNode>()) {
      Assume(both->a);
      Assume(both->b);
    } else if (SideEffect(fact) <= CallEffectKind::kPure) {
      facts_.push_back(analyzer_.EnterConstraint(fact));
    } else {
      AssumeElement(fact, const_true());
    }
  }

  /*! \brief What an element holds where a guard does; other facts about memory are not used. */
  void AssumeElement(const PrimExpr& fact, const PrimExpr& guard) {
    if (const auto* either = fact.as<OrNode>()) {
      if (SideEffect(either->a) <= CallEffectKind::kPure) {
        AssumeElement(either->b, And(guard, Not(either->a)));
      } else if (SideEffect(either->b) <= CallEffectKind::kPure) {
        AssumeElement(either->a, And(guard, Not(either->b)));
      }
    } else if (const auto* equal = fact.as<EQNode>()) {
      const bool is_left = equal->a->IsInstance<BufferLoadNode>();
      const auto* load = (is_left ? equal->a : equal->b).as<BufferLoadNode>();
      const PrimExpr& value = is_left ? equal->b : equal->a;
      if (load != nullptr && SideEffect(value) <= CallEffectKind::kPure) {
        known_.Assume(load, value, guard);
      }
    }
  }

  SimplifyOptions options_;
  arith::Analyzer analyzer_;
  /*! \brief Values of variables that stay bound, in terms of others. */
  Map<Var, PrimExpr> bindings_;
  KnownElements known_;
  /*! \brief What ends each fact that holds at present. */
  std::vector<std::function<void()>> facts_;
};

}  // namespace

namespace transform {

Pass Simplify() {
  return BodyPass("tir.Simplify", [](const PrimFunc& func, const PassContext& ctx) {
    return StmtSimplifier(func, SimplifyOptions::FromContext(ctx)).Run(func->body);
  });
}

using Options = Map<String, Any>;
TVM_REGISTER_PASS_CONFIG_OPTION("tir.Simplify", Options);
TVM_REGISTER_GLOBAL("tir.transform.Simplify").set_body_typed(Simplify);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
