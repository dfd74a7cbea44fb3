#include "codegen/llvm/codegen_nvptx.h"

#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/launch.h>

#include <set>

#include "codegen/source/kernel_info.h"

namespace tvm {
namespace codegen {

using namespace tir;  // NOLINT(*)

namespace {

/*! \brief Alignment of shared arrays: the widest access of a thread. */
constexpr int kSharedAlignment = 16;

/*! \brief Functions of reals with instructions, or that the LLVM generator writes out. */
bool HasCode(const std::string& name, int bits) {
  static const std::set<std::string> both = {"sqrt",  "rsqrt", "floor",     "ceil",
                                             "trunc", "round", "nearbyint", "fabs",
                                             "exp",   "log",   "tanh",      "sigmoid"};
  return both.count(name) != 0 || (bits <= 32 && (name == "erf" || name == "pow"));
}

}  // namespace

void CodeGenNVPTX::AddKernel(const std::string& name, const PrimFunc& func) {
  function_name_ = signatures_.at(name);
  Frame frame(&module_);
  frame_ = &frame;
  no_alias_ = func->HasNonzeroAttr(tir::attr::kNoAlias);
  alignment_.clear();
  CollectBuffers(func);
  std::string params;
  for (const Var& param : func->params) {
    Value value{LLVMType(param->dtype), text().NewName("arg"), 0};
    params += (params.empty() ? "" : ", ") + value.str();
    frame.vars[param.get()].value = value;
  }
  VisitStmt(func->body);
  text().Line("ret void");
  module_.AddFunction(
      text().Finish("define ptx_kernel void @" + function_name_ + "(" + params + ") #0"));
  frame_ = nullptr;
}

std::string CodeGenNVPTX::Finish() {
  return module_.Finish("target triple = \"" + target_->GetStr("mtriple", "nvptx64-nvidia-cuda") +
                        "\"\n") +
         "attributes #0 = { nounwind }\n";
}

void CodeGenNVPTX::VisitStmt_(const AttrStmtNode* op) {
  if (op->attr_key != tir::attr::thread_extent) {
    VisitStmt(op->body);
    return;
  }
  const auto* axis = op->node.as<IterVarNode>();
  ICHECK(axis != nullptr) << "thread_extent needs an IterVar";
  const ThreadTag tag = ParseThreadTag(axis->thread_tag);
  TVM_CHECK(tag.kind != ThreadKind::kVirtual, ValueError)
      << "nvptx code generator: kernel " << function_name_
      << " has a virtual thread; apply tir.transform.InjectVirtualThread first";
  const std::string symbol = std::string("llvm.nvvm.read.ptx.sreg.") +
                             (tag.kind == ThreadKind::kBlock ? "ctaid." : "tid.") +
                             static_cast<char>('x' + tag.dim);
  Value index = text().Convert("zext", text().PureCall(symbol, "i32", {}), "i64");
  frame_->non_negative.insert(index.ref);
  LinearIndex linear;
  linear.terms.emplace_back(index, 1);
  BindIndex(axis->var, linear);
  VisitStmt(op->body);
}

void CodeGenNVPTX::VisitStmt_(const AllocateNode* op) {
  const std::string scope = StorageScopeOf(op->buffer_var);
  const VarNode* data = op->buffer_var.get();
  if (StorageRankOf(scope) == StorageRank::kLocal) {
    CodeGenLLVM::VisitStmt_(op);
    return;
  }
  TVM_CHECK(StorageRankOf(scope) == StorageRank::kShared, ValueError)
      << "nvptx code generator: kernel " << function_name_ << " allocates buffer " << op->buffer_var
      << " in scope " << scope << "; this generator has shared and local, the target cuda has more";
  const int64_t count = op->ConstantAllocationSize();
  const bool dynamic = scope == "shared.dyn";
  TVM_CHECK(dynamic || count > 0, ValueError)
      << "nvptx code generator: kernel " << function_name_ << ": shared buffer " << op->buffer_var
      << " must have a constant size, or scope shared.dyn";
  const int64_t bytes = count * op->dtype.bytes() * op->dtype.lanes();
  const std::string symbol = "@shared_" + std::to_string(module_.UniqueId());
  module_.AddGlobal(
      symbol +
      (dynamic ? std::string(" = external addrspace(3) global [0 x i8]")
               : " = internal addrspace(3) global [" + std::to_string(bytes) + " x i8] undef") +
      ", align " + std::to_string(kSharedAlignment));
  alignment_[data] = kSharedAlignment;
  frame_->vars[data].value = {"ptr", "addrspacecast (ptr addrspace(3) " + symbol + " to ptr)", 0};
  VisitStmt(op->body);
  frame_->vars.erase(data);
}

void CodeGenNVPTX::Barrier(const std::string& scope) {
  if (StorageRankOf(scope) == StorageRank::kWarp) {
    module_.Declare("llvm.nvvm.bar.warp.sync", "void @llvm.nvvm.bar.warp.sync(i32)");
    text().Line("call void @llvm.nvvm.bar.warp.sync(i32 -1)");
  } else {
    module_.Declare("llvm.nvvm.barrier0", "void @llvm.nvvm.barrier0()");
    text().Line("call void @llvm.nvvm.barrier0()");
  }
  // What other threads wrote has to be loaded again.
  frame_->loads.clear();
}

Value CodeGenNVPTX::Shuffle(const std::string& mode, const CallNode* op) {
  FunctionText& t = text();
  const DataType dtype = op->dtype;
  const int64_t* width = as_const_int(op->args[3]);
  TVM_CHECK(dtype.is_scalar() && dtype.bits() == 32 && width != nullptr, ValueError)
      << "nvptx code generator: kernel " << function_name_ << " shuffles " << dtype.ToString()
      << "; scalars of 32 bits with a constant width can be";
  Value mask = CastTo(VisitExpr(op->args[0]), op->args[0].dtype(), DataType::UInt(32));
  Value value = VisitExpr(op->args[1]);
  if (dtype.is_float()) value = t.Convert("bitcast", value, "i32");
  Value lane = CastTo(VisitExpr(op->args[2]), op->args[2].dtype(), DataType::Int(32));
  // The groups of lanes, and the last lane of a group, as the instruction packs them.
  const int64_t limits = (32 - *width) << 8 | (mode == "up" ? 0 : 31);
  const std::string symbol = "llvm.nvvm.shfl.sync." + mode + ".i32";
  module_.Declare(symbol, "i32 @" + symbol + "(i32, i32, i32, i32)");
  Value result = t.Here("i32", "call i32 @" + symbol + "(" + mask.str() + ", " + value.str() +
                                   ", " + lane.str() + ", i32 " + std::to_string(limits) + ")");
  return dtype.is_float() ? t.Convert("bitcast", result, "float") : result;
}

Value CodeGenNVPTX::VisitExpr_(const CallNode* op) {
  const auto* intrinsic = op->op.as<OpNode>();
  if (intrinsic == nullptr) return CodeGenLLVM::VisitExpr_(op);
  const std::string name = std::string(intrinsic->name).substr(4);
  if (name == "tvm_storage_sync") {
    Barrier(Downcast<StringImm>(op->args[0])->value);
    return {"i32", "0", 0};
  }
  if (name == "tvm_warp_shuffle") return Shuffle("idx", op);
  if (name == "tvm_warp_shuffle_up") return Shuffle("up", op);
  if (name == "tvm_warp_shuffle_down") return Shuffle("down", op);
  if (name == "tvm_warp_activemask") {
    return text().Here("i32", "call i32 asm sideeffect \"activemask.b32 $0;\", \"=r\"()");
  }
  // LLVM ends the process on an operation it cannot select, hence the check ahead of it.
  static const std::set<std::string> others = {
      "likely",      "if_then_else", "reinterpret", "fma",           "isnan",      "popcount",
      "bitwise_and", "bitwise_or",   "bitwise_xor", "bitwise_not",   "shift_left", "shift_right",
      "address_of",  "null_handle",  "isnullptr",   "large_uint_imm"};
  const int bits = op->args.empty() ? 0 : op->args[0].dtype().bits();
  TVM_CHECK(others.count(name) != 0 || HasCode(name, bits), ValueError)
      << "nvptx code generator: no code for operator tir." << name << " in kernel "
      << function_name_ << "; the target cuda has it";
  return CodeGenLLVM::VisitExpr_(op);
}

namespace {

std::map<std::string, PrimFunc> Kernels(const IRModule& mod) {
  std::map<std::string, PrimFunc> kernels;
  for (const auto& entry : mod->functions) {
    const auto* func = entry.second.as<PrimFuncNode>();
    if (func == nullptr) continue;
    TVM_CHECK(GetCallingConv(GetRef<PrimFunc>(func)) == CallingConv::kDeviceKernelLaunch,
              ValueError)
        << "target.build.nvptx: function " << entry.first->name_hint
        << " is not a kernel; build with tvm.build, which splits kernels from host code";
    kernels.emplace(entry.first->name_hint, GetRef<PrimFunc>(func));
  }
  return kernels;
}

}  // namespace

TVM_REGISTER_GLOBAL("target.EmitNVPTX").set_body_typed([](IRModule mod, Target target) {
  CodeGenNVPTX generator(target);
  const std::map<std::string, PrimFunc> kernels = Kernels(mod);
  for (const auto& [name, func] : kernels) generator.Declare(name, func);
  for (const auto& [name, func] : kernels) generator.AddKernel(name, func);
  return String(generator.Finish());
});

/*! \brief A module of the kernels of `mod`, compiled to `ptx`. */
TVM_REGISTER_GLOBAL("target.NVPTXModule").set_body_typed([](IRModule mod, String ptx) {
  std::vector<runtime::KernelInfo> infos;
  for (const auto& [name, func] : Kernels(mod)) infos.push_back(KernelInfoOf(name, func));
  return runtime::CUDAModuleCreate(ptx, ptx, std::move(infos));
});

}  // namespace codegen
}  // namespace tvm
