/*!
 * \file src/expr/constant.cc
 * \brief Making and recognising constants.
 */
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/narrow_float.h>
#include <tvm/runtime/registry.h>

#include <cmath>
#include <limits>

namespace tvm {
namespace tir {

PrimExpr MakeConstInt(DataType dtype, int64_t value) {
  if (dtype.is_vector()) return Broadcast(MakeConstInt(dtype.element_of(), value), dtype.lanes());
  if (dtype.is_int() || dtype.is_uint()) return IntImm(dtype, value);
  if (IsFloating(dtype)) return FloatImm(dtype, static_cast<double>(value));
  TVM_CHECK(dtype.is_handle() && value == 0, TypeError)
      << "no constant " << value << " of type " << dtype;
  return Call(dtype, builtin::null_handle(), {});
}

PrimExpr MakeConstFloat(DataType dtype, double value) {
  if (dtype.is_vector()) {
    return Broadcast(MakeConstFloat(dtype.element_of(), value), dtype.lanes());
  }
  if (IsFloating(dtype)) {
    if (dtype.bits() == 32) value = static_cast<float>(value);
    return FloatImm(dtype, value);
  }
  TVM_CHECK(value == std::trunc(value), TypeError)
      << "the constant " << value << " is not a whole number, and so has no value of type "
      << dtype;
  return MakeConstInt(dtype, static_cast<int64_t>(value));
}

PrimExpr make_zero(DataType dtype) { return MakeConstInt(dtype, 0); }

PrimExpr const_true(int lanes) { return MakeConstInt(DataType::Bool(lanes), 1); }
PrimExpr const_false(int lanes) { return MakeConstInt(DataType::Bool(lanes), 0); }

namespace {
PrimExpr ScalarOf(const PrimExpr& x) {
  if (const auto* splat = x.as<BroadcastNode>()) return splat->value;
  return x;
}
}  // namespace

const int64_t* as_const_int(const PrimExpr& x) {
  const auto* imm = x.as<IntImmNode>();
  return imm == nullptr ? nullptr : &imm->value;
}

bool is_const_int(const PrimExpr& x, int64_t value) {
  PrimExpr scalar = ScalarOf(x);
  const auto* imm = scalar.as<IntImmNode>();
  return imm != nullptr && imm->value == value;
}

bool is_const_int(const PrimExpr& x) { return as_const_int(x) != nullptr; }

bool is_const_number(const PrimExpr& x) {
  PrimExpr scalar = ScalarOf(x);
  return scalar.as<IntImmNode>() != nullptr || scalar.as<FloatImmNode>() != nullptr;
}

bool is_zero(const PrimExpr& x) { return is_const_int(x, 0); }
bool is_one(const PrimExpr& x) { return is_const_int(x, 1); }

bool is_positive_const(const PrimExpr& x) {
  const int64_t* value = as_const_int(x);
  return value != nullptr && *value > 0;
}
bool is_negative_const(const PrimExpr& x) {
  const int64_t* value = as_const_int(x);
  return value != nullptr && *value < 0;
}

bool is_const_power_of_two_integer(const PrimExpr& x, int* shift) {
  const int64_t* value = as_const_int(x);
  if (value == nullptr || *value <= 0 || (*value & (*value - 1)) != 0) return false;
  *shift = __builtin_ctzll(static_cast<uint64_t>(*value));
  return true;
}

namespace {

/*! \brief A literal that a user wrote: refused where its type has no number near it. */
template <typename T>
PrimExpr Literal(T value, DataType dtype) {
  PrimExpr literal = make_const(dtype, value);
  const auto* lanes = literal.as<BroadcastNode>();
  const auto* imm = (lanes ? lanes->value : literal).as<FloatImmNode>();
  const bool finite = std::isfinite(static_cast<double>(value));
  TVM_CHECK(imm == nullptr || !finite || std::isfinite(imm->value), ValueError)
      << "const: " << value << " does not fit " << dtype << "; its greatest number is "
      << max_value(dtype.element_of()) << ", and infinity is written float(\"inf\")";
  return literal;
}

}  // namespace

TVM_REGISTER_GLOBAL("tir._const_int").set_body_typed(Literal<int64_t>);
TVM_REGISTER_GLOBAL("tir._const_float").set_body_typed(Literal<double>);

}  // namespace tir

namespace {
constexpr double kMaxFloat16 = 65504.0;
}  // namespace

PrimExpr max_value(const DataType& dtype) {
  using tir::make_const;
  if (dtype.is_float()) {
    if (dtype.bits() == 64) return make_const(dtype, std::numeric_limits<double>::max());
    if (dtype.bits() == 32) {
      return make_const(dtype, static_cast<double>(std::numeric_limits<float>::max()));
    }
    if (dtype.bits() == 16) return make_const(dtype, kMaxFloat16);
  }
  if (const NarrowFloatFormat* format = NarrowFloatFormatOf(dtype)) {
    return make_const(dtype, format->Largest());
  }
  if (dtype.is_int()) {
    return make_const(dtype, dtype.bits() == 64 ? std::numeric_limits<int64_t>::max()
                                                : (int64_t{1} << (dtype.bits() - 1)) - 1);
  }
  if (dtype.is_uint() && dtype.bits() < 64) {
    return make_const(dtype, (int64_t{1} << dtype.bits()) - 1);
  }
  if (dtype.is_uint() && dtype.lanes() == 1) {
    // A literal holds an int64; this is the call for those beyond, by their two halves.
    PrimExpr half = make_const(DataType::UInt(32), int64_t{0xFFFFFFFF});
    return tir::Call(dtype, tir::builtin::large_uint_imm(), {half, half});
  }
  TVM_FATAL(TypeError) << "max_value: no largest constant of type " << dtype;
  throw;  // unreachable
}

PrimExpr min_value(const DataType& dtype) {
  using tir::make_const;
  if (IsFloating(dtype)) return neg(max_value(dtype));
  if (dtype.is_int()) {
    return make_const(dtype, dtype.bits() == 64 ? std::numeric_limits<int64_t>::min()
                                                : -(int64_t{1} << (dtype.bits() - 1)));
  }
  TVM_CHECK(dtype.is_uint(), TypeError) << "min_value: no smallest constant of type " << dtype;
  return make_const(dtype, 0);
}

PrimExpr infinity(const DataType& dtype) {
  TVM_CHECK(dtype.is_float(), TypeError) << "infinity: " << dtype << " has none";
  return tir::make_const(dtype, std::numeric_limits<double>::infinity());
}

TVM_REGISTER_GLOBAL("tir.max_value").set_body_typed([](DataType dtype) {
  return max_value(dtype);
});
TVM_REGISTER_GLOBAL("tir.min_value").set_body_typed([](DataType dtype) {
  return min_value(dtype);
});
TVM_REGISTER_GLOBAL("tir.infinity").set_body_typed([](DataType dtype) { return infinity(dtype); });

}  // namespace tvm
