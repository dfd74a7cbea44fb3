/*!
 * \file tvm/te/create_primfunc.h
 * \brief From tensors to a function of blocks, without a schedule.
 */
#ifndef TVM_TE_CREATE_PRIMFUNC_H_
#define TVM_TE_CREATE_PRIMFUNC_H_

#include <tvm/te/tensor.h>
#include <tvm/tir/function.h>

namespace tvm {
namespace te {

/*! \brief Attribute of a compute op: inputs whose layout a schedule may choose. */
constexpr const char* kLayoutFreePlaceholders = "layout_free_placeholders";

/*!
 * \brief A function with one block per operation, named after it, producers first.
 *
 * Tensors in `args` become buffer parameters in that order, all others are allocated. Inputs that
 * an operation names in its attribute `layout_free_placeholders` are listed by position in the
 * function's `layout_free_buffers`; other attributes become annotations of the block.
 *
 * Raises ValueError when an input is no argument, a tensor is one twice, or an operation is neither
 * a compute nor an extern one.
 */
tir::PrimFunc CreatePrimFunc(const Array<Tensor>& args);

}  // namespace te
}  // namespace tvm
#endif  // TVM_TE_CREATE_PRIMFUNC_H_
