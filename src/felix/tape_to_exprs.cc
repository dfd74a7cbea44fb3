/*!
 * \file tape_to_exprs.cc
 * \brief The entries of a tape as expressions again, for reading and for passes over expressions.
 */
#include <tvm/expr/op.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/registry.h>

#include <bit>

#include "tape_builder.h"

namespace tvm {
namespace felix {

using namespace tir;

namespace {

const DataType kReal = DataType::Float(64);

PrimExpr AsReal(const PrimExpr& e) {
  if (e.dtype().is_bool()) {
    return Select(e, FloatImm(kReal, 1), FloatImm(kReal, 0));
  }
  return cast(kReal, e);
}

PrimExpr AsBool(const PrimExpr& e) {
  return e.dtype().is_bool() ? e : NE(AsReal(e), FloatImm(kReal, 0));
}

PrimExpr EntryToExpr(TapeOp op, const PrimExpr& a, const PrimExpr& b, const PrimExpr& c) {
  auto x = [&] { return AsReal(a); };
  auto y = [&] { return AsReal(b); };
  auto one = [] { return FloatImm(kReal, 1); };
  switch (op) {
    case TapeOp::kAdd:
      return x() + y();
    case TapeOp::kSub:
      return x() - y();
    case TapeOp::kMul:
      return x() * y();
    case TapeOp::kDiv:
      return div(x(), y());
    case TapeOp::kFloorDiv:
      return floor(div(x(), y()));
    case TapeOp::kFloorMod:
      return x() - y() * floor(div(x(), y()));
    case TapeOp::kMin:
      return min(x(), y());
    case TapeOp::kMax:
      return max(x(), y());
    case TapeOp::kPow:
      return pow(x(), y());
    case TapeOp::kLog:
      return log(x());
    case TapeOp::kExp:
      return exp(x());
    case TapeOp::kSqrt:
      return sqrt(x());
    case TapeOp::kLt:
      return x() < y();
    case TapeOp::kLe:
      return x() <= y();
    case TapeOp::kEq:
      return x() == y();
    case TapeOp::kNe:
      return x() != y();
    case TapeOp::kAnd:
      return AsBool(a) && AsBool(b);
    case TapeOp::kOr:
      return AsBool(a) || AsBool(b);
    case TapeOp::kNot:
      return !AsBool(a);
    case TapeOp::kSelect:
      return Select(AsBool(a), y(), AsReal(c));
    case TapeOp::kSigmoid:
      return FloatImm(kReal, 0.5) + div(x(), FloatImm(kReal, 2) * sqrt(one() + x() * x()));
    case TapeOp::kHump:
      return div(one(), sqrt(one() + x() * x()));
    case TapeOp::kAbs:
      return abs(x());
    case TapeOp::kCeil:
      return ceil(x());
    case TapeOp::kFloor:
      return floor(x());
    case TapeOp::kIntConst:
    case TapeOp::kRealConst:
    case TapeOp::kVar:
      break;
  }
  TVM_FATAL(ValueError) << "TapeToExprs: unknown operation " << static_cast<int>(op);
  throw;  // unreachable
}

}  // namespace

/*
 * Arrays of a tape and the variables that its variable table stands for: one expression for each
 * root, float64 or bool.
 */
TVM_REGISTER_GLOBAL("felix.TapeToExprs")
    .set_body_typed([](NDArray ops, NDArray args, NDArray payload, NDArray roots, Array<Var> vars) {
      const auto* op = static_cast<const uint8_t*>(ops.data());
      const auto* arg = static_cast<const int32_t*>(args.data());
      const auto* load = static_cast<const int64_t*>(payload.data());
      int64_t n = ops.NumElements();
      TVM_CHECK(args.NumElements() == 3 * n && payload.NumElements() == n, ValueError)
          << "TapeToExprs: " << n << " operations need three arguments and one payload each, got "
          << args.NumElements() << " and " << payload.NumElements();
      std::vector<PrimExpr> values;
      for (int64_t i = 0; i < n; ++i) {
        TVM_CHECK(op[i] < kNumTapeOps, ValueError)
            << "TapeToExprs: entry " << i << " has the unknown operation " << int{op[i]};
        auto code = static_cast<TapeOp>(op[i]);
        PrimExpr in[3];
        for (int k = 0; k < TapeArity(code); ++k) {
          int32_t source = arg[3 * i + k];
          TVM_CHECK(source >= 0 && source < i, ValueError)
              << "TapeToExprs: entry " << i << " reads entry " << source
              << ", which does not come before it";
          in[k] = values[source];
        }
        if (code == TapeOp::kIntConst) {
          values.push_back(FloatImm(kReal, static_cast<double>(load[i])));
        } else if (code == TapeOp::kRealConst) {
          values.push_back(FloatImm(kReal, std::bit_cast<double>(load[i])));
        } else if (code == TapeOp::kVar) {
          TVM_CHECK(load[i] >= 0 && load[i] < static_cast<int64_t>(vars.size()), ValueError)
              << "TapeToExprs: entry " << i << " is variable " << load[i] << " of " << vars.size();
          values.push_back(vars[load[i]]);
        } else {
          values.push_back(EntryToExpr(code, in[0], in[1], in[2]));
        }
      }
      Array<PrimExpr> out;
      const auto* root = static_cast<const int32_t*>(roots.data());
      for (int64_t i = 0; i < roots.NumElements(); ++i) {
        TVM_CHECK(root[i] >= 0 && root[i] < n, ValueError)
            << "TapeToExprs: root " << i << " is entry " << root[i] << " of " << n;
        out.push_back(values[root[i]]);
      }
      return out;
    });

}  // namespace felix
}  // namespace tvm
