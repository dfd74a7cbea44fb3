/*!
 * \file src/tir/analysis/access_regions.cc
 * \brief Regions of buffers that statements read and write.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "tir/transforms/block_regions.h"

namespace tvm {
namespace tir {
namespace {

class AccessOrder final : public StmtExprVisitor {
 public:
  /*! \param into_blocks Whether what blocks inside access counts. */
  explicit AccessOrder(bool into_blocks = true) : into_blocks_(into_blocks) {}
  std::vector<Buffer> read, written;
  /*! \brief Pointers that are passed on, so that nobody knows what is done with them. */
  std::vector<Var> pointers;

 private:
  void VisitExpr_(const BufferLoadNode* op) final {
    if (!inside_.count(op->buffer.get()) && read_.insert(op->buffer.get()).second) {
      read.push_back(op->buffer);
    }
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitStmt_(const BufferStoreNode* op) final {
    StmtExprVisitor::VisitStmt_(op);
    if (!inside_.count(op->buffer.get()) && written_.insert(op->buffer.get()).second) {
      written.push_back(op->buffer);
    }
  }
  void VisitExpr_(const VarNode* op) final {
    if (op->dtype.is_handle() && pointers_.insert(op).second) {
      pointers.push_back(GetRef<Var>(op));
    }
  }
  void VisitStmt_(const BufferRealizeNode* op) final {
    inside_.insert(op->buffer.get());
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const BlockNode* op) final {
    if (!into_blocks_) return;
    for (const Buffer& buffer : op->alloc_buffers) inside_.insert(buffer.get());
    StmtExprVisitor::VisitStmt_(op);
  }

  const bool into_blocks_;
  std::unordered_set<const BufferNode*> inside_, read_, written_;
  std::unordered_set<const VarNode*> pointers_;
};

/*! \brief What the outermost blocks of a statement declare, one after the other. */
AccessRegions DeclaredInside(const Stmt& body) {
  AccessRegions found;
  PreOrderVisit(body, [&](const ObjectRef& node) {
    const auto* block = node.as<BlockNode>();
    if (block == nullptr) return true;
    for (const BufferRegion& region : block->reads) found.reads.push_back(region);
    for (const BufferRegion& region : block->writes) found.writes.push_back(region);
    return false;
  });
  return found;
}

/*! \brief The whole of each of `buffers`, by data pointer, whose pointer `body` passes on. */
Array<BufferRegion> OpaqueRegions(const Stmt& body, const Map<Var, Buffer>& buffers) {
  AccessOrder order;
  order(body);
  Array<BufferRegion> regions;
  for (const Var& pointer : order.pointers) {
    auto it = buffers.find(pointer);
    if (it != buffers.end()) regions.push_back(BufferRegion::FullRegion((*it).second));
  }
  return regions;
}

/*! \brief What a region of a view is of the buffer that the view shows. */
BufferRegion OfSource(const MatchBufferRegion& view, const Array<Range>& region) {
  const BufferRegion& source = view->source;
  const size_t rank = source->region.size();
  if (rank < region.size()) return source;
  const size_t lacking = rank - region.size();
  arith::Analyzer analyzer;
  Array<Range> found;
  for (size_t i = 0; i < rank; ++i) {
    const Range& whole = source->region[static_cast<int64_t>(i)];
    if (i < lacking) {
      found.push_back(whole);
      continue;
    }
    const size_t axis = i - lacking;
    const PrimExpr& extent = view->buffer->shape[static_cast<int64_t>(axis)];
    // Axes that are folded or cut have no counterpart.
    if (!analyzer.CanProveEqual(extent, whole->extent)) return source;
    const Range& part = region[static_cast<int64_t>(axis)];
    found.push_back(Range::FromMinExtent(analyzer.Simplify(whole->min + part->min), part->extent));
  }
  return BufferRegion(source->buffer, found);
}

/*! \brief Regions with those of views as parts of what the views show. */
Array<BufferRegion> OfSources(const Array<BufferRegion>& regions,
                              const Array<MatchBufferRegion>& views) {
  if (views.empty()) return regions;
  Array<BufferRegion> found;
  arith::Analyzer analyzer;
  for (BufferRegion region : regions) {
    for (const MatchBufferRegion& view : views) {
      if (region->buffer.same_as(view->buffer)) region = OfSource(view, region->region);
    }
    size_t same = 0;
    while (same < found.size() &&
           !found[static_cast<int64_t>(same)]->buffer.same_as(region->buffer)) {
      ++same;
    }
    if (same == found.size()) {
      found.push_back(region);
      continue;
    }
    // One region around both.
    const Array<Range>& other = found[static_cast<int64_t>(same)]->region;
    Array<Range> hull;
    for (size_t i = 0; i < other.size(); ++i) {
      const Range &a = other[static_cast<int64_t>(i)], &b = region->region[static_cast<int64_t>(i)];
      const PrimExpr low = min(a->min, b->min);
      const PrimExpr end = max(a->min + a->extent, b->min + b->extent);
      hull.push_back(Range::FromMinExtent(analyzer.Simplify(low), analyzer.Simplify(end - low)));
    }
    found.Set(static_cast<int64_t>(same), BufferRegion(region->buffer, hull));
  }
  return found;
}

bool Lists(const Array<BufferRegion>& regions, const Buffer& buffer) {
  return std::any_of(regions.begin(), regions.end(),
                     [&](const BufferRegion& region) { return region->buffer.same_as(buffer); });
}

/*! \brief Add regions of buffers that are not listed yet; a reduction does not read its results. */
void AddUnlisted(Array<BufferRegion>* regions, const Array<BufferRegion>& more,
                 const Array<BufferRegion>& written, bool reduces) {
  for (const BufferRegion& region : more) {
    if (reduces && Lists(written, region->buffer)) continue;
    if (!Lists(*regions, region->buffer)) regions->push_back(region);
  }
}

AccessOrder AccessesBesideBlocks(const Stmt& body) {
  AccessOrder order(/*into_blocks=*/false);
  order(body);
  return order;
}

/*!
 * \brief `found`, but of buffers that blocks inside access what these declare.
 * \param beside Buffers that are accessed outside of blocks.
 * \param inside What the outermost blocks declare.
 * \param declared That, with what stands beside the blocks.
 */
Array<BufferRegion> OfBlocksInside(const Array<BufferRegion>& found,
                                   const std::vector<Buffer>& beside,
                                   const Array<BufferRegion>& inside,
                                   const Array<BufferRegion>& declared) {
  Array<BufferRegion> regions;
  for (const BufferRegion& region : found) {
    auto is_same = [&](const Buffer& buffer) { return buffer.same_as(region->buffer); };
    if (!Lists(inside, region->buffer)) {
      if (std::any_of(beside.begin(), beside.end(), is_same)) regions.push_back(region);
      continue;
    }
    for (const BufferRegion& said : declared) {
      if (is_same(said->buffer)) regions.push_back(said);
    }
  }
  return regions;
}

Array<BufferRegion> Without(const Array<BufferRegion>& regions, const Array<Buffer>& buffers) {
  Array<BufferRegion> kept;
  for (const BufferRegion& region : regions) {
    bool own = std::any_of(buffers.begin(), buffers.end(),
                           [&](const Buffer& buffer) { return buffer.same_as(region->buffer); });
    if (!own) kept.push_back(region);
  }
  return kept;
}

}  // namespace

AccessRegions DetectAccessRegions(const Stmt& body, const Stmt& init) {
  Stmt all = init.defined() ? SeqStmt::Flatten({init, body}) : body;
  AccessOrder order;
  order(all);
  AccessRegions regions;
  std::unordered_set<const BufferNode*> written;
  for (const Buffer& buffer : order.written) {
    written.insert(buffer.get());
    regions.writes.push_back(BufferRegion(buffer, DomainTouched(all, buffer, false, true)));
  }
  for (const Buffer& buffer : order.read) {
    // A reduction that begins with values of its own does not depend on what was there.
    if (init.defined() && written.count(buffer.get())) continue;
    regions.reads.push_back(BufferRegion(buffer, DomainTouched(all, buffer, true, false)));
  }
  return regions;
}

TVM_REGISTER_GLOBAL("tir.analysis.GetBlockAccessRegion")
    .set_body_typed([](Block block, Map<Var, Buffer> buffers) {
      AccessRegions regions = DetectAccessRegions(block->body, block->init);
      // Blocks inside declare what they access, through pointers too; a sum that they begin anew
      // is not read.
      const AccessRegions declared = DeclaredRegions(block->body, {});
      const AccessOrder beside = AccessesBesideBlocks(block->body);
      const AccessRegions inside = DeclaredInside(block->body);
      regions.reads = OfBlocksInside(regions.reads, beside.read, inside.reads, declared.reads);
      regions.writes =
          OfBlocksInside(regions.writes, beside.written, inside.writes, declared.writes);
      AddUnlisted(&regions.reads, declared.reads, regions.writes, block->init.defined());
      AddUnlisted(&regions.writes, declared.writes, {}, false);
      regions.reads = Without(regions.reads, block->alloc_buffers);
      regions.writes = Without(regions.writes, block->alloc_buffers);
      return Array<Array<BufferRegion>>{OfSources(regions.reads, block->match_buffers),
                                        OfSources(regions.writes, block->match_buffers),
                                        OpaqueRegions(block->body, buffers)};
    });

}  // namespace tir
}  // namespace tvm
