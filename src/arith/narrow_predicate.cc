/*!
 * \file arith/narrow_predicate.cc
 * \brief Conditions that hold whatever values some of their variables have.
 */
#include <tvm/arith/int_set.h>
#include <tvm/arith/pattern.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/expr/substitute.h>
#include <tvm/runtime/registry.h>

#include <utility>

#include "analyzer_core.h"

namespace tvm {
namespace arith {

using namespace tir;

namespace {

class Narrower {
 public:
  explicit Narrower(const Map<Var, Range>& ranges) {
    analyzer_.Bind(ranges);
    for (const auto& [var, range] : ranges) domains_.Set(var, IntSet::FromRange(range));
  }

  /*! \brief What implies `e`, or with `negate` its contrary, for all values of the variables. */
  PrimExpr Visit(const PrimExpr& e, bool negate) {
    if (const auto* op = e.as<NotNode>()) return Visit(op->a, !negate);
    const auto* conjunction = e.as<AndNode>();
    const auto* disjunction = e.as<OrNode>();
    if (conjunction || disjunction) {
      PrimExpr a = Visit(conjunction ? conjunction->a : disjunction->a, negate);
      PrimExpr b = Visit(conjunction ? conjunction->b : disjunction->b, negate);
      return (conjunction != nullptr) != negate ? a && b : a || b;
    }
    if (const auto* op = e.as<LTNode>())
      return negate ? Less(op->b, op->a, false) : Less(op->a, op->b, true);
    if (const auto* op = e.as<LENode>())
      return negate ? Less(op->b, op->a, true) : Less(op->a, op->b, false);
    if (const auto* op = e.as<GTNode>())
      return negate ? Less(op->a, op->b, false) : Greater(op->a, op->b, true);
    if (const auto* op = e.as<GENode>())
      return negate ? Less(op->a, op->b, true) : Greater(op->a, op->b, false);
    if (const auto* op = e.as<EQNode>()) return Equal(op->a, op->b, negate);
    if (const auto* op = e.as<NENode>()) return Equal(op->a, op->b, !negate);
    if (!Depends(e)) return negate ? PrimExpr(!e) : e;
    if (const auto* call = e.as<CallNode>(); call && call->op.same_as(builtin::likely())) {
      return likely(Visit(call->args[0], negate));
    }
    return const_false();
  }

 private:
  bool Depends(const PrimExpr& e) const {
    bool found = false;
    PostOrderVisit(e, [&](const ObjectRef& node) {
      const auto* var = node.as<VarNode>();
      found = found || (var != nullptr && domains_.count(GetRef<Var>(var)) != 0);
    });
    return found;
  }

  /*! \brief What the least value of high - low says; false if it has none. */
  PrimExpr Less(const PrimExpr& low, const PrimExpr& high, bool strict) {
    if (!Depends(low) && !Depends(high)) return strict ? low < high : low <= high;
    if (!low.dtype().is_int()) return const_false();
    // As one number: what both sides share is no reason to ask for more.
    const IntSet gap = EvalSet(high - low, domains_, &analyzer_);
    if (!gap.HasLowerBound()) return const_false();
    const PrimExpr zero = make_zero(low.dtype());
    return strict ? zero < gap.min() : zero <= gap.min();
  }

  PrimExpr Greater(const PrimExpr& a, const PrimExpr& b, bool strict) {
    if (!Depends(a) && !Depends(b)) return strict ? a > b : a >= b;
    return Less(b, a, strict);
  }

  PrimExpr Equal(const PrimExpr& a, const PrimExpr& b, bool negate) {
    if (!Depends(a) && !Depends(b)) return negate ? a != b : a == b;
    if (negate) return Less(a, b, true) || Greater(a, b, true);
    return Less(a, b, false) && Greater(a, b, false);
  }

  Analyzer analyzer_;
  Map<Var, IntSet> domains_;
};

}  // namespace

PrimExpr NarrowPredicateExpression(const PrimExpr& predicate, const Map<Var, Range>& ranges) {
  TVM_CHECK(predicate.defined() && predicate.dtype().is_bool(), ValueError)
      << "narrow_predicate_expression: expected a boolean expression, got " << predicate;
  Analyzer analyzer;
  return analyzer.Simplify(Narrower(ranges).Visit(predicate, /*negate=*/false));
}

TVM_REGISTER_GLOBAL("arith.NarrowPredicateExpression").set_body_typed(NarrowPredicateExpression);

}  // namespace arith
}  // namespace tvm
