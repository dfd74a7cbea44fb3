/*!
 * \file tvm/arith/estimate_region.h
 * \brief Which part of a buffer is touched while loops run.
 */
#ifndef TVM_ARITH_ESTIMATE_REGION_H_
#define TVM_ARITH_ESTIMATE_REGION_H_

#include <tvm/arith/int_set.h>

namespace tvm {
namespace arith {

/*!
 * \brief One set for each dimension, so that exactly their product is touched.
 * \param region What is touched in one iteration.
 * \param loops The loops with constant ranges.
 * \param predicate Which iterations run.
 * \return None where it is no such product, or cannot be told.
 */
Optional<Array<IntSet>> EstimateRegionStrictBound(const Array<Range>& region,
                                                  const Map<tir::Var, Range>& loops,
                                                  const PrimExpr& predicate);

/*! \brief One set for each dimension, outside of which nothing is touched. */
Array<IntSet> EstimateRegionUpperBound(const Array<Range>& region,
                                       const Map<tir::Var, Range>& loops,
                                       const PrimExpr& predicate);

}  // namespace arith
}  // namespace tvm
#endif  // TVM_ARITH_ESTIMATE_REGION_H_
