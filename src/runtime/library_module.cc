/*!
 * \file library_module.cc
 * \brief Modules in shared libraries of the operating system.
 */
#include <dlfcn.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>

#include <memory>

namespace tvm {
namespace runtime {
namespace {

/*! \brief Libraries in memory. One that is loaded again is the same memory, and one context. */
class OpenLibraries {
 public:
  static OpenLibraries& Global() {
    // Modules may outlive static objects, so this one is never destroyed.
    static auto* libraries = new OpenLibraries;
    return *libraries;
  }
  void* Open(const std::string& path, ModuleNode* module) {
    std::lock_guard lock(mutex_);
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    TVM_CHECK(handle != nullptr, RuntimeError) << "load_module: " << dlerror();
    auto& context = contexts_[handle];
    if (context == nullptr) context = std::make_unique<ModuleContext>();
    context->Attach(module);
    SetContext(handle, context.get());
    return handle;
  }
  void Close(void* handle, const std::string& path, ModuleNode* module) {
    std::lock_guard lock(mutex_);
    auto& context = contexts_[handle];
    context->Detach(module);
    dlclose(handle);
    // Someone else may have the library open; its code then still holds functions of the context.
    void* still_open = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (still_open != nullptr) {
      dlclose(still_open);
    } else if (context->empty()) {
      contexts_.erase(handle);
    }
  }

 private:
  static void SetContext(void* handle, ModuleContext* context) {
    auto** variable = static_cast<ModuleContext**>(dlsym(handle, kModuleContext));
    if (variable != nullptr) *variable = context;
  }

  std::mutex mutex_;
  std::unordered_map<void*, std::unique_ptr<ModuleContext>> contexts_;
};

class LibraryModuleNode final : public ModuleNode {
 public:
  explicit LibraryModuleNode(std::string path) : path_(std::move(path)) {
    // The library calls back into the runtime without being linked to it, so the runtime's symbols
    // must be visible to it.
    Dl_info info;
    if (dladdr(reinterpret_cast<void*>(&TVMBackendParallelLaunch), &info) != 0) {
      dlopen(info.dli_fname, RTLD_LAZY | RTLD_GLOBAL | RTLD_NOLOAD);
    }
    handle_ = OpenLibraries::Global().Open(path_, this);
  }
  ~LibraryModuleNode() override { OpenLibraries::Global().Close(handle_, path_, this); }

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
  String GetFormat() override { return "so"; }
  /*! \brief The modules that travel inside the library, null for a library without any. */
  const char* Imports() const { return static_cast<const char*>(dlsym(handle_, kModuleImports)); }
  TVM_DECLARE_OBJECT(LibraryModuleNode, ModuleNode, "runtime.LibraryModule");

 private:
  std::string path_;
  void* handle_ = nullptr;
};

// dlopen searches system folders for a name without a slash.
std::string AsFilePath(const std::string& path) {
  return path.find('/') == std::string::npos ? "./" + path : path;
}

}  // namespace

TVM_REGISTER_GLOBAL("runtime.module.loadfile_so")
    .set_body_typed([](std::string path, std::string format) {
      auto library = make_object<LibraryModuleNode>(AsFilePath(path));
      const char* imports = library->Imports();
      if (imports == nullptr) return Module(library);
      uint64_t size;
      std::memcpy(&size, imports, sizeof(size));
      return DeserializeModuleTree({imports + sizeof(size), size}, Module(library));
    });

}  // namespace runtime
}  // namespace tvm
