/*!
 * \file cpu_space.cc
 * \brief The search spaces of processors.
 */
#include "cpu_space.h"

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

/*! \brief The space of Ansor. */
class AnsorCpuSpace : public SearchSpace {
 public:
  SketchRules StructureRules(const SearchTask&, const SpaceOptions& options) const override {
    SketchOptions tiling = TilingOf(options);
    return {RuleAlwaysInline(),
            RuleSimplifyConstTensor(),
            RuleAddRfactor(),
            RuleAddCacheWrite(tiling),
            RuleMultiLevelTilingWithFusion(tiling),
            RuleMultiLevelTiling(tiling),
            RuleSkipStage()};
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
    SketchRules rules = {RuleAlwaysInline(), RuleSimplifyConstTensor()};
    if (options.narrowing < kNoRfactor) rules.push_back(std::make_shared<SmallSpaceRfactor>());
    rules.push_back(RuleAddCacheWrite(tiling));
    rules.push_back(RuleMultiLevelTilingWithFusion(tiling));
    rules.push_back(RuleMultiLevelTiling(tiling));
    rules.push_back(RuleSkipStage());
    return rules;
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
