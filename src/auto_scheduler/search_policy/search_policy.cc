/*!
 * \file search_policy.cc
 * \brief Rounds of proposing, measuring and observing; policies written in Python.
 */
#include <tvm/auto_scheduler/search_policy.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <limits>

namespace tvm {
namespace auto_scheduler {

namespace {

/*! \brief Keeps what a round has measured, for the case that it does not come to its end. */
class RoundNode : public MeasureCallbackNode {
 public:
  Array<Candidate> candidates;
  Array<MeasureResult> results;
  void OnResult(const ObjectRef&, const Candidate& candidate, const MeasureResult& result) final {
    candidates.push_back(candidate);
    results.push_back(result);
  }
  TVM_DECLARE_OBJECT(RoundNode, MeasureCallbackNode, "auto_scheduler.Round");
};

}  // namespace

std::pair<Array<Candidate>, Array<MeasureResult>> SearchPolicyNode::ContinueSearchOneRound(
    int n, ProgramMeasurer measurer) {
  Array<Candidate> candidates = Propose(n);
  if (candidates.empty()) return {};
  auto round = make_object<RoundNode>();
  // It hears first: what a later one fails to record was measured all the same.
  const Array<MeasureCallback> callbacks = measurer->callbacks;
  measurer->callbacks = {MeasureCallback(ObjectPtr<Object>(round))};
  for (const MeasureCallback& callback : callbacks) measurer->callbacks.push_back(callback);
  try {
    Array<MeasureResult> results = measurer->Measure(GetRef<SearchPolicy>(this), candidates);
    measurer->callbacks = callbacks;
    Observe(candidates, results);
    return {candidates, results};
  } catch (...) {
    measurer->callbacks = callbacks;
    if (!round->results.empty()) Observe(round->candidates, round->results);
    throw;
  }
}

Optional<Candidate> SearchPolicyNode::Search(int n_trials, int early_stopping,
                                             int measures_per_round, ProgramMeasurer measurer) {
  TVM_CHECK(measures_per_round >= 1, ValueError)
      << "SearchPolicy.search: measures_per_round must be >= 1, got " << measures_per_round;
  if (n_trials <= 1) {
    Array<Candidate> first = Propose(1);
    return first.empty() ? Optional<Candidate>() : Optional<Candidate>(first[0]);
  }
  const String& key = search_task->workload_key;
  double best = std::numeric_limits<double>::infinity();
  for (int measured = 0, since_best = 0; measured < n_trials;) {
    auto [candidates, results] =
        ContinueSearchOneRound(std::min(measures_per_round, n_trials - measured), measurer);
    if (candidates.empty()) break;
    measured += static_cast<int>(candidates.size());
    since_best += static_cast<int>(candidates.size());
    double now = measurer->best_seconds.Get(key).value_or(best);
    if (now < best) {
      best = now;
      since_best = 0;
    } else if (early_stopping >= 0 && since_best > early_stopping &&
               best < std::numeric_limits<double>::infinity()) {
      break;
    }
  }
  return measurer->best.Get(key);
}

TVM_REGISTER_NODE(TuningOptionsNode);

void TuningOptionsNode::Init() {
  TVM_CHECK(num_measure_trials >= 0, ValueError)
      << "TuningOptions: num_measure_trials must be >= 0, got " << num_measure_trials;
  TVM_CHECK(num_measures_per_round >= 1, ValueError)
      << "TuningOptions: num_measures_per_round must be >= 1, got " << num_measures_per_round;
}

Candidate AutoSchedule(SearchPolicy policy, const TuningOptions& options) {
  ProgramMeasurer measurer(options->builder, options->runner, options->measure_callbacks,
                           options->verbose);
  Optional<Candidate> best = policy->Search(options->num_measure_trials, options->early_stopping,
                                            options->num_measures_per_round, measurer);
  TVM_CHECK(best.defined(), RuntimeError)
      << "AutoSchedule: no program of " << policy->search_task->workload_key
      << " could be measured; "
      << (measurer->error_ct == 0
              ? "the policy proposed none"
              : "the last of " + std::to_string(measurer->error_ct) +
                    " failures: " + std::string(measurer->last_error.value_or("no message")));
  return best.value();
}

/*!
 * \brief A policy written in Python. The object there holds this one, so the functions refer to it
 *        weakly; it must live as long as the policy is used.
 */
class PythonBasedPolicyNode : public SearchPolicyNode {
 public:
  PackedFunc propose, observe;
  Array<Candidate> Propose(int n) final { return propose(n).cast<Array<Candidate>>(); }
  void Observe(const Array<Candidate>& candidates, const Array<MeasureResult>& results) final {
    observe(candidates, results);
  }
  TVM_DECLARE_NODE(PythonBasedPolicyNode, SearchPolicyNode, "auto_scheduler.PythonBasedPolicy");
};
TVM_REGISTER_NODE(PythonBasedPolicyNode);

TVM_REGISTER_GLOBAL("auto_scheduler.PythonBasedPolicy")
    .set_body_typed([](SearchTask task, int verbose, PackedFunc propose, PackedFunc observe) {
      auto node = make_object<PythonBasedPolicyNode>();
      node->search_task = task;
      node->verbose = verbose;
      node->propose = propose;
      node->observe = observe;
      return SearchPolicy(ObjectPtr<Object>(std::move(node)));
    });
TVM_REGISTER_GLOBAL("auto_scheduler.SearchPolicyPropose")
    .set_body_typed([](SearchPolicy policy, int n) { return policy->Propose(n); });
TVM_REGISTER_GLOBAL("auto_scheduler.SearchPolicyObserve")
    .set_body_typed([](SearchPolicy policy, Array<Candidate> candidates,
                       Array<MeasureResult> results) {
      TVM_CHECK(candidates.size() == results.size(), ValueError)
          << "SearchPolicy.observe: " << candidates.size() << " candidates but " << results.size()
          << " results";
      policy->Observe(candidates, results);
    });
TVM_REGISTER_GLOBAL("auto_scheduler.SearchPolicyContinueSearchOneRound")
    .set_body_typed([](SearchPolicy policy, int n, ProgramMeasurer measurer) {
      auto [candidates, results] = policy->ContinueSearchOneRound(n, measurer);
      return Array<ObjectRef>{candidates, results};
    });
TVM_REGISTER_GLOBAL("auto_scheduler.SearchPolicySearch")
    .set_body_typed([](SearchPolicy policy, int n_trials, int early_stopping,
                       int measures_per_round, ProgramMeasurer measurer) {
      return policy->Search(n_trials, early_stopping, measures_per_round, measurer);
    });
/*! \brief Schedule and arguments of the best state found. */
TVM_REGISTER_GLOBAL("auto_scheduler.AutoSchedule")
    .set_body_typed([](SearchPolicy policy, TuningOptions options) {
      Candidate best = AutoSchedule(policy, options);
      const auto* input = best.as<MeasureInputNode>();
      TVM_CHECK(input != nullptr, TypeError)
          << "AutoSchedule: the policy proposes " << best->GetTypeKey() << ", not loop states";
      auto [schedule, args] = input->task->compute_dag.ApplySteps(
          input->state->transform_steps, input->task->layout_rewrite_option);
      return Array<ObjectRef>{schedule, args};
    });
TVM_REGISTER_GLOBAL("auto_scheduler.SearchPolicySetVerbose")
    .set_body_typed([](SearchPolicy policy, int verbose) { policy->verbose = verbose; });

}  // namespace auto_scheduler
}  // namespace tvm
