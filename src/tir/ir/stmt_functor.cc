/*!
 * \file src/tir/ir/stmt_functor.cc
 * \brief Default traversal and rebuilding of statements, and rewriting by callbacks.
 */
#include <tvm/runtime/registry.h>
#include <tvm/tir/stmt_functor.h>

#include <string>
#include <unordered_set>

#include "expr/rewriters.h"

namespace tvm {
namespace tir {

template class StmtFunctor<void(const Stmt&)>;
template class StmtFunctor<Stmt(const Stmt&)>;

void StmtVisitor::VisitStmt_(const LetStmtNode* op) {
  VisitExpr(op->value);
  VisitStmt(op->body);
}
void StmtVisitor::VisitStmt_(const AttrStmtNode* op) {
  VisitExpr(op->value);
  VisitStmt(op->body);
}
void StmtVisitor::VisitStmt_(const ForNode* op) {
  VisitExpr(op->min);
  VisitExpr(op->extent);
  VisitStmt(op->body);
}
void StmtVisitor::VisitStmt_(const WhileNode* op) {
  VisitExpr(op->condition);
  VisitStmt(op->body);
}
void StmtVisitor::VisitStmt_(const AllocateNode* op) {
  for (const PrimExpr& extent : op->extents) VisitExpr(extent);
  VisitExpr(op->condition);
  VisitStmt(op->body);
}
void StmtVisitor::VisitStmt_(const AllocateConstNode* op) {
  for (const PrimExpr& extent : op->extents) VisitExpr(extent);
  VisitStmt(op->body);
}
void StmtVisitor::VisitStmt_(const DeclBufferNode* op) { VisitStmt(op->body); }
void StmtVisitor::VisitStmt_(const BufferStoreNode* op) {
  for (const PrimExpr& index : op->indices) VisitExpr(index);
  VisitExpr(op->value);
}
void StmtVisitor::VisitStmt_(const BufferRealizeNode* op) {
  for (const Range& range : op->bounds) {
    VisitExpr(range->min);
    VisitExpr(range->extent);
  }
  VisitExpr(op->condition);
  VisitStmt(op->body);
}
void StmtVisitor::VisitStmt_(const ProducerStoreNode* op) {
  for (const PrimExpr& index : op->indices) VisitExpr(index);
  VisitExpr(op->value);
}
void StmtVisitor::VisitStmt_(const ProducerRealizeNode* op) {
  for (const Range& range : op->bounds) {
    VisitExpr(range->min);
    VisitExpr(range->extent);
  }
  VisitExpr(op->condition);
  VisitStmt(op->body);
}
void StmtVisitor::VisitStmt_(const IfThenElseNode* op) {
  VisitExpr(op->condition);
  VisitStmt(op->then_case);
  if (op->else_case.defined()) VisitStmt(op->else_case);
}
void StmtVisitor::VisitStmt_(const AssertStmtNode* op) {
  VisitExpr(op->condition);
  VisitExpr(op->message);
  VisitStmt(op->body);
}
void StmtVisitor::VisitStmt_(const SeqStmtNode* op) {
  for (const Stmt& stmt : op->seq) VisitStmt(stmt);
}
void StmtVisitor::VisitStmt_(const EvaluateNode* op) { VisitExpr(op->value); }
void StmtVisitor::VisitStmt_(const PrefetchNode* op) {
  for (const Range& range : op->bounds) {
    VisitExpr(range->min);
    VisitExpr(range->extent);
  }
}

void StmtVisitor::VisitStmt_(const BlockNode* op) {
  auto visit_range = [this](const Range& range) {
    VisitExpr(range->min);
    VisitExpr(range->extent);
  };
  auto visit_region = [&](const BufferRegion& region) {
    for (const Range& range : region->region) visit_range(range);
  };
  for (const IterVar& iv : op->iter_vars) visit_range(iv->dom);
  for (const BufferRegion& region : op->reads) visit_region(region);
  for (const BufferRegion& region : op->writes) visit_region(region);
  for (const MatchBufferRegion& match : op->match_buffers) visit_region(match->source);
  if (op->init.defined()) VisitStmt(op->init);
  VisitStmt(op->body);
}
void StmtVisitor::VisitStmt_(const BlockRealizeNode* op) {
  for (const PrimExpr& value : op->iter_values) VisitExpr(value);
  VisitExpr(op->predicate);
  VisitStmt(op->block);
}

Array<PrimExpr> StmtMutator::VisitExprs(const Array<PrimExpr>& exprs) {
  return exprs.Map([this](const PrimExpr& e) { return VisitExpr(e); });
}
Array<Range> StmtMutator::VisitRanges(const Array<Range>& ranges) {
  return ranges.Map([this](const Range& range) {
    PrimExpr min = VisitExpr(range->min);
    PrimExpr extent = VisitExpr(range->extent);
    if (min.same_as(range->min) && extent.same_as(range->extent)) return range;
    return Range::FromMinExtent(min, extent);
  });
}

namespace {

/*! \brief `made`, which is there instead of `stmt`, with the place of `stmt` in its source. */
Stmt Placed(const Stmt& stmt, Stmt made) {
  if (stmt->span.defined() && made.defined() && !made->span.defined()) made->span = stmt->span;
  return made;
}

}  // namespace

Stmt StmtMutator::VisitStmt(const Stmt& n) { return Placed(n, StmtFunctor::VisitStmt(n)); }

Stmt StmtMutator::VisitStmt_(const LetStmtNode* op) {
  PrimExpr value = VisitExpr(op->value);
  Stmt body = VisitStmt(op->body);
  if (value.same_as(op->value) && body.same_as(op->body)) return GetRef<Stmt>(op);
  return LetStmt(op->var, value, body);
}
Stmt StmtMutator::VisitStmt_(const AttrStmtNode* op) {
  PrimExpr value = VisitExpr(op->value);
  Stmt body = VisitStmt(op->body);
  if (value.same_as(op->value) && body.same_as(op->body)) return GetRef<Stmt>(op);
  return AttrStmt(op->node, op->attr_key, value, body);
}
Stmt StmtMutator::VisitStmt_(const ForNode* op) {
  PrimExpr min = VisitExpr(op->min);
  PrimExpr extent = VisitExpr(op->extent);
  Stmt body = VisitStmt(op->body);
  if (min.same_as(op->min) && extent.same_as(op->extent) && body.same_as(op->body)) {
    return GetRef<Stmt>(op);
  }
  return For(op->loop_var, min, extent, op->kind, body, op->thread_binding, op->annotations);
}
Stmt StmtMutator::VisitStmt_(const WhileNode* op) {
  PrimExpr condition = VisitExpr(op->condition);
  Stmt body = VisitStmt(op->body);
  if (condition.same_as(op->condition) && body.same_as(op->body)) return GetRef<Stmt>(op);
  return While(condition, body);
}
Stmt StmtMutator::VisitStmt_(const AllocateNode* op) {
  Array<PrimExpr> extents = VisitExprs(op->extents);
  PrimExpr condition = VisitExpr(op->condition);
  Stmt body = VisitStmt(op->body);
  if (extents.same_as(op->extents) && condition.same_as(op->condition) && body.same_as(op->body)) {
    return GetRef<Stmt>(op);
  }
  return Allocate(op->buffer_var, op->dtype, extents, condition, body, op->annotations);
}
Stmt StmtMutator::VisitStmt_(const AllocateConstNode* op) {
  Array<PrimExpr> extents = VisitExprs(op->extents);
  Stmt body = VisitStmt(op->body);
  if (extents.same_as(op->extents) && body.same_as(op->body)) return GetRef<Stmt>(op);
  AllocateConst changed = GetRef<AllocateConst>(op);
  changed.CopyOnWrite()->extents = extents;
  changed.CopyOnWrite()->body = body;
  return changed;
}
Stmt StmtMutator::VisitStmt_(const DeclBufferNode* op) {
  Stmt body = VisitStmt(op->body);
  return body.same_as(op->body) ? GetRef<Stmt>(op) : DeclBuffer(op->buffer, body);
}
Stmt StmtMutator::VisitStmt_(const BufferStoreNode* op) {
  Array<PrimExpr> indices = VisitExprs(op->indices);
  PrimExpr value = VisitExpr(op->value);
  if (indices.same_as(op->indices) && value.same_as(op->value)) return GetRef<Stmt>(op);
  return BufferStore(op->buffer, value, indices);
}
Stmt StmtMutator::VisitStmt_(const BufferRealizeNode* op) {
  Array<Range> bounds = VisitRanges(op->bounds);
  PrimExpr condition = VisitExpr(op->condition);
  Stmt body = VisitStmt(op->body);
  if (bounds.same_as(op->bounds) && condition.same_as(op->condition) && body.same_as(op->body)) {
    return GetRef<Stmt>(op);
  }
  return BufferRealize(op->buffer, bounds, condition, body);
}
Stmt StmtMutator::VisitStmt_(const ProducerStoreNode* op) {
  Array<PrimExpr> indices = VisitExprs(op->indices);
  PrimExpr value = VisitExpr(op->value);
  if (indices.same_as(op->indices) && value.same_as(op->value)) return GetRef<Stmt>(op);
  return ProducerStore(op->producer, value, indices);
}
Stmt StmtMutator::VisitStmt_(const ProducerRealizeNode* op) {
  Array<Range> bounds = VisitRanges(op->bounds);
  PrimExpr condition = VisitExpr(op->condition);
  Stmt body = VisitStmt(op->body);
  if (bounds.same_as(op->bounds) && condition.same_as(op->condition) && body.same_as(op->body)) {
    return GetRef<Stmt>(op);
  }
  return ProducerRealize(op->producer, bounds, condition, body, op->storage_scope);
}
Stmt StmtMutator::VisitStmt_(const IfThenElseNode* op) {
  PrimExpr condition = VisitExpr(op->condition);
  Stmt then_case = VisitStmt(op->then_case);
  Stmt else_case = op->else_case.defined() ? VisitStmt(op->else_case) : Stmt();
  if (condition.same_as(op->condition) && then_case.same_as(op->then_case) &&
      else_case.same_as(op->else_case)) {
    return GetRef<Stmt>(op);
  }
  return IfThenElse(condition, then_case, else_case);
}
Stmt StmtMutator::VisitStmt_(const AssertStmtNode* op) {
  PrimExpr condition = VisitExpr(op->condition);
  PrimExpr message = VisitExpr(op->message);
  Stmt body = VisitStmt(op->body);
  if (condition.same_as(op->condition) && message.same_as(op->message) && body.same_as(op->body)) {
    return GetRef<Stmt>(op);
  }
  return AssertStmt(condition, message, body);
}
Stmt StmtMutator::VisitStmt_(const SeqStmtNode* op) {
  Array<Stmt> seq = op->seq.Map([this](const Stmt& stmt) { return VisitStmt(stmt); });
  if (seq.same_as(op->seq)) return GetRef<Stmt>(op);
  return SeqStmt::Flatten(seq);
}
Stmt StmtMutator::VisitStmt_(const EvaluateNode* op) {
  PrimExpr value = VisitExpr(op->value);
  if (value.same_as(op->value)) return GetRef<Stmt>(op);
  return Evaluate(value);
}
Stmt StmtMutator::VisitStmt_(const PrefetchNode* op) {
  Array<Range> bounds = VisitRanges(op->bounds);
  if (bounds.same_as(op->bounds)) return GetRef<Stmt>(op);
  return Prefetch(op->buffer, bounds);
}

Array<BufferRegion> StmtMutator::VisitRegions(const Array<BufferRegion>& regions) {
  return regions.Map([this](const BufferRegion& region) {
    Array<Range> ranges = VisitRanges(region->region);
    return ranges.same_as(region->region) ? region : BufferRegion(region->buffer, ranges);
  });
}
Stmt StmtMutator::VisitStmt_(const BlockNode* op) {
  Array<IterVar> iter_vars = op->iter_vars.Map([this](const IterVar& iv) {
    Array<Range> dom = VisitRanges({iv->dom});
    return dom[0].same_as(iv->dom) ? iv : IterVar(dom[0], iv->var, iv->iter_type, iv->thread_tag);
  });
  Array<BufferRegion> reads = VisitRegions(op->reads);
  Array<BufferRegion> writes = VisitRegions(op->writes);
  Array<MatchBufferRegion> matches = op->match_buffers.Map([this](const MatchBufferRegion& match) {
    BufferRegion source = VisitRegions({match->source})[0];
    return source.same_as(match->source) ? match : MatchBufferRegion(match->buffer, source);
  });
  Stmt init = op->init.defined() ? VisitStmt(op->init) : Stmt();
  Stmt body = VisitStmt(op->body);
  if (iter_vars.same_as(op->iter_vars) && reads.same_as(op->reads) && writes.same_as(op->writes) &&
      matches.same_as(op->match_buffers) && init.same_as(op->init) && body.same_as(op->body)) {
    return GetRef<Stmt>(op);
  }
  return Block(iter_vars, reads, writes, op->name_hint, body, init, op->alloc_buffers, matches,
               op->annotations);
}
Stmt StmtMutator::VisitStmt_(const BlockRealizeNode* op) {
  Array<PrimExpr> values = VisitExprs(op->iter_values);
  PrimExpr predicate = VisitExpr(op->predicate);
  Stmt block = VisitStmt(op->block);
  if (values.same_as(op->iter_values) && predicate.same_as(op->predicate) &&
      block.same_as(op->block)) {
    return GetRef<Stmt>(op);
  }
  return BlockRealize(values, predicate, Downcast<Block>(block));
}

namespace {

class ProgramVisitor final : public OnceVisitor<StmtExprVisitor> {
 public:
  using OnceVisitor::OnceVisitor;

  void Run(const ObjectRef& node) {
    if (node.as<PrimExprNode>() != nullptr) {
      VisitExpr(Downcast<PrimExpr>(node));
    } else if (node.as<StmtNode>() != nullptr) {
      VisitStmt(Downcast<Stmt>(node));
    } else if (const auto* func = node.as<PrimFuncNode>()) {
      VisitStmt(func->body);
    } else {
      TVM_FATAL(TypeError) << "a visit starts at an expression, a statement or a PrimFunc, got "
                           << node->GetTypeKey();
    }
  }

 private:
  void VisitStmt(const Stmt& stmt) override {
    Once(stmt, [&] { OnceVisitor::VisitStmt(stmt); });
  }
};

class CallbackMutator final : public StmtExprMutator {
 public:
  using Callback = std::function<ObjectRef(const ObjectRef&)>;
  CallbackMutator(Callback preorder, Callback postorder, std::unordered_set<std::string> only)
      : preorder_(std::move(preorder)), postorder_(std::move(postorder)), only_(std::move(only)) {}

  Stmt VisitStmt(const Stmt& stmt) override {
    return Placed(stmt,
                  Rewrite<Stmt>(stmt, [this](const Stmt& s) { return StmtMutator::VisitStmt(s); }));
  }
  PrimExpr VisitExpr(const PrimExpr& expr) override {
    return Rewrite<PrimExpr>(expr, [this](const PrimExpr& e) { return ExprMutator::VisitExpr(e); });
  }

 private:
  template <typename T, typename F>
  T Rewrite(const T& node, F recurse) {
    bool asked = only_.empty() || only_.count(node->GetTypeKey()) != 0;
    if (asked && preorder_) {
      T before = Downcast<T>(preorder_(node));
      if (before.defined()) return before;
    }
    T rebuilt = recurse(node);
    if (asked && postorder_) {
      T after = Downcast<T>(postorder_(rebuilt));
      if (after.defined()) return after;
    }
    return rebuilt;
  }

  Callback preorder_;
  Callback postorder_;
  std::unordered_set<std::string> only_;
};

}  // namespace

void PostOrderVisit(const ObjectRef& node, const std::function<void(const ObjectRef&)>& visit) {
  ProgramVisitor(nullptr, visit).Run(node);
}

void PreOrderVisit(const ObjectRef& node, const std::function<bool(const ObjectRef&)>& visit) {
  ProgramVisitor(visit, nullptr).Run(node);
}

Stmt IRTransform(Stmt stmt, const std::function<ObjectRef(const ObjectRef&)>& preorder,
                 const std::function<ObjectRef(const ObjectRef&)>& postorder,
                 const Array<String>& only_enable) {
  std::unordered_set<std::string> only;
  for (const String& key : only_enable) only.insert(key);
  return CallbackMutator(preorder, postorder, std::move(only)).VisitStmt(stmt);
}

TVM_REGISTER_GLOBAL("tir.PostOrderVisit").set_body_typed([](ObjectRef node, PackedFunc visit) {
  PostOrderVisit(node, [visit](const ObjectRef& n) { visit(n); });
});
TVM_REGISTER_GLOBAL("tir.PreOrderVisit").set_body_typed([](ObjectRef node, PackedFunc visit) {
  PreOrderVisit(node, [visit](const ObjectRef& n) { return visit(n).cast<bool>(); });
});
TVM_REGISTER_GLOBAL("tir.IRTransform")
    .set_body_typed([](Stmt stmt, Optional<PackedFunc> preorder, Optional<PackedFunc> postorder,
                       Array<String> only_enable) {
      auto wrap = [](const Optional<PackedFunc>& f) -> std::function<ObjectRef(const ObjectRef&)> {
        if (!f.defined()) return nullptr;
        return [packed = f.value()](const ObjectRef& n) { return packed(n).cast<ObjectRef>(); };
      };
      return IRTransform(stmt, wrap(preorder), wrap(postorder), only_enable);
    });

}  // namespace tir
}  // namespace tvm
