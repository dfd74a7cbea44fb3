/*!
 * \file src/tir/transforms/convert_ssa.cc
 * \brief Variables of a module are bound once.
 */
#include <tvm/runtime/registry.h>

#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "pass_common.h"
#include "tir/ir/buffer_mutator.h"

namespace tvm {
namespace tir {
namespace {

class SSAConverter final : public BufferMutator {
 public:
  PrimFunc Convert(PrimFunc func) {
    threads_.clear();
    Scope scope(this);
    Array<Var> params = func->params.Map([&](const Var& param) { return Bind(param); });
    Map<Var, Buffer> buffers;
    bool changed = !params.same_as(func->params);
    for (size_t i = 0; i < params.size(); ++i) {
      Optional<Buffer> buffer = func->buffer_map.Get(func->params[i]);
      if (!buffer) continue;
      BindShape(buffer.value());
      Buffer renamed = VisitBuffer(buffer.value());
      changed = changed || !renamed.same_as(buffer.value());
      buffers.Set(params[i], renamed);
    }
    Stmt body = VisitStmt(func->body);
    if (!changed && body.same_as(func->body)) return func;
    PrimFuncNode* node = func.CopyOnWrite();
    node->params = params;
    if (changed) node->buffer_map = buffers;
    node->body = body;
    return func;
  }

 private:
  /*! \brief Names that hold in a part of the program; what was there before comes back after it. */
  class Scope {
   public:
    explicit Scope(SSAConverter* self)
        : self_(self), vars_(self->vars_), buffers_(self->buffers_) {}
    ~Scope() {
      self_->vars_ = std::move(vars_);
      self_->buffers_ = std::move(buffers_);
    }

   private:
    SSAConverter* self_;
    std::unordered_map<const VarNode*, Var> vars_;
    std::unordered_map<const BufferNode*, Buffer> buffers_;
  };

  Var Bind(const Var& var) {
    // Variables are kept, so that another one cannot get the address of a dead one.
    if (bound_.insert(var.get()).second) {
      kept_.push_back(var);
      vars_.erase(var.get());
      return var;
    }
    Var fresh = var.copy_with_suffix("");
    vars_[var.get()] = fresh;
    buffers_.clear();
    return fresh;
  }
  void BindShape(const Buffer& buffer) {
    auto bind = [this](const PrimExpr& e) {
      const auto* var = e.as<VarNode>();
      if (var != nullptr && in_function_.insert(var).second) Bind(GetRef<Var>(var));
    };
    if (in_function_.insert(buffer->data.get()).second) Bind(buffer->data);
    for (const PrimExpr& e : buffer->shape) bind(e);
    for (const PrimExpr& e : buffer->strides) bind(e);
    bind(buffer->elem_offset);
  }

 public:
  /*! \brief Begin a function: its parameters, and those variables that buffers of it bind. */
  PrimFunc Next(PrimFunc func) {
    in_function_.clear();
    for (const Var& param : func->params) in_function_.insert(param.get());
    return Convert(std::move(func));
  }

 private:
  PrimExpr VisitExpr_(const VarNode* op) final {
    auto it = vars_.find(op);
    return it == vars_.end() ? GetRef<PrimExpr>(op) : PrimExpr(it->second);
  }
  Buffer VisitBuffer(const Buffer& buffer) final {
    auto known = buffers_.find(buffer.get());
    if (known != buffers_.end()) return known->second;
    Var data = Downcast<Var>(VisitExpr(buffer->data));
    auto visit = [this](const PrimExpr& e) { return VisitExpr(e); };
    Array<PrimExpr> shape = buffer->shape.Map(visit);
    Array<PrimExpr> strides = buffer->strides.Map(visit);
    PrimExpr offset = VisitExpr(buffer->elem_offset);
    Buffer result = buffer;
    if (!data.same_as(buffer->data) || !shape.same_as(buffer->shape) ||
        !strides.same_as(buffer->strides) || !offset.same_as(buffer->elem_offset)) {
      BufferNode* node = result.CopyOnWrite();
      node->data = data;
      node->shape = shape;
      node->strides = strides;
      node->elem_offset = offset;
    }
    buffers_.emplace(buffer.get(), result);
    return result;
  }

  PrimExpr VisitExpr_(const LetNode* op) final {
    PrimExpr value = VisitExpr(op->value);
    Scope scope(this);
    Var var = Bind(op->var);
    PrimExpr body = VisitExpr(op->body);
    if (var.same_as(op->var) && value.same_as(op->value) && body.same_as(op->body)) {
      return GetRef<PrimExpr>(op);
    }
    return Let(var, value, body);
  }
  Stmt VisitStmt_(const LetStmtNode* op) final {
    PrimExpr value = VisitExpr(op->value);
    Scope scope(this);
    Var var = Bind(op->var);
    Stmt body = VisitStmt(op->body);
    if (var.same_as(op->var) && value.same_as(op->value) && body.same_as(op->body)) {
      return GetRef<Stmt>(op);
    }
    return LetStmt(var, value, body);
  }
  Stmt VisitStmt_(const ForNode* op) final {
    PrimExpr min = VisitExpr(op->min);
    PrimExpr extent = VisitExpr(op->extent);
    Scope scope(this);
    Var var = Bind(op->loop_var);
    Stmt body = VisitStmt(op->body);
    if (var.same_as(op->loop_var) && min.same_as(op->min) && extent.same_as(op->extent) &&
        body.same_as(op->body)) {
      return GetRef<Stmt>(op);
    }
    return For(var, min, extent, op->kind, body, op->thread_binding, op->annotations);
  }
  Stmt VisitStmt_(const AllocateNode* op) final {
    Array<PrimExpr> extents = VisitExprs(op->extents);
    PrimExpr condition = VisitExpr(op->condition);
    Scope scope(this);
    Var var = Bind(op->buffer_var);
    Stmt body = VisitStmt(op->body);
    if (var.same_as(op->buffer_var) && extents.same_as(op->extents) &&
        condition.same_as(op->condition) && body.same_as(op->body)) {
      return GetRef<Stmt>(op);
    }
    return Allocate(var, op->dtype, extents, condition, body, op->annotations);
  }
  Stmt VisitStmt_(const AllocateConstNode* op) final {
    Scope scope(this);
    Var var = Bind(op->buffer_var);
    Stmt body = VisitStmt(op->body);
    if (var.same_as(op->buffer_var) && body.same_as(op->body)) return GetRef<Stmt>(op);
    AllocateConst changed = GetRef<AllocateConst>(op);
    changed.CopyOnWrite()->buffer_var = var;
    changed.CopyOnWrite()->body = body;
    return changed;
  }
  Stmt VisitStmt_(const BlockNode* op) final {
    Scope scope(this);
    Array<IterVar> iter_vars = op->iter_vars.Map([this](const IterVar& iv) {
      Range dom = VisitRanges({iv->dom})[0];
      Var var = Bind(iv->var);
      bool same = var.same_as(iv->var) && dom.same_as(iv->dom);
      return same ? iv : IterVar(dom, var, iv->iter_type, iv->thread_tag);
    });
    for (const Buffer& buffer : op->alloc_buffers) Bind(buffer->data);
    for (const MatchBufferRegion& match : op->match_buffers) Bind(match->buffer->data);
    Block block = Downcast<Block>(BufferMutator::VisitStmt_(op));
    if (!iter_vars.same_as(op->iter_vars)) block.CopyOnWrite()->iter_vars = iter_vars;
    return block;
  }
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    ObjectRef node = op->node;
    PrimExpr value = VisitExpr(op->value);
    if (const auto* axis = node.as<IterVarNode>()) {
      if (op->attr_key == attr::thread_extent || op->attr_key == attr::virtual_thread) {
        node = Thread(GetRef<IterVar>(axis));
      }
    } else if (node.as<VarNode>() != nullptr) {
      node = VisitExpr(Downcast<Var>(node));
    } else if (node.as<BufferNode>() != nullptr) {
      node = VisitBuffer(Downcast<Buffer>(node));
    }
    Stmt body = VisitStmt(op->body);
    if (node.same_as(op->node) && value.same_as(op->value) && body.same_as(op->body)) {
      return GetRef<Stmt>(op);
    }
    return AttrStmt(node, op->attr_key, value, body);
  }

  /*! \brief The axis of a launch, which is the same one in all launches of a function. */
  IterVar Thread(const IterVar& axis) {
    auto it = threads_.find(axis->var.get());
    if (it == threads_.end()) {
      Var var = Bind(axis->var);
      Range dom = axis->dom.defined() ? VisitRanges({axis->dom})[0] : axis->dom;
      bool same = var.same_as(axis->var) && dom.same_as(axis->dom);
      it = threads_
               .emplace(axis->var.get(),
                        same ? axis : IterVar(dom, var, axis->iter_type, axis->thread_tag))
               .first;
    }
    if (!it->second->var.same_as(axis->var)) {
      if (vars_.count(axis->var.get()) == 0) buffers_.clear();
      vars_[axis->var.get()] = it->second->var;
    }
    return it->second;
  }

  std::unordered_set<const VarNode*> bound_;
  std::unordered_set<const VarNode*> in_function_;
  std::vector<Var> kept_;
  std::unordered_map<const VarNode*, Var> vars_;
  std::unordered_map<const BufferNode*, Buffer> buffers_;
  std::unordered_map<const VarNode*, IterVar> threads_;
};

}  // namespace

namespace transform {

Pass ConvertSSA() {
  auto run = [](IRModule mod, PassContext) {
    SSAConverter converter;
    Map<GlobalVar, BaseFunc> functions;
    bool changed = false;
    for (const auto& [var, base] : mod->functions) {
      BaseFunc after = base;
      if (base.as<PrimFuncNode>() != nullptr) after = converter.Next(Downcast<PrimFunc>(base));
      changed = changed || !after.same_as(base);
      functions.Set(var, after);
    }
    return changed ? IRModule(functions, mod->attrs) : mod;
  };
  return tvm::transform::CreateModulePass(run, 0, "tir.ConvertSSA", {});
}

TVM_REGISTER_GLOBAL("tir.transform.ConvertSSA").set_body_typed(ConvertSSA);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
