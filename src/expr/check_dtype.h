/*!
 * \file src/expr/check_dtype.h
 * \brief Types that programs read from text may claim and no value has.
 */
#ifndef TVM_EXPR_CHECK_DTYPE_H_
#define TVM_EXPR_CHECK_DTYPE_H_

#include <tvm/runtime/data_type.h>

namespace tvm {
namespace tir {

/*! \brief TypeError unless values of the type can be computed with; `where` names the node. */
void CheckPlausible(const char* where, DataType dtype);

}  // namespace tir
}  // namespace tvm
#endif  // TVM_EXPR_CHECK_DTYPE_H_
