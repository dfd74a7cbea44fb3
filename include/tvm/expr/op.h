/*!
 * \file tvm/expr/op.h
 * \brief Operators and math functions on expressions. They promote types and fold constants.
 *
 * Promotion of two operands: a scalar is broadcast to the lanes of a vector; an integer constant or
 * expression meets a float by conversion to the float type; two integers meet at the wider one
 * (signed when widths are equal), two floats at the wider one; bool counts as the narrowest
 * integer.
 */
#ifndef TVM_EXPR_OP_H_
#define TVM_EXPR_OP_H_

#include <tvm/expr/expr.h>

#include <limits>
#include <type_traits>

namespace tvm {

/*! \brief The dtype of an expression for values of `type`: handle for pointers and strings. */
DataType GetRuntimeDataType(const Type& type);

/*! \brief Conversion to `t`; folds constants, and is the identity when the type is right. */
PrimExpr cast(const DataType& t, PrimExpr value);
/*! \brief Converts both operands to the type where they meet; TypeError names them if none does. */
void BinaryOpMatchTypes(PrimExpr& lhs, PrimExpr& rhs);  // NOLINT(*)

PrimExpr add(PrimExpr a, PrimExpr b);
PrimExpr sub(PrimExpr a, PrimExpr b);
PrimExpr mul(PrimExpr a, PrimExpr b);
PrimExpr neg(PrimExpr a);
/*! \brief Division of the language C: rounds toward zero for integers. */
PrimExpr div(PrimExpr a, PrimExpr b);
/*! \brief Real division: integers are converted to float32 first. */
PrimExpr truediv(PrimExpr a, PrimExpr b);
PrimExpr truncdiv(PrimExpr a, PrimExpr b);
PrimExpr truncmod(PrimExpr a, PrimExpr b);
PrimExpr floordiv(PrimExpr a, PrimExpr b);
PrimExpr floormod(PrimExpr a, PrimExpr b);
/*! \brief ceil(a / b) for integers: floordiv(a + b - 1, b). */
PrimExpr ceildiv(PrimExpr a, PrimExpr b);
/*! \brief Division of an index; floordiv. */
PrimExpr indexdiv(PrimExpr a, PrimExpr b);
/*! \brief Remainder of an index; floormod. */
PrimExpr indexmod(PrimExpr a, PrimExpr b);
PrimExpr min(PrimExpr a, PrimExpr b);
PrimExpr max(PrimExpr a, PrimExpr b);
PrimExpr less(PrimExpr a, PrimExpr b);
PrimExpr less_equal(PrimExpr a, PrimExpr b);
PrimExpr greater(PrimExpr a, PrimExpr b);
PrimExpr greater_equal(PrimExpr a, PrimExpr b);
PrimExpr equal(PrimExpr a, PrimExpr b);
PrimExpr not_equal(PrimExpr a, PrimExpr b);
PrimExpr logical_and(PrimExpr a, PrimExpr b);
PrimExpr logical_or(PrimExpr a, PrimExpr b);
PrimExpr logical_not(PrimExpr a);

PrimExpr operator+(PrimExpr a, PrimExpr b);
PrimExpr operator-(PrimExpr a, PrimExpr b);
PrimExpr operator-(PrimExpr a);
PrimExpr operator*(PrimExpr a, PrimExpr b);
PrimExpr operator<(PrimExpr a, PrimExpr b);
PrimExpr operator<=(PrimExpr a, PrimExpr b);
PrimExpr operator>(PrimExpr a, PrimExpr b);
PrimExpr operator>=(PrimExpr a, PrimExpr b);
PrimExpr operator==(PrimExpr a, PrimExpr b);
PrimExpr operator!=(PrimExpr a, PrimExpr b);
PrimExpr operator&&(PrimExpr a, PrimExpr b);
PrimExpr operator||(PrimExpr a, PrimExpr b);
PrimExpr operator!(PrimExpr a);

PrimExpr left_shift(PrimExpr a, PrimExpr b);
PrimExpr right_shift(PrimExpr a, PrimExpr b);
PrimExpr bitwise_and(PrimExpr a, PrimExpr b);
PrimExpr bitwise_or(PrimExpr a, PrimExpr b);
PrimExpr bitwise_xor(PrimExpr a, PrimExpr b);
PrimExpr bitwise_neg(PrimExpr a);

/*! \brief Chosen value, of which only the chosen one is evaluated. */
PrimExpr if_then_else(PrimExpr cond, PrimExpr true_value, PrimExpr false_value);
/*! \brief Marks a condition that nearly always holds; LoopPartition moves it out of loops. */
PrimExpr likely(PrimExpr cond);
/*! \brief The bits of `value` as another type of the same size. */
PrimExpr reinterpret(const DataType& t, PrimExpr value);

PrimExpr pow(PrimExpr x, PrimExpr y);
PrimExpr abs(PrimExpr x);
PrimExpr isnan(PrimExpr x);
PrimExpr floor(PrimExpr x);
PrimExpr ceil(PrimExpr x);
/*! \brief To the nearest integer, halves away from zero. */
PrimExpr round(PrimExpr x);
/*! \brief To the nearest integer, halves to even. */
PrimExpr nearbyint(PrimExpr x);
PrimExpr trunc(PrimExpr x);
PrimExpr fmod(PrimExpr x, PrimExpr y);
PrimExpr atan2(PrimExpr y, PrimExpr x);
PrimExpr exp(PrimExpr x);
PrimExpr exp2(PrimExpr x);
PrimExpr exp10(PrimExpr x);
PrimExpr erf(PrimExpr x);
PrimExpr tanh(PrimExpr x);
PrimExpr sigmoid(PrimExpr x);
PrimExpr sqrt(PrimExpr x);
PrimExpr rsqrt(PrimExpr x);
PrimExpr log(PrimExpr x);
PrimExpr log2(PrimExpr x);
PrimExpr log10(PrimExpr x);
PrimExpr log1p(PrimExpr x);
PrimExpr cos(PrimExpr x);
PrimExpr sin(PrimExpr x);
PrimExpr tan(PrimExpr x);
PrimExpr acos(PrimExpr x);
PrimExpr asin(PrimExpr x);
PrimExpr atan(PrimExpr x);
PrimExpr cosh(PrimExpr x);
PrimExpr sinh(PrimExpr x);
/*! \brief x * y + z in one rounding where the target has it. */
PrimExpr fma(PrimExpr x, PrimExpr y, PrimExpr z);
/*! \brief Number of set bits. */
PrimExpr popcount(PrimExpr x);

/*! \brief Reductions over `axis`, each with its identity as start value unless `init` is given. */
PrimExpr sum(PrimExpr source, Array<tir::IterVar> axis, Array<PrimExpr> init = {});
PrimExpr prod(PrimExpr source, Array<tir::IterVar> axis, Array<PrimExpr> init = {});
PrimExpr max(PrimExpr source, Array<tir::IterVar> axis, Array<PrimExpr> init = {});
PrimExpr min(PrimExpr source, Array<tir::IterVar> axis, Array<PrimExpr> init = {});
PrimExpr all(PrimExpr source, Array<tir::IterVar> axis, Array<PrimExpr> init = {});
PrimExpr any(PrimExpr source, Array<tir::IterVar> axis, Array<PrimExpr> init = {});

PrimExpr max_value(const DataType& dtype);
PrimExpr min_value(const DataType& dtype);
PrimExpr infinity(const DataType& dtype);

namespace tir {

/*! \brief Constant of any scalar or vector dtype. Integers that do not fit are a ValueError. */
PrimExpr MakeConstInt(DataType dtype, int64_t value);
PrimExpr MakeConstFloat(DataType dtype, double value);

template <typename T>
  requires std::is_arithmetic_v<T>
inline PrimExpr make_const(DataType dtype, T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return MakeConstFloat(dtype, value);
  } else {
    return MakeConstInt(dtype, static_cast<int64_t>(value));
  }
}
/*! \brief Zero; for a handle the null pointer. */
PrimExpr make_zero(DataType dtype);
PrimExpr const_true(int lanes = 1);
PrimExpr const_false(int lanes = 1);

/*! \brief Address of the value when the expression is an integer constant, else nullptr. */
const int64_t* as_const_int(const PrimExpr& x);
/*! \brief Whether x is the integer constant `value`, or a broadcast of it. */
bool is_const_int(const PrimExpr& x, int64_t value);
/*! \brief Whether x is any integer constant. */
bool is_const_int(const PrimExpr& x);
/*! \brief Whether x is an integer or float constant, or a broadcast of one. */
bool is_const_number(const PrimExpr& x);
bool is_zero(const PrimExpr& x);
bool is_one(const PrimExpr& x);
bool is_positive_const(const PrimExpr& x);
bool is_negative_const(const PrimExpr& x);
/*! \brief Whether x is a constant power of two; `shift` becomes its exponent. */
bool is_const_power_of_two_integer(const PrimExpr& x, int* shift);

/*! \brief Left fold of `combine` over the values; `empty` when there is none. */
template <typename FCombine>
inline PrimExpr foldl(FCombine combine, PrimExpr empty, const Array<PrimExpr>& values) {
  for (const PrimExpr& value : values) empty = combine(empty, value);
  return empty;
}

}  // namespace tir

// Operators with a number on one side take the type of the expression on the other.
#define TVM_TIR_OP_WITH_NUMBER(Name)             \
  template <typename T>                          \
    requires std::is_arithmetic_v<T>             \
  inline PrimExpr Name(const PrimExpr& a, T b) { \
    return Name(a, tir::NumberLike(a, b));       \
  }                                              \
  template <typename T>                          \
    requires std::is_arithmetic_v<T>             \
  inline PrimExpr Name(T a, const PrimExpr& b) { \
    return Name(tir::NumberLike(b, a), b);       \
  }

namespace tir {
/*! \brief `value` in the type of `x`, or as float32 when `value` is real and `x` is an integer. */
template <typename T>
inline PrimExpr NumberLike(const PrimExpr& x, T value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (!x.dtype().is_float() && !x.dtype().is_bfloat16()) {
      return make_const(DataType::Float(32), value);
    }
  }
  return make_const(x.dtype().is_bool() ? DataType::Int(32) : x.dtype(), value);
}
}  // namespace tir

TVM_TIR_OP_WITH_NUMBER(operator+)
TVM_TIR_OP_WITH_NUMBER(operator-)
TVM_TIR_OP_WITH_NUMBER(operator*)
TVM_TIR_OP_WITH_NUMBER(operator<)
TVM_TIR_OP_WITH_NUMBER(operator<=)
TVM_TIR_OP_WITH_NUMBER(operator>)
TVM_TIR_OP_WITH_NUMBER(operator>=)
TVM_TIR_OP_WITH_NUMBER(operator==)
TVM_TIR_OP_WITH_NUMBER(operator!=)
TVM_TIR_OP_WITH_NUMBER(min)
TVM_TIR_OP_WITH_NUMBER(max)
TVM_TIR_OP_WITH_NUMBER(div)
TVM_TIR_OP_WITH_NUMBER(truncdiv)
TVM_TIR_OP_WITH_NUMBER(truncmod)
TVM_TIR_OP_WITH_NUMBER(floordiv)
TVM_TIR_OP_WITH_NUMBER(floormod)
TVM_TIR_OP_WITH_NUMBER(indexdiv)
TVM_TIR_OP_WITH_NUMBER(indexmod)
#undef TVM_TIR_OP_WITH_NUMBER

/*! \brief Deleted: say truncdiv or floordiv for integers, div for floats. */
PrimExpr operator/(PrimExpr a, PrimExpr b) = delete;
PrimExpr operator%(PrimExpr a, PrimExpr b) = delete;

}  // namespace tvm
#endif  // TVM_EXPR_OP_H_
