/*!
 * \file tvm/runtime/relax_vm/program.h
 * \brief A function of an executable as steps over registers, which hold values of any kind.
 */
#ifndef TVM_RUNTIME_RELAX_VM_PROGRAM_H_
#define TVM_RUNTIME_RELAX_VM_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tvm {
namespace runtime {
namespace relax_vm {

enum class Opcode : int64_t {
  /*! \brief Calls a function by the number of its name and keeps the result in a register. */
  kCall = 1,
  /*! \brief Ends the function with the value of a register. */
  kRet = 2,
  /*! \brief Goes on some steps further. */
  kGoto = 3,
  /*! \brief Goes on with the next step if a register holds a number other than 0. */
  kIf = 4,
};

/*! \brief What the value of a call's argument is the number of. */
enum class ArgumentKind : int64_t {
  /*! \brief Register of the function, or kMachineRegister. */
  kRegister = 0,
  /*! \brief The number itself. */
  kImmediate = 1,
  /*! \brief Value of the executable's list of literals. */
  kLiteral = 2,
  /*! \brief Name of a function, whose value is that function. */
  kFunction = 3,
};

/*! \brief A result that nobody needs. */
constexpr int64_t kVoidRegister = -1;
/*! \brief The virtual machine itself, as an argument. */
constexpr int64_t kMachineRegister = -2;

struct Argument {
  ArgumentKind kind;
  int64_t value;
};

struct Step {
  Opcode opcode;
  /*! \brief Where the result goes (kCall), what is returned (kRet), what is asked (kIf). */
  int64_t reg = kVoidRegister;
  /*! \brief Number of the name of the callee (kCall), or how many steps further to go. */
  int64_t target = 0;
  std::vector<Argument> args;
};

/*!
 * \brief Steps, carried out in order. They go forward only, so a program ends; what repeats calls
 * itself. The first registers hold the arguments.
 */
struct Program {
  std::string name;
  std::vector<std::string> input_names;
  int64_t num_registers = 0;
  std::vector<Step> steps;
};

/*! \brief How much there is of what the arguments of steps are numbers of. */
struct ProgramLimits {
  size_t callees;
  size_t literals;
};

/*!
 * \brief Reads a program from its flat encoding: the number of registers, the number of steps, and
 * for each its opcode, register, target, the number of its arguments, and their kinds and values.
 *
 * ValueError for an encoding that is cut short, refers to what is not there, goes back, or does not
 * end with kRet.
 */
Program DecodeProgram(std::string name, std::vector<std::string> input_names,
                      const std::vector<int64_t>& words, const ProgramLimits& limits);
std::vector<int64_t> EncodeProgram(const Program& program);
/*! \brief A line for each step, with the names of what is called. */
std::string ProgramText(const Program& program, const std::vector<std::string>& callees);

/*! \brief Python that builds the program with a `relax.ExecBuilder` called `ib`. */
std::string ProgramPython(const Program& program, const std::vector<std::string>& callees);

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_RUNTIME_RELAX_VM_PROGRAM_H_
