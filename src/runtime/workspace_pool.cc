#include "workspace_pool.h"

#include <algorithm>

namespace tvm {
namespace runtime {

namespace {
// Sizes are rounded up so that slightly different requests share a block.
constexpr size_t kPageBytes = 4096;
}  // namespace

WorkspacePool::~WorkspacePool() {
  for (const Block& block : free_) api_->FreeDataSpace(device_, block.data);
  for (const Block& block : used_) api_->FreeDataSpace(device_, block.data);
}

void* WorkspacePool::Alloc(size_t bytes) {
  bytes = std::max<size_t>((bytes + kPageBytes - 1) / kPageBytes * kPageBytes, kPageBytes);
  auto fit = std::lower_bound(free_.begin(), free_.end(), bytes,
                              [](const Block& block, size_t n) { return block.bytes < n; });
  Block block{};
  if (fit != free_.end()) {
    block = *fit;
    free_.erase(fit);
  } else {
    // Every waiting block is too small: replacing the largest keeps the pool from growing without
    // bound when requests grow.
    if (!free_.empty()) {
      api_->FreeDataSpace(device_, free_.back().data);
      free_.pop_back();
    }
    block = {api_->AllocDataSpace(device_, bytes, kAllocAlignment), bytes};
  }
  used_.push_back(block);
  return block.data;
}

void WorkspacePool::Free(void* data) {
  // The block taken last is usually given back first.
  auto it = std::find_if(used_.rbegin(), used_.rend(),
                         [data](const Block& block) { return block.data == data; });
  TVM_CHECK(it != used_.rend(), InternalError)
      << "workspace: the memory given back was not taken by this thread";
  Block block = *it;
  used_.erase(std::next(it).base());
  auto at = std::lower_bound(free_.begin(), free_.end(), block.bytes,
                             [](const Block& other, size_t n) { return other.bytes < n; });
  free_.insert(at, block);
}

}  // namespace runtime
}  // namespace tvm
