/*!
 * \file src/tir/transforms/narrow_float.cc
 * \brief Conversions from and to float32.
 */
#include "narrow_float.h"

#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>

#include <cmath>

namespace tvm {
namespace tir {
namespace {

constexpr int kFloatMantissa = 23;
constexpr int kFloatBias = 127;
constexpr int64_t kFloatMagnitude = 0x7fffffff;
constexpr int64_t kFloatInfinity = 0x7f800000;
constexpr int64_t kFloatNaN = 0x7fc00000;

DataType Word(DataType t) { return DataType::UInt(32, t.lanes()); }
DataType Float32(DataType t) { return DataType::Float(32, t.lanes()); }

PrimExpr Number(int64_t n, DataType like) { return make_const(Word(like), n); }
PrimExpr AsFloat(const PrimExpr& bits) {
  return Call(Float32(bits.dtype()), builtin::reinterpret(), {bits});
}
PrimExpr AsBits(const PrimExpr& value) {
  return Call(Word(value.dtype()), builtin::reinterpret(), {value});
}

/*! \brief Rounds off the lower `dropped` bits to the nearest, to the even one of two. */
PrimExpr RoundedShift(const PrimExpr& bits, int dropped) {
  auto number = [&](int64_t n) { return Number(n, bits.dtype()); };
  PrimExpr odd = bitwise_and(right_shift(bits, number(dropped)), number(1));
  PrimExpr half = number((int64_t{1} << (dropped - 1)) - 1) + odd;
  return right_shift(bits + half, number(dropped));
}

/*! \brief bfloat16 is the upper half of a float32. */
PrimExpr FromBFloat16(const PrimExpr& bits) {
  return AsFloat(left_shift(cast(Word(bits.dtype()), bits), Number(16, bits.dtype())));
}

PrimExpr ToBFloat16(const PrimExpr& value) {
  auto number = [&](int64_t n) { return Number(n, value.dtype()); };
  Var bits("bits", Word(value.dtype()));
  PrimExpr is_nan = bitwise_and(bits, number(kFloatMagnitude)) > number(kFloatInfinity);
  PrimExpr quiet = bitwise_or(right_shift(bits, number(16)), number(0x40));
  return Let(bits, AsBits(value), Select(is_nan, quiet, RoundedShift(bits, 16)));
}

PrimExpr FromFloat8(const PrimExpr& narrow, const NarrowFloatFormat& format) {
  auto number = [&](int64_t n) { return Number(n, narrow.dtype()); };
  const int m = format.mantissa_bits;
  Var bits("bits", Word(narrow.dtype()));
  PrimExpr magnitude = bitwise_and(bits, number(0x7f));
  // Below the smallest normal number a mantissa counts steps of one size.
  PrimExpr subnormal = cast(Float32(narrow.dtype()), magnitude) *
                       make_const(Float32(narrow.dtype()), std::ldexp(1.0, 1 - format.bias - m));
  PrimExpr shifted = left_shift(magnitude, number(kFloatMantissa - m));
  PrimExpr rebased = shifted + number(int64_t{kFloatBias - format.bias} << kFloatMantissa);
  PrimExpr result = Select(magnitude < number(int64_t{1} << m), AsBits(subnormal), rebased);
  switch (format.specials) {
    case NarrowFloatFormat::kIEEE: {
      PrimExpr special = magnitude >= number(0x80 - (1 << m));
      result = Select(special, bitwise_or(shifted, number(kFloatInfinity)), result);
      break;
    }
    case NarrowFloatFormat::kOnlyNaN:
      result = Select(magnitude == number(0x7f), number(kFloatNaN), result);
      break;
    case NarrowFloatFormat::kUnsignedZero:
      result = Select(bits == number(0x80), number(kFloatNaN), result);
      break;
  }
  PrimExpr sign = left_shift(bitwise_and(bits, number(0x80)), number(24));
  return Let(bits, cast(Word(narrow.dtype()), narrow), AsFloat(bitwise_or(result, sign)));
}

PrimExpr ToFloat8(const PrimExpr& value, const NarrowFloatFormat& format) {
  auto number = [&](int64_t n) { return Number(n, value.dtype()); };
  const int m = format.mantissa_bits;
  Var bits("bits", Word(value.dtype()));
  Var rounded("rounded", Word(value.dtype()));
  PrimExpr magnitude = bitwise_and(bits, number(kFloatMagnitude));
  PrimExpr normal =
      RoundedShift(magnitude, kFloatMantissa - m) - number(int64_t{kFloatBias - format.bias} << m);
  // Added to a number whose last bit is one step, a float32 is rounded to whole steps.
  const double anchor = std::ldexp(1.0, kFloatMantissa + 1 - format.bias - m);
  PrimExpr anchored = AsFloat(magnitude) + make_const(Float32(value.dtype()), anchor);
  PrimExpr steps =
      AsBits(anchored) -
      number(int64_t{kFloatMantissa + 1 - format.bias - m + kFloatBias} << kFloatMantissa);
  PrimExpr smallest = number(int64_t{kFloatBias + 1 - format.bias} << kFloatMantissa);
  PrimExpr nearest = Select(magnitude < smallest, steps, normal);

  int64_t largest = 0x7f, infinity = 0x7f, nan = 0x7f;
  if (format.specials == NarrowFloatFormat::kIEEE) {
    infinity = 0x80 - (1 << m);
    largest = infinity - 1;
    nan = infinity + (1 << (m - 1));
  } else if (format.specials == NarrowFloatFormat::kOnlyNaN) {
    largest = 0x7e;
  }
  PrimExpr sign = bitwise_and(right_shift(bits, number(24)), number(0x80));
  PrimExpr is_nan = magnitude > number(kFloatInfinity);
  // The shift of a huge number leaves the range of the format by far, but not that of a word.
  PrimExpr too_large = rounded > number(largest);
  PrimExpr result;
  if (format.specials == NarrowFloatFormat::kUnsignedZero) {
    result = Select(is_nan || too_large, number(0x80),
                    Select(rounded == number(0), number(0), bitwise_or(rounded, sign)));
  } else {
    result = Select(is_nan, number(nan), Select(too_large, number(infinity), rounded));
    result = bitwise_or(result, sign);
  }
  return Let(bits, AsBits(value), Let(rounded, nearest, result));
}

}  // namespace

PrimExpr NarrowFloatFromBits(const PrimExpr& bits, DataType dtype) {
  if (dtype.is_bfloat16()) return FromBFloat16(bits);
  return FromFloat8(bits, *NarrowFloatFormatOf(dtype));
}

PrimExpr NarrowFloatToBits(const PrimExpr& value, DataType dtype) {
  PrimExpr bits =
      dtype.is_bfloat16() ? ToBFloat16(value) : ToFloat8(value, *NarrowFloatFormatOf(dtype));
  return cast(BitsOfNarrowFloat(dtype), bits);
}

}  // namespace tir
}  // namespace tvm
