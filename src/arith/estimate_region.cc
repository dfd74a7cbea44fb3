/*!
 * \file arith/estimate_region.cc
 * \brief Which part of a buffer is touched, exactly or at most, while loops run.
 */
#include <tvm/arith/estimate_region.h>
#include <tvm/arith/iter_affine_map.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "analyzer_core.h"

namespace tvm {
namespace arith {

using namespace tir;

namespace {

/*! \brief What a conjunct says: `index + ... >= 0`, or that nothing is known of its form. */
std::optional<std::vector<Poly>> NonNegatives(AnalyzerCore* core, const PrimExpr& cond) {
  if (is_one(cond)) return std::vector<Poly>();
  if (const auto* op = cond.as<AndNode>()) {
    auto a = NonNegatives(core, op->a), b = NonNegatives(core, op->b);
    if (!a || !b) return std::nullopt;
    a->insert(a->end(), b->begin(), b->end());
    return a;
  }
  if (const auto* call = cond.as<CallNode>(); call && call->op.same_as(builtin::likely())) {
    return NonNegatives(core, call->args[0]);
  }
  auto of = [&](const PrimExpr& low, const PrimExpr& high, int64_t add) {
    Poly p = PolyRing::Sub(core->Normalize(high), core->Normalize(low));
    return std::vector<Poly>{core->Reduce(PolyRing::AddConst(p, add))};
  };
  auto index = [](const auto* op) { return op && op->a.dtype().is_int(); };
  if (const auto* op = cond.as<LTNode>(); index(op)) return of(op->a, op->b, -1);
  if (const auto* op = cond.as<LENode>(); index(op)) return of(op->a, op->b, 0);
  if (const auto* op = cond.as<GTNode>(); index(op)) return of(op->b, op->a, -1);
  if (const auto* op = cond.as<GENode>(); index(op)) return of(op->b, op->a, 0);
  return std::nullopt;
}

/*! \brief Narrows `values`, which `index` takes all of, by the conditions on exactly this index. */
void Clip(AnalyzerCore* core, const PrimExpr& index, std::vector<Poly>* conditions,
          Interval* values) {
  const Poly own = core->Reduce(core->Normalize(index));
  auto speaks_of_it = [&](const Poly& condition) {
    const Poly below = PolyRing::Add(condition, own), above = PolyRing::Sub(condition, own);
    if (below.IsConst()) {  // number - index >= 0
      values->hi = std::min(values->hi, below.ConstTerm());
    } else if (above.IsConst()) {  // index + number >= 0
      values->lo = std::max(values->lo, CheckedMul(above.ConstTerm(), -1));
    } else {
      return false;
    }
    return true;
  };
  conditions->erase(std::remove_if(conditions->begin(), conditions->end(), speaks_of_it),
                    conditions->end());
}

Optional<Array<IntSet>> Exactly(const Array<Range>& region, const Map<Var, Range>& loops,
                                const PrimExpr& predicate) {
  Analyzer analyzer;
  AnalyzerCore* core = analyzer.core();
  analyzer.Bind(loops);
  std::optional<std::vector<Poly>> conditions = NonNegatives(core, predicate);
  if (!conditions) return Optional<Array<IntSet>>();
  // Conditions on one loop shorten it; they leave all combinations with the others.
  Map<Var, Range> shorter;
  Array<PrimExpr> starts;
  for (const auto& [var, range] : loops) {
    const int64_t *min = as_const_int(range->min), *extent = as_const_int(range->extent);
    if (min == nullptr || extent == nullptr || *extent < 1) return Optional<Array<IntSet>>();
    Interval values{*min, *min + *extent - 1};
    // A loop of one trip was replaced by its only value, and conditions with it.
    if (*extent > 1) Clip(core, var, &*conditions, &values);
    if (values.lo > values.hi) return Optional<Array<IntSet>>();
    shorter.Set(var, Range::FromMinExtent(make_const(var.dtype(), values.lo),
                                          make_const(var.dtype(), values.hi - values.lo + 1)));
  }
  for (const Range& range : region) starts.push_back(range->min);
  const IterMapResult found = DetectIterMap(starts, shorter, IterMapLevel::kSurjective);
  // Values of an iterator that had to be lengthened are more than those reached.
  if (!found->IsExact()) return Optional<Array<IntSet>>();
  Array<IntSet> sets;
  for (size_t i = 0; i < region.size(); ++i) {
    const Range& range = region[static_cast<int64_t>(i)];
    const IterSumExpr& sum = found->indices[static_cast<int64_t>(i)];
    PrimExpr first = sum->base;
    PrimExpr last = analyzer.Simplify(first + range->extent - 1);
    if (!sum->args.empty()) {
      const IterSplitExpr& split = sum->args[0];
      // Steps wider than what each touches leave gaps.
      const int64_t *scale = as_const_int(split->scale), *extent = as_const_int(split->extent);
      if (scale == nullptr || *scale < 1 || extent == nullptr ||
          !analyzer.CanProve(range->extent >= split->scale)) {
        return Optional<Array<IntSet>>();
      }
      const PrimExpr reach = make_const(first.dtype(), (*extent - 1) * *scale);
      const int64_t* base = as_const_int(first);
      if (base != nullptr && *scale == 1) {
        Interval values{*base, *base + *extent - 1};
        Clip(core, range->min, &*conditions, &values);
        if (values.lo > values.hi) return Optional<Array<IntSet>>();
        first = make_const(first.dtype(), values.lo);
        last = analyzer.Simplify(make_const(first.dtype(), values.hi) + range->extent - 1);
      } else {
        last = analyzer.Simplify(last + reach);
      }
    }
    sets.push_back(IntSet::Interval(first, last));
  }
  conditions->erase(std::remove_if(conditions->begin(), conditions->end(),
                                   [](const Poly& p) { return p.IsConst() && p.ConstTerm() >= 0; }),
                    conditions->end());
  // What is left couples several indices, so that not all of their combinations occur.
  if (!conditions->empty()) return Optional<Array<IntSet>>();
  return sets;
}

}  // namespace

Optional<Array<IntSet>> EstimateRegionStrictBound(const Array<Range>& region,
                                                  const Map<Var, Range>& loops,
                                                  const PrimExpr& predicate) {
  try {
    return Exactly(region, loops, predicate);
  } catch (const PolyOverflow&) {
    return Optional<Array<IntSet>>();
  }
}

Array<IntSet> EstimateRegionUpperBound(const Array<Range>& region, const Map<Var, Range>& loops,
                                       const PrimExpr& predicate) {
  if (auto exact = EstimateRegionStrictBound(region, loops, predicate)) return exact.value();
  Analyzer analyzer;
  analyzer.Bind(loops);
  ConstraintContext context(&analyzer, predicate);
  Map<Var, IntSet> domains;
  for (const auto& [var, range] : loops) domains.Set(var, IntSet::FromRange(range));
  return region.Map([&](const Range& range) { return EvalSet(range, domains, &analyzer); });
}

TVM_REGISTER_GLOBAL("arith.EstimateRegionStrictBound").set_body_typed(EstimateRegionStrictBound);
TVM_REGISTER_GLOBAL("arith.EstimateRegionUpperBound").set_body_typed(EstimateRegionUpperBound);

}  // namespace arith
}  // namespace tvm
