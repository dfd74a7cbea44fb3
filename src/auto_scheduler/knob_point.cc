/*!
 * \file knob_point.cc
 * \brief Values of expressions where knobs have values.
 */
#include <tvm/auto_scheduler/knob_point.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/expr_functor.h>
#include <tvm/expr/op.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace tvm {
namespace auto_scheduler {

using namespace tir;

namespace {

/*! \brief Evaluates expressions that share parts, each part once. */
class PointEvaluator : private ExprFunctor<double(const PrimExpr&)> {
 public:
  explicit PointEvaluator(const KnobPoint& point) : point_(point) {}

  double Evaluate(const PrimExpr& e) {
    auto found = values_.find(e.get());
    if (found != values_.end()) return found->second;
    double value = VisitExpr(e);
    values_.emplace(e.get(), value);
    return value;
  }

 private:
  double VisitExpr_(const IntImmNode* op) final { return static_cast<double>(op->value); }
  double VisitExpr_(const FloatImmNode* op) final { return op->value; }
  double VisitExpr_(const VarNode* op) final {
    auto found = point_.find(op->name_hint);
    TVM_CHECK(found != point_.end(), ValueError)
        << "features: no value for the variable " << op->name_hint;
    return found->second;
  }
  double VisitExpr_(const CastNode* op) final {
    double value = Evaluate(op->value);
    return op->dtype.is_float() ? value : std::trunc(value);
  }
  double VisitExpr_(const SelectNode* op) final {
    return Evaluate(Evaluate(op->condition) != 0 ? op->true_value : op->false_value);
  }
  double VisitExpr_(const CallNode* op) final {
    if (op->op.same_as(builtin::likely())) return Evaluate(op->args[0]);
    if (!op->op.same_as(builtin::if_then_else())) return VisitExprDefault_(op);
    return Evaluate(op->args[Evaluate(op->args[0]) != 0 ? 1 : 2]);
  }
  double VisitExpr_(const NotNode* op) final { return Evaluate(op->a) == 0; }

#define TVM_BINARY(Node, Result)            \
  double VisitExpr_(const Node* op) final { \
    double a = Evaluate(op->a);             \
    double b = Evaluate(op->b);             \
    return Result;                          \
  }
  TVM_BINARY(AddNode, a + b)
  TVM_BINARY(SubNode, a - b)
  TVM_BINARY(MulNode, a* b)
  TVM_BINARY(DivNode, op->dtype.is_float() ? a / b : std::trunc(a / b))
  TVM_BINARY(FloorDivNode, std::floor(a / b))
  TVM_BINARY(FloorModNode, a - b * std::floor(a / b))
  TVM_BINARY(MinNode, std::min(a, b))
  TVM_BINARY(MaxNode, std::max(a, b))
  TVM_BINARY(EQNode, a == b)
  TVM_BINARY(NENode, a != b)
  TVM_BINARY(LTNode, a < b)
  TVM_BINARY(LENode, a <= b)
  TVM_BINARY(GTNode, a > b)
  TVM_BINARY(GENode, a >= b)
  TVM_BINARY(AndNode, a != 0 && b != 0)
  TVM_BINARY(OrNode, a != 0 || b != 0)
#undef TVM_BINARY

  double VisitExprDefault_(const Object* op) final {
    TVM_FATAL(ValueError) << "features: " << GetRef<PrimExpr>(static_cast<const PrimExprNode*>(op))
                          << " is not arithmetic on numbers and knobs";
  }

  const KnobPoint& point_;
  // The caller holds the expressions, so an address stays that of its node.
  std::unordered_map<const Object*, double> values_;
};

}  // namespace

KnobPoint CentralPoint(const arith::VarContext& context) {
  KnobPoint out;
  for (const arith::SplitGroup& group : context->split_groups) {
    const int64_t* extent = as_const_int(group->extent_expr);
    TVM_CHECK(extent, ValueError) << "features: the extent " << group->extent_expr
                                  << " is not a number; extract features for one task instance";
    double part = std::pow(static_cast<double>(*extent), 1.0 / (group->vars.size() + 1.0));
    out[group->quotient->name_hint] = part;
    out[group->extent->name_hint] = static_cast<double>(*extent);
    for (const SizeVar& var : group->vars) out[var->name_hint] = part;
  }
  return out;
}

std::vector<double> EvaluateAt(const std::vector<PrimExpr>& exprs, const KnobPoint& point) {
  PointEvaluator evaluator(point);
  std::vector<double> out;
  for (const PrimExpr& e : exprs) out.push_back(evaluator.Evaluate(e));
  return out;
}

}  // namespace auto_scheduler
}  // namespace tvm
