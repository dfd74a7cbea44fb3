/*!
 * \file tvm/auto_scheduler/knobs.h
 * \brief Programs whose split lengths are variables, and what a search space asks of the lengths.
 */
#ifndef TVM_AUTO_SCHEDULER_KNOBS_H_
#define TVM_AUTO_SCHEDULER_KNOBS_H_

#include <tvm/arith/var_context.h>
#include <tvm/auto_scheduler/knob_point.h>
#include <tvm/auto_scheduler/search_space.h>
#include <tvm/tir/function.h>

#include <memory>
#include <vector>

namespace tvm {
namespace auto_scheduler {

/*!
 * \brief `state` with new knobs sp_{g}_{j} of `context` for the lengths of its g-th split.
 *
 * The knobs range over the divisors of the extent, which must be a literal, or where the search
 * space says so over powers of two that need not divide it.
 * \throws ScheduleError if the extent of a split is not known.
 */
State FillKnobs(const SearchTask& task, const State& state, const arith::VarContext& context,
                const SearchSpace& space);

/*! \brief The program of a state before buffers are flattened; `context` knows its knobs. */
tir::PrimFunc LowerForAnalysis(const SearchTask& task, const State& state,
                               const arith::VarContext& context);

/*!
 * \brief The constraints of a search space, of all programs that differ in split lengths only.
 *
 * They are those that symbolic tuners have, so a tuner that draws numbers stays among the same
 * points.
 */
class StructureLimits {
 public:
  /*! \brief Those of a concrete state's structure, made once and kept with the task's DAG. Any
   *         thread. */
  static std::shared_ptr<const StructureLimits> Of(const SearchTask& task, const State& state,
                                                   const SearchSpace& space);

  StructureLimits(const SearchTask& task, const State& state, const SearchSpace& space);
  /*! \brief Whether the lengths of a state meet all; it needs no extents of loops. */
  bool Allow(const State& state) const;

 private:
  SearchTask task_;
  const SearchSpace& space_;
  /*! \brief The splits whose lengths are knobs; empty where none can be. */
  Array<arith::SplitGroup> groups_;
  bool has_knobs_ = true;
  /*! \brief Both sides of each constraint, in turn. */
  std::vector<PrimExpr> sides_;
};

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_KNOBS_H_
