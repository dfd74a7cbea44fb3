/*!
 * \file tvm/auto_scheduler/transform_step.h
 * \brief The schedule primitives as data: what a State's history and a record consist of.
 *
 * Every step states its effect three times over the same facts: on a State, on a te schedule, and
 * as a record `[tag, field, ...]`. In records an array is a list, a name or text a string,
 * everything else an integer; a split length that is still a variable is the variable's name.
 */
#ifndef TVM_AUTO_SCHEDULER_TRANSFORM_STEP_H_
#define TVM_AUTO_SCHEDULER_TRANSFORM_STEP_H_

#include <tvm/auto_scheduler/loop_state.h>

namespace tvm {
namespace auto_scheduler {

#define TVM_AUTO_SCHEDULER_STEP_METHODS(TagText)                      \
  const char* Tag() const final { return TagText; }                   \
  void ApplyToState(State* state, const ComputeDAG& dag) const final; \
  void ApplyToSchedule(ScheduleReplay* replay) const final;           \
  Array<Any> RecordFields() const final

/*! \brief AN: run a loop as something else than a serial loop. */
class AnnotationStepNode : public StepNode {
 public:
  int iter_id{0};
  IteratorAnnotation annotation{IteratorAnnotation::kNone};
  TVM_AUTO_SCHEDULER_STEP_METHODS("AN");
  TVM_DECLARE_NODE(AnnotationStepNode, StepNode, "auto_scheduler.AnnotationStep", Value(iter_id),
                   Value(annotation));
};

class AnnotationStep : public Step {
 public:
  AnnotationStep(int stage_id, int iter_id, IteratorAnnotation annotation);
  TVM_DEFINE_REF(AnnotationStep, Step, AnnotationStepNode);
};

/*! \brief FU: make one loop of neighbouring loops; of none, a loop that runs once. */
class FuseStepNode : public StepNode {
 public:
  Array<int64_t> fused_ids;
  TVM_AUTO_SCHEDULER_STEP_METHODS("FU");
  TVM_DECLARE_NODE(FuseStepNode, StepNode, "auto_scheduler.FuseStep", Value(fused_ids));
};

class FuseStep : public Step {
 public:
  FuseStep(int stage_id, Array<int64_t> fused_ids);
  TVM_DEFINE_REF(FuseStep, Step, FuseStepNode);
};

/*! \brief PR: "auto_unroll_max_step$N" or "debug_skip_region" on a loop. */
class PragmaStepNode : public StepNode {
 public:
  int iter_id{0};
  String pragma_type;
  TVM_AUTO_SCHEDULER_STEP_METHODS("PR");
  TVM_DECLARE_NODE(PragmaStepNode, StepNode, "auto_scheduler.PragmaStep", Value(iter_id),
                   Value(pragma_type));
};

class PragmaStep : public Step {
 public:
  PragmaStep(int stage_id, int iter_id, String pragma_type);
  TVM_DEFINE_REF(PragmaStep, Step, PragmaStepNode);
};

/*! \brief RE: new order of all loops, given as their present ids. */
class ReorderStepNode : public StepNode {
 public:
  Array<int64_t> after_ids;
  TVM_AUTO_SCHEDULER_STEP_METHODS("RE");
  TVM_DECLARE_NODE(ReorderStepNode, StepNode, "auto_scheduler.ReorderStep", Value(after_ids));
};

class ReorderStep : public Step {
 public:
  ReorderStep(int stage_id, Array<int64_t> after_ids);
  TVM_DEFINE_REF(ReorderStep, Step, ReorderStepNode);
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
  /*! \brief A literal, a SizeVar, or undefined while open. */
  Array<Optional<PrimExpr>> lengths;
  bool inner_to_outer{true};
  TVM_AUTO_SCHEDULER_STEP_METHODS("SP");
  TVM_DECLARE_NODE(SplitStepNode, StepNode, "auto_scheduler.SplitStep", Value(iter_id),
                   Value(extent), Value(lengths), Value(inner_to_outer));
};

class SplitStep : public Step {
 public:
  SplitStep(int stage_id, int iter_id, Optional<PrimExpr> extent, Array<Optional<PrimExpr>> lengths,
            bool inner_to_outer);
  TVM_DEFINE_REF(SplitStep, Step, SplitStepNode);
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

class FollowSplitStep : public Step {
 public:
  FollowSplitStep(int stage_id, int iter_id, int src_step_id, int n_split);
  TVM_DEFINE_REF(FollowSplitStep, Step, FollowSplitStepNode);
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

class FollowFusedSplitStep : public Step {
 public:
  FollowFusedSplitStep(int stage_id, int iter_id, Array<int64_t> src_step_ids, int level,
                       bool factor_or_nparts);
  TVM_DEFINE_REF(FollowFusedSplitStep, Step, FollowFusedSplitStepNode);
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

class StorageAlignStep : public Step {
 public:
  StorageAlignStep(int stage_id, int iter_id, int factor, int offset);
  TVM_DEFINE_REF(StorageAlignStep, Step, StorageAlignStepNode);
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

class ComputeAtStep : public Step {
 public:
  ComputeAtStep(int stage_id, int target_stage_id, int target_iter_id);
  TVM_DEFINE_REF(ComputeAtStep, Step, ComputeAtStepNode);
};

/*! \brief CI: recompute a stage wherever it is read. */
class ComputeInlineStepNode : public StepNode {
 public:
  TVM_AUTO_SCHEDULER_STEP_METHODS("CI");
  TVM_DECLARE_NODE(ComputeInlineStepNode, StepNode, "auto_scheduler.ComputeInlineStep");
};

class ComputeInlineStep : public Step {
 public:
  explicit ComputeInlineStep(int stage_id);
  TVM_DEFINE_REF(ComputeInlineStep, Step, ComputeInlineStepNode);
};

/*! \brief CR: compute a stage on its own, before its consumers. */
class ComputeRootStepNode : public StepNode {
 public:
  TVM_AUTO_SCHEDULER_STEP_METHODS("CR");
  TVM_DECLARE_NODE(ComputeRootStepNode, StepNode, "auto_scheduler.ComputeRootStep");
};

class ComputeRootStep : public Step {
 public:
  explicit ComputeRootStep(int stage_id);
  TVM_DEFINE_REF(ComputeRootStep, Step, ComputeRootStepNode);
};

/*! \brief CHR: copy a stage's output to `scope_name` for some readers; a new stage behind it. */
class CacheReadStepNode : public StepNode {
 public:
  String scope_name;
  Array<int64_t> reader_stage_ids;
  TVM_AUTO_SCHEDULER_STEP_METHODS("CHR");
  bool AddsStage() const final { return true; }
  TVM_DECLARE_NODE(CacheReadStepNode, StepNode, "auto_scheduler.CacheReadStep", Value(scope_name),
                   Value(reader_stage_ids));
};

class CacheReadStep : public Step {
 public:
  CacheReadStep(int stage_id, String scope_name, Array<int64_t> reader_stage_ids);
  TVM_DEFINE_REF(CacheReadStep, Step, CacheReadStepNode);
};

/*! \brief CHW: compute in `scope_name`, then copy out; a new stage takes this stage's id. */
class CacheWriteStepNode : public StepNode {
 public:
  String scope_name;
  TVM_AUTO_SCHEDULER_STEP_METHODS("CHW");
  bool AddsStage() const final { return true; }
  TVM_DECLARE_NODE(CacheWriteStepNode, StepNode, "auto_scheduler.CacheWriteStep",
                   Value(scope_name));
};

class CacheWriteStep : public Step {
 public:
  CacheWriteStep(int stage_id, String scope_name);
  TVM_DEFINE_REF(CacheWriteStep, Step, CacheWriteStepNode);
};

/*! \brief RF: turn a reduction loop into a space axis; a new stage takes this stage's id. */
class RfactorStepNode : public StepNode {
 public:
  int iter_id{0};
  int factor_iter_id{0};
  TVM_AUTO_SCHEDULER_STEP_METHODS("RF");
  bool AddsStage() const final { return true; }
  TVM_DECLARE_NODE(RfactorStepNode, StepNode, "auto_scheduler.RfactorStep", Value(iter_id),
                   Value(factor_iter_id));
};

class RfactorStep : public Step {
 public:
  RfactorStep(int stage_id, int iter_id, int factor_iter_id);
  TVM_DEFINE_REF(RfactorStep, Step, RfactorStepNode);
};

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_TRANSFORM_STEP_H_
