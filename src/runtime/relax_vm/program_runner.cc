#include "program_runner.h"

#include <tvm/runtime/logging.h>
#include <tvm/runtime/registry.h>
#include <tvm/runtime/stack_guard.h>

#include <utility>

namespace tvm {
namespace runtime {
namespace relax_vm {

struct ProgramRunner::Frame {
  const Module& machine;
  profiling::Profiler* profiler;
  std::vector<Any> registers;
};

ProgramRunner::ProgramRunner(const ExecutableNode& executable, DLDevice device, Lookup functions)
    : executable_(executable), device_(device), functions_(std::move(functions)) {
  for (const std::string& name : executable.callees) callees_.push_back(Resolve(name));
  for (const Any& literal : executable.literals) {
    const bool is_array = literal.as<NDArrayObj>() != nullptr;
    const bool elsewhere = is_array && device.device_type != kDLCPU;
    literals_.push_back(elsewhere ? Any(literal.cast<NDArray>().CopyTo(device)) : literal);
  }
  for (const Program& program : executable.programs) released_.push_back(LastUses(program));
}

int ProgramRunner::Find(const std::string& name) const {
  for (size_t i = 0; i < executable_.programs.size(); ++i) {
    if (executable_.programs[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

ProgramRunner::Callee ProgramRunner::Resolve(const std::string& name) const {
  Callee callee;
  callee.program = Find(name);
  if (callee.program >= 0) return callee;
  callee.function = functions_(name);
  if (callee.function.defined()) return callee;
  for (const Module& library : executable_.imports()) {
    callee.function = library.GetFunction(name, true);
    callee.is_kernel = callee.function.defined();
    if (callee.is_kernel) break;
  }
  // What is in neither is looked for in the registry when it is called.
  return callee;
}

const ProgramRunner::Callee& ProgramRunner::CalleeAt(int64_t number) const {
  return callees_[number];
}

std::vector<std::vector<int64_t>> ProgramRunner::LastUses(const Program& program) const {
  std::vector<int64_t> last(program.num_registers, -1);
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    if (step.reg >= 0) last[step.reg] = static_cast<int64_t>(i);
    for (const Argument& arg : step.args) {
      if (arg.kind == ArgumentKind::kRegister && arg.value >= 0) {
        last[arg.value] = static_cast<int64_t>(i);
      }
    }
  }
  std::vector<std::vector<int64_t>> released(program.steps.size());
  for (size_t reg = 0; reg < last.size(); ++reg) {
    if (last[reg] >= 0) released[last[reg]].push_back(static_cast<int64_t>(reg));
  }
  return released;
}

Any ProgramRunner::Run(int number, const Module& machine, Args args,
                       profiling::Profiler* profiler) const {
  const Program& program = executable_.programs[number];
  const auto count = static_cast<int>(program.input_names.size());
  if (args.size() != count) {
    std::string names;
    for (const std::string& name : program.input_names) names += (names.empty() ? "" : ", ") + name;
    TVM_FATAL(TypeError) << program.name << ": takes " << count << " inputs"
                         << (count > 0 ? " (" + names + ")" : "") << ", got " << args.size();
  }
  std::vector<Any> inputs;
  inputs.reserve(program.num_registers);
  for (int i = 0; i < count; ++i) inputs.push_back(Received(program, i, args[i]));
  return Execute(number, machine, std::move(inputs), profiler);
}

Any ProgramRunner::Received(const Program& program, int input, const Any& value) const {
  if (value.as<NDArrayObj>() == nullptr && value.type_code() != kTVMDLTensor) {
    if (value.as<ArrayNode>() == nullptr) return value;
    Array<Any> fields;
    for (const Any& field : value.cast<Array<Any>>()) {
      fields.push_back(Received(program, input, field));
    }
    return fields;
  }
  const DLTensor& tensor = *value.cast<DLTensor*>();
  const std::string& name = program.input_names[input];
  TVM_CHECK(tensor.device.device_type == device_.device_type &&
                tensor.device.device_id == device_.device_id,
            ValueError)
      << program.name << ": input '" << name
      << "' is on another device than the virtual machine; copy it first";
  TVM_CHECK(IsContiguous(tensor), ValueError)
      << program.name << ": input '" << name
      << "' must be contiguous in row-major order; copy it into a contiguous array first";
  const auto address = reinterpret_cast<uintptr_t>(tensor.data) + tensor.byte_offset;
  const bool is_array = value.as<NDArrayObj>() != nullptr;
  if (is_array && address % kAllocAlignment == 0) return value;
  // Borrowed tensors may be gone when a value made of them is looked at.
  NDArray copy =
      NDArray::Empty({tensor.shape, tensor.shape + tensor.ndim}, DataType(tensor.dtype), device_);
  copy.CopyFrom(&tensor);
  return copy;
}

Any ProgramRunner::Execute(int number, const Module& machine, std::vector<Any> inputs,
                           profiling::Profiler* profiler) const {
  CheckStack();
  const Program& program = executable_.programs[number];
  const std::vector<std::vector<int64_t>>& released = released_[number];
  Frame frame{machine, profiler, std::move(inputs)};
  frame.registers.resize(program.num_registers);
  size_t at = 0;
  while (true) {
    const Step& step = program.steps[at];
    if (step.opcode == Opcode::kRet) return std::move(frame.registers[step.reg]);
    int64_t forward = 1;
    if (step.opcode == Opcode::kGoto) {
      forward = step.target;
    } else if (step.opcode == Opcode::kIf) {
      if (frame.registers[step.reg].cast<int64_t>() == 0) forward = step.target;
    } else {
      Any result = Call(step, frame);
      if (step.reg >= 0) frame.registers[step.reg] = std::move(result);
    }
    // Steps go forward only, so what no later step reads is not read again on any way.
    for (int64_t reg : released[at]) frame.registers[reg] = Any();
    at += static_cast<size_t>(forward);
  }
}

Any ProgramRunner::ValueOf(const Argument& arg, const Frame& frame) const {
  switch (arg.kind) {
    case ArgumentKind::kImmediate:
      return Any(arg.value);
    case ArgumentKind::kLiteral:
      return literals_[arg.value];
    case ArgumentKind::kRegister:
      if (arg.value == kMachineRegister) return Any(frame.machine);
      return arg.value == kVoidRegister ? Any() : frame.registers[arg.value];
    default:
      break;
  }
  const Callee& callee = CalleeAt(arg.value);
  if (callee.program < 0) {
    if (callee.function.defined()) return Any(callee.function);
    return Any(Registry::Require(executable_.callees[arg.value]));
  }
  // The machine keeps the runner alive.
  return Any(PackedFunc([this, machine = frame.machine, number = callee.program](
                            Args args, RetValue* ret) { *ret = Run(number, machine, args); }));
}

Any ProgramRunner::Call(const Step& step, const Frame& frame) const {
  const Callee& callee = CalleeAt(step.target);
  std::vector<Any> args;
  args.reserve(step.args.size());
  for (const Argument& arg : step.args) args.push_back(ValueOf(arg, frame));
  if (callee.program >= 0) {
    const Program& program = executable_.programs[callee.program];
    TVM_CHECK(args.size() == program.input_names.size(), TypeError)
        << program.name << ": takes " << program.input_names.size() << " inputs, got "
        << args.size();
    return Execute(callee.program, frame.machine, std::move(args), frame.profiler);
  }
  return CallOutside(step, callee, Args(args.data(), static_cast<int32_t>(args.size())), frame);
}

Any ProgramRunner::CallOutside(const Step& step, const Callee& callee, Args args,
                               const Frame& frame) const {
  const std::string& name = executable_.callees[step.target];
  PackedFunc function = callee.function;
  if (!function.defined()) {
    const PackedFunc* found = Registry::Get(name);
    TVM_CHECK(found != nullptr, ValueError)
        << "VirtualMachine: a program calls '" << name << "', which neither the executable nor "
        << "the registry has; register it with tvm.register_func";
    function = *found;
  }
  for (int i = 0; callee.is_kernel && i < args.size(); ++i) {
    const auto* array = args[i].as<NDArrayObj>();
    if (array == nullptr) continue;
    const auto address =
        reinterpret_cast<uintptr_t>(array->tensor.data) + array->tensor.byte_offset;
    TVM_CHECK(address % kAllocAlignment == 0, ValueError)
        << name << ": argument " << i << " lies at an address that is no multiple of "
        << kAllocAlignment << " bytes; copy the tensor first";
  }
  auto watched = [&](bool before, const Any& result) {
    std::vector<Any> all{Any(function), Any(String(name)), Any(before), result};
    all.insert(all.end(), args.begin(), args.end());
    Any answer;
    instrument.CallPacked(Args(all.data(), static_cast<int32_t>(all.size())), &answer);
    return answer;
  };
  if (instrument.defined()) {
    const Any answer = watched(true, Any());
    if (answer.defined() && answer.cast<int64_t>() == 1) return Any();
  }
  if (frame.profiler != nullptr) {
    frame.profiler->StartCall(name, device_,
                              {{"Argument Shapes", Any(profiling::ShapeText(args))}});
  }
  Any result;
  function.CallPacked(args, &result);
  if (frame.profiler != nullptr) frame.profiler->StopCall();
  if (instrument.defined()) watched(false, result);
  return result;
}

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
