/*!
 * \file arith/polynomial.cc
 */
#include "polynomial.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace tvm {
namespace arith {
namespace {

// A product of sums above this size is kept as a product; expanding it costs more than it proves.
constexpr size_t kMaxTerms = 600;

Poly Collect(std::map<MonoId, int64_t>&& sums) {
  Poly out;
  out.terms.reserve(sums.size());
  for (const auto& [mono, coef] : sums) {
    if (coef != 0) out.terms.push_back({mono, coef});
  }
  return out;
}

}  // namespace

int64_t CheckedAdd(int64_t a, int64_t b) {
  int64_t out;
  if (__builtin_add_overflow(a, b, &out)) throw PolyOverflow();
  return out;
}

int64_t CheckedMul(int64_t a, int64_t b) {
  int64_t out;
  if (__builtin_mul_overflow(a, b, &out)) throw PolyOverflow();
  return out;
}

int64_t FloorDivInt(int64_t a, int64_t b) {
  if (b == -1) return CheckedMul(a, -1);
  int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

PolyRing::PolyRing() { Intern({}); }

MonoId PolyRing::Intern(std::vector<AtomId> sorted_atoms) {
  auto [it, inserted] = mono_ids_.emplace(sorted_atoms, static_cast<MonoId>(monos_.size()));
  if (inserted) {
    as_met_.push_back(sorted_atoms);
    monos_.push_back(std::move(sorted_atoms));
  }
  return it->second;
}

MonoId PolyRing::MulMono(MonoId a, MonoId b) {
  if (a == kUnitMono) return b;
  if (b == kUnitMono) return a;
  const auto [low, high] = std::minmax(a, b);
  uint64_t key = (static_cast<uint64_t>(low) << 32) | static_cast<uint32_t>(high);
  auto it = products_.find(key);
  if (it != products_.end()) return it->second;
  std::vector<AtomId> atoms(monos_[a].size() + monos_[b].size());
  std::merge(monos_[a].begin(), monos_[a].end(), monos_[b].begin(), monos_[b].end(), atoms.begin());
  const size_t known = monos_.size();
  MonoId out = Intern(std::move(atoms));
  if (monos_.size() != known) {
    std::vector<AtomId> met = as_met_[a];
    met.insert(met.end(), as_met_[b].begin(), as_met_[b].end());
    as_met_[out] = std::move(met);
  }
  products_.emplace(key, out);
  return out;
}

bool PolyRing::DivMono(MonoId a, MonoId b, MonoId* quotient) {
  if (b == kUnitMono) {
    *quotient = a;
    return true;
  }
  const auto& num = monos_[a];
  const auto& den = monos_[b];
  if (!std::includes(num.begin(), num.end(), den.begin(), den.end())) return false;
  std::vector<AtomId> left;
  std::set_difference(num.begin(), num.end(), den.begin(), den.end(), std::back_inserter(left));
  *quotient = Intern(std::move(left));
  return true;
}

MonoId PolyRing::GcdMono(MonoId a, MonoId b) {
  if (a == b) return a;
  std::vector<AtomId> common;
  std::set_intersection(monos_[a].begin(), monos_[a].end(), monos_[b].begin(), monos_[b].end(),
                        std::back_inserter(common));
  return Intern(std::move(common));
}

int PolyRing::CountAtom(MonoId mono, AtomId atom) const {
  auto [first, last] = std::equal_range(monos_[mono].begin(), monos_[mono].end(), atom);
  return static_cast<int>(last - first);
}

Poly PolyRing::Const(int64_t value) { return FromTerm({kUnitMono, value}); }

Poly PolyRing::FromTerm(Term term) {
  Poly out;
  if (term.coef != 0) out.terms.push_back(term);
  return out;
}

Poly PolyRing::AddScaled(const Poly& a, const Poly& b, int64_t scale) {
  if (scale == 0 || b.IsZero()) return a;
  Poly out;
  out.terms.reserve(a.terms.size() + b.terms.size());
  size_t i = 0, j = 0;
  while (i < a.terms.size() || j < b.terms.size()) {
    if (j == b.terms.size() || (i < a.terms.size() && a.terms[i].mono < b.terms[j].mono)) {
      out.terms.push_back(a.terms[i++]);
    } else if (i == a.terms.size() || b.terms[j].mono < a.terms[i].mono) {
      out.terms.push_back({b.terms[j].mono, CheckedMul(b.terms[j].coef, scale)});
      ++j;
    } else {
      int64_t coef = CheckedAdd(a.terms[i].coef, CheckedMul(b.terms[j].coef, scale));
      if (coef != 0) out.terms.push_back({a.terms[i].mono, coef});
      ++i, ++j;
    }
  }
  return out;
}

Poly PolyRing::Scale(const Poly& a, int64_t scale) {
  if (scale == 0) return Poly();
  Poly out = a;
  for (Term& t : out.terms) t.coef = CheckedMul(t.coef, scale);
  return out;
}

Poly PolyRing::MulTerm(const Poly& a, Term term, bool in_front) {
  if (term.mono == kUnitMono) return Scale(a, term.coef);
  if (term.coef == 0) return Poly();
  Poly out;
  out.terms.reserve(a.terms.size());
  for (const Term& t : a.terms) {
    const MonoId mono = in_front ? MulMono(term.mono, t.mono) : MulMono(t.mono, term.mono);
    out.terms.push_back({mono, CheckedMul(t.coef, term.coef)});
  }
  std::sort(out.terms.begin(), out.terms.end(),
            [](const Term& x, const Term& y) { return x.mono < y.mono; });
  return out;
}

Poly PolyRing::Mul(const Poly& a, const Poly& b) {
  if (a.terms.size() == 1) return MulTerm(b, a.terms[0], /*in_front=*/true);
  if (b.terms.size() == 1) return MulTerm(a, b.terms[0]);
  if (a.terms.size() * b.terms.size() > kMaxTerms) throw PolyOverflow();
  std::map<MonoId, int64_t> sums;
  for (const Term& x : a.terms) {
    for (const Term& y : b.terms) {
      int64_t& sum = sums[MulMono(x.mono, y.mono)];
      sum = CheckedAdd(sum, CheckedMul(x.coef, y.coef));
    }
  }
  return Collect(std::move(sums));
}

bool PolyRing::DivideByTerm(const Poly& a, Term term, Poly* quotient) {
  Poly out;
  out.terms.reserve(a.terms.size());
  for (const Term& t : a.terms) {
    MonoId mono;
    if (t.coef % term.coef != 0 || !DivMono(t.mono, term.mono, &mono)) return false;
    out.terms.push_back({mono, t.coef / term.coef});
  }
  std::sort(out.terms.begin(), out.terms.end(),
            [](const Term& x, const Term& y) { return x.mono < y.mono; });
  *quotient = std::move(out);
  return true;
}

int64_t PolyRing::Content(const Poly& a, bool with_const) {
  int64_t g = 0;
  for (const Term& t : a.terms) {
    if (!with_const && t.mono == kUnitMono) continue;
    g = std::gcd(g, t.coef);
  }
  return g;
}

bool PolyRing::SplitLinear(const Poly& p, AtomId atom, Poly* coef, Poly* rest) {
  coef->terms.clear();
  rest->terms.clear();
  MonoId self = MonoOf(atom);
  for (const Term& t : p.terms) {
    int power = CountAtom(t.mono, atom);
    if (power > 1) return false;
    if (power == 0) {
      rest->terms.push_back(t);
    } else {
      MonoId mono;
      DivMono(t.mono, self, &mono);
      coef->terms.push_back({mono, t.coef});
    }
  }
  std::sort(coef->terms.begin(), coef->terms.end(),
            [](const Term& x, const Term& y) { return x.mono < y.mono; });
  return true;
}

bool PolyRing::Mentions(const Poly& p, AtomId atom) const {
  for (const Term& t : p.terms) {
    if (CountAtom(t.mono, atom) > 0) return true;
  }
  return false;
}

Poly PolyRing::Substitute(const Poly& p, AtomId atom, const Poly& value) {
  Poly out;
  MonoId self = MonoOf(atom);
  for (const Term& t : p.terms) {
    MonoId mono = t.mono;
    Poly factor = Const(t.coef);
    for (MonoId left; DivMono(mono, self, &left); mono = left) factor = Mul(factor, value);
    out = Add(out, MulTerm(factor, {mono, 1}));
  }
  return out;
}

}  // namespace arith
}  // namespace tvm
