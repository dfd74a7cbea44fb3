#include <tvm/runtime/relax_vm/program.h>

#include <utility>

#include "word_reader.h"

namespace tvm {
namespace runtime {
namespace relax_vm {
namespace {

class ProgramReader {
 public:
  ProgramReader(const Program& program, const std::vector<int64_t>& words,
                const ProgramLimits& limits)
      : program_(program), words_(program.name, words), limits_(limits) {}

  int64_t Registers() {
    const auto inputs = static_cast<int64_t>(program_.input_names.size());
    // A program without arguments may have no register only if it returns none, which none does.
    return words_.NextBelow(inputs, kMostRegisters, "registers");
  }
  int64_t Steps() { return words_.NextCount(); }

  Step Next(int64_t position, int64_t count) {
    Step step;
    step.opcode = static_cast<Opcode>(words_.NextBelow(1, 5, "operation"));
    const bool is_call = step.opcode == Opcode::kCall;
    const bool reads = step.opcode == Opcode::kRet || step.opcode == Opcode::kIf;
    step.reg = words_.NextBelow(reads ? 0 : kVoidRegister, program_.num_registers, "register");
    if (is_call) {
      step.target = words_.NextBelow(0, static_cast<int64_t>(limits_.callees), "function");
    } else if (step.opcode == Opcode::kRet) {
      step.target = words_.Next();
    } else {
      step.target = words_.NextBelow(1, count - position, "a step forward");
    }
    for (int64_t left = words_.NextCount(); left > 0; --left) step.args.push_back(NextArgument());
    TVM_CHECK(step.opcode == Opcode::kRet || position + 1 < count, ValueError)
        << "relax executable: '" << program_.name << "' does not end by returning a value; the "
        << "file is damaged, export it again";
    return step;
  }

 private:
  // More than a program needs, and less than memory has room for.
  static constexpr int64_t kMostRegisters = int64_t{1} << 24;

  Argument NextArgument() {
    const auto kind = static_cast<ArgumentKind>(words_.NextBelow(0, 4, "kind of argument"));
    switch (kind) {
      case ArgumentKind::kRegister:
        return {kind, words_.NextBelow(kMachineRegister, program_.num_registers, "register")};
      case ArgumentKind::kLiteral:
        return {kind, words_.NextBelow(0, static_cast<int64_t>(limits_.literals), "literal")};
      case ArgumentKind::kFunction:
        return {kind, words_.NextBelow(0, static_cast<int64_t>(limits_.callees), "function")};
      default:
        return {kind, words_.Next()};
    }
  }

  const Program& program_;
  WordReader words_;
  const ProgramLimits& limits_;
};

std::string ArgumentText(const Argument& arg, const std::vector<std::string>& callees) {
  switch (arg.kind) {
    case ArgumentKind::kRegister:
      return arg.value == kMachineRegister ? "%vm" : "%" + std::to_string(arg.value);
    case ArgumentKind::kImmediate:
      return "i" + std::to_string(arg.value);
    case ArgumentKind::kLiteral:
      return "c[" + std::to_string(arg.value) + "]";
    default:
      return "f[" + callees[arg.value] + "]";
  }
}

std::string StepText(const Step& step, const std::vector<std::string>& callees) {
  const std::string reg = step.reg == kVoidRegister ? "%void" : "%" + std::to_string(step.reg);
  switch (step.opcode) {
    case Opcode::kRet:
      return "ret " + reg;
    case Opcode::kGoto:
      return "goto +" + std::to_string(step.target);
    case Opcode::kIf:
      return "if " + reg + " else +" + std::to_string(step.target);
    default:
      break;
  }
  std::string text = "call " + callees[step.target] + " in:";
  const char* separator = " ";
  for (const Argument& arg : step.args) {
    text += separator + ArgumentText(arg, callees);
    separator = ", ";
  }
  return text + " dst: " + reg;
}

std::string ArgumentPython(const Argument& arg, const std::vector<std::string>& callees) {
  const std::string value = std::to_string(arg.value);
  switch (arg.kind) {
    case ArgumentKind::kRegister:
      if (arg.value == kMachineRegister) return "ib.vm_state()";
      return arg.value == kVoidRegister ? "ib.void_arg()" : "ib.r(" + value + ")";
    case ArgumentKind::kImmediate:
      return "ib.imm(" + value + ")";
    case ArgumentKind::kLiteral:
      return "ib.c(" + value + ")";
    default:
      return "ib.f(\"" + callees[arg.value] + "\")";
  }
}

std::string StepPython(const Step& step, const std::vector<std::string>& callees) {
  const std::string reg = "ib.r(" + std::to_string(step.reg) + ")";
  switch (step.opcode) {
    case Opcode::kRet:
      return "ib.emit_ret(" + (step.reg == kVoidRegister ? "ib.void_arg()" : reg) + ")";
    case Opcode::kGoto:
      return "ib.emit_goto(" + std::to_string(step.target) + ")";
    case Opcode::kIf:
      return "ib.emit_if(" + reg + ", " + std::to_string(step.target) + ")";
    default:
      break;
  }
  std::string text = "ib.emit_call(\"" + callees[step.target] + "\", args=[";
  const char* separator = "";
  for (const Argument& arg : step.args) {
    text += separator + ArgumentPython(arg, callees);
    separator = ", ";
  }
  return text + (step.reg == kVoidRegister ? "])" : "], dst=" + reg + ")");
}

}  // namespace

std::string ProgramPython(const Program& program, const std::vector<std::string>& callees) {
  std::string text = "with ib.function(\"" + program.name +
                     "\", num_inputs=" + std::to_string(program.input_names.size()) + "):\n";
  for (const Step& step : program.steps) text += "    " + StepPython(step, callees) + "\n";
  return text;
}

std::string ProgramText(const Program& program, const std::vector<std::string>& callees) {
  std::string text =
      "@" + program.name + ": " + std::to_string(program.num_registers) + " registers\n";
  for (const Step& step : program.steps) text += "  " + StepText(step, callees) + "\n";
  return text;
}

Program DecodeProgram(std::string name, std::vector<std::string> input_names,
                      const std::vector<int64_t>& words, const ProgramLimits& limits) {
  Program program;
  program.name = std::move(name);
  program.input_names = std::move(input_names);
  ProgramReader reader(program, words, limits);
  program.num_registers = reader.Registers();
  const int64_t count = reader.Steps();
  for (int64_t i = 0; i < count; ++i) program.steps.push_back(reader.Next(i, count));
  TVM_CHECK(count > 0, ValueError) << "relax executable: '" << program.name
                                   << "' has no steps; the file is damaged, export it again";
  return program;
}

std::vector<int64_t> EncodeProgram(const Program& program) {
  std::vector<int64_t> words{program.num_registers, static_cast<int64_t>(program.steps.size())};
  for (const Step& step : program.steps) {
    words.insert(words.end(), {static_cast<int64_t>(step.opcode), step.reg, step.target,
                               static_cast<int64_t>(step.args.size())});
    for (const Argument& arg : step.args) {
      words.insert(words.end(), {static_cast<int64_t>(arg.kind), arg.value});
    }
  }
  return words;
}

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
