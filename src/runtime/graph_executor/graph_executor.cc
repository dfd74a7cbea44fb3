#include <tvm/runtime/container/shape_tuple.h>
#include <tvm/runtime/graph_executor/graph_executor.h>
#include <tvm/runtime/logging.h>
#include <tvm/runtime/registry.h>

#include <optional>
#include <utility>

#include "../params.h"

namespace tvm {
namespace runtime {
namespace {

using relax_vm::ExecutableNode;
using relax_vm::TensorSpec;
using relax_vm::VMFunction;

class GraphExecutorNode final : public ModuleNode {
 public:
  GraphExecutorNode() = default;
  GraphExecutorNode(Module executable, DLDevice device)
      : executable_(std::move(executable)), device_(device) {
    for (const VMFunction& candidate : Program().functions) {
      if (function_ == nullptr || candidate.name == "main") function_ = &candidate;
    }
    TVM_CHECK(function_ != nullptr, ValueError) << "graph executor: the library has no function";
    for (int64_t id : function_->inputs) {
      const TensorSpec& spec = function_->tensors[id];
      inputs_.push_back(NDArray::Empty(spec.shape, DataType(spec.dtype), device));
    }
    given_outputs_.resize(function_->outputs.size());
    Prepare();
  }

  const char* type_key() const final { return "GraphExecutor"; }
  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) final;
  Array<String> ListFunctionNames() final {
    return {"set_input",
            "set_input_zero_copy",
            "set_output_zero_copy",
            "get_output",
            "get_input",
            "get_num_inputs",
            "get_num_outputs",
            "get_input_index",
            "get_output_info",
            "get_input_info",
            "run",
            "load_params",
            "share_params",
            "get_graph_json"};
  }

  TVM_DECLARE_OBJECT(GraphExecutorNode, ModuleNode, "GraphExecutor");

 private:
  const ExecutableNode& Program() const {
    return *static_cast<const ExecutableNode*>(executable_.get());
  }
  int64_t NumInputs() const {
    return static_cast<int64_t>(inputs_.size() + Program().constants.size());
  }

  void Prepare() {
    Module machine = relax_vm::CreateVirtualMachine(executable_, device_);
    run_ = machine.GetFunction(function_->name);
  }

  /*! \brief Number of an input by number or name, -1 for a name there is not. */
  int64_t Index(const Any& key) const {
    if (std::optional<int64_t> number = key.TryCast<int64_t>()) {
      TVM_CHECK(*number >= 0 && *number < NumInputs(), IndexError)
          << "graph executor: input " << *number << " of " << NumInputs();
      return *number;
    }
    const std::string name = key.cast<String>();
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (function_->input_names[i] == name) return static_cast<int64_t>(i);
    }
    for (size_t i = 0; i < Program().constants.size(); ++i) {
      if (name == "p" + std::to_string(i)) return static_cast<int64_t>(inputs_.size() + i);
    }
    return -1;
  }

  NDArray Input(int64_t index) const {
    const auto count = static_cast<int64_t>(inputs_.size());
    return index < count ? inputs_[index] : Program().constants[index - count];
  }

  static void CheckSame(const char* where, const NDArray& have, const NDArray& given) {
    const bool same = have.dtype() == given.dtype() && have.Shape().size() == given.Shape().size();
    bool equal = same;
    for (size_t i = 0; equal && i < have.Shape().size(); ++i) {
      equal = have.Shape()[i] == given.Shape()[i];
    }
    TVM_CHECK(equal, ValueError) << "graph executor: " << where << " takes " << have.dtype()
                                 << " of shape " << Text(have) << ", got " << given.dtype()
                                 << " of shape " << Text(given);
  }
  static std::string Text(const NDArray& array) {
    std::string text = "(";
    for (int64_t extent : array.Shape()) text += std::to_string(extent) + ", ";
    return text + ")";
  }

  /*! \brief Other constants, of this executor alone: its library stays as it is. */
  void ReplaceConstants(const std::vector<NDArray>& constants) {
    auto copy = make_object<ExecutableNode>(Program());
    copy->constants = constants;
    size_t place = function_ - Program().functions.data();
    executable_ = Module(ObjectPtr<Object>(copy));
    function_ = &Program().functions[place];
    Prepare();
  }

  void SetInput(const Any& key, const NDArray& value) {
    const int64_t index = Index(key);
    TVM_CHECK(index >= 0, ValueError)
        << "graph executor: there is no input \"" << key.cast<String>() << '"';
    const auto count = static_cast<int64_t>(inputs_.size());
    CheckSame("set_input", Input(index), value);
    if (index < count) {
      inputs_[index].CopyFrom(value.tensor());
      return;
    }
    std::vector<NDArray> constants = Program().constants;
    constants[index - count] = value.CopyTo(constants[index - count].device());
    ReplaceConstants(constants);
  }

  void LoadParams(const Map<String, NDArray>& params) {
    std::vector<NDArray> constants = Program().constants;
    const auto count = static_cast<int64_t>(inputs_.size());
    bool changed = false;
    for (const auto& [name, value] : params) {
      const int64_t index = Index(Any(name));
      if (index < 0) continue;
      CheckSame("load_params", Input(index), value);
      if (index < count) {
        inputs_[index].CopyFrom(value.tensor());
      } else {
        constants[index - count] = value;
        changed = true;
      }
    }
    if (changed) ReplaceConstants(constants);
  }

  void Run() {
    std::vector<Any> args;
    for (const NDArray& input : inputs_) args.emplace_back(input);
    Any result;
    run_.CallPacked(Args(args.data(), static_cast<int32_t>(args.size())), &result);
    outputs_.clear();
    if (std::optional<NDArray> single = result.TryCast<NDArray>()) {
      outputs_.push_back(*single);
    } else {
      for (const Any& output : result.cast<Array<Any>>()) {
        outputs_.push_back(output.cast<NDArray>());
      }
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (given_outputs_[i].defined()) given_outputs_[i].CopyFrom(outputs_[i].tensor());
    }
  }

  NDArray Output(int64_t index) const {
    const auto count = static_cast<int64_t>(function_->outputs.size());
    TVM_CHECK(index >= 0 && index < count, IndexError)
        << "graph executor: output " << index << " of " << count;
    TVM_CHECK(!outputs_.empty(), ValueError) << "graph executor: call run before get_output";
    return outputs_[index];
  }

  Map<String, Any> Info(bool inputs) const {
    Map<String, Any> shapes, dtypes;
    auto add = [&](const std::string& name, const std::vector<int64_t>& shape, DLDataType dtype) {
      shapes.Set(name, ShapeTuple(shape));
      dtypes.Set(name, String(DataType(dtype).ToString()));
    };
    const std::vector<int64_t>& ids = inputs ? function_->inputs : function_->outputs;
    for (size_t i = 0; i < ids.size(); ++i) {
      const TensorSpec& spec = function_->tensors[ids[i]];
      add(inputs ? function_->input_names[i] : "output" + std::to_string(i), spec.shape,
          spec.dtype);
    }
    return {{"shape", shapes}, {"dtype", dtypes}};
  }

  Module executable_;
  DLDevice device_{};
  const VMFunction* function_ = nullptr;
  PackedFunc run_;
  std::vector<NDArray> inputs_, outputs_, given_outputs_;
};

PackedFunc GraphExecutorNode::GetFunction(const String& name, const ObjectPtr<Object>& self) {
  // `self` keeps the executor alive as long as one of its functions is.
  auto bind = [&](auto body) {
    return PackedFunc([this, self, name, body](Args args, RetValue* ret) { body(args, ret); });
  };
  const std::string where = "graph executor: " + name.str();
  auto array = [where](Args args, int i) { return ReadArg<NDArray>(where.c_str(), args, i); };
  if (name == "set_input") {
    return bind([=, this](Args args, RetValue*) { SetInput(args[0], array(args, 1)); });
  }
  if (name == "set_input_zero_copy") {
    return bind([=, this](Args args, RetValue*) {
      const int64_t index = Index(args[0]);
      TVM_CHECK(index >= 0 && index < static_cast<int64_t>(inputs_.size()), ValueError)
          << where << ": not an input whose memory can be given";
      CheckSame("set_input_zero_copy", inputs_[index], array(args, 1));
      inputs_[index] = array(args, 1);
    });
  }
  if (name == "set_output_zero_copy") {
    return bind([=, this](Args args, RetValue*) {
      const auto index = ReadArg<int64_t>(where.c_str(), args, 0);
      TVM_CHECK(index >= 0 && index < static_cast<int64_t>(given_outputs_.size()), IndexError)
          << where << ": there is no output " << index;
      given_outputs_[index] = array(args, 1);
    });
  }
  if (name == "get_output" || name == "get_input") {
    const bool output = name == "get_output";
    return bind([=, this](Args args, RetValue* ret) {
      NDArray value;
      if (output) {
        value = Output(ReadArg<int64_t>(where.c_str(), args, 0));
      } else {
        const int64_t index = Index(args[0]);
        if (index < 0) return;
        value = Input(index);
      }
      if (args.size() < 2) {
        *ret = value;
      } else {
        array(args, 1).CopyFrom(value.tensor());
      }
    });
  }
  if (name == "get_num_inputs") {
    return bind([this](Args, RetValue* ret) { *ret = NumInputs(); });
  }
  if (name == "get_num_outputs") {
    return bind(
        [this](Args, RetValue* ret) { *ret = static_cast<int64_t>(function_->outputs.size()); });
  }
  if (name == "get_input_index") {
    return bind([this](Args args, RetValue* ret) { *ret = Index(args[0]); });
  }
  if (name == "get_input_info" || name == "get_output_info") {
    const bool inputs = name == "get_input_info";
    return bind([=, this](Args, RetValue* ret) { *ret = Info(inputs); });
  }
  if (name == "run") {
    return bind([this](Args, RetValue*) { Run(); });
  }
  if (name == "load_params") {
    return bind([=, this](Args args, RetValue*) {
      const PackedFunc* load = Registry::Get("runtime.LoadParams");
      LoadParams((*load)(args[0]).cast<Map<String, NDArray>>());
    });
  }
  if (name == "share_params") {
    return bind([=, this](Args args, RetValue*) {
      const Module other = ReadArg<Module>(where.c_str(), args, 0);
      TVM_CHECK(other.defined() && other->IsInstance<GraphExecutorNode>(), TypeError)
          << where << ": the other one is no graph executor";
      const auto& theirs = static_cast<const GraphExecutorNode*>(other.get())->Program().constants;
      TVM_CHECK(theirs.size() == Program().constants.size(), ValueError)
          << where << ": the other one has " << theirs.size() << " parameters, this one "
          << Program().constants.size();
      for (size_t i = 0; i < theirs.size(); ++i) {
        CheckSame("share_params", Program().constants[i], theirs[i]);
      }
      ReplaceConstants(theirs);
    });
  }
  if (name == "get_graph_json") {
    return bind([this](Args, RetValue* ret) { *ret = GraphJSON(Program()); });
  }
  return PackedFunc();
}

}  // namespace

Module CreateGraphExecutor(Module executable, DLDevice device) {
  TVM_CHECK(executable.defined() && executable->IsInstance<ExecutableNode>(), TypeError)
      << "graph executor: expected a compiled network, got a module of kind "
      << (executable.defined() ? executable->type_key() : "None");
  return Module(make_object<GraphExecutorNode>(std::move(executable), device));
}

TVM_REGISTER_GLOBAL("tvm.graph_executor.create_from_executable")
    .set_body_typed([](Module executable, DLDevice device) {
      return CreateGraphExecutor(std::move(executable), device);
    });

}  // namespace runtime
}  // namespace tvm
