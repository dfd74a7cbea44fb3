/*!
 * \file src/tir/transforms/lower_intrin.cc
 * \brief Math functions in terms of those that every generator has.
 */
#include <tvm/runtime/registry.h>
#include <tvm/tir/op.h>

#include <cmath>
#include <string>

#include "pass_common.h"

namespace tvm {
namespace tir {
namespace {

using Rule = PrimExpr (*)(const Array<PrimExpr>& args);

PrimExpr Like(const PrimExpr& x, double value) { return make_const(x.dtype(), value); }

const std::unordered_map<std::string, Rule>& Rules() {
  static const std::unordered_map<std::string, Rule> rules = {
      {"tir.sigmoid",
       [](const Array<PrimExpr>& a) -> PrimExpr {
         PrimExpr one = Like(a[0], 1);
         return div(one, one + exp(neg(a[0])));
       }},
      {"tir.rsqrt",
       [](const Array<PrimExpr>& a) -> PrimExpr { return div(Like(a[0], 1), sqrt(a[0])); }},
      {"tir.exp10",
       [](const Array<PrimExpr>& a) -> PrimExpr { return exp(a[0] * Like(a[0], std::log(10.0))); }},
      {"tir.tan", [](const Array<PrimExpr>& a) -> PrimExpr { return div(sin(a[0]), cos(a[0])); }},
      {"tir.cosh",
       [](const Array<PrimExpr>& a) -> PrimExpr {
         return (exp(a[0]) + exp(neg(a[0]))) * Like(a[0], 0.5);
       }},
      {"tir.fmod",
       [](const Array<PrimExpr>& a) -> PrimExpr { return a[0] - trunc(div(a[0], a[1])) * a[1]; }},
  };
  return rules;
}

class IntrinLowerer final : public StmtExprMutator {
  PrimExpr VisitExpr_(const CallNode* op) final {
    PrimExpr expr = StmtExprMutator::VisitExpr_(op);
    op = expr.as<CallNode>();
    const auto* intrinsic = op->op.as<OpNode>();
    if (intrinsic == nullptr) return expr;
    auto rule = Rules().find(intrinsic->name);
    return rule == Rules().end() ? expr : rule->second(op->args);
  }
};

}  // namespace

namespace transform {

Pass LowerIntrin() {
  return BodyPass("tir.LowerIntrin", [](const PrimFunc& func, const PassContext&) {
    return IntrinLowerer()(func->body);
  });
}

TVM_REGISTER_GLOBAL("tir.transform.LowerIntrin").set_body_typed(LowerIntrin);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
