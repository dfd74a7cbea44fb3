/*!
 * \file src/tir/ir/substitute.cc
 * \brief Replacing variables of statements.
 */
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>

#include "buffer_mutator.h"

namespace tvm {
namespace tir {
namespace {

class Substituter : public VarReplacer<BufferMutator> {
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

/*! \brief Also computes what has become an operation of constants. */
class FoldingSubstituter final : public Substituter {
 public:
  using Substituter::Substituter;

  PrimExpr VisitExpr(const PrimExpr& e) final {
    PrimExpr out = Substituter::VisitExpr(e);
    return out.same_as(e) ? e : Folded(out);
  }

 private:
  static PrimExpr Folded(const PrimExpr& e) {
    if (const auto* op = e.as<AddNode>()) return add(op->a, op->b);
    if (const auto* op = e.as<SubNode>()) return sub(op->a, op->b);
    if (const auto* op = e.as<MulNode>()) return mul(op->a, op->b);
    if (const auto* op = e.as<MinNode>()) return min(op->a, op->b);
    if (const auto* op = e.as<MaxNode>()) return max(op->a, op->b);
    if (const auto* op = e.as<LTNode>()) return less(op->a, op->b);
    if (const auto* op = e.as<LENode>()) return less_equal(op->a, op->b);
    if (const auto* op = e.as<GTNode>()) return greater(op->a, op->b);
    if (const auto* op = e.as<GENode>()) return greater_equal(op->a, op->b);
    if (const auto* op = e.as<EQNode>()) return equal(op->a, op->b);
    if (const auto* op = e.as<NENode>()) return not_equal(op->a, op->b);
    if (const auto* op = e.as<CastNode>()) return cast(op->dtype, op->value);
    // A division by zero in code that never runs stays.
    if (const auto* op = e.as<FloorDivNode>(); op && !is_zero(op->b)) return floordiv(op->a, op->b);
    if (const auto* op = e.as<FloorModNode>(); op && !is_zero(op->b)) return floormod(op->a, op->b);
    if (const auto* op = e.as<DivNode>(); op && !is_zero(op->b)) return div(op->a, op->b);
    if (const auto* op = e.as<ModNode>(); op && !is_zero(op->b)) return truncmod(op->a, op->b);
    return e;
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

TVM_REGISTER_GLOBAL("tir.SubstituteAndFold")
    .set_body_typed([](Stmt stmt, Map<Var, PrimExpr> vmap) -> Stmt {
      return vmap.empty() ? stmt : FoldingSubstituter(Lookup(vmap))(stmt);
    });

}  // namespace tir
}  // namespace tvm
