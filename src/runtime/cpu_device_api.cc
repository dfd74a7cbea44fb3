#include <tvm/runtime/device_api.h>
#include <tvm/runtime/registry.h>

#include <cstdlib>
#include <cstring>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace tvm {
namespace runtime {
namespace {

// A page of the larger size on processors of 64 bits. A network's weights in pages of 4 KiB need
// more entries than the processor's tables of addresses have.
constexpr size_t kLargePage = size_t{1} << 21;

/*! \brief Ask for large pages where whole ones fit; where there are none, nothing changes. */
void AdviseLargePages([[maybe_unused]] void* data, [[maybe_unused]] size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  madvise(data, bytes / kLargePage * kLargePage, MADV_HUGEPAGE);
#endif
}

class CPUDeviceAPI final : public DeviceAPI {
 public:
  Any GetAttr(Device device, DeviceAttrKind kind) override {
    if (kind == DeviceAttrKind::kExist) return Any(true);
    return Any();
  }
  void* AllocDataSpace(Device device, size_t bytes, size_t alignment) override {
    bool is_large = bytes >= kLargePage;
    if (is_large && alignment < kLargePage) alignment = kLargePage;
    // aligned_alloc wants a multiple of the alignment; empty arrays still get an address.
    size_t padded = (bytes + alignment - 1) / alignment * alignment;
    void* data =
        padded < bytes ? nullptr : std::aligned_alloc(alignment, padded ? padded : alignment);
    TVM_CHECK(data != nullptr, MemoryError) << "cpu: cannot allocate " << bytes << " bytes";
    if (is_large) AdviseLargePages(data, bytes);
    return data;
  }
  void FreeDataSpace(Device device, void* data) override { std::free(data); }
  void CopyBytes(const void* from, Device from_device, void* to, Device to_device, size_t bytes,
                 StreamHandle stream) override {
    if (bytes != 0) std::memcpy(to, from, bytes);
  }

  static CPUDeviceAPI* Global() {
    // Never destroyed: arrays may outlive static destructors.
    static CPUDeviceAPI* api = new CPUDeviceAPI();
    return api;
  }
};

[[maybe_unused]] const bool registered = DeviceAPI::Register(kDLCPU, CPUDeviceAPI::Global());

TVM_REGISTER_GLOBAL("device_api.cpu").set_body_typed([]() {
  return static_cast<void*>(CPUDeviceAPI::Global());
});

}  // namespace
}  // namespace runtime
}  // namespace tvm
