/*!
 * \file program_runner.h
 * \brief Runs the programs of an executable.
 */
#ifndef TVM_RUNTIME_RELAX_VM_PROGRAM_RUNNER_H_
#define TVM_RUNTIME_RELAX_VM_PROGRAM_RUNNER_H_

#include <tvm/runtime/profiling.h>
#include <tvm/runtime/relax_vm/executable.h>

#include <functional>
#include <string>
#include <vector>

namespace tvm {
namespace runtime {
namespace relax_vm {

/*!
 * \brief What a machine needs to run programs. Calls may come from several threads at once, and
 * from functions that programs call.
 */
class ProgramRunner {
 public:
  /*! \brief The function of an executable under a name that is no program; null if there is none.
   */
  using Lookup = std::function<PackedFunc(const std::string&)>;

  /*! \brief `executable` must outlive the runner. */
  ProgramRunner(const ExecutableNode& executable, DLDevice device, Lookup functions);

  /*! \brief Number of a program, or -1. */
  int Find(const std::string& name) const;
  /*!
   * \brief Runs a program for a caller outside, whose tensors are checked and, where kernels could
   * not read them, copied.
   * \param machine The machine that owns this, which is handed to builtin functions.
   * \param profiler Measures the calls that leave programs; null for none.
   */
  Any Run(int program, const Module& machine, Args args,
          profiling::Profiler* profiler = nullptr) const;

  /*!
   * \brief Called before and after every call that leaves programs; null for none.
   *
   * With the function, its name, whether it is before, the result (null before), and the arguments.
   * The number 1 before a call leaves the call out.
   */
  PackedFunc instrument;

 private:
  struct Callee {
    int program = -1;
    PackedFunc function;
    bool is_kernel = false;
  };
  struct Frame;

  Callee Resolve(const std::string& name) const;
  const Callee& CalleeAt(int64_t number) const;
  Any ValueOf(const Argument& arg, const Frame& frame) const;
  Any Execute(int program, const Module& machine, std::vector<Any> inputs,
              profiling::Profiler* profiler) const;
  Any Call(const Step& step, const Frame& frame) const;
  Any CallOutside(const Step& step, const Callee& callee, Args args, const Frame& frame) const;
  Any Received(const Program& program, int input, const Any& value) const;
  /*! \brief After step i, the registers that no later step reads. */
  std::vector<std::vector<int64_t>> LastUses(const Program& program) const;

  const ExecutableNode& executable_;
  DLDevice device_;
  Lookup functions_;
  std::vector<Callee> callees_;
  /*! \brief Literals, with arrays on the machine's device. */
  std::vector<Any> literals_;
  std::vector<std::vector<std::vector<int64_t>>> released_;
};

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_RELAX_VM_PROGRAM_RUNNER_H_
