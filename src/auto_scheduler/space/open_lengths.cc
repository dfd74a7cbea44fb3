/*!
 * \file open_lengths.cc
 * \brief Completed sketches whose split lengths are open.
 */
#include "open_lengths.h"

#include <tvm/auto_scheduler/transform_step.h>
#include <tvm/expr/op.h>

#include <string>

#include "../sketch_utils.h"

namespace tvm {
namespace auto_scheduler {

namespace {

/*! \brief `state` with a variable for each length, under which its loops can be told apart. */
State WithNamedLengths(const SearchTask& task, const State& state) {
  Array<Step> steps = state->transform_steps;
  int named = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const Array<Optional<PrimExpr>>* open = LengthsOf(steps[i]);
    if (open == nullptr) continue;
    Array<Optional<PrimExpr>> lengths;
    for (size_t j = 0; j < open->size(); ++j) {
      lengths.push_back(PrimExpr(
          tir::SizeVar("t" + std::to_string(named++), DataType::Int(32), tir::SizeVarKind::kKnob)));
    }
    steps.Set(i, WithLengths(steps[i], lengths));
  }
  return Replay(task, steps);
}

/*! \brief `state` with all lengths open, and the extents that followed from them unknown. */
State WithOpenLengths(State state) {
  Array<Step> steps = state->transform_steps;
  for (size_t i = 0; i < steps.size(); ++i) {
    const Array<Optional<PrimExpr>>* lengths = LengthsOf(steps[i]);
    if (lengths == nullptr) continue;
    const Array<Optional<PrimExpr>> open(lengths->size(), NullOpt);
    const auto* split = steps[i].as<SplitStepNode>();
    if (split == nullptr) {
      steps.Set(i, WithLengths(steps[i], open));
      continue;
    }
    const bool literal =
        split->extent.defined() && tir::as_const_int(split->extent.value()) != nullptr;
    steps.Set(i, SplitStep(split->stage_id, split->iter_id, literal ? split->extent : NullOpt, open,
                           split->inner_to_outer));
  }
  state.CopyOnWrite()->transform_steps = steps;
  state.CopyOnWrite()->concrete = false;
  return state;
}

}  // namespace

std::vector<State> OpenCompletedSketches(const SearchSpace& space, const SearchTask& task,
                                         const SpaceOptions& options) {
  std::vector<State> open;
  for (const State& sketch : space.Sketches(task, options)) {
    for (const State& completed : space.Complete(task, WithNamedLengths(task, sketch), options)) {
      open.push_back(WithOpenLengths(completed));
    }
  }
  return open;
}

}  // namespace auto_scheduler
}  // namespace tvm
