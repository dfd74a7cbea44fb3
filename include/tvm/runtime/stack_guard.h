/*!
 * \file tvm/runtime/stack_guard.h
 * \brief An error instead of a crash where recursion follows the depth of a program.
 */
#ifndef TVM_RUNTIME_STACK_GUARD_H_
#define TVM_RUNTIME_STACK_GUARD_H_

#include <tvm/runtime/logging.h>

#include <functional>
#include <optional>
#include <utility>

namespace tvm {
namespace runtime {

/*! \brief Address below which the calling thread's stack counts as used up; null if unknown. */
TVM_DLL const char* StackLimit();
[[noreturn]] TVM_DLL void ThrowStackUsedUp();

/*!
 * \brief Run a function on a stack of its own, of 256 MiB, on which it may ask for another one.
 *
 * The function runs in another thread while the caller waits, so what is kept by thread is not the
 * caller's. What it throws arrives. RecursionError where there is no memory for a stack.
 */
TVM_DLL void RunOnNewStack(const std::function<void()>& body);

/*! \brief Whether little of the calling thread's stack is left. Costs a comparison. */
inline bool IsStackUsedUp() {
  // Not the address of a variable: a sanitizer may keep those on the heap.
  return __builtin_expect(static_cast<const char*>(__builtin_frame_address(0)) < StackLimit(), 0);
}

/*! \brief The result of a function, called on another stack. */
template <typename F>
auto ResultOnNewStack(F&& body) {
  std::optional<decltype(body())> result;
  RunOnNewStack([&] { result.emplace(body()); });
  return std::move(*result);
}

/*! \brief RecursionError when little of the calling thread's stack is left. Costs a comparison. */
inline void CheckStack() {
  if (IsStackUsedUp()) ThrowStackUsedUp();
}

}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_STACK_GUARD_H_
