/*!
 * \file driver.h
 * \brief The functions of the CUDA driver that we use, found in libcuda when first asked for.
 *
 * Neither building nor importing needs CUDA: the library is opened by name at run time, and the
 * declarations below are our own, after the reference of the driver interface.
 */
#ifndef TVM_RUNTIME_CUDA_DRIVER_H_
#define TVM_RUNTIME_CUDA_DRIVER_H_

#include <tvm/runtime/logging.h>

#include <cstddef>
#include <string>

namespace tvm {
namespace runtime {
namespace cuda {

using Status = int;
using DeviceOrdinal = int;
using DevicePointer = unsigned long long;
using Context = void*;
using Stream = void*;
using Event = void*;
using LoadedModule = void*;
using Function = void*;
using CapturedGraph = void*;
using GraphProgram = void*;

/*! \brief Numbers of the driver's enumerations. */
enum : int {
  kSuccess = 0,
  kErrorOutOfMemory = 2,
  kErrorDeinitialized = 4,

  kAttrMaxThreadsPerBlock = 1,
  kAttrMaxBlockDimX = 2,
  kAttrMaxBlockDimY = 3,
  kAttrMaxBlockDimZ = 4,
  kAttrMaxSharedMemoryPerBlock = 8,
  kAttrWarpSize = 10,
  kAttrMaxRegistersPerBlock = 12,
  kAttrClockRate = 13,
  kAttrMultiProcessorCount = 16,
  kAttrL2CacheSize = 38,
  kAttrComputeMajor = 75,
  kAttrComputeMinor = 76,
  kAttrMaxSharedMemoryOptin = 97,

  kFuncSharedBytes = 1,
  kFuncLocalBytes = 3,
  kFuncNumRegisters = 4,
  kFuncMaxDynamicShared = 8,

  kStreamNonBlocking = 1,
  kCaptureThreadLocal = 1,
  kPointerDeviceOrdinal = 9,
};

/*! \brief X(member, symbol, parameters): every function of the driver that is used. */
// clang-format off
#define TVM_CUDA_DRIVER_FUNCTIONS(X)                                                              \
  X(Init, cuInit, (unsigned flags))                                                               \
  X(DriverGetVersion, cuDriverGetVersion, (int* version))                                         \
  X(GetErrorName, cuGetErrorName, (Status status, const char** name))                             \
  X(GetErrorString, cuGetErrorString, (Status status, const char** text))                         \
  X(DeviceGetCount, cuDeviceGetCount, (int* count))                                               \
  X(DeviceGet, cuDeviceGet, (DeviceOrdinal* device, int ordinal))                                 \
  X(DeviceGetName, cuDeviceGetName, (char* name, int length, DeviceOrdinal device))               \
  X(DeviceGetAttribute, cuDeviceGetAttribute, (int* value, int attr, DeviceOrdinal device))       \
  X(DeviceTotalMem, cuDeviceTotalMem_v2, (size_t* bytes, DeviceOrdinal device))                   \
  X(PrimaryCtxRetain, cuDevicePrimaryCtxRetain, (Context* context, DeviceOrdinal device))         \
  X(CtxSetCurrent, cuCtxSetCurrent, (Context context))                                            \
  X(MemAlloc, cuMemAlloc_v2, (DevicePointer* data, size_t bytes))                                 \
  X(PointerGetAttribute, cuPointerGetAttribute, (void* value, int attr, DevicePointer data))      \
  X(MemFree, cuMemFree_v2, (DevicePointer data))                                                  \
  X(MemcpyHtoD, cuMemcpyHtoDAsync_v2,                                                             \
    (DevicePointer to, const void* from, size_t bytes, Stream stream))                            \
  X(MemcpyDtoH, cuMemcpyDtoHAsync_v2,                                                             \
    (void* to, DevicePointer from, size_t bytes, Stream stream))                                  \
  X(MemcpyDtoD, cuMemcpyDtoDAsync_v2,                                                             \
    (DevicePointer to, DevicePointer from, size_t bytes, Stream stream))                          \
  X(MemcpyPeer, cuMemcpyPeerAsync,                                                                \
    (DevicePointer to, Context to_context, DevicePointer from, Context from_context,              \
     size_t bytes, Stream stream))                                                                \
  X(StreamCreate, cuStreamCreate, (Stream* stream, unsigned flags))                               \
  X(StreamDestroy, cuStreamDestroy_v2, (Stream stream))                                           \
  X(StreamSynchronize, cuStreamSynchronize, (Stream stream))                                      \
  X(StreamBeginCapture, cuStreamBeginCapture_v2, (Stream stream, int mode))                       \
  X(StreamEndCapture, cuStreamEndCapture, (Stream stream, CapturedGraph* graph))                  \
  X(GraphInstantiate, cuGraphInstantiateWithFlags,                                                \
    (GraphProgram * program, CapturedGraph graph, unsigned long long flags))                      \
  X(GraphLaunch, cuGraphLaunch, (GraphProgram program, Stream stream))                            \
  X(GraphProgramDestroy, cuGraphExecDestroy, (GraphProgram program))                              \
  X(GraphDestroy, cuGraphDestroy, (CapturedGraph graph))                                          \
  X(StreamWaitEvent, cuStreamWaitEvent, (Stream stream, Event event, unsigned flags))             \
  X(EventCreate, cuEventCreate, (Event* event, unsigned flags))                                   \
  X(EventDestroy, cuEventDestroy_v2, (Event event))                                               \
  X(EventRecord, cuEventRecord, (Event event, Stream stream))                                     \
  X(EventSynchronize, cuEventSynchronize, (Event event))                                          \
  X(EventElapsedTime, cuEventElapsedTime, (float* milliseconds, Event begin, Event end))          \
  X(ModuleLoadData, cuModuleLoadData, (LoadedModule* module, const void* image))                  \
  X(ModuleUnload, cuModuleUnload, (LoadedModule module))                                          \
  X(ModuleGetFunction, cuModuleGetFunction,                                                       \
    (Function* function, LoadedModule module, const char* name))                                  \
  X(FuncSetAttribute, cuFuncSetAttribute, (Function function, int attr, int value))               \
  X(FuncGetAttribute, cuFuncGetAttribute, (int* value, int attr, Function function))              \
  X(OccupancyMaxActiveBlocks, cuOccupancyMaxActiveBlocksPerMultiprocessor,                        \
    (int* blocks, Function function, int block_size, size_t dynamic_shared_bytes))                \
  X(LaunchKernel, cuLaunchKernel,                                                                 \
    (Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,      \
     unsigned block_y, unsigned block_z, unsigned dynamic_shared_bytes, Stream stream,            \
     void** params, void** extra))
// clang-format on

/*! \brief The driver, opened and initialised, or the reason why there is none. */
class Driver {
 public:
#define TVM_CUDA_DECLARE_FUNCTION(Member, Symbol, Params) Status(*Member) Params = nullptr;
  TVM_CUDA_DRIVER_FUNCTIONS(TVM_CUDA_DECLARE_FUNCTION)
#undef TVM_CUDA_DECLARE_FUNCTION

  /*! \brief The driver, or null when this machine has none or no device. Never raises. */
  static const Driver* TryGet();
  /*! \brief The driver; RuntimeError that names libcuda and what was wrong with it. */
  static const Driver& Get();

  /*! \brief Why there is no usable device; empty where there is one. Never raises. */
  static std::string WhyUnusable();

  int num_devices() const { return num_devices_; }
  /*! \brief The newest CUDA that the driver supports, 12040 of 12.4. */
  int version() const { return version_; }
  /*! \brief RuntimeError with the driver's own name and text of the error, unless it succeeded. */
  void Check(Status status, const char* what) const;
  /*! \brief Make the device's primary context the current one of the calling thread. */
  void Enter(int device_id) const;
  Context ContextOf(int device_id) const;
  int Attribute(int device_id, int attribute) const;

 private:
  Driver();
  static const Driver& Instance();

  std::string reason_;
  int num_devices_ = 0;
  int version_ = 0;
};

/*! \brief A version as it is written: 12040 is "12.4". */
std::string VersionText(int version);

/*! \brief Stream that launches and copies of the calling thread go to; null is the default one. */
Stream CurrentStream(int device_id);
void SetCurrentStream(int device_id, Stream stream);

}  // namespace cuda
}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_CUDA_DRIVER_H_
