/*!
 * \file src/expr/expr.cc
 * \brief What expressions demand of their operands, and the types that follow.
 */
#include <tvm/expr/builtin.h>
#include <tvm/expr/expr.h>
#include <tvm/expr/op.h>
#include <tvm/expr/substitute.h>
#include <tvm/runtime/registry.h>

#include "check_dtype.h"

namespace tvm {
namespace tir {

TVM_REGISTER_NODE(StringImmNode);
TVM_REGISTER_NODE(CastNode);
TVM_REGISTER_NODE(NotNode);
TVM_REGISTER_NODE(SelectNode);
TVM_REGISTER_NODE(BufferLoadNode);
TVM_REGISTER_NODE(ProducerLoadNode);
TVM_REGISTER_NODE(RampNode);
TVM_REGISTER_NODE(BroadcastNode);
TVM_REGISTER_NODE(LetNode);
TVM_REGISTER_NODE(CallNode);
TVM_REGISTER_NODE(ShuffleNode);
TVM_REGISTER_NODE(CommReducerNode);
TVM_REGISTER_NODE(ReduceNode);

namespace {

void CheckSameType(const char* name, const PrimExpr& a, const PrimExpr& b) {
  TVM_CHECK(a.dtype() == b.dtype(), TypeError)
      << name << ": operands must have one type, got " << a << " of " << a.dtype() << " and " << b
      << " of " << b.dtype() << "; cast one of them";
}

template <typename TNode>
void InitBinary(TNode* n) {
  CheckSameType(TNode::_type_key, n->a, n->b);
  n->dtype = n->a.dtype();
}

template <typename TNode>
void InitCompare(TNode* n) {
  CheckSameType(TNode::_type_key, n->a, n->b);
  n->dtype = DataType::Bool(n->a.dtype().lanes());
}

template <typename TNode>
void InitLogical(TNode* n) {
  InitBinary(n);
  TVM_CHECK(n->dtype.is_bool(), TypeError) << TNode::_type_key << ": operands must be bool, got "
                                           << n->a << " and " << n->b << " of " << n->dtype;
}

}  // namespace

#define TVM_TIR_DEFINE_BINARY(Name, InitAs) \
  TVM_REGISTER_NODE(Name##Node);            \
  void Name##Node::Init() { InitAs(this); }

TVM_TIR_DEFINE_BINARY(Add, InitBinary)
TVM_TIR_DEFINE_BINARY(Sub, InitBinary)
TVM_TIR_DEFINE_BINARY(Mul, InitBinary)
TVM_TIR_DEFINE_BINARY(Div, InitBinary)
TVM_TIR_DEFINE_BINARY(Mod, InitBinary)
TVM_TIR_DEFINE_BINARY(FloorDiv, InitBinary)
TVM_TIR_DEFINE_BINARY(FloorMod, InitBinary)
TVM_TIR_DEFINE_BINARY(Min, InitBinary)
TVM_TIR_DEFINE_BINARY(Max, InitBinary)
TVM_TIR_DEFINE_BINARY(EQ, InitCompare)
TVM_TIR_DEFINE_BINARY(NE, InitCompare)
TVM_TIR_DEFINE_BINARY(LT, InitCompare)
TVM_TIR_DEFINE_BINARY(LE, InitCompare)
TVM_TIR_DEFINE_BINARY(GT, InitCompare)
TVM_TIR_DEFINE_BINARY(GE, InitCompare)
TVM_TIR_DEFINE_BINARY(And, InitLogical)
TVM_TIR_DEFINE_BINARY(Or, InitLogical)

#undef TVM_TIR_DEFINE_BINARY

void StringImmNode::Init() { dtype = DataType::Handle(); }

void CastNode::Init() {
  TVM_CHECK(dtype.lanes() == value.dtype().lanes(), TypeError)
      << "tir.Cast: " << value << " has " << value.dtype().lanes() << " lanes, " << dtype << " has "
      << dtype.lanes();
  CheckPlausible("tir.Cast", dtype);
}

void NotNode::Init() {
  TVM_CHECK(a.dtype().is_bool(), TypeError) << "tir.Not: the operand must be bool, got " << a;
  dtype = a.dtype();
}

void SelectNode::Init() {
  CheckSameType("tir.Select", true_value, false_value);
  TVM_CHECK(condition.dtype().is_bool(), TypeError)
      << "tir.Select: the condition must be bool, got " << condition;
  int lanes = condition.dtype().lanes();
  TVM_CHECK(lanes == 1 || lanes == true_value.dtype().lanes(), TypeError)
      << "tir.Select: the condition " << condition << " has " << lanes << " lanes, the values have "
      << true_value.dtype().lanes();
  dtype = true_value.dtype();
}

void BufferLoadNode::Init() {
  TVM_CHECK(buffer->shape.size() == indices.size(), ValueError)
      << "tir.BufferLoad: buffer " << buffer->name << " has " << buffer->shape.size()
      << " axes but got " << indices.size() << " indices";
  int lanes = buffer->dtype.lanes();
  if (!indices.empty()) lanes *= indices.back().dtype().lanes();
  dtype = buffer->dtype.with_lanes(lanes);
}

void ProducerLoadNode::Init() {
  TVM_CHECK(producer->GetShape().size() == indices.size(), ValueError)
      << "tir.ProducerLoad: " << producer->GetNameHint() << " has " << producer->GetShape().size()
      << " axes but got " << indices.size() << " indices";
  dtype = producer->GetDataType();
}

namespace {
void CheckLanes(const char* name, int lanes) {
  constexpr int kMost = 32767;
  TVM_CHECK((lanes > 1 && lanes <= kMost) || (lanes < 0 && lanes >= -kMost), ValueError)
      << name << ": lanes must be from 2 to " << kMost
      << ", or minus the factor of a scalable vector, got " << lanes;
}
}  // namespace

void RampNode::Init() {
  CheckSameType("tir.Ramp", base, stride);
  TVM_CHECK(base.dtype().is_scalar(), TypeError)
      << "tir.Ramp: base must be a scalar, got " << base << " of " << base.dtype();
  CheckLanes("tir.Ramp", lanes);
  dtype = base.dtype().with_lanes(lanes);
}

void BroadcastNode::Init() {
  TVM_CHECK(value.dtype().is_scalar(), TypeError)
      << "tir.Broadcast: the value must be a scalar, got " << value;
  CheckLanes("tir.Broadcast", lanes);
  dtype = value.dtype().with_lanes(lanes);
}

void LetNode::Init() {
  CheckSameType("tir.Let", var, value);
  dtype = body.dtype();
}

void ShuffleNode::Init() {
  TVM_CHECK(!vectors.empty() && !indices.empty(), ValueError)
      << "tir.Shuffle: needs at least one vector and one index";
  DataType element = vectors[0].dtype().element_of();
  int64_t total = 0;
  for (const PrimExpr& vector : vectors) {
    TVM_CHECK(vector.dtype().element_of() == element, TypeError)
        << "tir.Shuffle: all vectors must hold " << element << ", got " << vector << " of "
        << vector.dtype();
    total += vector.dtype().lanes();
  }
  for (const PrimExpr& index : indices) {
    const int64_t* value = as_const_int(index);
    TVM_CHECK(value != nullptr && *value >= 0 && *value < total, ValueError)
        << "tir.Shuffle: indices must be constants in [0, " << total << "), got " << index;
  }
  dtype = element.with_lanes(static_cast<int>(indices.size()));
}

PrimExpr Shuffle::Concat(Array<PrimExpr> vectors) {
  if (vectors.size() == 1) return vectors[0];
  Array<PrimExpr> indices;
  int next = 0;
  for (const PrimExpr& vector : vectors) {
    for (int lane = 0; lane < vector.dtype().lanes(); ++lane) {
      indices.push_back(IntImm(DataType::Int(32), next++));
    }
  }
  return Shuffle(std::move(vectors), std::move(indices));
}

void CommReducerNode::Init() {
  size_t size = result.size();
  TVM_CHECK(size > 0 && lhs.size() == size && rhs.size() == size && identity_element.size() == size,
            ValueError)
      << "tir.CommReducer: lhs, rhs, result and identity must have one entry a value, got "
      << lhs.size() << ", " << rhs.size() << ", " << size << " and " << identity_element.size();
}

Array<PrimExpr> CommReducerNode::operator()(Array<PrimExpr> a, Array<PrimExpr> b) const {
  ICHECK_EQ(a.size(), lhs.size());
  ICHECK_EQ(b.size(), rhs.size());
  std::unordered_map<const VarNode*, PrimExpr> values;
  for (size_t i = 0; i < a.size(); ++i) {
    values[lhs[i].get()] = a[i];
    values[rhs[i].get()] = b[i];
  }
  Array<PrimExpr> combined;
  for (const PrimExpr& value : result) combined.push_back(Substitute(value, values));
  return combined;
}
TVM_REGISTER_GLOBAL("tir.CommReducerCombine")
    .set_body_typed([](CommReducer reducer, Array<PrimExpr> a, Array<PrimExpr> b) {
      return (*reducer.get())(a, b);
    });

void ReduceNode::Init() {
  TVM_CHECK(value_index >= 0 && static_cast<size_t>(value_index) < source.size(), ValueError)
      << "tir.Reduce: value_index " << value_index << " of " << source.size() << " sources";
  TVM_CHECK(source.size() == combiner->result.size(), ValueError)
      << "tir.Reduce: the combiner takes " << combiner->result.size() << " values, got "
      << source.size() << " sources";
  for (const IterVar& iv : axis) {
    TVM_CHECK(iv->iter_type == kCommReduce, ValueError)
        << "tir.Reduce: axes must come from reduce_axis, got " << iv;
  }
  TVM_CHECK(init.empty() || init.size() == source.size(), ValueError)
      << "tir.Reduce: init needs " << source.size() << " values, got " << init.size();
  if (!condition.defined()) condition = const_true();
  dtype = source[value_index].dtype();
}

}  // namespace tir
}  // namespace tvm
