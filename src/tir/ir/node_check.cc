/*!
 * \file src/tir/ir/node_check.cc
 * \brief Nodes that are put together field by field pass through the checks of their constructors.
 */
#include <tvm/expr/expr.h>
#include <tvm/tir/block.h>
#include <tvm/tir/function.h>
#include <tvm/tir/stmt.h>

namespace tvm {
namespace tir {
namespace {

// The constructor has checked the operands; what it says of the type must be what the node says.
template <typename Node>
void ExpectType(const Node* node, const PrimExpr& rebuilt) {
  TVM_CHECK(node->dtype == rebuilt.dtype(), TypeError)
      << node->GetTypeKey() << ": its operands make it " << rebuilt.dtype() << ", it says "
      << node->dtype;
}

void ExpectDefined(const char* what, const ObjectRef& value) {
  TVM_CHECK(value.defined(), ValueError) << what << " is missing";
}

template <typename T>
void ExpectAllDefined(const char* what, const Array<T>& values) {
  for (const T& value : values) ExpectDefined(what, value);
}

// Negative lanes and widths that no machine has reach arithmetic on types otherwise.
void ExpectPlausible(const char* where, DataType dtype) {
  TVM_CHECK(dtype.lanes() >= 1 && dtype.bits() <= 64, TypeError)
      << where << ": cannot work with values of type " << dtype;
}

}  // namespace

#define TVM_TIR_CHECK_BINARY(Name) \
  TVM_REGISTER_NODE_CHECK(Name##Node, [](auto* op) { ExpectType(op, Name(op->a, op->b)); });
TVM_TIR_CHECK_BINARY(Add)
TVM_TIR_CHECK_BINARY(Sub)
TVM_TIR_CHECK_BINARY(Mul)
TVM_TIR_CHECK_BINARY(Div)
TVM_TIR_CHECK_BINARY(Mod)
TVM_TIR_CHECK_BINARY(FloorDiv)
TVM_TIR_CHECK_BINARY(FloorMod)
TVM_TIR_CHECK_BINARY(Min)
TVM_TIR_CHECK_BINARY(Max)
TVM_TIR_CHECK_BINARY(EQ)
TVM_TIR_CHECK_BINARY(NE)
TVM_TIR_CHECK_BINARY(LT)
TVM_TIR_CHECK_BINARY(LE)
TVM_TIR_CHECK_BINARY(GT)
TVM_TIR_CHECK_BINARY(GE)
TVM_TIR_CHECK_BINARY(And)
TVM_TIR_CHECK_BINARY(Or)
#undef TVM_TIR_CHECK_BINARY

TVM_REGISTER_NODE_CHECK(IntImmNode, [](const IntImmNode* op) { IntImm(op->dtype, op->value); });
TVM_REGISTER_NODE_CHECK(FloatImmNode,
                        [](const FloatImmNode* op) { FloatImm(op->dtype, op->value); });
TVM_REGISTER_NODE_CHECK(RangeNode,
                        [](const RangeNode* op) { Range::FromMinExtent(op->min, op->extent); });
TVM_REGISTER_NODE_CHECK(VarNode, [](const VarNode* op) { ExpectPlausible("tir.Var", op->dtype); });
TVM_REGISTER_NODE_CHECK(SizeVarNode,
                        [](const SizeVarNode* op) { SizeVar(op->name_hint, op->dtype, op->kind); });
TVM_REGISTER_NODE_CHECK(IterVarNode, [](const IterVarNode* op) {
  ExpectDefined("tir.IterVar: the variable", op->var);
});
TVM_REGISTER_NODE_CHECK(BufferNode, [](const BufferNode* op) {
  ExpectAllDefined("tir.Buffer: an extent", op->shape);
  ExpectAllDefined("tir.Buffer: a stride", op->strides);
  ExpectDefined("tir.Buffer: the element offset", op->elem_offset);
  ExpectPlausible("tir.Buffer", op->dtype);
  Buffer(op->data, op->dtype, op->shape, op->strides, op->elem_offset, op->name, op->data_alignment,
         op->offset_factor);
});

TVM_REGISTER_NODE_CHECK(CastNode, [](const CastNode* op) {
  ExpectPlausible("tir.Cast", op->dtype);
  Cast(op->dtype, op->value);
});
TVM_REGISTER_NODE_CHECK(NotNode, [](const NotNode* op) { ExpectType(op, Not(op->a)); });
TVM_REGISTER_NODE_CHECK(SelectNode, [](const SelectNode* op) {
  ExpectType(op, Select(op->condition, op->true_value, op->false_value));
});
TVM_REGISTER_NODE_CHECK(BufferLoadNode, [](const BufferLoadNode* op) {
  ExpectAllDefined("tir.BufferLoad: an index", op->indices);
  ExpectType(op, BufferLoad(op->buffer, op->indices));
});
TVM_REGISTER_NODE_CHECK(ProducerLoadNode, [](const ProducerLoadNode* op) {
  ExpectAllDefined("tir.ProducerLoad: an index", op->indices);
  ExpectType(op, ProducerLoad(op->producer, op->indices));
});
TVM_REGISTER_NODE_CHECK(RampNode, [](const RampNode* op) {
  ExpectType(op, Ramp(op->base, op->stride, op->lanes));
});
TVM_REGISTER_NODE_CHECK(BroadcastNode, [](const BroadcastNode* op) {
  ExpectType(op, Broadcast(op->value, op->lanes));
});
TVM_REGISTER_NODE_CHECK(LetNode, [](const LetNode* op) {
  ExpectType(op, Let(op->var, op->value, op->body));
});
TVM_REGISTER_NODE_CHECK(CallNode, [](const CallNode* op) {
  ExpectDefined("tir.Call: the operator", op->op);
  Call(op->dtype, op->op, op->args);
});
TVM_REGISTER_NODE_CHECK(ShuffleNode, [](const ShuffleNode* op) {
  ExpectAllDefined("tir.Shuffle: a vector", op->vectors);
  ExpectAllDefined("tir.Shuffle: an index", op->indices);
  ExpectType(op, Shuffle(op->vectors, op->indices));
});
TVM_REGISTER_NODE_CHECK(CommReducerNode, [](const CommReducerNode* op) {
  ExpectAllDefined("tir.CommReducer: a variable", op->lhs);
  ExpectAllDefined("tir.CommReducer: a variable", op->rhs);
  ExpectAllDefined("tir.CommReducer: a result", op->result);
  ExpectAllDefined("tir.CommReducer: an identity", op->identity_element);
  CommReducer(op->lhs, op->rhs, op->result, op->identity_element);
});
TVM_REGISTER_NODE_CHECK(ReduceNode, [](const ReduceNode* op) {
  ExpectAllDefined("tir.Reduce: a source", op->source);
  ExpectAllDefined("tir.Reduce: an initial value", op->init);
  ExpectDefined("tir.Reduce: the condition", op->condition);
  ExpectType(op,
             Reduce(op->combiner, op->source, op->axis, op->condition, op->value_index, op->init));
});

TVM_REGISTER_NODE_CHECK(LetStmtNode,
                        [](const LetStmtNode* op) { LetStmt(op->var, op->value, op->body); });
TVM_REGISTER_NODE_CHECK(AttrStmtNode, [](const AttrStmtNode* op) {
  ExpectDefined("tir.AttrStmt: the value", op->value);
  AttrStmt(op->node, op->attr_key, op->value, op->body);
});
TVM_REGISTER_NODE_CHECK(AssertStmtNode, [](const AssertStmtNode* op) {
  AssertStmt(op->condition, op->message, op->body);
});
TVM_REGISTER_NODE_CHECK(BufferStoreNode, [](const BufferStoreNode* op) {
  ExpectAllDefined("tir.BufferStore: an index", op->indices);
  BufferStore(op->buffer, op->value, op->indices);
});
TVM_REGISTER_NODE_CHECK(BufferRealizeNode, [](const BufferRealizeNode* op) {
  ExpectAllDefined("tir.BufferRealize: a bound", op->bounds);
  BufferRealize(op->buffer, op->bounds, op->condition, op->body);
});
TVM_REGISTER_NODE_CHECK(AllocateNode, [](const AllocateNode* op) {
  ExpectPlausible("tir.Allocate", op->dtype);
  Allocate(op->buffer_var, op->dtype, op->extents, op->condition, op->body, op->annotations);
});
TVM_REGISTER_NODE_CHECK(SeqStmtNode, [](const SeqStmtNode* op) { SeqStmt(op->seq); });
TVM_REGISTER_NODE_CHECK(IfThenElseNode, [](const IfThenElseNode* op) {
  IfThenElse(op->condition, op->then_case, op->else_case);
});
TVM_REGISTER_NODE_CHECK(EvaluateNode, [](const EvaluateNode* op) {
  ExpectDefined("tir.Evaluate: the value", op->value);
});
TVM_REGISTER_NODE_CHECK(ForNode, [](const ForNode* op) {
  TVM_CHECK(op->kind >= ForKind::kSerial && op->kind <= ForKind::kThreadBinding, ValueError)
      << "tir.For: there is no loop kind " << static_cast<int>(op->kind);
  For(op->loop_var, op->min, op->extent, op->kind, op->body, op->thread_binding, op->annotations);
});
TVM_REGISTER_NODE_CHECK(WhileNode, [](const WhileNode* op) { While(op->condition, op->body); });
TVM_REGISTER_NODE_CHECK(PrefetchNode, [](const PrefetchNode* op) {
  ExpectAllDefined("tir.Prefetch: a bound", op->bounds);
  Prefetch(op->buffer, op->bounds);
});
TVM_REGISTER_NODE_CHECK(BufferRegionNode, [](const BufferRegionNode* op) {
  ExpectAllDefined("tir.BufferRegion: a range", op->region);
  BufferRegion(op->buffer, op->region);
});
TVM_REGISTER_NODE_CHECK(MatchBufferRegionNode, [](const MatchBufferRegionNode* op) {
  MatchBufferRegion(op->buffer, op->source);
});
TVM_REGISTER_NODE_CHECK(BlockNode, [](const BlockNode* op) {
  ExpectAllDefined("tir.Block: a variable", op->iter_vars);
  ExpectAllDefined("tir.Block: a region read", op->reads);
  ExpectAllDefined("tir.Block: a region written", op->writes);
  ExpectAllDefined("tir.Block: a buffer", op->alloc_buffers);
  ExpectAllDefined("tir.Block: a view", op->match_buffers);
  ExpectDefined("tir.Block: the body", op->body);
});
TVM_REGISTER_NODE_CHECK(BlockRealizeNode, [](const BlockRealizeNode* op) {
  ExpectAllDefined("tir.BlockRealize: a value", op->iter_values);
  BlockRealize(op->iter_values, op->predicate, op->block);
});
TVM_REGISTER_NODE_CHECK(PrimFuncNode, [](const PrimFuncNode* op) {
  ExpectAllDefined("tir.PrimFunc: a parameter", op->params);
  ExpectDefined("tir.PrimFunc: the body", op->body);
  for (const auto& [var, buffer] : op->buffer_map) {
    ExpectDefined("tir.PrimFunc: a parameter of the buffer map", var);
    ExpectDefined("tir.PrimFunc: a buffer", buffer);
  }
});

}  // namespace tir
}  // namespace tvm
