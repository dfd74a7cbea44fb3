/*!
 * \file tvm/te/scan_op.h
 * \brief Recurrences: tensors whose slices along the first axis follow from the slices before.
 */
#ifndef TVM_TE_SCAN_OP_H_
#define TVM_TE_SCAN_OP_H_

#include <tvm/te/operation.h>

namespace tvm {
namespace te {

/*!
 * \brief Output i is `init[i]` at the first positions and `update[i]` at those of `scan_axis`.
 *
 * `update` reads `state_placeholder`, which stands for the outputs, at positions before its own.
 */
class ScanOpNode : public OperationNode {
 public:
  IterVar scan_axis;
  Array<Tensor> init;
  Array<Tensor> update;
  Array<Tensor> state_placeholder;
  /*! \brief What the steps read besides the states; nothing of it is computed in the steps. */
  Array<Tensor> inputs;

  int num_outputs() const final { return static_cast<int>(update.size()); }
  DataType output_dtype(size_t i) const final { return state_placeholder[i]->dtype; }
  Array<PrimExpr> output_shape(size_t i) const final { return state_placeholder[i]->shape; }
  Array<IterVar> root_iter_vars() const final { return {scan_axis}; }
  Array<Tensor> InputTensors() const final;
  Operation ReplaceInputs(const Operation& self, const TensorMap<Tensor>& rmap) const final;
  void PropBoundToInputs(const Operation& self, arith::Analyzer* analyzer, const IntSetMap& dom_map,
                         TensorMap<TensorDom>* out) const final;
  void GatherBound(const Operation& self, arith::Analyzer* analyzer,
                   const TensorMap<TensorDom>& requests, RangeMap* out) const final;
  Stmt BuildRealize(const Stage& stage, LoweringContext* ctx, const Stmt& body) const final;
  Stmt BuildProvide(const Stage& stage, LoweringContext* ctx) const final;
  /*! \brief ValueError unless states, starts and updates agree in number, shape and dtype. */
  void Init();
  TVM_DECLARE_NODE(ScanOpNode, OperationNode, "te.ScanOp", Bind(scan_axis), Value(init),
                   Value(update), Value(state_placeholder), Value(inputs));
};

class ScanOp : public FromFields<Operation, ScanOpNode> {
 public:
  TVM_DEFINE_NODE_REF(ScanOp, ScanOpNode);
};

/*! \brief The recurrence over the first axis; its steps begin where the starts end. */
Array<Tensor> scan(Array<Tensor> init, Array<Tensor> update, Array<Tensor> state_placeholder,
                   Array<Tensor> inputs = {}, String name = "scan", String tag = "",
                   Map<String, ObjectRef> attrs = {});

}  // namespace te
}  // namespace tvm
#endif  // TVM_TE_SCAN_OP_H_
