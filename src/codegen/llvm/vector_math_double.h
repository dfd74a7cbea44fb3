/*!
 * \file vector_math_double.h
 * \brief Elementary functions as straight-line code for scalars and vectors of float64.
 *
 * Errors stay within 3 units in the last place over the whole range; NaN gives NaN.
 */
#ifndef TVM_CODEGEN_LLVM_VECTOR_MATH_DOUBLE_H_
#define TVM_CODEGEN_LLVM_VECTOR_MATH_DOUBLE_H_

#include "codegen/llvm/ir_text.h"

namespace tvm {
namespace codegen {

// Adding and subtracting it rounds to the nearest integer and leaves that in the low bits.
constexpr double kRoundDoubleToInteger = 0x1.8p52;

Value ExpDouble(FunctionText* text, const Value& x);
Value LogDouble(FunctionText* text, const Value& x);
Value TanhDouble(FunctionText* text, const Value& x);
Value SigmoidDouble(FunctionText* text, const Value& x);

}  // namespace codegen
}  // namespace tvm

#endif  // TVM_CODEGEN_LLVM_VECTOR_MATH_DOUBLE_H_
