/*!
 * \file tensorize.h
 * \brief Loop nests whose innermost part is a call of a tensor intrinsic.
 */
#ifndef TVM_TE_OPERATION_TENSORIZE_H_
#define TVM_TE_OPERATION_TENSORIZE_H_

#include <tvm/te/tensor_intrin.h>

#include <functional>

#include "op_utils.h"

namespace tvm {
namespace te {

/*! \brief Position of the loop that a tensor intrinsic takes the place of, or the loop count. */
size_t TensorizedLoop(const Stage& stage);

/*! \brief The nest of a compute one of whose loops is tensorized. */
Stmt ProvideTensorized(const ComputeOpNode* op, const Stage& stage, LoweringContext* ctx);

/*! \brief What one call of an intrinsic is applied to. */
struct IntrinsicUse {
  TensorIntrin intrin;
  Array<Tensor> inputs;
  Map<Var, PrimExpr> scalars;
  /*! \brief Number of loops around the call. */
  size_t place = 0;
  /*! \brief Region of every input, given the values of the loops around. */
  std::function<Array<Array<Range>>(const IterVarMap<PrimExpr>& values)> input_regions;
  /*! \brief Region of the outputs; reduction loops may have no value. */
  std::function<Array<Range>(const IterVarMap<PrimExpr>& values)> output_region;
};

/*! \brief The loops around a call, with start values and updates where reductions are outside. */
Stmt ProvideIntrinsic(const Stage& stage, LoweringContext* ctx, const IntrinsicUse& use);

}  // namespace te
}  // namespace tvm
#endif  // TVM_TE_OPERATION_TENSORIZE_H_
