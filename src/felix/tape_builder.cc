/*!
 * \file tape_builder.cc
 */
#include "tape_builder.h"

#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/logging.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tape_formula.h"

namespace tvm {
namespace felix {

using namespace tir;

TapeBuilder::Index TapeBuilder::Intern(TapeOp op, Index a, Index b, Index c, int64_t payload) {
  Key key{static_cast<int64_t>(op), a, b, c, payload};
  auto [it, inserted] = entries_.emplace(key, tape_.size());
  if (inserted) {
    tape_.ops.push_back(static_cast<uint8_t>(op));
    tape_.args.insert(tape_.args.end(), {a, b, c});
    tape_.payload.push_back(payload);
  }
  return it->second;
}

TapeBuilder::Index TapeBuilder::Int(int64_t value) {
  return Intern(TapeOp::kIntConst, -1, -1, -1, value);
}

TapeBuilder::Index TapeBuilder::Real(double value) {
  return Intern(TapeOp::kRealConst, -1, -1, -1, std::bit_cast<int64_t>(value));
}

TapeBuilder::Index TapeBuilder::Number(double value) {
  // Integers beyond 2^53 are not exact as doubles anyway.
  constexpr double kExact = 9007199254740992.0;
  if (std::fabs(value) < kExact && value == std::floor(value)) {
    return Int(static_cast<int64_t>(value));
  }
  return Real(value);
}

TapeBuilder::Index TapeBuilder::Var(const TapeVar& var) {
  auto [it, inserted] = var_ids_.emplace(var.name, static_cast<int64_t>(tape_.vars.size()));
  if (inserted) tape_.vars.push_back(var);
  return Intern(TapeOp::kVar, -1, -1, -1, it->second);
}

bool TapeBuilder::IsConst(Index i) const {
  auto op = static_cast<TapeOp>(tape_.ops[i]);
  return op == TapeOp::kIntConst || op == TapeOp::kRealConst;
}

double TapeBuilder::ConstValue(Index i) const {
  return static_cast<TapeOp>(tape_.ops[i]) == TapeOp::kIntConst
             ? static_cast<double>(tape_.payload[i])
             : std::bit_cast<double>(tape_.payload[i]);
}

TapeBuilder::Index TapeBuilder::Fold(TapeOp op, Index a, Index b, Index c) {
  int arity = TapeArity(op);
  bool all_const = IsConst(a) && (arity < 2 || IsConst(b)) && (arity < 3 || IsConst(c));
  if (all_const) {
    double value =
        TapeValue(op, ConstValue(a), arity > 1 ? ConstValue(b) : 0, arity > 2 ? ConstValue(c) : 0);
    // What has no finite value stays visible in the tape.
    if (std::isfinite(value)) return Number(value);
    return -1;
  }
  switch (op) {
    case TapeOp::kAdd:
      if (IsConst(a, 0)) return b;
      if (IsConst(b, 0)) return a;
      break;
    case TapeOp::kSub:
      if (IsConst(b, 0)) return a;
      if (a == b) return Int(0);
      // The opposite of an opposite.
      if (IsConst(a, 1) && static_cast<TapeOp>(tape_.ops[b]) == TapeOp::kSub &&
          IsConst(tape_.args[3 * b], 1)) {
        return tape_.args[3 * b + 1];
      }
      break;
    case TapeOp::kMul:
      if (IsConst(a, 0) || IsConst(b, 0)) return Int(0);
      if (IsConst(a, 1)) return b;
      if (IsConst(b, 1)) return a;
      break;
    case TapeOp::kDiv:
      if (IsConst(b, 1)) return a;
      break;
    case TapeOp::kMin:
    case TapeOp::kMax:
      if (a == b) return a;
      break;
    case TapeOp::kAnd:
      if (IsConst(a, 0) || IsConst(b, 0)) return Int(0);
      if (IsConst(a)) return b;
      if (IsConst(b) || a == b) return a;
      break;
    case TapeOp::kOr:
      if (IsConst(a, 0)) return b;
      if (IsConst(b, 0) || a == b) return a;
      if (IsConst(a) || IsConst(b)) return Int(1);
      break;
    case TapeOp::kSelect:
      if (IsConst(a)) return ConstValue(a) != 0 ? b : c;
      if (b == c) return b;
      break;
    case TapeOp::kMix:
      if (IsConst(a, 1)) return b;
      if (IsConst(a, 0)) return c;
      if (b == c) return b;
      break;
    default:
      break;
  }
  return -1;
}

TapeBuilder::Index TapeBuilder::Op(TapeOp op, Index a, Index b, Index c) {
  Index folded = Fold(op, a, b, c);
  if (folded >= 0) return folded;
  const bool commutes = FindTapeOp(static_cast<uint8_t>(op))->commutes;
  if (commutes && b < a) std::swap(a, b);
  return Intern(op, a, b, c, 0);
}

TapeData TapeBuilder::Finish() const {
  std::vector<bool> used(tape_.size(), false);
  for (int32_t root : tape_.roots) used[root] = true;
  for (int32_t i = tape_.size() - 1; i >= 0; --i) {
    if (!used[i]) continue;
    for (int k = 0; k < 3; ++k) {
      if (tape_.args[3 * i + k] >= 0) used[tape_.args[3 * i + k]] = true;
    }
  }
  std::vector<int32_t> place(tape_.size(), -1);
  TapeData out;
  out.vars = tape_.vars;
  for (int32_t i = 0; i < tape_.size(); ++i) {
    if (!used[i]) continue;
    place[i] = out.size();
    out.ops.push_back(tape_.ops[i]);
    out.payload.push_back(tape_.payload[i]);
    for (int k = 0; k < 3; ++k) {
      int32_t arg = tape_.args[3 * i + k];
      out.args.push_back(arg < 0 ? -1 : place[arg]);
    }
  }
  for (int32_t root : tape_.roots) out.roots.push_back(place[root]);
  return out;
}

TapeBuilder::Index ExprToTape::Convert(const PrimExpr& e) {
  auto it = memo_.find(e.get());
  if (it != memo_.end()) return it->second;
  TapeBuilder::Index out = ConvertUncached(e);
  memo_.emplace(e.get(), out);
  visited_.push_back(e);
  return out;
}

TapeBuilder::Index ExprToTape::ConvertUncached(const PrimExpr& e) {
  TVM_CHECK(e.dtype().is_scalar(), ValueError) << "tape: " << e << " is a vector";
  if (const auto* op = e.as<IntImmNode>()) return builder_->Int(op->value);
  if (const auto* op = e.as<FloatImmNode>()) return builder_->Number(op->value);
  if (const auto* op = e.as<SizeVarNode>()) {
    std::string name = op->name_hint;
    if (ranges_) {
      auto it = ranges_->find(name);
      if (it != ranges_->end()) return builder_->Var(it->second);
    }
    return builder_->Var({name, true, 1, std::numeric_limits<double>::infinity()});
  }
  if (const auto* op = e.as<VarNode>()) {
    // What is not a size has no range by itself.
    TapeVar var{op->name_hint, op->dtype.is_int(), -std::numeric_limits<double>::infinity(),
                std::numeric_limits<double>::infinity()};
    if (ranges_) {
      auto it = ranges_->find(var.name);
      if (it != ranges_->end()) var = it->second;
    }
    return builder_->Var(var);
  }
  auto binary = [&](TapeOp op, const PrimExpr& a, const PrimExpr& b) {
    TapeBuilder::Index left = Convert(a);
    return builder_->Op(op, left, Convert(b));
  };
#define TVM_TAPE_BINARY(Node, Code) \
  if (const auto* op = e.as<Node>()) return binary(TapeOp::Code, op->a, op->b);
  TVM_TAPE_BINARY(AddNode, kAdd)
  TVM_TAPE_BINARY(SubNode, kSub)
  TVM_TAPE_BINARY(MulNode, kMul)
  TVM_TAPE_BINARY(FloorDivNode, kFloorDiv)
  TVM_TAPE_BINARY(FloorModNode, kFloorMod)
  TVM_TAPE_BINARY(MinNode, kMin)
  TVM_TAPE_BINARY(MaxNode, kMax)
  TVM_TAPE_BINARY(LTNode, kLt)
  TVM_TAPE_BINARY(LENode, kLe)
  TVM_TAPE_BINARY(EQNode, kEq)
  TVM_TAPE_BINARY(NENode, kNe)
  TVM_TAPE_BINARY(AndNode, kAnd)
  TVM_TAPE_BINARY(OrNode, kOr)
#undef TVM_TAPE_BINARY
  if (const auto* op = e.as<GTNode>()) return binary(TapeOp::kLt, op->b, op->a);
  if (const auto* op = e.as<GENode>()) return binary(TapeOp::kLe, op->b, op->a);
  if (const auto* op = e.as<DivNode>(); op && op->dtype.is_float()) {
    return binary(TapeOp::kDiv, op->a, op->b);
  }
  if (const auto* op = e.as<NotNode>()) return builder_->Op(TapeOp::kNot, Convert(op->a));
  if (const auto* op = e.as<CastNode>()) {
    TapeBuilder::Index value = Convert(op->value);
    // Sizes are not negative, so truncation is floor.
    bool rounds = op->value.dtype().is_float() && !op->dtype.is_float();
    return rounds ? builder_->Op(TapeOp::kFloor, value) : value;
  }
  auto choose = [&](const PrimExpr& cond, const PrimExpr& t, const PrimExpr& f) {
    TapeBuilder::Index c = Convert(cond), x = Convert(t);
    return builder_->Op(TapeOp::kSelect, c, x, Convert(f));
  };
  if (const auto* op = e.as<SelectNode>()) {
    return choose(op->condition, op->true_value, op->false_value);
  }
  if (const auto* op = e.as<CallNode>()) {
    if (op->op.same_as(builtin::if_then_else())) {
      return choose(op->args[0], op->args[1], op->args[2]);
    }
    if (op->op.same_as(builtin::likely())) return Convert(op->args[0]);
    static const std::unordered_map<std::string, TapeOp> unary = {
        {"tir.log", TapeOp::kLog},  {"tir.exp", TapeOp::kExp},   {"tir.sqrt", TapeOp::kSqrt},
        {"tir.fabs", TapeOp::kAbs}, {"tir.ceil", TapeOp::kCeil}, {"tir.floor", TapeOp::kFloor},
    };
    if (const auto* callee = op->op.as<OpNode>()) {
      std::string name = callee->name;
      auto it = unary.find(name);
      if (it != unary.end()) return builder_->Op(it->second, Convert(op->args[0]));
      if (name == "tir.pow") return binary(TapeOp::kPow, op->args[0], op->args[1]);
    }
  }
  TVM_FATAL(ValueError) << "tape: no operation for " << e << " (" << e->GetTypeKey()
                        << "); tapes hold arithmetic, comparisons and choices over sizes";
  throw;  // unreachable
}

}  // namespace felix
}  // namespace tvm
