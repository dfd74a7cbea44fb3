/*!
 * \file src/expr/const_fold.cc
 * \brief Folding of operators on constants.
 */
#include "const_fold.h"

#include <tvm/expr/op.h>
#include <tvm/runtime/narrow_float.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace tvm {
namespace tir {
namespace {

/*! \brief What an operand is when seen as a constant; a broadcast counts as its value. */
struct Constant {
  const IntImmNode* integer = nullptr;
  const FloatImmNode* real = nullptr;
  explicit Constant(const PrimExpr& x) {
    const Object* node = x.get();
    if (const auto* splat = x.as<BroadcastNode>()) node = splat->value.get();
    if (node->IsInstance<IntImmNode>()) integer = static_cast<const IntImmNode*>(node);
    if (node->IsInstance<FloatImmNode>()) real = static_cast<const FloatImmNode*>(node);
  }
  bool IsInt(int64_t value) const { return integer != nullptr && integer->value == value; }
  bool Is(double value) const {
    return integer != nullptr ? static_cast<double>(integer->value) == value
                              : real != nullptr && real->value == value;
  }
};

bool Fits(DataType t, int64_t value) {
  if (t.is_uint()) {
    if (value < 0) return false;
    return t.bits() >= 63 || value < (int64_t{1} << t.bits());
  }
  if (t.bits() >= 64) return true;
  int64_t limit = int64_t{1} << (t.bits() - 1);
  return value >= -limit && value < limit;
}

/*! \brief Applies f to two integer constants; f returns nothing on overflow. */
template <typename F>
PrimExpr FoldInts(const PrimExpr& a, const PrimExpr& b, F f) {
  Constant x(a), y(b);
  if (x.integer == nullptr || y.integer == nullptr) return PrimExpr();
  std::optional<int64_t> result = f(x.integer->value, y.integer->value);
  if (!result || !Fits(a.dtype().element_of(), *result)) return PrimExpr();
  return make_const(a.dtype(), *result);
}

/*! \brief Applies f to two real constants of a width the host computes in. */
template <typename F>
PrimExpr FoldReals(const PrimExpr& a, const PrimExpr& b, F f) {
  Constant x(a), y(b);
  if (x.real == nullptr || y.real == nullptr || !a.dtype().is_float()) return PrimExpr();
  if (a.dtype().bits() == 64) return make_const(a.dtype(), f(x.real->value, y.real->value));
  if (a.dtype().bits() == 32) {
    float narrow = f(static_cast<float>(x.real->value), static_cast<float>(y.real->value));
    return make_const(a.dtype(), static_cast<double>(narrow));
  }
  return PrimExpr();
}

template <typename F>
PrimExpr FoldCompare(const PrimExpr& a, const PrimExpr& b, F f) {
  Constant x(a), y(b);
  int lanes = a.dtype().lanes();
  if (x.integer && y.integer) {
    return make_const(DataType::Bool(lanes), f(x.integer->value, y.integer->value));
  }
  if (x.real && y.real) return make_const(DataType::Bool(lanes), f(x.real->value, y.real->value));
  return PrimExpr();
}

template <bool (*overflows)(int64_t, int64_t, int64_t*)>
std::optional<int64_t> Checked(int64_t x, int64_t y) {
  int64_t result;
  if (overflows(x, y, &result)) return std::nullopt;
  return result;
}
bool AddOverflows(int64_t x, int64_t y, int64_t* r) { return __builtin_add_overflow(x, y, r); }
bool SubOverflows(int64_t x, int64_t y, int64_t* r) { return __builtin_sub_overflow(x, y, r); }
bool MulOverflows(int64_t x, int64_t y, int64_t* r) { return __builtin_mul_overflow(x, y, r); }

void CheckDivisor(const char* name, const PrimExpr& a, const PrimExpr& b) {
  TVM_CHECK(!IsIntegral(b.dtype()) || !Constant(b).IsInt(0), ValueError)
      << name << ": " << a << " is divided by zero";
}

int64_t FloorDivide(int64_t x, int64_t y) {
  int64_t quotient = x / y;
  return (x % y != 0 && (x < 0) != (y < 0)) ? quotient - 1 : quotient;
}

bool SameVar(const PrimExpr& a, const PrimExpr& b) {
  return a.same_as(b) && a->IsInstance<VarNode>();
}

}  // namespace

template <>
PrimExpr TryConstFold<Add>(const PrimExpr& a, const PrimExpr& b) {
  if (Constant(a).Is(0)) return b;
  if (Constant(b).Is(0)) return a;
  if (PrimExpr r = FoldInts(a, b, Checked<AddOverflows>); r.defined()) return r;
  return FoldReals(a, b, [](auto x, auto y) { return x + y; });
}

template <>
PrimExpr TryConstFold<Sub>(const PrimExpr& a, const PrimExpr& b) {
  if (Constant(b).Is(0)) return a;
  if (IsIntegral(a.dtype()) && SameVar(a, b)) return make_zero(a.dtype());
  if (PrimExpr r = FoldInts(a, b, Checked<SubOverflows>); r.defined()) return r;
  return FoldReals(a, b, [](auto x, auto y) { return x - y; });
}

template <>
PrimExpr TryConstFold<Mul>(const PrimExpr& a, const PrimExpr& b) {
  Constant x(a), y(b);
  if (x.Is(1)) return b;
  if (y.Is(1)) return a;
  // A real zero times infinity is not zero, so only integers vanish.
  if (x.IsInt(0)) return a;
  if (y.IsInt(0)) return b;
  if (PrimExpr r = FoldInts(a, b, Checked<MulOverflows>); r.defined()) return r;
  return FoldReals(a, b, [](auto p, auto q) { return p * q; });
}

template <>
PrimExpr TryConstFold<Div>(const PrimExpr& a, const PrimExpr& b) {
  CheckDivisor("division", a, b);
  if (Constant(b).Is(1)) return a;
  if (Constant(a).IsInt(0)) return a;
  if (PrimExpr r = FoldInts(a, b, [](int64_t x, int64_t y) { return std::optional(x / y); });
      r.defined()) {
    return r;
  }
  if (Constant(b).Is(0)) return PrimExpr();
  return FoldReals(a, b, [](auto x, auto y) { return x / y; });
}

template <>
PrimExpr TryConstFold<Mod>(const PrimExpr& a, const PrimExpr& b) {
  CheckDivisor("truncmod", a, b);
  if (Constant(b).IsInt(1)) return make_zero(a.dtype());
  if (Constant(a).IsInt(0)) return a;
  return FoldInts(a, b, [](int64_t x, int64_t y) { return std::optional(x % y); });
}

template <>
PrimExpr TryConstFold<FloorDiv>(const PrimExpr& a, const PrimExpr& b) {
  CheckDivisor("floordiv", a, b);
  if (Constant(b).IsInt(1)) return a;
  if (Constant(a).IsInt(0)) return a;
  return FoldInts(a, b, [](int64_t x, int64_t y) { return std::optional(FloorDivide(x, y)); });
}

template <>
PrimExpr TryConstFold<FloorMod>(const PrimExpr& a, const PrimExpr& b) {
  CheckDivisor("floormod", a, b);
  if (Constant(b).IsInt(1)) return make_zero(a.dtype());
  if (Constant(a).IsInt(0)) return a;
  return FoldInts(a, b,
                  [](int64_t x, int64_t y) { return std::optional(x - FloorDivide(x, y) * y); });
}

template <>
PrimExpr TryConstFold<Min>(const PrimExpr& a, const PrimExpr& b) {
  if (a.same_as(b)) return a;
  if (PrimExpr r =
          FoldInts(a, b, [](int64_t x, int64_t y) { return std::optional(std::min(x, y)); });
      r.defined()) {
    return r;
  }
  return FoldReals(a, b, [](auto x, auto y) { return x < y || std::isnan(x) ? x : y; });
}

template <>
PrimExpr TryConstFold<Max>(const PrimExpr& a, const PrimExpr& b) {
  if (a.same_as(b)) return a;
  if (PrimExpr r =
          FoldInts(a, b, [](int64_t x, int64_t y) { return std::optional(std::max(x, y)); });
      r.defined()) {
    return r;
  }
  return FoldReals(a, b, [](auto x, auto y) { return x > y || std::isnan(x) ? x : y; });
}

template <>
PrimExpr TryConstFold<LT>(const PrimExpr& a, const PrimExpr& b) {
  return FoldCompare(a, b, [](auto x, auto y) { return x < y; });
}
template <>
PrimExpr TryConstFold<LE>(const PrimExpr& a, const PrimExpr& b) {
  return FoldCompare(a, b, [](auto x, auto y) { return x <= y; });
}
template <>
PrimExpr TryConstFold<GT>(const PrimExpr& a, const PrimExpr& b) {
  return FoldCompare(a, b, [](auto x, auto y) { return x > y; });
}
template <>
PrimExpr TryConstFold<GE>(const PrimExpr& a, const PrimExpr& b) {
  return FoldCompare(a, b, [](auto x, auto y) { return x >= y; });
}
template <>
PrimExpr TryConstFold<EQ>(const PrimExpr& a, const PrimExpr& b) {
  return FoldCompare(a, b, [](auto x, auto y) { return x == y; });
}
template <>
PrimExpr TryConstFold<NE>(const PrimExpr& a, const PrimExpr& b) {
  return FoldCompare(a, b, [](auto x, auto y) { return x != y; });
}

template <>
PrimExpr TryConstFold<And>(const PrimExpr& a, const PrimExpr& b) {
  Constant x(a), y(b);
  if (x.integer != nullptr) return x.integer->value ? b : a;
  if (y.integer != nullptr) return y.integer->value ? a : b;
  return PrimExpr();
}
template <>
PrimExpr TryConstFold<Or>(const PrimExpr& a, const PrimExpr& b) {
  Constant x(a), y(b);
  if (x.integer != nullptr) return x.integer->value ? a : b;
  if (y.integer != nullptr) return y.integer->value ? b : a;
  return PrimExpr();
}

PrimExpr FoldCast(DataType t, const PrimExpr& value) {
  if (!t.is_scalar() || t.is_handle()) return PrimExpr();
  if (const auto* imm = value.as<IntImmNode>()) {
    if (t.is_bool()) return make_const(t, imm->value != 0);
    if (IsFloating(t)) return make_const(t, static_cast<double>(imm->value));
    return Fits(t, imm->value) ? make_const(t, imm->value) : PrimExpr();
  }
  if (const auto* imm = value.as<FloatImmNode>()) {
    if (IsFloating(t)) return make_const(t, imm->value);
    if (t.is_bool()) return make_const(t, imm->value != 0);
    // Beyond 2^62 the truncated value may not be an int64.
    if (!(std::abs(imm->value) < 4.6e18)) return PrimExpr();
    int64_t truncated = static_cast<int64_t>(imm->value);
    return Fits(t, truncated) ? make_const(t, truncated) : PrimExpr();
  }
  return PrimExpr();
}

}  // namespace tir
}  // namespace tvm
