/*!
 * \file buffers.h
 * \brief What primitives on buffers have in common: which buffer is meant, which memory there is.
 */
#ifndef TVM_SRC_TIR_SCHEDULE_BUFFERS_H_
#define TVM_SRC_TIR_SCHEDULE_BUFFERS_H_

#include <tvm/arith/iter_affine_map.h>
#include <tvm/tir/index_map.h>

#include "access.h"

namespace tvm {
namespace tir {
namespace sched {

/*! \brief Buffer of one of the regions that a block declares; ScheduleError if there is none. */
Buffer BufferAt(const Tree& tree, Id block, int64_t index, bool write);
/*! \brief Refuse what is no memory scope. */
void CheckScope(const std::string& scope);
/*! \brief All nodes directly below the outermost block that access a buffer. */
Ids UsersOf(const Tree& tree, const Buffer& buffer);

}  // namespace sched
}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_SCHEDULE_BUFFERS_H_
