/*!
 * \file tvm/arith/pattern.h
 * \brief Recognise linear expressions and the bounds that a condition puts on variables.
 */
#ifndef TVM_ARITH_PATTERN_H_
#define TVM_ARITH_PATTERN_H_

#include <tvm/expr/var.h>
#include <tvm/ir/expr.h>

namespace tvm {
namespace arith {

/*!
 * \brief Write `expr` as `c0 * vars[0] + c1 * vars[1] + ... + base`, none of the coefficients and
 *        not `base` mentioning any of `vars`.
 * \return The coefficients followed by `base`; an empty array if `expr` is not of that form.
 */
Array<PrimExpr> DetectLinearEquation(const PrimExpr& expr, const Array<tir::Var>& vars);

/*!
 * \brief Bounds that a conjunction puts on each of `vars`.
 * \return [min0, max0, min1, max1, ...] with undefined entries for missing bounds; an empty array
 *         if some part of the condition is not a linear bound of a single variable.
 */
Array<PrimExpr> DetectClipBound(const PrimExpr& expr, const Array<tir::Var>& vars);

/*!
 * \brief Parts of `expr` that occur at least `threshold` times, with how often they do.
 *
 * Variables and constants are no parts. The key is the first of the equal parts.
 */
Map<PrimExpr, Integer> DetectCommonSubExpr(const PrimExpr& expr, int threshold);

/*!
 * \brief A condition without the variables of `ranges` that implies `predicate` for all their
 *        values; false where none is found.
 */
PrimExpr NarrowPredicateExpression(const PrimExpr& predicate, const Map<tir::Var, Range>& ranges);

}  // namespace arith
}  // namespace tvm
#endif  // TVM_ARITH_PATTERN_H_
