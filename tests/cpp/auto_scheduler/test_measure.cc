// Builders, runners and policies written in C++, under the measurer.
#include <gtest/gtest.h>
#include <tvm/auto_scheduler/search_policy.h>

#include <algorithm>
#include <string>

#include "matmul_task.h"

namespace tvm {
namespace auto_scheduler {
namespace {

/*! \brief A candidate that is no loop state: a number, whose latency is one over it. */
class NumberNode final : public CandidateNode {
 public:
  int number{0};
  String WorkloadKey() const final { return "numbers"; }
  Target BuildTarget() const final { return Target(String("llvm")); }
  String Record(const MeasureResult&) const final { return std::to_string(number); }
  TVM_DECLARE_OBJECT(NumberNode, CandidateNode, "test.Number");
};

Candidate Number(int number) {
  auto node = make_object<NumberNode>();
  node->number = number;
  return Candidate(ObjectPtr<Object>(std::move(node)));
}

int NumberOf(const Candidate& candidate) { return candidate.as<NumberNode>()->number; }

/*! \brief Every number below zero does not build. */
class BuilderNode final : public ProgramBuilderNode {
 public:
  mutable Array<int> batches;
  Array<BuildResult> Build(const Array<Candidate>& candidates, bool) const final {
    batches.push_back(static_cast<int>(candidates.size()));
    Array<BuildResult> results;
    for (const Candidate& candidate : candidates) {
      bool bad = NumberOf(candidate) < 0;
      results.push_back(BuildResult("", {}, bad ? 2 : 0,
                                    bad ? Optional<String>("negative") : Optional<String>(), 0.5,
                                    "", "{}"));
    }
    return results;
  }
  TVM_DECLARE_OBJECT(BuilderNode, ProgramBuilderNode, "test.Builder");
};

class RunnerNode final : public ProgramRunnerNode {
 public:
  Array<MeasureResult> Run(const Array<Candidate>& candidates, const Array<BuildResult>& programs,
                           const RunContext& context) const final {
    Array<MeasureResult> results;
    for (size_t i = 0; i < candidates.size(); ++i) {
      bool bad = programs[i]->error_no != 0;
      results.push_back(MeasureResult({bad ? 1e10 : 1.0 / NumberOf(candidates[i])},
                                      programs[i]->error_no, programs[i]->error_msg, 1.0, 0.0));
      context.on_result(static_cast<int64_t>(i), results.back());
    }
    return results;
  }
  TVM_DECLARE_OBJECT(RunnerNode, ProgramRunnerNode, "test.Runner");
};

/*! \brief Counts up. */
class CountingNode final : public SearchPolicyNode {
 public:
  int next{1};
  int observed{0};
  Array<Candidate> Propose(int n) final {
    Array<Candidate> candidates;
    for (int i = 0; i < n; ++i) candidates.push_back(Number(next++));
    return candidates;
  }
  void Observe(const Array<Candidate>& candidates, const Array<MeasureResult>&) final {
    observed += static_cast<int>(candidates.size());
  }
  TVM_DECLARE_OBJECT(CountingNode, SearchPolicyNode, "test.Counting");
};

ProgramMeasurer Measurer(int max_continuous_error = -1) {
  auto builder = make_object<BuilderNode>();
  builder->n_parallel = 2;
  return ProgramMeasurer(ProgramBuilder(ObjectPtr<Object>(std::move(builder))),
                         ProgramRunner(ObjectPtr<Object>(make_object<RunnerNode>())), {},
                         /*verbose=*/0, max_continuous_error);
}

TEST(ProgramMeasurer, MeasuresAnyKindOfCandidateInBatchesAndKeepsTheBest) {
  ProgramMeasurer measurer = Measurer();
  Array<Candidate> candidates;
  for (int number : {2, -1, 8, 4, 5}) candidates.push_back(Number(number));
  Array<MeasureResult> results = measurer->Measure(nullptr, candidates);
  ASSERT_EQ(results.size(), 5u);
  EXPECT_EQ(results[1]->MeanCost(), 1e10);
  EXPECT_EQ(results[1]->error_msg.value(), "negative");
  EXPECT_EQ(measurer->ct, 5);
  EXPECT_EQ(measurer->error_ct, 1);
  EXPECT_EQ(NumberOf(measurer->best.at("numbers")), 8);
  EXPECT_EQ(measurer->best_seconds.at("numbers"), 1.0 / 8);
  const auto* builder = measurer->builder.as<BuilderNode>();
  ASSERT_EQ(builder->batches.size(), 2u);
  EXPECT_EQ(builder->batches[0], 4);
}

TEST(ProgramMeasurer, ShowsProgramsAfterFailuresInARowUntilOneSucceeds) {
  ProgramMeasurer measurer = Measurer(/*max_continuous_error=*/2);
  testing::internal::CaptureStdout();
  measurer->Measure(nullptr,
                    {Number(-1), Number(3), Number(-2), Number(-3), Number(-4), Number(1)});
  std::string shown = testing::internal::GetCapturedStdout();
  EXPECT_EQ(measurer->ct, 6);
  EXPECT_EQ(measurer->error_ct, 4);
  EXPECT_NE(shown.find("2 candidates failed in a row, the last with error"), std::string::npos);
  EXPECT_EQ(shown.find("No: 3\t"), std::string::npos) << shown;
  EXPECT_NE(shown.find("No: 4\t"), std::string::npos) << shown;
  EXPECT_NE(shown.find("No: 5\t"), std::string::npos) << shown;
  EXPECT_EQ(shown.find("No: 6\t"), std::string::npos) << shown;
}

TEST(SearchPolicy, SearchesInRoundsUnderAnyMeasurer) {
  auto node = make_object<CountingNode>();
  CountingNode* counting = node.get();
  counting->search_task = MatmulTask();
  SearchPolicy policy(ObjectPtr<Object>(std::move(node)));
  ProgramMeasurer measurer = Measurer();
  policy->Search(10, -1, 4, measurer);
  EXPECT_EQ(counting->observed, 10);
  EXPECT_EQ(NumberOf(measurer->best.at("numbers")), 10);
  EXPECT_TRUE(measurer->callbacks.empty());
}

}  // namespace
}  // namespace auto_scheduler
}  // namespace tvm
