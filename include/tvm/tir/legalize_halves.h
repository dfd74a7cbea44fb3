/*!
 * \file tvm/tir/legalize_halves.h
 * \brief Half precision for processors that have no instructions for it.
 */
#ifndef TVM_TIR_LEGALIZE_HALVES_H_
#define TVM_TIR_LEGALIZE_HALVES_H_

#include <tvm/ir/transform.h>

namespace tvm {
namespace tir {
namespace transform {

/*!
 * \brief Computes with float16 in float32, converting by integer arithmetic.
 *
 * An expression is rounded once at its end; memory of a function's own holds float32.
 */
tvm::transform::Pass FP16ComputeLegalize();

/*!
 * \brief Holds values of float16 as the 16-bit integers that represent them.
 *
 * Follows FP16ComputeLegalize, so only conversions and moves are left. ValueError if a function
 * from elsewhere is called with one.
 */
tvm::transform::Pass FP16StorageLegalize();

}  // namespace transform
}  // namespace tir
}  // namespace tvm

#endif  // TVM_TIR_LEGALIZE_HALVES_H_
