/*!
 * \file tvm/auto_scheduler/compute_dag.h
 * \brief The operations of one workload in topological order, and what the search asks about them.
 */
#ifndef TVM_AUTO_SCHEDULER_COMPUTE_DAG_H_
#define TVM_AUTO_SCHEDULER_COMPUTE_DAG_H_

#include <tvm/auto_scheduler/loop_state.h>
#include <tvm/te/schedule.h>

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tvm {
namespace arith {
class VarContext;
}
namespace auto_scheduler {

class ComputeDAG;

/*!
 * \brief Who reads whom and how, computed once per DAG.
 *
 * Methods that take a State look through stages that the state has inlined.
 */
class AccessAnalyzer {
 public:
  using OperationSet = std::vector<te::Operation>;

  AccessAnalyzer(const Array<te::Operation>& ops, const Array<te::Operation>& outputs);

  /*! \brief All reads are own axes, optionally shifted by a literal. */
  bool IsSimpleAccess(const te::Operation& op) const;
  /*! \brief Inlining never repeats or reorders work: simple reads in axis order, no exp, no branch.
   */
  bool IsStrictlyInlineable(const te::Operation& op) const;
  /*! \brief The op reads some producer repeatedly, so tiling its loops pays. */
  bool NeedsMultiLevelTiling(const te::Operation& op) const;
  bool IsOutput(const te::Operation& op) const;
  /*! \brief Readers of `op`, in DAG order; readers of an inlined reader count instead of it. */
  OperationSet GetConsumers(const State& state, const te::Operation& op) const;
  OperationSet GetProducers(const State& state, const te::Operation& op) const;
  OperationSet GetDirectProducers(const te::Operation& op) const;
  OperationSet GetDirectConsumers(const te::Operation& op) const;
  /*! \brief Leading axes that `op` and `target_op` have in common along the chain between them. */
  int GetNumCommonOuterIterator(const te::Operation& op, const te::Operation& target_op) const;
  /*! \brief From `op` to `target_op` every reader is the only one and reads elementwise. */
  bool ElementWiseMatch(const te::Operation& op, const te::Operation& target_op) const;
  const Array<te::Operation>& ops() const { return ops_; }

 private:
  struct OpInfo {
    std::vector<te::Operation> readers;
    /*! \brief Each producer in first-read order, with the index lists of all reads of it. */
    std::vector<std::pair<te::Operation, std::vector<Array<PrimExpr>>>> reads;
    bool is_output{false};
    bool simple_access{true};
    bool strictly_inlineable{true};
    bool needs_multi_level_tiling{false};
  };

  const OpInfo& Info(const te::Operation& op) const;
  void AnalyzeCompute(const te::Operation& op);

  Array<te::Operation> ops_;
  std::unordered_map<const Object*, OpInfo> info_;
};

/*! \brief How the layout of a constant input is changed by ApplySteps. */
enum class LayoutRewriteOption : int {
  kNoRewrite = 0,
  /*! \brief A stage in the program transforms the input each time it runs. */
  kInsertTransformStage = 1,
  /*! \brief The program expects the input already transformed. */
  kRewriteForPreTransformed = 2,
};

/*! \throws ValueError if a number that was given for an option is none of them. */
void CheckLayoutRewrite(LayoutRewriteOption option);

/*!
 * \brief New layout of one placeholder.
 *
 * Dimension d of the new tensor has extent `extents[d]` and steps over original dimension
 * `dims[d]` by `strides[d]`: original index k = sum over d with dims[d] == k of index_d *
 * strides[d].
 */
class LayoutTransformNode : public Object {
 public:
  String placeholder;
  /*! \brief Position of the placeholder among the DAG's io tensors. */
  int tensor_index{0};
  Array<PrimExpr> original_shape;
  Array<int64_t> dims;
  Array<PrimExpr> extents;
  Array<PrimExpr> strides;
  TVM_DECLARE_NODE(LayoutTransformNode, Object, "auto_scheduler.LayoutTransform",
                   Value(placeholder), Value(tensor_index), Value(original_shape), Value(dims),
                   Value(extents), Value(strides));
};

class LayoutTransform : public FromFields<ObjectRef, LayoutTransformNode> {
 public:
  TVM_DEFINE_NODE_REF(LayoutTransform, LayoutTransformNode);
};

class ComputeDAGNode : public Object {
 public:
  /*! \brief Inputs, then outputs: the arguments of the compiled function. */
  Array<te::Tensor> tensors;
  /*! \brief Producers before readers. A state's stage ids count these. */
  Array<te::Operation> ops;
  /*! \brief Floating point operations of one run, -1 if an extent is symbolic or a node unknown. */
  double flop_ct{-1};
  State init_state;
  /*! \brief ValueError if a placeholder that is read is not among the tensors. */
  void Init();
  TVM_DECLARE_NODE(ComputeDAGNode, Object, "auto_scheduler.ComputeDAG", Value(tensors), Value(ops),
                   Derived(flop_ct), Ignore(init_state));

  /*! \brief Access analysis of `ops`, made on first use. */
  const AccessAnalyzer& access() const;
  /*! \brief What `make` finds out about the DAG: of each key made on first use, and kept with it.
   */
  template <typename T>
  std::shared_ptr<const T> Remember(const std::string& key,
                                    const std::function<std::shared_ptr<const T>()>& make) const {
    return std::static_pointer_cast<const T>(
        RememberAny(key, [&make]() -> std::shared_ptr<const void> { return make(); }));
  }

 private:
  std::shared_ptr<const void> RememberAny(
      const std::string& key, const std::function<std::shared_ptr<const void>()>& make) const;
  friend class ComputeDAG;
  struct Derived;
  static std::shared_ptr<Derived> NothingDerived();
  /*! \brief What is found out about the DAG on demand, by any thread. */
  std::shared_ptr<Derived> derived_ = NothingDerived();
};

class ComputeDAG : public FromFields<ObjectRef, ComputeDAGNode> {
 public:
  /*!
   * \brief From the io tensors, inputs first; every placeholder that is read must be among them.
   * The other constructor takes the order of operations, as after a stage-adding step.
   */
  explicit ComputeDAG(Array<te::Tensor> tensors);

  /*!
   * \brief The schedule that results from `steps`, and its arguments.
   * \param context Divisibility facts for symbolic split lengths; null if all are literal.
   */
  std::pair<te::Schedule, Array<te::Tensor>> ApplySteps(
      const Array<Step>& steps,
      LayoutRewriteOption layout_rewrite = LayoutRewriteOption::kNoRewrite,
      const arith::VarContext* context = nullptr) const;
  /*!
   * \brief `state` with the range of every loop filled in.
   * \param context Divisibility facts for symbolic split lengths; null if all are literal.
   */
  State InferBound(const State& state, const arith::VarContext* context = nullptr) const;
  /*!
   * \brief The DAG in which the stages added by the state's steps are operations.
   *
   * The same one for equal steps, as long as their numbers are literal.
   */
  ComputeDAG ReplayAndGetDAG(const Array<Step>& steps) const;
  /*! \brief New layouts of the layout-free placeholders: the loops that index them, in order. */
  Array<LayoutTransform> LayoutTransforms(const State& state) const;
  /*! \brief The DAG that reads placeholders in the given layouts. */
  ComputeDAG RewriteLayout(const Array<LayoutTransform>& transforms) const;
  /*!
   * \brief One line per operation.
   * \param simple Leave out placeholder shapes: the text that is hashed into a workload key, where
   *        the shapes stand beside the hash. It does tell dtypes, extents and attributes.
   */
  std::string PrintDAG(bool simple = false) const;
  /*! \brief The operations of the tensors that are computed: what a schedule is made for. */
  Array<te::Operation> OutputOps() const;

  TVM_DEFINE_NODE_REF_COW(ComputeDAG, ComputeDAGNode);
};

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_COMPUTE_DAG_H_
