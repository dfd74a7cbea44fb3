/*!
 * \file src/tir/ir/stmt.cc
 * \brief What statements demand of their parts.
 */
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/stmt.h>

#include "expr/check_dtype.h"

namespace tvm {
namespace tir {

TVM_REGISTER_NODE(StmtNode);
TVM_REGISTER_NODE(LetStmtNode);
TVM_REGISTER_NODE(AttrStmtNode);
TVM_REGISTER_NODE(AssertStmtNode);
TVM_REGISTER_NODE(BufferStoreNode);
TVM_REGISTER_NODE(BufferRealizeNode);
TVM_REGISTER_NODE(ProducerStoreNode);
TVM_REGISTER_NODE(ProducerRealizeNode);
TVM_REGISTER_NODE(AllocateNode);
TVM_REGISTER_NODE(AllocateConstNode);
TVM_REGISTER_NODE(DeclBufferNode);
TVM_REGISTER_NODE(SeqStmtNode);
TVM_REGISTER_NODE(IfThenElseNode);
TVM_REGISTER_NODE(EvaluateNode);
TVM_REGISTER_NODE(ForNode);
TVM_REGISTER_NODE(WhileNode);
TVM_REGISTER_NODE(PrefetchNode);

namespace {
void CheckCondition(const char* name, const PrimExpr& condition) {
  TVM_CHECK(condition.dtype().is_bool() && condition.dtype().is_scalar(), TypeError)
      << name << ": the condition must be a scalar bool, got " << condition;
}
}  // namespace

void LetStmtNode::Init() {
  TVM_CHECK(var->dtype == value.dtype(), TypeError)
      << "tir.LetStmt: " << var << " is " << var->dtype << " but its value " << value << " is "
      << value.dtype();
}

void AssertStmtNode::Init() {
  CheckCondition("tir.AssertStmt", condition);
  TVM_CHECK(message->IsInstance<StringImmNode>() || message->IsInstance<CallNode>(), TypeError)
      << "tir.AssertStmt: the message must be a StringImm or an error text, got " << message;
}

void BufferStoreNode::Init() {
  TVM_CHECK(buffer->shape.size() == indices.size(), ValueError)
      << "tir.BufferStore: buffer " << buffer->name << " has " << buffer->shape.size()
      << " axes but got " << indices.size() << " indices";
  int lanes = buffer->dtype.lanes();
  if (!indices.empty()) lanes *= indices.back().dtype().lanes();
  DataType expected = buffer->dtype.with_lanes(lanes);
  TVM_CHECK(value.dtype() == expected, TypeError)
      << "tir.BufferStore: " << buffer->name << indices << " takes " << expected << ", got "
      << value << " of " << value.dtype();
}

void BufferRealizeNode::Init() {
  CheckCondition("tir.BufferRealize", condition);
  TVM_CHECK(buffer->shape.size() == bounds.size(), ValueError)
      << "tir.BufferRealize: buffer " << buffer->name << " has " << buffer->shape.size()
      << " axes but got " << bounds.size() << " bounds";
}

void ProducerStoreNode::Init() {
  TVM_CHECK(producer->GetShape().size() == indices.size(), ValueError)
      << "tir.ProducerStore: " << producer->GetNameHint() << " has " << producer->GetShape().size()
      << " axes but got " << indices.size() << " indices";
  TVM_CHECK(value.dtype() == producer->GetDataType(), TypeError)
      << "tir.ProducerStore: " << producer->GetNameHint() << " takes " << producer->GetDataType()
      << ", got " << value << " of " << value.dtype();
}

void ProducerRealizeNode::Init() {
  CheckCondition("tir.ProducerRealize", condition);
  TVM_CHECK(producer->GetShape().size() == bounds.size(), ValueError)
      << "tir.ProducerRealize: " << producer->GetNameHint() << " has "
      << producer->GetShape().size() << " axes but got " << bounds.size() << " bounds";
}

void AllocateNode::Init() {
  CheckCondition("tir.Allocate", condition);
  TVM_CHECK(buffer_var->type_annotation.as<PointerTypeNode>() != nullptr, TypeError)
      << "tir.Allocate: " << buffer_var << " must have a pointer type, got "
      << buffer_var->type_annotation;
  for (const PrimExpr& extent : extents) {
    TVM_CHECK(extent.dtype().is_int() && extent.dtype().is_scalar(), TypeError)
        << "tir.Allocate: extents of " << buffer_var << " must be integer scalars, got " << extent;
  }
  CheckPlausible("tir.Allocate", dtype);
}

namespace {
int64_t ConstantProduct(const Array<PrimExpr>& extents) {
  int64_t size = 1;
  for (const PrimExpr& extent : extents) {
    const int64_t* value = as_const_int(extent);
    if (value == nullptr || __builtin_mul_overflow(size, *value, &size)) return 0;
  }
  return size;
}
}  // namespace

int64_t AllocateNode::ConstantAllocationSize() const { return ConstantProduct(extents); }

void AllocateConstNode::Init() {
  TVM_CHECK(buffer_var->type_annotation.as<PointerTypeNode>() != nullptr, TypeError)
      << "tir.AllocateConst: " << buffer_var << " must have a pointer type, got "
      << buffer_var->type_annotation;
  TVM_CHECK(data.defined() != irmod_storage_idx.defined(), ValueError)
      << "tir.AllocateConst: " << buffer_var << " needs the constant, or its index among those of "
      << "the module, and not both";
  CheckPlausible("tir.AllocateConst", dtype);
  if (!data.defined()) return;
  const runtime::NDArray& array = data.value();
  int64_t elements = 1;
  for (int64_t extent : array.Shape()) elements *= extent;
  TVM_CHECK(elements == ConstantAllocationSize() && array.dtype() == dtype, ValueError)
      << "tir.AllocateConst: " << buffer_var << " is " << dtype << extents
      << ", but its constant has " << elements << " elements of " << array.dtype();
}

int64_t AllocateConstNode::ConstantAllocationSize() const { return ConstantProduct(extents); }

void SeqStmtNode::Init() {
  TVM_CHECK(!seq.empty(), ValueError) << "tir.SeqStmt: needs at least one statement";
  for (const Stmt& stmt : seq) {
    TVM_CHECK(stmt.as<SeqStmtNode>() == nullptr, ValueError)
        << "tir.SeqStmt: a sequence directly inside a sequence; use SeqStmt::Flatten";
  }
}

bool is_no_op(const Stmt& stmt) {
  if (!stmt.defined()) return true;
  const auto* evaluate = stmt.as<EvaluateNode>();
  return evaluate != nullptr && is_const_number(evaluate->value);
}

namespace {
void FlattenInto(const Stmt& stmt, Array<Stmt>* out) {
  if (is_no_op(stmt)) return;
  if (const auto* seq = stmt.as<SeqStmtNode>()) {
    for (const Stmt& child : seq->seq) FlattenInto(child, out);
  } else {
    out->push_back(stmt);
  }
}
}  // namespace

Stmt SeqStmt::Flatten(const Array<Stmt>& seq) {
  Array<Stmt> flat;
  for (const Stmt& stmt : seq) FlattenInto(stmt, &flat);
  if (flat.empty()) return Evaluate(IntImm(DataType::Int(32), 0));
  if (flat.size() == 1) return flat[0];
  return SeqStmt(std::move(flat));
}
TVM_REGISTER_GLOBAL("tir.SeqStmtFlatten").set_body_typed([](Array<Stmt> seq) {
  return SeqStmt::Flatten(seq);
});

void IfThenElseNode::Init() { CheckCondition("tir.IfThenElse", condition); }

const char* ForKindToString(ForKind kind) {
  switch (kind) {
    case ForKind::kSerial:
      return "serial";
    case ForKind::kParallel:
      return "parallel";
    case ForKind::kVectorized:
      return "vectorized";
    case ForKind::kUnrolled:
      return "unroll";
    case ForKind::kThreadBinding:
      return "thread_binding";
  }
  return "unknown";
}

void ForNode::Init() {
  TVM_CHECK(kind >= ForKind::kSerial && kind <= ForKind::kThreadBinding, ValueError)
      << "tir.For: kind must be in [0, 4], got " << static_cast<int>(kind);
  TVM_CHECK(min.dtype().is_scalar() && extent.dtype().is_scalar() && loop_var->dtype.is_scalar(),
            TypeError)
      << "tir.For: loop " << loop_var << " needs scalar bounds, got " << min << " and " << extent;
  // A literal bound takes the variable's type; anything else has to agree.
  auto fit = [&](PrimExpr bound) {
    if (bound.dtype() == loop_var->dtype) return bound;
    TVM_CHECK(bound->IsInstance<IntImmNode>(), TypeError)
        << "tir.For: loop " << loop_var << " of " << loop_var->dtype << " has the bound " << bound
        << " of " << bound.dtype();
    return cast(loop_var->dtype, bound);
  };
  min = fit(min);
  extent = fit(extent);
}

void WhileNode::Init() { CheckCondition("tir.While", condition); }

}  // namespace tir
}  // namespace tvm
