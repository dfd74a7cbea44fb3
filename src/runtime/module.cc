#include <dlfcn.h>
#include <tvm/runtime/container/bytes.h>
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>
#include <unistd.h>

#include <functional>

#include "runtime/c_arguments.h"
#include "runtime/module_loader.h"

namespace tvm {
namespace runtime {

void ModuleNode::SaveToFile(const String& path, const String& format) {
  TVM_FATAL(ValueError) << "Module: a module of kind \"" << type_key()
                        << "\" cannot be saved to a file";
}

void ModuleNode::Import(Module other) {
  TVM_CHECK(other.defined(), ValueError) << "Module.import_module: got None";
  std::function<bool(const ModuleNode*)> reaches = [&](const ModuleNode* node) {
    if (node == this) return true;
    for (const Module& imported : node->imports()) {
      if (reaches(imported.get())) return true;
    }
    return false;
  };
  TVM_CHECK(!reaches(other.get()), ValueError)
      << "Module.import_module: the import would form a cycle";
  imports_.push_back(std::move(other));
}

PackedFunc Module::GetFunction(const String& name, bool query_imports) const {
  PackedFunc found = get()->GetFunction(name, object_ptr());
  if (found.defined() || !query_imports) return found;
  for (const Module& imported : get()->imports()) {
    found = imported.GetFunction(name, true);
    if (found.defined()) return found;
  }
  return found;
}

// A function "runtime.module.loadfile_<format>" reads files of that format.
constexpr std::string_view kLoaderPrefix = "runtime.module.loadfile_";

namespace {

/*! \brief Path of the shared library this function is in. */
std::string LibraryPath() {
  Dl_info info;
  ICHECK(dladdr(reinterpret_cast<void*>(&TVMBackendParallelLaunch), &info) != 0);
  return info.dli_fname;
}

}  // namespace

const PackedFunc* FindModuleLoader(std::string_view prefix, const std::string& kind) {
  const std::string name = std::string(prefix) + kind;
  if (const PackedFunc* loader = Registry::Get(name)) return loader;
  // Kinds may come from files: a name leads to no other folder.
  if (kind.find('/') != std::string::npos) return nullptr;
  const std::string own = LibraryPath();
  const std::string path = own.substr(0, own.rfind('/') + 1) + "libtvm_" + kind + ".so";
  if (dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) {
    const char* reason = dlerror();
    TVM_CHECK(access(path.c_str(), F_OK) != 0, ValueError)
        << "load_module: " << path << ", which loads modules of kind \"" << kind
        << "\", cannot be opened: " << reason;
  }
  return Registry::Get(name);
}

Module Module::LoadFromFile(const String& path, const String& format) {
  std::string kind = format;
  if (kind.empty()) {
    size_t dot = path.str().rfind('.');
    TVM_CHECK(dot != std::string::npos, ValueError)
        << "load_module: \"" << path << "\" has no extension; pass the format";
    kind = path.str().substr(dot + 1);
  }
  const PackedFunc* loader = FindModuleLoader(kLoaderPrefix, kind);
  if (loader == nullptr) {
    std::string known;
    for (const std::string& name : Registry::ListNames()) {
      if (name.rfind(kLoaderPrefix, 0) != 0) continue;
      known += (known.empty() ? "" : ", ") + name.substr(kLoaderPrefix.size());
    }
    TVM_FATAL(ValueError) << "load_module: no loader for the format \"" << kind << "\" of \""
                          << path << "\"; there are loaders for " << known;
  }
  return (*loader)(path, kind).cast<Module>();
}

namespace {

/*! \brief Calls a function of the C convention and keeps what it needs alive. */
class CFunctionObj final : public PackedFuncObj {
 public:
  CFunctionObj(String name, TVMPackedCFunc function, ObjectRef owner)
      : name_(std::move(name)), function_(function), owner_(std::move(owner)) {}

  void CallPacked(Args args, RetValue* ret) const override {
    CArguments values(args);
    TVMAny result{kTVMNull, 0, {0}};
    if (function_(values.data(), args.size(), &result) != 0) ThrowFailure();
    SetResult(result, ret);
  }
  using _Self = CFunctionObj;

 private:
  [[noreturn]] void ThrowFailure() const {
    const Error error = TakeLastError();
    throw Error(error.kind(), error.message(),
                error.backtrace() + (error.backtrace().empty() ? "" : "\n") +
                    "  compiled function " + name_.str(),
                error.origin());
  }

  String name_;
  TVMPackedCFunc function_;
  ObjectRef owner_;
};

class AddressModuleNode final : public ModuleNode {
 public:
  AddressModuleNode(Map<String, int64_t> addresses, ObjectRef owner, String source)
      : addresses_(std::move(addresses)), owner_(std::move(owner)), source_(std::move(source)) {}

  const char* type_key() const override { return "jit"; }
  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) override {
    std::optional<int64_t> address = addresses_.Get(name);
    if (!address && name == kModuleMain && addresses_.size() == 1) {
      address = (*addresses_.begin()).second;
    }
    if (!address) return PackedFunc();
    return PackedFuncFromAddress(name, reinterpret_cast<TVMPackedCFunc>(*address), ObjectRef(self));
  }
  Array<String> ListFunctionNames() override {
    Array<String> names;
    for (const auto& [name, address] : addresses_) names.push_back(name);
    return names;
  }
  String GetSource(const String& format) override { return source_; }
  TVM_DECLARE_OBJECT(AddressModuleNode, ModuleNode, "runtime.AddressModule");

 private:
  Map<String, int64_t> addresses_;
  ObjectRef owner_;
  String source_;
};

}  // namespace

PackedFunc PackedFuncFromAddress(String name, TVMPackedCFunc function, ObjectRef owner) {
  ICHECK(function != nullptr) << "function " << name << " has no address";
  return PackedFunc(
      ObjectPtr<Object>(make_object<CFunctionObj>(std::move(name), function, std::move(owner))));
}

Module ModuleFromAddresses(const Map<String, int64_t>& addresses, ObjectRef owner, String source) {
  for (const auto& [name, address] : addresses) {
    TVM_CHECK(address != 0, ValueError)
        << "runtime.ModuleFromAddresses: function " << name << " has a null address";
  }
  return Module(ObjectPtr<Object>(
      make_object<AddressModuleNode>(addresses, std::move(owner), std::move(source))));
}

TVM_REGISTER_GLOBAL("runtime.ModuleFromAddresses")
    .set_body_typed([](Map<String, int64_t> addresses, ObjectRef owner, String source) {
      return ModuleFromAddresses(addresses, std::move(owner), std::move(source));
    });

TVM_REGISTER_GLOBAL("runtime.ModuleGetFunction")
    .set_body_typed([](Module mod, String name, bool query_imports) {
      return mod.GetFunction(name, query_imports);
    });

TVM_REGISTER_GLOBAL("runtime.ModuleListFunctionNames").set_body_typed([](Module mod) {
  return mod->ListFunctionNames();
});

TVM_REGISTER_GLOBAL("runtime.ModuleGetSource").set_body_typed([](Module mod, String format) {
  return mod->GetSource(format);
});

TVM_REGISTER_GLOBAL("runtime.ModuleGetTypeKey").set_body_typed([](Module mod) {
  return String(mod->type_key());
});

TVM_REGISTER_GLOBAL("runtime.ModuleGetFormat").set_body_typed([](Module mod) {
  return mod->GetFormat();
});

TVM_REGISTER_GLOBAL("runtime.ModuleIsDSOExportable").set_body_typed([](Module mod) {
  return mod->IsDSOExportable();
});

TVM_REGISTER_GLOBAL("runtime.ModuleImport").set_body_typed([](Module mod, Module other) {
  mod.Import(std::move(other));
});

TVM_REGISTER_GLOBAL("runtime.ModuleImportSize").set_body_typed([](Module mod) {
  return static_cast<int64_t>(mod->imports().size());
});

TVM_REGISTER_GLOBAL("runtime.ModuleGetImport").set_body_typed([](Module mod, int64_t index) {
  if (index < 0 || index >= static_cast<int64_t>(mod->imports().size())) {
    ThrowIndexError(index, mod->imports().size());
  }
  return mod->imports()[static_cast<size_t>(index)];
});

/*! \brief A module and its imports as bytes, for a linker to put under kModuleImports. */
TVM_REGISTER_GLOBAL("runtime.ModuleSerializeTree").set_body_typed([](Module mod) {
  return Bytes(SerializeModuleTree(mod));
});

/*! \brief Inverse, for a tree without modules that a linker has to link. */
TVM_REGISTER_GLOBAL("runtime.ModuleDeserializeTree").set_body_typed([](String bytes) {
  return DeserializeModuleTree(bytes.str(), Module());
});

TVM_REGISTER_GLOBAL("runtime.ModuleLoadFromFile").set_body_typed([](String path, String format) {
  return Module::LoadFromFile(path, format);
});

TVM_REGISTER_GLOBAL("runtime.ModuleSaveToFile")
    .set_body_typed([](Module mod, String path, String format) { mod->SaveToFile(path, format); });

/*! \brief True if code for this kind of target can run here. */
TVM_REGISTER_GLOBAL("runtime.RuntimeEnabled").set_body_typed([](std::string target) {
  if (target == "cpu" || target == "llvm" || target == "c") return true;
  if (target == "stackvm") return FindModuleLoader(kLoaderPrefix, target) != nullptr;
  if (target == "cuda") {
    // Its device API is always built in; the driver and a device need not be there.
    Device device{kDLCUDA, 0};
    return DeviceAPI::Get(device)->GetAttr(device, DeviceAttrKind::kExist).cast<bool>();
  }
  return Registry::Get("device_api." + target) != nullptr;
});

/*! \brief A module as its own bytes, without imports; the inverse of LoadFromBinary. */
TVM_REGISTER_GLOBAL("runtime.ModuleSaveToBinary").set_body_typed([](Module mod) {
  ByteWriter writer;
  mod->SaveToBinary(&writer);
  return Bytes(std::move(writer.bytes));
});

TVM_REGISTER_GLOBAL("runtime.GetLibraryPath").set_body_typed([]() {
  return String(LibraryPath());
});

}  // namespace runtime
}  // namespace tvm
