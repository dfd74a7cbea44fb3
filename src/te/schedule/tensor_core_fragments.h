/*!
 * \file tensor_core_fragments.h
 * \brief What the finder of marked products and the rewriter of their statements agree on.
 */
#ifndef TVM_TE_SCHEDULE_TENSOR_CORE_FRAGMENTS_H_
#define TVM_TE_SCHEDULE_TENSOR_CORE_FRAGMENTS_H_

#include <tvm/tir/stmt_functor.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "warp_region.h"

namespace tvm {
namespace te {

/*! \brief A marked stage: its result and what messages call it. */
struct Mark {
  Buffer result;
  std::string where;
};

/*! \brief What a buffer is once it holds fragments. */
struct Fragments {
  /*! \brief The buffer in the scope of its role. */
  Buffer buffer;
  std::string where;
  /*! \brief Shape of the product. */
  int m = 0, n = 0, k = 0;
  /*! \brief Shape of one fragment. */
  int rows = 0, columns = 0;
  /*! \brief Axes of the buffer along which these run. */
  size_t row_axis = 0, column_axis = 0;
  /*! \brief What a warp has of the buffer, from its realization on. */
  WarpRegion region;
};
using FragmentMap = std::unordered_map<const tir::BufferNode*, Fragments>;

/*! \brief The axes along which a region has more than one element. */
std::vector<size_t> WideAxes(const WarpRegion& region);
/*! \brief Extents for messages, such as "16 x 32". */
std::string Text(const WarpRegion& region);

/*! \brief Visits the parts of a statement that are not a nest around a store, and such nests. */
class KernelMutator : public tir::StmtMutator {
 protected:
  using tir::StmtMutator::VisitStmt_;
  /*! \brief The statement in place of a nest that is about fragments. */
  virtual Stmt Replace(const StoreNest& nest, const Stmt& stmt) = 0;
  virtual bool IsAboutFragments(const tir::BufferStoreNode* store) const = 0;

  Stmt VisitStmt(const Stmt& stmt) override {
    std::optional<StoreNest> nest = StoreNestOf(stmt);
    if (nest && IsAboutFragments(nest->store)) return Replace(*nest, stmt);
    return StmtMutator::VisitStmt(stmt);
  }

  Stmt VisitStmt_(const tir::ForNode* op) override {
    warp_.analyzer.Bind(op->loop_var, Range::FromMinExtent(op->min, op->extent), true);
    return StmtMutator::VisitStmt_(op);
  }

  Stmt VisitStmt_(const tir::AttrStmtNode* op) override {
    if (op->attr_key != tir::attr::thread_extent) return StmtMutator::VisitStmt_(op);
    warp_.Enter(op);
    Stmt stmt = StmtMutator::VisitStmt_(op);
    warp_.Leave(op);
    return stmt;
  }

  WarpContext warp_;
};

/*! \brief Raises because a buffer of fragments is accessed under a condition. */
[[noreturn]] void RefuseCondition(const std::string& where, const Buffer& buffer,
                                  const PrimExpr& condition);

/*!
 * \brief The products of marked stages, as fragments for their results and operands.
 *
 * Raises a ScheduleError for a stage that adds up no product of matrices that suits tensor cores.
 */
FragmentMap FindProducts(const Stmt& stmt, const std::vector<Mark>& marks);

}  // namespace te
}  // namespace tvm
#endif  // TVM_TE_SCHEDULE_TENSOR_CORE_FRAGMENTS_H_
