/*!
 * \file src/tir/transforms/unswitch_loops.cc
 * \brief Tests that a loop does not change, made once outside of it.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/node/structural_equal.h>
#include <tvm/node/structural_hash.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/launch.h>

#include <string>
#include <unordered_set>
#include <vector>

#include "pass_common.h"
#include "pass_option.h"

namespace tvm {
namespace tir {
namespace {

/*! \brief Different tests made outside of one loop body: 2^n copies of it at most. */
constexpr int kMaxTests = 2;
/*! \brief Stores of a body above which copies would cost more to compile than they save. */
constexpr int kMaxUnswitchedStores = 256;

using ExprSet = std::unordered_set<PrimExpr, StructuralHash, StructuralEqual>;

/*! \brief The parts of a conjunction; `likely` only served passes that ran before. */
void AppendConjuncts(const PrimExpr& condition, std::vector<PrimExpr>* parts) {
  if (const auto* both = condition.as<AndNode>()) {
    AppendConjuncts(both->a, parts);
    AppendConjuncts(both->b, parts);
  } else if (const auto* call = condition.as<CallNode>();
             call != nullptr && call->op.same_as(builtin::likely())) {
    AppendConjuncts(call->args[0], parts);
  } else {
    parts->push_back(condition);
  }
}

std::vector<PrimExpr> Conjuncts(const PrimExpr& condition) {
  std::vector<PrimExpr> parts;
  AppendConjuncts(condition, &parts);
  return parts;
}

PrimExpr Conjunction(const std::vector<PrimExpr>& parts) {
  if (parts.empty()) return const_true();
  PrimExpr all = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) all = And(all, parts[i]);
  return all;
}

bool IsLazyChoice(const CallNode* op) { return op->op.same_as(builtin::if_then_else()); }

/*! \brief Rewrites every condition part by part, and drops branches that are decided. */
class ConditionMutator : public StmtExprMutator {
 protected:
  /*! \brief What is left of a condition; a constant when it is decided. */
  virtual PrimExpr Rewrite(const PrimExpr& condition) = 0;

  Stmt VisitStmt_(const IfThenElseNode* op) override {
    PrimExpr condition = Rewrite(op->condition);
    if (is_one(condition)) return VisitStmt(op->then_case);
    if (is_zero(condition)) {
      return op->else_case.defined() ? VisitStmt(op->else_case) : Stmt(Evaluate(0));
    }
    Stmt then_case = VisitStmt(op->then_case);
    Stmt else_case = op->else_case.defined() ? VisitStmt(op->else_case) : op->else_case;
    return IfThenElse(condition, then_case, else_case);
  }
  PrimExpr VisitExpr_(const CallNode* op) override {
    if (!IsLazyChoice(op)) return StmtExprMutator::VisitExpr_(op);
    PrimExpr condition = Rewrite(op->args[0]);
    if (is_one(condition)) return VisitExpr(op->args[1]);
    if (is_zero(condition)) return VisitExpr(op->args[2]);
    return Call(op->dtype, op->op, {condition, VisitExpr(op->args[1]), VisitExpr(op->args[2])});
  }
};

/*! \brief Brings equal conditions to one form, given the ranges of the loops around them. */
class ConditionSimplifier final : public ConditionMutator {
 private:
  PrimExpr Rewrite(const PrimExpr& condition) final {
    std::vector<PrimExpr> open;
    for (const PrimExpr& part : Conjuncts(condition)) {
      PrimExpr simple = analyzer_.Simplify(part);
      if (is_zero(simple)) return simple;
      if (!is_one(simple)) open.push_back(simple);
    }
    return Conjunction(open);
  }
  Stmt VisitStmt_(const ForNode* op) final {
    analyzer_.Bind(op->loop_var, Range::FromMinExtent(op->min, op->extent), true);
    return StmtExprMutator::VisitStmt_(op);
  }

  arith::Analyzer analyzer_;
};

/*! \brief A statement in which some parts of conditions are known to hold, or not all to hold. */
class Assume final : public ConditionMutator {
 public:
  Assume(const std::vector<PrimExpr>& parts, bool holds)
      : parts_(parts.begin(), parts.end()), holds_(holds) {}

 private:
  PrimExpr Rewrite(const PrimExpr& condition) final {
    std::vector<PrimExpr> open;
    size_t known = 0;
    std::vector<PrimExpr> all = Conjuncts(condition);
    for (const PrimExpr& part : all) {
      if (parts_.count(part)) {
        ++known;
      } else {
        open.push_back(part);
      }
    }
    if (holds_) return Conjunction(open);
    return known == parts_.size() ? const_false() : condition;
  }

  ExprSet parts_;
  bool holds_;
};

/*! \brief The conditions inside of a statement, with what it binds. */
class ConditionFinder final : public StmtExprVisitor {
 public:
  struct Found {
    std::vector<PrimExpr> parts;
    bool in_loop;
  };
  std::vector<Found> found;
  std::unordered_set<const VarNode*> bound;
  int stores = 0;
  /*! \brief Whether a block's memory would be there twice after copying. */
  bool has_shared_memory = false;

 private:
  void Add(const PrimExpr& condition) { found.push_back({Conjuncts(condition), depth_ > 0}); }
  void VisitStmt_(const IfThenElseNode* op) final {
    Add(op->condition);
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitExpr_(const CallNode* op) final {
    if (IsLazyChoice(op)) Add(op->args[0]);
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitStmt_(const ForNode* op) final {
    bound.insert(op->loop_var.get());
    ++depth_;
    StmtExprVisitor::VisitStmt_(op);
    --depth_;
  }
  void VisitStmt_(const LetStmtNode* op) final {
    bound.insert(op->var.get());
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitExpr_(const LetNode* op) final {
    bound.insert(op->var.get());
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitStmt_(const BufferStoreNode* op) final {
    ++stores;
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const AllocateNode* op) final {
    const std::string scope = StorageScopeOf(op->buffer_var);
    has_shared_memory = has_shared_memory || scope.rfind("shared", 0) == 0;
    StmtExprVisitor::VisitStmt_(op);
  }

  int depth_ = 0;
};

/*! \brief Whether the value is the same, and safe to take, anywhere its variables are known. */
bool IsFixed(const PrimExpr& expr) {
  bool fixed = true;
  PostOrderVisit(expr, [&fixed](const ObjectRef& node) {
    if (node.as<BufferLoadNode>() || node.as<CallNode>()) fixed = false;
    if (const auto* div = node.as<FloorDivNode>()) fixed = fixed && is_const_int(div->b);
    if (const auto* mod = node.as<FloorModNode>()) fixed = fixed && is_const_int(mod->b);
    if (node.as<DivNode>() || node.as<ModNode>()) fixed = false;
  });
  return fixed;
}

class TestHoister final : public StmtMutator {
 public:
  /*! \param divergent Variables whose tests stay where they are. */
  explicit TestHoister(std::unordered_set<const VarNode*> divergent = {})
      : divergent_(std::move(divergent)) {}

  /*! \brief `body` with the tests that can be made before it made there. */
  Stmt Split(const Stmt& body, int budget = kMaxTests) {
    ConditionFinder finder;
    finder(body);
    std::vector<PrimExpr> test =
        finder.stores <= kMaxUnswitchedStores && budget > 0 && !finder.has_shared_memory
            ? FirstTest(finder)
            : std::vector<PrimExpr>();
    if (test.empty()) return VisitStmt(body);
    Stmt yes = Split(Assume(test, true)(body), budget - 1);
    Stmt no = Split(Assume(test, false)(RenewBindings(body)), budget - 1);
    return IfThenElse(Conjunction(test), yes, no);
  }

 private:
  std::vector<PrimExpr> FirstTest(const ConditionFinder& finder) const {
    for (const ConditionFinder::Found& condition : finder.found) {
      if (!condition.in_loop) continue;
      std::vector<PrimExpr> test;
      for (const PrimExpr& part : condition.parts) {
        bool inner = UsesVar(part, [&](const VarNode* var) {
          return finder.bound.count(var) != 0 || divergent_.count(var) != 0;
        });
        if (!inner && IsFixed(part)) test.push_back(part);
      }
      if (!test.empty()) return test;
    }
    return {};
  }

  Stmt VisitStmt_(const ForNode* op) final {
    Stmt body = Split(op->body);
    if (body.same_as(op->body)) return GetRef<Stmt>(op);
    For loop = GetRef<For>(op);
    loop.CopyOnWrite()->body = body;
    return loop;
  }
  Stmt VisitStmt_(const LetStmtNode* op) final {
    Stmt body = Split(op->body);
    return body.same_as(op->body) ? GetRef<Stmt>(op) : LetStmt(op->var, op->value, body);
  }
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    below_launch_ = below_launch_ || op->attr_key == attr::thread_extent;
    Stmt body = Below(op->body);
    if (body.same_as(op->body)) return GetRef<Stmt>(op);
    return AttrStmt(op->node, op->attr_key, op->value, body);
  }
  Stmt VisitStmt_(const AllocateNode* op) final {
    Stmt body = Below(op->body);
    if (body.same_as(op->body)) return GetRef<Stmt>(op);
    Allocate allocate = GetRef<Allocate>(op);
    allocate.CopyOnWrite()->body = body;
    return allocate;
  }
  /*! \brief Of a launch, what is inside of all its axes and allocations is split. */
  Stmt Below(const Stmt& body) {
    bool more = body.as<AttrStmtNode>() != nullptr || body.as<AllocateNode>() != nullptr;
    if (more || !below_launch_) return VisitStmt(body);
    below_launch_ = false;
    return Split(body);
  }

  bool below_launch_ = false;
  std::unordered_set<const VarNode*> divergent_;
};

/*! \brief The threads of a launch that a statement runs on. */
struct Launch {
  bool any = false;
  /*! \brief Axes that differ between the threads of a block. */
  std::unordered_set<const VarNode*> threads;

  explicit Launch(const Stmt& stmt) {
    PostOrderVisit(stmt, [this](const ObjectRef& node) {
      if (const auto* loop = node.as<ForNode>()) {
        any = any || loop->kind == ForKind::kThreadBinding;
      } else if (const auto* scope = node.as<AttrStmtNode>()) {
        if (scope->attr_key != attr::thread_extent) return;
        any = true;
        const auto* axis = scope->node.as<IterVarNode>();
        if (std::string(axis->thread_tag).rfind("threadIdx", 0) == 0) {
          threads.insert(axis->var.get());
        }
      }
    });
  }
};

bool ReadBlockScopeOption(const transform::PassContext& ctx) {
  bool enabled = false;
  for (const auto& [key, value] : ctx->GetConfig<Map<String, Any>>("tir.HoistIfThenElse", {})) {
    // The first is how TVM spells it.
    TVM_CHECK(key == "support_block_scope_hosting" || key == "support_block_scope_hoisting",
              ValueError)
        << "tir.HoistIfThenElse has no option " << key << "; there is support_block_scope_hoisting";
    enabled = OptionEntry<bool>("tir.HoistIfThenElse", key, value);
  }
  return enabled;
}

}  // namespace

namespace transform {

Pass UnswitchLoops() {
  return BodyPass("tir.UnswitchLoops", [](const PrimFunc& func, const PassContext& ctx) {
    bool kernels = ReadBlockScopeOption(ctx);
    Launch launch(func->body);
    // A barrier is inserted later, and must not get into a branch that only some threads take.
    if (launch.any && !kernels) return func->body;
    Stmt simple = ConditionSimplifier()(func->body);
    Stmt hoisted = launch.any ? TestHoister(launch.threads)(simple) : TestHoister().Split(simple);
    // A program in which nothing moves keeps its conditions as they are written.
    if (hoisted.same_as(simple)) return func->body;
    // Where a test is known, what only the other outcome needs is left without use.
    return RemoveNoOps(hoisted, /*drop_unread=*/true);
  });
}

using Options = Map<String, Any>;
TVM_REGISTER_PASS_CONFIG_OPTION("tir.HoistIfThenElse", Options);
// Of passes in python/tvm/tir/transform: hoist_expression.py, reduce_branching.py.
TVM_REGISTER_PASS_CONFIG_OPTION("tir.HoistExpression", Options);
TVM_REGISTER_PASS_CONFIG_OPTION("tir.ReduceBranchingThroughOvercompute", Options);
TVM_REGISTER_GLOBAL("tir.transform.UnswitchLoops").set_body_typed(UnswitchLoops);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
