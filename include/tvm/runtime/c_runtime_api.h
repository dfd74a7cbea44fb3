/*!
 * \file tvm/runtime/c_runtime_api.h
 * \brief The C interface of the runtime: what compiled code and C hosts may call.
 *
 * Every function that can fail returns 0 for success and -1 for failure, with the message in
 * TVMGetLastError of the calling thread.
 */
#ifndef TVM_RUNTIME_C_RUNTIME_API_H_
#define TVM_RUNTIME_C_RUNTIME_API_H_

#include <tvm/runtime/dlpack.h>

#ifndef TVM_DLL
#if defined(_WIN32)
#define TVM_DLL __declspec(dllexport)
#else
#define TVM_DLL __attribute__((visibility("default")))
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*! \brief What a TVMAny holds. */
typedef enum {
  kTVMNull = 0,
  kTVMBool = 1,
  kTVMInt = 2,
  kTVMFloat = 3,
  kTVMDataType = 4,
  kTVMDevice = 5,
  kTVMOpaqueHandle = 6,
  /*! \brief Pointer to a runtime object. Borrowed in arguments, owned in results. */
  kTVMObject = 7,
  /*! \brief Borrowed DLTensor*. Compiled functions receive every tensor in this form. */
  kTVMDLTensor = 8,
  /*! \brief Borrowed, NUL-terminated UTF-8 text; only valid for the duration of a call. */
  kTVMStr = 9,
} TVMTypeCode;

/*! \brief One argument or result: a tag and eight bytes of payload. */
typedef struct {
  int32_t type_code;
  int32_t padding;
  union {
    int64_t v_int64;
    double v_float64;
    void* v_handle;
    const char* v_str;
    DLDataType v_dtype;
    DLDevice v_device;
  };
} TVMAny;

/*! \brief The calling convention of compiled functions. */
typedef int32_t (*TVMPackedCFunc)(const TVMAny* args, int32_t num_args, TVMAny* ret);

/*! \brief Handle of a packed function. */
typedef void* TVMFunctionHandle;

/*! \brief One task of a parallel region: task `task_id` of `num_task`. Non-zero stops the region.
 */
typedef int32_t (*TVMParallelBody)(int32_t task_id, int32_t num_task, void* data);

/*! \brief Message of the calling thread's last failure, valid until its next failure. */
TVM_DLL const char* TVMGetLastError(void);

/*!
 * \brief Set the message of the calling thread's last failure.
 * A message of the form "ValueError: ..." keeps that kind when it is raised in C++ or Python.
 */
TVM_DLL void TVMAPISetLastError(const char* message);

/*! \brief Look a global function up. The handle is owned by the registry. */
TVM_DLL int TVMFuncGetGlobal(const char* name, TVMFunctionHandle* out);

/*! \brief Call a packed function. The caller owns `ret` and frees it with TVMAnyFree. */
TVM_DLL int TVMFuncCall(TVMFunctionHandle func, const TVMAny* args, int32_t num_args, TVMAny* ret);

/*! \brief Drop what a result owns and make it null. */
TVM_DLL void TVMAnyFree(TVMAny* value);

/*!
 * \brief Run `body` for task ids 0..num_task-1 on the thread pool; the caller takes part.
 *
 * `num_task` 0 asks for one task a thread. A call from inside a parallel region runs serially.
 * The first failing task's message becomes the caller's last error.
 */
TVM_DLL int32_t TVMBackendParallelLaunch(TVMParallelBody body, void* data, int32_t num_task);

/*! \brief Scratch memory of the calling thread, 64-byte aligned; NULL when out of memory. */
TVM_DLL void* TVMBackendAllocWorkspace(int32_t device_type, int32_t device_id, uint64_t num_bytes);

/*! \brief Give scratch memory back, in any order. */
TVM_DLL int32_t TVMBackendFreeWorkspace(int32_t device_type, int32_t device_id, void* data);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // TVM_RUNTIME_C_RUNTIME_API_H_
