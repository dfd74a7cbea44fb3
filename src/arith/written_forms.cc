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

/*!
 * \brief What two operands have in common comes last: min(min(x, y), min(z, y)) as
 * min(min(x, z), y), min(max(x, y), max(x, z)) as max(min(y, z), x), and min(x, min(y, x)) as
 * min(y, x); likewise for maxima.
 */
PrimExpr SharedLast(const PrimExpr& e) {
  bool is_min = false;
  PrimExpr a, b;
  if (!MatchLeast(e, &is_min, &a, &b)) return PrimExpr();
  PrimExpr p, q, r, s;
  bool left = false, right = false;
  if (MatchLeast(a, &left, &p, &q) && left == is_min && (SameExpr(p, b) || SameExpr(q, b))) {
    return a;
  }
  if (MatchLeast(b, &right, &r, &s) && right == is_min && (SameExpr(r, a) || SameExpr(s, a))) {
    return b;
  }
  if (p.defined() && r.defined() && left == right) {
    auto shared = [&](const PrimExpr& one, const PrimExpr& other, const PrimExpr& common) {
      return Extreme(left, Extreme(is_min, one, other), common);
    };
    if (SameExpr(p, r)) return shared(q, s, p);
    if (SameExpr(p, s)) return shared(q, r, p);
    if (SameExpr(q, r)) return shared(p, s, q);
    if (SameExpr(q, s)) return shared(p, r, q);
  }
  return PrimExpr();
}

/*! \brief The quotient that is multiplied by its divisor again, `x // c * c` or `x / c * c`. */
template <typename Quotient>
bool MatchWholePart(const PrimExpr& e, PrimExpr* x, int64_t* divisor) {
  PrimExpr quotient;
  int64_t again = 0;
  return MatchNumber<MulNode>(e, &quotient, divisor) &&
         MatchNumber<Quotient>(quotient, x, &again) && again == *divisor && *divisor > 0;
}

/*! \brief Whether `sum` is `part + rest` or `part - rest`; `is_added` says which. */
bool MatchSummand(const PrimExpr& sum, const PrimExpr& part, PrimExpr* rest, bool* is_added) {
  PrimExpr a, b;
  *is_added = Match<AddNode>(sum, &a, &b);
  if (*is_added && SameExpr(b, part)) std::swap(a, b);
  if (!*is_added && !Match<SubNode>(sum, &a, &b)) return false;
  *rest = b;
  return SameExpr(a, part);
}

/*! \brief Operands in the order in which rules leave them, where `simple` has another one. */
PrimExpr InOrder(const PrimExpr& e, const PrimExpr& simple) {
  PrimExpr a, b, c, d, y, z;
  if (Match<AddNode>(e, &a, &b)) {
    // An extreme, and a product with the divisor of a remainder, come first.
    int64_t divisor = 0, factor = 0;
    const bool is_sum = Match<AddNode>(simple, &c, &d);
    if (is_sum && IsMinOrMax(b) && !IsMinOrMax(a)) return Add(b, a);
    if (is_sum && MatchNumber<MulNode>(b, &z, &factor) &&
        (MatchNumber<FloorModNode>(a, &y, &divisor) || MatchNumber<ModNode>(a, &y, &divisor)) &&
        divisor == factor) {
      return Add(b, a);
    }
    if (is_sum && SameExpr(a, d) && !SameExpr(a, c)) return SameExpr(b, c) ? e : Add(a, c);
  }
  // x - (y - z) is x + z - y.
  if (Match<SubNode>(e, &a, &b) && Match<SubNode>(b, &y, &z) && Match<AddNode>(simple, &c, &d) &&
      SameExpr(d, z) && Match<SubNode>(c, &c, &d) && SameExpr(c, a) && SameExpr(d, y)) {
    return Sub(Add(a, z), y);
  }
  bool is_min = false, still_min = false;
  if (MatchLeast(e, &is_min, &a, &b) && as_const_int(a) && MatchLeast(simple, &still_min, &c, &d) &&
      is_min == still_min && SameExpr(a, d)) {
    return SameExpr(b, c) ? e : Extreme(is_min, a, c);
  }
  return PrimExpr();
}

/*! \brief `a < b` or `a <= b`, from whichever side it is written. */
bool MatchOrder(const PrimExpr& e, PrimExpr* a, PrimExpr* b, bool* is_strict) {
  *is_strict = e.as<LTNode>() || e.as<GTNode>();
  return Match<LTNode>(e, a, b) || Match<LENode>(e, a, b) || Match<GTNode>(e, b, a) ||
         Match<GENode>(e, b, a);
}

/*! \brief An order with a number below: `number < a` or `number <= a`. */
bool MatchLowerLimit(const PrimExpr& e, PrimExpr* a, int64_t* number, bool* is_strict) {
  PrimExpr low;
  if (!MatchOrder(e, &low, a, is_strict) || !as_const_int(low)) return false;
  *number = *as_const_int(low);
  return true;
}

/*! \brief An order with a number above: `a < number` or `a <= number`. */
bool MatchUpperLimit(const PrimExpr& e, PrimExpr* a, int64_t* number, bool* is_strict) {
  PrimExpr high;
  if (!MatchOrder(e, a, &high, is_strict) || !as_const_int(high)) return false;
  *number = *as_const_int(high);
  return true;
}

/*! \brief Conditions on a quotient and on the remainder beside it as conditions on the number. */
PrimExpr OfBothDigits(const PrimExpr& a, const PrimExpr& b) {
  PrimExpr x, y, quotient, remainder, value;
  int64_t c = 0, d = 0, k = 0;
  bool is_strict = false;
  if (!MatchNumber<EQNode>(a, &quotient, &k) || !MatchNumber<FloorDivNode>(quotient, &x, &c) ||
      c <= 0) {
    return PrimExpr();
  }
  auto of_x = [&] {
    return MatchNumber<FloorModNode>(remainder, &y, &d) && d == c && SameExpr(x, y);
  };
  auto number = [&](__int128 n) { return InRange(x.dtype(), n); };
  const __int128 tile = __int128{k} * c;
  int64_t m = 0;
  if (MatchNumber<EQNode>(b, &remainder, &m) && of_x()) return EQ(x, number(tile + m));
  if (MatchUpperLimit(b, &remainder, &m, &is_strict) && of_x()) {
    const PrimExpr end = number(tile + m);
    return And(LE(number(tile), x), is_strict ? PrimExpr(LT(x, end)) : PrimExpr(LE(x, end)));
  }
  if (MatchLowerLimit(b, &remainder, &m, &is_strict) && of_x()) {
    const PrimExpr begin = number(tile + m);
    return And(is_strict ? PrimExpr(LT(begin, x)) : PrimExpr(LE(begin, x)),
               LT(x, number(tile + c)));
  }
  return PrimExpr();
}

/*! \brief `0 <= x - y * c && x - y * c < c` says what the quotient is: `y == x // c`. */
PrimExpr OfRemainderLimits(const PrimExpr& a, const PrimExpr& b) {
  PrimExpr low, high, x, y, scaled;
  int64_t begin = 0, end = 0, c = 0;
  bool is_above = false, is_below = false;
  if (!MatchLowerLimit(a, &low, &begin, &is_above) || !MatchUpperLimit(b, &high, &end, &is_below) ||
      !SameExpr(low, high) || begin != 0 || is_above || !is_below) {
    return PrimExpr();
  }
  if (Match<SubNode>(low, &x, &scaled) && MatchNumber<MulNode>(scaled, &y, &c) && c == end) {
    return EQ(y, tir::FloorDiv(x, make_const(x.dtype(), c)));
  }
  if (Match<AddNode>(low, &x, &scaled) && MatchNumber<MulNode>(scaled, &y, &c) && c == -end) {
    return EQ(y, tir::FloorDiv(x, make_const(x.dtype(), end)));
  }
  return PrimExpr();
}

/*! \brief `x < 16 && x % 8 < 3` reaches 10 only. */
PrimExpr OfLastTile(const PrimExpr& a, const PrimExpr& b) {
  PrimExpr x, y, remainder;
  int64_t end = 0, width = 0, c = 0;
  bool is_strict = false, is_below = false;
  if (!MatchUpperLimit(a, &x, &end, &is_strict) ||
      !MatchUpperLimit(b, &remainder, &width, &is_below) || !is_below ||
      !MatchNumber<FloorModNode>(remainder, &y, &c) || c <= 0 || !SameExpr(x, y)) {
    return PrimExpr();
  }
  const __int128 past = __int128{end} + (is_strict ? 0 : 1);
  const __int128 into = (past % c + c) % c;
  // What is left of the last tile behind its first `width` numbers.
  const __int128 cut = into == 0 ? past - c + width : into > width ? past - into + width : past;
  return cut == past ? PrimExpr() : PrimExpr(And(LT(x, InRange(x.dtype(), cut)), b));
}

/*! \brief Conjunctions or alternatives of several, from the left. */
template <typename Node, typename Ref>
PrimExpr FromLeft(const PrimExpr& e) {
  PrimExpr a, b, c, d;
  if (!Match<Node>(e, &a, &b) || !Match<Node>(b, &c, &d)) return e;
  return FromLeft<Node, Ref>(Ref(FromLeft<Node, Ref>(Ref(a, c)), d));
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
  if (MatchLeast(e, &is_min, &x, &y)) {
    const auto *left = x.as<SelectNode>(), *right = y.as<SelectNode>();
    if (left == nullptr || right == nullptr || !SameExpr(left->condition, right->condition)) {
      return PrimExpr();
    }
    a = SimplifyAsMet(Extreme(is_min, left->true_value, right->true_value));
    b = SimplifyAsMet(Extreme(is_min, left->false_value, right->false_value));
    return Select(Simplify(left->condition), a, b);
  }
  // What is added goes into both operands, and a number to the right; differences stay in order.
  if (Match<AddNode>(e, &x, &y) && IsMinOrMax(x) != IsMinOrMax(y)) {
    if (IsMinOrMax(y)) std::swap(x, y);
    MatchLeast(x, &is_min, &a, &b);
    a = SimplifyAsMet(a + y);
    b = SimplifyAsMet(b + y);
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
    if (const auto* sub = a.as<SubNode>(); sub && as_const_int(sub->a) && *limit != 0) {
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
  if (MatchNumber<DivNode>(a, &x, &c) && MatchNumber<DivNode>(b, &y, &d) && c == d && c != 0) {
    return Div(Extreme(is_min == (c > 0), x, y), make_const(dtype, c));
  }
  if (MatchNumber<MulNode>(a, &x, &c) && MatchNumber<MulNode>(b, &y, &d) && c == d && c < 0) {
    return Mul(Extreme(!is_min, x, y), make_const(dtype, c));
  }
  return PrimExpr();
}

PrimExpr AnalyzerCore::OfQuotients(const PrimExpr& e) {
  const DataType dtype = e.dtype();
  PrimExpr a, b, x, y, z;
  int64_t c = 0, d = 0, k = 0, m = 0;
  auto number = [dtype](__int128 value) { return InRange(dtype, value); };
  const auto parity = [&](const PrimExpr& of) { return tir::FloorMod(of, number(2)); };
  const auto half = [&](const PrimExpr& of) { return tir::FloorDiv(of, number(2)); };
  auto match_shifted = [&](const PrimExpr& of, PrimExpr* base, int64_t* shift) {
    *shift = 0;
    if (!MatchNumber<AddNode>(of, base, shift)) *base = of;
  };
  if (Match<AddNode>(e, &a, &b) && MatchNumber<FloorModNode>(b, &y, &d) && d == 2) {
    // x // 2 + x % 2 is (x + 1) // 2, and the parities of neighbours add up to 1.
    if (MatchNumber<FloorDivNode>(a, &x, &c) && c == 2 && SameExpr(x, y)) {
      return half(Simplify(x + number(1)));
    }
    if (MatchNumber<FloorModNode>(a, &x, &c) && c == 2) {
      match_shifted(x, &x, &k);
      match_shifted(y, &y, &m);
      if (SameExpr(x, y) && (k == 0) != (m == 0) && FloorModInt(k - m, 2) == 1) return number(1);
    }
  }
  if (Match<SubNode>(e, &a, &b) && MatchNumber<FloorDivNode>(a, &x, &c) && c == 2) {
    match_shifted(x, &x, &k);
    if (k == 1 && MatchNumber<FloorModNode>(b, &y, &d) && d == 2 && SameExpr(x, y)) return half(x);
    if (MatchNumber<FloorDivNode>(b, &y, &d) && d == 2) {
      match_shifted(y, &y, &m);
      if (SameExpr(x, y)) {
        const int64_t odd = FloorModInt(k, 2) - FloorModInt(m, 2);
        return Simplify(parity(x) * number(odd) +
                        number(__int128{FloorDivInt(k, 2)} - FloorDivInt(m, 2)));
      }
    }
  }
  if (MatchNumber<FloorDivNode>(e, &a, &c) && c == 2 && MatchNumber<AddNode>(a, &x, &k) && k == 1 &&
      MatchNumber<FloorModNode>(x, &y, &d) && d == 2) {
    return x;
  }
  // The same factor of two products comes out.
  if (Match<AddNode>(e, &a, &b) && MatchNumber<MulNode>(a, &x, &c) &&
      MatchNumber<MulNode>(b, &y, &d) && c == d && !SameExpr(x, y)) {
    return Mul(Add(x, y), number(c));
  }
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
  // x * k - (x + y) // c * (c * k) is ((x + y) % c - y) * k.
  if (Match<SubNode>(e, &a, &b)) {
    for (bool turned : {false, true}) {
      const PrimExpr& term = turned ? b : a;
      const PrimExpr& whole = turned ? a : b;
      if (!MatchNumber<MulNode>(term, &x, &k)) x = term, k = 1;
      bool is_added = false;
      if (!MatchNumber<MulNode>(whole, &y, &m) || !MatchNumber<FloorDivNode>(y, &y, &c) || c <= 0 ||
          k == 0 || __int128{c} * k != m || !MatchSummand(y, x, &z, &is_added)) {
        continue;
      }
      const PrimExpr low = tir::FloorMod(y, number(c));
      PrimExpr form = is_added ? PrimExpr(turned ? Sub(z, low) : Sub(low, z)) : Add(low, z);
      if (turned && !is_added && k == 1) return Sub(Sub(number(0), low), z);
      const int64_t factor = turned && !is_added ? -k : k;
      return factor == 1 ? form : PrimExpr(Mul(form, number(factor)));
    }
  }
  if (MatchNumber<FloorDivNode>(e, &a, &d) && d > 0) {
    k = 0;
    const bool is_added = MatchNumber<AddNode>(a, &x, &k);
    if (!is_added && MatchNumber<SubNode>(a, &x, &k)) k = -k;
    // A number that reaches into the tile of a product stays where it is.
    if (k != 0 && MatchNumber<MulNode>(x, &y, &c) && c > 0 && c < d && d % c == 0 &&
        FloorModInt(k, d) >= c) {
      return is_added ? e : PrimExpr(tir::FloorDiv(Add(x, number(k)), number(d)));
    }
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
  PrimExpr a, b, x, y;
  // The other orders by this one: a <= b is no b < a.
  if (Match<GTNode>(e, &a, &b)) return OfTruncatedOrder(LT(b, a));
  const bool is_less_equal = Match<LENode>(e, &a, &b);
  if (is_less_equal || Match<GENode>(e, &a, &b)) {
    const PrimExpr contrary = OfTruncatedOrder(is_less_equal ? LT(b, a) : LT(a, b));
    return Match<LTNode>(contrary, &x, &y) ? PrimExpr(LE(y, x)) : PrimExpr();
  }
  int64_t c = 0;
  if (!Match<LTNode>(e, &a, &b) || !IsIndex(a)) return PrimExpr();
  auto number = [dtype = a.dtype()](__int128 value) { return InRange(dtype, value); };
  if (const int64_t* limit = as_const_int(b); limit && MatchNumber<DivNode>(a, &x, &c) && c > 0) {
    return LT(x, number(*limit > 0 ? __int128{c} * *limit : c * (__int128{*limit} - 1) + 1));
  }
  if (const int64_t* limit = as_const_int(a); limit && MatchNumber<DivNode>(b, &x, &c) && c > 0) {
    return LT(number(*limit >= 0 ? c * (__int128{*limit} + 1) - 1 : __int128{c} * *limit), x);
  }
  // x / c * c < x, and with a summand on the right.
  PrimExpr remainder;
  if (MatchWholePart<DivNode>(a, &x, &c)) {
    remainder = Mod(x, number(c));
  } else if (MatchWholePart<FloorDivNode>(a, &x, &c)) {
    remainder = tir::FloorMod(x, number(c));
  } else {
    return PrimExpr();
  }
  int64_t shift = 0;
  PrimExpr unshifted = x, rest;
  if (MatchNumber<AddNode>(x, &y, &shift)) unshifted = y;
  bool is_added = true;
  if (!SameExpr(b, unshifted) && !MatchSummand(b, unshifted, &rest, &is_added)) return PrimExpr();
  if (!rest.defined()) {
    return remainder.as<ModNode>() ? PrimExpr(LT(number(shift), remainder)) : PrimExpr();
  }
  if (is_added) return LT(number(shift), Add(remainder, rest));
  return LT(rest, shift != 0 ? PrimExpr(Add(remainder, number(-__int128{shift}))) : remainder);
}

PrimExpr AnalyzerCore::OfConditions(const PrimExpr& e, const PrimExpr& simple) {
  PrimExpr a, b, x, y;
  bool is_strict = false, is_min = false;
  if (MatchOrder(simple, &a, &b, &is_strict)) {
    // An order of an extreme is one of either operand, or of both.
    auto less = [is_strict](const PrimExpr& low, const PrimExpr& high) {
      return is_strict ? PrimExpr(LT(low, high)) : PrimExpr(LE(low, high));
    };
    if (MatchLeast(a, &is_min, &x, &y)) {
      return SimplifyAsMet(is_min ? PrimExpr(Or(less(x, b), less(y, b)))
                                  : PrimExpr(And(less(x, b), less(y, b))));
    }
    if (MatchLeast(b, &is_min, &x, &y)) {
      return SimplifyAsMet(is_min ? PrimExpr(And(less(a, x), less(a, y)))
                                  : PrimExpr(Or(less(a, x), less(a, y))));
    }
    return simple;
  }
  if (Match<OrNode>(simple, &a, &b)) return FromLeft<OrNode, Or>(simple);
  if (!Match<AndNode>(simple, &a, &b)) return simple;
  PrimExpr form = OfBothDigits(a, b);
  if (!form.defined()) form = OfBothDigits(b, a);
  if (!form.defined()) form = OfLastTile(a, b);
  if (!form.defined() && Match<AndNode>(e, &x, &y)) {
    form = OfRemainderLimits(x, y);
    if (!form.defined()) form = OfRemainderLimits(y, x);
  }
  return form.defined() ? form : FromLeft<AndNode, And>(simple);
}

PrimExpr AnalyzerCore::WrittenForm(const PrimExpr& e, const PrimExpr& simple) {
  if (is_const_number(simple) || simple.as<VarNode>()) return simple;
  if (e.dtype().is_bool()) {
    PrimExpr form = OfTruncatedOrder(e);
    return form.defined() ? form : OfConditions(e, simple);
  }
  if (!IsIndex(e)) return simple;
  if (Has<DivNode, ModNode>(e) && !Has<FloorDivNode, FloorModNode>(e) &&
      Has<FloorDivNode, FloorModNode>(simple)) {
    Truncating truncating(this);
    const PrimExpr truncated = truncating(simple);
    if (truncating.is_same) return truncated;
  }
  PrimExpr form = OfQuotients(e);
  if (!form.defined()) form = InOrder(e, simple);
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
