/*!
 * \file src/tir/analysis/workload.cc
 * \brief How much a function computes, and how much memory it needs while it runs.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/ir/module.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/op.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>

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
  void VisitStmt_(const ForNode* op) final {
    arith::ConstIntBound trips = analyzer_.const_int_bound(op->extent);
    TVM_CHECK(trips->max_value != arith::ConstIntBound::ContainerType::kPosInf, ValueError)
        << "estimate_tir_flops: loop " << op->loop_var << " has the unbounded extent " << op->extent
        << "; give the shape as constants";
    analyzer_.Bind(op->loop_var, Range::FromMinExtent(op->min, op->extent), true);
    Weighted(static_cast<double>(std::max<int64_t>(trips->max_value, 0)),
             [&] { VisitStmt(op->body); });
  }
  void VisitStmt_(const BlockNode* op) final {
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
