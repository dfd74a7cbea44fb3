/*!
 * \file tvm/te/tensor_compute_op.h
 * \brief Tensors given block by block by calls of a tensor intrinsic.
 */
#ifndef TVM_TE_TENSOR_COMPUTE_OP_H_
#define TVM_TE_TENSOR_COMPUTE_OP_H_

#include <tvm/te/operation.h>
#include <tvm/te/tensor_intrin.h>

namespace tvm {
namespace te {

/*! \brief The block at indices `axis[0 .. schedulable_ndim - 1]` is the result of `call`. */
class TensorComputeOpNode : public OperationNode {
 public:
  /*! \brief All axes of the outputs. */
  Array<IterVar> axis;
  Array<IterVar> reduce_axis;
  /*! \brief Number of leading axes that are loops; the others are inside of the blocks. */
  int schedulable_ndim = 0;
  TensorIntrinCall call;

  int num_outputs() const final;
  DataType output_dtype(size_t i) const final;
  Array<PrimExpr> output_shape(size_t i) const final;
  Array<IterVar> root_iter_vars() const final;
  Array<Tensor> InputTensors() const final;
  Operation ReplaceInputs(const Operation& self, const TensorMap<Tensor>& rmap) const final;
  void PropBoundToInputs(const Operation& self, arith::Analyzer* analyzer, const IntSetMap& dom_map,
                         TensorMap<TensorDom>* out) const final;
  void GatherBound(const Operation& self, arith::Analyzer* analyzer,
                   const TensorMap<TensorDom>& requests, RangeMap* out) const final;
  Stmt BuildRealize(const Stage& stage, LoweringContext* ctx, const Stmt& body) const final;
  Stmt BuildProvide(const Stage& stage, LoweringContext* ctx) const final;
  /*! \brief ValueError unless the axes behind the loops are those of the intrinsic. */
  void Init();
  TVM_DECLARE_NODE(TensorComputeOpNode, OperationNode, "te.TensorComputeOp", Bind(axis),
                   Bind(reduce_axis), Value(schedulable_ndim), Value(call));
  TVM_NODE_ARGS(Value(name), Value(tag), Value(attrs), Value(axis), Value(schedulable_ndim),
                Value(call));
};

class TensorComputeOp : public FromFields<Operation, TensorComputeOpNode> {
 public:
  TVM_DEFINE_NODE_REF(TensorComputeOp, TensorComputeOpNode);
};

}  // namespace te
}  // namespace tvm
#endif  // TVM_TE_TENSOR_COMPUTE_OP_H_
