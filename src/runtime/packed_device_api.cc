/*!
 * \file packed_device_api.cc
 * \brief Devices whose memory is managed by registered functions, so that Python can add one.
 */
#include <tvm/runtime/container.h>
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/registry.h>

#include <exception>
#include <utility>
#include <vector>

#include "device_name.h"

namespace tvm {
namespace runtime {
namespace {

class PackedDeviceAPI final : public DeviceAPI {
 public:
  PackedDeviceAPI(String name, Map<String, PackedFunc> functions)
      : name_(std::move(name)), functions_(std::move(functions)) {
    for (const char* required : {"alloc", "free", "copy"}) {
      TVM_CHECK(functions_.count(required), ValueError)
          << "device " << name_ << ": the function \"" << required << "\" is missing";
    }
  }

  Any GetAttr(Device device, DeviceAttrKind kind) override {
    if (!functions_.count("attr")) {
      return kind == DeviceAttrKind::kExist ? Any(true) : Any();
    }
    return functions_["attr"](device, static_cast<int>(kind));
  }
  void* AllocDataSpace(Device device, size_t bytes, size_t alignment) override {
    int64_t address =
        functions_["alloc"](device, static_cast<int64_t>(bytes), static_cast<int64_t>(alignment))
            .cast<int64_t>();
    TVM_CHECK(address != 0, MemoryError) << name_ << ": cannot allocate " << bytes << " bytes";
    return reinterpret_cast<void*>(address);
  }
  void FreeDataSpace(Device device, void* data) override {
    if (ended_) return;
    // Arrays die in destructors, which cannot throw.
    try {
      functions_["free"](device, reinterpret_cast<int64_t>(data));
    } catch (const std::exception& error) {
      LOG(WARNING) << name_ << ": memory at " << data << " was not freed: " << error.what();
    }
  }
  void CopyBytes(const void* from, Device from_device, void* to, Device to_device, size_t bytes,
                 StreamHandle stream) override {
    if (bytes == 0) return;
    functions_["copy"](reinterpret_cast<int64_t>(from), from_device, reinterpret_cast<int64_t>(to),
                       to_device, static_cast<int64_t>(bytes));
  }
  void StreamSync(Device device, StreamHandle stream) override {
    if (functions_.count("sync")) functions_["sync"](device);
  }
  /*! \brief The language of the functions ends; arrays that outlive it leave their memory. */
  void End() { ended_ = true; }

 private:
  String name_;
  Map<String, PackedFunc> functions_;
  bool ended_ = false;
};

std::vector<PackedDeviceAPI*>& AllPackedDevices() {
  static std::vector<PackedDeviceAPI*> devices;
  return devices;
}

TVM_REGISTER_GLOBAL("runtime.EndPackedDevices").set_body_typed([] {
  for (PackedDeviceAPI* api : AllPackedDevices()) api->End();
});
TVM_REGISTER_GLOBAL("runtime.RegisterDevice")
    .set_body_typed([](int device_type, String name, Map<String, PackedFunc> functions) {
      RegisterDeviceName(device_type, name);
      // A library may have registered the memory in C++ already.
      if (functions.empty()) return;
      TVM_CHECK(DeviceAPI::TryGet(device_type) == nullptr, ValueError)
          << "device " << name << ": number " << device_type << " is taken by "
          << DeviceName(device_type);
      // Never destroyed: arrays may outlive everything else.
      auto* api = new PackedDeviceAPI(name, std::move(functions));
      AllPackedDevices().push_back(api);
      DeviceAPI::Register(device_type, api);
      Registry::Register("device_api." + std::string(name), true).set_body_typed([api]() {
        return static_cast<void*>(api);
      });
    });

}  // namespace
}  // namespace runtime
}  // namespace tvm
