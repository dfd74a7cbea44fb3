/*!
 * \file codegen_c_call.cc
 * \brief Calls of the generator for C-like languages.
 */
#include <tvm/codegen/codegen_c.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>

#include "codegen/large_uint.h"

namespace tvm {
namespace codegen {

using namespace tir;  // NOLINT(*)

namespace {

/*! \brief Functions of <math.h> under the names of our operators; float32 ones end in f. */
bool IsLibraryFunction(const std::string& name) {
  static const std::unordered_set<std::string> names = {
      "exp",   "exp2", "log",   "log2",  "log10", "log1p", "expm1",     "sqrt",  "sin",   "cos",
      "tan",   "asin", "acos",  "atan",  "sinh",  "cosh",  "tanh",      "asinh", "acosh", "atanh",
      "floor", "ceil", "round", "trunc", "fabs",  "erf",   "nearbyint", "pow",   "fmod",  "atan2",
  };
  return names.count(name) != 0;
}

std::string Join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

}  // namespace

std::string CodeGenC::MathCall(const std::string& name, DataType dtype,
                               const std::vector<std::string>& args) {
  std::string suffix = dtype.bits() == 32 ? "f" : "";
  std::string one = FloatLiteral(dtype, 1.0);
  if (name == "rsqrt") return "(" + one + " / sqrt" + suffix + "(" + args[0] + "))";
  if (name == "sigmoid")
    return "(" + one + " / (" + one + " + exp" + suffix + "(-" + args[0] + ")))";
  if (name == "exp10")
    return "pow" + suffix + "(" + FloatLiteral(dtype, 10.0) + ", " + args[0] + ")";
  if (IsLibraryFunction(name) || name == "fma") return name + suffix + "(" + Join(args) + ")";
  Unsupported(
      "there is no code for operator tir." + name,
      "call a function of the language with call_pure_extern, or lower the operator before");
}

std::string CodeGenC::CallExtern(const std::string& symbol, const CallNode* op, size_t first_arg) {
  std::vector<std::string> args;
  for (size_t i = first_arg; i < op->args.size(); ++i) {
    if (op->args[i].dtype().is_vector() && !op->dtype.is_vector()) {
      Unsupported("a call of " + symbol + " with a vector as argument",
                  "pass a pointer to memory instead");
    }
    args.push_back(Print(op->args[i]));
  }
  return symbol + "(" + Join(args) + ")";
}

std::string CodeGenC::CallIfThenElse(const CallNode* op) {
  std::string condition = Print(op->args[0]);
  std::string lines[2], values[2];
  std::string outer = std::move(body_);
  indent_ += 2;
  for (int i = 0; i < 2; ++i) {
    body_.clear();
    values[i] = Print(op->args[static_cast<size_t>(i) + 1]);
    lines[i] = std::move(body_);
  }
  indent_ -= 2;
  body_ = std::move(outer);
  if (lines[0].empty() && lines[1].empty()) {
    return "(" + condition + " ? " + values[0] + " : " + values[1] + ")";
  }
  // What a branch computes ahead of its value may only run when the branch is taken.
  std::string result = NewName("chosen");
  Line(Type(op->dtype.element_of()) + " " + result + ";");
  for (int i = 0; i < 2; ++i) {
    Block(i == 0 ? "if (" + condition + ")" : "else", [&] {
      body_ += lines[i];
      Line(result + " = " + values[i] + ";");
    });
  }
  return result;
}

std::string CodeGenC::VisitExpr_(const CallNode* op) {
  if (const auto* callee = op->op.as<GlobalVarNode>()) {
    auto it = symbols_.find(callee->name_hint);
    if (it == symbols_.end()) {
      Unsupported(
          "a call of " + std::string(callee->name_hint) + ", which the module does not define,",
          "build both in one module");
    }
    return CallExtern(it->second, op, 0);
  }
  std::string name = Downcast<Op>(op->op)->name;
  ICHECK(name.rfind("tir.", 0) == 0) << "call of operator " << name;
  name = name.substr(4);
  DataType dtype = op->dtype;
  std::string own;
  if (CallIntrinsic(name, op, &own)) return own;
  if (name == "likely") return Print(op->args[0]);
  if (name == "assume") return "";
  if (name == "if_then_else") return CallIfThenElse(op);
  if (name == "bitwise_and") return Binary("&", op->args[0], op->args[1]);
  if (name == "bitwise_or") return Binary("|", op->args[0], op->args[1]);
  if (name == "bitwise_xor") return Binary("^", op->args[0], op->args[1]);
  if (name == "shift_left") return Binary("<<", op->args[0], op->args[1]);
  if (name == "shift_right") return Binary(">>", op->args[0], op->args[1]);
  if (name == "bitwise_not") {
    if (dtype.is_bool()) return "(!" + Print(op->args[0]) + ")";
    return FromComputed("(~" + Print(op->args[0]) + ")", dtype);
  }
  if (name == "null_handle") return "((void*)0)";
  if (name == "isnullptr") return "(" + Print(op->args[0]) + " == ((void*)0))";
  if (name == "large_uint_imm") {
    return "((" + Type(dtype.element_of()) + ")" + std::to_string(LargeUIntValue(op)) + "ULL)";
  }
  if (name == "reinterpret") {
    DataType from = op->args[0].dtype().element_of();
    DataType to = dtype.element_of();
    std::string value = Print(op->args[0]);
    if (from == to) return value;
    if (from.is_handle() || to.is_handle()) return CastText(value, from, to);
    std::string helper = "tvm_bits_" + from.ToString() + "_as_" + to.ToString();
    std::string text = Type(to) + " " + helper + "(" + Type(from) + " x) {\n  union { " +
                       Type(from) + " from; " + Type(to) + " to; } u;\n  u.from = x;\n" +
                       "  return u.to;\n}";
    return Helper(helper, text) + "(" + value + ")";
  }
  if (name == "address_of") {
    const auto* load = op->args[0].as<BufferLoadNode>();
    ICHECK(load != nullptr) << "address_of needs a BufferLoad";
    PrimExpr offset = load->buffer.ElemOffset(load->indices);
    const auto* ramp = offset.as<RampNode>();
    return "(&" +
           Element(load->buffer->data, load->dtype.element_of(),
                   ScalarOffset(load->buffer, ramp ? ramp->base : offset)) +
           ")";
  }
  if (name == "tvm_access_ptr") {
    DataType element = op->args[0].dtype().element_of();
    return "(&" + Element(Downcast<Var>(op->args[1]), element, Print(op->args[2])) + ")";
  }
  if (name == "tvm_storage_sync") {
    StorageSync(Downcast<StringImm>(op->args[0])->value);
    return "";
  }
  if (name == "ret") {
    Line("return " + Print(op->args[0]) + ";");
    return "";
  }
  // A hint that C has no word for; dropping it changes no result.
  if (name == "prefetch") return "";
  if (name == "call_extern" || name == "call_pure_extern") {
    return CallExtern(Downcast<StringImm>(op->args[0])->value, op, 1);
  }
  if (op->args.empty()) Unsupported("there is no code for operator tir." + name, "lower it before");
  DataType argument = op->args[0].dtype().element_of();
  if (name == "isnan") {
    std::string x = Computable(op->args[0]);
    return "(" + x + " != " + x + ")";
  }
  if (name == "popcount") {
    std::string x = Print(op->args[0]);
    std::string text = argument.bits() == 64 ? "__builtin_popcountll((unsigned long long)" + x + ")"
                                             : "__builtin_popcount((unsigned)" + x + ")";
    if (argument.bits() < 32) {
      // Without the copies of the sign bit that widening adds.
      DataType plain = DataType::UInt(argument.bits());
      text = "__builtin_popcount((unsigned)" + CastText(x, argument, plain) + ")";
    }
    return "((" + Type(dtype.element_of()) + ")" + text + ")";
  }
  bool is_half = argument.bits() == 16 && (argument.is_float() || argument.is_bfloat16());
  if (!argument.is_float() && !is_half) {
    Unsupported("tir." + name + " of " + argument.ToString(), "cast its argument to a float first");
  }
  // Half types have no library of their own and little to gain from one.
  DataType wide = is_half ? DataType::Float(32) : argument;
  // Rounding the sum to 24 bits and then to 11 may differ from rounding it once.
  if (name == "fma" && argument.is_float() && is_half) wide = DataType::Float(64);
  std::vector<std::string> args;
  for (const PrimExpr& arg : op->args) args.push_back(CastText(Print(arg), arg.dtype(), wide));
  return CastText(MathCall(name, wide, args), wide, dtype);
}

}  // namespace codegen
}  // namespace tvm
