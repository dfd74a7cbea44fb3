/*!
 * \file compute_dag.cc
 * \brief The operations of one workload: construction, replay of steps, bounds, text.
 */
#include <tvm/arith/var_context.h>
#include <tvm/auto_scheduler/compute_dag.h>
#include <tvm/auto_scheduler/transform_step.h>
#include <tvm/expr/op.h>
#include <tvm/ir/script_printer.h>
#include <tvm/runtime/registry.h>
#include <tvm/te/schedule_pass.h>

#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <unordered_map>

#include "flop_count.h"
#include "schedule_replay.h"

namespace tvm {
namespace auto_scheduler {

TVM_REGISTER_NODE(ComputeDAGNode);

namespace {

Array<te::Operation> OutputOpsOf(const Array<te::Tensor>& tensors) {
  Array<te::Operation> outputs;
  for (const te::Tensor& tensor : tensors) {
    if (tensor->op->IsInstance<te::PlaceholderOpNode>()) continue;
    bool seen = false;
    for (const te::Operation& op : outputs) seen = seen || op.same_as(tensor->op);
    if (!seen) outputs.push_back(tensor->op);
  }
  TVM_CHECK(!outputs.empty(), ValueError)
      << "ComputeDAG: none of the " << tensors.size()
      << " tensors is computed; give the inputs and then the outputs of the computation";
  return outputs;
}

Array<te::Operation> ScheduleOrder(const Array<te::Tensor>& tensors) {
  Array<te::Operation> ops;
  te::Schedule schedule = te::create_schedule(OutputOpsOf(tensors));
  for (const te::Stage& stage : schedule->stages) ops.push_back(stage->op);
  return ops;
}

}  // namespace

struct ComputeDAGNode::Derived {
  std::mutex mutex;
  std::unique_ptr<const AccessAnalyzer> access;
  /*! \brief Steps that shape the DAG, as records, to the DAG that they make. */
  std::unordered_map<std::string, ComputeDAG> with_steps;
  std::unordered_map<std::string, std::shared_ptr<const void>> remembered;
};

std::shared_ptr<ComputeDAGNode::Derived> ComputeDAGNode::NothingDerived() {
  return std::make_shared<Derived>();
}

ComputeDAG::ComputeDAG(Array<te::Tensor> tensors) : ComputeDAG(tensors, ScheduleOrder(tensors)) {}

void ComputeDAGNode::Init() {
  for (const te::Operation& op : ops) {
    if (!op->IsInstance<te::PlaceholderOpNode>()) continue;
    bool listed = false;
    for (const te::Tensor& tensor : tensors) listed = listed || tensor->op.same_as(op);
    TVM_CHECK(listed, ValueError) << "ComputeDAG: input " << op->name
                                  << " is read but is not among the tensors; add it before the "
                                     "outputs";
  }
  init_state = State(ops);
  flop_ct = CountFlop(ops);
}

const AccessAnalyzer& ComputeDAGNode::access() const {
  std::lock_guard<std::mutex> lock(derived_->mutex);
  if (derived_->access == nullptr) {
    derived_->access = std::make_unique<const AccessAnalyzer>(ops, OutputOpsOf(tensors));
  }
  return *derived_->access;
}

std::shared_ptr<const void> ComputeDAGNode::RememberAny(
    const std::string& key, const std::function<std::shared_ptr<const void>()>& make) const {
  {
    std::lock_guard<std::mutex> lock(derived_->mutex);
    auto found = derived_->remembered.find(key);
    if (found != derived_->remembered.end()) return found->second;
  }
  // Two threads may both make it; the first to be done is kept.
  std::shared_ptr<const void> made = make();
  std::lock_guard<std::mutex> lock(derived_->mutex);
  return derived_->remembered.emplace(key, std::move(made)).first->second;
}

Array<te::Operation> ComputeDAG::OutputOps() const { return OutputOpsOf(get()->tensors); }

namespace {

/*! \brief `tensors` with computed ones as the schedule has rewritten them. */
Array<te::Tensor> RewrittenTensors(const Array<te::Tensor>& tensors, const te::Schedule& schedule) {
  Array<te::Tensor> result;
  for (const te::Tensor& tensor : tensors) {
    result.push_back(schedule[tensor->op]->op.output(tensor->value_index));
  }
  return result;
}

}  // namespace

State ComputeDAG::InferBound(const State& state, const arith::VarContext* context) const {
  ScheduleReplay replay(get()->ops, OutputOps(), state->transform_steps, context);
  replay.Run();
  te::Schedule schedule = replay.schedule.normalize_for_feature_extraction();
  Map<te::IterVar, Range> bounds =
      context == nullptr ? te::InferBound(schedule) : te::InferBound(schedule, *context);

  State result = state;
  StateNode* node = result.CopyOnWrite();
  TVM_CHECK(node->stages.size() == replay.stages().size(), ValueError)
      << "InferBound: the state has " << node->stages.size() << " stages, its steps make "
      << replay.stages().size();
  for (size_t i = 0; i < node->stages.size(); ++i) {
    Stage stage = node->stages[i];
    if (stage->compute_at == ComputeAtKind::kInlined) continue;
    const Array<te::IterVar>& axes = replay.axes(static_cast<int>(i));
    TVM_CHECK(stage->iters.size() == axes.size(), ValueError)
        << "InferBound: the stage " << stage->op->name << " has " << stage->iters.size()
        << " loops, the steps of the state make " << axes.size();
    Array<Iterator> iters;
    for (size_t j = 0; j < axes.size(); ++j) {
      auto found = bounds.find(axes[j]);
      ICHECK(found != bounds.end()) << "no bound for loop " << stage->iters[j]->name;
      Iterator iter = stage->iters[j];
      Range range = (*found).second;
      if (context != nullptr) {
        // A state outlives the context, so it must not mention its shorthands.
        range = Range::FromMinExtent(context->ExpandDefs(range->min),
                                     context->ExpandDefs(range->extent));
      }
      iter.CopyOnWrite()->range = range;
      iters.push_back(iter);
    }
    stage.CopyOnWrite()->iters = iters;
    node->stages.Set(i, stage);
  }
  return result;
}

namespace {

/*!
 * \brief Marks the steps that decide which operations exist: those that add a stage, and the loop
 *        steps that shape the reduction an rfactor takes apart.
 *
 * All others may still have open lengths, so they must not be replayed to find the operations.
 */
std::vector<bool> StepsThatShapeTheDAG(const Array<Step>& steps) {
  std::vector<bool> mask(steps.size(), false);
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i]->AddsStage()) continue;
    mask[i] = true;
    if (!steps[i]->IsInstance<RfactorStepNode>()) continue;
    // Walk back along the life of this stage; a stage added in front of it shifts its id.
    int stage_id = steps[i]->stage_id;
    for (size_t j = i; j-- > 0;) {
      const Step& step = steps[j];
      if (std::optional<int> added = step->AddedStage()) {
        bool takes_place = *added == step->stage_id;
        bool loops_are_reset = stage_id == *added || (takes_place && stage_id == *added + 1);
        if (loops_are_reset) break;
        if (*added < stage_id) --stage_id;
      } else if (step->stage_id == stage_id) {
        mask[j] = step->IsInstance<SplitStepNode>() || step->IsInstance<FuseStepNode>() ||
                  step->IsInstance<ReorderStepNode>() || step->IsInstance<FixedSplitStepNode>() ||
                  step->IsInstance<FollowSplitStepNode>() ||
                  step->IsInstance<FollowFusedSplitStepNode>();
      }
    }
  }
  return mask;
}

/*! \brief The masked steps as text; empty if a length is a variable, whose name is not unique. */
std::string RecordsOf(const Array<Step>& steps, const std::vector<bool>& mask) {
  std::ostringstream os;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!mask[i]) continue;
    if (const auto* split = steps[i].as<SplitStepNode>()) {
      for (const Optional<PrimExpr>& length : split->lengths) {
        if (!length.defined() || !tir::is_const_int(length.value())) return "";
      }
    }
    // A follower says whom it follows, not by what lengths.
    if (steps[i]->IsInstance<FollowSplitStepNode>() ||
        steps[i]->IsInstance<FollowFusedSplitStepNode>()) {
      return "";
    }
    os << steps[i].ToRecord();
  }
  return os.str();
}

}  // namespace

ComputeDAG ComputeDAG::ReplayAndGetDAG(const Array<Step>& steps) const {
  std::vector<bool> mask = StepsThatShapeTheDAG(steps);
  const std::string records = RecordsOf(steps, mask);
  ComputeDAGNode::Derived& derived = *get()->derived_;
  if (!records.empty()) {
    std::lock_guard<std::mutex> lock(derived.mutex);
    auto found = derived.with_steps.find(records);
    if (found != derived.with_steps.end()) return found->second;
  }
  ScheduleReplay replay(get()->ops, OutputOps(), steps);
  replay.Run(&mask);
  Array<te::Operation> ops;
  for (const te::Stage& stage : replay.stages()) ops.push_back(stage->op);
  ComputeDAG dag(RewrittenTensors(get()->tensors, replay.schedule), ops);
  if (records.empty()) return dag;
  std::lock_guard<std::mutex> lock(derived.mutex);
  return derived.with_steps.emplace(records, dag).first->second;
}

namespace {

void PrintCompute(const te::ComputeOpNode* compute, std::ostream& os) {
  auto print_axes = [&os](const Array<te::IterVar>& axes) {
    for (size_t i = 0; i < axes.size(); ++i) {
      os << (i == 0 ? "" : ", ") << axes[i]->var->name_hint << ":" << axes[i]->dom->extent;
    }
  };
  for (size_t i = 0; i < compute->body.size(); ++i) {
    os << compute->name;
    if (compute->body.size() > 1) os << ".v" << i;
    os << "(";
    print_axes(compute->axis);
    os << ")";
    const auto* reduce = compute->body[i].as<tir::ReduceNode>();
    if (reduce == nullptr) {
      os << " = " << compute->body[i] << "\n";
      continue;
    }
    const PrimExpr& combine = reduce->combiner->result[reduce->value_index];
    if (combine->IsInstance<tir::AddNode>()) {
      os << " += ";
    } else if (combine->IsInstance<tir::MaxNode>()) {
      os << " max= ";
    } else if (combine->IsInstance<tir::MinNode>()) {
      os << " min= ";
    } else {
      os << " " << combine << "= ";
    }
    os << reduce->source[reduce->value_index] << " over (";
    print_axes(reduce->axis);
    os << ")\n";
  }
}

}  // namespace

std::string ComputeDAG::PrintDAG(bool simple) const {
  // The text is hashed for the keys of records, which outlive other forms of expressions.
  ScriptScope scope;
  ScriptStyle style;
  style.compact = true;
  scope.SetStyle(style);
  std::ostringstream os;
  for (const te::Operation& op : get()->ops) {
    if (const auto* compute = op.as<te::ComputeOpNode>()) {
      PrintCompute(compute, os);
      for (const auto& [key, value] : compute->attrs) {
        // The tensors themselves print as nodes; their names say which they are.
        os << "  " << key << ":";
        if (const auto* tensors = value.as<Array<ObjectRef>::ContainerType>()) {
          for (const ObjectRef& element : GetRef<Array<ObjectRef>>(tensors)) {
            if (const auto* tensor = element.as<te::TensorNode>()) {
              os << " " << tensor->op->name;
            } else {
              os << " " << element;
            }
          }
        } else {
          os << " " << value;
        }
        os << "\n";
      }
    } else {
      os << op->name << " = PLACEHOLDER " << op->output_dtype(0);
      if (!simple) os << " " << op->output_shape(0);
      os << "\n";
    }
  }
  return os.str();
}

TVM_REGISTER_GLOBAL("auto_scheduler.ComputeDAG").set_body_typed([](Array<te::Tensor> tensors) {
  return ComputeDAG(tensors);
});
TVM_REGISTER_GLOBAL("auto_scheduler.ComputeDAGApplyStepsFromState")
    .set_body_typed([](ComputeDAG dag, State state, int layout_rewrite) {
      auto [schedule, args] =
          dag.ApplySteps(state->transform_steps, static_cast<LayoutRewriteOption>(layout_rewrite));
      return Array<Any>{schedule, args};
    });
TVM_REGISTER_GLOBAL("auto_scheduler.ComputeDAGInferBoundFromState")
    .set_body_typed([](ComputeDAG dag, State state, Optional<arith::VarContext> context) {
      if (!context.defined()) return dag.InferBound(state);
      arith::VarContext facts = context.value();
      return dag.InferBound(state, &facts);
    });
TVM_REGISTER_GLOBAL("auto_scheduler.ComputeDAGReplaySteps")
    .set_body_typed([](ComputeDAG dag, Array<Step> steps) {
      State state = dag->init_state;
      for (const Step& step : steps) state.AppendStep(step, dag);
      return state;
    });
TVM_REGISTER_GLOBAL("auto_scheduler.ComputeDAGPrintDAG")
    .set_body_typed([](ComputeDAG dag, bool simple) { return String(dag.PrintDAG(simple)); });
TVM_REGISTER_GLOBAL("auto_scheduler.ComputeDAGLayoutTransforms")
    .set_body_typed([](ComputeDAG dag, State state) { return dag.LayoutTransforms(state); });
TVM_REGISTER_GLOBAL("auto_scheduler.ComputeDAGRewriteLayoutFromState")
    .set_body_typed([](ComputeDAG dag, State state) {
      return dag.RewriteLayout(dag.LayoutTransforms(state));
    });

}  // namespace auto_scheduler
}  // namespace tvm
