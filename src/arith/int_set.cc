/*!
 * \file arith/int_set.cc
 * \brief Intervals with symbolic ends, and the values of an expression over such intervals.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/arith/int_set.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/lanes.h>
#include <tvm/expr/op.h>
#include <tvm/expr/substitute.h>
#include <tvm/node/repr_printer.h>

#include <algorithm>
#include <optional>

#include "analyzer_core.h"

namespace tvm {
namespace arith {

using namespace tir;

TVM_REGISTER_NODE(IntSetNode);
TVM_REGISTER_NODE(IntervalSetNode);

TVM_REGISTER_REPR(IntervalSetNode, [](const IntervalSetNode* node, ReprPrinter* p) {
  p->stream << "IntervalSet[" << node->min_value << ", " << node->max_value << ']';
});

Var PosInf() {
  static const Var symbol("pos_inf", DataType::Handle());
  return symbol;
}

Var NegInf() {
  static const Var symbol("neg_inf", DataType::Handle());
  return symbol;
}

bool IsPosInf(const PrimExpr& value) { return value.same_as(PosInf()); }
bool IsNegInf(const PrimExpr& value) { return value.same_as(NegInf()); }

IntervalSet IntervalSet::Everything() { return IntervalSet(NegInf(), PosInf()); }
IntervalSet IntervalSet::Empty() { return IntervalSet(PosInf(), NegInf()); }

namespace {

const IntervalSetNode* AsInterval(const IntSet& set) {
  const auto* node = set.as<IntervalSetNode>();
  ICHECK(node) << "integer sets are intervals, got "
               << (set.defined() ? set->GetTypeKey() : "none");
  return node;
}

bool Unbounded(const PrimExpr& end) { return IsPosInf(end) || IsNegInf(end); }

/*! \brief Ends of polynomials while some variables run over sets. */
class SetEvaluator {
 public:
  SetEvaluator(Analyzer* analyzer, const std::unordered_map<const VarNode*, IntSet>& dom_map)
      : core_(analyzer->core()), ring_(core_->ring()) {
    for (const auto& [var, set] : dom_map) {
      // A variable whose only value is its own stands for itself: replacing it would never end.
      if (set.IsSinglePoint() && AsInterval(set)->min_value.get() == var) continue;
      vars_.insert(var);
      domains_.emplace(core_->AtomOfVar(GetRef<Var>(var)), set);
    }
  }

  IntSet Eval(const PrimExpr& e) {
    if (const auto* op = e.as<RampNode>()) {
      return arith::Union({Eval(op->base), Eval(LastOfRamp(op))});
    }
    if (const auto* op = e.as<BroadcastNode>()) return Eval(op->value);
    if (!e.dtype().is_scalar()) {
      PrimExpr simple = core_->Simplify(e);
      bool lanes_known = simple.as<RampNode>() || simple.as<BroadcastNode>();
      return lanes_known ? Eval(simple) : IntSet::Everything();
    }
    if (!e.dtype().is_int()) {
      if (!DependsOnDomains(e)) return IntSet::SinglePoint(e);
      if (!e.dtype().is_bool()) return IntSet::Everything();
      const std::optional<bool> truth = Truth(e);
      if (truth) return IntSet::SinglePoint(make_const(e.dtype(), *truth ? 1 : 0));
      return IntSet::Interval(make_const(e.dtype(), 0), make_const(e.dtype(), 1));
    }
    return EvalRange(e, e);
  }

  /*! \brief From the least value of `low` to the greatest of `high`. */
  IntSet EvalRange(const PrimExpr& low, const PrimExpr& high) {
    try {
      std::optional<Poly> lo = End(Normalize(low), /*upper=*/false, 0);
      std::optional<Poly> hi = End(Normalize(high), /*upper=*/true, 0);
      if (empty_) return IntSet::Nothing();
      PrimExpr min = lo ? core_->Emit(core_->Reduce(*lo), low.dtype()) : PrimExpr(NegInf());
      if (lo && hi && *lo == *hi && low.dtype() == high.dtype()) {
        return IntSet::SinglePoint(min);
      }
      PrimExpr max = hi ? core_->Emit(core_->Reduce(*hi), high.dtype()) : PrimExpr(PosInf());
      return IntSet::Interval(min, max);
    } catch (const PolyOverflow&) {
      return IntSet::Everything();
    }
  }

 private:
  struct Domain {
    std::optional<Poly> lo, hi;
    bool empty = false;
  };

  Poly Normalize(const PrimExpr& e) { return core_->Reduce(core_->Normalize(e)); }

  /*! \brief What a condition is for all values of the variables, if it is one thing. */
  std::optional<bool> Truth(const PrimExpr& e) {
    if (const auto* op = e.as<NotNode>()) {
      const std::optional<bool> a = Truth(op->a);
      return a ? std::optional<bool>(!*a) : std::nullopt;
    }
    const auto* both = e.as<AndNode>();
    const auto* either = e.as<OrNode>();
    if (both || either) {
      const std::optional<bool> a = Truth(both ? both->a : either->a);
      const std::optional<bool> b = Truth(both ? both->b : either->b);
      const bool decides = either != nullptr;
      if ((a && *a == decides) || (b && *b == decides)) return decides;
      return a && b ? std::optional<bool>(!decides) : std::nullopt;
    }
    if (const auto* op = e.as<GTNode>()) return IsLess(op->b, op->a, 1);
    if (const auto* op = e.as<GENode>()) return IsLess(op->b, op->a, 0);
    if (const auto* op = e.as<LTNode>()) return IsLess(op->a, op->b, 1);
    if (const auto* op = e.as<LENode>()) return IsLess(op->a, op->b, 0);
    const auto* eq = e.as<EQNode>();
    const auto* ne = e.as<NENode>();
    if (!eq && !ne) return std::nullopt;
    const PrimExpr a = eq ? eq->a : ne->a, b = eq ? eq->b : ne->b;
    const std::optional<bool> above = IsLess(a, b, 0), below = IsLess(b, a, 0);
    if ((above && !*above) || (below && !*below)) return ne != nullptr;
    return above && below ? std::optional<bool>(eq != nullptr) : std::nullopt;
  }

  /*! \brief Whether `a` is at least `gap` below `b`. */
  std::optional<bool> IsLess(const PrimExpr& a, const PrimExpr& b, int64_t gap) {
    if (!a.dtype().is_int() || !a.dtype().is_scalar()) return std::nullopt;
    try {
      const Poly p = PolyRing::AddConst(PolyRing::Sub(Normalize(b), Normalize(a)), -gap);
      const std::optional<Poly> low = End(p, /*upper=*/false, 0);
      if (low && core_->ProveNonNeg(*low)) return true;
      const std::optional<Poly> high = End(p, /*upper=*/true, 0);
      if (high && core_->ProvePositive(PolyRing::Negate(*high))) return false;
    } catch (const PolyOverflow&) {
      // Too large to be compared.
    }
    return std::nullopt;
  }

  // An expression mentions few of the variables that have a set.
  const Domain& DomainOf(AtomId id) {
    auto [it, fresh] = ends_.try_emplace(id);
    if (!fresh) return it->second;
    const IntSet& set = domains_.at(id);
    Domain domain;
    domain.empty = set.IsNothing();
    if (set.HasLowerBound()) domain.lo = Normalize(set.min());
    if (set.HasUpperBound()) domain.hi = Normalize(set.max());
    return it->second = std::move(domain);
  }

  // What another tensor holds is not known where a region is: it may not even be computed by then.
  bool DependsOnDomains(const PrimExpr& e) {
    bool found = false;
    PostOrderVisit(e, [&](const ObjectRef& node) {
      found = found || node->IsInstance<ProducerLoadNode>();
      if (const auto* var = node.as<VarNode>()) found = found || vars_.count(var);
    });
    return found;
  }

  bool Depends(AtomId id) {
    auto it = depends_.find(id);
    if (it != depends_.end()) return it->second;
    Atom atom = core_->atom(id);
    bool out = false;
    if (atom.kind == Atom::kVar) {
      out = domains_.count(id) > 0;
    } else if (atom.kind == Atom::kOpaque) {
      out = DependsOnDomains(atom.expr);
    } else {
      out = Depends(atom.a) || Depends(atom.b);
    }
    depends_[id] = out;
    return out;
  }

  bool Depends(const Poly& p) {
    for (const Term& t : p.terms) {
      for (AtomId id : std::vector<AtomId>(ring_.Atoms(t.mono))) {
        if (Depends(id)) return true;
      }
    }
    return false;
  }

  // The atom to replace next: compound ones first, then variables in whose stead no other
  // variable's ends will bring them back.
  AtomId Pick(const Poly& p) {
    std::vector<AtomId> found;
    for (const Term& t : p.terms) {
      for (AtomId id : std::vector<AtomId>(ring_.Atoms(t.mono))) {
        if (Depends(id) && std::find(found.begin(), found.end(), id) == found.end()) {
          found.push_back(id);
        }
      }
    }
    if (found.empty()) return -1;
    std::sort(found.begin(), found.end(), std::greater<AtomId>());
    for (AtomId id : found) {
      if (core_->atom(id).kind != Atom::kVar) return id;
    }
    for (AtomId id : found) {
      bool mentioned = std::any_of(found.begin(), found.end(), [&](AtomId other) {
        const Domain& d = DomainOf(other);
        return other != id &&
               ((d.lo && ring_.Mentions(*d.lo, id)) || (d.hi && ring_.Mentions(*d.hi, id)));
      });
      if (!mentioned) return id;
    }
    return found[0];
  }

  // Least or greatest value of one atom.
  std::optional<Poly> AtomEnd(AtomId id, bool upper, int depth) {
    Atom atom = core_->atom(id);
    if (atom.kind == Atom::kVar) {
      const Domain& domain = DomainOf(id);
      empty_ = empty_ || domain.empty;
      return upper ? domain.hi : domain.lo;
    }
    if (atom.kind == Atom::kMinZero) {
      std::optional<Poly> d = End(atom.a, upper, depth + 1);
      if (!d) return upper ? std::optional<Poly>(Poly()) : std::nullopt;
      return core_->MinZero(*d);
    }
    if (atom.kind == Atom::kFloorDiv || atom.kind == Atom::kFloorMod) {
      if (Depends(atom.b) || !core_->ProvePositive(atom.b)) return NumberEnd(id, upper);
      std::optional<Poly> lo = End(atom.a, false, depth + 1), hi = End(atom.a, true, depth + 1);
      if (atom.kind == Atom::kFloorDiv) {
        const std::optional<Poly>& end = upper ? hi : lo;
        if (!end) return std::nullopt;
        return core_->FloorDiv(*end, atom.b);
      }
      if (lo && hi && core_->FloorDiv(*lo, atom.b) == core_->FloorDiv(*hi, atom.b)) {
        return core_->FloorMod(upper ? *hi : *lo, atom.b);
      }
      return upper ? PolyRing::AddConst(atom.b, -1) : Poly();
    }
    const auto* select = atom.expr.as<SelectNode>();
    const auto* call = atom.expr.as<CallNode>();
    const bool branches = call && call->op.same_as(builtin::if_then_else());
    if (select || branches) {
      const PrimExpr chosen = select ? select->true_value : call->args[1];
      const PrimExpr other = select ? select->false_value : call->args[2];
      return FartherEnd(Normalize(chosen), Normalize(other), upper, depth);
    }
    if (call && call->op.same_as(builtin::likely())) {
      return End(Normalize(call->args[0]), upper, depth + 1);
    }
    if (const auto* op = atom.expr.as<ModNode>()) {
      const int64_t* divisor = as_const_int(op->b);
      std::optional<Poly> lo = End(Normalize(op->a), false, depth + 1);
      if (divisor != nullptr && *divisor > 0 && lo && core_->ProveNonNeg(*lo)) {
        return End(core_->FloorMod(Normalize(op->a), PolyRing::Const(*divisor)), upper, depth + 1);
      }
    }
    if (const auto* op = atom.expr.as<DivNode>()) {
      const int64_t* divisor = as_const_int(op->b);
      if (divisor != nullptr && *divisor > 0) {
        std::optional<Poly> end = End(Normalize(op->a), upper, depth + 1);
        if (!end) return std::nullopt;
        // Rounding towards zero gives the floor, or one more for negative numbers.
        int64_t more = upper && !core_->ProveNonNeg(*end) ? 1 : 0;
        return PolyRing::AddConst(core_->FloorDiv(*end, PolyRing::Const(*divisor)), more);
      }
    }
    return NumberEnd(id, upper);
  }

  // Only what holds whatever the variables are. A bound this far out comes from the type of some
  // operand, as in (n << 1) / 8: no bound of anything that is stored.
  std::optional<Poly> NumberEnd(AtomId id, bool upper) {
    constexpr int64_t kFar = int64_t{1} << 26;
    Interval bound = core_->BoundOfAtom(id);
    if (upper ? bound.hi >= kFar : bound.lo <= -kFar) return std::nullopt;
    return PolyRing::Const(upper ? bound.hi : bound.lo);
  }

  /*! \brief The lesser lower end, or the greater upper end, of two numbers. */
  std::optional<Poly> FartherEnd(const Poly& x, const Poly& y, bool upper, int depth) {
    std::optional<Poly> a = End(x, upper, depth + 1), b = End(y, upper, depth + 1);
    if (!a || !b) return std::nullopt;
    Poly low = core_->MinZero(PolyRing::Sub(*a, *b));
    return core_->Reduce(upper ? PolyRing::Sub(*a, low) : PolyRing::Add(*b, low));
  }

  /*! \brief An end from the numbers that bound each atom; none if one has no such bound. */
  std::optional<Poly> EndByNumbers(const Poly& p, bool upper, int depth) {
    Interval sum{0, 0};
    for (const Term& t : std::vector<Term>(p.terms)) {
      Interval product{t.coef, t.coef};
      const std::vector<AtomId> ids = ring_.Atoms(t.mono);
      for (size_t i = 0, next = 0; i < ids.size(); i = next) {
        std::optional<Poly> lo = PolyRing::Const(0), hi = lo;
        if (Depends(ids[i])) {
          lo = AtomEnd(ids[i], false, depth + 1), hi = AtomEnd(ids[i], true, depth + 1);
        } else {
          lo = NumberEnd(ids[i], false), hi = NumberEnd(ids[i], true);
        }
        if (!lo || !hi || !lo->IsConst() || !hi->IsConst()) return std::nullopt;
        const Interval value{lo->ConstTerm(), hi->ConstTerm()};
        Interval power = value;
        for (next = i + 1; next < ids.size() && ids[next] == ids[i]; ++next) power = power * value;
        if ((next - i) % 2 == 0) power.lo = std::max<int64_t>(power.lo, 0);
        product = product * power;
      }
      sum = sum + product;
    }
    if (upper ? !sum.HasUpper() : !sum.HasLower()) return std::nullopt;
    return PolyRing::Const(upper ? sum.hi : sum.lo);
  }

  // Minima inside of each other that are taken apart: their cases multiply.
  static constexpr int kMaxCases = 4;

  std::optional<Poly> End(Poly p, bool upper, int depth) {
    // Ends that mention each other in a circle would replace variables for ever.
    constexpr int kMaxSteps = 64;
    if (depth > 16) return std::nullopt;
    for (int step = 0; step < kMaxSteps; ++step) {
      AtomId id = Pick(p);
      if (id < 0) return p;
      Poly coef, rest;
      if (!ring_.SplitLinear(p, id, &coef, &rest)) return EndByNumbers(p, upper, depth);
      int sign = Sign(coef, depth);
      if (sign == 0 && Depends(coef)) return EndByNumbers(p, upper, depth);
      if (sign == 0) {
        // One of the atom's ends gives the least, and the other the greatest.
        std::optional<Poly> lo = AtomEnd(id, false, depth), hi = AtomEnd(id, true, depth);
        if (!lo || !hi) return std::nullopt;
        return FartherEnd(PolyRing::Add(rest, ring_.Mul(coef, *lo)),
                          PolyRing::Add(rest, ring_.Mul(coef, *hi)), upper, depth);
      }
      if (depth < kMaxCases && core_->atom(id).kind == Atom::kMinZero && Depends(rest)) {
        return EndOfMin(rest, PolyRing::Add(rest, ring_.Mul(coef, core_->atom(id).a)), sign > 0,
                        upper, depth);
      }
      std::optional<Poly> end = AtomEnd(id, upper == (sign > 0), depth);
      if (!end) return std::nullopt;
      p = core_->Reduce(PolyRing::Add(rest, ring_.Mul(coef, *end)));
    }
    return std::nullopt;
  }

  // End of the minimum or maximum of x and y. What surrounds a minimum went into both, so that a
  // variable inside and outside of it, as in max(i, n) = i - min(i - n, 0), has one value.
  std::optional<Poly> EndOfMin(const Poly& x, const Poly& y, bool minimum, bool upper, int depth) {
    std::optional<Poly> a = End(x, upper, depth + 1), b = End(y, upper, depth + 1);
    // Either of the two bounds their minimum from above and their maximum from below.
    if (!a || !b) return minimum == upper ? (a ? a : b) : std::nullopt;
    Poly low = core_->MinZero(PolyRing::Sub(*a, *b));
    return core_->Reduce(minimum ? PolyRing::Add(*b, low) : PolyRing::Sub(*a, low));
  }

  int Sign(const Poly& p, int depth) {
    Interval bound = core_->Bound(p);
    if (bound.lo >= 0) return 1;
    if (bound.hi <= 0) return -1;
    std::optional<Poly> lo = Depends(p) ? End(p, false, depth + 1) : std::optional<Poly>(p);
    if (lo && core_->ProveNonNeg(*lo)) return 1;
    std::optional<Poly> hi = Depends(p) ? End(p, true, depth + 1) : std::optional<Poly>(p);
    if (hi && core_->ProveNonNeg(PolyRing::Negate(*hi))) return -1;
    return 0;
  }

  AnalyzerCore* core_;
  PolyRing& ring_;
  std::unordered_map<AtomId, IntSet> domains_;
  std::unordered_map<AtomId, Domain> ends_;  // of those domains that were needed
  std::unordered_set<const VarNode*> vars_;
  std::unordered_map<AtomId, bool> depends_;
  bool empty_ = false;
};

using DomMap = std::unordered_map<const VarNode*, IntSet>;

DomMap ToDomMap(const Map<Var, IntSet>& map) {
  DomMap out;
  for (const auto& [var, set] : map) out.emplace(var.get(), set);
  return out;
}

DomMap ToDomMap(const Map<IterVar, IntSet>& map) {
  DomMap out;
  for (const auto& [iter, set] : map) out.emplace(iter->var.get(), set);
  return out;
}

template <typename F>
IntSet WithAnalyzer(Analyzer* analyzer, F f) {
  if (analyzer) return f(analyzer);
  Analyzer local;
  return f(&local);
}

}  // namespace

IntSet IntSet::Nothing() { return IntervalSet::Empty(); }
IntSet IntSet::Everything() { return IntervalSet::Everything(); }
IntSet IntSet::SinglePoint(PrimExpr point) { return IntervalSet(point, point); }

IntSet IntSet::Interval(PrimExpr min, PrimExpr max) {
  if (min.same_as(max)) return SinglePoint(min);
  return IntervalSet(std::move(min), std::move(max));
}

IntSet IntSet::FromMinExtent(PrimExpr min, PrimExpr extent) {
  if (is_one(extent)) return SinglePoint(min);
  if (is_zero(extent)) return Nothing();
  PrimExpr last = min + extent - 1;
  return Interval(min, as_const_int(last) ? last : Analyzer().Simplify(last));
}

IntSet IntSet::FromRange(const Range& range) { return FromMinExtent(range->min, range->extent); }

Range IntSet::CoverRange(Range max_range) const {
  const IntervalSetNode* set = AsInterval(*this);
  if (!HasLowerBound() || !HasUpperBound()) return max_range;
  if (IsSinglePoint()) return Range::FromMinExtent(set->min_value, make_const(min().dtype(), 1));
  Analyzer analyzer;
  return Range::FromMinExtent(set->min_value,
                              analyzer.Simplify(set->max_value + 1 - set->min_value));
}

PrimExpr IntSet::min() const { return AsInterval(*this)->min_value; }
PrimExpr IntSet::max() const { return AsInterval(*this)->max_value; }

bool IntSet::HasLowerBound() const { return !Unbounded(min()); }
bool IntSet::HasUpperBound() const { return !Unbounded(max()); }
bool IntSet::IsEverything() const { return IsNegInf(min()) && IsPosInf(max()); }

bool IntSet::IsNothing() const {
  if (IsPosInf(min()) || IsNegInf(max())) return true;
  const int64_t* lo = as_const_int(min());
  const int64_t* hi = as_const_int(max());
  return lo && hi && *lo > *hi;
}

bool IntSet::IsSinglePoint() const {
  return HasLowerBound() && HasUpperBound() && SameExpr(min(), max());
}

PrimExpr IntSet::PointValue() const {
  ICHECK(IsSinglePoint()) << "the set from " << min() << " to " << max() << " is no single point";
  return min();
}

bool IntSet::CanProvePositive() const { return HasLowerBound() && Analyzer().CanProve(min() > 0); }
bool IntSet::CanProveNegative() const { return HasUpperBound() && Analyzer().CanProve(max() < 0); }
bool IntSet::CanProveNonPositive() const {
  return HasUpperBound() && Analyzer().CanProve(max() <= 0);
}
bool IntSet::CanProveNonNegative() const {
  return HasLowerBound() && Analyzer().CanProve(min() >= 0);
}

bool IntSet::MatchRange(const Range& range) const {
  if (!HasLowerBound() || !HasUpperBound()) return false;
  if (const int64_t* extent = as_const_int(range->extent)) {
    if (*extent != 1 && IsSinglePoint()) return false;
  }
  // Most ends are numbers or the same expressions, which need no analyzer.
  std::optional<Analyzer> analyzer;
  auto equal = [&analyzer](const PrimExpr& a, const PrimExpr& b) {
    const int64_t *x = as_const_int(a), *y = as_const_int(b);
    if (x && y) return *x == *y;
    if (SameExpr(a, b)) return true;
    if (!analyzer) analyzer.emplace();
    return analyzer->CanProveEqual(a, b);
  };
  return equal(min(), range->min) && equal(max(), range->min + range->extent - 1);
}

IntSet EvalSet(const PrimExpr& expr, const DomMap& dom_map, Analyzer* analyzer) {
  return WithAnalyzer(analyzer, [&](Analyzer* a) { return SetEvaluator(a, dom_map).Eval(expr); });
}

IntSet EvalSet(const PrimExpr& expr, const Map<Var, IntSet>& dom_map, Analyzer* analyzer) {
  return EvalSet(expr, ToDomMap(dom_map), analyzer);
}

IntSet EvalSet(const PrimExpr& expr, const Map<IterVar, IntSet>& dom_map, Analyzer* analyzer) {
  return EvalSet(expr, ToDomMap(dom_map), analyzer);
}

IntSet EvalSet(const Range& range, const DomMap& dom_map, Analyzer* analyzer) {
  return WithAnalyzer(analyzer, [&](Analyzer* a) {
    return SetEvaluator(a, dom_map).EvalRange(range->min, range->min + range->extent - 1);
  });
}

IntSet EvalSet(const Range& range, const Map<Var, IntSet>& dom_map, Analyzer* analyzer) {
  return EvalSet(range, ToDomMap(dom_map), analyzer);
}

IntSet EvalSet(const Range& range, const Map<IterVar, IntSet>& dom_map, Analyzer* analyzer) {
  return EvalSet(range, ToDomMap(dom_map), analyzer);
}

IntSet EvalSet(const IntSet& set, const DomMap& dom_map, Analyzer* analyzer) {
  if (set.IsNothing() || set.IsEverything()) return set;
  return WithAnalyzer(analyzer, [&](Analyzer* a) {
    SetEvaluator evaluator(a, dom_map);
    if (set.HasLowerBound() && set.HasUpperBound()) {
      return evaluator.EvalRange(set.min(), set.max());
    }
    if (set.HasLowerBound()) return IntSet::Interval(evaluator.Eval(set.min()).min(), PosInf());
    return IntSet::Interval(NegInf(), evaluator.Eval(set.max()).max());
  });
}

IntSet Union(const Array<IntSet>& sets, Analyzer* analyzer) {
  PrimExpr low, high;
  return WithAnalyzer(analyzer, [&](Analyzer* a) -> IntSet {
    for (const IntSet& set : sets) {
      if (set.IsNothing()) continue;
      if (!low.defined()) {
        low = set.min(), high = set.max();
        continue;
      }
      if (!Unbounded(low)) {
        low = Unbounded(set.min()) ? set.min() : a->Simplify(tvm::min(low, set.min()));
      }
      if (!Unbounded(high)) {
        high = Unbounded(set.max()) ? set.max() : a->Simplify(tvm::max(high, set.max()));
      }
    }
    if (!low.defined()) return IntSet::Nothing();
    return SameExpr(low, high) ? IntSet::SinglePoint(low) : IntSet::Interval(low, high);
  });
}

IntSet Intersect(const Array<IntSet>& sets, Analyzer* analyzer) {
  PrimExpr low = NegInf(), high = PosInf();
  return WithAnalyzer(analyzer, [&](Analyzer* a) -> IntSet {
    for (const IntSet& set : sets) {
      if (set.IsNothing()) return IntSet::Nothing();
      if (!Unbounded(set.min())) {
        low = Unbounded(low) ? set.min() : a->Simplify(tvm::max(low, set.min()));
      }
      if (!Unbounded(set.max())) {
        high = Unbounded(high) ? set.max() : a->Simplify(tvm::min(high, set.max()));
      }
    }
    if (!Unbounded(low) && !Unbounded(high) && a->CanProve(high < low)) return IntSet::Nothing();
    return SameExpr(low, high) ? IntSet::SinglePoint(low) : IntSet::Interval(low, high);
  });
}

}  // namespace arith
}  // namespace tvm
