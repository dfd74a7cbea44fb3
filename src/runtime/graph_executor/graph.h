/*!
 * \file graph.h
 * \brief A network as executors describe it: nodes for inputs, then one for each call.
 */
#ifndef TVM_RUNTIME_GRAPH_EXECUTOR_GRAPH_H_
#define TVM_RUNTIME_GRAPH_EXECUTOR_GRAPH_H_

#include <tvm/runtime/relax_vm/executable.h>

#include <string>
#include <string_view>
#include <vector>

namespace tvm {
namespace runtime {

/*! \brief A value: the result number `output` of a node. */
struct GraphEntry {
  int64_t node = 0;
  int64_t output = 0;
};

struct GraphValue {
  std::vector<int64_t> shape;
  DLDataType dtype;
  /*! \brief Number of the value's memory; values of one number lie at one place. */
  int64_t storage = 0;
  /*! \brief Tensor of the function that holds the value, or -1 if it has none. */
  int64_t tensor = -1;
};

/*! \brief Functions that are no kernels: another shape of the same memory, and a copy. */
constexpr const char* kGraphView = "__nop";
constexpr const char* kGraphCopy = "__copy";

struct GraphNode {
  /*! \brief Unique among the nodes. */
  std::string name;
  /*! \brief Kernel that computes it; empty for inputs and parameters. */
  std::string function;
  std::vector<GraphEntry> inputs;
  std::vector<GraphValue> outputs;
  /*! \brief The kernel takes its arguments as tensors of one axis. */
  bool flatten = false;
  /*! \brief Instruction of the function that computes it, or -1. */
  int64_t call = -1;
};

struct Graph {
  std::vector<GraphNode> nodes;
  /*! \brief Nodes of inputs and parameters. */
  std::vector<int64_t> arguments;
  std::vector<GraphEntry> heads;

  const GraphValue& At(GraphEntry entry) const { return nodes[entry.node].outputs[entry.output]; }
  /*! \brief The text that TVM's executors take: nodes, arg_nodes, heads, attrs, node_row_ptr. */
  std::string ToJSON() const;
  /*! \brief What ToJSON wrote; ValueError that says what is wrong with another text. */
  static Graph FromJSON(std::string_view text);
};

/*! \brief The calls of a function; constants are nodes "p0", "p1", ... before their first use. */
Graph GraphOf(const relax_vm::ExecutableNode& executable, const relax_vm::VMFunction& function);

/*!
 * \brief An executable with the one function "main" that computes a graph by a library's kernels.
 *
 * Fills in the graph's tensors and calls. All arguments are inputs of the function.
 */
Module ExecutableOf(Graph* graph, Module library);

}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_GRAPH_EXECUTOR_GRAPH_H_
