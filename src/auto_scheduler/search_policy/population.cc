/*!
 * \file population.cc
 * \brief Programs drawn at random, and their evolution under a cost model.
 */
#include <tvm/auto_scheduler/sketch_policy.h>
#include <tvm/runtime/threading_backend.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <unordered_map>

#include "report.h"

namespace tvm {
namespace auto_scheduler {

namespace {

/*! \brief What a model says of programs that cannot be compiled is below this. */
constexpr float kWorthlessScore = -1e10f;

/*! \brief Carries out f(i) for i in [0, n) on all threads, and keeps what is not empty, in order.
 */
template <typename F>
std::vector<State> ParallelStates(int n, const F& f) {
  std::vector<std::optional<State>> made(n);
  runtime::threading::ParallelFor(n, [&](int i) { made[i] = f(i); });
  std::vector<State> states;
  for (std::optional<State>& state : made) {
    if (state) states.push_back(*std::move(state));
  }
  return states;
}

/*! \brief Programs with their hashes and scores, without repetition. */
struct ScoredState {
  State state;
  uint64_t hash;
  float score;
};

/*! \brief The best programs seen, at most a given number of them. */
class BestStates {
 public:
  explicit BestStates(size_t capacity) : capacity_(capacity) {}

  void Push(const ScoredState& entry) {
    if (capacity_ == 0 || !hashes_.insert(entry.hash).second) return;
    if (heap_.size() == capacity_) {
      if (entry.score <= heap_.front().score) {
        hashes_.erase(entry.hash);
        return;
      }
      std::pop_heap(heap_.begin(), heap_.end(), Better);
      hashes_.erase(heap_.back().hash);
      heap_.pop_back();
    }
    heap_.push_back(entry);
    std::push_heap(heap_.begin(), heap_.end(), Better);
  }

  size_t size() const { return heap_.size(); }
  float MinScore() const { return heap_.front().score; }
  float MaxScore() const { return std::min_element(heap_.begin(), heap_.end(), Better)->score; }

  /*! \brief Best first. */
  Array<State> Sorted() const {
    std::vector<ScoredState> sorted = heap_;
    std::sort(sorted.begin(), sorted.end(), Better);
    Array<State> states;
    for (const ScoredState& entry : sorted) states.push_back(entry.state);
    return states;
  }

 private:
  // The hash orders programs of one score, so that the order does not depend on the path here.
  static bool Better(const ScoredState& a, const ScoredState& b) {
    return a.score != b.score ? a.score > b.score : a.hash < b.hash;
  }

  size_t capacity_;
  std::vector<ScoredState> heap_;
  std::unordered_set<uint64_t> hashes_;
};

/*! \brief Draws from n ranks, low ones more often: each fifth of them e times as often as the next.
 *
 * Ranks instead of scores, since early scores may all be alike or below zero.
 */
class RankSelection {
 public:
  explicit RankSelection(size_t n) {
    double sum = 0;
    for (size_t rank = 0; rank < n; ++rank) {
      sum += std::exp(-5.0 * static_cast<double>(rank) / static_cast<double>(n));
      cumulative_.push_back(sum);
    }
  }
  size_t Draw(std::mt19937* random) const {
    double drawn = static_cast<double>((*random)()) / 4294967296.0 * cumulative_.back();
    auto found = std::upper_bound(cumulative_.begin(), cumulative_.end(), drawn);
    return std::min<size_t>(found - cumulative_.begin(), cumulative_.size() - 1);
  }

 private:
  std::vector<double> cumulative_;
};

}  // namespace

Array<State> SketchPolicyNode::SampleInitialPopulation() {
  const std::vector<State>& sketches = GenerateSketches();
  const SearchSpace& space = Space();
  const InitPopulationRules rules = space.InitRules(search_task, Options());
  const int sweep_size = Param<int>("evolutionary_search_population");
  size_t wanted = static_cast<size_t>(Param<int>("sample_init_min_population"));
  Stopwatch stopwatch;
  Array<State> population;
  std::unordered_set<uint64_t> seen;
  int failed = 0;
  for (int sweep = 0; population.size() < wanted; ++sweep) {
    std::vector<uint32_t> seeds = Seeds(sweep_size);
    std::vector<State> drawn = ParallelStates(sweep_size, [&](int i) -> std::optional<State> {
      std::mt19937 own(seeds[i]);
      State state = sketches[own() % sketches.size()];
      for (const auto& rule : rules) {
        if (!rule->Apply(search_task, &state, &own)) return std::nullopt;
      }
      return space.IsValid(search_task, state) ? std::optional<State>(state) : std::nullopt;
    });
    failed += sweep_size - static_cast<int>(drawn.size());
    Array<State> fresh;
    for (const State& state : drawn) {
      if (seen.insert(state.ProgramHash()).second) fresh.push_back(state);
    }
    const size_t before = population.size();
    if (!fresh.empty()) {
      std::vector<float> scores = program_cost_model->Predict(search_task, fresh);
      for (size_t i = 0; i < fresh.size(); ++i) {
        if (scores[i] > kWorthlessScore) population.push_back(fresh[i]);
      }
    }
    if (population.size() > before) continue;
    // A whole sweep without anything new: the space is smaller than was hoped for.
    TVM_CHECK(wanted > 1, ValueError)
        << "SketchPolicy: none of " << static_cast<int64_t>(sweep + 1) * sweep_size
        << " programs drawn from the " << sketches.size() << " sketches of " << search_task->desc
        << " " << search_task->workload_key << " is valid for " << search_task->target->str()
        << "; another search_space or tiling structure may have some";
    wanted /= 2;
    if (verbose >= 1) {
      std::cout << "#Target has been reduced to " << wanted << " due to too many failures or "
                << "duplications" << std::endl;
    }
  }
  if (verbose >= 1) {
    std::cout << "Sample Initial Population\t#s: " << population.size() << "\tfail_ct: " << failed
              << "\tTime elapsed: " << Fixed(stopwatch.Seconds(), 2) << std::endl;
  }
  return population;
}

std::vector<State> SketchPolicyNode::Offspring(const std::vector<State>& parents, int* refused) {
  const SearchSpace& space = Space();
  const MutationRules rules = space.Mutations(search_task, Options());
  std::vector<double> weights;
  for (const MutationRule& mutation : rules) weights.push_back(mutation.weight);
  const double mutation_prob = Param<double>("evolutionary_search_mutation_prob");
  const int n_children = Param<int>("evolutionary_search_population");
  RankSelection selection(parents.size());
  std::vector<uint32_t> seeds = Seeds(n_children);
  std::vector<int> refusals(n_children, 0);
  std::vector<State> children = ParallelStates(n_children, [&](int i) -> std::optional<State> {
    // Where a parent resists change, another one has its turn.
    constexpr int kMaxTries = 10;
    std::mt19937 own(seeds[i]);
    for (int tries = 0; tries < kMaxTries; ++tries) {
      State state = parents[selection.Draw(&own)];
      if (std::uniform_real_distribution<double>()(own) >= mutation_prob) return state;
      const MutationRule& mutation =
          rules[std::discrete_distribution<size_t>(weights.begin(), weights.end())(own)];
      if (mutation.rule->Apply(search_task, &state, &own) && space.IsValid(search_task, state)) {
        return state;
      }
      ++refusals[i];
    }
    return std::nullopt;
  });
  *refused += std::accumulate(refusals.begin(), refusals.end(), 0);
  return children;
}

Array<State> SketchPolicyNode::EvolutionarySearch(const Array<State>& population, int out_size) {
  TVM_CHECK(out_size >= 0, ValueError)
      << "SketchPolicy.evolutionary_search: out_size must be >= 0, got " << out_size;
  // Without knowledge there is nothing to climb.
  constexpr int kRandomModelIters = 2;
  int n_iters = Param<int>("evolutionary_search_num_iters");
  if (program_cost_model->IsInstance<RandomModelNode>()) {
    n_iters = std::min(n_iters, kRandomModelIters);
  }
  Stopwatch stopwatch;
  BestStates best(static_cast<size_t>(out_size));
  std::unordered_map<uint64_t, float> scores;
  std::vector<State> now(population.begin(), population.end());
  int mutated = 0, refused = 0;
  for (int iter = 0;; ++iter) {
    // Score what is new; a generation repeats much of the one before.
    std::vector<ScoredState> scored;
    Array<State> unscored;
    std::unordered_set<uint64_t> in_generation;
    for (const State& state : now) {
      uint64_t hash = state.ProgramHash();
      if (!in_generation.insert(hash).second) continue;
      scored.push_back({state, hash, 0});
      if (!scores.count(hash)) unscored.push_back(state);
    }
    if (!unscored.empty()) {
      std::vector<float> predicted = program_cost_model->Predict(search_task, unscored);
      for (size_t i = 0; i < unscored.size(); ++i) {
        scores[unscored[i].ProgramHash()] = predicted[i];
      }
    }
    for (ScoredState& entry : scored) entry.score = scores.at(entry.hash);
    std::erase_if(scored, [](const ScoredState& e) { return !(e.score > kWorthlessScore); });
    for (const ScoredState& entry : scored) {
      if (!known_.count(entry.hash)) best.Push(entry);
    }
    if (verbose >= 1 && (iter % 5 == 0 || iter == n_iters) && best.size() > 0) {
      std::cout << "GA Iter: " << iter << "\tMax score: " << Fixed(best.MaxScore(), 4)
                << "\tMin score: " << Fixed(best.MinScore(), 4) << "\t#Pop: " << best.size()
                << "\t#M+: " << mutated / std::max(iter, 1)
                << "\t#M-: " << refused / std::max(iter, 1) << std::endl;
    }
    if (iter == n_iters || scored.empty()) break;

    std::stable_sort(scored.begin(), scored.end(),
                     [](const ScoredState& a, const ScoredState& b) { return a.score > b.score; });
    std::vector<State> parents;
    for (const ScoredState& entry : scored) parents.push_back(entry.state);
    now = Offspring(parents, &refused);
    mutated += static_cast<int>(now.size());
  }
  Array<State> result = best.Sorted();
  if (verbose >= 1) {
    std::cout << "EvolutionarySearch\t\t#s: " << result.size()
              << "\tTime elapsed: " << Fixed(stopwatch.Seconds(), 2) << std::endl;
  }
  return result;
}

}  // namespace auto_scheduler
}  // namespace tvm
