/*!
 * \file tvm/te/tensor_intrin.h
 * \brief Instructions that compute whole blocks of tensors, for Stage::tensorize.
 */
#ifndef TVM_TE_TENSOR_INTRIN_H_
#define TVM_TE_TENSOR_INTRIN_H_

#include <tvm/te/tensor.h>

namespace tvm {
namespace te {

/*!
 * \brief What an instruction computes, and the statements that carry it out.
 *
 * `op` says in te what one call computes; its axes are the extents of one call. `body` and its
 * companions access `buffers`, which stand for the blocks of memory that a call is applied to.
 */
class TensorIntrinNode : public Object {
 public:
  String name;
  Operation op;
  Array<Tensor> inputs;
  /*! \brief One per input, then one per output of `op`. */
  Array<Buffer> buffers;
  Array<Var> scalar_params;
  /*! \brief Computes the outputs from nothing, start values of a reduction included. */
  Stmt body;
  /*! \brief Writes the start values of a reduction; may be undefined. */
  Stmt reduce_init;
  /*! \brief Combines with what the outputs hold; may be undefined. */
  Stmt reduce_update;
  /*! \brief ValueError unless there is one buffer of fitting shape for every tensor. */
  void Init();
  TVM_DECLARE_NODE(TensorIntrinNode, Object, "te.TensorIntrin", Value(name), Value(op),
                   Value(inputs), Bind(buffers), Bind(scalar_params), Maybe(body),
                   Maybe(reduce_init), Maybe(reduce_update));
};

class TensorIntrin : public FromFields<ObjectRef, TensorIntrinNode> {
 public:
  TVM_DEFINE_NODE_REF(TensorIntrin, TensorIntrinNode);
};

/*! \brief An intrinsic applied to regions of tensors, as the body of a compute. */
class TensorIntrinCallNode : public Object {
 public:
  TensorIntrin intrin;
  Array<Tensor> tensors;
  /*! \brief Per tensor one range for each of its axes. */
  Array<Array<Range>> regions;
  /*! \brief Axes around the call that combine into the same outputs. */
  Array<IterVar> reduce_axis;
  Array<PrimExpr> scalar_inputs;
  /*! \brief ValueError unless tensors, regions and scalars are as the intrinsic wants. */
  void Init();
  TVM_DECLARE_NODE(TensorIntrinCallNode, Object, "te.TensorIntrinCall", Value(intrin),
                   Value(tensors), Value(regions), Bind(reduce_axis), Value(scalar_inputs));
};

class TensorIntrinCall : public FromFields<ObjectRef, TensorIntrinCallNode> {
 public:
  TVM_DEFINE_NODE_REF(TensorIntrinCall, TensorIntrinCallNode);
};

}  // namespace te
}  // namespace tvm
#endif  // TVM_TE_TENSOR_INTRIN_H_
