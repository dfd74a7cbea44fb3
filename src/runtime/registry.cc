#include <tvm/runtime/container/array.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "process_lock.h"

namespace tvm {
namespace runtime {

void ThrowMissingArgument(int position, int num_args) {
  TVM_FATAL(TypeError) << "argument " << position << " is missing, the call has " << num_args
                       << " arguments";
}

void ThrowArgCountError(const char* name, int expected, int actual) {
  TVM_FATAL(TypeError) << name << ": expected " << expected << " argument"
                       << (expected == 1 ? "" : "s") << ", got " << actual;
}

void ThrowArgTypeError(const char* name, int position, const std::string& expected,
                       const Any& actual) {
  TVM_FATAL(TypeError) << name << ": argument " << position << ": expected " << expected << ", got "
                       << actual.TypeName();
}

namespace {

struct FunctionTable {
  std::shared_mutex& mutex = ProcessLock<std::shared_mutex, FunctionTable>::Get();
  std::map<std::string, std::unique_ptr<Registry>, std::less<>> entries;
  // Removed functions stay allocated: callers may hold the pointer that Get returned.
  std::vector<std::unique_ptr<Registry>> removed;

  // Never destroyed: functions may be looked up while other statics are torn down.
  static FunctionTable& Global() {
    static FunctionTable* table = new FunctionTable();
    return *table;
  }
};

// Shortest edit sequence, for "did you mean".
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

}  // namespace

Registry& Registry::set_body(PackedFunc func) {
  func_ = std::move(func);
  return *this;
}

Registry& Registry::Register(const std::string& name, bool override) {
  FunctionTable& table = FunctionTable::Global();
  std::unique_lock lock(table.mutex);
  auto [it, added] = table.entries.try_emplace(name);
  if (added) {
    it->second = std::unique_ptr<Registry>(new Registry(name));
  } else {
    TVM_CHECK(override || it->second->implied_, ValueError)
        << "Registry: the global function \"" << name
        << "\" is already registered; pass override=True to replace it";
  }
  it->second->implied_ = false;
  return *it->second;
}

void Registry::RegisterImplied(const std::string& name, PackedFunc func) {
  FunctionTable& table = FunctionTable::Global();
  std::unique_lock lock(table.mutex);
  auto [it, added] = table.entries.try_emplace(name);
  if (!added) return;
  it->second = std::unique_ptr<Registry>(new Registry(name));
  it->second->implied_ = true;
  it->second->set_body(std::move(func));
}

bool Registry::Remove(const std::string& name) {
  FunctionTable& table = FunctionTable::Global();
  std::unique_lock lock(table.mutex);
  auto it = table.entries.find(name);
  if (it == table.entries.end()) return false;
  table.removed.push_back(std::move(it->second));
  table.entries.erase(it);
  return true;
}

const PackedFunc* Registry::Get(std::string_view name) {
  FunctionTable& table = FunctionTable::Global();
  std::shared_lock lock(table.mutex);
  auto it = table.entries.find(name);
  return it == table.entries.end() ? nullptr : &it->second->func_;
}

const PackedFunc& Registry::Require(std::string_view name) {
  if (const PackedFunc* func = Get(name)) return *func;
  std::vector<std::pair<size_t, std::string>> similar;
  for (const std::string& known : ListNames()) {
    size_t distance = EditDistance(name, known);
    if (distance <= 2 + name.size() / 5) similar.emplace_back(distance, known);
  }
  std::sort(similar.begin(), similar.end());
  std::ostringstream hint;
  for (size_t i = 0; i < similar.size() && i < 3; ++i) {
    hint << (i == 0 ? "; did you mean " : " or ") << '"' << similar[i].second << '"';
  }
  TVM_FATAL(ValueError) << "Registry: there is no global function \"" << name << '"' << hint.str();
}

std::vector<std::string> Registry::ListNames() {
  FunctionTable& table = FunctionTable::Global();
  std::shared_lock lock(table.mutex);
  std::vector<std::string> names;
  for (const auto& entry : table.entries) names.push_back(entry.first);
  return names;
}

TVM_REGISTER_GLOBAL("runtime.ListGlobalFuncNames").set_body_typed([]() {
  Array<String> names;
  for (const std::string& name : Registry::ListNames()) names.push_back(name);
  return names;
});

TVM_REGISTER_GLOBAL("runtime.RemoveGlobalFunc").set_body_typed([](std::string name) {
  return Registry::Remove(name);
});

}  // namespace runtime
}  // namespace tvm
