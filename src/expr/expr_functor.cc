/*!
 * \file src/expr/expr_functor.cc
 * \brief Default traversal and rebuilding of expressions.
 */
#include <tvm/expr/expr_functor.h>

namespace tvm {
namespace tir {

void detail::SetVisit(std::vector<AnyVisit>* table, uint32_t type_index, AnyVisit visit) {
  if (table->size() <= type_index) table->resize(type_index + 1, nullptr);
  (*table)[type_index] = visit;
}

template class ExprFunctor<void(const PrimExpr&)>;
template class ExprFunctor<PrimExpr(const PrimExpr&)>;

void ExprVisitor::VisitExpr_(const VarNode*) {}
void ExprVisitor::VisitExpr_(const SizeVarNode* op) {
  this->VisitExpr_(static_cast<const VarNode*>(op));
}
void ExprVisitor::VisitExpr_(const IntImmNode*) {}
void ExprVisitor::VisitExpr_(const FloatImmNode*) {}
void ExprVisitor::VisitExpr_(const StringImmNode*) {}

void ExprVisitor::VisitExpr_(const BufferLoadNode* op) {
  for (const PrimExpr& index : op->indices) VisitExpr(index);
}
void ExprVisitor::VisitExpr_(const ProducerLoadNode* op) {
  for (const PrimExpr& index : op->indices) VisitExpr(index);
}
void ExprVisitor::VisitExpr_(const LetNode* op) {
  VisitExpr(op->value);
  VisitExpr(op->body);
}
void ExprVisitor::VisitExpr_(const CallNode* op) {
  for (const PrimExpr& arg : op->args) VisitExpr(arg);
}
void ExprVisitor::VisitExpr_(const ReduceNode* op) {
  for (const IterVar& iv : op->axis) {
    if (!iv->dom.defined()) continue;
    VisitExpr(iv->dom->min);
    VisitExpr(iv->dom->extent);
  }
  for (const PrimExpr& value : op->source) VisitExpr(value);
  for (const PrimExpr& value : op->init) VisitExpr(value);
  VisitExpr(op->condition);
}
void ExprVisitor::VisitExpr_(const CastNode* op) { VisitExpr(op->value); }
void ExprVisitor::VisitExpr_(const NotNode* op) { VisitExpr(op->a); }
void ExprVisitor::VisitExpr_(const SelectNode* op) {
  VisitExpr(op->condition);
  VisitExpr(op->true_value);
  VisitExpr(op->false_value);
}
void ExprVisitor::VisitExpr_(const RampNode* op) {
  VisitExpr(op->base);
  VisitExpr(op->stride);
}
void ExprVisitor::VisitExpr_(const BroadcastNode* op) { VisitExpr(op->value); }
void ExprVisitor::VisitExpr_(const ShuffleNode* op) {
  for (const PrimExpr& vector : op->vectors) VisitExpr(vector);
  for (const PrimExpr& index : op->indices) VisitExpr(index);
}

PrimExpr ExprMutator::VisitExpr(const PrimExpr& e) {
  PrimExpr made = ExprFunctor::VisitExpr(e);
  if (!e->span.defined() || made->span.defined()) return made;
  // Variables and constants may stand in many places.
  const bool shared = made->IsInstance<VarNode>() || made->IsInstance<IntImmNode>() ||
                      made->IsInstance<FloatImmNode>() || made->IsInstance<StringImmNode>();
  if (!shared) made->span = e->span;
  return made;
}
PrimExpr ExprMutator::VisitExpr_(const VarNode* op) { return GetRef<PrimExpr>(op); }
PrimExpr ExprMutator::VisitExpr_(const SizeVarNode* op) {
  return this->VisitExpr_(static_cast<const VarNode*>(op));
}
PrimExpr ExprMutator::VisitExpr_(const IntImmNode* op) { return GetRef<PrimExpr>(op); }
PrimExpr ExprMutator::VisitExpr_(const FloatImmNode* op) { return GetRef<PrimExpr>(op); }
PrimExpr ExprMutator::VisitExpr_(const StringImmNode* op) { return GetRef<PrimExpr>(op); }

PrimExpr ExprMutator::VisitExpr_(const BufferLoadNode* op) {
  Array<PrimExpr> indices = op->indices.Map([this](const PrimExpr& e) { return VisitExpr(e); });
  if (indices.same_as(op->indices)) return GetRef<PrimExpr>(op);
  return BufferLoad(op->buffer, indices);
}
PrimExpr ExprMutator::VisitExpr_(const ProducerLoadNode* op) {
  Array<PrimExpr> indices = op->indices.Map([this](const PrimExpr& e) { return VisitExpr(e); });
  if (indices.same_as(op->indices)) return GetRef<PrimExpr>(op);
  return ProducerLoad(op->producer, indices);
}
PrimExpr ExprMutator::VisitExpr_(const LetNode* op) {
  PrimExpr value = VisitExpr(op->value);
  PrimExpr body = VisitExpr(op->body);
  if (value.same_as(op->value) && body.same_as(op->body)) return GetRef<PrimExpr>(op);
  return Let(op->var, value, body);
}
PrimExpr ExprMutator::VisitExpr_(const CallNode* op) {
  Array<PrimExpr> args = op->args.Map([this](const PrimExpr& e) { return VisitExpr(e); });
  if (args.same_as(op->args)) return GetRef<PrimExpr>(op);
  return Call(op->dtype, op->op, args);
}
PrimExpr ExprMutator::VisitExpr_(const ReduceNode* op) {
  Array<IterVar> axis = op->axis.Map([this](const IterVar& iv) {
    if (!iv->dom.defined()) return iv;
    PrimExpr min = VisitExpr(iv->dom->min);
    PrimExpr extent = VisitExpr(iv->dom->extent);
    if (min.same_as(iv->dom->min) && extent.same_as(iv->dom->extent)) return iv;
    return IterVar(Range::FromMinExtent(min, extent), iv->var, iv->iter_type, iv->thread_tag);
  });
  auto visit = [this](const PrimExpr& e) { return VisitExpr(e); };
  Array<PrimExpr> source = op->source.Map(visit);
  Array<PrimExpr> init = op->init.Map(visit);
  PrimExpr condition = VisitExpr(op->condition);
  if (axis.same_as(op->axis) && source.same_as(op->source) && init.same_as(op->init) &&
      condition.same_as(op->condition)) {
    return GetRef<PrimExpr>(op);
  }
  return Reduce(op->combiner, source, axis, condition, op->value_index, init);
}
PrimExpr ExprMutator::VisitExpr_(const CastNode* op) {
  PrimExpr value = VisitExpr(op->value);
  if (value.same_as(op->value)) return GetRef<PrimExpr>(op);
  return Cast(op->dtype, value);
}
PrimExpr ExprMutator::VisitExpr_(const NotNode* op) {
  PrimExpr a = VisitExpr(op->a);
  if (a.same_as(op->a)) return GetRef<PrimExpr>(op);
  return Not(a);
}
PrimExpr ExprMutator::VisitExpr_(const SelectNode* op) {
  PrimExpr condition = VisitExpr(op->condition);
  PrimExpr true_value = VisitExpr(op->true_value);
  PrimExpr false_value = VisitExpr(op->false_value);
  if (condition.same_as(op->condition) && true_value.same_as(op->true_value) &&
      false_value.same_as(op->false_value)) {
    return GetRef<PrimExpr>(op);
  }
  return Select(condition, true_value, false_value);
}
PrimExpr ExprMutator::VisitExpr_(const RampNode* op) {
  PrimExpr base = VisitExpr(op->base);
  PrimExpr stride = VisitExpr(op->stride);
  if (base.same_as(op->base) && stride.same_as(op->stride)) return GetRef<PrimExpr>(op);
  return Ramp(base, stride, op->lanes);
}
PrimExpr ExprMutator::VisitExpr_(const BroadcastNode* op) {
  PrimExpr value = VisitExpr(op->value);
  if (value.same_as(op->value)) return GetRef<PrimExpr>(op);
  return Broadcast(value, op->lanes);
}
PrimExpr ExprMutator::VisitExpr_(const ShuffleNode* op) {
  auto visit = [this](const PrimExpr& e) { return VisitExpr(e); };
  Array<PrimExpr> vectors = op->vectors.Map(visit);
  Array<PrimExpr> indices = op->indices.Map(visit);
  if (vectors.same_as(op->vectors) && indices.same_as(op->indices)) return GetRef<PrimExpr>(op);
  return Shuffle(vectors, indices);
}

#define TVM_TIR_DEFINE_VISIT_BINARY(Name)                                  \
  void ExprVisitor::VisitExpr_(const Name##Node* op) {                     \
    VisitExpr(op->a);                                                      \
    VisitExpr(op->b);                                                      \
  }                                                                        \
  PrimExpr ExprMutator::VisitExpr_(const Name##Node* op) {                 \
    PrimExpr a = VisitExpr(op->a);                                         \
    PrimExpr b = VisitExpr(op->b);                                         \
    if (a.same_as(op->a) && b.same_as(op->b)) return GetRef<PrimExpr>(op); \
    return Name(a, b);                                                     \
  }
TVM_TIR_DEFINE_VISIT_BINARY(Add)
TVM_TIR_DEFINE_VISIT_BINARY(Sub)
TVM_TIR_DEFINE_VISIT_BINARY(Mul)
TVM_TIR_DEFINE_VISIT_BINARY(Div)
TVM_TIR_DEFINE_VISIT_BINARY(Mod)
TVM_TIR_DEFINE_VISIT_BINARY(FloorDiv)
TVM_TIR_DEFINE_VISIT_BINARY(FloorMod)
TVM_TIR_DEFINE_VISIT_BINARY(Min)
TVM_TIR_DEFINE_VISIT_BINARY(Max)
TVM_TIR_DEFINE_VISIT_BINARY(EQ)
TVM_TIR_DEFINE_VISIT_BINARY(NE)
TVM_TIR_DEFINE_VISIT_BINARY(LT)
TVM_TIR_DEFINE_VISIT_BINARY(LE)
TVM_TIR_DEFINE_VISIT_BINARY(GT)
TVM_TIR_DEFINE_VISIT_BINARY(GE)
TVM_TIR_DEFINE_VISIT_BINARY(And)
TVM_TIR_DEFINE_VISIT_BINARY(Or)
#undef TVM_TIR_DEFINE_VISIT_BINARY

}  // namespace tir
}  // namespace tvm
