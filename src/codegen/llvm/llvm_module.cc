/*!
 * \file llvm_module.cc
 * \brief Runtime module over machine code that LLVM put into memory.
 */
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>

namespace tvm {
namespace codegen {

/*!
 * \brief Compiled code, whose texts and files come from the code that compiled it.
 *
 * `owner` is that code: called as owner("ll"), owner("asm") for texts, owner("save", path, format)
 * to write a file.
 */
class LLVMCodeNode : public runtime::ModuleNode {
 public:
  explicit LLVMCodeNode(PackedFunc owner) : owner_(std::move(owner)) {}

  const char* type_key() const final { return "llvm"; }
  String GetSource(const String& format) final {
    return owner_(format.empty() ? String("ll") : format);
  }
  String GetFormat() final { return "o"; }
  bool IsDSOExportable() const final { return true; }
  void SaveToFile(const String& path, const String& format) final {
    owner_(String("save"), path, format);
  }

  TVM_DECLARE_OBJECT(LLVMCodeNode, runtime::ModuleNode, "runtime.LLVMCode");

 protected:
  PackedFunc owner_;
};

/*!
 * \brief Functions by address. `owner` keeps their memory alive too, and `context` is the address
 * of the pointer through which they find this module.
 */
class LLVMModuleNode final : public LLVMCodeNode {
 public:
  LLVMModuleNode(Map<String, int64_t> addresses, int64_t context, PackedFunc owner)
      : LLVMCodeNode(owner), functions_(runtime::ModuleFromAddresses(addresses, owner)) {
    context_.Attach(this);
    *reinterpret_cast<runtime::ModuleContext**>(context) = &context_;
  }

  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) final {
    return functions_.get()->GetFunction(name, self);
  }
  Array<String> ListFunctionNames() final { return functions_.get()->ListFunctionNames(); }

  TVM_DECLARE_OBJECT(LLVMModuleNode, LLVMCodeNode, "runtime.LLVMModule");

 private:
  runtime::ModuleContext context_;
  runtime::Module functions_;
};

/*! \brief Functions for a processor that is not this one: they can be saved but not called. */
class ForeignLLVMModuleNode final : public LLVMCodeNode {
 public:
  ForeignLLVMModuleNode(Array<String> names, String machine, PackedFunc owner)
      : LLVMCodeNode(std::move(owner)), names_(std::move(names)), machine_(std::move(machine)) {}

  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) final {
    for (const String& known : names_) {
      TVM_CHECK(known != name && name != runtime::kModuleMain, RuntimeError)
          << "Module: function " << known << " is code for " << machine_
          << ", which does not run here; save it, or export_library with a compiler for it as cc";
    }
    return PackedFunc();
  }
  Array<String> ListFunctionNames() final { return names_; }

  TVM_DECLARE_OBJECT(ForeignLLVMModuleNode, LLVMCodeNode, "runtime.ForeignLLVMModule");

 private:
  Array<String> names_;
  String machine_;
};

TVM_REGISTER_GLOBAL("target.LLVMModule")
    .set_body_typed([](Map<String, int64_t> addresses, int64_t context, PackedFunc owner) {
      return runtime::Module(ObjectPtr<Object>(
          make_object<LLVMModuleNode>(std::move(addresses), context, std::move(owner))));
    });

TVM_REGISTER_GLOBAL("target.ForeignLLVMModule")
    .set_body_typed([](Array<String> names, String machine, PackedFunc owner) {
      return runtime::Module(ObjectPtr<Object>(make_object<ForeignLLVMModuleNode>(
          std::move(names), std::move(machine), std::move(owner))));
    });

// The just-in-time linker does not see libraries that Python loaded for itself, so it is told where
// the functions are that generated code calls.
TVM_REGISTER_GLOBAL("target.LLVMRuntimeSymbols").set_body_typed([]() {
  auto address = [](auto* function) { return reinterpret_cast<int64_t>(function); };
  return Map<String, int64_t>{
      {"TVMAPISetLastError", address(TVMAPISetLastError)},
      {"TVMAnyFree", address(TVMAnyFree)},
      {"TVMBackendAllocWorkspace", address(TVMBackendAllocWorkspace)},
      {"TVMBackendFreeWorkspace", address(TVMBackendFreeWorkspace)},
      {"TVMBackendGetFuncFromEnv", address(TVMBackendGetFuncFromEnv)},
      {"TVMBackendParallelLaunch", address(TVMBackendParallelLaunch)},
      {"TVMBackendRunOnce", address(TVMBackendRunOnce)},
      {"TVMBackendRegisterSystemLibSymbol", address(TVMBackendRegisterSystemLibSymbol)},
      {"TVMFuncCall", address(TVMFuncCall)},
  };
});

}  // namespace codegen
}  // namespace tvm
