/*!
 * \file tvm/runtime/c_host_api.h
 * \brief What a program in C calls to run compiled code: load a module, find a function, call it.
 *
 * Functions that can fail return 0, or -1 with the message in TVMGetLastError. A program links
 * libtvm_runtime and nothing else; docs/examples/deploy_c is one.
 */
#ifndef TVM_RUNTIME_C_HOST_API_H_
#define TVM_RUNTIME_C_HOST_API_H_

#include <tvm/runtime/c_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/*! \brief A module, as loaded here or returned by a function as a kTVMObject. */
typedef void* TVMModuleHandle;

/*!
 * \brief Load a module from a file.
 * \param format NULL or "" to go by the extension; "so" for libraries.
 * \param out Owned by the caller, who gives it back with TVMObjectFree.
 */
TVM_DLL int TVMModLoadFromFile(const char* path, const char* format, TVMModuleHandle* out);

/*!
 * \brief Find a function of a module, or of its imports too. It keeps the module alive.
 * \param out Owned by the caller, who gives it back with TVMObjectFree. Failure if there is none.
 */
TVM_DLL int TVMModGetFunction(TVMModuleHandle module, const char* name, int query_imports,
                              TVMFunctionHandle* out);

/*! \brief Let `module` call the functions of `other`. */
TVM_DLL int TVMModImport(TVMModuleHandle module, TVMModuleHandle other);

/*! \brief Give a module, a function or another object back. NULL is allowed. */
TVM_DLL int TVMObjectFree(void* object);

/*! \brief Make a function of the caller's available to compiled code. Owned by the caller. */
TVM_DLL int TVMFuncCreateFromCFunc(TVMPackedCFunc function, TVMFunctionHandle* out);

/*! \brief Put a function into the global table; failure if the name is taken and not override. */
TVM_DLL int TVMFuncRegisterGlobal(const char* name, TVMFunctionHandle function, int override_entry);

/*!
 * \brief Allocate an array on a device, aligned as compiled code expects.
 * \param out Becomes the array, to be passed to calls and given back with TVMAnyFree.
 */
TVM_DLL int TVMArrayAlloc(const int64_t* shape, int ndim, DLDataType dtype, DLDevice device,
                          TVMAny* out);

/*! \brief Copy elements between host memory and an array; `bytes` is the size of all elements. */
TVM_DLL int TVMArrayCopyFromBytes(DLTensor* array, const void* data, uint64_t bytes);
TVM_DLL int TVMArrayCopyToBytes(const DLTensor* array, void* data, uint64_t bytes);

/*! \brief The tensor inside an array that was allocated here or returned; lives as long as it. */
TVM_DLL int TVMAnyGetTensor(const TVMAny* value, DLTensor** out);

/*! \brief Wait until all work queued on a device is done. */
TVM_DLL int TVMDeviceSync(DLDevice device);

/* Arguments. What a value points to must live until the call returns. */
static inline TVMAny TVMArgInt(int64_t value) {
  TVMAny any = {kTVMInt, 0, {0}};
  any.v_int64 = value;
  return any;
}
static inline TVMAny TVMArgFloat(double value) {
  TVMAny any = {kTVMFloat, 0, {0}};
  any.v_float64 = value;
  return any;
}
static inline TVMAny TVMArgStr(const char* value) {
  TVMAny any = {kTVMStr, 0, {0}};
  any.v_str = value;
  return any;
}
static inline TVMAny TVMArgDevice(int32_t device_type, int32_t device_id) {
  TVMAny any = {kTVMDevice, 0, {0}};
  any.v_device.device_type = device_type;
  any.v_device.device_id = device_id;
  return any;
}
static inline TVMAny TVMArgTensor(DLTensor* tensor) {
  TVMAny any = {kTVMDLTensor, 0, {0}};
  any.v_handle = tensor;
  return any;
}

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // TVM_RUNTIME_C_HOST_API_H_
