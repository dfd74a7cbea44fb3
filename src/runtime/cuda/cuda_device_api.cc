/*!
 * \file cuda_device_api.cc
 * \brief Memory, streams and facts of NVIDIA GPUs, and time measured on their own clock.
 */
#include <tvm/runtime/container/map.h>
#include <tvm/runtime/container/shape_tuple.h>
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/registry.h>

#include "runtime/cuda/driver.h"

namespace tvm {
namespace runtime {
namespace cuda {
namespace {

class CUDADeviceAPI final : public DeviceAPI {
 public:
  Any GetAttr(Device device, DeviceAttrKind kind) override {
    const Driver* found = Driver::TryGet();
    bool exists =
        found != nullptr && device.device_id >= 0 && device.device_id < found->num_devices();
    if (kind == DeviceAttrKind::kExist) return Any(exists);
    const Driver& driver = Driver::Get();
    int id = device.device_id;
    switch (kind) {
      case DeviceAttrKind::kMaxThreadsPerBlock:
        return driver.Attribute(id, kAttrMaxThreadsPerBlock);
      case DeviceAttrKind::kWarpSize:
        return driver.Attribute(id, kAttrWarpSize);
      case DeviceAttrKind::kMaxSharedMemoryPerBlock:
        return driver.Attribute(id, kAttrMaxSharedMemoryPerBlock);
      case DeviceAttrKind::kComputeVersion:
        return String(std::to_string(driver.Attribute(id, kAttrComputeMajor)) + "." +
                      std::to_string(driver.Attribute(id, kAttrComputeMinor)));
      case DeviceAttrKind::kMaxClockRate:
        return driver.Attribute(id, kAttrClockRate);
      case DeviceAttrKind::kMultiProcessorCount:
        return driver.Attribute(id, kAttrMultiProcessorCount);
      case DeviceAttrKind::kDeviceName: {
        char name[256] = "";
        driver.Check(driver.DeviceGetName(name, sizeof(name), id), "cuDeviceGetName");
        return String(name);
      }
      case DeviceAttrKind::kTotalGlobalMemory: {
        size_t bytes = 0;
        driver.Check(driver.DeviceTotalMem(&bytes, id), "cuDeviceTotalMem");
        return static_cast<int64_t>(bytes);
      }
      case DeviceAttrKind::kMaxThreadDimensions:
        return ShapeTuple({driver.Attribute(id, kAttrMaxBlockDimX),
                           driver.Attribute(id, kAttrMaxBlockDimY),
                           driver.Attribute(id, kAttrMaxBlockDimZ)});
      case DeviceAttrKind::kL2CacheSizeBytes:
        return driver.Attribute(id, kAttrL2CacheSize);
      case DeviceAttrKind::kApiVersion: {
        int version = 0;
        driver.Check(driver.DriverGetVersion(&version), "cuDriverGetVersion");
        return version;
      }
      default:
        return Any();
    }
  }

  void* AllocDataSpace(Device device, size_t bytes, size_t alignment) override {
    const Driver& driver = Driver::Get();
    driver.Enter(device.device_id);
    // The driver aligns to 256 bytes, and refuses to allocate nothing.
    ICHECK_LE(alignment, 256);
    DevicePointer data = 0;
    Status status = driver.MemAlloc(&data, bytes == 0 ? 1 : bytes);
    TVM_CHECK(status != kErrorOutOfMemory, MemoryError)
        << "cuda(" << device.device_id << "): cannot allocate " << bytes << " bytes";
    driver.Check(status, "cuMemAlloc");
    return reinterpret_cast<void*>(data);
  }

  void FreeDataSpace(Device device, void* data) override {
    // Destructors call it, which must not raise. A device that failed says so to the next call.
    const Driver& driver = Driver::Get();
    if (driver.CtxSetCurrent(driver.ContextOf(device.device_id)) == kSuccess) {
      driver.MemFree(reinterpret_cast<DevicePointer>(data));
    }
  }

  void CopyBytes(const void* from, Device from_device, void* to, Device to_device, size_t bytes,
                 StreamHandle stream) override {
    if (bytes == 0) return;
    const Driver& driver = Driver::Get();
    bool from_gpu = from_device.device_type == kDLCUDA, to_gpu = to_device.device_type == kDLCUDA;
    int id = from_gpu ? from_device.device_id : to_device.device_id;
    driver.Enter(id);
    if (stream == nullptr) stream = CurrentStream(id);
    auto source = reinterpret_cast<DevicePointer>(from);
    auto target = reinterpret_cast<DevicePointer>(to);
    if (from_gpu && to_gpu && from_device.device_id != to_device.device_id) {
      driver.Check(driver.MemcpyPeer(target, driver.ContextOf(to_device.device_id), source,
                                     driver.ContextOf(from_device.device_id), bytes, stream),
                   "cuMemcpyPeerAsync");
    } else if (from_gpu && to_gpu) {
      driver.Check(driver.MemcpyDtoD(target, source, bytes, stream), "cuMemcpyDtoDAsync");
    } else if (from_gpu) {
      driver.Check(driver.MemcpyDtoH(to, source, bytes, stream), "cuMemcpyDtoHAsync");
    } else {
      driver.Check(driver.MemcpyHtoD(target, from, bytes, stream), "cuMemcpyHtoDAsync");
    }
  }

  void StreamSync(Device device, StreamHandle stream) override {
    const Driver& driver = Driver::Get();
    driver.Enter(device.device_id);
    if (stream == nullptr) stream = CurrentStream(device.device_id);
    driver.Check(driver.StreamSynchronize(stream), "cuStreamSynchronize");
  }

  StreamHandle CreateStream(Device device) override {
    const Driver& driver = Driver::Get();
    driver.Enter(device.device_id);
    Stream stream = nullptr;
    driver.Check(driver.StreamCreate(&stream, kStreamNonBlocking), "cuStreamCreate");
    return stream;
  }

  void FreeStream(Device device, StreamHandle stream) override {
    const Driver& driver = Driver::Get();
    driver.Enter(device.device_id);
    if (CurrentStream(device.device_id) == stream) SetCurrentStream(device.device_id, nullptr);
    driver.Check(driver.StreamDestroy(stream), "cuStreamDestroy");
  }

  void SetStream(Device device, StreamHandle stream) override {
    SetCurrentStream(device.device_id, stream);
  }

  void SetDevice(Device device) override { Driver::Get().Enter(device.device_id); }

  double ElapsedSeconds(Device device, const std::function<void()>& work) override {
    const Driver& driver = Driver::Get();
    driver.Enter(device.device_id);
    Stream stream = CurrentStream(device.device_id);
    Event events[2];
    for (Event& event : events) driver.Check(driver.EventCreate(&event, 0), "cuEventCreate");
    float milliseconds = 0;
    try {
      driver.Check(driver.EventRecord(events[0], stream), "cuEventRecord");
      work();
      driver.Check(driver.EventRecord(events[1], stream), "cuEventRecord");
      driver.Check(driver.EventSynchronize(events[1]), "cuEventSynchronize");
      driver.Check(driver.EventElapsedTime(&milliseconds, events[0], events[1]),
                   "cuEventElapsedTime");
    } catch (...) {
      for (Event event : events) driver.EventDestroy(event);
      throw;
    }
    for (Event event : events) driver.EventDestroy(event);
    return milliseconds * 1e-3;
  }

  static CUDADeviceAPI* Global() {
    // Never destroyed: arrays may outlive static destructors.
    static CUDADeviceAPI* api = new CUDADeviceAPI();
    return api;
  }
};

[[maybe_unused]] const bool registered = DeviceAPI::Register(kDLCUDA, CUDADeviceAPI::Global());

TVM_REGISTER_GLOBAL("device_api.cuda").set_body_typed([]() {
  return static_cast<void*>(CUDADeviceAPI::Global());
});

/*! \brief Why no GPU of this machine can be used, in one line; empty where one can. */
TVM_REGISTER_GLOBAL("runtime.cuda.WhyUnusable").set_body_typed([]() {
  return String(Driver::WhyUnusable());
});

/*! \brief The newest CUDA that the driver supports, 12040 of 12.4; 0 without a usable driver. */
TVM_REGISTER_GLOBAL("runtime.cuda.DriverVersion").set_body_typed([]() {
  const Driver* driver = Driver::TryGet();
  return driver == nullptr ? 0 : driver->version();
});

/*! \brief Facts about a device that targets have under these names; empty without the device. */
TVM_REGISTER_GLOBAL("runtime.cuda.DeviceFacts").set_body_typed([](int device_id) {
  Map<String, Any> facts;
  const Driver* driver = Driver::TryGet();
  if (driver == nullptr || device_id < 0 || device_id >= driver->num_devices()) return facts;
  auto fact = [&](int attribute) {
    return static_cast<int64_t>(driver->Attribute(device_id, attribute));
  };
  facts.Set("arch",
            String("sm_" + std::to_string(fact(kAttrComputeMajor) * 10 + fact(kAttrComputeMinor))));
  facts.Set("max_num_threads", fact(kAttrMaxThreadsPerBlock));
  facts.Set("max_threads_per_block", fact(kAttrMaxThreadsPerBlock));
  facts.Set("max_shared_memory_per_block", fact(kAttrMaxSharedMemoryPerBlock));
  facts.Set("max_dynamic_shared_memory_per_block", fact(kAttrMaxSharedMemoryOptin));
  facts.Set("thread_warp_size", fact(kAttrWarpSize));
  facts.Set("registers_per_block", fact(kAttrMaxRegistersPerBlock));
  facts.Set("num_cores", fact(kAttrMultiProcessorCount));
  facts.Set("l2_cache_size_bytes", fact(kAttrL2CacheSize));
  return facts;
});

}  // namespace
}  // namespace cuda
}  // namespace runtime
}  // namespace tvm
