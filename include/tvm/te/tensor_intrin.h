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
  TVM_DECLARE_NODE(TensorIntrinNode, Object, "te.TensorIntrin", Value(name), Value(op),
                   Value(inputs), Bind(buffers), Bind(scalar_params), Value(body),
                   Value(reduce_init), Value(reduce_update));
};

class TensorIntrin : public ObjectRef {
 public:
  /*! \brief Raises ValueError unless there is one buffer of fitting shape for every tensor. */
  TensorIntrin(String name, Operation op, Array<Tensor> inputs, Array<Buffer> buffers,
               Array<Var> scalar_params, Stmt body, Stmt reduce_init, Stmt reduce_update);
  TVM_DEFINE_REF(TensorIntrin, ObjectRef, TensorIntrinNode);
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
  TVM_DECLARE_NODE(TensorIntrinCallNode, Object, "te.TensorIntrinCall", Value(intrin),
                   Value(tensors), Value(regions), Bind(reduce_axis), Value(scalar_inputs));
};

class TensorIntrinCall : public ObjectRef {
 public:
  /*! \brief Raises ValueError unless tensors, regions and scalars are as the intrinsic wants. */
  TensorIntrinCall(TensorIntrin intrin, Array<Tensor> tensors, Array<Array<Range>> regions,
                   Array<IterVar> reduce_axis, Array<PrimExpr> scalar_inputs);
  TVM_DEFINE_REF(TensorIntrinCall, ObjectRef, TensorIntrinCallNode);
};

}  // namespace te
}  // namespace tvm
#endif  // TVM_TE_TENSOR_INTRIN_H_
