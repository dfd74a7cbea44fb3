/*!
 * \file tvm/te/tensor.h
 * \brief Tensors defined by operations, and what every operation has to say about itself.
 */
#ifndef TVM_TE_TENSOR_H_
#define TVM_TE_TENSOR_H_

#include <tvm/expr/expr.h>
#include <tvm/tir/stmt.h>

#include <unordered_map>
#include <vector>

namespace tvm {
namespace arith {
class Analyzer;
class IntSet;
}  // namespace arith

namespace te {

using tir::Buffer;
using tir::CommReducer;
using tir::IterVar;
using tir::IterVarNode;
using tir::SizeVar;
using tir::Stmt;
using tir::Var;
using tir::VarNode;

class Operation;
class Stage;
class Tensor;
struct LoweringContext;
struct TensorHash;
struct TensorEqual;

/*! \brief Map keyed by the value a tensor stands for: its operation and output index. */
template <typename T>
using TensorMap = std::unordered_map<Tensor, T, TensorHash, TensorEqual>;
/*! \brief Domains of loops, keyed by identity. */
using RangeMap = std::unordered_map<IterVar, Range, ObjectPtrHash, ObjectPtrEqual>;
/*! \brief For each axis of a tensor, the index sets of all its reads that were seen. */
using TensorDom = std::vector<std::vector<arith::IntSet>>;
/*! \brief Index sets of variables. */
using IntSetMap = std::unordered_map<const VarNode*, arith::IntSet>;

/*! \brief Base of operations: nodes of the dataflow graph, immutable once made. */
class OperationNode : public Object {
 public:
  String name;
  /*! \brief Kind of the operation for schedules that look for it, for example "elemwise". */
  String tag;
  Map<String, ObjectRef> attrs;

  virtual int num_outputs() const = 0;
  virtual DataType output_dtype(size_t i) const = 0;
  virtual Array<PrimExpr> output_shape(size_t i) const = 0;
  /*! \brief The loops of an unscheduled nest: spatial axes, then reduction axes. */
  virtual Array<IterVar> root_iter_vars() const = 0;
  /*! \brief Every tensor that is read, once, in order of first use. */
  virtual Array<Tensor> InputTensors() const = 0;
  /*! \brief The operation reading `rmap[t]` in place of each t; `self` when none is read. */
  virtual Operation ReplaceInputs(const Operation& self, const TensorMap<Tensor>& rmap) const = 0;
  /*!
   * \brief Adds to `out` the index sets at which the inputs are read.
   * \param dom_map sets of the root axes' variables.
   * \param out only its keys are of interest; sets for other inputs are dropped.
   */
  virtual void PropBoundToInputs(const Operation& self, arith::Analyzer* analyzer,
                                 const IntSetMap& dom_map, TensorMap<TensorDom>* out) const = 0;
  /*! \brief Domains of the root axes that cover the requested sets of the outputs. */
  virtual void GatherBound(const Operation& self, arith::Analyzer* analyzer,
                           const TensorMap<TensorDom>& requests, RangeMap* out) const = 0;
  /*! \brief `body` inside the realization of all output buffers. */
  virtual Stmt BuildRealize(const Stage& stage, LoweringContext* ctx, const Stmt& body) const = 0;
  /*! \brief The loop nest that computes the outputs. */
  virtual Stmt BuildProvide(const Stage& stage, LoweringContext* ctx) const = 0;

  TVM_DECLARE_ABSTRACT_NODE(OperationNode, Object, "te.Operation", Value(name), Value(tag),
                            Value(attrs));
};

class Operation : public ObjectRef {
 public:
  /*! \brief The i-th result; tensors of equal operation and index are the same value. */
  Tensor output(size_t i) const;
  TVM_DEFINE_REF(Operation, ObjectRef, OperationNode);
};

/*! \brief Output `value_index` of `op`. */
class TensorNode : public tir::DataProducerNode {
 public:
  Array<PrimExpr> shape;
  DataType dtype;
  Operation op;
  int value_index = 0;

  Array<PrimExpr> GetShape() const final { return shape; }
  DataType GetDataType() const final { return dtype; }
  String GetNameHint() const final;
  /*! \brief ValueError unless the operation has such a result. */
  void Init();
  TVM_DECLARE_NODE(TensorNode, tir::DataProducerNode, "te.Tensor", Value(shape), Value(dtype),
                   Value(op), Value(value_index));
};

class Tensor : public FromFields<tir::DataProducer, TensorNode> {
 public:
  size_t ndim() const { return get()->shape.size(); }
  /*! \brief The element at `indices`; raises ValueError unless there is one index per axis. */
  PrimExpr operator()(const Array<PrimExpr>& indices) const;
  template <typename... Args>
  PrimExpr operator()(PrimExpr first, Args... rest) const {
    return (*this)(Array<PrimExpr>{first, PrimExpr(rest)...});
  }
  bool operator==(const Tensor& other) const;
  bool operator!=(const Tensor& other) const { return !(*this == other); }
  TVM_DEFINE_NODE_REF(Tensor, TensorNode);
};

struct TensorHash {
  size_t operator()(const Tensor& t) const;
};

struct TensorEqual {
  bool operator()(const Tensor& a, const Tensor& b) const { return a == b; }
};

}  // namespace te
}  // namespace tvm
#endif  // TVM_TE_TENSOR_H_
