/*!
 * \file tvm/runtime/device_api.h
 * \brief DeviceAPI: memory and queues of one kind of device.
 */
#ifndef TVM_RUNTIME_DEVICE_API_H_
#define TVM_RUNTIME_DEVICE_API_H_

#include <tvm/runtime/ndarray.h>

#include <functional>

namespace tvm {
namespace runtime {

/*! \brief What GetAttr can be asked. */
enum class DeviceAttrKind : int {
  kExist = 0,
  kMaxThreadsPerBlock = 1,
  kWarpSize = 2,
  kMaxSharedMemoryPerBlock = 3,
  kComputeVersion = 4,
  kDeviceName = 5,
  kMaxClockRate = 6,
  kMultiProcessorCount = 7,
  kTotalGlobalMemory = 8,
  kMaxThreadDimensions = 9,
  kL2CacheSizeBytes = 10,
  kApiVersion = 11,
};

using StreamHandle = void*;

/*!
 * \brief One kind of device. An instance lives as long as the process and is thread safe.
 * Found by device type; a new kind announces itself with Register at load time.
 */
class TVM_DLL DeviceAPI {
 public:
  virtual ~DeviceAPI() = default;
  /*! \brief The value, or null when the device does not know it. */
  virtual Any GetAttr(Device device, DeviceAttrKind kind) = 0;
  /*! \brief Memory of at least `bytes` bytes; RuntimeError when there is not enough. */
  virtual void* AllocDataSpace(Device device, size_t bytes, size_t alignment) = 0;
  virtual void FreeDataSpace(Device device, void* data) = 0;
  /*! \brief Copy contiguous bytes; either end is on this kind of device or on the cpu. */
  virtual void CopyBytes(const void* from, Device from_device, void* to, Device to_device,
                         size_t bytes, StreamHandle stream) = 0;
  virtual void StreamSync(Device device, StreamHandle stream) {}
  virtual StreamHandle CreateStream(Device device) { return nullptr; }
  virtual void FreeStream(Device device, StreamHandle stream) {}
  /*! \brief Send what the calling thread launches and copies to this stream from now on. */
  virtual void SetStream(Device device, StreamHandle stream) {}
  virtual void SetDevice(Device device) {}
  /*!
   * \brief Seconds from an idle device until `work` is done, on the device's own clock where it has
   * one, so that the time to wait for it is not counted.
   */
  virtual double ElapsedSeconds(Device device, const std::function<void()>& work);
  /*! \brief Scratch memory of the calling thread; given back in any order. */
  virtual void* AllocWorkspace(Device device, size_t bytes);
  virtual void FreeWorkspace(Device device, void* data);

  /*! \brief The API of a device; RuntimeError naming it when this build has none. */
  static DeviceAPI* Get(Device device);
  /*! \brief The API, or null. */
  static DeviceAPI* TryGet(int device_type);
  static bool Register(int device_type, DeviceAPI* api);
};

namespace symbol {
/*! \brief Global function (device type, device id): kernels launched next go to this device. */
constexpr const char* tvm_set_device = "__tvm_set_device";
}  // namespace symbol

}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_DEVICE_API_H_
