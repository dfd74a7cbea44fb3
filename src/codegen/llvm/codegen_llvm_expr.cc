/*!
 * \file codegen_llvm_expr.cc
 * \brief Expressions of the LLVM generator, calls and memory apart.
 */
#include <tvm/expr/op.h>

#include <algorithm>

#include "codegen/llvm/codegen_llvm.h"

namespace tvm {
namespace codegen {

using namespace tir;  // NOLINT(*)

namespace {

bool IsFloating(DataType dtype) { return dtype.is_float() || dtype.is_bfloat16(); }

/*! \brief Whether an expression can be computed as an index: a signed scalar of at most 64 bits. */
bool IsIndexLike(DataType dtype) {
  return dtype.is_int() && dtype.is_scalar() && (dtype.bits() == 32 || dtype.bits() == 64);
}

}  // namespace

Value CodeGenLLVM::Constant(DataType dtype, int64_t value) {
  if (dtype.is_handle()) return {"ptr", "null", 0};
  if (IsFloating(dtype)) return Constant(dtype, static_cast<double>(value));
  return text().Int(LLVMType(dtype), value);
}

Value CodeGenLLVM::Constant(DataType dtype, double value) {
  if (!dtype.is_bfloat16()) return text().Float(LLVMType(dtype), value);
  return FloatToBFloat(text().Float(LLVMType(DataType::Float(32, dtype.lanes())), value));
}

Value CodeGenLLVM::VisitExpr_(const VarNode* op) { return ValueOf(op); }

Value CodeGenLLVM::VisitExpr_(const IntImmNode* op) { return Constant(op->dtype, op->value); }

Value CodeGenLLVM::VisitExpr_(const FloatImmNode* op) { return Constant(op->dtype, op->value); }

Value CodeGenLLVM::VisitExpr_(const StringImmNode* op) {
  return {"ptr", module_.StringConstant(op->value), 0};
}

Value CodeGenLLVM::BFloatToFloat(const Value& value) {
  std::string wide = value.TypeWith("i32");
  Value bits = text().Convert("zext", value, wide);
  bits = text().Binary("shl", bits, text().Int(wide, 16));
  return text().Convert("bitcast", bits, value.TypeWith("float"));
}

Value CodeGenLLVM::FloatToBFloat(const Value& value) {
  std::string wide = value.TypeWith("i32");
  auto constant = [&](int64_t v) { return text().Int(wide, v); };
  Value bits = text().Convert("bitcast", value, wide);
  // Round to nearest even: add half of the last kept place, and its last bit.
  Value last = text().Binary("and", text().Binary("lshr", bits, constant(16)), constant(1));
  Value rounded = text().Binary("add", bits, text().Binary("add", last, constant(0x7FFF)));
  rounded = text().Binary("lshr", rounded, constant(16));
  // Rounding could carry a NaN into infinity; the quiet NaN stands in for all of them.
  Value is_nan = text().Compare("fcmp uno", value, value);
  rounded = text().Select(is_nan, constant(0x7FC0), rounded);
  return text().Convert("trunc", rounded, value.TypeWith("i16"));
}

Value CodeGenLLVM::Computable(const PrimExpr& expr) {
  Value value = VisitExpr(expr);
  return expr.dtype().is_bfloat16() ? BFloatToFloat(value) : value;
}

Value CodeGenLLVM::RoundedToOdd(const Value& exact, const Value& nearest) {
  FunctionText& t = text();
  // An odd number is never halfway between two numbers of fewer bits, so the next rounding goes
  // where it would have gone from `exact`. S. Boldo, G. Melquiond: "Emulation of a FMA and
  // correctly rounded sums: proved algorithms using rounding to odd", IEEE Transactions on
  // Computers 57 (2008).
  Value bits = t.Convert("bitcast", nearest, nearest.TypeWith("i32"));
  Value back = t.Convert("fpext", nearest, exact.type);
  Value is_less =
      t.Compare("fcmp olt", t.Intrinsic("llvm.fabs", {back}), t.Intrinsic("llvm.fabs", {exact}));
  Value step = t.Select(is_less, t.Int(bits.type, 1), t.Int(bits.type, -1));
  Value is_even =
      t.Compare("icmp eq", t.Binary("and", bits, t.Int(bits.type, 1)), t.Int(bits.type, 0));
  Value moves = t.Binary("and", t.Compare("fcmp one", back, exact), is_even);
  Value odd = t.Select(moves, t.Binary("add", bits, step), bits);
  return t.Convert("bitcast", odd, nearest.type);
}

Value CodeGenLLVM::CastTo(const Value& value, DataType from, DataType to) {
  if (from == to) return value;
  if (from.is_bfloat16()) {
    return CastTo(BFloatToFloat(value), DataType::Float(32, from.lanes()), to);
  }
  if (to.is_bfloat16()) {
    return FloatToBFloat(CastTo(value, from, DataType::Float(32, to.lanes())));
  }
  std::string type = LLVMType(to);
  bool from_unsigned = from.is_uint();
  if (from.is_handle() || to.is_handle()) {
    if (from.is_handle() && to.is_handle()) return value;
    return text().Convert(from.is_handle() ? "ptrtoint" : "inttoptr", value, type);
  }
  if (to.is_bool()) {
    Value zero = Constant(from, int64_t{0});
    return text().Compare(from.is_float() ? "fcmp une" : "icmp ne", value, zero);
  }
  bool half_and_double = from.is_float() && to.is_float() && from.bits() + to.bits() == 16 + 64;
  if (half_and_double) {
    // Processors convert between neighbours only; for the leap LLVM would call a library function
    // that a program need not have.
    DataType middle = DataType::Float(32, from.lanes());
    Value between = CastTo(value, from, middle);
    return CastTo(to.bits() == 16 ? RoundedToOdd(value, between) : between, middle, to);
  }
  if (from.is_float() && to.is_float()) {
    return text().Convert(to.bits() > from.bits() ? "fpext" : "fptrunc", value, type);
  }
  if (from.is_float()) return text().Convert(to.is_uint() ? "fptoui" : "fptosi", value, type);
  if (to.is_float()) return text().Convert(from_unsigned ? "uitofp" : "sitofp", value, type);
  if (to.bits() == from.bits()) return value;
  if (to.bits() < from.bits()) return text().Convert("trunc", value, type);
  return text().Convert(from_unsigned ? "zext" : "sext", value, type);
}

Value CodeGenLLVM::VisitExpr_(const CastNode* op) {
  return CastTo(VisitExpr(op->value), op->value.dtype(), op->dtype);
}

Value CodeGenLLVM::Arithmetic(const std::string& op, const PrimExpr& a, const PrimExpr& b) {
  DataType dtype = a.dtype();
  if (IsFloating(dtype)) {
    Value x = Computable(a);
    Value y = Computable(b);
    Value result = text().Binary("f" + op + float_flags_, x, y);
    return dtype.is_bfloat16() ? FloatToBFloat(result) : result;
  }
  Value x = VisitExpr(a);
  Value y = VisitExpr(b);
  // Indices are taken not to overflow. Numbers of narrow types are data and wrap around, as they do
  // in C, where their sums are computed in int.
  const bool index = dtype.is_int() && dtype.bits() >= 32;
  return text().Binary(index ? op + " nsw" : op, x, y);
}

Value CodeGenLLVM::VisitExpr_(const AddNode* op) { return Arithmetic("add", op->a, op->b); }
Value CodeGenLLVM::VisitExpr_(const SubNode* op) { return Arithmetic("sub", op->a, op->b); }
Value CodeGenLLVM::VisitExpr_(const MulNode* op) { return Arithmetic("mul", op->a, op->b); }

Value CodeGenLLVM::DivideInts(const Value& a, const Value& b, bool is_unsigned, bool floor,
                              bool remainder) {
  FunctionText& t = text();
  bool known = b.ref[0] != '%' && b.ref != "0";
  // A divisor that may be zero traps, so that division stays where the program has it.
  auto divide = [&](const std::string& op) {
    if (known) return t.Binary(op, a, b);
    return t.Here(a.type, op + " " + a.type + " " + a.ref + ", " + b.ref);
  };
  if (is_unsigned) return divide(remainder ? "urem" : "udiv");
  if (!floor) return divide(remainder ? "srem" : "sdiv");
  int64_t constant = known && !b.is_vector() ? std::atoll(b.ref.c_str()) : 0;
  if (constant > 0 && (constant & (constant - 1)) == 0) {
    // Shifts and masks of two's complement round toward minus infinity by themselves.
    return remainder ? t.Binary("and", a, t.Int(a.type, constant - 1))
                     : t.Binary("ashr", a, t.Int(a.type, __builtin_ctzll(constant)));
  }
  Value rest = divide("srem");
  Value zero = t.Int(a.type, 0);
  Value wrong_sign = t.Compare("icmp slt", t.Binary("xor", rest, b), zero);
  Value adjust = t.Binary("and", t.Compare("icmp ne", rest, zero), wrong_sign);
  if (remainder) return t.Select(adjust, t.Binary("add", rest, b), rest);
  Value quotient = divide("sdiv");
  return t.Binary("add", quotient, t.Convert("sext", adjust, a.type));
}

Value CodeGenLLVM::Division(const PrimExpr& a, const PrimExpr& b, bool floor, bool remainder) {
  DataType dtype = a.dtype();
  if (!IsFloating(dtype)) {
    Value dividend = VisitExpr(a);
    Value divisor = VisitExpr(b);
    return DivideInts(dividend, divisor, dtype.is_uint(), floor, remainder);
  }
  Value x = Computable(a);
  Value y = Computable(b);
  Value result =
      remainder ? text().Binary("frem", x, y) : text().Binary("fdiv" + float_flags_, x, y);
  if (floor) {
    Value quotient = text().Intrinsic("llvm.floor", {text().Binary("fdiv", x, y)});
    result = remainder ? text().Binary("fsub", x, text().Binary("fmul", quotient, y)) : quotient;
  }
  return dtype.is_bfloat16() ? FloatToBFloat(result) : result;
}

Value CodeGenLLVM::VisitExpr_(const DivNode* op) { return Division(op->a, op->b, false, false); }
Value CodeGenLLVM::VisitExpr_(const ModNode* op) { return Division(op->a, op->b, false, true); }
Value CodeGenLLVM::VisitExpr_(const FloorDivNode* op) {
  return Division(op->a, op->b, true, false);
}
Value CodeGenLLVM::VisitExpr_(const FloorModNode* op) { return Division(op->a, op->b, true, true); }

Value CodeGenLLVM::Extremum(bool maximum, const PrimExpr& a, const PrimExpr& b) {
  DataType dtype = a.dtype();
  Value x = Computable(a);
  Value y = Computable(b);
  if (!IsFloating(dtype)) {
    std::string op = std::string("icmp ") + (dtype.is_uint() ? "u" : "s") + (maximum ? "gt" : "lt");
    return text().Select(text().Compare(op, x, y), x, y);
  }
  if (dtype.is_float() && dtype.bits() == 16) {
    // Most machines compare halves as float32 and choose among the halves themselves. One condition
    // is one choice, and of a constant it is one comparison.
    if (is_const_number(a)) std::swap(x, y);
    Value better = text().Compare(maximum ? "fcmp ogt" : "fcmp olt", y, x);
    Value is_nan = text().Compare("fcmp uno", y, y);
    return text().Select(text().Binary("or", better, is_nan), y, x);
  }
  // Which of two zeros it is does not matter. A machine whose instruction returns the second
  // operand when one is NaN looks at the first one beside it: that is the element of a reduction,
  // whose result so far does not wait for it.
  const std::string flags = float_flags_ == " fast" ? float_flags_ : float_flags_ + " nsz";
  Value result = text().Intrinsic(maximum ? "llvm.maximum" : "llvm.minimum", {y, x}, flags);
  return dtype.is_bfloat16() ? FloatToBFloat(result) : result;
}

Value CodeGenLLVM::VisitExpr_(const MinNode* op) { return Extremum(false, op->a, op->b); }
Value CodeGenLLVM::VisitExpr_(const MaxNode* op) { return Extremum(true, op->a, op->b); }

Value CodeGenLLVM::Comparison(const std::string& op, const PrimExpr& a, const PrimExpr& b) {
  DataType dtype = a.dtype();
  bool equality = op == "eq" || op == "ne";
  if (IsFloating(dtype)) {
    // NaN is unequal to everything and in no order with anything.
    Value x = Computable(a);
    Value y = Computable(b);
    return text().Compare("fcmp " + (op == "ne" ? "une" : "o" + op), x, y);
  }
  std::string sign = equality ? "" : dtype.is_uint() || dtype.is_handle() ? "u" : "s";
  if (IsIndexLike(dtype)) {
    // In 64 bits, like the loop variables that conditions are mostly about.
    Value x = Materialize(Index(a));
    Value y = Materialize(Index(b));
    return text().Compare("icmp " + sign + op, x, y);
  }
  Value x = VisitExpr(a);
  Value y = VisitExpr(b);
  return text().Compare("icmp " + sign + op, x, y);
}

Value CodeGenLLVM::VisitExpr_(const EQNode* op) { return Comparison("eq", op->a, op->b); }
Value CodeGenLLVM::VisitExpr_(const NENode* op) { return Comparison("ne", op->a, op->b); }
Value CodeGenLLVM::VisitExpr_(const LTNode* op) { return Comparison("lt", op->a, op->b); }
Value CodeGenLLVM::VisitExpr_(const LENode* op) { return Comparison("le", op->a, op->b); }
Value CodeGenLLVM::VisitExpr_(const GTNode* op) { return Comparison("gt", op->a, op->b); }
Value CodeGenLLVM::VisitExpr_(const GENode* op) { return Comparison("ge", op->a, op->b); }

Value CodeGenLLVM::VisitExpr_(const AndNode* op) {
  Value x = VisitExpr(op->a);
  Value y = VisitExpr(op->b);
  return text().Binary("and", x, y);
}
Value CodeGenLLVM::VisitExpr_(const OrNode* op) {
  Value x = VisitExpr(op->a);
  Value y = VisitExpr(op->b);
  return text().Binary("or", x, y);
}
Value CodeGenLLVM::VisitExpr_(const NotNode* op) {
  Value value = VisitExpr(op->a);
  return text().Binary("xor", value, text().Int(value.type, 1));
}

Value CodeGenLLVM::VisitExpr_(const SelectNode* op) {
  Value condition = VisitExpr(op->condition);
  Value yes = VisitExpr(op->true_value);
  Value no = VisitExpr(op->false_value);
  return text().Select(condition, yes, no);
}

Value CodeGenLLVM::VisitExpr_(const LetNode* op) {
  Bind(op->var, op->value);
  Value value = VisitExpr(op->body);
  frame_->vars.erase(op->var.get());
  return value;
}

Value CodeGenLLVM::VisitExpr_(const RampNode* op) {
  Value base = text().Splat(VisitExpr(op->base), op->lanes);
  Value stride = text().Splat(VisitExpr(op->stride), op->lanes);
  std::string element = base.element();
  if (op->lanes < 0) {
    const std::string suffix = "nxv" + std::to_string(-op->lanes) + element;
    Value numbers = text().PureCall("llvm.stepvector." + suffix, base.type, {});
    return text().Binary("add nsw", base, text().Binary("mul nsw", stride, numbers));
  }
  std::string counts;
  for (int i = 0; i < op->lanes; ++i) {
    counts += (i == 0 ? "" : ", ") + element + " " + std::to_string(i);
  }
  Value steps = text().Binary("mul nsw", stride, {base.type, "<" + counts + ">", 0});
  return text().Binary("add nsw", base, steps);
}

Value CodeGenLLVM::VisitExpr_(const BroadcastNode* op) {
  return text().Splat(VisitExpr(op->value), op->lanes);
}

Value CodeGenLLVM::VisitExpr_(const ShuffleNode* op) {
  std::vector<Value> vectors;
  for (const PrimExpr& vector : op->vectors) vectors.push_back(VisitExpr(vector));
  std::vector<int> lanes;
  for (const PrimExpr& index : op->indices) {
    const int64_t* lane = as_const_int(index);
    TVM_CHECK(lane != nullptr, ValueError)
        << "llvm code generator: shuffle of lane " << index << "; lane numbers must be constants";
    lanes.push_back(static_cast<int>(*lane));
  }
  if (vectors.size() == 1 && vectors[0].is_vector()) {
    if (lanes.size() == 1) return text().Extract(vectors[0], lanes[0]);
    return text().Shuffle(vectors[0], FunctionText::Poison(vectors[0].type), lanes);
  }
  if (vectors.size() == 2 && vectors[0].is_vector() && vectors[0].type == vectors[1].type &&
      lanes.size() > 1) {
    return text().Shuffle(vectors[0], vectors[1], lanes);
  }
  auto pick = [&](int lane) {
    for (const Value& vector : vectors) {
      if (lane < vector.lanes()) return vector.is_vector() ? text().Extract(vector, lane) : vector;
      lane -= vector.lanes();
    }
    TVM_FATAL(ValueError) << "llvm code generator: shuffle picks a lane its vectors do not have";
  };
  if (lanes.size() == 1) return pick(lanes[0]);
  Value result = FunctionText::Poison(LLVMType(op->dtype));
  for (size_t i = 0; i < lanes.size(); ++i) {
    result = text().Insert(result, pick(lanes[i]), static_cast<int>(i));
  }
  return result;
}

Value CodeGenLLVM::VisitExprDefault_(const Object* op) {
  TVM_FATAL(ValueError) << "llvm code generator: " << op->GetTypeKey() << " in function "
                        << function_name_ << " has no code; lower the function before building it";
}

}  // namespace codegen
}  // namespace tvm
