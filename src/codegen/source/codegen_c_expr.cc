/*!
 * \file codegen_c_expr.cc
 * \brief Expressions of the generator for C-like languages.
 */
#include <tvm/codegen/codegen_c.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>

#include <cmath>
#include <cstdio>
#include <limits>

namespace tvm {
namespace codegen {

using namespace tir;  // NOLINT(*)

namespace {

bool IsFloating(DataType dtype) { return dtype.is_float() || dtype.is_bfloat16(); }

/*! \brief Integers narrower than int are computed as int in C, and have to be cut back. */
bool IsPromoted(DataType dtype) {
  return (dtype.is_int() || dtype.is_uint()) && dtype.bits() < 32 && !dtype.is_bool();
}

}  // namespace

std::string CodeGenC::Type(DataType dtype) const {
  if (dtype.is_handle()) return "void*";
  if (dtype.is_void()) return "void";
  if (dtype.is_bool()) return "bool";
  if (dtype.is_bfloat16()) return "uint16_t";
  if (dtype.is_float()) {
    return dtype.bits() == 16 ? "_Float16" : dtype.bits() == 32 ? "float" : "double";
  }
  return std::string(dtype.is_uint() ? "uint" : "int") + std::to_string(dtype.bits()) + "_t";
}

std::string CodeGenC::FloatLiteral(DataType dtype, double value) {
  std::string text;
  if (std::isnan(value)) {
    text = "NAN";
  } else if (std::isinf(value)) {
    text = value > 0 ? "INFINITY" : "(-INFINITY)";
  } else {
    // Enough digits to read back the very same number.
    char digits[40];
    bool is_double = dtype.is_float() && dtype.bits() == 64;
    std::snprintf(digits, sizeof(digits), is_double ? "%.17g" : "%.9g", value);
    text = digits;
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    if (!is_double) text += "f";
    if (text[0] == '-') text = "(" + text + ")";
  }
  if (dtype.bits() == 16) return CastText(text, DataType::Float(32), dtype);
  return dtype.bits() == 64 && !std::isfinite(value) ? "((double)" + text + ")" : text;
}

std::string CodeGenC::CastText(const std::string& value, DataType from, DataType to) {
  from = from.element_of();
  to = to.element_of();
  if (from == to) return value;
  if (from.is_bfloat16()) {
    std::string text =
        "float tvm_bfloat16_to_float(uint16_t x) {\n"
        "  union { uint32_t bits; float value; } u;\n"
        "  u.bits = (uint32_t)x << 16;\n"
        "  return u.value;\n"
        "}";
    std::string wide = Helper("tvm_bfloat16_to_float", text) + "(" + value + ")";
    return CastText(wide, DataType::Float(32), to);
  }
  if (to.is_bfloat16()) {
    // Rounds to nearest even; the quiet NaN stands in for all of them.
    std::string text =
        "uint16_t tvm_float_to_bfloat16(float x) {\n"
        "  union { uint32_t bits; float value; } u;\n"
        "  u.value = x;\n"
        "  if (x != x) return 0x7FC0;\n"
        "  return (uint16_t)((u.bits + 0x7FFF + ((u.bits >> 16) & 1)) >> 16);\n"
        "}";
    return Helper("tvm_float_to_bfloat16", text) + "(" +
           CastText(value, from, DataType::Float(32)) + ")";
  }
  if (to.is_bool()) return "(" + value + " != 0)";
  if (from.is_handle() && !to.is_handle()) return "((" + Type(to) + ")(uintptr_t)" + value + ")";
  if (to.is_handle() && !from.is_handle()) return "((void*)(uintptr_t)" + value + ")";
  return "((" + Type(to) + ")" + value + ")";
}

std::string CodeGenC::Computable(const PrimExpr& expr) {
  std::string text = Print(expr);
  DataType dtype = expr.dtype();
  return IsStorageOnly(dtype) ? CastText(text, dtype, DataType::Float(32)) : text;
}

std::string CodeGenC::FromComputed(const std::string& text, DataType dtype) {
  if (IsStorageOnly(dtype)) return CastText(text, DataType::Float(32), dtype);
  if (IsPromoted(dtype)) return "((" + Type(dtype.element_of()) + ")" + text + ")";
  return text;
}

bool CodeGenC::IsNonNegative(const PrimExpr& expr) {
  return expr.dtype().is_uint() ||
         (expr.dtype().is_scalar() && analyzer_.CanProveGreaterEqual(expr, 0));
}

std::string CodeGenC::VisitExpr_(const VarNode* op) {
  std::string name = NameOf(op);
  if (!op->dtype.is_vector()) return name;
  ICHECK(!lane_.empty()) << "vector variable " << op->name_hint << " outside of a loop over lanes";
  return name + "[" + lane_ + "]";
}

std::string CodeGenC::VisitExpr_(const IntImmNode* op) {
  DataType dtype = op->dtype;
  if (IsFloating(dtype)) return FloatLiteral(dtype, static_cast<double>(op->value));
  if (dtype.is_bool()) return op->value ? "true" : "false";
  if (dtype.is_handle()) return "((void*)0)";
  bool plain = dtype.is_int() && dtype.bits() == 32;
  // The smallest number has no literal of its own: minus applies to one that is too large.
  if (op->value == std::numeric_limits<int64_t>::min()) {
    return "((" + Type(dtype) + ")(-9223372036854775807LL - 1))";
  }
  if (plain && op->value == std::numeric_limits<int32_t>::min()) return "(-2147483647 - 1)";
  std::string text = std::to_string(op->value);
  if (op->value > std::numeric_limits<int32_t>::max() ||
      op->value < std::numeric_limits<int32_t>::min()) {
    text += "LL";
  }
  if (!plain) return "((" + Type(dtype) + ")" + text + ")";
  return op->value < 0 ? "(" + text + ")" : text;
}

std::string CodeGenC::VisitExpr_(const FloatImmNode* op) {
  return FloatLiteral(op->dtype, op->value);
}

std::string CodeGenC::VisitExpr_(const StringImmNode* op) {
  std::string text = "\"";
  for (char c : op->value.str()) {
    unsigned char byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += std::string("\\") + c;
    } else if (byte < 0x20 || byte >= 0x7f) {
      // Octal, as it ends after three digits whatever follows.
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\%03o", byte);
      text += escape;
    } else {
      text += c;
    }
  }
  return text + "\"";
}

std::string CodeGenC::VisitExpr_(const CastNode* op) {
  return CastText(Print(op->value), op->value.dtype(), op->dtype);
}

std::string CodeGenC::Binary(const char* op, const PrimExpr& a, const PrimExpr& b) {
  std::string x = Computable(a);
  std::string y = Computable(b);
  return FromComputed("(" + x + " " + op + " " + y + ")", a.dtype());
}

std::string CodeGenC::VisitExpr_(const AddNode* op) { return Binary("+", op->a, op->b); }
std::string CodeGenC::VisitExpr_(const SubNode* op) { return Binary("-", op->a, op->b); }
std::string CodeGenC::VisitExpr_(const MulNode* op) { return Binary("*", op->a, op->b); }
std::string CodeGenC::VisitExpr_(const DivNode* op) { return Binary("/", op->a, op->b); }

std::string CodeGenC::VisitExpr_(const ModNode* op) {
  DataType dtype = op->a.dtype();
  if (!IsFloating(dtype)) return Binary("%", op->a, op->b);
  std::string x = Computable(op->a);
  std::string y = Computable(op->b);
  DataType wide = IsStorageOnly(dtype) ? DataType::Float(32) : dtype.element_of();
  return FromComputed(MathCall("fmod", wide, {x, y}), dtype);
}

std::string CodeGenC::FloorDivision(const PrimExpr& a, const PrimExpr& b, bool remainder) {
  DataType dtype = a.dtype().element_of();
  if (IsFloating(dtype)) {
    std::string x = Computable(a);
    std::string y = Computable(b);
    DataType wide = IsStorageOnly(dtype) ? DataType::Float(32) : dtype;
    std::string quotient = MathCall("floor", wide, {"(" + x + " / " + y + ")"});
    return FromComputed(remainder ? "(" + x + " - " + quotient + " * " + y + ")" : quotient, dtype);
  }
  if (dtype.is_uint()) return Binary(remainder ? "%" : "/", a, b);
  PrimExpr divisor = b;
  if (const auto* broadcast = b.as<BroadcastNode>()) divisor = broadcast->value;
  const int64_t* constant = as_const_int(divisor);
  bool positive = constant && *constant > 0;
  if (positive && IsNonNegative(a)) return Binary(remainder ? "%" : "/", a, b);
  if (positive && (*constant & (*constant - 1)) == 0) {
    // Shifts and masks of two's complement round toward minus infinity by themselves.
    std::string x = Print(a);
    std::string bits = std::to_string(__builtin_ctzll(static_cast<uint64_t>(*constant)));
    std::string mask = Print(make_const(dtype, *constant - 1));
    return FromComputed("(" + x + (remainder ? " & " + mask : " >> " + bits) + ")", dtype);
  }
  std::string type = Type(dtype);
  std::string name = std::string(remainder ? "tvm_floormod_" : "tvm_floordiv_") + dtype.ToString();
  std::string text = type + " " + name + "(" + type + " a, " + type + " b) {\n  " + type +
                     " r = a % b;\n" +
                     (remainder ? "  return (r != 0 && (r ^ b) < 0) ? r + b : r;\n"
                                : "  return a / b - ((r != 0 && (r ^ b) < 0) ? 1 : 0);\n") +
                     "}";
  std::string x = Print(a);
  return Helper(name, text) + "(" + x + ", " + Print(b) + ")";
}

std::string CodeGenC::VisitExpr_(const FloorDivNode* op) {
  return FloorDivision(op->a, op->b, false);
}
std::string CodeGenC::VisitExpr_(const FloorModNode* op) {
  return FloorDivision(op->a, op->b, true);
}

std::string CodeGenC::Extremum(bool maximum, const PrimExpr& a, const PrimExpr& b) {
  DataType dtype = a.dtype().element_of();
  DataType wide = IsStorageOnly(dtype) ? DataType::Float(32) : dtype;
  std::string x = Computable(a);
  std::string y = Computable(b);
  std::string type = Type(wide);
  std::string name = std::string(maximum ? "tvm_max_" : "tvm_min_") + wide.ToString();
  // No comparison with NaN holds, so it is b where b is NaN.
  std::string text = type + " " + name + "(" + type + " a, " + type + " b) { return a " +
                     (maximum ? ">" : "<") + " b" + (IsFloating(wide) ? " || !(a == a)" : "") +
                     " ? a : b; }";
  return FromComputed(Helper(name, text) + "(" + x + ", " + y + ")", dtype);
}

std::string CodeGenC::VisitExpr_(const MinNode* op) { return Extremum(false, op->a, op->b); }
std::string CodeGenC::VisitExpr_(const MaxNode* op) { return Extremum(true, op->a, op->b); }

std::string CodeGenC::Comparison(const char* op, const PrimExpr& a, const PrimExpr& b) {
  std::string x = Computable(a);
  std::string y = Computable(b);
  return "(" + x + " " + op + " " + y + ")";
}

std::string CodeGenC::VisitExpr_(const EQNode* op) { return Comparison("==", op->a, op->b); }
std::string CodeGenC::VisitExpr_(const NENode* op) { return Comparison("!=", op->a, op->b); }
std::string CodeGenC::VisitExpr_(const LTNode* op) { return Comparison("<", op->a, op->b); }
std::string CodeGenC::VisitExpr_(const LENode* op) { return Comparison("<=", op->a, op->b); }
std::string CodeGenC::VisitExpr_(const GTNode* op) { return Comparison(">", op->a, op->b); }
std::string CodeGenC::VisitExpr_(const GENode* op) { return Comparison(">=", op->a, op->b); }
std::string CodeGenC::VisitExpr_(const AndNode* op) { return Comparison("&&", op->a, op->b); }
std::string CodeGenC::VisitExpr_(const OrNode* op) { return Comparison("||", op->a, op->b); }
std::string CodeGenC::VisitExpr_(const NotNode* op) { return "(!" + Print(op->a) + ")"; }

std::string CodeGenC::VisitExpr_(const SelectNode* op) {
  std::string condition = Print(op->condition);
  std::string yes = Print(op->true_value);
  std::string no = Print(op->false_value);
  return "(" + condition + " ? " + yes + " : " + no + ")";
}

std::string CodeGenC::VisitExpr_(const LetNode* op) {
  Bind(op->var, op->value);
  return Print(op->body);
}

std::string CodeGenC::VisitExpr_(const RampNode* op) {
  std::string base = Print(op->base);
  std::string type = Type(op->base.dtype());
  std::string lane = type == "int" || type == "int32_t" ? lane_ : "(" + type + ")" + lane_;
  if (is_one(op->stride)) return "(" + base + " + " + lane + ")";
  return "(" + base + " + " + lane + " * " + Print(op->stride) + ")";
}

std::string CodeGenC::VisitExpr_(const BroadcastNode* op) { return Print(op->value); }

std::string CodeGenC::VisitExpr_(const ShuffleNode* op) {
  // Where each picked lane comes from: the vectors stand in a row.
  std::vector<std::string> sources;
  for (const PrimExpr& vector : op->vectors) {
    int lanes = vector.dtype().lanes();
    std::string name = lanes == 1 ? Print(vector) : Materialize(vector);
    for (int i = 0; i < lanes; ++i) {
      sources.push_back(lanes == 1 ? name : name + "[" + std::to_string(i) + "]");
    }
  }
  std::vector<std::string> picked;
  for (const PrimExpr& index : op->indices) {
    const int64_t* lane = as_const_int(index);
    if (lane == nullptr || *lane < 0 || *lane >= static_cast<int64_t>(sources.size())) {
      Unsupported("a shuffle with a lane that is no constant in range",
                  "lane numbers must be constants below the number of lanes");
    }
    picked.push_back(sources[static_cast<size_t>(*lane)]);
  }
  if (picked.size() == 1) return picked[0];
  std::string values;
  for (const std::string& text : picked) values += (values.empty() ? "" : ", ") + text;
  std::string name = NewName("shuffled");
  Line(Type(op->dtype.element_of()) + " " + name + "[" + std::to_string(picked.size()) + "] = {" +
       values + "};");
  return name + "[" + lane_ + "]";
}

std::string CodeGenC::Pointer(const Var& data, DataType element) {
  std::string name = NameOf(data.get());
  auto pointee = pointee_.find(data.get());
  if (pointee != pointee_.end() && pointee->second == element) return name;
  bool is_const = !written_.count(data.get());
  return "((" + std::string(is_const ? "const " : "") + Type(element) + "*)" + name + ")";
}

std::string CodeGenC::Element(const Var& data, DataType element, const std::string& index) {
  return Pointer(data, element) + "[" + index + "]";
}

std::string CodeGenC::ScalarOffset(const Buffer& buffer, const PrimExpr& offset) {
  // A buffer of vectors counts vectors; C counts their scalars.
  int lanes = buffer->dtype.lanes();
  return lanes == 1 ? Print(offset) : "(" + Print(offset) + " * " + std::to_string(lanes) + ")";
}

std::string CodeGenC::VisitExpr_(const BufferLoadNode* op) {
  DataType element = op->dtype.element_of();
  PrimExpr offset = op->buffer.ElemOffset(op->indices);
  const Var& data = op->buffer->data;
  if (op->dtype.is_scalar()) return Element(data, element, ScalarOffset(op->buffer, offset));
  auto loaded = wide_loads_.find(op);
  if (loaded != wide_loads_.end()) return loaded->second + "[" + lane_ + "]";
  if (offset.dtype().is_scalar()) {
    return Element(data, element, "(" + ScalarOffset(op->buffer, offset) + " + " + lane_ + ")");
  }
  return Element(data, element, Print(offset));
}

std::string CodeGenC::VisitExprDefault_(const Object* op) {
  Unsupported("there is no code for " + std::string(op->GetTypeKey()),
              "lower the function before building it");
}

}  // namespace codegen
}  // namespace tvm
