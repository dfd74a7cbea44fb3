/*!
 * \file src/tir/transforms/simplify.cc
 * \brief Simplification of expressions with what surrounding loops and branches say.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>

#include "pass_common.h"

namespace tvm {
namespace tir {
namespace {

class StmtSimplifier final : public StmtMutator {
 public:
  explicit StmtSimplifier(const PrimFunc& func) {
    for (const auto& [param, buffer] : func->buffer_map) {
      for (const PrimExpr& extent : buffer->shape) {
        if (extent.as<VarNode>() != nullptr) analyzer_.MarkPositive(Downcast<Var>(extent));
      }
    }
  }

 private:
  PrimExpr VisitExpr(const PrimExpr& expr) final { return analyzer_.Simplify(expr); }

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
    Stmt body = VisitStmt(op->body);
    if (min.same_as(op->min) && extent.same_as(op->extent) && body.same_as(op->body)) {
      return GetRef<Stmt>(op);
    }
    return For(op->loop_var, min, extent, op->kind, body, op->thread_binding, op->annotations);
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
    if (is_const_number(value) || value.as<VarNode>() != nullptr) {
      return VisitStmt(Substitute(op->body, Map<Var, PrimExpr>{{op->var, value}}));
    }
    Stmt body = VisitStmt(op->body);
    if (value.same_as(op->value) && body.same_as(op->body)) return GetRef<Stmt>(op);
    return LetStmt(op->var, value, body);
  }

  Stmt VisitStmt_(const IfThenElseNode* op) final {
    PrimExpr condition = VisitExpr(op->condition);
    PrimExpr fact = condition;
    if (const auto* call = condition.as<CallNode>(); call && call->op.same_as(builtin::likely())) {
      fact = call->args[0];
    }
    if (const int64_t* known = as_const_int(fact)) {
      if (*known) return VisitStmt(op->then_case);
      return op->else_case.defined() ? VisitStmt(op->else_case) : Evaluate(0);
    }
    Stmt then_case, else_case;
    {
      arith::ConstraintContext constraint(&analyzer_, fact);
      then_case = VisitStmt(op->then_case);
    }
    if (op->else_case.defined()) {
      arith::ConstraintContext constraint(&analyzer_, Not(fact));
      else_case = VisitStmt(op->else_case);
    }
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
    Stmt body = VisitStmt(op->body);
    if (condition.same_as(op->condition) && body.same_as(op->body)) return GetRef<Stmt>(op);
    return AssertStmt(condition, op->message, body);
  }

  arith::Analyzer analyzer_;
};

}  // namespace

namespace transform {

Pass Simplify() {
  return BodyPass("tir.Simplify", [](const PrimFunc& func, const PassContext&) {
    return StmtSimplifier(func)(func->body);
  });
}

TVM_REGISTER_GLOBAL("tir.transform.Simplify").set_body_typed(Simplify);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
