/*!
 * \file regions.h
 * \brief Boxes of elements that a block touches while some of the loops around it stand still.
 */
#ifndef TVM_SRC_TIR_SCHEDULE_REGIONS_H_
#define TVM_SRC_TIR_SCHEDULE_REGIONS_H_

#include <tvm/arith/analyzer.h>

#include "access.h"

namespace tvm {
namespace tir {
namespace sched {

/*! \brief The integers low .. low + extent - 1. */
struct Span {
  PrimExpr low, extent;
  /*! \brief Whether that is all of an axis. */
  bool whole = false;
  PrimExpr high() const { return low + extent - 1; }
};

/*! \brief Elements axes[d] in spans[d] for which `conditions` hold, and no others. */
struct Box {
  Array<Var> axes;
  std::vector<Span> spans;
  Array<PrimExpr> conditions;
};

/*!
 * \brief Boxes around all that a block reads of a buffer while the loops `free` run; one per read.
 * \param free Loops around the block; others count as fixed, and `analyzer` knows them.
 */
std::vector<std::vector<Span>> ReadSpans(const Tree& tree, Id block, const Buffer& buffer,
                                         const Ids& free, arith::Analyzer* analyzer);

/*!
 * \brief A box around what a block declares that it reads or writes of a buffer while the loops
 *        `free` run, within the buffer; nothing if it declares nothing.
 */
std::optional<std::vector<Span>> DeclaredSpans(const Tree& tree, Id block, const Buffer& buffer,
                                               bool write, const Ids& free,
                                               arith::Analyzer* analyzer);
bool SameSpans(const std::vector<Span>& a, const std::vector<Span>& b);

/*! \brief Exactly what a block writes while the loops `free` run; nothing if that is not known. */
std::optional<Box> ExactBox(const Tree& tree, Id block, const Buffer& buffer, Ids free,
                            arith::Analyzer* analyzer);

/*! \brief Whether elements that lie in `spans` and in the buffer are in a box. */
bool BoxCovers(const Box& box, const std::vector<Span>& spans, const Array<PrimExpr>& shape,
               arith::Analyzer* analyzer);

/*! \brief Coefficients of loops, and the rest; empty if the expression is not linear in them. */
Array<PrimExpr> Linear(const Tree& tree, const PrimExpr& expr, const Ids& loops);

/*!
 * \brief The values of a linear expression, each with those that follow it up to `length` in
 * number, if these are all the integers of an interval.
 */
std::optional<Span> Contiguous(const Tree& tree, const Array<PrimExpr>& row, const Ids& loops,
                               arith::Analyzer* analyzer, int64_t length = 1);

}  // namespace sched
}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_SCHEDULE_REGIONS_H_
