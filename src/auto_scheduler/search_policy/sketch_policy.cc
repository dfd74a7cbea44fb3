/*!
 * \file sketch_policy.cc
 * \brief Rounds of a SketchPolicy: parameters, what is proposed, what is remembered.
 */
#include <tvm/auto_scheduler/sketch_policy.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <iostream>
#include <string>

#include "report.h"

namespace tvm {
namespace auto_scheduler {

TVM_REGISTER_NODE(SketchPolicyNode);

namespace {

/*! \brief Evolution starts from random programs of all sketches and the best ones measured. */
constexpr const char* kNormalMode = "normal";
/*! \brief Evolution starts from the neighbourhood of the best programs measured. */
constexpr const char* kPotentialSpaceMode = "potential-space";

}  // namespace

Map<String, Any> SketchPolicyDefaults() {
  return {{"search_space", String("ansor")},
          {"eps_greedy", 0.05},
          {"retry_search_one_round_on_empty", 1},
          {"sample_init_min_population", 50},
          {"sample_init_use_measured_ratio", 0.2},
          {"evolutionary_search_population", 2048},
          {"evolutionary_search_num_iters", 4},
          {"evolutionary_search_mode", String(kNormalMode)},
          {"evolutionary_search_mutation_prob", 0.85},
          {"cpu_multi_level_tiling_structure", String("SSRSRS")},
          {"gpu_multi_level_tiling_structure", String("SSSRRSRS")},
          {"max_innermost_split_factor", 64},
          {"max_vectorize_size", 16},
          {"disable_change_compute_location", 0}};
}

namespace {

/*! \brief `value` in the type of `standard`, if it has a counterpart there. */
Any InTypeOf(const Any& standard, const Any& value, const String& name) {
  const char* expected = "a text";
  if (standard.TryCast<String>()) {
    if (auto text = value.TryCast<String>()) return *text;
  } else if (standard.TryCast<int64_t>()) {
    expected = "an integer";
    if (auto number = value.TryCast<int64_t>()) return *number;
  } else {
    expected = "a number";
    if (auto number = value.TryCast<double>()) return *number;
  }
  TVM_FATAL(TypeError) << "SketchPolicy: parameter " << name << " must be " << expected << ", got "
                       << value;
}

Map<String, Any> WithDefaults(const Map<String, Any>& given) {
  Map<String, Any> params = SketchPolicyDefaults();
  for (const auto& [name, value] : given) {
    if (!params.count(name)) {
      std::vector<std::string> known;
      for (const auto& [other, standard] : params) known.push_back(other);
      std::sort(known.begin(), known.end());
      std::string names;
      for (const std::string& other : known) names += (names.empty() ? "" : ", ") + other;
      TVM_FATAL(ValueError) << "SketchPolicy: there is no parameter " << name << "; known are "
                            << names;
    }
    params.Set(name, InTypeOf(params.at(name), value, name));
  }
  auto check = [&params](const char* name, double least, double most) {
    double value = params.at(name).template cast<double>();
    TVM_CHECK(value >= least && value <= most, ValueError)
        << "SketchPolicy: parameter " << name << " is " << value << ", but must be between "
        << least << " and " << most;
  };
  constexpr double kMany = 1 << 24;
  for (const char* share :
       {"eps_greedy", "sample_init_use_measured_ratio", "evolutionary_search_mutation_prob"}) {
    check(share, 0, 1);
  }
  for (const char* count : {"sample_init_min_population", "evolutionary_search_population",
                            "max_innermost_split_factor", "max_vectorize_size"}) {
    check(count, 1, kMany);
  }
  check("evolutionary_search_num_iters", 0, kMany);
  check("retry_search_one_round_on_empty", 0, kMany);
  check("disable_change_compute_location", 0, 1);
  const String mode = params.at("evolutionary_search_mode").cast<String>();
  TVM_CHECK(mode == kNormalMode || mode == kPotentialSpaceMode, ValueError)
      << "SketchPolicy: parameter evolutionary_search_mode is \"" << mode << "\", but must be \""
      << kNormalMode << "\" or \"" << kPotentialSpaceMode << "\"";
  return params;
}

bool HasBounds(const State& state) {
  for (const Stage& stage : state->stages) {
    if (stage->compute_at == ComputeAtKind::kInlined) continue;
    for (const Iterator& iter : stage->iters) {
      if (!iter->range.defined()) return false;
    }
  }
  return true;
}

}  // namespace

SketchPolicy::SketchPolicy(SearchTask task, CostModel model, const Map<String, Any>& params,
                           int64_t seed, int verbose) {
  auto node = make_object<SketchPolicyNode>();
  node->search_task = std::move(task);
  node->program_cost_model = std::move(model);
  node->params = WithDefaults(params);
  node->verbose = verbose;
  node->random.seed(static_cast<uint32_t>(seed));
  node->Space();
  data_ = std::move(node);
}

const SearchSpace& SketchPolicyNode::Space() const {
  return SearchSpace::Get(search_task->target, Param<String>("search_space"));
}

SpaceOptions SketchPolicyNode::Options() const {
  SpaceOptions options;
  bool is_cpu = search_task->target->GetTargetDeviceType() == kDLCPU;
  options.tiling_structure = Param<String>(is_cpu ? "cpu_multi_level_tiling_structure"
                                                  : "gpu_multi_level_tiling_structure");
  options.max_innermost_split_factor = Param<int>("max_innermost_split_factor");
  options.max_vectorize_size = Param<int>("max_vectorize_size");
  options.change_compute_location = Param<int>("disable_change_compute_location") == 0;
  options.custom_rules = custom_rules;
  return options;
}

std::vector<uint32_t> SketchPolicyNode::Seeds(size_t n) {
  std::vector<uint32_t> seeds(n);
  for (uint32_t& seed : seeds) seed = static_cast<uint32_t>(random());
  return seeds;
}

const std::vector<State>& SketchPolicyNode::GenerateSketches() {
  if (!sketches_.empty()) return sketches_;
  sketches_ = Space().OpenSketches(search_task, Options());
  if (verbose >= 1) std::cout << "Generate Sketches\t\t#s: " << sketches_.size() << std::endl;
  return sketches_;
}

Array<Candidate> SketchPolicyNode::Propose(int n) {
  if (n < 1) return {};
  PrintTitle("Search", verbose);
  const int n_random = static_cast<int>(Param<double>("eps_greedy") * n);
  for (int retries = Param<int>("retry_search_one_round_on_empty"); retries >= 0; --retries) {
    auto [best, drawn] = SearchOneRound(n, n_random);
    Array<Candidate> picked = PickStatesWithEpsGreedy(best, drawn, n, n_random);
    if (!picked.empty()) return picked;
  }
  return {};
}

std::pair<Array<State>, Array<State>> SketchPolicyNode::SearchOneRound(int n, int n_random) {
  // More than asked for, as some will turn out to be known.
  constexpr int kSparesOfBest = 2, kSparesOfDrawn = 3;
  Array<State> population = GeneratePotentialSpaceStates(SampleInitialPopulation());
  Array<State> drawn = RandomSampleStates(population, kSparesOfDrawn * n_random);
  return {EvolutionarySearch(population, kSparesOfBest * n), drawn};
}

Array<State> SketchPolicyNode::GeneratePotentialSpaceStates(const Array<State>& population) {
  size_t most = static_cast<size_t>(Param<double>("sample_init_use_measured_ratio") *
                                    Param<int>("evolutionary_search_population"));
  std::vector<std::pair<double, State>> best = measured_;
  std::stable_sort(best.begin(), best.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<State> elite;
  for (size_t i = 0; i < std::min(most, best.size()) && best[i].first > 0; ++i) {
    elite.push_back(best[i].second);
  }
  const bool narrowed = Param<String>("evolutionary_search_mode") == kPotentialSpaceMode;
  Array<State> result = narrowed && !elite.empty() ? Array<State>() : population;
  for (const State& state : elite) result.push_back(state);
  if (narrowed && !elite.empty()) {
    int refused = 0;
    for (const State& state : Offspring(elite, &refused)) result.push_back(state);
  }
  return result;
}

Array<State> SketchPolicyNode::RandomSampleStates(const Array<State>& population, int n) {
  Array<State> drawn;
  for (int i = 0; i < n; ++i) drawn.push_back(population[random() % population.size()]);
  return drawn;
}

Array<Candidate> SketchPolicyNode::PickStatesWithEpsGreedy(const Array<State>& best,
                                                           const Array<State>& drawn, int n,
                                                           int n_random) {
  Array<Candidate> picked;
  size_t next_best = 0, next_drawn = 0;
  while (static_cast<int>(picked.size()) < n) {
    const bool has_best = next_best < best.size(), has_drawn = next_drawn < drawn.size();
    if (!has_best && !has_drawn) break;
    const bool prefer_best = static_cast<int>(picked.size()) < n - n_random;
    const bool take_best = has_best && (prefer_best || !has_drawn);
    const State& state = take_best ? best[next_best++] : drawn[next_drawn++];
    if (known_.insert(state.ProgramHash()).second) {
      picked.push_back(MeasureInput(search_task, state));
    }
  }
  return picked;
}

void SketchPolicyNode::Remember(const Array<Candidate>& candidates,
                                const Array<MeasureResult>& results) {
  ICHECK_EQ(candidates.size(), results.size());
  for (size_t i = 0; i < candidates.size(); ++i) {
    const auto* input = candidates[i].as<MeasureInputNode>();
    TVM_CHECK(input != nullptr, TypeError)
        << "SketchPolicy.observe: candidate " << i << " is a " << candidates[i]->GetTypeKey()
        << ", but only loop states (MeasureInput) can become parents of others";
    // States of other origin may not know their bounds, which belong to what makes programs equal.
    State state =
        HasBounds(input->state) ? input->state : search_task->compute_dag.InferBound(input->state);
    known_.insert(state.ProgramHash());
    bool ran = results[i]->error_no == static_cast<int>(MeasureErrorNO::kNoError);
    measured_.emplace_back(ran ? 1.0 / results[i]->MeanCost() : 0.0, state);
  }
}

void SketchPolicyNode::Observe(const Array<Candidate>& candidates,
                               const Array<MeasureResult>& results) {
  Remember(candidates, results);
  if (candidates.empty()) return;
  PrintTitle("Train cost model", verbose);
  Stopwatch stopwatch;
  Array<MeasureInput> inputs;
  for (const Candidate& candidate : candidates) inputs.push_back(Downcast<MeasureInput>(candidate));
  program_cost_model->Update(inputs, results);
  if (verbose >= 1) {
    std::cout << "Time elapsed for training: " << Fixed(stopwatch.Seconds(), 2) << " s"
              << std::endl;
  }
}

TVM_REGISTER_GLOBAL("auto_scheduler.SketchPolicyDefaults").set_body_typed([] {
  return SketchPolicyDefaults();
});
TVM_REGISTER_GLOBAL("auto_scheduler.SketchPolicy")
    .set_body_typed([](SearchTask task, CostModel model, Map<String, Any> params, int64_t seed,
                       int verbose) { return SketchPolicy(task, model, params, seed, verbose); });
TVM_REGISTER_GLOBAL("auto_scheduler.SketchPolicyGenerateSketches")
    .set_body_typed([](SketchPolicy policy) { return Array<State>(policy->GenerateSketches()); });
TVM_REGISTER_GLOBAL("auto_scheduler.SketchPolicySampleInitialPopulation")
    .set_body_typed([](SketchPolicy policy) { return policy->SampleInitialPopulation(); });
TVM_REGISTER_GLOBAL("auto_scheduler.SketchPolicyEvolutionarySearch")
    .set_body_typed([](SketchPolicy policy, Array<State> population, int out_size) {
      return policy->EvolutionarySearch(population, out_size);
    });

}  // namespace auto_scheduler
}  // namespace tvm
