/*!
 * \file arith/interval.cc
 * \brief Arithmetic on closed ranges of int64 that saturates to infinity.
 */
#include <algorithm>

#include "analyzer_core.h"

namespace tvm {
namespace arith {
namespace {

constexpr int64_t kPos = ConstIntBoundNode::kPosInf;
constexpr int64_t kNeg = ConstIntBoundNode::kNegInf;

int64_t Saturate(__int128 v) {
  if (v >= kPos) return kPos;
  if (v <= kNeg) return kNeg;
  return static_cast<int64_t>(v);
}

// Sum of two lower ends, or of two upper ends: an infinity of the wrong sign never occurs.
int64_t AddEnd(int64_t a, int64_t b, int64_t inf) {
  if (a == inf || b == inf) return inf;
  return Saturate(static_cast<__int128>(a) + b);
}

int64_t MulEnd(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  bool negative = (a < 0) != (b < 0);
  if (a == kPos || a == kNeg || b == kPos || b == kNeg) return negative ? kNeg : kPos;
  return Saturate(static_cast<__int128>(a) * b);
}

int64_t DivEnd(int64_t a, int64_t b) {
  bool infinite = a == kPos || a == kNeg;
  if (infinite) return (a < 0) != (b < 0) ? kNeg : kPos;
  if (b == kPos) return a < 0 ? -1 : 0;
  if (b == kNeg) return a > 0 ? -1 : 0;
  return FloorDivInt(a, b);
}

}  // namespace

Interval operator+(const Interval& a, const Interval& b) {
  return {AddEnd(a.lo, b.lo, kNeg), AddEnd(a.hi, b.hi, kPos)};
}

Interval operator*(const Interval& a, const Interval& b) {
  auto [lo, hi] =
      std::minmax({MulEnd(a.lo, b.lo), MulEnd(a.lo, b.hi), MulEnd(a.hi, b.lo), MulEnd(a.hi, b.hi)});
  return {lo, hi};
}

Interval IntersectIntervals(const Interval& a, const Interval& b) {
  return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)};
}

Interval UniteIntervals(const Interval& a, const Interval& b) {
  return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
}

Interval FloorDivInterval(const Interval& a, const Interval& b) {
  if (b.lo <= 0 && b.hi >= 0) return Interval();
  auto [lo, hi] =
      std::minmax({DivEnd(a.lo, b.lo), DivEnd(a.lo, b.hi), DivEnd(a.hi, b.lo), DivEnd(a.hi, b.hi)});
  return {lo, hi};
}

Interval IntervalOfType(DataType dtype) {
  if (!dtype.is_int() && !dtype.is_uint()) return Interval();
  int value_bits = dtype.bits() - (dtype.is_int() ? 1 : 0);
  Interval out;
  if (dtype.is_uint()) out.lo = 0;
  if (value_bits < 63) {
    out.hi = (int64_t{1} << value_bits) - 1;
    if (dtype.is_int()) out.lo = -out.hi - 1;
  }
  return out;
}

}  // namespace arith
}  // namespace tvm
