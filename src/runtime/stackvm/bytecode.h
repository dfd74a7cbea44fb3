/*!
 * \file bytecode.h
 * \brief Programs of the stackvm: instructions over typed registers.
 *
 * A register holds one value for each thread of a block (a host function is a block of one thread),
 * and a value may have several lanes. Registers are numbered in slots of eight bytes a thread. An
 * instruction is carried out for all active threads before the next one begins, so a branch on a
 * condition that differs between threads narrows the set of active threads.
 */
#ifndef TVM_RUNTIME_STACKVM_BYTECODE_H_
#define TVM_RUNTIME_STACKVM_BYTECODE_H_

#include <tvm/runtime/c_runtime_api.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tvm {
namespace runtime {
namespace stackvm {

/*! \brief Type of one lane. Half types are computed in float32 and rounded after each operation. */
enum class ScalarType : uint8_t {
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kBool,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kHandle,
};
constexpr int kNumScalarTypes = 14;

const char* ScalarTypeName(ScalarType type);
/*! \brief Bytes of a lane in memory. */
int MemoryBytes(ScalarType type);
/*! \brief Bytes of a lane in a register: those of float32 for the half types. */
int RegisterBytes(ScalarType type);
inline int RegisterSlots(ScalarType type, int lanes) {
  return (RegisterBytes(type) * lanes + 7) / 8;
}

/*!
 * \brief X(Enumerator, "name", "operands"): one letter for each of the operands a, b, c, d.
 *
 * W writes `lanes` values of `type`, R reads them; S reads `lanes` values of `type2`; B and b are
 * booleans read or written (`lanes` of them); s reads one value of `type`; i one index of `type2`;
 * I `lanes` of those; p reads a pointer; l an optional int64 (-1 for none); w writes one value of
 * `type`; q reads one int64; t is the number of an instruction; x a lane number; - is unused.
 */
// clang-format off
#define TVM_STACKVM_OPCODES(X)                                                                  \
  /* a = b op c, lane by lane */                                                                \
  X(Add, "add", "WRR-") X(Sub, "sub", "WRR-") X(Mul, "mul", "WRR-") X(Div, "div", "WRR-")       \
  X(Mod, "mod", "WRR-") X(FloorDiv, "floordiv", "WRR-") X(FloorMod, "floormod", "WRR-")         \
  X(Min, "min", "WRR-") X(Max, "max", "WRR-") X(And, "and", "WRR-") X(Or, "or", "WRR-")         \
  X(Xor, "xor", "WRR-") X(ShiftLeft, "shl", "WRR-") X(ShiftRight, "shr", "WRR-")                \
  X(EQ, "eq", "BRR-") X(NE, "ne", "BRR-") X(LT, "lt", "BRR-") X(LE, "le", "BRR-")               \
  X(Not, "not", "WR--") X(IsNan, "isnan", "BR--") X(Popcount, "popcount", "WR--")               \
  X(Cast, "cast", "WS--") X(Reinterpret, "reinterpret", "WS--")                                 \
  X(Select, "select", "WBRR") X(SelectScalar, "select_whole", "WbRR")                           \
  X(Math1, "math", "WR--") X(Math2, "math2", "WRR-") X(Fma, "fma", "WRRR")                      \
  /* lanes */                                                                                   \
  X(Broadcast, "broadcast", "Ws--") X(Ramp, "ramp", "Wss-")                                     \
  X(CopyLane, "copy_lane", "wsxx")                                                              \
  /* a = b where the thread is active, other threads keep theirs */                             \
  X(Assign, "assign", "WR--")                                                                   \
  /* memory: value, pointer, element index, bytes the buffer has */                             \
  X(Load, "load", "Wpil") X(Gather, "gather", "WpIl") X(Store, "store", "Rpil")                 \
  X(Scatter, "scatter", "RpIl") X(Address, "address", "ppi-")                                   \
  X(Allocate, "allocate", "pq--") X(Free, "free", "----")                                       \
  X(AtomicAdd, "atomic_add", "wps-")                                                            \
  /* control flow */                                                                            \
  X(Jump, "jump", "t---") X(JumpUnless, "jump_unless", "tb--")                                  \
  X(ForTest, "for_test", "tss-") X(ForNext, "for_next", "tss-")                                 \
  X(If, "if", "tb--") X(Else, "else", "tb--") X(EndIf, "end_if", "----")                        \
  X(LoopBegin, "loop_begin", "----") X(LoopTest, "loop_test", "tb--")                           \
  X(LoopTestLess, "loop_test_less", "tss-") X(LoopNext, "loop_next", "ts--")                    \
  X(LoopEnd, "loop_end", "----")                                                                \
  X(Return, "return", "----") X(ReturnValue, "return_value", "s---")                            \
  X(Assert, "assert", "b---")                                                                   \
  /* calls: the rest of the operands are in a list */                                           \
  X(CallPacked, "call_packed", "w---") X(CallFunction, "call", "w---")                          \
  X(CallPackedLowered, "call_packed_lowered", "wpqq")                                           \
  X(String, "string", "p---") X(StructGet, "struct_get", "wpi-") X(StructSet, "struct_set", "spi-")                         \
  X(StackAllocate, "stack_allocate", "pq--")                                                    \
  /* threads of a block */                                                                      \
  X(ThreadIndex, "thread_index", "w---") X(Barrier, "barrier", "----")                          \
  X(Shuffle, "shuffle", "WRqq") X(ActiveMask, "active_mask", "w---")                            \
  X(FragmentFill, "fragment_fill", "psq-") X(FragmentLoad, "fragment_load", "pqpq")             \
  X(FragmentStore, "fragment_store", "pqpq") X(FragmentMma, "fragment_mma", "----")             \
  /* stores that are carried out when their thread waits for them: of one group after the other */ \
  X(StoreLater, "store_later", "Rpil") X(CloseGroup, "close_group", "----")                     \
  X(WaitForGroups, "wait_for_groups", "q---")
// clang-format on

enum class Opcode : uint8_t {
#define TVM_STACKVM_ENUM(Name, Text, Operands) k##Name,
  TVM_STACKVM_OPCODES(TVM_STACKVM_ENUM)
#undef TVM_STACKVM_ENUM
      kNumOpcodes,
};

const char* OpcodeName(Opcode op);
const char* OpcodeOperands(Opcode op);

/*! \brief Functions of Math1 and Math2; the order is part of the file format. */
// clang-format off
#define TVM_STACKVM_MATH1(X)                                                                    \
  X(exp) X(exp2) X(exp10) X(expm1) X(erf) X(tanh) X(sigmoid) X(sqrt) X(rsqrt) X(log) X(log2)    \
  X(log10) X(log1p) X(cos) X(sin) X(tan) X(acos) X(asin) X(atan) X(cosh) X(sinh) X(acosh)       \
  X(asinh) X(atanh) X(floor) X(ceil) X(round) X(nearbyint) X(trunc) X(fabs)
#define TVM_STACKVM_MATH2(X) X(pow) X(fmod) X(atan2) X(copysign) X(nextafter) X(hypot) X(ldexp)
// clang-format on
/*! \brief Number of a function of one or two floating arguments, -1 for an unknown name. */
int MathFunction(const std::string& name, int num_args);

/*! \brief Flags of an instruction. */
enum InstrFlag : uint8_t {
  /*! \brief Memory shared by the threads of a block: accesses are watched for races. */
  kSharedMemory = 1,
  /*! \brief Shared only by the threads of one warp. */
  kWarpMemory = 2,
  /*! \brief A vector access must be aligned to its whole size, as on a GPU. */
  kAligned = 4,
  /*! \brief A fragment is laid out by columns in memory. */
  kColumnMajor = 8,
  /*! \brief A fragment of float32 has operands of tensor cores, which round to tf32. */
  kRoundToTf32 = 16,
  /*! \brief Memory of the device that the kernel writes: accesses are watched for races. */
  kGlobalMemory = 32,
};

/*! \brief Where Allocate takes memory from. */
enum class Scope : uint8_t { kThread = 0, kBlock = 1, kWarp = 2, kDynamicBlock = 3 };

/*! \brief How the source thread of Shuffle is found. */
enum class ShuffleMode : uint8_t { kIndex = 0, kUp = 1, kDown = 2 };

struct Machine;
struct Instr;
/*! \brief Carries an instruction out; the next one, or null at the end of a function. */
using Handler = const Instr* (*)(Machine& machine, const Instr* instr);

struct Instr {
  Opcode op{};
  ScalarType type{};
  ScalarType type2{};
  uint8_t flags = 0;
  int32_t lanes = 1;
  int32_t a = -1, b = -1, c = -1, d = -1;
  /*! \brief Number of a buffer, string, function or list, by the instruction. */
  int32_t index = -1;
  int32_t list = -1;
  /*! \brief Bytes of a buffer whose size is constant; or a small constant, by the instruction. */
  int64_t imm = 0;
  /*! \brief Found from the other fields when the program is loaded. */
  Handler handler = nullptr;
};

/*! \brief A value the whole function reads from a register. */
struct Constant {
  int32_t slot = 0;
  ScalarType type{};
  /*! \brief The integer, or the bits of the float64. */
  int64_t bits = 0;
};

struct Parameter {
  int32_t slot = 0;
  ScalarType type{};
  std::string name;
};

/*! \brief Who calls a function. */
enum class CallKind : uint8_t {
  /*! \brief Functions of the same program. */
  kInternal = 0,
  /*! \brief Everybody, with parameters (arguments, their number, result). */
  kPacked = 1,
  /*! \brief Hosts, with parameters followed by the extents of the launch. */
  kKernel = 2,
};

struct Function {
  std::string name;
  CallKind kind = CallKind::kInternal;
  std::vector<Parameter> params;
  std::vector<Constant> constants;
  int32_t num_slots = 0;
  std::vector<Instr> code;
  /*! \brief Of a kernel: "blockIdx.x", ..., and "tir.use_dyn_shared_memory". */
  std::vector<std::string> launch_params;
};

/*! \brief A buffer as it is named in messages. */
struct BufferInfo {
  std::string name;
  std::string dtype;
};

/*! \brief Limits of the device that is emulated; 0 for no limit. */
struct DeviceLimits {
  int64_t warp_size = 32;
  int64_t max_threads_per_block = 0;
  int64_t max_shared_memory_per_block = 0;
  int64_t check_races = 0;
};

struct Program {
  std::vector<Function> functions;
  std::vector<std::string> strings;
  std::vector<BufferInfo> buffers;
  std::vector<std::vector<int64_t>> lists;
  DeviceLimits limits;
};

/*! \brief The number of a thread axis such as "threadIdx.y": 0-2 blockIdx, 3-5 threadIdx. */
int ThreadAxis(const std::string& tag);

/*! \brief Readable text of all functions. */
std::string Listing(const Program& program);

/*!
 * \brief Check that every instruction stays inside its function and tables, and find its handler.
 * \throws ValueError naming the function and instruction.
 */
void Link(Program* program);

/*! \brief The program as bytes, the same on every machine of this byte order. */
std::string Serialize(const Program& program);
/*! \brief Reads Serialize's bytes; ValueError when they are damaged. */
Program Deserialize(std::string_view bytes);

}  // namespace stackvm
}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_STACKVM_BYTECODE_H_
