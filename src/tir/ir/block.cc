/*!
 * \file src/tir/ir/block.cc
 * \brief What blocks and regions demand of their parts.
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

void BufferRegionNode::Init() {
  TVM_CHECK(buffer->shape.size() == region.size(), ValueError)
      << "tir.BufferRegion: buffer " << buffer->name << " has " << buffer->shape.size()
      << " axes, the region " << region << " has " << region.size();
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

TVM_REGISTER_GLOBAL("tir.BufferRegionFull").set_body_typed(BufferRegion::FullRegion);

void MatchBufferRegionNode::Init() {
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
}

void BlockRealizeNode::Init() {
  TVM_CHECK(iter_values.size() == block->iter_vars.size(), ValueError)
      << "tir.BlockRealize: block " << block->name_hint << " has " << block->iter_vars.size()
      << " variables but is given " << iter_values.size() << " values";
  for (size_t i = 0; i < iter_values.size(); ++i) {
    const Var& var = block->iter_vars[i]->var;
    TVM_CHECK(iter_values[i].dtype() == var->dtype, TypeError)
        << "tir.BlockRealize: " << var << " of block " << block->name_hint << " is " << var->dtype
        << " but its value " << iter_values[i] << " is " << iter_values[i].dtype();
  }
  TVM_CHECK(predicate.dtype().is_bool(), TypeError)
      << "tir.BlockRealize: the predicate must be a bool, got " << predicate;
}

}  // namespace tir
}  // namespace tvm
