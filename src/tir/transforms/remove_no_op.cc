/*!
 * \file src/tir/transforms/remove_no_op.cc
 * \brief Statements without effect are dropped.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/op.h>
#include <tvm/node/structural_equal.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/analysis.h>

#include "dead_store.h"
#include "pass_common.h"
#include "pass_option.h"
#include "software_pipeline.h"

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
 public:
  explicit NoOpRemover(bool drop_unread) : drop_unread_(drop_unread) {}

 private:
  static Stmt Nothing() { return Evaluate(0); }
  static bool Uses(const Stmt& stmt, const Var& var) {
    return UsesVar(stmt, [&var](const VarNode* used) { return used == var.get(); });
  }

  Stmt VisitStmt_(const LetStmtNode* op) final {
    if (IsPure(op->value) && SideEffect(op->value) <= CallEffectKind::kPure) {
      analyzer_.Bind(op->var, op->value, true);
    }
    Stmt stmt = StmtMutator::VisitStmt_(op);
    op = stmt.as<LetStmtNode>();
    if (!is_no_op(op->body) && Uses(op->body, op->var)) return stmt;
    if (IsPure(op->value)) return op->body;
    return SeqStmt::Flatten({Evaluate(op->value), op->body});
  }
  Stmt VisitStmt_(const BufferStoreNode* op) final {
    // What an element holds already need not be stored again.
    const auto* load = op->value.as<BufferLoadNode>();
    if (load == nullptr || !load->buffer.same_as(op->buffer)) return GetRef<Stmt>(op);
    for (size_t i = 0; i < op->indices.size(); ++i) {
      const PrimExpr &to = op->indices[i], &from = load->indices[i];
      if (SideEffect(to) > CallEffectKind::kPure) return GetRef<Stmt>(op);
      bool same = to.dtype().is_scalar() && from.dtype().is_scalar()
                      ? analyzer_.CanProveEqual(to, from)
                      : StructuralEqual()(to, from);
      if (!same) return GetRef<Stmt>(op);
    }
    return Nothing();
  }
  Stmt VisitStmt_(const DeclBufferNode* op) final {
    Stmt stmt = StmtMutator::VisitStmt_(op);
    return is_no_op(stmt.as<DeclBufferNode>()->body) ? Nothing() : stmt;
  }
  Stmt VisitStmt_(const AllocateConstNode* op) final {
    Stmt stmt = StmtMutator::VisitStmt_(op);
    op = stmt.as<AllocateConstNode>();
    return is_no_op(op->body) || !Uses(op->body, op->buffer_var) ? op->body : stmt;
  }
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    Stmt stmt = StmtMutator::VisitStmt_(op);
    // A group of copies counts for those who wait, also if it has none.
    const bool counts = op->attr_key == attr::async_commit_queue_scope;
    return is_no_op(stmt.as<AttrStmtNode>()->body) && !counts ? Nothing() : stmt;
  }
  Stmt VisitStmt_(const IfThenElseNode* op) final {
    Stmt stmt = MutateBranches(op);
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
  Stmt MutateBranches(const IfThenElseNode* op) {
    if (SideEffect(op->condition) > CallEffectKind::kPure) return StmtMutator::VisitStmt_(op);
    Stmt then_case, else_case;
    {
      arith::ConstraintContext holds(&analyzer_, op->condition);
      then_case = VisitStmt(op->then_case);
    }
    if (op->else_case.defined()) {
      arith::ConstraintContext holds(&analyzer_, Not(op->condition));
      else_case = VisitStmt(op->else_case);
    }
    if (then_case.same_as(op->then_case) && else_case.same_as(op->else_case)) {
      return GetRef<Stmt>(op);
    }
    return IfThenElse(op->condition, then_case, else_case);
  }
  Stmt VisitStmt_(const ForNode* op) final {
    if (analyzer_.CanProve(op->extent <= 0)) return Nothing();
    analyzer_.Bind(op->loop_var, Range::FromMinExtent(op->min, op->extent), true);
    Stmt stmt = StmtMutator::VisitStmt_(op);
    return is_no_op(stmt.as<ForNode>()->body) ? Nothing() : stmt;
  }
  Stmt VisitStmt_(const AllocateNode* op) final {
    if (drop_unread_) {
      ReadFinder reads(op->buffer_var);
      reads(op->body);
      if (!reads.found) return VisitStmt(StoreRemover(op->buffer_var)(op->body));
    }
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

  const bool drop_unread_;
  arith::Analyzer analyzer_;
};

using Options = Map<String, Any>;

constexpr const char* kRemoveNoOpOption = "tir.RemoveNoOp";

/*! \brief Whether stores are judged by what comes before and after them. */
bool UseDataflow(const transform::PassContext& ctx) {
  bool use = false;
  for (const auto& [key, value] : ctx->GetConfig<Options>(kRemoveNoOpOption, {})) {
    if (key == "use_dataflow_analysis") {
      use = OptionEntry<bool>(kRemoveNoOpOption, key, value);
    } else if (key == "max_simplification_steps") {
      // Proofs here are bounded by themselves; any bound is kept to.
      OptionEntry<int>(kRemoveNoOpOption, key, value);
    } else {
      TVM_FATAL(ValueError) << kRemoveNoOpOption << " has no option " << key
                            << "; there are use_dataflow_analysis and max_simplification_steps";
    }
  }
  return use;
}

class AssertSkipper final : public StmtMutator {
  Stmt VisitStmt_(const AssertStmtNode* op) final { return VisitStmt(op->body); }
};

}  // namespace

Stmt RemoveNoOps(const Stmt& stmt, bool drop_unread) { return NoOpRemover(drop_unread)(stmt); }

namespace transform {

Pass RemoveNoOp() {
  return BodyPass("tir.RemoveNoOp", [](const PrimFunc& func, const PassContext& ctx) {
    Stmt body = RemoveNoOps(func->body);
    if (!UseDataflow(ctx)) return body;
    return RemoveNoOps(RemoveDeadStores(body), /*drop_unread=*/true);
  });
}

Pass SkipAssert() {
  return BodyPass("tir.SkipAssert", [](const PrimFunc& func, const PassContext&) {
    return AssertSkipper()(func->body);
  });
}

TVM_REGISTER_PASS_CONFIG_OPTION("tir.RemoveNoOp", Options);
TVM_REGISTER_GLOBAL("tir.transform.RemoveNoOp").set_body_typed(RemoveNoOp);
TVM_REGISTER_GLOBAL("tir.transform.SkipAssert").set_body_typed(SkipAssert);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
