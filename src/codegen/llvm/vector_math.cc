/*!
 * \file vector_math.cc
 * \brief Range reductions and polynomials of the elementary functions.
 *
 * The polynomials are weighted minimax fits of relative error, made for the intervals named below.
 */
#include "codegen/llvm/vector_math.h"

#include <utility>

#include "codegen/llvm/maths.h"

namespace tvm {
namespace codegen {
namespace {

// ln 2 in two parts: the first has its last 9 bits zero, so that n * kLn2High is exact for |n| <
// 512.
constexpr double kLn2High = 0.693359375;
constexpr double kLn2Low = -2.12194440e-4;

constexpr double kLog2E = 1.44269504088896341;

// 1.5 * 2^23: adding and subtracting it rounds to the nearest integer; the sum's low bits hold it.
constexpr double kRoundToInteger = 12582912.0;

/*! \brief x = n ln 2 + r with integer n and |r| <= ln(2) / 2, for |x| up to 104. */
struct ReducedExponent {
  Value shifted;   // n, in the low bits of a sum with kRoundToInteger
  Value fraction;  // exp(r)
};

ReducedExponent ReduceExponent(const Maths& m, const Value& x) {
  Value shifted = m.Fma(x, m.F(kLog2E), m.F(kRoundToInteger));
  Value n = m.Sub(shifted, m.F(kRoundToInteger));
  Value r = m.Fma(n, m.F(-kLn2High), x);
  r = m.Fma(n, m.F(-kLn2Low), r);
  // exp(r) = 1 + r + r^2 P(r).
  Value p = m.Polynomial(r, {0.4999999403953552, 0.1666652113199234, 0.04166838899254799,
                             0.00836874544620514, 0.0013814539415761828});
  return {shifted, m.Add(m.F(1.0), m.Fma(m.Mul(r, r), p, r))};
}

/*! \brief exp(x) for x in [-104, 0]: every result, subnormal ones too, in few instructions. */
Value ExpOfNegative(const Maths& m, const Value& x) {
  ReducedExponent reduced = ReduceExponent(m, x);
  // 2^(n + 64) is a normal number for all n >= -150, and scaling it back rounds once.
  Value power = m.FromBits(
      m.Int("add", m.Int("shl", m.Bits(reduced.shifted), m.I(23)), m.I((127 + 64) << 23)));
  return m.Mul(m.Mul(reduced.fraction, power), m.F(5.421010862427522e-20));
}

/*! \brief exp(z) = scale (1 + growth) with the scale a power of two, which is 1 near zero. */
struct Power {
  Value scale, growth;
};

/*! \brief For |z| up to 30: the integer is so small that one constant for ln 2 serves. */
Power PowerOf(const Maths& m, const Value& z) {
  Value shifted = m.Fma(z, m.F(kLog2E), m.F(kRoundToInteger));
  Value n = m.Sub(shifted, m.F(kRoundToInteger));
  Value r = m.Fma(n, m.F(-0.6931471824645996), z);
  Value p = m.Polynomial(r, {0.5, 0.16666525602340698, 0.041666798293590546, 0.008368381299078465,
                             0.0013904537772759795});
  Value scale = m.FromBits(m.Int("add", m.Int("shl", m.Bits(shifted), m.I(23)), m.I(0x3F800000)));
  return {scale, m.Fma(m.Mul(r, r), p, r)};
}

}  // namespace

Value ExpFloat(FunctionText* text, const Value& x) {
  Maths m(text, x);
  // The bounds keep the exponent arithmetic in range. Above the result is infinite in float32
  // anyway. Below it is subnormal and taken for zero: to form such a number takes some processors
  // a hundred cycles, and the softmax of masked scores is full of them.
  constexpr double kLeast = -87.33654;
  ReducedExponent reduced = ReduceExponent(m, m.AtLeast(m.AtMost(x, 89.0), kLeast));
  // 2^n as a product of two powers, since n runs from -126 to 128.
  Value exponent = m.Int("sub", m.Bits(reduced.shifted), m.I(0x4B400000));
  Value half = m.Int("ashr", exponent, m.I(1));
  Value rest = m.Int("sub", exponent, half);
  auto power = [&m](const Value& e) {
    return m.FromBits(m.Int("shl", m.Int("add", e, m.I(127)), m.I(23)));
  };
  Value result = m.Mul(m.Mul(reduced.fraction, power(half)), power(rest));
  return m.Pick(m.Is("olt", x, m.F(kLeast)), m.F(0.0), result);
}

Value LogFloat(FunctionText* text, const Value& x) {
  Maths m(text, x);
  // Subnormal numbers are scaled into the normal range first.
  Value tiny = m.Is("olt", x, m.F(1.17549435e-38));
  Value scaled = m.Pick(tiny, m.Mul(x, m.F(8388608.0)), x);
  Value bias = m.Pick(tiny, m.F(-23.0), m.F(0.0));
  // x = 2^e * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)): 0x3F3504F3 are the bits of sqrt(1/2).
  Value offset = m.Int("sub", m.Bits(scaled), m.I(0x3F3504F3));
  Value exponent = m.Int("ashr", offset, m.I(23));
  Value mantissa = m.FromBits(m.Int("add", m.Int("and", offset, m.I(0x007FFFFF)), m.I(0x3F3504F3)));
  Value e = m.Add(m.ToReal(exponent), bias);
  Value f = m.Sub(mantissa, m.F(1.0));
  // log(1 + f) = f - f^2 / 2 + f^3 P(f).
  Value p = m.Polynomial(f, {0.3333331346511841, -0.25000008940696716, 0.20002134144306183,
                             -0.16668006777763367, 0.14219222962856293, -0.12405138462781906,
                             0.11890339106321335, -0.11679640412330627, 0.06746549904346466});
  Value square = m.Mul(f, f);
  Value tail = m.Fma(e, m.F(kLn2Low), m.Mul(m.Mul(square, f), p));
  tail = m.Fma(square, m.F(-0.5), tail);
  Value result = m.Fma(e, m.F(kLn2High), m.Add(f, tail));
  // log of infinity and of NaN are themselves; of zero minus infinity; of negative numbers NaN.
  Value infinity = m.F(__builtin_inf());
  result = m.Pick(m.Is("olt", x, infinity), result, x);
  result = m.Pick(m.Is("oeq", x, m.F(0.0)), m.F(-__builtin_inf()), result);
  return m.Pick(m.Is("olt", x, m.F(0.0)), m.F(__builtin_nan("")), result);
}

Value Log1pFloat(FunctionText* text, const Value& x) {
  Maths m(text, x);
  // log(1 + x) from log of the rounded sum, and what rounding lost by the derivative there.
  Value sum = m.Add(x, m.F(1.0));
  Value lost = m.Sub(x, m.Sub(sum, m.F(1.0)));
  Value logarithm = LogFloat(text, sum);
  Value result = m.Add(logarithm, m.Div(lost, sum));
  // At the ends, where the sum is zero or infinite, and of NaN nothing is lost.
  Value ordinary = m.Pick(m.Is("ogt", sum, m.F(0.0)), m.F(1.0), m.F(0.0));
  ordinary = m.Pick(m.Is("olt", sum, m.F(__builtin_inf())), ordinary, m.F(0.0));
  result = m.Pick(m.Is("oeq", ordinary, m.F(1.0)), result, logarithm);
  // The sum makes +0 of -0.
  return m.Pick(m.Is("oeq", x, m.F(0.0)), x, result);
}

Value AtanFloat(FunctionText* text, const Value& x) {
  Maths m(text, x);
  // atan a = atan b + atan((a - b) / (1 + a b)) with b = 0, 1 or infinity, so that the polynomial
  // r + r^3 P(r^2) serves |r| <= tan(pi / 8).
  Value a = m.Abs(x);
  Value far = m.Is("ogt", a, m.F(2.4142135623730950));
  Value middle = m.Is("ogt", a, m.F(0.41421356237309503));
  Value numerator = m.Pick(middle, m.Sub(a, m.F(1.0)), a);
  Value denominator = m.Pick(middle, m.Add(a, m.F(1.0)), m.F(1.0));
  numerator = m.Pick(far, m.F(-1.0), numerator);
  denominator = m.Pick(far, a, denominator);
  Value base = m.Pick(far, m.F(1.57079637050628662109375),
                      m.Pick(middle, m.F(0.785398185253143310546875), m.F(0.0)));
  // What pi / 2 and pi / 4 lose in float32.
  Value rest = m.Pick(far, m.F(-4.37113900018624283e-8),
                      m.Pick(middle, m.F(-2.18556950009312142e-8), m.F(0.0)));
  Value r = m.Div(numerator, denominator);
  Value square = m.Mul(r, r);
  Value p = m.Horner(square, {-0.33333316445350647, 0.19998471438884735, -0.142435222864151,
                              0.10593726485967636, -0.06077989190816879});
  Value small = m.Add(m.Fma(m.Mul(square, r), p, r), rest);
  return m.CopySign(m.Add(base, small), x);
}

Value Atan2Float(FunctionText* text, const Value& y, const Value& x) {
  Maths m(text, x);
  Value ax = m.Abs(x), ay = m.Abs(y);
  // The angle to the nearer axis; what pi / 2 and pi lose in float32 is taken off before.
  Value steep = m.Is("ogt", ay, ax);
  Value near = m.Pick(steep, ax, ay), far = m.Pick(steep, ay, ax);
  Value quotient = m.Pick(m.Is("oeq", ax, ay), m.F(1.0), m.Div(near, far));
  Value origin = m.Is("oeq", m.Add(ax, ay), m.F(0.0));
  Value angle = AtanFloat(text, m.Pick(origin, m.F(0.0), quotient));
  angle = m.Pick(steep,
                 m.Sub(m.F(1.57079637050628662109375), m.Add(angle, m.F(4.37113900018624283e-8))),
                 angle);
  // Zeros have a side, too.
  Value behind = m.Is("olt", m.CopySign(m.F(1.0), x), m.F(0.0));
  angle = m.Pick(behind,
                 m.Sub(m.F(3.1415927410125732421875), m.Add(angle, m.F(8.74227800037248566e-8))),
                 angle);
  return m.CopySign(angle, y);
}

Value TanhFloat(FunctionText* text, const Value& x) {
  Maths m(text, x);
  // tanh |x| = E / (E + 2) with E = exp(2 |x|) - 1 = 2^n (exp(r) - 1) + (2^n - 1), which does not
  // cancel near zero, where n is 0. From 9.1 on the result rounds to 1.
  Value doubled = m.AtMost(m.Abs(m.Add(x, x)), 20.0);
  Power power = PowerOf(m, doubled);
  Value e = m.Fma(power.scale, power.growth, m.Sub(power.scale, m.F(1.0)));
  return m.CopySign(m.Quotient(e, m.Add(e, m.F(2.0))), x);
}

Value SigmoidFloat(FunctionText* text, const Value& x) {
  Maths m(text, x);
  // exp of minus the magnitude cannot overflow, and keeps tiny results exact.
  Value e = ExpOfNegative(m, m.AtLeast(m.Sub(m.F(-0.0), m.Abs(x)), -104.0));
  Value numerator = m.Pick(m.Is("olt", x, m.F(0.0)), e, m.F(1.0));
  return m.Quotient(numerator, m.Add(m.F(1.0), e));
}

Value ErfFloat(FunctionText* text, const Value& x) {
  Maths m(text, x);
  // 1 - exp(-z(|x|)) with z = |x| (1.125 + Q(|x|)), which rounds to 1 from 3.93 on. With
  // exp(-z) = s exp(r), the form (1 - s) - s (exp(r) - 1) stays exact where s is 1, near zero.
  Value bounded = m.AtMost(m.Abs(x), 4.0);
  Value q = m.Horner(bounded, {-0.003379212459549308, -0.6366166472434998, -0.10281173884868622,
                               0.019311336800456047, -0.0001890323037514463, -0.0012646132381632924,
                               0.0003857064584735781, -4.136093411943875e-05});
  Value z = m.Fma(bounded, m.F(-1.125), m.Mul(bounded, q));
  Power power = PowerOf(m, z);
  Value result = m.Fma(m.Sub(m.F(-0.0), power.scale), power.growth, m.Sub(m.F(1.0), power.scale));
  return m.CopySign(result, x);
}

}  // namespace codegen
}  // namespace tvm
