#include <tvm/runtime/device_api.h>
#include <tvm/runtime/registry.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "process_lock.h"

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

/*!
 * \brief Arrays that were freed, for the next ones of their size.
 *
 * The results of a network are allocated anew in every run. The system takes back what is freed at
 * the end of a heap and zeroes the pages that it gives, which takes longer than many kernels.
 */
class FreedBlocks {
 public:
  /*! \brief A block of that size and alignment, null where there is none. */
  void* Take(size_t bytes, size_t alignment) {
    if (bytes < kLeast) return nullptr;
    std::lock_guard<std::mutex> lock(mutex_);
    for (size_t i = blocks_.size(); i != 0; --i) {
      const Block block = blocks_[i - 1];
      if (block.bytes != bytes || reinterpret_cast<uintptr_t>(block.data) % alignment) continue;
      blocks_.erase(blocks_.begin() + static_cast<ptrdiff_t>(i - 1));
      kept_ -= bytes;
      return block.data;
    }
    return nullptr;
  }

  /*! \brief Say how large a new block is. */
  void Note(void* data, size_t bytes) {
    if (bytes < kLeast) return;
    std::lock_guard<std::mutex> lock(mutex_);
    sizes_[data] = bytes;
  }

  /*! \brief Keep a block, in place of the oldest ones where there are too many. */
  void Give(void* data) {
    std::vector<void*> unwanted;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      auto known = sizes_.find(data);
      if (known == sizes_.end() || known->second > kMostBytes) {
        if (known != sizes_.end()) sizes_.erase(known);
        unwanted.push_back(data);
      } else {
        blocks_.push_back({data, known->second});
        kept_ += known->second;
      }
      while (kept_ > kMostBytes || blocks_.size() > kMostBlocks) {
        unwanted.push_back(blocks_.front().data);
        sizes_.erase(blocks_.front().data);
        kept_ -= blocks_.front().bytes;
        blocks_.erase(blocks_.begin());
      }
    }
    for (void* block : unwanted) std::free(block);
  }

 private:
  struct Block {
    void* data;
    size_t bytes;
  };

  static constexpr size_t kLeast = size_t{1} << 15;
#ifdef __SANITIZE_ADDRESS__
  // A block that is kept would hide its uses after it was freed.
  static constexpr size_t kMostBytes = 0;
#else
  static constexpr size_t kMostBytes = size_t{1} << 26;
#endif
  static constexpr size_t kMostBlocks = 16;

  // Arrays are freed by any thread, in the midst of whatever another one does.
  std::mutex& mutex_ = ProcessLock<std::mutex, FreedBlocks>::Get();
  /*! \brief Of every block that may come back, in use or not. */
  std::unordered_map<void*, size_t> sizes_;
  /*! \brief Oldest first. */
  std::vector<Block> blocks_;
  size_t kept_ = 0;
};

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
    if (void* freed = freed_.Take(padded, alignment)) return freed;
    void* data =
        padded < bytes ? nullptr : std::aligned_alloc(alignment, padded ? padded : alignment);
    TVM_CHECK(data != nullptr, MemoryError) << "cpu: cannot allocate " << bytes << " bytes";
    if (is_large) AdviseLargePages(data, bytes);
    freed_.Note(data, padded);
    return data;
  }
  void FreeDataSpace(Device device, void* data) override { freed_.Give(data); }
  void CopyBytes(const void* from, Device from_device, void* to, Device to_device, size_t bytes,
                 StreamHandle stream) override {
    if (bytes != 0) std::memcpy(to, from, bytes);
  }

  static CPUDeviceAPI* Global() {
    // Never destroyed: arrays may outlive static destructors.
    static CPUDeviceAPI* api = new CPUDeviceAPI();
    return api;
  }

 private:
  FreedBlocks freed_;
};

[[maybe_unused]] const bool registered = DeviceAPI::Register(kDLCPU, CPUDeviceAPI::Global());

TVM_REGISTER_GLOBAL("device_api.cpu").set_body_typed([]() {
  return static_cast<void*>(CPUDeviceAPI::Global());
});

}  // namespace
}  // namespace runtime
}  // namespace tvm
