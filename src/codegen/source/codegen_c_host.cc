/*!
 * \file codegen_c_host.cc
 * \brief Functions for processors as C source, and their registration as target "c".
 */
#include "codegen/source/codegen_c_host.h"

#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/launch.h>

#include "codegen/run_once.h"

namespace tvm {
namespace codegen {

using namespace tir;  // NOLINT(*)

namespace {

/*! \brief Largest buffer, and largest sum of buffers in one function, kept in the stack frame. */
constexpr int64_t kMaxFrameBuffer = 16 << 10;
constexpr int64_t kMaxFrameBytes = 128 << 10;
/*! \brief Text of the device type of the processor. */
constexpr const char* kHostDevice = "kDLCPU";

bool IsPacked(const PrimFunc& func) { return GetCallingConv(func) == CallingConv::kCPackedFunc; }

/*! \brief Where a field that struct_get and struct_set name is in C. */
struct Place {
  const char* record;
  const char* member;
  DataType stored;
};

Place PlaceOf(int64_t kind, DataType dtype) {
  switch (static_cast<builtin::StructField>(kind)) {
    case builtin::kAnyTypeCode:
      return {"TVMAny", "type_code", DataType::Int(32)};
    case builtin::kAnyValue:
      // Numbers are kept as int64 or float64 whatever the parameter's own type.
      if (dtype.is_handle()) return {"TVMAny", "v_handle", dtype};
      if (dtype.is_float()) return {"TVMAny", "v_float64", DataType::Float(64)};
      return {"TVMAny", "v_int64", DataType::Int(64)};
    case builtin::kAnyDLTensor:
      return {"TVMAny", "v_handle", DataType::Handle()};
    case builtin::kArrData:
      return {"DLTensor", "data", DataType::Handle()};
    case builtin::kArrNDim:
      return {"DLTensor", "ndim", DataType::Int(32)};
    case builtin::kArrDTypeCode:
      return {"DLTensor", "dtype.code", DataType::UInt(8)};
    case builtin::kArrDTypeBits:
      return {"DLTensor", "dtype.bits", DataType::UInt(8)};
    case builtin::kArrDTypeLanes:
      return {"DLTensor", "dtype.lanes", DataType::UInt(16)};
    case builtin::kArrShape:
      return {"DLTensor", "shape", DataType::Handle()};
    case builtin::kArrStrides:
      return {"DLTensor", "strides", DataType::Handle()};
    case builtin::kArrByteOffset:
      return {"DLTensor", "byte_offset", DataType::UInt(64)};
    case builtin::kArrDeviceType:
      return {"DLTensor", "device.device_type", DataType::Int(32)};
    case builtin::kArrDeviceId:
      return {"DLTensor", "device.device_id", DataType::Int(32)};
    case builtin::kInt64Element:
      return {"int64_t", "", DataType::Int(64)};
  }
  TVM_FATAL(InternalError) << "tvm_struct_get of unknown field " << kind;
  throw;  // unreachable
}

}  // namespace

std::string CodeGenCHost::Prelude() const {
  return "#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>\n#include <stdio.h>\n"
         "#include <tvm/runtime/c_backend_api.h>\n\n"
         "#if defined(__clang__)\n#define TVM_UNROLL(n) _Pragma(\"unroll\")\n"
         "#elif defined(__GNUC__)\n#define TVM_UNROLL_TEXT(x) _Pragma(#x)\n"
         "#define TVM_UNROLL(n) TVM_UNROLL_TEXT(GCC unroll n)\n"
         "#else\n#define TVM_UNROLL(n)\n#endif\n\n";
}

std::string CodeGenCHost::Finish() {
  // Weak, so that several such modules can be linked into one library, which has one context.
  // Protected where there is such a thing, so that code uses the context of its own library
  // whatever libraries the process has loaded before.
  declarations_ =
      "#if defined(__ELF__)\n__attribute__((weak, visibility(\"protected\")))\n"
      "#else\nTVM_DLL __attribute__((weak))\n#endif\nvoid* " +
      std::string(runtime::kModuleContext) + ";\n" + declarations_;
  if (entry_points_.size() == 1) {
    definitions_ += "\nTVM_DLL __attribute__((weak)) const char " +
                    std::string(runtime::kModuleMain) + "[] = \"" + entry_points_[0] + "\";\n";
  }
  return CodeGenC::Finish();
}

std::string CodeGenCHost::FunctionPrefix(const PrimFunc& func, bool exported) {
  if (!returns_status_) return CodeGenC::FunctionPrefix(func, exported);
  return std::string(exported ? "TVM_DLL " : "static ") + "int32_t ";
}

std::string CodeGenCHost::Parameter(const Var& param, const std::string& name, bool written) {
  if (!returns_status_ || !param->dtype.is_handle()) {
    return CodeGenC::Parameter(param, name, written);
  }
  // The packed convention: pointers to TVMAny, which StructField says where they are used.
  return "void* " + name;
}

void CodeGenCHost::AddFunction(const std::string& name, const PrimFunc& func) {
  returns_status_ = IsPacked(func);
  frame_bytes_ = 0;
  workspaces_.clear();
  parts_ = 0;
  device_type_ = kHostDevice;
  device_id_ = "0";
  CodeGenC::AddFunction(name, func);
}

std::string CodeGenCHost::UnrollLine(int64_t extent) const {
  // GCC accepts no higher count.
  constexpr int64_t kMaxCount = 65534;
  return extent > 1 && extent <= kMaxCount ? "TVM_UNROLL(" + std::to_string(extent) + ")" : "";
}

void CodeGenCHost::BeginFunction(const PrimFunc& func) {
  if (returns_status_ && func->GetAttr<String>(tir::attr::kGlobalSymbol)) {
    entry_points_.push_back(function_name_);
  }
}

void CodeGenCHost::EndFunction(const PrimFunc& func) {
  if (returns_status_) Line("return 0;");
}

void CodeGenCHost::NeedsStatus(const std::string& what) const {
  if (!returns_status_) {
    Unsupported(what + ", which can fail,",
                "give the function the packed calling convention, so that it can report failures");
  }
}

void CodeGenCHost::FreeWorkspaces() {
  for (auto it = workspaces_.rbegin(); it != workspaces_.rend(); ++it) {
    Line(FreeCall(*it));
  }
}

void CodeGenCHost::ReturnFailure() {
  FreeWorkspaces();
  Line("return -1;");
}

std::string CodeGenCHost::FreeCall(const Workspace& workspace) const {
  return "TVMBackendFreeWorkspace(" + workspace.device + ", " + workspace.name + ");";
}

bool CodeGenCHost::Attribute(const AttrStmtNode* op) {
  if (op->attr_key == kRunOnce) {
    RunOnce(op);
    return true;
  }
  std::string* device = op->attr_key == tir::attr::device_type ? &device_type_
                        : op->attr_key == tir::attr::device_id ? &device_id_
                                                               : nullptr;
  if (device == nullptr) return false;
  std::string outer = *device;
  *device = Print(op->value);
  VisitStmt(op->body);
  *device = outer;
  return true;
}

void CodeGenCHost::CheckStatus(const std::string& call) {
  Block("if (" + call + " != 0)", [&] { ReturnFailure(); });
}

void CodeGenCHost::VisitStmt_(const AssertStmtNode* op) {
  NeedsStatus("an assertion");
  Block("if (!" + Print(op->condition) + ")", [&] {
    std::string message;
    if (const auto* text = op->message.as<StringImmNode>()) {
      message = VisitExpr_(text);
    } else {
      const auto* call = op->message.as<CallNode>();
      ICHECK(call != nullptr && call->op.same_as(builtin::error_text()))
          << "an assertion's message must be a string or error_text, got " << op->message;
      // "{}" stands for a 64-bit integer.
      std::string format;
      const std::string source = Downcast<StringImm>(call->args[0])->value;
      for (size_t i = 0; i < source.size(); ++i) {
        bool slot = source.compare(i, 2, "{}") == 0;
        format += slot ? "%lld" : source[i] == '%' ? "%%" : std::string(1, source[i]);
        i += slot ? 1 : 0;
      }
      message = NewName("message");
      Line("char " + message + "[1024];");
      std::string values;
      for (size_t i = 1; i < call->args.size(); ++i) {
        values += ", (long long)" + Print(call->args[i]);
      }
      Line("snprintf(" + message + ", sizeof(" + message + "), " + Print(StringImm(format)) +
           values + ");");
    }
    Line("TVMAPISetLastError(" + message + ");");
    ReturnFailure();
  });
  VisitStmt(op->body);
}

void CodeGenCHost::AllocateIn(const std::string& scope, const AllocateNode* op,
                              const std::string& name) {
  if (scope != "global" && scope != "local") return CodeGenC::AllocateIn(scope, op, name);
  DataType element = op->dtype.element_of();
  std::string type = Type(element);
  int64_t element_bytes = element.bytes() * op->dtype.lanes();
  int64_t count = op->ConstantAllocationSize();
  int64_t bytes = count * element_bytes;
  bool on_host = device_type_ == kHostDevice || scope == "local";
  if (on_host && count > 0 && bytes <= kMaxFrameBuffer && frame_bytes_ + bytes <= kMaxFrameBytes) {
    frame_bytes_ += bytes;
    Line("_Alignas(64) " + type + " " + name + "[" + std::to_string(count * op->dtype.lanes()) +
         "];");
    return;
  }
  NeedsStatus("memory for " + std::string(op->buffer_var->name_hint) + " allocated at run time");
  std::string device = device_type_ + ", " + device_id_;
  std::string size = "(uint64_t)" + std::to_string(element_bytes);
  for (const PrimExpr& extent : op->extents) size += " * (uint64_t)" + Print(extent);
  Line(type + "* " + (no_alias_ ? RestrictKeyword() : "") + name + " = (" + type +
       "*)TVMBackendAllocWorkspace(" + device + ", " + size + ");");
  Block("if (" + name + " == NULL)", [&] {
    Line("TVMAPISetLastError(\"RuntimeError: " + function_name_ + ": no memory for buffer " +
         std::string(op->buffer_var->name_hint) + "\");");
    ReturnFailure();
  });
  workspaces_.push_back({device, name});
}

void CodeGenCHost::VisitStmt_(const AllocateNode* op) {
  size_t before = workspaces_.size();
  CodeGenC::VisitStmt_(op);
  for (; workspaces_.size() > before; workspaces_.pop_back()) {
    Line(FreeCall(workspaces_.back()));
  }
}

void CodeGenCHost::VisitStmt_(const ForNode* op) {
  if (op->kind == ForKind::kParallel && !is_one(op->extent)) {
    ParallelLoop(op);
  } else {
    CodeGenC::VisitStmt_(op);
  }
}

CodeGenCHost::Record CodeGenCHost::Capture(const Stmt& stmt) {
  std::vector<Var> captured;
  std::unordered_set<const VarNode*> seen;
  auto capture = [&](const Var& var) {
    if (names_.count(var.get()) && seen.insert(var.get()).second) captured.push_back(var);
  };
  PostOrderVisit(stmt, [&](const ObjectRef& node) {
    if (node.as<VarNode>()) capture(Downcast<Var>(node));
    if (const auto* load = node.as<BufferLoadNode>()) capture(load->buffer->data);
    if (const auto* store = node.as<BufferStoreNode>()) capture(store->buffer->data);
  });
  Record record;
  for (const Var& var : captured) {
    const std::string& name = names_.at(var.get());
    auto pointee = pointee_.find(var.get());
    std::string type = Type(var->dtype.element_of());
    bool is_pointer = var->dtype.is_handle() || var->dtype.is_vector();
    if (var->dtype.is_vector()) type += "*";
    if (var->dtype.is_handle() && pointee != pointee_.end()) type = Type(pointee->second) + "*";
    record.Add(type, name, name);
    std::string qualifier = is_pointer && no_alias_ ? RestrictKeyword() : "";
    record.readers += "  " + type + " " + qualifier + name + " = captured->" + name + ";\n";
  }
  return record;
}

std::string CodeGenCHost::Outline(const std::string& symbol, const std::string& params,
                                  const Record& record, const std::function<void()>& body) {
  const std::string type = "struct " + symbol + "_captured";
  declarations_ += type + " {\n" + record.fields + "};\n";
  std::string outer_body = std::move(body_);
  std::vector<Workspace> outer_workspaces = std::move(workspaces_);
  int outer_indent = indent_;
  int64_t outer_frame = frame_bytes_;
  auto outer_names = names_;
  body_ = record.readers;
  indent_ = 2;
  workspaces_.clear();
  frame_bytes_ = 0;
  body();
  Line("return 0;");
  const std::string head = "static int32_t " + symbol + "(" + params + "void* data)";
  declarations_ += head + ";\n";
  definitions_ += "\n" + head + " {\n  const " + type + "* captured = data;\n" + body_ + "}\n";
  body_ = std::move(outer_body);
  indent_ = outer_indent;
  workspaces_ = std::move(outer_workspaces);
  frame_bytes_ = outer_frame;
  names_ = std::move(outer_names);

  const std::string data = NewName("record");
  Line(type + " " + data + " = {" + record.setters + "};");
  return data;
}

void CodeGenCHost::ParallelLoop(const ForNode* op) {
  NeedsStatus("a parallel loop over " + std::string(op->loop_var->name_hint));
  analyzer_.Bind(op->loop_var, Range::FromMinExtent(op->min, op->extent), true);
  const std::string symbol = function_name_ + "_parallel_" + std::to_string(parts_++);
  const std::string begin = Print(op->min);
  const std::string extent = Print(op->extent);
  Record record = Capture(op->body);
  record.Add("int64_t", "begin_", begin);
  record.Add("int64_t", "extent_", extent);
  const std::string data = Outline(symbol, "int32_t task_id, int32_t num_task, ", record, [&] {
    Line(
        "const int64_t share_ = captured->extent_ / num_task, rest_ = captured->extent_ % "
        "num_task;");
    Line(
        "const int64_t first_ = captured->begin_ + task_id * share_ + "
        "(task_id < rest_ ? task_id : rest_);");
    Line("const int64_t last_ = first_ + share_ + (task_id < rest_ ? 1 : 0);");
    const std::string type = Type(op->loop_var->dtype);
    SerialLoop(op, "(" + type + ")first_", "(" + type + ")last_");
  });
  CheckStatus("TVMBackendParallelLaunch(" + symbol + ", &" + data + ", 0)");
}

void CodeGenCHost::RunOnce(const AttrStmtNode* op) {
  const std::string runner = RunnerName(op);
  NeedsStatus("a part that " + runner + " runs");
  const std::string symbol = function_name_ + "_once_" + std::to_string(parts_++);
  Record record = Capture(op->body);
  // A struct without members is no C.
  if (record.fields.empty()) record.Add("int32_t", "nothing_", "0");
  const std::string data = Outline(symbol, "", record, [&] { VisitStmt(op->body); });
  // C11 lets a function be declared again alike, as the runtime's header may have done.
  const std::string declaration =
      "int " + runner + "(void** handle, int (*run)(void* data), void* data, int num_bytes);\n";
  if (declarations_.find(declaration) == std::string::npos) declarations_ += declaration;
  CheckStatus(runner + "(" + StaticHandle() + ", " + symbol + ", &" + data + ", sizeof(" + data +
              "))");
}

std::string CodeGenCHost::StaticHandle() {
  const std::string name = NewGlobalName("static_handle");
  declarations_ += "static void* " + name + " = NULL;\n";
  return "&" + name;
}

std::string CodeGenCHost::StructField(const CallNode* op, const std::string& qualifier,
                                      DataType dtype, DataType* stored) {
  const int64_t* kind = as_const_int(op->args[2]);
  ICHECK(kind != nullptr) << "a field must be a constant";
  Place place = PlaceOf(*kind, dtype);
  *stored = place.stored;
  std::string member = place.member;
  return "((" + qualifier + place.record + "*)" + Print(op->args[0]) + ")[" + Print(op->args[1]) +
         "]" + (member.empty() ? "" : ".") + member;
}

void CodeGenCHost::SetPacked(const std::string& slot, const PrimExpr& arg) {
  DataType dtype = arg.dtype();
  std::string value = Print(arg);
  std::string code = "kTVMOpaqueHandle", field = "v_handle";
  if (arg.as<StringImmNode>()) {
    code = "kTVMStr";
    field = "v_str";
  } else if (dtype.is_float() || dtype.is_bfloat16()) {
    code = "kTVMFloat";
    field = "v_float64";
    value = CastText(value, dtype, DataType::Float(64));
  } else if (!dtype.is_handle()) {
    code = dtype.is_bool() ? "kTVMBool" : "kTVMInt";
    field = "v_int64";
  } else {
    value = "(void*)" + value;
  }
  Line(slot + ".type_code = " + code + ";");
  Line(slot + "." + field + " = " + value + ";");
}

std::string CodeGenCHost::PackedFunction(const StringImmNode* callee) {
  // Looked up by name at the first call only.
  std::string& handle = function_handles_[callee->value];
  if (handle.empty()) {
    handle = NewGlobalName(std::string(callee->value) + "_packed");
    declarations_ += "static void* " + handle + " = NULL;\n";
  }
  Block("if (" + handle + " == NULL)", [&] {
    CheckStatus("TVMBackendGetFuncFromEnv(" + std::string(runtime::kModuleContext) + ", " +
                VisitExpr_(callee) + ", &" + handle + ")");
  });
  return handle;
}

std::string CodeGenCHost::CallPacked(const CallNode* op) {
  const auto* callee = op->args[0].as<StringImmNode>();
  TVM_CHECK(callee != nullptr, TypeError)
      << "c code generator: tvm_call_packed needs the function's name as its first argument, got "
      << op->args[0];
  NeedsStatus("a call of the packed function " + std::string(callee->value));
  std::string args, count, result;
  if (op->op.same_as(builtin::tvm_call_packed_lowered()) ||
      op->op.same_as(Op::Get("tir.tvm_call_cpacked_lowered"))) {
    std::string stack = "((TVMAny*)" + Print(op->args[1]) + ")";
    args = "&" + stack + "[" + Print(op->args[2]) + "]";
    count = Print(analyzer_.Simplify(op->args[3] - op->args[2]));
    result = stack + "[" + Print(op->args[3]) + "]";
  } else {
    args = NewName("packed_args");
    result = NewName("packed_result");
    count = std::to_string(op->args.size() - 1);
    // An array without elements is no C; one more does no harm.
    Line("TVMAny " + args + "[" + std::to_string(op->args.size()) + "], " + result + ";");
    for (size_t i = 1; i < op->args.size(); ++i) {
      SetPacked(args + "[" + std::to_string(i - 1) + "]", op->args[i]);
    }
  }
  static const Op direct = Op::Get("tir.tvm_call_cpacked"),
                  direct_lowered = Op::Get("tir.tvm_call_cpacked_lowered");
  std::string function;
  if (op->op.same_as(direct) || op->op.same_as(direct_lowered)) {
    const std::string symbol = callee->value;
    const std::string declaration =
        "int32_t " + symbol + "(void* args, int32_t num_args, void* ret);\n";
    if (declarations_.find(declaration) == std::string::npos) declarations_ += declaration;
    function = symbol + "(";
  } else {
    function = "TVMFuncCall(" + PackedFunction(callee) + ", ";
  }
  Line(result + ".type_code = kTVMNull;");
  Line(result + ".v_int64 = 0;");
  CheckStatus(function + args + ", " + count + ", &" + result + ")");
  DataType dtype = op->dtype;
  if (dtype.is_handle()) return result + ".v_handle";
  bool is_float = dtype.is_float() || dtype.is_bfloat16();
  std::string value = NewName("value");
  if (!dtype.is_void()) {
    Line(Type(dtype) + " " + value + " = " +
         CastText(result + (is_float ? ".v_float64" : ".v_int64"),
                  is_float ? DataType::Float(64) : DataType::Int(64), dtype) +
         ";");
  }
  Line("TVMAnyFree(&" + result + ");");
  return dtype.is_void() ? "" : value;
}

bool CodeGenCHost::CallIntrinsic(const std::string& name, const CallNode* op, std::string* text) {
  DataType stored;
  if (name == "tvm_struct_get") {
    std::string place = StructField(op, "const ", op->dtype, &stored);
    *text = CastText(place, stored, op->dtype);
  } else if (name == "tvm_struct_set") {
    DataType dtype = op->args[3].dtype();
    std::string place = StructField(op, "", dtype, &stored);
    Line(place + " = " + CastText(Print(op->args[3]), dtype, stored) + ";");
  } else if (name == "ret") {
    std::string value = Print(op->args[0]);
    FreeWorkspaces();
    Line("return " + value + ";");
  } else if (name == "tvm_stack_alloca") {
    const int64_t* count = as_const_int(op->args[1]);
    const auto* kind = op->args[0].as<StringImmNode>();
    if (count == nullptr || kind == nullptr || kind->value != "tvm_any") {
      Unsupported("tvm_stack_alloca of something else than a constant number of \"tvm_any\"",
                  "use Allocate for other memory");
    }
    *text = NewName("stack_memory");
    Line("TVMAny " + *text + "[" + std::to_string(*count) + "];");
  } else if (name == "tvm_static_handle") {
    *text = StaticHandle();
  } else if (name == "tvm_call_packed" || name == "tvm_call_packed_lowered" ||
             name == "tvm_call_cpacked" || name == "tvm_call_cpacked_lowered") {
    *text = CallPacked(op);
  } else if (name == "tvm_check_return") {
    const std::string expected = Print(op->args[0]), status = Print(op->args[1]);
    *text = NewName("status");
    Line(Type(op->args[2].dtype()) + " " + *text + " = " + Print(op->args[2]) + ";");
    Block("if (" + *text + " != " + expected + ")", [&] {
      FreeWorkspaces();
      Line("return " + status + ";");
    });
  } else if (name == "tvm_throw_last_error") {
    NeedsStatus("an error passed on");
    ReturnFailure();
  } else if (name == "lookup_param") {
    const auto* param = op->args[0].as<StringImmNode>();
    TVM_CHECK(param != nullptr, TypeError)
        << "c code generator: lookup_param needs the parameter's name, got " << op->args[0];
    const std::string symbol = "__tvm_param__" + std::string(param->value);
    const std::string declaration = "extern char " + symbol + "[];\n";
    if (declarations_.find(declaration) == std::string::npos) declarations_ += declaration;
    *text = "((void*)" + symbol + ")";
  } else {
    return false;
  }
  return true;
}

TVM_REGISTER_GLOBAL("target.EmitC").set_body_typed([](IRModule mod, Target target) {
  CodeGenCHost generator(target);
  return String(PrintModule(&generator, mod));
});

}  // namespace codegen
}  // namespace tvm
