#include "remote_device.h"

#include <vector>

#include "session.h"

namespace tvm {
namespace runtime {
namespace rpc {
namespace {

class RemoteDevices final : public DeviceAPI {
 public:
  Any GetAttr(Device device, DeviceAttrKind kind) override {
    return Session::Of(device)->DeviceAttribute(device, static_cast<int>(kind));
  }
  void* AllocDataSpace(Device device, size_t bytes, size_t alignment) override {
    return Session::Of(device)->Allocate(device, bytes, alignment);
  }
  void FreeDataSpace(Device device, void* data) override { Session::Of(device)->FreeMemory(data); }
  void CopyBytes(const void* from, Device from_device, void* to, Device to_device, size_t bytes,
                 StreamHandle) override {
    const bool from_remote = IsRemote(from_device), to_remote = IsRemote(to_device);
    if (from_remote && to_remote &&
        from_device.device_type / kSessionMask == to_device.device_type / kSessionMask) {
      return Session::Of(to_device)->Copy(from, to, bytes);
    }
    const Device host{kDLCPU, 0};
    if (from_remote && to_device.device_type == kDLCPU) {
      return Session::Of(from_device)->Read(from, to, bytes);
    }
    if (to_remote && from_device.device_type == kDLCPU) {
      return Session::Of(to_device)->Write(from, to, bytes);
    }
    // Between two sessions, or to another device of this machine, through its memory.
    std::vector<char> between(bytes);
    DeviceAPI::Get(from_device)->CopyBytes(from, from_device, between.data(), host, bytes, nullptr);
    DeviceAPI::Get(from_device)->StreamSync(from_device, nullptr);
    DeviceAPI::Get(to_device)->CopyBytes(between.data(), host, to, to_device, bytes, nullptr);
  }
  void StreamSync(Device device, StreamHandle) override {
    Session::Of(device)->Synchronize(device);
  }
};

}  // namespace

bool IsRemote(Device device) { return device.device_type >= kSessionMask; }

DeviceAPI* RemoteDeviceAPI() {
  // Never destroyed: arrays may outlive everything else.
  static auto* devices = new RemoteDevices;
  return devices;
}

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
