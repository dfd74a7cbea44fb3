/*!
 * \file backtrace.h
 * \brief The C++ frames of the calling thread, as text.
 */
#ifndef TVM_RUNTIME_BACKTRACE_H_
#define TVM_RUNTIME_BACKTRACE_H_

#include <tvm/runtime/c_runtime_api.h>

#include <string>

namespace tvm {
namespace runtime {

/*!
 * \brief Frames of the calling thread, innermost first, one a line: "  library: function".
 * They end where Python called; what lies above is in the Python traceback.
 */
TVM_DLL std::string CaptureBacktrace();

}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_BACKTRACE_H_
