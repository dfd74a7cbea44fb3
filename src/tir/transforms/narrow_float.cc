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

// Processors convert to float16 themselves, or not: then its bits are worked on like the others'.
constexpr NarrowFloatFormat kFloat16{16, 10, 15, NarrowFloatFormat::kIEEE};

const NarrowFloatFormat& FormatOf(DataType dtype) {
  return dtype.is_float() && dtype.bits() == 16 ? kFloat16 : *NarrowFloatFormatOf(dtype);
}

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

PrimExpr FromFormat(const PrimExpr& narrow, const NarrowFloatFormat& format) {
  auto number = [&](int64_t n) { return Number(n, narrow.dtype()); };
  const int m = format.mantissa_bits;
  const int64_t sign_bit = int64_t{1} << (format.bits - 1);
  Var bits("bits", Word(narrow.dtype()));
  PrimExpr magnitude = bitwise_and(bits, number(sign_bit - 1));
  // Below the smallest normal number a mantissa counts steps of one size. Few processors have an
  // instruction for vectors of unsigned integers.
  PrimExpr count = cast(DataType::Int(32, narrow.dtype().lanes()), magnitude);
  PrimExpr subnormal = cast(Float32(narrow.dtype()), count) *
                       make_const(Float32(narrow.dtype()), std::ldexp(1.0, 1 - format.bias - m));
  PrimExpr shifted = left_shift(magnitude, number(kFloatMantissa - m));
  PrimExpr rebased = shifted + number(int64_t{kFloatBias - format.bias} << kFloatMantissa);
  PrimExpr result = Select(magnitude < number(int64_t{1} << m), AsBits(subnormal), rebased);
  switch (format.specials) {
    case NarrowFloatFormat::kIEEE: {
      PrimExpr special = magnitude >= number(sign_bit - (int64_t{1} << m));
      result = Select(special, bitwise_or(shifted, number(kFloatInfinity)), result);
      break;
    }
    case NarrowFloatFormat::kOnlyNaN:
      result = Select(magnitude == number(sign_bit - 1), number(kFloatNaN), result);
      break;
    case NarrowFloatFormat::kUnsignedZero:
      result = Select(bits == number(sign_bit), number(kFloatNaN), result);
      break;
  }
  PrimExpr sign = left_shift(bitwise_and(bits, number(sign_bit)), number(32 - format.bits));
  return Let(bits, cast(Word(narrow.dtype()), narrow), AsFloat(bitwise_or(result, sign)));
}

PrimExpr ToFormat(const PrimExpr& value, const NarrowFloatFormat& format) {
  auto number = [&](int64_t n) { return Number(n, value.dtype()); };
  const int m = format.mantissa_bits;
  const int64_t sign_bit = int64_t{1} << (format.bits - 1);
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

  int64_t largest = sign_bit - 1, infinity = sign_bit - 1, nan = sign_bit - 1;
  if (format.specials == NarrowFloatFormat::kIEEE) {
    infinity = sign_bit - (int64_t{1} << m);
    largest = infinity - 1;
    nan = infinity + (int64_t{1} << (m - 1));
  } else if (format.specials == NarrowFloatFormat::kOnlyNaN) {
    largest = sign_bit - 2;
  }
  PrimExpr sign = bitwise_and(right_shift(bits, number(32 - format.bits)), number(sign_bit));
  PrimExpr is_nan = magnitude > number(kFloatInfinity);
  // The shift of a huge number leaves the range of the format by far, but not that of a word.
  PrimExpr too_large = rounded > number(largest);
  PrimExpr result;
  if (format.specials == NarrowFloatFormat::kUnsignedZero) {
    result = Select(is_nan || too_large, number(sign_bit),
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
  return FromFormat(bits, FormatOf(dtype));
}

PrimExpr NarrowFloatToBits(const PrimExpr& value, DataType dtype) {
  PrimExpr bits = dtype.is_bfloat16() ? ToBFloat16(value) : ToFormat(value, FormatOf(dtype));
  return cast(BitsOfNarrowFloat(dtype), bits);
}

}  // namespace tir
}  // namespace tvm
