/*!
 * \file src/tir/transforms/storage_alignment.h
 * \brief What blocks ask of the strides of the buffers they write.
 */
#ifndef TVM_SRC_TIR_TRANSFORMS_STORAGE_ALIGNMENT_H_
#define TVM_SRC_TIR_TRANSFORMS_STORAGE_ALIGNMENT_H_

#include <tvm/tir/block.h>
#include <tvm/tir/stmt.h>

#include <unordered_map>
#include <vector>

namespace tvm {
namespace tir {

/*!
 * \brief Annotation of blocks and of allocations: rows of (index, axis, factor, offset).
 *
 * The index is that among the writes of a block, and -1 of an allocation, which is of one buffer.
 */
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

/*! \brief What an allocation's annotation says of its buffer; nothing where it has none. */
std::vector<StorageAlignment> AllocatedAlignment(const AllocateNode* op);

/*! \brief The value of that annotation. */
ObjectRef AlignmentRows(const std::vector<StorageAlignment>& rows);

/*! \brief The strides of a compact buffer of this shape with some axes aligned. */
Array<PrimExpr> AlignedStrides(const Array<PrimExpr>& shape,
                               const std::vector<StorageAlignment>& rows);

/*! \brief Extents of memory that holds a buffer, with the gaps that its strides leave. */
Array<PrimExpr> AllocatedExtents(const Buffer& buffer);

}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_TRANSFORMS_STORAGE_ALIGNMENT_H_
