/*!
 * \file arith/normal_form.cc
 * \brief From expressions to polynomials: quotients, remainders and minima over them.
 */
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "analyzer_core.h"

namespace tvm {
namespace arith {

using namespace tir;

namespace {

// Larger products of sums stay products: expanding them helps no proof that we know of.
constexpr size_t kMaxProductTerms = 200;
// Of longer minima only constants are compared with each other.
constexpr size_t kMaxComparedOperands = 5;
// Masks whose number of values a number holds.
constexpr int64_t kLargestMask = int64_t{1} << 61;

/*! \brief What divides all coefficients of a sum and a constant that is no zero; 1 for others. */
int64_t CommonFactor(const Poly& a, const Poly& b) {
  if (!b.IsConst() || b.IsZero() || a.IsZero()) return 1;
  return std::gcd(PolyRing::Content(a), b.terms[0].coef);
}

}  // namespace

std::optional<AnalyzerCore::Digit> AnalyzerCore::DigitOf(AtomId id) const {
  const Atom& rest = atoms_[id];
  if (rest.kind != Atom::kFloorMod || rest.a.terms.size() != 1 || rest.a.terms[0].coef != 1 ||
      !rest.b.IsConst()) {
    return std::nullopt;
  }
  const std::vector<AtomId>& inner = ring_.Atoms(rest.a.terms[0].mono);
  if (inner.size() != 1) return std::nullopt;
  const Atom& quotient = atoms_[inner[0]];
  if (quotient.kind != Atom::kFloorDiv || !quotient.b.IsConst()) return std::nullopt;
  return Digit{quotient.a, quotient.b.ConstTerm(), rest.b.ConstTerm()};
}

void AnalyzerCore::RememberOffset(const Poly& numerator, const Poly& divisor,
                                  const Poly& quotient) {
  const int64_t offset = numerator.ConstTerm(), d = divisor.IsConst() ? divisor.ConstTerm() : 0;
  if (d <= 0 || FloorModInt(offset, d) == 0) return;
  const int64_t outside = FloorDivInt(offset, d);
  for (const Term& t : quotient.terms) {
    const std::vector<AtomId>& atoms = ring_.Atoms(t.mono);
    if (atoms.size() != 1) continue;
    const Atom& atom = atoms_[atoms[0]];
    if (atom.kind != Atom::kFloorDiv || atom.b != divisor ||
        atom.a.ConstTerm() != FloorModInt(offset, d)) {
      continue;
    }
    // One that is met with several offsets has none of its own.
    auto [it, is_new] = inner_offsets_.emplace(atoms[0], outside);
    if (!is_new && it->second != outside) it->second = 0;
  }
}

Poly AnalyzerCore::Normalize(const PrimExpr& e) {
  // Only shared nodes can be met twice in one call, so only they are worth remembering.
  if (e.use_count() <= 1 || e.as<IntImmNode>() || e.as<VarNode>()) return NormalizeUncached(e);
  auto it = memo_.find(e.get());
  if (it != memo_.end()) return it->second.poly;
  Poly p = NormalizeUncached(e);
  if (memo_depth_ > 0) memo_.emplace(e.get(), Remembered{e, p});
  return p;
}

Poly AnalyzerCore::NormalizeUncached(const PrimExpr& e) {
  if (const auto* op = e.as<IntImmNode>()) return PolyRing::Const(op->value);
  if (const auto* op = e.as<VarNode>()) {
    if (const PrimExpr* value = ValueOf(op)) return Normalize(*value);
    AtomId id = AtomOfVar(GetRef<Var>(op));
    const Interval bound = BoundOfAtom(id);
    if (bound.lo == bound.hi) return PolyRing::Const(bound.lo);
    return ring_.FromAtom(id);
  }
  if (IsIndex(e)) {
    // Operands in order, left first: atoms are numbered as they are met, and printed in that order.
    if (const auto* op = e.as<AddNode>()) {
      Poly a = Normalize(op->a);
      return PolyRing::Add(a, Normalize(op->b));
    }
    if (const auto* op = e.as<SubNode>()) {
      Poly a = Normalize(op->a);
      return PolyRing::Sub(a, Normalize(op->b));
    }
    if (const auto* op = e.as<MulNode>()) {
      // Of two numbers the lesser times the greater is their product.
      const PrimExpr *low = nullptr, *high = nullptr;
      for (const PrimExpr* side : {&op->a, &op->b}) {
        if (side->as<MinNode>()) low = side;
        if (side->as<MaxNode>()) high = side;
      }
      if (low && high) {
        const auto* min = low->as<MinNode>();
        const auto* max = high->as<MaxNode>();
        if ((SameExpr(min->a, max->a) && SameExpr(min->b, max->b)) ||
            (SameExpr(min->a, max->b) && SameExpr(min->b, max->a))) {
          return Normalize(Mul(min->a, min->b));
        }
      }
      Poly a = Normalize(op->a), b = Normalize(op->b);
      if (a.terms.size() * b.terms.size() <= kMaxProductTerms) {
        Poly p = ring_.Mul(a, b);
        return products_.empty() ? p : Reduce(std::move(p));
      }
      return ring_.FromAtom(OpaqueAtom(Mul(Emit(a, e.dtype()), Emit(b, e.dtype()))));
    }
    if (const auto* op = e.as<FloorDivNode>()) {
      Poly a = Normalize(op->a);
      const Poly b = Normalize(op->b);
      Poly quotient = FloorDiv(a, b);
      if (memo_depth_ > 0) RememberOffset(a, b, quotient);
      if (memo_depth_ > 0 && op->a.as<FloorModNode>() && quotient.terms.size() == 1) {
        const std::vector<AtomId>& atoms = ring_.Atoms(quotient.terms[0].mono);
        if (atoms.size() == 1 && DigitOf(atoms[0])) divided_rests_.insert(atoms[0]);
      }
      return quotient;
    }
    if (const auto* op = e.as<FloorModNode>()) {
      Poly a = Normalize(op->a);
      return FloorMod(a, Normalize(op->b));
    }
    const auto* min = e.as<MinNode>();
    const auto* max = e.as<MaxNode>();
    if (min || max) {
      Poly a = Normalize(min ? min->a : max->a), b = Normalize(min ? min->b : max->b);
      if (min) return Least(a, b);
      return PolyRing::Negate(Least(PolyRing::Negate(a), PolyRing::Negate(b)));
    }
    if (const auto* op = e.as<CallNode>()) {
      if (std::optional<Poly> number = NormalizeBits(op)) return *number;
    }
    if (const auto* op = e.as<DivNode>()) {
      Poly a = Normalize(op->a), b = Normalize(op->b);
      Poly exact;
      // Without a rest it does not matter how quotients are rounded.
      if (b.terms.size() == 1 && !HoldsData(a) && ring_.DivideByTerm(a, b.terms[0], &exact))
        return exact;
      if (ProveNonNeg(a) && ProveNonNeg(b) && !b.IsZero()) {
        Poly quotient = FloorDiv(a, b);
        if (ProvePositive(b) || !(quotient == CompoundAtom(Atom::kFloorDiv, a, b))) return quotient;
      }
      // A common factor does not matter either.
      if (const int64_t common = CommonFactor(a, b); common > 1 && !HoldsData(a)) {
        ring_.DivideByTerm(a, {kUnitMono, common}, &exact);
        return ring_.FromAtom(OpaqueAtom(
            Div(Emit(exact, e.dtype()), make_const(e.dtype(), b.terms[0].coef / common))));
      }
    }
    if (const auto* op = e.as<ModNode>()) {
      Poly a = Normalize(op->a), b = Normalize(op->b);
      Poly exact;
      if (b.IsConst() && !b.IsZero() && !HoldsData(a) && ring_.DivideByTerm(a, b.terms[0], &exact))
        return Poly();
      if (a.IsConst() && b.IsConst() && !b.IsZero()) {
        return PolyRing::Const(a.ConstTerm() % b.ConstTerm());
      }
      // The sign of a remainder is that of the dividend.
      if (b.IsConst() && b.ConstTerm() < 0 && Fits(PolyRing::Negate(b), e.dtype())) {
        return Normalize(Mod(op->a, make_const(e.dtype(), -b.ConstTerm())));
      }
      if (ProveNonNeg(a) && ProvePositive(b)) return FloorMod(a, b);
      if (const int64_t common = CommonFactor(a, b); common > 1 && !HoldsData(a)) {
        ring_.DivideByTerm(a, {kUnitMono, common}, &exact);
        const AtomId rest = OpaqueAtom(
            Mod(Emit(exact, e.dtype()), make_const(e.dtype(), b.terms[0].coef / common)));
        return ring_.MulTerm(ring_.FromAtom(rest), {kUnitMono, common});
      }
    }
    if (const auto* op = e.as<CastNode>()) {
      // Widening keeps the value, but for narrow data whose sums may have wrapped around before.
      const DataType narrow = op->value.dtype();
      if (IsIndex(op->value) && narrow.bits() <= e.dtype().bits()) {
        Poly value = Normalize(op->value);
        if (narrow.bits() >= 32 || Fits(value, narrow) || !HoldsData(value)) return value;
      }
    }
  }
  PrimExpr simple = SimplifyOther(e);
  if (const auto* imm = simple.as<IntImmNode>()) return PolyRing::Const(imm->value);
  if (!simple.same_as(e) && IsIndex(simple) &&
      (simple.as<AddNode>() || simple.as<SubNode>() || simple.as<MulNode>() ||
       simple.as<VarNode>() || simple.as<FloorDivNode>() || simple.as<FloorModNode>() ||
       simple.as<MinNode>() || simple.as<MaxNode>())) {
    return Normalize(simple);
  }
  return ring_.FromAtom(OpaqueAtom(simple));
}

// Splits off the part that b divides visibly: r == quotient * b + rest.
bool AnalyzerCore::ReduceFloorDiv(const Poly& r, const Poly& b, Poly* quotient, Poly* rest) {
  *quotient = Poly();
  *rest = r;
  if (b.terms.size() == 1) {
    const Term den = b.terms[0];
    if (den.coef <= 0) return false;
    Poly keep;
    for (const Term& t : r.terms) {
      MonoId mono;
      if (!ring_.DivMono(t.mono, den.mono, &mono)) {
        keep.terms.push_back(t);
        continue;
      }
      int64_t q = t.mono == kUnitMono ? FloorDivInt(t.coef, den.coef) : t.coef / den.coef;
      *quotient = PolyRing::Add(*quotient, PolyRing::FromTerm({mono, q}));
      int64_t left = t.coef - q * den.coef;
      if (left != 0) keep.terms.push_back({t.mono, left});
    }
    *rest = std::move(keep);
    return !quotient->IsZero();
  }
  // Long division by the term of highest degree, kept only while the dividend gets shorter.
  const Term* lead = &b.terms[0];
  for (const Term& t : b.terms) {
    if (ring_.Atoms(t.mono).size() > ring_.Atoms(lead->mono).size()) lead = &t;
  }
  for (bool progress = true; progress;) {
    progress = false;
    for (const Term& t : rest->terms) {
      MonoId mono;
      if (t.coef % lead->coef != 0 || !ring_.DivMono(t.mono, lead->mono, &mono)) continue;
      Term q{mono, t.coef / lead->coef};
      Poly next = PolyRing::Sub(*rest, ring_.MulTerm(b, q));
      if (next.terms.size() >= rest->terms.size()) continue;
      *quotient = PolyRing::Add(*quotient, PolyRing::FromTerm(q));
      *rest = std::move(next);
      progress = true;
      break;
    }
  }
  return !quotient->IsZero();
}

namespace {

/*! \brief Write r == g * high + low, where low is what g does not divide. */
void SplitByFactor(PolyRing* ring, const Poly& r, Term g, Poly* high, Poly* low) {
  *high = Poly();
  *low = Poly();
  for (const Term& t : r.terms) {
    MonoId mono;
    if (g.mono == kUnitMono && t.mono == kUnitMono) {
      // The remainder of a constant is taken so that low stays in [0, g).
      int64_t q = FloorDivInt(t.coef, g.coef);
      *high = PolyRing::AddConst(*high, q);
      *low = PolyRing::AddConst(*low, t.coef - q * g.coef);
    } else if (t.coef % g.coef == 0 && ring->DivMono(t.mono, g.mono, &mono)) {
      *high = PolyRing::Add(*high, PolyRing::FromTerm({mono, t.coef / g.coef}));
    } else {
      low->terms.push_back(t);
    }
  }
  std::sort(low->terms.begin(), low->terms.end(),
            [](const Term& x, const Term& y) { return x.mono < y.mono; });
}

/*! \brief Common factors of the divisor with single terms of r, the largest first. */
std::vector<Term> CommonFactors(PolyRing* ring, const Poly& r, Term divisor) {
  std::vector<Term> out;
  for (const Term& t : r.terms) {
    if (t.mono == kUnitMono) continue;
    Term g{ring->GcdMono(t.mono, divisor.mono), std::gcd(t.coef, divisor.coef)};
    if (g.mono == kUnitMono && g.coef == 1) continue;
    if (std::find(out.begin(), out.end(), g) == out.end()) out.push_back(g);
  }
  std::sort(out.begin(), out.end(), [ring](const Term& x, const Term& y) {
    size_t dx = ring->Atoms(x.mono).size(), dy = ring->Atoms(y.mono).size();
    return dx != dy ? dx > dy : x.coef > y.coef;
  });
  return out;
}

}  // namespace

Poly AnalyzerCore::FloorDiv(const Poly& a0, const Poly& b) {
  Poly a = Reduce(a0);
  if (b.IsZero()) return CompoundAtom(Atom::kFloorDiv, a, b);
  if (b.IsConst()) {
    int64_t divisor = b.ConstTerm();
    if (divisor == 1) return a;
    if (divisor < 0) return FloorDiv(PolyRing::Negate(a), PolyRing::Negate(b));
    if (a.IsConst()) return PolyRing::Const(FloorDivInt(a.ConstTerm(), divisor));
  }
  if (a.IsZero()) return a;
  Poly exact;
  // Division by zero is not defined, so an exact quotient needs no sign of the divisor.
  if (b.terms.size() == 1 && ring_.DivideByTerm(a, b.terms[0], &exact)) return exact;
  Poly quotient, r;
  ReduceFloorDiv(a, b, &quotient, &r);
  if (r.IsZero()) return quotient;
  if (!ProvePositive(b)) {
    if (!ProveNonNeg(b)) return CompoundAtom(Atom::kFloorDiv, a, b);
    return PolyRing::Add(quotient, CompoundAtom(Atom::kFloorDiv, r, b));
  }
  auto add = [&](const Poly& p) { return PolyRing::Add(quotient, p); };

  Interval values = Bound(r);
  if (b.IsConst()) {
    Interval q = FloorDivInterval(values, {b.ConstTerm(), b.ConstTerm()});
    if (q.lo == q.hi) return add(PolyRing::Const(q.lo));
  }
  if (values.lo >= 0 || ProveNonNeg(r)) {
    if (ProvePositive(PolyRing::Sub(b, r))) return quotient;
  } else if (ProvePositive(PolyRing::Negate(r)) && ProveNonNeg(PolyRing::Add(r, b))) {
    return add(PolyRing::Const(-1));
  }
  if (b.terms.size() == 1) {
    for (Term g : CommonFactors(&ring_, r, b.terms[0])) {
      Poly high, low, divisor;
      SplitByFactor(&ring_, r, g, &high, &low);
      if (high.IsZero()) continue;
      Poly factor = PolyRing::FromTerm(g);
      if (!ProvePositive(factor) || !ProveNonNeg(low) ||
          !ProvePositive(PolyRing::Sub(factor, low))) {
        continue;
      }
      ring_.DivideByTerm(b, g, &divisor);
      return add(FloorDiv(high, divisor));
    }
  }
  // floor((floor(x / c) + k) / b) = floor((x + k c) / (b c)).
  int64_t constant = r.ConstTerm();
  Poly single = PolyRing::AddConst(r, -constant);
  if (single.terms.size() == 1 && single.terms[0].coef == 1 &&
      ring_.Atoms(single.terms[0].mono).size() == 1) {
    Atom inner = atoms_[ring_.Atoms(single.terms[0].mono)[0]];
    if (inner.kind == Atom::kFloorDiv && ProvePositive(inner.b)) {
      return add(FloorDiv(PolyRing::AddScaled(inner.a, inner.b, constant), ring_.Mul(inner.b, b)));
    }
    // floor((x mod (b k)) / b) = floor(x / b) mod k.
    Poly k;
    if (constant == 0 && inner.kind == Atom::kFloorMod && b.terms.size() == 1 &&
        ring_.DivideByTerm(inner.b, b.terms[0], &k) && ProvePositive(k)) {
      return add(FloorMod(FloorDiv(inner.a, b), k));
    }
  }
  if (std::optional<Poly> joined = DivideSumWithQuotient(r, b)) return add(*joined);
  if (std::optional<Poly> of_minimum = DivideMinimum(r, b)) return add(*of_minimum);
  if (b.IsConst() && r.ConstTerm() != 0) {
    // With x a multiple of m, x + k for k in [0, m) has the quotient of x.
    auto [m, base] = Modular(PolyRing::AddConst(r, -r.ConstTerm()));
    int64_t divisor = b.ConstTerm();
    if (m != 0 && m % divisor == 0) {
      int64_t k = FloorModInt(base + r.ConstTerm(), divisor);
      if (k != 0) return add(FloorDiv(PolyRing::AddConst(r, -k), b));
    }
  }
  return add(CompoundAtom(Atom::kFloorDiv, r, b));
}

std::optional<Poly> AnalyzerCore::DivideSumWithQuotient(const Poly& r, const Poly& b) {
  if (!b.IsConst()) return std::nullopt;
  const Term* quotient = nullptr;
  for (const Term& t : r.terms) {
    const std::vector<AtomId>& atoms = ring_.Atoms(t.mono);
    if (t.coef != 1 || atoms.size() != 1) continue;
    const Atom& atom = atoms_[atoms[0]];
    if (atom.kind != Atom::kFloorDiv || !atom.b.IsConst() || atom.b.ConstTerm() <= 0) continue;
    if (quotient != nullptr) return std::nullopt;
    quotient = &t;
  }
  if (quotient == nullptr) return std::nullopt;
  const Atom inner = atoms_[ring_.Atoms(quotient->mono)[0]];
  const Poly rest = PolyRing::Sub(r, PolyRing::FromTerm(*quotient));
  return FloorDiv(PolyRing::AddScaled(inner.a, rest, inner.b.ConstTerm()), ring_.Mul(inner.b, b));
}

std::optional<Poly> AnalyzerCore::DivideMinimum(const Poly& r, const Poly& b) {
  if (!b.IsConst()) return std::nullopt;
  auto divisible = [&](const Poly& p) {
    Poly unused;
    return p.IsConst() || ring_.DivideByTerm(p, b.terms[0], &unused);
  };
  for (const Term& t : r.terms) {
    if (t.mono == kUnitMono || ring_.Atoms(t.mono).size() != 1) continue;
    const Atom inner = atoms_[ring_.Atoms(t.mono)[0]];
    if (inner.kind != Atom::kMinZero) continue;
    // coef * min(d, 0) + rest is the least or greatest of `rest` and `other`; so are the quotients.
    const Poly rest = PolyRing::Sub(r, PolyRing::FromTerm(t));
    const Poly other = PolyRing::AddScaled(rest, inner.a, t.coef);
    if (!divisible(rest) && !divisible(other)) continue;
    const Poly x = FloorDiv(rest, b), y = FloorDiv(other, b);
    if (t.coef > 0) return PolyRing::Add(x, MinZero(PolyRing::Sub(y, x)));
    return PolyRing::Sub(x, MinZero(PolyRing::Sub(x, y)));
  }
  return std::nullopt;
}

Poly AnalyzerCore::FloorMod(const Poly& a0, const Poly& b) {
  Poly a = Reduce(a0);
  if (b.IsZero()) return CompoundAtom(Atom::kFloorMod, a, b);
  if (b.IsConst()) {
    int64_t divisor = b.ConstTerm();
    if (divisor == 1) return Poly();
    if (divisor < 0) return PolyRing::Negate(FloorMod(PolyRing::Negate(a), PolyRing::Negate(b)));
    if (a.IsConst()) return PolyRing::Const(FloorModInt(a.ConstTerm(), divisor));
  }
  Poly exact;
  if (a.IsZero() || (b.terms.size() == 1 && ring_.DivideByTerm(a, b.terms[0], &exact))) {
    return Poly();
  }
  Poly quotient, r;
  ReduceFloorDiv(a, b, &quotient, &r);
  if (r.IsZero()) return r;
  if (!ProvePositive(b)) return CompoundAtom(Atom::kFloorMod, a, b);

  // (t * (x mod m) + y) mod b = (t * x + y) mod b when b divides t * m.
  if (b.terms.size() == 1) {
    for (const Term& t : r.terms) {
      const std::vector<AtomId> factors = ring_.Atoms(t.mono);
      for (AtomId id : factors) {
        if (atoms_[id].kind != Atom::kFloorMod) continue;
        Atom inner = atoms_[id];
        MonoId others;
        ring_.DivMono(t.mono, ring_.MonoOf(id), &others);
        Term scale{others, t.coef};
        Poly multiple = ring_.MulTerm(inner.b, scale), unused;
        if (!ring_.DivideByTerm(multiple, b.terms[0], &unused)) continue;
        Poly rest = PolyRing::Sub(r, PolyRing::FromTerm(t));
        return FloorMod(PolyRing::Add(rest, ring_.MulTerm(inner.a, scale)), b);
      }
    }
  }
  Interval values = Bound(r);
  if (b.IsConst()) {
    int64_t divisor = b.ConstTerm();
    Interval q = FloorDivInterval(values, {divisor, divisor});
    if (q.lo == q.hi) return PolyRing::AddConst(r, -CheckedMul(q.lo, divisor));
    auto [m, base] = Modular(r);
    if (m % divisor == 0) return PolyRing::Const(FloorModInt(base, divisor));
  }
  if (values.lo >= 0 || ProveNonNeg(r)) {
    if (ProvePositive(PolyRing::Sub(b, r))) return r;
  } else if (ProvePositive(PolyRing::Negate(r)) && ProveNonNeg(PolyRing::Add(r, b))) {
    return PolyRing::Add(r, b);
  }
  if (b.terms.size() == 1) {
    for (Term g : CommonFactors(&ring_, r, b.terms[0])) {
      Poly high, low, divisor;
      SplitByFactor(&ring_, r, g, &high, &low);
      if (high.IsZero()) continue;
      Poly factor = PolyRing::FromTerm(g);
      if (!ProvePositive(factor) || !ProveNonNeg(low) ||
          !ProvePositive(PolyRing::Sub(factor, low))) {
        continue;
      }
      ring_.DivideByTerm(b, g, &divisor);
      return PolyRing::Add(ring_.MulTerm(FloorMod(high, divisor), g), low);
    }
  }
  return CompoundAtom(Atom::kFloorMod, r, b);
}

Poly AnalyzerCore::MinZero(const Poly& d) {
  Interval values = Bound(d);
  if (values.hi <= 0) return d;
  if (values.lo >= 0) return Poly();
  if (ProveNonNeg(d)) return Poly();
  if (ProveNonNeg(PolyRing::Negate(d))) return d;
  // min(rest + min(q, 0), 0) is the least of rest, rest + q and 0.
  for (const Term& t : d.terms) {
    if (t.coef != 1 || ring_.Atoms(t.mono).size() != 1) continue;
    const Atom inner = atoms_[ring_.Atoms(t.mono)[0]];
    if (inner.kind != Atom::kMinZero) continue;
    const Poly rest = PolyRing::Sub(d, PolyRing::FromTerm(t));
    const Poly other = PolyRing::Add(rest, inner.a);
    if (ProveNonNeg(rest)) return MinZero(other);
    if (ProveNonNeg(other)) return MinZero(rest);
  }
  // Take out what multiplies everything and is not negative.
  MonoId common = d.terms[0].mono;
  for (const Term& t : d.terms) common = ring_.GcdMono(common, t.mono);
  std::vector<AtomId> positive;
  for (AtomId id : std::vector<AtomId>(ring_.Atoms(common))) {
    if (BoundOfAtom(id).lo >= 0) positive.push_back(id);
  }
  Term factor{ring_.Intern(std::move(positive)), PolyRing::Content(d)};
  if (factor.mono != kUnitMono || factor.coef != 1) {
    Poly reduced;
    ring_.DivideByTerm(d, factor, &reduced);
    return ring_.MulTerm(MinZero(reduced), factor);
  }
  // min(d, 0) = d + min(-d, 0): of the two, keep the one whose last term is positive.
  if (d.terms.back().coef < 0) {
    return PolyRing::Add(d, CompoundAtom(Atom::kMinZero, PolyRing::Negate(d), Poly()));
  }
  return CompoundAtom(Atom::kMinZero, d, Poly());
}

std::vector<Poly> AnalyzerCore::OperandsOfMinimum(const Poly& p) {
  const Term* minimum = nullptr;
  for (const Term& t : p.terms) {
    if (t.coef != 1 || ring_.Atoms(t.mono).size() != 1) continue;
    if (atoms_[ring_.Atoms(t.mono)[0]].kind != Atom::kMinZero) continue;
    if (minimum != nullptr) return {p};
    minimum = &t;
  }
  if (minimum == nullptr) return {p};
  const Poly d = atoms_[ring_.Atoms(minimum->mono)[0]].a;
  const Poly rest = PolyRing::Sub(p, PolyRing::FromTerm(*minimum));
  std::vector<Poly> operands = OperandsOfMinimum(Reduce(PolyRing::Add(rest, d)));
  for (Poly& more : OperandsOfMinimum(rest)) operands.push_back(std::move(more));
  return operands;
}

Poly AnalyzerCore::LeastOf(std::vector<Poly> operands) {
  // Constants last and the others by the numbers of their terms: one order for one set.
  std::sort(operands.begin(), operands.end(), [this](const Poly& x, const Poly& y) {
    if (IsEmittedFirst(x, y) != IsEmittedFirst(y, x)) return IsEmittedFirst(x, y);
    return std::lexicographical_compare(x.terms.begin(), x.terms.end(), y.terms.begin(),
                                        y.terms.end(), [](const Term& s, const Term& t) {
                                          return std::tie(s.mono, s.coef) <
                                                 std::tie(t.mono, t.coef);
                                        });
  });
  operands.erase(std::unique(operands.begin(), operands.end()), operands.end());
  for (size_t i = 0; i < operands.size() && operands.size() <= kMaxComparedOperands;) {
    const bool needless = std::any_of(operands.begin(), operands.end(), [&](const Poly& other) {
      return !(other == operands[i]) && ProveNonNeg(PolyRing::Sub(operands[i], other));
    });
    if (needless) {
      operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  Poly least = operands[0];
  for (size_t i = 1; i < operands.size(); ++i) {
    // min(a, b) = b + min(a - b, 0).
    least = PolyRing::Add(operands[i], MinZero(Reduce(PolyRing::Sub(least, operands[i]))));
  }
  return least;
}

Poly AnalyzerCore::Least(const Poly& a, const Poly& b) {
  if (std::optional<Poly> joined = LeastOfMaxima(a, b)) return *joined;
  if (std::optional<Poly> quotient = LeastOfQuotients(a, b)) return *quotient;
  std::vector<Poly> operands = OperandsOfMinimum(a);
  for (Poly& more : OperandsOfMinimum(b)) operands.push_back(std::move(more));
  if (operands.size() > 2) return LeastOf(std::move(operands));
  return PolyRing::Add(b, MinZero(Reduce(PolyRing::Sub(a, b))));
}

std::optional<Poly> AnalyzerCore::LeastOfMaxima(const Poly& a, const Poly& b) {
  // A maximum is the least of the contraries, negated.
  std::vector<Poly> x = OperandsOfMinimum(PolyRing::Negate(a));
  std::vector<Poly> y = OperandsOfMinimum(PolyRing::Negate(b));
  if (x.size() < 2 && y.size() < 2) return std::nullopt;
  std::vector<Poly> common, only_y;
  for (Poly& p : y) {
    const auto at = std::find(x.begin(), x.end(), p);
    if (at == x.end()) {
      only_y.push_back(std::move(p));
    } else {
      x.erase(at);
      common.push_back(std::move(p));
    }
  }
  if (common.empty()) return std::nullopt;
  if (!x.empty() && !only_y.empty()) {
    const Poly rest = Least(PolyRing::Negate(LeastOf(std::move(x))),
                            PolyRing::Negate(LeastOf(std::move(only_y))));
    common.push_back(PolyRing::Negate(rest));
  }
  return PolyRing::Negate(LeastOf(std::move(common)));
}

std::optional<Poly> AnalyzerCore::LeastOfQuotients(const Poly& a, const Poly& b) {
  auto quotient = [this](const Poly& p) -> std::optional<Atom> {
    if (p.terms.size() != 1 || p.terms[0].coef != 1) return std::nullopt;
    const std::vector<AtomId>& ids = ring_.Atoms(p.terms[0].mono);
    if (ids.size() != 1 || atoms_[ids[0]].kind != Atom::kFloorDiv) return std::nullopt;
    return atoms_[ids[0]];
  };
  const std::optional<Atom> x = quotient(a), y = quotient(b);
  if (!x || !y || !(x->b == y->b) || !x->b.IsConst() || x->b.ConstTerm() <= 0) return std::nullopt;
  return FloorDiv(Least(x->a, y->a), x->b);
}

std::optional<Poly> AnalyzerCore::NormalizeBits(const CallNode* call) {
  const bool left = call->op.same_as(builtin::shift_left());
  const bool right = call->op.same_as(builtin::shift_right());
  const bool mask = call->op.same_as(builtin::bitwise_and());
  if ((!left && !right && !mask) || call->args.size() != 2) return std::nullopt;
  if (call->args[0].dtype() != call->dtype || call->args[1].dtype() != call->dtype) {
    return std::nullopt;
  }
  const Poly number = Normalize(call->args[1]);
  const Poly value = number.IsConst() ? Normalize(call->args[0]) : Poly();
  // Kernels that take packed data apart stay written in bits.
  if (!number.IsConst() || value.IsConst() || HoldsData(value)) return std::nullopt;
  const int64_t n = number.ConstTerm();
  if (mask) {
    const bool low_bits = n > 0 && n < kLargestMask && (n & (n + 1)) == 0;
    return low_bits ? std::optional<Poly>(FloorMod(value, PolyRing::Const(n + 1))) : std::nullopt;
  }
  if (n < 0 || n >= std::min(call->dtype.bits(), 32) - 1) return std::nullopt;
  const int64_t power = int64_t{1} << n;
  return left ? PolyRing::Scale(value, power) : FloorDiv(value, PolyRing::Const(power));
}

Poly AnalyzerCore::WithoutQuotient(const Poly& a, const Poly& b) {
  return PolyRing::Sub(a, ring_.Mul(b, FloorDiv(a, b)));
}

std::optional<Poly> AnalyzerCore::JoinWithOther(const Poly& p, const Poly& rest, const Poly& k,
                                                const Atom& mod) {
  for (const Term& t : p.terms) {
    for (AtomId id : std::vector<AtomId>(ring_.Atoms(t.mono))) {
      const Atom other = atoms_[id];
      if (other.kind != Atom::kFloorDiv || !(other.b == mod.b) || other.a == mod.a) continue;
      const Poly remainder = FloorMod(other.a, other.b);
      if (!(remainder == CompoundAtom(Atom::kFloorMod, mod.a, mod.b))) continue;
      Poly joined = PolyRing::Add(rest, ring_.Mul(k, WithoutQuotient(other.a, other.b)));
      if (joined.terms.size() > p.terms.size()) continue;
      joined = Reduce(std::move(joined));
      if (joined.terms.size() < p.terms.size()) return joined;
    }
  }
  return std::nullopt;
}

std::optional<Poly> AnalyzerCore::JoinRemainders(const Poly& p, AtomId id) {
  const Atom atom = atoms_[id];
  Poly k, others;
  if (atom.kind == Atom::kOpaque) {
    // Rounded towards zero: k * truncmod(a, b) + k * b * truncdiv(a, b) is k * a.
    const auto* mod = atom.expr.as<ModNode>();
    if (mod == nullptr || !IsIndex(atom.expr) || !ring_.SplitLinear(p, id, &k, &others)) {
      return std::nullopt;
    }
    AtomId quotient = OpaqueAtom(Div(mod->a, mod->b));
    // The quotient of a quotient is one of both divisors.
    const auto* inner = mod->a.as<DivNode>();
    const int64_t* first = inner == nullptr ? nullptr : as_const_int(inner->b);
    const int64_t* second = as_const_int(mod->b);
    if (!ring_.Mentions(others, quotient) && first && second && *first > 0 && *second > 0 &&
        Fits(PolyRing::Const(CheckedMul(*first, *second)), mod->dtype)) {
      quotient = OpaqueAtom(Div(inner->a, make_const(mod->dtype, *first * *second)));
    }
    Poly k_quotient, rest;
    if (!ring_.Mentions(others, quotient) ||
        !ring_.SplitLinear(others, quotient, &k_quotient, &rest) ||
        !(k_quotient == ring_.Mul(k, Normalize(mod->b)))) {
      return std::nullopt;
    }
    return PolyRing::Add(rest, ring_.Mul(k, Normalize(mod->a)));
  }
  // k * (a mod b) + k * b * (q mod m) is k * ((a + b * (q - floor(a / b))) mod (b * m)).
  if (atom.kind != Atom::kFloorMod || !ring_.SplitLinear(p, id, &k, &others)) return std::nullopt;
  const Poly wanted = ring_.Mul(k, atom.b);
  for (const Term& t : others.terms) {
    for (AtomId high : std::vector<AtomId>(ring_.Atoms(t.mono))) {
      const Atom digit = atoms_[high];
      Poly k_high, rest;
      if (digit.kind != Atom::kFloorMod || !ring_.SplitLinear(others, high, &k_high, &rest) ||
          !(k_high == wanted)) {
        continue;
      }
      const Poly quotient = FloorDiv(atom.a, atom.b);
      const Poly gap = Reduce(PolyRing::Sub(digit.a, quotient));
      if (gap.terms.size() >= std::max<size_t>(digit.a.terms.size(), 1)) continue;
      if (!ProvePositive(atom.b) || !ProvePositive(digit.b)) continue;
      const Poly whole = PolyRing::Add(atom.a, ring_.Mul(atom.b, gap));
      Poly joined = PolyRing::Add(rest, ring_.Mul(k, FloorMod(whole, ring_.Mul(atom.b, digit.b))));
      if (joined.terms.size() < p.terms.size()) return joined;
    }
  }
  return std::nullopt;
}

namespace {

/*! \brief Whether two polynomials have a product of atoms in common. */
bool SharesTerms(const Poly& a, const Poly& b) {
  return std::any_of(a.terms.begin(), a.terms.end(), [&b](const Term& t) {
    return t.mono != kUnitMono && std::any_of(b.terms.begin(), b.terms.end(),
                                              [&t](const Term& u) { return u.mono == t.mono; });
  });
}

}  // namespace

bool AnalyzerCore::IsShorter(const Poly& a, const Poly& b) {
  const int size = ExprSize(Emit(b, DataType::Int(64)));
  return ExprSize(Emit(a, DataType::Int(64)), size) < size;
}

Poly AnalyzerCore::Reduce(Poly p) {
  for (bool changed = !products_.empty(); changed;) {
    changed = false;
    for (const Product& rule : products_) {
      for (const Term& t : p.terms) {
        MonoId rest;
        if (!ring_.DivMono(t.mono, rule.mono, &rest)) continue;
        Term whole = t;
        p = PolyRing::Add(PolyRing::Sub(p, PolyRing::FromTerm(whole)),
                          ring_.MulTerm(rule.value, {rest, whole.coef}));
        changed = true;
        break;
      }
    }
  }
  // k * (a mod b) + k * b * floor(a / b) is k * a.
  for (bool changed = p.terms.size() >= 2; changed;) {
    changed = false;
    for (size_t i = 0; i < p.terms.size() && !changed; ++i) {
      const std::vector<AtomId> factors = ring_.Atoms(p.terms[i].mono);
      for (AtomId id : factors) {
        if (atoms_[id].kind != Atom::kFloorMod) continue;
        Atom mod = atoms_[id];
        Poly k, rest;
        if (!ring_.SplitLinear(p, id, &k, &rest)) continue;
        Poly joined = PolyRing::Add(rest, ring_.Mul(k, WithoutQuotient(mod.a, mod.b)));
        if (joined.terms.size() > p.terms.size() ||
            (joined.terms.size() == p.terms.size() &&
             (SharesTerms(joined, FloorDiv(mod.a, mod.b)) || !IsShorter(joined, p)))) {
          std::optional<Poly> other = JoinWithOther(p, rest, k, mod);
          if (!other) continue;
          joined = std::move(*other);
        }
        p = std::move(joined);
        changed = true;
        break;
      }
    }
  }
  for (bool changed = p.terms.size() >= 2; changed;) {
    changed = false;
    for (const Term& t : std::vector<Term>(p.terms)) {
      for (AtomId id : std::vector<AtomId>(ring_.Atoms(t.mono))) {
        if (changed) break;
        std::optional<Poly> joined = JoinRemainders(p, id);
        if (!joined) continue;
        p = std::move(*joined);
        changed = true;
      }
      if (changed) break;
    }
  }
  // k * a - k * b * floor(a / b) is k * (a mod b).
  for (bool changed = p.terms.size() >= 2; changed;) {
    changed = false;
    for (const Term& t : p.terms) {
      if (t.mono == kUnitMono || ring_.Atoms(t.mono).size() != 1) continue;
      const Atom div = atoms_[ring_.Atoms(t.mono)[0]];
      if (div.kind != Atom::kFloorDiv || !div.b.IsConst() || div.b.ConstTerm() <= 1) continue;
      const int64_t divisor = div.b.ConstTerm();
      if (t.coef % divisor != 0) continue;
      const int64_t k = -(t.coef / divisor);
      Poly rest = PolyRing::Sub(p, PolyRing::FromTerm(t));
      rest = PolyRing::AddScaled(rest, div.a, -k);
      if (rest.terms.size() + 1 > p.terms.size() ||
          (rest.terms.size() + 1 == p.terms.size() && !rest.IsConst())) {
        continue;
      }
      Poly joined = PolyRing::AddScaled(rest, FloorMod(div.a, div.b), k);
      if (joined.terms.size() > p.terms.size() ||
          (joined.terms.size() == p.terms.size() && !IsShorter(joined, p))) {
        continue;
      }
      p = std::move(joined);
      changed = true;
      break;
    }
  }
  return p;
}

}  // namespace arith
}  // namespace tvm
