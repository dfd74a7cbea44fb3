/*!
 * \file src/tir/analysis/thread_memory.h
 * \brief Whether threads read what they can see.
 */
#ifndef TVM_SRC_TIR_ANALYSIS_THREAD_MEMORY_H_
#define TVM_SRC_TIR_ANALYSIS_THREAD_MEMORY_H_

#include <tvm/tir/stmt.h>

namespace tvm {
namespace tir {

/*!
 * \brief Refuse kernels in which a thread reads what only others have written, where it cannot see
 *        it, or need not yet.
 *
 * The first is memory of scope "local", the second global memory in a kernel without barriers.
 * Threads, and iterations of their loops, are tried at a number of points, and an element that is
 * read at one of them is the proof: a kernel that is refused is wrong, unless its extents are never
 * those that were tried in the place of unknown ones. Kernels are what loops bound to threads are
 * around.
 *
 * \throws ValueError that names the buffer, the block that reads, and the way out.
 */
void CheckThreadMemory(const Stmt& body);

}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_ANALYSIS_THREAD_MEMORY_H_
