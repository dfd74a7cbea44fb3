/*!
 * \file arith/common_subexpr.cc
 * \brief Parts of an expression that occur several times.
 */
#include <tvm/arith/pattern.h>
#include <tvm/expr/analysis.h>
#include <tvm/expr/expr_functor.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>

#include <unordered_map>
#include <utility>
#include <vector>

#include "analyzer_core.h"

namespace tvm {
namespace arith {

using namespace tir;

namespace {

/*! \brief Counts every occurrence, also those within an expression that occurs again itself. */
class OccurrenceCounter final : public ExprVisitor {
 public:
  /*! \brief Expressions in the order in which they are met, with their numbers of occurrences. */
  std::vector<std::pair<PrimExpr, int64_t>> counts;

  void VisitExpr(const PrimExpr& e) final {
    ExprVisitor::VisitExpr(e);
    if (e.as<VarNode>() || e.as<IntImmNode>() || e.as<FloatImmNode>() || e.as<StringImmNode>()) {
      return;
    }
    std::vector<size_t>& similar = by_hash_[ExprDeepHash()(e)];
    for (size_t at : similar) {
      if (!SameExpr(counts[at].first, e)) continue;
      ++counts[at].second;
      return;
    }
    similar.push_back(counts.size());
    counts.emplace_back(e, 1);
  }

 private:
  std::unordered_map<size_t, std::vector<size_t>> by_hash_;
};

}  // namespace

Map<PrimExpr, Integer> DetectCommonSubExpr(const PrimExpr& expr, int threshold) {
  TVM_CHECK(expr.defined(), ValueError)
      << "detect_common_subexpr: expected an expression, got None";
  TVM_CHECK(threshold >= 1, ValueError)
      << "detect_common_subexpr: the number of occurrences must be at least 1, got " << threshold;
  OccurrenceCounter counter;
  counter.VisitExpr(expr);
  Map<PrimExpr, Integer> found;
  for (const auto& [part, count] : counter.counts) {
    if (count >= threshold) found.Set(part, Integer(static_cast<int>(count)));
  }
  return found;
}

TVM_REGISTER_GLOBAL("arith.DetectCommonSubExpr").set_body_typed(DetectCommonSubExpr);

}  // namespace arith
}  // namespace tvm
