/*!
 * \file tvm/tir/debug_spans.h
 * \brief Lines of a function's text as the source that debuggers and profilers show.
 */
#ifndef TVM_TIR_DEBUG_SPANS_H_
#define TVM_TIR_DEBUG_SPANS_H_

#include <tvm/ir/transform.h>

namespace tvm {
namespace tir {
namespace transform {

/*! \brief Attribute of functions: the file whose lines the spans of their statements name. */
constexpr const char* kDebugSource = "tir.debug_source";

/*!
 * \brief Writes the text of each function to `<global_symbol>.tir` in the current folder, and gives
 * its statements the lines that they have there.
 *
 * Functions get the attribute kDebugSource, with which the LLVM generator says in its debug
 * information of what line each instruction is. Spans are set in the statements given.
 */
tvm::transform::Pass InstallDebugSpans();

}  // namespace transform
}  // namespace tir
}  // namespace tvm

#endif  // TVM_TIR_DEBUG_SPANS_H_
