#include <tvm/runtime/logging.h>
#include <tvm/runtime/profiling.h>
#include <tvm/runtime/registry.h>
#include <tvm/runtime/relax_vm/executable.h>

#include <memory>
#include <utility>
#include <vector>

#include "function_state.h"

namespace tvm {
namespace runtime {
namespace relax_vm {
namespace {

class VirtualMachineNode final : public ModuleNode {
 public:
  VirtualMachineNode() = default;
  VirtualMachineNode(Module executable, DLDevice device) : executable_(std::move(executable)) {
    const auto& program = *static_cast<ExecutableNode*>(executable_.get());
    for (const VMFunction& function : program.functions) {
      states_.push_back(std::make_shared<FunctionState>(program, function, device));
      names_.push_back(function.name);
    }
    imports_ = {executable_};
  }

  const char* type_key() const final { return "relax.VirtualMachine"; }
  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) final {
    std::shared_ptr<FunctionState> state = Find(name);
    if (state == nullptr) return PackedFunc();
    return PackedFunc([state, self](Args args, RetValue* ret) { state->Run(args, ret); });
  }
  Array<String> ListFunctionNames() final { return names_; }
  std::shared_ptr<FunctionState> Find(const String& name) const {
    for (size_t i = 0; i < states_.size(); ++i) {
      if (names_[i] == name) return states_[i];
    }
    return nullptr;
  }

  TVM_DECLARE_OBJECT(VirtualMachineNode, ModuleNode, "relax.VirtualMachine");

 private:
  Module executable_;
  Array<String> names_;
  std::vector<std::shared_ptr<FunctionState>> states_;
};

}  // namespace

Module CreateVirtualMachine(Module executable, DLDevice device) {
  TVM_CHECK(executable.defined() && executable->IsInstance<ExecutableNode>(), TypeError)
      << "VirtualMachine: expected a relax executable, got a module of kind "
      << (executable.defined() ? executable->type_key() : "None");
  return Module(make_object<VirtualMachineNode>(std::move(executable), device));
}

TVM_REGISTER_GLOBAL("runtime.relax_vm.VirtualMachine")
    .set_body_typed([](Module executable, DLDevice device) {
      return CreateVirtualMachine(std::move(executable), device);
    });
/*! \brief (machine, function name, metric collectors, arguments...) -> report. */
TVM_REGISTER_GLOBAL("runtime.relax_vm.Profile").set_body([](Args args, RetValue* ret) {
  const Module module = ReadArg<Module>("runtime.relax_vm.Profile", args, 0);
  const String name = ReadArg<String>("runtime.relax_vm.Profile", args, 1);
  TVM_CHECK(module.defined() && module->IsInstance<VirtualMachineNode>(), TypeError)
      << "VirtualMachine.profile: expected a virtual machine";
  std::shared_ptr<FunctionState> state = static_cast<VirtualMachineNode*>(module.get())->Find(name);
  TVM_CHECK(state != nullptr, ValueError) << "VirtualMachine.profile: no function '" << name << "'";
  *ret = state->Profile(
      ReadArg<Array<profiling::MetricCollector>>("runtime.relax_vm.Profile", args, 2),
      args.slice(3));
});

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
