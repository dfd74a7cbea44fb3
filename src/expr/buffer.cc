/*!
 * \file src/expr/buffer.cc
 * \brief Buffers and the address arithmetic of their elements.
 */
#include <tvm/expr/buffer.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>

#include "check_dtype.h"
#include "flatten.h"

namespace tvm {
namespace tir {

TVM_REGISTER_NODE(BufferNode);
TVM_REGISTER_NODE(DataProducerNode);

void BufferNode::Init() {
  TVM_CHECK(data->dtype.is_handle(), TypeError)
      << "Buffer(" << name << "): data must be a handle variable, got " << data;
  TVM_CHECK(strides.empty() || strides.size() == shape.size(), ValueError)
      << "Buffer(" << name << "): " << shape.size() << " axes but " << strides.size()
      << " strides; give one each, or none for a row-major buffer";
  CheckPlausible("tir.Buffer", dtype);
  int64_t previous = -1;
  for (const Integer& separator : axis_separators) {
    const int64_t at = separator->value;
    TVM_CHECK(at >= 0 && at <= static_cast<int64_t>(shape.size()) && at >= previous, ValueError)
        << "Buffer(" << name << "): axis_separators must increase within [0, " << shape.size()
        << "], got " << axis_separators;
    previous = at;
  }
  if (data_alignment <= 0) data_alignment = kAllocationAlignment;
  if (offset_factor <= 0) offset_factor = 1;
  if (!elem_offset.defined()) {
    elem_offset = make_zero(shape.empty() ? DataType::Int(32) : shape[0].dtype());
  }
}

String Buffer::scope() const {
  const auto* pointer = get()->data->type_annotation.as<PointerTypeNode>();
  if (pointer == nullptr || pointer->storage_scope.empty()) return "global";
  return pointer->storage_scope;
}

DataType Buffer::IndexDType() const {
  return get()->shape.empty() ? DataType::Int(32) : get()->shape[0].dtype();
}

PrimExpr Buffer::ElemOffset(const Array<PrimExpr>& indices) const {
  const BufferNode* buffer = get();
  TVM_CHECK(indices.size() == buffer->shape.size(), ValueError)
      << "buffer " << buffer->name << " has " << buffer->shape.size() << " axes but got "
      << indices.size() << " indices";
  PrimExpr offset;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!buffer->strides.empty()) {
      PrimExpr term = indices[i] * buffer->strides[i];
      offset = offset.defined() ? offset + term : term;
    } else {
      offset = offset.defined() ? offset * buffer->shape[i] + indices[i] : indices[i];
    }
  }
  if (!offset.defined()) return buffer->elem_offset;
  return is_zero(buffer->elem_offset) ? offset : offset + buffer->elem_offset;
}

namespace {
/*! \brief Index after the last axis of each group that becomes one axis. */
std::vector<size_t> GroupEnds(const BufferNode* buffer) {
  std::vector<size_t> ends;
  for (const Integer& separator : buffer->axis_separators) {
    ends.push_back(static_cast<size_t>(separator->value));
  }
  ends.push_back(buffer->shape.size());
  return ends;
}
}  // namespace

Buffer FlattenedBuffer(const Buffer& buffer) {
  const size_t groups = buffer->axis_separators.size() + 1;
  const bool compact = buffer->strides.empty() && is_zero(buffer->elem_offset);
  if (compact && buffer->shape.size() == groups) {
    bool one_each = true;
    for (size_t i = 0; i + 1 < groups; ++i) {
      one_each = one_each && buffer->axis_separators[i]->value == static_cast<int64_t>(i + 1);
    }
    if (one_each) return buffer;
  }
  Array<PrimExpr> shape;
  Array<Integer> separators;
  size_t begin = 0;
  for (size_t end : GroupEnds(buffer.get())) {
    PrimExpr extent;
    if (!buffer->strides.empty() && begin < end) {
      extent = buffer->strides[begin] * buffer->shape[begin];
    } else {
      for (size_t i = begin; i < end; ++i) {
        extent = extent.defined() ? extent * buffer->shape[i] : buffer->shape[i];
      }
    }
    shape.push_back(extent.defined() ? extent : make_const(buffer.IndexDType(), 1));
    if (shape.size() < groups) separators.push_back(Integer(static_cast<int>(shape.size())));
    begin = end;
  }
  Buffer flat = buffer;
  BufferNode* node = flat.CopyOnWrite();
  node->shape = shape;
  node->strides = {};
  node->axis_separators = separators;
  return flat;
}

Array<PrimExpr> FlattenedIndices(const Buffer& buffer, const Array<PrimExpr>& indices) {
  Array<PrimExpr> flat;
  size_t begin = 0;
  for (size_t end : GroupEnds(buffer.get())) {
    PrimExpr position;
    for (size_t i = begin; i < end; ++i) {
      if (!buffer->strides.empty()) {
        PrimExpr term = indices[i] * buffer->strides[i];
        position = position.defined() ? position + term : term;
      } else {
        position = position.defined() ? position * buffer->shape[i] + indices[i] : indices[i];
      }
    }
    flat.push_back(position.defined() ? position : make_zero(buffer.IndexDType()));
    begin = end;
  }
  // The offset counts along the last axis, the one that is contiguous.
  if (!is_zero(buffer->elem_offset)) flat.Set(flat.size() - 1, flat.back() + buffer->elem_offset);
  return flat;
}

Buffer decl_buffer(Array<PrimExpr> shape, DataType dtype, String name, String storage_scope) {
  // A boolean occupies a byte in memory, so its pointer is to bytes.
  DataType element = dtype.is_bool() ? DataType::Int(8) : dtype;
  Var data(name, PointerType(PrimType(element), storage_scope));
  return Buffer(data, dtype, std::move(shape), {}, PrimExpr(), name, 0, 0);
}

TVM_REGISTER_GLOBAL("tir.BufferScope").set_body_typed([](Buffer buffer) { return buffer.scope(); });
TVM_REGISTER_GLOBAL("tir.BufferOffsetOf")
    .set_body_typed([](Buffer buffer, Array<PrimExpr> indices) {
      TVM_CHECK(indices.size() == buffer->shape.size(), ValueError)
          << "offset_of: buffer " << buffer->name << " has " << buffer->shape.size()
          << " axes, got " << indices.size() << " indices";
      return FlattenedIndices(buffer, indices);
    });
TVM_REGISTER_GLOBAL("tir.BufferGetFlattenedBuffer").set_body_typed(FlattenedBuffer);
TVM_REGISTER_GLOBAL("tir.DataProducerGetShape").set_body_typed([](DataProducer producer) {
  return producer->GetShape();
});

}  // namespace tir
}  // namespace tvm
