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

// Ends are computed with room to spare. An extreme int64 is infinite only on its own side: a value
// may well be at least the greatest int64, and its third is then far from infinite.
using Wide = __int128;
constexpr Wide kInfinite = Wide{1} << 126;

Wide Low(const Interval& v) { return v.lo == kNeg ? -kInfinite : Wide{v.lo}; }
Wide High(const Interval& v) { return v.hi == kPos ? kInfinite : Wide{v.hi}; }
bool IsInfinite(Wide v) { return v >= kInfinite || v <= -kInfinite; }

Interval Narrow(Wide lo, Wide hi) {
  auto clamp = [](Wide v) {
    return static_cast<int64_t>(std::clamp(v, static_cast<Wide>(kNeg), static_cast<Wide>(kPos)));
  };
  return {clamp(lo), clamp(hi)};
}

// Sum of two lower ends, or of two upper ends: infinities of both signs never meet.
Wide AddEnd(Wide a, Wide b) {
  if (IsInfinite(a)) return a;
  return IsInfinite(b) ? b : a + b;
}

Wide MulEnd(Wide a, Wide b) {
  if (a == 0 || b == 0) return 0;
  if (IsInfinite(a) || IsInfinite(b)) return (a < 0) != (b < 0) ? -kInfinite : kInfinite;
  return a * b;
}

Wide DivEnd(Wide a, Wide b) {
  const bool negative = (a < 0) != (b < 0);
  if (IsInfinite(a)) return negative ? -kInfinite : kInfinite;
  if (IsInfinite(b)) return negative && a != 0 ? -1 : 0;
  Wide q = a / b;
  return negative && a % b != 0 ? q - 1 : q;
}

/*! \brief From the least to the greatest result of `op` on the ends of two ranges. */
template <typename F>
Interval OfCorners(const Interval& a, const Interval& b, F op) {
  auto [lo, hi] = std::minmax(
      {op(Low(a), Low(b)), op(Low(a), High(b)), op(High(a), Low(b)), op(High(a), High(b))});
  return Narrow(lo, hi);
}

}  // namespace

Interval operator+(const Interval& a, const Interval& b) {
  return Narrow(AddEnd(Low(a), Low(b)), AddEnd(High(a), High(b)));
}

Interval operator*(const Interval& a, const Interval& b) { return OfCorners(a, b, MulEnd); }

Interval IntersectIntervals(const Interval& a, const Interval& b) {
  return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)};
}

Interval UniteIntervals(const Interval& a, const Interval& b) {
  return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
}

Interval FloorDivInterval(const Interval& a, const Interval& b) {
  // Division by zero is not defined, so that leaves the divisors on both sides of it.
  if (b.lo == 0 && b.hi == 0) return Interval();
  if (b.lo < 0 && b.hi > 0) {
    return UniteIntervals(FloorDivInterval(a, {b.lo, -1}), FloorDivInterval(a, {1, b.hi}));
  }
  return OfCorners(a, {b.lo == 0 ? 1 : b.lo, b.hi == 0 ? -1 : b.hi}, DivEnd);
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
