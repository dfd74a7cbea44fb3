/*!
 * \file pad_axes_rule.cc
 * \brief Sums of products over axes that no good tile divides.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/op.h>
#include <tvm/te/pad_axes.h>
#include <tvm/tir/analysis.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_set>
#include <vector>

#include "../structure_rules.h"
#include "gpu_rules.h"

namespace tvm {
namespace auto_scheduler {

namespace {

/*! \brief Whether all factors have a dimension that runs with an axis, and nothing else. */
bool AllEndWith(const std::vector<const tir::ProducerLoadNode*>& factors, const tir::Var& axis) {
  return std::all_of(factors.begin(), factors.end(), [&axis](const auto* load) {
    return std::any_of(load->indices.begin(), load->indices.end(),
                       [&axis](const PrimExpr& index) { return index.same_as(axis); });
  });
}

class PadAxes final : public SketchRule {
 public:
  const char* Name() const final { return "pad axes"; }

  Condition MeetCondition(const SearchTask& task, const State& state, int stage_id) const final {
    const Stage& stage = state->stages[stage_id];
    const bool applies = stage->origin == StageOrigin::kOriginal && !IsTiled(stage) &&
                         HasReduceIter(stage) && NeedsMultiLevelTiling(task, state, stage_id) &&
                         AttrNames(stage, "auto_scheduler_no_split_at_inner").empty() &&
                         !PaddedExtents(task, stage).empty();
    return applies ? Condition::kApply : Condition::kSkip;
  }

  Result Apply(const SearchTask& task, const State& state, int stage_id) const final {
    const Stage stage = state->stages[stage_id];
    const std::vector<int64_t> extents = PaddedExtents(task, stage);
    int consumer;
    const bool is_read_once = HasSingleElementwiseMatchedConsumer(task, state, stage_id, &consumer);
    State result = state;
    for (const te::Operation& operand :
         CurrentDAG(task, state)->access().GetDirectProducers(stage->op)) {
      const Array<int64_t> shape = *ShapeToRead(stage->op, operand, extents);
      const Array<PrimExpr> before = operand->output_shape(0);
      bool is_longer = false;
      for (size_t d = 0; d < shape.size(); ++d) {
        is_longer = is_longer || shape[d] > *tir::as_const_int(before[d]);
      }
      if (!is_longer) continue;
      const auto& stages = result->stages;
      const auto found = std::find_if(stages.begin(), stages.end(), [&](const Stage& other) {
        return other->op.same_as(operand);
      });
      ICHECK(found != stages.end());
      result.pad_read(static_cast<int>(found - stages.begin()), {result.PositionOf(stage->id)},
                      shape, task->compute_dag);
    }
    const int padded =
        result.pad_axes(result.PositionOf(stage->id),
                        Array<int64_t>(extents.begin(), extents.end()), task->compute_dag);
    // The copy is made where its consumer computes an element, so that nothing is written twice.
    if (is_read_once) result.compute_inline(padded + 1);
    return {{result, padded}};
  }

 private:
  /*! \brief Extents of all axes, of space and then of reductions; empty if they should stay. */
  static std::vector<int64_t> PaddedExtents(const SearchTask& task, const Stage& stage) {
    const std::vector<const tir::ProducerLoadNode*> factors = te::FactorsOfSum(stage->op);
    if (factors.empty() || SuitsTensorCores(task, stage)) return {};
    const Array<te::IterVar> axes = stage->op->root_iter_vars();
    const size_t n_space = stage->op.as<te::ComputeOpNode>()->axis.size();
    std::vector<int64_t> extents = RoundedToFragments(task, stage);
    const bool by_fragments = !extents.empty();
    double more = 1;
    bool is_longer = false;
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t* extent = tir::as_const_int(axes[i]->dom->extent);
      if (extent == nullptr || !tir::is_zero(axes[i]->dom->min)) return {};
      if (!by_fragments) extents.push_back(WithGoodTiles(*extent, i >= n_space));
      if (extents[i] == *extent) continue;
      if (i >= n_space && !AllEndWith(factors, axes[i]->var)) return {};
      is_longer = true;
      more *= static_cast<double>(extents[i]) / static_cast<double>(*extent);
    }
    const bool pays = is_longer && more <= (by_fragments ? kMostOfFragments : kMostOfTiles);
    const bool can_be_read = std::all_of(factors.begin(), factors.end(), [&](const auto* load) {
      const te::Operation operand = Downcast<te::Tensor>(load->producer)->op;
      return ShapeToRead(stage->op, operand, extents).has_value();
    });
    return pays && can_be_read ? extents : std::vector<int64_t>();
  }

  /*!
   * \brief How long an operand has to be for its reader to run over longer axes; nothing if that is
   *        not known, as of places that are read from a tensor.
   */
  static std::optional<Array<int64_t>> ShapeToRead(const te::Operation& reader,
                                                   const te::Operation& operand,
                                                   const std::vector<int64_t>& extents) {
    if (operand->num_outputs() != 1) return std::nullopt;
    arith::Analyzer analyzer;
    std::unordered_set<const tir::VarNode*> longer;
    const Array<te::IterVar> axes = reader->root_iter_vars();
    for (size_t i = 0; i < axes.size(); ++i) {
      const DataType type = axes[i]->var->dtype;
      analyzer.Bind(axes[i]->var,
                    Range::FromMinExtent(tir::make_zero(type), IntImm(type, extents[i])));
      if (extents[i] != *tir::as_const_int(axes[i]->dom->extent)) longer.insert(axes[i]->var.get());
    }
    Array<int64_t> shape;
    for (const PrimExpr& dimension : operand->output_shape(0)) {
      const int64_t* extent = tir::as_const_int(dimension);
      if (extent == nullptr) return std::nullopt;
      shape.push_back(*extent);
    }
    for (const Array<PrimExpr>& indices : ReadsOf(reader, operand)) {
      for (size_t d = 0; d < shape.size(); ++d) {
        if (!tir::UsesVar(indices[d], [&longer](const tir::VarNode* used) {
              return longer.count(used) != 0;
            })) {
          continue;
        }
        const arith::ConstIntBound bound = analyzer.const_int_bound(indices[d]);
        if (bound->min_value < 0 || bound->max_value >= std::numeric_limits<int32_t>::max()) {
          return std::nullopt;
        }
        shape.Set(d, std::max(shape[d], bound->max_value + 1));
      }
    }
    return shape;
  }

  /*! \brief The least extent from this one on that has good tiles. */
  static int64_t WithGoodTiles(int64_t extent, bool reduces) {
    const int64_t smooth = reduces ? kSmoothSteps : kSmoothTiles;
    if (extent < kShortest || SmoothPart(extent) >= smooth) return extent;
    // Of a long reduction, parts should be of a length as well.
    const int64_t period = reduces && extent >= kLongReduction ? 2 * kPeriod : kPeriod;
    int64_t padded = (extent + period - 1) / period * period;
    while (SmoothPart(padded) < smooth) padded += period;
    return padded;
  }

  /*! \brief The greatest divisor that has no prime factor above seven. */
  static int64_t SmoothPart(int64_t extent) {
    int64_t part = 1;
    for (int64_t prime : {2, 3, 5, 7}) {
      for (; extent % prime == 0; extent /= prime) part *= prime;
    }
    return part;
  }

  // An axis is well cut if there are so many elements that only small primes divide: threads with a
  // few results each, or the steps of a tile in shared memory.
  static constexpr int64_t kSmoothTiles = 16, kSmoothSteps = 8;
  // Shorter axes make one tile.
  static constexpr int64_t kShortest = 33;
  static constexpr int64_t kPeriod = 8, kLongReduction = 1024;
  // More computed than asked for costs as much as it is; tensor cores are so much faster that it
  // pays nevertheless.
  static constexpr double kMostOfTiles = 1.5, kMostOfFragments = 2;
};

}  // namespace

std::shared_ptr<const SketchRule> RulePadAxes() { return std::make_shared<PadAxes>(); }

}  // namespace auto_scheduler
}  // namespace tvm
