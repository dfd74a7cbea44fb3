/*!
 * \file src/tir/transforms/block_regions.h
 * \brief Blocks around statements whose own blocks say what they access.
 */
#ifndef TVM_SRC_TIR_TRANSFORMS_BLOCK_REGIONS_H_
#define TVM_SRC_TIR_TRANSFORMS_BLOCK_REGIONS_H_

#include <tvm/tir/analysis.h>
#include <tvm/tir/block.h>

namespace tvm {
namespace tir {

/*!
 * \brief What a statement accesses: what its outermost blocks declare, and what stands beside them.
 *
 * Unlike DetectAccessRegions it believes declarations, and what calls do through a pointer counts
 * as an access of the whole buffer.
 *
 * \param buffers The buffer of each data pointer that calls may take.
 */
AccessRegions DeclaredRegions(const Stmt& stmt, const Map<Var, Buffer>& buffers);

/*! \brief A block without variables around `stmt`; the block itself if `stmt` always runs one. */
Block WrapInBlock(const Stmt& stmt, const Map<Var, Buffer>& buffers);

}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_TRANSFORMS_BLOCK_REGIONS_H_
