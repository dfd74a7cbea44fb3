/*!
 * \file library_module.cc
 * \brief Modules in shared libraries of the operating system.
 */
#include <dlfcn.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>

namespace tvm {
namespace runtime {
namespace {

class LibraryModuleNode final : public ModuleNode {
 public:
  explicit LibraryModuleNode(const std::string& path) {
    // The library calls back into the runtime without being linked to it, so the runtime's symbols
    // must be visible to it.
    Dl_info info;
    if (dladdr(reinterpret_cast<void*>(&TVMBackendParallelLaunch), &info) != 0) {
      dlopen(info.dli_fname, RTLD_LAZY | RTLD_GLOBAL | RTLD_NOLOAD);
    }
    handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    TVM_CHECK(handle_ != nullptr, RuntimeError) << "load_module: " << dlerror();
  }
  ~LibraryModuleNode() override { dlclose(handle_); }

  const char* type_key() const override { return "library"; }
  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) override {
    const char* symbol = name.c_str();
    if (name == kModuleMain) {
      const auto* entry = static_cast<const char*>(dlsym(handle_, kModuleMain));
      if (entry == nullptr) return PackedFunc();
      symbol = entry;
    }
    void* address = dlsym(handle_, symbol);
    if (address == nullptr) return PackedFunc();
    return PackedFuncFromAddress(name, reinterpret_cast<TVMPackedCFunc>(address), ObjectRef(self));
  }
  TVM_DECLARE_OBJECT(LibraryModuleNode, ModuleNode, "runtime.LibraryModule");

 private:
  void* handle_ = nullptr;
};

// dlopen searches system folders for a name without a slash.
std::string AsFilePath(const std::string& path) {
  return path.find('/') == std::string::npos ? "./" + path : path;
}

}  // namespace

TVM_REGISTER_GLOBAL("runtime.module.loadfile_so")
    .set_body_typed([](std::string path, std::string format) {
      return Module(ObjectPtr<Object>(make_object<LibraryModuleNode>(AsFilePath(path))));
    });

}  // namespace runtime
}  // namespace tvm
