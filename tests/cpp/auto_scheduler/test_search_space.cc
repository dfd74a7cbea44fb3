// The registry of search spaces, and the table of their feature columns.
#include <gtest/gtest.h>
#include <tvm/auto_scheduler/search_space.h>
#include <tvm/expr/op.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "matmul_task.h"

namespace tvm {
namespace auto_scheduler {
namespace {

class TwoRules final : public SearchSpace {
 public:
  SketchRules StructureRules(const SearchTask& task, const SpaceOptions& options) const final {
    return SearchSpace::Get(task->target, "ansor").StructureRules(task, options);
  }
  std::vector<FeatureGroup> FeatureGroups() const final {
    return {FeatureGroup("own", std::vector<FeatureColumn<StoreFacts>>{
                                    {"trips", FeatureKind::kNumber,
                                     [](const StoreFacts& store) { return store.trips(); }}})};
  }
  std::vector<FeatureGroup> BoundGroups() const final {
    return {FeatureGroup("bound", std::vector<FeatureColumn<StoreFacts>>{
                                      {"twice", FeatureKind::kNumber, [](const StoreFacts& store) {
                                         return store.trips() + store.trips();
                                       }}})};
  }
};

TEST(SearchSpace, IsFoundByTheKeysOfTheTarget) {
  const SearchSpace& space = SearchSpace::Get(Target(String("c -keys=board,cpu")), "ansor");
  EXPECT_EQ(space.name(), "ansor");
  EXPECT_EQ(space.target_key(), "cpu");
}

TEST(SearchSpace, ATargetWithoutOneIsRefusedWithTheList) {
  try {
    SearchSpace::Get(Target(String("c -keys=nothing")), "felix");
    FAIL() << "a target without keys that are known has no space";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), "ValueError");
    EXPECT_NE(std::string(error.what()).find("\"felix\" of cpu"), std::string::npos);
  }
}

TEST(SearchSpace, IsRegisteredOnceAndDefinesWhatItSays) {
  SearchSpace::Register("two-rules", "cpu", std::make_unique<TwoRules>());
  EXPECT_THROW(SearchSpace::Register("two-rules", "cpu", std::make_unique<TwoRules>()), Error);
  const SearchTask task = MatmulTask();
  const SearchSpace& space = SearchSpace::Get(task->target, "two-rules");
  EXPECT_EQ(space.Sketches(task, {}).size(),
            SearchSpace::Get(task->target, "ansor").Sketches(task, {}).size());
  EXPECT_EQ(space.features().names(), (std::vector<std::string>{"trips", "twice"}));
  EXPECT_EQ(space.features().num_learned(), 1);
  EXPECT_THROW(space.Mutations(task, {}), Error);
}

TEST(SearchSpace, LengthsThatDoNotFitAreThoseWhoseThreadsAreRefused) {
  const SearchTask task = MatmulTask("cuda -arch=sm_80");
  const SearchSpace& space = SearchSpace::Get(task->target, "ansor");
  const std::vector<State> sketches = space.Sketches(task, {});
  const InitPopulationRules rules = space.InitRules(task, {});
  auto rule = [&](const std::string& name) {
    return *std::find_if(rules.begin(), rules.end(),
                         [&](const auto& one) { return one->Name() == name; });
  };
  std::mt19937 random(7);
  int fit = 0, refused = 0;
  for (int i = 0; i < 300; ++i) {
    State state = sketches[i % sketches.size()];
    ASSERT_TRUE(rule("fill tile size")->Apply(task, &state, &random));
    const bool lengths_fit = space.LengthsFit(task, state);
    state = task->compute_dag.InferBound(state);
    EXPECT_EQ(lengths_fit, rule("thread bind")->Apply(task, &state, &random));
    ++(lengths_fit ? fit : refused);
  }
  EXPECT_GT(fit, 20);
  EXPECT_GT(refused, 20);
}

TEST(SearchSpace, CustomRulesAreAskedFirst) {
  class Stop final : public SketchRule {
   public:
    const char* Name() const final { return "stop"; }
    Condition MeetCondition(const SearchTask&, const State&, int) const final {
      return Condition::kApplyAndSkipRest;
    }
    Result Apply(const SearchTask&, const State& state, int stage_id) const final {
      return {{state, stage_id - 1}};
    }
  };
  const SearchTask task = MatmulTask();
  SpaceOptions options;
  options.custom_rules = {std::make_shared<Stop>()};
  const std::vector<State> sketches =
      SearchSpace::Get(task->target, "ansor").Sketches(task, options);
  ASSERT_EQ(sketches.size(), 1u);
  EXPECT_TRUE(sketches[0]->transform_steps.empty());
}

TEST(FeatureTable, EveryColumnHasOneNameAndOneValue) {
  const SearchTask task = MatmulTask();
  const FeatureTable& table = SearchSpace::Get(task->target, "felix").features();
  std::vector<std::string> names = table.names();
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::unique(names.begin(), names.end()), names.end());
  size_t columns = 0;
  for (const FeatureGroup& group : table.groups()) {
    EXPECT_EQ(group.column_names().size(), group.kinds().size()) << group.name();
    columns += group.column_names().size();
  }
  EXPECT_EQ(columns, table.size());

  tir::Var i("i");
  tir::Buffer out = tir::decl_buffer({16}, DataType::Float(32), "out");
  tir::PrimFunc func({}, tir::For(i, 0, 16, tir::ForKind::kParallel,
                                  tir::BufferStore(out, FloatImm(DataType::Float(32), 1), {i})));
  const LoopProgram program = ReadLoopProgram(func, arith::VarContext::Make());
  const ProgramFeatures features =
      ExtractFeatures(program, task->Machine(), table, {}, /*order=*/nullptr);
  ASSERT_EQ(features.rows.size(), 1u);
  ASSERT_EQ(features.rows[0].size(), table.size());
  const std::vector<double> values = EvaluateAt(features.rows[0], {});
  auto value = [&](const std::string& name) {
    return values[std::find(table.names().begin(), table.names().end(), name) -
                  table.names().begin()];
  };
  EXPECT_EQ(value("outer_prod"), 16);
  EXPECT_EQ(value("parallel_prod"), 16);
  EXPECT_EQ(value("parallel_type.kPosMixed"), 1);
  EXPECT_EQ(value("B0.bytes"), 64);
  EXPECT_EQ(value("chunks_per_core"), 4);
}

TEST(FeatureTable, TwoColumnsOfOneNameAreRefused) {
  std::vector<FeatureGroup> groups = CommonFeatureGroups();
  groups.push_back(groups[0]);
  EXPECT_THROW(FeatureTable{groups}, Error);
}

}  // namespace
}  // namespace auto_scheduler
}  // namespace tvm
