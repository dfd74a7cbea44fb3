/*!
 * \file tvm/auto_scheduler/loop_state.h
 * \brief The loop structure of a partly scheduled ComputeDAG, as immutable data.
 *
 * A State is the list of stages with their loops plus the transform steps that led there. It is
 * cheap to copy, so a search can branch, and it is replayed on a te schedule only to infer bounds
 * or to generate code.
 */
#ifndef TVM_AUTO_SCHEDULER_LOOP_STATE_H_
#define TVM_AUTO_SCHEDULER_LOOP_STATE_H_

#include <tvm/auto_scheduler/step.h>
#include <tvm/node/node.h>
#include <tvm/te/operation.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tvm {
namespace auto_scheduler {

class ComputeDAG;

enum class StageKind : int { kPlaceholder = 0, kCompute = 1 };

/*! \brief How a stage came to be. */
enum class StageOrigin : int {
  kOriginal = 0,
  kCacheRead = 1,
  kCacheWrite = 2,
  kRfactor = 3,
  /*! \brief A longer copy of its source. */
  kPadRead = 4,
  /*! \brief What its source is a part of, computed over longer axes. */
  kPadAxes = 5,
};

enum class ComputeAtKind : int { kRoot = 0, kInlined = 1, kIter = 2 };

enum class IteratorKind : int { kSpatial = 0, kReduction = 1, kMixed = 2, kSpecial = 3 };

/*! \brief What a loop is run as. The values are those of the record format. */
enum class IteratorAnnotation : int {
  kNone = 0,
  kUnroll = 1,
  kVectorize = 2,
  kParallel = 3,
  kVThread = 4,
  kBlockX = 5,
  kThreadX = 6,
  kBlockY = 7,
  kThreadY = 8,
  kBlockZ = 9,
  kThreadZ = 10,
  kTensorize = 11,
};

/*! \brief The word that the state text uses for an annotation, "for" for none. */
const char* AnnotationText(IteratorAnnotation annotation);

/*!
 * \brief The slice of one axis of an operation that a loop walks.
 *
 * `axis` counts the operation's space axes first, then its reduction axes. The loop contributes
 * `value * stride` to the axis, with value in [0, extent). Known only while every split of the axis
 * was exact.
 */
class LoopPartNode : public Object {
 public:
  int axis{0};
  PrimExpr extent;
  PrimExpr stride;
  TVM_DECLARE_NODE(LoopPartNode, Object, "auto_scheduler.LoopPart", Value(axis), Value(extent),
                   Value(stride));
};

class LoopPart : public FromFields<ObjectRef, LoopPartNode> {
 public:
  TVM_DEFINE_NODE_REF(LoopPart, LoopPartNode);
};

/*! \brief One loop of a stage. */
class IteratorNode : public Object {
 public:
  String name;
  /*! \brief Undefined until bounds are inferred. */
  Optional<Range> range;
  IteratorKind iter_kind{IteratorKind::kSpatial};
  IteratorAnnotation annotation{IteratorAnnotation::kNone};
  /*! \brief Which part of a split the loop is, the outermost 0; -1 if no split made it. */
  int split_part{-1};
  /*! \brief The loops this one was fused from, outermost first. */
  Array<ObjectRef> orig_iters;
  /*! \brief Slices of the stage's axes, outermost first; empty if not a plain product of slices.
   *
   * Independent of where the stage is computed, so it survives compute_at, which clears `range`.
   */
  Array<LoopPart> parts;
  TVM_DECLARE_NODE(IteratorNode, Object, "auto_scheduler.Iterator", Value(name), Value(range),
                   Value(iter_kind), Value(annotation), Value(split_part), Ignore(orig_iters),
                   Value(parts));
  TVM_NODE_ARGS(Value(name), Value(range), Value(iter_kind), Value(annotation), Default(orig_iters),
                Default(parts));
};

class Iterator : public FromFields<ObjectRef, IteratorNode> {
 public:
  /*! \brief The literal trip count, or -1 if the range is unknown or symbolic. */
  int64_t ConstExtent() const;
  TVM_DEFINE_NODE_REF_COW(Iterator, IteratorNode);
};

/*! \brief One operation of the DAG with its loops and the place where it is computed. */
class StageNode : public Object {
 public:
  te::Operation op;
  /*! \brief Identity: stays the same whatever stages are added around it. */
  int id{0};
  StageOrigin origin{StageOrigin::kOriginal};
  /*! \brief Identity of the stage that this one was taken from; -1 for an original one. */
  int source{-1};
  /*! \brief Memory of a cache stage, such as "local"; empty for the others. */
  String scope;
  StageKind op_type{StageKind::kCompute};
  Array<Iterator> iters;
  ComputeAtKind compute_at{ComputeAtKind::kRoot};
  /*!
   * \brief Identity of the stage, and position of its loop, that this one is attached to; both -1
   *        unless `compute_at` is kIter.
   */
  int attach_stage{-1};
  int attach_iter{-1};
  /*! \brief The steps that split loops of the stage, by their positions in the history. */
  Array<int64_t> split_steps;
  int auto_unroll_max_step{0};
  int storage_offset{0};
  TVM_DECLARE_NODE(StageNode, Object, "auto_scheduler.Stage", Value(op), Value(id), Value(origin),
                   Value(source), Value(scope), Value(op_type), Value(iters), Value(compute_at),
                   Value(attach_stage), Value(attach_iter), Value(split_steps),
                   Value(auto_unroll_max_step), Value(storage_offset));
  TVM_NODE_ARGS();
};

class Stage : public ObjectRef {
 public:
  /*! \brief The stage of an operation nothing has been done to. */
  Stage(te::Operation op, int id);
  TVM_DEFINE_REF_COW(Stage, ObjectRef, StageNode);
};

class StateNode : public Object {
 public:
  Array<Stage> stages;
  Array<Step> transform_steps;
  /*! \brief The DAG after the stage-adding steps (a ComputeDAG); undefined if there were none. */
  Optional<ObjectRef> current_compute_dag;
  /*! \brief False while some split length is still open. */
  bool concrete{true};
  TVM_DECLARE_NODE(StateNode, Object, "auto_scheduler.State", Value(stages), Value(transform_steps),
                   Ignore(current_compute_dag), Value(concrete));
  TVM_NODE_ARGS();
};

/*!
 * \brief A State, with the schedule primitives as methods.
 *
 * Each primitive appends one step to the history and applies it to the loops. `stage_id` is a
 * position in `stages`, as in records; a step that adds a stage shifts the positions behind it and
 * returns the new stage's. What must outlive that refers to a stage by its identity, `Stage::id`.
 */
class State : public ObjectRef {
 public:
  explicit State(const Array<te::Operation>& ops);

  /*! \brief Loop text, outermost stages first; loops that run once are left out. */
  std::string ToStr(bool delete_trivial_loop = true) const;
  /*! \brief Hash of what ToStr prints, without printing it: equal programs have equal hashes. */
  uint64_t ProgramHash() const;
  /*! \brief Position of the stage with an identity. */
  int PositionOf(int id) const;
  /*! \brief Positions of the stages attached to a loop, in order. */
  std::vector<int> AttachedStages(int stage_id, int iter_id) const;
  bool HasAttachedStages(int stage_id, int iter_id) const;

  Iterator bind(int stage_id, const Iterator& it, IteratorAnnotation thread_type);
  Iterator parallel(int stage_id, const Iterator& it);
  Iterator unroll(int stage_id, const Iterator& it, int max_unroll = -1);
  Iterator vectorize(int stage_id, const Iterator& it);
  Iterator annotate(int stage_id, const Iterator& it, IteratorAnnotation annotation);
  Iterator fuse(int stage_id, const Array<Iterator>& iters);
  void pragma(int stage_id, const Iterator& it, const String& pragma_type);
  void reorder(int stage_id, const Array<Iterator>& order);
  /*! \brief Split into `lengths.size() + 1` loops; an undefined length is decided later. */
  Array<Iterator> split(int stage_id, const Iterator& it, const Array<Optional<PrimExpr>>& lengths,
                        bool inner_to_outer = true);
  /*! \brief Split in two, the inner one of a length that no tuner varies. */
  Array<Iterator> fixed_split(int stage_id, const Iterator& it, int length);
  /*! \brief A loop of one trip around a longer one in place of an axis. */
  Array<Iterator> pad(int stage_id, const Iterator& it, int extent);
  Array<Iterator> follow_split(int stage_id, const Iterator& it, int src_step_id, int n_split);
  Array<Iterator> follow_fused_split(int stage_id, const Iterator& it,
                                     const Array<int64_t>& src_step_ids, int level,
                                     bool factor_or_nparts);
  void storage_align(int stage_id, const Iterator& it, int factor, int offset);
  void follow_storage_align(int stage_id, int dim, int src_step_id);
  /*! \brief Make copies that a stage reads as many trips ahead as `length` says; open if undefined.
   */
  void fetch_ahead(int stage_id, const Array<int64_t>& copy_ids, const Optional<PrimExpr>& length);
  void compute_at(int stage_id, int target_stage_id, const Iterator& target_iter);
  void compute_inline(int stage_id);
  void compute_root(int stage_id);
  int cache_read(int stage_id, const String& scope_name, const Array<int64_t>& reader_stage_ids,
                 const ComputeDAG& dag);
  /*! \brief A cache_read whose copy has dimension order[i] of the stage's result where i is. */
  int pack_read(int stage_id, const String& scope_name, const Array<int64_t>& reader_stage_ids,
                const Array<int64_t>& order, const ComputeDAG& dag);
  /*! \brief A copy with zeros behind the ends of the stage's result, for some readers. */
  int pad_read(int stage_id, const Array<int64_t>& reader_stage_ids, const Array<int64_t>& shape,
               const ComputeDAG& dag);
  /*! \brief Compute a sum of products over longer axes, and copy what was asked for out of it. */
  int pad_axes(int stage_id, const Array<int64_t>& extents, const ComputeDAG& dag);
  int cache_write(int stage_id, const String& scope_name, const ComputeDAG& dag);
  int rfactor(int stage_id, const Iterator& it, int factor_iter_id, const ComputeDAG& dag);

  /*!
   * \brief Append a step and apply it. Every primitive above goes through here.
   * \return Position of the stage that it has added, or of its own.
   */
  int AppendStep(const Step& step, const ComputeDAG& dag);
  /*! \brief The same for a step that adds no stage, which needs no DAG. */
  void AppendStep(const Step& step);

  TVM_DEFINE_REF_COW(State, ObjectRef, StateNode);
};

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_LOOP_STATE_H_
