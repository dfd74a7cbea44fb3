/*!
 * \file arith/int_set_api.cc
 * \brief Sets of integers for Python, with checks of what comes from there.
 */
#include <tvm/arith/int_set.h>
#include <tvm/runtime/registry.h>

namespace tvm {
namespace arith {

using namespace tir;

namespace {

void CheckEnd(const PrimExpr& end) {
  TVM_CHECK(end.defined(), TypeError)
      << "IntervalSet: an end is None; use neg_inf() or pos_inf() where there is none";
  const DataType dtype = end.dtype();
  TVM_CHECK(IsPosInf(end) || IsNegInf(end) || dtype.is_int() || dtype.is_uint() || dtype.is_bool(),
            TypeError)
      << "IntervalSet: the ends must be integers, got " << end << " of type " << dtype;
}

void CheckSets(const Array<IntSet>& sets, const char* title) {
  for (size_t i = 0; i < sets.size(); ++i) {
    TVM_CHECK(sets[i].defined(), TypeError) << title << ": set " << i << " is None";
  }
}

}  // namespace

TVM_REGISTER_GLOBAL("arith.IntervalSet").set_body_typed([](PrimExpr min, PrimExpr max) {
  CheckEnd(min);
  CheckEnd(max);
  return IntervalSet(min, max);
});
TVM_REGISTER_GLOBAL("arith.IntervalSet_everything").set_body_typed([] {
  return IntSet::Everything();
});
TVM_REGISTER_GLOBAL("arith.PosInf").set_body_typed([] { return PosInf(); });
TVM_REGISTER_GLOBAL("arith.NegInf").set_body_typed([] { return NegInf(); });
TVM_REGISTER_GLOBAL("arith.IntSetIsNothing").set_body_typed([](IntSet set) {
  return set.IsNothing();
});
TVM_REGISTER_GLOBAL("arith.IntSetIsEverything").set_body_typed([](IntSet set) {
  return set.IsEverything();
});
TVM_REGISTER_GLOBAL("arith.EvalSet").set_body_typed([](PrimExpr expr, Map<Var, IntSet> dom_map) {
  TVM_CHECK(expr.defined(), TypeError) << "eval_set: expected an expression, got None";
  return EvalSet(expr, dom_map);
});
TVM_REGISTER_GLOBAL("arith.IntSetUnion").set_body_typed([](Array<IntSet> sets) {
  CheckSets(sets, "union_sets");
  return Union(sets);
});
TVM_REGISTER_GLOBAL("arith.IntSetIntersect").set_body_typed([](Array<IntSet> sets) {
  CheckSets(sets, "intersect_sets");
  return Intersect(sets);
});

}  // namespace arith
}  // namespace tvm
