/*!
 * \file placeholder_binder.h
 * \brief Hand-written bodies made to access the buffers of tensors.
 */
#ifndef TVM_TE_OPERATION_PLACEHOLDER_BINDER_H_
#define TVM_TE_OPERATION_PLACEHOLDER_BINDER_H_

#include <tvm/te/tensor.h>

#include "op_utils.h"

namespace tvm {
namespace te {

/*!
 * \brief `body` with the buffers that stand for tensors exchanged for those of the tensors.
 *
 * Views of the same memory follow their buffer. A buffer that describes its layout, by variables
 * for strides or offset, is bound to the whole of its tensor instead, which gives these their
 * values.
 */
Stmt BindPlaceholders(const Operation& op, const TensorMap<Buffer>& buffers,
                      const Array<Tensor>& inputs, const Array<Buffer>& input_placeholders,
                      const Array<Buffer>& output_placeholders, const Stmt& body);

/*! \brief Whether a buffer that stands for a tensor has strides or an offset of its own. */
bool DescribesLayout(const Buffer& placeholder);

/*! \brief Adds the whole of every input to the requests. */
void RequestWhole(const Array<Tensor>& inputs, TensorMap<TensorDom>* out);

/*! \brief The inputs without repetition. */
Array<Tensor> UniqueTensors(const Array<Tensor>& tensors);

/*! \brief `inputs` with replacements; the same object when none is replaced. */
Array<Tensor> ReplaceTensors(const Array<Tensor>& inputs, const TensorMap<Tensor>& rmap);

}  // namespace te
}  // namespace tvm
#endif  // TVM_TE_OPERATION_PLACEHOLDER_BINDER_H_
