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

/*! \brief Whether threads are loops: they become attributes when blocks are lowered. */
bool HasThreadLoops(const Stmt& stmt) {
  bool found = false;
  PostOrderVisit(stmt, [&found](const ObjectRef& node) {
    const auto* loop = node.as<ForNode>();
    found = found || node.as<BlockRealizeNode>() != nullptr ||
            (loop != nullptr && loop->kind == ForKind::kThreadBinding);
  });
  return found;
}

class BindingUnifier final : public StmtExprMutator {
 public:
  BindingUnifier(std::string function, bool loops)
      : function_(std::move(function)), loops_(loops) {}

 private:
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    if (op->attr_key != attr::thread_extent) return StmtExprMutator::VisitStmt_(op);
    IterVar thread = Downcast<IterVar>(op->node);
    return Bind(GetRef<Stmt>(op), thread, thread->var, op->value, op->body, {});
  }

  Stmt VisitStmt_(const ForNode* op) final {
    if (op->kind != ForKind::kThreadBinding) return StmtExprMutator::VisitStmt_(op);
    TVM_CHECK(is_zero(op->min) && op->thread_binding.defined(), ValueError)
        << "UnifyThreadBinding: loop " << op->loop_var << " of " << function_
        << " is bound to threads but starts at " << op->min << "; threads count from zero";
    return Bind(GetRef<Stmt>(op), op->thread_binding.value(), op->loop_var, op->extent, op->body,
                op->annotations);
  }

  Stmt Bind(const Stmt& stmt, const IterVar& thread, const Var& var, const PrimExpr& extent,
            const Stmt& body, const Map<String, ObjectRef>& annotations) {
    if (inside_) return Merge(thread, var, extent, body, annotations);
    inside_ = true;
    axes_.clear();
    defined_.clear();
    PostOrderVisit(stmt, [this](const ObjectRef& node) {
      if (const auto* let = node.as<LetStmtNode>()) defined_.insert(let->var.get());
      if (const auto* loop = node.as<ForNode>()) defined_.insert(loop->loop_var.get());
    });
    Stmt inner = Merge(thread, var, extent, body, annotations);
    for (auto it = axes_.rbegin(); it != axes_.rend(); ++it) {
      inner =
          loops_ ? Loop(*it, inner) : AttrStmt(it->thread, attr::thread_extent, it->extent, inner);
    }
    inside_ = false;
    return inner;
  }

  static Stmt Loop(const Axis& axis, const Stmt& body) {
    IterVar binding(Range(), Var("", axis.thread->var->dtype), IterVarType::kThreadIndex,
                    axis.thread->thread_tag);
    return For(axis.thread->var, make_zero(axis.extent.dtype()), axis.extent,
               ForKind::kThreadBinding, body, binding);
  }

  /*! \brief The body of a loop whose annotations are no part of the launch. */
  Stmt Inside(const Stmt& body, const Map<String, ObjectRef>& annotations) {
    Stmt inner = VisitStmt(body);
    if (!loops_ || annotations.empty()) return inner;
    return For(Var("once", DataType::Int(32)), 0, 1, ForKind::kSerial, inner, NullOpt, annotations);
  }

  Stmt Merge(const IterVar& thread, const Var& var, const PrimExpr& extent, const Stmt& body,
             const Map<String, ObjectRef>& annotations) {
    PrimExpr value = VisitExpr(extent);
    TVM_CHECK(!UsesVar(value, [this](const VarNode* used) { return defined_.count(used) != 0; }),
              ValueError)
        << "UnifyThreadBinding: in " << function_ << " the extent " << value << " of "
        << thread->thread_tag << " is known inside of the kernel only; make it a constant or a "
        << "function of the arguments";
    for (const Axis& axis : axes_) {
      if (axis.thread->thread_tag != thread->thread_tag) continue;
      TVM_CHECK(analyzer_.CanProveEqual(cast(value.dtype(), axis.extent), value), ValueError)
          << "UnifyThreadBinding: " << function_ << " binds loops of extents " << axis.extent
          << " and " << value << " to " << thread->thread_tag
          << " in one kernel; a launch has one extent per axis, so split both alike";
      replaced_[var.get()] = axis.thread->var;
      return Inside(body, annotations);
    }
    IterVar axis = thread;
    if (!thread->var.same_as(var)) {
      // The loop's own variable has the type that the body expects.
      axis = IterVar(Range(), var, IterVarType::kThreadIndex, thread->thread_tag);
    }
    axes_.push_back({axis, value});
    return Inside(body, annotations);
  }

  PrimExpr VisitExpr_(const VarNode* op) final {
    auto it = replaced_.find(op);
    if (it == replaced_.end()) return GetRef<PrimExpr>(op);
    return cast(op->dtype, it->second);
  }

  std::string function_;
  bool loops_;
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
    return BindingUnifier(func->GetAttr<String>(attr::kGlobalSymbol, "main"),
                          HasThreadLoops(func->body))(func->body);
  });
}

TVM_REGISTER_GLOBAL("tir.transform.UnifyThreadBinding").set_body_typed(UnifyThreadBinding);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
