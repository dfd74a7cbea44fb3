/*!
 * \file src/expr/lanes.cc
 * \brief Numbers of lanes as expressions.
 */
#include <tvm/expr/builtin.h>
#include <tvm/expr/lanes.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>

namespace tvm {
namespace tir {

namespace {

PrimExpr VScale(DataType dtype) { return Call(dtype, builtin::vscale(), {}); }

int RequireLanes(const char* name, const PrimExpr& count) {
  std::optional<int> lanes = LanesOfCount(count);
  TVM_CHECK(lanes, ValueError) << name << ": lanes are a number up to 32767 or a multiple of "
                               << "vscale(), not " << count;
  return *lanes;
}

}  // namespace

PrimExpr LaneCount(int lanes, DataType dtype) {
  if (lanes >= 0) return make_const(dtype, lanes);
  return lanes == -1 ? VScale(dtype) : Mul(VScale(dtype), make_const(dtype, -lanes));
}

std::optional<int> LanesOfCount(const PrimExpr& count) {
  constexpr int64_t kMost = 32767;
  if (const int64_t* number = as_const_int(count)) {
    if (*number < 1 || *number > kMost) return std::nullopt;
    return static_cast<int>(*number);
  }
  if (const auto* op = count.as<CastNode>()) return LanesOfCount(op->value);
  if (const auto* op = count.as<CallNode>()) {
    if (op->op.same_as(builtin::vscale())) return -1;
    const bool shifted = op->op.same_as(builtin::shift_left());
    const int64_t* places = shifted ? as_const_int(op->args[1]) : nullptr;
    if (places == nullptr || *places < 0 || *places > 14) return std::nullopt;
    std::optional<int> lanes = LanesOfCount(op->args[0]);
    if (!lanes || *lanes > 0 || int64_t{-*lanes} << *places > kMost) return std::nullopt;
    return *lanes * (1 << *places);
  }
  if (const auto* op = count.as<MulNode>()) {
    std::optional<int> a = LanesOfCount(op->a), b = LanesOfCount(op->b);
    // One factor is a number, and not more than one is vscale.
    if (!a || !b || (*a < 0 && *b < 0)) return std::nullopt;
    const int64_t product = int64_t{*a} * *b;
    if (product > kMost || product < -kMost) return std::nullopt;
    return static_cast<int>(product);
  }
  return std::nullopt;
}

PrimExpr LastOfRamp(const RampNode* ramp) {
  const DataType dtype = ramp->stride.dtype();
  PrimExpr steps = ramp->lanes > 0 ? make_const(dtype, ramp->lanes - 1)
                                   : LaneCount(ramp->lanes, dtype) - make_const(dtype, 1);
  return ramp->base + ramp->stride * steps;
}

TVM_REGISTER_GLOBAL("tir.Ramp").set_body_typed([](PrimExpr base, PrimExpr stride, PrimExpr lanes) {
  return Ramp(base, stride, RequireLanes("tir.Ramp", lanes));
});
TVM_REGISTER_GLOBAL("tir.Broadcast").set_body_typed([](PrimExpr value, PrimExpr lanes) {
  return Broadcast(value, RequireLanes("tir.Broadcast", lanes));
});
TVM_REGISTER_GLOBAL("tir.LaneCount").set_body_typed([](PrimExpr vector) {
  return LaneCount(vector.dtype().lanes());
});
TVM_REGISTER_GLOBAL("tir.IsScalableLaneCount").set_body_typed([](PrimExpr count) {
  return LanesOfCount(count).value_or(1) < 0;
});

}  // namespace tir
}  // namespace tvm
