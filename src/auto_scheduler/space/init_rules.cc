/*!
 * \file init_rules.cc
 * \brief Random decisions that make a program of a sketch.
 */
#include <tvm/auto_scheduler/transform_step.h>
#include <tvm/expr/op.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <string>

#include "../sketch_utils.h"
#include "random_rules.h"
#include "tile_sizes.h"

namespace tvm {
namespace auto_scheduler {

namespace {

bool IsComputed(const Stage& stage) {
  return stage->op_type == StageKind::kCompute && stage->compute_at != ComputeAtKind::kInlined;
}

class FillTileSize final : public RandomRule {
 public:
  FillTileSize(int max_innermost, const SearchSpace* space)
      : max_innermost_(max_innermost), space_(space) {}
  const char* Name() const final { return "fill tile size"; }
  bool Apply(const SearchTask& task, State* state, std::mt19937* random) const final {
    // Lengths are drawn in no time, where a replay and the extents of loops take milliseconds.
    constexpr int kMaxTries = 16;
    for (int tries = 0; tries < (space_ == nullptr ? 1 : kMaxTries); ++tries) {
      const std::optional<Array<Step>> steps = Fill(task, (*state)->transform_steps, random);
      if (!steps) return false;
      if (space_ != nullptr) {
        State filled = *state;
        filled.CopyOnWrite()->transform_steps = *steps;
        if (!space_->LengthsFit(task, filled)) continue;
      }
      if (!steps->same_as((*state)->transform_steps)) *state = Replay(task, *steps);
      return true;
    }
    return false;
  }

 private:
  /*! \brief `open` with all lengths; none if they would have to divide what is not known. */
  std::optional<Array<Step>> Fill(const SearchTask& task, const Array<Step>& open,
                                  std::mt19937* random) const {
    Array<Step> steps = open;
    for (size_t i = 0; i < steps.size(); ++i) {
      const Array<Optional<PrimExpr>>* lengths = LengthsOf(steps[i]);
      if (lengths == nullptr ||
          std::all_of(lengths->begin(), lengths->end(),
                      [](const Optional<PrimExpr>& length) { return length.defined(); })) {
        continue;
      }
      const int n_lengths = static_cast<int>(lengths->size());
      const int64_t free = space_ == nullptr ? 0 : space_->FreeLengths(task, open, i);
      if (free > 0) {
        steps.Set(i, WithLengths(steps[i], SampleSplitLengths(free, n_lengths, free, random)));
        continue;
      }
      const auto* split = steps[i].as<SplitStepNode>();
      const int64_t* extent = split != nullptr && split->extent.defined()
                                  ? tir::as_const_int(split->extent.value())
                                  : nullptr;
      if (extent == nullptr) return std::nullopt;
      steps.Set(
          i, WithLengths(steps[i], SampleSplitLengths(*extent, n_lengths, max_innermost_, random)));
    }
    return steps;
  }

  int max_innermost_;
  const SearchSpace* space_;
};

class ComputeLocation final : public RandomRule {
 public:
  const char* Name() const final { return "compute location"; }
  bool Apply(const SearchTask& task, State* state, std::mt19937* random) const final {
    for (int i = static_cast<int>((*state)->stages.size()) - 1; i >= 0; --i) {
      const Stage stage = (*state)->stages[i];
      if (!IsComputed(stage) || IsTiled(stage) || NeedsMultiLevelTiling(task, *state, i) ||
          IsOutputStage(task, *state, i)) {
        continue;
      }
      std::vector<std::pair<int, int>> places = ComputeLocations(task, *state, i);
      // Beside the places there is being inlined and being computed on its own.
      int64_t choice = Below(random, static_cast<int64_t>(places.size()) + 2);
      if (choice >= 2) {
        auto [target, loop] = places[choice - 2];
        state->compute_at(i, target, (*state)->stages[target]->iters[loop]);
      } else if (choice == 1) {
        state->compute_root(i);
      } else if (!HasReduceIter(stage) && !HoldsStages(*state, i)) {
        state->compute_inline(i);
      }
    }
    return true;
  }

 private:
  static bool HoldsStages(const State& state, int stage_id) {
    const int id = state->stages[stage_id]->id;
    return std::any_of(state->stages.begin(), state->stages.end(),
                       [id](const Stage& stage) { return stage->attach_stage == id; });
  }
};

class Bounds final : public RandomRule {
 public:
  explicit Bounds(const SearchSpace* space) : space_(space) {}
  const char* Name() const final { return "bounds"; }
  bool Apply(const SearchTask& task, State* state, std::mt19937*) const final {
    if (space_ != nullptr && !space_->LengthsFit(task, *state)) return false;
    try {
      *state = task->compute_dag.InferBound(*state);
    } catch (const runtime::Error& error) {
      if (error.kind() != "ScheduleError") throw;
      return false;
    }
    return true;
  }

 private:
  const SearchSpace* space_;
};

class Parallel final : public RandomRule {
 public:
  const char* Name() const final { return "parallel"; }
  bool Apply(const SearchTask& task, State* state, std::mt19937*) const final {
    for (int i = static_cast<int>((*state)->stages.size()) - 1; i >= 0; --i) {
      const Stage& stage = (*state)->stages[i];
      if (stage->op_type == StageKind::kCompute && stage->compute_at == ComputeAtKind::kRoot) {
        FuseAndMark(task, state, i, 0);
      }
    }
    return true;
  }

 private:
  // Enough for every core to have several pieces of work of unequal length.
  static constexpr int kTripsPerCore = 16;

  static void FuseAndMark(const SearchTask& task, State* state, int stage_id, int first) {
    int64_t trips;
    int count = CountParallelLoops(*state, stage_id, first,
                                   kTripsPerCore * task->hardware_params->num_cores, &trips);
    if (count == 0) return;
    const int last = first + count - 1;
    if (trips == 1) {
      // These loops give the cores nothing to share; what is computed inside of them may.
      std::vector<int> attached = state->AttachedStages(stage_id, last);
      if (attached.empty()) return;
      for (int inner : attached) FuseAndMark(task, state, inner, 0);
      return FuseAndMark(task, state, stage_id, last + 1);
    }
    const Array<Iterator> iters = (*state)->stages[stage_id]->iters;
    Iterator loop = iters[first];
    if (count > 1) {
      loop = state->fuse(stage_id,
                         Array<Iterator>(iters.begin() + first, iters.begin() + first + count));
    }
    state->parallel(stage_id, loop);
  }
};

class Unroll final : public RandomRule {
 public:
  explicit Unroll(std::vector<int> max_steps) : max_steps_(std::move(max_steps)) {}
  const char* Name() const final { return "unroll"; }
  bool Apply(const SearchTask&, State* state, std::mt19937* random) const final {
    for (int i = static_cast<int>((*state)->stages.size()) - 1; i >= 0; --i) {
      const Stage stage = (*state)->stages[i];
      if (!IsComputed(stage)) continue;
      UnrollListedInnerLoops(state, i);
      if (!HasReduceIter(stage)) continue;
      int max_step = max_steps_[Below(random, static_cast<int64_t>(max_steps_.size()))];
      state->pragma(i, (*state)->stages[i]->iters[0],
                    "auto_unroll_max_step$" + std::to_string(max_step));
    }
    return true;
  }

 private:
  /*! \brief Unrolls the innermost part of each axis that the operation asks to be unrolled. */
  static void UnrollListedInnerLoops(State* state, int stage_id) {
    std::vector<std::string> listed =
        AttrNames((*state)->stages[stage_id], "auto_scheduler_always_unroll_inner");
    if (listed.empty()) return;
    std::set<std::string> seen;
    for (int i = static_cast<int>((*state)->stages[stage_id]->iters.size()) - 1; i >= 0; --i) {
      const Iterator iter = (*state)->stages[stage_id]->iters[i];
      const std::string name = iter->name;
      const std::string axis = name.substr(0, name.find_first_of(".@"));
      bool innermost = seen.insert(axis).second;
      if (innermost && iter->annotation == IteratorAnnotation::kNone &&
          std::find(listed.begin(), listed.end(), axis) != listed.end()) {
        state->unroll(stage_id, iter);
      }
    }
  }

  std::vector<int> max_steps_;
};

class Vectorization final : public RandomRule {
 public:
  explicit Vectorization(int max_size) : max_size_(max_size) {}
  const char* Name() const final { return "vectorization"; }
  bool Apply(const SearchTask&, State* state, std::mt19937* random) const final {
    for (int i = static_cast<int>((*state)->stages.size()) - 1; i >= 0; --i) {
      const Stage stage = (*state)->stages[i];
      if (!IsComputed(stage)) continue;
      int count = CountLoops(*state, i);
      if (count == 0) continue;
      if (count > 1) count = 1 + static_cast<int>(Below(random, count - 1));
      const Array<Iterator>& iters = stage->iters;
      Iterator loop = iters.back();
      if (count > 1) loop = state->fuse(i, Array<Iterator>(iters.end() - count, iters.end()));
      if (loop.ConstExtent() != 1) state->vectorize(i, loop);
    }
    return true;
  }

 private:
  /*! \brief Inner loops over neighbouring elements, as far as loop kinds and extents tell. */
  int CountLoops(const State& state, int stage_id) const {
    const Stage& stage = state->stages[stage_id];
    const int n = static_cast<int>(stage->iters.size());
    int64_t size = 1;
    int count = 0;
    for (; count < n; ++count) {
      const Iterator& iter = stage->iters[n - 1 - count];
      if (iter->iter_kind != IteratorKind::kSpatial ||
          iter->annotation != IteratorAnnotation::kNone ||
          state.HasAttachedStages(stage_id, n - 1 - count)) {
        break;
      }
      // The second loop from inside of a tile steps over rows.
      if (count > 0 && IsTiled(stage)) break;
      int64_t extent = iter.ConstExtent();
      if (extent < 0 || size * extent > max_size_) break;
      size *= extent;
    }
    return count;
  }

  int max_size_;
};

/*! \brief Trip count where bounds or, in a stage computed elsewhere, exact splits tell it; else -1.
 */
int64_t KnownExtent(const Iterator& iter) {
  if (iter->range.defined() || iter->parts.empty()) return iter.ConstExtent();
  int64_t extent = 1;
  for (const LoopPart& part : iter->parts) {
    const int64_t* literal = tir::as_const_int(part->extent);
    if (literal == nullptr) return -1;
    extent *= *literal;
  }
  return extent;
}

}  // namespace

std::vector<std::pair<int, int>> ComputeLocations(const SearchTask& task, const State& state,
                                                  int stage_id) {
  std::vector<std::pair<int, int>> places;
  const int target = SingleConsumer(task, state, stage_id);
  if (target == -1) return places;
  const Stage& reader = state->stages[target];
  const bool attached = reader->compute_at == ComputeAtKind::kIter;
  bool in_reduction = false;
  for (int i = 0; i < static_cast<int>(reader->iters.size()); ++i) {
    const Iterator& iter = reader->iters[i];
    if (iter->annotation == IteratorAnnotation::kUnroll) break;
    if (iter->iter_kind == IteratorKind::kReduction) {
      if (!IsTiled(reader)) break;
      in_reduction = true;
    } else if (in_reduction) {
      break;  // a tile in registers, too small to hold another stage
    }
    // The outermost part of an attached stage's loop runs once.
    bool once = KnownExtent(iter) == 1 || (attached && iter->split_part == 0);
    if (!once) places.emplace_back(target, i);
    if (state.HasAttachedStages(target, i)) break;
  }
  if (!attached) return places;
  const int host = state.PositionOf(reader->attach_stage);
  for (int i = 0; i <= reader->attach_iter; ++i) {
    const Iterator& iter = state->stages[host]->iters[i];
    if (iter->iter_kind == IteratorKind::kReduction ||
        iter->annotation == IteratorAnnotation::kUnroll) {
      break;
    }
    if (KnownExtent(iter) != 1) places.emplace_back(host, i);
    if (state.HasAttachedStages(host, i)) break;
  }
  return places;
}

int CountParallelLoops(const State& state, int stage_id, int first, int64_t max_trips,
                       int64_t* trips) {
  const Stage& stage = state->stages[stage_id];
  *trips = 1;
  int i = first;
  for (; i < static_cast<int>(stage->iters.size()); ++i) {
    const Iterator& iter = stage->iters[i];
    int64_t extent = iter.ConstExtent();
    if (iter->iter_kind == IteratorKind::kReduction ||
        iter->annotation != IteratorAnnotation::kNone || extent < 0) {
      break;
    }
    *trips *= extent;
    if (*trips > max_trips || state.HasAttachedStages(stage_id, i)) return i + 1 - first;
  }
  return i - first;
}

RandomRulePtr InitFillTileSize(int max_innermost_split_factor, const SearchSpace* space) {
  return std::make_shared<FillTileSize>(max_innermost_split_factor, space);
}
RandomRulePtr InitComputeLocation() { return std::make_shared<ComputeLocation>(); }
RandomRulePtr InitBounds(const SearchSpace* space) { return std::make_shared<Bounds>(space); }
RandomRulePtr InitParallel() { return std::make_shared<Parallel>(); }
RandomRulePtr InitUnroll(std::vector<int> max_steps) {
  return std::make_shared<Unroll>(std::move(max_steps));
}
RandomRulePtr InitVectorization(int max_vectorize_size) {
  return std::make_shared<Vectorization>(max_vectorize_size);
}

}  // namespace auto_scheduler
}  // namespace tvm
