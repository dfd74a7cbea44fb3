/*!
 * \file function_state.h
 * \brief One function of an executable ready to run, whole or call by call.
 */
#ifndef TVM_RUNTIME_RELAX_VM_FUNCTION_STATE_H_
#define TVM_RUNTIME_RELAX_VM_FUNCTION_STATE_H_

#include <tvm/runtime/profiling.h>
#include <tvm/runtime/relax_vm/executable.h>

#include <mutex>
#include <string>
#include <vector>

namespace tvm {
namespace runtime {
namespace relax_vm {

/*!
 * \brief One function ready to run: memory allocated, kernels looked up, argument lists built.
 *
 * A run only fills in the addresses of inputs and outputs. Runs of one function exclude each other,
 * since they share the arena.
 */
class FunctionState {
 public:
  /*! \brief Both must outlive the state. */
  FunctionState(const ExecutableNode& executable, const VMFunction& function, DLDevice device);

  void Run(Args args, RetValue* ret);
  /*! \brief One run, in which every kernel call is measured. */
  profiling::Report Profile(Array<profiling::MetricCollector> collectors, Args args);

  /*! \brief Points tensors at the arguments and at fresh results, which it returns. */
  Array<Any> Bind(Args args);
  /*! \brief One call of the function, with what Bind gave. */
  void Launch(int64_t call) const { Launch(calls_[call]); }
  /*! \brief All calls in their order. */
  void LaunchAll() const;
  /*! \brief Types and shapes of a call's arguments, as reports show them. */
  String ArgumentShapes(int64_t call) const;
  /*! \brief A copy of what a tensor holds now, on its device. */
  NDArray TensorValue(int64_t tensor) const;

 private:
  struct KernelCall {
    String name;
    /*! \brief Null for a copy. */
    PackedFunc kernel;
    /*! \brief Borrowed tensors_, in the form kernels take them. */
    std::vector<TVMAny> args;
  };

  DLTensor MakeTensor(const TensorSpec& spec) const;
  KernelCall MakeCall(const ExecutableNode& executable, const Instruction& instruction);
  void Launch(const KernelCall& call) const;
  void CopyBytes(const void* from, void* to, size_t bytes) const;
  std::string InputList() const;
  void* InputData(int i, const Any& value);

  const VMFunction& function_;
  DLDevice device_;
  NDArray arena_;
  /*! \brief The executable's constants on this device. */
  std::vector<NDArray> constants_;
  /*! \brief Aligned copies of arguments that are not aligned themselves. */
  std::vector<NDArray> staging_;
  std::vector<DLTensor> tensors_;
  std::vector<KernelCall> calls_;
  std::vector<void*> inputs_;
  std::vector<void*> outputs_;
  std::mutex mutex_;
};

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_RELAX_VM_FUNCTION_STATE_H_
