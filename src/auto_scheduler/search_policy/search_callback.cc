/*!
 * \file search_callback.cc
 * \brief What a policy is told before it searches.
 */
#include <tvm/auto_scheduler/sketch_policy.h>
#include <tvm/node/repr_printer.h>
#include <tvm/runtime/registry.h>

#include <memory>
#include <string>
#include <utility>

#include "../sketch_utils.h"
#include "report.h"

namespace tvm {
namespace auto_scheduler {

TVM_REGISTER_NODE(PreloadMeasuredStatesNode);
TVM_REGISTER_NODE(PreloadCustomSketchRuleNode);

namespace {

SketchPolicy AsSketchPolicy(const SearchPolicy& policy, const SearchCallbackNode* callback) {
  TVM_CHECK(policy->IsInstance<SketchPolicyNode>(), TypeError)
      << callback->GetTypeKey() << ": it prepares a SketchPolicy, not a " << policy->GetTypeKey();
  return Downcast<SketchPolicy>(policy);
}

/*! \brief A rule made of two functions of a policy. The policy owns the rule. */
class CustomRule final : public SketchRule {
 public:
  CustomRule(const SketchPolicyNode* policy, const PreloadCustomSketchRuleNode* functions)
      : policy_(policy), functions_(GetRef<SearchCallback>(functions)) {}
  const char* Name() const final { return Functions()->rule_name.c_str(); }
  Condition MeetCondition(const SearchTask&, const State& state, int stage_id) const final {
    const Any answer =
        Functions()->meet_condition_func(GetRef<SearchPolicy>(policy_), state, stage_id);
    const int condition = answer.TryCast<int>().value_or(-1);
    TVM_CHECK(condition >= static_cast<int>(Condition::kSkip) &&
                  condition <= static_cast<int>(Condition::kApplyAndSkipRest),
              ValueError)
        << "sketch rule " << Name() << ": its meet_condition_func must return 0 (skip), 1 (apply) "
        << "or 2 (apply and skip the rest), got " << AsRepr(answer);
    return static_cast<Condition>(condition);
  }
  Result Apply(const SearchTask&, const State& state, int stage_id) const final {
    Result results;
    const Any answer = Functions()->apply_func(GetRef<SearchPolicy>(policy_), state, stage_id);
    const auto pairs = answer.TryCast<Array<Array<Any>>>();
    TVM_CHECK(pairs, ValueError) << WrongPairs() << AsRepr(answer);
    for (const Array<Any>& pair : *pairs) {
      TVM_CHECK(pair.size() == 2, ValueError) << WrongPairs() << "a list of " << pair.size();
      const auto derived = pair[0].TryCast<State>();
      const auto next = pair[1].TryCast<int>();
      TVM_CHECK(derived && derived->defined() && next, ValueError) << WrongPairs() << AsRepr(pair);
      const int n_stages = static_cast<int>((*derived)->stages.size());
      TVM_CHECK(*next >= -1 && *next < n_stages, ValueError)
          << "sketch rule " << Name() << ": the next stage is " << *next << ", but the state has "
          << n_stages << " stages; -1 is the end";
      results.emplace_back(*derived, *next);
    }
    return results;
  }

 private:
  std::string WrongPairs() const {
    return std::string("sketch rule ") + Name() +
           ": its apply_func must return pairs [state, next stage], got ";
  }
  const PreloadCustomSketchRuleNode* Functions() const {
    return functions_.as<PreloadCustomSketchRuleNode>();
  }

  const SketchPolicyNode* policy_;
  SearchCallback functions_;
};

}  // namespace

void PreloadCustomSketchRuleNode::Callback(const SearchPolicy& policy) const {
  SketchPolicy sketch_policy = AsSketchPolicy(policy, this);
  sketch_policy->custom_rules.push_back(std::make_shared<CustomRule>(sketch_policy.get(), this));
}

void PreloadMeasuredStatesNode::Callback(const SearchPolicy& policy) const {
  SketchPolicy sketch_policy = AsSketchPolicy(policy, this);
  const SearchTask& task = policy->search_task;
  auto records = (*runtime::Registry::Get("auto_scheduler.LoadMeasured"))(
                     filename, task->workload_key, task->target)
                     .cast<Array<Array<ObjectRef>>>();
  Array<Candidate> candidates;
  Array<MeasureResult> results;
  for (const Array<ObjectRef>& record : records) {
    auto input = Downcast<MeasureInput>(record[0]);
    candidates.push_back(MeasureInput(task, Replay(task, input->state->transform_steps)));
    results.push_back(Downcast<MeasureResult>(record[1]));
  }
  sketch_policy->Remember(candidates, results);
  if (policy->verbose >= 1) {
    LOG(INFO) << "SearchPolicy: loaded " << results.size() << " measurement records from "
              << filename << " for " << task->workload_key;
  }
}

TVM_REGISTER_GLOBAL("auto_scheduler.PreloadMeasuredStates").set_body_typed([](String filename) {
  auto node = make_object<PreloadMeasuredStatesNode>();
  node->filename = std::move(filename);
  return SearchCallback(ObjectPtr<Object>(std::move(node)));
});
TVM_REGISTER_GLOBAL("auto_scheduler.PreloadCustomSketchRule")
    .set_body_typed([](PackedFunc meet_condition, PackedFunc apply, String rule_name) {
      auto node = make_object<PreloadCustomSketchRuleNode>();
      node->rule_name = std::move(rule_name);
      node->meet_condition_func = std::move(meet_condition);
      node->apply_func = std::move(apply);
      return SearchCallback(ObjectPtr<Object>(std::move(node)));
    });
TVM_REGISTER_GLOBAL("auto_scheduler.SearchPolicyRunCallbacks")
    .set_body_typed([](SearchPolicy policy, Array<SearchCallback> callbacks) {
      if (!callbacks.empty()) PrintTitle("Call init-search callbacks", policy->verbose);
      for (const SearchCallback& callback : callbacks) callback->Callback(policy);
    });

}  // namespace auto_scheduler
}  // namespace tvm
