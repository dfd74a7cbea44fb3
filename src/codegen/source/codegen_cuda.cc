/*!
 * \file codegen_cuda.cc
 * \brief Kernels as CUDA C++.
 */
#include "codegen/source/codegen_cuda.h"

#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/tir/launch.h>

#include <algorithm>
#include <cmath>

namespace tvm {
namespace codegen {

using namespace tir;  // NOLINT(*)

namespace {

/*! \brief Name of the one array that all dynamic shared memory of a kernel lies in. */
constexpr const char* kDynamicShared = "tvm_dynamic_shared";
/*! \brief Widest access of the hardware, and alignment of everything wide accesses go to. */
constexpr int kWidestBytes = 16;
/*! \brief Where shared memory may start, so that tensor cores can load fragments from it. */
constexpr int kFragmentBytes = 32;

bool IsHalf(DataType dtype) { return dtype.is_float16() || dtype.is_bfloat16(); }

}  // namespace

std::string CodeGenCUDA::Type(DataType dtype) const {
  if (dtype.is_float16()) {
    uses_half_ = true;
    return "half";
  }
  if (dtype.is_bfloat16()) {
    uses_bfloat16_ = true;
    return "__nv_bfloat16";
  }
  if (dtype.is_float() || dtype.is_handle() || dtype.is_void() || dtype.is_bool()) {
    return CodeGenC::Type(dtype);
  }
  // The compiler at run time has no <stdint.h>.
  std::string sign = dtype.is_uint() ? "unsigned " : "";
  switch (dtype.bits()) {
    case 8:
      return dtype.is_uint() ? "unsigned char" : "signed char";
    case 16:
      return sign + "short";
    case 32:
      return sign + "int";
    default:
      return sign + "long long";
  }
}

std::string CodeGenCUDA::FloatLiteral(DataType dtype, double value) {
  if (std::isfinite(value)) return CodeGenC::FloatLiteral(dtype, value);
  bool is_double = dtype.is_float() && dtype.bits() == 64;
  std::string text;
  if (is_double) {
    text = std::string("__longlong_as_double(") +
           (std::isnan(value) ? "0x7ff8000000000000LL"
            : value > 0       ? "0x7ff0000000000000LL"
                              : "0xfff0000000000000LL") +
           ")";
  } else {
    text = std::string("__int_as_float(") +
           (std::isnan(value) ? "0x7fffffff"
            : value > 0       ? "0x7f800000"
                              : "0xff800000") +
           ")";
  }
  return IsHalf(dtype) ? CastText(text, DataType::Float(32), dtype) : text;
}

std::string CodeGenCUDA::CastText(const std::string& value, DataType from, DataType to) {
  from = from.element_of();
  to = to.element_of();
  if (from == to) return value;
  // The half types convert to and from float; other conversions would be ambiguous.
  DataType single = DataType::Float(32);
  if (IsHalf(from) && to != single) return CastText(CastText(value, from, single), single, to);
  if (IsHalf(to) && from != single) return CastText(CastText(value, from, single), single, to);
  if (to.is_bool()) return "(" + value + " != 0)";
  if (from.is_handle() && !to.is_handle()) {
    return "((" + Type(to) + ")(unsigned long long)" + value + ")";
  }
  if (to.is_handle()) return "((void*)(unsigned long long)" + value + ")";
  return "((" + Type(to) + ")" + value + ")";
}

std::string CodeGenCUDA::FunctionPrefix(const PrimFunc& func, bool exported) {
  if (GetCallingConv(func) != CallingConv::kDeviceKernelLaunch) {
    return "static __device__ " + CodeGenC::FunctionPrefix(func, true);
  }
  int64_t threads = 1;
  std::unordered_set<std::string> seen;
  PostOrderVisit(func->body, [&](const ObjectRef& node) {
    const auto* attr = node.as<AttrStmtNode>();
    if (attr == nullptr || attr->attr_key != tir::attr::thread_extent) return;
    std::string tag = Downcast<IterVar>(attr->node)->thread_tag;
    if (ParseThreadTag(tag).kind != ThreadKind::kThread || !seen.insert(tag).second) return;
    const int64_t* extent = as_const_int(attr->value);
    threads = extent && threads > 0 ? threads * *extent : 0;
  });
  // With the number of threads known the compiler can tell how many registers each may have.
  std::string bounds =
      threads > 0 ? "__launch_bounds__(" + std::to_string(threads) + ") " : std::string();
  return "extern \"C\" __global__ void " + bounds;
}

std::string CodeGenCUDA::Prelude() const {
  std::string text;
  if (uses_half_) text += "#include <cuda_fp16.h>\n";
  if (uses_bfloat16_) text += "#include <cuda_bf16.h>\n";
  if (uses_wmma_) text += "#include <mma.h>\n";
  if (uses_pipeline_) text += "#include <cuda_pipeline_primitives.h>\n";
  return text;
}

std::string CodeGenCUDA::ThreadIndex(const std::string& tag) {
  ThreadTag parsed = ParseThreadTag(tag);
  if (parsed.kind == ThreadKind::kVirtual) {
    Unsupported("a loop bound to " + tag, "lower virtual threads with InjectVirtualThread");
  }
  return "((int)" + tag + ")";
}

void CodeGenCUDA::BeginFunction(const PrimFunc& func) {
  dynamic_shared_bytes_ = 0;
  has_dynamic_shared_ = false;
  // A barrier in a loop may follow copies that the text starts further down.
  has_async_copies_ = false;
  uses_registers_ = false;
  barriers_.clear();
  PostOrderVisit(func->body, [this](const ObjectRef& node) {
    const auto* attr = node.as<AttrStmtNode>();
    if (attr != nullptr && attr->attr_key == tir::attr::pragma_async_copy) has_async_copies_ = true;
    const auto* call = node.as<CallNode>();
    const auto* op = call ? call->op.as<OpNode>() : nullptr;
    if (op && std::string(op->name).rfind("tir.ptx_", 0) == 0) uses_registers_ = true;
  });
  uses_pipeline_ = uses_pipeline_ || has_async_copies_;
  CollectFragments(func);
}

void CodeGenCUDA::StorageSync(const std::string& scope) {
  if (scope == "shared" || scope == "shared.dyn") {
    if (has_async_copies_) {
      Line("__pipeline_commit();");
      Line("__pipeline_wait_prior(0);");
    }
    Line("__syncthreads();");
  } else if (scope == "warp") {
    Line("__syncwarp();");
  } else {
    Unsupported("a barrier of scope \"" + scope + "\"",
                "threads of one launch meet in scope \"shared\" and \"warp\" only; split the work "
                "into two launches");
  }
}

void CodeGenCUDA::AllocateIn(const std::string& scope, const AllocateNode* op,
                             const std::string& name) {
  DataType element = op->dtype.element_of();
  int64_t count = op->ConstantAllocationSize() * op->dtype.lanes();
  std::string array = Type(element) + " " + name + "[" + std::to_string(count) + "];";
  std::string what =
      "memory of scope \"" + scope + "\" for " + std::string(op->buffer_var->name_hint);
  if (scope == "shared.dyn") {
    if (!has_dynamic_shared_) {
      Line("extern __shared__ __align__(128) unsigned char " + std::string(kDynamicShared) + "[];");
      has_dynamic_shared_ = true;
    }
    if (dynamic_shared_bytes_ < 0) {
      Unsupported("a second block of dynamic shared memory after one of variable size",
                  "merge the allocations into one");
    }
    Line(Type(element) + "* " + name + " = (" + Type(element) + "*)(" + kDynamicShared + " + " +
         std::to_string(dynamic_shared_bytes_) + ");");
    int64_t bytes =
        (count * element.bytes() + kFragmentBytes - 1) / kFragmentBytes * kFragmentBytes;
    dynamic_shared_bytes_ = count > 0 ? dynamic_shared_bytes_ + bytes : -1;
    return;
  }
  if (count <= 0)
    Unsupported("an allocation of variable size: " + what, "give it constant extents");
  if (scope == "shared") {
    Line("__shared__ __align__(" + std::to_string(kFragmentBytes) + ") " + array);
  } else if (scope == "local") {
    Line((uses_registers_ ? "__align__(" + std::to_string(kWidestBytes) + ") " : "") + array);
  } else if (scope.rfind("wmma.", 0) == 0) {
    AllocateFragments(scope, op, name);
  } else if (scope == "warp") {
    Unsupported(what, "lower it with LowerWarpMemory");
  } else {
    Unsupported(what,
                "kernels allocate in the scopes \"shared\", \"shared.dyn\", \"warp\", "
                "\"local\" and \"wmma.*\"; let the host allocate global memory");
  }
}

std::string CodeGenCUDA::MathCall(const std::string& name, DataType dtype,
                                  const std::vector<std::string>& args) {
  std::string suffix = dtype.bits() == 32 ? "f" : "";
  if (name == "rsqrt" || name == "exp10") return name + suffix + "(" + args[0] + ")";
  if (name == "fma") {
    return name + suffix + "(" + args[0] + ", " + args[1] + ", " + args[2] + ")";
  }
  return CodeGenC::MathCall(name, dtype, args);
}

bool CodeGenCUDA::CallIntrinsic(const std::string& name, const CallNode* op, std::string* text) {
  auto arg = [&](size_t i) { return Print(op->args[i]); };
  if (name == "tvm_warp_activemask") {
    *text = "__activemask()";
  } else if (name.rfind("tvm_warp_shuffle", 0) == 0) {
    std::string direction = name.substr(std::string("tvm_warp_shuffle").size());
    std::string value = arg(1);
    DataType dtype = op->dtype.element_of();
    // Narrow integers and booleans have no exchange of their own.
    bool narrow = !dtype.is_float() && !dtype.is_bfloat16() && dtype.bits() < 32;
    if (narrow) value = "(int)" + value;
    std::string mask = arg(0);
    std::string lane = arg(2);
    *text =
        "__shfl" + direction + "_sync(" + mask + ", " + value + ", " + lane + ", " + arg(3) + ")";
    if (narrow) *text = CastText(*text, DataType::Int(32), dtype);
  } else if (name == "fma" && op->dtype.is_float() && op->dtype.bits() == 16) {
    *text = "__hfma(" + arg(0) + ", " + arg(1) + ", " + arg(2) + ")";
  } else if (name == "popcount") {
    DataType dtype = op->args[0].dtype().element_of();
    std::string value = CastText(arg(0), dtype, DataType::UInt(dtype.bits()));
    *text = std::string(dtype.bits() == 64 ? "__popcll(" : "__popc(") + value + ")";
    *text = CastText(*text, DataType::Int(32), op->dtype);
  } else {
    return CallFragment(name, op) || CallPtx(name, op);
  }
  return true;
}

std::string CodeGenCUDA::WideType(DataType element, int bytes) {
  bool is_float = element.is_float() && element.bits() == 32;
  bool is_double = element.is_float() && element.bits() == 64;
  switch (bytes) {
    case 2:
      return "unsigned short";
    case 4:
      return IsHalf(element) ? "half2" : "unsigned int";
    case 8:
      return is_float ? "float2" : "int2";
    case 16:
      return is_float ? "float4" : is_double ? "double2" : "int4";
    default:
      return "";
  }
}

PrimExpr CodeGenCUDA::WidePlace(const Buffer& buffer, const Array<PrimExpr>& indices,
                                DataType dtype) {
  int lanes = dtype.lanes();
  if (lanes == 1 || (lanes & (lanes - 1)) != 0 || dtype.is_bool()) return PrimExpr();
  // Memory of one thread is registers, which have no wide access.
  StorageRank rank = StorageRankOf(ScopeOf(buffer->data));
  if (rank != StorageRank::kGlobal && rank != StorageRank::kShared) return PrimExpr();
  PrimExpr offset = buffer.ElemOffset(indices);
  PrimExpr place;
  if (const auto* ramp = offset.as<RampNode>()) {
    if (!is_one(ramp->stride)) return PrimExpr();
    place = ramp->base * buffer->dtype.lanes();
  } else if (offset.dtype().is_scalar()) {
    place = offset * buffer->dtype.lanes();
  } else {
    return PrimExpr();
  }
  int step = std::min(lanes, kWidestBytes / dtype.bytes());
  arith::ModularSet known = analyzer_.modular_set(place);
  bool aligned = known->coeff % step == 0 && known->base % step == 0;
  return aligned && step > 1 ? place : PrimExpr();
}

void CodeGenCUDA::CopyWide(const std::string& to, const std::string& from, DataType element,
                           int count) {
  int bytes = std::min(count * element.bytes(), kWidestBytes);
  std::string type = WideType(element, bytes);
  if (type == "half2") Type(element);  // asks for its header
  int step = bytes / element.bytes();
  for (int i = 0; i < count; i += step) {
    std::string shift = i == 0 ? "" : " + " + std::to_string(i);
    Line("*(" + type + "*)(" + to + shift + ") = *(const " + type + "*)(" + from + shift + ");");
  }
}

void CodeGenCUDA::PrepareVector(const PrimExpr& value) {
  // Operands of if_then_else may only be read when chosen.
  struct LoadFinder final : ExprVisitor {
    void VisitExpr_(const BufferLoadNode* op) final {
      if (op->dtype.is_vector()) loads.push_back(op);
      ExprVisitor::VisitExpr_(op);
    }
    void VisitExpr_(const CallNode* op) final {
      if (!op->op.same_as(builtin::if_then_else())) ExprVisitor::VisitExpr_(op);
    }
    void VisitExpr_(const LetNode* op) final {}
    std::vector<const BufferLoadNode*> loads;
  } finder;
  finder(value);
  for (const BufferLoadNode* load : finder.loads) {
    if (wide_loads_.count(load)) continue;
    PrimExpr place = WidePlace(load->buffer, load->indices, load->dtype);
    if (!place.defined()) continue;
    DataType element = load->dtype.element_of();
    std::string name = NewName("vec");
    std::string from = Pointer(load->buffer->data, element) + " + " + Print(place);
    Line("__align__(" + std::to_string(kWidestBytes) + ") " + Type(element) + " " + name + "[" +
         std::to_string(load->dtype.lanes()) + "];");
    CopyWide(name, from, element, load->dtype.lanes());
    wide_loads_[load] = name;
  }
}

bool CodeGenCUDA::Attribute(const AttrStmtNode* op) {
  if (op->attr_key != tir::attr::pragma_async_copy) return false;
  bool outer = async_copies_;
  async_copies_ = true;
  VisitStmt(op->body);
  async_copies_ = outer;
  return true;
}

void CodeGenCUDA::VisitStmt_(const BufferStoreNode* op) {
  const auto* load = op->value.as<BufferLoadNode>();
  if (async_copies_ && load && StorageRankOf(ScopeOf(op->buffer->data)) == StorageRank::kShared &&
      StorageRankOf(ScopeOf(load->buffer->data)) == StorageRank::kGlobal) {
    DataType dtype = op->value.dtype();
    DataType element = dtype.element_of();
    int bytes = dtype.lanes() * dtype.bytes();
    PrimExpr to = WidePlace(op->buffer, op->indices, dtype);
    PrimExpr from = WidePlace(load->buffer, load->indices, dtype);
    if (to.defined() && from.defined() && (bytes == 4 || bytes == 8 || bytes == 16)) {
      Line("__pipeline_memcpy_async(" + Pointer(op->buffer->data, element) + " + " + Print(to) +
           ", " + Pointer(load->buffer->data, element) + " + " + Print(from) + ", " +
           std::to_string(bytes) + ");");
      return;
    }
  }
  CodeGenC::VisitStmt_(op);
}

bool CodeGenCUDA::StoreWide(const BufferStoreNode* op, const RampNode* ramp) {
  DataType dtype = op->value.dtype();
  PrimExpr place = WidePlace(op->buffer, op->indices, dtype);
  if (!place.defined()) return false;
  DataType element = dtype.element_of();
  std::string values;
  auto loaded = wide_loads_.find(op->value.get());
  if (loaded != wide_loads_.end()) {
    values = loaded->second;
  } else {
    values = NewName("vec");
    Line("__align__(" + std::to_string(kWidestBytes) + ") " + Type(element) + " " + values + "[" +
         std::to_string(dtype.lanes()) + "];");
    LaneLoop(dtype.lanes(), [&](const std::string& lane) {
      std::string text = Print(op->value);
      Line(values + "[" + lane + "] = " + text + ";");
    });
  }
  CopyWide(Pointer(op->buffer->data, element) + " + " + Print(place), values, element,
           dtype.lanes());
  return true;
}

}  // namespace codegen
}  // namespace tvm
