/*!
 * \file src/tir/transforms/renew_bindings.cc
 * \brief Copies of statements, so that every variable stays bound once.
 */
#include "pass_common.h"
#include "tir/ir/buffer_mutator.h"

namespace tvm {
namespace tir {
namespace {

class BindingRenewer final : public BufferMutator {
 private:
  Var Renew(const Var& var) {
    Var fresh = var.copy_with_suffix("");
    vars_[var.get()] = fresh;
    return fresh;
  }

  PrimExpr VisitExpr_(const VarNode* op) final {
    auto it = vars_.find(op);
    return it == vars_.end() ? GetRef<PrimExpr>(op) : PrimExpr(it->second);
  }
  PrimExpr VisitExpr_(const LetNode* op) final {
    PrimExpr value = VisitExpr(op->value);
    Var var = Renew(op->var);
    return Let(var, value, VisitExpr(op->body));
  }
  Stmt VisitStmt_(const ForNode* op) final {
    PrimExpr min = VisitExpr(op->min);
    PrimExpr extent = VisitExpr(op->extent);
    Var var = Renew(op->loop_var);
    return For(var, min, extent, op->kind, VisitStmt(op->body), op->thread_binding,
               op->annotations);
  }
  Stmt VisitStmt_(const LetStmtNode* op) final {
    PrimExpr value = VisitExpr(op->value);
    Var var = Renew(op->var);
    return LetStmt(var, value, VisitStmt(op->body));
  }
  Stmt VisitStmt_(const AllocateNode* op) final {
    Array<PrimExpr> extents = VisitExprs(op->extents);
    PrimExpr condition = VisitExpr(op->condition);
    Var var = Renew(op->buffer_var);
    return Allocate(var, op->dtype, extents, condition, VisitStmt(op->body), op->annotations);
  }
  Stmt VisitStmt_(const BlockNode* op) final {
    Array<IterVar> axes = op->iter_vars.Map([this](const IterVar& iv) {
      return IterVar(iv->dom, Renew(iv->var), iv->iter_type, iv->thread_tag);
    });
    for (const Buffer& buffer : op->alloc_buffers) {
      Buffer copy = buffer;
      copy.CopyOnWrite()->data = Renew(buffer->data);
      buffers_[buffer.get()] = copy;
    }
    Block block = Downcast<Block>(BufferMutator::VisitStmt_(op));
    if (!axes.empty()) block.CopyOnWrite()->iter_vars = axes;
    return block;
  }
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    ObjectRef node = op->node;
    if (node.as<VarNode>() != nullptr) node = VisitExpr(Downcast<Var>(node));
    PrimExpr value = VisitExpr(op->value);
    Stmt body = VisitStmt(op->body);
    if (node.same_as(op->node) && value.same_as(op->value) && body.same_as(op->body)) {
      return GetRef<Stmt>(op);
    }
    return AttrStmt(node, op->attr_key, value, body);
  }

  Buffer VisitBuffer(const Buffer& buffer) final {
    auto known = buffers_.find(buffer.get());
    if (known != buffers_.end()) return known->second;
    Buffer result = buffer;
    auto it = vars_.find(buffer->data.get());
    if (it != vars_.end()) result.CopyOnWrite()->data = it->second;
    buffers_.emplace(buffer.get(), result);
    return result;
  }

  std::unordered_map<const VarNode*, Var> vars_;
  std::unordered_map<const BufferNode*, Buffer> buffers_;
};

}  // namespace

Stmt RenewBindings(Stmt stmt) { return BindingRenewer()(stmt); }

}  // namespace tir
}  // namespace tvm
