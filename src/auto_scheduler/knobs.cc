/*!
 * \file knobs.cc
 */
#include <tvm/auto_scheduler/knobs.h>
#include <tvm/auto_scheduler/transform_step.h>
#include <tvm/expr/op.h>
#include <tvm/te/schedule_pass.h>

#include <sstream>
#include <string>

#include "sketch_utils.h"

namespace tvm {
namespace auto_scheduler {

State FillKnobs(const SearchTask& task, const State& state, const arith::VarContext& context,
                const SearchSpace& space) {
  Array<Step> steps;
  for (const Step& step : state->transform_steps) {
    const Array<Optional<PrimExpr>>* open = LengthsOf(step);
    if (open == nullptr) {
      steps.push_back(step);
      continue;
    }
    const int64_t free_lengths = space.FreeLengths(task, state->transform_steps, steps.size());
    const auto* split = step.as<SplitStepNode>();
    const Optional<PrimExpr> extent = split == nullptr ? Optional<PrimExpr>() : split->extent;
    TVM_CHECK(
        free_lengths > 0 || (extent.defined() && tir::as_const_int(extent.value()) != nullptr),
        ScheduleError)
        << "symbolic sketch: step " << steps.size() << " splits a loop of stage " << step->stage_id
        << " whose extent is not a number, so its tile sizes have no domain";
    const PrimExpr domain =
        free_lengths > 0 ? PrimExpr(IntImm(DataType::Int(32), free_lengths)) : extent.value();
    arith::SplitGroup group = context.DefineSplitGroup(domain, static_cast<int>(open->size()));
    Array<Optional<PrimExpr>> lengths;
    for (const tir::SizeVar& knob : group->vars) lengths.push_back(PrimExpr(knob));
    steps.push_back(WithLengths(step, lengths));
  }
  return Replay(task, steps);
}

tir::PrimFunc LowerForAnalysis(const SearchTask& task, const State& state,
                               const arith::VarContext& context) {
  auto [schedule, args] =
      task->compute_dag.ApplySteps(state->transform_steps, task->layout_rewrite_option, &context);
  te::Schedule normalized = schedule.normalize_for_feature_extraction();
  Map<te::IterVar, Range> bounds = te::InferBound(normalized, context);
  te::Stmt body = te::ScheduleOps(normalized, bounds);
  Array<ObjectRef> params;
  for (const te::Tensor& arg : args) params.push_back(arg);
  return te::SchedulePostProcToPrimFunc(params, body);
}

namespace {

/*! \brief Equal for the states of one structure on one machine. */
std::string KeyOf(const SearchTask& task, const State& state, const SearchSpace& space) {
  std::ostringstream key;
  key << space.name() << '\n' << task->target->str() << '\n';
  const HardwareParams& limits = task->hardware_params;
  key << limits->vector_unit_bytes << ' ' << limits->max_shared_memory_per_block << ' '
      << limits->max_threads_per_block << ' ' << limits->max_vthread_extent << ' '
      << limits->warp_size << '\n';
  for (const Step& step : state->transform_steps) {
    if (const auto* split = step.as<SplitStepNode>()) {
      key << split->stage_id << ' ' << split->iter_id << ' ' << split->lengths.size();
    } else if (step->IsInstance<FetchAheadStepNode>()) {
      key << WithLengths(step, {Optional<PrimExpr>()}).ToRecord();
    } else {
      key << step.ToRecord();
    }
    key << '\n';
  }
  return key.str();
}

std::vector<PrimExpr> SidesOf(const SearchTask& task, const State& state,
                              const arith::VarContext& context, const SearchSpace& space) {
  const LoopProgram program = ReadLoopProgram(LowerForAnalysis(task, state, context), context);
  std::vector<PrimExpr> sides;
  for (const Constraint& constraint : space.Constraints(program, task->Machine(), context)) {
    sides.push_back(context.ExpandDefs(constraint.lhs));
    sides.push_back(context.ExpandDefs(constraint.rhs));
  }
  return sides;
}

bool AllHold(const std::vector<PrimExpr>& sides, const KnobPoint& point) {
  // Both sides are counts, but in double precision.
  constexpr double kTolerance = 1e-9;
  // One by one: most lengths drawn at random break one of the first.
  for (size_t i = 0; i < sides.size(); i += 2) {
    const std::vector<double> values = EvaluateAt({sides[i], sides[i + 1]}, point);
    if (values[0] > values[1] * (1 + kTolerance)) return false;
  }
  return true;
}

}  // namespace

std::shared_ptr<const StructureLimits> StructureLimits::Of(const SearchTask& task,
                                                           const State& state,
                                                           const SearchSpace& space) {
  return task->compute_dag->Remember<StructureLimits>(KeyOf(task, state, space), [&] {
    return std::make_shared<const StructureLimits>(task, state, space);
  });
}

StructureLimits::StructureLimits(const SearchTask& task, const State& state,
                                 const SearchSpace& space)
    : task_(task), space_(space) {
  const arith::VarContext context = arith::VarContext::Make();
  try {
    sides_ = SidesOf(task, FillKnobs(task, state, context, space), context, space);
  } catch (const Error& error) {
    if (error.kind() != "ScheduleError") throw;
    // Lengths that no knob can stand for are looked at one program at a time.
    has_knobs_ = false;
    return;
  }
  groups_ = context->split_groups;
}

bool StructureLimits::Allow(const State& state) const {
  if (!has_knobs_) {
    return AllHold(SidesOf(task_, state, arith::VarContext::Make(), space_), {});
  }
  KnobPoint point;
  size_t g = 0;
  for (const Step& step : state->transform_steps) {
    const Array<Optional<PrimExpr>>* lengths = LengthsOf(step);
    if (lengths == nullptr) continue;
    const arith::SplitGroup& group = groups_[g++];
    const auto extent = static_cast<double>(*tir::as_const_int(group->extent_expr));
    double inside = 1;
    for (size_t j = 0; j < lengths->size(); ++j) {
      const Optional<PrimExpr>& chosen = (*lengths)[j];
      const int64_t* length = chosen.defined() ? tir::as_const_int(chosen.value()) : nullptr;
      // Open lengths rule nothing out.
      if (length == nullptr) return true;
      point[group->vars[j]->name_hint] = static_cast<double>(*length);
      inside *= static_cast<double>(*length);
    }
    point[group->extent->name_hint] = extent;
    point[group->quotient->name_hint] = extent / inside;
  }
  return AllHold(sides_, point);
}

}  // namespace auto_scheduler
}  // namespace tvm
