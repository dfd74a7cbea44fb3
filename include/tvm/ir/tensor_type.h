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
  /*! \brief TypeError unless the extents are integer scalars. */
  void Init();
  TVM_DECLARE_NODE(TensorTypeNode, TypeNode, "relay.TensorType", Value(shape), Value(dtype));
};
class TensorType : public FromFields<Type, TensorTypeNode> {
 public:
  /*! \brief A tensor without axes. */
  TVM_DLL static TensorType Scalar(DataType dtype);
  TVM_DEFINE_NODE_REF(TensorType, TensorTypeNode);
};

}  // namespace tvm

#endif  // TVM_IR_TENSOR_TYPE_H_
