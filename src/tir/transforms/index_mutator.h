/*!
 * \file src/tir/transforms/index_mutator.h
 * \brief Mutators that give indices another type.
 */
#ifndef TVM_SRC_TIR_TRANSFORMS_INDEX_MUTATOR_H_
#define TVM_SRC_TIR_TRANSFORMS_INDEX_MUTATOR_H_

#include <tvm/tir/stmt_functor.h>

namespace tvm {
namespace tir {

/*! \brief Rewrites indices of buffers with `Index`, whose type is free, and other parts as ever. */
class IndexMutator : public StmtExprMutator {
 protected:
  using StmtExprMutator::VisitExpr_;
  using StmtExprMutator::VisitStmt_;
  virtual PrimExpr Index(const PrimExpr& expr) = 0;
  /*! \brief An expression whose type stays. */
  virtual PrimExpr Value(const PrimExpr& expr) { return VisitExpr(expr); }

  Array<PrimExpr> Indices(const Array<PrimExpr>& exprs) {
    return exprs.Map([this](const PrimExpr& e) { return Index(e); });
  }

  PrimExpr VisitExpr_(const BufferLoadNode* op) final {
    Array<PrimExpr> indices = Indices(op->indices);
    return indices.same_as(op->indices) ? GetRef<PrimExpr>(op) : BufferLoad(op->buffer, indices);
  }
  Stmt VisitStmt_(const BufferStoreNode* op) final {
    Array<PrimExpr> indices = Indices(op->indices);
    PrimExpr value = Value(op->value);
    if (indices.same_as(op->indices) && value.same_as(op->value)) return GetRef<Stmt>(op);
    return BufferStore(op->buffer, value, indices);
  }
};

}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_TRANSFORMS_INDEX_MUTATOR_H_
