/*!
 * \file tvm/te/pad_axes.h
 * \brief Sums over more elements than there are, so that tiles divide their axes.
 */
#ifndef TVM_TE_PAD_AXES_H_
#define TVM_TE_PAD_AXES_H_

#include <tvm/te/schedule.h>

#include <vector>

namespace tvm {
namespace te {

/*!
 * \brief The two loads, cast or not, whose products an operation adds up from zero; empty for other
 *        operations.
 */
std::vector<const tir::ProducerLoadNode*> FactorsOfSum(const Operation& op);

/*!
 * \brief A copy of a tensor for some readers, with elements of zero behind the ends of dimensions.
 *
 * \param shape Extents of the copy, in elements, none less than the tensor's.
 * \throws ScheduleError if a reader does not read the tensor, or the shape does not fit.
 */
Tensor PadRead(Schedule schedule, const Tensor& tensor, const Array<Operation>& readers,
               const Array<int64_t>& shape);

/*!
 * \brief Compute a sum of products over longer axes, and copy what was asked for out of it.
 *
 * The new stage has the axes of `tensor`, longer; the tensor's own stage becomes the copy. Operands
 * must have elements for all of them, and more steps of a reduction must add zeros, which copies
 * made by PadRead see to.
 *
 * \param extents Of the axes of space, then of those that reduce; none less than it was.
 * \return What is computed over the longer axes.
 * \throws ScheduleError if the tensor is no sum of products of two operands, if its loops were
 *         changed already, or if an operand ends before the longer axes do.
 */
Tensor PadAxes(Schedule schedule, const Tensor& tensor, const Array<int64_t>& extents);

}  // namespace te
}  // namespace tvm
#endif  // TVM_TE_PAD_AXES_H_
