/*!
 * \file src/tir/transforms/storage_alignment.h
 * \brief What blocks ask of the strides of the buffers they write.
 */
#ifndef TVM_SRC_TIR_TRANSFORMS_STORAGE_ALIGNMENT_H_
#define TVM_SRC_TIR_TRANSFORMS_STORAGE_ALIGNMENT_H_

#include <tvm/tir/block.h>

#include <unordered_map>
#include <vector>

namespace tvm {
namespace tir {

/*! \brief Block annotation: rows of (index among the writes, axis, factor, offset). */
constexpr const char* kBufferDimAlign = "buffer_dim_align";

/*! \brief The stride of `axis` is congruent to `offset` modulo `factor` elements. */
struct StorageAlignment {
  PrimExpr axis;
  PrimExpr factor;
  PrimExpr offset;
};

using StorageAlignmentMap = std::unordered_map<const BufferNode*, std::vector<StorageAlignment>>;

/*! \brief What the blocks in `body` ask for; ValueError if an annotation has another form. */
StorageAlignmentMap StorageAlignments(const Stmt& body);

}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_TRANSFORMS_STORAGE_ALIGNMENT_H_
