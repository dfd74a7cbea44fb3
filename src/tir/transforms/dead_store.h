/*!
 * \file src/tir/transforms/dead_store.h
 * \brief Stores that nothing sees.
 */
#ifndef TVM_SRC_TIR_TRANSFORMS_DEAD_STORE_H_
#define TVM_SRC_TIR_TRANSFORMS_DEAD_STORE_H_

#include <tvm/tir/stmt.h>

namespace tvm {
namespace tir {

/*!
 * \brief `stmt` without stores that a later statement of the same sequence overwrites before
 * anything reads the buffer, and without stores of what the element is known to hold.
 *
 * A store's value is evaluated if that has an effect. Statements are compared by the elements that
 * their loops and conditions select, where an index is a loop variable plus a constant.
 */
Stmt RemoveDeadStores(const Stmt& stmt);

}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_TRANSFORMS_DEAD_STORE_H_
