/*!
 * \file tvm/runtime/c_backend_api.h
 * \brief What compiled code calls in the runtime, beside TVMBackendParallelLaunch and the scratch
 * memory of c_runtime_api.h.
 */
#ifndef TVM_RUNTIME_C_BACKEND_API_H_
#define TVM_RUNTIME_C_BACKEND_API_H_

#include <tvm/runtime/c_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/*!
 * \brief Look up a function that compiled code calls by name.
 *
 * `module_ctx` is the value of the code's variable `__tvm_module_ctx`, which is filled in when the
 * code is loaded: the imports of its module come first, then global functions. With NULL only the
 * latter are searched. The handle lives as long as the module.
 */
TVM_DLL int TVMBackendGetFuncFromEnv(void* module_ctx, const char* name, TVMFunctionHandle* out);

/*!
 * \brief Make a function that is linked into the program part of the module `runtime.SystemLib`.
 * Called by initialisers of object files on systems that cannot load libraries.
 */
TVM_DLL int TVMBackendRegisterSystemLibSymbol(const char* name, void* address);

/*!
 * \brief Call `run(data)` if no earlier call with this `handle` succeeded.
 *
 * `*handle` starts as NULL and lasts as long as the code. Calls from several threads wait for the
 * one that runs. The status is that of `run`, whose failure lets the next call try again.
 * `num_bytes` is the size of what `data` points to; this function does not keep it.
 */
TVM_DLL int TVMBackendRunOnce(void** handle, int (*run)(void* data), void* data, int num_bytes);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // TVM_RUNTIME_C_BACKEND_API_H_
