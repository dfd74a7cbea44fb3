/*!
 * \file src/tir/ir/substitute.cc
 * \brief Replacing variables of statements.
 */
#include <tvm/runtime/registry.h>

#include "buffer_mutator.h"

namespace tvm {
namespace tir {
namespace {

class Substituter final : public VarReplacer<BufferMutator> {
 public:
  using VarReplacer::VarReplacer;

 private:
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
};

}  // namespace

Stmt Substitute(Stmt stmt, const std::function<PrimExpr(const Var&)>& vmap) {
  return Substituter(vmap)(stmt);
}
Stmt Substitute(Stmt stmt, const Map<Var, PrimExpr>& vmap) {
  return vmap.empty() ? stmt : Substitute(std::move(stmt), Lookup(vmap));
}
Stmt Substitute(Stmt stmt, const std::unordered_map<const VarNode*, PrimExpr>& vmap) {
  return vmap.empty() ? stmt : Substitute(std::move(stmt), Lookup(vmap));
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
