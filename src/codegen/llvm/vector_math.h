/*!
 * \file vector_math.h
 * \brief Elementary functions as straight-line code for scalars and vectors of float32.
 *
 * A library call would leave the vector unit once per lane. Errors stay within 2 units in the last
 * place over the whole range, subnormal results included; NaN gives NaN.
 */
#ifndef TVM_CODEGEN_LLVM_VECTOR_MATH_H_
#define TVM_CODEGEN_LLVM_VECTOR_MATH_H_

#include "codegen/llvm/ir_text.h"

namespace tvm {
namespace codegen {

Value ExpFloat(FunctionText* text, const Value& x);
Value LogFloat(FunctionText* text, const Value& x);
Value Log1pFloat(FunctionText* text, const Value& x);
Value AtanFloat(FunctionText* text, const Value& x);
/*! \brief As atan2 of the C library, special cases included. */
Value Atan2Float(FunctionText* text, const Value& y, const Value& x);
Value TanhFloat(FunctionText* text, const Value& x);
Value SigmoidFloat(FunctionText* text, const Value& x);
Value ErfFloat(FunctionText* text, const Value& x);

}  // namespace codegen
}  // namespace tvm

#endif  // TVM_CODEGEN_LLVM_VECTOR_MATH_H_
