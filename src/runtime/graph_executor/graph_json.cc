#include <tvm/runtime/graph_executor/graph_executor.h>

#include <map>
#include <sstream>

namespace tvm {
namespace runtime {
namespace {

using relax_vm::ExecutableNode;
using relax_vm::TensorPlace;
using relax_vm::TensorSpec;
using relax_vm::VMFunction;

/*! \brief What a tensor's memory is: those that lie at one place are the same value. */
using Place = std::pair<TensorPlace, int64_t>;

template <typename Items, typename F>
std::string Listed(const Items& items, F text) {
  std::ostringstream os;
  os << '[';
  bool first = true;
  for (const auto& item : items) {
    os << (first ? "" : ", ");
    first = false;
    text(os, item);
  }
  os << ']';
  return os.str();
}

struct GraphNode {
  std::string op, name;
  std::vector<int64_t> inputs;
  std::vector<int64_t> shape;
  DLDataType dtype;
};

/*! \brief Nodes of a function: inputs, constants, then a node for each call. */
struct Graph {
  std::vector<GraphNode> nodes;
  std::vector<int64_t> arguments, heads;

  Graph(const ExecutableNode& executable, const VMFunction& function) {
    std::map<Place, int64_t> owner;
    for (size_t i = 0; i < function.inputs.size(); ++i) {
      const TensorSpec& spec = function.tensors[function.inputs[i]];
      AddArgument(function.input_names[i], spec.shape, spec.dtype);
      owner[{TensorPlace::kInput, static_cast<int64_t>(i)}] = Last();
    }
    for (size_t i = 0; i < executable.constants.size(); ++i) {
      const NDArray& constant = executable.constants[i];
      AddArgument("p" + std::to_string(i), constant.Shape(), constant.dtype());
      owner[{TensorPlace::kConstant, static_cast<int64_t>(i)}] = Last();
    }
    for (const relax_vm::Instruction& call : function.instructions) {
      GraphNode node;
      node.op = "tvm_op";
      node.name = call.kernel == relax_vm::kCopy ? "__copy" : executable.kernels[call.kernel];
      // Tensors that nothing has written yet are what the call writes.
      for (size_t i = 0; i < call.args.size(); ++i) {
        const TensorSpec& spec = function.tensors[call.args[i]];
        auto known = owner.find({spec.place, spec.index});
        if (known != owner.end() && i + 1 < call.args.size()) node.inputs.push_back(known->second);
        node.shape = spec.shape;
        node.dtype = spec.dtype;
      }
      const int64_t id = static_cast<int64_t>(nodes.size());
      for (int64_t arg : call.args) {
        const TensorSpec& spec = function.tensors[arg];
        const bool last = arg == call.args.back();
        if (last || owner.count({spec.place, spec.index}) == 0) {
          owner[{spec.place, spec.index}] = id;
        }
      }
      nodes.push_back(std::move(node));
    }
    for (int64_t output : function.outputs) {
      const TensorSpec& spec = function.tensors[output];
      heads.push_back(owner[{spec.place, spec.index}]);
    }
  }

 private:
  int64_t Last() const { return static_cast<int64_t>(nodes.size()) - 1; }
  void AddArgument(std::string name, std::vector<int64_t> shape, DLDataType dtype) {
    arguments.push_back(static_cast<int64_t>(nodes.size()));
    nodes.push_back(GraphNode{"null", std::move(name), {}, std::move(shape), dtype});
  }
};

std::string Quoted(const std::string& text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

}  // namespace

String GraphJSON(const ExecutableNode& executable) {
  TVM_CHECK(!executable.functions.empty(), ValueError) << "graph executor: there is no function";
  const VMFunction* function = &executable.functions[0];
  for (const VMFunction& candidate : executable.functions) {
    if (candidate.name == "main") function = &candidate;
  }
  const Graph graph(executable, *function);
  auto entry = [](std::ostream& os, int64_t id) { os << '[' << id << ", 0, 0]"; };
  auto number = [](std::ostream& os, int64_t value) { os << value; };
  std::ostringstream os;
  os << "{\n  \"nodes\": " << Listed(graph.nodes, [&](std::ostream& out, const GraphNode& node) {
    out << "\n    {\"op\": \"" << node.op << "\", \"name\": " << Quoted(node.name);
    if (node.op != "null") {
      out << ", \"attrs\": {\"func_name\": " << Quoted(node.name) << ", \"num_inputs\": \""
          << node.inputs.size() << "\", \"num_outputs\": \"1\", \"flatten_data\": \"0\"}";
    }
    out << ", \"inputs\": " << Listed(node.inputs, entry) << '}';
  });
  os << ",\n  \"arg_nodes\": " << Listed(graph.arguments, number);
  os << ",\n  \"heads\": " << Listed(graph.heads, entry);
  std::vector<int64_t> rows;
  for (size_t i = 0; i <= graph.nodes.size(); ++i) rows.push_back(static_cast<int64_t>(i));
  os << ",\n  \"attrs\": {\n    \"shape\": [\"list_shape\", "
     << Listed(graph.nodes,
               [&](std::ostream& out, const GraphNode& node) { out << Listed(node.shape, number); })
     << "],\n    \"dltype\": [\"list_str\", "
     << Listed(graph.nodes,
               [](std::ostream& out, const GraphNode& node) {
                 out << '"' << DataType(node.dtype) << '"';
               })
     << "],\n    \"storage_id\": [\"list_int\", "
     << Listed(std::vector<int64_t>(rows.begin(), rows.end() - 1), number) << "]\n  }";
  os << ",\n  \"node_row_ptr\": " << Listed(rows, number) << "\n}";
  return os.str();
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
