/*!
 * \file src/tir/analysis/workload.cc
 * \brief How much a function computes, and how much memory it needs while it runs.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/op.h>
#include <tvm/ir/module.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <unordered_set>

namespace tvm {
namespace tir {
namespace {

/*! \brief Largest sum of the sizes of allocations that are alive together, in bytes. */
class WorkspaceMeter final : public StmtVisitor {
 public:
  explicit WorkspaceMeter(int64_t alignment) : alignment_(alignment) {}
  int64_t peak = 0;

 private:
  void VisitStmt_(const AllocateNode* op) final {
    int64_t bytes = op->ConstantAllocationSize() * op->dtype.bytes();
    bytes = (bytes + alignment_ - 1) / alignment_ * alignment_;
    alive_ += bytes;
    peak = std::max(peak, alive_);
    StmtVisitor::VisitStmt_(op);
    alive_ -= bytes;
  }

  int64_t alignment_;
  int64_t alive_ = 0;
};

/*! \brief Arithmetic operations on floating values, each loop counted with all its trips. */
class FlopCounter final : public StmtExprVisitor {
 public:
  double flops = 0;

 private:
  void VisitStmt_(const ForNode* op) final { Repeat(op->loop_var, op->min, op->extent, op->body); }
  void VisitStmt_(const AttrStmtNode* op) final {
    const bool is_launch =
        op->attr_key == attr::thread_extent || op->attr_key == attr::virtual_thread;
    // Stages of one kernel name the same axis again, which adds no threads.
    const auto* axis = op->node.as<IterVarNode>();
    if (!is_launch || !launched_.insert(axis->var.get()).second) {
      return StmtExprVisitor::VisitStmt_(op);
    }
    Repeat(axis->var, make_zero(op->value.dtype()), op->value, op->body);
    launched_.erase(axis->var.get());
  }
  void Repeat(const Var& var, const PrimExpr& begin, const PrimExpr& extent, const Stmt& body) {
    const bool bounded =
        !UsesVar(extent, [this](const VarNode* used) { return known_.count(used) == 0; });
    TVM_CHECK(bounded, ValueError)
        << "estimate_tir_flops: loop " << var << " has the unbounded extent " << extent
        << "; give the shape as constants";
    arith::ConstIntBound trips = analyzer_.const_int_bound(extent);
    known_.insert(var.get());
    analyzer_.Bind(var, Range::FromMinExtent(begin, extent), true);
    Weighted(static_cast<double>(std::max<int64_t>(trips->max_value, 0)), [&] { VisitStmt(body); });
  }
  void VisitStmt_(const BlockNode* op) final {
    for (const IterVar& axis : op->iter_vars) {
      known_.insert(axis->var.get());
      analyzer_.Bind(axis->var, axis->dom, true);
    }
    // The start value is set once per result, which is no arithmetic.
    VisitStmt(op->body);
  }
  void VisitStmt_(const IfThenElseNode* op) final {
    VisitExpr(op->condition);
    double before = flops;
    VisitStmt(op->then_case);
    double then_flops = flops - before;
    flops = before;
    if (op->else_case.defined()) VisitStmt(op->else_case);
    flops = before + std::max(then_flops, flops - before);
  }
  template <typename F>
  void Weighted(double trips, F visit) {
    double outer = trips_;
    trips_ *= trips;
    visit();
    trips_ = outer;
  }
  template <typename Node>
  void Count(const Node* op) {
    if (op->dtype.is_float() || op->dtype.is_bfloat16()) flops += trips_ * op->dtype.lanes();
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const AddNode* op) final { Count(op); }
  void VisitExpr_(const SubNode* op) final { Count(op); }
  void VisitExpr_(const MulNode* op) final { Count(op); }
  void VisitExpr_(const DivNode* op) final { Count(op); }
  void VisitExpr_(const MinNode* op) final { Count(op); }
  void VisitExpr_(const MaxNode* op) final { Count(op); }

  double trips_ = 1;
  /*! \brief Variables whose values are bounded. */
  std::unordered_set<const VarNode*> known_;
  std::unordered_set<const VarNode*> launched_;
  arith::Analyzer analyzer_;
};

}  // namespace

TVM_REGISTER_GLOBAL("tir.analysis.calculate_workspace_bytes")
    .set_body_typed([](PrimFunc func, int64_t workspace_byte_alignment) {
      TVM_CHECK(workspace_byte_alignment > 0, ValueError)
          << "calculate_workspace_bytes: the alignment must be > 0, got "
          << workspace_byte_alignment;
      WorkspaceMeter meter(workspace_byte_alignment);
      meter(func->body);
      return meter.peak;
    });
TVM_REGISTER_GLOBAL("tir.analysis.EstimateTIRFlops").set_body_typed([](ObjectRef node) {
  FlopCounter counter;
  if (const auto* func = node.as<PrimFuncNode>()) {
    counter(func->body);
  } else if (const auto* mod = node.as<IRModuleNode>()) {
    for (const auto& [var, base] : mod->functions) {
      if (const auto* prim_func = base.as<PrimFuncNode>()) counter(prim_func->body);
    }
  } else {
    counter(Downcast<Stmt>(node));
  }
  return counter.flops;
});

}  // namespace tir
}  // namespace tvm
