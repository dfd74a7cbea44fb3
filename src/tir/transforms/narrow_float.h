/*!
 * \file src/tir/transforms/narrow_float.h
 * \brief Conversions of floating point formats of 8 and 16 bits by integer arithmetic.
 */
#ifndef TVM_SRC_TIR_TRANSFORMS_NARROW_FLOAT_H_
#define TVM_SRC_TIR_TRANSFORMS_NARROW_FLOAT_H_

#include <tvm/expr/expr.h>
#include <tvm/runtime/narrow_float.h>

namespace tvm {
namespace tir {

/*! \brief The unsigned integer that holds a value of a narrow type. */
inline DataType BitsOfNarrowFloat(DataType dtype) {
  return DataType::UInt(dtype.bits(), dtype.lanes());
}

/*! \brief The float32 that `bits`, the representation of a value of `dtype`, stands for: exact. */
PrimExpr NarrowFloatFromBits(const PrimExpr& bits, DataType dtype);

/*!
 * \brief The representation of the value of `dtype` nearest to a float32, the even one of two.
 *
 * A NaN stays one. What is too large becomes infinity where there is one, else NaN.
 */
PrimExpr NarrowFloatToBits(const PrimExpr& value, DataType dtype);

}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_TRANSFORMS_NARROW_FLOAT_H_
