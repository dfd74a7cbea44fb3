/*!
 * \file search_space.cc
 * \brief The registry of search spaces.
 */
#include <tvm/auto_scheduler/search_space.h>
#include <tvm/runtime/registry.h>

#include <map>
#include <mutex>

namespace tvm {
namespace auto_scheduler {

namespace {

struct SpaceTable {
  std::mutex mutex;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<SearchSpace>> spaces;

  static SpaceTable& Global() {
    static SpaceTable table;
    return table;
  }
};

}  // namespace

void SearchSpace::Register(const std::string& name, const std::string& target_key,
                           std::unique_ptr<SearchSpace> space) {
  space->name_ = name;
  space->target_key_ = target_key;
  space->features_ = FeatureTable(space->FeatureGroups(), space->BoundGroups());
  SpaceTable& table = SpaceTable::Global();
  std::lock_guard<std::mutex> lock(table.mutex);
  bool inserted = table.spaces.emplace(std::pair(name, target_key), std::move(space)).second;
  TVM_CHECK(inserted, ValueError) << "search space \"" << name << "\" of targets with the key "
                                  << target_key << ": it is registered already";
}

const SearchSpace& SearchSpace::Get(const Target& target, const std::string& name) {
  SpaceTable& table = SpaceTable::Global();
  {
    std::lock_guard<std::mutex> lock(table.mutex);
    for (const String& key : target->keys) {
      auto found = table.spaces.find({name, key});
      if (found != table.spaces.end()) return *found->second;
    }
  }
  std::string known;
  for (const auto& [other, key] : List()) {
    known += (known.empty() ? "" : ", ") + ("\"" + other + "\" of " + key);
  }
  TVM_FATAL(ValueError) << "search space \"" << name << "\": none is registered for the target "
                        << target->str() << "; registered are " << known;
}

std::vector<std::pair<std::string, std::string>> SearchSpace::List() {
  SpaceTable& table = SpaceTable::Global();
  std::lock_guard<std::mutex> lock(table.mutex);
  std::vector<std::pair<std::string, std::string>> names;
  for (const auto& entry : table.spaces) names.push_back(entry.first);
  return names;
}

void SearchSpace::Refuse(const char* what) const {
  TVM_FATAL(ValueError) << "search space \"" << name_ << "\" of " << target_key_ << ": it has no "
                        << what;
}

InitPopulationRules SearchSpace::InitRules(const SearchTask&, const SpaceOptions&) const {
  Refuse("rules that fill a sketch at random");
}

MutationRules SearchSpace::Mutations(const SearchTask&, const SpaceOptions&) const {
  Refuse("mutations");
}

std::vector<State> SearchSpace::Complete(const SearchTask&, const State&,
                                         const SpaceOptions&) const {
  Refuse("completion of sketches, so symbolic tuners cannot use it");
}

std::vector<Constraint> SearchSpace::Constraints(const LoopProgram&, const MachineFacts&,
                                                 const arith::VarContext&) const {
  Refuse("constraints, so symbolic tuners cannot use it");
}

std::vector<State> SearchSpace::Sketches(const SearchTask& task,
                                         const SpaceOptions& options) const {
  SketchRules rules = options.custom_rules;
  for (const auto& rule : StructureRules(task, options)) rules.push_back(rule);
  return DeriveSketches(task, rules);
}

TVM_REGISTER_GLOBAL("auto_scheduler.SearchSpaces").set_body_typed([] {
  Array<Array<String>> out;
  for (const auto& [name, key] : SearchSpace::List()) out.push_back({String(name), String(key)});
  return out;
});

TVM_REGISTER_GLOBAL("auto_scheduler.SearchSpaceKey").set_body_typed([](Target target, String name) {
  return String(SearchSpace::Get(target, name).target_key());
});

}  // namespace auto_scheduler
}  // namespace tvm
