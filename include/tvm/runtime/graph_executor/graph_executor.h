/*!
 * \file tvm/runtime/graph_executor/graph_executor.h
 * \brief Running a compiled network with inputs that are set and outputs that are fetched.
 */
#ifndef TVM_RUNTIME_GRAPH_EXECUTOR_GRAPH_EXECUTOR_H_
#define TVM_RUNTIME_GRAPH_EXECUTOR_GRAPH_EXECUTOR_H_

#include <tvm/runtime/container/map.h>
#include <tvm/runtime/relax_vm/executable.h>

namespace tvm {
namespace runtime {

/*!
 * \brief An executor of the "main" function of a relax executable.
 *
 * Its inputs are those of the function, then the executable's constants as "p0", "p1", ...
 */
TVM_DLL Module CreateGraphExecutor(Module executable, DLDevice device);

/*! \brief The same, which also runs node by node, shows every value and times every call. */
TVM_DLL Module CreateDebugExecutor(Module executable, DLDevice device);

/*!
 * \brief The same, whose calls can be recorded once and then launched together.
 *
 * Raises ValueError for a device that is not a CUDA device.
 */
TVM_DLL Module CreateCudaGraphExecutor(Module executable, DLDevice device);

/*! \brief The function's calls as JSON: nodes, arg_nodes, heads, node_row_ptr and attrs. */
TVM_DLL String GraphJSON(const relax_vm::ExecutableNode& executable);

/*! \brief The executable's constants under the names that executors have for them. */
TVM_DLL Map<String, NDArray> GraphParams(const relax_vm::ExecutableNode& executable);

}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_GRAPH_EXECUTOR_GRAPH_EXECUTOR_H_
