/*!
 * \file create_group.cc
 * \brief Stages joined to be attached together.
 */
#include <tvm/te/schedule.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graph.h"

namespace tvm {
namespace te {

namespace {

/*! \brief Finds the operations on paths from a boundary to the outputs. */
class Between {
 public:
  Between(std::unordered_set<const Object*> boundary, bool include_boundary)
      : boundary_(std::move(boundary)), include_boundary_(include_boundary) {}

  std::vector<Operation> operations;

  /*! \brief Whether the boundary is reached from `op`. */
  bool Visit(const Operation& op) {
    auto known = reached_.find(op.get());
    if (known != reached_.end()) return known->second;
    if (boundary_.count(op.get())) {
      if (include_boundary_) operations.push_back(op);
      return reached_[op.get()] = true;
    }
    bool reached = false;
    for (const Tensor& input : op->InputTensors()) reached |= Visit(input->op);
    if (reached) operations.push_back(op);
    return reached_[op.get()] = reached;
  }

 private:
  std::unordered_set<const Object*> boundary_;
  bool include_boundary_;
  std::unordered_map<const Object*, bool> reached_;
};

/*! \brief Groups around a stage, innermost first, and at the end the undefined one. */
std::vector<Stage> GroupsAround(const Stage& stage) {
  std::vector<Stage> groups;
  for (Stage group = stage->group; group.defined(); group = group->group) groups.push_back(group);
  groups.push_back(Stage());
  return groups;
}

}  // namespace

void JoinGroup(const Stage& stage, const Stage& group) {
  if (stage->group.defined()) --stage->group->num_child_stages;
  stage->group = group;
  if (group.defined()) ++group->num_child_stages;
}

Stage Schedule::create_group(const Array<Tensor>& outputs, const Array<Tensor>& inputs,
                             bool include_inputs) {
  TVM_CHECK(!outputs.empty(), ScheduleError) << "create_group: no output given";
  std::unordered_set<const Object*> boundary;
  for (const Tensor& input : inputs) boundary.insert((*this)[input]->op.get());
  Between between(boundary, include_inputs);
  for (const Tensor& output : outputs) between.Visit((*this)[output]->op);
  std::vector<Operation>& members = between.operations;
  // An output belongs to the group even if no input leads to it.
  for (const Tensor& output : outputs) {
    Operation op = (*this)[output]->op;
    bool found = std::any_of(members.begin(), members.end(),
                             [&](const Operation& member) { return member.same_as(op); });
    if (!found) members.push_back(op);
  }
  std::vector<Stage> common = GroupsAround((*this)[members[0]]);
  for (const Operation& op : members) {
    std::vector<Stage> groups = GroupsAround((*this)[op]);
    auto shared = [&](const Stage& group) {
      return std::find_if(groups.begin(), groups.end(),
                          [&](const Stage& g) { return g.same_as(group); }) != groups.end();
    };
    common.erase(common.begin(), std::find_if(common.begin(), common.end(), shared));
  }
  const Stage& parent = common.front();
  Stage group{ObjectPtr<Object>(make_object<StageNode>())};
  std::unordered_set<const Object*> joined;
  for (const Operation& op : members) {
    Stage stage = (*this)[op];
    while (!stage->group.same_as(parent)) stage = stage->group;
    joined.insert(stage.get());
  }
  for (const Stage& stage : get()->stages) {
    Stage top = stage;
    while (top->group.defined() && !joined.count(top.get())) top = top->group;
    if (!joined.count(top.get()) || top->op.defined()) continue;
    bool member = std::any_of(members.begin(), members.end(),
                              [&](const Operation& op) { return op.same_as(stage->op); });
    TVM_CHECK(member, ScheduleError)
        << "create_group: " << stage->op->name << " is in a group with other members of the new "
        << "one, but not between its inputs and outputs; groups must be nested or apart";
  }
  JoinGroup(group, parent);
  auto join = [&](const Array<Stage>& stages) {
    for (const Stage& stage : stages) {
      if (!joined.count(stage.get())) continue;
      JoinGroup(stage, group);
    }
  };
  join(get()->stages);
  join(get()->groups);
  (*this)->groups.push_back(group);
  (*this)->Note("create_group");
  return group;
}

}  // namespace te
}  // namespace tvm
