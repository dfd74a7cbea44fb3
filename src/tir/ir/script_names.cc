/*!
 * \file src/tir/ir/script_names.cc
 * \brief Which variables and buffers of a function its text has to declare.
 */
#include "script_names.h"

#include <tvm/node/structural_equal.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>

namespace tvm {
namespace tir {

namespace {

/*! \brief Walks a function and notes what introduces names and what uses them. */
class NameCollector final : public StmtExprVisitor {
 public:
  explicit NameCollector(ScriptNames* names) : names_(names) {}

  void Visit(const PrimFuncNode* func) {
    for (const Var& param : func->params) names_->introduced.insert(param.get());
    for (const Var& param : func->params) {
      if (Optional<Buffer> buffer = func->buffer_map.Get(param)) Define(buffer.value());
    }
    VisitStmt(func->body);
  }

  /*! \brief Buffers that a parameter or a block introduces, and the others, as they appear. */
  std::vector<const BufferNode*> defined;
  std::vector<const BufferNode*> views;
  /*! \brief Those that a statement of their own introduces: views as well. */
  std::vector<const BufferNode*> declared;
  std::vector<const VarNode*> variables;
  /*! \brief Axes that attributes make, one for every attribute. */
  std::vector<const IterVarNode*> threads;
  /*! \brief Whether a thread's index is known to more than what its one attribute surrounds. */
  bool IsShared(const VarNode* thread) const { return outside_.count(thread) != 0; }

 private:
  void Contents(const Buffer& buffer) {
    for (const PrimExpr& extent : buffer->shape) VisitExpr(extent);
    for (const PrimExpr& stride : buffer->strides) VisitExpr(stride);
    VisitExpr(buffer->elem_offset);
  }
  void Define(const Buffer& buffer) {
    if (!known_.insert(buffer.get()).second) return;
    defined.push_back(buffer.get());
    Contents(buffer);
  }
  void Use(const Buffer& buffer) {
    if (!known_.insert(buffer.get()).second) return;
    views.push_back(buffer.get());
    Contents(buffer);
  }
  void Introduce(const IterVar& iv) {
    names_->introduced.insert(iv->var.get());
    if (iv->dom.defined()) {
      VisitExpr(iv->dom->min);
      VisitExpr(iv->dom->extent);
    }
  }

  void VisitNode(const ObjectRef& node) {
    if (const auto* buffer = node.as<BufferNode>()) {
      Use(GetRef<Buffer>(buffer));
    } else if (const auto* axis = node.as<IterVarNode>()) {
      if (axis->iter_type == kThreadIndex) {
        if (names_->introduced.count(axis->var.get()) != 0) outside_.insert(axis->var.get());
        threads.push_back(axis);
      }
      Introduce(GetRef<IterVar>(axis));
    } else if (const auto* combiner = node.as<CommReducerNode>()) {
      VisitCombiner(combiner);
    } else if (const auto* items = node.as<ArrayNode>()) {
      for (size_t i = 0; i < items->size(); ++i) {
        if (items->at(i).is_object()) VisitNode(items->at(i).cast<ObjectRef>());
      }
    } else if (const auto* expr = node.as<PrimExprNode>()) {
      VisitExpr(GetRef<PrimExpr>(expr));
    }
  }
  void VisitCombiner(const CommReducerNode* combiner) {
    for (const Var& var : combiner->lhs) names_->introduced.insert(var.get());
    for (const Var& var : combiner->rhs) names_->introduced.insert(var.get());
    for (const PrimExpr& e : combiner->result) VisitExpr(e);
    for (const PrimExpr& e : combiner->identity_element) VisitExpr(e);
  }

  void VisitExpr_(const VarNode* op) final {
    names_->used.insert(op);
    if (scope_.count(op) == 0) outside_.insert(op);
    if (seen_.insert(op).second) variables.push_back(op);
  }
  void VisitExpr_(const SizeVarNode* op) final { VisitExpr_(static_cast<const VarNode*>(op)); }
  void VisitExpr_(const LetNode* op) final {
    names_->introduced.insert(op->var.get());
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const BufferLoadNode* op) final {
    Use(op->buffer);
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const ReduceNode* op) final {
    VisitCombiner(op->combiner.get());
    for (const IterVar& iv : op->axis) Introduce(iv);
    StmtExprVisitor::VisitExpr_(op);
  }

  void VisitStmt_(const LetStmtNode* op) final {
    names_->introduced.insert(op->var.get());
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const ForNode* op) final {
    names_->introduced.insert(op->loop_var.get());
    if (op->thread_binding) VisitNode(op->thread_binding.value());
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const AllocateNode* op) final {
    names_->introduced.insert(op->buffer_var.get());
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const AllocateConstNode* op) final {
    names_->introduced.insert(op->buffer_var.get());
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const DeclBufferNode* op) final {
    if (known_.insert(op->buffer.get()).second) {
      declared.push_back(op->buffer.get());
      VisitExpr(op->buffer->data);
      Contents(op->buffer);
    }
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const AttrStmtNode* op) final {
    VisitNode(op->node);
    const auto* axis = op->node.as<IterVarNode>();
    bool opens = axis != nullptr && scope_.insert(axis->var.get()).second;
    StmtExprVisitor::VisitStmt_(op);
    if (opens) scope_.erase(axis->var.get());
  }
  void VisitStmt_(const BufferStoreNode* op) final {
    Use(op->buffer);
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const BufferRealizeNode* op) final {
    Use(op->buffer);
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const PrefetchNode* op) final {
    Use(op->buffer);
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const BlockNode* op) final {
    for (const IterVar& iv : op->iter_vars) Introduce(iv);
    for (const Buffer& buffer : op->alloc_buffers) Define(buffer);
    for (const MatchBufferRegion& match : op->match_buffers) {
      Use(match->source->buffer);
      Define(match->buffer);
    }
    for (const BufferRegion& region : op->reads) Use(region->buffer);
    for (const BufferRegion& region : op->writes) Use(region->buffer);
    StmtExprVisitor::VisitStmt_(op);
  }

  ScriptNames* names_;
  std::unordered_set<const BufferNode*> known_;
  std::unordered_set<const VarNode*> seen_;
  /*! \brief Threads of the attributes around the present statement, and what is used outside. */
  std::unordered_set<const VarNode*> scope_;
  std::unordered_set<const VarNode*> outside_;
};

bool SameContents(const BufferNode* a, const BufferNode* b) {
  StructuralEqual equal;
  return a->data.same_as(b->data) && a->dtype == b->dtype &&
         a->data_alignment == b->data_alignment && a->offset_factor == b->offset_factor &&
         equal(a->axis_separators, b->axis_separators) && equal(a->shape, b->shape) &&
         equal(a->strides, b->strides) && equal(a->elem_offset, b->elem_offset);
}

}  // namespace

ScriptNames::ScriptNames(const PrimFuncNode* func) {
  NameCollector collector(this);
  collector.Visit(func);
  auto settle = [this](const BufferNode* buffer) {
    const VarNode* data = buffer->data.get();
    if (introduced.count(data) != 0 || owner.count(data) != 0) return;
    if (HasUsualPointer(buffer)) {
      owner[data] = buffer;
    } else if (std::find(free.begin(), free.end(), data) == free.end()) {
      free.push_back(data);
    }
  };
  for (const BufferNode* buffer : collector.defined) {
    by_data[buffer->data.get()].push_back(buffer);
    settle(buffer);
  }
  for (const BufferNode* buffer : collector.declared) {
    by_data[buffer->data.get()].push_back(buffer);
  }
  for (const BufferNode* buffer : collector.views) {
    // Copies of one view are written as one.
    if (Representative(buffer) != buffer) continue;
    by_data[buffer->data.get()].push_back(buffer);
    settle(buffer);
    waiting.push_back(buffer);
  }
  for (const IterVarNode* axis : collector.threads) {
    const VarNode* var = axis->var.get();
    if (collector.IsShared(var) && shared_threads.insert(var).second) shared_axes.push_back(axis);
  }
  for (const VarNode* var : collector.variables) {
    bool known = introduced.count(var) != 0 || owner.count(var) != 0 ||
                 std::find(free.begin(), free.end(), var) != free.end();
    if (!known) free.push_back(var);
  }
}

const BufferNode* ScriptNames::Representative(const BufferNode* buffer) const {
  auto it = by_data.find(buffer->data.get());
  if (it == by_data.end()) return buffer;
  for (const BufferNode* other : it->second) {
    if (other == buffer || SameContents(other, buffer)) return other;
  }
  return buffer;
}

bool ScriptNames::IsReady(const BufferNode* buffer) const {
  auto it = owner.find(buffer->data.get());
  if (it == owner.end()) {
    if (visible.count(buffer->data.get()) == 0) return false;
  } else if (it->second != buffer && visible.count(it->second) == 0) {
    return false;
  }
  bool ready = true;
  auto check = [&](const ObjectRef& node) {
    const auto* var = node.as<VarNode>();
    if (var == nullptr) return;
    auto owned = owner.find(var);
    const Object* needed = owned == owner.end() ? static_cast<const Object*>(var) : owned->second;
    ready = ready && visible.count(needed) != 0;
  };
  for (const PrimExpr& extent : buffer->shape) PostOrderVisit(extent, check);
  for (const PrimExpr& stride : buffer->strides) PostOrderVisit(stride, check);
  PostOrderVisit(buffer->elem_offset, check);
  return ready;
}

bool HasUsualPointer(const BufferNode* buffer) {
  const auto* pointer = buffer->data->type_annotation.as<PointerTypeNode>();
  if (pointer == nullptr) return false;
  const auto* element = pointer->element_type.as<PrimTypeNode>();
  // A boolean occupies a byte in memory.
  DataType usual = buffer->dtype.is_bool() ? DataType::Int(8) : buffer->dtype;
  return element != nullptr && element->dtype == usual;
}

bool IsPlainVar(const VarNode* var) {
  return !var->IsInstance<SizeVarNode>() && var->type_annotation->IsInstance<PrimTypeNode>();
}

}  // namespace tir
}  // namespace tvm
