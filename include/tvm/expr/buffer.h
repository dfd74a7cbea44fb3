/*!
 * \file tvm/expr/buffer.h
 * \brief Buffers: typed, shaped views of memory.
 */
#ifndef TVM_EXPR_BUFFER_H_
#define TVM_EXPR_BUFFER_H_

#include <tvm/expr/var.h>

#include <string>

namespace tvm {
namespace tir {

/*!
 * \brief A strided view of memory that starts `elem_offset` elements after `data`.
 *
 * Identity is the node's address: two buffers may view the same memory.
 */
class BufferNode : public Object {
 public:
  /*! \brief Pointer variable; its type annotation carries element type and scope. */
  Var data;
  DataType dtype;
  Array<PrimExpr> shape;
  /*! \brief Elements between neighbours on each axis; empty means row-major without gaps. */
  Array<PrimExpr> strides;
  PrimExpr elem_offset;
  String name;
  /*! \brief Bytes that the data pointer is a multiple of; 0 in a constructor: one element's. */
  int data_alignment = 0;
  /*! \brief `elem_offset` is a multiple of this many elements. */
  int offset_factor = 1;
  /*! \brief Axes before which memory of several dimensions is cut when the buffer is flattened:
   * increasing, each in [0, number of axes). */
  Array<Integer> axis_separators;
  /*! \brief An offset that is not given is zero. */
  void Init();
  TVM_DECLARE_NODE(BufferNode, Object, "tir.Buffer", Bind(data), Value(dtype), Bind(shape),
                   Bind(strides), MaybeBind(elem_offset), Ignore(name), Value(data_alignment),
                   Value(offset_factor), Default(axis_separators));
  TVM_NODE_ARGS(Value(data), Value(dtype), Value(shape), Value(strides), Value(elem_offset),
                Value(name), Default(data_alignment), Default(offset_factor),
                Default(axis_separators));
};

class Buffer : public FromFields<ObjectRef, BufferNode> {
 public:
  /*! \brief Memory scope of the data pointer: "global", "local", "shared", ... */
  String scope() const;
  /*! \brief Type of indices and offsets: that of the shape, int32 for a buffer without axes. */
  DataType IndexDType() const;
  /*! \brief Element offset from `data` of the element at `indices`, offset and strides included. */
  PrimExpr ElemOffset(const Array<PrimExpr>& indices) const;
  TVM_DEFINE_NODE_REF_COW(Buffer, BufferNode);
};

/*! \brief Alignment in bytes that our allocators guarantee. */
constexpr int kAllocationAlignment = 64;

/*! \brief A fresh compact buffer with a data pointer of the same name. */
Buffer decl_buffer(Array<PrimExpr> shape, DataType dtype = DataType::Float(32),
                   String name = "buffer", String storage_scope = "");

/*! \brief Base of things that define values at indices and become buffers later, such as tensors.
 */
class DataProducerNode : public Object {
 public:
  virtual Array<PrimExpr> GetShape() const { return {}; }
  virtual DataType GetDataType() const { return DataType(); }
  virtual String GetNameHint() const { return ""; }
  TVM_DECLARE_ABSTRACT_NODE(DataProducerNode, Object, "tir.DataProducer");
};

class DataProducer : public ObjectRef {
 public:
  TVM_DEFINE_REF(DataProducer, ObjectRef, DataProducerNode);
};

}  // namespace tir
}  // namespace tvm
#endif  // TVM_EXPR_BUFFER_H_
