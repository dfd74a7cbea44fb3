/*!
 * \file warp_region.h
 * \brief What the 32 threads of a warp touch together, read off the loops of one thread.
 */
#ifndef TVM_TE_SCHEDULE_WARP_REGION_H_
#define TVM_TE_SCHEDULE_WARP_REGION_H_

#include <tvm/arith/analyzer.h>
#include <tvm/te/tensor.h>
#include <tvm/tir/stmt_functor.h>

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tvm {
namespace te {

/*! \brief A box of elements, each reached; `min` depends on no lane of the warp. */
struct WarpRegion {
  Array<PrimExpr> min;
  std::vector<int64_t> extent;
};

/*! \brief Loops without anything between them around a store, outermost first. */
struct StoreNest {
  std::vector<const tir::ForNode*> loops;
  /*! \brief Pragmas of these loops. */
  std::vector<const tir::AttrStmtNode*> pragmas;
  const tir::BufferStoreNode* store = nullptr;
};

/*! \brief The nest that `stmt` is, if it is one. */
std::optional<StoreNest> StoreNestOf(const Stmt& stmt);

/*!
 * \brief The threads around the statement being visited, as lanes and warps.
 *
 * Threads are numbered with threadIdx.x fastest and 32 neighbours are a warp, so each index is
 * `warp * lanes + lane`, where the product of all `lanes` is 32.
 */
class WarpContext {
 public:
  static constexpr int kLanes = 32;

  /*! \brief Enters a thread_extent attribute; the outermost one launches all threads inside. */
  void Enter(const tir::AttrStmtNode* op);
  void Leave(const tir::AttrStmtNode* op);

  /*!
   * \brief What a warp reaches by `indices` of one buffer while `loops` run, in terms of warps.
   *
   * Raises a ScheduleError that starts with `where` unless it is a box; with `once`, also if the
   * loops reach an element more than once.
   */
  WarpRegion RegionOf(const Array<PrimExpr>& indices, const std::vector<const tir::ForNode*>& loops,
                      bool once, const std::string& where);
  /*! \brief The same for the union of what each thread has of a realized buffer. */
  WarpRegion RegionOf(const Array<Range>& bounds, const std::string& where);

  /*! \brief `expr` with threads written as lanes and warps. */
  PrimExpr ToLanes(const PrimExpr& expr) const { return tir::Substitute(expr, of_lanes_); }
  /*! \brief The same with warps written as threads. */
  PrimExpr ToThreads(const PrimExpr& expr) const { return tir::Substitute(expr, of_threads_); }
  Stmt ToThreads(const Stmt& stmt) const { return tir::Substitute(stmt, of_threads_); }
  /*! \brief Whether threads of one warp may see different values. */
  bool DependsOnLane(const PrimExpr& expr) const;

  /*! \brief Knows the ranges of all loops and threads around. */
  arith::Analyzer analyzer;

 private:
  struct Digit {
    Var lane, warp;
    int64_t lanes = 1, warps = 1;
  };
  void Launch(const tir::AttrStmtNode* op);
  WarpRegion Detect(const Array<PrimExpr>& indices, Map<Var, Range> iters, bool once,
                    const std::string& where);

  const tir::AttrStmtNode* launch_ = nullptr;
  Digit digits_[3];
  /*! \brief Why the threads of the launch are no whole warps; empty if they are. */
  std::string no_warps_;
  std::unordered_map<const VarNode*, PrimExpr> of_lanes_;
  std::unordered_map<const VarNode*, PrimExpr> of_threads_;
};

}  // namespace te
}  // namespace tvm
#endif  // TVM_TE_SCHEDULE_WARP_REGION_H_
