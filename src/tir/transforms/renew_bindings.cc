/*!
 * \file src/tir/transforms/renew_bindings.cc
 * \brief Copies of statements, so that every variable stays bound once.
 */
#include <tvm/expr/builtin.h>
#include <tvm/runtime/registry.h>

#include "pass_common.h"
#include "tir/ir/buffer_mutator.h"

namespace tvm {
namespace tir {
namespace {

class BindingRenewer final : public BufferMutator {
 public:
  /*! \param threads Whether axes of threads, which copies inside of a launch share, are new too. */
  explicit BindingRenewer(bool threads) : threads_(threads) {}

  Var Renew(const Var& var) {
    Var fresh = var.copy_with_suffix("");
    vars_[var.get()] = fresh;
    return fresh;
  }
  /*! \brief New variables for those that a buffer binds to what is found at run time. */
  void RenewFieldsOf(const Buffer& buffer) {
    auto renew = [this](const PrimExpr& field) {
      const auto* var = field.as<VarNode>();
      if (var != nullptr && vars_.count(var) == 0) Renew(GetRef<Var>(var));
    };
    renew(buffer->data);
    for (const PrimExpr& extent : buffer->shape) renew(extent);
    for (const PrimExpr& stride : buffer->strides) renew(stride);
    renew(buffer->elem_offset);
  }
  /*! \brief A buffer of its own over the variables of today. */
  Buffer Define(const Buffer& buffer) {
    Buffer copy(make_object<BufferNode>(*buffer.get()));
    BufferNode* node = copy.CopyOnWrite();
    auto it = vars_.find(buffer->data.get());
    if (it != vars_.end()) node->data = it->second;
    node->shape = VisitExprs(buffer->shape);
    node->strides = VisitExprs(buffer->strides);
    node->elem_offset = VisitExpr(buffer->elem_offset);
    buffers_[buffer.get()] = copy;
    return copy;
  }

 private:
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
      Range domain = Range::FromMinExtent(VisitExpr(iv->dom->min), VisitExpr(iv->dom->extent));
      return IterVar(domain, Renew(iv->var), iv->iter_type, iv->thread_tag);
    });
    for (const Buffer& buffer : op->alloc_buffers) {
      Renew(buffer->data);
      Define(buffer);
    }
    for (const MatchBufferRegion& match : op->match_buffers) {
      RenewFieldsOf(match->buffer);
      Define(match->buffer);
    }
    Block block = Downcast<Block>(BufferMutator::VisitStmt_(op));
    if (!axes.empty()) block.CopyOnWrite()->iter_vars = axes;
    return block;
  }
  Stmt VisitStmt_(const AllocateConstNode* op) final {
    Array<PrimExpr> extents = VisitExprs(op->extents);
    AllocateConst renewed = GetRef<AllocateConst>(op);
    AllocateConstNode* node = renewed.CopyOnWrite();
    node->extents = extents;
    node->buffer_var = Renew(op->buffer_var);
    node->body = VisitStmt(op->body);
    return renewed;
  }
  Stmt VisitStmt_(const DeclBufferNode* op) final {
    Buffer buffer = Define(op->buffer);
    return DeclBuffer(buffer, VisitStmt(op->body));
  }
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    ObjectRef node = op->node;
    const auto* axis = node.as<IterVarNode>();
    if (threads_ && axis != nullptr && op->attr_key == attr::thread_extent) {
      auto it = vars_.find(axis->var.get());
      Var var = it == vars_.end() ? Renew(axis->var) : it->second;
      node = IterVar(axis->dom, var, axis->iter_type, axis->thread_tag);
    }
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
    // One that is used without being declared changes only with the memory that it is in.
    if (vars_.count(buffer->data.get())) return Define(buffer);
    buffers_.emplace(buffer.get(), buffer);
    return buffer;
  }

  bool threads_;

  std::unordered_map<const VarNode*, Var> vars_;
  std::unordered_map<const BufferNode*, Buffer> buffers_;
};

}  // namespace

Stmt RenewBindings(Stmt stmt) { return BindingRenewer(false)(stmt); }

namespace {

PrimFunc RenewDefinitions(const PrimFunc& func) {
  BindingRenewer renewer(true);
  Array<Var> params = func->params.Map([&](const Var& param) { return renewer.Renew(param); });
  // A buffer may name variables that another one binds.
  for (const auto& [param, buffer] : func->buffer_map) renewer.RenewFieldsOf(buffer);
  Map<Var, Buffer> buffers;
  for (size_t i = 0; i < params.size(); ++i) {
    auto it = func->buffer_map.find(func->params[i]);
    if (it != func->buffer_map.end()) buffers.Set(params[i], renewer.Define((*it).second));
  }
  return PrimFunc(params, renewer(func->body), func->ret_type, buffers, func->attrs);
}

}  // namespace

TVM_REGISTER_GLOBAL("tir.RenewDefs").set_body_typed(RenewDefinitions);
TVM_REGISTER_GLOBAL("tir.RenewBindings").set_body_typed(RenewBindings);

}  // namespace tir
}  // namespace tvm
