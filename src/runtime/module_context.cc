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
  // What was found may belong to an import of this module.
  found_.clear();
}

const PackedFuncObj* ModuleContext::Find(const std::string& name) {
  std::lock_guard lock(mutex_);
  auto known = found_.find(name);
  if (known != found_.end()) return known->second.get();
  for (ModuleNode* module : modules_) {
    for (const Module& import : module->imports()) {
      PackedFunc function = import.GetFunction(name, true);
      if (function.defined()) return found_.emplace(name, std::move(function)).first->second.get();
    }
  }
  // Not remembered, since a global function may be replaced.
  return Registry::Require(name).get();
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
