/*!
 * \file arith/conditions.cc
 * \brief Conditions that are one: comparisons of the same numbers, and with minima.
 */
#include <tvm/expr/op.h>

#include <utility>

#include "analyzer_core.h"

namespace tvm {
namespace arith {

using namespace tir;

namespace {

/*! \brief The operands of an order between indices, the lesser one first. */
struct Order {
  PrimExpr lesser, greater;
  bool strict = false;
};

std::optional<Order> OrderOf(const PrimExpr& e) {
  Order order;
  if (const auto* op = e.as<LTNode>()) {
    order = {op->a, op->b, true};
  } else if (const auto* op = e.as<LENode>()) {
    order = {op->a, op->b, false};
  } else if (const auto* op = e.as<GTNode>()) {
    order = {op->b, op->a, true};
  } else if (const auto* op = e.as<GENode>()) {
    order = {op->b, op->a, false};
  } else {
    return std::nullopt;
  }
  if (!IsIndex(order.lesser)) return std::nullopt;
  return order;
}

PrimExpr Ordered(const PrimExpr& lesser, const PrimExpr& greater, bool strict) {
  return strict ? PrimExpr(LT(lesser, greater)) : PrimExpr(LE(lesser, greater));
}

/*! \brief `min(x, y) == x` says that x is not above y. */
PrimExpr EqualToOperand(const PrimExpr& extremum, const PrimExpr& other, bool equal) {
  const auto* least = extremum.as<MinNode>();
  const auto* most = extremum.as<MaxNode>();
  if (!least && !most) return PrimExpr();
  PrimExpr x = least ? least->a : most->a, y = least ? least->b : most->b;
  if (SameExpr(y, other)) std::swap(x, y);
  if (!SameExpr(x, other)) return PrimExpr();
  if (equal) return least ? LE(x, y) : LE(y, x);
  return least ? LT(y, x) : LT(x, y);
}

}  // namespace

PrimExpr AnalyzerCore::CompareWithMinimum(const PrimExpr& e) {
  const auto* eq = e.as<EQNode>();
  const auto* ne = e.as<NENode>();
  if (eq || ne) {
    const PrimExpr a = eq ? eq->a : ne->a, b = eq ? eq->b : ne->b;
    if (!IsIndex(a)) return PrimExpr();
    PrimExpr order = EqualToOperand(a, b, eq != nullptr);
    if (!order.defined()) order = EqualToOperand(b, a, eq != nullptr);
    return order.defined() ? Simplify(order) : order;
  }
  const std::optional<Order> order = OrderOf(e);
  if (!order) return PrimExpr();
  PrimExpr first, second;
  bool either = false;
  auto split = [&](const auto* op, bool on_left, bool is_min) {
    if (op == nullptr || first.defined()) return;
    either = on_left == is_min;
    first = on_left ? Ordered(op->a, order->greater, order->strict)
                    : Ordered(order->lesser, op->a, order->strict);
    second = on_left ? Ordered(op->b, order->greater, order->strict)
                     : Ordered(order->lesser, op->b, order->strict);
  };
  split(order->lesser.as<MinNode>(), true, true);
  split(order->lesser.as<MaxNode>(), true, false);
  split(order->greater.as<MinNode>(), false, true);
  split(order->greater.as<MaxNode>(), false, false);
  if (!first.defined()) return PrimExpr();
  first = Simplify(first);
  if (is_const_int(first)) return is_one(first) == either ? first : Simplify(second);
  second = Simplify(second);
  if (is_const_int(second)) return is_one(second) == either ? second : first;
  return PrimExpr();
}

std::optional<AnalyzerCore::Claim> AnalyzerCore::ClaimOf(const PrimExpr& e) {
  auto difference = [this](const PrimExpr& a, const PrimExpr& b) {
    Poly p = Normalize(a);
    return Reduce(PolyRing::Sub(p, Normalize(b)));
  };
  std::optional<Claim> claim;
  if (const std::optional<Order> order = OrderOf(e)) {
    const Poly gap = difference(order->greater, order->lesser);
    claim = {Claim::kNonNeg, order->strict ? PolyRing::AddConst(gap, -1) : gap,
             order->lesser.dtype()};
  } else if (const auto* op = e.as<EQNode>(); op && IsIndex(op->a)) {
    claim = {Claim::kZero, difference(op->a, op->b), op->a.dtype()};
  } else if (const auto* op = e.as<NENode>(); op && IsIndex(op->a)) {
    claim = {Claim::kNonZero, difference(op->a, op->b), op->a.dtype()};
  }
  if (claim && HoldsData(claim->number)) return std::nullopt;
  return claim;
}

PrimExpr AnalyzerCore::JoinConditions(const PrimExpr& a, const PrimExpr& b, bool both) {
  std::optional<Claim> x = ClaimOf(a), y;
  if (x) y = ClaimOf(b);
  if (!y || x->dtype != y->dtype) return PrimExpr();
  if (x->kind != Claim::kNonNeg) std::swap(x, y);
  if (x->kind != Claim::kNonNeg) return PrimExpr();
  auto state = [&](Claim::Kind kind, const Poly& number) {
    PrimExpr zero = make_zero(x->dtype), value = Emit(number, x->dtype);
    if (kind == Claim::kNonNeg) return Simplify(LE(zero, value));
    return Simplify(kind == Claim::kZero ? PrimExpr(EQ(value, zero)) : PrimExpr(NE(value, zero)));
  };
  if (y->kind == Claim::kNonNeg) {
    // p >= 0 and -p >= 0; or p >= 0 or p <= -2.
    const Poly sum = PolyRing::Add(x->number, y->number);
    if (both && sum.IsZero()) return state(Claim::kZero, x->number);
    if (!both && sum == PolyRing::Const(-2)) {
      return state(Claim::kNonZero, PolyRing::AddConst(x->number, 1));
    }
    return PrimExpr();
  }
  // p >= 0 and p != 0; or p > 0 or p == 0.
  if (both != (y->kind == Claim::kNonZero)) return PrimExpr();
  const Poly at = both ? x->number : PolyRing::AddConst(x->number, 1);
  if (!(at == y->number) && !(at == PolyRing::Negate(y->number))) return PrimExpr();
  return state(Claim::kNonNeg, both ? PolyRing::AddConst(at, -1) : at);
}

PrimExpr AnalyzerCore::SumOfSelects(const PrimExpr& e) {
  const auto* sum = e.as<AddNode>();
  const auto* difference = e.as<SubNode>();
  const auto* min = e.as<MinNode>();
  const auto* max = e.as<MaxNode>();
  if (!sum && !difference && !min && !max) return PrimExpr();
  const PrimExpr a = sum ? sum->a : difference ? difference->a : min ? min->a : max->a;
  const PrimExpr b = sum ? sum->b : difference ? difference->b : min ? min->b : max->b;
  const auto* x = a.as<SelectNode>();
  const auto* y = b.as<SelectNode>();
  if (!x && !y) return PrimExpr();
  auto join = [&](const PrimExpr& left, const PrimExpr& right) {
    return Simplify(sum          ? PrimExpr(Add(left, right))
                    : difference ? PrimExpr(Sub(left, right))
                    : min        ? PrimExpr(Min(left, right))
                                 : PrimExpr(Max(left, right)));
  };
  if (x && y) {
    if (!SameExpr(x->condition, y->condition)) return PrimExpr();
    return Simplify(Select(x->condition, join(x->true_value, y->true_value),
                           join(x->false_value, y->false_value)));
  }
  // With one selection, only where a branch goes away.
  if (!difference) return PrimExpr();
  const auto* select = x ? x : y;
  const PrimExpr other = x ? b : a;
  if (!SameExpr(select->true_value, other) && !SameExpr(select->false_value, other)) {
    return PrimExpr();
  }
  auto branch = [&](const PrimExpr& value) { return x ? join(value, other) : join(other, value); };
  return Simplify(
      Select(select->condition, branch(select->true_value), branch(select->false_value)));
}

}  // namespace arith
}  // namespace tvm
