/*!
 * \file src/expr/substitute.cc
 * \brief Replacing variables of expressions, and callbacks on all their nodes.
 */
#include <tvm/expr/substitute.h>

#include "rewriters.h"

namespace tvm {
namespace tir {

void PostOrderVisit(const PrimExpr& expr, const std::function<void(const ObjectRef&)>& visit) {
  OnceVisitor<ExprVisitor>(nullptr, visit).VisitExpr(expr);
}

PrimExpr Substitute(PrimExpr expr, const std::function<PrimExpr(const Var&)>& vmap) {
  return VarReplacer<LoadMutator<ExprMutator>>(vmap)(expr);
}
PrimExpr Substitute(PrimExpr expr, const Map<Var, PrimExpr>& vmap) {
  return vmap.empty() ? expr : Substitute(std::move(expr), Lookup(vmap));
}
PrimExpr Substitute(PrimExpr expr, const std::unordered_map<const VarNode*, PrimExpr>& vmap) {
  return vmap.empty() ? expr : Substitute(std::move(expr), Lookup(vmap));
}
Array<PrimExpr> Substitute(const Array<PrimExpr>& exprs, const Map<Var, PrimExpr>& vmap) {
  return exprs.Map([&vmap](const PrimExpr& expr) { return Substitute(expr, vmap); });
}
Range Substitute(const Range& range, const Map<Var, PrimExpr>& vmap) {
  PrimExpr min = Substitute(range->min, vmap);
  PrimExpr extent = Substitute(range->extent, vmap);
  if (min.same_as(range->min) && extent.same_as(range->extent)) return range;
  return Range::FromMinExtent(min, extent);
}

}  // namespace tir
}  // namespace tvm
