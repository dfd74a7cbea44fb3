/*!
 * \file arith/emit.cc
 * \brief From polynomials back to expressions.
 */
#include <tvm/expr/analysis.h>
#include <tvm/expr/op.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "analyzer_core.h"

namespace tvm {
namespace arith {

using namespace tir;

namespace {

// Working with exact integers can lead to a number that the type does not hold although the
// expression's value fits; then the expression stays as it was.
PrimExpr Number(DataType dtype, int64_t value) {
  int64_t limit = int64_t{1} << (std::min(dtype.bits(), 63) - 1);
  if (dtype.bits() < 64 && (value >= limit || value < -limit)) throw PolyOverflow();
  return make_const(dtype, value);
}

Poly PositivePart(const Poly& p) {
  Poly out;
  for (const Term& t : p.terms) {
    if (t.coef > 0) out.terms.push_back(t);
  }
  return out;
}

/*! \brief Terms of a sum, with a zero to subtract from where all are negative. */
size_t WrittenSize(const Poly& p) {
  const bool negative = !p.IsConst() && std::all_of(p.terms.begin(), p.terms.end(),
                                                    [](const Term& t) { return t.coef < 0; });
  return p.terms.size() + (negative ? 1 : 0);
}

}  // namespace

bool AnalyzerCore::IsEmittedFirst(const Poly& x, const Poly& y) {
  if (x.IsConst() || y.IsConst()) return !x.IsConst();
  auto leading = [this](const Poly& p) {
    const bool any_positive = std::any_of(p.terms.begin(), p.terms.end(), [](const Term& t) {
      return t.mono != kUnitMono && t.coef > 0;
    });
    const std::vector<AtomId>* first = nullptr;
    for (const Term& t : p.terms) {
      if (t.mono == kUnitMono || (any_positive && t.coef < 0)) continue;
      const std::vector<AtomId>& atoms = ring_.Atoms(t.mono);
      if (first == nullptr || atoms < *first) first = &atoms;
    }
    return *first;
  };
  return leading(x) < leading(y);
}

PrimExpr AnalyzerCore::EmitAtom(AtomId id, DataType dtype) {
  // A copy: emitting operands may add atoms and move the table.
  Atom atom = atoms_[id];
  switch (atom.kind) {
    case Atom::kVar:
    case Atom::kOpaque:
      return atom.expr.dtype() == dtype ? atom.expr : cast(dtype, atom.expr);
    case Atom::kFloorDiv:
      return tir::FloorDiv(Emit(atom.a, dtype), Emit(atom.b, dtype));
    case Atom::kFloorMod:
      if (divided_rests_.count(id)) {
        const Digit digit = *DigitOf(id);
        return tir::FloorDiv(tir::FloorMod(Emit(digit.number, dtype),
                                           Number(dtype, CheckedMul(digit.weight, digit.base))),
                             Number(dtype, digit.weight));
      }
      return tir::FloorMod(Emit(atom.a, dtype), Emit(atom.b, dtype));
    case Atom::kMinZero:
      return tir::Min(Emit(atom.a, dtype), Number(dtype, 0));
  }
  throw PolyOverflow();  // unreachable: the cases above are all
}

Poly AnalyzerCore::WithInnerOffsets(const Poly& p) {
  int64_t moved = 0;
  for (const Term& t : p.terms) {
    const std::vector<AtomId>& atoms = ring_.Atoms(t.mono);
    if (atoms.size() != 1) continue;
    auto it = inner_offsets_.find(atoms[0]);
    if (it != inner_offsets_.end()) {
      moved = CheckedAdd(moved, CheckedMul(t.coef, it->second));
    }
  }
  // Without a constant there would be one where none is needed.
  return moved == 0 || p.ConstTerm() == 0 ? p : PolyRing::AddConst(p, -moved);
}

PrimExpr AnalyzerCore::EmitTerm(const Term& term, DataType dtype, bool inner_offsets) {
  const std::vector<AtomId> factors = ring_.AtomsAsMet(term.mono);
  if (factors.empty()) return Number(dtype, term.coef);
  PrimExpr out;
  auto offset =
      inner_offsets && factors.size() == 1 ? inner_offsets_.find(factors[0]) : inner_offsets_.end();
  if (offset != inner_offsets_.end()) {
    const Atom atom = atoms_[factors[0]];
    const int64_t inside = CheckedMul(offset->second, atom.b.ConstTerm());
    out = tir::FloorDiv(Emit(PolyRing::AddConst(atom.a, inside), dtype), Emit(atom.b, dtype));
  } else {
    out = EmitAtom(factors[0], dtype);
  }
  for (size_t i = 1; i < factors.size(); ++i) out = tir::Mul(out, EmitAtom(factors[i], dtype));
  return term.coef == 1 ? out : tir::Mul(out, Number(dtype, term.coef));
}

PrimExpr AnalyzerCore::EmitWithFactor(const Poly& p, DataType dtype) {
  if (p.terms.size() < 2) return PrimExpr();
  for (AtomId id : std::vector<AtomId>(ring_.Atoms(p.terms[0].mono))) {
    const MonoId factor = ring_.FromAtom(id).terms[0].mono;
    Poly quotient;
    if (!ring_.DivideByTerm(p, {factor, 1}, &quotient)) continue;
    return tir::Mul(EmitAtom(id, dtype), EmitSum(quotient, dtype));
  }
  return PrimExpr();
}

PrimExpr AnalyzerCore::EmitSum(const Poly& p, DataType dtype) {
  if (p.IsZero()) return Number(dtype, 0);
  const bool as_met = sum_order_ == SumOrder::kAsMet;
  if (as_met) {
    if (PrimExpr product = EmitWithFactor(p, dtype); product.defined()) return product;
  }
  std::vector<Term> terms = WithInnerOffsets(p).terms;
  const bool inner = terms != p.terms;
  // The largest strides first, as an index of rows and columns is written, and then longest common
  // prefixes side by side; numbers last, and a positive term to start with.
  std::sort(terms.begin(), terms.end(), [this, as_met](const Term& x, const Term& y) {
    if (sum_order_ == SumOrder::kCanonical && (x.coef > 0) != (y.coef > 0)) return x.coef > 0;
    if ((x.mono == kUnitMono) != (y.mono == kUnitMono)) return y.mono == kUnitMono;
    if (!as_met && x.coef != y.coef) return x.coef > y.coef;
    return ring_.Atoms(x.mono) < ring_.Atoms(y.mono);
  });
  auto first = std::find_if(terms.begin(), terms.end(), [](const Term& t) { return t.coef > 0; });
  if (as_met && first == terms.end()) first = std::prev(terms.end());
  if (first != terms.end()) std::rotate(terms.begin(), first, first + 1);
  size_t next = 1;
  PrimExpr out;
  if (as_met && terms[0].coef == -1 && terms[0].mono != kUnitMono) {
    out = Number(dtype, 0);
    next = 0;
  } else {
    out = EmitTerm(terms[0], dtype, inner);
  }
  for (size_t i = next; i < terms.size(); ++i) {
    const Term& t = terms[i];
    if (t.coef > 0 || (as_met && t.mono == kUnitMono)) {
      out = tir::Add(out, EmitTerm(t, dtype, inner));
    } else {
      out = tir::Sub(out, EmitTerm({t.mono, CheckedMul(t.coef, -1)}, dtype, inner));
    }
  }
  return out;
}

bool AnalyzerCore::EmitWithMin(const Poly& p, DataType dtype, PrimExpr* out) {
  AtomId low = -1;
  for (const Term& t : p.terms) {
    for (AtomId id : ring_.Atoms(t.mono)) {
      if (atoms_[id].kind == Atom::kMinZero) low = std::max(low, id);
    }
  }
  if (low < 0) return false;
  Poly coef, rest;
  if (!ring_.SplitLinear(p, low, &coef, &rest) || coef.terms.size() != 1) return false;
  // coef * min(d, 0) + rest is |coef| * min(d + s, s) + (rest - |coef| * s) for every s, and with a
  // negative coefficient |coef| * max(s - d, s) + (rest - |coef| * s). As min(d, 0) is -max(-d, 0),
  // the other extreme may be subtracted as well: (rest + |coef| * s) - |coef| * max(s - d, s).
  // Choose the shortest of these.
  const Poly d = atoms_[low].a;
  const bool negative = coef.terms[0].coef < 0;
  const Term scale{coef.terms[0].mono,
                   negative ? CheckedMul(coef.terms[0].coef, -1) : coef.terms[0].coef};
  struct Form {
    bool is_max, subtracted;
    Poly first, second, outside;  // the operands of the extreme, and what is added to it
    size_t size;
  };
  std::optional<Form> best;
  for (bool subtracted : {false, true}) {
    const bool is_max = negative != subtracted;
    const Poly other = is_max ? PolyRing::Negate(d) : d;
    std::vector<Poly> shifts{PositivePart(PolyRing::Negate(other))};
    Poly shared;
    for (const Term& t : rest.terms) {
      MonoId mono;
      if (t.coef % scale.coef != 0 || !ring_.DivMono(t.mono, scale.mono, &mono)) continue;
      bool occurs =
          mono == kUnitMono || std::any_of(d.terms.begin(), d.terms.end(),
                                           [mono](const Term& x) { return x.mono == mono; });
      const int64_t times = subtracted ? CheckedMul(t.coef, -1) : t.coef;
      if (occurs) shared = PolyRing::Add(shared, PolyRing::FromTerm({mono, times / scale.coef}));
    }
    shifts.push_back(shared);
    shifts.push_back(Poly());
    for (const Poly& s : shifts) {
      const Poly moved = ring_.MulTerm(s, scale);
      Form form{is_max,
                subtracted,
                PolyRing::Add(other, s),
                s,
                subtracted ? PolyRing::Add(rest, moved) : PolyRing::Sub(rest, moved),
                0};
      form.size = WrittenSize(form.first) + WrittenSize(s) + form.outside.terms.size();
      // Subtracting from nothing is a term more.
      if (subtracted && form.outside.IsZero()) ++form.size;
      if (!best || form.size < best->size) best = std::move(form);
    }
  }
  if (IsEmittedFirst(best->second, best->first)) std::swap(best->first, best->second);
  PrimExpr x = Emit(best->first, dtype), y = Emit(best->second, dtype);
  PrimExpr value = best->is_max ? PrimExpr(tir::Max(x, y)) : PrimExpr(tir::Min(x, y));
  for (AtomId id : std::vector<AtomId>(ring_.Atoms(scale.mono))) {
    value = tir::Mul(value, EmitAtom(id, dtype));
  }
  if (scale.coef != 1) {
    const bool negated = best->subtracted && best->outside.IsZero();
    value = tir::Mul(value, Number(dtype, negated ? CheckedMul(scale.coef, -1) : scale.coef));
    if (negated) {
      *out = value;
      return true;
    }
  }
  const Poly& outside = best->outside;
  bool all_negative = std::all_of(outside.terms.begin(), outside.terms.end(),
                                  [](const Term& t) { return t.coef < 0; });
  if (best->subtracted) {
    *out = tir::Sub(Emit(outside, dtype), value);
  } else if (outside.IsZero()) {
    *out = value;
  } else if (all_negative) {
    *out = tir::Sub(value, Emit(PolyRing::Negate(outside), dtype));
  } else {
    *out = tir::Add(value, Emit(outside, dtype));
  }
  return true;
}

PrimExpr AnalyzerCore::Emit(const Poly& p, DataType dtype) {
  PrimExpr out;
  if (EmitWithMin(p, dtype, &out)) return out;
  return EmitSum(p, dtype);
}

bool SameExpr(const PrimExpr& a, const PrimExpr& b) {
  if (a.same_as(b)) return true;
  if (a->type_index() != b->type_index() || a.dtype() != b.dtype()) return false;
  if (a.as<VarNode>()) return false;
  if (const auto* x = a.as<IntImmNode>()) return x->value == b.as<IntImmNode>()->value;
#define TVM_SAME_BINARY(Node)                            \
  if (const auto* x = a.as<Node>()) {                    \
    const auto* y = b.as<Node>();                        \
    return SameExpr(x->a, y->a) && SameExpr(x->b, y->b); \
  }
  TVM_SAME_BINARY(AddNode)
  TVM_SAME_BINARY(SubNode)
  TVM_SAME_BINARY(MulNode)
  TVM_SAME_BINARY(FloorDivNode)
  TVM_SAME_BINARY(FloorModNode)
  TVM_SAME_BINARY(MinNode)
  TVM_SAME_BINARY(MaxNode)
  TVM_SAME_BINARY(LTNode)
  TVM_SAME_BINARY(LENode)
  TVM_SAME_BINARY(EQNode)
#undef TVM_SAME_BINARY
  // Not structural equality: that would take loads of two buffers of one shape for the same value.
  return tir::ExprDeepEqual()(a, b);
}

namespace {

void CountNodes(const PrimExpr& e, int limit, int* count) {
  if (++*count > limit) return;
#define TVM_COUNT_BINARY(Node)              \
  if (const auto* op = e.as<Node>()) {      \
    CountNodes(op->a, limit, count);        \
    return CountNodes(op->b, limit, count); \
  }
  TVM_COUNT_BINARY(AddNode)
  TVM_COUNT_BINARY(SubNode)
  TVM_COUNT_BINARY(MulNode)
  TVM_COUNT_BINARY(FloorDivNode)
  TVM_COUNT_BINARY(FloorModNode)
  TVM_COUNT_BINARY(MinNode)
  TVM_COUNT_BINARY(MaxNode)
  TVM_COUNT_BINARY(DivNode)
  TVM_COUNT_BINARY(ModNode)
  TVM_COUNT_BINARY(LTNode)
  TVM_COUNT_BINARY(LENode)
  TVM_COUNT_BINARY(EQNode)
  TVM_COUNT_BINARY(NENode)
#undef TVM_COUNT_BINARY
  if (const auto* op = e.as<CastNode>()) return CountNodes(op->value, limit, count);
  if (const auto* op = e.as<SelectNode>()) {
    CountNodes(op->condition, limit, count);
    CountNodes(op->true_value, limit, count);
    return CountNodes(op->false_value, limit, count);
  }
  if (const auto* op = e.as<CallNode>()) {
    for (const PrimExpr& arg : op->args) CountNodes(arg, limit, count);
  }
}

}  // namespace

int ExprSize(const PrimExpr& e, int limit) {
  int count = 0;
  CountNodes(e, limit, &count);
  return count;
}

}  // namespace arith
}  // namespace tvm
