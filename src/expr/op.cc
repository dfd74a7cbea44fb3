/*!
 * \file src/expr/op.cc
 * \brief Operators on expressions: type promotion, constant folding, reductions.
 */
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/narrow_float.h>
#include <tvm/runtime/registry.h>

#include "const_fold.h"

namespace tvm {

using namespace tir;

DataType GetRuntimeDataType(const Type& type) {
  if (const auto* prim = type.as<PrimTypeNode>()) return prim->dtype;
  if (type.as<PointerTypeNode>() != nullptr) return DataType::Handle();
  if (const auto* tuple = type.as<TupleTypeNode>(); tuple != nullptr && tuple->fields.empty()) {
    return DataType::Void();
  }
  TVM_FATAL(TypeError) << "a variable of type " << type
                       << " cannot be held in a register; expected a primitive or pointer type";
  throw;  // unreachable
}

namespace {
[[noreturn]] void RaiseNoCommonType(const PrimExpr& lhs, const PrimExpr& rhs, const char* why) {
  TVM_FATAL(TypeError) << "no common type of " << lhs << " (" << lhs.dtype() << ") and " << rhs
                       << " (" << rhs.dtype() << "): " << why << "; cast one of them";
  throw;  // unreachable
}

/*! \brief The scalar type at which two scalar types meet, or void. */
DataType MeetType(DataType a, DataType b) {
  if (a == b) return a;
  if (IsFloating(a) && IsFloating(b)) {
    if (a.bits() != b.bits()) return a.bits() > b.bits() ? a : b;
    return DataType::Void();
  }
  if (IsFloating(a) && IsIntegral(b)) return a;
  if (IsIntegral(a) && IsFloating(b)) return b;
  if (IsIntegral(a) && IsIntegral(b)) {
    if (a.bits() != b.bits()) return a.bits() > b.bits() ? a : b;
    return a.is_int() ? a : b;
  }
  return DataType::Void();
}
}  // namespace

void BinaryOpMatchTypes(PrimExpr& lhs, PrimExpr& rhs) {  // NOLINT(*)
  TVM_CHECK(lhs.defined() && rhs.defined(), ValueError)
      << "an operand is undefined: " << lhs << " and " << rhs;
  DataType l = lhs.dtype(), r = rhs.dtype();
  if (l == r) return;
  if (l.is_scalar() && r.is_vector()) {
    lhs = Broadcast(lhs, r.lanes());
  } else if (l.is_vector() && r.is_scalar()) {
    rhs = Broadcast(rhs, l.lanes());
  } else if (l.lanes() != r.lanes()) {
    RaiseNoCommonType(lhs, rhs, "the lanes differ");
  }
  DataType meet = MeetType(l.element_of(), r.element_of());
  if (meet.is_void()) RaiseNoCommonType(lhs, rhs, "neither type contains the other");
  int lanes = lhs.dtype().lanes();
  lhs = cast(meet.with_lanes(lanes), lhs);
  rhs = cast(meet.with_lanes(lanes), rhs);
}

PrimExpr cast(const DataType& t, PrimExpr value) {
  TVM_CHECK(value.defined(), ValueError) << "cast to " << t << ": the value is undefined";
  if (value.dtype() == t) return value;
  if (t.is_vector() && value.dtype().is_scalar()) {
    return Broadcast(cast(t.element_of(), value), t.lanes());
  }
  TVM_CHECK(t.lanes() == value.dtype().lanes(), TypeError)
      << "cast of " << value << " from " << value.dtype() << " to " << t
      << ": the lanes differ and the value is no scalar";
  if (const auto* splat = value.as<BroadcastNode>()) {
    return Broadcast(cast(t.element_of(), splat->value), splat->lanes);
  }
  if (const auto* ramp = value.as<RampNode>();
      ramp != nullptr && IsIntegral(t) && t.bits() >= value.dtype().bits()) {
    DataType element = t.element_of();
    return Ramp(cast(element, ramp->base), cast(element, ramp->stride), ramp->lanes);
  }
  if (PrimExpr folded = FoldCast(t, value); folded.defined()) return folded;
  return Cast(t, value);
}

PrimExpr reinterpret(const DataType& t, PrimExpr value) {
  if (value.dtype() == t) return value;
  TVM_CHECK(value.dtype().bits() * value.dtype().lanes() == t.bits() * t.lanes(), TypeError)
      << "reinterpret of " << value << " (" << value.dtype() << ") as " << t
      << ": the sizes differ";
  return Call(t, builtin::reinterpret(), {value});
}

#define TVM_TIR_DEFINE_ARITH(Func, Node)                                         \
  PrimExpr Func(PrimExpr a, PrimExpr b) {                                        \
    BinaryOpMatchTypes(a, b);                                                    \
    if (auto folded = TryConstFold<Node>(a, b); folded.defined()) return folded; \
    return Node(std::move(a), std::move(b));                                     \
  }

TVM_TIR_DEFINE_ARITH(add, Add)
TVM_TIR_DEFINE_ARITH(sub, Sub)
TVM_TIR_DEFINE_ARITH(mul, Mul)
TVM_TIR_DEFINE_ARITH(min, Min)
TVM_TIR_DEFINE_ARITH(max, Max)
TVM_TIR_DEFINE_ARITH(less, LT)
TVM_TIR_DEFINE_ARITH(less_equal, LE)
TVM_TIR_DEFINE_ARITH(greater, GT)
TVM_TIR_DEFINE_ARITH(greater_equal, GE)
TVM_TIR_DEFINE_ARITH(equal, EQ)
TVM_TIR_DEFINE_ARITH(not_equal, NE)
#undef TVM_TIR_DEFINE_ARITH

namespace {
void CheckIntegers(const char* name, const PrimExpr& a, const PrimExpr& b) {
  TVM_CHECK(IsIntegral(a.dtype()) && IsIntegral(b.dtype()), TypeError)
      << name << " is for integers, got " << a << " (" << a.dtype() << ") and " << b << " ("
      << b.dtype() << ")";
}

template <typename Node>
PrimExpr IntegerDivision(const char* name, PrimExpr a, PrimExpr b) {
  CheckIntegers(name, a, b);
  BinaryOpMatchTypes(a, b);
  if (PrimExpr folded = TryConstFold<Node>(a, b); folded.defined()) return folded;
  return Node(std::move(a), std::move(b));
}

void CheckBools(const char* name, const PrimExpr& a, const PrimExpr& b) {
  TVM_CHECK(a.dtype().is_bool() && b.dtype().is_bool(), TypeError)
      << name << " is for conditions, got " << a << " (" << a.dtype() << ") and " << b << " ("
      << b.dtype() << "); compare with 0 first";
}
}  // namespace

PrimExpr truncdiv(PrimExpr a, PrimExpr b) {
  return IntegerDivision<Div>("truncdiv", std::move(a), std::move(b));
}
PrimExpr truncmod(PrimExpr a, PrimExpr b) {
  return IntegerDivision<Mod>("truncmod", std::move(a), std::move(b));
}
PrimExpr floordiv(PrimExpr a, PrimExpr b) {
  return IntegerDivision<FloorDiv>("floordiv", std::move(a), std::move(b));
}
PrimExpr floormod(PrimExpr a, PrimExpr b) {
  return IntegerDivision<FloorMod>("floormod", std::move(a), std::move(b));
}
PrimExpr indexdiv(PrimExpr a, PrimExpr b) { return floordiv(std::move(a), std::move(b)); }
PrimExpr indexmod(PrimExpr a, PrimExpr b) { return floormod(std::move(a), std::move(b)); }
PrimExpr ceildiv(PrimExpr a, PrimExpr b) { return floordiv(a + (b - 1), b); }

PrimExpr div(PrimExpr a, PrimExpr b) {
  BinaryOpMatchTypes(a, b);
  if (PrimExpr folded = TryConstFold<Div>(a, b); folded.defined()) return folded;
  return Div(std::move(a), std::move(b));
}

PrimExpr truediv(PrimExpr a, PrimExpr b) {
  BinaryOpMatchTypes(a, b);
  if (IsIntegral(a.dtype())) {
    DataType real = DataType::Float(32, a.dtype().lanes());
    a = cast(real, a);
    b = cast(real, b);
  }
  return div(std::move(a), std::move(b));
}

PrimExpr neg(PrimExpr a) {
  if (const auto* splat = a.as<BroadcastNode>()) return Broadcast(neg(splat->value), splat->lanes);
  if (const auto* imm = a.as<FloatImmNode>()) return FloatImm(imm->dtype, -imm->value);
  if (a.dtype().is_uint()) return make_zero(a.dtype()) - a;
  // 0.0 - x would turn a zero's sign the wrong way round; x * -1 keeps it. Of integers it is the
  // normal form.
  return a * make_const(a.dtype(), -1);
}

PrimExpr logical_and(PrimExpr a, PrimExpr b) {
  CheckBools("&&", a, b);
  BinaryOpMatchTypes(a, b);
  if (PrimExpr folded = TryConstFold<And>(a, b); folded.defined()) return folded;
  return And(std::move(a), std::move(b));
}
PrimExpr logical_or(PrimExpr a, PrimExpr b) {
  CheckBools("||", a, b);
  BinaryOpMatchTypes(a, b);
  if (PrimExpr folded = TryConstFold<Or>(a, b); folded.defined()) return folded;
  return Or(std::move(a), std::move(b));
}
PrimExpr logical_not(PrimExpr a) {
  TVM_CHECK(a.dtype().is_bool(), TypeError)
      << "! is for conditions, got " << a << " (" << a.dtype() << ")";
  if (const auto* imm = a.as<IntImmNode>()) return imm->value ? const_false() : const_true();
  if (const auto* inner = a.as<NotNode>()) return inner->a;
  return Not(std::move(a));
}

PrimExpr operator+(PrimExpr a, PrimExpr b) { return add(std::move(a), std::move(b)); }
PrimExpr operator-(PrimExpr a, PrimExpr b) { return sub(std::move(a), std::move(b)); }
PrimExpr operator-(PrimExpr a) { return neg(std::move(a)); }
PrimExpr operator*(PrimExpr a, PrimExpr b) { return mul(std::move(a), std::move(b)); }
PrimExpr operator<(PrimExpr a, PrimExpr b) { return less(std::move(a), std::move(b)); }
PrimExpr operator<=(PrimExpr a, PrimExpr b) { return less_equal(std::move(a), std::move(b)); }
PrimExpr operator>(PrimExpr a, PrimExpr b) { return greater(std::move(a), std::move(b)); }
PrimExpr operator>=(PrimExpr a, PrimExpr b) { return greater_equal(std::move(a), std::move(b)); }
PrimExpr operator==(PrimExpr a, PrimExpr b) { return equal(std::move(a), std::move(b)); }
PrimExpr operator!=(PrimExpr a, PrimExpr b) { return not_equal(std::move(a), std::move(b)); }
PrimExpr operator&&(PrimExpr a, PrimExpr b) { return logical_and(std::move(a), std::move(b)); }
PrimExpr operator||(PrimExpr a, PrimExpr b) { return logical_or(std::move(a), std::move(b)); }
PrimExpr operator!(PrimExpr a) { return logical_not(std::move(a)); }

namespace {
template <typename F>
PrimExpr Bitwise(const char* name, const Op& op, PrimExpr a, PrimExpr b, F fold) {
  CheckIntegers(name, a, b);
  BinaryOpMatchTypes(a, b);
  const int64_t* x = as_const_int(a);
  const int64_t* y = as_const_int(b);
  if (x != nullptr && y != nullptr && a.dtype().is_scalar()) {
    return make_const(a.dtype(), fold(*x, *y));
  }
  return Call(a.dtype(), op, {a, b});
}

void CheckShift(const char* name, const PrimExpr& a, const PrimExpr& b) {
  if (const int64_t* amount = as_const_int(b)) {
    TVM_CHECK(*amount >= 0 && *amount < a.dtype().bits(), ValueError)
        << name << "(" << a << ", " << b << "): the shift amount must be in [0, "
        << a.dtype().bits() << ")";
  }
}

bool ShiftsNothing(const PrimExpr& a, const PrimExpr& b) {
  return is_zero(b) && a.dtype() == b.dtype() && a.dtype().is_int();
}
}  // namespace

PrimExpr left_shift(PrimExpr a, PrimExpr b) {
  CheckShift("left_shift", a, b);
  if (ShiftsNothing(a, b)) return a;
  return Bitwise("left_shift", builtin::shift_left(), a, b,
                 [](int64_t x, int64_t y) { return x << y; });
}
PrimExpr right_shift(PrimExpr a, PrimExpr b) {
  CheckShift("right_shift", a, b);
  if (ShiftsNothing(a, b)) return a;
  return Bitwise("right_shift", builtin::shift_right(), a, b,
                 [](int64_t x, int64_t y) { return x >> y; });
}
PrimExpr bitwise_and(PrimExpr a, PrimExpr b) {
  return Bitwise("bitwise_and", builtin::bitwise_and(), a, b,
                 [](int64_t x, int64_t y) { return x & y; });
}
PrimExpr bitwise_or(PrimExpr a, PrimExpr b) {
  return Bitwise("bitwise_or", builtin::bitwise_or(), a, b,
                 [](int64_t x, int64_t y) { return x | y; });
}
PrimExpr bitwise_xor(PrimExpr a, PrimExpr b) {
  return Bitwise("bitwise_xor", builtin::bitwise_xor(), a, b,
                 [](int64_t x, int64_t y) { return x ^ y; });
}
PrimExpr bitwise_neg(PrimExpr a) {
  CheckIntegers("bitwise_neg", a, a);
  return Call(a.dtype(), builtin::bitwise_not(), {a});
}

PrimExpr if_then_else(PrimExpr cond, PrimExpr true_value, PrimExpr false_value) {
  TVM_CHECK(cond.defined() && cond.dtype().is_bool() && cond.dtype().is_scalar(), TypeError)
      << "if_then_else: the condition must be a scalar bool, got " << cond;
  BinaryOpMatchTypes(true_value, false_value);
  if (const int64_t* value = as_const_int(cond)) return *value ? true_value : false_value;
  return Call(true_value.dtype(), builtin::if_then_else(), {cond, true_value, false_value});
}

PrimExpr likely(PrimExpr cond) {
  if (is_const_int(cond)) return cond;
  return Call(cond.dtype(), builtin::likely(), {cond});
}

// ---- reductions -----------------------------------------------------------------------------

namespace {
template <typename F>
PrimExpr ReduceWith(F combine, PrimExpr identity, PrimExpr source, Array<IterVar> axis,
                    Array<PrimExpr> init) {
  Var x("x", source.dtype()), y("y", source.dtype());
  CommReducer combiner({x}, {y}, {combine(x, y)}, {std::move(identity)});
  return Reduce(combiner, {std::move(source)}, std::move(axis), const_true(), 0, std::move(init));
}
}  // namespace

PrimExpr sum(PrimExpr source, Array<IterVar> axis, Array<PrimExpr> init) {
  PrimExpr zero = make_zero(source.dtype());
  return ReduceWith([](PrimExpr a, PrimExpr b) { return Add(a, b); }, zero, source, axis, init);
}
PrimExpr prod(PrimExpr source, Array<IterVar> axis, Array<PrimExpr> init) {
  PrimExpr one = make_const(source.dtype(), 1);
  return ReduceWith([](PrimExpr a, PrimExpr b) { return Mul(a, b); }, one, source, axis, init);
}
PrimExpr max(PrimExpr source, Array<IterVar> axis, Array<PrimExpr> init) {
  PrimExpr lowest = min_value(source.dtype());
  return ReduceWith([](PrimExpr a, PrimExpr b) { return Max(a, b); }, lowest, source, axis, init);
}
PrimExpr min(PrimExpr source, Array<IterVar> axis, Array<PrimExpr> init) {
  PrimExpr highest = max_value(source.dtype());
  return ReduceWith([](PrimExpr a, PrimExpr b) { return Min(a, b); }, highest, source, axis, init);
}
PrimExpr all(PrimExpr source, Array<IterVar> axis, Array<PrimExpr> init) {
  return ReduceWith([](PrimExpr a, PrimExpr b) { return And(a, b); }, const_true(), source, axis,
                    init);
}
PrimExpr any(PrimExpr source, Array<IterVar> axis, Array<PrimExpr> init) {
  return ReduceWith([](PrimExpr a, PrimExpr b) { return Or(a, b); }, const_false(), source, axis,
                    init);
}

#define TVM_TIR_REGISTER_BINARY(Name, Func)                                    \
  TVM_REGISTER_GLOBAL("tir." Name).set_body_typed([](PrimExpr a, PrimExpr b) { \
    return Func(a, b);                                                         \
  });
TVM_TIR_REGISTER_BINARY("_OpAdd", add)
TVM_TIR_REGISTER_BINARY("_OpSub", sub)
TVM_TIR_REGISTER_BINARY("_OpMul", mul)
TVM_TIR_REGISTER_BINARY("_OpDiv", div)
TVM_TIR_REGISTER_BINARY("_OpTrueDiv", truediv)
TVM_TIR_REGISTER_BINARY("_OpTruncDiv", truncdiv)
TVM_TIR_REGISTER_BINARY("_OpTruncMod", truncmod)
TVM_TIR_REGISTER_BINARY("_OpFloorDiv", floordiv)
TVM_TIR_REGISTER_BINARY("_OpFloorMod", floormod)
TVM_TIR_REGISTER_BINARY("_OpCeilDiv", ceildiv)
TVM_TIR_REGISTER_BINARY("_OpIndexDiv", indexdiv)
TVM_TIR_REGISTER_BINARY("_OpIndexMod", indexmod)
TVM_TIR_REGISTER_BINARY("_OpMin", min)
TVM_TIR_REGISTER_BINARY("_OpMax", max)
TVM_TIR_REGISTER_BINARY("_OpLT", less)
TVM_TIR_REGISTER_BINARY("_OpLE", less_equal)
TVM_TIR_REGISTER_BINARY("_OpGT", greater)
TVM_TIR_REGISTER_BINARY("_OpGE", greater_equal)
TVM_TIR_REGISTER_BINARY("_OpEQ", equal)
TVM_TIR_REGISTER_BINARY("_OpNE", not_equal)
TVM_TIR_REGISTER_BINARY("_OpAnd", logical_and)
TVM_TIR_REGISTER_BINARY("_OpOr", logical_or)
TVM_TIR_REGISTER_BINARY("left_shift", left_shift)
TVM_TIR_REGISTER_BINARY("right_shift", right_shift)
TVM_TIR_REGISTER_BINARY("bitwise_and", bitwise_and)
TVM_TIR_REGISTER_BINARY("bitwise_or", bitwise_or)
TVM_TIR_REGISTER_BINARY("bitwise_xor", bitwise_xor)
#undef TVM_TIR_REGISTER_BINARY

TVM_REGISTER_GLOBAL("tir._OpNeg").set_body_typed([](PrimExpr a) { return neg(a); });
TVM_REGISTER_GLOBAL("tir._OpNot").set_body_typed([](PrimExpr a) { return logical_not(a); });
TVM_REGISTER_GLOBAL("tir.bitwise_not").set_body_typed([](PrimExpr a) { return bitwise_neg(a); });
TVM_REGISTER_GLOBAL("tir._cast").set_body_typed([](DataType dtype, PrimExpr value) {
  return cast(dtype, value);
});
TVM_REGISTER_GLOBAL("tir.reinterpret").set_body_typed([](DataType dtype, PrimExpr value) {
  return reinterpret(dtype, value);
});
TVM_REGISTER_GLOBAL("tir._OpIfThenElse").set_body_typed([](PrimExpr c, PrimExpr t, PrimExpr f) {
  return if_then_else(c, t, f);
});
TVM_REGISTER_GLOBAL("tir.likely").set_body_typed([](PrimExpr cond) { return likely(cond); });

#define TVM_TIR_REGISTER_REDUCE(Name, Func)                                            \
  TVM_REGISTER_GLOBAL("tir." Name)                                                     \
      .set_body_typed([](PrimExpr source, Array<IterVar> axis, Array<PrimExpr> init) { \
        return Func(source, axis, init);                                               \
      });
TVM_TIR_REGISTER_REDUCE("_ReduceSum", sum)
TVM_TIR_REGISTER_REDUCE("_ReduceProd", prod)
TVM_TIR_REGISTER_REDUCE("_ReduceMax", max)
TVM_TIR_REGISTER_REDUCE("_ReduceMin", min)
TVM_TIR_REGISTER_REDUCE("_ReduceAll", all)
TVM_TIR_REGISTER_REDUCE("_ReduceAny", any)
#undef TVM_TIR_REGISTER_REDUCE

}  // namespace tvm
