// Stages keep their identity, and know where they come from, while stages are added around them.
#include <gtest/gtest.h>

#include "matmul_task.h"

namespace tvm {
namespace auto_scheduler {
namespace {

constexpr int kA = 0, kC = 2, kD = 3;

TEST(StageIdentity, OriginalStagesAreNumberedInOrder) {
  const State state = MatmulTask()->compute_dag->init_state;
  ASSERT_EQ(state->stages.size(), 4u);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(state->stages[i]->id, i);
    EXPECT_EQ(state->stages[i]->origin, StageOrigin::kOriginal);
    EXPECT_EQ(state->stages[i]->source, -1);
    EXPECT_EQ(state.PositionOf(i), i);
  }
}

TEST(StageIdentity, ACacheWriteIsNewAndItsSourceStartsOver) {
  const SearchTask task = MatmulTask();
  State state = task->compute_dag->init_state;
  state.split(kC, state->stages[kC]->iters[0], {Optional<PrimExpr>(Integer(8))});
  ASSERT_EQ(state->stages[kC]->split_steps.size(), 1u);
  const int cache = state.cache_write(kC, "local", task->compute_dag);
  const Stage& made = state->stages[cache];
  EXPECT_EQ(made->id, 4);
  EXPECT_EQ(made->origin, StageOrigin::kCacheWrite);
  EXPECT_EQ(made->source, kC);
  EXPECT_EQ(std::string(made->scope), "local");
  EXPECT_EQ(state.PositionOf(kC), kC + 1);
  EXPECT_EQ(state->stages[kC + 1]->origin, StageOrigin::kOriginal);
  EXPECT_TRUE(state->stages[kC + 1]->split_steps.empty());
  EXPECT_EQ(state->stages[kC + 1]->iters.size(), 2u);
}

TEST(StageIdentity, AttachmentsFollowTheirHostPastInsertions) {
  const SearchTask task = MatmulTask();
  State state = task->compute_dag->init_state;
  state.compute_at(kC, kD, state->stages[kD]->iters[0]);
  state.cache_read(kA, "shared", {kC}, task->compute_dag);
  const int host = state.PositionOf(kD), held = state.PositionOf(kC);
  EXPECT_EQ(host, kD + 1);
  EXPECT_EQ(state->stages[held]->attach_stage, kD);
  EXPECT_EQ(state.AttachedStages(host, 0), std::vector<int>{held});
  EXPECT_TRUE(state.HasAttachedStages(host, 0));
  const Stage& cache = state->stages[kA + 1];
  EXPECT_EQ(cache->origin, StageOrigin::kCacheRead);
  EXPECT_EQ(cache->source, kA);
  EXPECT_EQ(std::string(cache->scope), "shared");
}

TEST(StageIdentity, AnRfactorStageNamesTheStageThatSumsItsParts) {
  const SearchTask task = MatmulTask();
  State state = task->compute_dag->init_state;
  Array<Iterator> parts =
      state.split(kC, state->stages[kC]->iters[2], {Optional<PrimExpr>(Integer(4))});
  const int partial = state.rfactor(kC, parts[1], 2, task->compute_dag);
  EXPECT_EQ(state->stages[partial]->origin, StageOrigin::kRfactor);
  EXPECT_EQ(state->stages[partial]->source, kC);
  EXPECT_EQ(state->stages[partial]->iters.size(), 4u);
  EXPECT_EQ(state.PositionOf(kC), partial + 1);
}

TEST(StageIdentity, LoopsKnowWhichPartOfASplitTheyAre) {
  State state = MatmulTask()->compute_dag->init_state;
  const Array<Optional<PrimExpr>> lengths = {PrimExpr(Integer(4)), PrimExpr(Integer(2))};
  state.split(kC, state->stages[kC]->iters[0], lengths);
  Array<Iterator> iters = state->stages[kC]->iters;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(iters[i]->split_part, i);
  EXPECT_EQ(iters[3]->split_part, -1);
  EXPECT_EQ(state.parallel(kC, iters[0])->split_part, 0);
  EXPECT_EQ(state.fuse(kC, {iters[1], iters[2]})->split_part, -1);
}

TEST(StageIdentity, ReplayedStepsGiveTheSameIdentities) {
  const SearchTask task = MatmulTask();
  State state = task->compute_dag->init_state;
  state.cache_write(kC, "local", task->compute_dag);
  state.cache_read(kA, "local", {2}, task->compute_dag);
  State again = task->compute_dag->init_state;
  for (const Step& step : state->transform_steps) again.AppendStep(step, task->compute_dag);
  for (size_t i = 0; i < state->stages.size(); ++i) {
    EXPECT_EQ(again->stages[i]->id, state->stages[i]->id);
    EXPECT_EQ(again->stages[i]->origin, state->stages[i]->origin);
  }
}

}  // namespace
}  // namespace auto_scheduler
}  // namespace tvm
