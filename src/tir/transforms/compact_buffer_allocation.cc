/*!
 * \file src/tir/transforms/compact_buffer_allocation.cc
 * \brief Buffers that are allocated inside of a function, no larger than what is touched of them.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/analysis.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/launch.h>

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pass_common.h"
#include "storage_alignment.h"
#include "tir/analysis/domain_touched.h"

namespace tvm {
namespace tir {
namespace {

/*! \brief A statement with a smaller buffer in the place of one, and indices that begin at zero. */
class BufferShrinker final : public StmtExprMutator {
 public:
  BufferShrinker(const Buffer& whole, const Buffer& part, const Array<Range>& bounds)
      : whole_(whole), part_(part), bounds_(bounds) {}

 private:
  PrimExpr Shifted(const PrimExpr& index, size_t axis) const {
    const PrimExpr& begin = bounds_[axis]->min;
    return is_zero(begin) ? index : index - cast(index.dtype(), begin);
  }
  Array<PrimExpr> Shifted(const Array<PrimExpr>& indices) const {
    Array<PrimExpr> shifted;
    for (size_t i = 0; i < indices.size(); ++i) shifted.push_back(Shifted(indices[i], i));
    return shifted;
  }
  PrimExpr VisitExpr_(const BufferLoadNode* op) final {
    BufferLoad load = Downcast<BufferLoad>(StmtExprMutator::VisitExpr_(op));
    return load->buffer.same_as(whole_) ? BufferLoad(part_, Shifted(load->indices)) : load;
  }
  Stmt VisitStmt_(const BufferStoreNode* op) final {
    BufferStore store = Downcast<BufferStore>(StmtExprMutator::VisitStmt_(op));
    if (!store->buffer.same_as(whole_)) return store;
    return BufferStore(part_, store->value, Shifted(store->indices));
  }
  BufferRegion Shifted(const BufferRegion& region) const {
    if (!region->buffer.same_as(whole_)) return region;
    Array<Range> ranges;
    for (size_t i = 0; i < region->region.size(); ++i) {
      const Range& range = region->region[i];
      ranges.push_back(Range::FromMinExtent(Shifted(range->min, i), range->extent));
    }
    return BufferRegion(part_, ranges);
  }
  Stmt VisitStmt_(const BlockNode* op) final {
    Block block = Downcast<Block>(StmtExprMutator::VisitStmt_(op));
    auto shift = [this](const BufferRegion& region) { return Shifted(region); };
    Array<BufferRegion> reads = block->reads.Map(shift), writes = block->writes.Map(shift);
    Array<MatchBufferRegion> views = block->match_buffers.Map([&](const MatchBufferRegion& view) {
      BufferRegion source = Shifted(view->source);
      return source.same_as(view->source) ? view : MatchBufferRegion(view->buffer, source);
    });
    if (reads.same_as(block->reads) && writes.same_as(block->writes) &&
        views.same_as(block->match_buffers)) {
      return block;
    }
    BlockNode* node = block.CopyOnWrite();
    node->reads = reads;
    node->writes = writes;
    node->match_buffers = views;
    return block;
  }
  // What says something about the whole buffer says it about the smaller one.
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    AttrStmt attr = Downcast<AttrStmt>(StmtExprMutator::VisitStmt_(op));
    if (attr->node.same_as(whole_)) attr.CopyOnWrite()->node = part_;
    return attr;
  }

  const Buffer& whole_;
  const Buffer& part_;
  const Array<Range>& bounds_;
};

/*! \brief Says by loads of their corners what views make accessible, for analyses of accesses. */
class ViewToucher final : public StmtMutator {
  Stmt VisitStmt_(const BlockNode* op) final {
    Block block = Downcast<Block>(StmtMutator::VisitStmt_(op));
    if (block->match_buffers.empty()) return block;
    Array<Stmt> steps;
    for (const MatchBufferRegion& match : block->match_buffers) {
      Array<PrimExpr> first, last;
      for (const Range& range : match->source->region) {
        first.push_back(range->min);
        last.push_back(range->min + range->extent - make_const(range->extent.dtype(), 1));
      }
      steps.push_back(Evaluate(BufferLoad(match->source->buffer, first)));
      steps.push_back(Evaluate(BufferLoad(match->source->buffer, last)));
    }
    steps.push_back(block->body);
    block.CopyOnWrite()->body = SeqStmt::Flatten(steps);
    return block;
  }
};

class BufferCompactor final : public StmtMutator {
 public:
  BufferCompactor(bool strict, StorageAlignmentMap aligned)
      : strict_(strict), aligned_(std::move(aligned)) {}

 private:
  /*! \brief An axis of threads around the present statement. */
  struct Thread {
    Var var;
    PrimExpr min;
    PrimExpr extent;
    std::string tag;
  };

  Stmt VisitStmt_(const ForNode* op) final {
    bool threads = op->kind == ForKind::kThreadBinding;
    if (threads) {
      threads_.push_back(
          {op->loop_var, op->min, op->extent, op->thread_binding.value()->thread_tag});
    }
    if (is_one(op->extent)) units_.Set(op->loop_var, op->min);
    // What is inside is for loops that run at all.
    arith::ConstraintContext runs(&analyzer_, op->extent >= make_const(op->extent.dtype(), 1));
    Stmt stmt = StmtMutator::VisitStmt_(op);
    if (threads) threads_.pop_back();
    return stmt;
  }
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    const auto* axis = op->node.as<IterVarNode>();
    bool threads = axis != nullptr &&
                   (op->attr_key == attr::thread_extent || op->attr_key == attr::virtual_thread);
    if (threads) {
      threads_.push_back({axis->var, make_zero(op->value.dtype()), op->value, axis->thread_tag});
      if (is_one(op->value)) units_.Set(axis->var, make_zero(axis->var.dtype()));
    }
    AttrStmt attr = Downcast<AttrStmt>(StmtMutator::VisitStmt_(op));
    if (threads) threads_.pop_back();
    auto it = smaller_.find(op->node.get());
    if (it != smaller_.end()) attr.CopyOnWrite()->node = it->second;
    return attr;
  }
  Stmt VisitStmt_(const BlockNode* op) final {
    Block block = Downcast<Block>(StmtMutator::VisitStmt_(op));
    for (size_t i = 0; i < op->alloc_buffers.size(); ++i) {
      Buffer buffer = block->alloc_buffers[i];
      Array<Range> bounds = Bounds(block, buffer);
      Buffer part = bounds.empty() ? buffer : Smaller(buffer, bounds);
      if (Array<PrimExpr> strides = Strides(op->alloc_buffers[i], part); !strides.empty()) {
        part.CopyOnWrite()->strides = strides;
      }
      if (part.same_as(buffer)) continue;
      if (bounds.empty()) bounds = BufferRegion::FullRegion(buffer)->region;
      block = Downcast<Block>(BufferShrinker(buffer, part, bounds)(block));
      Array<Buffer> allocated = block->alloc_buffers;
      allocated.Set(i, part);
      block.CopyOnWrite()->alloc_buffers = allocated;
    }
    return block;
  }
  Stmt VisitStmt_(const BufferRealizeNode* op) final {
    BufferRealize realize = Downcast<BufferRealize>(StmtMutator::VisitStmt_(op));
    const Buffer& buffer = realize->buffer;
    for (size_t i = 0; i < realize->bounds.size(); ++i) {
      // What inference of bounds has made of a te schedule is small already.
      const Range& bound = realize->bounds[i];
      if (!is_zero(bound->min) || !ExprDeepEqual()(bound->extent, buffer->shape[i])) return realize;
    }
    Array<Range> bounds = Bounds(realize->body, buffer);
    if (bounds.empty()) return realize;
    Buffer part = Smaller(buffer, bounds);
    smaller_[buffer.get()] = part;
    Stmt body = BufferShrinker(buffer, part, bounds)(realize->body);
    return BufferRealize(part, BufferRegion::FullRegion(part)->region, realize->condition, body);
  }

  // A buffer over memory of its own, as LowerOpaqueBlock makes of a block's.
  Stmt VisitStmt_(const AllocateNode* op) final {
    Allocate allocate = Downcast<Allocate>(StmtMutator::VisitStmt_(op));
    const auto* decl = allocate->body.as<DeclBufferNode>();
    const bool declared = decl != nullptr && decl->buffer->data.same_as(op->buffer_var);
    const Stmt inside = declared ? decl->body : allocate->body;
    const Buffer buffer = declared ? decl->buffer : SoleBuffer(inside, op->buffer_var);
    if (!buffer.defined() || buffer->shape.size() != op->extents.size()) return allocate;
    for (size_t i = 0; i < op->extents.size(); ++i) {
      if (!ExprDeepEqual()(op->extents[i], buffer->shape[i])) return allocate;
    }
    // Regions are of scalar indices.
    Array<Range> bounds;
    if (!IsAccessedInVectors(inside, buffer)) bounds = Bounds(inside, buffer);
    Buffer part = bounds.empty() ? buffer : Smaller(buffer, bounds);
    std::vector<StorageAlignment> rows = AllocatedAlignment(op);
    if (!rows.empty() && part->strides.empty()) {
      part.CopyOnWrite()->strides = AlignedStrides(part->shape, rows);
    }
    if (part.same_as(buffer)) return allocate;
    if (bounds.empty()) bounds = BufferRegion::FullRegion(buffer)->region;
    Stmt body = BufferShrinker(buffer, part, bounds)(inside);
    if (declared) body = DeclBuffer(part, body);
    return Allocate(op->buffer_var, op->dtype, AllocatedExtents(part), allocate->condition, body,
                    op->annotations);
  }

  /*! \brief The buffer over memory that no statement declares; null if there are none or several.
   */
  static Buffer SoleBuffer(const Stmt& body, const Var& data) {
    Buffer sole;
    bool several = false;
    auto note = [&](const Buffer& buffer) {
      if (!buffer->data.same_as(data)) return;
      several = several || (sole.defined() && !sole.same_as(buffer));
      sole = buffer;
    };
    PostOrderVisit(body, [&](const ObjectRef& node) {
      if (const auto* load = node.as<BufferLoadNode>()) note(load->buffer);
      if (const auto* store = node.as<BufferStoreNode>()) note(store->buffer);
    });
    return several ? Buffer() : sole;
  }

  static bool IsAccessedInVectors(const Stmt& body, const Buffer& buffer) {
    bool found = false;
    auto note = [&](const Buffer& accessed, const Array<PrimExpr>& indices) {
      if (!accessed.same_as(buffer)) return;
      for (const PrimExpr& index : indices) found = found || !index.dtype().is_scalar();
    };
    PostOrderVisit(body, [&](const ObjectRef& node) {
      if (const auto* load = node.as<BufferLoadNode>()) note(load->buffer, load->indices);
      if (const auto* store = node.as<BufferStoreNode>()) note(store->buffer, store->indices);
    });
    return found;
  }

  static Buffer Smaller(Buffer buffer, const Array<Range>& bounds) {
    BufferNode* node = buffer.CopyOnWrite();
    node->shape = bounds.Map([](const Range& range) { return range->extent; });
    return buffer;
  }

  /*! \brief As blocks ask for them, so that views know them; none where they are compact. */
  Array<PrimExpr> Strides(const Buffer& original, const Buffer& part) const {
    auto it = aligned_.find(original.get());
    if (it == aligned_.end() || !part->strides.empty()) return {};
    return AlignedStrides(part->shape, it->second);
  }

  /*! \brief What is touched of each axis; nothing if that is all of the buffer. */
  Array<Range> Bounds(const Stmt& body, const Buffer& buffer) {
    // Nothing is known of what is done by pointers or by other names.
    if (buffer->shape.empty() || !buffer->strides.empty() || HasOtherName(body, buffer)) return {};
    // Loops of one iteration make no difference between two places.
    Stmt views = Substitute(ViewToucher()(body), units_);
    Array<Range> touched = DomainTouchedWhere(OfAllThatShare(views, buffer), buffer);
    Array<Range> bounds;
    bool any = false;
    for (size_t i = 0; i < touched.size(); ++i) {
      const PrimExpr& extent = buffer->shape[i];
      PrimExpr size = cast(extent.dtype(), analyzer_.Simplify(touched[i]->extent));
      const int64_t* known = as_const_int(size);
      bool empty = known != nullptr && *known <= 0;
      bool fits = known != nullptr && !analyzer_.CanProveEqual(size, extent) &&
                  (!strict_ || analyzer_.CanProve(size <= extent));
      bool smaller = !empty && fits;
      any = any || smaller;
      bounds.push_back(smaller ? Range::FromMinExtent(cast(extent.dtype(), touched[i]->min), size)
                               : Range::FromMinExtent(make_zero(extent.dtype()), extent));
    }
    return any ? bounds : Array<Range>();
  }

  /*! \brief What the threads do that have the buffer in common, as far as it matters for bounds. */
  Stmt OfAllThatShare(Stmt body, const Buffer& buffer) const {
    const std::string scope = buffer.scope();
    StorageRank rank = StorageRankOf(scope);
    // Tiles of mma instructions are a warp's too, until its threads are told what they have of
    // them.
    const bool of_warp = rank == StorageRank::kWarp || scope.rfind("m16n8k8.", 0) == 0;
    for (auto it = threads_.rbegin(); it != threads_.rend(); ++it) {
      bool shares = of_warp ? it->tag == "threadIdx.x"
                            : rank == StorageRank::kShared && it->tag.rfind("blockIdx", 0) != 0;
      if (shares) body = For(it->var, it->min, it->extent, ForKind::kSerial, body);
    }
    return body;
  }

  static bool HasOtherName(const Stmt& body, const Buffer& buffer) {
    bool found = false;
    auto other = [&](const Buffer& used) {
      return used->data.same_as(buffer->data) && !used.same_as(buffer);
    };
    PostOrderVisit(body, [&](const ObjectRef& node) {
      found = found || node.same_as(buffer->data);
      if (const auto* load = node.as<BufferLoadNode>()) found = found || other(load->buffer);
      if (const auto* store = node.as<BufferStoreNode>()) found = found || other(store->buffer);
      if (const auto* decl = node.as<DeclBufferNode>()) {
        found = found || decl->buffer->data.same_as(buffer->data);
      }
    });
    return found;
  }

  bool strict_;
  StorageAlignmentMap aligned_;
  /*! \brief Variables of loops of one iteration, with the value that each has. */
  Map<Var, PrimExpr> units_;
  arith::Analyzer analyzer_;
  std::vector<Thread> threads_;
  /*! \brief Buffers of realizations that became smaller. */
  std::unordered_map<const Object*, Buffer> smaller_;
};

}  // namespace

namespace transform {

namespace {
Pass CompactBuffers(bool strict) {
  return BodyPass("tir.CompactBufferAllocation",
                  [strict](const PrimFunc& func, const PassContext&) {
                    return BufferCompactor(strict, StorageAlignments(func->body))(func->body);
                  });
}
}  // namespace

Pass CompactBufferAllocation() { return CompactBuffers(true); }

TVM_REGISTER_GLOBAL("tir.transform.CompactBufferAllocation").set_body_typed(CompactBuffers);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
