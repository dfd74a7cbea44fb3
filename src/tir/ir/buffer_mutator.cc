/*!
 * \file src/tir/ir/buffer_mutator.cc
 * \brief Mutators that put other buffers in the place of those a program uses.
 */
#include "buffer_mutator.h"

namespace tvm {
namespace tir {

Stmt BufferMutator::VisitStmt_(const BufferStoreNode* op) {
  Array<PrimExpr> indices = VisitExprs(op->indices);
  PrimExpr value = VisitExpr(op->value);
  Buffer buffer = VisitBuffer(op->buffer);
  if (indices.same_as(op->indices) && value.same_as(op->value) && buffer.same_as(op->buffer)) {
    return GetRef<Stmt>(op);
  }
  BufferStore store(buffer, value, indices);
  store->span = op->span;
  return store;
}

Stmt BufferMutator::VisitStmt_(const BufferRealizeNode* op) {
  Array<Range> bounds = VisitRanges(op->bounds);
  PrimExpr condition = VisitExpr(op->condition);
  Buffer buffer = VisitBuffer(op->buffer);
  Stmt body = VisitStmt(op->body);
  if (bounds.same_as(op->bounds) && condition.same_as(op->condition) &&
      buffer.same_as(op->buffer) && body.same_as(op->body)) {
    return GetRef<Stmt>(op);
  }
  return BufferRealize(buffer, bounds, condition, body);
}

Stmt BufferMutator::VisitStmt_(const PrefetchNode* op) {
  Array<Range> bounds = VisitRanges(op->bounds);
  Buffer buffer = VisitBuffer(op->buffer);
  if (bounds.same_as(op->bounds) && buffer.same_as(op->buffer)) return GetRef<Stmt>(op);
  return Prefetch(buffer, bounds);
}

Stmt BufferMutator::VisitStmt_(const DeclBufferNode* op) {
  Buffer buffer = VisitBuffer(op->buffer);
  Stmt body = VisitStmt(op->body);
  if (buffer.same_as(op->buffer) && body.same_as(op->body)) return GetRef<Stmt>(op);
  return DeclBuffer(buffer, body);
}

Stmt BufferMutator::VisitStmt_(const BlockNode* op) {
  Array<Buffer> allocated =
      op->alloc_buffers.Map([this](const Buffer& buffer) { return VisitBuffer(buffer); });
  Block block = Downcast<Block>(StmtExprMutator::VisitStmt_(op));
  Array<BufferRegion> reads = ReplaceBuffers(block->reads);
  Array<BufferRegion> writes = ReplaceBuffers(block->writes);
  Array<MatchBufferRegion> matches =
      block->match_buffers.Map([this](const MatchBufferRegion& match) {
        Buffer view = VisitBuffer(match->buffer);
        BufferRegion source = ReplaceBuffers({match->source})[0];
        bool same = view.same_as(match->buffer) && source.same_as(match->source);
        return same ? match : MatchBufferRegion(view, source);
      });
  if (allocated.same_as(block->alloc_buffers) && reads.same_as(block->reads) &&
      writes.same_as(block->writes) && matches.same_as(block->match_buffers)) {
    return block;
  }
  BlockNode* node = block.CopyOnWrite();
  node->alloc_buffers = allocated;
  node->reads = reads;
  node->writes = writes;
  node->match_buffers = matches;
  return block;
}

Array<BufferRegion> BufferMutator::ReplaceBuffers(const Array<BufferRegion>& regions) {
  return regions.Map([this](const BufferRegion& region) {
    Buffer buffer = VisitBuffer(region->buffer);
    return buffer.same_as(region->buffer) ? region : BufferRegion(buffer, region->region);
  });
}

}  // namespace tir
}  // namespace tvm
