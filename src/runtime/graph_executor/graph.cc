/*!
 * \file graph.cc
 * \brief From the functions of executables to graphs, and back.
 */
#include "graph.h"

#include <tvm/runtime/graph_executor/graph_executor.h>
#include <tvm/runtime/logging.h>

#include <map>
#include <set>
#include <utility>

namespace tvm {
namespace runtime {
namespace {

using relax_vm::ExecutableNode;
using relax_vm::Instruction;
using relax_vm::TensorPlace;
using relax_vm::TensorSpec;
using relax_vm::VMFunction;

class GraphMaker {
 public:
  GraphMaker(const ExecutableNode& executable, const VMFunction& function)
      : executable_(executable), function_(function) {}

  Graph Make() {
    for (size_t i = 0; i < function_.inputs.size(); ++i) {
      const int64_t id = function_.inputs[i];
      AddArgument(function_.input_names[i], ValueOf(id));
      Hold(id, Last());
    }
    for (size_t i = 0; i < function_.instructions.size(); ++i) {
      AddCall(function_.instructions[i], static_cast<int64_t>(i));
    }
    for (int64_t id : function_.outputs) graph_.heads.push_back(Read(id));
    for (size_t i = 0; i < executable_.constants.size(); ++i) {
      Constant(static_cast<int64_t>(i));
    }
    return std::move(graph_);
  }

 private:
  /*! \brief Whose memory, and where in it. */
  using Place = std::pair<TensorPlace, int64_t>;

  Place PlaceOf(int64_t id) const {
    return {function_.tensors[id].place, function_.tensors[id].index};
  }
  GraphEntry Last() const { return {static_cast<int64_t>(graph_.nodes.size()) - 1, 0}; }

  GraphValue ValueOf(int64_t id) {
    const TensorSpec& spec = function_.tensors[id];
    return GraphValue{spec.shape, spec.dtype, next_storage_++, id};
  }

  std::string FreshName(const std::string& base) {
    std::string name = base;
    for (int64_t i = 1; !names_.insert(name).second; ++i) name = base + std::to_string(i);
    return name;
  }

  void AddArgument(const std::string& name, GraphValue value) {
    names_.insert(name);
    graph_.arguments.push_back(static_cast<int64_t>(graph_.nodes.size()));
    GraphNode node;
    node.name = name;
    node.outputs.push_back(std::move(value));
    graph_.nodes.push_back(std::move(node));
  }

  /*! \brief From now on, the tensor's memory holds the entry. */
  void Hold(int64_t id, GraphEntry entry) {
    tensors_[id] = entry;
    places_[PlaceOf(id)] = entry;
  }

  GraphEntry Constant(int64_t index) {
    auto known = places_.find({TensorPlace::kConstant, index});
    if (known != places_.end()) return known->second;
    const NDArray& constant = executable_.constants[index];
    GraphValue value{constant.Shape(), constant.dtype(), next_storage_++, -1};
    for (size_t id = 0; id < function_.tensors.size() && value.tensor < 0; ++id) {
      const bool here = PlaceOf(static_cast<int64_t>(id)) == Place{TensorPlace::kConstant, index};
      if (here && function_.tensors[id].shape == value.shape)
        value.tensor = static_cast<int64_t>(id);
    }
    const int64_t tensor = value.tensor;
    AddArgument("p" + std::to_string(index), std::move(value));
    places_[{TensorPlace::kConstant, index}] = Last();
    if (tensor >= 0) tensors_[tensor] = Last();
    return Last();
  }

  /*! \brief The entry that a tensor holds: perhaps another shape of what lies at its place. */
  GraphEntry Read(int64_t id) {
    const TensorSpec& spec = function_.tensors[id];
    if (spec.place == TensorPlace::kConstant) Constant(spec.index);
    auto known = tensors_.find(id);
    if (known != tensors_.end()) return known->second;
    auto base = places_.find(PlaceOf(id));
    TVM_CHECK(base != places_.end(), ValueError)
        << "graph executor: '" << function_.name << "' reads a tensor that nothing wrote";
    GraphNode node;
    node.name = FreshName("reshape");
    node.function = kGraphView;
    node.inputs = {base->second};
    node.outputs = {GraphValue{spec.shape, spec.dtype, graph_.At(base->second).storage, id}};
    graph_.nodes.push_back(std::move(node));
    return tensors_[id] = Last();
  }

  void AddCall(const Instruction& instruction, int64_t number) {
    GraphNode node;
    const bool copies = instruction.kernel == relax_vm::kCopy;
    node.function = copies ? kGraphCopy : executable_.kernels[instruction.kernel];
    const auto split = instruction.args.end() - instruction.num_outputs;
    for (auto arg = instruction.args.begin(); arg != split; ++arg) {
      node.inputs.push_back(Read(*arg));
    }
    for (auto arg = split; arg != instruction.args.end(); ++arg) {
      node.outputs.push_back(ValueOf(*arg));
    }
    node.name = FreshName(node.function);
    node.call = number;
    const auto id = static_cast<int64_t>(graph_.nodes.size());
    graph_.nodes.push_back(std::move(node));
    int64_t output = 0;
    for (auto arg = split; arg != instruction.args.end(); ++arg) Hold(*arg, {id, output++});
  }

  const ExecutableNode& executable_;
  const VMFunction& function_;
  Graph graph_;
  std::map<int64_t, GraphEntry> tensors_;
  std::map<Place, GraphEntry> places_;
  std::set<std::string> names_;
  int64_t next_storage_ = 0;
};

/*! \brief The function that computes a graph. */
class FunctionMaker {
 public:
  FunctionMaker(Graph* graph, ExecutableNode* executable)
      : graph_(*graph), executable_(*executable) {}

  VMFunction Make() {
    function_.name = "main";
    PlaceStorage();
    for (size_t i = 0; i < graph_.arguments.size(); ++i) {
      GraphNode& node = graph_.nodes[graph_.arguments[i]];
      node.outputs[0].tensor =
          AddTensor(node.outputs[0], TensorPlace::kInput, static_cast<int64_t>(i));
      function_.inputs.push_back(node.outputs[0].tensor);
      function_.input_names.push_back(node.name);
    }
    for (GraphNode& node : graph_.nodes) {
      if (!node.function.empty()) AddNode(&node);
    }
    for (size_t i = 0; i < graph_.heads.size(); ++i)
      AddHead(graph_.heads[i], static_cast<int64_t>(i));
    function_.returns_tuple = graph_.heads.size() > 1;
    return std::move(function_);
  }

 private:
  static constexpr int64_t kAlign = 64;

  int64_t AddTensor(const GraphValue& value, TensorPlace place, int64_t index) {
    function_.tensors.push_back({value.dtype, value.shape, place, index});
    return static_cast<int64_t>(function_.tensors.size()) - 1;
  }

  static int64_t Elements(const GraphValue& value) {
    int64_t count = 1;
    for (int64_t extent : value.shape) {
      TVM_CHECK(extent >= 0 && !__builtin_mul_overflow(count, extent, &count), ValueError)
          << "graph executor: attrs.shape holds an impossible shape";
    }
    return count;
  }
  static int64_t Bytes(const GraphValue& value) {
    const int64_t element = (int64_t{value.dtype.bits} * value.dtype.lanes + 7) / 8;
    int64_t bytes = 0;
    TVM_CHECK(!__builtin_mul_overflow(Elements(value), element, &bytes) && bytes <= INT64_MAX / 2,
              ValueError)
        << "graph executor: attrs.shape holds an impossible shape";
    return bytes;
  }

  /*! \brief Heads that a call writes lie in the function's results, the rest in shared memory. */
  void PlaceStorage() {
    for (size_t i = 0; i < graph_.heads.size(); ++i) {
      const GraphEntry& head = graph_.heads[i];
      const GraphNode& node = graph_.nodes[head.node];
      if (node.function.empty() || node.function == kGraphView) continue;
      results_.emplace(std::pair(head.node, head.output), static_cast<int64_t>(i));
    }
    std::map<int64_t, int64_t> sizes;
    for (const GraphNode& node : graph_.nodes) {
      if (node.function.empty() || node.function == kGraphView) continue;
      for (const GraphValue& value : node.outputs) {
        int64_t& size = sizes[value.storage];
        size = std::max(size, Bytes(value));
      }
    }
    for (const auto& [storage, size] : sizes) {
      offsets_[storage] = function_.arena_bytes;
      const int64_t rounded = (size + kAlign - 1) / kAlign * kAlign;
      TVM_CHECK(!__builtin_add_overflow(function_.arena_bytes, rounded, &function_.arena_bytes),
                ValueError)
          << "graph executor: attrs.shape holds impossible shapes";
    }
  }

  void AddNode(GraphNode* node) {
    const int64_t id = node - graph_.nodes.data();
    if (node->function == kGraphView) {
      const GraphValue& base = graph_.At(node->inputs[0]);
      TVM_CHECK(Bytes(base) == Bytes(node->outputs[0]), ValueError)
          << "graph executor: node \"" << node->name << "\" changes the size of its input";
      const TensorSpec spec = function_.tensors[base.tensor];
      node->outputs[0].tensor = AddTensor(node->outputs[0], spec.place, spec.index);
      return;
    }
    for (size_t i = 0; i < node->outputs.size(); ++i) {
      GraphValue& value = node->outputs[i];
      auto result = results_.find({id, static_cast<int64_t>(i)});
      value.tensor = result != results_.end()
                         ? AddTensor(value, TensorPlace::kOutput, result->second)
                         : AddTensor(value, TensorPlace::kArena, offsets_.at(value.storage));
    }
    Instruction call;
    call.kernel = node->function == kGraphCopy ? relax_vm::kCopy : Kernel(node->function);
    call.num_outputs = static_cast<int64_t>(node->outputs.size());
    const bool flatten = node->flatten && call.kernel != relax_vm::kCopy;
    for (const GraphEntry& input : node->inputs) {
      call.args.push_back(Argument(graph_.At(input), flatten));
    }
    for (const GraphValue& output : node->outputs) call.args.push_back(Argument(output, flatten));
    node->call = static_cast<int64_t>(function_.instructions.size());
    function_.instructions.push_back(std::move(call));
  }

  int64_t Argument(const GraphValue& value, bool flatten) {
    if (!flatten || value.shape.size() == 1) return value.tensor;
    GraphValue flat = value;
    flat.shape = {Elements(value)};
    const TensorSpec spec = function_.tensors[value.tensor];
    return AddTensor(flat, spec.place, spec.index);
  }

  int64_t Kernel(const std::string& name) {
    auto [known, is_new] = kernels_.emplace(name, static_cast<int64_t>(executable_.kernels.size()));
    if (is_new) executable_.kernels.push_back(name);
    return known->second;
  }

  void AddHead(GraphEntry head, int64_t number) {
    const GraphValue& value = graph_.At(head);
    auto result = results_.find({head.node, head.output});
    if (result != results_.end() && result->second == number) {
      function_.outputs.push_back(value.tensor);
      return;
    }
    const int64_t copy = AddTensor(value, TensorPlace::kOutput, number);
    function_.instructions.push_back({relax_vm::kCopy, {value.tensor, copy}, 1});
    function_.outputs.push_back(copy);
  }

  Graph& graph_;
  ExecutableNode& executable_;
  VMFunction function_;
  std::map<std::pair<int64_t, int64_t>, int64_t> results_;
  std::map<int64_t, int64_t> offsets_;
  std::map<std::string, int64_t> kernels_;
};

}  // namespace

Graph GraphOf(const ExecutableNode& executable, const VMFunction& function) {
  return GraphMaker(executable, function).Make();
}

Module ExecutableOf(Graph* graph, Module library) {
  auto executable = make_object<ExecutableNode>();
  VMFunction function = FunctionMaker(graph, executable.get()).Make();
  // The numbers come from a text, so they are looked at like those of a file.
  executable->functions.push_back(relax_vm::DecodeFunction(
      function.name, function.input_names, relax_vm::EncodeFunction(function), *executable));
  executable->Import(std::move(library));
  return Module(executable);
}

const VMFunction& MainFunction(const ExecutableNode& executable) {
  TVM_CHECK(!executable.functions.empty(), ValueError)
      << "graph executor: the library has no function";
  for (const VMFunction& candidate : executable.functions) {
    if (candidate.name == "main") return candidate;
  }
  return executable.functions[0];
}

String GraphJSON(const ExecutableNode& executable) {
  return GraphOf(executable, MainFunction(executable)).ToJSON();
}

Map<String, NDArray> GraphParams(const ExecutableNode& executable) {
  Map<String, NDArray> params;
  for (size_t i = 0; i < executable.constants.size(); ++i) {
    params.Set("p" + std::to_string(i), executable.constants[i]);
  }
  return params;
}

}  // namespace runtime
}  // namespace tvm
