/*!
 * \file tvm/auto_scheduler/transform_step.h
 * \brief The schedule primitives as data: what a State's history and a record consist of.
 *
 * A step says its fields, its tag in records, and its effect on a State and on a te schedule.
 * Constructor and record form follow from the fields.
 */
#ifndef TVM_AUTO_SCHEDULER_TRANSFORM_STEP_H_
#define TVM_AUTO_SCHEDULER_TRANSFORM_STEP_H_

#include <tvm/auto_scheduler/loop_state.h>

namespace tvm {
namespace auto_scheduler {

#define TVM_AUTO_SCHEDULER_STEP_METHODS(TagText)                      \
  const char* Tag() const final { return TagText; }                   \
  void ApplyToState(State* state, const ComputeDAG& dag) const final; \
  void ApplyToSchedule(ScheduleReplay* replay) const final

/*! \brief AN: run a loop as something else than a serial loop. */
class AnnotationStepNode : public StepNode {
 public:
  int iter_id{0};
  IteratorAnnotation annotation{IteratorAnnotation::kNone};
  /*! \brief ValueError for an annotation that does not exist. */
  void Init() { AnnotationText(annotation); }
  TVM_AUTO_SCHEDULER_STEP_METHODS("AN");
  TVM_DECLARE_NODE(AnnotationStepNode, StepNode, "auto_scheduler.AnnotationStep", Value(iter_id),
                   Value(annotation));
};

class AnnotationStep : public FromFields<Step, AnnotationStepNode> {
 public:
  TVM_DEFINE_NODE_REF(AnnotationStep, AnnotationStepNode);
};

/*! \brief FU: make one loop of neighbouring loops; of none, a loop that runs once. */
class FuseStepNode : public StepNode {
 public:
  Array<int64_t> fused_ids;
  /*! \brief ScheduleError unless the loops are neighbours, outermost first. */
  void Init();
  TVM_AUTO_SCHEDULER_STEP_METHODS("FU");
  TVM_DECLARE_NODE(FuseStepNode, StepNode, "auto_scheduler.FuseStep", Value(fused_ids));
};

class FuseStep : public FromFields<Step, FuseStepNode> {
 public:
  TVM_DEFINE_NODE_REF(FuseStep, FuseStepNode);
};

/*!
 * \brief PR: "auto_unroll_max_step$N", "read_ahead$OPERAND$TRIPS", "tensor_core" on a loop of the
 *        product that fragments compute, "double_buffer" or "async_copy" on a loop of a copy that
 *        is made for the next trip while the present one goes on, or "debug_skip_region".
 */
class PragmaStepNode : public StepNode {
 public:
  int iter_id{0};
  String pragma_type;
  TVM_AUTO_SCHEDULER_STEP_METHODS("PR");
  TVM_DECLARE_NODE(PragmaStepNode, StepNode, "auto_scheduler.PragmaStep", Value(iter_id),
                   Value(pragma_type));
};

class PragmaStep : public FromFields<Step, PragmaStepNode> {
 public:
  TVM_DEFINE_NODE_REF(PragmaStep, PragmaStepNode);
};

/*! \brief RE: new order of all loops, given as their present ids. */
class ReorderStepNode : public StepNode {
 public:
  Array<int64_t> after_ids;
  TVM_AUTO_SCHEDULER_STEP_METHODS("RE");
  TVM_DECLARE_NODE(ReorderStepNode, StepNode, "auto_scheduler.ReorderStep", Value(after_ids));
};

class ReorderStep : public FromFields<Step, ReorderStepNode> {
 public:
  TVM_DEFINE_NODE_REF(ReorderStep, ReorderStepNode);
};

/*!
 * \brief SP: split a loop into `lengths.size() + 1`.
 *
 * inner_to_outer: the first part is what remains, the others have the lengths in list order.
 * Otherwise the leading parts have the lengths and the last is what remains.
 */
class SplitStepNode : public StepNode {
 public:
  int iter_id{0};
  /*! \brief Trip count of the loop that is split; undefined if it was unknown. */
  Optional<PrimExpr> extent;
  /*! \brief A literal, a SizeVar, or undefined while open, which a constructor also takes 0 for. */
  Array<Optional<PrimExpr>> lengths;
  bool inner_to_outer{true};
  /*! \brief ScheduleError for a length below zero. */
  void Init();
  TVM_AUTO_SCHEDULER_STEP_METHODS("SP");
  TVM_DECLARE_NODE(SplitStepNode, StepNode, "auto_scheduler.SplitStep", Value(iter_id),
                   Value(extent), Value(lengths), Value(inner_to_outer));
};

class SplitStep : public FromFields<Step, SplitStepNode> {
 public:
  TVM_DEFINE_NODE_REF(SplitStep, SplitStepNode);
};

/*!
 * \brief FXS: split off an inner loop of a length that the machine sets, such as the rows of a
 *        fragment or the lanes of a warp; no tuner varies it.
 */
class FixedSplitStepNode : public StepNode {
 public:
  int iter_id{0};
  int length{1};
  /*! \brief ScheduleError for a length below one. */
  void Init();
  TVM_AUTO_SCHEDULER_STEP_METHODS("FXS");
  TVM_DECLARE_NODE(FixedSplitStepNode, StepNode, "auto_scheduler.FixedSplitStep", Value(iter_id),
                   Value(length));
};

class FixedSplitStep : public FromFields<Step, FixedSplitStepNode> {
 public:
  TVM_DEFINE_NODE_REF(FixedSplitStep, FixedSplitStepNode);
};

/*!
 * \brief PDL: make an axis of space longer, as those of a stage that is computed inside of it: a
 * loop of one trip around one of `extent`.
 */
class PadLoopStepNode : public StepNode {
 public:
  int iter_id{0};
  int extent{1};
  TVM_AUTO_SCHEDULER_STEP_METHODS("PDL");
  TVM_DECLARE_NODE(PadLoopStepNode, StepNode, "auto_scheduler.PadLoopStep", Value(iter_id),
                   Value(extent));
};

class PadLoopStep : public FromFields<Step, PadLoopStepNode> {
 public:
  TVM_DEFINE_NODE_REF(PadLoopStep, PadLoopStepNode);
};

/*!
 * \brief FSP: split into n_split + 1 loops with the lengths of an earlier split.
 *
 * The first n_split - 1 lengths are the source's, the last is the product of those remaining.
 */
class FollowSplitStepNode : public StepNode {
 public:
  int iter_id{0};
  int src_step_id{0};
  int n_split{1};
  TVM_AUTO_SCHEDULER_STEP_METHODS("FSP");
  TVM_DECLARE_NODE(FollowSplitStepNode, StepNode, "auto_scheduler.FollowSplitStep", Value(iter_id),
                   Value(src_step_id), Value(n_split));

  Array<Optional<PrimExpr>> ExtractSplitLengths(const Array<Step>& transform_steps) const;
};

class FollowSplitStep : public FromFields<Step, FollowSplitStepNode> {
 public:
  TVM_DEFINE_NODE_REF(FollowSplitStep, FollowSplitStepNode);
};

/*! \brief FFSP: split in two by the product of one level of several earlier splits. */
class FollowFusedSplitStepNode : public StepNode {
 public:
  int iter_id{0};
  Array<int64_t> src_step_ids;
  int level{0};
  /*! \brief True: the product is the inner length. False: the number of outer parts. */
  bool factor_or_nparts{true};
  TVM_AUTO_SCHEDULER_STEP_METHODS("FFSP");
  TVM_DECLARE_NODE(FollowFusedSplitStepNode, StepNode, "auto_scheduler.FollowFusedSplitStep",
                   Value(iter_id), Value(src_step_ids), Value(level), Value(factor_or_nparts));

  Optional<PrimExpr> ExtractSplitLength(const Array<Step>& transform_steps) const;
};

class FollowFusedSplitStep : public FromFields<Step, FollowFusedSplitStepNode> {
 public:
  TVM_DEFINE_NODE_REF(FollowFusedSplitStep, FollowFusedSplitStepNode);
};

/*! \brief SA: pad the storage of a stage at a loop to a multiple of `factor` plus `offset`. */
class StorageAlignStepNode : public StepNode {
 public:
  int iter_id{0};
  int factor{1};
  int offset{0};
  TVM_AUTO_SCHEDULER_STEP_METHODS("SA");
  TVM_DECLARE_NODE(StorageAlignStepNode, StepNode, "auto_scheduler.StorageAlignStep",
                   Value(iter_id), Value(factor), Value(offset));
};

class StorageAlignStep : public FromFields<Step, StorageAlignStepNode> {
 public:
  TVM_DEFINE_NODE_REF(StorageAlignStep, StorageAlignStepNode);
};

/*!
 * \brief FSA: pad the rows of a stage's storage by as many elements as the innermost part of an
 *        earlier split has.
 *
 * Neighbours along dimension `dim` lie an odd multiple of that length apart, which a row that is
 * such a multiple already does without padding. So vectors of that length stay aligned.
 */
class FollowStorageAlignStepNode : public StepNode {
 public:
  int dim{0};
  int src_step_id{0};
  TVM_AUTO_SCHEDULER_STEP_METHODS("FSA");
  TVM_DECLARE_NODE(FollowStorageAlignStepNode, StepNode, "auto_scheduler.FollowStorageAlignStep",
                   Value(dim), Value(src_step_id));
};

class FollowStorageAlignStep : public FromFields<Step, FollowStorageAlignStepNode> {
 public:
  TVM_DEFINE_NODE_REF(FollowStorageAlignStep, FollowStorageAlignStepNode);
};

/*!
 * \brief FA: copies into shared memory that are made some trips of the loop around before they are
 *        used, and go on meanwhile.
 *
 * `stage_id` is the stage that reads the copies `copy_ids`, all of which are computed in one loop
 * of it. The only one of `lengths` says how many trips ahead; as many tiles are in flight, and
 * there is room for one more.
 */
class FetchAheadStepNode : public StepNode {
 public:
  Array<int64_t> copy_ids;
  /*! \brief As the lengths of a split. */
  Array<Optional<PrimExpr>> lengths;
  /*! \brief ScheduleError unless there are copies and one length, which is not below zero. */
  void Init();
  TVM_AUTO_SCHEDULER_STEP_METHODS("FA");
  TVM_DECLARE_NODE(FetchAheadStepNode, StepNode, "auto_scheduler.FetchAheadStep", Value(copy_ids),
                   Value(lengths));
};

class FetchAheadStep : public FromFields<Step, FetchAheadStepNode> {
 public:
  TVM_DEFINE_NODE_REF(FetchAheadStep, FetchAheadStepNode);
};

/*! \brief CA: compute a stage inside a loop of its consumer. Its ranges become unknown. */
class ComputeAtStepNode : public StepNode {
 public:
  int target_stage_id{0};
  int target_iter_id{0};
  TVM_AUTO_SCHEDULER_STEP_METHODS("CA");
  TVM_DECLARE_NODE(ComputeAtStepNode, StepNode, "auto_scheduler.ComputeAtStep",
                   Value(target_stage_id), Value(target_iter_id));
};

class ComputeAtStep : public FromFields<Step, ComputeAtStepNode> {
 public:
  TVM_DEFINE_NODE_REF(ComputeAtStep, ComputeAtStepNode);
};

/*! \brief CI: recompute a stage wherever it is read. */
class ComputeInlineStepNode : public StepNode {
 public:
  TVM_AUTO_SCHEDULER_STEP_METHODS("CI");
  TVM_DECLARE_NODE(ComputeInlineStepNode, StepNode, "auto_scheduler.ComputeInlineStep");
};

class ComputeInlineStep : public FromFields<Step, ComputeInlineStepNode> {
 public:
  TVM_DEFINE_NODE_REF(ComputeInlineStep, ComputeInlineStepNode);
};

/*! \brief CR: compute a stage on its own, before its consumers. */
class ComputeRootStepNode : public StepNode {
 public:
  TVM_AUTO_SCHEDULER_STEP_METHODS("CR");
  TVM_DECLARE_NODE(ComputeRootStepNode, StepNode, "auto_scheduler.ComputeRootStep");
};

class ComputeRootStep : public FromFields<Step, ComputeRootStepNode> {
 public:
  TVM_DEFINE_NODE_REF(ComputeRootStep, ComputeRootStepNode);
};

/*! \brief CHR: copy a stage's output to `scope_name` for some readers; a new stage behind it. */
class CacheReadStepNode : public StepNode {
 public:
  String scope_name;
  Array<int64_t> reader_stage_ids;
  TVM_AUTO_SCHEDULER_STEP_METHODS("CHR");
  std::optional<int> AddedStage() const final { return stage_id + 1; }
  TVM_DECLARE_NODE(CacheReadStepNode, StepNode, "auto_scheduler.CacheReadStep", Value(scope_name),
                   Value(reader_stage_ids));
};

class CacheReadStep : public FromFields<Step, CacheReadStepNode> {
 public:
  TVM_DEFINE_NODE_REF(CacheReadStep, CacheReadStepNode);
};

/*!
 * \brief PKR: a CacheRead whose copy has its dimensions in another order: `order[i]` is the
 *        dimension of the source that lies where i is.
 */
class PackReadStepNode : public StepNode {
 public:
  String scope_name;
  Array<int64_t> reader_stage_ids;
  Array<int64_t> order;
  TVM_AUTO_SCHEDULER_STEP_METHODS("PKR");
  std::optional<int> AddedStage() const final { return stage_id + 1; }
  TVM_DECLARE_NODE(PackReadStepNode, StepNode, "auto_scheduler.PackReadStep", Value(scope_name),
                   Value(reader_stage_ids), Value(order));
};

class PackReadStep : public FromFields<Step, PackReadStepNode> {
 public:
  TVM_DEFINE_NODE_REF(PackReadStep, PackReadStepNode);
};

/*!
 * \brief PDR: copy a stage's output into a longer array, with zeros behind its ends, for some
 *        readers; a new stage behind it.
 */
class PadReadStepNode : public StepNode {
 public:
  Array<int64_t> reader_stage_ids;
  /*! \brief Extents of the copy. */
  Array<int64_t> shape;
  TVM_AUTO_SCHEDULER_STEP_METHODS("PDR");
  std::optional<int> AddedStage() const final { return stage_id + 1; }
  TVM_DECLARE_NODE(PadReadStepNode, StepNode, "auto_scheduler.PadReadStep", Value(reader_stage_ids),
                   Value(shape));
};

class PadReadStep : public FromFields<Step, PadReadStepNode> {
 public:
  TVM_DEFINE_NODE_REF(PadReadStep, PadReadStepNode);
};

/*!
 * \brief PDA: compute a sum of products over longer axes, then copy out what was asked for; a new
 *        stage takes this stage's id.
 */
class PadAxesStepNode : public StepNode {
 public:
  /*! \brief Of the axes of space, then of those that reduce. */
  Array<int64_t> extents;
  TVM_AUTO_SCHEDULER_STEP_METHODS("PDA");
  std::optional<int> AddedStage() const final { return stage_id; }
  TVM_DECLARE_NODE(PadAxesStepNode, StepNode, "auto_scheduler.PadAxesStep", Value(extents));
};

class PadAxesStep : public FromFields<Step, PadAxesStepNode> {
 public:
  TVM_DEFINE_NODE_REF(PadAxesStep, PadAxesStepNode);
};

/*! \brief CHW: compute in `scope_name`, then copy out; a new stage takes this stage's id. */
class CacheWriteStepNode : public StepNode {
 public:
  String scope_name;
  TVM_AUTO_SCHEDULER_STEP_METHODS("CHW");
  std::optional<int> AddedStage() const final { return stage_id; }
  TVM_DECLARE_NODE(CacheWriteStepNode, StepNode, "auto_scheduler.CacheWriteStep",
                   Value(scope_name));
};

class CacheWriteStep : public FromFields<Step, CacheWriteStepNode> {
 public:
  TVM_DEFINE_NODE_REF(CacheWriteStep, CacheWriteStepNode);
};

/*! \brief RF: turn a reduction loop into a space axis; a new stage takes this stage's id. */
class RfactorStepNode : public StepNode {
 public:
  int iter_id{0};
  int factor_iter_id{0};
  TVM_AUTO_SCHEDULER_STEP_METHODS("RF");
  std::optional<int> AddedStage() const final { return stage_id; }
  TVM_DECLARE_NODE(RfactorStepNode, StepNode, "auto_scheduler.RfactorStep", Value(iter_id),
                   Value(factor_iter_id));
};

class RfactorStep : public FromFields<Step, RfactorStepNode> {
 public:
  TVM_DEFINE_NODE_REF(RfactorStep, RfactorStepNode);
};

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_TRANSFORM_STEP_H_
