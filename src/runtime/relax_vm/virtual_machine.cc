#include <tvm/runtime/container/map.h>
#include <tvm/runtime/logging.h>
#include <tvm/runtime/profiling.h>
#include <tvm/runtime/registry.h>
#include <tvm/runtime/relax_vm/executable.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "function_state.h"
#include "program_runner.h"

namespace tvm {
namespace runtime {
namespace relax_vm {
namespace {

class VirtualMachineNode final : public ModuleNode {
 public:
  VirtualMachineNode() = default;
  VirtualMachineNode(Module executable, DLDevice device)
      : executable_(std::move(executable)), device_(device) {
    const auto& program = *static_cast<ExecutableNode*>(executable_.get());
    for (const VMFunction& function : program.functions) {
      states_.emplace(function.name, std::make_shared<FunctionState>(program, function, device));
    }
    // The runner lives as long as the states do, and functions of either keep the machine alive.
    runner_ = std::make_unique<ProgramRunner>(program, device, [this](const std::string& name) {
      const auto found = states_.find(name);
      if (found == states_.end()) return PackedFunc();
      std::shared_ptr<FunctionState> state = found->second;
      return PackedFunc([state](Args args, RetValue* ret) { state->Run(args, ret); });
    });
    imports_ = {executable_};
  }

  const char* type_key() const final { return "relax.VirtualMachine"; }
  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) final {
    const auto state = states_.find(name.str());
    if (state != states_.end()) {
      return PackedFunc(
          [state = state->second, self](Args args, RetValue* ret) { state->Run(args, ret); });
    }
    const int program = runner_->Find(name);
    if (program >= 0) {
      return PackedFunc([this, self, program](Args args, RetValue* ret) {
        *ret = runner_->Run(program, Module(self), args);
      });
    }
    const auto saved = saved_.find(name.str());
    if (saved == saved_.end()) return Service(name, self);
    return PackedFunc([function = saved->second, self](Args args, RetValue* ret) {
      function.CallPacked(args, ret);
    });
  }
  Array<String> ListFunctionNames() final {
    return static_cast<ExecutableNode*>(executable_.get())->FunctionNames();
  }
  profiling::Report Profile(const String& name, Array<profiling::MetricCollector> collectors,
                            Args args) {
    CheckName("VirtualMachine.profile", name);
    if (args.size() == 0 && inputs_.count(name.str()) != 0) args = Inputs(name);
    const auto state = states_.find(name.str());
    if (state != states_.end()) return state->second->Profile(std::move(collectors), args);
    profiling::Profiler profiler({device_}, std::move(collectors),
                                 {{"Executor", Any(String("relax VM"))}, {"Function", Any(name)}});
    profiler.Start();
    runner_->Run(runner_->Find(name), Self(), args, &profiler);
    profiler.Stop();
    return profiler.Report();
  }

  TVM_DECLARE_OBJECT(VirtualMachineNode, ModuleNode, "relax.VirtualMachine");

 private:
  bool Has(const std::string& name) const {
    return states_.count(name) != 0 || runner_->Find(name) >= 0;
  }
  void CheckName(const char* who, const std::string& name) const {
    TVM_CHECK(Has(name), ValueError) << who << ": no function '" << name << "'";
  }
  Module Self() { return Module(ObjectPtr<Object>(this)); }
  Args Inputs(const std::string& name) const {
    const std::vector<Any>& kept = inputs_.at(name);
    return Args(kept.data(), static_cast<int32_t>(kept.size()));
  }
  Any Call(const std::string& name, Args args) {
    const auto state = states_.find(name);
    if (state == states_.end()) return runner_->Run(runner_->Find(name), Self(), args);
    Any result;
    state->second->Run(args, &result);
    return result;
  }

  /*! \brief Functions that every machine has; null for another name. */
  PackedFunc Service(const String& name, const ObjectPtr<Object>& self) {
    auto make = [&self](auto body) {
      return PackedFunc([self, body](Args args, RetValue* ret) { body(args, ret); });
    };
    if (name == "set_input") {
      return make([this](Args args, RetValue*) { SetInput(args); });
    }
    if (name == "invoke_stateful") {
      return make([this](Args args, RetValue*) {
        const std::string function = ReadArg<String>("invoke_stateful", args, 0).str();
        TVM_CHECK(inputs_.count(function) != 0, ValueError)
            << "VirtualMachine.invoke_stateful: '" << function
            << "' has no inputs; set_input first";
        outputs_[function] = Call(function, Inputs(function));
      });
    }
    if (name == "get_output_arity" || name == "get_output") {
      const bool arity = name == "get_output_arity";
      return make([this, arity](Args args, RetValue* ret) {
        const Any output = Output(args);
        const auto* fields = output.as<ArrayNode>();
        if (arity) {
          *ret = fields == nullptr ? int64_t{-1}
                                   : static_cast<int64_t>(output.cast<Array<Any>>().size());
        } else {
          *ret = output;
        }
      });
    }
    if (name == "invoke_closure") {
      return make([](Args args, RetValue* ret) {
        ReadArg<PackedFunc>("invoke_closure", args, 0).CallPacked(args.slice(1), ret);
      });
    }
    if (name == "save_function") {
      return make([this](Args args, RetValue*) { SaveFunction(args); });
    }
    if (name == "run_once") {
      return make([this](Args args, RetValue* ret) { *ret = RunOnce(args); });
    }
    if (name == "set_instrument") {
      return make([this](Args args, RetValue*) {
        runner_->instrument = ReadArg<PackedFunc>("set_instrument", args, 0);
      });
    }
    if (name == "profile") {
      return make([this](Args args, RetValue* ret) {
        *ret = Profile(ReadArg<String>("profile", args, 0), {}, args.slice(1))->AsJSON();
      });
    }
    return PackedFunc();
  }

  /*! \brief (number, function) -> what the function gave when it was first asked for. */
  Any RunOnce(Args args) {
    const int64_t number = ReadArg<int64_t>("run_once", args, 0);
    const std::lock_guard<std::mutex> lock(once_mutex_);
    const auto found = once_.find(number);
    if (found != once_.end()) return found->second;
    Any result;
    ReadArg<PackedFunc>("run_once", args, 1).CallPacked(Args(nullptr, 0), &result);
    return once_.emplace(number, std::move(result)).first->second;
  }

  void SetInput(Args args) {
    const std::string name = ReadArg<String>("set_input", args, 0).str();
    CheckName("VirtualMachine.set_input", name);
    std::vector<Any>& kept = inputs_[name];
    kept.clear();
    for (const Any& value : args.slice(1)) {
      // Tensors that the caller lends are gone when the function is called.
      kept.push_back(value.type_code() == kTVMDLTensor ? Copied(*value.cast<DLTensor*>()) : value);
    }
  }
  static Any Copied(const DLTensor& tensor) {
    NDArray copy = NDArray::Empty({tensor.shape, tensor.shape + tensor.ndim},
                                  DataType(tensor.dtype), tensor.device);
    copy.CopyFrom(&tensor);
    return copy;
  }
  /*! \brief A part of the last result: the name of the function, then numbers of fields. */
  Any Output(Args args) const {
    const std::string name = ReadArg<String>("get_output", args, 0).str();
    const auto found = outputs_.find(name);
    TVM_CHECK(found != outputs_.end(), ValueError)
        << "VirtualMachine.get_output: '" << name << "' was not run; invoke_stateful first";
    Any value = found->second;
    for (int i = 1; i < args.size(); ++i) {
      const int64_t field = ReadArg<int64_t>("get_output", args, i);
      TVM_CHECK(value.as<ArrayNode>() != nullptr, ValueError)
          << "VirtualMachine.get_output: the value is no tuple, so it has no field " << field;
      const Array<Any> fields = value.cast<Array<Any>>();
      TVM_CHECK(field >= 0 && field < static_cast<int64_t>(fields.size()), IndexError)
          << "VirtualMachine.get_output: no field " << field << " of " << fields.size();
      value = fields[field];
    }
    return value;
  }
  /*! \brief Keeps a call with its arguments: function, name to keep it by, whether to return. */
  void SaveFunction(Args args) {
    const std::string name = ReadArg<String>("save_function", args, 0).str();
    const std::string saved = ReadArg<String>("save_function", args, 1).str();
    const bool returns = ReadArg<bool>("save_function", args, 2);
    CheckName("VirtualMachine.save_function", name);
    const Args rest = args.slice(3);
    std::vector<Any> values(rest.begin(), rest.end());
    // A strong reference would keep the machine alive for ever.
    saved_[saved] = PackedFunc([this, name, returns, values](Args, RetValue* ret) {
      Any result = Call(name, Args(values.data(), static_cast<int32_t>(values.size())));
      if (returns) *ret = std::move(result);
    });
  }

  Module executable_;
  DLDevice device_{kDLCPU, 0};
  std::map<std::string, std::shared_ptr<FunctionState>> states_;
  std::unique_ptr<ProgramRunner> runner_;
  std::map<std::string, std::vector<Any>> inputs_;
  std::map<std::string, Any> outputs_;
  std::map<std::string, PackedFunc> saved_;
  std::mutex once_mutex_;
  std::map<int64_t, Any> once_;
};

VirtualMachineNode* AsMachine(const Module& module) {
  TVM_CHECK(module.defined() && module->IsInstance<VirtualMachineNode>(), TypeError)
      << "VirtualMachine.profile: expected a virtual machine";
  return static_cast<VirtualMachineNode*>(module.get());
}

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
  VirtualMachineNode* machine = AsMachine(ReadArg<Module>("runtime.relax_vm.Profile", args, 0));
  const String name = ReadArg<String>("runtime.relax_vm.Profile", args, 1);
  *ret = machine->Profile(
      name, ReadArg<Array<profiling::MetricCollector>>("runtime.relax_vm.Profile", args, 2),
      args.slice(3));
});

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
