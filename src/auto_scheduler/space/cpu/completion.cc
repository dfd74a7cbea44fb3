/*!
 * \file completion.cc
 * \brief Rules that complete a structural sketch for a CPU.
 */
#include <tvm/auto_scheduler/transform_step.h>
#include <tvm/expr/expr_functor.h>
#include <tvm/expr/op.h>
#include <tvm/node/structural_equal.h>
#include <tvm/te/create_primfunc.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

#include "../../sketch_utils.h"
#include "cpu_space.h"

namespace tvm {
namespace auto_scheduler {

namespace {

using OpenLengths = Array<Optional<PrimExpr>>;

bool Mentions(const PrimExpr& expr, const Array<te::IterVar>& axes) {
  std::unordered_set<const Object*> vars;
  for (const te::IterVar& axis : axes) vars.insert(axis->var.get());
  bool found = false;
  tir::PostOrderVisit(expr, [&](const ObjectRef& node) { found |= vars.count(node.get()) != 0; });
  return found;
}

/*!
 * \brief Whether `op` reduces over a window only: every index into `producer` moves with some space
 *        axis, as in a depthwise convolution, so each element is read few times.
 */
bool ReadsThroughWindow(const te::Operation& op, const te::Operation& producer) {
  const auto* compute = op.as<te::ComputeOpNode>();
  if (compute == nullptr) return false;
  std::vector<Array<PrimExpr>> reads = ReadsOf(op, producer);
  for (const Array<PrimExpr>& indices : reads) {
    for (const PrimExpr& index : indices) {
      if (!tir::is_const_int(index) && !Mentions(index, compute->axis)) return false;
    }
  }
  return !reads.empty();
}

/*! \brief Whether neighbours along the last space axis are neighbours in some operand too. */
bool LastAxisIsContiguous(const te::ComputeOpNode* compute) {
  if (compute->axis.empty()) return false;
  const te::IterVar& last = compute->axis.back();
  bool reads = false, contiguous = false;
  for (const PrimExpr& body : compute->body) {
    tir::PostOrderVisit(body, [&](const ObjectRef& node) {
      const auto* load = node.as<tir::ProducerLoadNode>();
      if (load == nullptr || load->indices.empty()) return;
      reads = true;
      contiguous |= Mentions(load->indices.back(), {last});
    });
  }
  return contiguous || !reads;
}

/*! \brief Places of all producers of a sketch that are tried; those of each multiply. */
constexpr size_t kMostPlaces = 16;

bool IsOnce(const Iterator& iter) { return iter.ConstExtent() == 1; }

/*! \brief The stage held in this one's tiles by multi-level tiling, or -1. */
int TiledStageHeldBy(const SearchTask& task, const State& state, int stage_id) {
  const int id = state->stages[stage_id]->id;
  for (int i = 0; i < static_cast<int>(state->stages.size()); ++i) {
    if (state->stages[i]->attach_stage == id && NeedsMultiLevelTiling(task, state, i)) {
      return i;
    }
  }
  return -1;
}

/*! \brief Whether `op` reduces over a window of some operand only, so that few steps give a result.
 */
bool ReducesOverWindow(const te::Operation& op) {
  const Array<te::Tensor> inputs = op->InputTensors();
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](const te::Tensor& input) { return ReadsThroughWindow(op, input->op); });
}

/*! \brief Operands of an op that are laid out as its loops read them. */
std::vector<int> LayoutFreeOperands(const te::Operation& op) {
  std::vector<int> found;
  if (op->attrs.count(te::kLayoutFreePlaceholders) == 0) return found;
  const Array<te::Tensor> free =
      Downcast<Array<te::Tensor>>(op->attrs.at(te::kLayoutFreePlaceholders));
  const Array<te::Tensor> operands = op->InputTensors();
  for (size_t i = 0; i < operands.size(); ++i) {
    const bool is_free = std::any_of(free.begin(), free.end(), [&](const te::Tensor& tensor) {
      return tensor.same_as(operands[i]);
    });
    if (is_free) found.push_back(static_cast<int>(i));
  }
  return found;
}

/*!
 * \brief Read weights ahead in the innermost reduction loop of a tile.
 *
 * In a network they come from far, since those of all other layers were read in between. A search
 * does not see that: it measures a kernel again and again.
 */
void ReadWeightsAhead(const SearchTask& task, State* state, int stage_id,
                      const Iterator& reduction) {
  // Weights that stay as they are have the elements of a trip in as many lines, which serve the
  // trips that follow, too.
  if (task->layout_rewrite_option == LayoutRewriteOption::kNoRewrite) return;
  // Trips of 8 to 28 vector multiply-adds that pass until a line comes from the third cache.
  constexpr int kTrips = 24;
  for (int operand : LayoutFreeOperands((*state)->stages[stage_id]->op)) {
    state->pragma(stage_id, reduction,
                  "read_ahead$" + std::to_string(operand) + "$" + std::to_string(kTrips));
  }
}

/*!
 * \brief Mark the innermost space tile: its last axis is the vector, the rest is unrolled.
 *
 * Of a window the reduction is unrolled too, as far as the knobs put it inside: its few steps are
 * no loop worth having, and neighbours share what they load.
 */
void MarkRegisterTile(const SearchTask& task, State* state, int stage_id) {
  const auto* compute = (*state)->stages[stage_id]->op.as<te::ComputeOpNode>();
  const size_t n_space = compute->axis.size();
  const size_t first = (*state)->stages[stage_id]->iters.size() - n_space;
  if (ReducesOverWindow((*state)->stages[stage_id]->op)) {
    for (size_t i = first - compute->reduce_axis.size(); i < first; ++i) {
      const Iterator iter = (*state)->stages[stage_id]->iters[i];
      if (!IsOnce(iter)) state->unroll(stage_id, iter);
    }
  } else if (!compute->reduce_axis.empty()) {
    ReadWeightsAhead(task, state, stage_id, (*state)->stages[stage_id]->iters[first - 1]);
  }
  for (size_t i = 0; i < n_space; ++i) {
    const Iterator iter = (*state)->stages[stage_id]->iters[first + i];
    if (IsOnce(iter)) continue;
    if (i + 1 == n_space) {
      state->vectorize(stage_id, iter);
    } else {
      state->unroll(stage_id, iter);
    }
  }
}

/*! \brief Parallel iterations below which cores would go without work. */
int64_t LeastParallel(const SearchTask& task) { return 2 * task->hardware_params->num_cores; }

/*!
 * \brief Outermost loops that are enough work for all cores, at least one.
 *
 * Each trip of a fused loop divides to find the indices of its loops, which is more work than a
 * short body, such as a pixel of three channels. A sixteenth of a core's share waits at most.
 */
size_t CountForCores(const SearchTask& task, const Array<Iterator>& loops) {
  const int64_t enough = 16 * task->hardware_params->num_cores;
  int64_t trips = 1;
  for (size_t i = 0; i < loops.size(); ++i) {
    if (trips >= enough) return i;
    trips *= std::max<int64_t>(loops[i].ConstExtent(), 1);
  }
  return loops.size();
}

/*! \brief Fuse `loops` of a stage and run them in parallel. */
void ParallelOver(State* state, int stage_id, const Array<Iterator>& loops) {
  Iterator fused = loops.size() == 1 ? loops[0] : state->fuse(stage_id, loops);
  state->parallel(stage_id, fused);
}

/*! \brief Split the last loop of a stage by the vector that a tiled stage uses, and vectorize. */
void VectorizeLikeTile(State* state, int stage_id, int64_t lane_split_step) {
  const auto* split = (*state)->transform_steps[lane_split_step].as<SplitStepNode>();
  const Iterator last = (*state)->stages[stage_id]->iters.back();
  if (IsOnce(last)) return;
  Array<Iterator> parts = state->follow_fused_split(
      stage_id, last, {lane_split_step}, static_cast<int>(split->lengths.size()) - 1, true);
  state->vectorize(stage_id, parts[1]);
}

/*! \brief The loop of a stage at which panels of an operand are copied, or -1. */
int LoopOfPanels(const State& state, int stage_id) {
  const int id = state->stages[stage_id]->id;
  for (const Stage& stage : state->stages) {
    if (stage->origin == StageOrigin::kCacheRead && stage->attach_stage == id) {
      return stage->attach_iter;
    }
  }
  return -1;
}

/*!
 * \brief Panels that a register tile reads: vectors as wide as the tile's.
 *
 * Where the operand lies across them, all steps of the reduction come before the next vector: they
 * take elements from the same few lines.
 */
void CompletePanels(State* state, int stage_id, int64_t lane_split_step) {
  VectorizeLikeTile(state, stage_id, lane_split_step);
  const Stage stage = (*state)->stages[stage_id];
  const auto* compute = stage->op.as<te::ComputeOpNode>();
  const auto* load = compute->body[0].as<tir::ProducerLoadNode>();
  ICHECK(load != nullptr);
  const size_t n = compute->axis.size();
  const bool turned = !load->indices.back().same_as(compute->axis.back()->var);
  if (!turned || stage->iters.size() == n) return;
  Array<Iterator> order = {stage->iters[n - 1]};
  for (size_t i = 0; i < stage->iters.size(); ++i) {
    if (i != n - 1) order.push_back(stage->iters[i]);
  }
  state->reorder(stage_id, order);
}

/*!
 * \brief A root stage that holds a tiled stage: its outermost tile loops feed the cores, or those
 *        of them for each of whose trips panels of an operand are copied.
 *
 * The loops that read the tile are cut like the tile and written out as it is: an accumulator with
 * an index that is no constant could not stay in its register.
 */
void CompleteHost(State* state, int stage_id, int tiled_stage) {
  const std::vector<int64_t> splits = SpaceSplitSteps(*state, tiled_stage);
  const size_t n_space = splits.size();
  const Array<Iterator> before = (*state)->stages[stage_id]->iters;
  const size_t first = before.size() - n_space;
  Array<Iterator> order(before.begin(), before.begin() + first), inner;
  for (size_t i = 0; i < n_space; ++i) {
    const Iterator iter = before[first + i];
    if (IsOnce(iter)) {
      order.push_back(iter);
      continue;
    }
    const auto* split = (*state)->transform_steps[splits[i]].as<SplitStepNode>();
    Array<Iterator> parts = state->follow_fused_split(
        stage_id, iter, {splits[i]}, static_cast<int>(split->lengths.size()) - 1, true);
    order.push_back(parts[0]);
    inner.push_back(parts[1]);
  }
  const bool has_lanes = !IsOnce(before.back());
  for (const Iterator& iter : inner) order.push_back(iter);
  state->reorder(stage_id, order);
  const size_t n_inner = inner.size();
  for (size_t i = 0; i < n_inner; ++i) {
    const Array<Iterator> iters = (*state)->stages[stage_id]->iters;
    const Iterator iter = iters[iters.size() - n_inner + i];
    if (has_lanes && i + 1 == n_inner) {
      state->vectorize(stage_id, iter);
    } else {
      state->unroll(stage_id, iter);
    }
  }
  const Array<Iterator> iters = (*state)->stages[stage_id]->iters;
  const int panels = LoopOfPanels(*state, stage_id);
  const size_t n_parallel = panels == -1 ? n_space : static_cast<size_t>(panels) + 1;
  ParallelOver(state, stage_id, Array<Iterator>(iters.begin(), iters.begin() + n_parallel));
}

/*!
 * \brief A stage of plain loops: outer space loops parallel, last space axis in vectors.
 *
 * Reduction loops go between the two, so that the accumulators of one vector stay in registers.
 * \param in_rows Whether the stage will run inside the rows of another one, whose loop is parallel.
 */
void CompletePlainStage(const SearchTask& task, State* state, int stage_id, bool in_rows = false) {
  const Stage stage = (*state)->stages[stage_id];
  Array<Iterator> space, reduction;
  for (const Iterator& iter : stage->iters) {
    (iter->iter_kind == IteratorKind::kReduction ? reduction : space).push_back(iter);
  }
  if (space.empty()) return;
  Array<Iterator> outer(space.begin(), space.end() - 1);
  Optional<Iterator> block = space.back(), lanes;
  if (space.back().ConstExtent() == -1) {
    // A factor axis of rfactor, whose extent is a knob already: lanes if the sketch put it inside.
    if (stage->iters.back().same_as(space.back())) std::swap(block, lanes);
  } else if (!IsOnce(space.back()) && LastAxisIsContiguous(stage->op.as<te::ComputeOpNode>())) {
    Array<Iterator> parts = state->split(stage_id, space.back(), OpenLengths{NullOpt});
    block = parts[0];
    lanes = parts[1];
  }
  Array<Iterator> inner = reduction;
  if (block.defined()) {
    // Blocks of the last axis stay serial, for long runs through memory, unless the cores would go
    // without work.
    int64_t tasks = 1;
    for (const Iterator& iter : outer) tasks *= std::max<int64_t>(iter.ConstExtent(), 1);
    if (!lanes.defined() || (!in_rows && tasks < LeastParallel(task))) {
      outer.push_back(block.value());
    } else {
      inner.insert(inner.begin(), block.value());
    }
  }
  if (lanes.defined()) inner.push_back(lanes.value());
  const size_t n_parallel = CountForCores(task, outer);
  Array<Iterator> order = outer;
  order.insert(order.end(), inner.begin(), inner.end());
  state->reorder(stage_id, order);
  const Array<Iterator> iters = (*state)->stages[stage_id]->iters;
  if (lanes.defined()) state->vectorize(stage_id, iters.back());
  if (in_rows) return;
  bool runs_once = true;
  for (size_t i = 0; i < n_parallel; ++i) runs_once = runs_once && IsOnce(iters[i]);
  if (!runs_once) {
    ParallelOver(state, stage_id, Array<Iterator>(iters.begin(), iters.begin() + n_parallel));
  }
}

/*! \brief What an op reads at the place that it writes, and whether its axes mean anything else. */
class ReadsInPlace final : public tir::ExprVisitor {
 public:
  explicit ReadsInPlace(const te::ComputeOpNode* compute)
      : compute_(compute), shape_(compute->output_shape(0)) {
    for (const PrimExpr& body : compute->body) VisitExpr(body);
  }

  std::vector<te::Operation> producers;
  bool elsewhere = false;

 private:
  using tir::ExprVisitor::VisitExpr_;
  void VisitExpr_(const tir::ProducerLoadNode* load) final {
    const te::Tensor producer = Downcast<te::Tensor>(load->producer);
    const bool in_place =
        load->indices.size() == compute_->axis.size() &&
        std::equal(load->indices.begin(), load->indices.end(), compute_->axis.begin(),
                   [](const PrimExpr& index, const te::IterVar& axis) {
                     return index.same_as(axis->var);
                   }) &&
        StructuralEqual()(producer->shape, shape_);
    if (in_place) {
      producers.push_back(producer->op);
    } else {
      tir::ExprVisitor::VisitExpr_(load);
    }
  }
  void VisitExpr_(const tir::VarNode* var) final {
    elsewhere |= std::any_of(compute_->axis.begin(), compute_->axis.end(),
                             [var](const te::IterVar& axis) { return axis->var.get() == var; });
  }

  const te::ComputeOpNode* compute_;
  Array<PrimExpr> shape_;
};

/*!
 * \brief Whether an op, with all that is inlined into it, computes each element from those at the
 *        same place of its operands and from single ones, so that its rows are one long row.
 */
bool IsOneRow(const State& state, const te::Operation& op) {
  std::unordered_set<const Object*> inlined, given;
  for (const Stage& stage : state->stages) {
    if (stage->compute_at == ComputeAtKind::kInlined) inlined.insert(stage->op.get());
    if (stage->op_type == StageKind::kPlaceholder) given.insert(stage->op.get());
  }
  std::vector<te::Operation> open = {op};
  std::unordered_set<const Object*> seen;
  while (!open.empty()) {
    const te::Operation next = open.back();
    open.pop_back();
    const auto* compute = next.as<te::ComputeOpNode>();
    if (compute == nullptr) return false;
    const ReadsInPlace reads(compute);
    if (reads.elsewhere) return false;
    for (const te::Operation& producer : reads.producers) {
      if (given.count(producer.get())) continue;
      // How long rows of a buffer between stages are follows from knobs before it is computed.
      if (!inlined.count(producer.get())) return false;
      if (seen.insert(producer.get()).second) open.push_back(producer);
    }
  }
  return true;
}

/*!
 * \brief The outputs of plain loops in each of which all rows are one, see `IsOneRow`: a loop
 * around rows would begin them one by one, and the arithmetic of a row's end waits for nothing.
 */
std::unordered_set<int> StagesOfOneRow(const SearchTask& task, const State& state) {
  std::unordered_set<int> found;
  for (int i = 0; i < static_cast<int>(state->stages.size()); ++i) {
    const Stage& stage = state->stages[i];
    if (stage->op.as<te::ComputeOpNode>() == nullptr || !IsOutputStage(task, state, i) ||
        IsTiled(stage) || HasReduceIter(stage) || NeedsMultiLevelTiling(task, state, i) ||
        TiledStageHeldBy(task, state, i) >= 0) {
      continue;
    }
    const auto several = std::count_if(stage->iters.begin(), stage->iters.end(),
                                       [](const Iterator& it) { return it.ConstExtent() > 1; });
    const bool constant = std::all_of(stage->iters.begin(), stage->iters.end(),
                                      [](const Iterator& it) { return it.ConstExtent() > 0; });
    if (several > 1 && constant && IsOneRow(state, stage->op)) found.insert(i);
  }
  return found;
}

/*! \brief A stage whose rows are one: all its loops are one, of vectors, shared among cores. */
void CompleteOneRow(State* state, int stage_id) {
  const Iterator row = state->fuse(stage_id, (*state)->stages[stage_id]->iters);
  const Array<Iterator> parts = state->split(stage_id, row, OpenLengths{NullOpt});
  state->vectorize(stage_id, parts[1]);
  state->parallel(stage_id, parts[0]);
}

/*! \brief Whether `consumer` reads of `producer`, in each of its first `n` axes, its own index. */
bool ReadsSameRows(const te::Operation& consumer, const te::Operation& producer, size_t n) {
  const Array<te::IterVar>& axes = consumer.as<te::ComputeOpNode>()->axis;
  for (const Array<PrimExpr>& indices : ReadsOf(consumer, producer)) {
    if (indices.size() < n || axes.size() < n) return false;
    for (size_t i = 0; i < n; ++i) {
      if (!indices[i].same_as(axes[i]->var)) return false;
    }
  }
  return true;
}

/*!
 * \brief The stages that make a row of the output from the same row of theirs, such as the maxima,
 *        exponentials and sums of a softmax: they run one after another while the row is in cache.
 *
 * Empty where no reduction is among them, or rows are too few for the cores.
 */
std::unordered_set<int> StagesOfRows(const SearchTask& task, const State& state) {
  const int last = static_cast<int>(state->stages.size()) - 1;
  const Stage& output = state->stages[last];
  const auto* compute = output->op.as<te::ComputeOpNode>();
  if (compute == nullptr || compute->axis.size() < 2 || HasReduceIter(output) || IsTiled(output) ||
      output->compute_at != ComputeAtKind::kRoot || TiledStageHeldBy(task, state, last) >= 0) {
    return {};
  }
  const size_t n_rows = compute->axis.size() - 1;
  int64_t rows = 1;
  for (size_t i = 0; i < n_rows; ++i) rows *= output->iters[i].ConstExtent();
  if (rows < LeastParallel(task)) return {};
  const ComputeDAG dag = CurrentDAG(task, state);
  std::unordered_set<const Object*> in_rows = {output->op.get()};
  std::unordered_set<int> found;
  bool reduces = false;
  for (int i = last - 1; i >= 0; --i) {
    const Stage& stage = state->stages[i];
    const bool inlined = stage->compute_at == ComputeAtKind::kInlined;
    const bool plain = stage->compute_at == ComputeAtKind::kRoot &&
                       (!IsTiled(stage) || IsRfactorStage(state, i)) &&
                       !NeedsMultiLevelTiling(task, state, i) &&
                       TiledStageHeldBy(task, state, i) == -1;
    if (stage->op_type == StageKind::kPlaceholder || !(inlined || plain) ||
        IsOutputStage(task, state, i)) {
      continue;
    }
    const std::vector<te::Operation> consumers = dag->access().GetDirectConsumers(stage->op);
    const bool same_rows =
        std::all_of(consumers.begin(), consumers.end(), [&](const te::Operation& consumer) {
          return in_rows.count(consumer.get()) && ReadsSameRows(consumer, stage->op, n_rows);
        });
    if (!same_rows) continue;
    in_rows.insert(stage->op.get());
    if (inlined) continue;
    found.insert(i);
    reduces = reduces || HasReduceIter(stage);
  }
  return reduces ? found : std::unordered_set<int>{};
}

/*!
 * \brief Mark the loops of all stages, once every stage has its place.
 * \param one_row The stages whose loops become one.
 */
State MarkLoops(const SearchTask& task, State state, const std::unordered_set<int>& one_row) {
  const int output = static_cast<int>(state->stages.size()) - 1;
  const std::unordered_set<int> rows = StagesOfRows(task, state);
  for (int i = static_cast<int>(state->stages.size()) - 1; i >= 0; --i) {
    const Stage stage = state->stages[i];
    if (stage->op_type == StageKind::kPlaceholder || stage->compute_at == ComputeAtKind::kInlined) {
      continue;
    }
    if (NeedsMultiLevelTiling(task, state, i) && IsTiled(stage)) {
      MarkRegisterTile(task, &state, i);
      if (stage->compute_at == ComputeAtKind::kRoot) {
        const size_t n_space = stage->op.as<te::ComputeOpNode>()->axis.size();
        const Array<Iterator> iters = state->stages[i]->iters;
        ParallelOver(&state, i, Array<Iterator>(iters.begin(), iters.begin() + n_space));
      }
      continue;
    }
    if (stage->origin == StageOrigin::kCacheRead) {
      const int reader = GetConsumers(task, state, i)[0];
      CompletePanels(&state, i, SpaceSplitSteps(state, reader).back());
      continue;
    }
    if (stage->compute_at == ComputeAtKind::kIter) continue;
    if (one_row.count(i)) {
      CompleteOneRow(&state, i);
      continue;
    }
    if (rows.count(i)) {
      CompletePlainStage(task, &state, i, /*in_rows=*/true);
      state.compute_at(i, output, state->stages[output]->iters[0]);
      continue;
    }
    int tiled_stage = TiledStageHeldBy(task, state, i);
    if (tiled_stage >= 0) {
      CompleteHost(&state, i, tiled_stage);
    } else if (!IsTiled(stage) || IsRfactorStage(state, i)) {
      CompletePlainStage(task, &state, i);
    }
  }
  return state;
}

/*! \brief Whether a stage only moves elements, like padding, so that it may run in many places. */
bool IsMovable(const SearchTask& task, const State& state, int stage_id) {
  const Stage& stage = state->stages[stage_id];
  return stage->op_type == StageKind::kCompute && stage->compute_at == ComputeAtKind::kRoot &&
         !HasReduceIter(stage) && !IsTiled(stage) && !IsOutputStage(task, state, stage_id) &&
         !NeedsMultiLevelTiling(task, state, stage_id) &&
         TiledStageHeldBy(task, state, stage_id) == -1 &&
         CurrentDAG(task, state)->access().IsSimpleAccess(stage->op);
}

/*! \brief Compute a producer right where the tiled stage that reads it is computed. */
State ComputeBesideReader(const State& state, int stage_id, int reader) {
  State result = state;
  const int host = state.PositionOf(state->stages[reader]->attach_stage);
  const Iterator at = state->stages[host]->iters[state->stages[reader]->attach_iter];
  result.compute_at(stage_id, host, at);
  // Where the reader's vector axis is the producer's too, both use the same vectors.
  const auto* compute = state->stages[reader]->op.as<te::ComputeOpNode>();
  std::vector<Array<PrimExpr>> reads =
      ReadsOf(state->stages[reader]->op, state->stages[stage_id]->op);
  if (compute->axis.back()->var.same_as(reads[0].back())) {
    VectorizeLikeTile(&result, stage_id, SpaceSplitSteps(result, reader).back());
  }
  return result;
}

/*! \brief The places worth trying for one movable producer, at the root unless inlining is free. */
std::vector<State> Locations(const SearchTask& task, const State& state, int stage_id,
                             bool alternatives) {
  std::vector<State> states = {state};
  std::vector<int> consumers = GetConsumers(task, state, stage_id);
  if (consumers.size() != 1) return states;
  const Stage& reader = state->stages[consumers[0]];
  State inlined = state;
  inlined.compute_inline(stage_id);
  if (!HasReduceIter(reader) && !IsTiled(reader) &&
      CurrentDAG(task, state)->access().ElementWiseMatch(state->stages[stage_id]->op, reader->op)) {
    return {inlined};
  }
  if (!alternatives) return states;
  // A dense convolution reads each padded element for every output channel: the copy always pays.
  if (!ReadsThroughWindow(reader->op, state->stages[stage_id]->op)) return states;
  if (reader->compute_at == ComputeAtKind::kIter) {
    states.push_back(ComputeBesideReader(state, stage_id, consumers[0]));
  }
  states.push_back(inlined);
  return states;
}

}  // namespace

bool ReducesAlongRows(const te::Operation& op) {
  const auto* compute = op.as<te::ComputeOpNode>();
  if (compute == nullptr || compute->body.size() != 1 || compute->reduce_axis.empty() ||
      LastAxisIsContiguous(compute) || ReducesOverWindow(op)) {
    return false;
  }
  bool contiguous = false;
  tir::PostOrderVisit(compute->body[0], [&](const ObjectRef& node) {
    const auto* load = node.as<tir::ProducerLoadNode>();
    contiguous |= load != nullptr && !load->indices.empty() &&
                  Mentions(load->indices.back(), {compute->reduce_axis.back()});
  });
  return contiguous;
}

bool HasWindowStage(const SearchTask& task) {
  const State& init = task->compute_dag->init_state;
  const AccessAnalyzer& access = task->compute_dag->access();
  for (const Stage& stage : init->stages) {
    if (!access.NeedsMultiLevelTiling(stage->op)) continue;
    for (const te::Operation& producer : access.GetDirectProducers(stage->op)) {
      if (producer->IsInstance<te::ComputeOpNode>() && ReadsThroughWindow(stage->op, producer)) {
        return true;
      }
    }
  }
  return false;
}

std::vector<State> CompleteSketch(const SearchTask& task, const State& sketch,
                                  bool producer_locations) {
  std::vector<State> placed = {sketch};
  for (int i = static_cast<int>(sketch->stages.size()) - 1; i >= 0; --i) {
    std::vector<State> next;
    for (const State& state : placed) {
      if (!IsMovable(task, state, i)) {
        next.push_back(state);
        continue;
      }
      for (const State& location : Locations(task, state, i, producer_locations)) {
        next.push_back(location);
      }
    }
    placed = SomeOf(std::move(next), kMostPlaces);
  }
  std::vector<State> completed;
  for (const State& state : placed) {
    completed.push_back(MarkLoops(task, state, {}));
    const std::unordered_set<int> one_row = StagesOfOneRow(task, state);
    if (!one_row.empty()) completed.push_back(MarkLoops(task, state, one_row));
  }
  return completed;
}

}  // namespace auto_scheduler
}  // namespace tvm
