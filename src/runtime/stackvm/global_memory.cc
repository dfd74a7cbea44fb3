#include "runtime/stackvm/global_memory.h"

namespace tvm {
namespace runtime {
namespace stackvm {

GlobalMemory::Cell* GlobalMemory::Cells(const uint8_t* base, size_t bytes, size_t cell_bytes,
                                        const uint8_t* address) {
  const size_t count = bytes / cell_bytes;
  Region* found = nullptr;
  for (Region& region : regions_) {
    if (region.base == base && region.cell_bytes == cell_bytes) found = &region;
  }
  if (found == nullptr) {
    regions_.push_back({base, cell_bytes, {}});
    found = &regions_.back();
  }
  // Buffers that share a pointer may have different sizes.
  if (found->cells.size() < count) found->cells.resize(count);
  return found->cells.data() + (address - base) / cell_bytes;
}

void GlobalMemory::Record(Access* access, int thread) const {
  const bool joins = access->epoch == epoch_ && access->who != kNone && access->who != thread;
  *access = {joins ? kSeveral : thread, epoch_};
}

int GlobalMemory::OnRead(int thread, const uint8_t* base, size_t bytes, size_t cell_bytes,
                         const uint8_t* address, size_t length) {
  Cell* cells = Cells(base, bytes, cell_bytes, address);
  int other = kNone;
  for (size_t i = 0; i < length / cell_bytes; ++i) {
    Cell& cell = cells[i];
    if (IsOfOtherBlock(cell.write)) {
      other = kOtherBlock;
    } else if (int writer = Unordered(cell.write, thread); writer >= 0) {
      // Several threads that wrote one value may each read it back; who they were is not kept.
      other = writer;
    }
    cell.read_before |= IsOfOtherBlock(cell.read);
    Record(&cell.read, thread);
  }
  return other;
}

int GlobalMemory::OnWrite(int thread, const uint8_t* base, size_t bytes, size_t cell_bytes,
                          const uint8_t* address, size_t length, bool changes) {
  Cell* cells = Cells(base, bytes, cell_bytes, address);
  int other = kNone;
  for (size_t i = 0; i < length / cell_bytes; ++i) {
    Cell& cell = cells[i];
    if (changes) {
      if (IsOfOtherBlock(cell.write) || IsOfOtherBlock(cell.read) || cell.read_before) {
        other = kOtherBlock;
      } else if (int reader = Unordered(cell.read, thread); reader != kNone) {
        other = reader;
      } else if (int writer = Unordered(cell.write, thread); writer != kNone) {
        other = writer;
      }
    }
    Record(&cell.write, thread);
  }
  return other;
}

}  // namespace stackvm
}  // namespace runtime
}  // namespace tvm
