/*!
 * \file gpu_space.cc
 * \brief The search space of graphics processors.
 */
#include <tvm/auto_scheduler/search_space.h>

#include <algorithm>

#include "../random_rules.h"
#include "../structure_rules.h"
#include "gpu_rules.h"

namespace tvm {
namespace auto_scheduler {

namespace {

/*! \brief Blocks, virtual threads, threads, shared memory, registers (OSDI 2020, section 4.1). */
constexpr const char* kTilingStructure = "SSSRRSRS";
/*! \brief A consumer holds the tile of one thread. */
constexpr int kThreadLevel = 3;
constexpr int kFloatBytes = 4;

std::vector<int> UnrollSteps() { return {0, 16, 64, 512, 1024}; }

SketchOptions TilingOf(const SpaceOptions& options) {
  SketchOptions tiling;
  tiling.tiling_structure =
      options.tiling_structure.empty() ? kTilingStructure : options.tiling_structure;
  tiling.fusion_levels = {kThreadLevel};
  tiling.always_fuse = true;
  return tiling;
}

/*! \brief The space of Ansor. */
class AnsorGpuSpace : public SearchSpace {
 public:
  SketchRules StructureRules(const SearchTask&, const SpaceOptions& options) const override {
    const SketchOptions tiling = TilingOf(options);
    return {RuleAddCacheRead(),
            RuleSpecialComputeLocation(),
            RuleAlwaysInline(true),
            RuleSimplifyConstTensor(),
            RuleCrossThreadReduction(),
            RuleAddCacheWrite(tiling),
            RuleMultiLevelTilingWithFusion(tiling),
            RuleMultiLevelTiling(tiling),
            RuleSkipStage()};
  }

  InitPopulationRules InitRules(const SearchTask&, const SpaceOptions& options) const override {
    return {InitFillTileSize(options.max_innermost_split_factor), InitBounds(), InitThreadBind(),
            InitUnroll(UnrollSteps())};
  }

  MutationRules Mutations(const SearchTask&, const SpaceOptions& options) const final {
    return {{MutateTileSize(options.max_innermost_split_factor), 0.90},
            {MutateAutoUnroll(UnrollSteps()), 0.10}};
  }

  bool IsValid(const SearchTask& task, const State& state) const final {
    const HardwareParams& limits = task->hardware_params;
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
                        ? extent <= limits->max_threads_per_block
                    : iter->annotation == IteratorAnnotation::kVThread
                        ? extent <= limits->max_vthread_extent
                    : iter->annotation == IteratorAnnotation::kVectorize
                        ? extent * element_bytes <= limits->vector_unit_bytes
                        : true;
        if (!fits) return false;
      }
      if (stage->scope == "shared") shared_bytes += elements * element_bytes;
    }
    return shared_bytes <= limits->max_shared_memory_per_block;
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

TVM_REGISTER_SEARCH_SPACE("ansor", "gpu", AnsorGpuSpace);
TVM_REGISTER_SEARCH_SPACE("ansor", "mali", AnsorMaliSpace);

}  // namespace

}  // namespace auto_scheduler
}  // namespace tvm
