/*!
 * \file src/tir/transforms/pointer_offsets.h
 * \brief Which arguments of instructions are pointers, and which are the offsets from them.
 */
#ifndef TVM_SRC_TIR_TRANSFORMS_POINTER_OFFSETS_H_
#define TVM_SRC_TIR_TRANSFORMS_POINTER_OFFSETS_H_

#include <tvm/expr/expr.h>

#include <utility>
#include <vector>

namespace tvm {
namespace tir {

/*! \brief Pairs of arguments: a pointer, and the elements (or fragments) that count from it. */
using PointerOffsets = std::vector<std::pair<size_t, size_t>>;

/*! \brief Null for calls that take no pointers with offsets. */
const PointerOffsets* PointerOffsetsOf(const CallNode* call);

/*! \brief The argument that counts from pointer `argument`; past all arguments if there is none. */
size_t OffsetOfPointer(const PointerOffsets* offsets, size_t argument);

}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_TRANSFORMS_POINTER_OFFSETS_H_
