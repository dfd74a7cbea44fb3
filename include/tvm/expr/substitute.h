/*!
 * \file tvm/expr/substitute.h
 * \brief Replacing variables of expressions, and callbacks on all their nodes.
 */
#ifndef TVM_EXPR_SUBSTITUTE_H_
#define TVM_EXPR_SUBSTITUTE_H_

#include <tvm/expr/expr.h>

#include <functional>
#include <unordered_map>

namespace tvm {
namespace tir {

/*! \brief Calls `visit` once on every node of the expression, operands first. */
void PostOrderVisit(const PrimExpr& expr, const std::function<void(const ObjectRef&)>& visit);

/*!
 * \brief Replaces variables where `vmap` gives an expression; undefined keeps the variable.
 *
 * Buffers whose data pointer, shape, strides or offset mention a replaced variable are replaced
 * by a rewritten buffer, the same one at all its uses. Replacing a variable at a binding site is
 * not possible: such a binding is left as it is.
 */
PrimExpr Substitute(PrimExpr expr, const std::function<PrimExpr(const Var&)>& vmap);
PrimExpr Substitute(PrimExpr expr, const Map<Var, PrimExpr>& vmap);
PrimExpr Substitute(PrimExpr expr, const std::unordered_map<const VarNode*, PrimExpr>& vmap);
Array<PrimExpr> Substitute(const Array<PrimExpr>& exprs, const Map<Var, PrimExpr>& vmap);
Range Substitute(const Range& range, const Map<Var, PrimExpr>& vmap);

}  // namespace tir
}  // namespace tvm
#endif  // TVM_EXPR_SUBSTITUTE_H_
