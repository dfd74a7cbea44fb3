/*!
 * \file src/expr/expr.cc
 * \brief Constructors of expressions, which check operand types.
 */
#include <tvm/expr/builtin.h>
#include <tvm/expr/expr.h>
#include <tvm/expr/op.h>
#include <tvm/expr/substitute.h>
#include <tvm/runtime/registry.h>

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
  TVM_CHECK(a.defined() && b.defined(), ValueError) << name << ": an operand is undefined";
  TVM_CHECK(a.dtype() == b.dtype(), TypeError)
      << name << ": operands must have one type, got " << a << " of " << a.dtype() << " and " << b
      << " of " << b.dtype() << "; cast one of them";
}

template <typename TNode>
ObjectPtr<TNode> MakeBinary(const char* name, PrimExpr a, PrimExpr b) {
  CheckSameType(name, a, b);
  auto n = make_object<TNode>();
  n->dtype = a.dtype();
  n->a = std::move(a);
  n->b = std::move(b);
  return n;
}

template <typename TNode>
ObjectPtr<TNode> MakeCompare(const char* name, PrimExpr a, PrimExpr b) {
  auto n = MakeBinary<TNode>(name, std::move(a), std::move(b));
  n->dtype = DataType::Bool(n->a.dtype().lanes());
  return n;
}

template <typename TNode>
ObjectPtr<TNode> MakeLogical(const char* name, PrimExpr a, PrimExpr b) {
  CheckSameType(name, a, b);
  TVM_CHECK(a.dtype().is_bool(), TypeError)
      << name << ": operands must be bool, got " << a << " and " << b << " of " << a.dtype();
  return MakeBinary<TNode>(name, std::move(a), std::move(b));
}

}  // namespace

#define TVM_TIR_DEFINE_BINARY(Name, Make)                                       \
  TVM_REGISTER_NODE(Name##Node);                                                \
  Name::Name(PrimExpr a, PrimExpr b) {                                          \
    data_ = Make<Name##Node>("tir." #Name, std::move(a), std::move(b));         \
  }                                                                             \
  TVM_REGISTER_GLOBAL("tir." #Name).set_body_typed([](PrimExpr a, PrimExpr b) { \
    return Name(a, b);                                                          \
  });

TVM_TIR_DEFINE_BINARY(Add, MakeBinary)
TVM_TIR_DEFINE_BINARY(Sub, MakeBinary)
TVM_TIR_DEFINE_BINARY(Mul, MakeBinary)
TVM_TIR_DEFINE_BINARY(Div, MakeBinary)
TVM_TIR_DEFINE_BINARY(Mod, MakeBinary)
TVM_TIR_DEFINE_BINARY(FloorDiv, MakeBinary)
TVM_TIR_DEFINE_BINARY(FloorMod, MakeBinary)
TVM_TIR_DEFINE_BINARY(Min, MakeBinary)
TVM_TIR_DEFINE_BINARY(Max, MakeBinary)
TVM_TIR_DEFINE_BINARY(EQ, MakeCompare)
TVM_TIR_DEFINE_BINARY(NE, MakeCompare)
TVM_TIR_DEFINE_BINARY(LT, MakeCompare)
TVM_TIR_DEFINE_BINARY(LE, MakeCompare)
TVM_TIR_DEFINE_BINARY(GT, MakeCompare)
TVM_TIR_DEFINE_BINARY(GE, MakeCompare)
TVM_TIR_DEFINE_BINARY(And, MakeLogical)
TVM_TIR_DEFINE_BINARY(Or, MakeLogical)

#undef TVM_TIR_DEFINE_BINARY

StringImm::StringImm(String value) {
  auto n = make_object<StringImmNode>();
  n->dtype = DataType::Handle();
  n->value = std::move(value);
  data_ = std::move(n);
}
TVM_REGISTER_GLOBAL("tir.StringImm").set_body_typed([](String value) { return StringImm(value); });

Cast::Cast(DataType dtype, PrimExpr value) {
  TVM_CHECK(value.defined(), ValueError) << "tir.Cast: the value is undefined";
  TVM_CHECK(dtype.lanes() == value.dtype().lanes(), TypeError)
      << "tir.Cast: " << value << " has " << value.dtype().lanes() << " lanes, " << dtype << " has "
      << dtype.lanes();
  auto n = make_object<CastNode>();
  n->dtype = dtype;
  n->value = std::move(value);
  data_ = std::move(n);
}
TVM_REGISTER_GLOBAL("tir.Cast").set_body_typed([](DataType dtype, PrimExpr value) {
  return Cast(dtype, value);
});

Not::Not(PrimExpr a) {
  TVM_CHECK(a.defined() && a.dtype().is_bool(), TypeError)
      << "tir.Not: the operand must be bool, got " << a;
  auto n = make_object<NotNode>();
  n->dtype = a.dtype();
  n->a = std::move(a);
  data_ = std::move(n);
}
TVM_REGISTER_GLOBAL("tir.Not").set_body_typed([](PrimExpr a) { return Not(a); });

Select::Select(PrimExpr condition, PrimExpr true_value, PrimExpr false_value) {
  CheckSameType("tir.Select", true_value, false_value);
  TVM_CHECK(condition.defined() && condition.dtype().is_bool(), TypeError)
      << "tir.Select: the condition must be bool, got " << condition;
  int lanes = condition.dtype().lanes();
  TVM_CHECK(lanes == 1 || lanes == true_value.dtype().lanes(), TypeError)
      << "tir.Select: the condition " << condition << " has " << lanes << " lanes, the values have "
      << true_value.dtype().lanes();
  auto n = make_object<SelectNode>();
  n->dtype = true_value.dtype();
  n->condition = std::move(condition);
  n->true_value = std::move(true_value);
  n->false_value = std::move(false_value);
  data_ = std::move(n);
}
TVM_REGISTER_GLOBAL("tir.Select").set_body_typed([](PrimExpr c, PrimExpr t, PrimExpr f) {
  return Select(c, t, f);
});

BufferLoad::BufferLoad(Buffer buffer, Array<PrimExpr> indices) {
  TVM_CHECK(buffer->shape.size() == indices.size(), ValueError)
      << "tir.BufferLoad: buffer " << buffer->name << " has " << buffer->shape.size()
      << " axes but got " << indices.size() << " indices";
  int lanes = buffer->dtype.lanes();
  if (!indices.empty()) lanes *= indices.back().dtype().lanes();
  auto n = make_object<BufferLoadNode>();
  n->dtype = buffer->dtype.with_lanes(lanes);
  n->buffer = std::move(buffer);
  n->indices = std::move(indices);
  data_ = std::move(n);
}
TVM_REGISTER_GLOBAL("tir.BufferLoad").set_body_typed([](Buffer buffer, Array<PrimExpr> indices) {
  return BufferLoad(buffer, indices);
});

ProducerLoad::ProducerLoad(DataProducer producer, Array<PrimExpr> indices) {
  TVM_CHECK(producer->GetShape().size() == indices.size(), ValueError)
      << "tir.ProducerLoad: " << producer->GetNameHint() << " has " << producer->GetShape().size()
      << " axes but got " << indices.size() << " indices";
  auto n = make_object<ProducerLoadNode>();
  n->dtype = producer->GetDataType();
  n->producer = std::move(producer);
  n->indices = std::move(indices);
  data_ = std::move(n);
}
TVM_REGISTER_GLOBAL("tir.ProducerLoad")
    .set_body_typed([](DataProducer producer, Array<PrimExpr> indices) {
      return ProducerLoad(producer, indices);
    });

Ramp::Ramp(PrimExpr base, PrimExpr stride, int lanes) {
  CheckSameType("tir.Ramp", base, stride);
  TVM_CHECK(base.dtype().is_scalar(), TypeError)
      << "tir.Ramp: base must be a scalar, got " << base << " of " << base.dtype();
  TVM_CHECK(lanes > 1, ValueError) << "tir.Ramp: lanes must be > 1, got " << lanes;
  auto n = make_object<RampNode>();
  n->dtype = base.dtype().with_lanes(lanes);
  n->base = std::move(base);
  n->stride = std::move(stride);
  n->lanes = lanes;
  data_ = std::move(n);
}
TVM_REGISTER_GLOBAL("tir.Ramp").set_body_typed([](PrimExpr base, PrimExpr stride, int lanes) {
  return Ramp(base, stride, lanes);
});

Broadcast::Broadcast(PrimExpr value, int lanes) {
  TVM_CHECK(value.defined() && value.dtype().is_scalar(), TypeError)
      << "tir.Broadcast: the value must be a scalar, got " << value;
  TVM_CHECK(lanes > 1, ValueError) << "tir.Broadcast: lanes must be > 1, got " << lanes;
  auto n = make_object<BroadcastNode>();
  n->dtype = value.dtype().with_lanes(lanes);
  n->value = std::move(value);
  n->lanes = lanes;
  data_ = std::move(n);
}
TVM_REGISTER_GLOBAL("tir.Broadcast").set_body_typed([](PrimExpr value, int lanes) {
  return Broadcast(value, lanes);
});

Let::Let(Var var, PrimExpr value, PrimExpr body) {
  CheckSameType("tir.Let", var, value);
  auto n = make_object<LetNode>();
  n->dtype = body.dtype();
  n->var = std::move(var);
  n->value = std::move(value);
  n->body = std::move(body);
  data_ = std::move(n);
}
TVM_REGISTER_GLOBAL("tir.Let").set_body_typed([](Var var, PrimExpr value, PrimExpr body) {
  return Let(var, value, body);
});

Call::Call(DataType dtype, RelayExpr op, Array<PrimExpr> args) {
  for (const PrimExpr& arg : args) {
    TVM_CHECK(arg.defined(), ValueError) << "tir.Call(" << op << "): an argument is undefined";
  }
  auto n = make_object<CallNode>();
  n->dtype = dtype;
  n->op = std::move(op);
  n->args = std::move(args);
  data_ = std::move(n);
}
TVM_REGISTER_GLOBAL("tir.Call")
    .set_body_typed([](DataType dtype, RelayExpr op, Array<PrimExpr> args) {
      return Call(dtype, op, args);
    });

Shuffle::Shuffle(Array<PrimExpr> vectors, Array<PrimExpr> indices) {
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
  auto n = make_object<ShuffleNode>();
  n->dtype = element.with_lanes(static_cast<int>(indices.size()));
  n->vectors = std::move(vectors);
  n->indices = std::move(indices);
  data_ = std::move(n);
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

PrimExpr Shuffle::ExtractElement(PrimExpr vector, int index) {
  return Shuffle({std::move(vector)}, {IntImm(DataType::Int(32), index)});
}
TVM_REGISTER_GLOBAL("tir.Shuffle")
    .set_body_typed([](Array<PrimExpr> vectors, Array<PrimExpr> indices) {
      return Shuffle(vectors, indices);
    });

CommReducer::CommReducer(Array<Var> lhs, Array<Var> rhs, Array<PrimExpr> result,
                         Array<PrimExpr> identity_element) {
  size_t size = result.size();
  TVM_CHECK(size > 0 && lhs.size() == size && rhs.size() == size && identity_element.size() == size,
            ValueError)
      << "tir.CommReducer: lhs, rhs, result and identity must have one entry a value, got "
      << lhs.size() << ", " << rhs.size() << ", " << size << " and " << identity_element.size();
  auto n = make_object<CommReducerNode>();
  n->lhs = std::move(lhs);
  n->rhs = std::move(rhs);
  n->result = std::move(result);
  n->identity_element = std::move(identity_element);
  data_ = std::move(n);
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
TVM_REGISTER_GLOBAL("tir.CommReducer")
    .set_body_typed([](Array<Var> lhs, Array<Var> rhs, Array<PrimExpr> result,
                       Array<PrimExpr> identity) {
      return CommReducer(lhs, rhs, result, identity);
    });
TVM_REGISTER_GLOBAL("tir.CommReducerCombine")
    .set_body_typed([](CommReducer reducer, Array<PrimExpr> a, Array<PrimExpr> b) {
      return (*reducer.get())(a, b);
    });

Reduce::Reduce(CommReducer combiner, Array<PrimExpr> source, Array<IterVar> axis,
               PrimExpr condition, int value_index, Array<PrimExpr> init) {
  TVM_CHECK(value_index >= 0 && static_cast<size_t>(value_index) < source.size(), ValueError)
      << "tir.Reduce: value_index " << value_index << " of " << source.size() << " sources";
  TVM_CHECK(source.size() == combiner->result.size(), ValueError)
      << "tir.Reduce: the combiner takes " << combiner->result.size() << " values, got "
      << source.size() << " sources";
  for (const IterVar& iv : axis) {
    TVM_CHECK(iv.defined() && iv->iter_type == kCommReduce, ValueError)
        << "tir.Reduce: axes must come from reduce_axis, got " << iv;
  }
  TVM_CHECK(init.empty() || init.size() == source.size(), ValueError)
      << "tir.Reduce: init needs " << source.size() << " values, got " << init.size();
  auto n = make_object<ReduceNode>();
  n->dtype = source[value_index].dtype();
  n->combiner = std::move(combiner);
  n->source = std::move(source);
  n->init = std::move(init);
  n->axis = std::move(axis);
  n->condition = condition.defined() ? std::move(condition) : const_true();
  n->value_index = value_index;
  data_ = std::move(n);
}
TVM_REGISTER_GLOBAL("tir.Reduce")
    .set_body_typed([](CommReducer combiner, Array<PrimExpr> source, Array<IterVar> axis,
                       PrimExpr condition, int value_index, Array<PrimExpr> init) {
      return Reduce(combiner, source, axis, condition, value_index, init);
    });

}  // namespace tir
}  // namespace tvm
