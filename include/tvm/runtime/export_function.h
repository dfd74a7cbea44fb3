/*!
 * \file tvm/runtime/export_function.h
 * \brief C++ functions as symbols of a library that the runtime can call.
 */
#ifndef TVM_RUNTIME_EXPORT_FUNCTION_H_
#define TVM_RUNTIME_EXPORT_FUNCTION_H_

#include <tvm/runtime/logging.h>
#include <tvm/runtime/packed_func.h>

#include <new>

namespace tvm {
namespace runtime {

/*! \brief Calls a C++ function with arguments of the C convention; -1 after an exception. */
template <typename F>
int32_t CallExported(const char* name, F function, const TVMAny* args, int32_t num_args,
                     TVMAny* ret) noexcept {
  using Signature = typename FunctionTraits<std::remove_pointer_t<std::decay_t<F>>>::Signature;
  try {
    Any result;
    TypedInvoker<Signature>::Invoke(name, function,
                                    Args(reinterpret_cast<const Any*>(args), num_args), &result);
    *ret = result.MoveToRaw();
    return 0;
  } catch (const Error& error) {
    SetLastError(error);
  } catch (const std::bad_alloc&) {
    SetLastError(Error("MemoryError", "out of memory"));
  } catch (const std::exception& error) {
    SetLastError(Error("RuntimeError", error.what()));
  }
  return -1;
}

}  // namespace runtime
}  // namespace tvm

/*! \brief Export `Function`, whose parameters and result are known types, under the name `Name`. */
#define TVM_DLL_EXPORT_TYPED_FUNC(Name, Function)                                                 \
  extern "C" __attribute__((visibility("default"))) int32_t Name(const TVMAny* args,              \
                                                                 int32_t num_args, TVMAny* ret) { \
    return ::tvm::runtime::CallExported(#Name, Function, args, num_args, ret);                    \
  }                                                                                               \
  static_assert(true, "a semicolon follows")

#endif  // TVM_RUNTIME_EXPORT_FUNCTION_H_
