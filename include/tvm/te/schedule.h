/*!
 * \file tvm/te/schedule.h
 * \brief A schedule: one stage per operation, and the primitives that shape a stage's loops.
 *
 * Primitives only record what was asked for; InferBound and ScheduleOps carry it out. A primitive
 * that is not legal raises ScheduleError and leaves the schedule as it was.
 */
#ifndef TVM_TE_SCHEDULE_H_
#define TVM_TE_SCHEDULE_H_

#include <tvm/te/operation.h>
#include <tvm/te/tensor.h>
#include <tvm/te/tensor_intrin.h>
#include <tvm/tir/index_map.h>

namespace tvm {
namespace arith {
class VarContext;
}
namespace te {

class Schedule;

/*! \brief Where the loop nest of a stage is placed. */
enum AttachType : int {
  kGroupRoot = 1,
  kInline = 2,
  kInlinedAlready = 3,
  kScope = 4,
  /*! \brief Of a group: in the loop of a scan, whose next step its members compute. */
  kScanUpdate = 5,
};

/*! \brief How loops of a stage derive from one another. */
class IterVarRelationNode : public Object {
 public:
  TVM_DECLARE_ABSTRACT_NODE(IterVarRelationNode, Object, "te.IterVarRelation");
};

class IterVarRelation : public ObjectRef {
 public:
  TVM_DEFINE_REF(IterVarRelation, ObjectRef, IterVarRelationNode);
};

/*! \brief parent = outer * extent(inner) + inner; exactly one of `factor` and `nparts` is set. */
class SplitNode : public IterVarRelationNode {
 public:
  IterVar parent;
  IterVar outer;
  IterVar inner;
  /*! \brief Requested extent of `inner`; may be an expression over size variables. */
  PrimExpr factor;
  /*! \brief Requested extent of `outer`. */
  PrimExpr nparts;
  /*! \brief The scheduler's word that the sizes divide, so that nothing is guarded. */
  bool disable_predication = false;
  /*! \brief Whether `inner` has its extent however short the parent is, and producers make what
   *         the trips behind its end would read. */
  bool pads = false;
  /*! \brief ValueError unless exactly one of `factor` and `nparts` is there. */
  void Init();
  TVM_DECLARE_NODE(SplitNode, IterVarRelationNode, "te.Split", Value(parent), Value(outer),
                   Value(inner), Maybe(factor), Maybe(nparts), Default(disable_predication),
                   Default(pads));
};

class Split : public FromFields<IterVarRelation, SplitNode> {
 public:
  TVM_DEFINE_NODE_REF(Split, SplitNode);
};

/*! \brief fused = outer * extent(inner) + inner. */
class FuseNode : public IterVarRelationNode {
 public:
  IterVar outer;
  IterVar inner;
  IterVar fused;
  TVM_DECLARE_NODE(FuseNode, IterVarRelationNode, "te.Fuse", Value(outer), Value(inner),
                   Value(fused));
};

class Fuse : public FromFields<IterVarRelation, FuseNode> {
 public:
  TVM_DEFINE_NODE_REF(Fuse, FuseNode);
};

/*! \brief parent = rebased + min(parent), so that the generated loop starts at zero. */
class RebaseNode : public IterVarRelationNode {
 public:
  IterVar parent;
  IterVar rebased;
  TVM_DECLARE_NODE(RebaseNode, IterVarRelationNode, "te.Rebase", Value(parent), Value(rebased));
};

class Rebase : public FromFields<IterVarRelation, RebaseNode> {
 public:
  TVM_DEFINE_NODE_REF(Rebase, RebaseNode);
};

/*! \brief `iter` is a loop of one trip that stems from no axis: what fusing no loops gives. */
class SingletonNode : public IterVarRelationNode {
 public:
  IterVar iter;
  TVM_DECLARE_NODE(SingletonNode, IterVarRelationNode, "te.Singleton", Value(iter));
};

class Singleton : public FromFields<IterVarRelation, SingletonNode> {
 public:
  TVM_DEFINE_NODE_REF(Singleton, SingletonNode);
};

/*! \brief What the user asked for about one loop or, for alignment, one axis. */
class IterVarAttrNode : public Object {
 public:
  tir::IterVarType iter_type = tir::kDataPar;
  /*! \brief Thread axis the loop is bound to; undefined for a plain loop. */
  IterVar bind_thread;
  Array<Tensor> prefetch_data;
  /*! \brief Trips ahead of the loop, one per tensor of `prefetch_data`. */
  Array<PrimExpr> prefetch_offset;
  /*! \brief The stride of this axis becomes k * factor + offset elements; undefined for no request.
   */
  PrimExpr dim_align_factor;
  PrimExpr dim_align_offset;
  Array<PrimExpr> pragma_keys;
  Array<PrimExpr> pragma_values;
  /*! \brief What computes the loop and all loops in it; undefined for generated loops. */
  TensorIntrin tensor_intrin;
  void Init();
  TVM_DECLARE_NODE(IterVarAttrNode, Object, "te.IterVarAttr", Value(iter_type), Maybe(bind_thread),
                   Value(prefetch_data), Value(prefetch_offset), Maybe(dim_align_factor),
                   Maybe(dim_align_offset), Value(pragma_keys), Value(pragma_values),
                   Maybe(tensor_intrin));
  TVM_NODE_ARGS();
};

class IterVarAttr : public ObjectRef {
 public:
  TVM_DEFINE_REF_COW(IterVarAttr, ObjectRef, IterVarAttrNode);
};

class StageNode;
class ScheduleNode;

/*!
 * \brief A mutable handle: copies of a Stage share the node.
 *
 * A stage without an operation is a group: its members without a place of their own are computed
 * where the group is attached.
 */
class Stage : public ObjectRef {
 public:
  explicit Stage(Operation op, bool is_output = false);

  /*! \brief Memory the results live in: "global", "local", "shared", ... */
  Stage& set_scope(String scope);
  /*! \brief Stores only where `predicate` holds, for example in one thread of several. */
  Stage& set_store_predicate(PrimExpr predicate);
  /*! \brief Launches `threads`, of given extents, around the loop of a scan. */
  Stage& env_threads(const Array<IterVar>& threads);
  /*! \brief Computes this stage inside loop `scope` of stage `parent`. */
  Stage& compute_at(Stage parent, IterVar scope);
  /*! \brief Substitutes the definition where it is read. */
  Stage& compute_inline();
  /*! \brief Computes the whole tensor before its readers. */
  Stage& compute_root();
  /*! \brief Maps the loop to a thread axis. */
  Stage& bind(IterVar loop, IterVar thread);
  /*!
   * \brief Splits by the extent of the inner loop, rounded up when it does not divide.
   * \param disable_predication The caller knows that it divides: the last trip is not guarded.
   */
  Stage& split(IterVar parent, PrimExpr factor, IterVar* outer, IterVar* inner,
               bool disable_predication = false);
  /*! \brief Splits by the extent of the outer loop. */
  Stage& split_by_nparts(IterVar parent, PrimExpr nparts, IterVar* outer, IterVar* inner,
                         bool disable_predication = false);
  /*!
   * \brief Makes a loop longer: `extent` trips inside of one.
   *
   * What the stage stores is guarded. Of stages that are computed inside of it, it takes as much as
   * a loop of that extent would.
   */
  Stage& pad(IterVar loop, int64_t extent, IterVar* once, IterVar* padded);
  /*! \brief Joins two neighbouring loops, `outer` directly around `inner`. */
  Stage& fuse(IterVar outer, IterVar inner, IterVar* fused);
  /*! \brief Joins any number of neighbouring loops; none gives a loop of one trip. */
  Stage& fuse(const Array<IterVar>& loops, IterVar* fused);
  /*! \brief Puts the named loops in this order into the places they hold together. */
  Stage& reorder(const Array<IterVar>& order);
  /*! \brief Splits two loops and orders them as x_outer, y_outer, x_inner, y_inner. */
  Stage& tile(IterVar x, IterVar y, PrimExpr x_factor, PrimExpr y_factor, IterVar* x_outer,
              IterVar* y_outer, IterVar* x_inner, IterVar* y_inner);
  Stage& vectorize(IterVar loop);
  Stage& unroll(IterVar loop);
  Stage& parallel(IterVar loop);
  /*! \brief Has `intrin` compute the loop and all loops inside of it, block by block. */
  Stage& tensorize(IterVar loop, TensorIntrin intrin);
  /*! \brief Attaches the attribute pragma_<key> with `value` to the loop. */
  Stage& pragma(IterVar loop, const String& key, const PrimExpr& value = PrimExpr());
  /*! \brief Reads `tensor` `offset` trips of `loop` ahead of its use into the caches. */
  Stage& prefetch(const Tensor& tensor, IterVar loop, PrimExpr offset);
  /*! \brief Pads the stride of `axis` to k * factor + offset elements. */
  Stage& storage_align(IterVar axis, const PrimExpr& factor, const PrimExpr& offset);
  Stage& double_buffer();
  /*! \brief Whether the stage has loops of its own (not inlined, not an input). */
  bool is_scheduled() const;
  /*! \brief The stage itself, or the group around it that says where it is attached. */
  Stage attached_by() const;

  TVM_DEFINE_REF_COMMON_(Stage, ObjectRef, StageNode);
  StageNode* get() const;
  StageNode* operator->() const { return ::tvm::runtime::NotNull(get()); }
};

class StageNode : public Object {
 public:
  /*! \brief The operation as rewritten by the schedule. */
  Operation op;
  /*! \brief The operation as the user wrote it; names the tensor in calls of `lower`. */
  Operation origin_op;
  /*! \brief All loops ever made, roots first. */
  Array<IterVar> all_iter_vars;
  /*! \brief The loops as they will be generated, outermost first. */
  Array<IterVar> leaf_iter_vars;
  Array<IterVarRelation> relations;
  Map<IterVar, IterVarAttr> iter_var_attrs;
  AttachType attach_type = kGroupRoot;
  IterVar attach_ivar;
  Stage attach_stage;
  /*! \brief Empty when it follows from where the stage is attached. */
  String scope;
  bool is_output = false;
  bool double_buffer = false;
  /*! \brief The group that the stage is a member of, or undefined. */
  Stage group;
  /*! \brief Of a group: how many stages and groups are directly in it. */
  int num_child_stages = 0;
  /*! \brief Undefined to store always. */
  PrimExpr store_predicate;
  /*! \brief Where the results lie in memory: maps of indices, the first one of those of the op. */
  Array<tir::IndexMap> layouts;
  /*! \brief Axes of the last of `layouts` before which flat memory is cut into axes of its own. */
  Array<Integer> axis_separators;
  /*! \brief The schedule that keeps a history and is told of every primitive; no field. */
  ScheduleNode* keeper = nullptr;
  /*! \brief ValueError unless the loops are those that the relations make, in their order. */
  void Init();
  TVM_DECLARE_NODE(StageNode, Object, "te.Stage", Maybe(op), Maybe(origin_op), Value(all_iter_vars),
                   Value(leaf_iter_vars), Value(relations), Value(iter_var_attrs),
                   Value(attach_type), Maybe(attach_ivar), Maybe(attach_stage), Value(scope),
                   Value(is_output), Value(double_buffer), Maybe(group), Value(num_child_stages),
                   Maybe(store_predicate), Default(layouts), Default(axis_separators));
  TVM_NODE_ARGS();
};

// StageNode holds a Stage, so these wait until it is complete.
inline StageNode* Stage::get() const { return static_cast<StageNode*>(data_.get()); }

class ScheduleNode : public Object {
 public:
  Array<Operation> outputs;
  /*! \brief Producers come before their readers. */
  Array<Stage> stages;
  /*! \brief Groups that were made, in the order they were made. */
  Array<Stage> groups;
  /*! \brief From operations, original and rewritten, to their stage. */
  Map<Operation, Stage> stage_map;
  /*!
   * \brief Copies of the schedule, as it was made and after each primitive; empty unless the option
   *        `te.keep_schedule_record` was on when it was made.
   */
  Array<ObjectRef> schedule_record;
  /*! \brief What led to each of them; the first one is "vanilla". */
  Array<String> primitive_record;
  ~ScheduleNode();
  /*! \brief Adds to the history that `primitive` was done. */
  void Record(const char* primitive);
  /*! \brief The same if there is a history. */
  void Note(const char* primitive) {
    if (!primitive_record.empty()) Record(primitive);
  }
  /*! \brief ValueError unless every stage is placed within the schedule, and after what it reads.
   */
  void Init();
  TVM_DECLARE_NODE(ScheduleNode, Object, "te.Schedule", Value(outputs), Value(stages),
                   Value(groups), Value(stage_map), Ignore(schedule_record),
                   Ignore(primitive_record));
  TVM_NODE_ARGS();
};

class Schedule : public ObjectRef {
 public:
  /*! \brief A schedule that computes `outputs` with every operation at the root. */
  explicit Schedule(Array<Operation> outputs);
  /*! \brief A deep copy of the stages; operations are shared. */
  Schedule copy() const;
  Stage operator[](const Operation& op) const;
  Stage operator[](const Tensor& tensor) const;
  /*!
   * \brief Joins the stages between `inputs` and `outputs` to be attached together.
   * \param include_inputs whether the stages of `inputs` are members too.
   */
  Stage create_group(const Array<Tensor>& outputs, const Array<Tensor>& inputs,
                     bool include_inputs = false);
  /*! \brief A copy of `tensor` in `scope`, read by `readers` instead of it. */
  Tensor cache_read(const Tensor& tensor, const String& scope, const Array<Operation>& readers);
  /*!
   * \brief Computes the outputs of one operation in `scope`, then copies them out.
   *
   * The cached tensors are laid out in the present loop order of the stage, whose loops are reset
   * to plain axes.
   */
  Array<Tensor> cache_write(const Array<Tensor>& tensors, const String& scope);
  Tensor cache_write(const Tensor& tensor, const String& scope);
  /*!
   * \brief Makes reduction loop `axis` a spatial axis of partial results, reduced afterwards.
   * \param factor_axis place of the new axis, counted from the end when negative.
   * \param var_context what is known of lengths of splits that are variables; null if there are
   *        none.
   * \return the partial results, one tensor per output.
   */
  Array<Tensor> rfactor(const Tensor& tensor, const IterVar& axis, int factor_axis = 0,
                        const arith::VarContext* var_context = nullptr);
  /*! \brief A copy ready for InferBound: inlined stages substituted, all loops zero-based. */
  Schedule normalize() const;
  /*!
   * \brief Like normalize, but inlined constant matrices read as 1.
   *
   * Their large selections would dominate operation counts although they vanish once unrolled.
   */
  Schedule normalize_for_feature_extraction() const;
  TVM_DEFINE_MUTABLE_REF(Schedule, ObjectRef, ScheduleNode);
};

inline Schedule create_schedule(Array<Operation> outputs) { return Schedule(outputs); }

}  // namespace te
}  // namespace tvm
#endif  // TVM_TE_SCHEDULE_H_
