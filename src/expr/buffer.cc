/*!
 * \file src/expr/buffer.cc
 * \brief Buffers and the address arithmetic of their elements.
 */
#include <tvm/expr/buffer.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>

namespace tvm {
namespace tir {

TVM_REGISTER_NODE(BufferNode);
TVM_REGISTER_NODE(DataProducerNode);

Buffer::Buffer(Var data, DataType dtype, Array<PrimExpr> shape, Array<PrimExpr> strides,
               PrimExpr elem_offset, String name, int data_alignment, int offset_factor) {
  TVM_CHECK(data.defined() && data->dtype.is_handle(), TypeError)
      << "Buffer(" << name << "): data must be a handle variable, got " << data;
  TVM_CHECK(strides.empty() || strides.size() == shape.size(), ValueError)
      << "Buffer(" << name << "): " << shape.size() << " axes but " << strides.size()
      << " strides; give one each, or none for a row-major buffer";
  auto n = make_object<BufferNode>();
  n->data = std::move(data);
  n->dtype = dtype;
  n->shape = std::move(shape);
  n->strides = std::move(strides);
  n->name = std::move(name);
  n->data_alignment = data_alignment > 0 ? data_alignment : dtype.bytes();
  n->offset_factor = offset_factor > 0 ? offset_factor : 1;
  n->elem_offset = std::move(elem_offset);
  if (!n->elem_offset.defined()) {
    DataType index = n->shape.empty() ? DataType::Int(32) : n->shape[0].dtype();
    n->elem_offset = make_zero(index);
  }
  data_ = std::move(n);
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

TVM_REGISTER_GLOBAL("tir.Buffer")
    .set_body_typed([](Var data, DataType dtype, Array<PrimExpr> shape, Array<PrimExpr> strides,
                       PrimExpr elem_offset, String name, int data_alignment, int offset_factor) {
      return Buffer(data, dtype, shape, strides, elem_offset, name, data_alignment, offset_factor);
    });
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
