/*!
 * \file src/tir/analysis/domain_touched.h
 * \brief The part of a buffer that a statement reads or writes, where its conditions hold.
 */
#ifndef TVM_SRC_TIR_ANALYSIS_DOMAIN_TOUCHED_H_
#define TVM_SRC_TIR_ANALYSIS_DOMAIN_TOUCHED_H_

#include <tvm/tir/stmt_functor.h>

namespace tvm {
namespace tir {

/*!
 * \brief What DomainTouched gives, less what conditions exclude that compare a variable of the
 * statement with a constant.
 */
Array<Range> DomainTouchedWhere(const Stmt& body, const Buffer& buffer);

}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_ANALYSIS_DOMAIN_TOUCHED_H_
