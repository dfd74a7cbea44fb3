/*!
 * \file tvm/tir/tensor_intrin.h
 * \brief Computations of a machine: what they compute, and how they are called.
 */
#ifndef TVM_TIR_TENSOR_INTRIN_H_
#define TVM_TIR_TENSOR_INTRIN_H_

#include <tvm/tir/function.h>

namespace tvm {
namespace tir {

/*! \brief Two functions of the same buffers that do the same. */
class TensorIntrinNode : public Object {
 public:
  /*! \brief One block that holds loops around computations of single elements. */
  PrimFunc desc;
  /*! \brief One block that does it as the machine does. */
  PrimFunc impl;
  /*! \brief ValueError unless both take the same buffers and consist of one block. */
  void Init();
  TVM_DECLARE_NODE(TensorIntrinNode, Object, "tir.TensorIntrin", Value(desc), Value(impl));
};

/*! \brief Reference to TensorIntrinNode. */
class TensorIntrin : public FromFields<ObjectRef, TensorIntrinNode> {
 public:
  /*! \brief Make it known by a name; ValueError if that is taken, unless `override`. */
  static void Register(const String& name, const TensorIntrin& intrin, bool override);
  /*! \brief The one of that name; ValueError if there is none, unless `allow_missing`. */
  static Optional<TensorIntrin> Get(const String& name, bool allow_missing = false);
  TVM_DEFINE_NODE_REF(TensorIntrin, TensorIntrinNode);
};

}  // namespace tir
}  // namespace tvm
#endif  // TVM_TIR_TENSOR_INTRIN_H_
