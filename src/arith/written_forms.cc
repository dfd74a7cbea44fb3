/*!
 * \file arith/written_forms.cc
 * \brief What rewriting by rules makes of an expression, where the shortest sum is written
 *        otherwise.
 *
 * Programs compare simplified expressions by structure, so of several forms of one length that is
 * taken which keeps operands where they were. Each rule here is an identity; conditions on signs
 * are asked for.
 */
#include <tvm/expr/expr_functor.h>
#include <tvm/expr/op.h>

#include <functional>

#include "analyzer_core.h"

namespace tvm {
namespace arith {

using namespace tir;

namespace {

/*! \brief The two operands of a node of a type, or nothing. */
template <typename Node>
bool Match(const PrimExpr& e, PrimExpr* a, PrimExpr* b) {
  const auto* node = e.as<Node>();
  if (node == nullptr) return false;
  *a = node->a;
  *b = node->b;
  return true;
}

/*! \brief A node of a type whose second operand is a number. */
template <typename Node>
bool MatchNumber(const PrimExpr& e, PrimExpr* a, int64_t* number) {
  const auto* node = e.as<Node>();
  const int64_t* value = node == nullptr ? nullptr : as_const_int(node->b);
  if (value == nullptr) return false;
  *a = node->a;
  *number = *value;
  return true;
}

/*! \brief A number of a type; PolyOverflow, at which the shortest form stays, if that has it not.
 */
PrimExpr InRange(DataType dtype, __int128 value) {
  const __int128 limit = __int128{1} << (dtype.bits() - 1);
  if (value >= limit || value < -limit) throw PolyOverflow();
  return make_const(dtype, static_cast<int64_t>(value));
}

bool IsMinOrMax(const PrimExpr& e) { return e.as<MinNode>() || e.as<MaxNode>(); }

PrimExpr Extreme(bool is_min, const PrimExpr& a, const PrimExpr& b) {
  if (as_const_int(a) && as_const_int(b)) return is_min ? min(a, b) : max(a, b);
  return is_min ? PrimExpr(Min(a, b)) : PrimExpr(Max(a, b));
}

/*! \brief min(a, b) or max(a, b), which one, and its operands. */
bool MatchLeast(const PrimExpr& e, bool* is_min, PrimExpr* a, PrimExpr* b) {
  *is_min = e.as<MinNode>() != nullptr;
  return Match<MinNode>(e, a, b) || Match<MaxNode>(e, a, b);
}

/*! \brief min(min(x, y), min(z, y)) as min(min(x, z), y), and likewise for maxima. */
PrimExpr SharedLast(const PrimExpr& e) {
  bool is_min = false;
  PrimExpr a, b;
  if (!MatchLeast(e, &is_min, &a, &b)) return PrimExpr();
  PrimExpr p, q, r, s;
  bool left = false, right = false;
  if (MatchLeast(a, &left, &p, &q) && MatchLeast(b, &right, &r, &s) && left == is_min &&
      right == is_min) {
    if (SameExpr(p, r)) return Extreme(is_min, Extreme(is_min, q, s), p);
    if (SameExpr(p, s)) return Extreme(is_min, Extreme(is_min, q, r), p);
    if (SameExpr(q, r)) return Extreme(is_min, Extreme(is_min, p, s), q);
    if (SameExpr(q, s)) return Extreme(is_min, Extreme(is_min, p, r), q);
  }
  return PrimExpr();
}

/*! \brief Whether any node of a type is in an expression. */
template <typename... Nodes>
bool Has(const PrimExpr& e) {
  bool found = false;
  PostOrderVisit(e, [&found](const ObjectRef& node) {
    found = found || ((node.as<Nodes>() != nullptr) || ...);
  });
  return found;
}

/*! \brief Quotients and remainders rounded towards zero in place of those rounded down. */
class Truncating final : public ExprMutator {
 public:
  explicit Truncating(AnalyzerCore* core) : core_(core) {}
  /*! \brief Whether all dividends and divisors were positive, so that both are the same. */
  bool is_same = true;

 private:
  using ExprMutator::VisitExpr_;
  void Ask(const PrimExpr& a, const PrimExpr& b) {
    is_same = is_same && core_->ProveNonNeg(core_->Normalize(a)) &&
              core_->ProveNonNeg(core_->Normalize(b));
  }
  PrimExpr VisitExpr_(const FloorDivNode* op) override {
    Ask(op->a, op->b);
    return Div(VisitExpr(op->a), VisitExpr(op->b));
  }
  PrimExpr VisitExpr_(const FloorModNode* op) override {
    Ask(op->a, op->b);
    return Mod(VisitExpr(op->a), VisitExpr(op->b));
  }
  AnalyzerCore* core_;
};

}  // namespace

PrimExpr AnalyzerCore::OfExtreme(const PrimExpr& e) {
  PrimExpr x, y, a, b;
  bool is_min = false;
  // What is added goes into both operands, and a number to the right; differences stay in order.
  if (Match<AddNode>(e, &x, &y) && IsMinOrMax(x) != IsMinOrMax(y)) {
    if (IsMinOrMax(y)) std::swap(x, y);
    MatchLeast(x, &is_min, &a, &b);
    a = Simplify(a + y);
    b = Simplify(b + y);
    return as_const_int(a) ? Extreme(is_min, b, a) : Extreme(is_min, a, b);
  }
  if (Match<SubNode>(e, &x, &y) && IsMinOrMax(x) != IsMinOrMax(y)) {
    if (MatchLeast(x, &is_min, &a, &b)) return Extreme(is_min, Simplify(a - y), Simplify(b - y));
    MatchLeast(y, &is_min, &a, &b);
    return Extreme(!is_min, Simplify(x - a), Simplify(x - b));
  }
  int64_t number = 0;
  if (MatchNumber<FloorDivNode>(e, &x, &number) && number > 0 && MatchLeast(x, &is_min, &a, &b)) {
    const PrimExpr divisor = e.as<FloorDivNode>()->b;
    return Extreme(is_min, Simplify(floordiv(a, divisor)), Simplify(floordiv(b, divisor)));
  }
  return PrimExpr();
}

PrimExpr AnalyzerCore::FromExtreme(const PrimExpr& e) {
  PrimExpr a, b, x, y;
  bool is_min = false;
  if (!MatchLeast(e, &is_min, &a, &b)) {
    // A factor stays inside unless all of it comes out.
    int64_t factor = 0, scale = 0;
    if (!MatchNumber<MulNode>(e, &x, &factor) || !MatchLeast(x, &is_min, &a, &b) ||
        !MatchNumber<MulNode>(a, &y, &scale) || !as_const_int(b) || factor <= 0 ||
        *as_const_int(b) % scale == 0) {
      return PrimExpr();
    }
    const DataType dtype = e.dtype();
    return Extreme(is_min, Mul(y, InRange(dtype, __int128{scale} * factor)),
                   InRange(dtype, __int128{*as_const_int(b)} * factor));
  }
  const DataType dtype = e.dtype();
  int64_t c = 0, d = 0;
  if (const int64_t* limit = as_const_int(b)) {
    // min(c - x, limit) is c - max(x, c - limit).
    if (const auto* sub = a.as<SubNode>(); sub && as_const_int(sub->a)) {
      c = *as_const_int(sub->a);
      return Sub(sub->a, Extreme(!is_min, sub->b, InRange(dtype, __int128{c} - *limit)));
    }
    if (MatchNumber<MulNode>(a, &x, &c) && c < 0 && *limit % c == 0) {
      return Mul(Extreme(!is_min, x, make_const(dtype, *limit / c)), make_const(dtype, c));
    }
    return PrimExpr();
  }
  if (MatchNumber<FloorDivNode>(a, &x, &c) && MatchNumber<FloorDivNode>(b, &y, &d) && c == d &&
      c != 0) {
    return tir::FloorDiv(Extreme(is_min == (c > 0), x, y), make_const(dtype, c));
  }
  return PrimExpr();
}

PrimExpr AnalyzerCore::OfQuotients(const PrimExpr& e) {
  const DataType dtype = e.dtype();
  PrimExpr a, b, x, y, z;
  int64_t c = 0, d = 0, k = 0, m = 0;
  auto number = [dtype](__int128 value) { return InRange(dtype, value); };
  // (x % c + k) // c + x // c is (x + k) // c.
  if (Match<AddNode>(e, &a, &b)) {
    for (int turn = 0; turn < 2; ++turn, std::swap(a, b)) {
      if (MatchNumber<FloorDivNode>(a, &y, &c) && MatchNumber<AddNode>(y, &z, &k) &&
          MatchNumber<FloorModNode>(z, &x, &m) && m == c && MatchNumber<FloorDivNode>(b, &z, &d) &&
          d == c && k % c != 0 && SameExpr(x, z)) {
        return tir::FloorDiv(Simplify(x + number(k)), number(c));
      }
    }
  }
  if (Match<SubNode>(e, &a, &b)) {
    // (x + k) // c - (x + m) // c is ((x + m % c) % c + (k - m)) // c.
    if (MatchNumber<FloorDivNode>(a, &x, &c) && MatchNumber<FloorDivNode>(b, &y, &d) && c == d &&
        c > 0) {
      if (!MatchNumber<AddNode>(x, &a, &k)) a = x;
      if (!MatchNumber<AddNode>(y, &b, &m)) b = y;
      if (SameExpr(a, b)) {
        const int64_t shift = FloorModInt(m, c);
        const PrimExpr low = shift == 0 ? a : PrimExpr(Add(a, number(shift)));
        return tir::FloorDiv(Add(tir::FloorMod(low, number(c)), number(__int128{k} - m)),
                             number(c));
      }
    }
    // The remainder of a truncated quotient.
    auto is_whole_part = [&](const PrimExpr& part, const PrimExpr& of) {
      return MatchNumber<MulNode>(part, &y, &c) && MatchNumber<DivNode>(y, &z, &d) && c == d &&
             c != 0 && SameExpr(z, of);
    };
    if (is_whole_part(b, a)) return Mod(a, number(c));
    if (is_whole_part(a, b)) return Sub(number(0), Mod(b, number(c)));
  }
  if (Match<DivNode>(e, &a, &b) && !is_zero(b) && SameExpr(a, b)) return number(1);
  if (MatchNumber<FloorModNode>(e, &a, &d) && d > 0) {
    if (MatchNumber<MulNode>(a, &x, &c) && c > d && c % d != 0) {
      return tir::FloorMod(Mul(x, number(c % d)), number(d));
    }
    // (x * c + y) % d, where y is less than c.
    if (Match<AddNode>(a, &x, &y) && MatchNumber<MulNode>(x, &z, &c) && c > 0 && d % c == 0 &&
        c < d && ProveNonNeg(Normalize(y)) && ProveNonNeg(Normalize(number(c - 1) - y))) {
      return Add(Mul(tir::FloorMod(z, number(d / c)), number(c)), y);
    }
  }
  if (MatchNumber<MulNode>(e, &a, &c) && c < 0 && Match<SubNode>(a, &x, &y)) {
    return Mul(Simplify(y - x), number(-__int128{c}));
  }
  return PrimExpr();
}

PrimExpr AnalyzerCore::OfTruncatedOrder(const PrimExpr& e) {
  PrimExpr a, b, x, y, z;
  int64_t c = 0, d = 0, k = 0;
  if (!Match<LTNode>(e, &a, &b) || !IsIndex(a)) return PrimExpr();
  const DataType dtype = a.dtype();
  auto number = [dtype](__int128 value) { return InRange(dtype, value); };
  if (const int64_t* limit = as_const_int(b); limit && MatchNumber<DivNode>(a, &x, &c) && c > 0) {
    return LT(x, number(*limit > 0 ? __int128{c} * *limit : c * (__int128{*limit} - 1) + 1));
  }
  if (const int64_t* limit = as_const_int(a); limit && MatchNumber<DivNode>(b, &x, &c) && c > 0) {
    return LT(number(*limit >= 0 ? c * (__int128{*limit} + 1) - 1 : __int128{c} * *limit), x);
  }
  // x / c * c < x, and with a summand on the right.
  if (!MatchNumber<MulNode>(a, &y, &c) || !MatchNumber<DivNode>(y, &x, &d) || c != d || c <= 0) {
    return PrimExpr();
  }
  PrimExpr whole = b, rest;
  bool is_added = true;
  if (Match<AddNode>(b, &y, &z)) {
    whole = y, rest = z;
  } else if (Match<SubNode>(b, &y, &z)) {
    whole = y, rest = z, is_added = false;
  }
  const PrimExpr remainder = Mod(x, number(c));
  const bool is_shifted = !SameExpr(x, whole);
  if (is_shifted && !(MatchNumber<AddNode>(x, &y, &k) && SameExpr(y, whole))) return PrimExpr();
  if (!rest.defined()) return LT(number(k), remainder);
  if (is_added) return LT(number(k), Add(remainder, rest));
  return LT(rest, is_shifted ? PrimExpr(Add(remainder, number(-__int128{k}))) : remainder);
}

PrimExpr AnalyzerCore::WrittenForm(const PrimExpr& e, const PrimExpr& simple) {
  if (is_const_number(simple) || simple.as<VarNode>()) return simple;
  if (e.dtype().is_bool()) {
    const PrimExpr order = OfTruncatedOrder(e);
    return order.defined() ? order : simple;
  }
  if (!IsIndex(e)) return simple;
  if (Has<DivNode, ModNode>(e) && !Has<FloorDivNode, FloorModNode>(e) &&
      Has<FloorDivNode, FloorModNode>(simple)) {
    Truncating truncating(this);
    const PrimExpr truncated = truncating(simple);
    if (truncating.is_same) return truncated;
  }
  PrimExpr form = OfQuotients(e);
  if (form.defined()) return form;
  form = OfExtreme(e);
  if (form.defined() && ExprSize(form) <= ExprSize(simple)) return form;
  form = SharedLast(e);
  if (form.defined() && ExprSize(form) <= ExprSize(simple)) return form;
  form = FromExtreme(
      IsMinOrMax(e) && IsMinOrMax(simple) && ExprSize(e) <= ExprSize(simple) ? e : simple);
  return form.defined() ? form : simple;
}

}  // namespace arith
}  // namespace tvm
