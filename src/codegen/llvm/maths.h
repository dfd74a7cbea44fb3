/*!
 * \file maths.h
 * \brief Arithmetic on LLVM values of one floating type, written as it reads.
 */
#ifndef TVM_CODEGEN_LLVM_MATHS_H_
#define TVM_CODEGEN_LLVM_MATHS_H_

#include <string>
#include <vector>

#include "codegen/llvm/ir_text.h"

namespace tvm {
namespace codegen {

/*! \brief Works on float or double, scalar or vector; integers are as wide as the reals. */
class Maths {
 public:
  Maths(FunctionText* text, const Value& like)
      : text_(text),
        type_(like.type),
        integer_(like.TypeWith(like.element() == "double" ? "i64" : "i32")) {}

  Value F(double value) const { return text_->Float(type_, value); }
  Value I(int64_t value) const { return text_->Int(integer_, value); }
  Value Mul(const Value& a, const Value& b) const { return text_->Binary("fmul", a, b); }
  Value Add(const Value& a, const Value& b) const { return text_->Binary("fadd", a, b); }
  Value Sub(const Value& a, const Value& b) const { return text_->Binary("fsub", a, b); }
  Value Div(const Value& a, const Value& b) const { return text_->Binary("fdiv", a, b); }
  /*!
   * \brief A quotient of finite numbers, within a unit in the last place; the divisor's reciprocal
   *  must be a normal number.
   */
  Value Quotient(const Value& a, const Value& b) const {
    const bool whole_registers = a.element() == "float" && a.lanes() > 0 && a.lanes() % 16 == 0;
    if (!whole_registers || !text_->module()->estimates_reciprocals()) return Div(a, b);
    // LLVM makes q = a r, then q + r (a - b q), of an estimate r.
    return text_->Binary("fdiv arcp contract ninf", a, b);
  }
  Value Fma(const Value& a, const Value& b, const Value& c) const {
    return text_->Intrinsic("llvm.fmuladd", {a, b, c});
  }
  Value Neg(const Value& a) const { return Sub(F(-0.0), a); }
  Value Abs(const Value& a) const { return text_->Intrinsic("llvm.fabs", {a}); }
  Value CopySign(const Value& a, const Value& sign) const {
    return text_->Intrinsic("llvm.copysign", {a, sign});
  }
  Value Is(const char* comparison, const Value& a, const Value& b) const {
    return text_->Compare(std::string("fcmp ") + comparison, a, b);
  }
  Value IsInt(const char* comparison, const Value& a, const Value& b) const {
    return text_->Compare(std::string("icmp ") + comparison, a, b);
  }
  Value Pick(const Value& condition, const Value& yes, const Value& no) const {
    return text_->Select(condition, yes, no);
  }
  // Ordered comparisons keep `a` when it is NaN.
  Value AtMost(const Value& a, double bound) const {
    return Pick(Is("ogt", a, F(bound)), F(bound), a);
  }
  Value AtLeast(const Value& a, double bound) const {
    return Pick(Is("olt", a, F(bound)), F(bound), a);
  }
  Value Int(const char* op, const Value& a, const Value& b) const {
    return text_->Binary(op, a, b);
  }
  Value Bits(const Value& a) const { return text_->Convert("bitcast", a, integer_); }
  Value FromBits(const Value& a) const { return text_->Convert("bitcast", a, type_); }
  Value ToReal(const Value& a) const { return text_->Convert("sitofp", a, type_); }

  /*!
   * \brief Polynomial, constant term first: pairs of terms by Horner's scheme in the square of x.
   *
   * Half the latency of Horner's scheme for one more multiplication. Four terms and more are halved
   * once more (Estrin's scheme), since these functions wait on latency rather than on throughput.
   */
  Value Polynomial(const Value& x, const std::vector<double>& coefficients) const {
    std::vector<Value> pairs;
    for (size_t i = 0; i < coefficients.size(); i += 2) {
      Value low = F(coefficients[i]);
      bool last = i + 1 == coefficients.size();
      pairs.push_back(last ? low : Fma(F(coefficients[i + 1]), x, low));
    }
    if (pairs.size() == 1) return pairs[0];
    Value square = Mul(x, x);
    if (pairs.size() == 2) return Fma(pairs[1], square, pairs[0]);
    if (pairs.size() == 3) return Fma(Fma(pairs[2], square, pairs[1]), square, pairs[0]);
    Value low = Fma(pairs[1], square, pairs[0]);
    Value high = pairs.back();
    for (size_t i = pairs.size() - 1; i-- > 2;) high = Fma(high, square, pairs[i]);
    return Fma(high, Mul(square, square), low);
  }

  /*!
   * \brief The same by Horner's scheme, which takes fewest operations.
   *
   * For what does not stand on the longest chain, and for functions with so many operations that
   * two of them at once wait on throughput.
   */
  Value Horner(const Value& x, const std::vector<double>& coefficients) const {
    Value sum = F(coefficients.back());
    for (size_t i = coefficients.size() - 1; i-- > 0;) sum = Fma(sum, x, F(coefficients[i]));
    return sum;
  }

 private:
  FunctionText* text_;
  std::string type_, integer_;
};

}  // namespace codegen
}  // namespace tvm

#endif  // TVM_CODEGEN_LLVM_MATHS_H_
