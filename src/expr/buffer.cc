/*!
 * \file src/expr/buffer.cc
 * \brief Buffers and the address arithmetic of their elements.
 */
#include <tvm/expr/buffer.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>

#include "check_dtype.h"

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
  if (data_alignment <= 0) data_alignment = dtype.bytes();
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

Buffer decl_buffer(Array<PrimExpr> shape, DataType dtype, String name, String storage_scope) {
  // A boolean occupies a byte in memory, so its pointer is to bytes.
  DataType element = dtype.is_bool() ? DataType::Int(8) : dtype;
  Var data(name, PointerType(PrimType(element), storage_scope));
  return Buffer(data, dtype, std::move(shape), {}, PrimExpr(), name, 0, 0);
}

TVM_REGISTER_GLOBAL("tir.BufferScope").set_body_typed([](Buffer buffer) { return buffer.scope(); });
TVM_REGISTER_GLOBAL("tir.BufferElemOffset")
    .set_body_typed([](Buffer buffer, Array<PrimExpr> indices) {
      return buffer.ElemOffset(indices);
    });
TVM_REGISTER_GLOBAL("tir.DataProducerGetShape").set_body_typed([](DataProducer producer) {
  return producer->GetShape();
});

}  // namespace tir
}  // namespace tvm
