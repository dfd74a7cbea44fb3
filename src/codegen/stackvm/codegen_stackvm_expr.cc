/*!
 * \file codegen_stackvm_expr.cc
 * \brief Expressions of the stackvm generator, calls and memory apart.
 */
#include <tvm/expr/op.h>

#include <cstring>

#include "codegen/stackvm/codegen_stackvm.h"

namespace tvm {
namespace codegen {

using namespace tir;  // NOLINT(*)

int CodeGenStackVM::VisitExpr_(const VarNode* op) {
  auto it = vars_.find(op);
  TVM_CHECK(it != vars_.end(), ValueError)
      << "variable " << op->name_hint << " has no value in function " << function_->name
      << "; make it a parameter, or bind it by a loop or a let";
  return it->second;
}

int CodeGenStackVM::VisitExpr_(const IntImmNode* op) {
  return Constant(TypeOf(op->dtype), op->value);
}

int CodeGenStackVM::VisitExpr_(const FloatImmNode* op) {
  int64_t bits;
  std::memcpy(&bits, &op->value, sizeof(bits));
  return Constant(TypeOf(op->dtype), bits);
}

int CodeGenStackVM::VisitExpr_(const StringImmNode* op) {
  const Slot result = Allocate(DataType::Handle());
  Emit(Opcode::kString, DataType::Handle(), result).index = StringIndex(op->value);
  return result;
}

int CodeGenStackVM::CastTo(Slot value, DataType from, DataType to) {
  if (from == to) return value;
  const Slot result = Allocate(to);
  Emit(Opcode::kCast, to, result, value).type2 = TypeOf(from);
  return result;
}

int CodeGenStackVM::EvalAs(const PrimExpr& expr, DataType dtype) {
  return VisitExpr(cast(dtype, expr));
}

int CodeGenStackVM::Binary(Opcode op, const PrimExpr& a, const PrimExpr& b, DataType result_type) {
  const Slot result = Allocate(result_type);
  Temporaries scope(this);
  const Slot x = VisitExpr(a);
  const Slot y = VisitExpr(b);
  Emit(op, a.dtype(), result, x, y);
  return result;
}

int CodeGenStackVM::Unary(Opcode op, const PrimExpr& a, DataType result_type) {
  const Slot result = Allocate(result_type);
  Temporaries scope(this);
  const Slot x = VisitExpr(a);
  Emit(op, a.dtype(), result, x);
  return result;
}

int CodeGenStackVM::VisitExpr_(const CastNode* op) {
  if (op->dtype == op->value.dtype()) return VisitExpr(op->value);
  const Slot result = Allocate(op->dtype);
  Temporaries scope(this);
  const Slot value = VisitExpr(op->value);
  Emit(Opcode::kCast, op->dtype, result, value).type2 = TypeOf(op->value.dtype());
  return result;
}

#define TVM_STACKVM_BINARY(Name, Op)                     \
  int CodeGenStackVM::VisitExpr_(const Name##Node* op) { \
    return Binary(Opcode::Op, op->a, op->b, op->dtype);  \
  }
TVM_STACKVM_BINARY(Add, kAdd)
TVM_STACKVM_BINARY(Sub, kSub)
TVM_STACKVM_BINARY(Mul, kMul)
TVM_STACKVM_BINARY(Div, kDiv)
TVM_STACKVM_BINARY(Mod, kMod)
TVM_STACKVM_BINARY(FloorDiv, kFloorDiv)
TVM_STACKVM_BINARY(FloorMod, kFloorMod)
TVM_STACKVM_BINARY(EQ, kEQ)
TVM_STACKVM_BINARY(NE, kNE)
TVM_STACKVM_BINARY(LT, kLT)
TVM_STACKVM_BINARY(LE, kLE)
TVM_STACKVM_BINARY(Min, kMin)
TVM_STACKVM_BINARY(Max, kMax)
TVM_STACKVM_BINARY(And, kAnd)
TVM_STACKVM_BINARY(Or, kOr)
#undef TVM_STACKVM_BINARY

int CodeGenStackVM::VisitExpr_(const GTNode* op) {
  return Binary(Opcode::kLT, op->b, op->a, op->dtype);
}
int CodeGenStackVM::VisitExpr_(const GENode* op) {
  return Binary(Opcode::kLE, op->b, op->a, op->dtype);
}

int CodeGenStackVM::VisitExpr_(const NotNode* op) { return Unary(Opcode::kNot, op->a, op->dtype); }

int CodeGenStackVM::VisitExpr_(const SelectNode* op) {
  const Slot result = Allocate(op->dtype);
  Temporaries scope(this);
  const Slot condition = VisitExpr(op->condition);
  const Slot yes = VisitExpr(op->true_value);
  const Slot no = VisitExpr(op->false_value);
  const bool whole = op->condition.dtype().is_scalar() && op->dtype.is_vector();
  Emit(whole ? Opcode::kSelectScalar : Opcode::kSelect, op->dtype, result, condition, yes, no);
  return result;
}

int CodeGenStackVM::VisitExpr_(const LetNode* op) {
  // The value's register stays taken while the surrounding statement is evaluated.
  vars_[op->var.get()] = VisitExpr(op->value);
  const Slot result = VisitExpr(op->body);
  vars_.erase(op->var.get());
  return result;
}

int CodeGenStackVM::VisitExpr_(const RampNode* op) {
  const Slot result = Allocate(op->dtype);
  Temporaries scope(this);
  const Slot base = VisitExpr(op->base);
  const Slot stride = VisitExpr(op->stride);
  Emit(Opcode::kRamp, op->dtype, result, base, stride);
  return result;
}

int CodeGenStackVM::VisitExpr_(const BroadcastNode* op) {
  if (op->lanes == 1) return VisitExpr(op->value);
  const Slot result = Allocate(op->dtype);
  Temporaries scope(this);
  const Slot value = VisitExpr(op->value);
  Emit(Opcode::kBroadcast, op->dtype, result, value);
  return result;
}

int CodeGenStackVM::VisitExpr_(const ShuffleNode* op) {
  const Slot result = Allocate(op->dtype);
  Temporaries scope(this);
  std::vector<Slot> vectors;
  for (const PrimExpr& vector : op->vectors) vectors.push_back(VisitExpr(vector));
  int to = 0;
  for (const PrimExpr& index : op->indices) {
    const int64_t* constant = as_const_int(index);
    TVM_CHECK(constant != nullptr, ValueError)
        << "stackvm generator: shuffle of lane " << index << "; lane numbers must be constants";
    int64_t lane = *constant;
    size_t source = 0;
    while (source < vectors.size() && lane >= op->vectors[source].dtype().lanes()) {
      lane -= op->vectors[source++].dtype().lanes();
    }
    TVM_CHECK(source < vectors.size() && lane >= 0, ValueError)
        << "stackvm generator: shuffle picks lane " << *constant << ", which its vectors lack";
    Emit(Opcode::kCopyLane, op->dtype, result, vectors[source], to++, static_cast<int>(lane)).imm =
        op->vectors[source].dtype().lanes();
  }
  return result;
}

int CodeGenStackVM::VisitExprDefault_(const Object* op) {
  TVM_FATAL(ValueError) << "stackvm generator: " << op->GetTypeKey() << " in function "
                        << function_->name << " has no code; lower the function before building it";
}

}  // namespace codegen
}  // namespace tvm
