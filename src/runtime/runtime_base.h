/*!
 * \file runtime_base.h
 * \brief The border between C++ exceptions and C error codes.
 */
#ifndef TVM_RUNTIME_RUNTIME_BASE_H_
#define TVM_RUNTIME_RUNTIME_BASE_H_

#include <tvm/runtime/logging.h>

namespace tvm {
namespace runtime {

/*! \brief Run `f`; 0 if it returned, -1 with the thread's last error set if it threw. */
template <typename F>
int GuardedCall(F&& f) noexcept {
  try {
    f();
    return 0;
  } catch (const Error& error) {
    SetLastError(error);
  } catch (const std::bad_alloc&) {
    SetLastError(Error("MemoryError", "out of memory"));
  } catch (const std::exception& error) {
    SetLastError(Error("InternalError", error.what()));
  }
  return -1;
}

}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_RUNTIME_BASE_H_
