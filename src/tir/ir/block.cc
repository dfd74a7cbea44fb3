/*!
 * \file src/tir/ir/block.cc
 * \brief Constructors of blocks and regions.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/block.h>

namespace tvm {
namespace tir {

TVM_REGISTER_NODE(BufferRegionNode);
TVM_REGISTER_NODE(MatchBufferRegionNode);
TVM_REGISTER_NODE(BlockNode);
TVM_REGISTER_NODE(BlockRealizeNode);

BufferRegion::BufferRegion(Buffer buffer, Array<Range> region) {
  TVM_CHECK(buffer->shape.size() == region.size(), ValueError)
      << "tir.BufferRegion: buffer " << buffer->name << " has " << buffer->shape.size()
      << " axes, the region " << region << " has " << region.size();
  auto n = make_object<BufferRegionNode>();
  n->buffer = std::move(buffer);
  n->region = std::move(region);
  data_ = std::move(n);
}

BufferRegion BufferRegion::FullRegion(Buffer buffer) {
  Array<Range> region;
  for (const PrimExpr& extent : buffer->shape) {
    region.push_back(Range::FromMinExtent(make_zero(extent.dtype()), extent));
  }
  return BufferRegion(buffer, region);
}

BufferRegion BufferRegion::FromPoint(Buffer buffer, const Array<PrimExpr>& indices) {
  Array<Range> region;
  for (const PrimExpr& index : indices) {
    region.push_back(Range::FromMinExtent(index, make_const(index.dtype(), 1)));
  }
  return BufferRegion(buffer, region);
}

TVM_REGISTER_GLOBAL("tir.BufferRegion").set_body_typed([](Buffer buffer, Array<Range> region) {
  return BufferRegion(buffer, region);
});
TVM_REGISTER_GLOBAL("tir.BufferRegionFull").set_body_typed(BufferRegion::FullRegion);

MatchBufferRegion::MatchBufferRegion(Buffer buffer, BufferRegion source) {
  const Buffer& of = source->buffer;
  TVM_CHECK(buffer->dtype == of->dtype, TypeError)
      << "tir.MatchBufferRegion: " << buffer->name << " of " << buffer->dtype
      << " cannot view a region of " << of->name << ", which has elements of " << of->dtype;
  TVM_CHECK(buffer->shape.size() <= source->region.size(), ValueError)
      << "tir.MatchBufferRegion: " << buffer->name << " has " << buffer->shape.size()
      << " axes, more than the region of " << of->name << " with " << source->region.size();
  arith::Analyzer analyzer;
  size_t dropped = source->region.size() - buffer->shape.size();
  for (size_t i = 0; i < source->region.size(); ++i) {
    const PrimExpr& extent = source->region[i]->extent;
    PrimExpr wanted = i < dropped ? make_const(extent.dtype(), 1) : buffer->shape[i - dropped];
    // An extent that is a variable takes the region's value.
    TVM_CHECK(wanted.as<VarNode>() || analyzer.CanProveEqual(wanted, extent), ValueError)
        << "tir.MatchBufferRegion: axis " << i << " of the region of " << of->name
        << " has the extent " << extent << ", the view " << buffer->name << " needs " << wanted;
  }
  auto n = make_object<MatchBufferRegionNode>();
  n->buffer = std::move(buffer);
  n->source = std::move(source);
  data_ = std::move(n);
}
TVM_REGISTER_GLOBAL("tir.MatchBufferRegion").set_body_typed([](Buffer buffer, BufferRegion source) {
  return MatchBufferRegion(buffer, source);
});

Block::Block(Array<IterVar> iter_vars, Array<BufferRegion> reads, Array<BufferRegion> writes,
             String name_hint, Stmt body, Stmt init, Array<Buffer> alloc_buffers,
             Array<MatchBufferRegion> match_buffers, Map<String, ObjectRef> annotations) {
  TVM_CHECK(body.defined(), ValueError) << "tir.Block " << name_hint << ": the body is undefined";
  auto n = make_object<BlockNode>();
  n->iter_vars = std::move(iter_vars);
  n->reads = std::move(reads);
  n->writes = std::move(writes);
  n->name_hint = std::move(name_hint);
  n->alloc_buffers = std::move(alloc_buffers);
  n->match_buffers = std::move(match_buffers);
  n->init = std::move(init);
  n->body = std::move(body);
  n->annotations = std::move(annotations);
  data_ = std::move(n);
}
TVM_REGISTER_GLOBAL("tir.Block")
    .set_body_typed([](Array<IterVar> iter_vars, Array<BufferRegion> reads,
                       Array<BufferRegion> writes, String name_hint, Stmt body, Stmt init,
                       Array<Buffer> alloc_buffers, Array<MatchBufferRegion> match_buffers,
                       Map<String, ObjectRef> annotations) {
      return Block(iter_vars, reads, writes, name_hint, body, init, alloc_buffers, match_buffers,
                   annotations);
    });

BlockRealize::BlockRealize(Array<PrimExpr> iter_values, PrimExpr predicate, Block block) {
  TVM_CHECK(iter_values.size() == block->iter_vars.size(), ValueError)
      << "tir.BlockRealize: block " << block->name_hint << " has " << block->iter_vars.size()
      << " variables but is given " << iter_values.size() << " values";
  for (size_t i = 0; i < iter_values.size(); ++i) {
    const Var& var = block->iter_vars[i]->var;
    TVM_CHECK(iter_values[i].dtype() == var->dtype, TypeError)
        << "tir.BlockRealize: " << var << " of block " << block->name_hint << " is " << var->dtype
        << " but its value " << iter_values[i] << " is " << iter_values[i].dtype();
  }
  TVM_CHECK(predicate.defined() && predicate.dtype().is_bool(), TypeError)
      << "tir.BlockRealize: the predicate must be a bool, got " << predicate;
  auto n = make_object<BlockRealizeNode>();
  n->iter_values = std::move(iter_values);
  n->predicate = std::move(predicate);
  n->block = std::move(block);
  data_ = std::move(n);
}
TVM_REGISTER_GLOBAL("tir.BlockRealize")
    .set_body_typed([](Array<PrimExpr> iter_values, PrimExpr predicate, Block block) {
      return BlockRealize(iter_values, predicate, block);
    });

}  // namespace tir
}  // namespace tvm
