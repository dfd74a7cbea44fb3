/*!
 * \file tvm/te/operation.h
 * \brief The kinds of operations, and functions that build tensors from them.
 */
#ifndef TVM_TE_OPERATION_H_
#define TVM_TE_OPERATION_H_

#include <tvm/te/tensor.h>

#include <functional>
#include <string>

namespace tvm {
namespace te {

/*! \brief An input of the program: a tensor that nothing computes. */
class PlaceholderOpNode : public OperationNode {
 public:
  Array<PrimExpr> shape;
  DataType dtype;

  int num_outputs() const final { return 1; }
  DataType output_dtype(size_t i) const final { return dtype; }
  Array<PrimExpr> output_shape(size_t i) const final { return shape; }
  Array<IterVar> root_iter_vars() const final { return {}; }
  Array<Tensor> InputTensors() const final { return {}; }
  Operation ReplaceInputs(const Operation& self, const TensorMap<Tensor>& rmap) const final;
  void PropBoundToInputs(const Operation& self, arith::Analyzer* analyzer, const IntSetMap& dom_map,
                         TensorMap<TensorDom>* out) const final;
  void GatherBound(const Operation& self, arith::Analyzer* analyzer,
                   const TensorMap<TensorDom>& requests, RangeMap* out) const final;
  Stmt BuildRealize(const Stage& stage, LoweringContext* ctx, const Stmt& body) const final;
  Stmt BuildProvide(const Stage& stage, LoweringContext* ctx) const final;
  /*! \brief TypeError unless the extents are integers. */
  void Init();
  TVM_DECLARE_NODE(PlaceholderOpNode, OperationNode, "te.PlaceholderOp", Value(shape),
                   Value(dtype));
  TVM_NODE_ARGS(Value(name), Value(shape), Value(dtype));
};

class PlaceholderOp : public FromFields<Operation, PlaceholderOpNode> {
 public:
  TVM_DEFINE_NODE_REF(PlaceholderOp, PlaceholderOpNode);
};

/*!
 * \brief Tensors given element by element.
 *
 * Output i at indices `axis` is `body[i]`. When one body is a Reduce all of them are, with the same
 * combiner, sources and axes, differing in `value_index` only.
 */
class ComputeOpNode : public OperationNode {
 public:
  Array<IterVar> axis;
  Array<IterVar> reduce_axis;
  Array<PrimExpr> body;

  int num_outputs() const final { return static_cast<int>(body.size()); }
  DataType output_dtype(size_t i) const final;
  Array<PrimExpr> output_shape(size_t i) const final;
  Array<IterVar> root_iter_vars() const final;
  Array<Tensor> InputTensors() const final;
  Operation ReplaceInputs(const Operation& self, const TensorMap<Tensor>& rmap) const final;
  void PropBoundToInputs(const Operation& self, arith::Analyzer* analyzer, const IntSetMap& dom_map,
                         TensorMap<TensorDom>* out) const final;
  void GatherBound(const Operation& self, arith::Analyzer* analyzer,
                   const TensorMap<TensorDom>& requests, RangeMap* out) const final;
  Stmt BuildRealize(const Stage& stage, LoweringContext* ctx, const Stmt& body) const final;
  Stmt BuildProvide(const Stage& stage, LoweringContext* ctx) const final;
  /*! \brief Reduction axes are found in `body`; ValueError for an ill-formed body. */
  void Init();
  TVM_DECLARE_NODE(ComputeOpNode, OperationNode, "te.ComputeOp", Bind(axis), Bind(reduce_axis),
                   Value(body));
  TVM_NODE_ARGS(Value(name), Value(tag), Value(attrs), Value(axis), Value(body));
};

class ComputeOp : public FromFields<Operation, ComputeOpNode> {
 public:
  TVM_DEFINE_NODE_REF(ComputeOp, ComputeOpNode);
};

/*!
 * \brief Tensors written by a statement that te does not look into.
 *
 * `body` reads `input_placeholders` and writes `output_placeholders`, one buffer per tensor.
 */
class ExternOpNode : public OperationNode {
 public:
  Array<Tensor> inputs;
  Array<Buffer> input_placeholders;
  Array<Buffer> output_placeholders;
  Stmt body;

  int num_outputs() const final { return static_cast<int>(output_placeholders.size()); }
  DataType output_dtype(size_t i) const final;
  Array<PrimExpr> output_shape(size_t i) const final;
  Array<IterVar> root_iter_vars() const final { return {}; }
  Array<Tensor> InputTensors() const final;
  Operation ReplaceInputs(const Operation& self, const TensorMap<Tensor>& rmap) const final;
  void PropBoundToInputs(const Operation& self, arith::Analyzer* analyzer, const IntSetMap& dom_map,
                         TensorMap<TensorDom>* out) const final;
  void GatherBound(const Operation& self, arith::Analyzer* analyzer,
                   const TensorMap<TensorDom>& requests, RangeMap* out) const final;
  Stmt BuildRealize(const Stage& stage, LoweringContext* ctx, const Stmt& body) const final;
  Stmt BuildProvide(const Stage& stage, LoweringContext* ctx) const final;
  /*! \brief ValueError unless there is a buffer for every input, and an output. */
  void Init();
  TVM_DECLARE_NODE(ExternOpNode, OperationNode, "te.ExternOp", Value(inputs),
                   Bind(input_placeholders), Bind(output_placeholders), Value(body));
};

class ExternOp : public FromFields<Operation, ExternOpNode> {
 public:
  TVM_DEFINE_NODE_REF(ExternOp, ExternOpNode);
};

using FCompute = std::function<PrimExpr(const Array<Var>& indices)>;
using FBatchCompute = std::function<Array<PrimExpr>(const Array<Var>& indices)>;

/*! \brief A tensor of the program's input. */
Tensor placeholder(Array<PrimExpr> shape, DataType dtype = DataType::Float(32),
                   String name = "placeholder");
/*! \brief The tensor whose element at (ax0, ax1, ...) is `fcompute({ax0, ax1, ...})`. */
Tensor compute(Array<PrimExpr> shape, const FCompute& fcompute, String name = "tensor",
               String tag = "", Map<String, ObjectRef> attrs = {});
/*! \brief Several tensors of one shape computed in one nest. */
Array<Tensor> compute(Array<PrimExpr> shape, const FBatchCompute& fcompute, String name = "tensor",
                      String tag = "", Map<String, ObjectRef> attrs = {});
/*! \brief An axis to reduce over. */
IterVar reduce_axis(Range dom, String name = "rv");
/*! \brief A thread axis; an undefined `dom` takes its extent from the loop that is bound to it. */
IterVar thread_axis(Range dom, String tag);

}  // namespace te
}  // namespace tvm
#endif  // TVM_TE_OPERATION_H_
