#include "runtime/stackvm/shared_memory.h"

#include <tvm/runtime/logging.h>

namespace tvm {
namespace runtime {
namespace stackvm {

void SharedMemory::Reset(int threads, int warp_size) {
  regions_.clear();
  bytes_ = 0;
  warp_size_ = warp_size;
  block_epoch_ = 1;
  warp_epochs_.assign((threads + warp_size - 1) / warp_size, 1);
}

void SharedMemory::Add(const uint8_t* memory, size_t bytes, size_t cell_bytes, bool of_block) {
  regions_.push_back({memory, bytes, cell_bytes, of_block, {}});
  if (of_block) bytes_ += bytes;
}

void SharedMemory::RemoveLast() {
  ICHECK(!regions_.empty()) << "stackvm: free without an allocation";
  if (regions_.back().of_block) bytes_ -= regions_.back().bytes;
  regions_.pop_back();
}

SharedMemory::Region* SharedMemory::Find(const uint8_t* address) {
  for (Region& region : regions_) {
    if (address >= region.memory && address < region.memory + region.bytes) {
      if (region.cells.empty()) {
        region.cells.resize((region.bytes + region.cell_bytes - 1) / region.cell_bytes);
      }
      return &region;
    }
  }
  return nullptr;
}

bool SharedMemory::Conflicts(const Access& access, int thread) const {
  if (access.who == -1 || access.who == thread || access.block_epoch != block_epoch_) return false;
  if (access.who == kMany) return true;
  int warp = thread / warp_size_;
  // A barrier of the warp orders its own threads only.
  return WarpOf(access.who) != warp || access.warp_epoch == warp_epochs_[warp];
}

void SharedMemory::Record(Access* access, int thread) {
  const int warp = thread / warp_size_;
  bool joins = access->who != -1 && access->who != thread && access->block_epoch == block_epoch_;
  if (!joins) {
    access->who = thread;
  } else if (access->who == kMany || WarpOf(access->who) != warp) {
    access->who = kMany;
  } else {
    // Accesses before the warp's last barrier no longer matter to it, but do to other warps.
    access->who = -2 - warp;
  }
  access->block_epoch = block_epoch_;
  access->warp_epoch = warp_epochs_[warp];
}

int SharedMemory::OnRead(int thread, const uint8_t* address, size_t bytes) {
  Region* region = Find(address);
  if (region == nullptr) return -1;
  size_t first = (address - region->memory) / region->cell_bytes;
  size_t last = (address - region->memory + bytes - 1) / region->cell_bytes;
  for (size_t i = first; i <= last; ++i) {
    Cell& cell = region->cells[i];
    // Several threads that wrote one value may each read it back; who they were is not kept.
    bool conflict = cell.write.who >= 0 && Conflicts(cell.write, thread);
    Record(&cell.read, thread);
    if (conflict) return Report(cell.write.who);
  }
  return -1;
}

int SharedMemory::OnWrite(int thread, const uint8_t* address, size_t bytes, bool changes) {
  Region* region = Find(address);
  if (region == nullptr) return -1;
  size_t first = (address - region->memory) / region->cell_bytes;
  size_t last = (address - region->memory + bytes - 1) / region->cell_bytes;
  for (size_t i = first; i <= last; ++i) {
    Cell& cell = region->cells[i];
    int other = -1;
    if (changes && Conflicts(cell.write, thread)) other = Report(cell.write.who);
    if (changes && Conflicts(cell.read, thread)) other = Report(cell.read.who);
    Record(&cell.write, thread);
    if (other != -1) return other;
  }
  return -1;
}

}  // namespace stackvm
}  // namespace runtime
}  // namespace tvm
