/*!
 * \file sketch_utils.cc
 * \brief Questions about the stages of a state, and the tiling primitives that rules share.
 */
#include "sketch_utils.h"

#include <tvm/expr/op.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>

namespace tvm {
namespace auto_scheduler {

ComputeDAG CurrentDAG(const SearchTask& task, const State& state) {
  if (state->current_compute_dag.defined()) {
    return Downcast<ComputeDAG>(state->current_compute_dag.value());
  }
  return task->compute_dag;
}

namespace {

std::vector<int> StageIds(const State& state, const AccessAnalyzer::OperationSet& ops) {
  std::vector<int> ids;
  for (int i = 0; i < static_cast<int>(state->stages.size()); ++i) {
    for (const te::Operation& op : ops) {
      if (state->stages[i]->op.same_as(op)) ids.push_back(i);
    }
  }
  return ids;
}

}  // namespace

std::vector<int> GetConsumers(const SearchTask& task, const State& state, int stage_id) {
  ComputeDAG dag = CurrentDAG(task, state);
  return StageIds(state, dag->access().GetConsumers(state, state->stages[stage_id]->op));
}

std::vector<int> GetProducers(const SearchTask& task, const State& state, int stage_id) {
  ComputeDAG dag = CurrentDAG(task, state);
  return StageIds(state, dag->access().GetProducers(state, state->stages[stage_id]->op));
}

bool HasReduceIter(const Stage& stage) {
  return std::any_of(stage->iters.begin(), stage->iters.end(), [](const Iterator& iter) {
    return iter->iter_kind == IteratorKind::kReduction;
  });
}

bool NeedsMultiLevelTiling(const SearchTask& task, const State& state, int stage_id) {
  return CurrentDAG(task, state)->access().NeedsMultiLevelTiling(state->stages[stage_id]->op);
}

bool IsOutputStage(const SearchTask& task, const State& state, int stage_id) {
  return CurrentDAG(task, state)->access().IsOutput(state->stages[stage_id]->op);
}

bool IsCacheWriteStage(const State& state, int stage_id) {
  return state->stages[stage_id]->origin == StageOrigin::kCacheWrite;
}

bool IsRfactorStage(const State& state, int stage_id) {
  const int id = state->stages[stage_id]->id;
  return std::any_of(state->stages.begin(), state->stages.end(), [id](const Stage& stage) {
    return stage->origin == StageOrigin::kRfactor && (stage->id == id || stage->source == id);
  });
}

bool HasCacheReadStage(const State& state, int stage_id) {
  const int id = state->stages[stage_id]->id;
  return std::any_of(state->stages.begin(), state->stages.end(), [id](const Stage& stage) {
    return stage->origin == StageOrigin::kCacheRead && stage->source == id;
  });
}

bool IsTiled(const Stage& stage) { return !stage->split_steps.empty(); }

bool HasCrossThreadReduction(const Stage& stage) {
  return std::any_of(stage->iters.begin(), stage->iters.end(), [](const Iterator& iter) {
    return iter->iter_kind == IteratorKind::kReduction &&
           (iter->annotation == IteratorAnnotation::kThreadX ||
            iter->annotation == IteratorAnnotation::kThreadY);
  });
}

int SingleConsumer(const SearchTask& task, const State& state, int stage_id) {
  std::vector<int> consumers = GetConsumers(task, state, stage_id);
  if (consumers.size() == 1) return consumers[0];
  int common = -1;
  for (int consumer : consumers) {
    const Stage& stage = state->stages[consumer];
    int root = stage->compute_at == ComputeAtKind::kIter ? state.PositionOf(stage->attach_stage)
                                                         : consumer;
    if (common != -1 && root != common) return -1;
    common = root;
  }
  return common;
}

bool MatchesElementwise(const SearchTask& task, const State& state, int stage_id, int consumer) {
  const Stage& stage = state->stages[stage_id];
  te::Operation op = stage->op;
  if (stage->origin == StageOrigin::kPadAxes) {
    op = state->stages[state.PositionOf(stage->source)]->op;
  }
  return CurrentDAG(task, state)->access().ElementWiseMatch(op, state->stages[consumer]->op);
}

bool HasSingleElementwiseMatchedConsumer(const SearchTask& task, const State& state, int stage_id,
                                         int* consumer) {
  std::vector<int> consumers = GetConsumers(task, state, stage_id);
  if (consumers.size() != 1) return false;
  *consumer = consumers[0];
  const Stage& stage = state->stages[stage_id];
  const Stage& target = state->stages[*consumer];
  const bool is_shared = target->origin == StageOrigin::kCacheRead && target->scope == "shared";
  // A consumer that already follows the tiles of another stage cannot follow this one's too.
  return !is_shared && !IsTiled(target) && !(HasReduceIter(stage) && HasReduceIter(target)) &&
         MatchesElementwise(task, state, stage_id, *consumer);
}

std::pair<int64_t, int64_t> CumulativeExtents(const Stage& stage) {
  int64_t space = 1, reduction = 1;
  for (const Iterator& iter : stage->iters) {
    int64_t extent = iter.ConstExtent();
    int64_t* product = iter->iter_kind == IteratorKind::kReduction ? &reduction : &space;
    *product = extent == -1 || *product == -1 ? -1 : *product * extent;
  }
  return {space, reduction};
}

State Replay(const SearchTask& task, const Array<Step>& steps) {
  State state = task->compute_dag->init_state;
  for (const Step& step : steps) state.AppendStep(step, task->compute_dag);
  return state;
}

const Array<Optional<PrimExpr>>* LengthsOf(const Step& step) {
  if (const auto* split = step.as<SplitStepNode>()) return &split->lengths;
  const auto* ahead = step.as<FetchAheadStepNode>();
  return ahead == nullptr ? nullptr : &ahead->lengths;
}

Step WithLengths(const Step& step, const Array<Optional<PrimExpr>>& lengths) {
  if (const auto* ahead = step.as<FetchAheadStepNode>()) {
    return FetchAheadStep(ahead->stage_id, ahead->copy_ids, lengths);
  }
  const auto* split = step.as<SplitStepNode>();
  ICHECK(split != nullptr);
  return SplitStep(split->stage_id, split->iter_id, split->extent, lengths, split->inner_to_outer);
}

Step WithLengths(const Step& step, const std::vector<int64_t>& lengths) {
  Array<Optional<PrimExpr>> literals;
  for (int64_t length : lengths) literals.push_back(PrimExpr(Integer(length)));
  return WithLengths(step, literals);
}

std::vector<int64_t> SpaceSplitSteps(const State& state, int stage_id) {
  const auto* compute = state->stages[stage_id]->op.as<te::ComputeOpNode>();
  std::vector<int64_t> ids;
  for (int64_t step : state->stages[stage_id]->split_steps) {
    if (state->transform_steps[step]->IsInstance<SplitStepNode>()) ids.push_back(step);
  }
  ids.resize(std::min(ids.size(), compute->axis.size()));
  return ids;
}

std::vector<Array<PrimExpr>> ReadsOf(const te::Operation& op, const te::Operation& producer) {
  std::vector<Array<PrimExpr>> reads;
  const auto* compute = op.as<te::ComputeOpNode>();
  if (compute == nullptr) return reads;
  auto visit = [&](const ObjectRef& node) {
    const auto* load = node.as<tir::ProducerLoadNode>();
    if (load != nullptr && Downcast<te::Tensor>(load->producer)->op.same_as(producer)) {
      reads.push_back(load->indices);
    }
  };
  for (const PrimExpr& body : compute->body) tir::PostOrderVisit(body, visit);
  return reads;
}

std::vector<std::string> AttrNames(const Stage& stage, const std::string& key) {
  std::vector<std::string> names;
  if (stage->op->attrs.count(key)) {
    for (const String& name : Downcast<Array<String>>(stage->op->attrs.at(key))) {
      names.push_back(name);
    }
  }
  return names;
}

State FuseAllReductionIters(const State& state, int stage_id, Iterator* fused,
                            Array<Iterator>* space_iters) {
  Array<Iterator> reduce_iters;
  space_iters->clear();
  for (const Iterator& iter : state->stages[stage_id]->iters) {
    (iter->iter_kind == IteratorKind::kReduction ? &reduce_iters : space_iters)->push_back(iter);
  }
  ICHECK(!reduce_iters.empty());
  State result = state;
  *fused = reduce_iters.size() > 1 ? result.fuse(stage_id, reduce_iters) : reduce_iters[0];
  return result;
}

namespace {

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void Append(Array<Iterator>* to, const std::vector<Iterator>& iters) {
  for (const Iterator& iter : iters) to->push_back(iter);
}

/*! \brief The loops of the outermost level in the order asked for. */
void PutInOrder(std::vector<Iterator>* level, OuterOrder order) {
  if (order == OuterOrder::kLastAxisFirst && level->size() > 1) {
    std::rotate(level->begin(), level->end() - 1, level->end());
  }
}

}  // namespace

State DoMultiLevelTiling(const State& state, int stage_id, const std::string& structure,
                         OuterOrder order, std::vector<int>* space_split_steps, int ragged_axis) {
  const auto count = [&structure](char letter) {
    return static_cast<size_t>(std::count(structure.begin(), structure.end(), letter));
  };
  const size_t n_space = count('S'), n_reduce = count('R');
  TVM_CHECK(n_space + n_reduce == structure.size() && n_space > 0, ValueError)
      << "tiling structure \"" << structure
      << "\": only the letters S (space) and R (reduction) are levels";
  const std::vector<std::string> kept_whole =
      AttrNames(state->stages[stage_id], "auto_scheduler_no_split_at_inner");

  State result = state;
  std::vector<std::vector<Iterator>> space(n_space), reduce(n_reduce);
  std::vector<Iterator> whole_space, whole_reduce;
  for (const Iterator& iter : state->stages[stage_id]->iters) {
    bool is_space = iter->iter_kind == IteratorKind::kSpatial;
    ICHECK(is_space || iter->iter_kind == IteratorKind::kReduction) << iter->name;
    if (Contains(kept_whole, iter->name)) {
      (is_space ? whole_space : whole_reduce).push_back(iter);
      continue;
    }
    auto& levels = is_space ? space : reduce;
    if (levels.empty()) {
      whole_reduce.push_back(iter);
    } else if (levels.size() == 1) {
      levels[0].push_back(iter);
    } else {
      const bool is_ragged = is_space && static_cast<int>(space_split_steps->size()) == ragged_axis;
      if (is_space) {
        space_split_steps->push_back(static_cast<int>(result->transform_steps.size()));
      }
      const size_t n_lengths = is_ragged ? 1 : levels.size() - 1;
      Array<Iterator> parts =
          result.split(stage_id, iter, Array<Optional<PrimExpr>>(n_lengths, NullOpt));
      for (size_t i = 0; i < n_lengths; ++i) levels[i].push_back(parts[i]);
      levels.back().push_back(parts[n_lengths]);
    }
  }
  PutInOrder(&space[0], order);
  auto put_first = [](std::vector<Iterator>* level, const std::vector<Iterator>& iters) {
    level->insert(level->begin(), iters.begin(), iters.end());
  };
  put_first(&space.back(), whole_space);
  if (n_reduce > 0) put_first(&reduce.back(), whole_reduce);

  Array<Iterator> loops;
  size_t space_level = 0, reduce_level = 0;
  for (char letter : structure) {
    Append(&loops, letter == 'S' ? space[space_level++] : reduce[reduce_level++]);
  }
  if (n_reduce == 0) Append(&loops, whole_reduce);
  result.reorder(stage_id, loops);
  return result;
}

bool IsRaggedSplit(const Array<Step>& steps, size_t split) {
  // The last axis of space is split right behind it, at every level. A reduction, which may be cut
  // in two as well, comes behind all of space.
  const auto* step = steps[split].as<SplitStepNode>();
  if (step == nullptr || step->lengths.size() != 1) return false;
  for (size_t i = split + 1; i < steps.size(); ++i) {
    const auto* next = steps[i].as<SplitStepNode>();
    if (next == nullptr || next->stage_id != step->stage_id) return false;
    if (next->lengths.size() > 1) return true;
  }
  return false;
}

void FollowPadding(State* state, int stage_id, int consumer) {
  if ((*state)->stages[stage_id]->origin != StageOrigin::kPadAxes) return;
  const Array<PrimExpr> shape = (*state)->stages[stage_id]->op->output_shape(0);
  const Array<Iterator> axes = (*state)->stages[consumer]->iters;
  ICHECK(axes.size() == shape.size());
  Array<Iterator> loops, once;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t extent = *tir::as_const_int(shape[i]);
    if (axes[i].ConstExtent() == extent) {
      loops.push_back(axes[i]);
      continue;
    }
    const Array<Iterator> parts = state->pad(consumer, axes[i], static_cast<int>(extent));
    once.push_back(parts[0]);
    loops.push_back(parts[1]);
  }
  for (const Iterator& loop : once) loops.push_back(loop);
  state->reorder(consumer, loops);
}

State FollowTiling(const State& state, int stage_id, const std::vector<int>& split_steps,
                   int n_split, OuterOrder order) {
  State result = state;
  std::vector<std::vector<Iterator>> levels(n_split + 1);
  std::vector<Iterator> whole;
  size_t next_split = 0;
  for (const Iterator& iter : state->stages[stage_id]->iters) {
    if (next_split == split_steps.size()) {
      whole.push_back(iter);
      continue;
    }
    const int step = split_steps[next_split++];
    const auto* split = state->transform_steps[step].as<SplitStepNode>();
    const int n = std::min(n_split, static_cast<int>(split->lengths.size()));
    Array<Iterator> parts = result.follow_split(stage_id, iter, step, n);
    for (int i = 0; i < n; ++i) levels[i].push_back(parts[i]);
    levels.back().push_back(parts[n]);
  }
  PutInOrder(&levels[0], order);
  levels.back().insert(levels.back().begin(), whole.begin(), whole.end());
  Array<Iterator> loops;
  for (const std::vector<Iterator>& level : levels) Append(&loops, level);
  result.reorder(stage_id, loops);
  return result;
}

}  // namespace auto_scheduler
}  // namespace tvm
