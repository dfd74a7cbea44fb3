/*!
 * \file src/tir/ir/stmt.cc
 * \brief Constructors of statements.
 */
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/stmt.h>

namespace tvm {
namespace tir {

TVM_REGISTER_NODE(StmtNode);
TVM_REGISTER_NODE(LetStmtNode);
TVM_REGISTER_NODE(AttrStmtNode);
TVM_REGISTER_NODE(AssertStmtNode);
TVM_REGISTER_NODE(BufferStoreNode);
TVM_REGISTER_NODE(BufferRealizeNode);
TVM_REGISTER_NODE(AllocateNode);
TVM_REGISTER_NODE(SeqStmtNode);
TVM_REGISTER_NODE(IfThenElseNode);
TVM_REGISTER_NODE(EvaluateNode);
TVM_REGISTER_NODE(ForNode);
TVM_REGISTER_NODE(WhileNode);
TVM_REGISTER_NODE(PrefetchNode);

namespace {
void CheckBody(const char* name, const Stmt& body) {
  TVM_CHECK(body.defined(), ValueError) << name << ": the body is undefined";
}

void CheckCondition(const char* name, const PrimExpr& condition) {
  TVM_CHECK(condition.defined() && condition.dtype().is_bool() && condition.dtype().is_scalar(),
            TypeError)
      << name << ": the condition must be a scalar bool, got " << condition;
}
}  // namespace

LetStmt::LetStmt(Var var, PrimExpr value, Stmt body) {
  CheckBody("tir.LetStmt", body);
  TVM_CHECK(var->dtype == value.dtype(), TypeError)
      << "tir.LetStmt: " << var << " is " << var->dtype << " but its value " << value << " is "
      << value.dtype();
  auto n = make_object<LetStmtNode>();
  n->var = std::move(var);
  n->value = std::move(value);
  n->body = std::move(body);
  data_ = std::move(n);
}
TVM_REGISTER_GLOBAL("tir.LetStmt").set_body_typed([](Var var, PrimExpr value, Stmt body) {
  return LetStmt(var, value, body);
});

AttrStmt::AttrStmt(ObjectRef node, String attr_key, PrimExpr value, Stmt body) {
  CheckBody("tir.AttrStmt", body);
  auto n = make_object<AttrStmtNode>();
  n->node = std::move(node);
  n->attr_key = std::move(attr_key);
  n->value = std::move(value);
  n->body = std::move(body);
  data_ = std::move(n);
}
TVM_REGISTER_GLOBAL("tir.AttrStmt")
    .set_body_typed([](ObjectRef node, String key, PrimExpr value, Stmt body) {
      return AttrStmt(node, key, value, body);
    });

AssertStmt::AssertStmt(PrimExpr condition, PrimExpr message, Stmt body) {
  CheckBody("tir.AssertStmt", body);
  CheckCondition("tir.AssertStmt", condition);
  TVM_CHECK(message->IsInstance<StringImmNode>() || message->IsInstance<CallNode>(), TypeError)
      << "tir.AssertStmt: the message must be a StringImm or an error text, got " << message;
  auto n = make_object<AssertStmtNode>();
  n->condition = std::move(condition);
  n->message = std::move(message);
  n->body = std::move(body);
  data_ = std::move(n);
}
TVM_REGISTER_GLOBAL("tir.AssertStmt")
    .set_body_typed([](PrimExpr condition, PrimExpr message, Stmt body) {
      return AssertStmt(condition, message, body);
    });

BufferStore::BufferStore(Buffer buffer, PrimExpr value, Array<PrimExpr> indices) {
  TVM_CHECK(buffer->shape.size() == indices.size(), ValueError)
      << "tir.BufferStore: buffer " << buffer->name << " has " << buffer->shape.size()
      << " axes but got " << indices.size() << " indices";
  int lanes = buffer->dtype.lanes();
  if (!indices.empty()) lanes *= indices.back().dtype().lanes();
  DataType expected = buffer->dtype.with_lanes(lanes);
  TVM_CHECK(value.dtype() == expected, TypeError)
      << "tir.BufferStore: " << buffer->name << indices << " takes " << expected << ", got "
      << value << " of " << value.dtype();
  auto n = make_object<BufferStoreNode>();
  n->buffer = std::move(buffer);
  n->value = std::move(value);
  n->indices = std::move(indices);
  data_ = std::move(n);
}
TVM_REGISTER_GLOBAL("tir.BufferStore")
    .set_body_typed([](Buffer buffer, PrimExpr value, Array<PrimExpr> indices) {
      return BufferStore(buffer, value, indices);
    });

BufferRealize::BufferRealize(Buffer buffer, Array<Range> bounds, PrimExpr condition, Stmt body) {
  CheckBody("tir.BufferRealize", body);
  CheckCondition("tir.BufferRealize", condition);
  TVM_CHECK(buffer->shape.size() == bounds.size(), ValueError)
      << "tir.BufferRealize: buffer " << buffer->name << " has " << buffer->shape.size()
      << " axes but got " << bounds.size() << " bounds";
  auto n = make_object<BufferRealizeNode>();
  n->buffer = std::move(buffer);
  n->bounds = std::move(bounds);
  n->condition = std::move(condition);
  n->body = std::move(body);
  data_ = std::move(n);
}
TVM_REGISTER_GLOBAL("tir.BufferRealize")
    .set_body_typed([](Buffer buffer, Array<Range> bounds, PrimExpr condition, Stmt body) {
      return BufferRealize(buffer, bounds, condition, body);
    });

Allocate::Allocate(Var buffer_var, DataType dtype, Array<PrimExpr> extents, PrimExpr condition,
                   Stmt body, Map<String, ObjectRef> annotations) {
  CheckBody("tir.Allocate", body);
  CheckCondition("tir.Allocate", condition);
  TVM_CHECK(buffer_var->type_annotation.as<PointerTypeNode>() != nullptr, TypeError)
      << "tir.Allocate: " << buffer_var << " must have a pointer type, got "
      << buffer_var->type_annotation;
  for (const PrimExpr& extent : extents) {
    TVM_CHECK(extent.dtype().is_int() && extent.dtype().is_scalar(), TypeError)
        << "tir.Allocate: extents of " << buffer_var << " must be integer scalars, got " << extent;
  }
  auto n = make_object<AllocateNode>();
  n->buffer_var = std::move(buffer_var);
  n->dtype = dtype;
  n->extents = std::move(extents);
  n->condition = std::move(condition);
  n->body = std::move(body);
  n->annotations = std::move(annotations);
  data_ = std::move(n);
}

int64_t AllocateNode::ConstantAllocationSize() const {
  int64_t size = 1;
  for (const PrimExpr& extent : extents) {
    const int64_t* value = as_const_int(extent);
    if (value == nullptr || __builtin_mul_overflow(size, *value, &size)) return 0;
  }
  return size;
}
TVM_REGISTER_GLOBAL("tir.Allocate")
    .set_body_typed([](Var buffer_var, DataType dtype, Array<PrimExpr> extents, PrimExpr condition,
                       Stmt body, Map<String, ObjectRef> annotations) {
      return Allocate(buffer_var, dtype, extents, condition, body, annotations);
    });

SeqStmt::SeqStmt(Array<Stmt> seq) {
  TVM_CHECK(!seq.empty(), ValueError) << "tir.SeqStmt: needs at least one statement";
  for (const Stmt& stmt : seq) {
    TVM_CHECK(stmt.defined(), ValueError) << "tir.SeqStmt: a statement is undefined";
    TVM_CHECK(stmt.as<SeqStmtNode>() == nullptr, ValueError)
        << "tir.SeqStmt: a sequence directly inside a sequence; use SeqStmt::Flatten";
  }
  auto n = make_object<SeqStmtNode>();
  n->seq = std::move(seq);
  data_ = std::move(n);
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
TVM_REGISTER_GLOBAL("tir.SeqStmt").set_body_typed([](Array<Stmt> seq) { return SeqStmt(seq); });
TVM_REGISTER_GLOBAL("tir.SeqStmtFlatten").set_body_typed([](Array<Stmt> seq) {
  return SeqStmt::Flatten(seq);
});

IfThenElse::IfThenElse(PrimExpr condition, Stmt then_case, Stmt else_case) {
  CheckBody("tir.IfThenElse", then_case);
  CheckCondition("tir.IfThenElse", condition);
  auto n = make_object<IfThenElseNode>();
  n->condition = std::move(condition);
  n->then_case = std::move(then_case);
  n->else_case = std::move(else_case);
  data_ = std::move(n);
}
TVM_REGISTER_GLOBAL("tir.IfThenElse")
    .set_body_typed([](PrimExpr condition, Stmt then_case, Stmt else_case) {
      return IfThenElse(condition, then_case, else_case);
    });

Evaluate::Evaluate(PrimExpr value) {
  TVM_CHECK(value.defined(), ValueError) << "tir.Evaluate: the value is undefined";
  auto n = make_object<EvaluateNode>();
  n->value = std::move(value);
  data_ = std::move(n);
}
TVM_REGISTER_GLOBAL("tir.Evaluate").set_body_typed([](PrimExpr value) { return Evaluate(value); });

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

For::For(Var loop_var, PrimExpr min, PrimExpr extent, ForKind kind, Stmt body,
         Optional<IterVar> thread_binding, Map<String, ObjectRef> annotations) {
  CheckBody("tir.For", body);
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
  auto n = make_object<ForNode>();
  n->loop_var = std::move(loop_var);
  n->min = std::move(min);
  n->extent = std::move(extent);
  n->kind = kind;
  n->body = std::move(body);
  n->thread_binding = std::move(thread_binding);
  n->annotations = std::move(annotations);
  data_ = std::move(n);
}
TVM_REGISTER_GLOBAL("tir.For").set_body_typed([](Var loop_var, PrimExpr min, PrimExpr extent,
                                                 int kind, Stmt body,
                                                 Optional<IterVar> thread_binding,
                                                 Map<String, ObjectRef> annotations) {
  TVM_CHECK(kind >= 0 && kind <= static_cast<int>(ForKind::kThreadBinding), ValueError)
      << "tir.For: kind must be in [0, 4], got " << kind;
  return For(loop_var, min, extent, static_cast<ForKind>(kind), body, thread_binding, annotations);
});

While::While(PrimExpr condition, Stmt body) {
  CheckBody("tir.While", body);
  CheckCondition("tir.While", condition);
  auto n = make_object<WhileNode>();
  n->condition = std::move(condition);
  n->body = std::move(body);
  data_ = std::move(n);
}
TVM_REGISTER_GLOBAL("tir.While").set_body_typed([](PrimExpr condition, Stmt body) {
  return While(condition, body);
});

Prefetch::Prefetch(Buffer buffer, Array<Range> bounds) {
  auto n = make_object<PrefetchNode>();
  n->buffer = std::move(buffer);
  n->bounds = std::move(bounds);
  data_ = std::move(n);
}
TVM_REGISTER_GLOBAL("tir.Prefetch").set_body_typed([](Buffer buffer, Array<Range> bounds) {
  return Prefetch(buffer, bounds);
});

}  // namespace tir
}  // namespace tvm
