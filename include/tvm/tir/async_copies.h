/*!
 * \file tvm/tir/async_copies.h
 * \brief Copies into shared memory that go on while the program does.
 */
#ifndef TVM_TIR_ASYNC_COPIES_H_
#define TVM_TIR_ASYNC_COPIES_H_

#include <tvm/tir/stmt.h>

#include <optional>
#include <utility>

namespace tvm {
namespace tir {

/*! \brief Keys of attributes around asynchronous copies. */
namespace attr {
/*! \brief The copies in the body may go on while the program does. */
constexpr const char* async_scope = "async_scope";
/*! \brief What the body starts is one group in the queue whose number is the value. */
constexpr const char* async_commit_queue_scope = "async_commit_queue_scope";
/*! \brief Around async_wait_inflight_count: the queue to wait for. */
constexpr const char* async_wait_queue_scope = "async_wait_queue_scope";
/*! \brief Before the body, wait until at most as many groups of the queue are under way. */
constexpr const char* async_wait_inflight_count = "async_wait_inflight_count";
}  // namespace attr

/*! \brief A store of neighbours in global memory into shared memory, as one instruction makes it.
 */
struct AsyncCopy {
  BufferLoad from;
  /*! \brief The first elements, as indices of buffers of one axis. */
  PrimExpr to_index, from_index;
  /*! \brief Where it does not hold zeros are stored; undefined without one. */
  PrimExpr guard;
  /*! \brief 4, 8 or 16: other sizes have no asynchronous instruction. */
  int bytes;
};

/*! \brief The copy that a store in attr::async_scope is; nothing if threads carry it out. */
std::optional<AsyncCopy> AsyncCopyOf(const BufferStoreNode* store);

/*!
 * \brief The count of groups that a statement with attr::async_wait_queue_scope leaves under way
 *        before it goes on, and the statement behind the wait.
 * \throws ValueError unless attr::async_wait_inflight_count is right inside.
 */
std::pair<PrimExpr, Stmt> WaitOf(const AttrStmtNode* queue_scope);

}  // namespace tir
}  // namespace tvm

#endif  // TVM_TIR_ASYNC_COPIES_H_
