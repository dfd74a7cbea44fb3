/*!
 * \file search_callback.cc
 * \brief What a policy is told before it searches.
 */
#include <tvm/auto_scheduler/sketch_policy.h>
#include <tvm/runtime/registry.h>

#include <memory>
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
    return Functions()
        ->meet_condition_func(GetRef<SearchPolicy>(policy_), state, stage_id)
        .template cast<Condition>();
  }
  Result Apply(const SearchTask&, const State& state, int stage_id) const final {
    Result results;
    auto pairs = Functions()
                     ->apply_func(GetRef<SearchPolicy>(policy_), state, stage_id)
                     .template cast<Array<Array<Any>>>();
    for (const Array<Any>& pair : pairs) {
      TVM_CHECK(pair.size() == 2, ValueError)
          << "sketch rule " << Name()
          << ": its apply_func must return pairs [state, next stage], got a list of "
          << pair.size();
      results.emplace_back(pair[0].cast<State>(), pair[1].cast<int>());
    }
    return results;
  }

 private:
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
