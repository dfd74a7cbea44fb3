/*!
 * \file tvm/runtime/stack_guard.h
 * \brief An error instead of a crash where recursion follows the depth of a program.
 */
#ifndef TVM_RUNTIME_STACK_GUARD_H_
#define TVM_RUNTIME_STACK_GUARD_H_

#include <tvm/runtime/logging.h>

namespace tvm {
namespace runtime {

/*! \brief Address below which the calling thread's stack counts as used up; null if unknown. */
TVM_DLL const char* StackLimit();
[[noreturn]] TVM_DLL void ThrowStackUsedUp();

/*! \brief RecursionError when little of the calling thread's stack is left. Costs a comparison. */
inline void CheckStack() {
  // Not the address of a variable: a sanitizer may keep those on the heap.
  const char* here = static_cast<const char*>(__builtin_frame_address(0));
  if (__builtin_expect(here < StackLimit(), 0)) ThrowStackUsedUp();
}

}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_STACK_GUARD_H_
