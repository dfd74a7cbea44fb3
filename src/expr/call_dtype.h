/*!
 * \file src/expr/call_dtype.h
 * \brief Result types of calls that need not be written.
 */
#ifndef TVM_SRC_EXPR_CALL_DTYPE_H_
#define TVM_SRC_EXPR_CALL_DTYPE_H_

#include <tvm/expr/expr.h>

namespace tvm {
namespace tir {

/*!
 * \brief The type that a call has in a script unless it says another one.
 *
 * That of the first operand, except for the intrinsics that are known to return something else.
 */
DataType CallDType(const RelayExpr& op, const Array<PrimExpr>& args);

}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_EXPR_CALL_DTYPE_H_
