/*!
 * \file src/tir/analysis/span_evaluator.h
 * \brief Values of index expressions where their variables have values, or ranges of them.
 */
#ifndef TVM_SRC_TIR_ANALYSIS_SPAN_EVALUATOR_H_
#define TVM_SRC_TIR_ANALYSIS_SPAN_EVALUATOR_H_

#include <tvm/expr/builtin.h>
#include <tvm/expr/expr_functor.h>
#include <tvm/expr/op.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace tvm {
namespace tir {

/*! \brief All integers from the first to the last one. */
struct Span {
  int64_t lo;
  int64_t hi;
};
using Spans = std::unordered_map<const VarNode*, Span>;

/*!
 * \brief The values an integer expression takes where its variables lie in spans.
 *
 * Much faster than an Analyzer that is told other values again and again. Of a point the result is
 * a point; truth is 0 or 1. A variable without a span is a size, taken to be kUnknownSize.
 */
class SpanEvaluator final : private ExprFunctor<std::optional<Span>(const PrimExpr&)> {
 public:
  /*! \brief Many extents divide it. */
  static constexpr int64_t kUnknownSize = 1024;

  /*! \param vars Outlives the evaluator. */
  explicit SpanEvaluator(const Spans& vars) : vars_(vars) {}

  /*! \brief No value below or above is taken; nothing if there is no telling. */
  std::optional<Span> operator()(const PrimExpr& expr) { return VisitExpr(expr); }

 private:
  using Result = std::optional<Span>;

  Result VisitExpr_(const IntImmNode* op) final { return Span{op->value, op->value}; }
  Result VisitExpr_(const VarNode* op) final {
    auto found = vars_.find(op);
    if (found != vars_.end()) return found->second;
    if (!op->dtype.is_int() || !op->dtype.is_scalar()) return std::nullopt;
    return Span{kUnknownSize, kUnknownSize};
  }
  Result VisitExpr_(const CastNode* op) final {
    bool index = op->dtype.is_scalar() && (op->dtype.is_int() || op->dtype.is_uint());
    return index && !op->value.dtype().is_float() ? VisitExpr(op->value) : std::nullopt;
  }
  Result VisitExpr_(const AddNode* op) final {
    return Both(op, [](Span a, Span b) { return Span{a.lo + b.lo, a.hi + b.hi}; });
  }
  Result VisitExpr_(const SubNode* op) final {
    return Both(op, [](Span a, Span b) { return Span{a.lo - b.hi, a.hi - b.lo}; });
  }
  Result VisitExpr_(const MulNode* op) final {
    return Both(op, [](Span a, Span b) {
      auto [lo, hi] = std::minmax({a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi});
      return Span{lo, hi};
    });
  }
  Result VisitExpr_(const MinNode* op) final {
    return Both(op,
                [](Span a, Span b) { return Span{std::min(a.lo, b.lo), std::min(a.hi, b.hi)}; });
  }
  Result VisitExpr_(const MaxNode* op) final {
    return Both(op,
                [](Span a, Span b) { return Span{std::max(a.lo, b.lo), std::max(a.hi, b.hi)}; });
  }
  Result VisitExpr_(const FloorDivNode* op) final { return Quotient(op, false); }
  Result VisitExpr_(const FloorModNode* op) final { return Remainder(op, false); }
  Result VisitExpr_(const DivNode* op) final { return Quotient(op, true); }
  Result VisitExpr_(const ModNode* op) final { return Remainder(op, true); }
  Result VisitExpr_(const LTNode* op) final { return Less(op->a, op->b, false); }
  Result VisitExpr_(const LENode* op) final { return Less(op->a, op->b, true); }
  Result VisitExpr_(const GTNode* op) final { return Less(op->b, op->a, false); }
  Result VisitExpr_(const GENode* op) final { return Less(op->b, op->a, true); }
  Result VisitExpr_(const EQNode* op) final { return Equal(op); }
  Result VisitExpr_(const NENode* op) final { return Opposite(Equal(op)); }
  Result VisitExpr_(const NotNode* op) final { return Opposite(VisitExpr(op->a)); }
  Result VisitExpr_(const AndNode* op) final {
    // One side that does not hold is enough, whatever the other one is.
    Result a = VisitExpr(op->a), b = VisitExpr(op->b);
    if ((a && a->hi == 0) || (b && b->hi == 0)) return Span{0, 0};
    if (!a || !b) return std::nullopt;
    return Span{std::min(a->lo, b->lo), 1};
  }
  Result VisitExpr_(const OrNode* op) final {
    Result a = VisitExpr(op->a), b = VisitExpr(op->b);
    if ((a && a->lo == 1) || (b && b->lo == 1)) return Span{1, 1};
    if (!a || !b) return std::nullopt;
    return Span{0, std::max(a->hi, b->hi)};
  }
  Result VisitExpr_(const SelectNode* op) final {
    return Choice(op->condition, op->true_value, op->false_value);
  }
  Result VisitExpr_(const CallNode* op) final {
    if (op->op.same_as(builtin::likely())) return VisitExpr(op->args[0]);
    if (!op->op.same_as(builtin::if_then_else())) return std::nullopt;
    return Choice(op->args[0], op->args[1], op->args[2]);
  }
  Result VisitExprDefault_(const Object*) final { return std::nullopt; }

  template <typename Node, typename F>
  Result Both(const Node* op, F combine) {
    Result a = VisitExpr(op->a), b = VisitExpr(op->b);
    return a && b ? Result(combine(*a, *b)) : std::nullopt;
  }
  static int64_t FloorDiv(int64_t a, int64_t b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
  }
  template <typename Node>
  Result Quotient(const Node* op, bool truncates) {
    Result a = VisitExpr(op->a), b = VisitExpr(op->b);
    if (!a || !b || b->lo != b->hi || b->lo <= 0 || (truncates && a->lo < 0)) return std::nullopt;
    return Span{FloorDiv(a->lo, b->lo), FloorDiv(a->hi, b->lo)};
  }
  template <typename Node>
  Result Remainder(const Node* op, bool truncates) {
    Result a = VisitExpr(op->a), b = VisitExpr(op->b);
    if (!a || !b || b->lo != b->hi || b->lo <= 0 || (truncates && a->lo < 0)) return std::nullopt;
    const int64_t period = FloorDiv(a->lo, b->lo);
    if (period != FloorDiv(a->hi, b->lo)) return Span{0, b->lo - 1};
    return Span{a->lo - period * b->lo, a->hi - period * b->lo};
  }
  Result Less(const PrimExpr& lhs, const PrimExpr& rhs, bool or_equal) {
    Result a = VisitExpr(lhs), b = VisitExpr(rhs);
    if (!a || !b) return std::nullopt;
    const bool always = or_equal ? a->hi <= b->lo : a->hi < b->lo;
    const bool ever = or_equal ? a->lo <= b->hi : a->lo < b->hi;
    return Span{always, ever};
  }
  template <typename Node>
  Result Equal(const Node* op) {
    Result a = VisitExpr(op->a), b = VisitExpr(op->b);
    if (!a || !b) return std::nullopt;
    const bool always = a->lo == a->hi && b->lo == b->hi && a->lo == b->lo;
    return Span{always, a->lo <= b->hi && b->lo <= a->hi};
  }
  static Result Opposite(const Result& truth) {
    return truth ? Result(Span{1 - truth->hi, 1 - truth->lo}) : truth;
  }
  Result Choice(const PrimExpr& condition, const PrimExpr& yes, const PrimExpr& no) {
    Result truth = VisitExpr(condition);
    if (truth && truth->lo == 1) return VisitExpr(yes);
    if (truth && truth->hi == 0) return VisitExpr(no);
    Result a = VisitExpr(yes), b = VisitExpr(no);
    return a && b ? Result(Span{std::min(a->lo, b->lo), std::max(a->hi, b->hi)}) : std::nullopt;
  }

  const Spans& vars_;
};

}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_ANALYSIS_SPAN_EVALUATOR_H_
