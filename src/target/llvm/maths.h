/*!
 * \file maths.h
 * \brief Arithmetic on LLVM values of one floating type, written as it reads.
 */
#ifndef TVM_TARGET_LLVM_MATHS_H_
#define TVM_TARGET_LLVM_MATHS_H_

#include <string>
#include <vector>

#include "target/llvm/ir_text.h"

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

  /*! \brief Horner's scheme, constant term first. */
  Value Polynomial(const Value& x, const std::vector<double>& coefficients) const {
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

#endif  // TVM_TARGET_LLVM_MATHS_H_
