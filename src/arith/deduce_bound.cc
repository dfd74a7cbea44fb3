/*!
 * \file arith/deduce_bound.cc
 * \brief Solve a comparison for one variable.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/arith/bound.h>
#include <tvm/expr/op.h>
#include <tvm/expr/substitute.h>
#include <tvm/node/repr_printer.h>
#include <tvm/runtime/registry.h>

#include "analyzer_core.h"

namespace tvm {
namespace arith {

using namespace tir;

namespace {

/*!
 * \brief Solves `side * n >= 0` style facts: what must hold of the target for p >= 0.
 *
 * Works outwards in: p is linear in one atom that holds the target; the bound on that atom is
 * turned into a bound on its operand, until the atom is the target itself.
 */
class Solver {
 public:
  Solver(const VarNode* target, const std::unordered_map<const VarNode*, IntSet>& hint_map,
         const std::unordered_map<const VarNode*, IntSet>& relax_map)
      : relax_(relax_map) {
    core_ = analyzer_.core();
    target_ = core_->AtomOfVar(GetRef<Var>(target));
    dtype_ = target->dtype;
    for (const auto* map : {&hint_map, &relax_map}) {
      for (const auto& [var, set] : *map) {
        const int64_t* lo = set.HasLowerBound() ? as_const_int(set.min()) : nullptr;
        const int64_t* hi = set.HasUpperBound() ? as_const_int(set.max()) : nullptr;
        // A relaxed variable takes all values of that set, whatever else is known of it.
        if (map == &hint_map && relax_map.count(var) != 0) continue;
        if (var == target || (!lo && !hi) || (lo && hi && *lo > *hi)) continue;
        Interval bound = IntervalOfType(var->dtype);
        if (lo) bound.lo = *lo;
        if (hi) bound.hi = *hi;
        core_->StateBound(GetRef<Var>(var), bound, /*allow_override=*/true);
      }
    }
  }

  IntSet Solve(const PrimExpr& cond) {
    try {
      if (const auto* op = cond.as<LTNode>()) return Compare(op->a, op->b, 1);
      if (const auto* op = cond.as<LENode>()) return Compare(op->a, op->b, 0);
      if (const auto* op = cond.as<GTNode>()) return Compare(op->b, op->a, 1);
      if (const auto* op = cond.as<GENode>()) return Compare(op->b, op->a, 0);
      if (const auto* op = cond.as<EQNode>()) {
        return Intersect({Compare(op->a, op->b, 0), Compare(op->b, op->a, 0)}, &analyzer_);
      }
    } catch (const PolyOverflow&) {
      // Numbers out of range: not solvable.
    }
    return IntSet::Nothing();
  }

 private:
  IntSet Compare(const PrimExpr& a, const PrimExpr& b, int strict) {
    if (!a.dtype().is_int() || !a.dtype().is_scalar()) return IntSet::Nothing();
    Poly p = PolyRing::Sub(core_->Normalize(b), core_->Normalize(a));
    return NonNegative(core_->Reduce(PolyRing::AddConst(p, -strict)));
  }

  bool Holds(AtomId id) {
    if (id == target_) return true;
    Atom atom = core_->atom(id);
    if (atom.kind == Atom::kVar) return false;
    if (atom.kind == Atom::kOpaque) {
      const Object* target = core_->atom(target_).expr.get();
      bool found = false;
      PostOrderVisit(atom.expr,
                     [&](const ObjectRef& node) { found = found || node.get() == target; });
      return found;
    }
    return Holds(atom.a) || Holds(atom.b);
  }

  bool Holds(const Poly& p) {
    for (const Term& t : p.terms) {
      for (AtomId id : std::vector<AtomId>(core_->ring().Atoms(t.mono))) {
        if (Holds(id)) return true;
      }
    }
    return false;
  }

  /*!
   * \brief Take the target out of one quotient beside which it occurs as well, as it does once
   *        floor(3 x / 2) has become x + floor(x / 2): with b >= 1, floor(a / b) + r >= 0 is
   *        a + r b >= 0, and r - floor(a / b) >= 0 is r b + b - 1 - a >= 0.
   * \return Whether there was one.
   */
  bool OpenQuotient(const Poly& p, AtomId id, Poly* opened) {
    const Atom atom = core_->atom(id);
    Poly coef, rest;
    if (atom.kind != Atom::kFloorDiv || Holds(atom.b) || !core_->ProvePositive(atom.b) ||
        !core_->ring().SplitLinear(p, id, &coef, &rest) || !coef.IsConst()) {
      return false;
    }
    const int64_t scale = coef.ConstTerm();
    if (scale != 1 && scale != -1) return false;
    Poly product = core_->ring().Mul(rest, atom.b);
    if (scale < 0) product = PolyRing::AddConst(PolyRing::Add(product, atom.b), -1);
    *opened = core_->Reduce(PolyRing::AddScaled(product, atom.a, scale));
    return true;
  }

  // The values of the target for which p >= 0.
  IntSet NonNegative(const Poly& p) {
    AtomId id = -1;
    bool several = false;
    std::vector<AtomId> holding;
    for (const Term& t : p.terms) {
      for (AtomId other : std::vector<AtomId>(core_->ring().Atoms(t.mono))) {
        if (!Holds(other)) continue;
        several = several || (id >= 0 && id != other);
        id = other;
        holding.push_back(other);
      }
    }
    if (several) {
      const int64_t g = PolyRing::Content(p, /*with_const=*/false);
      const int64_t number = p.ConstTerm();
      Poly least = PolyRing::AddConst(p, -number), opened;
      for (Term& t : least.terms) t.coef /= g;
      least = PolyRing::AddConst(least, FloorDivInt(number, g));
      for (AtomId quotient : holding) {
        if (OpenQuotient(least, quotient, &opened)) return NonNegative(opened);
      }
      return IntSet::Nothing();
    }
    if (id < 0) return core_->ProveNonNeg(p) ? IntSet::Everything() : IntSet::Nothing();
    Poly coef, rest;
    if (!core_->ring().SplitLinear(p, id, &coef, &rest) || Holds(coef) || Holds(rest)) {
      return IntSet::Nothing();
    }
    // coef * x + rest >= 0 is x >= ceil(-rest / coef), or x <= floor(rest / -coef).
    if (core_->ProvePositive(coef)) {
      Poly least = PolyRing::Negate(core_->FloorDiv(rest, coef));
      return Bounded(id, least, /*lower=*/true);
    }
    coef = PolyRing::Negate(coef);
    if (!core_->ProvePositive(coef)) return IntSet::Nothing();
    return Bounded(id, core_->FloorDiv(rest, coef), /*lower=*/false);
  }

  // What the target is compared with may be of a wider type, which its own would cut off.
  DataType TypeOfEnd(const Poly& end) {
    DataType widest = dtype_;
    for (const Term& t : end.terms) {
      for (AtomId id : std::vector<AtomId>(core_->ring().Atoms(t.mono))) {
        const Atom atom = core_->atom(id);
        const bool leaf = atom.kind == Atom::kVar || atom.kind == Atom::kOpaque;
        DataType other = leaf ? atom.expr.dtype() : TypeOfEnd(atom.a);
        if (other.bits() > widest.bits()) widest = other;
      }
    }
    return widest;
  }

  // The values of the target for which atom `id` is at least, or at most, `end`.
  IntSet Bounded(AtomId id, const Poly& end, bool lower) {
    if (id == target_) {
      PrimExpr value = core_->Emit(end, TypeOfEnd(end));
      // The condition has to hold for every value of the relaxed variables.
      IntSet values = EvalSet(value, relax_, &analyzer_);
      PrimExpr strict = lower ? values.max() : values.min();
      if (IsPosInf(strict) || IsNegInf(strict)) return IntSet::Nothing();
      return lower ? IntSet::Interval(strict, PosInf()) : IntSet::Interval(NegInf(), strict);
    }
    Atom atom = core_->atom(id);
    if (atom.kind != Atom::kFloorDiv || Holds(atom.b) || !core_->ProvePositive(atom.b)) {
      return IntSet::Nothing();
    }
    // floor(a / b) >= e is a >= e b, and floor(a / b) <= e is a <= e b + b - 1.
    Poly product = core_->ring().Mul(end, atom.b);
    if (lower) return NonNegative(core_->Reduce(PolyRing::Sub(atom.a, product)));
    Poly top = PolyRing::AddConst(PolyRing::Add(product, atom.b), -1);
    return NonNegative(core_->Reduce(PolyRing::Sub(top, atom.a)));
  }

  Analyzer analyzer_;
  AnalyzerCore* core_;
  AtomId target_;
  DataType dtype_;
  const std::unordered_map<const VarNode*, IntSet>& relax_;
};

}  // namespace

IntSet DeduceBound(const PrimExpr& v, const PrimExpr& cond,
                   const std::unordered_map<const VarNode*, IntSet>& hint_map,
                   const std::unordered_map<const VarNode*, IntSet>& relax_map) {
  const auto* target = v.as<VarNode>();
  TVM_CHECK(target, ValueError) << "DeduceBound: can only solve for a variable, got " << v;
  TVM_CHECK(cond.defined() && cond.dtype().is_bool(), ValueError)
      << "DeduceBound: the condition must be a boolean expression, got "
      << (cond.defined() ? AsRepr(cond) : "None");
  return Solver(target, hint_map, relax_map).Solve(cond);
}

IntSet DeduceBound(const PrimExpr& v, const PrimExpr& cond, const Map<Var, IntSet>& hint_map,
                   const Map<Var, IntSet>& relax_map) {
  std::unordered_map<const VarNode*, IntSet> hints, relaxed;
  for (const auto& [var, set] : hint_map) hints.emplace(var.get(), set);
  for (const auto& [var, set] : relax_map) relaxed.emplace(var.get(), set);
  return DeduceBound(v, cond, hints, relaxed);
}

TVM_REGISTER_GLOBAL("arith.DeduceBound")
    .set_body_typed([](PrimExpr v, PrimExpr cond, Map<Var, IntSet> hint_map,
                       Map<Var, IntSet> relax_map) {
      return DeduceBound(v, cond, hint_map, relax_map);
    });

}  // namespace arith
}  // namespace tvm
