/*!
 * \file normalize.cc
 * \brief Inlined definitions substituted, loops zero-based.
 */
#include <tvm/expr/op.h>
#include <tvm/te/schedule_pass.h>
#include <tvm/tir/stmt_functor.h>

#include <unordered_map>
#include <vector>

#include "dataflow_rewrite.h"
#include "message_passing.h"

namespace tvm {
namespace te {

namespace {

/*! \brief Replaces reads of an operation's outputs by its definition at the indices read. */
class DefinitionInliner final : public tir::ExprMutator {
 public:
  DefinitionInliner(const Operation& op, const Array<PrimExpr>& definitions)
      : op_(op), axes_(op.as<ComputeOpNode>()->axis), definitions_(definitions) {}
  using ExprMutator::VisitExpr;

 private:
  PrimExpr VisitExpr_(const tir::ProducerLoadNode* load) override {
    PrimExpr expr = ExprMutator::VisitExpr_(load);
    load = expr.as<tir::ProducerLoadNode>();
    const auto* tensor = load->producer.as<TensorNode>();
    if (tensor == nullptr || !tensor->op.same_as(op_)) return expr;
    Map<Var, PrimExpr> vmap;
    for (size_t i = 0; i < axes_.size(); ++i) {
      // Any integer may index a tensor; the definition counts in the type of its axis.
      const tir::Var& axis = axes_[i]->var;
      vmap.Set(axis, cast(axis.dtype(), load->indices[i]));
    }
    return tir::Substitute(definitions_[tensor->value_index], vmap);
  }

  Operation op_;
  Array<IterVar> axes_;
  const Array<PrimExpr>& definitions_;
};

/*! \brief `body` with `op` substituted. A joint reduction keeps sharing one tuple of sources. */
Array<PrimExpr> InlineInto(const Array<PrimExpr>& body, const Operation& op,
                           const Array<PrimExpr>& definitions, bool* changed) {
  DefinitionInliner inliner(op, definitions);
  Array<PrimExpr> result;
  if (body[0].as<tir::ReduceNode>()) {
    PrimExpr first = inliner(body[0]);
    if (first.same_as(body[0])) return body;
    *changed = true;
    const auto* reduce = first.as<tir::ReduceNode>();
    for (size_t i = 0; i < body.size(); ++i) {
      result.push_back(tir::Reduce(reduce->combiner, reduce->source, reduce->axis,
                                   reduce->condition, static_cast<int>(i), reduce->init));
    }
    return result;
  }
  for (const PrimExpr& expr : body) {
    result.push_back(inliner(expr));
    *changed |= !result.back().same_as(expr);
  }
  return result;
}

void InjectInline(const Schedule& sch, bool feature_extraction) {
  Array<Stage> stages = sch->stages;
  std::vector<Array<PrimExpr>> bodies(stages.size());
  std::vector<bool> changed(stages.size(), false);
  for (size_t i = 0; i < stages.size(); ++i) {
    if (const auto* compute = stages[i]->op.as<ComputeOpNode>()) bodies[i] = compute->body;
  }
  // Readers first: a definition that reads another inlined one is substituted before that one is.
  for (size_t i = stages.size(); i != 0; --i) {
    const Stage& stage = stages[i - 1];
    if (stage->attach_type != kInline) continue;
    stage->attach_type = kInlinedAlready;
    Array<PrimExpr> definitions = bodies[i - 1];
    if (feature_extraction && stage->op->attrs.count("const_matrix")) {
      definitions =
          definitions.Map([](const PrimExpr& value) { return tir::make_const(value.dtype(), 1); });
    }
    for (size_t j = i; j < stages.size(); ++j) {
      if (bodies[j].empty()) {
        for (const Tensor& input : stages[j]->op->InputTensors()) {
          TVM_CHECK(!input->op.same_as(stage->op), ScheduleError)
              << "compute_inline(" << stage->op->name << "): " << stages[j]->op->name
              << " reads it, and only operations made by compute can take a definition in; "
              << "use compute_at or compute_root";
        }
        continue;
      }
      bool is_changed = changed[j];
      bodies[j] = InlineInto(bodies[j], stage->op, definitions, &is_changed);
      changed[j] = is_changed;
    }
  }
  TensorMap<Tensor> vmap;
  for (size_t i = 0; i < stages.size(); ++i) {
    if (stages[i]->attach_type == kInlinedAlready) continue;
    Operation old_op = stages[i]->op;
    Operation new_op = old_op;
    if (changed[i]) {
      const auto* compute = old_op.as<ComputeOpNode>();
      new_op = ComputeOp(compute->name, compute->tag, compute->attrs, compute->axis, bodies[i]);
    }
    new_op = new_op->ReplaceInputs(new_op, vmap);
    if (new_op.same_as(old_op)) continue;
    for (int k = 0; k < old_op->num_outputs(); ++k) vmap[old_op.output(k)] = new_op.output(k);
    ReplaceStageOp(sch, stages[i], new_op);
  }
}

/*! \brief Every axis that is a loop itself gets a loop that starts at zero. */
void RebaseLoops(const Schedule& sch) {
  IterVarMap<IterVar> rebased;
  for (const Stage& stage : sch->stages) {
    if (!stage.is_scheduled()) continue;
    std::vector<IterVarRelation> relations(stage->relations.begin(), stage->relations.end());
    Array<IterVar> loops = stage->leaf_iter_vars;
    for (const IterVar& root : stage->op->root_iter_vars()) {
      auto it = stage->iter_var_attrs.find(root);
      IterVarAttr attr = it == stage->iter_var_attrs.end() ? IterVarAttr() : (*it).second;
      for (size_t i = 0; i < loops.size(); ++i) {
        if (!loops[i].same_as(root)) continue;
        IterVar zero_based(Range(), root->var.copy_with_suffix(""), root->iter_type);
        relations.push_back(Rebase(root, zero_based));
        loops.Set(i, zero_based);
        stage->all_iter_vars.push_back(zero_based);
        if (attr.defined()) stage->iter_var_attrs.Set(zero_based, attr);
        rebased.emplace(root, zero_based);
        break;
      }
    }
    stage->leaf_iter_vars = loops;
    stage->relations = Array<IterVarRelation>(relations.begin(), relations.end());
  }
  auto reattach = [&](const Stage& stage) {
    if (stage->attach_type != kScope) return;
    if (auto it = rebased.find(stage->attach_ivar); it != rebased.end()) {
      stage->attach_ivar = it->second;
    }
  };
  for (const Stage& stage : sch->stages) reattach(stage);
  for (const Stage& group : sch->groups) reattach(group);
}

Schedule Normalized(const Schedule& sch, bool feature_extraction) {
  Schedule copy = sch.copy();
  InjectInline(copy, feature_extraction);
  RebaseLoops(copy);
  return copy;
}

}  // namespace

Schedule Schedule::normalize() const { return Normalized(*this, false); }

Schedule Schedule::normalize_for_feature_extraction() const { return Normalized(*this, true); }

}  // namespace te
}  // namespace tvm
