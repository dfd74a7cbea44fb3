/*!
 * \file sketch.cc
 * \brief Symbolic sketches: generation, lowering, and the way to and from concrete states.
 */
#include <tvm/auto_scheduler/knobs.h>
#include <tvm/auto_scheduler/measure.h>
#include <tvm/auto_scheduler/search_space.h>
#include <tvm/auto_scheduler/transform_step.h>
#include <tvm/expr/op.h>
#include <tvm/felix/sketch.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <unordered_set>

#include "auto_scheduler/sketch_utils.h"

namespace tvm {
namespace felix {

using auto_scheduler::Candidate;
using auto_scheduler::FillKnobs;
using auto_scheduler::LengthsOf;
using auto_scheduler::LowerForAnalysis;
using auto_scheduler::ProgramMeasurer;
using auto_scheduler::Replay;
using auto_scheduler::SearchSpace;
using auto_scheduler::SpaceOptions;
using auto_scheduler::Step;
using auto_scheduler::WithLengths;

namespace {

/*!
 * \brief The sketches that can be lowered, with the alternatives that `options` leave.
 * \param enough Where there are as many, the others are not looked at.
 */
SymSketches Generate(const SearchTask& task, const SearchSpace& space, const SpaceOptions& options,
                     const std::vector<State>& structures, size_t enough) {
  SymSketches result;
  std::unordered_set<std::string> seen;
  for (const State& structure : structures) {
    try {
      State with_knobs = FillKnobs(task, structure, arith::VarContext::Make(), space);
      for (const State& completed : space.Complete(task, with_knobs, options)) {
        arith::VarContext context = arith::VarContext::Make();
        State state = FillKnobs(task, completed, context, space);
        state = task->compute_dag.InferBound(state, &context);
        if (seen.insert(state.ToStr()).second) result.states.push_back(state);
        if (result.states.size() == enough) return result;
      }
    } catch (const Error& error) {
      if (error.kind() != "ScheduleError") throw;
      // A structure that cannot be lowered costs one sketch, not the task; the caller reports it.
      result.failures.push_back(structure.ToStr() + error.what());
    }
  }
  return result;
}

}  // namespace

SymSketches GenerateAllSymSketches(const SearchTask& task, int max_sketches,
                                   const std::string& space_name) {
  const SearchSpace& space = SearchSpace::Get(task->target, space_name);
  const size_t most = static_cast<size_t>(std::max(max_sketches, 0));
  SpaceOptions options;
  for (; options.narrowing < space.MaxNarrowing(); ++options.narrowing) {
    SymSketches result =
        Generate(task, space, options, space.Sketches(task, options), /*enough=*/most + 1);
    if (result.states.size() <= most) return result;
  }
  const std::vector<State> structures = space.Sketches(task, options);
  SymSketches result = Generate(task, space, options, SomeOf(structures, most), most);
  if (!result.states.empty() || result.failures.empty()) return result;
  return Generate(task, space, options, structures, most);
}

std::pair<tir::PrimFunc, arith::VarContext> GenerateCodeForState(const SearchTask& task,
                                                                 const State& state, bool symbolic,
                                                                 const std::string& space) {
  arith::VarContext context = arith::VarContext::Make();
  const State source =
      symbolic ? FillKnobs(task, state, context, SearchSpace::Get(task->target, space)) : state;
  return {LowerForAnalysis(task, source, context), context};
}

Array<String> ExtractBackbone(const State& state) {
  Array<String> tags;
  for (const Step& step : state->transform_steps) tags.push_back(step->Tag());
  return tags;
}

Optional<Map<String, Any>> ExtractConfigDict(const State& sketch, const State& state) {
  const Array<Step>& from = sketch->transform_steps;
  const Array<Step>& to = state->transform_steps;
  if (from.size() != to.size()) return NullOpt;
  Map<String, Any> config;
  for (size_t i = 0; i < from.size(); ++i) {
    if (std::string(from[i]->Tag()) != to[i]->Tag()) return NullOpt;
    const Array<Optional<PrimExpr>>* symbolic = LengthsOf(from[i]);
    if (symbolic == nullptr) continue;
    const Array<Optional<PrimExpr>>& concrete = *LengthsOf(to[i]);
    if (symbolic->size() != concrete.size()) return NullOpt;
    for (size_t j = 0; j < symbolic->size(); ++j) {
      if (!(*symbolic)[j].defined() || !concrete[j].defined()) return NullOpt;
      const auto* knob = (*symbolic)[j].value().as<tir::SizeVarNode>();
      const int64_t* value = tir::as_const_int(concrete[j].value());
      if (knob == nullptr || value == nullptr) return NullOpt;
      config.Set(knob->name_hint, *value);
    }
  }
  return config;
}

State StateFromConfig(const SearchTask& task, const State& sketch, const Map<String, Any>& config) {
  Array<Step> steps;
  size_t used = 0;
  for (const Step& step : sketch->transform_steps) {
    const Array<Optional<PrimExpr>>* symbolic = LengthsOf(step);
    if (symbolic == nullptr) {
      steps.push_back(step);
      continue;
    }
    Array<Optional<PrimExpr>> lengths;
    for (const Optional<PrimExpr>& length : *symbolic) {
      const auto* knob = length.defined() ? length.value().as<tir::SizeVarNode>() : nullptr;
      if (knob == nullptr) {
        lengths.push_back(length);
        continue;
      }
      TVM_CHECK(config.count(knob->name_hint), ValueError)
          << "state_from_config: knob " << knob->name_hint << " has no value";
      int64_t value = config.at(knob->name_hint).template cast<int64_t>();
      TVM_CHECK(value >= 1, ValueError)
          << "state_from_config: knob " << knob->name_hint << " must be >= 1, got " << value;
      lengths.push_back(PrimExpr(IntImm(DataType::Int(32), value)));
      ++used;
    }
    steps.push_back(WithLengths(step, lengths));
  }
  TVM_CHECK(used == config.size(), ValueError)
      << "state_from_config: " << config.size() << " values are given for the " << used
      << " knobs of the sketch";
  return Replay(task, steps);
}

TVM_REGISTER_GLOBAL("felix.GenerateAllSymSketches")
    .set_body_typed([](SearchTask task, int max_sketches, String space) {
      SymSketches sketches = GenerateAllSymSketches(task, max_sketches, space);
      return Array<Any>{sketches.states, sketches.failures};
    });
TVM_REGISTER_GLOBAL("felix.GenerateCodeForState")
    .set_body_typed([](SearchTask task, State state, bool symbolic, String space) {
      auto [func, context] = GenerateCodeForState(task, state, symbolic, space);
      return Array<Any>{func, context};
    });
TVM_REGISTER_GLOBAL("felix.ExtractBackbone").set_body_typed([](State state) {
  return ExtractBackbone(state);
});
TVM_REGISTER_GLOBAL("felix.PrintTrStep").set_body_typed([](State state) {
  std::ostringstream os;
  for (const Step& step : state->transform_steps) os << step.ToRecord() << "\n";
  return String(os.str());
});
TVM_REGISTER_GLOBAL("felix.GetLoopBounds").set_body_typed([](SearchTask task, State state) {
  Array<Any> bounds;
  State inferred = task->compute_dag.InferBound(state);
  for (const auto_scheduler::Stage& stage : inferred->stages) {
    for (const auto_scheduler::Iterator& iter : stage->iters) {
      if (!iter->range.defined()) continue;
      bounds.push_back(Array<Any>{stage->op->name, iter->name, iter->range.value()});
    }
  }
  return bounds;
});
TVM_REGISTER_GLOBAL("felix.MeasurePerformance")
    .set_body_typed([](ProgramMeasurer measurer, Array<Candidate> candidates) {
      return measurer->Measure(ObjectRef(), candidates, /*batch_size=*/-1);
    });
TVM_REGISTER_GLOBAL("felix.ExtractConfigDict").set_body_typed([](State sketch, State state) {
  return ExtractConfigDict(sketch, state);
});
TVM_REGISTER_GLOBAL("felix.StateFromConfig")
    .set_body_typed([](SearchTask task, State sketch, Map<String, Any> config) {
      return StateFromConfig(task, sketch, config);
    });

}  // namespace felix
}  // namespace tvm
