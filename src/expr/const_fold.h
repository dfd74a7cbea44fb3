/*!
 * \file src/expr/const_fold.h
 * \brief Folding of operators on constants, and of identities such as x + 0.
 */
#ifndef TVM_SRC_EXPR_CONST_FOLD_H_
#define TVM_SRC_EXPR_CONST_FOLD_H_

#include <tvm/expr/expr.h>

namespace tvm {
namespace tir {

inline bool IsIntegral(DataType t) { return t.is_int() || t.is_uint(); }

/*!
 * \brief The operator applied to operands of one type, if that needs no new operator; else
 * undefined. An integer result that overflows its type is not folded.
 *
 * Dividing an integer by the constant zero is a ValueError.
 */
template <typename Op>
PrimExpr TryConstFold(const PrimExpr& a, const PrimExpr& b);

/*! \brief Conversion of a scalar constant to the scalar type `t`, or undefined. */
PrimExpr FoldCast(DataType t, const PrimExpr& value);

/*!
 * \brief The number that a function of real numbers (`tir.exp`, `tir.pow`, ...) gives for a
 * float32 or float64 constant, or undefined.
 *
 * Making such a call folds nothing; simplifying does.
 */
PrimExpr FoldMath(const CallNode* call);

}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_EXPR_CONST_FOLD_H_
