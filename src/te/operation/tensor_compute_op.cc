/*!
 * \file tensor_compute_op.cc
 * \brief Tensors computed by calls of a tensor intrinsic: construction, bounds and loop nests.
 */
#include <tvm/arith/int_set.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/te/tensor_compute_op.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "tensorize.h"

namespace tvm {
namespace te {

using arith::IntSet;

TVM_REGISTER_NODE(TensorComputeOpNode);

void TensorComputeOpNode::Init() {
  const TensorIntrin& intrin = call->intrin;
  TVM_CHECK(schedulable_ndim >= 0 && schedulable_ndim <= static_cast<int>(axis.size()), ValueError)
      << "compute " << name << ": " << schedulable_ndim << " of " << axis.size()
      << " axes are loops";
  arith::Analyzer analyzer;
  for (int i = 0; i < intrin->op->num_outputs(); ++i) {
    Array<PrimExpr> block = intrin->op->output_shape(i);
    size_t inner = axis.size() - schedulable_ndim;
    TVM_CHECK(block.size() >= inner, ValueError)
        << "compute " << name << ": " << inner << " axes are left to " << intrin->name
        << ", whose results have " << block.size();
    for (size_t k = 0; k < block.size(); ++k) {
      // Leading axes of the block that are loops here have one element.
      bool is_loop = k + inner < block.size();
      PrimExpr wanted =
          is_loop ? PrimExpr(1) : axis[schedulable_ndim + k + inner - block.size()]->dom->extent;
      TVM_CHECK(analyzer.CanProveEqual(block[k], wanted), ValueError)
          << "compute " << name << ": axis " << k << " of the results of " << intrin->name
          << " has extent " << block[k] << ", the tensor has " << wanted << " there";
    }
  }
  reduce_axis = call->reduce_axis;
}

int TensorComputeOpNode::num_outputs() const { return call->intrin->op->num_outputs(); }

DataType TensorComputeOpNode::output_dtype(size_t i) const {
  return call->intrin->op->output_dtype(i);
}

Array<PrimExpr> TensorComputeOpNode::output_shape(size_t i) const {
  return axis.Map([](const IterVar& iv) { return iv->dom->extent; });
}

Array<IterVar> TensorComputeOpNode::root_iter_vars() const {
  Array<IterVar> roots;
  for (int i = 0; i < schedulable_ndim; ++i) roots.push_back(axis[i]);
  for (const IterVar& iv : reduce_axis) roots.push_back(iv);
  return roots;
}

Array<Tensor> TensorComputeOpNode::InputTensors() const {
  std::vector<Tensor> reads;
  for (const Tensor& tensor : call->tensors) {
    if (std::find(reads.begin(), reads.end(), tensor) == reads.end()) reads.push_back(tensor);
  }
  for (const Array<Range>& region : call->regions) {
    for (const Range& range : region) CollectReads(range->min, &reads);
  }
  for (const PrimExpr& scalar : call->scalar_inputs) CollectReads(scalar, &reads);
  return Array<Tensor>(reads.begin(), reads.end());
}

Operation TensorComputeOpNode::ReplaceInputs(const Operation& self,
                                             const TensorMap<Tensor>& rmap) const {
  bool changed = false;
  Array<Tensor> tensors;
  for (const Tensor& tensor : call->tensors) {
    auto it = rmap.find(tensor);
    tensors.push_back(it == rmap.end() ? tensor : it->second);
    changed |= it != rmap.end();
  }
  Array<PrimExpr> scalars =
      call->scalar_inputs.Map([&](const PrimExpr& scalar) { return ReplaceTensor(scalar, rmap); });
  if (!changed && scalars.same_as(call->scalar_inputs)) return self;
  TensorIntrinCall replaced(call->intrin, tensors, call->regions, reduce_axis, scalars);
  return TensorComputeOp(name, tag, attrs, axis, schedulable_ndim, replaced);
}

void TensorComputeOpNode::PropBoundToInputs(const Operation& self, arith::Analyzer* analyzer,
                                            const IntSetMap& dom_map,
                                            TensorMap<TensorDom>* out) const {
  for (size_t i = 0; i < call->tensors.size(); ++i) {
    auto it = out->find(call->tensors[i]);
    if (it == out->end()) continue;
    it->second.resize(call->tensors[i].ndim());
    for (size_t k = 0; k < call->regions[i].size(); ++k) {
      Array<Range> region = call->regions[i];
      it->second[k].push_back(arith::EvalSet(region[k], dom_map, analyzer));
    }
  }
}

void TensorComputeOpNode::GatherBound(const Operation& self, arith::Analyzer* analyzer,
                                      const TensorMap<TensorDom>& requests, RangeMap* out) const {
  for (int k = 0; k < schedulable_ndim; ++k) {
    Array<IntSet> sets;
    for (int i = 0; i < num_outputs(); ++i) {
      auto it = requests.find(self.output(i));
      if (it == requests.end() || it->second.empty()) continue;
      for (const IntSet& set : it->second[k]) sets.push_back(set);
    }
    Range wanted =
        sets.empty() ? axis[k]->dom : arith::Union(sets, analyzer).CoverRange(axis[k]->dom);
    PrimExpr start = analyzer->Simplify(wanted->min);
    (*out)[axis[k]] = Range::FromMinExtent(start, analyzer->Simplify(wanted->extent));
  }
  for (const IterVar& iv : reduce_axis) (*out)[iv] = iv->dom;
}

Stmt TensorComputeOpNode::BuildRealize(const Stage& stage, LoweringContext* ctx,
                                       const Stmt& body) const {
  Array<Range> bounds;
  for (size_t k = 0; k < axis.size(); ++k) {
    bool is_loop = static_cast<int>(k) < schedulable_ndim;
    bounds.push_back(is_loop ? ctx->domains.at(axis[k]) : axis[k]->dom);
  }
  Stmt realize = body;
  for (int i = num_outputs(); i != 0; --i) {
    realize = tir::BufferRealize(ctx->buffers.at(stage->op.output(i - 1)), bounds,
                                 tir::const_true(), realize);
  }
  return realize;
}

Stmt TensorComputeOpNode::BuildProvide(const Stage& stage, LoweringContext* ctx) const {
  IntrinsicUse use;
  use.intrin = call->intrin;
  use.inputs = call->tensors;
  use.place = stage->leaf_iter_vars.size();
  for (size_t i = 0; i < call->scalar_inputs.size(); ++i) {
    use.scalars.Set(call->intrin->scalar_params[i], call->scalar_inputs[i]);
  }
  auto axis_values = [=, this](IterVarMap<PrimExpr> values) {
    PassUpIndex(stage, ctx->domains, &values);
    return values;
  };
  use.output_region = [=, this](const IterVarMap<PrimExpr>& values) {
    IterVarMap<PrimExpr> at = axis_values(values);
    Array<Range> region;
    for (size_t k = 0; k < axis.size(); ++k) {
      bool is_loop = static_cast<int>(k) < schedulable_ndim;
      region.push_back(is_loop ? Range::FromMinExtent(at.at(axis[k]), 1) : axis[k]->dom);
    }
    return region;
  };
  use.input_regions = [=, this](const IterVarMap<PrimExpr>& values) {
    Map<Var, PrimExpr> at = VarValues(root_iter_vars(), axis_values(values));
    Array<Array<Range>> regions;
    for (const Array<Range>& region : call->regions) {
      regions.push_back(region.Map([&](const Range& range) { return tir::Substitute(range, at); }));
    }
    return regions;
  };
  // Scalars may depend on the loops.
  IterVarMap<PrimExpr> values;
  MakeLoopNest(stage, ctx, 0, false, {}, &values);
  Map<Var, PrimExpr> at = VarValues(root_iter_vars(), axis_values(values));
  for (const Var& param : call->intrin->scalar_params) {
    use.scalars.Set(param, tir::Substitute(use.scalars.at(param), at));
  }
  return ProvideIntrinsic(stage, ctx, use);
}

}  // namespace te
}  // namespace tvm
