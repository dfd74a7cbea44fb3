/*!
 * \file library_module.cc
 * \brief Modules in shared libraries of the operating system.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <unordered_map>

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
    std::string name = path;
    Stamp stamp = StampOf(path);
    void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    auto known = libraries_.find(handle);
    if (handle != nullptr && known != libraries_.end() && known->second.stamp != stamp) {
      // The system knows libraries by their names, and would go on using the file that was there.
      dlclose(handle);
      name = Copy(path);
      handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
      std::filesystem::remove(name);
    }
    TVM_CHECK(handle != nullptr, RuntimeError) << "load_module: " << dlerror();
    Library& library = libraries_[handle];
    if (library.context == nullptr) library = {name, stamp, std::make_unique<ModuleContext>()};
    library.context->Attach(module);
    SetContext(handle, library.context.get());
    return handle;
  }
  void Close(void* handle, ModuleNode* module) {
    std::lock_guard lock(mutex_);
    Library& library = libraries_.at(handle);
    library.context->Detach(module);
    dlclose(handle);
    // Someone else may have the library open; its code then still holds functions of the context.
    void* still_open = dlopen(library.name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (still_open != nullptr) dlclose(still_open);
    if (still_open != handle && library.context->empty()) libraries_.erase(handle);
  }

 private:
  /*! \brief What tells a file from another one that takes its name. */
  using Stamp = std::tuple<dev_t, ino_t, off_t, time_t, int64_t>;
  struct Library {
    std::string name;  // under which the system knows it
    Stamp stamp;
    std::unique_ptr<ModuleContext> context;
  };

  static Stamp StampOf(const std::string& path) {
    struct stat file{};
    if (stat(path.c_str(), &file) != 0) return {};
    return {file.st_dev, file.st_ino, file.st_size, file.st_mtim.tv_sec, file.st_mtim.tv_nsec};
  }
  static std::string Copy(const std::string& path) {
    std::string name = (std::filesystem::temp_directory_path() / "tvm-library-XXXXXX").string();
    int file = mkstemp(name.data());
    TVM_CHECK(file >= 0, RuntimeError)
        << "load_module: no temporary file to copy " << path << " to";
    close(file);
    std::filesystem::copy_file(path, name, std::filesystem::copy_options::overwrite_existing);
    return name;
  }
  static void SetContext(void* handle, ModuleContext* context) {
    auto** variable = static_cast<ModuleContext**>(dlsym(handle, kModuleContext));
    if (variable != nullptr) *variable = context;
  }

  std::mutex mutex_;
  std::unordered_map<void*, Library> libraries_;
};

class LibraryModuleNode final : public ModuleNode {
 public:
  explicit LibraryModuleNode(const std::string& path) {
    // The library calls back into the runtime without being linked to it, so the runtime's symbols
    // must be visible to it.
    Dl_info info;
    if (dladdr(reinterpret_cast<void*>(&TVMBackendParallelLaunch), &info) != 0) {
      dlopen(info.dli_fname, RTLD_LAZY | RTLD_GLOBAL | RTLD_NOLOAD);
    }
    handle_ = OpenLibraries::Global().Open(path, this);
  }
  ~LibraryModuleNode() override { OpenLibraries::Global().Close(handle_, this); }

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
