/*!
 * \file src/tir/analysis/var_use.cc
 * \brief Which variables a program uses, and which of them it does not bind.
 */
#include <tvm/runtime/registry.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <unordered_set>

namespace tvm {
namespace tir {
namespace {

class UseFinder final : public StmtExprVisitor {
 public:
  explicit UseFinder(const std::function<bool(const VarNode*)>& predicate)
      : predicate_(predicate) {}
  bool found = false;

  void VisitExpr(const PrimExpr& expr) override {
    if (!found) StmtExprVisitor::VisitExpr(expr);
  }
  void VisitStmt(const Stmt& stmt) override {
    if (!found) StmtExprVisitor::VisitStmt(stmt);
  }

 private:
  void VisitExpr_(const VarNode* op) final { found = found || predicate_(op); }
  void VisitExpr_(const BufferLoadNode* op) final {
    VisitExpr(op->buffer->data);
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitStmt_(const BufferStoreNode* op) final {
    VisitExpr(op->buffer->data);
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const DeclBufferNode* op) final {
    VisitExpr(op->buffer->data);
    StmtExprVisitor::VisitStmt_(op);
  }

  const std::function<bool(const VarNode*)>& predicate_;
};

class FreeVarCollector final : public StmtExprVisitor {
 public:
  Array<Var> free;

  void Bind(const Var& var) { bound_.insert(var.get()); }
  void BindBuffer(const Buffer& buffer) {
    bound_.insert(buffer->data.get());
    for (const PrimExpr& extent : buffer->shape) VisitExpr(extent);
  }

 private:
  void VisitExpr_(const VarNode* op) final {
    if (bound_.count(op) == 0 && reported_.insert(op).second) free.push_back(GetRef<Var>(op));
  }
  void VisitExpr_(const LetNode* op) final {
    VisitExpr(op->value);
    Bind(op->var);
    VisitExpr(op->body);
  }
  void VisitExpr_(const ReduceNode* op) final {
    for (const IterVar& iv : op->axis) Bind(iv->var);
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const BufferLoadNode* op) final {
    VisitExpr(op->buffer->data);
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitStmt_(const BufferStoreNode* op) final {
    VisitExpr(op->buffer->data);
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const LetStmtNode* op) final {
    VisitExpr(op->value);
    Bind(op->var);
    VisitStmt(op->body);
  }
  void VisitStmt_(const AttrStmtNode* op) final {
    // A thread axis is bound by the launch, at the first attribute that names it.
    if (op->attr_key == attr::thread_extent || op->attr_key == attr::virtual_thread) {
      if (const auto* iv = op->node.as<IterVarNode>()) Bind(iv->var);
    }
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const ForNode* op) final {
    VisitExpr(op->min);
    VisitExpr(op->extent);
    Bind(op->loop_var);
    VisitStmt(op->body);
  }
  void VisitStmt_(const AllocateNode* op) final {
    Bind(op->buffer_var);
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const AllocateConstNode* op) final {
    Bind(op->buffer_var);
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const DeclBufferNode* op) final {
    VisitExpr(op->buffer->data);
    for (const PrimExpr& extent : op->buffer->shape) VisitExpr(extent);
    for (const PrimExpr& stride : op->buffer->strides) VisitExpr(stride);
    VisitExpr(op->buffer->elem_offset);
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const BufferRealizeNode* op) final {
    Bind(op->buffer->data);
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const BlockNode* op) final {
    for (const IterVar& iv : op->iter_vars) Bind(iv->var);
    for (const Buffer& buffer : op->alloc_buffers) BindBuffer(buffer);
    for (const MatchBufferRegion& match : op->match_buffers) {
      Bind(match->buffer->data);
      // Extents, strides and the offset of a view that are variables come from the region.
      auto bind = [this](const PrimExpr& e) {
        if (e.as<VarNode>()) Bind(Downcast<Var>(e));
      };
      for (const PrimExpr& e : match->buffer->shape) bind(e);
      for (const PrimExpr& e : match->buffer->strides) bind(e);
      bind(match->buffer->elem_offset);
    }
    StmtExprVisitor::VisitStmt_(op);
  }

  std::unordered_set<const VarNode*> bound_;
  std::unordered_set<const VarNode*> reported_;
};

}  // namespace

bool UsesVar(const PrimExpr& expr, const std::function<bool(const VarNode*)>& predicate) {
  UseFinder finder(predicate);
  finder.VisitExpr(expr);
  return finder.found;
}

bool UsesVar(const Stmt& stmt, const std::function<bool(const VarNode*)>& predicate) {
  UseFinder finder(predicate);
  finder.VisitStmt(stmt);
  return finder.found;
}

Array<Var> UndefinedVars(const PrimExpr& expr) {
  FreeVarCollector collector;
  collector(expr);
  return collector.free;
}

Array<Var> UndefinedVars(const Stmt& stmt, const Array<Var>& defs) {
  FreeVarCollector collector;
  for (const Var& var : defs) collector.Bind(var);
  collector(stmt);
  return collector.free;
}

int64_t CountNodes(const ObjectRef& node) {
  struct Counter final : public StmtExprVisitor {
    int64_t count = 0;
    void VisitExpr(const PrimExpr& expr) override {
      ++count;
      StmtExprVisitor::VisitExpr(expr);
    }
    void VisitStmt(const Stmt& stmt) override {
      ++count;
      StmtExprVisitor::VisitStmt(stmt);
    }
  };
  Counter counter;
  if (node.as<PrimExprNode>() != nullptr) {
    counter.VisitExpr(Downcast<PrimExpr>(node));
  } else if (node.as<StmtNode>() != nullptr) {
    counter.VisitStmt(Downcast<Stmt>(node));
  } else if (const auto* func = node.as<PrimFuncNode>()) {
    counter.VisitStmt(func->body);
  } else {
    TVM_FATAL(TypeError) << "CountNodes: expected an expression, a statement or a PrimFunc, got "
                         << (node.defined() ? node->GetTypeKey() : "None");
  }
  return counter.count;
}

TVM_REGISTER_GLOBAL("tir.analysis.undefined_vars")
    .set_body_typed([](ObjectRef node, Array<Var> defs) {
      if (node.as<PrimExprNode>() != nullptr) {
        Array<Var> free;
        for (const Var& var : UndefinedVars(Downcast<PrimExpr>(node))) {
          bool given = std::any_of(defs.begin(), defs.end(),
                                   [&](const Var& def) { return def.same_as(var); });
          if (!given) free.push_back(var);
        }
        return free;
      }
      return UndefinedVars(Downcast<Stmt>(node), defs);
    });
TVM_REGISTER_GLOBAL("tir.analysis.count_nodes").set_body_typed([](ObjectRef node) {
  return CountNodes(node);
});

}  // namespace tir
}  // namespace tvm
