/*!
 * \file rewrite.cc
 * \brief Exchanging a buffer for another, with its views, its regions and the pointers to it.
 */
#include "rewrite.h"

#include <tvm/expr/builtin.h>

#include <algorithm>

namespace tvm {
namespace tir {
namespace sched {
namespace {

class BufferChanger final : public StmtExprMutator {
 public:
  explicit BufferChanger(const BufferChange& change) : change_(change) {}

  Array<BufferRegion> Regions(const Array<BufferRegion>& regions, bool change) {
    return regions.Map([&](const BufferRegion& given) {
      // Where a region begins may be read from the buffer too.
      Array<Range> ranges = given->region.Map([&](const Range& range) {
        PrimExpr min = VisitExpr(range->min), extent = VisitExpr(range->extent);
        bool same = min.same_as(range->min) && extent.same_as(range->extent);
        return same ? range : Range::FromMinExtent(min, extent);
      });
      BufferRegion region =
          ranges.same_as(given->region) ? given : BufferRegion(given->buffer, ranges);
      if (!region->buffer.same_as(change_.from) || !change) return region;
      return BufferRegion(change_.to,
                          change_.region ? change_.region(region->region) : region->region);
    });
  }

  /*! \brief Views after the change; whoever uses one that moved uses another from here on. */
  Array<MatchBufferRegion> Views(const Array<MatchBufferRegion>& views) {
    return views.Map([&](const MatchBufferRegion& view) {
      if (!view->source->buffer.same_as(change_.from)) return view;
      BufferRegion source = Regions({view->source}, true)[0];
      Buffer own = view->buffer;
      bool splits = !Equal(change_.from->axis_separators, change_.to->axis_separators);
      if (own.scope() != change_.to.scope() || splits) {
        const auto* pointer = own->data->type_annotation.as<PointerTypeNode>();
        ICHECK(pointer != nullptr);
        Buffer moved = own;
        moved.CopyOnWrite()->data =
            Var(own->data->name_hint, PointerType(pointer->element_type, change_.to.scope()));
        if (splits) moved.CopyOnWrite()->axis_separators = SeparatorsOf(own);
        views_.push_back({own, moved});
        own = moved;
      }
      return MatchBufferRegion(own, source);
    });
  }

 private:
  using StmtExprMutator::VisitExpr_;
  using StmtExprMutator::VisitStmt_;

  static bool Equal(const Array<Integer>& a, const Array<Integer>& b) {
    return std::equal(
        a.begin(), a.end(), b.begin(), b.end(),
        [](const Integer& x, const Integer& y) { return x.IntValue() == y.IntValue(); });
  }
  /*! \brief Separators of a view, which may lack leading axes. */
  Array<Integer> SeparatorsOf(const Buffer& view) const {
    int64_t lacks = static_cast<int64_t>(change_.to->shape.size() - view->shape.size());
    Array<Integer> kept;
    for (const Integer& at : change_.to->axis_separators) {
      if (at.IntValue() > lacks) kept.push_back(Integer(at.IntValue() - lacks));
    }
    return kept;
  }

  Buffer InsteadOf(const Buffer& buffer, bool change) const {
    if (change && buffer.same_as(change_.from)) return change_.to;
    for (const auto& [view, moved] : views_) {
      if (buffer.same_as(view)) return moved;
    }
    return buffer;
  }

  Array<PrimExpr> Indices(const Buffer& buffer, const Array<PrimExpr>& indices, bool change) {
    Array<PrimExpr> visited = indices.Map([&](const PrimExpr& index) { return VisitExpr(index); });
    bool mapped = change && buffer.same_as(change_.from) && change_.indices;
    return mapped ? change_.indices(visited) : visited;
  }

  PrimExpr VisitExpr_(const BufferLoadNode* op) final {
    Buffer buffer = InsteadOf(op->buffer, change_.loads);
    Array<PrimExpr> indices = Indices(op->buffer, op->indices, change_.loads);
    if (buffer.same_as(op->buffer) && indices.same_as(op->indices)) return GetRef<PrimExpr>(op);
    return BufferLoad(buffer, indices);
  }

  Stmt VisitStmt_(const BufferStoreNode* op) final {
    Buffer buffer = InsteadOf(op->buffer, change_.stores);
    PrimExpr value = VisitExpr(op->value);
    Array<PrimExpr> indices = Indices(op->buffer, op->indices, change_.stores);
    if (buffer.same_as(op->buffer) && value.same_as(op->value) && indices.same_as(op->indices)) {
      return GetRef<Stmt>(op);
    }
    return BufferStore(buffer, value, indices);
  }

  PrimExpr VisitExpr_(const VarNode* op) final {
    if (op == change_.from->data.get()) return change_.to->data;
    for (const auto& [view, moved] : views_) {
      if (op == view->data.get()) return moved->data;
    }
    return GetRef<PrimExpr>(op);
  }

  Stmt VisitStmt_(const BlockNode* op) final {
    Array<MatchBufferRegion> views = Views(op->match_buffers);
    Block block = Downcast<Block>(StmtExprMutator::VisitStmt_(op));
    BlockNode* made = block.CopyOnWrite();
    made->reads = Regions(op->reads, change_.loads);
    made->writes = Regions(op->writes, change_.stores);
    made->match_buffers = views;
    return block;
  }

  const BufferChange& change_;
  std::vector<std::pair<Buffer, Buffer>> views_;
};

void ChangeNode(Tree* tree, Id id, BufferChanger* changer, const BufferChange& change) {
  if (tree->IsLeaf(id)) {
    Stmt stmt = (*changer)(tree->leaf(id).stmt);
    if (!stmt.same_as(tree->leaf(id).stmt)) static_cast<LeafItem*>(tree->Edit(id))->stmt = stmt;
    return;
  }
  if (tree->IsBlock(id)) {
    BlockItem* block = tree->EditBlock(id);
    auto replace = [&](const PrimExpr& expr) { return (*changer)(expr); };
    block->iter_values.MutateByApply(replace);
    block->predicate.MutateByApply(replace);
    block->match_buffers = changer->Views(block->match_buffers);
    block->reads = changer->Regions(block->reads, change.loads);
    block->writes = changer->Regions(block->writes, change.stores);
    if (block->init.defined()) block->init = (*changer)(block->init);
  }
  for (Id child : (*tree)[id].children) ChangeNode(tree, child, changer, change);
}

}  // namespace

Stmt ChangeBuffer(const Stmt& stmt, const BufferChange& change) {
  return BufferChanger(change)(stmt);
}

PrimExpr ChangeBuffer(const PrimExpr& expr, const BufferChange& change) {
  return BufferChanger(change)(expr);
}

void ChangeBuffer(Tree* tree, Id id, const BufferChange& change) {
  BufferChanger changer(change);
  ChangeNode(tree, id, &changer, change);
}

}  // namespace sched
}  // namespace tir
}  // namespace tvm
