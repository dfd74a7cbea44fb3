/*!
 * \file arith/prove.cc
 * \brief Bounds of polynomials and proofs that they are not negative.
 */
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/expr/substitute.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "analyzer_core.h"

namespace tvm {
namespace arith {

using namespace tir;

namespace {

// Steps of one proof. Proofs that succeed take tens; this only stops the hopeless ones.
constexpr int kProofBudget = 150;
constexpr int kMaxDepth = 20;
// SVE's vectors have up to 16 times 128 bits, those of RISC-V up to 1024 times 64.
constexpr int64_t kMostVScale = 1024;
// Terms that the shift to the lower corner may produce.
constexpr int kMaxShiftTerms = 512;
// Ways in which one fact is scaled before it is taken off.
constexpr size_t kMaxScales = 3;
// Quotients by numbers whose common multiple is larger are not brought to one divisor.
constexpr int64_t kLargestCommonDivisor = int64_t{1} << 20;

/*! \brief The values of `bound` that are congruent; `bound` itself if there are none. */
Interval Tighten(Interval bound, Congruence c) {
  Interval out = bound;
  if (c.coeff == 0) {
    out = IntersectIntervals(bound, {c.base, c.base});
  } else if (c.coeff > 1) {
    const int64_t far = int64_t{1} << 61;
    if (bound.lo > -far && bound.lo < far && c.coeff < far) {
      out.lo = bound.lo + FloorModInt(c.base - FloorModInt(bound.lo, c.coeff), c.coeff);
    }
    if (bound.hi > -far && bound.hi < far && c.coeff < far) {
      out.hi = bound.hi - FloorModInt(FloorModInt(bound.hi, c.coeff) - c.base, c.coeff);
    }
  }
  return out.lo <= out.hi ? out : bound;
}

}  // namespace

Interval AnalyzerCore::BoundOfAtom(AtomId id) {
  const Atom& atom = atoms_[id];
  if (atom.kind == Atom::kVar && !atom.has_range) return Tighten(atom.bound, atom.congruence);
  if (atom.cached_epoch == epoch_) return atom.cached;
  Interval out;
  switch (atom.kind) {
    case Atom::kFloorDiv:
      out = FloorDivInterval(Bound(Poly(atom.a)), Bound(Poly(atom.b)));
      break;
    case Atom::kFloorMod: {
      Interval a = Bound(Poly(atoms_[id].a)), b = Bound(Poly(atoms_[id].b));
      if (b.lo > 0) {
        out = {0, b.HasUpper() ? b.hi - 1 : b.hi};
        if (a.lo >= 0) out.hi = std::min(out.hi, a.hi);
      } else if (b.hi < 0) {
        out = {b.HasLower() ? b.lo + 1 : b.lo, 0};
      }
      break;
    }
    case Atom::kMinZero: {
      Interval d = Bound(Poly(atom.a));
      out = {std::min<int64_t>(d.lo, 0), std::min<int64_t>(d.hi, 0)};
      break;
    }
    case Atom::kOpaque: {
      WithoutAssumptions apart(&assumed_);
      out = BoundOfOpaque(PrimExpr(atom.expr));
      break;
    }
    case Atom::kVar: {
      const Poly lo = atom.range_lo, hi = atom.range_hi;
      // For ranges that lead back here through each other.
      atoms_[id].cached = atom.bound;
      atoms_[id].cached_epoch = epoch_;
      out = {Bound(lo).lo, Bound(hi).hi};
      break;
    }
  }
  Atom& result = atoms_[id];
  out = IntersectIntervals(out, result.bound);
  if (out.lo > out.hi) out = result.bound;
  if (result.kind == Atom::kVar) out = Tighten(out, result.congruence);
  result.cached = out;
  result.cached_epoch = epoch_;
  return out;
}

Interval AnalyzerCore::Bound(const Poly& p) {
  Interval sum{0, 0};
  for (const Term& t : p.terms) {
    Interval term{t.coef, t.coef};
    const std::vector<AtomId> factors = ring_.Atoms(t.mono);
    for (size_t i = 0; i < factors.size();) {
      Interval value = BoundOfAtom(factors[i]), power = value;
      size_t j = i + 1;
      for (; j < factors.size() && factors[j] == factors[i]; ++j) power = power * value;
      // An even power is not negative, which the product of two ranges does not see.
      if ((j - i) % 2 == 0) power.lo = std::max<int64_t>(power.lo, 0);
      term = term * power;
      i = j;
    }
    sum = sum + term;
  }
  return sum;
}

Interval AnalyzerCore::BoundOfOpaque(const PrimExpr& e) {
  Interval type = IntervalOfType(e.dtype());
  if (!e.dtype().is_scalar()) return Interval();
  if (const auto* op = e.as<CastNode>()) {
    if (!op->value.dtype().is_int() && !op->value.dtype().is_uint()) return type;
    Interval inner = BoundOfExpr(op->value);
    bool fits = inner.lo >= type.lo && inner.hi <= type.hi;
    // No upper end may stand for the numbers that only an unsigned 64 bit type holds.
    if (op->value.dtype().is_uint() && e.dtype().is_int()) fits = fits && inner.HasUpper();
    return fits ? inner : type;
  }
  if (const auto* op = e.as<LetNode>()) {
    return BoundOfExpr(Substitute(op->body, Map<Var, PrimExpr>{{op->var, op->value}}));
  }
  if (const auto* op = e.as<SelectNode>()) {
    return UniteIntervals(BoundOfExpr(op->true_value), BoundOfExpr(op->false_value));
  }
  if (e.dtype().is_int()) {
    if (const auto* op = e.as<ModNode>()) {
      Interval a = BoundOfExpr(op->a), b = BoundOfExpr(op->b);
      if (b.lo <= 0 || !b.HasUpper()) return type;
      Interval out{a.lo >= 0 ? 0 : std::max(-(b.hi - 1), a.lo),
                   a.hi <= 0 ? 0 : std::min(b.hi - 1, a.hi)};
      return out;
    }
    if (const auto* op = e.as<DivNode>()) {
      const Interval a = BoundOfExpr(op->a), b = BoundOfExpr(op->b);
      const Interval contrary = Interval{-1, -1} * a;
      // Of numbers below zero it is the contrary of the quotient of their contraries.
      auto divided = [](const Interval& by, const Interval& number, const Interval& opposite) {
        Interval q;
        if (number.hi >= 0) q.hi = FloorDivInterval({0, number.hi}, by).hi;
        if (number.lo >= 0) q.lo = FloorDivInterval(number, by).lo;
        if (number.lo < 0 && number.HasLower()) {
          q.lo = -FloorDivInterval({0, opposite.hi}, by).hi;
        }
        if (number.hi < 0) q.hi = -FloorDivInterval({opposite.lo, opposite.hi}, by).lo;
        return q;
      };
      std::optional<Interval> quotient;
      // Division by zero is not defined.
      if (b.hi > 0) quotient = divided({std::max<int64_t>(b.lo, 1), b.hi}, a, contrary);
      if (b.lo < 0) {
        const Interval by = Interval{-1, -1} * Interval{b.lo, std::min<int64_t>(b.hi, -1)};
        const Interval negative = divided(by, contrary, a);
        quotient = quotient ? UniteIntervals(*quotient, negative) : negative;
      }
      if (!quotient) return type;
      const Interval q = IntersectIntervals(*quotient, type);
      return q;
    }
    if (const auto* op = e.as<MulNode>()) return BoundOfExpr(op->a) * BoundOfExpr(op->b);
  }
  if (const auto* op = e.as<CallNode>()) {
    if (op->op.same_as(builtin::if_then_else())) {
      return UniteIntervals(BoundOfExpr(op->args[1]), BoundOfExpr(op->args[2]));
    }
    if (op->op.same_as(builtin::likely())) return BoundOfExpr(op->args[0]);
    if (op->op.same_as(builtin::vscale())) return IntersectIntervals(type, {1, kMostVScale});
    if (op->op.same_as(builtin::shift_right())) {
      Interval a = BoundOfExpr(op->args[0]), b = BoundOfExpr(op->args[1]);
      if (b.lo >= 0 && b.hi < 62) {
        return FloorDivInterval(a, {int64_t{1} << b.lo, int64_t{1} << b.hi});
      }
    }
    if (op->op.same_as(builtin::shift_left())) {
      const Interval b = BoundOfExpr(op->args[1]);
      if (b.lo >= 0 && b.hi < 62) {
        const Interval factor{int64_t{1} << b.lo, int64_t{1} << b.hi};
        return IntersectIntervals(BoundOfExpr(op->args[0]) * factor, type);
      }
    }
    if (op->op.same_as(builtin::bitwise_and())) {
      Interval a = BoundOfExpr(op->args[0]), b = BoundOfExpr(op->args[1]);
      if (a.lo >= 0 && b.lo >= 0) return {0, std::min(a.hi, b.hi)};
      if (b.lo >= 0) return {0, b.hi};
    }
    const bool either = op->op.same_as(builtin::bitwise_or());
    if (either || op->op.same_as(builtin::bitwise_xor())) {
      const Interval a = BoundOfExpr(op->args[0]), b = BoundOfExpr(op->args[1]);
      const int64_t most = std::max(a.hi, b.hi);
      if (a.lo >= 0 && b.lo >= 0 && most < kLargestCommonDivisor) {
        int64_t bits = 1;
        while (bits <= most) bits *= 2;
        return {either ? std::max(a.lo, b.lo) : 0, bits - 1};
      }
    }
  }
  return type;
}

bool AnalyzerCore::MentionsMinimum(const Poly& p) {
  return std::any_of(p.terms.begin(), p.terms.end(), [this](const Term& t) {
    const std::vector<AtomId>& ids = ring_.Atoms(t.mono);
    return std::any_of(ids.begin(), ids.end(),
                       [this](AtomId id) { return atoms_[id].kind == Atom::kMinZero; });
  });
}

Interval AnalyzerCore::BoundByOperands(const PrimExpr& e) {
  auto operands = [this](const auto* op) {
    return std::make_pair(BoundOfExpr(op->a), BoundOfExpr(op->b));
  };
  if (const auto* op = e.as<MinNode>()) {
    auto [a, b] = operands(op);
    return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
  }
  if (const auto* op = e.as<MaxNode>()) {
    auto [a, b] = operands(op);
    return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
  }
  if (const auto* op = e.as<AddNode>()) {
    auto [a, b] = operands(op);
    return a + b;
  }
  if (const auto* op = e.as<SubNode>()) {
    auto [a, b] = operands(op);
    return a + Interval{-1, -1} * b;
  }
  if (const auto* op = e.as<MulNode>()) {
    auto [a, b] = operands(op);
    return a * b;
  }
  return Interval();
}

Interval AnalyzerCore::BoundOverCommonDivisor(const Poly& p) {
  // Quotients forget what their dividends share: with floor(x / c) = (x - x mod c) / c for each of
  // them, common terms cancel.
  int64_t divisor = 1;
  for (const Term& t : p.terms) {
    const std::vector<AtomId>& ids = ring_.Atoms(t.mono);
    if (ids.size() != 1 || atoms_[ids[0]].kind != Atom::kFloorDiv) continue;
    const Poly& by = atoms_[ids[0]].b;
    if (!by.IsConst() || by.ConstTerm() <= 0 || by.ConstTerm() > kLargestCommonDivisor) return {};
    divisor = std::lcm(divisor, by.ConstTerm());
    if (divisor > kLargestCommonDivisor) return {};
  }
  if (divisor == 1 || p.terms.size() < 2) return {};
  Poly scaled;
  for (const Term& t : std::vector<Term>(p.terms)) {
    const std::vector<AtomId> ids = ring_.Atoms(t.mono);
    if (ids.size() != 1 || atoms_[ids[0]].kind != Atom::kFloorDiv) {
      scaled = PolyRing::AddScaled(scaled, PolyRing::FromTerm(t), divisor);
      continue;
    }
    const Atom quotient = atoms_[ids[0]];
    const Poly whole = PolyRing::Sub(quotient.a, FloorMod(quotient.a, quotient.b));
    scaled =
        PolyRing::AddScaled(scaled, whole, CheckedMul(t.coef, divisor / quotient.b.ConstTerm()));
  }
  const Interval bound = Bound(scaled);
  Interval out;
  if (bound.HasLower()) out.lo = -FloorDivInt(-bound.lo, divisor);
  if (bound.HasUpper()) out.hi = FloorDivInt(bound.hi, divisor);
  return out;
}

Interval AnalyzerCore::BoundOfExpr(const PrimExpr& e) {
  if (e.dtype().is_uint() || e.dtype().is_bool()) {
    Interval type = IntervalOfType(e.dtype());
    if (const auto* op = e.as<IntImmNode>()) return {op->value, op->value};
    if (const auto* op = e.as<VarNode>()) return BoundOfAtom(AtomOfVar(GetRef<Var>(op)));
    return IntersectIntervals(type, BoundOfOpaque(e));
  }
  if (!e.dtype().is_int() || !e.dtype().is_scalar()) return Interval();
  try {
    const Poly p = Reduce(Normalize(e));
    const Interval bound = IntersectIntervals(Bound(p), BoundOverCommonDivisor(p));
    // Sums with a minimum forget that it is one of two operands.
    return MentionsMinimum(p) ? IntersectIntervals(bound, BoundByOperands(e)) : bound;
  } catch (const PolyOverflow&) {
    return IntervalOfType(e.dtype());
  }
}

bool AnalyzerCore::ProveNonNeg(const Poly& p) {
  Interval values = Bound(p);
  if (values.lo >= 0) return true;
  if (values.hi < 0) return false;
  // Proofs start proofs, for the sign of a coefficient or to decide a minimum; all of them draw
  // from the budget of the outermost, whose outcome does not depend on what was asked before.
  bool outermost = proof_nesting_ == 0;
  if (outermost) {
    if (proofs_epoch_ != epoch_) {
      proofs_.clear();
      proofs_epoch_ = epoch_;
    }
    auto known = proofs_.find(p);
    if (known != proofs_.end()) return known->second;
    budget_ = kProofBudget;
  }
  struct Frame {
    explicit Frame(AnalyzerCore* core)
        : core(core), num_assumed(core->assumed_.size()), fact_depth(core->fact_depth_) {
      ++core->proof_nesting_;
    }
    ~Frame() {
      --core->proof_nesting_;
      core->assumed_.resize(num_assumed);
      core->fact_depth_ = fact_depth;
    }
    AnalyzerCore* core;
    size_t num_assumed;
    int fact_depth;
  };
  bool proved = false;
  try {
    Frame frame(this);
    proved = Prove(p, 0);
  } catch (const PolyOverflow&) {
    // Not provable with numbers of this size.
  }
  if (outermost && proofs_epoch_ == epoch_) proofs_.emplace(p, proved);
  return proved;
}

int AnalyzerCore::SignOf(const Poly& p, int depth) {
  Interval values = Bound(p);
  if (values.lo >= 0) return 1;
  if (values.hi <= 0) return -1;
  if (Prove(p, depth + 1)) return 1;
  return Prove(PolyRing::Negate(p), depth + 1) ? -1 : 0;
}

bool AnalyzerCore::Prove(const Poly& unreduced, int depth) {
  if (--budget_ <= 0 || depth > kMaxDepth) return false;
  Poly p = products_.empty() ? unreduced : Reduce(unreduced);
  Interval values = Bound(p);
  if (values.lo >= 0) return true;
  if (values.hi < 0) return false;

  // Replace one atom by the end of its range that makes p least, innermost atoms first: their ends
  // may mention the outer ones.
  std::vector<AtomId> atoms;
  for (const Term& t : p.terms) {
    for (AtomId id : ring_.Atoms(t.mono)) {
      if (std::find(atoms.begin(), atoms.end(), id) == atoms.end()) atoms.push_back(id);
    }
  }
  auto rank = [this](AtomId id) {
    const Atom& atom = atoms_[id];
    bool compound = atom.kind != Atom::kVar && atom.kind != Atom::kOpaque;
    return std::make_tuple(compound, atom.has_range ? atom.range_order : 0, id);
  };
  std::sort(atoms.begin(), atoms.end(), [&](AtomId x, AtomId y) { return rank(x) > rank(y); });
  for (AtomId id : atoms) {
    Atom atom = atoms_[id];
    Poly coef, rest;
    if (!ring_.SplitLinear(p, id, &coef, &rest)) continue;
    if (atom.kind == Atom::kFloorDiv || atom.kind == Atom::kFloorMod ||
        atom.kind == Atom::kMinZero) {
      if (ProveCompound(p, id, coef, rest, depth)) return true;
      continue;
    }
    Interval bound = BoundOfAtom(id), type = IntervalOfType(atom.expr.dtype());
    bool has_lower = bound.lo > type.lo, has_upper = bound.hi < type.hi;
    if (atom.kind == Atom::kOpaque && ProveBothBranches(atom.expr, coef, rest, depth)) return true;
    if (!atom.has_range && !has_lower && !has_upper) continue;
    int sign = SignOf(coef, depth);
    if (sign == 0) continue;
    bool low = sign > 0;
    auto with_end = [&](const Poly& end) {
      return Prove(PolyRing::Add(rest, ring_.Mul(coef, end)), depth + 1);
    };
    if (atom.has_range) {
      Interval first = Bound(atom.range_lo), last = Bound(atom.range_hi);
      if (with_end(low ? atom.range_lo : atom.range_hi)) return true;
      // A condition may have tightened the range by a number.
      bool tighter = low ? bound.lo > first.lo : bound.hi < last.hi;
      if (tighter && with_end(PolyRing::Const(low ? bound.lo : bound.hi))) return true;
      if (facts_.empty() && assumed_.empty()) return false;
      break;
    }
    // A lower end >= 0 that only helps is left to the methods below, which keep the correlation
    // of the atom with the other terms.
    if (low && has_lower && bound.lo < 0 && with_end(PolyRing::Const(bound.lo))) return true;
    if (!low && has_upper && with_end(PolyRing::Const(bound.hi))) return true;
  }
  if (ProveByDomination(p) || ProveByShift(p)) return true;

  if (fact_depth_ < 2) {
    for (size_t i = 0; i < facts_.size(); ++i) {
      if (ProveFromFact(p, Poly(facts_[i]), depth)) return true;
    }
    for (size_t i = 0; i < assumed_.size(); ++i) {
      if (ProveFromFact(p, Poly(assumed_[i]), depth)) return true;
    }
  }
  return false;
}

bool AnalyzerCore::ProveFromFact(const Poly& p, const Poly& fact, int depth) {
  const bool related = std::any_of(fact.terms.begin(), fact.terms.end(), [&](const Term& t) {
    return t.mono != kUnitMono && std::any_of(p.terms.begin(), p.terms.end(),
                                              [&t](const Term& s) { return s.mono == t.mono; });
  });
  std::vector<Term> scales;
  if (related) scales.push_back({kUnitMono, 1});
  int64_t multiple = 1;
  for (const Term& t : p.terms) {
    for (const Term& s : fact.terms) {
      Term scale{kUnitMono, 1};
      if (t.mono == kUnitMono || s.mono == kUnitMono || (t.coef > 0) != (s.coef > 0) ||
          !ring_.DivMono(t.mono, s.mono, &scale.mono)) {
        continue;
      }
      if (scale.mono == kUnitMono && s.coef != t.coef && s.coef % t.coef == 0) {
        multiple = s.coef / t.coef;
      }
      scale.coef = t.coef / s.coef;
      if (t.coef % s.coef != 0 || scales.size() > kMaxScales ||
          std::find(scales.begin(), scales.end(), scale) != scales.end()) {
        continue;
      }
      const std::vector<AtomId> factors = ring_.Atoms(scale.mono);
      if (std::all_of(factors.begin(), factors.end(),
                      [this](AtomId id) { return BoundOfAtom(id).lo >= 0; })) {
        scales.push_back(scale);
      }
    }
  }
  auto follows = [&](const Poly& rest) {
    ++fact_depth_;
    const bool proved = Prove(rest, depth + 1);
    --fact_depth_;
    return proved;
  };
  if (std::any_of(scales.begin(), scales.end(), [&](const Term& scale) {
        return follows(PolyRing::Sub(p, ring_.MulTerm(fact, scale)));
      })) {
    return true;
  }
  // Whole numbers whose multiple is above -multiple are not negative.
  return multiple > 1 && follows(PolyRing::AddConst(
                             PolyRing::Sub(PolyRing::Scale(p, multiple), fact), multiple - 1));
}

bool AnalyzerCore::ProveBothBranches(const PrimExpr& e, const Poly& coef, const Poly& rest,
                                     int depth) {
  PrimExpr cond, values[2];
  if (const auto* op = e.as<SelectNode>()) {
    cond = op->condition, values[0] = op->true_value, values[1] = op->false_value;
  } else if (const auto* call = e.as<CallNode>();
             call && call->op.same_as(builtin::if_then_else())) {
    cond = call->args[0], values[0] = call->args[1], values[1] = call->args[2];
  }
  if (!cond.defined() || !cond.dtype().is_scalar()) return false;
  std::vector<Poly> facts[2];
  Poly goals[2];
  {
    WithoutAssumptions apart(&assumed_);
    for (int i = 0; i < 2; ++i) {
      goals[i] = Reduce(PolyRing::Add(rest, ring_.Mul(coef, Normalize(values[i]))));
    }
    CollectClaims(cond, &facts[0]);
    if (facts[0].size() == 1 && !cond.as<AndNode>()) {
      facts[1].push_back(PolyRing::AddConst(PolyRing::Negate(facts[0][0]), -1));
    }
  }
  for (int i = 0; i < 2; ++i) {
    const size_t before = assumed_.size();
    assumed_.insert(assumed_.end(), facts[i].begin(), facts[i].end());
    const bool proved = Prove(goals[i], depth + 1);
    assumed_.resize(before);
    if (!proved) return false;
  }
  return true;
}

void AnalyzerCore::CollectClaims(const PrimExpr& cond, std::vector<Poly>* facts) {
  if (const auto* both = cond.as<AndNode>()) {
    CollectClaims(both->a, facts);
    CollectClaims(both->b, facts);
    return;
  }
  const std::optional<Claim> claim = ClaimOf(cond);
  if (!claim || claim->kind == Claim::kNonZero) return;
  facts->push_back(claim->number);
  if (claim->kind == Claim::kZero) facts->push_back(PolyRing::Negate(claim->number));
}

bool AnalyzerCore::ProveCompound(const Poly& p, AtomId id, const Poly& coef, const Poly& rest,
                                 int depth) {
  Atom atom = atoms_[id];
  int sign = SignOf(coef, depth);
  if (sign == 0) return false;
  if (atom.kind == Atom::kMinZero) {
    Poly at_d = PolyRing::Add(rest, ring_.Mul(coef, atom.a));
    if (sign < 0) {
      // The minimum is at most either of the two, so each gives a lower bound.
      return Prove(rest, depth + 1) || Prove(at_d, depth + 1);
    }
    auto under = [&](const Poly& fact, const Poly& goal) {
      assumed_.push_back(fact);
      bool proved = Prove(goal, depth + 1);
      assumed_.pop_back();
      return proved;
    };
    return under(atom.a, rest) && under(PolyRing::Negate(atom.a), at_d);
  }
  if (SignOf(PolyRing::AddConst(atom.b, -1), depth) <= 0) return false;  // divisor not positive
  Poly top = PolyRing::AddConst(atom.b, -1);
  if (atom.kind == Atom::kFloorMod) {
    if (sign > 0) return Prove(rest, depth + 1);
    if (Prove(PolyRing::Add(rest, ring_.Mul(coef, top)), depth + 1)) return true;
    return SignOf(atom.a, depth) > 0 &&
           Prove(PolyRing::Add(rest, ring_.Mul(coef, atom.a)), depth + 1);
  }
  // b * floor(a / b) lies in [a - b + 1, a]. So b * p is at least the bound below, and because it
  // is a multiple of b, a bound above -b is enough.
  Poly end = sign > 0 ? PolyRing::Sub(atom.a, top) : atom.a;
  Poly bound = PolyRing::Add(ring_.Mul(coef, end), ring_.Mul(rest, atom.b));
  if (Prove(PolyRing::Add(bound, top), depth + 1)) return true;
  return sign > 0 && SignOf(atom.a, depth) > 0 && Prove(rest, depth + 1);
}

bool AnalyzerCore::ProveByDomination(const Poly& p) {
  // Pay every negative term with positive ones that are multiples of it by factors >= 1.
  std::vector<Term> positive, negative;
  for (const Term& t : p.terms) (t.coef > 0 ? positive : negative).push_back(t);
  auto least = [this](MonoId mono) {
    Interval product{1, 1};
    for (AtomId id : std::vector<AtomId>(ring_.Atoms(mono))) {
      Interval value = BoundOfAtom(id);
      if (value.lo < 0) return int64_t{-1};
      product = product * value;
    }
    return product.lo;
  };
  for (const Term& t : positive) {
    if (least(t.mono) < 0) return false;
  }
  std::sort(positive.begin(), positive.end(), [this](const Term& x, const Term& y) {
    return ring_.Atoms(x.mono).size() < ring_.Atoms(y.mono).size();
  });
  std::sort(negative.begin(), negative.end(), [this](const Term& x, const Term& y) {
    return ring_.Atoms(x.mono).size() > ring_.Atoms(y.mono).size();
  });
  for (const Term& owed : negative) {
    int64_t debt = CheckedMul(owed.coef, -1);
    if (least(owed.mono) < 0) return false;
    for (Term& t : positive) {
      MonoId quotient;
      if (t.coef == 0 || !ring_.DivMono(t.mono, owed.mono, &quotient)) continue;
      int64_t worth = least(quotient);
      if (worth <= 0) continue;
      int64_t used = std::min(t.coef, debt / worth + (debt % worth != 0));
      t.coef -= used;
      debt -= worth >= debt ? debt : std::min(debt, CheckedMul(used, worth));
      if (debt == 0) break;
    }
    if (debt > 0) return false;
  }
  return true;
}

bool AnalyzerCore::ProveByShift(const Poly& p) {
  // With every atom written as its least value plus something >= 0, a polynomial without negative
  // coefficients is not negative.
  std::vector<AtomId> atoms;
  int64_t cost = 0;
  for (const Term& t : p.terms) {
    int64_t terms = 1;
    for (AtomId id : std::vector<AtomId>(ring_.Atoms(t.mono))) {
      Interval value = BoundOfAtom(id);
      if (value.lo < 0) return false;
      if (value.lo > 0) terms *= 2;
      if (terms > kMaxShiftTerms) return false;
      if (std::find(atoms.begin(), atoms.end(), id) == atoms.end()) atoms.push_back(id);
    }
    cost += terms;
  }
  if (cost > kMaxShiftTerms) return false;
  Poly shifted = p;
  for (AtomId id : atoms) {
    int64_t low = BoundOfAtom(id).lo;
    if (low > 0) {
      // The atom's own number now stands for what it exceeds `low` by.
      shifted = ring_.Substitute(shifted, id, PolyRing::AddConst(ring_.FromAtom(id), low));
    }
  }
  return std::all_of(shifted.terms.begin(), shifted.terms.end(),
                     [](const Term& t) { return t.coef > 0; });
}

}  // namespace arith
}  // namespace tvm
