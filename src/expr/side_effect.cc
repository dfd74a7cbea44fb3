/*!
 * \file src/expr/side_effect.cc
 * \brief What evaluating an expression may do to memory.
 */
#include <tvm/expr/analysis.h>
#include <tvm/expr/expr_functor.h>
#include <tvm/runtime/registry.h>

#include <algorithm>

namespace tvm {
namespace tir {
namespace {

class EffectVisitor final : public ExprVisitor {
 public:
  CallEffectKind kind = CallEffectKind::kPure;

  void VisitExpr(const PrimExpr& expr) override {
    if (kind != CallEffectKind::kUpdateState) ExprVisitor::VisitExpr(expr);
  }

 private:
  void VisitExpr_(const BufferLoadNode* op) final {
    kind = std::max(kind, CallEffectKind::kReadState);
    ExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const CallNode* op) final {
    auto effect = static_cast<int64_t>(CallEffectKind::kOpaque);
    if (op->op->IsInstance<OpNode>()) {
      effect = Downcast<Op>(op->op).GetAttr<int64_t>(kTCallEffectKind, effect);
    }
    kind = std::max(kind, static_cast<CallEffectKind>(effect));
    ExprVisitor::VisitExpr_(op);
  }
};

}  // namespace

CallEffectKind SideEffect(const PrimExpr& expr) {
  EffectVisitor visitor;
  visitor.VisitExpr(expr);
  return visitor.kind;
}

TVM_REGISTER_GLOBAL("tir.analysis.side_effect").set_body_typed([](PrimExpr expr) {
  return static_cast<int>(SideEffect(expr));
});

}  // namespace tir
}  // namespace tvm
