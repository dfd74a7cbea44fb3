/*!
 * \file arith/var_context.cc
 */
#include <tvm/arith/analyzer.h>
#include <tvm/arith/var_context.h>
#include <tvm/expr/op.h>
#include <tvm/expr/substitute.h>
#include <tvm/runtime/registry.h>

#include <string>

#include "analyzer_core.h"

namespace tvm {
namespace arith {

using namespace tir;

TVM_REGISTER_NODE(VarDefNode);
TVM_REGISTER_NODE(SplitGroupNode);
TVM_REGISTER_NODE(VarContextNode);

namespace {

// A name pays off only where it stands for more than a handful of operations.
constexpr int kShorthandNodes = 10;

template <typename F>
bool AllVars(const PrimExpr& e, F accept) {
  bool all = true;
  PostOrderVisit(e, [&](const ObjectRef& node) {
    if (const auto* var = node.as<VarNode>()) all = all && accept(var);
  });
  return all;
}

PrimExpr ProductOf(const SplitGroup& group) {
  PrimExpr product = group->quotient;
  for (const SizeVar& var : group->vars) product = product * var;
  return product;
}

/*! \brief num / den where den divides num visibly, else undefined. */
PrimExpr ExactQuotient(Analyzer* analyzer, const PrimExpr& num, const PrimExpr& den) {
  AnalyzerCore* core = analyzer->core();
  try {
    Poly n = core->Normalize(num), d = core->Normalize(den), quotient;
    if (d.terms.size() != 1 || !core->ring().DivideByTerm(n, d.terms[0], &quotient)) {
      return PrimExpr();
    }
    return core->Emit(quotient, num.dtype());
  } catch (const PolyOverflow&) {
    return PrimExpr();
  }
}

}  // namespace

bool IsSizeConstant(const PrimExpr& expr) {
  return AllVars(expr, [](const VarNode* var) {
    const auto* size = GetRef<Var>(var).as<SizeVarNode>();
    return size && size->kind != SizeVarKind::kOther;
  });
}

bool IsShapeConstant(const PrimExpr& expr) {
  return AllVars(expr, [](const VarNode* var) {
    const auto* size = GetRef<Var>(var).as<SizeVarNode>();
    return size && size->kind == SizeVarKind::kShape;
  });
}

VarContext VarContext::Make() { return VarContext(make_object<VarContextNode>()); }

VarContext VarContext::Copy() const {
  return VarContext(make_object<VarContextNode>(*operator->()));
}

SplitGroup VarContext::DefineSplitGroup(const PrimExpr& extent, int num_parts) const {
  VarContextNode* self = operator->();
  PrimExpr value = Analyzer().Simplify(extent);
  TVM_CHECK(IsShapeConstant(value), ValueError)
      << "DefineSplitGroup: the extent must depend on shape variables only, got " << value;
  std::string g = std::to_string(self->split_counter++);
  DataType dtype = value.dtype();
  SizeVar extent_var("E" + g, dtype, SizeVarKind::kShape);
  SizeVar quotient("q" + g, dtype, SizeVarKind::kQuotient);
  Array<SizeVar> vars;
  for (int j = 0; j < num_parts; ++j) {
    vars.push_back(SizeVar("sp_" + g + "_" + std::to_string(j), dtype, SizeVarKind::kKnob));
  }
  SplitGroup group(extent_var, quotient, vars, value);
  self->var_defs.push_back(VarDef(extent_var, value));
  self->split_groups.push_back(group);
  return group;
}

PrimExpr VarContext::DefineShorthand(const PrimExpr& expr) const {
  VarContextNode* self = operator->();
  if (ExprSize(expr, kShorthandNodes) < kShorthandNodes || !IsSizeConstant(expr)) return expr;
  Analyzer analyzer;
  PrimExpr value = analyzer.Simplify(expr);
  if (ExprSize(value, kShorthandNodes) < kShorthandNodes) return value;
  for (const VarDef& def : self->var_defs) {
    if (analyzer.CanProveEqual(def->value, value)) return def->var;
  }
  SizeVar var("v" + std::to_string(self->var_defs.size()), value.dtype(), SizeVarKind::kShorthand);
  self->var_defs.push_back(VarDef(var, value));
  return var;
}

std::pair<PrimExpr, PrimExpr> VarContext::SplitSizes(const PrimExpr& extent, const PrimExpr& factor,
                                                     bool no_tighten) const {
  Analyzer analyzer;
  auto conservative = [&] {
    PrimExpr inner = no_tighten ? factor : analyzer.Simplify(min(extent, factor));
    return std::make_pair(analyzer.Simplify(ceildiv(extent, factor)), inner);
  };
  if (as_const_int(extent) && as_const_int(factor)) return conservative();
  if (is_one(extent) && !no_tighten) return {extent, extent};
  if (is_one(factor)) return {extent, factor};
  if (PrimExpr outer = ExactQuotient(&analyzer, extent, factor); outer.defined()) {
    return {outer, factor};
  }
  for (const SplitGroup& group : operator->()->split_groups) {
    // Equal numbers may be the extents of several groups; only the right one is divisible.
    PrimExpr outer = ExactQuotient(&analyzer, ProductOf(group), factor);
    if (!outer.defined()) continue;
    if (extent.same_as(group->extent) || analyzer.CanProveEqual(extent, group->extent_expr)) {
      return {outer, factor};
    }
  }
  BindTo(&analyzer);
  return conservative();
}

std::pair<PrimExpr, PrimExpr> VarContext::SplitSizesByParts(const PrimExpr& extent,
                                                            const PrimExpr& nparts) const {
  auto [inner, outer] = SplitSizes(extent, nparts);
  return {outer, inner};
}

PrimExpr VarContext::ExpandDefs(const PrimExpr& expr) const {
  Map<Var, PrimExpr> values;
  for (const VarDef& def : operator->()->var_defs) {
    // A definition may use earlier ones only, so one pass over them in order expands all.
    values.Set(def->var, Substitute(def->value, values));
  }
  return Substitute(expr, values);
}

void VarContext::BindTo(Analyzer* analyzer) const {
  for (const SplitGroup& group : operator->()->split_groups) {
    std::vector<Var> vars = {group->quotient};
    for (const SizeVar& var : group->vars) vars.push_back(var);
    if (const int64_t* extent = as_const_int(group->extent_expr)) {
      for (const Var& var : vars) {
        analyzer->const_int_bound.Update(var, ConstIntBound(1, *extent), /*allow_override=*/true);
      }
    }
    analyzer->core()->StateProduct(vars, group->extent_expr);
    analyzer->Bind(group->extent, group->extent_expr, /*allow_override=*/true);
  }
  for (const VarDef& def : operator->()->var_defs) {
    // A shorthand must not hide a factor from a division.
    if (def->var->kind == SizeVarKind::kShorthand) {
      analyzer->Bind(def->var, def->value, /*allow_override=*/true);
    }
  }
}

TVM_REGISTER_GLOBAL("arith.VarContext").set_body_typed([] { return VarContext::Make(); });
TVM_REGISTER_GLOBAL("arith.VarContextCopy").set_body_typed([](VarContext self) {
  return self.Copy();
});
TVM_REGISTER_GLOBAL("arith.VarContextDefineSplitGroup")
    .set_body_typed([](VarContext self, PrimExpr extent, int num_parts) {
      return self.DefineSplitGroup(extent, num_parts);
    });
TVM_REGISTER_GLOBAL("arith.VarContextDefineShorthand")
    .set_body_typed([](VarContext self, PrimExpr expr) { return self.DefineShorthand(expr); });
TVM_REGISTER_GLOBAL("arith.VarContextSplitSizes")
    .set_body_typed([](VarContext self, PrimExpr extent, PrimExpr factor, bool no_tighten) {
      auto [outer, inner] = self.SplitSizes(extent, factor, no_tighten);
      return Array<PrimExpr>{outer, inner};
    });
TVM_REGISTER_GLOBAL("arith.VarContextSimplify").set_body_typed([](VarContext self, PrimExpr expr) {
  Analyzer analyzer;
  self.BindTo(&analyzer);
  return analyzer.Simplify(expr);
});
TVM_REGISTER_GLOBAL("arith.VarContextGetVarDefs").set_body_typed([](VarContext self) {
  Array<ObjectRef> out;
  for (const VarDef& def : self->var_defs) {
    out.push_back(Array<ObjectRef>{String(def->var->name_hint), def->value});
  }
  return out;
});

}  // namespace arith
}  // namespace tvm
