// Symbolic sketches of a task, and the pack of their features and constraints.
#include <gtest/gtest.h>
#include <tvm/auto_scheduler/search_space.h>
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

using auto_scheduler::MatmulTask;
using auto_scheduler::SearchSpace;

TEST(Sketch, AreNoMoreThanAskedFor) {
  const SearchTask task = MatmulTask();
  const SymSketches all = GenerateAllSymSketches(task, 100);
  EXPECT_TRUE(all.failures.empty());
  ASSERT_GT(all.states.size(), 1u);
  EXPECT_EQ(GenerateAllSymSketches(task, 1).states.size(), 1u);
}

TEST(Sketch, AConfigurationGivesAStateAndTheStateTheConfiguration) {
  const SearchTask task = MatmulTask();
  const State sketch = GenerateAllSymSketches(task, 1).states[0];
  Map<String, Any> config;
  for (const auto_scheduler::Step& step : sketch->transform_steps) {
    const auto* split = step.as<auto_scheduler::SplitStepNode>();
    if (split == nullptr) continue;
    for (const Optional<PrimExpr>& length : split->lengths) {
      config.Set(Downcast<tir::Var>(length.value())->name_hint, int64_t{1});
    }
  }
  ASSERT_FALSE(config.empty());
  const State state = StateFromConfig(task, sketch, config);
  EXPECT_TRUE(state->concrete);
  const Optional<Map<String, Any>> back = ExtractConfigDict(sketch, state);
  ASSERT_TRUE(back.defined());
  EXPECT_EQ(back.value().size(), config.size());
}

/*! Completes no sketch: each is refused with an error of the kind asked for. */
template <bool kIsScheduleError>
class Refusing final : public SearchSpace {
 public:
  auto_scheduler::SketchRules StructureRules(
      const SearchTask& task, const auto_scheduler::SpaceOptions& options) const final {
    return SearchSpace::Get(task->target, "ansor").StructureRules(task, options);
  }
  std::vector<State> Complete(const SearchTask&, const State&,
                              const auto_scheduler::SpaceOptions&) const final {
    if (kIsScheduleError) TVM_FATAL(ScheduleError) << "not here";
    TVM_FATAL(ValueError) << "a mistake";
  }
};

TEST(Sketch, OnlyScheduleErrorsCostASketchAndNotTheTask) {
  SearchSpace::Register("illegal", "cpu", std::make_unique<Refusing<true>>());
  SearchSpace::Register("mistaken", "cpu", std::make_unique<Refusing<false>>());
  const SearchTask task = MatmulTask();
  const SymSketches none = GenerateAllSymSketches(task, 8, "illegal");
  EXPECT_TRUE(none.states.empty());
  ASSERT_FALSE(none.failures.empty());
  EXPECT_NE(std::string(none.failures[0]).find("not here"), std::string::npos);
  EXPECT_THROW(GenerateAllSymSketches(task, 8, "mistaken"), Error);
}

TEST(FeaturePack, HasTheColumnsOfTheSpace) {
  const SearchTask task = MatmulTask();
  const State sketch = GenerateAllSymSketches(task, 1).states[0];
  auto [func, context] = GenerateCodeForState(task, sketch, /*symbolic=*/true);
  const FeaturePack pack =
      GetFeaturePack(task, func, context, "felix", /*iterations=*/0, /*node_limit=*/0);
  const size_t columns = SearchSpace::Get(task->target, "felix").features().size();
  EXPECT_EQ(pack->feature_names.size(), columns);
  EXPECT_EQ(pack->tape->roots.Shape()[0],
            static_cast<int64_t>(pack->n_stores * columns + pack->constraint_names.size()));
}

}  // namespace
}  // namespace felix
}  // namespace tvm
