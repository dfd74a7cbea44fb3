/*!
 * \file src/expr/math.cc
 * \brief Math functions: one Op each, folded on constants the host can compute exactly alike.
 */
#include <tvm/expr/analysis.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/narrow_float.h>
#include <tvm/runtime/registry.h>

#include <cmath>
#include <string>
#include <unordered_map>

#include "const_fold.h"

namespace tvm {

using namespace tir;

namespace {

/*!
 * \brief The operand of a function of real numbers. Integers and bools are read as float32, as
 * PyTorch reads them: their own type could not hold the result.
 */
PrimExpr Real(const char* name, const PrimExpr& x) {
  TVM_CHECK(x.defined(), ValueError) << name << ": the operand is undefined";
  if (!IsIntegral(x.dtype())) return x;
  return cast(DataType::Float(32).with_lanes(x.dtype().lanes()), x);
}

void CheckFloat(const char* name, const PrimExpr& x) {
  TVM_CHECK(x.defined(), ValueError) << name << ": the operand is undefined";
  TVM_CHECK(IsFloating(x.dtype()), TypeError)
      << name << "(" << x << ") needs a floating point operand, got " << x.dtype()
      << "; cast it first";
}

using RealFunction = double (*)(double);

/*! \brief Functions of one real number that are folded when they are simplified, by operator. */
std::unordered_map<std::string, RealFunction>& Functions() {
  static std::unordered_map<std::string, RealFunction> functions;
  return functions;
}

/*! \brief `f` of a float32 or float64 constant, else undefined. */
PrimExpr FoldUnary(const PrimExpr& x, RealFunction f) {
  const auto* imm = x.as<FloatImmNode>();
  if (imm == nullptr || !imm->dtype.is_float() || imm->dtype.bits() < 32) return PrimExpr();
  return make_const(imm->dtype, f(imm->value));
}

PrimExpr UnaryCall(const char* name, const Op& op, PrimExpr x) {
  x = Real(name, x);
  CheckFloat(name, x);
  return Call(x.dtype(), op, {x});
}

/*! \brief A function that changes no integer, and of constants gives constants at once. */
PrimExpr RoundingCall(const char* name, const Op& op, PrimExpr x, RealFunction f) {
  if (x.defined() && IsIntegral(x.dtype())) return x;
  CheckFloat(name, x);
  if (PrimExpr folded = FoldUnary(x, f); folded.defined()) return folded;
  return Call(x.dtype(), op, {x});
}

PrimExpr BinaryCall(const char* name, const Op& op, PrimExpr x, PrimExpr y) {
  BinaryOpMatchTypes(x, y);
  CheckFloat(name, x);
  return Call(x.dtype(), op, {x, y});
}

double Exp10(double x) { return std::pow(10.0, x); }
double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double Rsqrt(double x) { return 1.0 / std::sqrt(x); }

}  // namespace

#define TVM_TIR_REGISTER_PURE(Name, Inputs) \
  TVM_REGISTER_OP("tir." Name)              \
      .set_num_inputs(Inputs)               \
      .set_attr<Integer>(kTCallEffectKind, Integer(static_cast<int>(CallEffectKind::kPure)))

#define TVM_TIR_DEFINE_FUNCTION(Func, ...)      \
  PrimExpr Func(PrimExpr x) {                   \
    static const Op op = Op::Get("tir." #Func); \
    return __VA_ARGS__;                         \
  }                                             \
  TVM_REGISTER_GLOBAL("tir." #Func).set_body_typed([](PrimExpr x) { return Func(x); })

#define TVM_TIR_FOLDS(Func, Fold)                       \
  [[maybe_unused]] static const bool is_folded_##Func = \
      Functions().emplace("tir." #Func, static_cast<RealFunction>(Fold)).second

#define TVM_TIR_DEFINE_ROUNDING(Func, Fold) \
  TVM_TIR_REGISTER_PURE(#Func, 1);          \
  TVM_TIR_FOLDS(Func, Fold);                \
  TVM_TIR_DEFINE_FUNCTION(Func, RoundingCall(#Func, op, std::move(x), Fold))

#define TVM_TIR_DEFINE_REAL(Func, Fold) \
  TVM_TIR_FOLDS(Func, Fold);            \
  TVM_TIR_DEFINE_FUNCTION(Func, UnaryCall(#Func, op, std::move(x)))

#define TVM_TIR_DEFINE_UNARY(Func, Fold) \
  TVM_TIR_REGISTER_PURE(#Func, 1);       \
  TVM_TIR_DEFINE_REAL(Func, Fold)

#define TVM_TIR_DEFINE_ELEMENTARY(Func, Fold)                         \
  TVM_TIR_REGISTER_PURE(#Func, 1).set_attr<bool>(kTElementary, true); \
  TVM_TIR_DEFINE_REAL(Func, Fold)

TVM_TIR_DEFINE_ELEMENTARY(exp, std::exp);
TVM_TIR_DEFINE_ELEMENTARY(exp2, std::exp2);
TVM_TIR_DEFINE_ELEMENTARY(exp10, Exp10);
TVM_TIR_DEFINE_ELEMENTARY(erf, std::erf);
TVM_TIR_DEFINE_ELEMENTARY(tanh, std::tanh);
TVM_TIR_DEFINE_ELEMENTARY(sigmoid, Sigmoid);
TVM_TIR_DEFINE_UNARY(sqrt, std::sqrt);
TVM_TIR_DEFINE_UNARY(rsqrt, Rsqrt);
TVM_TIR_DEFINE_ELEMENTARY(log, std::log);
TVM_TIR_DEFINE_ELEMENTARY(log2, std::log2);
TVM_TIR_DEFINE_ELEMENTARY(log10, std::log10);
TVM_TIR_DEFINE_ELEMENTARY(log1p, std::log1p);
TVM_TIR_DEFINE_ELEMENTARY(cos, std::cos);
TVM_TIR_DEFINE_ELEMENTARY(sin, std::sin);
TVM_TIR_DEFINE_ELEMENTARY(tan, std::tan);
TVM_TIR_DEFINE_ELEMENTARY(acos, std::acos);
TVM_TIR_DEFINE_ELEMENTARY(asin, std::asin);
TVM_TIR_DEFINE_ELEMENTARY(atan, std::atan);
TVM_TIR_DEFINE_ELEMENTARY(cosh, std::cosh);
TVM_TIR_DEFINE_ELEMENTARY(sinh, std::sinh);

namespace {
// Reached from Python only.
TVM_TIR_DEFINE_ELEMENTARY(acosh, std::acosh);
TVM_TIR_DEFINE_ELEMENTARY(asinh, std::asinh);
TVM_TIR_DEFINE_ELEMENTARY(atanh, std::atanh);
}  // namespace

TVM_TIR_DEFINE_ROUNDING(floor, std::floor);
TVM_TIR_DEFINE_ROUNDING(ceil, std::ceil);
TVM_TIR_DEFINE_ROUNDING(round, std::round);
TVM_TIR_DEFINE_ROUNDING(nearbyint, std::nearbyint);
TVM_TIR_DEFINE_ROUNDING(trunc, std::trunc);

TVM_TIR_REGISTER_PURE("pow", 2).set_attr<bool>(kTElementary, true);
TVM_TIR_REGISTER_PURE("fmod", 2);
TVM_TIR_REGISTER_PURE("atan2", 2).set_attr<bool>(kTElementary, true);
TVM_TIR_REGISTER_PURE("fabs", 1);
TVM_TIR_REGISTER_PURE("popcount", 1);
TVM_TIR_REGISTER_PURE("clz", 1);

PrimExpr pow(PrimExpr x, PrimExpr y) {
  static const Op op = Op::Get("tir.pow");
  return BinaryCall("pow", op, std::move(x), std::move(y));
}

namespace tir {

PrimExpr FoldMath(const CallNode* call) {
  const auto* op = call->op.as<OpNode>();
  if (op == nullptr || call->args.empty()) return PrimExpr();
  static const Op power = Op::Get("tir.pow");
  if (call->op.same_as(power)) {
    const auto* base = call->args[0].as<FloatImmNode>();
    const auto* exponent = call->args[1].as<FloatImmNode>();
    bool folds = base != nullptr && exponent != nullptr && call->dtype.bits() >= 32;
    return folds ? make_const(call->dtype, std::pow(base->value, exponent->value)) : PrimExpr();
  }
  if (call->args.size() != 1 || !call->args[0].as<FloatImmNode>()) return PrimExpr();
  auto it = Functions().find(op->name);
  return it == Functions().end() ? PrimExpr() : FoldUnary(call->args[0], it->second);
}

}  // namespace tir

PrimExpr fmod(PrimExpr x, PrimExpr y) {
  static const Op op = Op::Get("tir.fmod");
  return BinaryCall("fmod", op, std::move(x), std::move(y));
}

PrimExpr atan2(PrimExpr y, PrimExpr x) {
  static const Op op = Op::Get("tir.atan2");
  return BinaryCall("atan2", op, Real("atan2", y), Real("atan2", x));
}

PrimExpr abs(PrimExpr x) {
  if (x.dtype().is_uint()) return x;
  if (x.dtype().is_int()) {
    if (const int64_t* value = as_const_int(x)) return make_const(x.dtype(), std::abs(*value));
    return Select(x >= make_zero(x.dtype()), x, neg(x));
  }
  static const Op op = Op::Get("tir.fabs");
  return RoundingCall("abs", op, std::move(x), std::fabs);
}

PrimExpr isnan(PrimExpr x) {
  DataType result = DataType::Bool(x.dtype().lanes());
  if (IsIntegral(x.dtype())) return make_const(result, false);
  if (const auto* imm = x.as<FloatImmNode>()) return make_const(result, std::isnan(imm->value));
  return Call(result, builtin::isnan(), {x});
}

PrimExpr fma(PrimExpr x, PrimExpr y, PrimExpr z) {
  BinaryOpMatchTypes(x, y);
  BinaryOpMatchTypes(x, z);
  BinaryOpMatchTypes(y, z);
  return Call(x.dtype(), builtin::fma(), {x, y, z});
}

PrimExpr popcount(PrimExpr x) {
  static const Op op = Op::Get("tir.popcount");
  TVM_CHECK(IsIntegral(x.dtype()), TypeError)
      << "popcount is for integers, got " << x << " (" << x.dtype() << ")";
  return Call(x.dtype(), op, {x});
}

namespace {
PrimExpr clz(PrimExpr x) {
  static const Op op = Op::Get("tir.clz");
  TVM_CHECK(IsIntegral(x.dtype()), TypeError)
      << "clz is for integers, got " << x << " (" << x.dtype() << ")";
  return Call(DataType::Int(32, x.dtype().lanes()), op, {x});
}
}  // namespace

TVM_REGISTER_GLOBAL("tir._OpPow").set_body_typed([](PrimExpr x, PrimExpr y) { return pow(x, y); });
TVM_REGISTER_GLOBAL("tir.fmod").set_body_typed([](PrimExpr x, PrimExpr y) { return fmod(x, y); });
TVM_REGISTER_GLOBAL("tir.atan2").set_body_typed([](PrimExpr y, PrimExpr x) { return atan2(y, x); });
TVM_REGISTER_GLOBAL("tir.abs").set_body_typed([](PrimExpr x) { return abs(x); });
TVM_REGISTER_GLOBAL("tir.isnan").set_body_typed([](PrimExpr x) { return isnan(x); });
TVM_REGISTER_GLOBAL("tir.fma").set_body_typed([](PrimExpr x, PrimExpr y, PrimExpr z) {
  return fma(x, y, z);
});
TVM_REGISTER_GLOBAL("tir.clz").set_body_typed([](PrimExpr x) { return clz(x); });
TVM_REGISTER_GLOBAL("tir.popcount").set_body_typed([](PrimExpr x) { return popcount(x); });

#undef TVM_TIR_DEFINE_ELEMENTARY
#undef TVM_TIR_DEFINE_UNARY
#undef TVM_TIR_DEFINE_ROUNDING
#undef TVM_TIR_DEFINE_REAL
#undef TVM_TIR_FOLDS
#undef TVM_TIR_DEFINE_FUNCTION
#undef TVM_TIR_REGISTER_PURE

}  // namespace tvm
