/*!
 * \file rewrite.h
 * \brief Accesses of one buffer as accesses of another, in all that is at and below a node.
 */
#ifndef TVM_SRC_TIR_SCHEDULE_REWRITE_H_
#define TVM_SRC_TIR_SCHEDULE_REWRITE_H_

#include <functional>

#include "tree.h"

namespace tvm {
namespace tir {
namespace sched {

/*! \brief How accesses of a buffer change. A function that is empty changes nothing. */
struct BufferChange {
  Buffer from, to;
  std::function<Array<PrimExpr>(const Array<PrimExpr>&)> indices;
  std::function<Array<Range>(const Array<Range>&)> region;
  /*! \brief Whether only loads change, or only stores; pointers change with either. */
  bool loads = true, stores = true;
};

/*! \brief A statement with accesses changed; views of the buffer follow where it has another scope.
 */
Stmt ChangeBuffer(const Stmt& stmt, const BufferChange& change);
PrimExpr ChangeBuffer(const PrimExpr& expr, const BufferChange& change);
/*! \brief The same for a node of a tree: what it declares, computes, and allocates stays in line.
 */
void ChangeBuffer(Tree* tree, Id id, const BufferChange& change);

}  // namespace sched
}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_SCHEDULE_REWRITE_H_
