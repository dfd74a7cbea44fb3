/*!
 * \file src/tir/transforms/lower_intrin.cc
 * \brief Math functions in terms of those that every generator has.
 */
#include <tvm/expr/analysis.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/ir/op.h>
#include <tvm/runtime/registry.h>

#include <array>
#include <cmath>
#include <string>

#include "pass_common.h"

namespace tvm {
namespace tir {

TVM_REGISTER_OP("tir.q_multiply_shift")
    .describe("x * y * 2^(s - q), rounded to the nearest integer, halves up.")
    .set_num_inputs(4)
    .set_attr<Integer>(kTCallEffectKind, Integer(static_cast<int>(CallEffectKind::kPure)));
TVM_REGISTER_OP("tir.q_multiply_shift_per_axis")
    .describe("(x << left) * y * 2^(-q - right), rounded to the nearest integer, halves up.")
    .set_num_inputs(7)
    .set_attr<Integer>(kTCallEffectKind, Integer(static_cast<int>(CallEffectKind::kPure)));

// Halves of vectors; the second argument of `vectorcombine` is the upper one.
#define TVM_TIR_REGISTER_HALVES(Name, Inputs) \
  TVM_REGISTER_OP("tir." Name)                \
      .set_num_inputs(Inputs)                 \
      .set_attr<Integer>(kTCallEffectKind, Integer(static_cast<int>(CallEffectKind::kPure)))
TVM_TIR_REGISTER_HALVES("vectorlow", 1);
TVM_TIR_REGISTER_HALVES("vectorhigh", 1);
TVM_TIR_REGISTER_HALVES("vectorcombine", 2);
#undef TVM_TIR_REGISTER_HALVES

TVM_REGISTER_OP("tir.tvm_thread_invariant")
    .describe("(condition): a condition that is the same for all threads of a block")
    .set_num_inputs(1)
    .set_attr<Integer>(kTCallEffectKind,
                       Integer(static_cast<int>(CallEffectKind::kExprAnnotation)));
TVM_REGISTER_OP("tir.ignore_loop_partition")
    .describe("(condition): a condition at which loops are not split")
    .set_num_inputs(1)
    .set_attr<Integer>(kTCallEffectKind,
                       Integer(static_cast<int>(CallEffectKind::kExprAnnotation)));
TVM_REGISTER_OP("tir.TVMBackendAllocWorkspace")
    .describe("(device type, device number, bytes, type code, type bits): memory of a device")
    .set_num_inputs(5)
    .set_attr<Integer>(kTCallEffectKind, Integer(static_cast<int>(CallEffectKind::kOpaque)));
TVM_REGISTER_OP("tir.TVMBackendFreeWorkspace")
    .describe("(device type, device number, pointer): gives memory of a device back")
    .set_num_inputs(3)
    .set_attr<Integer>(kTCallEffectKind, Integer(static_cast<int>(CallEffectKind::kOpaque)));

namespace {

/*! \brief Lanes [begin, end) of a vector. */
PrimExpr LanesOf(const PrimExpr& vector, int begin, int end) {
  Array<PrimExpr> lanes;
  for (int i = begin; i < end; ++i) lanes.push_back(i);
  return Shuffle({vector}, lanes);
}

/*! \brief `(x << left) * y` without its lowest `right` bits, rounded, in 64 bits between. */
PrimExpr MultiplyShift(const PrimExpr& x, const PrimExpr& y, const PrimExpr& left,
                       const PrimExpr& right) {
  DataType wide = DataType::Int(64, x.dtype().lanes());
  auto widen = [&](PrimExpr e) {
    if (e.dtype().lanes() != wide.lanes()) e = Broadcast(e, wide.lanes());
    return cast(wide, e);
  };
  PrimExpr shift = widen(right), one = make_const(wide, 1);
  PrimExpr product = left_shift(widen(x), widen(left)) * widen(y);
  return cast(x.dtype(), right_shift(product + left_shift(one, shift - one), shift));
}

using Rule = PrimExpr (*)(const Array<PrimExpr>& args);

PrimExpr Like(const PrimExpr& x, double value) { return make_const(x.dtype(), value); }

const std::unordered_map<std::string, Rule>& Rules() {
  static const std::unordered_map<std::string, Rule> rules = {
      {"tir.sigmoid",
       [](const Array<PrimExpr>& a) -> PrimExpr {
         PrimExpr one = Like(a[0], 1);
         return div(one, one + exp(neg(a[0])));
       }},
      {"tir.rsqrt",
       [](const Array<PrimExpr>& a) -> PrimExpr { return div(Like(a[0], 1), sqrt(a[0])); }},
      {"tir.exp10",
       [](const Array<PrimExpr>& a) -> PrimExpr {
         // The exponent's rounding error is the result's relative error, too much for 16 bits.
         DataType dtype = a[0].dtype();
         PrimExpr x = dtype.bits() < 32 ? cast(DataType::Float(32, dtype.lanes()), a[0]) : a[0];
         return cast(dtype, exp(x * Like(x, std::log(10.0))));
       }},
      {"tir.tan", [](const Array<PrimExpr>& a) -> PrimExpr { return div(sin(a[0]), cos(a[0])); }},
      {"tir.cosh",
       [](const Array<PrimExpr>& a) -> PrimExpr {
         return (exp(a[0]) + exp(neg(a[0]))) * Like(a[0], 0.5);
       }},
      {"tir.clz",
       [](const Array<PrimExpr>& a) -> PrimExpr {
         // With all bits below the first set one set as well, the others are the leading zeros.
         DataType dtype = a[0].dtype();
         PrimExpr x = cast(DataType::UInt(dtype.bits(), dtype.lanes()), a[0]);
         for (int step = 1; step < dtype.bits(); step *= 2) {
           x = bitwise_or(x, right_shift(x, Like(x, step)));
         }
         DataType result = DataType::Int(32, dtype.lanes());
         return make_const(result, dtype.bits()) - cast(result, popcount(x));
       }},
      {"tir.q_multiply_shift",
       [](const Array<PrimExpr>& a) -> PrimExpr {
         // A positive shift is to the left.
         PrimExpr zero = make_zero(a[3].dtype());
         return MultiplyShift(a[0], a[1], max(a[3], zero), a[2] + max(neg(a[3]), zero));
       }},
      {"tir.q_multiply_shift_per_axis",
       [](const Array<PrimExpr>& a) -> PrimExpr {
         PrimExpr zero = make_zero(a[2].dtype());
         PrimExpr left = is_const_int(a[5], 0) ? zero : a[2];
         PrimExpr right = is_const_int(a[6], 0) ? a[4] : a[4] + a[3];
         return MultiplyShift(a[0], a[1], left, right);
       }},
      {"tir.vectorlow",
       [](const Array<PrimExpr>& a) { return LanesOf(a[0], 0, a[0].dtype().lanes() / 2); }},
      {"tir.vectorhigh",
       [](const Array<PrimExpr>& a) {
         const int lanes = a[0].dtype().lanes();
         return LanesOf(a[0], lanes / 2, lanes);
       }},
      {"tir.vectorcombine", [](const Array<PrimExpr>& a) { return Shuffle::Concat({a[0], a[1]}); }},
      {"tir.tvm_thread_invariant", [](const Array<PrimExpr>& a) { return a[0]; }},
      {"tir.ignore_loop_partition", [](const Array<PrimExpr>& a) { return a[0]; }},
      {"tir.TVMBackendAllocWorkspace",
       [](const Array<PrimExpr>& a) -> PrimExpr {
         // The runtime aligns for every type, so it takes no hints.
         return Call(
             DataType::Handle(), builtin::call_extern(),
             {StringImm("TVMBackendAllocWorkspace"), a[0], a[1], cast(DataType::UInt(64), a[2])});
       }},
      {"tir.TVMBackendFreeWorkspace",
       [](const Array<PrimExpr>& a) -> PrimExpr {
         return Call(DataType::Int(32), builtin::call_extern(),
                     {StringImm("TVMBackendFreeWorkspace"), a[0], a[1], a[2]});
       }},
  };
  return rules;
}

class IntrinLowerer final : public StmtExprMutator {
 public:
  explicit IntrinLowerer(const std::string& kind)
      : attrs_{String(kind + ".FLowerIntrinsic"), String("default.FLowerIntrinsic")},
        has_sigmoid_(kind == "llvm") {}

 private:
  PrimExpr VisitExpr_(const CallNode* op) final {
    PrimExpr expr = StmtExprMutator::VisitExpr_(op);
    op = expr.as<CallNode>();
    const auto* intrinsic = op->op.as<OpNode>();
    if (intrinsic == nullptr) return expr;
    // Rules registered for the target first: they may do better than the general ones.
    for (const String& attr : attrs_) {
      std::optional<Any> lower = intrinsic->attr_table.Get(attr);
      if (!lower || lower->is_null()) continue;
      PrimExpr lowered = lower->cast<PackedFunc>()(expr).cast<PrimExpr>();
      if (!lowered.defined() || lowered.same_as(expr)) return expr;
      TVM_CHECK(lowered.dtype() == expr.dtype(), TypeError)
          << attr << " of " << intrinsic->name << " made " << lowered << " of " << lowered.dtype()
          << " from a call of " << expr.dtype();
      return VisitExpr(lowered);
    }
    if (op->op.same_as(builtin::get_active_lane_mask()) && !op->dtype.is_scalable_vector()) {
      const int lanes = op->dtype.lanes();
      const PrimExpr &base = op->args[0], &limit = op->args[1];
      if (lanes == 1) return base < limit;
      return Ramp(base, make_const(base.dtype(), 1), lanes) < Broadcast(limit, lanes);
    }
    if (has_sigmoid_ && intrinsic->name == "tir.sigmoid") return expr;
    auto rule = Rules().find(intrinsic->name);
    return rule == Rules().end() ? expr : rule->second(op->args);
  }

  std::array<String, 2> attrs_;
  // Whether the code generator has a form of its own, shorter than by exp, and exact for results
  // that are subnormal.
  bool has_sigmoid_;
};

// Targets live above this room; their kind is read by the names of its fields.
std::string KindOf(const PrimFunc& func) {
  auto target = func->GetAttr<ObjectRef>(attr::kTarget);
  if (!target || !target->defined()) return "default";
  return GetField(GetField(target->get(), "kind").ref().get(), "name").cast<std::string>();
}

}  // namespace

namespace transform {

Pass LowerIntrin() {
  return BodyPass("tir.LowerIntrin", [](const PrimFunc& func, const PassContext&) {
    return IntrinLowerer(KindOf(func))(func->body);
  });
}

TVM_REGISTER_GLOBAL("tir.transform.LowerIntrin").set_body_typed(LowerIntrin);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
