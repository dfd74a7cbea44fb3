/*!
 * \file thread_bind.cc
 * \brief Which loops of a program are blocks and threads of a graphics processor.
 */
#include <tvm/auto_scheduler/transform_step.h>
#include <tvm/expr/op.h>
#include <tvm/te/operation.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <map>
#include <unordered_set>

#include "../../sketch_utils.h"
#include "gpu_rules.h"

namespace tvm {
namespace auto_scheduler {

namespace {

/*! \brief The outer levels of tiles, as the rule that tiles leaves them. */
enum TileLevel : int { kBlockLevel = 0, kVirtualThreadLevel = 1, kThreadLevel = 2 };

/*!
 * \brief Whether a block may have so many threads, virtual and real.
 * \param space Elements of the result, or -1 where they are not known.
 */
bool ThreadsFit(const HardwareParams& limits, int64_t virtual_threads, int64_t threads,
                int64_t space) {
  if (virtual_threads > limits->max_vthread_extent) return false;
  // Less than a warp leaves lanes idle, which only a tiny result excuses.
  if (threads < limits->warp_size && space > 2 * limits->warp_size) return false;
  return threads <= limits->max_threads_per_block;
}

class ThreadBind final : public RandomRule {
 public:
  const char* Name() const final { return "thread bind"; }
  bool Apply(const SearchTask& task, State* state, std::mt19937*) const final {
    const std::unordered_set<int> tiled_roots = RootsOfTiledStages(task, *state);
    for (int i = static_cast<int>((*state)->stages.size()) - 1; i >= 0; --i) {
      const Stage stage = (*state)->stages[i];
      if (stage->op_type == StageKind::kPlaceholder ||
          stage->compute_at == ComputeAtKind::kInlined || UsesTensorCores(*state, i)) {
        continue;
      }
      const bool at_root = stage->compute_at == ComputeAtKind::kRoot;
      if (HasCrossThreadReduction(stage) || HasThreads(stage)) {
        // Threads are bound already; what is left of space are the blocks.
        if (at_root) state->bind(i, FuseOuterSpace(state, i), IteratorAnnotation::kBlockX);
      } else if (at_root && !tiled_roots.count(i)) {
        BindPlainStage(task, state, i);
      } else if (at_root) {
        if (!BindTiledRoot(task, state, i)) return false;
      } else if (stage->origin == StageOrigin::kCacheRead) {
        FetchTogether(state, i);
      }
    }
    return true;
  }

 private:
  /*! \brief Root stages that are tiled or hold a tiled stage. */
  static std::unordered_set<int> RootsOfTiledStages(const SearchTask& task, const State& state) {
    std::unordered_set<int> roots;
    for (int i = 0; i < static_cast<int>(state->stages.size()); ++i) {
      const Stage& stage = state->stages[i];
      if (stage->op_type == StageKind::kPlaceholder || !NeedsMultiLevelTiling(task, state, i) ||
          HasCrossThreadReduction(stage)) {
        continue;
      }
      if (stage->compute_at == ComputeAtKind::kRoot) roots.insert(i);
      if (stage->compute_at == ComputeAtKind::kIter)
        roots.insert(state.PositionOf(stage->attach_stage));
    }
    return roots;
  }

  static bool HasThreads(const Stage& stage) {
    return std::any_of(stage->iters.begin(), stage->iters.end(), [](const Iterator& iter) {
      return iter->annotation == IteratorAnnotation::kThreadX;
    });
  }

  static Iterator Fuse(State* state, int stage_id, int first, int last) {
    const Array<Iterator> iters = (*state)->stages[stage_id]->iters;
    return state->fuse(stage_id, Array<Iterator>(iters.begin() + first, iters.begin() + last));
  }

  /*! \brief Fuses loops up to the first that reduces, is marked, or has a stage attached. */
  static Iterator FuseOuterSpace(State* state, int stage_id) {
    const Array<Iterator> iters = (*state)->stages[stage_id]->iters;
    int count = 0;
    while (count < static_cast<int>(iters.size()) &&
           iters[count]->iter_kind == IteratorKind::kSpatial &&
           iters[count]->annotation == IteratorAnnotation::kNone) {
      if (state->HasAttachedStages(stage_id, count++)) break;
    }
    return Fuse(state, stage_id, 0, count);
  }

  static void BindPlainStage(const SearchTask& task, State* state, int stage_id) {
    const int warp_size = task->hardware_params->warp_size;
    Iterator fused = FuseOuterSpace(state, stage_id);
    if (fused.ConstExtent() <= warp_size) {
      state->bind(stage_id, fused, IteratorAnnotation::kThreadX);
      return;
    }
    Array<Iterator> parts =
        state->split(stage_id, fused, {Optional<PrimExpr>(PrimExpr(Integer(warp_size)))});
    state->bind(stage_id, parts[0], IteratorAnnotation::kBlockX);
    state->bind(stage_id, (*state)->stages[stage_id]->iters[1], IteratorAnnotation::kThreadX);
  }

  /*! \brief The outer three levels of tiles become blocks, virtual threads and threads. */
  static bool BindTiledRoot(const SearchTask& task, State* state, int stage_id) {
    // Each level has its axes side by side.
    auto fuse_level = [&](int level) {
      const Array<Iterator>& iters = (*state)->stages[stage_id]->iters;
      int last = level;  // the levels outside are one loop each by now
      auto belongs = [level](const Iterator& iter) {
        // Parts of a reduction are no tiles, and get blocks of their own.
        return iter->split_part == level || (level == kBlockLevel && iter->split_part < 0);
      };
      while (last < static_cast<int>(iters.size()) && belongs(iters[last])) ++last;
      return Fuse(state, stage_id, level, last);
    };
    int64_t space = CumulativeExtents((*state)->stages[stage_id]).first;
    state->bind(stage_id, fuse_level(kBlockLevel), IteratorAnnotation::kBlockX);
    Iterator virtual_threads = fuse_level(kVirtualThreadLevel);
    state->bind(stage_id, virtual_threads, IteratorAnnotation::kVThread);
    Iterator threads = fuse_level(kThreadLevel);
    state->bind(stage_id, threads, IteratorAnnotation::kThreadX);
    return ThreadsFit(task->hardware_params, virtual_threads.ConstExtent(), threads.ConstExtent(),
                      space);
  }

  /*! \brief All threads of the block load the tile, neighbours by neighbouring threads. */
  static void FetchTogether(State* state, int stage_id) {
    const int reader = state->PositionOf((*state)->stages[stage_id]->attach_stage);
    Array<int64_t> splits;
    for (int64_t step : SpaceSplitSteps(*state, reader)) splits.push_back(step);
    const int n_loops = static_cast<int>((*state)->stages[stage_id]->iters.size());
    Iterator fused = Fuse(state, stage_id, 0, n_loops);
    // One element a load for a start; mutations find out whether more are better.
    Array<Iterator> lanes =
        state->split(stage_id, fused, {Optional<PrimExpr>(PrimExpr(Integer(1)))});
    state->vectorize(stage_id, lanes[1]);
    constexpr int kThreadLevel = 1;
    Array<Iterator> parts = state->follow_fused_split(
        stage_id, (*state)->stages[stage_id]->iters[0], splits, kThreadLevel, true);
    state->bind(stage_id, parts[1], IteratorAnnotation::kThreadX);
  }
};

int64_t LiteralOr(const Optional<PrimExpr>& value, int64_t otherwise) {
  const int64_t* literal = value.defined() ? tir::as_const_int(value.value()) : nullptr;
  return literal == nullptr ? otherwise : *literal;
}

}  // namespace

bool TiledThreadsFit(const SearchTask& task, const State& state) {
  for (int i = 0; i < static_cast<int>(state->stages.size()); ++i) {
    const Stage& stage = state->stages[i];
    if (stage->op_type == StageKind::kPlaceholder || !IsTiled(stage) ||
        !NeedsMultiLevelTiling(task, state, i) || HasCrossThreadReduction(stage)) {
      continue;
    }
    // Products are 0 where a factor is open, which rules nothing out.
    int64_t space = 1, virtual_threads = 1, threads = 1;
    for (int64_t id : SpaceSplitSteps(state, i)) {
      const auto* split = state->transform_steps[id].as<SplitStepNode>();
      // What is left of the loop is the outermost level, which has no length.
      space *= LiteralOr(split->extent, 0);
      virtual_threads *= LiteralOr(split->lengths[kVirtualThreadLevel - 1], 0);
      threads *= LiteralOr(split->lengths[kThreadLevel - 1], 0);
    }
    if (threads != 0 && !ThreadsFit(task->hardware_params, virtual_threads, threads, space)) {
      return false;
    }
  }
  return true;
}

namespace {

/*! \brief Whether the results of a stage have no more than one axis along which there are several.
 */
bool IsRow(const Stage& stage) {
  const auto* compute = stage->op.as<te::ComputeOpNode>();
  return compute != nullptr &&
         std::count_if(compute->axis.begin(), compute->axis.end(), [](const te::IterVar& axis) {
           return !tir::is_one(axis->dom->extent);
         }) <= 1;
}

/*!
 * \brief The dimension of a tile along which neighbouring threads read rows of several elements; -1
 *        if they are neighbours in a row, or all read the same.
 */
int DimensionAcrossThreads(const Stage& tile, const Stage& reader) {
  const auto* compute = reader->op.as<te::ComputeOpNode>();
  if (compute == nullptr) return -1;
  tir::Var neighbour;
  for (const te::IterVar& axis : compute->axis) {
    if (!tir::is_one(axis->dom->extent)) neighbour = axis->var;
  }
  if (!neighbour.defined()) return -1;
  int found = -1;
  tir::PostOrderVisit(compute->body[0], [&](const ObjectRef& node) {
    const auto* load = node.as<tir::ProducerLoadNode>();
    if (load == nullptr) return;
    const te::Tensor tensor = Downcast<te::Tensor>(load->producer);
    if (!tensor->op.same_as(tile->op)) return;
    bool has_rows = false;
    for (int d = static_cast<int>(load->indices.size()) - 1; d >= 0; --d) {
      if (tir::UsesVar(load->indices[d],
                       [&](const tir::VarNode* used) { return used == neighbour.get(); })) {
        if (has_rows) found = d;
        return;
      }
      has_rows = has_rows || !tir::is_one(tensor->shape[d]);
    }
  });
  return found;
}

/*! \brief The step that cuts the lanes of a stage's copies off; -1 if there is none. */
int SplitOfLanes(const State& state, int stage_id) {
  const Array<Step>& steps = state->transform_steps;
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    const auto* split = steps[i].as<SplitStepNode>();
    const auto* mark = steps[i + 1].as<AnnotationStepNode>();
    if (split != nullptr && mark != nullptr && split->stage_id == stage_id &&
        mark->stage_id == stage_id && mark->annotation == IteratorAnnotation::kVectorize) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

/*! \brief Whether a stage copies tiles into shared memory for threads, not for warps. */
bool IsTileOfThreads(const State& state, int stage_id) {
  const Stage& stage = state->stages[stage_id];
  return stage->origin == StageOrigin::kCacheRead && stage->scope == "shared" &&
         stage->compute_at == ComputeAtKind::kIter && !UsesTensorCores(state, stage_id);
}

}  // namespace

void FillTilesAhead(State* state) {
  std::map<int, Array<int64_t>> copies_of;
  for (int i = 0; i < static_cast<int>((*state)->stages.size()); ++i) {
    const Stage stage = (*state)->stages[i];
    if (!IsTileOfThreads(*state, i)) continue;
    // Only what lies in memory can be copied meanwhile, with zeros behind its ends; padding in
    // front of it and dilation are computed.
    const auto& stages = (*state)->stages;
    int source = state->PositionOf(stage->source);
    if (stages[source]->origin == StageOrigin::kPadRead) {
      source = state->PositionOf(stages[source]->source);
    }
    if (stages[source]->op_type != StageKind::kPlaceholder) continue;
    // What a row multiplies is used once, so that memory is waited for either way.
    if (IsRow((*state)->stages[state->PositionOf(stage->attach_stage)])) continue;
    copies_of[stage->attach_stage].push_back(i);
  }
  for (const auto& [reader, copies] : copies_of) {
    state->fetch_ahead(state->PositionOf(reader), copies, NullOpt);
  }
}

void PadRowsAcrossThreads(State* state) {
  for (int i = 0; i < static_cast<int>((*state)->stages.size()); ++i) {
    if (!IsTileOfThreads(*state, i)) continue;
    const Stage tile = (*state)->stages[i];
    const Stage& reader = (*state)->stages[state->PositionOf(tile->attach_stage)];
    const int dim = DimensionAcrossThreads(tile, reader);
    const int lanes = SplitOfLanes(*state, i);
    if (dim >= 0 && lanes >= 0) state->follow_storage_align(i, dim, lanes);
  }
}

void UnrollRegisterTiles(const SearchTask& task, State* state) {
  // Small windows are written out like tiles.
  constexpr int64_t kWindow = 32;
  auto unroll_from = [state](int stage_id, size_t first) {
    const Array<Iterator> iters = (*state)->stages[stage_id]->iters;
    for (size_t i = first; i < iters.size(); ++i) {
      if (iters[i]->annotation == IteratorAnnotation::kNone && iters[i].ConstExtent() != 1) {
        state->unroll(stage_id, iters[i]);
      }
    }
  };
  for (int i = 0; i < static_cast<int>((*state)->stages.size()); ++i) {
    const Stage stage = (*state)->stages[i];
    if (stage->op_type == StageKind::kPlaceholder || stage->compute_at == ComputeAtKind::kInlined ||
        stage->origin == StageOrigin::kCacheRead || HasCrossThreadReduction(stage) ||
        UsesTensorCores(*state, i)) {
      continue;
    }
    const Array<Iterator>& iters = stage->iters;
    size_t first = 0;
    if (NeedsMultiLevelTiling(task, *state, i) && IsTiled(stage)) {
      // Behind the last reduction loop that stays one: levels 3 and 4 of space and 2 of reduction.
      constexpr int kRegisterLevel = 3;
      while (first < iters.size() && !(iters[first]->iter_kind == IteratorKind::kSpatial &&
                                       iters[first]->split_part >= kRegisterLevel)) {
        ++first;
      }
    } else {
      // Behind the threads: the tile that is written back, or a window.
      int64_t trips = 1;
      bool known = true;
      for (size_t j = 0; j < iters.size(); ++j) {
        if (iters[j]->annotation == IteratorAnnotation::kThreadX) first = j + 1;
        if (iters[j]->iter_kind != IteratorKind::kReduction) continue;
        const int64_t extent = iters[j].ConstExtent();
        known = known && extent > 0;
        trips *= extent;
      }
      if (HasReduceIter(stage) && (!known || trips > kWindow)) continue;
      if (first == 0) continue;
    }
    unroll_from(i, first);
  }
}

std::shared_ptr<const RandomRule> InitThreadBind() { return std::make_shared<ThreadBind>(); }

}  // namespace auto_scheduler
}  // namespace tvm
