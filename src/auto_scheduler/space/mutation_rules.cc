/*!
 * \file mutation_rules.cc
 * \brief Random decisions made anew in a program, by editing its history and replaying it.
 */
#include <tvm/auto_scheduler/transform_step.h>
#include <tvm/expr/op.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "../sketch_utils.h"
#include "random_rules.h"
#include "tile_sizes.h"

namespace tvm {
namespace auto_scheduler {

namespace {

/*! \brief Replays `steps`; false if they do not fit together any more. */
bool TryReplay(const SearchTask& task, const Array<Step>& steps, State* state) {
  try {
    *state = Replay(task, steps);
  } catch (const runtime::Error& error) {
    if (error.kind() != "ScheduleError") throw;
    return false;
  }
  return true;
}

/*! \brief The same for the program that a mutation results in, with the extents of all its loops.
 */
bool FinishMutation(const SearchTask& task, const Array<Step>& steps, State* state,
                    const SearchSpace* space = nullptr) {
  return TryReplay(task, steps, state) && InitBounds(space)->Apply(task, state, nullptr);
}

/*! \brief The lengths of a split of literal extent and lengths behind the remaining part. */
std::optional<std::vector<int64_t>> LiteralParts(const SplitStepNode* split) {
  const int64_t* extent =
      split->extent.defined() ? tir::as_const_int(split->extent.value()) : nullptr;
  if (extent == nullptr || *extent <= 1) return std::nullopt;
  std::vector<int64_t> parts = {*extent};
  for (const Optional<PrimExpr>& length : split->lengths) {
    const int64_t* literal = length.defined() ? tir::as_const_int(length.value()) : nullptr;
    if (literal == nullptr || parts[0] % *literal != 0) return std::nullopt;
    parts[0] /= *literal;
    parts.push_back(*literal);
  }
  return parts;
}

class TileSize final : public RandomRule {
 public:
  TileSize(int max_innermost, const SearchSpace* space)
      : max_innermost_(max_innermost), space_(space) {}
  const char* Name() const final { return "tile size"; }
  bool Apply(const SearchTask& task, State* state, std::mt19937* random) const final {
    Array<Step> steps = (*state)->transform_steps;
    std::vector<std::pair<size_t, std::vector<int64_t>>> splits;
    for (size_t i = 0; i < steps.size(); ++i) {
      const auto* split = steps[i].as<SplitStepNode>();
      if (split == nullptr || IsFree(task, steps, i)) continue;
      std::optional<std::vector<int64_t>> parts = LiteralParts(split);
      if (parts && parts->back() <= max_innermost_) splits.emplace_back(i, *std::move(parts));
    }
    for (size_t tries = 0; tries < 4 * splits.size(); ++tries) {
      auto [id, parts] = splits[Below(random, static_cast<int64_t>(splits.size()))];
      if (!MoveFactor(&parts, random)) continue;
      parts.erase(parts.begin());
      steps.Set(id, WithLengths(steps[id], parts));
      return FinishMutation(task, steps, state, space_);
    }
    return false;
  }

 private:
  bool IsFree(const SearchTask& task, const Array<Step>& steps, size_t split) const {
    return space_ != nullptr && space_->FreeLengths(task, steps, split) > 0;
  }

  /*! \brief Divides one part and multiplies another, which keeps the product. */
  bool MoveFactor(std::vector<int64_t>* parts, std::mt19937* random) const {
    std::vector<size_t> order(parts->size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), *random);
    auto from = std::find_if(order.begin(), order.end(), [&](size_t i) { return (*parts)[i] > 1; });
    size_t to = order[(from - order.begin() + 1) % order.size()];
    const std::vector<int64_t>& divisors = Divisors((*parts)[*from]);
    auto end = divisors.end();
    if (to + 1 == parts->size()) {
      end = std::upper_bound(divisors.begin(), end, max_innermost_ / (*parts)[to]);
    }
    if (end - divisors.begin() < 2) return false;
    int64_t factor = divisors[1 + Below(random, end - divisors.begin() - 1)];
    (*parts)[*from] /= factor;
    (*parts)[to] *= factor;
    return true;
  }

  int max_innermost_;
  const SearchSpace* space_;
};

/*! \brief Ids of the steps of one kind for which `accept` holds. */
template <typename StepType, typename FAccept>
std::vector<size_t> StepsWhere(const Array<Step>& steps, const FAccept& accept) {
  std::vector<size_t> ids;
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto* step = steps[i].as<StepType>();
    if (step != nullptr && accept(i, step)) ids.push_back(i);
  }
  return ids;
}

class AutoUnroll final : public RandomRule {
 public:
  explicit AutoUnroll(std::vector<int> max_steps) : max_steps_(std::move(max_steps)) {}
  const char* Name() const final { return "auto unroll"; }
  bool Apply(const SearchTask& task, State* state, std::mt19937* random) const final {
    const std::string prefix = "auto_unroll_max_step$";
    Array<Step> steps = (*state)->transform_steps;
    std::vector<size_t> pragmas =
        StepsWhere<PragmaStepNode>(steps, [&](size_t, const PragmaStepNode* pragma) {
          return std::string(pragma->pragma_type).rfind(prefix, 0) == 0;
        });
    if (pragmas.empty()) return false;
    size_t id = pragmas[Below(random, static_cast<int64_t>(pragmas.size()))];
    const auto* pragma = steps[id].as<PragmaStepNode>();
    int max_step = max_steps_[Below(random, static_cast<int64_t>(max_steps_.size()))];
    steps.Set(id, PragmaStep(pragma->stage_id, pragma->iter_id, prefix + std::to_string(max_step)));
    return FinishMutation(task, steps, state);
  }

 private:
  std::vector<int> max_steps_;
};

class FreeLength final : public RandomRule {
 public:
  explicit FreeLength(const SearchSpace* space) : space_(space) {}
  const char* Name() const final { return "free length"; }
  bool Apply(const SearchTask& task, State* state, std::mt19937* random) const final {
    Array<Step> steps = (*state)->transform_steps;
    const std::vector<size_t> free = StepsWhere<StepNode>(steps, [&](size_t i, const StepNode*) {
      return LengthsOf(steps[i]) != nullptr && space_->FreeLengths(task, steps, i) > 1;
    });
    if (free.empty()) return false;
    const size_t id = free[Below(random, static_cast<int64_t>(free.size()))];
    const int64_t free_lengths = space_->FreeLengths(task, steps, id);
    const int n_lengths = static_cast<int>(LengthsOf(steps[id])->size());
    steps.Set(id, WithLengths(steps[id],
                              SampleSplitLengths(free_lengths, n_lengths, free_lengths, random)));
    return FinishMutation(task, steps, state);
  }

 private:
  const SearchSpace* space_;
};

class MoveStage final : public RandomRule {
 public:
  const char* Name() const final { return "compute location"; }
  bool Apply(const SearchTask& task, State* state, std::mt19937* random) const final {
    const Array<Step> steps = (*state)->transform_steps;
    std::vector<size_t> placements =
        StepsWhere<ComputeAtStepNode>(steps, [](size_t, const ComputeAtStepNode*) { return true; });
    std::shuffle(placements.begin(), placements.end(), *random);
    for (size_t id : placements) {
      const int stage_id = steps[id]->stage_id;
      // Loops have the ids that they had when the stage was placed, so the choice is made there.
      State before;
      if (!TryReplay(task, Array<Step>(steps.begin(), steps.begin() + id), &before)) return false;
      if (IsTiled(before->stages[stage_id])) continue;
      std::vector<std::pair<int, int>> places = ComputeLocations(task, before, stage_id);
      if (places.empty()) return false;
      auto [target, loop] = places[Below(random, static_cast<int64_t>(places.size()))];
      Array<Step> changed = steps;
      changed.Set(id, ComputeAtStep(stage_id, target, loop));
      return FinishMutation(task, changed, state);
    }
    return false;
  }
};

/*! \brief `step` where the loops of `stage_id` from `first` on have moved by `shift`, if it can. */
std::optional<Step> ShiftLoops(const Step& step, int stage_id, int first, int shift) {
  auto moved = [=](int64_t id) { return static_cast<int>(id >= first ? id + shift : id); };
  if (step->AddsStage()) return std::nullopt;
  if (const auto* at = step.as<ComputeAtStepNode>()) {
    if (at->target_stage_id != stage_id) return step;
    return ComputeAtStep(at->stage_id, at->target_stage_id, moved(at->target_iter_id));
  }
  if (step->stage_id != stage_id) return step;
  if (const auto* annotation = step.as<AnnotationStepNode>()) {
    return AnnotationStep(stage_id, moved(annotation->iter_id), annotation->annotation);
  }
  if (const auto* pragma = step.as<PragmaStepNode>()) {
    return PragmaStep(stage_id, moved(pragma->iter_id), pragma->pragma_type);
  }
  if (const auto* fuse = step.as<FuseStepNode>()) {
    Array<int64_t> ids;
    for (int64_t id : fuse->fused_ids) ids.push_back(moved(id));
    return FuseStep(stage_id, ids);
  }
  return std::nullopt;
}

class ParallelDegree final : public RandomRule {
 public:
  const char* Name() const final { return "parallel"; }
  bool Apply(const SearchTask& task, State* state, std::mt19937* random) const final {
    const Array<Step> steps = (*state)->transform_steps;
    std::vector<size_t> marks =
        StepsWhere<AnnotationStepNode>(steps, [&](size_t i, const AnnotationStepNode* mark) {
          if (mark->annotation != IteratorAnnotation::kParallel || mark->iter_id != 0 || i == 0) {
            return false;
          }
          const auto* fuse = steps[i - 1].as<FuseStepNode>();
          return fuse != nullptr && fuse->stage_id == mark->stage_id && !fuse->fused_ids.empty() &&
                 fuse->fused_ids[0] == 0;
        });
    if (marks.empty()) return false;
    size_t mark_id = marks[Below(random, static_cast<int64_t>(marks.size()))];
    const auto* fuse = steps[mark_id - 1].as<FuseStepNode>();
    const int stage_id = fuse->stage_id, old_count = static_cast<int>(fuse->fused_ids.size());
    State before;
    if (!TryReplay(task, Array<Step>(steps.begin(), steps.begin() + mark_id - 1), &before)) {
      return false;
    }
    int64_t trips;
    int most = CountParallelLoops(before, stage_id, 0, kUnbounded, &trips);
    if (most < 2) return false;
    int count = 1 + static_cast<int>(Below(random, most - 1));
    if (count >= old_count) ++count;  // any number but the present one
    Array<Step> changed(steps.begin(), steps.begin() + mark_id - 1);
    Array<int64_t> fused_ids;
    for (int i = 0; i < count; ++i) fused_ids.push_back(i);
    changed.push_back(FuseStep(stage_id, fused_ids));
    changed.push_back(steps[mark_id]);
    for (size_t i = mark_id + 1; i < steps.size(); ++i) {
      std::optional<Step> step = ShiftLoops(steps[i], stage_id, 1, old_count - count);
      if (!step) return false;
      changed.push_back(*step);
    }
    return FinishMutation(task, changed, state);
  }

 private:
  static constexpr int64_t kUnbounded = int64_t{1} << 40;
};

}  // namespace

RandomRulePtr MutateTileSize(int max_innermost_split_factor, const SearchSpace* space) {
  return std::make_shared<TileSize>(max_innermost_split_factor, space);
}
RandomRulePtr MutateFreeLength(const SearchSpace* space) {
  return std::make_shared<FreeLength>(space);
}
RandomRulePtr MutateAutoUnroll(std::vector<int> max_steps) {
  return std::make_shared<AutoUnroll>(std::move(max_steps));
}
RandomRulePtr MutateComputeLocation() { return std::make_shared<MoveStage>(); }
RandomRulePtr MutateParallel() { return std::make_shared<ParallelDegree>(); }

}  // namespace auto_scheduler
}  // namespace tvm
