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
 * \brief Functions by address; text and files come from the code that compiled them.
 *
 * `owner` is that code: called as owner("ll"), owner("asm") for texts, owner("save", path, format)
 * to write a file. It also keeps the memory of the functions alive. `context` is the address of the
 * pointer through which the functions find this module.
 */
class LLVMModuleNode final : public runtime::ModuleNode {
 public:
  LLVMModuleNode(Map<String, int64_t> addresses, int64_t context, PackedFunc owner)
      : functions_(runtime::ModuleFromAddresses(addresses, owner)), owner_(std::move(owner)) {
    context_.Attach(this);
    *reinterpret_cast<runtime::ModuleContext**>(context) = &context_;
  }

  const char* type_key() const final { return "llvm"; }
  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) final {
    return functions_.get()->GetFunction(name, self);
  }
  Array<String> ListFunctionNames() final { return functions_.get()->ListFunctionNames(); }
  String GetSource(const String& format) final {
    return owner_(format.empty() ? String("ll") : format);
  }
  String GetFormat() final { return "o"; }
  void SaveToFile(const String& path, const String& format) final {
    owner_(String("save"), path, format);
  }

  TVM_DECLARE_OBJECT(LLVMModuleNode, runtime::ModuleNode, "runtime.LLVMModule");

 private:
  runtime::ModuleContext context_;
  runtime::Module functions_;
  PackedFunc owner_;
};

TVM_REGISTER_GLOBAL("target.LLVMModule")
    .set_body_typed([](Map<String, int64_t> addresses, int64_t context, PackedFunc owner) {
      return runtime::Module(ObjectPtr<Object>(
          make_object<LLVMModuleNode>(std::move(addresses), context, std::move(owner))));
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
      {"TVMFuncCall", address(TVMFuncCall)},
  };
});

}  // namespace codegen
}  // namespace tvm
