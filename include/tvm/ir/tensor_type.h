/*!
 * \file tvm/ir/tensor_type.h
 * \brief The type of tensors in graph-level programs.
 */
#ifndef TVM_IR_TENSOR_TYPE_H_
#define TVM_IR_TENSOR_TYPE_H_

#include <tvm/ir/expr.h>

namespace tvm {

/*! \brief A tensor of known rank; an extent may be any integer expression. */
class TensorTypeNode : public TypeNode {
 public:
  Array<PrimExpr> shape;
  DataType dtype;
  TVM_DECLARE_NODE(TensorTypeNode, TypeNode, "relay.TensorType", Value(shape), Value(dtype));
};
class TensorType : public Type {
 public:
  TVM_DLL TensorType(Array<PrimExpr> shape, DataType dtype);
  /*! \brief A tensor without axes. */
  TVM_DLL static TensorType Scalar(DataType dtype);
  TVM_DEFINE_REF(TensorType, Type, TensorTypeNode);
};

}  // namespace tvm

#endif  // TVM_IR_TENSOR_TYPE_H_
