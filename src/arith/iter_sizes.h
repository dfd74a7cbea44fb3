/*!
 * \file arith/iter_sizes.h
 * \brief Arithmetic on extents and factors of iterators: numbers mostly, or expressions of sizes.
 */
#ifndef TVM_ARITH_ITER_SIZES_H_
#define TVM_ARITH_ITER_SIZES_H_

#include <tvm/arith/analyzer.h>
#include <tvm/expr/op.h>

#include <numeric>
#include <optional>

namespace tvm {
namespace arith {

/*! \brief Questions about sizes; what cannot be proved is answered with no. */
class Sizes {
 public:
  /*! \brief Note what follows for variables from `extent >= least`, as of a loop that runs. */
  void AtLeast(const PrimExpr& extent, int64_t least) {
    if (const auto* var = extent.as<tir::VarNode>()) {
      if (least >= 1) analyzer.MarkPositive(GetRef<tir::Var>(var));
    } else if (const auto* product = extent.as<tir::MulNode>()) {
      const int64_t* factor = tir::as_const_int(product->b);
      if (factor && *factor > 0) AtLeast(product->a, (least + *factor - 1) / *factor);
    } else if (const auto* quotient = extent.as<tir::FloorDivNode>()) {
      const int64_t* by = tir::as_const_int(quotient->b);
      if (by && *by > 0 && *by < (1 << 30)) AtLeast(quotient->a, least * *by);
    } else if (const auto* sum = extent.as<tir::AddNode>()) {
      const int64_t* shift = tir::as_const_int(sum->b);
      if (shift && std::abs(*shift) < (1 << 30)) AtLeast(sum->a, least - *shift);
    } else if (const auto* less = extent.as<tir::SubNode>()) {
      const int64_t* shift = tir::as_const_int(less->b);
      if (shift && std::abs(*shift) < (1 << 30)) AtLeast(less->a, least + *shift);
    }
  }

  /*! \brief `a * b`; nothing if that is no value of the type. */
  std::optional<PrimExpr> Product(const PrimExpr& a, const PrimExpr& b) {
    const int64_t *left = tir::as_const_int(a), *right = tir::as_const_int(b);
    if (left == nullptr || right == nullptr) return analyzer.Simplify(a * b);
    int64_t product;
    if (__builtin_mul_overflow(*left, *right, &product)) return std::nullopt;
    return Number(product, a.dtype());
  }

  std::optional<PrimExpr> Sum(const PrimExpr& a, const PrimExpr& b) {
    const int64_t *left = tir::as_const_int(a), *right = tir::as_const_int(b);
    if (left == nullptr || right == nullptr) return analyzer.Simplify(a + b);
    int64_t sum;
    if (__builtin_add_overflow(*left, *right, &sum)) return std::nullopt;
    return Number(sum, a.dtype());
  }

  PrimExpr Quotient(const PrimExpr& a, const PrimExpr& b) {
    return analyzer.Simplify(floordiv(a, b));
  }
  PrimExpr Remainder(const PrimExpr& a, const PrimExpr& b) {
    return analyzer.Simplify(floormod(a, b));
  }
  /*! \brief The least multiple of `b` that is not below `a`. */
  PrimExpr RoundUp(const PrimExpr& a, const PrimExpr& b) {
    return analyzer.Simplify(floordiv(a + b - tir::make_const(a.dtype(), 1), b) * b);
  }

  bool Equal(const PrimExpr& a, const PrimExpr& b) {
    const int64_t *left = tir::as_const_int(a), *right = tir::as_const_int(b);
    if (left != nullptr && right != nullptr) return *left == *right;
    return analyzer.CanProveEqual(a, b);
  }
  bool Is(const PrimExpr& a, int64_t value) {
    const int64_t* number = tir::as_const_int(a);
    if (number != nullptr) return *number == value;
    return analyzer.CanProveEqual(a, tir::make_const(a.dtype(), value));
  }
  bool NotAbove(const PrimExpr& a, const PrimExpr& b) {
    const int64_t *left = tir::as_const_int(a), *right = tir::as_const_int(b);
    if (left != nullptr && right != nullptr) return *left <= *right;
    return analyzer.CanProve(a <= b);
  }
  bool Positive(const PrimExpr& a) {
    const int64_t* number = tir::as_const_int(a);
    return number != nullptr ? *number > 0 : analyzer.CanProveGreaterEqual(a, 1);
  }
  /*! \brief Whether `d`, which is positive, divides `a`. */
  bool Divides(const PrimExpr& d, const PrimExpr& a) {
    const int64_t *by = tir::as_const_int(d), *number = tir::as_const_int(a);
    if (by != nullptr && number != nullptr) return *number % *by == 0;
    return Is(Remainder(a, d), 0);
  }

  /*! \brief A common multiple, the least one of numbers; nothing if none is known. */
  std::optional<PrimExpr> CommonMultiple(const PrimExpr& a, const PrimExpr& b) {
    if (Divides(a, b)) return b;
    if (Divides(b, a)) return a;
    const int64_t *left = tir::as_const_int(a), *right = tir::as_const_int(b);
    if (left == nullptr || right == nullptr) return Product(a, b);
    return Product(a, tir::make_const(a.dtype(), *right / std::gcd(*left, *right)));
  }

  Analyzer analyzer;

 private:
  static std::optional<PrimExpr> Number(int64_t value, DataType dtype) {
    const int bits = dtype.bits() - (dtype.is_int() ? 1 : 0);
    if (bits < 63 && (value >= (int64_t{1} << bits) || value < -(int64_t{1} << bits))) {
      return std::nullopt;
    }
    return tir::make_const(dtype, value);
  }
};

}  // namespace arith
}  // namespace tvm
#endif  // TVM_ARITH_ITER_SIZES_H_
