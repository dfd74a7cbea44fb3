/*!
 * \file src/tir/transforms/allocation_lifetimes.h
 * \brief When allocations are used, and which of them may take over the memory of another one.
 */
#ifndef TVM_SRC_TIR_TRANSFORMS_ALLOCATION_LIFETIMES_H_
#define TVM_SRC_TIR_TRANSFORMS_ALLOCATION_LIFETIMES_H_

#include <tvm/tir/stmt_functor.h>

#include <limits>
#include <unordered_map>
#include <vector>

namespace tvm {
namespace tir {

/*! \brief An allocation that may be moved to the top of its thread. */
struct AllocationLifetime {
  const AllocateNode* op;
  /*! \brief First and last moment of use; moments number leaf statements in program order. */
  int64_t first = std::numeric_limits<int64_t>::max();
  int64_t last = -1;
  /*! \brief Number of loops around the allocation within its thread. */
  size_t depth = 0;
  /*! \brief Someone has the pointer, or reaches elements by several indices. */
  bool opaque = false;
};

/*! \brief A statement that begins at a known moment. */
struct TimedStmt {
  Stmt stmt;
  int64_t end;
};

struct AllocationLifetimes {
  /*!
   * \brief Allocations by the thread they belong to, in program order: a function's body (nullptr),
   * a parallel loop, or the attribute that launches a kernel.
   */
  std::unordered_map<const Object*, std::vector<AllocationLifetime>> threads;
  /*! \brief Leaf statements, loops and launches by the moment they begin. */
  std::unordered_map<int64_t, TimedStmt> starts;
};

/*! \brief Lifetimes of the allocations whose size is known at the top of their thread. */
AllocationLifetimes FindAllocationLifetimes(const Stmt& body);

/*!
 * \brief Whether `to` may be the memory of `from`, which is read in `stmt` for the last time, while
 * `to` is written there for the first time.
 *
 * So it is when each element of `to` is made once, from the same element of `from` at most.
 */
bool CanWriteInPlace(const Stmt& stmt, const Var& to, const Var& from);

}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_TRANSFORMS_ALLOCATION_LIFETIMES_H_
