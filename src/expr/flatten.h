/*!
 * \file src/expr/flatten.h
 * \brief Buffers and indices with as few axes as memory has.
 */
#ifndef TVM_SRC_EXPR_FLATTEN_H_
#define TVM_SRC_EXPR_FLATTEN_H_

#include <tvm/expr/buffer.h>

namespace tvm {
namespace tir {

/*!
 * \brief The buffer over the same memory with one axis, and one more for each axis separator.
 *
 * Its extents cover strides and the offset; the same object when there is nothing to flatten.
 */
Buffer FlattenedBuffer(const Buffer& buffer);

/*! \brief Indices of the flattened buffer for the element at `indices`. */
Array<PrimExpr> FlattenedIndices(const Buffer& buffer, const Array<PrimExpr>& indices);

}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_EXPR_FLATTEN_H_
