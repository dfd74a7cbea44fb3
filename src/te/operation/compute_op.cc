/*!
 * \file compute_op.cc
 * \brief Tensors given element by element: construction, bounds and loop nests.
 */
#include <tvm/expr/op.h>
#include <tvm/expr/substitute.h>
#include <tvm/node/repr_printer.h>
#include <tvm/node/structural_equal.h>
#include <tvm/runtime/registry.h>
#include <tvm/te/operation.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <string>
#include <utility>

#include "cross_thread_reduction.h"
#include "op_utils.h"
#include "tensorize.h"

namespace tvm {
namespace te {

using arith::IntSet;

TVM_REGISTER_NODE(ComputeOpNode);

TVM_REGISTER_REPR(ComputeOpNode, [](const ComputeOpNode* node, ReprPrinter* p) {
  p->stream << "compute(" << std::string(node->name) << ", body=" << node->body
            << ", axis=" << node->axis << ", reduce_axis=" << node->reduce_axis
            << ", tag=" << std::string(node->tag) << ", attrs=" << node->attrs << ')';
});

namespace {

const tir::ReduceNode* AsReduce(const PrimExpr& body) { return body.as<tir::ReduceNode>(); }

/*! \brief The expressions that one iteration evaluates; a joint reduction counts once. */
std::vector<PrimExpr> EvaluatedExprs(const ComputeOpNode* op) {
  if (AsReduce(op->body[0])) return {op->body[0]};
  return {op->body.begin(), op->body.end()};
}

/*! \brief Raises ValueError unless all bodies are the same reduction, or none is one. */
void CheckBodies(const String& name, const Array<PrimExpr>& body) {
  TVM_CHECK(!body.empty(), ValueError) << "compute " << name << ": no output expression given";
  const tir::ReduceNode* first = AsReduce(body[0]);
  for (size_t i = 0; i < body.size(); ++i) {
    PrimExpr expr = body[i];
    TVM_CHECK(expr.dtype().is_scalar(), TypeError)
        << "compute " << name << ": elements must be scalars, got dtype " << expr.dtype();
    const tir::ReduceNode* reduce = AsReduce(expr);
    TVM_CHECK((reduce != nullptr) == (first != nullptr), ValueError)
        << "compute " << name << ": output " << i << (reduce ? " is" : " is not")
        << " a reduction, unlike output 0; compute them in separate operations";
    if (reduce != nullptr && i > 0) {
      bool same_axes = reduce->axis.size() == first->axis.size();
      for (size_t k = 0; same_axes && k < reduce->axis.size(); ++k) {
        same_axes = reduce->axis[k].same_as(first->axis[k]);
      }
      TVM_CHECK(same_axes && reduce->source.size() == first->source.size() &&
                    reduce->value_index == static_cast<int>(i),
                ValueError)
          << "compute " << name << ": outputs of one reduction must be the values of one "
          << "combiner over the same axes, in order; compute others in separate operations";
    }
    // An inner reduction has no loop of its own, so it has nowhere to accumulate.
    tir::PostOrderVisit(expr, [&](const ObjectRef& node) {
      TVM_CHECK(!node.as<tir::ReduceNode>() || node.same_as(expr), ValueError)
          << "compute " << name << ": a reduction must be the whole body of a compute, found one "
          << "inside the expression " << expr << "; give it a tensor of its own";
    });
  }
}

}  // namespace

void ComputeOpNode::Init() {
  CheckBodies(name, body);
  for (const IterVar& iv : axis) {
    TVM_CHECK(iv->dom.defined(), ValueError)
        << "compute " << name << ": the axis " << iv << " has no range";
  }
  Array<IterVar> found;
  if (const tir::ReduceNode* reduce = AsReduce(body[0])) found = reduce->axis;
  TVM_CHECK(reduce_axis.empty() || StructuralEqual()(reduce_axis, found), ValueError)
      << "compute " << name << ": the expressions reduce over " << found << ", the node says "
      << reduce_axis;
  reduce_axis = std::move(found);
}

DataType ComputeOpNode::output_dtype(size_t i) const {
  return PrimExpr(body[static_cast<int64_t>(i)]).dtype();
}

Array<PrimExpr> ComputeOpNode::output_shape(size_t i) const {
  Array<PrimExpr> shape;
  for (const IterVar& iv : axis) shape.push_back(iv->dom->extent);
  return shape;
}

Array<IterVar> ComputeOpNode::root_iter_vars() const {
  Array<IterVar> roots = axis;
  for (const IterVar& iv : reduce_axis) roots.push_back(iv);
  return roots;
}

Array<Tensor> ComputeOpNode::InputTensors() const {
  std::vector<Tensor> reads;
  for (const PrimExpr& expr : EvaluatedExprs(this)) CollectReads(expr, &reads);
  return Array<Tensor>(reads.begin(), reads.end());
}

Operation ComputeOpNode::ReplaceInputs(const Operation& self, const TensorMap<Tensor>& rmap) const {
  Array<PrimExpr> replaced;
  if (AsReduce(body[0])) {
    // All outputs of a joint reduction must go on sharing one tuple of sources.
    PrimExpr first = ReplaceTensor(body[0], rmap);
    const tir::ReduceNode* reduce = AsReduce(first);
    if (first.same_as(body[0])) return self;
    for (size_t i = 0; i < body.size(); ++i) {
      replaced.push_back(tir::Reduce(reduce->combiner, reduce->source, reduce->axis,
                                     reduce->condition, static_cast<int>(i), reduce->init));
    }
  } else {
    bool changed = false;
    for (const PrimExpr& expr : body) {
      replaced.push_back(ReplaceTensor(expr, rmap));
      changed |= !replaced.back().same_as(expr);
    }
    if (!changed) return self;
  }
  return ComputeOp(name, tag, attrs, axis, replaced);
}

void ComputeOpNode::PropBoundToInputs(const Operation& self, arith::Analyzer* analyzer,
                                      const IntSetMap& dom_map, TensorMap<TensorDom>* out) const {
  auto visit = [&](const ObjectRef& node) {
    const auto* load = node.as<tir::ProducerLoadNode>();
    if (load == nullptr || !load->producer->IsInstance<TensorNode>()) return;
    auto it = out->find(Downcast<Tensor>(load->producer));
    if (it == out->end()) return;
    const Tensor& tensor = it->first;
    it->second.resize(tensor.ndim());
    for (size_t i = 0; i < load->indices.size(); ++i) {
      IntSet read = arith::EvalSet(load->indices[i], dom_map, analyzer);
      PrimExpr last = tensor->shape[i] - 1;
      PrimExpr zero = tir::make_zero(last.dtype());
      // A padded read goes over the edge in form, not in fact. Only an edge that is certain is
      // cut: a minimum with the shape in it would spoil the extents of inner loops.
      // Loops count in the type of the shape, whatever the type of the index.
      PrimExpr low = read.HasLowerBound() ? cast(last.dtype(), read.min()) : zero;
      PrimExpr high = read.HasUpperBound() ? cast(last.dtype(), read.max()) : last;
      if (analyzer->CanProve(low < zero)) low = zero;
      if (analyzer->CanProve(high >= last)) high = last;
      it->second[i].push_back(IntSet::Interval(low, high));
    }
  };
  for (const PrimExpr& expr : EvaluatedExprs(this)) tir::PostOrderVisit(expr, visit);
}

void ComputeOpNode::GatherBound(const Operation& self, arith::Analyzer* analyzer,
                                const TensorMap<TensorDom>& requests, RangeMap* out) const {
  std::vector<Array<IntSet>> sets(axis.size());
  for (int i = 0; i < num_outputs(); ++i) {
    auto it = requests.find(self.output(i));
    if (it == requests.end()) continue;
    for (size_t k = 0; k < it->second.size(); ++k) {
      for (const IntSet& set : it->second[k]) sets[k].push_back(set);
    }
  }
  for (size_t k = 0; k < axis.size(); ++k) {
    Range wanted =
        sets[k].empty() ? axis[k]->dom : arith::Union(sets[k], analyzer).CoverRange(axis[k]->dom);
    PrimExpr start = analyzer->Simplify(wanted->min);
    PrimExpr extent = analyzer->Simplify(wanted->extent);
    (*out)[axis[k]] = Range::FromMinExtent(start, extent);
  }
  for (const IterVar& iv : reduce_axis) (*out)[iv] = iv->dom;
}

Stmt ComputeOpNode::BuildRealize(const Stage& stage, LoweringContext* ctx, const Stmt& body) const {
  Array<Range> bounds;
  for (const IterVar& iv : axis) bounds.push_back(ctx->domains.at(iv));
  Stmt realize = body;
  for (int i = num_outputs(); i != 0; --i) {
    const Buffer& buffer = ctx->buffers.at(stage->op.output(i - 1));
    realize = tir::BufferRealize(buffer, bounds, tir::const_true(), realize);
    for (size_t k = axis.size(); k != 0; --k) {
      auto it = stage->iter_var_attrs.find(axis[k - 1]);
      if (it == stage->iter_var_attrs.end()) continue;
      IterVarAttr attr = (*it).second;
      if (!attr->dim_align_factor.defined()) continue;
      realize = tir::AttrStmt(
          buffer, tir::attr::storage_alignment,
          StorageAlignment(static_cast<int>(k - 1), attr->dim_align_factor, attr->dim_align_offset),
          realize);
    }
  }
  return realize;
}

namespace {

Array<PrimExpr> OutputIndices(const ComputeOpNode* op, const IterVarMap<PrimExpr>& values) {
  Array<PrimExpr> indices;
  for (const IterVar& iv : op->axis) indices.push_back(values.at(iv));
  return indices;
}

Stmt StoreOutputs(const Stage& stage, const Array<PrimExpr>& values, const Array<PrimExpr>& indices,
                  LoweringContext* ctx) {
  Array<Stmt> stores;
  for (size_t i = 0; i < values.size(); ++i) {
    const Buffer& buffer = ctx->buffers.at(stage->op.output(i));
    stores.push_back(tir::BufferStore(buffer, values[i], indices));
  }
  return tir::SeqStmt::Flatten(stores);
}

/*! \brief `body` under the store predicate of the stage. */
Stmt StoredWhere(const Stage& stage, Stmt body) {
  if (!stage->store_predicate.defined()) return body;
  return tir::IfThenElse(stage->store_predicate, std::move(body));
}

Stmt ProvideElements(const ComputeOpNode* op, const Stage& stage, LoweringContext* ctx) {
  IterVarMap<PrimExpr> values;
  LoopNest nest = MakeLoopNest(stage, ctx, 0, false, {}, &values);
  PassUpIndex(stage, ctx->domains, &values);
  Stmt body = StoreOutputs(stage, tir::Substitute(op->body, VarValues(op->axis, values)),
                           OutputIndices(op, values), ctx);
  body = GuardedBy(MakeBoundCheck(stage, ctx->domains, values, &ctx->analyzer, false),
                   StoredWhere(stage, body));
  return MergeNest(nest, 0, nest.size(), body);
}

/*! \brief The statement that combines one more element into the outputs. */
Stmt UpdateOutputs(const tir::ReduceNode* reduce, const Stage& stage,
                   const Map<Var, PrimExpr>& vmap, const Array<PrimExpr>& indices,
                   LoweringContext* ctx) {
  Array<PrimExpr> so_far;
  for (size_t i = 0; i < reduce->source.size(); ++i) {
    so_far.push_back(tir::BufferLoad(ctx->buffers.at(stage->op.output(i)), indices));
  }
  Array<PrimExpr> combined =
      (*reduce->combiner.get())(so_far, tir::Substitute(reduce->source, vmap));
  Stmt update;
  if (combined.size() == 1) {
    update = StoreOutputs(stage, combined, indices, ctx);
  } else {
    // Every new value depends on all old ones, so all are computed before the first store.
    Array<PrimExpr> names;
    for (size_t i = 0; i < combined.size(); ++i) {
      names.push_back(
          Var(stage->op->name + ".v" + std::to_string(i) + ".new", PrimExpr(combined[i]).dtype()));
    }
    update = StoreOutputs(stage, names, indices, ctx);
    for (size_t i = combined.size(); i != 0; --i) {
      update = tir::LetStmt(Downcast<Var>(PrimExpr(names[i - 1])), combined[i - 1], update);
    }
  }
  PrimExpr condition = ctx->analyzer.Simplify(tir::Substitute(reduce->condition, vmap));
  if (!tir::is_one(condition)) update = tir::IfThenElse(condition, update);
  return update;
}

Array<PrimExpr> StartValues(const tir::ReduceNode* reduce, const Map<Var, PrimExpr>& vmap) {
  return tir::Substitute(reduce->init.empty() ? reduce->combiner->identity_element : reduce->init,
                         vmap);
}

/*!
 * \brief A reduction: loops outside the first reduction loop are shared by a nest that writes the
 *        start values and one that adds to them.
 */
Stmt ProvideReduction(const ComputeOpNode* op, const Stage& stage, LoweringContext* ctx) {
  const tir::ReduceNode* reduce = AsReduce(op->body[0]);
  const Array<IterVar>& loops = stage->leaf_iter_vars;
  // A loop over axes of both kinds passes all elements, some of them again and again.
  const IterVarSet both_kinds = LoopsOfBothKinds(stage);
  IterVarSet reduce_loops;
  size_t shared = loops.size();
  for (size_t i = 0; i < loops.size(); ++i) {
    if (loops[i]->iter_type != tir::kCommReduce) continue;
    if (!both_kinds.count(loops[i])) reduce_loops.insert(loops[i]);
    shared = std::min(shared, i);
  }
  IterVarMap<PrimExpr> values;
  LoopNest nest = MakeLoopNest(stage, ctx, 0, false, {}, &values);

  IterVarMap<PrimExpr> init_values;
  for (size_t i = 0; i < shared; ++i) init_values[loops[i]] = values.at(loops[i]);
  LoopNest init_nest = MakeLoopNest(stage, ctx, shared, true, reduce_loops, &init_values);
  PassUpIndex(stage, ctx->domains, &init_values);
  Stmt init = StoreOutputs(stage, StartValues(reduce, VarValues(op->axis, init_values)),
                           OutputIndices(op, init_values), ctx);
  init = GuardedBy(MakeBoundCheck(stage, ctx->domains, init_values, &ctx->analyzer, true),
                   StoredWhere(stage, init));
  init = MergeNest(init_nest, 0, init_nest.size(), init);

  PassUpIndex(stage, ctx->domains, &values);
  Stmt update = UpdateOutputs(reduce, stage, VarValues(op->root_iter_vars(), values),
                              OutputIndices(op, values), ctx);
  update = GuardedBy(MakeBoundCheck(stage, ctx->domains, values, &ctx->analyzer, false),
                     StoredWhere(stage, update));
  update = MergeNest(nest, shared, nest.size(), update);
  // Ends of reduction loops may mention axes of the operation.
  const Map<Var, PrimExpr> places = VarValues(op->axis, values);
  const bool uneven =
      std::any_of(op->reduce_axis.begin(), op->reduce_axis.end(), [&places](const IterVar& axis) {
        return !tir::Substitute(axis->dom, places).same_as(axis->dom);
      });
  if (uneven) update = tir::Substitute(update, places);

  return MergeNest(nest, 0, shared, tir::SeqStmt::Flatten({init, update}));
}

}  // namespace

Stmt ComputeOpNode::BuildProvide(const Stage& stage, LoweringContext* ctx) const {
  if (TensorizedLoop(stage) != stage->leaf_iter_vars.size()) {
    return ProvideTensorized(this, stage, ctx);
  }
  if (reduce_axis.empty()) return ProvideElements(this, stage, ctx);
  return ReducesOverThreads(stage) ? ProvideCrossThreadReduction(this, stage, ctx)
                                   : ProvideReduction(this, stage, ctx);
}

namespace {

Array<IterVar> AxesOfShape(const Array<PrimExpr>& shape) {
  Array<IterVar> axes;
  for (size_t i = 0; i < shape.size(); ++i) {
    PrimExpr extent = shape[i];
    Range domain = Range::FromMinExtent(tir::make_zero(extent.dtype()), extent);
    axes.push_back(IterVar(domain, Var("ax" + std::to_string(i), extent.dtype()), tir::kDataPar));
  }
  return axes;
}

Array<Var> VarsOf(const Array<IterVar>& axes) {
  Array<Var> vars;
  for (const IterVar& axis : axes) vars.push_back(axis->var);
  return vars;
}

}  // namespace

Tensor compute(Array<PrimExpr> shape, const FCompute& fcompute, String name, String tag,
               Map<String, ObjectRef> attrs) {
  Array<IterVar> axes = AxesOfShape(shape);
  PrimExpr body = fcompute(VarsOf(axes));
  return ComputeOp(name, tag, attrs, axes, {body}).output(0);
}

Array<Tensor> compute(Array<PrimExpr> shape, const FBatchCompute& fcompute, String name, String tag,
                      Map<String, ObjectRef> attrs) {
  Array<IterVar> axes = AxesOfShape(shape);
  Operation op = ComputeOp(name, tag, attrs, axes, fcompute(VarsOf(axes)));
  Array<Tensor> outputs;
  for (int i = 0; i < op->num_outputs(); ++i) outputs.push_back(op.output(i));
  return outputs;
}

IterVar reduce_axis(Range dom, String name) {
  DataType dtype = dom->extent.dtype();
  return IterVar(std::move(dom), Var(std::move(name), dtype), tir::kCommReduce);
}

IterVar thread_axis(Range dom, String tag) {
  DataType dtype = dom.defined() ? dom->extent.dtype() : DataType::Int(32);
  return IterVar(std::move(dom), Var(tag, dtype), tir::kThreadIndex, tag);
}

TVM_REGISTER_GLOBAL("te.OperationReplaceInputs")
    .set_body_typed([](Operation op, Array<Tensor> read, Array<Tensor> instead) -> Operation {
      TensorMap<Tensor> replaced;
      for (size_t i = 0; i < read.size(); ++i) replaced[read[i]] = instead[i];
      return op->ReplaceInputs(op, replaced);
    });

}  // namespace te
}  // namespace tvm
