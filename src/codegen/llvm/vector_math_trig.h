/*!
 * \file vector_math_trig.h
 * \brief Sine, cosine and powers of scalars and vectors of float32, computed in float64.
 *
 * The wider type makes the range reduction short; errors stay within 1 unit in the last place.
 */
#ifndef TVM_CODEGEN_LLVM_VECTOR_MATH_TRIG_H_
#define TVM_CODEGEN_LLVM_VECTOR_MATH_TRIG_H_

#include "codegen/llvm/ir_text.h"

namespace tvm {
namespace codegen {

Value SinFloat(FunctionText* text, const Value& x);
Value CosFloat(FunctionText* text, const Value& x);
/*! \brief As pow of the C library, special cases included. */
Value PowFloat(FunctionText* text, const Value& x, const Value& y);

}  // namespace codegen
}  // namespace tvm

#endif  // TVM_CODEGEN_LLVM_VECTOR_MATH_TRIG_H_
