/*!
 * \file src/tir/analysis/reduction_step.h
 * \brief What one iteration of a reduction combines into its results, and by which operator.
 */
#ifndef TVM_SRC_TIR_ANALYSIS_REDUCTION_STEP_H_
#define TVM_SRC_TIR_ANALYSIS_REDUCTION_STEP_H_

#include <tvm/tir/stmt.h>

#include <string>
#include <vector>

namespace tvm {
namespace tir {

/*! \brief results = combiner(results, sources), where the guards hold. */
struct ReductionStep {
  /*! \brief The identity is what the block's init stores. */
  CommReducer combiner;
  std::vector<BufferStore> results;
  Array<PrimExpr> sources;
  Array<PrimExpr> guards;
  /*! \brief Why the statements are no such step; empty if they are. */
  std::string error;
};

/*!
 * \brief Find the operator in the body of a block and the first values in its init.
 *
 * Operators are sums, products, maxima and minima, one or several beside each other, and choices
 * of one of two tuples by a condition, as an argmax is. The first values must be neutral, or the
 * operator one that may combine them in more than once.
 */
ReductionStep MatchReductionStep(const Stmt& body, const Stmt& init);

}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_ANALYSIS_REDUCTION_STEP_H_
