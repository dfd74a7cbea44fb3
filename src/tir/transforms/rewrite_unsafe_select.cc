/*!
 * \file src/tir/transforms/rewrite_unsafe_select.cc
 * \brief Selects whose operands must not both be evaluated become branches.
 */
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/analysis.h>

#include "pass_common.h"

namespace tvm {
namespace tir {
namespace {

/*! \brief Whether evaluating an expression may trap: a load, or a division by what may be zero. */
class UnsafeDetector final : public ExprVisitor {
 public:
  bool unsafe = false;

 private:
  void VisitExpr_(const BufferLoadNode*) final { unsafe = true; }
  void VisitExpr_(const CallNode* op) final {
    if (op->op.same_as(builtin::if_then_else())) {
      // Its branches are guarded already.
      VisitExpr(op->args[0]);
      return;
    }
    if (SideEffect(GetRef<PrimExpr>(op)) > CallEffectKind::kPure) unsafe = true;
    ExprVisitor::VisitExpr_(op);
  }
  template <typename T>
  void VisitDivision(const T* op) {
    bool integer = op->dtype.is_int() || op->dtype.is_uint();
    if (integer && (!is_const_number(op->b) || is_zero(op->b))) unsafe = true;
    ExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const DivNode* op) final { VisitDivision(op); }
  void VisitExpr_(const ModNode* op) final { VisitDivision(op); }
  void VisitExpr_(const FloorDivNode* op) final { VisitDivision(op); }
  void VisitExpr_(const FloorModNode* op) final { VisitDivision(op); }
};

bool IsUnsafe(const PrimExpr& expr) {
  UnsafeDetector detector;
  detector(expr);
  return detector.unsafe;
}

class UnsafeSelectRewriter final : public StmtExprMutator {
  PrimExpr VisitExpr_(const SelectNode* op) final {
    PrimExpr expr = StmtExprMutator::VisitExpr_(op);
    op = expr.as<SelectNode>();
    // Lanes of a vector condition disagree: only a blend can express that.
    if (op->condition.dtype().is_vector()) return expr;
    if (!IsUnsafe(op->true_value) && !IsUnsafe(op->false_value)) return expr;
    return Call(op->dtype, builtin::if_then_else(),
                {op->condition, op->true_value, op->false_value});
  }
};

}  // namespace

namespace transform {

Pass RewriteUnsafeSelect() {
  return BodyPass("tir.RewriteUnsafeSelect", [](const PrimFunc& func, const PassContext& ctx) {
    if (ctx->GetConfig<bool>("tir.disable_select_rewriting", false)) return func->body;
    return UnsafeSelectRewriter()(func->body);
  });
}

TVM_REGISTER_GLOBAL("tir.transform.RewriteUnsafeSelect").set_body_typed(RewriteUnsafeSelect);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
