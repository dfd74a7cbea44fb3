/*!
 * \file tvm/felix/sketch.h
 * \brief Symbolic sketches: complete programs whose tile sizes are variables.
 *
 * A sketch of Ansor leaves tile sizes, loop marks and compute locations open and draws them at
 * random. Here the locations and marks are decided by rule, and the sizes become knobs, so that one
 * lowered program stands for all choices of the sizes.
 */
#ifndef TVM_FELIX_SKETCH_H_
#define TVM_FELIX_SKETCH_H_

#include <tvm/arith/var_context.h>
#include <tvm/auto_scheduler/search_task.h>
#include <tvm/tir/function.h>

#include <string>
#include <utility>

namespace tvm {
namespace felix {

using auto_scheduler::SearchTask;
using auto_scheduler::State;

/*! \brief The sketches of one task. */
struct SymSketches {
  Array<State> states;
  /*! \brief Text of each sketch whose bounds could not be inferred, with the reason. */
  Array<String> failures;
};

/*!
 * \brief At most `max_sketches` symbolic states of a task, in a fixed order.
 *
 * Where all alternatives of the search space would be more, those that matter least are left out
 * first.
 */
SymSketches GenerateAllSymSketches(const SearchTask& task, int max_sketches,
                                   const std::string& space = "felix");

/*!
 * \brief The program of a state before buffers are flattened.
 * \param symbolic Lower with fresh knobs instead of the lengths in the state.
 * \return The function, and what is known of its knobs.
 */
std::pair<tir::PrimFunc, arith::VarContext> GenerateCodeForState(
    const SearchTask& task, const State& state, bool symbolic, const std::string& space = "felix");

/*! \brief Tags of the steps: equal for all states of one sketch. */
Array<String> ExtractBackbone(const State& state);

/*!
 * \brief Values of the sketch's knobs in a concrete state.
 * \return Undefined if the state's steps are not those of the sketch.
 */
Optional<Map<String, Any>> ExtractConfigDict(const State& sketch, const State& state);

/*! \brief Inverse of ExtractConfigDict; ValueError for a missing or unknown knob. */
State StateFromConfig(const SearchTask& task, const State& sketch, const Map<String, Any>& config);

}  // namespace felix
}  // namespace tvm

#endif  // TVM_FELIX_SKETCH_H_
