// What it takes to add a target: one class, which concrete and symbolic tuners search alike.
#include <gtest/gtest.h>
#include <tvm/auto_scheduler/search_space.h>
#include <tvm/auto_scheduler/sketch_policy.h>
#include <tvm/auto_scheduler/transform_step.h>
#include <tvm/felix/feature_pack.h>
#include <tvm/felix/sketch.h>

#include <memory>
#include <string>
#include <vector>

#include "../auto_scheduler/matmul_task.h"

namespace tvm {
namespace felix {
namespace {

using auto_scheduler::Iterator;
using auto_scheduler::SketchRule;
using auto_scheduler::SpaceOptions;

/*! \brief Cuts the rows of the output into blocks; other stages stay as they are. */
class BlocksOfRows final : public SketchRule {
 public:
  const char* Name() const final { return "blocks of rows"; }
  Condition MeetCondition(const SearchTask&, const State&, int) const final {
    return Condition::kApplyAndSkipRest;
  }
  Result Apply(const SearchTask&, const State& state, int stage_id) const final {
    State cut = state;
    if (stage_id + 1 == static_cast<int>(state->stages.size())) {
      cut.split(stage_id, state->stages[stage_id]->iters[0], {NullOpt});
    }
    return {{cut, stage_id - 1}};
  }
};

/*! \brief Blocks of 1 to 64 rows. */
class AnyPowerOfTwo final : public auto_scheduler::RandomRule {
 public:
  const char* Name() const final { return "any power of two"; }
  bool Apply(const SearchTask& task, State* state, std::mt19937* random) const final {
    const Array<auto_scheduler::Step> steps = (*state)->transform_steps;
    *state = task->compute_dag->init_state;
    for (const auto_scheduler::Step& step : steps) {
      const auto* split = step.as<auto_scheduler::SplitStepNode>();
      const Iterator& rows = (*state)->stages[split->stage_id]->iters[split->iter_id];
      state->split(split->stage_id, rows, {PrimExpr(1 << (*random)() % 7)});
    }
    *state = task->compute_dag.InferBound(*state);
    return true;
  }
};

class ToySpace final : public auto_scheduler::SearchSpace {
 public:
  auto_scheduler::SketchRules StructureRules(const SearchTask&, const SpaceOptions&) const final {
    return {std::make_shared<BlocksOfRows>()};
  }
  auto_scheduler::InitPopulationRules InitRules(const SearchTask&,
                                                const SpaceOptions&) const final {
    return {std::make_shared<AnyPowerOfTwo>()};
  }
  auto_scheduler::MutationRules Mutations(const SearchTask&, const SpaceOptions&) const final {
    return {{std::make_shared<AnyPowerOfTwo>(), 1.0}};
  }
  std::vector<State> Complete(const SearchTask&, const State& sketch,
                              const SpaceOptions&) const final {
    return {sketch};
  }
  std::vector<auto_scheduler::Constraint> Constraints(const auto_scheduler::LoopProgram&,
                                                      const MachineFacts&,
                                                      const arith::VarContext&) const final {
    return {};
  }
};

TEST(ToyTarget, IsSearchedByConcreteAndSymbolicTuners) {
  auto_scheduler::SearchSpace::Register("toy", "toy", std::make_unique<ToySpace>());
  const SearchTask task = auto_scheduler::MatmulTask("c -keys=toy");

  auto_scheduler::SketchPolicy policy(task, auto_scheduler::RandomModel(int64_t{5}),
                                      {{"search_space", String("toy")},
                                       {"sample_init_min_population", int64_t{7}},
                                       {"evolutionary_search_population", int64_t{16}}},
                                      /*seed=*/3, /*verbose=*/0);
  const Array<State> programs = policy->SampleInitialPopulation();
  EXPECT_GT(programs.size(), 1u);
  for (const State& program : programs) EXPECT_EQ(program->transform_steps.size(), 1u);

  const SymSketches sketches = GenerateAllSymSketches(task, 8, "toy");
  EXPECT_TRUE(sketches.failures.empty());
  ASSERT_EQ(sketches.states.size(), 1u);
  auto [func, context] = GenerateCodeForState(task, sketches.states[0], /*symbolic=*/true, "toy");
  const FeaturePack pack =
      GetFeaturePack(task, func, context, "toy", /*iterations=*/0, /*node_limit=*/0);
  EXPECT_EQ(pack->feature_names.size(),
            auto_scheduler::FeatureTable(auto_scheduler::CommonFeatureGroups()).size());
  EXPECT_TRUE(pack->constraint_names.empty());
}

}  // namespace
}  // namespace felix
}  // namespace tvm
