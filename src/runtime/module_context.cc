/*!
 * \file module_context.cc
 * \brief Functions that compiled code calls by name.
 */
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>

#include <algorithm>

#include "runtime_base.h"

namespace tvm {
namespace runtime {

void ModuleContext::Attach(ModuleNode* module) {
  std::lock_guard lock(mutex_);
  modules_.push_back(module);
}

void ModuleContext::Detach(ModuleNode* module) {
  std::lock_guard lock(mutex_);
  modules_.erase(std::remove(modules_.begin(), modules_.end(), module), modules_.end());
}

const PackedFuncObj* ModuleContext::Find(const std::string& name) {
  std::lock_guard lock(mutex_);
  auto known = found_.find(name);
  if (known != found_.end()) return known->second.get();
  // Compiled code remembers the handle, so whatever is found is kept as long as the code: an import
  // whose module is gone, and a global function that was replaced.
  return found_.emplace(name, Search(name)).first->second.get();
}

PackedFunc ModuleContext::Search(const std::string& name) const {
  for (ModuleNode* module : modules_) {
    for (const Module& import : module->imports()) {
      PackedFunc function = import.GetFunction(name, true);
      if (function.defined()) return function;
    }
  }
  // A library may hold the functions of modules that were linked into it.
  for (ModuleNode* module : modules_) {
    // Without an owner: a function that held its own module would keep it forever.
    PackedFunc function = module->GetFunction(name, nullptr);
    if (function.defined()) return function;
  }
  return Registry::Require(name);
}

}  // namespace runtime
}  // namespace tvm

extern "C" int TVMBackendGetFuncFromEnv(void* module_ctx, const char* name,
                                        TVMFunctionHandle* out) {
  using namespace tvm::runtime;
  if (module_ctx == nullptr) return TVMFuncGetGlobal(name, out);
  return GuardedCall([&] {
    *out = const_cast<PackedFuncObj*>(static_cast<ModuleContext*>(module_ctx)->Find(name));
  });
}
