/*!
 * \file facts.h
 * \brief What loops do for a block: which of its variables they feed, and which instances they run.
 */
#ifndef TVM_SRC_TIR_SCHEDULE_FACTS_H_
#define TVM_SRC_TIR_SCHEDULE_FACTS_H_

#include <tvm/arith/analyzer.h>

#include "access.h"

namespace tvm {
namespace tir {
namespace sched {

/*! \brief An analyzer that knows the ranges of the loops around a node, and of the node itself. */
class LoopAnalyzer : public arith::Analyzer {
 public:
  LoopAnalyzer(const Tree& tree, Id id, bool fold_unit_loops = true);
};

/*! \brief Loop variables by what they feed; loops of one iteration feed nothing. */
struct Feeds {
  VarSet spatial, reducing;
  /*! \brief Whether that cannot be told apart. */
  bool mixed = false;
};
Feeds FeedsOf(const Tree& tree, Id block);

/*!
 * \brief Loops that must be fixed for no instance of a block to run twice.
 * \param own Loops that feed one variable each, one by one, while all others are fixed.
 */
VarSet FindGiven(const Tree& tree, Id block, const VarSet& own = VarSet());

/*!
 * \brief Why the loops do not run a reduction from its first values on, once; empty if they do.
 *
 * The init of a block runs where all reducing variables have their first values. That comes before
 * all other contributions to an element, and once, if no loop feeds spatial and reducing variables
 * alike, and below the first loop that feeds a reducing one no instance repeats.
 */
std::string OrderError(const Tree& tree, Id block);
/*! \brief The same for blocks that reduce; others have no such order. */
std::string ReductionOrderError(const Tree& tree, Id block);

/*! \brief Whether the first iteration of the loops gives reducing variables their first values. */
bool StartsAtFirst(const Tree& tree, Id block);

/*! \brief Whether the values of a block are in its domains where its predicate holds. */
bool StaysInside(const Tree& tree, Id block);
/*! \brief Whether it can be shown that the loops run every instance of a block. */
bool RunsAll(const Tree& tree, Id block);

}  // namespace sched
}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_SCHEDULE_FACTS_H_
