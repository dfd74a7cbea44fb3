/*!
 * \file llvm_module.cc
 * \brief Runtime module over machine code that LLVM put into memory.
 */
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>

namespace tvm {
namespace codegen {

/*!
 * \brief Functions by address; text and files come from the code that compiled them.
 *
 * `owner` is that code: called as owner("ll"), owner("asm") for texts, owner("save", path, format)
 * to write a file. It also keeps the memory of the functions alive.
 */
class LLVMModuleNode final : public runtime::ModuleNode {
 public:
  LLVMModuleNode(Map<String, int64_t> addresses, PackedFunc owner)
      : addresses_(std::move(addresses)), owner_(std::move(owner)) {}

  const char* type_key() const final { return "llvm"; }

  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) final {
    auto address = addresses_.Get(name);
    // A module of one function also answers to the name runners ask for by default.
    if (!address && name == runtime::kModuleMain && addresses_.size() == 1) {
      address = (*addresses_.begin()).second;
    }
    if (!address) return PackedFunc(nullptr);
    return runtime::PackedFuncFromAddress(name, reinterpret_cast<TVMPackedCFunc>(*address),
                                          ObjectRef(self));
  }

  Array<String> ListFunctionNames() final {
    Array<String> names;
    for (const auto& entry : addresses_) names.push_back(entry.first);
    return names;
  }

  String GetSource(const String& format) final {
    return owner_(format.empty() ? String("ll") : format);
  }

  String GetFormat() final { return "o"; }

  void SaveToFile(const String& path, const String& format) final {
    owner_(String("save"), path, format);
  }

  TVM_DECLARE_OBJECT(LLVMModuleNode, runtime::ModuleNode, "runtime.LLVMModule");

 private:
  Map<String, int64_t> addresses_;
  PackedFunc owner_;
};

TVM_REGISTER_GLOBAL("target.llvm.Module")
    .set_body_typed([](Map<String, int64_t> addresses, PackedFunc owner) {
      return runtime::Module(make_object<LLVMModuleNode>(addresses, owner));
    });

}  // namespace codegen
}  // namespace tvm
