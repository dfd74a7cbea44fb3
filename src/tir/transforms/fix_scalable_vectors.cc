/*!
 * \file src/tir/transforms/fix_scalable_vectors.cc
 * \brief Scalable vectors on machines whose vectors have one length.
 *
 * A scalable program is right for whatever number vscale is, so a machine without scalable vectors
 * takes it for one.
 */
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>

#include <unordered_map>

#include "pass_common.h"

namespace tvm {
namespace tir {
namespace {

DataType Fixed(DataType dtype) {
  return dtype.is_scalable_vector() ? dtype.with_lanes(-dtype.lanes()) : dtype;
}

class VectorFixer final : public StmtExprMutator {
 private:
  /*! \brief The variable that holds the fixed vector instead; the same for other variables. */
  Var Rename(const Var& var) {
    if (!var->dtype.is_scalable_vector()) return var;
    Var& fixed = vars_[var.get()];
    if (!fixed.defined()) fixed = var.copy_with_dtype(Fixed(var->dtype));
    return fixed;
  }

  PrimExpr VisitExpr_(const VarNode* op) final { return Rename(GetRef<Var>(op)); }
  PrimExpr VisitExpr_(const RampNode* op) final {
    PrimExpr base = VisitExpr(op->base), stride = VisitExpr(op->stride);
    const int lanes = std::abs(op->lanes);
    return lanes == 1 ? base : Ramp(base, stride, lanes);
  }
  PrimExpr VisitExpr_(const BroadcastNode* op) final {
    PrimExpr value = VisitExpr(op->value);
    const int lanes = std::abs(op->lanes);
    return lanes == 1 ? value : Broadcast(value, lanes);
  }
  PrimExpr VisitExpr_(const CastNode* op) final {
    return cast(Fixed(op->dtype), VisitExpr(op->value));
  }
  PrimExpr VisitExpr_(const CallNode* op) final {
    if (op->op.same_as(builtin::vscale())) return make_const(op->dtype, 1);
    return Call(Fixed(op->dtype), op->op, VisitExprs(op->args));
  }
  PrimExpr VisitExpr_(const LetNode* op) final {
    PrimExpr value = VisitExpr(op->value);
    return Let(Rename(op->var), value, VisitExpr(op->body));
  }
  Stmt VisitStmt_(const LetStmtNode* op) final {
    PrimExpr value = VisitExpr(op->value);
    return LetStmt(Rename(op->var), value, VisitStmt(op->body));
  }

  std::unordered_map<const VarNode*, Var> vars_;
};

bool HasScalable(const Stmt& body) {
  bool found = false;
  PostOrderVisit(body, [&found](const ObjectRef& node) {
    const auto* expr = node.as<PrimExprNode>();
    if (expr == nullptr) return;
    const auto* call = node.as<CallNode>();
    found = found || expr->dtype.is_scalable_vector() ||
            (call != nullptr && call->op.same_as(builtin::vscale()));
  });
  return found;
}

}  // namespace

namespace transform {

Pass FixScalableVectors() {
  return BodyPass("tir.FixScalableVectors", [](const PrimFunc& func, const PassContext&) {
    return HasScalable(func->body) ? VectorFixer()(func->body) : func->body;
  });
}

TVM_REGISTER_GLOBAL("tir.transform.FixScalableVectors").set_body_typed(FixScalableVectors);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
