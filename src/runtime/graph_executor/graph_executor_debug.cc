/*!
 * \file graph_executor_debug.cc
 * \brief An executor that runs node by node and keeps the value of each.
 */
#include <tvm/runtime/logging.h>
#include <tvm/runtime/profiling.h>
#include <tvm/runtime/registry.h>

#include <map>
#include <utility>

#include "graph_executor_node.h"

namespace tvm {
namespace runtime {
namespace {

using relax_vm::ExecutableNode;
using relax_vm::TensorPlace;
using relax_vm::VMFunction;

/*! \brief Gives each value memory of its own, so that all can be looked at after a run. */
class MemorySpreader {
 public:
  MemorySpreader(const VMFunction& shared, VMFunction* spread) : shared_(shared), spread_(*spread) {
    spread_.arena_bytes = 0;
  }

  void Spread(const Graph& graph) {
    std::vector<bool> done(shared_.instructions.size(), false);
    for (const GraphNode& node : graph.nodes) {
      if (node.call < 0) {
        // Another shape of a value lies where that lies now.
        if (!node.function.empty()) Follow(node.outputs[0].tensor);
        continue;
      }
      const relax_vm::Instruction& call = shared_.instructions[node.call];
      const auto split = call.args.end() - call.num_outputs;
      for (auto arg = call.args.begin(); arg != split; ++arg) Follow(*arg);
      for (const GraphValue& value : node.outputs) Allot(value.tensor);
      for (auto arg = split; arg != call.args.end(); ++arg) Follow(*arg);
      done[node.call] = true;
    }
    for (size_t i = 0; i < done.size(); ++i) {
      if (done[i]) continue;
      for (int64_t arg : shared_.instructions[i].args) Follow(arg);
    }
  }

 private:
  static constexpr int64_t kAlign = 64;

  bool IsShared(int64_t tensor) const {
    return shared_.tensors[tensor].place == TensorPlace::kArena;
  }
  void Allot(int64_t tensor) {
    if (!IsShared(tensor)) return;
    const relax_vm::TensorSpec& spec = shared_.tensors[tensor];
    int64_t bytes = (int64_t{spec.dtype.bits} * spec.dtype.lanes + 7) / 8;
    for (int64_t extent : spec.shape) bytes *= extent;
    now_[spec.index] = spread_.arena_bytes;
    spread_.tensors[tensor].index = spread_.arena_bytes;
    spread_.arena_bytes += (bytes + kAlign - 1) / kAlign * kAlign;
  }
  void Follow(int64_t tensor) {
    if (IsShared(tensor)) spread_.tensors[tensor].index = now_.at(shared_.tensors[tensor].index);
  }

  const VMFunction& shared_;
  VMFunction& spread_;
  /*! \brief For an offset in the shared memory, where what lies there at this point went. */
  std::map<int64_t, int64_t> now_;
};

GraphProgram WithOwnMemory(GraphProgram program) {
  const auto& shared = *static_cast<const ExecutableNode*>(program.executable.get());
  auto spread = make_object<ExecutableNode>(shared);
  const VMFunction& function = MainFunction(shared);
  MemorySpreader(function, &spread->functions[&function - shared.functions.data()])
      .Spread(program.graph);
  return {Module(ObjectPtr<Object>(spread)), std::move(program.graph)};
}

class GraphExecutorDebugNode final : public GraphExecutorNode {
 public:
  GraphExecutorDebugNode() = default;
  GraphExecutorDebugNode(GraphProgram program, DLDevice device)
      : GraphExecutorNode(std::move(program.executable), std::move(program.graph), device) {}

  const char* type_key() const override { return "GraphExecutorDebug"; }
  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) override;
  Array<String> ListFunctionNames() override {
    Array<String> names = GraphExecutorNode::ListFunctionNames();
    for (const char* name : {"execute_node", "get_node_output", "debug_get_output", "profile",
                             "run_individual", "run_individual_node"}) {
      names.push_back(name);
    }
    return names;
  }

  TVM_DECLARE_OBJECT(GraphExecutorDebugNode, GraphExecutorNode, "GraphExecutorDebug");

 private:
  const GraphNode& Node(int64_t id) const {
    const auto count = static_cast<int64_t>(graph().nodes.size());
    TVM_CHECK(id >= 0 && id < count, IndexError)
        << "graph executor: node " << id << " of " << count;
    return graph().nodes[id];
  }

  void ExecuteNode(int64_t id) {
    const GraphNode& node = Node(id);
    // The first node begins a run. Inputs that have moved since are looked up again.
    if (id == 0 || bound_ != version()) {
      Bind();
      bound_ = version();
    }
    if (node.call >= 0) state().Launch(node.call);
  }
  void ExecuteTo(int64_t id) {
    Node(id);
    for (int64_t i = 0; i <= id; ++i) ExecuteNode(i);
  }

  NDArray NodeOutput(int64_t id, int64_t output) {
    const GraphNode& node = Node(id);
    TVM_CHECK(output >= 0 && output < static_cast<int64_t>(node.outputs.size()), IndexError)
        << "graph executor: output " << output << " of node \"" << node.name << "\", which has "
        << node.outputs.size();
    if (node.function.empty()) return InputNamed(node.name).CopyTo(device());
    TVM_CHECK(bound_ == version(), ValueError)
        << "graph executor: node \"" << node.name << "\" has not been executed";
    return state().TensorValue(node.outputs[output].tensor);
  }

  Array<double> TimeNode(int64_t id, Args settings) {
    const GraphNode& node = Node(id);
    constexpr const char* where = "graph executor: run_individual_node";
    const auto repeat = ReadArg<int64_t>(where, settings, 1);
    Array<double> seconds;
    if (node.call < 0) {
      for (int64_t i = 0; i < repeat; ++i) seconds.push_back(0.0);
      return seconds;
    }
    if (bound_ != version()) ExecuteTo(id);
    const PackedFunc call([this, id](Args, RetValue*) { state().Launch(Node(id).call); });
    const PackedFunc evaluator = (*Registry::Get("runtime.TimeEvaluator"))(
                                     call, device(), settings[0], repeat, settings[2], settings[3],
                                     settings[4], settings[5], int64_t{0}, PackedFunc())
                                     .cast<PackedFunc>();
    return evaluator().cast<Array<double>>();
  }

  profiling::Report Profile(Array<profiling::MetricCollector> collectors) {
    // What is done once, such as loading kernels onto a device, is not what is asked for.
    constexpr int kWarmUpRuns = 3;
    const auto last = static_cast<int64_t>(graph().nodes.size()) - 1;
    for (int i = 0; i < kWarmUpRuns; ++i) ExecuteTo(last);
    profiling::Profiler profiler({device()}, std::move(collectors),
                                 {{"Executor", Any(String("Graph"))}});
    profiler.Start();
    for (const GraphNode& node : graph().nodes) {
      if (node.call < 0) continue;
      profiler.StartCall(node.function, device(),
                         {{"Argument Shapes", Any(state().ArgumentShapes(node.call))}});
      state().Launch(node.call);
      profiler.StopCall();
    }
    profiler.Stop();
    return profiler.Report();
  }

  /*! \brief The version whose memory the tensors are bound to; none at first. */
  int64_t bound_ = -1;
};

PackedFunc GraphExecutorDebugNode::GetFunction(const String& name, const ObjectPtr<Object>& self) {
  const std::string where = Where(name);
  auto bind = [&](auto body) {
    return PackedFunc([this, self, name, body](Args args, RetValue* ret) { body(args, ret); });
  };
  auto number = [where](Args args, int i) { return ReadArg<int64_t>(where.c_str(), args, i); };
  if (name == "execute_node") {
    return bind([=, this](Args args, RetValue*) { ExecuteNode(number(args, 0)); });
  }
  if (name == "get_node_output") {
    return bind([=, this](Args args, RetValue* ret) {
      *ret = NodeOutput(number(args, 0), number(args, 1));
    });
  }
  if (name == "debug_get_output") {
    return bind([=, this](Args args, RetValue* ret) {
      ExecuteTo(number(args, 0));
      NDArray value = NodeOutput(number(args, 0), 0);
      if (args.size() < 2 || args[1].is_null()) {
        *ret = value;
      } else {
        ReadArg<NDArray>(where.c_str(), args, 1).CopyFrom(value.tensor());
      }
    });
  }
  if (name == "run_individual") {
    return bind([=, this](Args args, RetValue* ret) {
      ExecuteTo(static_cast<int64_t>(graph().nodes.size()) - 1);
      Array<Any> seconds;
      for (size_t id = 0; id < graph().nodes.size(); ++id) {
        seconds.push_back(TimeNode(static_cast<int64_t>(id), args));
      }
      *ret = seconds;
    });
  }
  if (name == "run_individual_node") {
    return bind(
        [=, this](Args args, RetValue* ret) { *ret = TimeNode(number(args, 0), args.slice(1)); });
  }
  if (name == "profile") {
    return bind([=, this](Args args, RetValue* ret) {
      *ret = Profile(args.size() == 0
                         ? Array<profiling::MetricCollector>()
                         : ReadArg<Array<profiling::MetricCollector>>(where.c_str(), args, 0));
    });
  }
  return GraphExecutorNode::GetFunction(name, self);
}

}  // namespace

Module CreateDebugExecutor(Module executable, DLDevice device) {
  return Module(
      make_object<GraphExecutorDebugNode>(WithOwnMemory(ProgramOf(std::move(executable))), device));
}

/*! \brief (graph as JSON, library, device type, device id) -> executor. */
TVM_REGISTER_GLOBAL("tvm.graph_executor_debug.create").set_body([](Args args, RetValue* ret) {
  constexpr const char* where = "tvm.graph_executor_debug.create";
  *ret = Module(make_object<GraphExecutorDebugNode>(
      WithOwnMemory(ProgramOf(ReadArg<String>(where, args, 0), ReadArg<Module>(where, args, 1))),
      DeviceOfArgs(where, args, 2)));
});

}  // namespace runtime
}  // namespace tvm
