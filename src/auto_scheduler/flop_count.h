/*!
 * \file flop_count.h
 * \brief Arithmetic work of a list of operations.
 */
#ifndef TVM_AUTO_SCHEDULER_FLOP_COUNT_H_
#define TVM_AUTO_SCHEDULER_FLOP_COUNT_H_

#include <tvm/te/operation.h>

namespace tvm {
namespace auto_scheduler {

/*!
 * \brief Operations on values of each op's own type class, summed over all elements.
 *
 * Index arithmetic is not counted. The attribute "FLOP" of an op replaces its count. -1 if an
 * extent is symbolic or an expression is of an unknown kind.
 */
double CountFlop(const Array<te::Operation>& ops);

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_FLOP_COUNT_H_
