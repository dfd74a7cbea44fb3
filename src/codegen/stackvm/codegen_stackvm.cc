/*!
 * \file codegen_stackvm.cc
 * \brief Functions and statements of the stackvm generator.
 */
#include "codegen/stackvm/codegen_stackvm.h"

#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/target/machine.h>
#include <tvm/tir/launch.h>

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "codegen/constant_data.h"
#include "codegen/run_once.h"
#include "runtime/stackvm/stackvm_module.h"

namespace tvm {
namespace codegen {

using namespace tir;  // NOLINT(*)
using runtime::stackvm::CallKind;
using runtime::stackvm::Function;
using runtime::stackvm::Program;
using runtime::stackvm::Scope;

CodeGenStackVM::CodeGenStackVM(const Target& target) {
  program_.limits.warp_size = std::max<int64_t>(target->GetInt("thread_warp_size", 32), 1);
  program_.limits.max_threads_per_block = target->GetInt("max_threads_per_block", 0);
  // A kernel may ask for as much as its launch can.
  if (target->GetInt("max_shared_memory_per_block", 0) > 0) {
    program_.limits.max_shared_memory_per_block =
        MachineFacts::Of(target).max_dynamic_shared_memory_per_block;
  }
  program_.limits.check_races = target->GetInt("check_races", 0);
}

CodeGenStackVM::ScalarType CodeGenStackVM::TypeOf(DataType dtype) const {
  const int bits = dtype.bits();
  if (dtype.is_bool()) return ScalarType::kBool;
  if (dtype.is_handle() || dtype.is_void()) return ScalarType::kHandle;
  if (dtype.is_bfloat16()) return ScalarType::kBFloat16;
  if (dtype.is_float()) {
    if (bits == 16) return ScalarType::kFloat16;
    if (bits == 32) return ScalarType::kFloat32;
    if (bits == 64) return ScalarType::kFloat64;
  }
  if (dtype.is_int() || dtype.is_uint()) {
    const int base = static_cast<int>(dtype.is_int() ? ScalarType::kInt8 : ScalarType::kUInt8);
    if (bits == 8) return static_cast<ScalarType>(base);
    if (bits == 16) return static_cast<ScalarType>(base + 1);
    if (bits == 32) return static_cast<ScalarType>(base + 2);
    if (bits == 64) return static_cast<ScalarType>(base + 3);
  }
  TVM_FATAL(TypeError) << "stackvm generator: function " << function_->name << " uses type "
                       << dtype.ToString()
                       << "; integers have 8, 16, 32 or 64 bits, floats 16, 32 or 64";
}

int CodeGenStackVM::AllocateSlots(ScalarType type, int lanes) {
  const Slot slot = top_;
  top_ += runtime::stackvm::RegisterSlots(type, lanes);
  function_->num_slots = std::max(function_->num_slots, top_);
  return slot;
}

int CodeGenStackVM::Constant(ScalarType type, int64_t bits) {
  auto [it, inserted] = constants_.emplace(std::make_pair(type, bits), 0);
  // The first pass over a function only finds its constants; their registers come first.
  if (inserted) it->second = AllocateSlots(type, 1);
  return it->second;
}

CodeGenStackVM::Instr& CodeGenStackVM::Emit(Opcode op, DataType dtype, Slot a, Slot b, Slot c,
                                            Slot d) {
  Instr instr;
  instr.op = op;
  instr.type = TypeOf(dtype);
  instr.lanes = std::max(dtype.lanes(), 1);
  instr.a = a;
  instr.b = b;
  instr.c = c;
  instr.d = d;
  function_->code.push_back(instr);
  return function_->code.back();
}

int CodeGenStackVM::StringIndex(const std::string& text) {
  auto it = std::find(program_.strings.begin(), program_.strings.end(), text);
  if (it == program_.strings.end()) it = program_.strings.insert(it, text);
  return static_cast<int>(it - program_.strings.begin());
}

int CodeGenStackVM::BufferIndex(const std::string& name, DataType dtype) {
  for (size_t i = 0; i < program_.buffers.size(); ++i) {
    const auto& known = program_.buffers[i];
    if (known.name == name && known.dtype == dtype.ToString()) return static_cast<int>(i);
  }
  program_.buffers.push_back({name, dtype.ToString()});
  return static_cast<int>(program_.buffers.size()) - 1;
}

int CodeGenStackVM::List(std::vector<int64_t> items) {
  program_.lists.push_back(std::move(items));
  return static_cast<int>(program_.lists.size()) - 1;
}

void CodeGenStackVM::Declare(const std::string& name, const PrimFunc& func) {
  function_numbers_[name] = static_cast<int>(program_.functions.size());
  Function function;
  function.name = func->GetAttr<String>(tir::attr::kGlobalSymbol, String(name));
  switch (GetCallingConv(func)) {
    case CallingConv::kDefault:
      function.kind = CallKind::kInternal;
      break;
    case CallingConv::kCPackedFunc:
      function.kind = CallKind::kPacked;
      break;
    case CallingConv::kDeviceKernelLaunch:
      function.kind = CallKind::kKernel;
      break;
  }
  program_.functions.push_back(std::move(function));
}

void CodeGenStackVM::AddFunction(const std::string& name, const PrimFunc& func) {
  Function& function = program_.functions[function_numbers_.at(name)];
  const Function declared = function;
  function_ = &function;
  constants_.clear();
  const Program before = program_;
  Compile(func);
  // Constants keep their registers throughout, so they go before everything else: once the first
  // pass has found them, the second can number them.
  program_.strings = before.strings;
  program_.buffers = before.buffers;
  program_.lists = before.lists;
  function = declared;
  int next = 0;
  for (auto& [key, slot] : constants_) {
    slot = next;
    next += runtime::stackvm::RegisterSlots(key.first, 1);
    function.constants.push_back({slot, key.first, key.second});
  }
  function.num_slots = next;
  Compile(func);
  function_ = nullptr;
}

namespace {

/*! \brief Data pointers of the memory that a statement stores to. */
std::unordered_set<const VarNode*> WrittenBy(const Stmt& body) {
  std::unordered_set<const VarNode*> written;
  PostOrderVisit(body, [&](const ObjectRef& node) {
    if (const auto* store = node.as<BufferStoreNode>()) written.insert(store->buffer->data.get());
    const auto* call = node.as<CallNode>();
    if (call == nullptr || !call->op.same_as(builtin::tvm_store_matrix_sync())) return;
    const auto* address = call->args[5].as<CallNode>();
    if (address == nullptr || !address->op.same_as(builtin::address_of())) return;
    written.insert(Downcast<BufferLoad>(address->args[0])->buffer->data.get());
  });
  return written;
}

}  // namespace

void CodeGenStackVM::Compile(const PrimFunc& func) {
  top_ = function_->num_slots;
  vars_.clear();
  allocations_.clear();
  limits_.clear();
  written_ = WrittenBy(func->body);
  pending_.clear();
  fragments_.clear();
  fragment_types_.clear();
  if (in_kernel()) {
    Array<String> tags =
        func->GetAttr<Array<String>>(tir::attr::kKernelLaunchParams, Array<String>());
    for (const String& tag : tags) {
      TVM_CHECK(runtime::stackvm::ThreadAxis(tag) >= 0 || tag == tir::attr::kUseDynSharedMemory,
                ValueError)
          << "stackvm generator: kernel " << function_->name << " has the launch parameter " << tag
          << "; it must be a thread axis or " << tir::attr::kUseDynSharedMemory;
      function_->launch_params.push_back(tag);
    }
  }
  for (const Var& param : func->params) {
    TVM_CHECK(!in_kernel() || StorageRankOf(StorageScopeOf(param)) == StorageRank::kGlobal,
              ValueError)
        << "stackvm generator: kernel " << function_->name << " takes " << param << " of scope "
        << StorageScopeOf(param) << " as a parameter; allocate it inside of the kernel";
    const Slot slot = Allocate(param->dtype);
    vars_[param.get()] = slot;
    function_->params.push_back({slot, TypeOf(param->dtype), param->name_hint});
  }
  for (const auto& entry : func->buffer_map) {
    // A function that keeps its own calling convention gets plain pointers for its buffers.
    vars_[entry.second->data.get()] = vars_.at(entry.first.get());
  }
  std::unordered_set<const BufferNode*> seen;
  auto use = [&](const Buffer& buffer) {
    if (seen.insert(buffer.get()).second) pending_.push_back(buffer);
  };
  PostOrderVisit(func->body, [&](const ObjectRef& node) {
    if (const auto* load = node.as<BufferLoadNode>()) use(load->buffer);
    if (const auto* store = node.as<BufferStoreNode>()) use(store->buffer);
    if (const auto* allocate = node.as<AllocateNode>()) {
      fragment_types_[allocate->buffer_var.get()] = allocate->dtype;
    }
    const auto* call = node.as<CallNode>();
    if (call != nullptr && (call->op.same_as(builtin::tvm_fill_fragment()) ||
                            call->op.same_as(builtin::tvm_load_matrix_sync()) ||
                            call->op.same_as(builtin::tvm_store_matrix_sync()))) {
      auto extent = [&](int i) {
        const int64_t* value = as_const_int(call->args[i]);
        TVM_CHECK(value != nullptr, ValueError)
            << "stackvm generator: the shape of a fragment must be constant, got " << call->args[i];
        return *value;
      };
      fragments_[call->args[0].as<VarNode>()] = {extent(1), extent(2), extent(3)};
    }
  });
  std::vector<const BufferNode*> computed;
  ComputeLimits(&computed);
  VisitStmt(func->body);
  Emit(Opcode::kReturn, DataType::Int(32));
}

void CodeGenStackVM::VisitStmt_(const LetStmtNode* op) {
  Temporaries scope(this);
  vars_[op->var.get()] = VisitExpr(op->value);
  std::vector<const BufferNode*> computed;
  std::vector<Buffer> pending = pending_;
  ComputeLimits(&computed);
  VisitStmt(op->body);
  for (const BufferNode* buffer : computed) limits_.erase(buffer);
  pending_ = pending;
  vars_.erase(op->var.get());
}

void CodeGenStackVM::VisitStmt_(const AttrStmtNode* op) {
  TVM_CHECK(op->attr_key != tir::attr::virtual_thread, ValueError)
      << "stackvm generator: function " << function_->name
      << " has a virtual thread; apply tir.transform.InjectVirtualThread first";
  TVM_CHECK(op->attr_key != kRunOnce, ValueError)
      << "stackvm generator: function " << function_->name << " lets " << RunnerName(op)
      << " run a part of it; build for the target llvm or c";
  if (op->attr_key != tir::attr::thread_extent) {
    if (in_kernel() && AsyncStatement(op)) return;
    VisitStmt(op->body);
    return;
  }
  const auto* axis = op->node.as<IterVarNode>();
  ICHECK(axis != nullptr) << "thread_extent needs an IterVar";
  TVM_CHECK(in_kernel(), ValueError)
      << "stackvm generator: function " << function_->name << " binds " << axis->var
      << " to GPU threads but is not a kernel; build it for a GPU target, such as "
         "tvm.target.emulated(\"cuda\")";
  const int number = runtime::stackvm::ThreadAxis(axis->thread_tag);
  TVM_CHECK(number >= 0, ValueError) << "stackvm generator: kernel " << function_->name
                                     << " uses the unknown thread axis " << axis->thread_tag;
  Temporaries scope(this);
  const Slot slot = Allocate(axis->var->dtype);
  Emit(Opcode::kThreadIndex, axis->var->dtype, slot).imm = number;
  // The same variable may be bound again further inside.
  auto outer = vars_.find(axis->var.get());
  const Slot before = outer == vars_.end() ? -1 : outer->second;
  vars_[axis->var.get()] = slot;
  VisitStmt(op->body);
  if (before >= 0) {
    vars_[axis->var.get()] = before;
  } else {
    vars_.erase(axis->var.get());
  }
}

template <typename Then, typename Otherwise>
void CodeGenStackVM::Branch(Slot condition, Then then, Otherwise otherwise, bool has_otherwise) {
  const DataType flag = DataType::Bool();
  const int test = Here();
  Emit(in_kernel() ? Opcode::kIf : Opcode::kJumpUnless, flag, -1, condition);
  then();
  if (has_otherwise) {
    const int skip = Here();
    if (in_kernel()) {
      Emit(Opcode::kElse, flag, -1, condition);
      SetTarget(test, skip);
    } else {
      Emit(Opcode::kJump, flag);
      SetTarget(test, Here());
    }
    otherwise();
    SetTarget(skip, Here());
  } else {
    SetTarget(test, Here());
  }
  if (in_kernel()) Emit(Opcode::kEndIf, flag);
}

void CodeGenStackVM::VisitStmt_(const AssertStmtNode* op) {
  {
    Temporaries scope(this);
    const Slot condition = VisitExpr(op->condition);
    auto fail = [&](const std::string& text, std::vector<int64_t> values) {
      const int list = List(std::move(values));
      Instr& instr = Emit(Opcode::kAssert, DataType::Bool(), condition);
      instr.index = StringIndex(text);
      instr.list = list;
    };
    if (const auto* plain = op->message.as<StringImmNode>()) {
      fail(plain->value, {});
    } else {
      const auto* call = op->message.as<CallNode>();
      ICHECK(call != nullptr && call->op.same_as(builtin::error_text()))
          << "an assertion's message must be a string or error_text, got " << op->message;
      // What the message tells may be readable only where the condition fails.
      Branch(
          condition, [] {},
          [&] {
            std::vector<int64_t> values;
            for (size_t i = 1; i < call->args.size(); ++i) {
              values.push_back(EvalAs(call->args[i], DataType::Int(64)));
            }
            fail(Downcast<StringImm>(call->args[0])->value, std::move(values));
          },
          true);
    }
  }
  VisitStmt(op->body);
}

void CodeGenStackVM::VisitStmt_(const SeqStmtNode* op) {
  for (const Stmt& stmt : op->seq) VisitStmt(stmt);
}

void CodeGenStackVM::VisitStmt_(const EvaluateNode* op) {
  if (is_const_number(op->value)) return;
  Temporaries scope(this);
  VisitExpr(op->value);
}

void CodeGenStackVM::VisitStmt_(const IfThenElseNode* op) {
  Temporaries scope(this);
  const Slot condition = VisitExpr(op->condition);
  Branch(
      condition, [&] { VisitStmt(op->then_case); }, [&] { VisitStmt(op->else_case); },
      op->else_case.defined());
}

int CodeGenStackVM::CallIfThenElse(const CallNode* op) {
  TVM_CHECK(op->args[0].dtype().is_scalar(), ValueError)
      << "stackvm generator: if_then_else with a vector condition in function " << function_->name
      << "; use Select, or leave the loop scalar";
  const Slot result = Allocate(op->dtype);
  Temporaries scope(this);
  const Slot condition = VisitExpr(op->args[0]);
  auto branch = [&](int arg) {
    return [this, op, result, arg] {
      Temporaries inner(this);
      const Slot value = VisitExpr(op->args[arg]);
      Emit(Opcode::kAssign, op->dtype, result, value);
    };
  };
  Branch(condition, branch(1), branch(2), true);
  return result;
}

void CodeGenStackVM::VisitStmt_(const ForNode* op) {
  TVM_CHECK(op->kind != ForKind::kThreadBinding, ValueError)
      << "stackvm generator: loop " << op->loop_var << " of function " << function_->name
      << " is bound to GPU threads; build it for a GPU target, such as "
         "tvm.target.emulated(\"cuda\")";
  Temporaries scope(this);
  const int64_t* extent = as_const_int(op->extent);
  if (extent != nullptr && *extent <= 0) return;
  const DataType dtype = op->loop_var->dtype;
  // Loops count in the widths of indices.
  const bool narrow = dtype.is_int() && dtype.bits() == 32;
  const DataType counter = DataType::Int(narrow ? 32 : 64);
  if (extent != nullptr && *extent == 1) {
    vars_[op->loop_var.get()] = EvalAs(op->min, dtype);
    VisitStmt(op->body);
    vars_.erase(op->loop_var.get());
    return;
  }
  const Slot begin = EvalAs(op->min, counter);
  const Slot end = EvalAs(is_zero(op->min) ? op->extent : op->min + op->extent, counter);
  const Slot variable = Allocate(counter);
  if (in_kernel()) Emit(Opcode::kLoopBegin, counter);
  Emit(Opcode::kAssign, counter, variable, begin);
  int test = -1;
  if (in_kernel() || extent == nullptr) {
    test = Here();
    Emit(in_kernel() ? Opcode::kLoopTestLess : Opcode::kForTest, counter, -1, variable, end);
  }
  const int head = in_kernel() ? test : Here();
  {
    Temporaries inner(this);
    vars_[op->loop_var.get()] = counter == dtype ? variable : CastTo(variable, counter, dtype);
    VisitStmt(op->body);
    vars_.erase(op->loop_var.get());
  }
  if (in_kernel()) {
    Emit(Opcode::kLoopNext, counter, head, variable);
  } else {
    Emit(Opcode::kForNext, counter, head, variable, end);
  }
  if (test >= 0) SetTarget(test, Here());
  if (in_kernel()) Emit(Opcode::kLoopEnd, counter);
}

void CodeGenStackVM::VisitStmt_(const WhileNode* op) {
  const DataType flag = DataType::Bool();
  if (in_kernel()) Emit(Opcode::kLoopBegin, flag);
  const int head = Here();
  Temporaries scope(this);
  const Slot condition = VisitExpr(op->condition);
  const int test = Here();
  Emit(in_kernel() ? Opcode::kLoopTest : Opcode::kJumpUnless, flag, -1, condition);
  VisitStmt(op->body);
  Emit(Opcode::kJump, flag, head);
  SetTarget(test, Here());
  if (in_kernel()) Emit(Opcode::kLoopEnd, flag);
}

void CodeGenStackVM::VisitStmt_(const AllocateNode* op) {
  const VarNode* data = op->buffer_var.get();
  const DataType dtype = op->dtype;
  const std::string name = op->buffer_var->name_hint;
  Scope scope = Scope::kThread;
  if (in_kernel()) {
    const std::string storage = StorageScopeOf(op->buffer_var);
    switch (StorageRankOf(storage)) {
      case StorageRank::kLocal:
        break;
      case StorageRank::kShared:
        scope = storage == "shared.dyn" ? Scope::kDynamicBlock : Scope::kBlock;
        break;
      case StorageRank::kWarp:
      case StorageRank::kWMMAMatrixA:
      case StorageRank::kWMMAMatrixB:
      case StorageRank::kWMMAAccumulator:
        scope = Scope::kWarp;
        break;
      case StorageRank::kGlobal:
        TVM_FATAL(ValueError) << "stackvm generator: kernel " << function_->name
                              << " allocates buffer " << name << " in scope " << storage
                              << "; a kernel allocates in shared, warp or local";
    }
  }
  Temporaries registers(this);
  const Slot pointer = Allocate(DataType::Handle());
  const int64_t element = std::max(dtype.bytes(), 1) * dtype.lanes();
  Limit limit;
  if (const int64_t count = op->ConstantAllocationSize(); count > 0) {
    limit.bytes = count * element;
  } else {
    PrimExpr size = make_const(DataType::Int(64), element);
    for (const PrimExpr& extent : op->extents) size = size * cast(DataType::Int(64), extent);
    limit.slot = VisitExpr(size);
  }
  const Slot size = limit.slot >= 0 ? limit.slot : Int64(limit.bytes);
  Instr& instr = Emit(Opcode::kAllocate, dtype.element_of(), pointer, size);
  instr.index = BufferIndex(name, dtype);
  instr.imm = static_cast<int64_t>(scope);
  vars_[data] = pointer;
  allocations_[data] = limit;
  VisitStmt(op->body);
  allocations_.erase(data);
  vars_.erase(data);
  Emit(Opcode::kFree, dtype.element_of()).imm = static_cast<int64_t>(scope);
}

void CodeGenStackVM::VisitStmtDefault_(const Object* op) {
  TVM_FATAL(ValueError) << "stackvm generator: " << op->GetTypeKey() << " in function "
                        << function_->name << " has no code; lower the function before building it";
}

namespace {

/*! \brief A constant as memory that is filled first: programs of this machine carry no data. */
class ConstantWriter final : public tir::StmtMutator {
  Stmt VisitStmt_(const tir::AllocateConstNode* op) final {
    const int64_t count = op->ConstantAllocationSize();
    const std::string bytes = ConstantBytes(op);
    Buffer flat(op->buffer_var, op->dtype, {make_const(DataType::Int(32), count)}, {}, PrimExpr(),
                op->buffer_var->name_hint);
    Array<Stmt> stmts;
    for (int64_t i = 0; i < count; ++i) {
      stmts.push_back(
          BufferStore(flat, ConstantElement(op, bytes, i), {make_const(DataType::Int(32), i)}));
    }
    stmts.push_back(VisitStmt(op->body));
    return tir::Allocate(op->buffer_var, op->dtype, op->extents, tir::const_true(),
                         tir::SeqStmt::Flatten(stmts));
  }
};

runtime::Module BuildStackVM(IRModule mod, Target target) {
  CodeGenStackVM generator(target);
  // Sorted by name, so that the listing does not depend on the order of insertion.
  std::map<std::string, PrimFunc> functions;
  for (const auto& entry : mod->functions) {
    if (const auto* func = entry.second.as<PrimFuncNode>()) {
      PrimFunc written = GetRef<PrimFunc>(func);
      Stmt body = ConstantWriter()(func->body);
      if (!body.same_as(func->body)) written.CopyOnWrite()->body = body;
      functions.emplace(entry.first->name_hint, written);
    }
  }
  for (const auto& [name, func] : functions) generator.Declare(name, func);
  for (const auto& [name, func] : functions) generator.AddFunction(name, func);
  return runtime::stackvm::CreateModule(generator.Finish());
}

}  // namespace

TVM_REGISTER_GLOBAL("target.build.stackvm").set_body_typed(BuildStackVM);

}  // namespace codegen
}  // namespace tvm
