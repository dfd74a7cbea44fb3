/*!
 * \file tvm/runtime/dlpack.h
 * \brief Memory layout of tensors exchanged with other frameworks: the DLPack structures.
 *
 * The layout is fixed by the DLPack protocol (version 0.8 structures, which every framework still
 * reads and writes through a capsule named "dltensor").
 */
#ifndef TVM_RUNTIME_DLPACK_H_
#define TVM_RUNTIME_DLPACK_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3,
  kDLOpenCL = 4,
  kDLVulkan = 7,
  kDLMetal = 8,
  kDLVPI = 9,
  kDLROCM = 10,
  kDLROCMHost = 11,
  kDLExtDev = 12,
} DLDeviceType;

typedef struct {
  int32_t device_type;
  int32_t device_id;
} DLDevice;

typedef enum {
  kDLInt = 0U,
  kDLUInt = 1U,
  kDLFloat = 2U,
  kDLOpaqueHandle = 3U,
  kDLBfloat = 4U,
  kDLComplex = 5U,
  kDLBool = 6U,
} DLDataTypeCode;

/*! \brief Element type: `lanes` values of `bits` bits each, interpreted by `code`. */
typedef struct {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} DLDataType;

typedef struct {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  /*! \brief In elements; NULL means compact row-major. */
  int64_t* strides;
  uint64_t byte_offset;
} DLTensor;

/*! \brief A tensor with its owner; the receiver calls `deleter` once when done. */
typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensor* self);
} DLManagedTensor;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // TVM_RUNTIME_DLPACK_H_
