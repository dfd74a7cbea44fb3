/*!
 * \file tape_formula.h
 * \brief The formulas of tape_ops.def as functions.
 */
#ifndef TVM_FELIX_TAPE_FORMULA_H_
#define TVM_FELIX_TAPE_FORMULA_H_

#include <tvm/felix/tape.h>

#include <bit>
#include <cmath>
#include <limits>

namespace tvm {
namespace felix {

/*!
 * \brief What formulas are written in, on numbers.
 *
 * exp and log are spelt out, because a loop over calls of the library's is not vectorised. Both are
 * within 2 units in the last place; exp neither overflows nor reaches zero.
 */
namespace formula {

inline double truth(bool condition) { return condition ? 1.0 : 0.0; }
inline double choose(bool condition, double x, double y) { return condition ? x : y; }
inline double min(double a, double b) { return a < b ? a : b; }
inline double max(double a, double b) { return a > b ? a : b; }
inline double abs(double a) { return std::fabs(a); }
inline double floor(double a) { return std::floor(a); }
inline double ceil(double a) { return std::ceil(a); }
inline double sqrt(double a) { return std::sqrt(a); }
inline double pow(double a, double b) { return std::pow(a, b); }

// Added to a number below 2^51, it leaves the nearest integer in the low bits of the sum.
inline constexpr double kRounder = 6755399441055744.0;  // 1.5 * 2^52

inline double exp(double a) {
  constexpr double kLog2E = 1.4426950408889634074, kLn2High = 0x1.62e42fefa3800p-1,
                   kLn2Low = 0x1.ef35793c76730p-45;
  const double x = min(max(a, -708.0), 709.0);
  const double shifted = x * kLog2E + kRounder;
  const double n = shifted - kRounder;
  const double r = (x - n * kLn2High) - n * kLn2Low;  // |r| <= ln(2) / 2
  // Taylor's series; the first term left out is below 2^-57.
  double sum = 1.0 / 6227020800.0;
  sum = sum * r + 1.0 / 479001600.0;
  sum = sum * r + 1.0 / 39916800.0;
  sum = sum * r + 1.0 / 3628800.0;
  sum = sum * r + 1.0 / 362880.0;
  sum = sum * r + 1.0 / 40320.0;
  sum = sum * r + 1.0 / 5040.0;
  sum = sum * r + 1.0 / 720.0;
  sum = sum * r + 1.0 / 120.0;
  sum = sum * r + 1.0 / 24.0;
  sum = sum * r + 1.0 / 6.0;
  sum = sum * r + 0.5;
  sum = (sum * r) * r + r + 1.0;
  const uint64_t power = (std::bit_cast<uint64_t>(shifted) + 1023) << 52;
  const double value = sum * std::bit_cast<double>(power);
  return a == a ? value : a;
}

inline double log(double a) {
  constexpr double kLn2High = 0x1.62e42fefa3800p-1, kLn2Low = 0x1.ef35793c76730p-45,
                   kTwo52 = 4503599627370496.0, kTwo54 = 18014398509481984.0,
                   kSmallest = std::numeric_limits<double>::min();
  const bool tiny = a < kSmallest;
  const uint64_t bits = std::bit_cast<uint64_t>(tiny ? a * kTwo54 : a);
  // a = m 2^e with m in [1, 2), then in [1/sqrt(2), sqrt(2)).
  const double m1 = std::bit_cast<double>((bits & 0x000fffffffffffffull) | 0x3ff0000000000000ull);
  const double e1 =
      std::bit_cast<double>((bits >> 52) | std::bit_cast<uint64_t>(kTwo52)) - kTwo52 - 1023.0;
  const bool large = m1 > 1.41421356237309504880;
  const double m = large ? m1 * 0.5 : m1;
  const double e = (large ? e1 + 1.0 : e1) - (tiny ? 54.0 : 0.0);
  // ln m = 2 artanh(s) = f - s (f - R) with f = m - 1, s = f / (2 + f), R = 2 (z/3 + z^2/5 + ...)
  const double f = m - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  double series = 2.0 / 21.0;
  series = series * z + 2.0 / 19.0;
  series = series * z + 2.0 / 17.0;
  series = series * z + 2.0 / 15.0;
  series = series * z + 2.0 / 13.0;
  series = series * z + 2.0 / 11.0;
  series = series * z + 2.0 / 9.0;
  series = series * z + 2.0 / 7.0;
  series = series * z + 2.0 / 5.0;
  series = series * z + 2.0 / 3.0;
  series = series * z;
  const double value = e * kLn2High + (f - (s * (f - series) - e * kLn2Low));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double limit = a == 0.0 ? -kInfinity : std::numeric_limits<double>::quiet_NaN();
  return a > 0.0 ? (a < kInfinity ? value : a) : limit;
}

}  // namespace formula

/*! \brief The functions of one operation; T is a number or an expression. */
template <TapeOp op>
struct TapeFormula;

// Operands that an operation does not have, and functions that not every formula calls.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define TVM_TAPE_OP(code, Name, spelling, arity, commutes, cost, value, da, db, dc) \
  template <>                                                                       \
  struct TapeFormula<TapeOp::k##Name> {                                             \
    template <typename T>                                                           \
    static inline T Value(T a, T b, T c) {                                          \
      using namespace formula;                                                      \
      return value;                                                                 \
    }                                                                               \
    static inline double Da(double a, double b, double c, double y) {               \
      using namespace formula;                                                      \
      return da;                                                                    \
    }                                                                               \
    static inline double Db(double a, double b, double c, double y) {               \
      using namespace formula;                                                      \
      return db;                                                                    \
    }                                                                               \
    static inline double Dc(double a, double b, double c, double y) {               \
      using namespace formula;                                                      \
      return dc;                                                                    \
    }                                                                               \
  };
#include <tvm/felix/tape_ops.def>
#pragma GCC diagnostic pop

/*! \brief Value of one operation that is no leaf. */
template <typename T>
T TapeValue(TapeOp op, T a, T b, T c) {
  switch (op) {
#define TVM_TAPE_LEAF(code, Name) case TapeOp::k##Name:
#include <tvm/felix/tape_ops.def>
    break;
#define TVM_TAPE_OP(code, Name, ...) \
  case TapeOp::k##Name:              \
    return TapeFormula<TapeOp::k##Name>::Value(a, b, c);
#include <tvm/felix/tape_ops.def>
  }
  TVM_FATAL(InternalError) << "tape operation " << static_cast<int>(op) << " computes nothing";
  throw;  // unreachable
}

}  // namespace felix
}  // namespace tvm
#endif  // TVM_FELIX_TAPE_FORMULA_H_
