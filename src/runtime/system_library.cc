/*!
 * \file system_library.cc
 * \brief Functions that are linked into the program, as a module.
 */
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>

#include <utility>

#include "runtime_base.h"

namespace tvm {
namespace runtime {
namespace {

/*! \brief What was registered before or after the module was asked for. */
class SystemLibraryNode final : public ModuleNode {
 public:
  static const Module& Global() {
    static const Module* module = new Module(make_object<SystemLibraryNode>());
    return *module;
  }
  void Add(const std::string& name, void* address) {
    std::lock_guard lock(mutex_);
    auto [entry, is_new] = addresses_.emplace(name, address);
    TVM_CHECK(is_new || entry->second == address, ValueError)
        << "SystemLib: two functions are called \"" << name << '"';
  }

  const char* type_key() const override { return "system_lib"; }
  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) override {
    std::lock_guard lock(mutex_);
    auto entry = addresses_.find(name.str());
    if (entry == addresses_.end()) return PackedFunc();
    return PackedFuncFromAddress(name, reinterpret_cast<TVMPackedCFunc>(entry->second),
                                 ObjectRef(self));
  }
  Array<String> ListFunctionNames() override {
    std::lock_guard lock(mutex_);
    Array<String> names;
    for (const auto& [name, address] : addresses_) names.push_back(name);
    return names;
  }
  TVM_DECLARE_OBJECT(SystemLibraryNode, ModuleNode, "runtime.SystemLibrary");

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, void*> addresses_;
};

/*! \brief The functions whose names begin with a prefix, under the rest of their names. */
class PrefixedLibraryNode final : public ModuleNode {
 public:
  PrefixedLibraryNode() = default;
  explicit PrefixedLibraryNode(std::string prefix) : prefix_(std::move(prefix)) {}

  const char* type_key() const override { return "system_lib"; }
  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) override {
    return SystemLibraryNode::Global().GetFunction(prefix_ + name.str());
  }
  Array<String> ListFunctionNames() override {
    Array<String> names;
    for (const String& name : SystemLibraryNode::Global().get()->ListFunctionNames()) {
      if (name.str().rfind(prefix_, 0) == 0) names.push_back(name.str().substr(prefix_.size()));
    }
    return names;
  }
  TVM_DECLARE_OBJECT(PrefixedLibraryNode, ModuleNode, "runtime.PrefixedSystemLibrary");

 private:
  std::string prefix_;
};

}  // namespace

/*! \brief (prefix of names, perhaps left out) -> module of the functions that begin with it. */
TVM_REGISTER_GLOBAL("runtime.SystemLib").set_body([](Args args, RetValue* ret) {
  const String prefix = args.size() == 0 ? String() : ReadArg<String>("runtime.SystemLib", args, 0);
  if (prefix.empty()) {
    *ret = SystemLibraryNode::Global();
  } else {
    *ret = Module(ObjectPtr<Object>(make_object<PrefixedLibraryNode>(prefix.str())));
  }
});

}  // namespace runtime
}  // namespace tvm

extern "C" int TVMBackendRegisterSystemLibSymbol(const char* name, void* address) {
  using namespace tvm::runtime;
  return GuardedCall([&] {
    static_cast<SystemLibraryNode*>(SystemLibraryNode::Global().get())->Add(name, address);
  });
}
