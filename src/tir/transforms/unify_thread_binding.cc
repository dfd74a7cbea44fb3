/*!
 * \file src/tir/transforms/unify_thread_binding.cc
 * \brief One variable per thread axis of a launch, bound where the launch begins.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/launch.h>

#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "pass_common.h"

namespace tvm {
namespace tir {
namespace {

struct Axis {
  IterVar thread;
  PrimExpr extent;
};

class BindingUnifier final : public StmtExprMutator {
 public:
  explicit BindingUnifier(std::string function) : function_(std::move(function)) {}

 private:
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    if (op->attr_key != attr::thread_extent) return StmtExprMutator::VisitStmt_(op);
    IterVar thread = Downcast<IterVar>(op->node);
    return Bind(GetRef<Stmt>(op), thread, thread->var, op->value, op->body);
  }

  Stmt VisitStmt_(const ForNode* op) final {
    if (op->kind != ForKind::kThreadBinding) return StmtExprMutator::VisitStmt_(op);
    TVM_CHECK(is_zero(op->min) && op->thread_binding.defined(), ValueError)
        << "UnifyThreadBinding: loop " << op->loop_var << " of " << function_
        << " is bound to threads but starts at " << op->min << "; threads count from zero";
    return Bind(GetRef<Stmt>(op), op->thread_binding.value(), op->loop_var, op->extent, op->body);
  }

  Stmt Bind(const Stmt& stmt, const IterVar& thread, const Var& var, const PrimExpr& extent,
            const Stmt& body) {
    if (inside_) return Merge(thread, var, extent, body);
    inside_ = true;
    axes_.clear();
    defined_.clear();
    PostOrderVisit(stmt, [this](const ObjectRef& node) {
      if (const auto* let = node.as<LetStmtNode>()) defined_.insert(let->var.get());
      if (const auto* loop = node.as<ForNode>()) defined_.insert(loop->loop_var.get());
    });
    Stmt inner = Merge(thread, var, extent, body);
    for (auto it = axes_.rbegin(); it != axes_.rend(); ++it) {
      inner = AttrStmt(it->thread, attr::thread_extent, it->extent, inner);
    }
    inside_ = false;
    return inner;
  }

  Stmt Merge(const IterVar& thread, const Var& var, const PrimExpr& extent, const Stmt& body) {
    PrimExpr value = VisitExpr(extent);
    TVM_CHECK(!UsesVar(value, [this](const VarNode* used) { return defined_.count(used) != 0; }),
              ValueError)
        << "UnifyThreadBinding: in " << function_ << " the extent " << value << " of "
        << thread->thread_tag << " is known inside of the kernel only; make it a constant or a "
        << "function of the arguments";
    for (const Axis& axis : axes_) {
      if (axis.thread->thread_tag != thread->thread_tag) continue;
      TVM_CHECK(analyzer_.CanProveEqual(axis.extent, value), ValueError)
          << "UnifyThreadBinding: " << function_ << " binds loops of extents " << axis.extent
          << " and " << value << " to " << thread->thread_tag
          << " in one kernel; a launch has one extent per axis, so split both alike";
      replaced_[var.get()] = axis.thread->var;
      return VisitStmt(body);
    }
    IterVar axis = thread;
    if (!thread->var.same_as(var)) {
      // The loop's own variable has the type that the body expects.
      axis = IterVar(Range(), var, IterVarType::kThreadIndex, thread->thread_tag);
    }
    axes_.push_back({axis, value});
    return VisitStmt(body);
  }

  PrimExpr VisitExpr_(const VarNode* op) final {
    auto it = replaced_.find(op);
    if (it == replaced_.end()) return GetRef<PrimExpr>(op);
    return cast(op->dtype, it->second);
  }

  std::string function_;
  arith::Analyzer analyzer_;
  bool inside_ = false;
  std::vector<Axis> axes_;
  std::unordered_set<const VarNode*> defined_;
  std::unordered_map<const VarNode*, Var> replaced_;
};

}  // namespace

namespace transform {

Pass UnifyThreadBinding() {
  return BodyPass("tir.UnifyThreadBinding", [](const PrimFunc& func, const PassContext&) {
    return BindingUnifier(func->GetAttr<String>(attr::kGlobalSymbol, "main"))(func->body);
  });
}

TVM_REGISTER_GLOBAL("tir.transform.UnifyThreadBinding").set_body_typed(UnifyThreadBinding);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
