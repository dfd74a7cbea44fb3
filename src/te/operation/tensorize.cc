/*!
 * \file tensorize.cc
 * \brief Inner loops of a stage replaced by a tensor intrinsic that computes the same.
 */
#include "tensorize.h"

#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/node/structural_equal.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tvm {
namespace te {

using arith::IntSet;

namespace {

IterVarAttr AttrOf(const Stage& stage, const IterVar& loop) {
  auto it = stage->iter_var_attrs.find(loop);
  return it == stage->iter_var_attrs.end() ? IterVarAttr() : (*it).second;
}

/*! \brief Start of messages: the primitive with its arguments. */
std::string Where(const Stage& stage, size_t place, const TensorIntrin& intrin) {
  std::string loop;
  if (place < stage->leaf_iter_vars.size()) {
    loop = ", " + std::string(stage->leaf_iter_vars[place]->var->name_hint);
  }
  return "tensorize(" + std::string(stage->op->name) + loop + ") with " +
         std::string(intrin->name) + ": ";
}

/*! \brief Values of the root axes while the loops from `place` on run over their domains. */
IterVarMap<IntSet> RootSets(const Stage& stage, const RangeMap& domains, size_t place,
                            const IterVarMap<PrimExpr>& values, arith::Analyzer* analyzer) {
  IterVarMap<IntSet> sets;
  for (size_t i = 0; i < stage->leaf_iter_vars.size(); ++i) {
    const IterVar& loop = stage->leaf_iter_vars[i];
    auto value = values.find(loop);
    sets[loop] = i < place && value != values.end() ? IntSet::SinglePoint(value->second)
                                                    : IntSet::FromRange(domains.at(loop));
  }
  PassUpDomain(stage, domains, &sets, analyzer);
  return sets;
}

Range RangeOf(const IntSet& set, arith::Analyzer* analyzer) {
  PrimExpr first = analyzer->Simplify(set.min());
  return Range::FromMinExtent(first, analyzer->Simplify(set.max() - first + 1));
}

Array<Range> RangesOf(const Array<IterVar>& axes, const IterVarMap<IntSet>& sets,
                      arith::Analyzer* analyzer) {
  return axes.Map([&](const IterVar& axis) { return RangeOf(sets.at(axis), analyzer); });
}

/*! \brief Of each input the region that is read while the root axes have values of `roots`. */
Array<Array<Range>> RegionsRead(const ComputeOpNode* op, const Stage& stage,
                                const Array<Tensor>& inputs, const IterVarMap<IntSet>& roots,
                                arith::Analyzer* analyzer) {
  IntSetMap sets;
  for (const IterVar& root : op->root_iter_vars()) sets.emplace(root->var.get(), roots.at(root));
  TensorMap<TensorDom> reads;
  for (const Tensor& input : inputs) reads[input];
  op->PropBoundToInputs(stage->op, analyzer, sets, &reads);
  Array<Array<Range>> regions;
  for (const Tensor& input : inputs) {
    Array<Range> region;
    for (const std::vector<IntSet>& dim : reads.at(input)) {
      IntSet all = arith::Union(Array<IntSet>(dim.begin(), dim.end()), analyzer);
      region.push_back(RangeOf(all, analyzer));
    }
    regions.push_back(region);
  }
  return regions;
}

/*! \brief Reads of a stage's inputs written as reads of an intrinsic's inputs. */
class BlockReader final : public tir::ExprMutator {
 public:
  BlockReader(std::string where, const TensorIntrin& intrin, const Array<Tensor>& inputs,
              const Array<Array<Range>>& regions, arith::Analyzer* analyzer)
      : where_(std::move(where)),
        intrin_(intrin),
        inputs_(inputs),
        regions_(regions),
        analyzer_(analyzer) {}
  using ExprMutator::VisitExpr;

 private:
  PrimExpr VisitExpr_(const tir::ProducerLoadNode* op) override {
    Tensor tensor = Downcast<Tensor>(op->producer);
    size_t k = std::find(inputs_.begin(), inputs_.end(), tensor) - inputs_.begin();
    const Tensor& target = intrin_->inputs[k];
    size_t lead = tensor.ndim() - target.ndim();
    Array<PrimExpr> indices;
    for (size_t i = 0; i < op->indices.size(); ++i) {
      PrimExpr inside = analyzer_->Simplify(VisitExpr(op->indices[i]) - regions_[k][i]->min);
      if (i >= lead) {
        indices.push_back(inside);
      } else {
        TVM_CHECK(tir::is_zero(inside), ScheduleError)
            << where_ << "tensor " << tensor->GetNameHint() << " is read at different indices "
            << "of its axis " << i << ", which input " << target->GetNameHint() << " has not";
      }
    }
    return target(indices);
  }

  std::string where_;
  TensorIntrin intrin_;
  const Array<Tensor>& inputs_;
  const Array<Array<Range>>& regions_;
  arith::Analyzer* analyzer_;
};

/*! \brief Checks that a stage's definition, restricted to one block, is the intrinsic's. */
class BlockMatcher {
 public:
  BlockMatcher(const ComputeOpNode* op, const Stage& stage, const TensorIntrin& intrin,
               size_t place, arith::Analyzer* analyzer)
      : op_(op),
        intrin_(intrin),
        pattern_(intrin->op.as<ComputeOpNode>()),
        where_(Where(stage, place, intrin)),
        analyzer_(analyzer) {
    TVM_CHECK(pattern_ != nullptr, ScheduleError)
        << where_ << "the intrinsic must be defined by a compute, got " << intrin->op->GetTypeKey();
    TVM_CHECK(intrin->scalar_params.empty(), ScheduleError)
        << where_ << "it takes scalars, which no loop provides; call it in the body of a compute";
  }

  /*! \brief The values of the stage in the intrinsic's axes and inputs. */
  Array<PrimExpr> Rewrite(const Array<Range>& output, const Array<Range>& reduced,
                          const Array<Tensor>& inputs, const Array<Array<Range>>& regions) {
    TVM_CHECK(op_->num_outputs() == pattern_->num_outputs(), ScheduleError)
        << where_ << "the stage has " << op_->num_outputs() << " outputs, the intrinsic "
        << pattern_->num_outputs();
    MatchAxes(op_->axis, pattern_->axis, output, "axes");
    MatchAxes(op_->reduce_axis, pattern_->reduce_axis, reduced, "reduction axes");
    MatchInputs(inputs, regions);
    BlockReader reader(where_, intrin_, inputs, regions, analyzer_);
    auto rewrite = [&](const PrimExpr& expr) {
      return analyzer_->Simplify(reader(tir::Substitute(expr, values_)));
    };
    Array<PrimExpr> bodies;
    for (size_t i = 0; i < op_->body.size(); ++i) {
      const auto* ours = op_->body[i].as<tir::ReduceNode>();
      const auto* theirs = pattern_->body[i].as<tir::ReduceNode>();
      TVM_CHECK((ours == nullptr) == (theirs == nullptr), ScheduleError)
          << where_ << "the stage " << (ours ? "reduces" : "does not reduce") << ", the intrinsic "
          << (theirs ? "does" : "does not");
      if (ours == nullptr) {
        bodies.push_back(rewrite(op_->body[i]));
      } else {
        bodies.push_back(tir::Reduce(ours->combiner, ours->source.Map(rewrite),
                                     pattern_->reduce_axis, rewrite(ours->condition),
                                     ours->value_index, ours->init.Map(rewrite)));
      }
    }
    return bodies;
  }

  void Match(const Array<Range>& output, const Array<Range>& reduced, const Array<Tensor>& inputs,
             const Array<Array<Range>>& regions) {
    Array<PrimExpr> bodies = Rewrite(output, reduced, inputs, regions);
    for (size_t i = 0; i < bodies.size(); ++i) {
      PrimExpr body = bodies[i];
      PrimExpr intrin_body = pattern_->body[i];
      const auto* ours = body.as<tir::ReduceNode>();
      const auto* theirs = intrin_body.as<tir::ReduceNode>();
      if (ours == nullptr) {
        Compare(body, intrin_body, "value");
        continue;
      }
      TVM_CHECK(StructuralEqual()(ours->combiner, theirs->combiner), ScheduleError)
          << where_ << "the stage combines by " << ours->combiner << ", the intrinsic by "
          << theirs->combiner;
      TVM_CHECK(ours->init.empty() == theirs->init.empty(), ScheduleError)
          << where_ << "only one of the two reductions has start values of its own";
      for (size_t k = 0; k < ours->init.size(); ++k) {
        Compare(ours->init[k], theirs->init[k], "start value");
      }
      for (size_t k = 0; k < ours->source.size(); ++k) {
        Compare(ours->source[k], theirs->source[k], "value");
      }
      Compare(ours->condition, theirs->condition, "condition");
    }
  }

 private:
  /*! \brief The last axes are the intrinsic's; those before must stand still inside a block. */
  void MatchAxes(const Array<IterVar>& axes, const Array<IterVar>& pattern,
                 const Array<Range>& ranges, const char* what) {
    TVM_CHECK(axes.size() >= pattern.size(), ScheduleError)
        << where_ << "the stage has " << axes.size() << " " << what << ", the intrinsic "
        << pattern.size();
    size_t lead = axes.size() - pattern.size();
    for (size_t i = 0; i < axes.size(); ++i) {
      const Range& range = ranges[i];
      PrimExpr wanted = i < lead ? PrimExpr(1) : pattern[i - lead]->dom->extent;
      TVM_CHECK(analyzer_->CanProveEqual(range->extent, wanted), ScheduleError)
          << where_ << "a block has extent " << range->extent << " in axis "
          << axes[i]->var->name_hint << ", the intrinsic "
          << (i < lead ? "has no such axis, so the extent must be " : "has ") << wanted;
      if (i < lead) {
        values_.Set(axes[i]->var, range->min);
      } else {
        const IterVar& target = pattern[i - lead];
        analyzer_->Bind(target->var, target->dom, true);
        values_.Set(axes[i]->var, range->min + target->var - target->dom->min);
      }
    }
  }

  void MatchInputs(const Array<Tensor>& inputs, const Array<Array<Range>>& regions) {
    TVM_CHECK(inputs.size() == intrin_->inputs.size(), ScheduleError)
        << where_ << "the stage reads " << inputs.size() << " tensors, the intrinsic "
        << intrin_->inputs.size();
    for (size_t k = 0; k < inputs.size(); ++k) {
      const Tensor& target = intrin_->inputs[k];
      TVM_CHECK(inputs[k]->dtype == target->dtype, ScheduleError)
          << where_ << "tensor " << inputs[k]->GetNameHint() << " has dtype " << inputs[k]->dtype
          << ", input " << target->GetNameHint() << " has " << target->dtype;
      TVM_CHECK(inputs[k].ndim() >= target.ndim(), ScheduleError)
          << where_ << "tensor " << inputs[k]->GetNameHint() << " has " << inputs[k].ndim()
          << " axes, input " << target->GetNameHint() << " has " << target.ndim();
      size_t lead = inputs[k].ndim() - target.ndim();
      for (size_t i = 0; i < inputs[k].ndim(); ++i) {
        PrimExpr wanted = i < lead ? PrimExpr(1) : target->shape[i - lead];
        TVM_CHECK(analyzer_->CanProveEqual(regions[k][i]->extent, wanted), ScheduleError)
            << where_ << "a block reads " << regions[k][i]->extent << " elements of axis " << i
            << " of tensor " << inputs[k]->GetNameHint() << ", input " << target->GetNameHint()
            << " has " << wanted;
      }
    }
  }

  void Compare(const PrimExpr& ours, PrimExpr theirs, const char* what) {
    theirs = analyzer_->Simplify(theirs);
    if (StructuralEqual()(ours, theirs)) return;
    auto mismatch = FindStructuralMismatch(Any(ours), Any(theirs));
    TVM_FATAL(ScheduleError) << where_ << "the " << what << " of the stage is " << ours
                             << ", that of the intrinsic is " << theirs << "; they differ at "
                             << mismatch->path << ": " << mismatch->reason;
  }

  const ComputeOpNode* op_;
  TensorIntrin intrin_;
  const ComputeOpNode* pattern_;
  std::string where_;
  arith::Analyzer* analyzer_;
  Map<Var, PrimExpr> values_;
};

/*! \brief `body` with the intrinsic's buffers standing for regions of tensors. */
Stmt BindBlocks(const Stage& stage, const LoweringContext& ctx, const IntrinsicUse& use,
                const Array<Array<Range>>& inputs, const Array<Range>& output, Stmt body) {
  if (!use.scalars.empty()) body = tir::Substitute(body, use.scalars);
  auto bind = [&](const Buffer& block, const Tensor& tensor, const Array<Range>& region) {
    Array<PrimExpr> corners;
    for (const Range& range : region) {
      corners.push_back(range->min);
      corners.push_back(range->extent);
    }
    Array<ObjectRef> pair{block, ctx.buffers.at(tensor)};
    body = tir::AttrStmt(pair, tir::attr::buffer_bind_scope,
                         tir::Call(DataType::Handle(), tir::builtin::tvm_tuple(), corners), body);
  };
  for (int i = stage->op->num_outputs(); i != 0; --i) {
    bind(use.intrin->buffers[use.inputs.size() + i - 1], stage->op.output(i - 1), output);
  }
  for (size_t i = inputs.size(); i != 0; --i) {
    bind(use.intrin->buffers[i - 1], use.inputs[i - 1], inputs[i - 1]);
  }
  return body;
}

/*! \brief Guards around a block; a condition inside of one cannot be kept. */
Stmt Guarded(const Stage& stage, const IntrinsicUse& use, const std::vector<PrimExpr>& conditions,
             Stmt body) {
  std::unordered_set<const VarNode*> inner;
  for (size_t i = use.place; i < stage->leaf_iter_vars.size(); ++i) {
    inner.insert(stage->leaf_iter_vars[i]->var.get());
  }
  for (const PrimExpr& condition : conditions) {
    bool inside =
        tir::UsesVar(condition, [&](const VarNode* var) { return inner.count(var) != 0; });
    TVM_CHECK(!inside, ScheduleError)
        << Where(stage, use.place, use.intrin) << "a block would need the guard " << condition
        << " inside of it; split so that the extents of the blocks divide the axes";
  }
  return GuardedBy(conditions, body);
}

}  // namespace

size_t TensorizedLoop(const Stage& stage) {
  const Array<IterVar>& loops = stage->leaf_iter_vars;
  for (size_t i = 0; i < loops.size(); ++i) {
    IterVarAttr attr = AttrOf(stage, loops[i]);
    if (attr.defined() && attr->tensor_intrin.defined()) return i;
  }
  return loops.size();
}

Stmt ProvideIntrinsic(const Stage& stage, LoweringContext* ctx, const IntrinsicUse& use) {
  const Array<IterVar>& loops = stage->leaf_iter_vars;
  const TensorIntrin& intrin = use.intrin;
  IterVarSet skip;
  size_t shared = use.place;
  Array<PrimExpr> first_trip;
  for (size_t i = 0; i < use.place; ++i) {
    const Range& domain = ctx->domains.at(loops[i]);
    if (loops[i]->iter_type != tir::kCommReduce) continue;
    skip.insert(loops[i]);
    if (tir::is_one(domain->extent)) continue;
    shared = std::min(shared, i);
    first_trip.push_back(loops[i]->var == domain->min);
  }
  for (size_t i = use.place; i < loops.size(); ++i) skip.insert(loops[i]);
  IterVarMap<PrimExpr> values;
  LoopNest nest = MakeLoopNest(stage, ctx, 0, false, {}, &values);
  IterVarMap<PrimExpr> outer;
  for (size_t i = 0; i < use.place; ++i) outer[loops[i]] = values.at(loops[i]);
  IterVarMap<PrimExpr> indices = values;
  PassUpIndex(stage, ctx->domains, &indices);
  std::vector<PrimExpr> conditions =
      MakeBoundCheck(stage, ctx->domains, indices, &ctx->analyzer, false);
  auto block = [&](const Stmt& body) {
    return BindBlocks(stage, *ctx, use, use.input_regions(outer), use.output_region(outer), body);
  };
  bool reduces_outside = !first_trip.empty();
  if (!reduces_outside) {
    TVM_CHECK(intrin->body.defined() || intrin->reduce_init.defined(), ScheduleError)
        << Where(stage, use.place, intrin) << "it only updates, and has neither a body nor an "
        << "initialisation";
    Stmt body =
        intrin->body.defined()
            ? block(intrin->body)
            : tir::SeqStmt::Flatten({block(intrin->reduce_init), block(intrin->reduce_update)});
    return MergeNest(nest, 0, use.place, Guarded(stage, use, conditions, body));
  }
  TVM_CHECK(intrin->reduce_update.defined(), ScheduleError)
      << Where(stage, use.place, intrin) << "reduction loops stand outside of the blocks, but it "
      << "has no update; return (body, reduce_init, reduce_update) from its definition";
  if (!intrin->reduce_init.defined()) {
    // The body does for the first block what start values and an update would do together.
    TVM_CHECK(intrin->body.defined(), ScheduleError)
        << Where(stage, use.place, intrin) << "it has neither a body nor an initialisation";
    PrimExpr first = tir::const_true();
    for (const PrimExpr& condition : first_trip) first = first && condition;
    Stmt body = tir::IfThenElse(first, block(intrin->body), block(intrin->reduce_update));
    return MergeNest(nest, 0, use.place, Guarded(stage, use, conditions, body));
  }
  IterVarMap<PrimExpr> init_values;
  for (size_t i = 0; i < shared; ++i) init_values[loops[i]] = values.at(loops[i]);
  LoopNest init_nest = MakeLoopNest(stage, ctx, shared, true, skip, &init_values);
  IterVarMap<PrimExpr> init_outer = init_values;
  for (size_t i = use.place; i < loops.size(); ++i) init_values[loops[i]] = loops[i]->var;
  PassUpIndex(stage, ctx->domains, &init_values);
  // Start values are written before the reduction's loops, in which inputs may be computed.
  Stmt init = BindBlocks(stage, *ctx, use, {}, use.output_region(init_outer), intrin->reduce_init);
  init = Guarded(stage, use, MakeBoundCheck(stage, ctx->domains, init_values, &ctx->analyzer, true),
                 init);
  init = MergeNest(init_nest, 0, init_nest.size(), init);
  Stmt update = Guarded(stage, use, conditions, block(intrin->reduce_update));
  update = MergeNest(nest, shared, use.place, update);
  return MergeNest(nest, 0, shared, tir::SeqStmt::Flatten({init, update}));
}

Stmt ProvideTensorized(const ComputeOpNode* op, const Stage& stage, LoweringContext* ctx) {
  RefuseLoopsOfBothKinds(stage, "tensorize");
  const Array<IterVar>& loops = stage->leaf_iter_vars;
  IntrinsicUse use;
  use.place = TensorizedLoop(stage);
  use.intrin = AttrOf(stage, loops[use.place])->tensor_intrin;
  use.inputs = op->InputTensors();
  for (size_t i = use.place; i < loops.size(); ++i) {
    IterVarAttr attr = AttrOf(stage, loops[i]);
    bool marked =
        attr.defined() && (attr->bind_thread.defined() || attr->iter_type != tir::kDataPar);
    TVM_CHECK(!marked && !ctx->attached.count(loops[i]), ScheduleError)
        << Where(stage, use.place, use.intrin) << "loop " << loops[i]->var->name_hint
        << " is inside of the blocks, which the intrinsic computes, so nothing can be attached to "
        << "it and it cannot be marked";
  }
  use.output_region = [=](const IterVarMap<PrimExpr>& values) {
    IterVarMap<IntSet> roots = RootSets(stage, ctx->domains, use.place, values, &ctx->analyzer);
    return RangesOf(op->axis, roots, &ctx->analyzer);
  };
  use.input_regions = [=](const IterVarMap<PrimExpr>& values) {
    IterVarMap<IntSet> roots = RootSets(stage, ctx->domains, use.place, values, &ctx->analyzer);
    Array<Array<Range>> regions = RegionsRead(op, stage, use.inputs, roots, &ctx->analyzer);
    BlockMatcher(op, stage, use.intrin, use.place, &ctx->analyzer)
        .Match(RangesOf(op->axis, roots, &ctx->analyzer),
               RangesOf(op->reduce_axis, roots, &ctx->analyzer), use.inputs, regions);
    return regions;
  };
  return ProvideIntrinsic(stage, ctx, use);
}

namespace {

const ComputeOpNode* TensorizedCompute(const char* function, const Stage& stage) {
  const auto* op = stage->op.as<ComputeOpNode>();
  TVM_CHECK(op != nullptr, TypeError)
      << function << ": expected the stage of a compute, got " << stage->op->GetTypeKey();
  TVM_CHECK(TensorizedLoop(stage) < stage->leaf_iter_vars.size(), ValueError)
      << function << ": stage " << op->name << " is not tensorized; call tensorize on it first";
  return op;
}

}  // namespace

std::pair<Map<IterVar, Range>, Map<Tensor, Array<Range>>> InferTensorizeRegion(
    const Stage& stage, const Map<IterVar, Range>& domains) {
  const ComputeOpNode* op = TensorizedCompute("InferTensorizeRegion", stage);
  RangeMap ranges(domains.begin(), domains.end());
  arith::Analyzer analyzer;
  IterVarMap<PrimExpr> values;
  for (const IterVar& loop : stage->leaf_iter_vars) {
    auto it = ranges.find(loop);
    TVM_CHECK(it != ranges.end(), ValueError)
        << "InferTensorizeRegion: the bounds have no domain of loop " << loop->var->name_hint
        << " of " << op->name << "; give what InferBound returned for this schedule";
    analyzer.Bind(loop->var, it->second, true);
    values[loop] = loop->var;
  }
  IterVarMap<IntSet> roots = RootSets(stage, ranges, TensorizedLoop(stage), values, &analyzer);
  Map<IterVar, Range> outputs;
  for (const IterVar& root : op->root_iter_vars()) {
    outputs.Set(root, RangeOf(roots.at(root), &analyzer));
  }
  Array<Tensor> inputs = op->InputTensors();
  Array<Array<Range>> regions = RegionsRead(op, stage, inputs, roots, &analyzer);
  Map<Tensor, Array<Range>> reads;
  for (size_t i = 0; i < inputs.size(); ++i) reads.Set(inputs[i], regions[i]);
  return {outputs, reads};
}

Array<PrimExpr> MatchTensorizeBody(const Stage& stage, const Map<IterVar, Range>& outputs,
                                   const Map<Tensor, Array<Range>>& inputs,
                                   const TensorIntrin& intrin) {
  const ComputeOpNode* op = TensorizedCompute("MatchTensorizeBody", stage);
  auto ranges_of = [&](const Array<IterVar>& axes) {
    return axes.Map([&](const IterVar& axis) {
      auto it = outputs.find(axis);
      TVM_CHECK(it != outputs.end(), ValueError)
          << "MatchTensorizeBody: the regions have none of axis " << axis->var->name_hint << " of "
          << op->name << "; give what InferTensorizeRegion returned for this stage";
      return (*it).second;
    });
  };
  Array<Array<Range>> regions = op->InputTensors().Map([&](const Tensor& input) {
    auto it = inputs.find(input);
    TVM_CHECK(it != inputs.end(), ValueError)
        << "MatchTensorizeBody: the regions have none of tensor " << input->GetNameHint()
        << "; give what InferTensorizeRegion returned for this stage";
    return (*it).second;
  });
  arith::Analyzer analyzer;
  return BlockMatcher(op, stage, intrin, TensorizedLoop(stage), &analyzer)
      .Rewrite(ranges_of(op->axis), ranges_of(op->reduce_axis), op->InputTensors(), regions);
}

Array<ObjectRef> InferTensorizeRegionPair(Stage stage, Map<IterVar, Range> domains) {
  auto [outputs, inputs] = InferTensorizeRegion(stage, domains);
  return {outputs, inputs};
}

TVM_REGISTER_GLOBAL("te.InferTensorizeRegion").set_body_typed(InferTensorizeRegionPair);
TVM_REGISTER_GLOBAL("te.MatchTensorizeBody").set_body_typed(MatchTensorizeBody);
// The names under which TVM's programs find them.
TVM_REGISTER_GLOBAL("test.op.InferTensorizeRegion").set_body_typed(InferTensorizeRegionPair);
TVM_REGISTER_GLOBAL("test.op.MatchTensorizeBody").set_body_typed(MatchTensorizeBody);

}  // namespace te
}  // namespace tvm
