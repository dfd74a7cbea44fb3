/*!
 * \file tvm/auto_scheduler/knob_point.h
 * \brief Values of expressions where knobs have values.
 */
#ifndef TVM_AUTO_SCHEDULER_KNOB_POINT_H_
#define TVM_AUTO_SCHEDULER_KNOB_POINT_H_

#include <tvm/arith/var_context.h>

#include <map>
#include <string>
#include <vector>

namespace tvm {
namespace auto_scheduler {

/*! \brief Values of variables by name. */
using KnobPoint = std::map<std::string, double>;

/*!
 * \brief Central values of the knobs: all parts of an extent equal.
 * \throws ValueError if the extent of a split group is not a number.
 */
KnobPoint CentralPoint(const arith::VarContext& context);

/*!
 * \brief Values of arithmetic expressions at a point, in double precision.
 * \throws ValueError if a variable has no value, or an expression is not arithmetic.
 */
std::vector<double> EvaluateAt(const std::vector<PrimExpr>& exprs, const KnobPoint& point);

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_KNOB_POINT_H_
