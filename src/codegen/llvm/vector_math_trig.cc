/*!
 * \file vector_math_trig.cc
 * \brief Sine, cosine and powers in float32.
 */
#include "codegen/llvm/vector_math_trig.h"

#include "codegen/llvm/maths.h"
#include "codegen/llvm/vector_math_double.h"

namespace tvm {
namespace codegen {
namespace {

// pi/2 in two parts: the first ends in 28 zero bits, so that its multiples by integers below 2^28
// are exact.
constexpr double kHalfPiHigh = 0x1.921fb50000000p+0;
constexpr double kHalfPiLow = 0x1.110b4611a6263p-26;
constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
// Up to here the error of the reduction, n * kHalfPiLow * 2^-53, stays below that of float32 even
// for the arguments closest to a multiple of pi/2.
constexpr double kMaxArgument = 0x1p20;

/*! \brief Sine for quarter turn 0, cosine for 1, of an argument below kMaxArgument. */
Value Reduced(FunctionText* text, const Value& x, int quarter) {
  Value wide = text->Convert("fpext", x, x.TypeWith("double"));
  Maths m(text, wide);
  Value shifted = m.Fma(wide, m.F(kTwoOverPi), m.F(kRoundDoubleToInteger));
  Value n = m.Sub(shifted, m.F(kRoundDoubleToInteger));
  Value r = m.Sub(m.Sub(wide, m.Mul(n, m.F(kHalfPiHigh))), m.Mul(n, m.F(kHalfPiLow)));
  Value square = m.Mul(r, r);
  // Taylor series on |r| <= pi/4; the terms left out are below 2^-28 of the result.
  // As a product, which keeps the sign of zero.
  Value sine =
      m.Mul(r, m.Fma(square, m.Polynomial(square, {-1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880}),
                     m.F(1.0)));
  Value cosine =
      m.Fma(square, m.Polynomial(square, {-0.5, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800}),
            m.F(1.0));
  Value turns = m.Int("add", m.Bits(shifted), m.I(quarter));
  Value odd = m.IsInt("ne", m.Int("and", turns, m.I(1)), m.I(0));
  Value value = m.Pick(odd, cosine, sine);
  // The second bit of the count is the sign.
  Value sign = m.Int("shl", m.Int("and", turns, m.I(2)), m.I(62));
  value = m.FromBits(m.Int("xor", m.Bits(value), sign));
  return text->Convert("fptrunc", value, x.type);
}

/*! \brief The expansion, or the library where an argument is too large for it. */
Value Trigonometric(FunctionText* text, const Value& x, int quarter, const char* library) {
  Maths m(text, x);
  Value small = m.Is("ole", m.Abs(x), m.F(kMaxArgument));
  if (x.is_vector()) {
    const std::string bits = "i" + std::to_string(x.lanes());
    small = text->Compare("icmp eq", text->Convert("bitcast", small, bits), text->Int(bits, -1));
  }
  const std::string label[2] = {text->NewLabel("small"), text->NewLabel("large")};
  const std::string join = text->NewLabel("join");
  text->Branch(small, label[0], label[1]);
  std::string incoming;
  for (int branch = 0; branch < 2; ++branch) {
    text->StartBlock(label[branch]);
    text->EnterScope();
    Value value = branch == 0 ? Reduced(text, x, quarter) : text->Intrinsic(library, {x});
    incoming += (branch ? ", [ " : "[ ") + value.ref + ", %" + text->block() + " ]";
    text->ExitScope();
    text->Branch(join);
  }
  text->StartBlock(join);
  return text->Here(x.type, "phi " + x.type + " " + incoming);
}

}  // namespace

Value SinFloat(FunctionText* text, const Value& x) { return Trigonometric(text, x, 0, "llvm.sin"); }

Value CosFloat(FunctionText* text, const Value& x) { return Trigonometric(text, x, 1, "llvm.cos"); }

Value PowFloat(FunctionText* text, const Value& x, const Value& y) {
  Value base = text->Convert("fpext", x, x.TypeWith("double"));
  Value exponent = text->Convert("fpext", y, y.TypeWith("double"));
  Maths m(text, base);
  Value magnitude = ExpDouble(text, m.Mul(exponent, LogDouble(text, m.Abs(base))));
  // A negative base has a power for integers only, negative for the odd ones; infinity and all
  // large numbers are even.
  Value negative = m.Is("olt", base, m.F(0.0));
  Value whole = m.Is("oeq", text->Intrinsic("llvm.trunc", {exponent}), exponent);
  Value half = m.Mul(exponent, m.F(0.5));
  Value even = m.Is("oeq", text->Intrinsic("llvm.trunc", {half}), half);
  Value odd =
      m.Int("and", whole, text->Select(even, text->Int(even.type, 0), text->Int(even.type, 1)));
  // The sign of minus zero counts as well.
  Value signed_power = m.Pick(odd, m.CopySign(magnitude, base), magnitude);
  Value result =
      m.Pick(m.Int("and", negative,
                   text->Select(whole, text->Int(whole.type, 0), text->Int(whole.type, 1))),
             m.Pick(m.Is("oeq", base, m.F(-__builtin_inf())), magnitude, m.F(__builtin_nan(""))),
             signed_power);
  // x^0 and 1^y are 1 even for NaN, and (-1)^(+-infinity) too.
  Value unit = m.Is("oeq", m.Abs(base), m.F(1.0));
  Value infinite = m.Is("oeq", m.Abs(exponent), m.F(__builtin_inf()));
  Value one = m.Int("or", m.Is("oeq", exponent, m.F(0.0)),
                    m.Int("or", m.Is("oeq", base, m.F(1.0)), m.Int("and", unit, infinite)));
  return text->Convert("fptrunc", m.Pick(one, m.F(1.0), result), x.type);
}

}  // namespace codegen
}  // namespace tvm
