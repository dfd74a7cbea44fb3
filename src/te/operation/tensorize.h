/*!
 * \file tensorize.h
 * \brief Loop nests whose innermost part is a call of a tensor intrinsic.
 */
#ifndef TVM_TE_OPERATION_TENSORIZE_H_
#define TVM_TE_OPERATION_TENSORIZE_H_

#include <tvm/te/tensor_intrin.h>

#include <functional>
#include <utility>

#include "op_utils.h"

namespace tvm {
namespace te {

/*! \brief Position of the loop that a tensor intrinsic takes the place of, or the loop count. */
size_t TensorizedLoop(const Stage& stage);

/*! \brief The nest of a compute one of whose loops is tensorized. */
Stmt ProvideTensorized(const ComputeOpNode* op, const Stage& stage, LoweringContext* ctx);

/*!
 * \brief What the calls of a tensorized stage cover: ranges of the axes of its compute, and of each
 *        input the region that is read, in terms of the loops outside of the calls.
 * \param domains what InferBound found.
 */
std::pair<Map<IterVar, Range>, Map<Tensor, Array<Range>>> InferTensorizeRegion(
    const Stage& stage, const Map<IterVar, Range>& domains);

/*!
 * \brief The values of a tensorized stage written in the axes and inputs of `intrin`, ready to be
 *        compared with those by which the intrinsic is defined.
 * \param outputs, inputs what InferTensorizeRegion found.
 */
Array<PrimExpr> MatchTensorizeBody(const Stage& stage, const Map<IterVar, Range>& outputs,
                                   const Map<Tensor, Array<Range>>& inputs,
                                   const TensorIntrin& intrin);

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
