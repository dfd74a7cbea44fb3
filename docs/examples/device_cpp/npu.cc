/*!
 * \file npu.cc
 * \brief A device added from a library of its own: memory, target kind, language, module.
 *
 * Compile it against the compiler's headers and libraries (tvm._ffi.libinfo finds both), load the
 * result into a process that has imported tvm, and
 * `tvm.build(..., target=tvm.target.Target("npu", host="llvm"))` works. The chip itself is played
 * by the compiler's interpreter, which is handed the same kernels that are printed.
 *
 *     c++ -std=c++20 -shared -fPIC -I include npu.cc -o libnpu.so -L lib -ltvm -ltvm_runtime
 */
#include <tvm/codegen/codegen_c.h>
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>
#include <tvm/target/target_kind.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

namespace npu {

using namespace tvm;           // NOLINT
using namespace tvm::runtime;  // NOLINT

constexpr int kNpu = 41;

class NpuDeviceAPI final : public DeviceAPI {
 public:
  Any GetAttr(Device device, DeviceAttrKind kind) override {
    return kind == DeviceAttrKind::kExist ? Any(true) : Any();
  }
  void* AllocDataSpace(Device device, size_t bytes, size_t alignment) override {
    return std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
  }
  void FreeDataSpace(Device device, void* data) override { std::free(data); }
  void CopyBytes(const void* from, Device from_device, void* to, Device to_device, size_t bytes,
                 StreamHandle stream) override {
    std::memcpy(to, from, bytes);
  }
};

class CodeGenNpu final : public codegen::CodeGenC {
 public:
  using CodeGenC::CodeGenC;

 protected:
  std::string LanguageName() const override { return "npu"; }
  std::string FunctionPrefix(const tir::PrimFunc& func, bool exported) override {
    return "__npu__ " + CodeGenC::FunctionPrefix(func, exported);
  }
  std::string ThreadIndex(const std::string& tag) override { return "npu_index(\"" + tag + "\")"; }
  void StorageSync(const std::string& scope) override { Line("npu_barrier();"); }
};

class NpuModuleNode final : public ModuleNode {
 public:
  NpuModuleNode(std::string source, Module chip)
      : source_(std::move(source)), chip_(std::move(chip)) {}
  const char* type_key() const override { return "npu"; }
  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) override {
    return chip_.GetFunction(name);
  }
  String GetSource(const String& format) override { return source_; }
  TVM_DECLARE_OBJECT(NpuModuleNode, ModuleNode, "npu.Module");

 private:
  std::string source_;
  Module chip_;
};

Module BuildNpu(IRModule mod, Target target) {
  CodeGenNpu generator(target);
  std::string source = codegen::PrintModule(&generator, mod);
  Module chip = (*Registry::Get("target.build.stackvm"))(mod, target).cast<Module>();
  return Module(ObjectPtr<Object>(make_object<NpuModuleNode>(std::move(source), std::move(chip))));
}

const bool registered = DeviceAPI::Register(kNpu, new NpuDeviceAPI());
TVM_REGISTER_TARGET_KIND("npu", kNpu).set_default_keys({"npu"}).add_option("lanes", "int");
TVM_REGISTER_GLOBAL("target.build.npu").set_body_typed(BuildNpu);
TVM_REGISTER_GLOBAL("device_api.npu").set_body_typed([]() {
  return static_cast<void*>(DeviceAPI::TryGet(kNpu));
});

}  // namespace npu
