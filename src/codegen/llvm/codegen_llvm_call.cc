/*!
 * \file codegen_llvm_call.cc
 * \brief Calls of the LLVM generator: intrinsics, elementary functions, C functions, PackedFuncs.
 */
#include <tvm/expr/analysis.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/module.h>

#include <cstddef>

#include "codegen/large_uint.h"
#include "codegen/llvm/codegen_llvm.h"
#include "codegen/llvm/vector_math.h"
#include "codegen/llvm/vector_math_double.h"
#include "codegen/llvm/vector_math_trig.h"

namespace tvm {
namespace codegen {

using namespace tir;  // NOLINT(*)

namespace {

/*! \brief Intrinsics of LLVM that take and give one floating value, by the name of our operator. */
const std::unordered_map<std::string, std::string>& UnaryIntrinsics() {
  static const std::unordered_map<std::string, std::string> table = {
      {"sqrt", "llvm.sqrt"},   {"floor", "llvm.floor"}, {"ceil", "llvm.ceil"},
      {"trunc", "llvm.trunc"}, {"round", "llvm.round"}, {"nearbyint", "llvm.nearbyint"},
      {"exp", "llvm.exp"},     {"exp2", "llvm.exp2"},   {"exp10", "llvm.exp10"},
      {"log", "llvm.log"},     {"log2", "llvm.log2"},   {"log10", "llvm.log10"},
      {"sin", "llvm.sin"},     {"cos", "llvm.cos"},     {"tan", "llvm.tan"},
      {"asin", "llvm.asin"},   {"acos", "llvm.acos"},   {"atan", "llvm.atan"},
      {"sinh", "llvm.sinh"},   {"cosh", "llvm.cosh"},   {"tanh", "llvm.tanh"},
      {"fabs", "llvm.fabs"},
  };
  return table;
}

using Expansion = Value (*)(FunctionText*, const Value&);

/*! \brief Functions written out in float32. */
const std::unordered_map<std::string, Expansion>& Expansions() {
  static const std::unordered_map<std::string, Expansion> table = {
      {"exp", ExpFloat},         {"log", LogFloat},     {"tanh", TanhFloat},
      {"sigmoid", SigmoidFloat}, {"erf", ErfFloat},     {"sin", SinFloat},
      {"cos", CosFloat},         {"log1p", Log1pFloat}, {"atan", AtanFloat},
  };
  return table;
}

/*! \brief Functions written out in float64. */
const std::unordered_map<std::string, Expansion>& DoubleExpansions() {
  static const std::unordered_map<std::string, Expansion> table = {
      {"exp", ExpDouble},
      {"log", LogDouble},
      {"tanh", TanhDouble},
      {"sigmoid", SigmoidDouble},
  };
  return table;
}

/*! \brief Functions of the C library without an intrinsic, called lane by lane. */
bool IsLibraryFunction(const std::string& name) {
  return name == "erf" || name == "log1p" || name == "asinh" || name == "acosh" ||
         name == "atanh" || name == "expm1";
}

/*! \brief Whether evaluating the expression although its value is not used can do no harm. */
bool IsSafeToEvaluate(const PrimExpr& expr) {
  bool safe = true;
  PostOrderVisit(expr, [&](const ObjectRef& node) {
    bool divides = node.as<DivNode>() || node.as<ModNode>() || node.as<FloorDivNode>() ||
                   node.as<FloorModNode>();
    if (divides || node.as<BufferLoadNode>() || node.as<CallNode>()) safe = false;
  });
  return safe;
}

}  // namespace

Value CodeGenLLVM::CallMath(const std::string& name, const CallNode* op) {
  FunctionText& t = text();
  DataType dtype = op->dtype;
  TVM_CHECK(!dtype.is_scalable_vector() || !Downcast<Op>(op->op).GetAttr<bool>(kTElementary, false),
            ValueError)
      << "llvm code generator: " << name << " of a scalable vector in function " << function_name_
      << "; vectorize a loop over it, which calls such functions lane by lane, or take vectors of "
         "known length";
  const DataType argument = op->args[0].dtype();
  // Half types have no library of their own and little to gain from one.
  if (argument.bits() == 16 && (argument.is_float() || argument.is_bfloat16())) {
    // Rounding the sum to 24 bits and then to 11 may differ from rounding it once; 53 bits hold it.
    const int bits = name == "fma" ? 64 : 32;
    DataType wide = DataType::Float(bits, argument.lanes());
    Array<PrimExpr> args;
    for (const PrimExpr& arg : op->args) args.push_back(Cast(wide, arg));
    Call call(dtype.is_bool() ? dtype : wide, op->op, args);
    Value result = CallMath(name, call.get());
    return dtype.is_bool() ? result : CastTo(result, wide, dtype);
  }
  std::vector<Value> args;
  for (const PrimExpr& arg : op->args) args.push_back(VisitExpr(arg));
  const Value& x = args[0];
  if (name == "isnan") {
    if (!argument.is_float()) return t.Int(LLVMType(dtype), 0);
    return t.Compare("fcmp uno", x, x);
  }
  if (name == "popcount") return t.Intrinsic("llvm.ctpop", {x});
  if (name == "fma") {
    if (argument.is_float()) return t.Intrinsic("llvm.fma", args);
    return t.Binary("add", t.Binary("mul", args[0], args[1]), args[2]);
  }
  TVM_CHECK(argument.is_float(), TypeError)
      << "llvm code generator: " << name << " takes floating values, got " << argument.ToString()
      << " in function " << function_name_ << "; cast the argument first";
  const auto& expansions = argument.bits() == 32 ? Expansions() : DoubleExpansions();
  auto expansion = expansions.find(name);
  if (expansion != expansions.end()) return expansion->second(&t, x);
  if (name == "rsqrt") return t.Binary("fdiv", t.Float(x.type, 1.0), t.Intrinsic("llvm.sqrt", {x}));
  if (name == "pow") {
    const auto* splat = op->args[1].as<BroadcastNode>();
    const auto* exponent = (splat ? splat->value : op->args[1]).as<FloatImmNode>();
    if (exponent != nullptr && exponent->value == 2.0) return t.Binary("fmul", x, x);
    return argument.bits() == 32 ? PowFloat(&t, x, args[1]) : t.Intrinsic("llvm.pow", args);
  }
  if (name == "atan2") {
    return argument.bits() == 32 ? Atan2Float(&t, x, args[1]) : t.Intrinsic("llvm.atan2", args);
  }
  if (name == "fmod") return t.Binary("frem", args[0], args[1]);
  auto intrinsic = UnaryIntrinsics().find(name);
  if (intrinsic != UnaryIntrinsics().end()) return t.Intrinsic(intrinsic->second, {x});
  if (IsLibraryFunction(name)) {
    std::string symbol = argument.bits() == 32 ? name + "f" : name;
    if (!x.is_vector()) return t.PureCall(symbol, x.type, {x});
    Value result = FunctionText::Poison(x.type);
    for (int lane = 0; lane < x.lanes(); ++lane) {
      Value y = t.PureCall(symbol, x.element(), {t.Extract(x, lane)});
      result = t.Insert(result, y, lane);
    }
    return result;
  }
  TVM_FATAL(ValueError) << "llvm code generator: no code for operator tir." << name
                        << " in function " << function_name_
                        << "; call a C function with call_extern, or lower the operator before";
}

Value CodeGenLLVM::CallExtern(const std::string& name, const CallNode* op, size_t first_arg,
                              bool pure) {
  std::vector<Value> args;
  for (size_t i = first_arg; i < op->args.size(); ++i) args.push_back(VisitExpr(op->args[i]));
  std::string type = LLVMType(op->dtype);
  if (pure) return text().PureCall(name, type, args);
  std::string types, operands;
  for (const Value& arg : args) {
    types += (types.empty() ? "" : ", ") + arg.type;
    operands += (operands.empty() ? "" : ", ") + arg.str();
  }
  module_.Declare(name, type + " @" + name + "(" + types + ")");
  frame_->loads.clear();
  std::string call = "call " + type + " @" + name + "(" + operands + ")";
  if (type != "void") return text().Here(type, call);
  text().Line(call);
  return {"i32", "0", 0};
}

namespace {
/*! \brief A TVMAny: type code, padding, eight bytes of payload. */
constexpr const char* kAnyType = "{ i32, i32, i64 }";
}  // namespace

Value CodeGenLLVM::StackAlloca(const CallNode* op) {
  const auto* kind = op->args[0].as<StringImmNode>();
  const int64_t* count = as_const_int(op->args[1]);
  ICHECK(kind != nullptr && kind->value == "tvm_any" && count != nullptr)
      << "tvm_stack_alloca: expected \"tvm_any\" and a constant count";
  return text().Alloca("[" + std::to_string(*count) + " x " + kAnyType + "]", 8, "stack");
}

Value CodeGenLLVM::StaticHandle() {
  const std::string symbol = "@.static." + std::to_string(module_.UniqueId());
  module_.AddGlobal(symbol + " = internal global ptr null");
  return {"ptr", symbol, 0};
}

Value CodeGenLLVM::PackedFunction(const std::string& name) {
  FunctionText& t = text();
  // A launch should not pay for a search by name: the handle is looked up at the first call.
  std::string& cache = function_handles_[name];
  if (cache.empty()) {
    cache = "@.function." + std::to_string(module_.UniqueId());
    module_.AddGlobal(cache + " = internal global ptr null");
    module_.Declare("TVMBackendGetFuncFromEnv", "i32 @TVMBackendGetFuncFromEnv(ptr, ptr, ptr)");
  }
  std::string search = t.NewLabel("look_up");
  std::string found = t.NewLabel("function");
  Value known = t.Here("ptr", "load ptr, ptr " + cache);
  t.Branch(t.Compare("icmp eq", known, {"ptr", "null", 0}), search, found);
  t.StartBlock(search);
  t.EnterScope();
  Value context = t.Here("ptr", "load ptr, ptr @" + std::string(runtime::kModuleContext));
  CheckStatus(t.Here("i32", "call i32 @TVMBackendGetFuncFromEnv(" + context.str() + ", ptr " +
                                module_.StringConstant(name) + ", ptr " + cache + ")"),
              "look_up");
  t.ExitScope();
  t.Branch(found);
  t.StartBlock(found);
  return t.Here("ptr", "load ptr, ptr " + cache);
}

Value CodeGenLLVM::CallPackedLowered(const CallNode* op) {
  FunctionText& t = text();
  std::string name = Downcast<StringImm>(op->args[0])->value;
  TVM_CHECK(frame_->returns_status, ValueError)
      << "llvm code generator: " << function_name_ << " calls the packed function " << name
      << " but cannot report its failure; give it the packed calling convention";
  Value stack = VisitExpr(op->args[1]);
  const int64_t* begin = as_const_int(op->args[2]);
  const int64_t* end = as_const_int(op->args[3]);
  ICHECK(begin != nullptr && end != nullptr) << "tvm_call_packed_lowered needs constant bounds";
  auto field = [&](int64_t index, int64_t byte) {
    int64_t offset = index * static_cast<int64_t>(sizeof(TVMAny)) + byte;
    return t.GetElementPtr("i8", stack, t.I64(offset));
  };
  Value result = field(*end, 0);
  static const Op direct = Op::Get("tir.tvm_call_cpacked_lowered");
  std::string callee;
  if (op->op.same_as(direct)) {
    module_.Declare(name, "i32 @" + name + "(ptr, i32, ptr)");
    callee = "@" + name + "(";
  } else {
    module_.Declare("TVMFuncCall", "i32 @TVMFuncCall(ptr, ptr, i32, ptr)");
    callee = "@TVMFuncCall(" + PackedFunction(name).str() + ", ";
  }
  module_.Declare("TVMAnyFree", "void @TVMAnyFree(ptr)");
  frame_->loads.clear();
  t.Line("store " + std::string(kAnyType) + " zeroinitializer, " + result.str());
  CheckStatus(t.Here("i32", "call i32 " + callee + field(*begin, 0).str() + ", i32 " +
                                std::to_string(*end - *begin) + ", " + result.str() + ")"),
              "call");
  DataType dtype = op->dtype;
  Value payload = field(*end, offsetof(TVMAny, v_int64));
  if (dtype.is_handle()) return t.Here("ptr", "load ptr, " + payload.str());
  Value value;
  if (dtype.is_float() || dtype.is_bfloat16()) {
    value = t.Here("double", "load double, " + payload.str());
    value = CastTo(value, DataType::Float(64), dtype);
  } else {
    value = t.Here("i64", "load i64, " + payload.str());
    if (!dtype.is_void()) value = CastTo(value, DataType::Int(64), dtype);
  }
  t.Line("call void @TVMAnyFree(" + result.str() + ")");
  return value;
}

Value CodeGenLLVM::CallIfThenElse(const CallNode* op) {
  FunctionText& t = text();
  Value condition = VisitExpr(op->args[0]);
  TVM_CHECK(!condition.is_vector(), ValueError)
      << "llvm code generator: if_then_else with a vector condition in function " << function_name_
      << "; use Select, or leave the loop scalar";
  if (IsSafeToEvaluate(op->args[1]) && IsSafeToEvaluate(op->args[2])) {
    Value yes = VisitExpr(op->args[1]);
    Value no = VisitExpr(op->args[2]);
    return t.Select(condition, yes, no);
  }
  std::string label[2] = {t.NewLabel("then"), t.NewLabel("else")};
  std::string join = t.NewLabel("join");
  t.Branch(condition, label[0], label[1]);
  std::string incoming;
  for (int branch = 0; branch < 2; ++branch) {
    t.StartBlock(label[branch]);
    t.EnterScope();
    Value value = VisitExpr(op->args[branch + 1]);
    incoming += (branch ? ", [ " : "[ ") + value.ref + ", %" + t.block() + " ]";
    t.ExitScope();
    t.Branch(join);
  }
  t.StartBlock(join);
  std::string type = LLVMType(op->dtype);
  return t.Here(type, "phi " + type + " " + incoming);
}

Value CodeGenLLVM::StructField(const CallNode* op, DataType dtype, DataType* stored_type) {
  FunctionText& t = text();
  Value base = VisitExpr(op->args[0]);
  LinearIndex index = Index(op->args[1]);
  const int64_t* kind = as_const_int(op->args[2]);
  ICHECK(kind != nullptr) << op->op << " needs a constant field";
  // Where each field is: size of the struct, offset, and type of the field.
  struct Place {
    size_t size, offset;
    DataType type;
  };
  auto place = [&]() -> Place {
    switch (static_cast<builtin::StructField>(*kind)) {
      case builtin::kAnyTypeCode:
        return {sizeof(TVMAny), offsetof(TVMAny, type_code), DataType::Int(32)};
      case builtin::kAnyValue: {
        // Numbers are kept as int64 or float64 whatever the parameter's own type.
        DataType stored = dtype.is_handle()  ? DataType::Handle()
                          : dtype.is_float() ? DataType::Float(64)
                                             : DataType::Int(64);
        return {sizeof(TVMAny), offsetof(TVMAny, v_int64), stored};
      }
      case builtin::kAnyDLTensor:
        return {sizeof(TVMAny), offsetof(TVMAny, v_handle), DataType::Handle()};
      case builtin::kArrData:
        return {sizeof(DLTensor), offsetof(DLTensor, data), DataType::Handle()};
      case builtin::kArrNDim:
        return {sizeof(DLTensor), offsetof(DLTensor, ndim), DataType::Int(32)};
      case builtin::kArrDTypeCode:
        return {sizeof(DLTensor), offsetof(DLTensor, dtype) + offsetof(DLDataType, code),
                DataType::UInt(8)};
      case builtin::kArrDTypeBits:
        return {sizeof(DLTensor), offsetof(DLTensor, dtype) + offsetof(DLDataType, bits),
                DataType::UInt(8)};
      case builtin::kArrDTypeLanes:
        return {sizeof(DLTensor), offsetof(DLTensor, dtype) + offsetof(DLDataType, lanes),
                DataType::UInt(16)};
      case builtin::kArrShape:
        return {sizeof(DLTensor), offsetof(DLTensor, shape), DataType::Handle()};
      case builtin::kArrStrides:
        return {sizeof(DLTensor), offsetof(DLTensor, strides), DataType::Handle()};
      case builtin::kArrByteOffset:
        return {sizeof(DLTensor), offsetof(DLTensor, byte_offset), DataType::UInt(64)};
      case builtin::kArrDeviceType:
        return {sizeof(DLTensor), offsetof(DLTensor, device) + offsetof(DLDevice, device_type),
                DataType::Int(32)};
      case builtin::kArrDeviceId:
        return {sizeof(DLTensor), offsetof(DLTensor, device) + offsetof(DLDevice, device_id),
                DataType::Int(32)};
      case builtin::kInt64Element:
        return {sizeof(int64_t), 0, DataType::Int(64)};
    }
    TVM_FATAL(InternalError) << "struct of unknown field " << *kind;
  }();
  LinearIndex byte;
  byte.Add(index, static_cast<int64_t>(place.size));
  byte.offset += static_cast<int64_t>(place.offset);
  *stored_type = place.type;
  return t.GetElementPtr("i8", base, Materialize(byte));
}

Value CodeGenLLVM::CallStructGet(const CallNode* op) {
  FunctionText& t = text();
  DataType stored;
  Value address = StructField(op, op->dtype, &stored);
  std::string type = LLVMType(stored);
  std::string load = "load " + type + ", " + address.str();
  // Arguments do not change during a call, so outside of loops one load serves all readers.
  Value value = t.level() == 0 ? t.Pure(type, load, 0) : t.Here(type, load);
  return CastTo(value, stored, op->dtype);
}

Value CodeGenLLVM::CallStructSet(const CallNode* op) {
  DataType stored;
  DataType given = op->args[3].dtype();
  Value address = StructField(op, given, &stored);
  Value value = CastTo(VisitExpr(op->args[3]), given, stored);
  text().Line("store " + value.str() + ", " + address.str());
  return {"i32", "0", 0};
}

Value CodeGenLLVM::ErrorText(const PrimExpr& message) {
  FunctionText& t = text();
  if (const auto* text_node = message.as<StringImmNode>()) {
    return {"ptr", module_.StringConstant(text_node->value), 0};
  }
  const auto* call = message.as<CallNode>();
  ICHECK(call != nullptr && call->op.same_as(builtin::error_text()))
      << "an assertion's message must be a string or error_text, got " << message;
  // The C library fills the numbers in; "{}" becomes the conversion for a 64-bit integer.
  std::string format;
  const std::string source = Downcast<StringImm>(call->args[0])->value;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '{' && i + 1 < source.size() && source[i + 1] == '}') {
      format += "%lld";
      ++i;
    } else {
      format += source[i] == '%' ? std::string("%%") : std::string(1, source[i]);
    }
  }
  constexpr int kBytes = 1024;
  if (frame_->message.ref.empty()) {
    frame_->message = t.Alloca("[" + std::to_string(kBytes) + " x i8]", 1, "message");
  }
  const Value& buffer = frame_->message;
  std::string operands =
      buffer.str() + ", i64 " + std::to_string(kBytes) + ", ptr " + module_.StringConstant(format);
  for (size_t i = 1; i < call->args.size(); ++i) {
    Value value = VisitExpr(call->args[i]);
    operands += ", " + CastTo(value, call->args[i].dtype(), DataType::Int(64)).str();
  }
  module_.Declare("snprintf", "i32 @snprintf(ptr, i64, ptr, ...)");
  t.Line("call i32 (ptr, i64, ptr, ...) @snprintf(" + operands + ")");
  return buffer;
}

Value CodeGenLLVM::VisitExpr_(const CallNode* op) {
  FunctionText& t = text();
  if (const auto* callee = op->op.as<GlobalVarNode>()) {
    std::string name = callee->name_hint;
    auto it = signatures_.find(name);
    TVM_CHECK(it != signatures_.end(), ValueError)
        << "llvm code generator: " << function_name_ << " calls " << name
        << ", which the module does not define; build both in one module";
    return CallExtern(it->second, op, 0, false);
  }
  std::string name = Downcast<Op>(op->op)->name;
  ICHECK(name.rfind("tir.", 0) == 0) << "call of operator " << name;
  name = name.substr(4);
  auto bits = [&](const char* operation) {
    Value a = VisitExpr(op->args[0]);
    Value b = VisitExpr(op->args[1]);
    return t.Binary(operation, a, b);
  };
  if (name == "likely") return VisitExpr(op->args[0]);
  if (name == "assume") {
    const Value fact = VisitExpr(op->args[0]);
    module_.Declare("llvm.assume", "void @llvm.assume(i1)");
    if (!fact.is_vector()) t.Line("call void @llvm.assume(" + fact.str() + ")");
    return {"i32", "0", 0};
  }
  if (name == "if_then_else") return CallIfThenElse(op);
  if (name == "vscale") {
    const std::string type = LLVMType(op->dtype);
    return t.PureCall("llvm.vscale." + type, type, {});
  }
  if (name == "get_active_lane_mask") {
    Value base = VisitExpr(op->args[0]), limit = VisitExpr(op->args[1]);
    const std::string type = LLVMType(op->dtype);
    return t.PureCall(
        "llvm.get.active.lane.mask." + FunctionText::Poison(type).Suffix() + "." + base.type, type,
        {base, limit});
  }
  if (name == "tvm_struct_get") return CallStructGet(op);
  if (name == "tvm_struct_set") return CallStructSet(op);
  if (name == "tvm_stack_alloca") return StackAlloca(op);
  if (name == "tvm_call_packed_lowered" || name == "tvm_call_cpacked_lowered") {
    return CallPackedLowered(op);
  }
  TVM_CHECK(name != "tvm_call_packed" && name != "tvm_call_cpacked", ValueError)
      << "llvm code generator: function " << function_name_ << " still has " << name << "; "
      << "run LowerTVMBuiltin before";
  if (name == "bitwise_and") return bits("and");
  if (name == "bitwise_or") return bits("or");
  if (name == "bitwise_xor") return bits("xor");
  if (name == "shift_left") return bits("shl");
  if (name == "shift_right") return bits(op->dtype.is_uint() ? "lshr" : "ashr");
  if (name == "null_handle") return {"ptr", "null", 0};
  if (name == "tvm_static_handle") return StaticHandle();
  if (name == "bitwise_not") {
    Value value = VisitExpr(op->args[0]);
    return t.Binary("xor", value, t.Int(value.type, op->dtype.is_bool() ? 1 : -1));
  }
  if (name == "reinterpret") {
    Value value = VisitExpr(op->args[0]);
    if (op->dtype.is_handle() || op->args[0].dtype().is_handle()) {
      return CastTo(value, op->args[0].dtype(), op->dtype);
    }
    return t.Convert("bitcast", value, LLVMType(op->dtype));
  }
  if (name == "isnullptr") {
    return t.Compare("icmp eq", VisitExpr(op->args[0]), {"ptr", "null", 0});
  }
  if (name == "large_uint_imm") {
    return t.Int(LLVMType(op->dtype), static_cast<int64_t>(LargeUIntValue(op)));
  }
  if (name == "address_of") {
    const auto* load = op->args[0].as<BufferLoadNode>();
    ICHECK(load != nullptr) << "address_of needs a BufferLoad";
    PrimExpr offset = load->buffer.ElemOffset(load->indices);
    const auto* ramp = offset.as<RampNode>();
    return Address(ValueOf(load->buffer->data.get()), load->dtype.element_of(),
                   ScalarIndex(load->buffer, ramp ? ramp->base : offset));
  }
  if (name == "prefetch") {
    std::string operands;
    for (const PrimExpr& arg : op->args) {
      operands += (operands.empty() ? "" : ", ") + VisitExpr(arg).str();
    }
    module_.Declare("llvm.prefetch.p0", "void @llvm.prefetch.p0(ptr, i32, i32, i32)");
    t.Line("call void @llvm.prefetch.p0(" + operands + ")");
    return {"i32", "0", 0};
  }
  if (name == "tvm_check_return") {
    Value expected = VisitExpr(op->args[0]), status = VisitExpr(op->args[1]);
    Value got = VisitExpr(op->args[2]);
    std::string differs = t.NewLabel("unexpected"), as_expected = t.NewLabel("expected");
    t.Branch(t.Compare("icmp eq", got, expected), as_expected, differs);
    t.StartBlock(differs);
    FreeWorkspaces();
    t.Line("ret " + status.str());
    t.StartBlock(as_expected);
    return got;
  }
  if (name == "tvm_throw_last_error") {
    TVM_CHECK(frame_->returns_status, ValueError)
        << "llvm code generator: " << function_name_ << " passes on an error but cannot report "
        << "it; give it the packed calling convention";
    ReturnFailure();
    t.StartBlock(t.NewLabel("after_error"));
    return {"ptr", "null", 0};
  }
  if (name == "lookup_param") {
    const std::string symbol = "@__tvm_param__" + Downcast<StringImm>(op->args[0])->value;
    if (linked_params_.insert(symbol).second) module_.AddGlobal(symbol + " = external global i8");
    return {"ptr", symbol, 0};
  }
  if (name == "ret") {
    Value value = VisitExpr(op->args[0]);
    FreeWorkspaces();
    t.Line("ret " + value.str());
    // What follows cannot be reached, but text needs a block to stand in.
    t.StartBlock(t.NewLabel("after_return"));
    return value;
  }
  if (name == "call_extern" || name == "call_pure_extern" || name == "call_llvm_pure_intrin" ||
      name == "call_llvm_intrin") {
    std::string symbol = Downcast<StringImm>(op->args[0])->value;
    return CallExtern(symbol, op, 1, name.find("pure") != std::string::npos);
  }
  TVM_CHECK(!op->args.empty(), ValueError) << "llvm code generator: no code for operator tir."
                                           << name << " in function " << function_name_;
  return CallMath(name, op);
}

}  // namespace codegen
}  // namespace tvm
