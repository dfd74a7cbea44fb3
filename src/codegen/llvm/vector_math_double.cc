/*!
 * \file vector_math_double.cc
 * \brief Range reductions and series of the elementary functions in float64.
 *
 * The intervals are short enough for Taylor series, whose coefficients need no fit.
 */
#include "codegen/llvm/vector_math_double.h"

#include "codegen/llvm/maths.h"

namespace tvm {
namespace codegen {
namespace {

// ln 2 in two parts: the first ends in 21 zero bits, so that n * kDoubleLn2High is exact for |n| <
// 2^20.
constexpr double kDoubleLn2High = 0x1.62e42fee00000p-1;
constexpr double kDoubleLn2Low = 0x1.a39ef35793c76p-33;
constexpr double kDoubleLog2E = 1.4426950408889634074;
constexpr int64_t kRoundDoubleToIntegerBits = 0x4338000000000000;

/*! \brief exp(x) = 2^n * (1 + p) with |p| below 0.42. */
struct ExpParts {
  Value n, p;
};

ExpParts SplitExp(const Maths& m, const Value& x) {
  Value shifted = m.Fma(x, m.F(kDoubleLog2E), m.F(kRoundDoubleToInteger));
  Value n = m.Sub(shifted, m.F(kRoundDoubleToInteger));
  Value r = m.Fma(n, m.F(-kDoubleLn2High), x);
  r = m.Fma(n, m.F(-kDoubleLn2Low), r);
  // exp(r) = 1 + r + r^2 (1/2! + r/3! + ...) on |r| <= ln(2) / 2: the first term left out is below
  // 2^-57.
  Value q = m.Polynomial(
      r, {1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880,
          1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0});
  return {m.Int("sub", m.Bits(shifted), m.I(kRoundDoubleToIntegerBits)), m.Fma(m.Mul(r, r), q, r)};
}

Value PowerOfTwo(const Maths& m, const Value& n) {
  return m.FromBits(m.Int("shl", m.Int("add", n, m.I(1023)), m.I(52)));
}

}  // namespace

Value ExpDouble(FunctionText* text, const Value& x) {
  Maths m(text, x);
  // Beyond these bounds the result is infinite or zero anyway.
  ExpParts parts = SplitExp(m, m.AtLeast(m.AtMost(x, 710.0), -746.0));
  // 2^n as a product of two powers, since n runs from -1076 to 1024.
  Value half = m.Int("ashr", parts.n, m.I(1));
  Value rest = m.Int("sub", parts.n, half);
  Value fraction = m.Add(m.F(1.0), parts.p);
  return m.Mul(m.Mul(fraction, PowerOfTwo(m, half)), PowerOfTwo(m, rest));
}

Value LogDouble(FunctionText* text, const Value& x) {
  Maths m(text, x);
  // Subnormal numbers are scaled into the normal range first.
  Value tiny = m.Is("olt", x, m.F(0x1p-1022));
  Value scaled = m.Pick(tiny, m.Mul(x, m.F(0x1p54)), x);
  Value bias = m.Pick(tiny, m.F(-54.0), m.F(0.0));
  // x = 2^e * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)).
  Value root = m.I(0x3FE6A09E667F3BCD);
  Value offset = m.Int("sub", m.Bits(scaled), root);
  // The exponent, taken through the bits of a real: processors before AVX-512 neither shift nor
  // convert signed 64-bit integers in vectors.
  Value biased = m.Int("lshr", m.Int("add", offset, m.I(int64_t{1023} << 52)), m.I(52));
  Value e = m.Sub(m.FromBits(m.Int("or", biased, m.I(0x4330000000000000))), m.F(0x1p52 + 1023));
  e = m.Add(e, bias);
  Value mantissa = m.FromBits(m.Int("add", m.Int("and", offset, m.I(0x000FFFFFFFFFFFFF)), root));
  Value f = m.Sub(mantissa, m.F(1.0));
  // log(1 + f) = 2 atanh(s) with s = f / (2 + f), |s| < 0.172: f - f^2/2 + s (f^2/2 + T), where
  // T = 2 (s^2/3 + s^4/5 + ...), so that the leading term carries no rounding error.
  Value s = m.Div(f, m.Add(m.F(2.0), f));
  Value square = m.Mul(s, s);
  Value series =
      m.Mul(square, m.Polynomial(square, {2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13,
                                          2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21}));
  Value half_square = m.Mul(m.F(0.5), m.Mul(f, f));
  Value tail = m.Fma(s, m.Add(half_square, series), m.Mul(e, m.F(kDoubleLn2Low)));
  Value result = m.Sub(m.Mul(e, m.F(kDoubleLn2High)), m.Sub(m.Sub(half_square, tail), f));
  // log of infinity and of NaN are themselves; of zero minus infinity; of negative numbers NaN.
  result = m.Pick(m.Is("olt", x, m.F(__builtin_inf())), result, x);
  result = m.Pick(m.Is("oeq", x, m.F(0.0)), m.F(-__builtin_inf()), result);
  return m.Pick(m.Is("olt", x, m.F(0.0)), m.F(__builtin_nan("")), result);
}

Value TanhDouble(FunctionText* text, const Value& x) {
  Maths m(text, x);
  // tanh |x| = E / (E + 2) with E = exp(2 |x|) - 1 = 2^n p + (2^n - 1), which does not cancel for
  // n >= 0. From 22 on the result rounds to 1.
  Value magnitude = m.AtMost(m.Abs(x), 22.0);
  ExpParts parts = SplitExp(m, m.Add(magnitude, magnitude));
  Value power = PowerOfTwo(m, parts.n);
  Value e = m.Fma(power, parts.p, m.Sub(power, m.F(1.0)));
  return m.CopySign(m.Div(e, m.Add(e, m.F(2.0))), x);
}

Value SigmoidDouble(FunctionText* text, const Value& x) {
  Maths m(text, x);
  // exp of minus the magnitude cannot overflow, and keeps tiny results exact.
  Value e = ExpDouble(text, m.Neg(m.Abs(x)));
  Value numerator = m.Pick(m.Is("olt", x, m.F(0.0)), e, m.F(1.0));
  return m.Div(numerator, m.Add(m.F(1.0), e));
}

}  // namespace codegen
}  // namespace tvm
