/*!
 * \file arith/detect_linear.cc
 * \brief Linear forms, and the bounds that a condition puts on variables.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/arith/pattern.h>
#include <tvm/expr/op.h>
#include <tvm/expr/substitute.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <optional>

#include "analyzer_core.h"

namespace tvm {
namespace arith {

using namespace tir;

namespace {

bool MentionsAny(const PrimExpr& e, const std::vector<const VarNode*>& vars) {
  bool found = false;
  PostOrderVisit(e, [&](const ObjectRef& node) {
    const auto* var = node.as<VarNode>();
    found = found || (var && std::find(vars.begin(), vars.end(), var) != vars.end());
  });
  return found;
}

/*! \brief Coefficients of `vars` followed by the rest, or nothing if p is not linear in them. */
std::optional<std::vector<Poly>> SplitLinear(AnalyzerCore* core, Poly p,
                                             const std::vector<const VarNode*>& vars) {
  auto depends = [&](const Poly& q) { return MentionsAny(core->Emit(q, DataType::Int(64)), vars); };
  std::vector<Poly> out;
  for (const VarNode* var : vars) {
    Poly coef, rest;
    AtomId id = core->AtomOfVar(GetRef<Var>(var));
    if (!core->ring().SplitLinear(p, id, &coef, &rest) || depends(coef)) return std::nullopt;
    out.push_back(std::move(coef));
    p = std::move(rest);
  }
  if (depends(p)) return std::nullopt;
  out.push_back(std::move(p));
  return out;
}

/*!
 * \brief The same sums and products over signed integers; what else there is gets a cast.
 *
 * Coefficients of an unsigned expression may be negative, so they are told in the signed type.
 * `signed_vars` has variables that stand for unsigned ones.
 */
PrimExpr AsSigned(const PrimExpr& e, const Map<Var, Var>& signed_vars) {
  const DataType type = DataType::Int(e.dtype().bits());
  auto operand = [&](const PrimExpr& child) { return AsSigned(child, signed_vars); };
  if (const auto* op = e.as<IntImmNode>()) return IntImm(type, op->value);
  if (const auto* op = e.as<AddNode>()) return Add(operand(op->a), operand(op->b));
  if (const auto* op = e.as<SubNode>()) return Sub(operand(op->a), operand(op->b));
  if (const auto* op = e.as<MulNode>()) return Mul(operand(op->a), operand(op->b));
  if (const auto* op = e.as<VarNode>()) {
    if (auto it = signed_vars.find(GetRef<Var>(op)); it != signed_vars.end()) return (*it).second;
  }
  return cast(type, e);
}

}  // namespace

Array<PrimExpr> DetectLinearEquation(const PrimExpr& expr, const Array<Var>& vars) {
  TVM_CHECK(expr.defined(), ValueError) << "DetectLinearEquation: expected an expression, got None";
  std::vector<const VarNode*> targets;
  for (const Var& var : vars) targets.push_back(var.get());
  if (!MentionsAny(expr, targets)) {
    Array<PrimExpr> out;
    for (size_t i = 0; i < vars.size(); ++i) out.push_back(make_zero(expr.dtype()));
    out.push_back(expr);
    return out;
  }
  const DataType dtype = expr.dtype();
  if (!(dtype.is_int() || dtype.is_uint()) || !dtype.is_scalar()) return {};
  Analyzer analyzer;
  AnalyzerCore* core = analyzer.core();
  try {
    PrimExpr signed_expr = expr;
    if (dtype.is_uint()) {
      Map<Var, Var> signed_vars;
      for (const Var& var : vars) {
        signed_vars.Set(var, Var(var->name_hint, DataType::Int(var.dtype().bits())));
      }
      signed_expr = AsSigned(expr, signed_vars);
      if (MentionsAny(signed_expr, targets)) return {};
      for (size_t i = 0; i < vars.size(); ++i) targets[i] = signed_vars.at(vars[i]).get();
    }
    auto parts = SplitLinear(core, core->Reduce(core->Normalize(signed_expr)), targets);
    if (!parts) return {};
    Array<PrimExpr> out;
    for (const Poly& part : *parts) out.push_back(core->Emit(part, signed_expr.dtype()));
    return out;
  } catch (const PolyOverflow&) {
    return {};
  }
}

Array<PrimExpr> DetectClipBound(const PrimExpr& expr, const Array<Var>& vars) {
  TVM_CHECK(expr.defined(), ValueError) << "DetectClipBound: expected an expression, got None";
  std::vector<const VarNode*> targets;
  for (const Var& var : vars) targets.push_back(var.get());
  std::vector<PrimExpr> lower(vars.size()), upper(vars.size());
  Analyzer analyzer;
  AnalyzerCore* core = analyzer.core();

  // Bounds from p >= 0, which may mention one of the variables, times a number.
  auto take = [&](const Poly& p, DataType dtype) {
    auto parts = SplitLinear(core, core->Reduce(p), targets);
    if (!parts) return false;
    int found = -1;
    for (size_t i = 0; i < targets.size(); ++i) {
      if ((*parts)[i].IsZero()) continue;
      if (found >= 0 || !(*parts)[i].IsConst()) return false;
      found = static_cast<int>(i);
    }
    if (found < 0) return false;
    int64_t coef = (*parts)[found].ConstTerm();
    PrimExpr& end = coef > 0 ? lower[found] : upper[found];
    // c x + r >= 0 is x >= -floor(r / c), and x <= floor(r / -c) for a negative c.
    const Poly whole = core->FloorDiv(parts->back(), PolyRing::Const(coef > 0 ? coef : -coef));
    PrimExpr bound = core->Emit(coef > 0 ? PolyRing::Negate(whole) : whole, dtype);
    if (end.defined()) bound = coef > 0 ? max(end, bound) : min(end, bound);
    end = analyzer.Simplify(bound);
    return true;
  };
  std::function<bool(const PrimExpr&)> visit = [&](const PrimExpr& e) -> bool {
    if (const auto* op = e.as<AndNode>()) return visit(op->a) && visit(op->b);
    PrimExpr a, b;
    int strict = 0;
    bool equal = false;
    if (const auto* op = e.as<LTNode>()) {
      a = op->a, b = op->b, strict = 1;
    } else if (const auto* op = e.as<LENode>()) {
      a = op->a, b = op->b;
    } else if (const auto* op = e.as<GTNode>()) {
      a = op->b, b = op->a, strict = 1;
    } else if (const auto* op = e.as<GENode>()) {
      a = op->b, b = op->a;
    } else if (const auto* op = e.as<EQNode>()) {
      a = op->a, b = op->b, equal = true;
    } else {
      return false;
    }
    if (!a.dtype().is_int() || !a.dtype().is_scalar()) return false;
    Poly p = PolyRing::Sub(core->Normalize(b), core->Normalize(a));
    if (equal && !take(PolyRing::Negate(p), a.dtype())) return false;
    return take(PolyRing::AddConst(p, -strict), a.dtype());
  };
  try {
    if (!visit(expr)) return {};
  } catch (const PolyOverflow&) {
    return {};
  }
  Array<PrimExpr> out;
  for (size_t i = 0; i < targets.size(); ++i) {
    out.push_back(lower[i]);
    out.push_back(upper[i]);
  }
  return out;
}

TVM_REGISTER_GLOBAL("arith.DetectLinearEquation").set_body_typed(DetectLinearEquation);
TVM_REGISTER_GLOBAL("arith.DetectClipBound").set_body_typed(DetectClipBound);

}  // namespace arith
}  // namespace tvm
