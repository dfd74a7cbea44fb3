/*!
 * \file arith/facts.cc
 * \brief How an Analyzer learns: atoms for variables, ranges, values, products, conditions.
 */
#include <tvm/tir/analysis.h>
#include <tvm/tir/builtin.h>
#include <tvm/tir/op.h>

#include <algorithm>
#include <numeric>

#include "analyzer_core.h"

namespace tvm {
namespace arith {

using tir::SizeVarNode;
using tir::Var;
using tir::VarNode;

AtomId AnalyzerCore::NewAtom(Atom atom) {
  atoms_.push_back(std::move(atom));
  return static_cast<AtomId>(atoms_.size() - 1);
}

AtomId AnalyzerCore::AtomOfVar(const Var& var) {
  auto it = var_atoms_.find(var.get());
  if (it != var_atoms_.end()) return it->second;
  Atom atom;
  atom.kind = Atom::kVar;
  atom.expr = var;
  atom.bound = IntervalOfType(var.dtype());
  if (var.as<SizeVarNode>()) atom.bound.lo = 1;
  AtomId id = NewAtom(std::move(atom));
  var_atoms_.emplace(var.get(), id);
  return id;
}

AtomId AnalyzerCore::OpaqueAtom(const PrimExpr& e) {
  size_t hash = tir::ExprDeepHash()(e);
  for (AtomId id : opaque_atoms_[hash]) {
    if (SameExpr(atoms_[id].expr, e)) return id;
  }
  Atom atom;
  atom.kind = Atom::kOpaque;
  atom.expr = e;
  AtomId id = NewAtom(std::move(atom));
  opaque_atoms_[hash].push_back(id);
  return id;
}

Poly AnalyzerCore::CompoundAtom(Atom::Kind kind, const Poly& a, const Poly& b) {
  std::vector<AtomId>& same_operand = compound_atoms_[a];
  for (AtomId id : same_operand) {
    if (atoms_[id].kind == kind && atoms_[id].b == b) return ring_.FromAtom(id);
  }
  Atom atom;
  atom.kind = kind;
  atom.a = a;
  atom.b = b;
  AtomId id = NewAtom(std::move(atom));
  same_operand.push_back(id);
  return ring_.FromAtom(id);
}

void AnalyzerCore::StateBound(const Var& var, Interval bound, bool allow_override) {
  Atom& atom = atoms_[AtomOfVar(var)];
  TVM_CHECK(bound.lo <= bound.hi, ValueError)
      << "Analyzer: the bounds of " << var->name_hint << " are empty: [" << bound.lo << ", "
      << bound.hi << "]";
  Interval before = IntervalOfType(var.dtype());
  bool stated = atom.bound.lo > before.lo || atom.bound.hi < before.hi;
  TVM_CHECK(allow_override || !stated || var.as<SizeVarNode>() ||
                (atom.bound.lo == bound.lo && atom.bound.hi == bound.hi),
            ValueError)
      << "Analyzer: " << var->name_hint << " already has the bounds [" << atom.bound.lo << ", "
      << atom.bound.hi << "], new are [" << bound.lo << ", " << bound.hi
      << "]; pass override=True to replace them";
  atom.bound = var.as<SizeVarNode>() ? IntersectIntervals(bound, {1, bound.hi}) : bound;
  atom.has_range = false;
  ++epoch_;
}

void AnalyzerCore::StateRange(const Var& var, const Range& range, bool allow_override) {
  if (tir::is_one(range->extent)) {
    StateValue(var, range->min, allow_override);
    return;
  }
  AtomId id = AtomOfVar(var);
  Poly lo, hi;
  try {
    lo = Reduce(Normalize(range->min));
    hi = PolyRing::AddConst(Reduce(PolyRing::Add(lo, Normalize(range->extent))), -1);
  } catch (const PolyOverflow&) {
    return;
  }
  // A range that mentions its own variable says nothing that could be used.
  if (ring_.Mentions(lo, id) || ring_.Mentions(hi, id)) return;
  Interval number{Bound(lo).lo, Bound(hi).hi};
  if (number.lo > number.hi) return;  // an empty loop: whatever is proved inside is vacuous
  Atom& atom = atoms_[id];
  TVM_CHECK(allow_override || !atom.has_range || (atom.range_lo == lo && atom.range_hi == hi),
            ValueError)
      << "Analyzer: " << var->name_hint << " already has a range; pass override=True to replace it";
  atom.bound = IntersectIntervals(number, IntervalOfType(var.dtype()));
  if (var.as<SizeVarNode>()) atom.bound.lo = std::max<int64_t>(atom.bound.lo, 1);
  if (!atom.has_range) ranged_.push_back(id);
  atom.has_range = true;
  atom.range_lo = std::move(lo);
  atom.range_hi = std::move(hi);
  atom.range_order = ++order_;
  ++epoch_;
  memo_.clear();
}

void AnalyzerCore::StateValue(const Var& var, const PrimExpr& value, bool allow_override) {
  auto it = values_.find(var.get());
  if (it != values_.end()) {
    TVM_CHECK(allow_override || SameExpr(it->second, value), ValueError)
        << "Analyzer: " << var->name_hint << " already has a value; pass override=True to "
        << "replace it";
    it->second = value;
  } else {
    values_.emplace(var.get(), value);
    value_owners_.push_back(var);
  }
  ++epoch_;
  memo_.clear();
}

const PrimExpr* AnalyzerCore::ValueOf(const VarNode* var) const {
  auto it = values_.find(var);
  return it == values_.end() ? nullptr : &it->second;
}

void AnalyzerCore::StateModular(const Var& var, int64_t coeff, int64_t base, bool allow_override) {
  Atom& atom = atoms_[AtomOfVar(var)];
  TVM_CHECK(
      allow_override || atom.mod_coeff == 1 || (atom.mod_coeff == coeff && atom.mod_base == base),
      ValueError)
      << "Analyzer: " << var->name_hint << " already has a congruence; pass override=True to "
      << "replace it";
  atom.mod_coeff = coeff < 0 ? -coeff : coeff;
  atom.mod_base = atom.mod_coeff == 0 ? base : FloorModInt(base, atom.mod_coeff);
  ++epoch_;
  memo_.clear();
}

void AnalyzerCore::StateProduct(const std::vector<Var>& vars, const PrimExpr& value) {
  MonoId mono = kUnitMono;
  for (const Var& var : vars) mono = ring_.MulMono(mono, ring_.MonoOf(AtomOfVar(var)));
  products_.push_back({mono, Normalize(value)});
  ++epoch_;
  memo_.clear();
}

void AnalyzerCore::AddFact(Poly nonneg, std::vector<std::function<void()>>* undo) {
  int64_t g = PolyRing::Content(nonneg, /*with_const=*/false);
  if (g > 1) {
    int64_t constant = nonneg.ConstTerm();
    Poly rest = PolyRing::AddConst(nonneg, -constant);
    for (Term& t : rest.terms) t.coef /= g;
    nonneg = PolyRing::AddConst(rest, FloorDivInt(constant, g));
  }
  size_t linear = nonneg.ConstTerm() == 0 ? 1 : 2;
  if (nonneg.terms.size() == linear && ring_.Atoms(nonneg.terms.back().mono).size() == 1) {
    // One atom against a number: tighten its range.
    const Term& t = nonneg.terms.back();
    AtomId id = ring_.Atoms(t.mono)[0];
    Interval before = BoundOfAtom(id);
    Interval now = before;
    int64_t constant = nonneg.ConstTerm();  // t.coef is 1 or -1 after the division
    if (t.coef == 1) {
      now.lo = std::max(now.lo, -constant);
    } else {
      now.hi = std::min(now.hi, constant);
    }
    if (now.lo > now.hi) return;  // code under a condition that never holds
    Interval stated = atoms_[id].bound;
    atoms_[id].bound = IntersectIntervals(stated, now);
    ++epoch_;
    undo->push_back([this, id, stated] {
      atoms_[id].bound = stated;
      ++epoch_;
    });
    return;
  }
  if (nonneg.IsConst()) return;
  facts_.push_back(std::move(nonneg));
  ++epoch_;
  undo->push_back([this] {
    facts_.pop_back();
    ++epoch_;
  });
}

void AnalyzerCore::AddFacts(const PrimExpr& cond, bool negate,
                            std::vector<std::function<void()>>* undo) {
  if (const auto* op = cond.as<tir::NotNode>()) return AddFacts(op->a, !negate, undo);
  const auto* conj = cond.as<tir::AndNode>();
  const auto* disj = cond.as<tir::OrNode>();
  if (conj && !negate) {
    AddFacts(conj->a, negate, undo);
    return AddFacts(conj->b, negate, undo);
  }
  if (disj && negate) {
    AddFacts(disj->a, negate, undo);
    return AddFacts(disj->b, negate, undo);
  }
  if (const auto* call = cond.as<tir::CallNode>()) {
    if (call->op.same_as(tir::builtin::likely())) return AddFacts(call->args[0], negate, undo);
  }
  auto compare = [&](const PrimExpr& a, const PrimExpr& b, bool strict) {
    // a < b or a <= b; its negation is b <= a or b < a.
    Poly diff = negate ? PolyRing::Sub(Normalize(a), Normalize(b))
                       : PolyRing::Sub(Normalize(b), Normalize(a));
    AddFact(Reduce(PolyRing::AddConst(diff, (strict != negate) ? -1 : 0)), undo);
  };
  auto is_index = [](const PrimExpr& e) { return e.dtype().is_int() && e.dtype().is_scalar(); };
  if (const auto* op = cond.as<tir::LTNode>(); op && is_index(op->a)) {
    compare(op->a, op->b, true);
  } else if (const auto* op = cond.as<tir::LENode>(); op && is_index(op->a)) {
    compare(op->a, op->b, false);
  } else if (const auto* op = cond.as<tir::GTNode>(); op && is_index(op->a)) {
    compare(op->b, op->a, true);
  } else if (const auto* op = cond.as<tir::GENode>(); op && is_index(op->a)) {
    compare(op->b, op->a, false);
  } else if (const auto* op = cond.as<tir::EQNode>(); op && is_index(op->a) && !negate) {
    compare(op->a, op->b, false);
    compare(op->b, op->a, false);
  } else if (const auto* op = cond.as<tir::NENode>(); op && is_index(op->a) && negate) {
    negate = false;
    compare(op->a, op->b, false);
    compare(op->b, op->a, false);
  } else if (!negate) {
    true_conds_.push_back(cond);
    undo->push_back([this] { true_conds_.pop_back(); });
  }
}

std::function<void()> AnalyzerCore::EnterConstraint(const PrimExpr& cond) {
  std::vector<std::function<void()>> undo;
  try {
    AddFacts(cond, /*negate=*/false, &undo);
  } catch (const PolyOverflow&) {
    // What was understood before the overflow still holds.
  }
  memo_.clear();
  return [this, undo = std::move(undo)] {
    for (auto it = undo.rbegin(); it != undo.rend(); ++it) (*it)();
    memo_.clear();
  };
}

bool AnalyzerCore::KnownTrue(const PrimExpr& cond) const {
  return std::any_of(true_conds_.begin(), true_conds_.end(),
                     [&](const PrimExpr& known) { return SameExpr(known, cond); });
}

}  // namespace arith
}  // namespace tvm
