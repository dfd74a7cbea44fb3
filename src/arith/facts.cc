/*!
 * \file arith/facts.cc
 * \brief How an Analyzer learns: atoms for variables, ranges, values, products, conditions.
 */
#include <tvm/expr/analysis.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/expr/substitute.h>

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

namespace {

/*! \brief What a variable is bounded by before anything is stated. */
Interval TypeBound(const Var& var) {
  Interval bound = IntervalOfType(var.dtype());
  if (var.as<SizeVarNode>()) bound.lo = std::max<int64_t>(bound.lo, 1);
  return bound;
}

}  // namespace

AtomId AnalyzerCore::AtomOfVar(const Var& var) {
  auto it = var_atoms_.find(var.get());
  if (it != var_atoms_.end()) return it->second;
  Atom atom;
  atom.kind = Atom::kVar;
  atom.expr = var;
  atom.bound = TypeBound(var);
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

Interval AnalyzerCore::StatedBound(AtomId id) const {
  auto first = std::find_if(tightened_.begin(), tightened_.end(),
                            [id](const Tightened& t) { return t.atom == id; });
  return first == tightened_.end() ? atoms_[id].bound : first->before;
}

template <typename F>
void AnalyzerCore::Restate(bool replaces, F change) {
  // Ranges and conditions are kept as polynomials in which known variables were replaced.
  if (replaces) DropConditionsFrom(0);
  change();
  ++epoch_;
  memo_.clear();
  if (!replaces) return;
  ranged_in_scopes_.clear();
  DeriveRanges(ranged_);
  ApplyConditions();
}

void AnalyzerCore::StateBound(const Var& var, Interval bound, bool allow_override) {
  TVM_CHECK(bound.lo <= bound.hi, ValueError)
      << "Analyzer: the bounds of " << var->name_hint << " are empty: [" << bound.lo << ", "
      << bound.hi << "]";
  const AtomId id = AtomOfVar(var);
  const Interval type = TypeBound(var);
  Interval before = StatedBound(id);
  if (atoms_[id].has_range) {
    before = IntersectIntervals(
        before, {Bound(Poly(atoms_[id].range_lo)).lo, Bound(Poly(atoms_[id].range_hi)).hi});
  }
  const bool has_value = ValueOf(var.get()) != nullptr;
  const bool stated = before.lo > type.lo || before.hi < type.hi;
  TVM_CHECK(allow_override || !stated || var.as<SizeVarNode>() ||
                (before.lo == bound.lo && before.hi == bound.hi),
            ValueError)
      << "Analyzer: " << var->name_hint << " already has the bounds [" << before.lo << ", "
      << before.hi << "], new are [" << bound.lo << ", " << bound.hi
      << "]; pass override=True to replace them";
  if (atoms_[id].has_range && !allow_override && !var.as<SizeVarNode>()) return;
  TVM_CHECK(bound.hi >= 1 || !var.as<SizeVarNode>(), ValueError)
      << "Analyzer: " << var->name_hint
      << " is a SizeVar, which is at least 1; its bounds cannot be [" << bound.lo << ", "
      << bound.hi << "]";
  const bool tightened = atoms_[id].bound.lo > type.lo || atoms_[id].bound.hi < type.hi;
  Restate(stated || tightened || has_value, [&] {
    Atom& atom = atoms_[id];
    atom.bound = var.as<SizeVarNode>() ? IntersectIntervals(bound, {1, bound.hi}) : bound;
    atom.has_range = false;
    atom.range = Range();
    if (allow_override) values_.erase(var.get());
  });
}

void AnalyzerCore::DeriveRanges(const std::vector<AtomId>& ids) {
  // None may be read with the help of what another one was before.
  for (AtomId id : ids) atoms_[id].has_range = false;
  ++epoch_;
  for (AtomId id : std::vector<AtomId>(ids)) {
    if (atoms_[id].range.defined()) DeriveRange(id);
  }
}

void AnalyzerCore::DeriveRange(AtomId id) {
  const Range range = atoms_[id].range;
  Poly lo, hi;
  bool usable = false;
  try {
    lo = Reduce(Normalize(range->min));
    hi = PolyRing::AddConst(Reduce(PolyRing::Add(lo, Normalize(range->extent))), -1);
    // A range that mentions its own variable says nothing that could be used, and in an empty loop
    // everything holds.
    usable = !ring_.Mentions(lo, id) && !ring_.Mentions(hi, id) && Bound(lo).lo <= Bound(hi).hi;
  } catch (const PolyOverflow&) {
    // An end that no number here can hold.
  }
  Atom& atom = atoms_[id];
  atom.has_range = usable;
  atom.range_lo = std::move(lo);
  atom.range_hi = std::move(hi);
  if (!scopes_.empty()) ranged_in_scopes_.push_back({id, scopes_.size()});
  ++epoch_;
  memo_.clear();
}

void AnalyzerCore::StateRange(const Var& var, const Range& range, bool allow_override) {
  for (const PrimExpr& number : {PrimExpr(var), range->min, range->extent}) {
    TVM_CHECK(number.dtype().is_int() || number.dtype().is_uint(), ValueError)
        << "Analyzer: a variable that runs over a range and the ends of the range must be "
        << "integers, got " << number << " of type " << number.dtype() << " in " << var << " in "
        << range;
  }
  if (tir::is_one(range->extent)) {
    StateValue(var, range->min, allow_override);
    return;
  }
  const AtomId id = AtomOfVar(var);
  const Range before = atoms_[id].range;
  const bool same = before.defined() && SameExpr(before->min, range->min) &&
                    SameExpr(before->extent, range->extent);
  const bool has_value = ValueOf(var.get()) != nullptr;
  TVM_CHECK(allow_override || !before.defined() || same, ValueError)
      << "Analyzer: " << var->name_hint << " already has a range; pass override=True to replace it";
  TVM_CHECK(allow_override || !has_value, ValueError)
      << "Analyzer: " << var->name_hint << " already has a value; pass override=True to replace it";
  if (same && !has_value) return;
  const Interval type = TypeBound(var);
  const Interval now = atoms_[id].bound;
  const bool replaces = before.defined() || has_value || now.lo > type.lo || now.hi < type.hi;
  Restate(replaces, [&] {
    atoms_[id].bound = type;
    atoms_[id].range = range;
    atoms_[id].range_order = ++order_;
    values_.erase(var.get());
    auto at = std::find(ranged_.begin(), ranged_.end(), id);
    if (at != ranged_.end()) ranged_.erase(at);
    ranged_.push_back(id);
  });
  if (!replaces) DeriveRange(id);
}

bool AnalyzerCore::LeadsTo(const PrimExpr& value, const VarNode* var) const {
  bool found = false;
  tir::PostOrderVisit(value, [&](const ObjectRef& node) {
    const auto* used = node.as<VarNode>();
    if (found || used == nullptr) return;
    const PrimExpr* next = ValueOf(used);
    found = used == var || (next != nullptr && LeadsTo(*next, var));
  });
  return found;
}

void AnalyzerCore::StateValue(const Var& var, const PrimExpr& value, bool allow_override) {
  TVM_CHECK(value.dtype().code() == var.dtype().code() || !value.dtype().is_float(), ValueError)
      << "Analyzer: the value of " << var->name_hint << " must be of type " << var.dtype()
      << ", got " << value << " of type " << value.dtype();
  const PrimExpr* before = ValueOf(var.get());
  TVM_CHECK(allow_override || before == nullptr || SameExpr(*before, value), ValueError)
      << "Analyzer: " << var->name_hint << " already has a value; pass override=True to "
      << "replace it";
  if (before != nullptr && SameExpr(*before, value)) return;
  if (value.same_as(var)) return;
  TVM_CHECK(!LeadsTo(value, var.get()), ValueError)
      << "Analyzer: the value of " << var->name_hint << " cannot depend on " << var->name_hint
      << ", itself or through values stated before, got " << value;
  value_owners_.push_back(var);
  const AtomId id = AtomOfVar(var);
  const Interval type = TypeBound(var), now = atoms_[id].bound;
  const bool bounded = atoms_[id].range.defined() || now.lo > type.lo || now.hi < type.hi;
  Restate(before != nullptr || (allow_override && bounded), [&] {
    values_[var.get()] = value;
    if (!allow_override) return;
    atoms_[id].bound = type;
    atoms_[id].has_range = false;
    atoms_[id].range = Range();
  });
}

const PrimExpr* AnalyzerCore::ValueOf(const VarNode* var) const {
  auto it = values_.find(var);
  return it == values_.end() ? nullptr : &it->second;
}

void AnalyzerCore::StateModular(const Var& var, int64_t coeff, int64_t base, bool allow_override) {
  TVM_CHECK(coeff != ConstIntBoundNode::kNegInf, ValueError)
      << "Analyzer: no congruence has the coefficient " << coeff;
  const AtomId id = AtomOfVar(var);
  auto first = std::find_if(congruent_.begin(), congruent_.end(),
                            [id](const Congruent& c) { return c.atom == id; });
  const Congruence stated =
      first == congruent_.end() ? atoms_[id].congruence : Congruence(first->before);
  TVM_CHECK(allow_override || stated.coeff == 1 || (stated.coeff == coeff && stated.base == base),
            ValueError)
      << "Analyzer: " << var->name_hint << " already has a congruence; pass override=True to "
      << "replace it";
  Restate(atoms_[id].congruence.coeff != 1, [&] {
    const int64_t m = coeff < 0 ? -coeff : coeff;
    atoms_[id].congruence = {m, m == 0 ? base : FloorModInt(base, m)};
  });
}

void AnalyzerCore::StateProduct(const std::vector<Var>& vars, const PrimExpr& value) {
  MonoId mono = kUnitMono;
  for (const Var& var : vars) mono = ring_.MulMono(mono, ring_.MonoOf(AtomOfVar(var)));
  products_.push_back({mono, Normalize(value)});
  ++epoch_;
  memo_.clear();
}

void AnalyzerCore::AddFact(Poly nonneg) {
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
    Interval now = BoundOfAtom(id);
    int64_t constant = nonneg.ConstTerm();  // t.coef is 1 or -1 after the division
    if (t.coef == 1) {
      now.lo = std::max(now.lo, CheckedMul(constant, -1));
    } else {
      now.hi = std::min(now.hi, constant);
    }
    if (now.lo > now.hi) return;  // code under a condition that never holds
    tightened_.push_back({id, atoms_[id].bound});
    atoms_[id].bound = IntersectIntervals(atoms_[id].bound, now);
    ++epoch_;
    return;
  }
  if (nonneg.IsConst()) return;
  facts_.push_back(std::move(nonneg));
  ++epoch_;
}

void AnalyzerCore::AddFacts(const PrimExpr& cond, bool negate) {
  if (const auto* op = cond.as<tir::NotNode>()) return AddFacts(op->a, !negate);
  const auto* conj = cond.as<tir::AndNode>();
  const auto* disj = cond.as<tir::OrNode>();
  if (conj && !negate) {
    AddFacts(conj->a, negate);
    return AddFacts(conj->b, negate);
  }
  if (disj && negate) {
    AddFacts(disj->a, negate);
    return AddFacts(disj->b, negate);
  }
  if (const auto* call = cond.as<tir::CallNode>()) {
    if (call->op.same_as(tir::builtin::likely())) return AddFacts(call->args[0], negate);
  }
  auto compare = [&](const PrimExpr& a, const PrimExpr& b, bool strict) {
    // a < b or a <= b; its negation is b <= a or b < a.
    Poly diff = negate ? PolyRing::Sub(Normalize(a), Normalize(b))
                       : PolyRing::Sub(Normalize(b), Normalize(a));
    AddFact(Reduce(PolyRing::AddConst(diff, (strict != negate) ? -1 : 0)));
  };
  auto is_index = [](const PrimExpr& e) { return e.dtype().is_int() && e.dtype().is_scalar(); };
  auto equal = [&](const PrimExpr& a, const PrimExpr& b) {
    AddCongruence(a, b);
    AddCongruence(b, a);
    compare(a, b, false);
    compare(b, a, false);
  };
  if (const auto* op = cond.as<tir::LTNode>(); op && is_index(op->a)) {
    compare(op->a, op->b, true);
  } else if (const auto* op = cond.as<tir::LENode>(); op && is_index(op->a)) {
    compare(op->a, op->b, false);
  } else if (const auto* op = cond.as<tir::GTNode>(); op && is_index(op->a)) {
    compare(op->b, op->a, true);
  } else if (const auto* op = cond.as<tir::GENode>(); op && is_index(op->a)) {
    compare(op->b, op->a, false);
  } else if (const auto* op = cond.as<tir::EQNode>(); op && is_index(op->a) && !negate) {
    equal(op->a, op->b);
  } else if (const auto* op = cond.as<tir::NENode>(); op && is_index(op->a) && negate) {
    negate = false;
    equal(op->a, op->b);
  } else {
    if (disj) AddSharedFacts(disj->a, disj->b, negate);
    if (conj) AddSharedFacts(conj->a, conj->b, negate);
    const auto* eq = cond.as<tir::EQNode>();
    const auto* ne = cond.as<tir::NENode>();
    PrimExpr holds = cond;
    if (negate && eq) {
      holds = tir::NE(eq->a, eq->b);
    } else if (negate) {
      holds = ne ? PrimExpr(tir::EQ(ne->a, ne->b)) : PrimExpr(tir::Not(cond));
    }
    true_conds_.push_back(holds);
    ++epoch_;
  }
}

namespace {

// Longer alternatives are only compared as they are.
constexpr int kMaxAlternatives = 6;
// Conditions that are looked through for ends of bounds.
constexpr size_t kMaxExcluded = 8;

// Sets a flag for as long as it lives.
class Deriving {
 public:
  explicit Deriving(bool* flag) : flag_(flag) { *flag_ = true; }
  ~Deriving() { *flag_ = false; }
  Deriving(const Deriving&) = delete;
  Deriving& operator=(const Deriving&) = delete;

 private:
  bool* flag_;
};

int CountAlternatives(const PrimExpr& cond) {
  if (const auto* op = cond.as<tir::NotNode>()) return CountAlternatives(op->a);
  if (const auto* op = cond.as<tir::OrNode>()) {
    return CountAlternatives(op->a) + CountAlternatives(op->b);
  }
  if (const auto* op = cond.as<tir::AndNode>()) {
    return CountAlternatives(op->a) + CountAlternatives(op->b);
  }
  return 1;
}

}  // namespace

void AnalyzerCore::AddSharedFacts(const PrimExpr& a, const PrimExpr& b, bool negate) {
  if (deriving_ || CountAlternatives(a) + CountAlternatives(b) > kMaxAlternatives) return;
  const Deriving deriving(&deriving_);
  struct Case {
    AnalyzerCore* core;
    FactCounts before;
    ~Case() { core->ForgetFacts(before); }
  };
  std::vector<Poly> shared;
  for (const auto& [here, there] : {std::make_pair(a, b), std::make_pair(b, a)}) {
    std::vector<Poly> facts;
    {
      const Case one{this, CountFacts()};
      AddFacts(there, negate);
      facts.assign(facts_.begin() + static_cast<std::ptrdiff_t>(one.before.facts), facts_.end());
      for (size_t i = one.before.tightened; i < tightened_.size(); ++i) {
        const AtomId id = tightened_[i].atom;
        const Poly value = ring_.FromAtom(id);
        const Interval was = tightened_[i].before, now = atoms_[id].bound;
        if (now.lo > was.lo) facts.push_back(PolyRing::AddConst(value, CheckedMul(now.lo, -1)));
        if (now.hi < was.hi) {
          facts.push_back(PolyRing::AddConst(PolyRing::Negate(value), now.hi));
        }
      }
    }
    const Case other{this, CountFacts()};
    AddFacts(here, negate);
    for (Poly& fact : facts) {
      if (ProveNonNeg(fact)) shared.push_back(std::move(fact));
    }
  }
  for (Poly& fact : shared) AddFact(std::move(fact));
}

void AnalyzerCore::AddExcluded() {
  if (deriving_ || true_conds_.size() > kMaxExcluded) return;
  const Deriving deriving(&deriving_);
  for (const PrimExpr& cond : std::vector<PrimExpr>(true_conds_)) {
    if (!cond.as<tir::NENode>()) continue;
    const std::optional<Claim> claim = ClaimOf(cond);
    if (!claim) continue;
    for (const Poly& number : {claim->number, PolyRing::Negate(claim->number)}) {
      if (ProveNonNeg(number)) AddFact(PolyRing::AddConst(number, -1));
    }
  }
}

void AnalyzerCore::AddCondition(const PrimExpr& cond) {
  try {
    AddFacts(cond, /*negate=*/false);
    AddExcluded();
  } catch (const PolyOverflow&) {
    // What was understood before the overflow still holds.
  }
  memo_.clear();
}

void AnalyzerCore::DropConditionsFrom(size_t first) {
  if (first >= scopes_.size()) return;
  ForgetFacts(scopes_[first].before);
}

AnalyzerCore::FactCounts AnalyzerCore::CountFacts() const {
  return {facts_.size(), true_conds_.size(), tightened_.size(), congruent_.size()};
}

void AnalyzerCore::ForgetFacts(const FactCounts& before) {
  for (; tightened_.size() > before.tightened; tightened_.pop_back()) {
    atoms_[tightened_.back().atom].bound = tightened_.back().before;
  }
  for (; congruent_.size() > before.congruent; congruent_.pop_back()) {
    atoms_[congruent_.back().atom].congruence = congruent_.back().before;
  }
  facts_.resize(before.facts);
  true_conds_.resize(before.conditions);
  ++epoch_;
  memo_.clear();
}

void AnalyzerCore::ApplyConditions() {
  for (size_t i = 0; i < scopes_.size(); ++i) {
    scopes_[i].before = CountFacts();
    AddCondition(PrimExpr(scopes_[i].cond));
  }
}

std::function<void()> AnalyzerCore::EnterConstraint(const PrimExpr& cond) {
  TVM_CHECK(cond.dtype().is_bool(), ValueError)
      << "Analyzer: a condition must be boolean, got " << cond << " of type " << cond.dtype();
  const int id = ++num_scopes_made_;
  scopes_.push_back({id, cond, CountFacts()});
  AddCondition(cond);
  return [this, id] { LeaveScope(id); };
}

void AnalyzerCore::LeaveScope(int id) {
  auto at = std::find_if(scopes_.rbegin(), scopes_.rend(),
                         [id](const ConditionScope& scope) { return scope.id == id; });
  if (at == scopes_.rend()) return;
  const bool innermost = at == scopes_.rbegin();
  DropConditionsFrom(innermost ? scopes_.size() - 1 : 0);
  scopes_.erase(std::next(at).base());
  if (!innermost) ApplyConditions();
  // The ranges of loops inside of the condition were read with its help.
  std::vector<RangeInScope> before;
  before.swap(ranged_in_scopes_);
  std::vector<AtomId> again;
  for (const RangeInScope& known : before) {
    if (innermost && known.num_scopes <= scopes_.size()) {
      ranged_in_scopes_.push_back(known);
    } else {
      again.push_back(known.atom);
    }
  }
  if (!again.empty()) DeriveRanges(again);
}

bool AnalyzerCore::KnownTrue(const PrimExpr& cond) const {
  return std::any_of(true_conds_.begin(), true_conds_.end(),
                     [&](const PrimExpr& known) { return SameExpr(known, cond); });
}

}  // namespace arith
}  // namespace tvm
