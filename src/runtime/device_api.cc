#include <tvm/runtime/device_api.h>
#include <tvm/runtime/registry.h>

#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>

#include "rpc/remote_device.h"
#include "runtime_base.h"
#include "workspace_pool.h"

namespace tvm {
namespace runtime {
namespace {

constexpr int kMaxDeviceType = 64;

std::array<std::atomic<DeviceAPI*>, kMaxDeviceType>& Table() {
  static std::array<std::atomic<DeviceAPI*>, kMaxDeviceType> table{};
  return table;
}

WorkspacePool& ThreadPoolOf(DeviceAPI* api, Device device) {
  thread_local std::map<std::pair<int, int>, std::unique_ptr<WorkspacePool>> pools;
  auto& pool = pools[{device.device_type, device.device_id}];
  if (pool == nullptr) pool = std::make_unique<WorkspacePool>(api, device);
  return *pool;
}

}  // namespace

bool DeviceAPI::Register(int device_type, DeviceAPI* api) {
  TVM_CHECK(device_type > 0 && device_type < kMaxDeviceType, ValueError)
      << "device: number " << device_type << " is out of range; choose one from 1 to "
      << kMaxDeviceType - 1 << " that no other device has";
  Table()[static_cast<size_t>(device_type)] = api;
  return true;
}

DeviceAPI* DeviceAPI::TryGet(int device_type) {
  if (rpc::IsRemote(Device{device_type, 0})) return rpc::RemoteDeviceAPI();
  if (device_type <= 0 || device_type >= kMaxDeviceType) return nullptr;
  return Table()[static_cast<size_t>(device_type)];
}

DeviceAPI* DeviceAPI::Get(Device device) {
  DeviceAPI* api = TryGet(device.device_type);
  TVM_CHECK(api != nullptr, RuntimeError) << "device " << DeviceName(device.device_type) << "("
                                          << device.device_id << ") is not available in this build";
  return api;
}

void* DeviceAPI::AllocWorkspace(Device device, size_t bytes) {
  return ThreadPoolOf(this, device).Alloc(bytes);
}

void DeviceAPI::FreeWorkspace(Device device, void* data) { ThreadPoolOf(this, device).Free(data); }

double DeviceAPI::ElapsedSeconds(Device device, const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  StreamSync(device, nullptr);
  Clock::time_point begin = Clock::now();
  work();
  StreamSync(device, nullptr);
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

TVM_REGISTER_GLOBAL("runtime.GetDeviceAttr").set_body_typed([](Device device, int kind) {
  DeviceAPI* api = DeviceAPI::TryGet(device.device_type);
  if (kind == static_cast<int>(DeviceAttrKind::kExist)) {
    return api == nullptr ? Any(false) : api->GetAttr(device, DeviceAttrKind::kExist);
  }
  return DeviceAPI::Get(device)->GetAttr(device, static_cast<DeviceAttrKind>(kind));
});

TVM_REGISTER_GLOBAL("runtime.StreamCreate").set_body_typed([](Device device) {
  return DeviceAPI::Get(device)->CreateStream(device);
});

TVM_REGISTER_GLOBAL("runtime.StreamFree").set_body_typed([](Device device, void* stream) {
  DeviceAPI::Get(device)->FreeStream(device, stream);
});

TVM_REGISTER_GLOBAL("runtime.StreamSync").set_body_typed([](Device device, void* stream) {
  DeviceAPI::Get(device)->StreamSync(device, stream);
});

TVM_REGISTER_GLOBAL("runtime.SetStream").set_body_typed([](Device device, void* stream) {
  DeviceAPI::Get(device)->SetStream(device, stream);
});

TVM_REGISTER_GLOBAL(symbol::tvm_set_device).set_body_typed([](int device_type, int device_id) {
  Device device{device_type, device_id};
  DeviceAPI::Get(device)->SetDevice(device);
});

}  // namespace runtime
}  // namespace tvm

extern "C" {

void* TVMBackendAllocWorkspace(int32_t device_type, int32_t device_id, uint64_t num_bytes) {
  void* data = nullptr;
  tvm::runtime::GuardedCall([&] {
    DLDevice device{device_type, device_id};
    // The region of reads that are never made may have an end before its start.
    if (static_cast<int64_t>(num_bytes) < 0) num_bytes = 0;
    data = tvm::runtime::DeviceAPI::Get(device)->AllocWorkspace(device, num_bytes);
  });
  return data;
}

int32_t TVMBackendFreeWorkspace(int32_t device_type, int32_t device_id, void* data) {
  return tvm::runtime::GuardedCall([&] {
    DLDevice device{device_type, device_id};
    tvm::runtime::DeviceAPI::Get(device)->FreeWorkspace(device, data);
  });
}
}
