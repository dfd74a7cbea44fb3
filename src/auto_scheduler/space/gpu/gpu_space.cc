/*!
 * \file gpu_space.cc
 * \brief The search spaces of graphics processors.
 */
#include <tvm/auto_scheduler/knobs.h>
#include <tvm/auto_scheduler/search_space.h>
#include <tvm/auto_scheduler/transform_step.h>
#include <tvm/expr/op.h>

#include <algorithm>
#include <bit>

#include "../open_lengths.h"
#include "../random_rules.h"
#include "../structure_rules.h"
#include "gpu_rules.h"
#include "symbolic_parts.h"

namespace tvm {
namespace auto_scheduler {

namespace {

/*! \brief Blocks, virtual threads, threads, shared memory, registers (OSDI 2020, section 4.1). */
constexpr const char* kTilingStructure = "SSSRRSRS";
/*! \brief A consumer holds the tile of one thread. */
constexpr int kFusedTileLevel = 3;
constexpr int kFloatBytes = 4;

std::vector<int> UnrollSteps() { return {0, 16, 64, 512, 1024}; }

SketchOptions TilingOf(const SpaceOptions& options) {
  SketchOptions tiling;
  tiling.tiling_structure =
      options.tiling_structure.empty() ? kTilingStructure : options.tiling_structure;
  tiling.fusion_levels = {kFusedTileLevel};
  tiling.always_fuse = true;
  return tiling;
}

/*! \param reductions How threads share sums. */
SketchRules GpuRules(const SpaceOptions& options, const SketchRules& reductions) {
  const SketchOptions tiling = TilingOf(options);
  SketchRules rules = {RuleAddCacheRead(), RuleSpecialComputeLocation(), RuleAlwaysInline(true),
                       RuleSimplifyConstTensor()};
  rules.insert(rules.end(), reductions.begin(), reductions.end());
  rules.insert(rules.end(), {RuleAddCacheWrite(tiling), RuleMultiLevelTilingWithFusion(tiling),
                             RuleMultiLevelTiling(tiling), RuleSkipStage()});
  return rules;
}

/*! \brief The space of Ansor. */
class AnsorGpuSpace : public SearchSpace {
 public:
  SketchRules StructureRules(const SearchTask&, const SpaceOptions& options) const override {
    return GpuRules(options, {RuleCrossThreadReduction()});
  }

  InitPopulationRules InitRules(const SearchTask&, const SpaceOptions& options) const override {
    return {InitFillTileSize(options.max_innermost_split_factor), InitBounds(this),
            InitThreadBind(), InitUnroll(UnrollSteps())};
  }

  MutationRules Mutations(const SearchTask&, const SpaceOptions& options) const override {
    return {{MutateTileSize(options.max_innermost_split_factor, this), 0.90},
            {MutateAutoUnroll(UnrollSteps()), 0.10}};
  }

  bool LengthsFit(const SearchTask& task, const State& state) const override {
    return TiledThreadsFit(task, state);
  }

  bool IsValid(const SearchTask& task, const State& state) const override {
    const MachineFacts limits = task->Machine();
    int64_t shared_bytes = 0;
    for (const Stage& stage : state->stages) {
      if (stage->op_type == StageKind::kPlaceholder ||
          stage->compute_at == ComputeAtKind::kInlined) {
        continue;
      }
      const int element_bytes = stage->op->output_dtype(0).bytes();
      int64_t elements = 1;
      for (const Iterator& iter : stage->iters) {
        const int64_t extent = iter.ConstExtent();
        if (iter->iter_kind != IteratorKind::kReduction) elements *= extent;
        bool fits = iter->annotation == IteratorAnnotation::kThreadX
                        ? extent <= limits.max_threads_per_block
                    : iter->annotation == IteratorAnnotation::kVThread
                        ? extent <= limits.max_vthread_extent
                    : iter->annotation == IteratorAnnotation::kVectorize
                        ? extent * element_bytes <= limits.vector_bytes
                        : true;
        if (!fits) return false;
      }
      if (stage->scope == "shared") shared_bytes += elements * element_bytes;
    }
    return shared_bytes <= limits.max_dynamic_shared_memory_per_block;
  }
};

/*!
 * \brief The space of Ansor for Mali: shared memory is no faster than the rest and threads are
 * wide, so stages are tiled for caches and registers as on a processor, and use vectors.
 */
class AnsorMaliSpace final : public AnsorGpuSpace {
 public:
  SketchRules StructureRules(const SearchTask&, const SpaceOptions& options) const final {
    return RulesForCaches(TilingOf(options), /*inline_costly=*/true);
  }

  InitPopulationRules InitRules(const SearchTask& task, const SpaceOptions& options) const final {
    InitPopulationRules rules = AnsorGpuSpace::InitRules(task, options);
    const int lanes = std::min(options.max_vectorize_size,
                               task->hardware_params->vector_unit_bytes / kFloatBytes);
    rules.push_back(InitVectorization(lanes));
    return rules;
  }
};

/*! \brief The first of the two steps behind a split that marks its inner part, or nothing. */
const AnnotationStepNode* MarkOfInnerPart(const Array<Step>& steps, size_t split_id) {
  const auto* split = steps[split_id].as<SplitStepNode>();
  for (size_t i = split_id + 1; i < std::min(split_id + 3, steps.size()); ++i) {
    const auto* mark = steps[i].as<AnnotationStepNode>();
    if (mark == nullptr || mark->stage_id != split->stage_id) return nullptr;
    if (mark->iter_id == split->iter_id + 1) return mark;
  }
  return nullptr;
}

/*! \brief Whether a split cuts the columns of RuleColumnReduction, right behind what is shared. */
bool IsOfColumns(const Array<Step>& steps, size_t split_id) {
  size_t before = split_id;
  if (before > 0 && steps[before - 1]->IsInstance<FuseStepNode>()) --before;
  const auto* mark = before > 0 ? steps[before - 1].as<AnnotationStepNode>() : nullptr;
  return mark != nullptr && mark->annotation == IteratorAnnotation::kThreadY;
}

/*!
 * \brief Ansor's structures; blocks, threads, the register tile and the lanes of copies follow by
 *        rule, and every length is a knob.
 *
 * How much of a reduction is written out is a knob too: its innermost part is unrolled.
 */
class FelixGpuSpace final : public AnsorGpuSpace {
 public:
  SketchRules StructureRules(const SearchTask&, const SpaceOptions& options) const final {
    SketchRules rules = GpuRules(
        options, {RuleReductionInParts(), RuleColumnReduction(), RuleSpreadReduction(),
                  RuleRowReduction(), RuleCrossThreadReduction(/*of_products_only=*/true)});
    rules.insert(rules.begin(), {RulePadAxes(), RuleTensorCores(), RuleSplitReduction()});
    return rules;
  }
  std::vector<State> Complete(const SearchTask& task, const State& sketch,
                              const SpaceOptions&) const final {
    State state = sketch;
    if (!InitThreadBind()->Apply(task, &state, nullptr)) return {};
    if (task->Machine().compute_capability >= kAsyncCopiesFrom) FillTilesAhead(&state);
    PadRowsAcrossThreads(&state);
    UnrollRegisterTiles(task, &state);
    return {state};
  }

  std::vector<State> OpenSketches(const SearchTask& task, const SpaceOptions& options) const final {
    return OpenCompletedSketches(*this, task, options);
  }

  InitPopulationRules InitRules(const SearchTask&, const SpaceOptions& options) const final {
    return {InitFillTileSize(options.max_innermost_split_factor, this), InitBounds(this)};
  }

  MutationRules Mutations(const SearchTask&, const SpaceOptions& options) const final {
    return {{MutateTileSize(options.max_innermost_split_factor, this), 0.8},
            {MutateFreeLength(this), 0.2}};
  }

  bool LengthsFit(const SearchTask& task, const State& state) const final {
    return StructureLimits::Of(task, state, *this)->Allow(state);
  }
  // What limits a program are its lengths, whatever made it.
  bool IsValid(const SearchTask& task, const State& state) const final {
    return LengthsFit(task, state);
  }

  /*! \brief Threads that share a plain loop or a reduction, lanes of a copy, tiles in flight. */
  int64_t FreeLengths(const SearchTask& task, const Array<Step>& steps, size_t step) const final {
    if (steps[step]->IsInstance<FetchAheadStepNode>()) return kMostTripsAhead;
    const AnnotationStepNode* mark = MarkOfInnerPart(steps, step);
    if (mark == nullptr) return 0;
    switch (mark->annotation) {
      case IteratorAnnotation::kThreadX:
      case IteratorAnnotation::kThreadY:
        return PowersUpTo(
            ThreadLimit(task, *steps[step].as<SplitStepNode>(), IsOfColumns(steps, step)));
      case IteratorAnnotation::kVectorize:
        return PowersUpTo(task->hardware_params->vector_unit_bytes / SmallestBytes(task));
      default:
        return 0;
    }
  }

  std::vector<Constraint> Constraints(const LoopProgram& program, const MachineFacts& machine,
                                      const arith::VarContext& context) const final {
    return GpuConstraints(program, machine, context);
  }
  std::vector<FeatureGroup> FeatureGroups() const final {
    std::vector<FeatureGroup> groups = CommonFeatureGroups();
    groups.push_back(GpuFeatures());
    return groups;
  }

 private:
  /*! \brief The number whose divisors are the powers of two up to a limit. */
  static int64_t PowersUpTo(int64_t limit) {
    return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(1, limit))));
  }

  // More threads than trips do nothing; but a loop that is shorter than a warp may be followed by a
  // reduction that has work for more.
  static int64_t ThreadLimit(const SearchTask& task, const SplitStepNode& split, bool of_columns) {
    const HardwareParams& limits = task->hardware_params;
    const int64_t most = limits->max_threads_per_block;
    const int64_t* trips =
        split.extent.defined() ? tir::as_const_int(split.extent.value()) : nullptr;
    const bool serve_others = !of_columns && trips != nullptr && *trips < limits->warp_size;
    return trips == nullptr || serve_others ? most : std::min(most, *trips);
  }

  static int SmallestBytes(const SearchTask& task) {
    int bytes = 16;
    for (const te::Tensor& tensor : task->compute_dag->tensors) {
      bytes = std::min(bytes, std::max(1, tensor->dtype.bytes()));
    }
    return bytes;
  }
};

TVM_REGISTER_SEARCH_SPACE("ansor", "gpu", AnsorGpuSpace);
TVM_REGISTER_SEARCH_SPACE("ansor", "mali", AnsorMaliSpace);
TVM_REGISTER_SEARCH_SPACE("felix", "gpu", FelixGpuSpace);

}  // namespace

}  // namespace auto_scheduler
}  // namespace tvm
