/*!
 * \file arith/modular.cc
 * \brief Congruences: which numbers coeff * k + base the values of an expression are.
 */
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/expr/substitute.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "analyzer_core.h"

namespace tvm {
namespace arith {

using namespace tir;

namespace {

constexpr Congruence kAnything{1, 0};

Congruence Make(int64_t coeff, int64_t base) {
  return {coeff, coeff == 0 ? base : FloorModInt(base, coeff)};
}

Congruence Add(Congruence a, Congruence b) {
  return Make(std::gcd(a.coeff, b.coeff), CheckedAdd(a.base, b.base));
}

// (m k + b) (n l + c) is b c plus multiples of m n, m c and b n.
Congruence Multiply(Congruence a, Congruence b) {
  const int64_t coeff =
      std::gcd(std::gcd(CheckedMul(a.coeff, b.coeff), CheckedMul(a.coeff, b.base)),
               CheckedMul(a.base, b.coeff));
  return Make(coeff, CheckedMul(a.base, b.base));
}

Congruence Unite(Congruence a, Congruence b) {
  if (a.base > b.base) std::swap(a, b);
  return Make(std::gcd(std::gcd(a.coeff, b.coeff), CheckedAdd(b.base, -a.base)), a.base);
}

// a - b q for an integer q that nothing is known about.
Congruence Remainder(Congruence a, Congruence b) {
  return Make(std::gcd(a.coeff, std::gcd(b.coeff, b.base)), a.base);
}

Congruence Quotient(Congruence a, int64_t divisor) {
  if (divisor <= 0 || a.coeff % divisor != 0) return kAnything;
  return Make(a.coeff / divisor, FloorDivInt(a.base, divisor));
}

/*! \brief The number that an expression is, if its congruence says so. */
std::optional<int64_t> Number(Congruence c) {
  return c.coeff == 0 ? std::optional<int64_t>(c.base) : std::nullopt;
}

}  // namespace

std::optional<Congruence> IntersectCongruences(Congruence a, Congruence b) {
  if (a.coeff == 0 || b.coeff == 0) {
    if (a.coeff != 0) std::swap(a, b);
    const bool member = b.coeff == 0 ? a.base == b.base : FloorModInt(a.base, b.coeff) == b.base;
    return member ? std::optional<Congruence>(a) : std::nullopt;
  }
  const int64_t g = std::gcd(a.coeff, b.coeff), steps = b.coeff / g;
  if (FloorModInt(CheckedAdd(b.base, -a.base), g) != 0) return std::nullopt;
  const int64_t coeff = CheckedMul(a.coeff, steps);
  // The multiple of a.coeff to add to a.base, by the extended algorithm of Euclid: `inverse` times
  // a.coeff / g is 1 modulo `steps`.
  __int128 inverse = 0, next = 1, rest = steps, left = FloorModInt(a.coeff / g, steps);
  while (left != 0) {
    const __int128 q = rest / left;
    std::tie(rest, left) = std::make_pair(left, rest - q * left);
    std::tie(inverse, next) = std::make_pair(next, inverse - q * next);
  }
  const __int128 wanted = __int128{b.base - a.base} / g * inverse;
  __int128 times = wanted % steps;
  if (times < 0) times += steps;
  return Make(coeff, static_cast<int64_t>((times * a.coeff + a.base) % coeff));
}

Congruence AnalyzerCore::ModularOfAtom(AtomId id) {
  const Atom atom = atoms_[id];
  if (atom.kind == Atom::kVar) return atom.congruence;
  if (atom.congruence_epoch == epoch_) return atom.cached_congruence;
  Congruence found = kAnything;
  switch (atom.kind) {
    case Atom::kVar:
      break;
    case Atom::kOpaque: {
      WithoutAssumptions apart(&assumed_);
      found = ModularOfOpaque(atom.expr);
      break;
    }
    case Atom::kFloorMod:
      found = Remainder(Modular(atom.a), Modular(atom.b));
      break;
    case Atom::kFloorDiv:
      if (auto divisor = Number(Modular(atom.b))) found = Quotient(Modular(atom.a), *divisor);
      break;
    case Atom::kMinZero:
      found = Unite(Modular(atom.a), {0, 0});
      break;
  }
  // Two congruences that exclude each other belong to code that never runs.
  found = IntersectCongruences(found, atom.congruence).value_or(atom.congruence);
  atoms_[id].cached_congruence = found;
  atoms_[id].congruence_epoch = epoch_;
  return found;
}

Congruence AnalyzerCore::Modular(const Poly& p) {
  Congruence sum{0, 0};
  for (const Term& t : p.terms) {
    Congruence product{0, t.coef};
    for (AtomId id : std::vector<AtomId>(ring_.Atoms(t.mono))) {
      product = Multiply(product, ModularOfAtom(id));
    }
    sum = Add(sum, product);
  }
  return sum;
}

Congruence AnalyzerCore::ModularOfOpaque(const PrimExpr& e) {
  if (const auto* op = e.as<CastNode>()) return ModularOfCast(op);
  if (const auto* op = e.as<LetNode>()) {
    return ModularOfExpr(Substitute(op->body, Map<Var, PrimExpr>{{op->var, op->value}}));
  }
  if (const auto* op = e.as<SelectNode>()) {
    return Unite(ModularOfExpr(op->true_value), ModularOfExpr(op->false_value));
  }
  if (const auto* op = e.as<DivNode>()) {
    // Multiples of the divisor have one quotient, however it is rounded.
    const Congruence a = ModularOfExpr(op->a);
    const auto divisor = Number(ModularOfExpr(op->b));
    return divisor && a.base == 0 ? Quotient(a, *divisor) : kAnything;
  }
  if (const auto* op = e.as<ModNode>()) {
    const Congruence found = Remainder(ModularOfExpr(op->a), ModularOfExpr(op->b));
    // Users read `base` as the least value that is not negative; such a remainder may be negative.
    return found.base == 0 ? found : kAnything;
  }
  if (const auto* op = e.as<MulNode>()) {
    return Multiply(ModularOfExpr(op->a), ModularOfExpr(op->b));
  }
  const auto* call = e.as<CallNode>();
  if (call == nullptr) return kAnything;
  if (call->op.same_as(builtin::if_then_else())) {
    return Unite(ModularOfExpr(call->args[1]), ModularOfExpr(call->args[2]));
  }
  if (call->op.same_as(builtin::likely())) return ModularOfExpr(call->args[0]);
  if (call->op.same_as(builtin::shift_right())) {
    const auto by = Number(ModularOfExpr(call->args[1]));
    if (!by || *by < 0 || *by > 62) return kAnything;
    return Quotient(ModularOfExpr(call->args[0]), int64_t{1} << *by);
  }
  if (call->op.same_as(builtin::shift_left())) {
    const auto by = Number(ModularOfExpr(call->args[1]));
    if (!by || *by < 0 || *by > 62) return kAnything;
    return Multiply(ModularOfExpr(call->args[0]), {0, int64_t{1} << *by});
  }
  if (call->op.same_as(builtin::bitwise_and())) {
    // The low bits of a number are its remainder.
    for (int i = 0; i < 2; ++i) {
      const auto mask = Number(ModularOfExpr(call->args[i]));
      if (mask && *mask > 0 && *mask < std::numeric_limits<int64_t>::max() &&
          (*mask & (*mask + 1)) == 0) {
        return Remainder(ModularOfExpr(call->args[1 - i]), {0, *mask + 1});
      }
    }
  }
  return kAnything;
}

Congruence AnalyzerCore::ModularOfCast(const CastNode* cast) {
  PrimExpr value = cast->value;
  const DataType to = cast->dtype;
  if (!to.is_scalar() || !(to.is_int() || to.is_uint())) return kAnything;
  // Integers that the mantissa holds come back from a float as they were.
  if (const auto* inner = value.as<CastNode>(); inner != nullptr && value.dtype().is_float()) {
    if (!inner->value.dtype().is_int() && !inner->value.dtype().is_uint()) return kAnything;
    const int mantissa = value.dtype().bits() == 64 ? 53 : value.dtype().bits() == 32 ? 24 : 0;
    const Interval bound = BoundOfExpr(inner->value);
    const int64_t largest = int64_t{1} << mantissa;
    if (bound.lo < -largest || bound.hi > largest) return kAnything;
    value = inner->value;
  }
  if (!value.dtype().is_int() && !value.dtype().is_uint()) return kAnything;
  const Congruence found = ModularOfExpr(value);
  const Interval bound = BoundOfExpr(value), type = IntervalOfType(to);
  bool fits = bound.lo >= type.lo && bound.hi <= type.hi;
  if (value.dtype().is_uint() && to.is_int()) fits = fits && bound.HasUpper();
  // What does not fit changes by multiples of the number of values that the type has.
  return fits || to.bits() > 62 ? (fits ? found : kAnything)
                                : Remainder(found, {0, int64_t{1} << to.bits()});
}

Congruence AnalyzerCore::ModularOfExpr(const PrimExpr& e) {
  if (!e.dtype().is_scalar()) return kAnything;
  try {
    if (e.dtype().is_int()) return Modular(Reduce(Normalize(e)));
    if (!e.dtype().is_uint()) return kAnything;
    if (const auto* op = e.as<IntImmNode>()) return {0, op->value};
    if (const auto* op = e.as<VarNode>()) return ModularOfAtom(AtomOfVar(GetRef<Var>(op)));
    return ModularOfOpaque(e);
  } catch (const PolyOverflow&) {
    return kAnything;
  }
}

void AnalyzerCore::AddCongruence(const PrimExpr& remainder, const PrimExpr& value) {
  PrimExpr dividend, divisor;
  if (const auto* op = remainder.as<FloorModNode>()) {
    dividend = op->a, divisor = op->b;
  } else if (const auto* op = remainder.as<ModNode>()) {
    dividend = op->a, divisor = op->b;
  } else {
    return;
  }
  const auto by = Number(ModularOfExpr(divisor)), left = Number(ModularOfExpr(value));
  if (!by || !left || *by <= 1) return;
  // One variable plus a number.
  Poly p = Reduce(Normalize(dividend));
  const int64_t offset = p.ConstTerm();
  p = PolyRing::AddConst(p, -offset);
  if (p.terms.size() != 1 || p.terms[0].coef != 1) return;
  const std::vector<AtomId> ids = ring_.Atoms(p.terms[0].mono);
  if (ids.size() != 1) return;
  Congruence& known = atoms_[ids[0]].congruence;
  const auto both = IntersectCongruences(known, Make(*by, CheckedAdd(*left, -offset)));
  if (!both) return;  // code under a condition that never holds
  congruent_.push_back({ids[0], known});
  known = *both;
  ++epoch_;
}

}  // namespace arith
}  // namespace tvm
