/*!
 * \file tvm/te/hybrid_op.h
 * \brief Tensors written by a loop program whose loops can be scheduled.
 */
#ifndef TVM_TE_HYBRID_OP_H_
#define TVM_TE_HYBRID_OP_H_

#include <tvm/te/operation.h>

namespace tvm {
namespace te {

/*!
 * \brief Tensors that `body` writes element by element: loops around ProducerStore.
 *
 * `body` reads `inputs`, and knows its results as `outputs`, one placeholder each. A tensor of a
 * ProducerRealize is memory of its own. The loops of `body` are `axis`, outer ones before inner
 * ones; which of them may change places or run in parallel is left to whoever schedules them.
 */
class HybridOpNode : public OperationNode {
 public:
  Array<Tensor> inputs;
  Array<Tensor> outputs;
  Array<IterVar> axis;
  Stmt body;

  int num_outputs() const final { return static_cast<int>(outputs.size()); }
  DataType output_dtype(size_t i) const final;
  Array<PrimExpr> output_shape(size_t i) const final;
  Array<IterVar> root_iter_vars() const final { return axis; }
  Array<Tensor> InputTensors() const final;
  Operation ReplaceInputs(const Operation& self, const TensorMap<Tensor>& rmap) const final;
  void PropBoundToInputs(const Operation& self, arith::Analyzer* analyzer, const IntSetMap& dom_map,
                         TensorMap<TensorDom>* out) const final;
  void GatherBound(const Operation& self, arith::Analyzer* analyzer,
                   const TensorMap<TensorDom>& requests, RangeMap* out) const final;
  Stmt BuildRealize(const Stage& stage, LoweringContext* ctx, const Stmt& body) const final;
  Stmt BuildProvide(const Stage& stage, LoweringContext* ctx) const final;
  /*!
   * \brief The axes are found in `body`: its loops, but those bound to threads.
   *
   * ValueError if `body` reads a tensor that is neither an input nor an output nor memory of its
   * own, or writes one that is no output and no memory of its own.
   */
  void Init();
  TVM_DECLARE_NODE(HybridOpNode, OperationNode, "te.HybridOp", Value(inputs), Value(outputs),
                   Bind(axis), Value(body));
  TVM_NODE_ARGS(Value(name), Value(tag), Value(attrs), Value(inputs), Value(outputs), Value(body));
};

class HybridOp : public FromFields<Operation, HybridOpNode> {
 public:
  TVM_DEFINE_NODE_REF(HybridOp, HybridOpNode);
};

}  // namespace te
}  // namespace tvm
#endif  // TVM_TE_HYBRID_OP_H_
