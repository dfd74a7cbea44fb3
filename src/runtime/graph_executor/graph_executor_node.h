/*!
 * \file graph_executor_node.h
 * \brief The executor of a graph, and what its variants for debugging and CUDA graphs build on.
 */
#ifndef TVM_RUNTIME_GRAPH_EXECUTOR_GRAPH_EXECUTOR_NODE_H_
#define TVM_RUNTIME_GRAPH_EXECUTOR_GRAPH_EXECUTOR_NODE_H_

#include <tvm/runtime/graph_executor/graph_executor.h>

#include <memory>
#include <string>
#include <vector>

#include "../relax_vm/function_state.h"
#include "graph.h"

namespace tvm {
namespace runtime {

class GraphExecutorNode : public ModuleNode {
 public:
  GraphExecutorNode() = default;
  /*!
   * \param executable Whose "main" function, or first one, runs.
   * \param graph That function as a graph.
   */
  GraphExecutorNode(Module executable, Graph graph, DLDevice device);

  const char* type_key() const override { return "GraphExecutor"; }
  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) override;
  Array<String> ListFunctionNames() override;

  TVM_DECLARE_OBJECT(GraphExecutorNode, ModuleNode, "GraphExecutor");

 protected:
  const relax_vm::ExecutableNode& Program() const {
    return *static_cast<const relax_vm::ExecutableNode*>(executable_.get());
  }
  const Graph& graph() const { return graph_; }
  DLDevice device() const { return device_; }
  relax_vm::FunctionState& state() { return *state_; }
  /*! \brief Changes whenever what a run reads or writes has moved to other memory. */
  int64_t version() const { return version_; }
  /*! \brief Lets the function's tensors be the inputs and fresh outputs. */
  void Bind();
  /*! \brief Value of an input or parameter. */
  NDArray InputNamed(const String& name) const { return Input(Index(Any(name))); }
  /*! \brief To be called when the function has run with what Bind gave. */
  void Finish();
  /*! \brief "graph executor: <name>", the beginning of errors about a function's arguments. */
  static std::string Where(const String& name) { return "graph executor: " + name.str(); }

 private:
  int64_t NumInputs() const {
    return static_cast<int64_t>(inputs_.size() + Program().constants.size());
  }
  void Prepare();
  int64_t Index(const Any& key) const;
  NDArray Input(int64_t index) const;
  void ReplaceConstants(const std::vector<NDArray>& constants);
  void SetInput(const Any& key, const NDArray& value);
  void LoadParams(const Map<String, NDArray>& params);
  void Run();
  NDArray Output(int64_t index) const;
  Map<String, Any> Info(bool inputs) const;

  Module executable_;
  Graph graph_;
  DLDevice device_{};
  const relax_vm::VMFunction* function_ = nullptr;
  std::shared_ptr<relax_vm::FunctionState> state_;
  std::vector<NDArray> inputs_, bound_outputs_, outputs_, given_outputs_;
  int64_t version_ = 0;
};

/*! \brief The function that executors of an executable run; ValueError if there is none. */
const relax_vm::VMFunction& MainFunction(const relax_vm::ExecutableNode& executable);

/*! \brief What an executor runs, and the graph of it. */
struct GraphProgram {
  Module executable;
  Graph graph;
};

/*! \brief Of a compiled network; TypeError for another kind of module. */
GraphProgram ProgramOf(Module executable);
/*!
 * \brief Of a graph's JSON and the library with its kernels.
 *
 * A compiled network with its own JSON is taken as it is, with its parameters.
 */
GraphProgram ProgramOf(const String& json, Module library);

/*! \brief The device of arguments of TVM's constructors: (type, id), or several the same. */
DLDevice DeviceOfArgs(const char* where, Args args, int first);

}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_GRAPH_EXECUTOR_GRAPH_EXECUTOR_NODE_H_
