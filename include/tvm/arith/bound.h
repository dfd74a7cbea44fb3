/*!
 * \file tvm/arith/bound.h
 * \brief Solve a condition for a variable.
 */
#ifndef TVM_ARITH_BOUND_H_
#define TVM_ARITH_BOUND_H_

#include <tvm/arith/int_set.h>
#include <tvm/expr/var.h>
#include <tvm/ir/expr.h>

#include <unordered_map>

namespace tvm {
namespace arith {

/*!
 * \brief Values of `v` for which `cond` holds for sure.
 *
 * `cond` must be one comparison, in which `v` occurs under + - *, and in floor quotients by what
 * does not depend on it.
 *
 * \param hint_map Sets of the other variables.
 * \param relax_map Variables for whose every value the condition must hold.
 * \return The set, or Nothing() if the condition cannot be solved.
 */
IntSet DeduceBound(const PrimExpr& v, const PrimExpr& cond, const Map<tir::Var, IntSet>& hint_map,
                   const Map<tir::Var, IntSet>& relax_map);
IntSet DeduceBound(const PrimExpr& v, const PrimExpr& cond,
                   const std::unordered_map<const tir::VarNode*, IntSet>& hint_map,
                   const std::unordered_map<const tir::VarNode*, IntSet>& relax_map);

}  // namespace arith
}  // namespace tvm
#endif  // TVM_ARITH_BOUND_H_
