#include <tvm/runtime/container/shape_tuple.h>
#include <tvm/runtime/logging.h>
#include <tvm/runtime/registry.h>

#include <optional>
#include <utility>

#include "../params.h"
#include "graph_executor_node.h"

namespace tvm {
namespace runtime {
namespace {

using relax_vm::ExecutableNode;
using relax_vm::TensorSpec;

std::string ShapeText(const NDArray& array) {
  std::string text = "(";
  for (int64_t extent : array.Shape()) text += std::to_string(extent) + ", ";
  return text + ")";
}

void CheckSame(const char* where, const NDArray& have, const NDArray& given) {
  TVM_CHECK(have.dtype() == given.dtype() && have.Shape() == given.Shape(), ValueError)
      << "graph executor: " << where << " takes " << have.dtype() << " of shape " << ShapeText(have)
      << ", got " << given.dtype() << " of shape " << ShapeText(given);
}

}  // namespace

GraphExecutorNode::GraphExecutorNode(Module executable, Graph graph, DLDevice device)
    : executable_(std::move(executable)), graph_(std::move(graph)), device_(device) {
  Prepare();
  for (int64_t id : function_->inputs) {
    const TensorSpec& spec = function_->tensors[id];
    inputs_.push_back(NDArray::Empty(spec.shape, DataType(spec.dtype), device));
  }
  given_outputs_.resize(function_->outputs.size());
}

void GraphExecutorNode::Prepare() {
  function_ = &MainFunction(Program());
  state_ = std::make_shared<relax_vm::FunctionState>(Program(), *function_, device_);
  ++version_;
}

/*! \brief Number of an input by number or name, -1 for a name there is not. */
int64_t GraphExecutorNode::Index(const Any& key) const {
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

NDArray GraphExecutorNode::Input(int64_t index) const {
  const auto count = static_cast<int64_t>(inputs_.size());
  return index < count ? inputs_[index] : Program().constants[index - count];
}

/*! \brief Other constants, of this executor alone: its library stays as it is. */
void GraphExecutorNode::ReplaceConstants(const std::vector<NDArray>& constants) {
  auto copy = make_object<ExecutableNode>(Program());
  copy->constants = constants;
  executable_ = Module(ObjectPtr<Object>(copy));
  Prepare();
}

void GraphExecutorNode::SetInput(const Any& key, const NDArray& value) {
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

void GraphExecutorNode::LoadParams(const Map<String, NDArray>& params) {
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

void GraphExecutorNode::Bind() {
  const std::vector<Any> args(inputs_.begin(), inputs_.end());
  bound_outputs_.clear();
  for (const Any& output : state_->Bind(Args(args.data(), static_cast<int32_t>(args.size())))) {
    bound_outputs_.push_back(output.cast<NDArray>());
  }
}

void GraphExecutorNode::Finish() {
  outputs_ = bound_outputs_;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (given_outputs_[i].defined()) given_outputs_[i].CopyFrom(outputs_[i].tensor());
  }
}

void GraphExecutorNode::Run() {
  Bind();
  state_->LaunchAll();
  Finish();
}

NDArray GraphExecutorNode::Output(int64_t index) const {
  const auto count = static_cast<int64_t>(function_->outputs.size());
  TVM_CHECK(index >= 0 && index < count, IndexError)
      << "graph executor: output " << index << " of " << count;
  TVM_CHECK(!outputs_.empty(), ValueError) << "graph executor: call run before get_output";
  return outputs_[index];
}

Map<String, Any> GraphExecutorNode::Info(bool inputs) const {
  Map<String, Any> shapes, dtypes;
  auto add = [&](const std::string& name, const std::vector<int64_t>& shape, DLDataType dtype) {
    shapes.Set(name, ShapeTuple(shape));
    dtypes.Set(name, String(DataType(dtype).ToString()));
  };
  const std::vector<int64_t>& ids = inputs ? function_->inputs : function_->outputs;
  for (size_t i = 0; i < ids.size(); ++i) {
    const TensorSpec& spec = function_->tensors[ids[i]];
    add(inputs ? function_->input_names[i] : "output" + std::to_string(i), spec.shape, spec.dtype);
  }
  return {{"shape", shapes}, {"dtype", dtypes}};
}

Array<String> GraphExecutorNode::ListFunctionNames() {
  return {"set_input",      "set_input_zero_copy", "set_output_zero_copy", "get_output",
          "get_input",      "get_num_inputs",      "get_num_outputs",      "get_input_index",
          "get_input_name", "get_output_info",     "get_input_info",       "run",
          "load_params",    "share_params",        "get_graph_json"};
}

PackedFunc GraphExecutorNode::GetFunction(const String& name, const ObjectPtr<Object>& self) {
  // `self` keeps the executor alive as long as one of its functions is.
  auto bind = [&](auto body) {
    return PackedFunc([this, self, name, body](Args args, RetValue* ret) { body(args, ret); });
  };
  const std::string where = Where(name);
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
      ++version_;
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
  if (name == "get_input_name") {
    return bind([=, this](Args args, RetValue* ret) {
      const int64_t index = Index(ReadArg<int64_t>(where.c_str(), args, 0));
      const auto count = static_cast<int64_t>(inputs_.size());
      *ret = index < count ? String(function_->input_names[index])
                           : String("p" + std::to_string(index - count));
    });
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
    return bind([this](Args, RetValue* ret) { *ret = String(graph_.ToJSON()); });
  }
  return PackedFunc();
}

GraphProgram ProgramOf(Module executable) {
  TVM_CHECK(executable.defined() && executable->IsInstance<ExecutableNode>(), TypeError)
      << "graph executor: expected a compiled network, got a module of kind "
      << (executable.defined() ? executable->type_key() : "None");
  const auto& program = *static_cast<const ExecutableNode*>(executable.get());
  Graph graph = GraphOf(program, MainFunction(program));
  return {std::move(executable), std::move(graph)};
}

GraphProgram ProgramOf(const String& json, Module library) {
  TVM_CHECK(library.defined(), TypeError) << "graph executor: the library is None";
  if (const auto* own = library.as<ExecutableNode>()) {
    if (GraphJSON(*own) == json) return ProgramOf(std::move(library));
  }
  Graph graph = Graph::FromJSON(json.str());
  Module executable = ExecutableOf(&graph, std::move(library));
  return {std::move(executable), std::move(graph)};
}

DLDevice DeviceOfArgs(const char* where, Args args, int first) {
  TVM_CHECK(args.size() >= first + 2 && (args.size() - first) % 2 == 0, TypeError)
      << where << ": takes the number of a kind of device and of the device";
  auto at = [&](int i) {
    return DLDevice{static_cast<DLDeviceType>(ReadArg<int64_t>(where, args, i)),
                    static_cast<int32_t>(ReadArg<int64_t>(where, args, i + 1))};
  };
  const DLDevice device = at(first);
  for (int i = first + 2; i < args.size(); i += 2) {
    const DLDevice other = at(i);
    TVM_CHECK(other.device_type == device.device_type && other.device_id == device.device_id,
              ValueError)
        << where << ": a graph runs on one device, several were given";
  }
  return device;
}

Module CreateGraphExecutor(Module executable, DLDevice device) {
  GraphProgram program = ProgramOf(std::move(executable));
  return Module(make_object<GraphExecutorNode>(std::move(program.executable),
                                               std::move(program.graph), device));
}

/*! \brief (graph as JSON, library, device type, device id) -> executor. */
TVM_REGISTER_GLOBAL("tvm.graph_executor.create").set_body([](Args args, RetValue* ret) {
  constexpr const char* where = "tvm.graph_executor.create";
  GraphProgram program =
      ProgramOf(ReadArg<String>(where, args, 0), ReadArg<Module>(where, args, 1));
  *ret = Module(make_object<GraphExecutorNode>(
      std::move(program.executable), std::move(program.graph), DeviceOfArgs(where, args, 2)));
});

}  // namespace runtime
}  // namespace tvm
