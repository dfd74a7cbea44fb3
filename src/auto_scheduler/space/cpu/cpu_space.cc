/*!
 * \file cpu_space.cc
 * \brief The search spaces of processors.
 */
#include "cpu_space.h"

#include <tvm/auto_scheduler/transform_step.h>
#include <tvm/expr/op.h>

#include <algorithm>
#include <string>

#include "../open_lengths.h"
#include "../random_rules.h"
#include "../structure_rules.h"

namespace tvm {
namespace auto_scheduler {

namespace {

/*! \brief Levels of a tiled stage: cores, cache, registers (OSDI 2020, section 4.1). */
constexpr const char* kTilingStructure = "SSRSRS";

SketchOptions TilingOf(const SpaceOptions& options) {
  SketchOptions tiling;
  tiling.tiling_structure =
      options.tiling_structure.empty() ? kTilingStructure : options.tiling_structure;
  return tiling;
}

/*! \brief Pragmas that a stage is unrolled with: numbers of statements. */
std::vector<int> UnrollSteps() { return {0, 16, 64, 512}; }

/*! \brief Parallel loops among the outermost `n` of a stage. */
int CountParallel(const Stage& stage, int n) {
  return static_cast<int>(std::count_if(
      stage->iters.begin(), stage->iters.begin() + n,
      [](const Iterator& iter) { return iter->annotation == IteratorAnnotation::kParallel; }));
}

/*! \brief The space of Ansor. */
class AnsorCpuSpace : public SearchSpace {
 public:
  SketchRules StructureRules(const SearchTask&, const SpaceOptions& options) const override {
    return RulesForCaches(TilingOf(options), /*inline_costly=*/false);
  }

  InitPopulationRules InitRules(const SearchTask&, const SpaceOptions& options) const override {
    InitPopulationRules rules = {InitFillTileSize(options.max_innermost_split_factor)};
    if (options.change_compute_location) rules.push_back(InitComputeLocation());
    rules.push_back(InitBounds());
    rules.push_back(InitParallel());
    rules.push_back(InitUnroll(UnrollSteps()));
    rules.push_back(InitVectorization(options.max_vectorize_size));
    return rules;
  }

  MutationRules Mutations(const SearchTask&, const SpaceOptions& options) const override {
    MutationRules rules = {{MutateTileSize(options.max_innermost_split_factor), 0.90},
                           {MutateAutoUnroll(UnrollSteps()), 0.04},
                           {MutateParallel(), 0.01}};
    if (options.change_compute_location) rules.push_back({MutateComputeLocation(), 0.05});
    return rules;
  }

  /*! \brief Threads start no threads: a parallel loop inside of another one is refused. */
  bool IsValid(const SearchTask&, const State& state) const override {
    for (const Stage& stage : state->stages) {
      int parallel = CountParallel(stage, static_cast<int>(stage->iters.size()));
      const Stage* inner = &stage;
      while ((*inner)->compute_at == ComputeAtKind::kIter) {
        const Stage& host = state->stages[state.PositionOf((*inner)->attach_stage)];
        parallel += CountParallel(host, (*inner)->attach_iter + 1);
        inner = &host;
      }
      if (parallel > 1) return false;
    }
    return true;
  }

  std::vector<State> Complete(const SearchTask& task, const State& sketch,
                              const SpaceOptions& options) const override {
    return CompleteSketch(task, sketch, options.narrowing == 0);
  }
  int MaxNarrowing() const override { return 1; }

  std::vector<Constraint> Constraints(const LoopProgram& program, const MachineFacts& machine,
                                      const arith::VarContext& context) const final {
    return ProcessorConstraints(program, machine, context);
  }
  std::vector<FeatureGroup> FeatureGroups() const final {
    std::vector<FeatureGroup> groups = CommonFeatureGroups();
    groups.push_back(ProcessorFeatures());
    return groups;
  }
  std::vector<FeatureGroup> BoundGroups() const final { return {BoundFeatures()}; }
};

/*! \brief Rfactor only where space is too small to keep the cores busy with whole reductions. */
class SmallSpaceRfactor final : public SketchRule {
 public:
  const char* Name() const final { return "add rfactor to small space"; }
  Condition MeetCondition(const SearchTask& task, const State& state, int stage_id) const final {
    int64_t space = CumulativeExtents(state->stages[stage_id]).first;
    if (space > 16 * task->hardware_params->num_cores) return Condition::kSkip;
    return base_->MeetCondition(task, state, stage_id);
  }
  Result Apply(const SearchTask& task, const State& state, int stage_id) const final {
    return base_->Apply(task, state, stage_id);
  }

 private:
  std::shared_ptr<const SketchRule> base_ = RuleAddRfactor();
};

/*! \brief Makes neighbouring steps of a reduction along rows the lanes of a vector. */
class LanesOfRows final : public SketchRule {
 public:
  const char* Name() const final { return "lanes of rows"; }
  Condition MeetCondition(const SearchTask& task, const State& state, int stage_id) const final {
    const Stage& stage = state->stages[stage_id];
    if (!HasReduceIter(stage) || IsCacheWriteStage(state, stage_id) ||
        IsRfactorStage(state, stage_id) || NeedsMultiLevelTiling(task, state, stage_id) ||
        !ReducesAlongRows(stage->op)) {
      return Condition::kSkip;
    }
    const auto [space, reduction] = CumulativeExtents(stage);
    if (space == -1 || reduction < kLeastSteps || reduction % kLeastLanes != 0) {
      return Condition::kSkip;
    }
    return Condition::kApplyAndSkipRest;
  }
  Result Apply(const SearchTask& task, const State& state, int stage_id) const final {
    // Ansor's rule gives two structures: blocks for the cores, and lanes.
    return {base_->Apply(task, state, stage_id).back()};
  }

 private:
  static constexpr int64_t kLeastSteps = 32, kLeastLanes = 4;
  std::shared_ptr<const SketchRule> base_ = RuleAddRfactor();
};

/*! \brief Ansor's structures with tiled stages always held by a consumer. */
class FelixCpuSpace final : public AnsorCpuSpace {
 public:
  SketchRules StructureRules(const SearchTask& task, const SpaceOptions& options) const final {
    SketchOptions tiling = TilingOf(options);
    tiling.always_fuse = true;
    if (options.narrowing >= kOneFusionLevel) tiling.fusion_levels = {2};
    // Weights of a window stage are tiny, so it gains nothing from keeping channels outside.
    if (options.narrowing < kOneOuterOrder && !HasWindowStage(task)) {
      tiling.outer_orders = {OuterOrder::kNatural, OuterOrder::kLastAxisFirst};
    }
    tiling.ragged_axis = [machine = task->Machine()](const te::Operation& op) {
      return RaggedAxis(op, machine);
    };
    tiling.packed_operand = OperandToPack;
    SketchRules rules = {RuleAlwaysInline(), RuleSimplifyConstTensor()};
    rules.push_back(std::make_shared<LanesOfRows>());
    if (options.narrowing < kNoRfactor) rules.push_back(std::make_shared<SmallSpaceRfactor>());
    rules.push_back(RuleAddCacheWrite(tiling));
    rules.push_back(RuleMultiLevelTilingWithFusion(tiling));
    rules.push_back(RuleMultiLevelTiling(tiling));
    rules.push_back(RuleSkipStage());
    return rules;
  }

  std::vector<State> OpenSketches(const SearchTask& task, const SpaceOptions& options) const final {
    return OpenCompletedSketches(*this, task, options);
  }

  InitPopulationRules InitRules(const SearchTask&, const SpaceOptions& options) const final {
    return {InitFillTileSize(options.max_innermost_split_factor, this), InitBounds()};
  }

  MutationRules Mutations(const SearchTask& task, const SpaceOptions& options) const final {
    MutationRules rules = {{MutateTileSize(options.max_innermost_split_factor, this), 0.9}};
    const MachineFacts machine = task->Machine();
    const Array<Stage>& stages = task->compute_dag->init_state->stages;
    const bool ragged = std::any_of(stages.begin(), stages.end(), [&](const Stage& stage) {
      return RaggedAxis(stage->op, machine) >= 0;
    });
    if (ragged) rules.push_back({MutateFreeLength(this), 0.1});
    return rules;
  }

  /*! \brief Of a ragged axis, see RaggedAxis. */
  int64_t FreeLengths(const SearchTask&, const Array<Step>& steps, size_t split) const final {
    if (!IsRaggedSplit(steps, split)) return 0;
    const Optional<PrimExpr>& extent = steps[split].as<SplitStepNode>()->extent;
    const int64_t* trips = extent.defined() ? tir::as_const_int(extent.value()) : nullptr;
    return trips == nullptr ? 0 : RaggedTiles(*trips);
  }

  std::vector<State> Complete(const SearchTask& task, const State& sketch,
                              const SpaceOptions& options) const final {
    return CompleteSketch(task, sketch, options.narrowing < kOneLocation);
  }
  int MaxNarrowing() const final { return kOneFusionLevel; }

 private:
  // What goes at each step of narrowing.
  enum { kOneOuterOrder = 1, kNoRfactor, kOneLocation, kOneFusionLevel };
};

TVM_REGISTER_SEARCH_SPACE("ansor", "cpu", AnsorCpuSpace);
TVM_REGISTER_SEARCH_SPACE("felix", "cpu", FelixCpuSpace);

}  // namespace

}  // namespace auto_scheduler
}  // namespace tvm
