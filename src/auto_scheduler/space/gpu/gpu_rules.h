/*!
 * \file gpu_rules.h
 * \brief Ansor's rules for graphics processors.
 */
#ifndef TVM_AUTO_SCHEDULER_SPACE_GPU_GPU_RULES_H_
#define TVM_AUTO_SCHEDULER_SPACE_GPU_GPU_RULES_H_

#include <tvm/auto_scheduler/search_space.h>

#include <memory>
#include <vector>

namespace tvm {
namespace auto_scheduler {

/*! \brief Loads what a tiled stage reads into shared memory, tile by tile. */
std::shared_ptr<const SketchRule> RuleAddCacheRead();
/*! \brief Computes a stage between the outer and the unrolled loops of a constant transform. */
std::shared_ptr<const SketchRule> RuleSpecialComputeLocation();
/*!
 * \brief Shares a long reduction among the threads of a block.
 * \param of_products_only Leave reductions that use nothing twice to RuleRowReduction.
 */
std::shared_ptr<const SketchRule> RuleCrossThreadReduction(bool of_products_only = false);
/*! \brief Whether a reduction is so long that threads of a block may share it. */
bool IsSharedByThreads(const SearchTask& task, const State& state, int stage_id);
/*!
 * \brief Gives few results of long sums a block each, or a few, whose threads share each sum: as
 * many blocks as it takes to fill the machine, which one thread a result would not.
 */
std::shared_ptr<const SketchRule> RuleSpreadReduction();

/*! \brief Whether RuleReductionInParts, or RuleSplitReduction, gave parts of a stage to another. */
bool HasParts(const State& state, const Stage& stage);
/*! \brief What one result is made of, as it lies in memory. */
enum class ReducedMemory {
  /*! \brief Neighbours. */
  kRows,
  /*! \brief One below the other, where neighbours belong to neighbouring results. */
  kColumns,
  kOther,
};
ReducedMemory WhatIsReduced(const Stage& stage);
/*!
 * \brief Loops of a stage's only consumer, if it has a loop for each of the stage's results and
 * none more, and no loops of threads yet; else 0.
 */
int LoopsOfConsumer(const SearchTask& task, const State& state, int stage_id);
/*!
 * \brief Gives neighbouring threads neighbouring columns, and as many threads to each as share it
 *        (threadIdx.y): warps read whole sectors of memory, and few columns have enough threads.
 */
std::shared_ptr<const SketchRule> RuleColumnReduction();

/*!
 * \brief Shares reductions that use nothing twice among the threads of a block, as
 *        RuleCrossThreadReduction does: in the loops of a consumer where those leave one result to
 * a block, such as a row of softmax or a group of channels, else in a kernel of their own. Rows
 *        have no other structure.
 */
std::shared_ptr<const SketchRule> RuleRowReduction();

/*!
 * \brief Gives blocks parts of a long reduction each, where a block for each of its few results
 * would leave multiprocessors idle; a second kernel reduces what they have found.
 */
std::shared_ptr<const SketchRule> RuleReductionInParts();

/*!
 * \brief Gives blocks parts of a long reduction each, where tiles of the results alone would leave
 *        multiprocessors idle; a second kernel, or the consumer's, adds the partial sums up.
 */
std::shared_ptr<const SketchRule> RuleSplitReduction();
/*!
 * \brief Gives parts of a reduction's loop a stage of their own, which has an axis of parts more,
 * in front, and computes what adds them up where its consumer computes an element, if it can.
 * \param levels_inside Loops that the part of one block is cut into; their lengths stand in for
 * open ones.
 * \return The position of the new stage.
 */
int ComputePartsOf(const SearchTask& task, State* state, int stage_id, const Iterator& shared,
                   int levels_inside);
/*! \brief Whether a loop of so many trips can be cut by ComputePartsOf. */
bool CanBeCut(int64_t extent, int levels_inside);

/*!
 * \brief Rounds axes of a sum of products up where no good tile divides them: operands are read
 *        from copies with zeros behind their ends, and what was asked for is copied out.
 *
 * Rules for such sums apply to the longer one as to any other.
 */
std::shared_ptr<const SketchRule> RulePadAxes();

/*!
 * \brief Computes products of matrices on tensor cores.
 *
 * A block has warps, a warp fragments of the result, a tile in shared memory steps of the
 * reduction: all are knobs. Operands are copied into shared memory by all threads and from there
 * into fragments; the result is stored from fragments, or goes through shared memory to a consumer
 * that computes more than a copy. Types are float16, bfloat16 with sums of float32, bytes with
 * sums of int32, and float32 where the target allows it to be rounded; rows, columns and steps are
 * multiples of a fragment's. A second structure fetches the next tile of the operands while the
 * present one is used: by asynchronous copies where the architecture has them, else through
 * registers. Where few fragments have long sums, a third one gives blocks parts of the sums.
 */
std::shared_ptr<const SketchRule> RuleTensorCores();
/*! \brief Whether RuleTensorCores applies to sums like this one. */
bool SuitsTensorCores(const SearchTask& task, const Stage& stage);
/*!
 * \brief The extents of a stage's axes, of space and then of reductions, rounded up to multiples of
 *        a fragment; empty unless tensor cores can compute such a sum.
 */
std::vector<int64_t> RoundedToFragments(const SearchTask& task, const Stage& stage);
/*! \brief Whether a stage is in a kernel that RuleTensorCores laid out. */
bool UsesTensorCores(const State& state, int stage_id);

/*! \brief Binds loops to blocks and threads; a program with too many or too few is refused. */
std::shared_ptr<const RandomRule> InitThreadBind();
/*!
 * \brief Whether the tiles of all stages make numbers of threads that InitThreadBind accepts.
 *
 * Asks the lengths of splits only, so the loops need no extents yet; open lengths fit.
 */
bool TiledThreadsFit(const SearchTask& task, const State& state);
/*!
 * \brief Has copies into tiles of shared memory made ahead of their use, by an open number of
 * trips; those on tensor cores, which have structures for both, stay as they are.
 */
void FillTilesAhead(State* state);
/*! \brief The number whose divisors are how many trips ahead of their use tiles are fetched. */
constexpr int kMostTripsAhead = 4;
/*!
 * \brief Pads rows of tiles in shared memory that neighbouring threads read one below the other, to
 *        an odd multiple of a copy's lanes: copies stay aligned, and rows spread over the banks.
 */
void PadRowsAcrossThreads(State* state);
/*!
 * \brief Marks what a thread does with one tile to be written out, since an array that is indexed
 *        by a loop cannot be kept in registers.
 */
void UnrollRegisterTiles(const SearchTask& task, State* state);

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_SPACE_GPU_GPU_RULES_H_
