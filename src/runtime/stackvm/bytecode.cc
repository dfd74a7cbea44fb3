#include "runtime/stackvm/bytecode.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <sstream>

#include "runtime/stackvm/machine.h"
#include "runtime/stackvm/scalar_types.h"

namespace tvm {
namespace runtime {
namespace stackvm {

namespace {

struct OpcodeInfo {
  const char* name;
  const char* operands;
};

const OpcodeInfo kOpcodes[] = {
#define TVM_STACKVM_INFO(Name, Text, Operands) {Text, Operands},
    TVM_STACKVM_OPCODES(TVM_STACKVM_INFO)
#undef TVM_STACKVM_INFO
};

const char* const kThreadAxes[] = {"blockIdx.x",  "blockIdx.y",  "blockIdx.z",
                                   "threadIdx.x", "threadIdx.y", "threadIdx.z"};

}  // namespace

const char* ScalarTypeName(ScalarType type) {
  static const char* const kNames[] = {"int8",     "int16",   "int32",   "int64", "uint8",
                                       "uint16",   "uint32",  "uint64",  "bool",  "float16",
                                       "bfloat16", "float32", "float64", "handle"};
  return kNames[static_cast<int>(type)];
}

int MemoryBytes(ScalarType type) {
  return DispatchLane(
      type, [](auto lane) { return static_cast<int>(sizeof(typename decltype(lane)::Memory)); });
}

int RegisterBytes(ScalarType type) {
  return DispatchLane(
      type, [](auto lane) { return static_cast<int>(sizeof(typename decltype(lane)::Register)); });
}

const char* OpcodeName(Opcode op) { return kOpcodes[static_cast<int>(op)].name; }
const char* OpcodeOperands(Opcode op) { return kOpcodes[static_cast<int>(op)].operands; }

int ThreadAxis(const std::string& tag) {
  for (int axis = 0; axis < 6; ++axis) {
    if (tag == kThreadAxes[axis]) return axis;
  }
  return -1;
}

namespace {

std::string Operand(char kind, int32_t value) {
  if (kind == 't') return "@" + std::to_string(value);
  if (kind == 'x') return "lane " + std::to_string(value);
  return "r" + std::to_string(value);
}

void PrintInstr(const Program& program, const Instr& instr, std::ostream& os) {
  os << OpcodeName(instr.op);
  const char* operands = OpcodeOperands(instr.op);
  if (std::strpbrk(operands, "WwRsB") != nullptr || instr.op == Opcode::kFragmentMma) {
    os << '.' << ScalarTypeName(instr.type);
    if (instr.lanes > 1) os << 'x' << instr.lanes;
  }
  if (std::strchr(operands, 'S') != nullptr) os << " from " << ScalarTypeName(instr.type2);
  const int32_t values[] = {instr.a, instr.b, instr.c, instr.d};
  const char* separator = " ";
  for (int k = 0; k < 4; ++k) {
    if (operands[k] == '-' || operands[k] == 'l') continue;
    os << separator << Operand(operands[k], values[k]);
    separator = ", ";
  }
  switch (instr.op) {
    case Opcode::kLoad:
    case Opcode::kGather:
    case Opcode::kStore:
    case Opcode::kStoreLater:
    case Opcode::kScatter:
      os << "  ; " << program.buffers[instr.index].name << ": "
         << program.buffers[instr.index].dtype << ", ";
      if (instr.d >= 0) {
        os << 'r' << instr.d << " bytes";
      } else if (instr.imm == INT64_MAX) {
        os << "of unknown size";
      } else {
        os << instr.imm << " bytes";
      }
      break;
    case Opcode::kAllocate: {
      static const char* const kScopes[] = {"local", "shared", "warp", "shared.dyn"};
      os << "  ; " << program.buffers[instr.index].name << ", " << kScopes[instr.imm];
      break;
    }
    case Opcode::kThreadIndex:
      os << "  ; " << kThreadAxes[instr.imm];
      break;
    case Opcode::kCallPacked:
    case Opcode::kCallPackedLowered:
    case Opcode::kString:
    case Opcode::kAssert:
      os << "  ; \"" << program.strings[instr.index] << '"';
      break;
    case Opcode::kCallFunction:
      os << "  ; " << program.functions[instr.index].name;
      break;
    case Opcode::kMath1:
    case Opcode::kMath2: {
#define TVM_STACKVM_NAME(Name) #Name,
      static const char* const kOne[] = {TVM_STACKVM_MATH1(TVM_STACKVM_NAME)};
      static const char* const kTwo[] = {TVM_STACKVM_MATH2(TVM_STACKVM_NAME)};
#undef TVM_STACKVM_NAME
      os << "  ; " << (instr.op == Opcode::kMath1 ? kOne : kTwo)[instr.imm];
      break;
    }
    case Opcode::kBarrier:
      os << "  ; " << (static_cast<Scope>(instr.imm) == Scope::kWarp ? "warp" : "block");
      break;
    case Opcode::kAddress:
      os << "  ; times " << instr.imm << " bytes";
      break;
    default:
      break;
  }
}

}  // namespace

std::string Listing(const Program& program) {
  std::ostringstream os;
  for (const Function& function : program.functions) {
    static const char* const kKinds[] = {"function", "packed function", "kernel"};
    os << kKinds[static_cast<int>(function.kind)] << ' ' << function.name << '(';
    const char* separator = "";
    for (const Parameter& param : function.params) {
      os << separator << 'r' << param.slot << ": " << ScalarTypeName(param.type) << ' '
         << param.name;
      separator = ", ";
    }
    os << ')';
    for (const std::string& tag : function.launch_params) os << ' ' << tag;
    os << "  # " << function.num_slots << " registers\n";
    for (const Constant& constant : function.constants) {
      os << "  const r" << constant.slot << " = " << ScalarTypeName(constant.type) << ' ';
      double real;
      std::memcpy(&real, &constant.bits, sizeof(real));
      bool is_real = constant.type >= ScalarType::kFloat16 && constant.type <= ScalarType::kFloat64;
      if (is_real) {
        os << real;
      } else {
        os << constant.bits;
      }
      os << '\n';
    }
    for (size_t i = 0; i < function.code.size(); ++i) {
      os << "  " << i << ": ";
      PrintInstr(program, function.code[i], os);
      os << '\n';
    }
  }
  return os.str();
}

namespace {

/*! \brief Checks one function; a program may come from a damaged file. */
class Linker {
 public:
  Linker(const Program& program, Function* function) : program_(program), function_(function) {}

  void Run() {
    Require(static_cast<int>(function_->kind) <= static_cast<int>(CallKind::kKernel),
            "has an unknown calling convention");
    Require(function_->num_slots >= 0 && function_->num_slots < (1 << 24),
            "has too many registers");
    for (const Parameter& param : function_->params) CheckValue(param);
    for (const Constant& constant : function_->constants) CheckValue(constant);
    for (const std::string& tag : function_->launch_params) {
      Require(ThreadAxis(tag) >= 0 || tag == "tir.use_dyn_shared_memory", "has an unknown axis");
    }
    Require(!function_->code.empty() && function_->code.back().op == Opcode::kReturn,
            "does not end with a return");
    for (Instr& instr : function_->code) {
      Check(instr);
      instr.handler = FindHandler(instr);
      Require(instr.handler != nullptr, "has an instruction for a type that it is not made for");
      ++position_;
    }
  }

 private:
  void Require(bool holds, const char* what) const {
    TVM_CHECK(holds, ValueError) << "stackvm: function " << function_->name << ' ' << what
                                 << " (instruction " << position_
                                 << "); the program is damaged, build it again";
  }
  void CheckSlots(int64_t slot, int64_t count) const {
    Require(slot >= 0 && slot + count <= function_->num_slots, "names a register it does not have");
  }
  /*! \brief A parameter or constant. */
  template <typename T>
  void CheckValue(const T& value) const {
    Require(static_cast<int>(value.type) < kNumScalarTypes, "has a value of unknown type");
    CheckSlots(value.slot, 1);
  }
  template <typename T>
  void CheckIndex(const std::vector<T>& table, int64_t index) const {
    Require(index >= 0 && index < static_cast<int64_t>(table.size()), "refers to nothing");
  }

  void Check(const Instr& instr) const {
    Require(instr.op < Opcode::kNumOpcodes && static_cast<int>(instr.type) < kNumScalarTypes &&
                static_cast<int>(instr.type2) < kNumScalarTypes,
            "has an unknown instruction");
    constexpr int kMaxLanes = 1 << 16;
    Require(instr.lanes >= 1 && instr.lanes <= kMaxLanes, "has too many lanes");
    const char* operands = OpcodeOperands(instr.op);
    const int32_t values[] = {instr.a, instr.b, instr.c, instr.d};
    for (int k = 0; k < 4; ++k) {
      switch (operands[k]) {
        case 'W':
        case 'R':
          CheckSlots(values[k], RegisterSlots(instr.type, instr.lanes));
          break;
        case 'S':
        case 'I':
          CheckSlots(values[k], RegisterSlots(instr.type2, instr.lanes));
          break;
        case 'B':
          CheckSlots(values[k], RegisterSlots(ScalarType::kBool, instr.lanes));
          break;
        case 't':
          CheckIndex(function_->code, values[k]);
          break;
        case 'x':
        case '-':
          break;
        case 'l':
          if (values[k] >= 0) CheckSlots(values[k], 1);
          break;
        default:
          CheckSlots(values[k], 1);
      }
    }
    CheckTables(instr);
  }

  void CheckTables(const Instr& instr) const {
    switch (instr.op) {
      case Opcode::kLoad:
      case Opcode::kStore:
      case Opcode::kStoreLater:
      case Opcode::kGather:
      case Opcode::kScatter:
        CheckIndex(program_.buffers, instr.index);
        break;
      case Opcode::kAllocate:
        CheckIndex(program_.buffers, instr.index);
        Require(instr.imm >= 0 && instr.imm <= 3, "allocates in no scope");
        break;
      case Opcode::kCopyLane:
        Require(instr.imm >= 1 && instr.imm <= (1 << 16) && instr.c >= 0 && instr.c < instr.lanes &&
                    instr.d >= 0 && instr.d < instr.imm,
                "copies a lane that is not there");
        CheckSlots(instr.a, RegisterSlots(instr.type, instr.lanes));
        CheckSlots(instr.b, RegisterSlots(instr.type, static_cast<int>(instr.imm)));
        break;
      case Opcode::kAssert:
        CheckIndex(program_.strings, instr.index);
        CheckSlotList(instr.list);
        break;
      case Opcode::kCallPacked: {
        CheckIndex(program_.strings, instr.index);
        CheckIndex(program_.lists, instr.list);
        const std::vector<int64_t>& list = program_.lists[instr.list];
        Require(list.size() % 2 == 0, "has an odd list of arguments");
        for (size_t k = 0; k < list.size(); k += 2) {
          Require(list[k] >= -1 && list[k] < kNumScalarTypes, "passes an unknown type");
          if (list[k] < 0) {
            CheckIndex(program_.strings, list[k + 1]);
          } else {
            CheckSlots(list[k + 1], 1);
          }
        }
        break;
      }
      case Opcode::kCallPackedLowered:
      case Opcode::kString:
        CheckIndex(program_.strings, instr.index);
        break;
      case Opcode::kCallFunction:
        Require(function_->kind != CallKind::kKernel, "is a kernel that calls a function");
        CheckIndex(program_.functions, instr.index);
        CheckSlotList(instr.list);
        Require(program_.lists[instr.list].size() == program_.functions[instr.index].params.size(),
                "calls with a wrong number of arguments");
        break;
      case Opcode::kShuffle:
        CheckSlots(instr.index, 1);
        break;
      case Opcode::kThreadIndex:
        Require(instr.imm >= 0 && instr.imm < 6, "has an unknown axis");
        break;
      case Opcode::kFragmentLoad:
      case Opcode::kFragmentStore: {
        CheckIndex(program_.buffers, instr.index);
        CheckIndex(program_.lists, instr.list);
        const std::vector<int64_t>& list = program_.lists[instr.list];
        Require(list.size() == 5 && IsExtent(list[0]) && IsExtent(list[1]),
                "has no fragment shape");
        if (list[2] >= 0) CheckSlots(list[2], 1);
        if (list[3] >= 0) CheckSlots(list[3], 1);
        break;
      }
      case Opcode::kFragmentMma: {
        CheckIndex(program_.lists, instr.list);
        const std::vector<int64_t>& list = program_.lists[instr.list];
        Require(list.size() == 11 && IsExtent(list[0]) && IsExtent(list[1]) && IsExtent(list[2]),
                "has no fragment shape");
        for (size_t k = 3; k < list.size(); ++k) CheckSlots(list[k], 1);
        break;
      }
      default:
        break;
    }
  }

  static bool IsExtent(int64_t value) { return value > 0 && value <= 1024; }

  void CheckSlotList(int64_t number) const {
    CheckIndex(program_.lists, number);
    for (int64_t slot : program_.lists[number]) CheckSlots(slot, 1);
  }

  static Handler FindHandler(const Instr& instr) {
    for (auto find : {&ArithmeticHandler, &ConversionHandler, &MathHandler, &MemoryHandler,
                      &ControlHandler, &CallHandler, &BlockHandler}) {
      if (Handler handler = find(instr)) return handler;
    }
    return nullptr;
  }

  const Program& program_;
  Function* function_;
  int position_ = 0;
};

}  // namespace

void Link(Program* program) {
  TVM_CHECK(program->limits.warp_size >= 1 && program->limits.warp_size <= 64, ValueError)
      << "stackvm: warps of " << program->limits.warp_size << " threads; 1 to 64 are possible";
  for (Function& function : program->functions) Linker(*program, &function).Run();
}

}  // namespace stackvm
}  // namespace runtime
}  // namespace tvm
