/*!
 * \file codegen_stackvm_call.cc
 * \brief Calls of the stackvm generator: functions, and what the threads of a block do together.
 */
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/tir/launch.h>

#include "codegen/large_uint.h"
#include "codegen/stackvm/codegen_stackvm.h"

namespace tvm {
namespace codegen {

using namespace tir;  // NOLINT(*)
using runtime::stackvm::MathFunction;
using runtime::stackvm::Scope;
using runtime::stackvm::ShuffleMode;

int CodeGenStackVM::Nothing() { return Constant(ScalarType::kInt32, 0); }

int CodeGenStackVM::CallMath(const std::string& name, const CallNode* op, size_t first_arg) {
  const int num_args = static_cast<int>(op->args.size() - first_arg);
  const int number = num_args == 1 || num_args == 2 ? MathFunction(name, num_args) : -1;
  const DataType dtype = op->args.size() > first_arg ? op->args[first_arg].dtype() : op->dtype;
  TVM_CHECK(number >= 0, ValueError)
      << "stackvm generator: no code for operator tir." << name << " in function "
      << function_->name << "; call a PackedFunc with call_packed, or lower the operator before";
  TVM_CHECK(dtype.is_float() || dtype.is_bfloat16(), TypeError)
      << "stackvm generator: " << name << " takes floating values, got " << dtype.ToString()
      << " in function " << function_->name << "; cast the argument first";
  const Slot result = Allocate(op->dtype);
  Temporaries scope(this);
  const Slot x = VisitExpr(op->args[first_arg]);
  const Slot y = num_args == 2 ? EvalAs(op->args[first_arg + 1], dtype) : -1;
  Emit(num_args == 1 ? Opcode::kMath1 : Opcode::kMath2, dtype, result, x, y).imm = number;
  return result;
}

int CodeGenStackVM::CallExtern(const CallNode* op) {
  std::string name = Downcast<StringImm>(op->args[0])->value;
  const int num_args = static_cast<int>(op->args.size()) - 1;
  if (in_kernel() && (name == "atomicAdd" || name == "atomic_add")) {
    const DataType dtype = op->args[2].dtype();
    const Slot result = Allocate(dtype);
    Temporaries scope(this);
    const Slot pointer = VisitExpr(op->args[1]);
    const Slot value = VisitExpr(op->args[2]);
    Emit(Opcode::kAtomicAdd, dtype, result, pointer, value);
    return result;
  }
  std::string plain = name;
  if (plain.rfind("llvm.", 0) == 0) {
    // An intrinsic of LLVM: between the prefix and the types it is overloaded on.
    plain = plain.substr(5, plain.find('.', 5) - 5);
  } else if (num_args > 0 && op->args[1].dtype() == DataType::Float(32) && plain.back() == 'f' &&
             MathFunction(plain, num_args) < 0) {
    plain.pop_back();
  }
  if ((num_args == 1 || num_args == 2) && MathFunction(plain, num_args) >= 0) {
    return CallMath(plain, op, 1);
  }
  TVM_CHECK(name.rfind("llvm.", 0) != 0, ValueError)
      << "stackvm generator: function " << function_->name << " calls the LLVM intrinsic " << name
      << ", which has no counterpart; build for the target llvm";
  return CallPacked(name, op, 1);
}

int CodeGenStackVM::CallPacked(const std::string& name, const CallNode* op, size_t first_arg) {
  TVM_CHECK(!in_kernel(), ValueError) << "stackvm generator: kernel " << function_->name
                                      << " calls " << name << "; only hosts call functions";
  const Slot result = Allocate(op->dtype.is_void() ? DataType::Int(32) : op->dtype);
  Temporaries scope(this);
  std::vector<int64_t> args;
  for (size_t i = first_arg; i < op->args.size(); ++i) {
    const PrimExpr& arg = op->args[i];
    if (const auto* text = arg.as<StringImmNode>()) {
      args.push_back(-1);
      args.push_back(StringIndex(text->value));
    } else {
      TVM_CHECK(arg.dtype().lanes() == 1, ValueError)
          << "stackvm generator: function " << function_->name << " passes a vector to " << name;
      args.push_back(static_cast<int64_t>(TypeOf(arg.dtype())));
      args.push_back(VisitExpr(arg));
    }
  }
  const int list = List(std::move(args));
  const DataType dtype = op->dtype.is_void() ? DataType::Int(32) : op->dtype;
  Instr& instr = Emit(Opcode::kCallPacked, dtype, result);
  instr.index = StringIndex(name);
  instr.list = list;
  return result;
}

int CodeGenStackVM::CallFunction(const GlobalVarNode* callee, const CallNode* op) {
  const std::string name = callee->name_hint;
  auto number = function_numbers_.find(name);
  TVM_CHECK(number != function_numbers_.end(), ValueError)
      << "stackvm generator: " << function_->name << " calls " << name
      << ", which the module does not define; build both in one module";
  TVM_CHECK(!in_kernel(), ValueError) << "stackvm generator: kernel " << function_->name
                                      << " calls function " << name << "; inline it first";
  const DataType dtype = op->dtype.is_void() ? DataType::Int(32) : op->dtype;
  const Slot result = Allocate(dtype);
  Temporaries scope(this);
  std::vector<int64_t> args;
  for (const PrimExpr& arg : op->args) args.push_back(VisitExpr(arg));
  const int list = List(std::move(args));
  Instr& instr = Emit(Opcode::kCallFunction, dtype, result);
  instr.index = number->second;
  instr.list = list;
  return result;
}

namespace {

int64_t FieldOf(const CallNode* op) {
  const int64_t* field = as_const_int(op->args[2]);
  TVM_CHECK(field != nullptr && *field >= builtin::kAnyTypeCode && *field <= builtin::kInt64Element,
            ValueError)
      << "stackvm generator: " << op->op << " takes a constant field, got " << op->args[2];
  return *field;
}

}  // namespace

int CodeGenStackVM::CallStructGet(const CallNode* op) {
  const Slot result = Allocate(op->dtype);
  Temporaries scope(this);
  const Slot handle = VisitExpr(op->args[0]);
  const Slot index = EvalAs(op->args[1], DataType::Int(64));
  Instr& instr = Emit(Opcode::kStructGet, op->dtype, result, handle, index);
  instr.type2 = ScalarType::kInt64;
  instr.imm = FieldOf(op);
  return result;
}

int CodeGenStackVM::CallStructSet(const CallNode* op) {
  Temporaries scope(this);
  const Slot handle = VisitExpr(op->args[0]);
  const Slot index = EvalAs(op->args[1], DataType::Int(64));
  const Slot value = VisitExpr(op->args[3]);
  Instr& instr = Emit(Opcode::kStructSet, op->args[3].dtype(), value, handle, index);
  instr.type2 = ScalarType::kInt64;
  instr.imm = FieldOf(op);
  return Nothing();
}

void CodeGenStackVM::StorageSync(const std::string& scope) {
  if (!in_kernel()) return;
  const StorageRank rank = StorageRankOf(scope);
  TVM_CHECK(rank == StorageRank::kShared || rank == StorageRank::kWarp, ValueError)
      << "stackvm generator: kernel " << function_->name << " has a barrier of scope \"" << scope
      << "\"; threads can wait for each other in scopes shared and warp";
  Emit(Opcode::kBarrier, DataType::Int(32)).imm =
      static_cast<int64_t>(rank == StorageRank::kWarp ? Scope::kWarp : Scope::kBlock);
}

int CodeGenStackVM::CallShuffle(ShuffleMode mode, const CallNode* op) {
  TVM_CHECK(in_kernel(), ValueError) << "stackvm generator: function " << function_->name
                                     << " shuffles between threads but is not a kernel";
  const Slot result = Allocate(op->dtype);
  Temporaries scope(this);
  const DataType wide = DataType::Int(64);
  const Slot mask = EvalAs(op->args[0], wide);
  const Slot value = VisitExpr(op->args[1]);
  const Slot lane = EvalAs(op->args[2], wide);
  const Slot width = EvalAs(op->args[3], wide);
  Instr& instr = Emit(Opcode::kShuffle, op->dtype, result, value, lane, width);
  instr.index = mask;
  instr.imm = static_cast<int64_t>(mode);
  return result;
}

namespace {

struct MatrixShape {
  int64_t rows, columns;
};

MatrixShape ShapeOf(const Var& data, int64_t m, int64_t n, int64_t k) {
  switch (StorageRankOf(StorageScopeOf(data))) {
    case StorageRank::kWMMAMatrixA:
      return {m, k};
    case StorageRank::kWMMAMatrixB:
      return {k, n};
    case StorageRank::kWMMAAccumulator:
      return {m, n};
    default:
      TVM_FATAL(ValueError) << "stackvm generator: fragment " << data << " is in scope "
                            << StorageScopeOf(data)
                            << "; use wmma.matrix_a, wmma.matrix_b or wmma.accumulator";
  }
}

Var FragmentOf(const PrimExpr& data) {
  TVM_CHECK(data.as<VarNode>() != nullptr, ValueError)
      << "stackvm generator: a fragment is named by its data pointer, got " << data;
  return Downcast<Var>(data);
}

}  // namespace

void CodeGenStackVM::FillFragment(const CallNode* op) {
  const Var data = FragmentOf(op->args[0]);
  const auto& shape = fragments_.at(data.get());
  const MatrixShape matrix = ShapeOf(data, shape.m, shape.n, shape.k);
  const DataType dtype = fragment_types_.at(data.get());
  Temporaries scope(this);
  const Slot pointer = VisitExpr(data);
  const Slot index = EvalAs(op->args[4], DataType::Int(64));
  const Slot value = EvalAs(op->args[5], dtype);
  Emit(Opcode::kFragmentFill, dtype, pointer, value, index).imm = matrix.rows * matrix.columns;
}

void CodeGenStackVM::MoveFragment(const CallNode* op, bool store) {
  const Var data = FragmentOf(op->args[0]);
  const auto& shape = fragments_.at(data.get());
  const MatrixShape matrix = ShapeOf(data, shape.m, shape.n, shape.k);
  const DataType dtype = fragment_types_.at(data.get());
  const auto* layout = op->args[7].as<StringImmNode>();
  const std::string order = layout == nullptr ? "" : std::string(layout->value);
  TVM_CHECK(order == "row_major" || order == "col_major", ValueError)
      << "stackvm generator: layout " << op->args[7] << " of a fragment in kernel "
      << function_->name << "; it is \"row_major\" or \"col_major\"";
  Temporaries scope(this);
  const Slot pointer = VisitExpr(data);
  const Slot index = EvalAs(op->args[4], DataType::Int(64));
  const Slot address = VisitExpr(op->args[5]);
  const Slot stride = EvalAs(op->args[6], DataType::Int(64));
  std::vector<int64_t> list = {matrix.rows, matrix.columns, -1, -1, 0};
  std::string name = "memory";
  uint8_t flags = order == "col_major" ? runtime::stackvm::kColumnMajor : 0;
  const bool is_operand = StorageRankOf(StorageScopeOf(data)) != StorageRank::kWMMAAccumulator;
  if (!store && is_operand && dtype == DataType::Float(32)) flags |= runtime::stackvm::kRoundToTf32;
  const auto* call = op->args[5].as<CallNode>();
  if (call != nullptr && call->op.same_as(builtin::address_of())) {
    const Buffer buffer = Downcast<BufferLoad>(call->args[0])->buffer;
    const Limit limit = LimitOf(buffer);
    list = {matrix.rows, matrix.columns, vars_.at(buffer->data.get()), limit.slot, limit.bytes};
    name = buffer->name;
    flags |= ScopeFlags(buffer);
  }
  const int number = List(std::move(list));
  Instr& instr = Emit(store ? Opcode::kFragmentStore : Opcode::kFragmentLoad, dtype, pointer, index,
                      address, stride);
  instr.flags = flags;
  instr.index = BufferIndex(name, dtype);
  instr.list = number;
}

void CodeGenStackVM::MultiplyFragments(const CallNode* op) {
  auto shape_of = [&](int arg) {
    const Var data = FragmentOf(op->args[arg]);
    auto it = fragments_.find(data.get());
    TVM_CHECK(it != fragments_.end(), ValueError)
        << "stackvm generator: fragment " << data << " of kernel " << function_->name
        << " is multiplied but neither filled, loaded nor stored, so its shape is not known";
    return it->second;
  };
  const auto shape = shape_of(2);
  const bool is_tf32 = fragment_types_.at(FragmentOf(op->args[2]).get()) == DataType::Float(32);
  TVM_CHECK(is_tf32 ? shape.m == 16 && shape.n == 16 && shape.k == 8
                    : shape.m * shape.n == 256 && shape.k == 16 &&
                          (shape.m == 8 || shape.m == 16 || shape.m == 32),
            ValueError)
      << "stackvm generator: kernel " << function_->name << " multiplies fragments of shape "
      << shape.m << " x " << shape.n << " x " << shape.k
      << "; 16 x 16 x 16, 32 x 8 x 16 and 8 x 32 x 16 exist, and 16 x 16 x 8 of float32";
  Temporaries scope(this);
  std::vector<int64_t> list = {shape.m, shape.n, shape.k};
  for (int arg = 0; arg < 8; arg += 2) {
    list.push_back(VisitExpr(FragmentOf(op->args[arg])));
    list.push_back(EvalAs(op->args[arg + 1], DataType::Int(64)));
  }
  const DataType result = fragment_types_.at(FragmentOf(op->args[0]).get());
  const DataType input = fragment_types_.at(FragmentOf(op->args[2]).get());
  const int number = List(std::move(list));
  Instr& instr = Emit(Opcode::kFragmentMma, result);
  instr.type2 = TypeOf(input);
  instr.list = number;
}

int CodeGenStackVM::VisitExpr_(const CallNode* op) {
  if (const auto* callee = op->op.as<GlobalVarNode>()) return CallFunction(callee, op);
  const Op& intrinsic = Downcast<Op>(op->op);
  std::string name = intrinsic->name;
  ICHECK(name.rfind("tir.", 0) == 0) << "call of operator " << name;
  name = name.substr(4);
  auto binary = [&](Opcode code) { return Binary(code, op->args[0], op->args[1], op->dtype); };
  if (name == "likely") return VisitExpr(op->args[0]);
  if (name == "assume") return Nothing();
  if (name == "if_then_else") return CallIfThenElse(op);
  if (name == "bitwise_and") return binary(Opcode::kAnd);
  if (name == "bitwise_or") return binary(Opcode::kOr);
  if (name == "bitwise_xor") return binary(Opcode::kXor);
  if (name == "shift_left") return binary(Opcode::kShiftLeft);
  if (name == "shift_right") return binary(Opcode::kShiftRight);
  if (name == "bitwise_not") return Unary(Opcode::kNot, op->args[0], op->dtype);
  if (name == "popcount") return Unary(Opcode::kPopcount, op->args[0], op->dtype);
  if (name == "isnan") {
    const DataType dtype = op->args[0].dtype();
    if (dtype.is_float() || dtype.is_bfloat16()) {
      return Unary(Opcode::kIsNan, op->args[0], op->dtype);
    }
    return VisitExpr(make_zero(op->dtype));
  }
  if (name == "fma") {
    if (!op->dtype.is_float() && !op->dtype.is_bfloat16()) {
      return VisitExpr(op->args[0] * op->args[1] + op->args[2]);
    }
    const Slot result = Allocate(op->dtype);
    Temporaries scope(this);
    const Slot x = VisitExpr(op->args[0]);
    const Slot y = VisitExpr(op->args[1]);
    const Slot z = VisitExpr(op->args[2]);
    Emit(Opcode::kFma, op->dtype, result, x, y, z);
    return result;
  }
  if (name == "reinterpret") {
    const Slot result = Allocate(op->dtype);
    Temporaries scope(this);
    const Slot value = VisitExpr(op->args[0]);
    Emit(Opcode::kReinterpret, op->dtype, result, value).type2 = TypeOf(op->args[0].dtype());
    return result;
  }
  if (name == "null_handle") return Constant(ScalarType::kHandle, 0);
  if (name == "isnullptr") {
    const Slot result = Allocate(op->dtype);
    Temporaries scope(this);
    const Slot pointer = VisitExpr(op->args[0]);
    Emit(Opcode::kEQ, DataType::Handle(), result, pointer, Constant(ScalarType::kHandle, 0));
    return result;
  }
  if (name == "large_uint_imm") {
    return Constant(TypeOf(op->dtype), static_cast<int64_t>(LargeUIntValue(op)));
  }
  if (name == "address_of") return AddressOf(op);
  if (name == "prefetch") return Nothing();
  if (name == "ret") {
    TVM_CHECK(!in_kernel(), ValueError) << "stackvm generator: kernel " << function_->name
                                        << " returns from inside; a kernel runs to its end";
    const Slot value = VisitExpr(op->args[0]);
    Emit(Opcode::kReturnValue, op->args[0].dtype(), value);
    return value;
  }
  if (name == "call_extern" || name == "call_pure_extern" || name == "call_llvm_pure_intrin") {
    return CallExtern(op);
  }
  if (name == "tvm_call_packed") {
    const auto* callee = op->args[0].as<StringImmNode>();
    TVM_CHECK(callee != nullptr, TypeError)
        << "stackvm generator: tvm_call_packed needs the function's name as its first argument, "
        << "got " << op->args[0];
    return CallPacked(callee->value, op, 1);
  }
  if (name == "tvm_call_packed_lowered") {
    const DataType dtype = op->dtype.is_void() ? DataType::Int(32) : op->dtype;
    const Slot result = Allocate(dtype);
    Temporaries scope(this);
    const Slot stack = VisitExpr(op->args[1]);
    const Slot begin = EvalAs(op->args[2], DataType::Int(64));
    const Slot end = EvalAs(op->args[3], DataType::Int(64));
    Emit(Opcode::kCallPackedLowered, dtype, result, stack, begin, end).index =
        StringIndex(Downcast<StringImm>(op->args[0])->value);
    return result;
  }
  if (name == "tvm_stack_alloca") {
    const Slot result = Allocate(DataType::Handle());
    Temporaries scope(this);
    const Slot count = EvalAs(op->args[1], DataType::Int(64));
    Emit(Opcode::kStackAllocate, DataType::Handle(), result, count);
    return result;
  }
  if (name == "tvm_struct_get") return CallStructGet(op);
  if (name == "tvm_struct_set") return CallStructSet(op);
  if (name == "tvm_storage_sync") {
    StorageSync(Downcast<StringImm>(op->args[0])->value);
    return Nothing();
  }
  if (name == "tvm_warp_activemask") {
    const Slot result = Allocate(DataType::UInt(32));
    Emit(Opcode::kActiveMask, DataType::UInt(32), result);
    return result;
  }
  if (name == "tvm_warp_shuffle") return CallShuffle(ShuffleMode::kIndex, op);
  if (name == "tvm_warp_shuffle_up") return CallShuffle(ShuffleMode::kUp, op);
  if (name == "tvm_warp_shuffle_down") return CallShuffle(ShuffleMode::kDown, op);
  if (name == "tvm_fill_fragment") {
    FillFragment(op);
    return Nothing();
  }
  if (name == "tvm_load_matrix_sync" || name == "tvm_store_matrix_sync") {
    MoveFragment(op, name == "tvm_store_matrix_sync");
    return Nothing();
  }
  if (name == "tvm_mma_sync") {
    MultiplyFragments(op);
    return Nothing();
  }
  return CallMath(name, op, 0);
}

}  // namespace codegen
}  // namespace tvm
