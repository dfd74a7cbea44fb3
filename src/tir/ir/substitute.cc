/*!
 * \file src/tir/ir/substitute.cc
 * \brief Replacing variables by expressions.
 */
#include <tvm/runtime/registry.h>

#include "buffer_mutator.h"

namespace tvm {
namespace tir {
namespace {

class Substituter final : public BufferMutator {
 public:
  explicit Substituter(const std::function<PrimExpr(const Var&)>& vmap) : vmap_(vmap) {}

  PrimExpr VisitExpr_(const VarNode* op) final {
    Var var = GetRef<Var>(op);
    PrimExpr value = vmap_(var);
    if (!value.defined()) return var;
    TVM_CHECK(value.dtype() == op->dtype, TypeError)
        << "substitute: " << var << " is " << op->dtype << ", its replacement " << value << " is "
        << value.dtype();
    return value;
  }

  Stmt VisitStmt_(const AttrStmtNode* op) final {
    PrimExpr value = VisitExpr(op->value);
    ObjectRef node = op->node;
    if (node.as<BufferNode>() != nullptr) {
      node = VisitBuffer(Downcast<Buffer>(node));
    } else if (node.as<VarNode>() != nullptr) {
      PrimExpr replaced = VisitExpr(Downcast<Var>(node));
      // An attribute of a variable says nothing about an expression that takes its place.
      if (replaced.as<VarNode>() != nullptr) node = replaced;
    }
    Stmt body = VisitStmt(op->body);
    if (value.same_as(op->value) && node.same_as(op->node) && body.same_as(op->body)) {
      return GetRef<Stmt>(op);
    }
    return AttrStmt(node, op->attr_key, value, body);
  }

 private:
  Buffer VisitBuffer(const Buffer& buffer) final {
    auto it = buffers_.find(buffer.get());
    if (it != buffers_.end()) return it->second;
    Array<PrimExpr> shape = VisitExprs(buffer->shape);
    Array<PrimExpr> strides = VisitExprs(buffer->strides);
    PrimExpr elem_offset = VisitExpr(buffer->elem_offset);
    PrimExpr data = VisitExpr(buffer->data);
    TVM_CHECK(data.as<VarNode>() != nullptr, TypeError)
        << "substitute: the data pointer of buffer " << buffer->name
        << " can only become a variable, got " << data;
    Buffer result = buffer;
    if (!shape.same_as(buffer->shape) || !strides.same_as(buffer->strides) ||
        !elem_offset.same_as(buffer->elem_offset) || !data.same_as(buffer->data)) {
      BufferNode* node = result.CopyOnWrite();
      node->shape = shape;
      node->strides = strides;
      node->elem_offset = elem_offset;
      node->data = Downcast<Var>(data);
    }
    buffers_.emplace(buffer.get(), result);
    return result;
  }

  const std::function<PrimExpr(const Var&)>& vmap_;
  std::unordered_map<const BufferNode*, Buffer> buffers_;
};

std::function<PrimExpr(const Var&)> Lookup(const Map<Var, PrimExpr>& vmap) {
  return [&vmap](const Var& var) -> PrimExpr {
    auto it = vmap.find(var);
    return it == vmap.end() ? PrimExpr() : (*it).second;
  };
}

std::function<PrimExpr(const Var&)> Lookup(
    const std::unordered_map<const VarNode*, PrimExpr>& vmap) {
  return [&vmap](const Var& var) -> PrimExpr {
    auto it = vmap.find(var.get());
    return it == vmap.end() ? PrimExpr() : it->second;
  };
}

}  // namespace

PrimExpr Substitute(PrimExpr expr, const std::function<PrimExpr(const Var&)>& vmap) {
  return Substituter(vmap)(expr);
}
Stmt Substitute(Stmt stmt, const std::function<PrimExpr(const Var&)>& vmap) {
  return Substituter(vmap)(stmt);
}
PrimExpr Substitute(PrimExpr expr, const Map<Var, PrimExpr>& vmap) {
  return vmap.empty() ? expr : Substitute(std::move(expr), Lookup(vmap));
}
Stmt Substitute(Stmt stmt, const Map<Var, PrimExpr>& vmap) {
  return vmap.empty() ? stmt : Substitute(std::move(stmt), Lookup(vmap));
}
PrimExpr Substitute(PrimExpr expr, const std::unordered_map<const VarNode*, PrimExpr>& vmap) {
  return vmap.empty() ? expr : Substitute(std::move(expr), Lookup(vmap));
}
Stmt Substitute(Stmt stmt, const std::unordered_map<const VarNode*, PrimExpr>& vmap) {
  return vmap.empty() ? stmt : Substitute(std::move(stmt), Lookup(vmap));
}
Array<PrimExpr> Substitute(const Array<PrimExpr>& exprs, const Map<Var, PrimExpr>& vmap) {
  return exprs.Map([&vmap](const PrimExpr& expr) { return Substitute(expr, vmap); });
}
Range Substitute(const Range& range, const Map<Var, PrimExpr>& vmap) {
  PrimExpr min = Substitute(range->min, vmap);
  PrimExpr extent = Substitute(range->extent, vmap);
  if (min.same_as(range->min) && extent.same_as(range->extent)) return range;
  return Range::FromMinExtent(min, extent);
}

TVM_REGISTER_GLOBAL("tir.Substitute")
    .set_body_typed([](ObjectRef node, Map<Var, PrimExpr> vmap) -> ObjectRef {
      if (node.as<PrimExprNode>() != nullptr) return Substitute(Downcast<PrimExpr>(node), vmap);
      if (node.as<StmtNode>() != nullptr) return Substitute(Downcast<Stmt>(node), vmap);
      TVM_FATAL(TypeError) << "substitute: expected an expression or a statement, got "
                           << (node.defined() ? node->GetTypeKey() : "None");
      throw;  // unreachable
    });

}  // namespace tir
}  // namespace tvm
