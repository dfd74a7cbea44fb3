/*!
 * \file arith/analyzer.cc
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/op.h>
#include <tvm/node/repr_printer.h>
#include <tvm/runtime/registry.h>

#include "analyzer_core.h"

namespace tvm {
namespace arith {

using tir::Var;

TVM_REGISTER_NODE(ConstIntBoundNode);
TVM_REGISTER_NODE(ModularSetNode);

TVM_REGISTER_REPR(ConstIntBoundNode, [](const ConstIntBoundNode* node, ReprPrinter* p) {
  auto print = [p](int64_t bound) {
    if (bound == ConstIntBoundNode::kPosInf) {
      p->stream << "pos_inf";
    } else if (bound == ConstIntBoundNode::kNegInf) {
      p->stream << "neg_inf";
    } else {
      p->stream << bound;
    }
  };
  p->stream << "ConstIntBound[";
  print(node->min_value);
  p->stream << ',';
  print(node->max_value);
  p->stream << ']';
});

TVM_REGISTER_REPR(ModularSetNode, [](const ModularSetNode* node, ReprPrinter* p) {
  p->stream << "ModularSet(coeff=" << node->coeff << ", base=" << node->base << ')';
});

ConstIntBound ConstIntBoundAnalyzer::operator()(const PrimExpr& expr) const {
  Interval bound = core_->BoundOfExpr(expr);
  return ConstIntBound(bound.lo, bound.hi);
}

void ConstIntBoundAnalyzer::Update(const Var& var, const ConstIntBound& bound,
                                   bool allow_override) {
  core_->StateBound(var, {bound->min_value, bound->max_value}, allow_override);
}

void ConstIntBoundAnalyzer::Bind(const Var& var, const Range& range, bool allow_override) {
  core_->StateRange(var, range, allow_override);
}

ModularSet ModularSetAnalyzer::operator()(const PrimExpr& expr) const {
  const Congruence found = core_->ModularOfExpr(expr);
  return ModularSet(found.coeff, found.base);
}

void ModularSetAnalyzer::Update(const Var& var, const ModularSet& info, bool allow_override) {
  core_->StateModular(var, info->coeff, info->base, allow_override);
}

PrimExpr Simplifier::operator()(const PrimExpr& expr) const { return core_->Simplify(expr); }

void Simplifier::Update(const Var& var, const PrimExpr& value, bool allow_override) {
  core_->StateValue(var, value, allow_override);
}

IntSet IntSetAnalyzer::operator()(const PrimExpr& expr, const Map<Var, IntSet>& dom_map) const {
  return EvalSet(expr, dom_map, parent_);
}

IntSet IntSetAnalyzer::operator()(const PrimExpr& expr) const {
  Map<Var, IntSet> domains;
  AnalyzerCore* core = parent_->core();
  for (AtomId id : core->ranged_atoms()) {
    Atom atom = core->atom(id);
    if (!atom.has_range) continue;
    DataType dtype = atom.expr.dtype();
    IntSet domain = IntSet::Everything();
    try {
      domain = IntSet::Interval(core->Emit(atom.range_lo, dtype), core->Emit(atom.range_hi, dtype));
    } catch (const PolyOverflow&) {
      // An end that its type does not hold.
    }
    domains.Set(Downcast<Var>(atom.expr), domain);
  }
  return EvalSet(expr, domains, parent_);
}

Analyzer::Analyzer()
    : core_(std::make_unique<AnalyzerCore>()),
      const_int_bound(core_.get()),
      modular_set(core_.get()),
      rewrite_simplify(core_.get()),
      canonical_simplify(core_.get()),
      int_set(this) {}

Analyzer::~Analyzer() = default;

void Analyzer::Bind(const Var& var, const PrimExpr& value, bool allow_override) {
  core_->StateValue(var, value, allow_override);
}

void Analyzer::Bind(const Var& var, const Range& range, bool allow_override) {
  TVM_CHECK(range.defined(), ValueError)
      << "Analyzer.Bind: " << var->name_hint << " needs a range, got none";
  core_->StateRange(var, range, allow_override);
}

void Analyzer::Bind(const Map<Var, Range>& ranges, bool allow_override) {
  for (const auto& [var, range] : ranges) Bind(var, range, allow_override);
}

void Analyzer::MarkPositive(const Var& var) {
  ConstIntBound bound = const_int_bound(var);
  if (bound->min_value < 1) {
    core_->StateBound(var, {1, bound->max_value}, /*allow_override=*/true);
  }
}

PrimExpr Analyzer::Simplify(const PrimExpr& expr, int steps) {
  PrimExpr out = expr;
  for (int i = 0; i < steps; ++i) {
    PrimExpr next = core_->Simplify(out);
    if (next.same_as(out)) break;
    out = next;
  }
  return out;
}

bool Analyzer::CanProve(const PrimExpr& cond) { return tir::is_one(core_->Simplify(cond)); }

bool Analyzer::CanProveEqual(const PrimExpr& lhs, const PrimExpr& rhs) {
  if (lhs.same_as(rhs)) return true;
  if (!lhs.dtype().is_int() || !rhs.dtype().is_int()) return SameExpr(lhs, rhs);
  return CanProve(lhs == rhs);
}

bool Analyzer::CanProveGreaterEqual(const PrimExpr& expr, int64_t lower_bound) {
  return CanProve(expr >= lower_bound);
}

std::function<void()> Analyzer::EnterConstraint(const PrimExpr& cond) {
  return core_->EnterConstraint(cond);
}

namespace {

// Python holds an analyzer as a function from method names to methods.
PackedFunc MakeAnalyzer() {
  auto self = std::make_shared<Analyzer>();
  return TypedPackedFunc<PackedFunc(String)>([self](String name) -> PackedFunc {
    std::string method = name;
    // What messages about arguments of the wrong type begin with: the method's name in Python.
    const std::string title =
        "Analyzer." + (method == "bind_range" || method == "bind_value" ? "bind"
                       : method == "const_int_bound_update" || method == "modular_set_update"
                           ? "update"
                       : method == "enter_constraint_context" ? "constraint_scope"
                       : method == "int_set_bound"            ? "int_set"
                                                              : method);
    auto given = [title](const PrimExpr& e) {
      TVM_CHECK(e.defined(), TypeError) << title << ": expected an expression, got None";
      return e;
    };
    if (method == "const_int_bound") {
      return TypedPackedFunc<ConstIntBound(PrimExpr)>(
          [self, given](PrimExpr e) { return self->const_int_bound(given(e)); }, title);
    }
    if (method == "modular_set") {
      return TypedPackedFunc<ModularSet(PrimExpr)>(
          [self, given](PrimExpr e) { return self->modular_set(given(e)); }, title);
    }
    if (method == "simplify") {
      return TypedPackedFunc<PrimExpr(PrimExpr, int)>(
          [self, given](PrimExpr e, int steps) { return self->Simplify(given(e), steps); }, title);
    }
    if (method == "canonical_simplify") {
      return TypedPackedFunc<PrimExpr(PrimExpr)>(
          [self, given](PrimExpr e) { return self->core()->SimplifyCanonical(given(e)); }, title);
    }
    if (method == "rewrite_simplify") {
      return TypedPackedFunc<PrimExpr(PrimExpr)>(
          [self, given](PrimExpr e) { return self->core()->SimplifyAsMet(given(e)); }, title);
    }
    if (method == "int_set") {
      return TypedPackedFunc<IntSet(PrimExpr, Map<Var, IntSet>)>(
          [self, given](PrimExpr e, Map<Var, IntSet> domains) {
            return self->int_set(given(e), domains);
          },
          title);
    }
    if (method == "int_set_bound") {
      return TypedPackedFunc<IntSet(PrimExpr)>(
          [self, given](PrimExpr e) { return self->int_set(given(e)); }, title);
    }
    if (method == "can_prove") {
      return TypedPackedFunc<bool(PrimExpr)>(
          [self, given](PrimExpr e) { return self->CanProve(given(e)); }, title);
    }
    if (method == "can_prove_equal") {
      return TypedPackedFunc<bool(PrimExpr, PrimExpr)>(
          [self, given](PrimExpr a, PrimExpr b) { return self->CanProveEqual(given(a), given(b)); },
          title);
    }
    if (method == "bind_range") {
      return TypedPackedFunc<void(Var, Range, bool)>(
          [self](Var v, Range r, bool replace) { self->Bind(v, r, replace); }, title);
    }
    if (method == "bind_value") {
      return TypedPackedFunc<void(Var, PrimExpr, bool)>(
          [self](Var v, PrimExpr e, bool replace) { self->Bind(v, e, replace); }, title);
    }
    if (method == "const_int_bound_update") {
      return TypedPackedFunc<void(Var, ConstIntBound, bool)>(
          [self](Var v, ConstIntBound bound, bool replace) {
            self->const_int_bound.Update(v, bound, replace);
          },
          title);
    }
    if (method == "modular_set_update") {
      return TypedPackedFunc<void(Var, ModularSet, bool)>(
          [self](Var v, ModularSet info, bool replace) {
            self->modular_set.Update(v, info, replace);
          },
          title);
    }
    if (method == "set_and_of_ors") {
      return TypedPackedFunc<void(bool)>(
          [self](bool enabled) { self->core()->SetAndOfOrs(enabled); }, title);
    }
    if (method == "enter_constraint_context") {
      return TypedPackedFunc<PackedFunc(PrimExpr)>(
          [self, given](PrimExpr cond) -> PackedFunc {
            return TypedPackedFunc<void()>(
                [self, leave = self->EnterConstraint(given(cond))] { leave(); });
          },
          title);
    }
    TVM_FATAL(ValueError) << "Analyzer has no method " << method;
    throw;  // unreachable
  });
}

}  // namespace

TVM_REGISTER_GLOBAL("arith.CreateAnalyzer").set_body_typed(MakeAnalyzer);

}  // namespace arith
}  // namespace tvm
