/*!
 * \file tvm/runtime/relax_vm/executable.h
 * \brief A compiled network: kernels, constants and, per function, the list of kernel calls, or a
 * program over values of any kind.
 */
#ifndef TVM_RUNTIME_RELAX_VM_EXECUTABLE_H_
#define TVM_RUNTIME_RELAX_VM_EXECUTABLE_H_

#include <tvm/runtime/module.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/relax_vm/program.h>

#include <string>
#include <vector>

namespace tvm {
namespace runtime {
namespace relax_vm {

/*! \brief Whose memory a tensor lies in, and so what its `index` means. */
enum class TensorPlace : int64_t {
  /*! \brief Number of the function's argument. */
  kInput = 0,
  /*! \brief Number of the constant. */
  kConstant = 1,
  /*! \brief Offset in bytes into memory that the function reuses from call to call. */
  kArena = 2,
  /*! \brief Number of the result, which gets fresh memory in every call. */
  kOutput = 3,
};

struct TensorSpec {
  DLDataType dtype;
  std::vector<int64_t> shape;
  TensorPlace place;
  int64_t index;
};

/*! \brief Calls one kernel with the function's tensors, given by number: inputs, then outputs. */
struct Instruction {
  /*! \brief Number of the kernel, or kCopy. */
  int64_t kernel;
  std::vector<int64_t> args;
  /*! \brief How many of the arguments, the last ones, the call writes. */
  int64_t num_outputs = 1;
};

/*! \brief Copies the bytes of its first argument to its second. */
constexpr int64_t kCopy = -1;

struct VMFunction {
  std::string name;
  std::vector<std::string> input_names;
  std::vector<TensorSpec> tensors;
  std::vector<Instruction> instructions;
  /*! \brief Tensors of the arguments and results, in order. */
  std::vector<int64_t> inputs;
  std::vector<int64_t> outputs;
  bool returns_tuple = false;
  int64_t arena_bytes = 0;
};

/*! \brief The kernels are functions of the module imported first. */
class ExecutableNode final : public ModuleNode {
 public:
  std::vector<std::string> kernels;
  std::vector<NDArray> constants;
  std::vector<VMFunction> functions;
  std::vector<Program> programs;
  /*!
   * \brief Names of what programs call: programs, functions, kernels, or else functions of the
   * runtime's registry.
   */
  std::vector<std::string> callees;
  /*! \brief Numbers, texts, types, shapes and arrays among the arguments of programs. */
  std::vector<Any> literals;
  /*! \brief Name and number of the file that has the arrays; empty if they are inside. */
  std::string weights_file;
  int64_t weights_id = 0;
  /*! \brief Whether that file has not been read yet. */
  bool weights_missing = false;

  const char* type_key() const final { return "relax.Executable"; }
  /*! \brief "vm_load_executable" makes a virtual machine for a device. */
  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) final;
  Array<String> ListFunctionNames() final;
  /*! \brief What a virtual machine can call. */
  Array<String> FunctionNames() const;
  /*! \brief That of the kernels, module after module. */
  String GetSource(const String& format) final;

  /*! \brief Everything but the kernels' code, which the imported module keeps. */
  void SaveToBinary(ByteWriter* writer) final;
  static Module LoadFromBinary(std::string_view bytes);
  /*! \brief Write all arrays to a file; returns the same executable without them. */
  Module MoveWeights(const std::string& path) const;
  /*! \brief Map the arrays from the file that MoveWeights wrote. */
  void LoadWeights(const std::string& path);

  TVM_DECLARE_OBJECT(ExecutableNode, ModuleNode, "relax.Executable");
};

/*!
 * \brief Reads a function's program from its flat encoding.
 *
 * The words are: the inputs as a list; the number of tensors and for each of them dtype code, bits,
 * lanes, place, index and the shape as a list; the number of instructions and for each of them the
 * kernel, how many of its arguments are outputs, and the arguments as a list; the outputs as a
 * list; whether they form a tuple; the arena size. A list is its length and its items. Raises
 * ValueError for an encoding that is cut short or refers to tensors, kernels or constants that are
 * not there.
 */
VMFunction DecodeFunction(std::string name, std::vector<std::string> input_names,
                          const std::vector<int64_t>& words, const ExecutableNode& executable);
/*! \brief The flat encoding of a function's program. */
std::vector<int64_t> EncodeFunction(const VMFunction& function);

/*! \brief A machine that runs the functions of an executable on a device. */
Module CreateVirtualMachine(Module executable, DLDevice device);

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_RUNTIME_RELAX_VM_EXECUTABLE_H_
