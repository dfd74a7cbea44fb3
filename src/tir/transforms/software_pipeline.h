/*!
 * \file src/tir/transforms/software_pipeline.h
 * \brief Parts of a pipelined loop: when they run, which copies of buffers they use, what they wait
 * for.
 */
#ifndef TVM_SRC_TIR_TRANSFORMS_SOFTWARE_PIPELINE_H_
#define TVM_SRC_TIR_TRANSFORMS_SOFTWARE_PIPELINE_H_

#include <tvm/arith/analyzer.h>
#include <tvm/tir/async_copies.h>
#include <tvm/tir/block.h>

#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tvm {
namespace tir {

/*! \brief Keys of loop annotations. */
namespace attr {
/*! \brief Of a loop: for each part of its body, how many trips later than the first it runs. */
constexpr const char* software_pipeline_stage = "software_pipeline_stage";
/*! \brief Of a loop: the place of each part within a trip of the pipelined loop. */
constexpr const char* software_pipeline_order = "software_pipeline_order";
/*! \brief Of a loop: the stages whose parts only start what they do. */
constexpr const char* software_pipeline_async_stages = "software_pipeline_async_stages";
}  // namespace attr

/*! \brief One statement of a pipelined loop's body. */
struct PipelinePart {
  Block block;
  int stage;
  int order;
  bool async;
  /*! \brief Of asynchronous parts: those of one number are committed together. */
  int group = -1;
};

/*! \brief Copies that `buffer` needs, so that no part overwrites what a later one still reads. */
int CountVersions(const Buffer& buffer, const std::vector<PipelinePart>& parts, bool doubled);

/*! \brief `buffer` with an axis for its copies in front. */
Buffer AddVersions(const Buffer& buffer, int versions);

/*! \brief Which copies of a buffer the declared regions of blocks name. */
enum class VersionRegion {
  kOne,  ///< that of the trip
  kAll,  ///< all of them: parts of several trips may be under way
};

/*!
 * \brief `block` with accesses of the copies that trip `index` uses.
 *
 * \param remap New buffers by old ones.
 * \param buffers Old buffers by their data, for pointers that calls take.
 * \param fragments Elements of a fragment by the data of arrays of fragments.
 */
Block AccessVersions(const Block& block, const Map<Buffer, Buffer>& remap,
                     const Map<Var, Buffer>& buffers,
                     const std::unordered_map<const VarNode*, int64_t>& fragments,
                     const PrimExpr& index, VersionRegion region);

/*! \brief Elements of a fragment of tensor cores, by the data of the arrays that calls touch. */
std::unordered_map<const VarNode*, int64_t> FragmentSizes(const Stmt& body);

/*! \brief A part as it stands in one of the three loops of a pipeline. */
struct PlacedPart {
  Block block;
  int stage;
  /*! \brief As in the part; -1 for parts that are not asynchronous. */
  int group;
  PrimExpr predicate;
  /*! \brief The original loop's variable. */
  PrimExpr index;
};

/*!
 * \brief Numbers the groups of asynchronous parts, which are in the order of a trip.
 *
 * Parts that follow each other are one group. What is read of a queue ends its group. Every trip
 * has the same groups, whether it fills the pipeline or runs it, since waits count them.
 */
void NumberGroups(std::vector<PipelinePart>* parts);

/*!
 * \brief Commits groups of asynchronous parts and lets others wait for as few groups as they need.
 *
 * A queue belongs to a stage. Made once for a pipeline, and asked for its prologue, body and
 * epilogue in turn.
 */
class AsyncQueues {
 public:
  /*! \param first The value with which the original loop begins. */
  explicit AsyncQueues(PrimExpr first) : first_(std::move(first)) {}

  /*!
   * \brief The statements of one of the three loops.
   *
   * \param trips Extent of the loop.
   * \param analyzer Knows the loop's variable.
   */
  Array<Stmt> Place(std::vector<PlacedPart> parts, const PrimExpr& trips, arith::Analyzer* analyzer,
                    const Map<Var, Buffer>& buffers);

 private:
  struct Loop;
  void Group(const std::vector<PlacedPart>& parts, arith::Analyzer* analyzer,
             std::map<int, Loop>* loops);
  void FindWaits(const std::vector<PlacedPart>& parts, arith::Analyzer* analyzer,
                 std::map<int, Loop>* loops);
  /*! \brief The stage that writes what `part` reads while it runs, or -1. */
  int ProducerOf(const PlacedPart& part) const;

  PrimExpr first_;
  std::map<int, std::unordered_set<const BufferNode*>> written_;
  /*! \brief The last trip of each stage that has been started; undefined if that is not known. */
  std::map<int, PrimExpr> started_;
};

}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_TRANSFORMS_SOFTWARE_PIPELINE_H_
