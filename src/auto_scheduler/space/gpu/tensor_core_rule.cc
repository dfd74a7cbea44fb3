/*!
 * \file tensor_core_rule.cc
 * \brief Products whose tiles are fragments of tensor cores.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/auto_scheduler/transform_step.h>
#include <tvm/expr/op.h>
#include <tvm/te/operation.h>
#include <tvm/tir/analysis.h>

#include <algorithm>
#include <optional>
#include <string>

#include "../structure_rules.h"
#include "gpu_rules.h"

namespace tvm {
namespace auto_scheduler {

namespace {

/*! \brief Rows and columns of a fragment of the result, square ones first. */
constexpr int kShapes[3][2] = {{16, 16}, {32, 8}, {8, 32}};
/*! \brief Steps of one product of fragments of float32, whose only shape is the first. */
constexpr int kStepsOfTf32 = 8;
/*! \brief Bytes of one access of a thread, and what rows of fragments in memory are multiples of.
 */
constexpr int kAccessBytes = 16;

int64_t RoundUp(int64_t extent, int64_t period) { return (extent + period - 1) / period * period; }

/*! \brief A product of matrices that a stage adds up, in terms of its axes. */
struct Product {
  te::Operation left, right;
  /*! \brief Positions of the space axes that count rows and columns of the result. */
  int row_axis = 0, column_axis = 0;
  /*! \brief Position of the reduction axis of the steps, among those that reduce. */
  int step_axis = 0;
  /*! \brief Rows and columns of a fragment of the result, and steps of one product of fragments. */
  int rows = 0, columns = 0, steps = 0;
};

/*! \brief Finds out which axes of a stage make matrices of its operands. */
class ProductReader {
 public:
  /*!
   * \param allows_tf32 Whether operands of float32 may be rounded.
   * \param rounds_up Whether axes need not be multiples of fragments.
   */
  ProductReader(const te::ComputeOpNode* op, const MachineFacts& machine, bool allows_tf32,
                bool rounds_up)
      : op_(op), machine_(machine), allows_tf32_(allows_tf32), rounds_up_(rounds_up) {}

  std::optional<Product> Read() const {
    if (op_ == nullptr || op_->body.size() != 1 || op_->axis.size() < 2) return std::nullopt;
    const auto* reduce = op_->body[0].as<tir::ReduceNode>();
    if (reduce == nullptr || reduce->source.size() != 1 || !tir::is_one(reduce->condition) ||
        !reduce->init.empty() || !tir::IsSum(reduce->combiner)) {
      return std::nullopt;
    }
    const auto* factors = reduce->source[0].as<tir::MulNode>();
    if (factors == nullptr) return std::nullopt;
    const tir::ProducerLoadNode* loads[2] = {LoadOf(factors->a), LoadOf(factors->b)};
    if (loads[0] == nullptr || loads[1] == nullptr) return std::nullopt;
    const int steps = StepsOfFragment(loads[0]->dtype, loads[1]->dtype, reduce->dtype);
    if (steps == 0) return std::nullopt;

    Product product;
    product.steps = steps;
    product.column_axis = static_cast<int>(op_->axis.size()) - 1;
    const tir::Var column = op_->axis.back()->var;
    const int right = DimensionOf(*loads[1], column) >= 0 ? 1 : 0;
    const tir::ProducerLoadNode& b = *loads[right];
    const tir::ProducerLoadNode& a = *loads[1 - right];
    product.left = Downcast<te::Tensor>(a.producer)->op;
    product.right = Downcast<te::Tensor>(b.producer)->op;
    if (product.left.same_as(product.right) || DimensionOf(b, column) < 0 || Mentions(a, column)) {
      return std::nullopt;
    }
    // Of several reductions the longest is that of the steps, of several rows likewise.
    const tir::IterVarNode* step = nullptr;
    for (size_t k = 0; k < op_->reduce_axis.size(); ++k) {
      const te::IterVar& axis = op_->reduce_axis[k];
      const bool fits = Divides(steps, Extent(axis.get())) && DimensionOf(a, axis->var) >= 0 &&
                        DimensionOf(b, axis->var) >= 0;
      if (!fits || Extent(axis.get()) <= Extent(step)) continue;
      step = axis.get();
      product.step_axis = static_cast<int>(k);
    }
    if (step == nullptr || !EndsWith(b, column, step->var)) return std::nullopt;
    const tir::IterVarNode* row = nullptr;
    for (int i = 0; i < product.column_axis; ++i) {
      const te::IterVar& axis = op_->axis[i];
      const int* shape = ShapeFor(axis.get(), steps);
      if (shape == nullptr || DimensionOf(a, axis->var) < 0 || Mentions(b, axis->var) ||
          !EndsWith(a, axis->var, step->var) || Extent(axis.get()) <= Extent(row)) {
        continue;
      }
      row = axis.get();
      product.row_axis = i;
      product.rows = shape[0];
      product.columns = shape[1];
    }
    if (row == nullptr) return std::nullopt;
    return product;
  }

 private:
  static const tir::ProducerLoadNode* LoadOf(const PrimExpr& factor) {
    const auto* cast = factor.as<tir::CastNode>();
    return (cast == nullptr ? factor : cast->value).as<tir::ProducerLoadNode>();
  }

  /*! \brief Steps of one product of fragments of these types; 0 where the machine has none. */
  int StepsOfFragment(DataType a, DataType b, DataType sum) const {
    constexpr int kSteps = 16;
    constexpr int kIntegersFrom = 72, kBrainFloatFrom = 80, kTf32From = 80;
    if (machine_.tensor_multiply_adds_per_cycle == 0 || a != b) return 0;
    const int capability = machine_.compute_capability;
    if (a.is_float16()) return sum.is_float() && sum.bits() <= 32 ? kSteps : 0;
    if (a.is_bfloat16())
      return sum.is_float() && sum.bits() == 32 && capability >= kBrainFloatFrom ? kSteps : 0;
    if (a == DataType::Float(32)) {
      return sum == a && allows_tf32_ && capability >= kTf32From ? kStepsOfTf32 : 0;
    }
    const bool is_byte = (a.is_int() || a.is_uint()) && a.bits() == 8;
    return is_byte && sum == DataType::Int(32) && capability >= kIntegersFrom ? kSteps : 0;
  }

  /*! \brief The trip count of an axis; -1 where it is no number, or for none. */
  static int64_t Extent(const tir::IterVarNode* axis) {
    const int64_t* extent = axis == nullptr ? nullptr : tir::as_const_int(axis->dom->extent);
    return extent == nullptr ? -1 : *extent;
  }

  bool Divides(int64_t length, int64_t extent) const {
    return extent > 0 && (rounds_up_ || extent % length == 0);
  }

  /*! \brief The first shape of fragments that divides the result's rows and columns; rounding up,
   *         another one only if it computes an eighth less. */
  const int* ShapeFor(const tir::IterVarNode* row, int steps) const {
    const int64_t rows = Extent(row), columns = Extent(op_->axis.back().get());
    const auto* end = steps == kStepsOfTf32 ? std::begin(kShapes) + 1 : std::end(kShapes);
    constexpr int64_t kWorthIt = 8;
    const int* found = nullptr;
    int64_t least = 0;
    for (const auto* shape = std::begin(kShapes); shape != end; ++shape) {
      const auto& [height, width] = *shape;
      if (!Divides(height, rows) || !Divides(width, columns)) continue;
      const int64_t computed = RoundUp(rows, height) * RoundUp(columns, width);
      // Squares read their operands least often, and their number has more divisors.
      if (found != nullptr && computed * kWorthIt >= least * (kWorthIt - 1)) continue;
      found = *shape;
      least = computed;
    }
    return found;
  }

  static bool Mentions(const PrimExpr& index, const tir::Var& var) {
    return tir::UsesVar(index, [&var](const tir::VarNode* used) { return used == var.get(); });
  }
  static bool Mentions(const tir::ProducerLoadNode& load, const tir::Var& var) {
    return std::any_of(load.indices.begin(), load.indices.end(),
                       [&var](const PrimExpr& index) { return Mentions(index, var); });
  }

  /*! \brief The only dimension that moves with an axis, step by step; -1 if there is none. */
  static int DimensionOf(const tir::ProducerLoadNode& load, const tir::Var& var) {
    int found = -1;
    for (size_t d = 0; d < load.indices.size(); ++d) {
      if (!Mentions(load.indices[d], var)) continue;
      if (found >= 0 || Mentions(arith::Analyzer().Simplify(load.indices[d] - var), var)) return -1;
      found = static_cast<int>(d);
    }
    return found;
  }

  /*! \brief Whether one of two axes runs along the rows of memory. */
  static bool EndsWith(const tir::ProducerLoadNode& load, const tir::Var& a, const tir::Var& b) {
    const int last = static_cast<int>(load.indices.size()) - 1;
    return DimensionOf(load, a) == last || DimensionOf(load, b) == last;
  }

  const te::ComputeOpNode* op_;
  const MachineFacts& machine_;
  bool allows_tf32_, rounds_up_;
};

std::optional<Product> ProductOf(const SearchTask& task, const Stage& stage,
                                 bool rounds_up = false) {
  const MachineFacts machine = task->Machine();
  const bool allows_tf32 = task->target->GetInt("allow_tf32", 0) != 0;
  return ProductReader(stage->op.as<te::ComputeOpNode>(), machine, allows_tf32, rounds_up).Read();
}

/*! \brief Lays the loops of one product out. */
class Layout {
 public:
  /*! \brief When tiles are copied into shared memory. */
  enum class Fetch {
    kWhenNeeded,
    /*! \brief For the next trip, through registers. */
    kNext,
    /*! \brief An open number of trips ahead, by copies that go on meanwhile. */
    kAhead,
  };

  /*!
   * \param is_part Whether the product is of one part of its sums, whose loops are cut already.
   */
  Layout(const SearchTask& task, State state, const Product& product, Fetch fetch, bool is_part)
      : task_(task),
        state_(std::move(state)),
        product_(product),
        fetch_(fetch),
        is_part_(is_part) {}

  /*!
   * \brief The product at `stage_id` in the blocks of `consumer`.
   * \param copies Whether the consumer only copies it out, which fragments can do by themselves.
   */
  State Apply(int stage_id, int consumer, bool copies) {
    const int product = state_->stages[stage_id]->id;
    // Operations are made anew where stages are added, so operands are known by their stages.
    const std::vector<int> operands = {IdOf(product_.left), IdOf(product_.right)};
    const int n_reductions = TileProduct(stage_id);
    FollowPadding(&state_, stage_id, consumer);
    const Array<Iterator> warps = TileConsumer(consumer, copies);
    const int writer = state_->stages[consumer]->id;
    if (copies) {
      state_.compute_at(stage_id, consumer, warps[1]);
    } else {
      // Elements of fragments are in no thread in particular, so they go through shared memory.
      Array<int64_t> readers{consumer};
      const bool is_padded = state_->stages[stage_id]->origin == StageOrigin::kPadAxes;
      if (is_padded) readers = {state_.PositionOf(state_->stages[stage_id]->source)};
      const int staged = state_.cache_read(stage_id, "shared", readers, task_->compute_dag);
      const int host = state_.PositionOf(writer);
      state_.compute_at(staged, host, state_->stages[host]->iters[0]);
      PadRows(staged);
      state_.compute_at(stage_id, staged, TileStaged(staged));
    }
    const int shared_at = n_reductions - 1, fragments_at = 2 * n_reductions - 1;
    std::vector<int> tiles;
    for (int operand : operands) {
      tiles.push_back(Load(operand, product, shared_at, fragments_at));
    }
    if (fetch_ == Fetch::kAhead) {
      Array<int64_t> copies;
      for (int tile : tiles) copies.push_back(state_.PositionOf(tile));
      state_.fetch_ahead(state_.PositionOf(product), copies, NullOpt);
    }
    return state_;
  }

 private:
  /*! \brief Loops of one axis: what is left of it, warps, fragments of a warp, a fragment. */
  struct AxisParts {
    Iterator rest, warps, fragments, inside;
  };

  /*! \brief The identity of an operation's stage. */
  int IdOf(const te::Operation& op) const {
    const Array<Stage>& stages = state_->stages;
    const auto found = std::find_if(stages.begin(), stages.end(),
                                    [&op](const Stage& stage) { return stage->op.same_as(op); });
    ICHECK(found != stages.end());
    return (*found)->id;
  }

  Iterator At(int stage_id, int iter_id) const { return state_->stages[stage_id]->iters[iter_id]; }

  /*! \brief Cuts the axes of fragments; the last to be cut first, so that positions stay. */
  void CutAxes(int stage_id, bool follow, AxisParts* row, AxisParts* column) {
    auto cut = [&](int axis, int length, int64_t* source) {
      Array<Iterator> outer = state_.fixed_split(stage_id, At(stage_id, axis), length);
      if (!follow) *source = static_cast<int64_t>(state_->transform_steps.size());
      Array<Iterator> parts =
          follow ? state_.follow_split(stage_id, outer[0], static_cast<int>(*source), 2)
                 : state_.split(stage_id, outer[0], {NullOpt, NullOpt});
      return AxisParts{parts[0], parts[1], parts[2], At(stage_id, axis + 3)};
    };
    // The knobs of rows come before those of columns.
    *row = cut(product_.row_axis, product_.rows, &row_split_);
    *column = cut(product_.column_axis + 3, product_.columns, &column_split_);
  }

  /*! \return The loops of the blocks and of the warps. */
  Array<Iterator> TileConsumer(int stage_id, bool copies) {
    AxisParts row, column;
    CutAxes(stage_id, /*follow=*/false, &row, &column);
    std::vector<Iterator> inside = {row.fragments, row.inside, column.fragments, column.inside};
    if (!copies) {
      // Lanes are neighbours along the columns, each with as many as it can write at a time.
      const int bytes = state_->stages[stage_id]->op->output_dtype(0).bytes();
      const int lanes_of_vector = std::min(8, kAccessBytes / bytes);
      const int warp = static_cast<int>(task_->hardware_params->warp_size);
      const int across = product_.columns / lanes_of_vector;
      Array<Iterator> columns = state_.fixed_split(stage_id, column.inside, lanes_of_vector);
      Array<Iterator> rows = state_.fixed_split(stage_id, row.inside, warp / across);
      inside = {row.fragments, column.fragments, rows[0], rows[1], columns[0], columns[1]};
    }
    Array<Iterator> order;
    int blocks = 0;
    auto is_part_of_tile = [&](const Iterator& iter) {
      return iter.same_as(row.warps) || iter.same_as(column.warps) ||
             std::any_of(inside.begin(), inside.end(),
                         [&iter](const Iterator& part) { return part.same_as(iter); });
    };
    for (const Iterator& iter : state_->stages[stage_id]->iters) {
      if (is_part_of_tile(iter)) continue;
      order.push_back(iter);
      ++blocks;
    }
    order.push_back(row.warps);
    order.push_back(column.warps);
    for (const Iterator& iter : inside) order.push_back(iter);
    state_.reorder(stage_id, order);
    Bind(stage_id, 0, blocks, IteratorAnnotation::kBlockX);
    Bind(stage_id, 1, 2, IteratorAnnotation::kThreadY);
    if (!copies) {
      constexpr int kLanesOfRows = 5;  // behind blocks, warps, fragments and rows of a lane
      Bind(stage_id, kLanesOfRows, 2, IteratorAnnotation::kThreadX);
      const Iterator vector = state_->stages[stage_id]->iters.back();
      state_.vectorize(stage_id, vector);
    }
    return {At(stage_id, 0), At(stage_id, 1)};
  }

  void Bind(int stage_id, int first, int count, IteratorAnnotation thread) {
    const Array<Iterator> iters = state_->stages[stage_id]->iters;
    Iterator loop = iters[first];
    if (count > 1) {
      loop = state_.fuse(stage_id,
                         Array<Iterator>(iters.begin() + first, iters.begin() + first + count));
    }
    state_.bind(stage_id, loop, thread);
  }

  /*! \return The loop of the warps, which copy what they have computed. */
  Iterator TileStaged(int stage_id) {
    AxisParts row, column;
    CutAxes(stage_id, /*follow=*/true, &row, &column);
    Array<Iterator> order;
    const std::vector<Iterator> inside = {row.warps,  column.warps,     row.fragments,
                                          row.inside, column.fragments, column.inside};
    for (const Iterator& iter : state_->stages[stage_id]->iters) {
      if (std::none_of(inside.begin(), inside.end(),
                       [&iter](const Iterator& part) { return part.same_as(iter); })) {
        order.push_back(iter);
      }
    }
    const int outer = static_cast<int>(order.size());
    for (const Iterator& iter : inside) order.push_back(iter);
    state_.reorder(stage_id, order);
    Bind(stage_id, outer, 2, IteratorAnnotation::kThreadY);
    return At(stage_id, outer);
  }

  /*! \return How many loops reduce at each of the two levels outside of fragments. */
  int TileProduct(int stage_id) {
    Array<Iterator> outer, inner, space, reductions, order;
    for (const Iterator& iter : state_->stages[stage_id]->iters) {
      (iter->iter_kind == IteratorKind::kReduction ? reductions : space).push_back(iter);
    }
    Iterator steps;
    // Of a part, the loops that its steps were cut into come last.
    const auto n_whole = static_cast<int>(reductions.size()) - (is_part_ ? kLoopsOfPart : 0);
    for (int i = 0; i < n_whole; ++i) {
      Iterator whole = reductions[i];
      if (!is_part_ && i == product_.step_axis) {
        Array<Iterator> parts = state_.fixed_split(stage_id, whole, product_.steps);
        whole = parts[0];
        steps = parts[1];
      }
      Array<Iterator> parts = state_.split(stage_id, whole, {NullOpt});
      outer.push_back(parts[0]);
      inner.push_back(parts[1]);
    }
    if (is_part_) {
      outer.push_back(reductions[n_whole]);
      inner.push_back(reductions[n_whole + 1]);
      steps = reductions[n_whole + 2];
    }
    for (const Array<Iterator>& level : {outer, inner, space}) {
      for (const Iterator& iter : level) order.push_back(iter);
    }
    order.push_back(steps);
    state_.reorder(stage_id, order);
    state_.pragma(stage_id, state_->stages[stage_id]->iters.back(), "tensor_core");
    return static_cast<int>(outer.size());
  }

  /*! \return The identity of the stage that copies into shared memory. */
  int Load(int operand, int product, int shared_at, int fragments_at) {
    const int shared = state_.cache_read(state_.PositionOf(operand), "shared",
                                         {state_.PositionOf(product)}, task_->compute_dag);
    const int fragments =
        state_.cache_read(shared, "local", {state_.PositionOf(product)}, task_->compute_dag);
    const int reader = state_.PositionOf(product);
    state_.compute_at(shared, reader, At(reader, shared_at));
    state_.compute_at(fragments, reader, At(reader, fragments_at));
    PadRows(shared);
    FetchTogether(shared);
    if (fetch_ == Fetch::kNext) state_.pragma(shared, At(shared, 0), "double_buffer");
    return state_->stages[shared]->id;
  }

  /*!
   * \brief Rows of a tile of shared memory a little further apart, so that the eight rows that are
   *        served at a time lie in different banks.
   *
   * Only where the length of a row is known to be a multiple of the period, whatever its tile.
   */
  void PadRows(int stage_id) {
    const Stage& stage = state_->stages[stage_id];
    constexpr int kHalfBytes = 2;
    const int bytes = stage->op->output_dtype(0).bytes();
    const int padding = kAccessBytes / bytes, period = 2 * padding;
    const size_t n_axes = stage->iters.size();
    if (product_.rows % period != 0 || product_.columns % period != 0 || n_axes < 2 ||
        bytes < kHalfBytes) {
      return;
    }
    state_.storage_align(stage_id, At(stage_id, static_cast<int>(n_axes) - 2), period, padding);
  }

  /*! \brief All threads of the block load a tile, neighbours by neighbouring lanes. */
  void FetchTogether(int stage_id) {
    const Array<Iterator> iters = state_->stages[stage_id]->iters;
    Iterator fused = iters.size() > 1 ? state_.fuse(stage_id, iters) : iters[0];
    Array<Iterator> lanes =
        state_.split(stage_id, fused, {Optional<PrimExpr>(PrimExpr(Integer(1)))});
    state_.vectorize(stage_id, lanes[1]);
    const int warp = static_cast<int>(task_->hardware_params->warp_size);
    state_.fixed_split(stage_id, At(stage_id, 0), warp);
    constexpr int kWarpLevel = 0;
    state_.follow_fused_split(stage_id, At(stage_id, 0), {row_split_, column_split_}, kWarpLevel,
                              /*factor_or_nparts=*/true);
    state_.bind(stage_id, At(stage_id, 1), IteratorAnnotation::kThreadY);
    state_.bind(stage_id, At(stage_id, 2), IteratorAnnotation::kThreadX);
  }

  /*! \brief Loops outside and inside of shared memory's tiles, and the steps of fragments. */
  static constexpr int kLoopsOfPart = 3;

  const SearchTask& task_;
  State state_;
  const Product& product_;
  Fetch fetch_;
  bool is_part_;
  /*! \brief Steps that split the consumer's rows and columns of fragments. */
  int64_t row_split_ = -1, column_split_ = -1;
};

class TensorCores final : public SketchRule {
 public:
  const char* Name() const final { return "tensor cores"; }
  Condition MeetCondition(const SearchTask& task, const State& state, int stage_id) const final {
    const Stage& stage = state->stages[stage_id];
    const bool applies = stage->op_type == StageKind::kCompute && IsWhole(stage) &&
                         !IsTiled(stage) && NeedsMultiLevelTiling(task, state, stage_id) &&
                         ProductOf(task, stage).has_value();
    return applies ? Condition::kApply : Condition::kSkip;
  }
  Result Apply(const SearchTask& task, const State& state, int stage_id) const final {
    State result = state;
    int consumer = -1;
    const bool copies = !HasSingleElementwiseMatchedConsumer(task, state, stage_id, &consumer);
    if (copies) {
      // The stage that copies out takes its place; both read as one elsewhere.
      result.cache_write(stage_id, "local", task->compute_dag);
      consumer = stage_id + 1;
    }
    const std::optional<Product> product = ProductOf(task, result->stages[stage_id]);
    ICHECK(product.has_value());
    const int id = result->stages[stage_id]->id;
    using Fetch = Layout::Fetch;
    const Fetch ahead =
        task->Machine().compute_capability >= kAsyncCopiesFrom ? Fetch::kAhead : Fetch::kNext;
    Result results;
    for (Fetch fetch : {ahead, Fetch::kWhenNeeded}) {
      const State made = Layout(task, result, *product, fetch, /*is_part=*/false)
                             .Apply(stage_id, consumer, copies);
      results.emplace_back(made, made.PositionOf(id) - 1);
    }
    if (NeedsParts(task, state, stage_id)) {
      if (auto parts = OfParts(task, state, stage_id, ahead)) results.push_back(*parts);
    }
    return results;
  }

 private:
  // Elements of a warp's fragments, above which its operands are read from shared memory often
  // enough, and the warps that a multiprocessor wants.
  static constexpr int64_t kElementsOfWarp = 512;
  static constexpr int64_t kWarpsOfMultiprocessor = 4;
  // Below this, a second kernel takes longer than what the first one saves.
  static constexpr int64_t kShortestReduction = 1024;
  /*! \brief Loops of one part outside of fragments. */
  static constexpr int kLevelsInside = 2;

  /*! \brief Whether so few fragments have so long sums that blocks should share these. */
  static bool NeedsParts(const SearchTask& task, const State& state, int stage_id) {
    const auto [space, reduction] = CumulativeExtents(state->stages[stage_id]);
    return space != -1 && reduction >= kShortestReduction &&
           space <= kElementsOfWarp * kWarpsOfMultiprocessor * task->Machine().num_cores;
  }

  /*! \brief The structure in which blocks have parts of the sums, which a second kernel adds up. */
  static std::optional<Result::value_type> OfParts(const SearchTask& task, State state,
                                                   int stage_id, Layout::Fetch ahead) {
    const std::optional<Product> product = ProductOf(task, state->stages[stage_id]);
    int reduction = 0;
    Iterator sum;
    for (const Iterator& iter : state->stages[stage_id]->iters) {
      if (iter->iter_kind != IteratorKind::kReduction) continue;
      if (reduction++ == product->step_axis) sum = iter;
    }
    if (!CanBeCut(sum.ConstExtent() / product->steps, kLevelsInside)) return std::nullopt;
    const Array<Iterator> steps = state.fixed_split(stage_id, sum, product->steps);
    const int partial = ComputePartsOf(task, &state, stage_id, steps[0], kLevelsInside);
    state.cache_write(partial, "local", task->compute_dag);
    const std::optional<Product> of_part = ProductOf(task, state->stages[partial]);
    if (!of_part) return std::nullopt;
    const int id = state->stages[partial]->id;
    const State made = Layout(task, state, *of_part, ahead, /*is_part=*/true)
                           .Apply(partial, partial + 1, /*copies=*/true);
    return Result::value_type(made, made.PositionOf(id) - 1);
  }
};

}  // namespace

std::shared_ptr<const SketchRule> RuleTensorCores() { return std::make_shared<TensorCores>(); }

bool SuitsTensorCores(const SearchTask& task, const Stage& stage) {
  return ProductOf(task, stage).has_value();
}

std::vector<int64_t> RoundedToFragments(const SearchTask& task, const Stage& stage) {
  constexpr int64_t kLongReduction = 4096, kFewestInParts = 8;
  const std::optional<Product> product = ProductOf(task, stage, /*rounds_up=*/true);
  if (!product) return {};
  const auto* compute = stage->op.as<te::ComputeOpNode>();
  const auto n_space = static_cast<int>(compute->axis.size());
  std::vector<int64_t> extents;
  for (const te::IterVar& axis : compute->root_iter_vars()) {
    const int64_t* extent = tir::as_const_int(axis->dom->extent);
    if (extent == nullptr) return {};
    extents.push_back(*extent);
  }
  auto round = [&extents](int axis, int64_t period) {
    extents[axis] = RoundUp(extents[axis], period);
  };
  round(product->row_axis, product->rows);
  round(product->column_axis, product->columns);
  // Where it costs next to nothing, so that parts of the sums have a length, too.
  const int steps = n_space + product->step_axis;
  const bool is_long = extents[steps] >= kLongReduction;
  round(steps, is_long ? product->steps * kFewestInParts : product->steps);
  return extents;
}

bool UsesTensorCores(const State& state, int stage_id) {
  const Array<Step>& steps = state->transform_steps;
  if (std::none_of(steps.begin(), steps.end(), [](const Step& step) {
        const auto* pragma = step.as<PragmaStepNode>();
        return pragma != nullptr && pragma->pragma_type == "tensor_core";
      })) {
    return false;
  }
  auto has_warps = [](const Stage& stage) {
    return std::any_of(stage->iters.begin(), stage->iters.end(), [](const Iterator& iter) {
      return iter->annotation == IteratorAnnotation::kThreadY;
    });
  };
  while (true) {
    const Stage& stage = state->stages[stage_id];
    if (has_warps(stage)) return true;
    if (stage->compute_at != ComputeAtKind::kIter) return false;
    stage_id = state.PositionOf(stage->attach_stage);
  }
}

}  // namespace auto_scheduler
}  // namespace tvm
