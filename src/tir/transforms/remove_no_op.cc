/*!
 * \file src/tir/transforms/remove_no_op.cc
 * \brief Statements without effect are dropped.
 */
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/analysis.h>

#include "pass_common.h"

namespace tvm {
namespace tir {
namespace {

bool IsPure(const PrimExpr& expr) { return SideEffect(expr) <= CallEffectKind::kReadState; }

/*! \brief Whether a statement does with some memory anything else than store to it. */
class ReadFinder final : public StmtExprVisitor {
 public:
  explicit ReadFinder(const Var& data) : data_(data.get()) {}
  bool found = false;

 private:
  void VisitExpr_(const BufferLoadNode* op) final {
    found = found || op->buffer->data.get() == data_;
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const VarNode* op) final { found = found || op == data_; }
  void VisitStmt_(const AttrStmtNode* op) final {
    found = found || op->node.get() == data_;
    StmtExprVisitor::VisitStmt_(op);
  }

  const VarNode* data_;
};

class StoreRemover final : public StmtMutator {
 public:
  explicit StoreRemover(const Var& data) : data_(data.get()) {}

 private:
  Stmt VisitStmt_(const BufferStoreNode* op) final {
    return op->buffer->data.get() == data_ ? Evaluate(op->value) : GetRef<Stmt>(op);
  }

  const VarNode* data_;
};

class NoOpRemover final : public StmtMutator {
 private:
  static Stmt Nothing() { return Evaluate(0); }
  static bool Uses(const Stmt& stmt, const Var& var) {
    return UsesVar(stmt, [&var](const VarNode* used) { return used == var.get(); });
  }

  Stmt VisitStmt_(const LetStmtNode* op) final {
    Stmt stmt = StmtMutator::VisitStmt_(op);
    op = stmt.as<LetStmtNode>();
    if (!IsPure(op->value)) return stmt;
    return is_no_op(op->body) || !Uses(op->body, op->var) ? op->body : stmt;
  }
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    Stmt stmt = StmtMutator::VisitStmt_(op);
    return is_no_op(stmt.as<AttrStmtNode>()->body) ? Nothing() : stmt;
  }
  Stmt VisitStmt_(const IfThenElseNode* op) final {
    Stmt stmt = StmtMutator::VisitStmt_(op);
    op = stmt.as<IfThenElseNode>();
    if (!IsPure(op->condition)) return stmt;
    if (const int64_t* known = as_const_int(op->condition)) {
      if (*known) return op->then_case;
      return op->else_case.defined() ? op->else_case : Nothing();
    }
    bool no_else = is_no_op(op->else_case);
    if (is_no_op(op->then_case)) {
      return no_else ? Nothing() : IfThenElse(!op->condition, op->else_case);
    }
    if (no_else && op->else_case.defined()) return IfThenElse(op->condition, op->then_case);
    return stmt;
  }
  Stmt VisitStmt_(const ForNode* op) final {
    Stmt stmt = StmtMutator::VisitStmt_(op);
    op = stmt.as<ForNode>();
    const int64_t* extent = as_const_int(op->extent);
    if (is_no_op(op->body) || (extent != nullptr && *extent <= 0)) return Nothing();
    return stmt;
  }
  Stmt VisitStmt_(const AllocateNode* op) final {
    ReadFinder reads(op->buffer_var);
    reads(op->body);
    if (!reads.found) return VisitStmt(StoreRemover(op->buffer_var)(op->body));
    Stmt stmt = StmtMutator::VisitStmt_(op);
    op = stmt.as<AllocateNode>();
    return is_no_op(op->body) || !Uses(op->body, op->buffer_var) ? op->body : stmt;
  }
  Stmt VisitStmt_(const BufferRealizeNode* op) final {
    Stmt stmt = StmtMutator::VisitStmt_(op);
    return is_no_op(stmt.as<BufferRealizeNode>()->body) ? Nothing() : stmt;
  }
  Stmt VisitStmt_(const AssertStmtNode* op) final {
    Stmt stmt = StmtMutator::VisitStmt_(op);
    op = stmt.as<AssertStmtNode>();
    return is_one(op->condition) ? op->body : stmt;
  }
  Stmt VisitStmt_(const EvaluateNode* op) final {
    if (is_no_op(GetRef<Stmt>(op)) || !IsPure(op->value)) return GetRef<Stmt>(op);
    return Nothing();
  }
  Stmt VisitStmt_(const SeqStmtNode* op) final {
    Stmt stmt = StmtMutator::VisitStmt_(op);
    const auto* seq = stmt.as<SeqStmtNode>();
    if (seq == nullptr) return stmt;
    for (const Stmt& child : seq->seq) {
      if (is_no_op(child)) return SeqStmt::Flatten(seq->seq);
    }
    return stmt;
  }
};

class AssertSkipper final : public StmtMutator {
  Stmt VisitStmt_(const AssertStmtNode* op) final { return VisitStmt(op->body); }
};

}  // namespace

Stmt RemoveNoOps(const Stmt& stmt) { return NoOpRemover()(stmt); }

namespace transform {

Pass RemoveNoOp() {
  return BodyPass("tir.RemoveNoOp",
                  [](const PrimFunc& func, const PassContext&) { return RemoveNoOps(func->body); });
}

Pass SkipAssert() {
  return BodyPass("tir.SkipAssert", [](const PrimFunc& func, const PassContext&) {
    return AssertSkipper()(func->body);
  });
}

TVM_REGISTER_GLOBAL("tir.transform.RemoveNoOp").set_body_typed(RemoveNoOp);
TVM_REGISTER_GLOBAL("tir.transform.SkipAssert").set_body_typed(SkipAssert);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
