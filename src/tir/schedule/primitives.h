/*!
 * \file primitives.h
 * \brief What schedules do to trees. Each raises ScheduleError where it cannot be shown to keep
 *        what is computed; the caller then restores the tree.
 */
#ifndef TVM_SRC_TIR_SCHEDULE_PRIMITIVES_H_
#define TVM_SRC_TIR_SCHEDULE_PRIMITIVES_H_

#include <tvm/tir/index_map.h>

#include <functional>
#include <map>

#include "dataflow.h"
#include "facts.h"
#include "random.h"

namespace tvm {
namespace tir {
namespace sched {

// Loops (loops.cc).

/*!
 * \brief Loops of the given extents in the place of one; undefined stands for what is left.
 * \param given How the extents were written, for messages.
 */
Ids Split(Tree* tree, Id loop, Array<PrimExpr> factors, const std::string& given,
          bool preserve_unit_iters, bool disable_predication);
Id Fuse(Tree* tree, const Ids& loops, bool preserve_unit_iters);
/*! \brief Put nested loops into another order; others between them stay where they are. */
void Reorder(Tree* tree, const Ids& loops);
/*! \brief Run iterations in parallel, as lanes of vectors, or written one by one. */
void MarkLoop(Tree* tree, Id loop, ForKind kind);
/*! \brief Put a loop of one trip around a loop or block. */
Id AddUnitLoop(Tree* tree, Id block_or_loop);
/*! \brief Let threads run the iterations of a loop. */
void Bind(Tree* tree, Id loop, const std::string& thread_tag);
void Annotate(Tree* tree, Id block_or_loop, const String& key, const ObjectRef& value);
void Unannotate(Tree* tree, Id block_or_loop, const String& key);
/*! \brief The extent of a loop, which must be a number. */
int64_t ConstantExtent(const Tree& tree, Id loop);
/*! \brief Simplify the values and the predicate of a block. */
void Tidy(Tree* tree, Id block);

// Nests of loops (nests.cc).

/*! \brief Run loops that stand side by side as one; returns the innermost of the new nest. */
Id Merge(Tree* tree, const Ids& loops);
/*!
 * \brief Loops over consecutive parts of one, each with its own copy of what is inside.
 * \param sizes Iterations of the parts; undefined stands for what is left.
 */
Ids LoopPartition(Tree* tree, Id loop, const Array<PrimExpr>& sizes);

// Reductions (reduction.cc, rfactor.cc).

/*! \brief Write the first values of a reduction in a block of their own, right before `loop`. */
Id DecomposeReduction(Tree* tree, Id block, Id loop);
/*! \brief Keep one partial result for each iteration of `loop`, and combine them afterwards. */
Id RFactor(Tree* tree, Id loop, int64_t factor_axis);
/*! \brief Refuse a block that is no reduction with first values, run in an order that keeps them.
 */
void RequireReduction(const Tree& tree, Id block);
/*! \brief A loop of the same range with another variable; of marks only the threads stay. */
Id TwinLoop(Tree* tree, Id loop, const std::string& name);
/*! \brief Variables for a new block; `renamed` says what takes the place of which. */
Array<IterVar> FreshIters(const Array<IterVar>& iters, const std::string& suffix, VarMap* renamed);
/*! \brief A block that runs the instances that another one runs. */
std::shared_ptr<BlockItem> BlockLike(const BlockItem& block, String name, Array<IterVar> iter_vars,
                                     Array<PrimExpr> iter_values, Stmt init,
                                     Array<PrimExpr> predicate);

// Places (compute_at.cc, inline.cc).

/*! \brief Compute, in every iteration of `loop`, what its blocks need of what `block` writes. */
void ComputeAt(Tree* tree, Id block, Id loop, bool preserve_unit_loops, int64_t index);
/*! \brief Compute, in every iteration of `loop`, what can be of what was just written. */
void ReverseComputeAt(Tree* tree, Id block, Id loop, bool preserve_unit_loops, int64_t index);
/*! \brief Put what a block computes into all blocks that read it. */
void ComputeInline(Tree* tree, Id block);
/*! \brief Let the producer of what a block reads compute what the block does, on the spot. */
void ReverseComputeInline(Tree* tree, Id block);
/*! \brief Refuse a block that does not alone give its buffers their one final value. */
void RequireSoleWriter(const Tree& tree, Id block, const Flows& flows);
/*! \brief Refuse a block of which other instances than those that run must not run. */
void RequireAllInstances(const Tree& tree, Id block);
/*! \brief Refuse a block that uses variables of loops, other than `kept`, past its own. */
void RequireOwnVariables(const Tree& tree, Id block, const Ids& kept = {});
/*! \brief A statement with each load of a buffer replaced by what `value` gives for its indices. */
Stmt MapLoads(const Stmt& stmt, const Buffer& buffer,
              const std::function<PrimExpr(const Array<PrimExpr>&)>& value);

// Buffers (cache.cc).

/*! \brief Copy a buffer that `block` reads to another scope, where its readers then read it. */
Id CacheRead(Tree* tree, Id block, int64_t index, const std::string& scope,
             const std::optional<Ids>& consumers);
/*!
 * \brief Let `block` write to another scope, and copy from there when it is done.
 * \param consumers Blocks that read what is in the other scope.
 */
Id CacheWrite(Tree* tree, Id block, int64_t index, const std::string& scope,
              const std::optional<Ids>& consumers);
/*! \brief Copy a buffer that `block` changes in place to another scope before it, and back after.
 */
Ids CacheInplace(Tree* tree, Id block, int64_t index, const std::string& scope);
/*! \brief Copy the one element that each instance reads to where a map of the variables says. */
Id ReindexCacheRead(Tree* tree, Id block, int64_t index, const std::string& scope,
                    const IndexMap& map);
Id ReindexCacheWrite(Tree* tree, Id block, int64_t index, const std::string& scope,
                     const IndexMap& map);
/*! \brief Copy a buffer to one whose indices are the variables of the block that uses it. */
Id Reindex(Tree* tree, Id block, int64_t index, bool write);

// Copies of what a loop needs (read_write_at.cc).

/*! \brief In each iteration of `loop`, copy what blocks there read of a buffer to another scope. */
Id ReadAt(Tree* tree, Id loop, Id block, int64_t index, const std::string& scope);
/*! \brief In each iteration of `loop`, copy back what blocks there wrote to another scope. */
Id WriteAt(Tree* tree, Id loop, Id block, int64_t index, const std::string& scope);

// Buffers that keep what the next iteration needs (rolling_buffer.cc).

/*!
 * \brief Keep of a buffer only as much of one axis as an iteration of a loop around its readers
 *        needs, and write in each iteration only what those before it did not.
 */
void RollingBuffer(Tree* tree, Id block, int64_t index);

// Index expressions (cache_index.cc).

/*!
 * \brief Compute what a block computes of its variables alone, `threshold` times or more, before.
 * \return The blocks that do.
 */
Ids CacheIndex(Tree* tree, Id block, const std::string& scope, int64_t threshold);

// Padding (padding.cc).

/*! \brief Write constant padding in a block of its own, right before `loop`. */
Id DecomposePadding(Tree* tree, Id block, Id loop);
/*! \brief Keep groups of axes of a buffer apart where it is laid out in memory. */
void SetAxisSeparator(Tree* tree, Id block, int64_t index, bool write,
                      const std::vector<int64_t>& separators);
/*! \brief Run a contraction over more than its domain, on copies with zeros in the rest. */
void PadEinsum(Tree* tree, Id block, const std::vector<int64_t>& padding);

// Buffers (buffers.cc).

/*! \brief Leave regions out of what a block declares. */
void UnsafeHideBufferAccess(Tree* tree, Id block, const std::string& use,
                            const std::vector<int64_t>& indices);
void UnsafeSetDType(Tree* tree, Id block, int64_t index, const std::string& dtype);
void SetScope(Tree* tree, Id block, int64_t index, const std::string& scope);
void StorageAlign(Tree* tree, Id block, int64_t index, int64_t axis, int64_t factor,
                  int64_t offset);

// Layouts (layout.cc).

/*!
 * \brief Lay out a buffer by a map of its indices, wherever it is accessed.
 * \param pad What stands in elements that no old index comes to.
 */
void TransformLayout(Tree* tree, Id block, int64_t index, bool write, const IndexMap& map,
                     const Optional<IndexMap>& pad, bool assume_injective);
/*! \brief Run a block over variables that a map computes of those it has. */
void TransformBlockLayout(Tree* tree, Id block, const IndexMap& map);
void ReorderBlockIterVars(Tree* tree, Id block, const std::vector<int64_t>& order);

// Blocks around loops (blockize.cc, tensorize.cc).

/*! \brief Put a block around what a loop or a block does; its instances run the loops inside. */
Id Blockize(Tree* tree, Id block_or_loop, bool preserve_unit_iters);
/*! \brief Put one block around blocks that stand side by side, with the loops that each has alone.
 */
Id Blockize(Tree* tree, const Ids& blocks, bool preserve_unit_iters);
/*! \brief Let an intrinsic do what the loops below a loop, or a block, do. */
void Tensorize(Tree* tree, Id block_or_loop, const String& intrin, bool preserve_unit_iters);

// Looking (queries.cc).

Id BlockNamed(const Tree& tree, const std::string& name);
/*! \brief Blocks with only loops between them and a node. */
Ids ChildBlocks(const Tree& tree, Id block_or_loop);
/*! \brief Blocks of the same scope that write what `block` reads. */
Ids Producers(const Tree& tree, Id block);
/*! \brief Blocks of the same scope that read what `block` writes. */
Ids Consumers(const Tree& tree, Id block);
/*! \brief Blocks of a scope that write what it does not allocate. */
Ids OutputBlocks(const Tree& tree, Id scope);

// Choosing (sampling.cc).

/*! \brief Factors of `extent`, each list as likely as any other whose last is small enough. */
std::vector<int64_t> PerfectTile(RandomState* random, int64_t extent, int64_t n,
                                 int64_t max_innermost);
/*! \brief The same where the factors from `position` on multiply to a multiple of `inner`. */
std::vector<int64_t> PartitionedTile(RandomState* random, int64_t extent, int64_t n,
                                     int64_t position, int64_t inner);
/*! \brief Refuse a decision that does not fit the loop. */
void CheckTile(const std::vector<int64_t>& tile, int64_t extent, int64_t n);
/*! \brief Index of one of the candidates. */
int64_t Categorical(RandomState* random, size_t candidates, const std::vector<double>& probs,
                    std::optional<int64_t> decision);
// Decisions that stand for no loop.
constexpr int64_t kStay = -1;
constexpr int64_t kInlined = -2;
/*! \brief Places where a block may be computed, by the decision that stands for them. */
std::map<int64_t, Id> ComputeLocations(Tree* tree, Id block);
/*! \brief The loop that one such decision stands for, `kNone` for none; empty if it is not legal.
 */
std::optional<Id> ComputeLocation(Tree* tree, Id block, int64_t place);

}  // namespace sched
}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_SCHEDULE_PRIMITIVES_H_
