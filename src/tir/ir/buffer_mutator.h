/*!
 * \file src/tir/ir/buffer_mutator.h
 * \brief Mutators that put other buffers in the place of those a program uses.
 */
#ifndef TVM_SRC_TIR_IR_BUFFER_MUTATOR_H_
#define TVM_SRC_TIR_IR_BUFFER_MUTATOR_H_

#include <tvm/tir/stmt_functor.h>

#include "expr/rewriters.h"

namespace tvm {
namespace tir {

/*!
 * \brief Mutates statements and expressions, and asks `VisitBuffer` for every buffer in them.
 *
 * Buffers that an attribute speaks of are not asked for.
 */
class BufferMutator : public LoadMutator<StmtExprMutator> {
 protected:
  using LoadMutator::VisitExpr_;
  using LoadMutator::VisitStmt_;

  Stmt VisitStmt_(const BufferStoreNode* op) override;
  Stmt VisitStmt_(const BufferRealizeNode* op) final;
  Stmt VisitStmt_(const PrefetchNode* op) final;
  Stmt VisitStmt_(const DeclBufferNode* op) override;
  Stmt VisitStmt_(const BlockNode* op) override;

 private:
  Array<BufferRegion> ReplaceBuffers(const Array<BufferRegion>& regions);
};

}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_IR_BUFFER_MUTATOR_H_
