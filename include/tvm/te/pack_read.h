/*!
 * \file tvm/te/pack_read.h
 * \brief Copies of tensors whose dimensions lie as their readers go through them.
 */
#ifndef TVM_TE_PACK_READ_H_
#define TVM_TE_PACK_READ_H_

#include <tvm/te/schedule.h>

namespace tvm {
namespace te {

/*!
 * \brief `Schedule::cache_read` with the dimensions of the copy in another order.
 *
 * \param order Dimension i of the copy is dimension order[i] of `tensor`.
 * \throws ScheduleError if a reader does not read the tensor, or reads it in another way than
 *         element by element, or the order does not name each dimension once.
 */
Tensor PackRead(Schedule schedule, const Tensor& tensor, const String& scope,
                const Array<Operation>& readers, const Array<int64_t>& order);

}  // namespace te
}  // namespace tvm
#endif  // TVM_TE_PACK_READ_H_
