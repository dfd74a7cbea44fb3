/*!
 * \file dataflow_rewrite.cc
 * \brief cache_read, cache_write and rfactor: primitives that add operations.
 */
#include "dataflow_rewrite.h"

#include <tvm/arith/analyzer.h>
#include <tvm/expr/op.h>
#include <tvm/expr/substitute.h>
#include <tvm/te/pack_read.h>
#include <tvm/te/scan_op.h>
#include <tvm/te/tensor_compute_op.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "../operation/op_utils.h"
#include "graph.h"
#include "message_passing.h"

namespace tvm {
namespace te {

size_t StagePosition(const Schedule& sch, const Stage& stage) {
  for (size_t i = 0; i < sch->stages.size(); ++i) {
    if (sch->stages[i].same_as(stage)) return i;
  }
  TVM_FATAL(InternalError) << "stage " << stage->op->name << " is not in the schedule";
  return 0;
}

void ReplaceStageOp(const Schedule& sch, const Stage& stage, const Operation& op) {
  for (size_t i = 0; i < sch->outputs.size(); ++i) {
    if (sch->outputs[i].same_as(stage->op)) sch->outputs.Set(i, op);
  }
  stage->op = op;
  sch->stage_map.Set(op, stage);
}

void ReplaceDataFlow(const Schedule& sch, TensorMap<Tensor>* vmap) {
  Array<Stage> stages = sch->stages;
  for (const Stage& stage : stages) {
    Operation old_op = stage->op;
    Operation new_op = old_op->ReplaceInputs(old_op, *vmap);
    if (new_op.same_as(old_op)) continue;
    // The operation may itself be the replacement of an earlier one, which readers still name.
    for (auto& [old_tensor, new_tensor] : *vmap) {
      if (new_tensor->op.same_as(old_op)) new_tensor = new_op.output(new_tensor->value_index);
    }
    for (int i = 0; i < old_op->num_outputs(); ++i) (*vmap)[old_op.output(i)] = new_op.output(i);
    ReplaceStageOp(sch, stage, new_op);
  }
}

Stage InsertStage(const Schedule& sch, size_t pos, const Operation& op) {
  Stage stage(op);
  std::vector<Stage> stages(sch->stages.begin(), sch->stages.end());
  stages.insert(stages.begin() + static_cast<std::ptrdiff_t>(pos), stage);
  sch->stages = Array<Stage>(stages.begin(), stages.end());
  sch->stage_map.Set(op, stage);
  return stage;
}

std::string UniqueName(const Schedule& sch, const std::string& base) {
  auto taken = [&](const std::string& name) {
    return std::any_of(sch->stages.begin(), sch->stages.end(),
                       [&](const Stage& stage) { return stage->op->name == name; });
  };
  std::string name = base;
  for (int i = 1; taken(name); ++i) name = base + "." + std::to_string(i);
  return name;
}

namespace {

/*! \brief Drops what was recorded about the stage's loops. */
void ResetLoops(const Stage& stage) {
  stage->all_iter_vars = stage->op->root_iter_vars();
  stage->leaf_iter_vars = stage->all_iter_vars;
  stage->relations = {};
  stage->iter_var_attrs = {};
}

/*! \brief Domains of all loops of a stage that computes its whole tensor. */
RangeMap WholeDomains(const Stage& stage, arith::Analyzer* analyzer,
                      const arith::VarContext* var_context = nullptr) {
  RangeMap domains;
  for (const IterVar& root : stage->op->root_iter_vars()) domains[root] = root->dom;
  PassDownDomain(stage, &domains, analyzer, var_context);
  return domains;
}

const ComputeOpNode* ComputeOf(const Operation& op, const char* primitive) {
  const auto* compute = op.as<ComputeOpNode>();
  TVM_CHECK(compute != nullptr, ScheduleError)
      << primitive << "(" << op->name << "): expected a stage made by compute, got "
      << op->GetTypeKey();
  return compute;
}

PrimExpr AllOf(const std::vector<PrimExpr>& conditions) {
  PrimExpr all = tir::const_true();
  for (const PrimExpr& condition : conditions) all = all && condition;
  return all;
}

/*! \brief The operation again, under another name and over loops of its own. */
Operation TwinOf(const TensorComputeOpNode* op, const std::string& name) {
  Map<Var, PrimExpr> vmap;
  Array<IterVar> axes = op->axis.Map([&vmap](const IterVar& axis) {
    IterVar twin(axis->dom, axis->var.copy_with_suffix(".c"), axis->iter_type);
    vmap.Set(axis->var, twin->var);
    return twin;
  });
  const TensorIntrinCall& call = op->call;
  Array<Array<Range>> regions = call->regions.Map([&vmap](const Array<Range>& region) {
    return region.Map([&vmap](const Range& range) { return tir::Substitute(range, vmap); });
  });
  TensorIntrinCall twin(call->intrin, call->tensors, regions, op->reduce_axis,
                        tir::Substitute(call->scalar_inputs, vmap));
  return TensorComputeOp(name, op->tag, op->attrs, axes, op->schedulable_ndim, twin);
}

bool IsScanState(const Schedule& sch, const Tensor& tensor) {
  for (const Stage& stage : sch->stages) {
    const auto* scan = stage->op.as<ScanOpNode>();
    if (scan == nullptr) continue;
    for (const Tensor& state : scan->state_placeholder) {
      if (state == tensor) return true;
    }
  }
  return false;
}

/*! \brief Turns reads of a tensor at (i0, i1, ...) into reads at (i[order[0]], i[order[1]], ...).
 */
class ReadsInOrder final : public tir::ExprMutator {
 public:
  ReadsInOrder(Tensor tensor, const Array<int64_t>& order)
      : tensor_(std::move(tensor)), order_(order) {}

  /*! \brief The operation, which computes single elements, with its reads turned. */
  Operation Of(const ComputeOpNode* op) {
    Array<PrimExpr> body;
    if (op->body[0]->IsInstance<tir::ReduceNode>()) {
      // All outputs of a joint reduction must go on sharing one tuple of sources.
      const auto first = Downcast<tir::Reduce>((*this)(op->body[0]));
      for (size_t i = 0; i < op->body.size(); ++i) {
        body.push_back(tir::Reduce(first->combiner, first->source, first->axis, first->condition,
                                   static_cast<int>(i), first->init));
      }
    } else {
      for (const PrimExpr& value : op->body) body.push_back((*this)(value));
    }
    return ComputeOp(op->name, op->tag, op->attrs, op->axis, body);
  }

 private:
  PrimExpr VisitExpr_(const tir::ProducerLoadNode* op) final {
    PrimExpr load = ExprMutator::VisitExpr_(op);
    op = load.as<tir::ProducerLoadNode>();
    if (!op->producer->IsInstance<TensorNode>() || Downcast<Tensor>(op->producer) != tensor_) {
      return load;
    }
    return tensor_(order_.Map([op](int64_t dim) { return op->indices[static_cast<size_t>(dim)]; }));
  }

  Tensor tensor_;
  Array<int64_t> order_;
};

void CheckOrder(const Tensor& tensor, const Array<int64_t>& order) {
  std::vector<int64_t> sorted(order.begin(), order.end());
  std::sort(sorted.begin(), sorted.end());
  bool each_once = sorted.size() == tensor->shape.size();
  for (size_t i = 0; i < sorted.size(); ++i) {
    each_once = each_once && sorted[i] == static_cast<int64_t>(i);
  }
  TVM_CHECK(each_once, ScheduleError)
      << "cache_read(" << tensor->op->name << "): the order " << order << " must name each of the "
      << tensor->shape.size() << " dimensions once";
}

}  // namespace

Array<Tensor> CopyOut(const Schedule& sch, const Stage& stage, const Operation& cache,
                      const Array<IterVar>& axes, const Array<PrimExpr>& indices,
                      const String& scope) {
  Array<PrimExpr> copy_body;
  Array<Tensor> caches;
  for (int i = 0; i < cache->num_outputs(); ++i) {
    caches.push_back(cache.output(i));
    copy_body.push_back(cache.output(i)(indices));
  }
  Operation old_op = stage->op;
  Operation copy = ComputeOp(old_op->name, old_op->tag, old_op->attrs, axes, copy_body);
  TensorMap<Tensor> renamed;
  for (int i = 0; i < copy->num_outputs(); ++i) renamed[old_op.output(i)] = copy.output(i);
  ReplaceStageOp(sch, stage, copy);
  ReplaceDataFlow(sch, &renamed);
  ResetLoops(stage);
  Stage cache_stage = InsertStage(sch, StagePosition(sch, stage), cache);
  cache_stage.set_scope(scope);
  JoinGroup(cache_stage, stage->group);
  return caches;
}

Tensor ReadTensor(const Schedule& sch, const Tensor& tensor, const Array<Operation>& readers,
                  const char* primitive) {
  Tensor original = sch[tensor]->op.output(tensor->value_index);
  // Readers may share a stage with one another; names that do not read the tensor are mistakes.
  TVM_CHECK(!readers.empty(), ScheduleError)
      << primitive << "(" << tensor->op->name << "): no reader given";
  for (const Operation& reader : readers) {
    Array<Tensor> inputs = sch[reader]->op->InputTensors();
    TVM_CHECK(std::find(inputs.begin(), inputs.end(), original) != inputs.end(), ScheduleError)
        << primitive << "(" << tensor->op->name << "): " << reader->name
        << " does not read this tensor; it reads "
        << inputs.Map([](const Tensor& t) { return t->GetNameHint(); });
  }
  return original;
}

void ReadFromCopy(const Schedule& sch, const Tensor& tensor, const Tensor& copy,
                  const String& scope, const Array<Operation>& readers,
                  const std::function<Operation(const Operation&)>& adapt) {
  Stage source = sch[tensor];
  TensorMap<Tensor> use_copy{{tensor, copy}};
  TensorMap<Tensor> vmap;
  for (const Operation& reader : readers) {
    Stage stage = sch[reader];
    Operation old_op = stage->op;
    Operation new_op = old_op->ReplaceInputs(old_op, use_copy);
    if (new_op.same_as(old_op)) continue;
    if (adapt) new_op = adapt(new_op);
    for (int i = 0; i < old_op->num_outputs(); ++i) vmap[old_op.output(i)] = new_op.output(i);
    ReplaceStageOp(sch, stage, new_op);
  }
  ReplaceDataFlow(sch, &vmap);
  Stage stage = InsertStage(sch, StagePosition(sch, source) + 1, copy->op);
  stage.set_scope(scope);
  // A copy of a scan's state has its values in the steps only.
  JoinGroup(stage, IsScanState(sch, tensor) ? sch[readers[0]]->group : source->group);
}

Tensor Schedule::cache_read(const Tensor& tensor, const String& scope,
                            const Array<Operation>& readers) {
  Array<int64_t> order;
  for (size_t i = 0; i < tensor->shape.size(); ++i) order.push_back(static_cast<int64_t>(i));
  return PackRead(*this, tensor, scope, readers, order);
}

Tensor PackRead(Schedule schedule, const Tensor& tensor, const String& scope,
                const Array<Operation>& readers, const Array<int64_t>& order) {
  CheckOrder(tensor, order);
  const Tensor original = ReadTensor(schedule, tensor, readers, "cache_read");
  std::string name =
      UniqueName(schedule, std::string(original->GetNameHint()) + "." + std::string(scope));
  const Array<PrimExpr> shape =
      order.Map([&](int64_t dim) { return original->shape[static_cast<size_t>(dim)]; });
  Tensor cache = compute(
      shape,
      [&](const Array<Var>& indices) {
        Array<PrimExpr> at(indices.begin(), indices.end());
        for (size_t i = 0; i < order.size(); ++i) at.Set(order[i], indices[i]);
        return original(at);
      },
      name);
  const bool turned = !std::is_sorted(order.begin(), order.end());
  auto turn = [&](const Operation& reader) {
    return ReadsInOrder(cache, order).Of(ComputeOf(reader, "cache_read"));
  };
  ReadFromCopy(schedule, original, cache, scope, readers,
               turned ? turn : std::function<Operation(const Operation&)>());
  schedule->Note("cache_read");
  return cache;
}

Array<Tensor> Schedule::cache_write(const Array<Tensor>& tensors, const String& scope) {
  TVM_CHECK(!tensors.empty(), ScheduleError) << "cache_write: no tensor given";
  Tensor first = tensors[0];
  Stage stage = (*this)[first];
  for (const Tensor& tensor : tensors) {
    TVM_CHECK((*this)[tensor].same_as(stage), ScheduleError)
        << "cache_write: " << tensor->op->name << " and " << first->op->name
        << " are different operations; cache one at a time";
  }
  const OperationNode* op = stage->op.get();
  TVM_CHECK(static_cast<int>(tensors.size()) == op->num_outputs(), ScheduleError)
      << "cache_write(" << op->name << "): the operation computes " << op->num_outputs()
      << " tensors together, got " << tensors.size() << "; pass all of them";
  const std::string name = UniqueName(*this, std::string(op->name) + "." + std::string(scope));
  if (const auto* blocks = stage->op.as<TensorComputeOpNode>()) {
    TVM_CHECK(stage->relations.empty(), ScheduleError)
        << "cache_write(" << op->name << "): an intrinsic computes whole blocks along the axes of "
        << "the operation; cache its results before loops are split or fused";
    Array<PrimExpr> same =
        blocks->axis.Map([](const IterVar& axis) { return PrimExpr(axis->var); });
    Array<Tensor> caches = CopyOut(*this, stage, TwinOf(blocks, name), blocks->axis, same, scope);
    (*this)->Note("cache_write");
    return caches;
  }
  const ComputeOpNode* compute = ComputeOf(stage->op, "cache_write");
  RefuseLoopsOfBothKinds(stage, "cache_write");

  // The cache has one axis per spatial loop, in loop order, which is how a user asks for a
  // different layout: reorder first, then cache.
  arith::Analyzer analyzer;
  RangeMap domains = WholeDomains(stage, &analyzer);
  Array<IterVar> cache_axes;
  IterVarMap<PrimExpr> values;
  std::vector<IterVar> spatial;
  for (const IterVar& loop : stage->leaf_iter_vars) {
    if (loop->iter_type == tir::kCommReduce) continue;
    Range domain = domains.at(loop);
    IterVar axis(Range::FromMinExtent(tir::make_zero(domain->extent.dtype()), domain->extent),
                 loop->var.copy_with_suffix(".c"), tir::kDataPar);
    cache_axes.push_back(axis);
    values[loop] = tir::is_zero(domain->min) ? PrimExpr(axis->var) : axis->var + domain->min;
    analyzer.Bind(axis->var, axis->dom);
    spatial.push_back(loop);
  }
  PassUpIndex(stage, domains, &values);
  PrimExpr inside = AllOf(MakeBoundCheck(stage, domains, values, &analyzer, true));
  Map<Var, PrimExpr> vmap = VarValues(compute->axis, values);
  Array<PrimExpr> cache_body;
  if (const auto* reduce = compute->body[0].as<tir::ReduceNode>()) {
    Array<PrimExpr> source = tir::Substitute(reduce->source, vmap);
    Array<PrimExpr> init = tir::Substitute(reduce->init, vmap);
    PrimExpr condition = tir::Substitute(reduce->condition, vmap) && inside;
    // The extent of a reduction, and how it combines, may depend on where it is computed.
    tir::CommReducer combiner(reduce->combiner->lhs, reduce->combiner->rhs,
                              tir::Substitute(reduce->combiner->result, vmap),
                              tir::Substitute(reduce->combiner->identity_element, vmap));
    Array<IterVar> axes = reduce->axis.Map([&vmap](const IterVar& axis) {
      Range domain = tir::Substitute(axis->dom, vmap);
      return domain.same_as(axis->dom) ? axis : IterVar(domain, axis->var, axis->iter_type);
    });
    for (int i = 0; i < compute->num_outputs(); ++i) {
      cache_body.push_back(tir::Reduce(combiner, source, axes, condition, i, init));
    }
  } else {
    for (const PrimExpr& expr : compute->body) {
      PrimExpr value = tir::Substitute(expr, vmap);
      cache_body.push_back(
          tir::is_one(inside) ? value : if_then_else(inside, value, tir::make_zero(value.dtype())));
    }
  }
  Operation cache = ComputeOp(name, compute->tag, compute->attrs, cache_axes, cache_body);

  IterVarMap<PrimExpr> positions;
  for (const IterVar& axis : compute->axis) positions[axis] = axis->var;
  PassDownIndex(stage, domains, &positions);
  Array<PrimExpr> indices;
  for (const IterVar& loop : spatial) {
    const Range& domain = domains.at(loop);
    PrimExpr value = positions.at(loop);
    indices.push_back(tir::is_zero(domain->min) ? value : value - domain->min);
  }
  Array<Tensor> caches = CopyOut(*this, stage, cache, compute->axis, indices, scope);
  (*this)->Note("cache_write");
  return caches;
}

Tensor Schedule::cache_write(const Tensor& tensor, const String& scope) {
  return cache_write(Array<Tensor>{tensor}, scope)[0];
}

Array<Tensor> Schedule::rfactor(const Tensor& tensor, const IterVar& axis, int factor_axis,
                                const arith::VarContext* var_context) {
  Stage stage = (*this)[tensor];
  const ComputeOpNode* compute = ComputeOf(stage->op, "rfactor");
  RefuseLoopsOfBothKinds(stage, "rfactor");
  const auto* reduce = compute->body[0].as<tir::ReduceNode>();
  const Array<IterVar>& loops = stage->leaf_iter_vars;
  bool is_loop = std::any_of(loops.begin(), loops.end(),
                             [&](const IterVar& loop) { return loop.same_as(axis); });
  TVM_CHECK(reduce != nullptr && is_loop && axis->iter_type == tir::kCommReduce, ScheduleError)
      << "rfactor(" << compute->name << ", " << axis->var->name_hint
      << "): expected a reduction loop of this stage. Remaining loops of this stage: "
      << loops.Map([](const IterVar& loop) { return loop->var->name_hint; });
  int ndim = static_cast<int>(compute->axis.size());
  int place = factor_axis < 0 ? factor_axis + ndim + 1 : factor_axis;
  TVM_CHECK(place >= 0 && place <= ndim, ScheduleError)
      << "rfactor(" << compute->name << ", " << axis->var->name_hint
      << "): factor_axis must be in [" << -ndim - 1 << ", " << ndim << "], got " << factor_axis;

  // Reduction axes that `axis` is a part of, and their other loops, which remain reductions.
  IterVarMap<int> origin{{axis, 1}};
  PassUpBitMask(stage, &origin);
  IterVarMap<int> related;
  for (const IterVar& root : compute->reduce_axis) related[root] = origin[root];
  PassDownBitMask(stage, &related);

  arith::Analyzer analyzer;
  RangeMap domains = WholeDomains(stage, &analyzer, var_context);
  IterVarMap<PrimExpr> values;
  Array<IterVar> partial_axes, partial_reduce;
  auto copy_of = [&](const IterVar& loop, const String& suffix, tir::IterVarType type) {
    Range domain = domains.at(loop);
    IterVar copy(Range::FromMinExtent(tir::make_zero(domain->extent.dtype()), domain->extent),
                 loop->var.copy_with_suffix(suffix), type);
    analyzer.Bind(copy->var, copy->dom);
    values[loop] = tir::is_zero(domain->min) ? PrimExpr(copy->var) : copy->var + domain->min;
    return copy;
  };
  for (const IterVar& root : compute->axis) {
    partial_axes.push_back(copy_of(root, "", tir::kDataPar));
  }
  IterVar factor = copy_of(axis, "", tir::kDataPar);
  for (const IterVar& root : compute->reduce_axis) {
    if (!related[root]) partial_reduce.push_back(copy_of(root, "", tir::kCommReduce));
  }
  for (const IterVar& loop : loops) {
    if (loop->iter_type != tir::kCommReduce || !related[loop] || loop.same_as(axis)) continue;
    partial_reduce.push_back(copy_of(loop, "", tir::kCommReduce));
  }
  PassUpIndex(stage, domains, &values);
  std::vector<PrimExpr> conditions = MakeBoundCheck(stage, domains, values, &analyzer, false);
  // Guards of split loops hold but for the last trip, which is what loops are partitioned by.
  for (PrimExpr& guard : conditions) guard = likely(guard);
  Map<Var, PrimExpr> vmap = VarValues(compute->root_iter_vars(), values);
  conditions.insert(conditions.begin(), tir::Substitute(reduce->condition, vmap));
  PrimExpr condition = analyzer.Simplify(AllOf(conditions));
  Array<PrimExpr> source = tir::Substitute(reduce->source, vmap);

  Array<IterVar> axes(partial_axes.begin(), partial_axes.begin() + place);
  axes.push_back(factor);
  for (int i = place; i < ndim; ++i) axes.push_back(partial_axes[i]);
  Array<PrimExpr> partial_body;
  for (int i = 0; i < compute->num_outputs(); ++i) {
    if (!partial_reduce.empty()) {
      partial_body.push_back(tir::Reduce(reduce->combiner, source, partial_reduce, condition, i));
    } else if (tir::is_one(condition)) {
      partial_body.push_back(source[i]);
    } else {
      partial_body.push_back(
          if_then_else(condition, source[i], reduce->combiner->identity_element[i]));
    }
  }
  std::string name = UniqueName(*this, std::string(compute->name) + ".rf");
  Operation partial = ComputeOp(name, compute->tag, compute->attrs, axes, partial_body);

  IterVar final_axis(factor->dom, axis->var.copy_with_suffix(".v"), tir::kCommReduce);
  Array<PrimExpr> indices;
  for (int i = 0; i < ndim; ++i) {
    if (i == place) indices.push_back(final_axis->var);
    indices.push_back(compute->axis[i]->var);
  }
  if (place == ndim) indices.push_back(final_axis->var);
  Array<PrimExpr> final_source;
  Array<Tensor> results;
  for (int i = 0; i < partial->num_outputs(); ++i) {
    results.push_back(partial.output(i));
    final_source.push_back(partial.output(i)(indices));
  }
  Array<PrimExpr> final_body;
  for (int i = 0; i < compute->num_outputs(); ++i) {
    final_body.push_back(tir::Reduce(reduce->combiner, final_source, {final_axis},
                                     tir::const_true(), i, reduce->init));
  }
  Operation old_op = stage->op;
  Operation last =
      ComputeOp(compute->name, compute->tag, compute->attrs, compute->axis, final_body);
  TensorMap<Tensor> renamed;
  for (int i = 0; i < last->num_outputs(); ++i) renamed[old_op.output(i)] = last.output(i);
  ReplaceStageOp(*this, stage, last);
  ReplaceDataFlow(*this, &renamed);
  ResetLoops(stage);
  JoinGroup(InsertStage(*this, StagePosition(*this, stage), partial), stage->group);
  (*this)->Note("rfactor");
  return results;
}

}  // namespace te
}  // namespace tvm
