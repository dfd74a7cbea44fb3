/*!
 * \file src/tir/transforms/instrument_bound_checkers.cc
 * \brief Accesses are checked against the bounds of their buffers when the program runs.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/lanes.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>

#include <string>
#include <vector>

#include "pass_common.h"

namespace tvm {
namespace tir {
namespace {

/*! \brief One flat access, made only where `guard` holds. */
struct GuardedAccess {
  Buffer buffer;
  PrimExpr index;
  PrimExpr guard;
};

/*! \brief The reads of an expression with the conditions under which they are made. */
class AccessCollector final : public ExprVisitor {
 public:
  std::vector<GuardedAccess> accesses;
  void Add(const Buffer& buffer, const PrimExpr& index) {
    accesses.push_back({buffer, index, guard_});
  }

 private:
  void VisitExpr_(const BufferLoadNode* op) final {
    ExprVisitor::VisitExpr_(op);
    if (op->indices.size() == 1) Add(op->buffer, op->indices[0]);
  }
  void VisitExpr_(const CallNode* op) final {
    if (op->op.same_as(builtin::address_of()) || op->op.same_as(builtin::prefetch())) return;
    if (!op->op.same_as(builtin::if_then_else())) return ExprVisitor::VisitExpr_(op);
    VisitExpr(op->args[0]);
    Under(op->args[0], op->args[1]);
    Under(!op->args[0], op->args[2]);
  }
  // A variable bound inside of an expression is not known where its statement is checked.
  void VisitExpr_(const LetNode* op) final { VisitExpr(op->value); }

  void Under(const PrimExpr& condition, const PrimExpr& value) {
    PrimExpr outer = guard_;
    guard_ = guard_.defined() ? guard_ && condition : condition;
    VisitExpr(value);
    guard_ = outer;
  }

  PrimExpr guard_;
};

class BoundChecker final : public StmtMutator {
 private:
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    if (op->attr_key == attr::buffer_bound) {
      bounds_[op->node.as<VarNode>()] = op->value;
      return VisitStmt(op->body);
    }
    // A thread of a launch has no way to report a failure.
    if (op->attr_key == attr::thread_extent) return GetRef<Stmt>(op);
    return StmtMutator::VisitStmt_(op);
  }
  // The memory there is, not what its first owner asked for: allocations may have been joined,
  // and copied for virtual threads or double buffers.
  Stmt VisitStmt_(const AllocateNode* op) final {
    DataType dtype = op->extents.empty() ? DataType::Int(32) : op->extents[0].dtype();
    PrimExpr size = make_const(dtype, op->dtype.lanes());
    for (const PrimExpr& extent : op->extents) size = size * cast(dtype, extent);
    bounds_[op->buffer_var.get()] = analyzer_.Simplify(size);
    return StmtMutator::VisitStmt_(op);
  }
  Stmt VisitStmt_(const ForNode* op) final {
    if (op->kind == ForKind::kThreadBinding) return GetRef<Stmt>(op);
    analyzer_.Bind(op->loop_var, Range::FromMinExtent(op->min, op->extent), true);
    return Checked({op->min, op->extent}, StmtMutator::VisitStmt_(op));
  }
  Stmt VisitStmt_(const BufferStoreNode* op) final {
    AccessCollector collector;
    for (const PrimExpr& index : op->indices) collector(index);
    collector(op->value);
    if (op->indices.size() == 1) collector.Add(op->buffer, op->indices[0]);
    return Guarded(collector.accesses, GetRef<Stmt>(op));
  }
  Stmt VisitStmt_(const EvaluateNode* op) final { return Checked({op->value}, GetRef<Stmt>(op)); }
  Stmt VisitStmt_(const LetStmtNode* op) final {
    return Checked({op->value}, StmtMutator::VisitStmt_(op));
  }
  Stmt VisitStmt_(const IfThenElseNode* op) final {
    return Checked({op->condition}, StmtMutator::VisitStmt_(op));
  }

  Stmt Checked(const Array<PrimExpr>& exprs, Stmt stmt) {
    AccessCollector collector;
    for (const PrimExpr& expr : exprs) collector(expr);
    return Guarded(collector.accesses, std::move(stmt));
  }

  /*! \brief `stmt` behind assertions, in the order in which the accesses are made. */
  Stmt Guarded(const std::vector<GuardedAccess>& accesses, Stmt stmt) {
    for (size_t i = accesses.size(); i != 0; --i) {
      const GuardedAccess& access = accesses[i - 1];
      auto bound = bounds_.find(access.buffer->data.get());
      if (bound == bounds_.end()) continue;
      stmt = Check(access, bound->second, std::move(stmt));
    }
    return stmt;
  }

  Stmt Check(const GuardedAccess& access, const PrimExpr& bound, Stmt stmt) {
    PrimExpr first = access.index, last = access.index;
    if (const auto* ramp = access.index.as<RampNode>()) {
      first = ramp->base;
      last = LastOfRamp(ramp);
      if (is_negative_const(ramp->stride)) std::swap(first, last);
    } else if (access.index.dtype().is_vector()) {
      // Lanes anywhere: each is an access of its own.
      for (int lane = access.index.dtype().lanes() - 1; lane >= 0; --lane) {
        PrimExpr index = Shuffle({access.index}, {PrimExpr(lane)});
        stmt = Check({access.buffer, index, access.guard}, bound, std::move(stmt));
      }
      return stmt;
    }
    PrimExpr inside = first >= make_zero(first.dtype()) && last < cast(last.dtype(), bound);
    inside = analyzer_.Simplify(inside);
    if (is_one(inside)) return stmt;
    // Lazily: where the guard fails, even the index may not be safe to compute.
    PrimExpr condition = inside;
    if (access.guard.defined()) {
      condition =
          Call(DataType::Bool(), builtin::if_then_else(), {access.guard, inside, const_true()});
    }
    std::string text = "out of bounds: " + std::string(access.buffer->name) + " has {} elements";
    if (access.index.dtype().is_scalar()) text += ", element {} was accessed";
    Array<PrimExpr> args{StringImm(text), bound};
    if (access.index.dtype().is_scalar()) args.push_back(access.index);
    PrimExpr message = Call(DataType::Handle(), builtin::error_text(), args);
    return AssertStmt(condition, message, std::move(stmt));
  }

  std::unordered_map<const VarNode*, PrimExpr> bounds_;
  arith::Analyzer analyzer_;
};

}  // namespace

namespace transform {

Pass InstrumentBoundCheckers() {
  return BodyPass("tir.InstrumentBoundCheckers", [](const PrimFunc& func, const PassContext&) {
    return BoundChecker()(func->body);
  });
}

TVM_REGISTER_PASS_CONFIG_OPTION("tir.instrument_bound_checkers", bool);
TVM_REGISTER_GLOBAL("tir.transform.InstrumentBoundCheckers")
    .set_body_typed(InstrumentBoundCheckers);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
