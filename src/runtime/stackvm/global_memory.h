/*!
 * \file global_memory.h
 * \brief The search for races on memory that all blocks of a launch see.
 */
#ifndef TVM_RUNTIME_STACKVM_GLOBAL_MEMORY_H_
#define TVM_RUNTIME_STACKVM_GLOBAL_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tvm {
namespace runtime {
namespace stackvm {

/*!
 * \brief Who last touched each cell of global memory in a launch, and when.
 *
 * Blocks of a launch run one after the other here, on a GPU at once and in any order: an element
 * that one writes is no business of another one's. Threads of one block wait for each other at
 * barriers. A write that leaves the value as it was is no race, as blocks may all compute what
 * several of them need. A barrier of a warp counts as one of the block, which may hide a race.
 */
class GlobalMemory {
 public:
  /*! \brief Results of OnRead and OnWrite that are no threads. */
  static constexpr int kNone = -1, kSeveral = -2, kOtherBlock = -3;

  /*! \brief Blocks that begin now see nothing of those before. */
  void BeginBlock() { block_begin_ = ++epoch_; }
  void Sync() { ++epoch_; }

  /*!
   * \brief The other thread of a race, or one of the numbers above.
   * \param base, bytes The memory that the access is bounded by.
   * \param address, length What it touches, elements of `cell_bytes`.
   */
  int OnRead(int thread, const uint8_t* base, size_t bytes, size_t cell_bytes,
             const uint8_t* address, size_t length);
  /*! \brief The same of a store, which `changes` the value or leaves it. */
  int OnWrite(int thread, const uint8_t* base, size_t bytes, size_t cell_bytes,
              const uint8_t* address, size_t length, bool changes);

 private:
  struct Access {
    /*! \brief Thread, kNone or kSeveral. */
    int32_t who = kNone;
    uint32_t epoch = 0;
  };
  struct Cell {
    Access write, read;
    /*! \brief Whether an earlier block than that of `read` has read it too. */
    bool read_before = false;
  };
  struct Region {
    const uint8_t* base;
    size_t cell_bytes;
    std::vector<Cell> cells;
  };

  /*! \brief The cells of an access. */
  Cell* Cells(const uint8_t* base, size_t bytes, size_t cell_bytes, const uint8_t* address);
  bool IsOfOtherBlock(const Access& access) const {
    return access.who != kNone && access.epoch < block_begin_;
  }
  /*! \brief Who of this block made an access that no barrier follows; kNone if it was `thread`. */
  int Unordered(const Access& access, int thread) const {
    return access.epoch == epoch_ && access.who != thread ? access.who : kNone;
  }
  void Record(Access* access, int thread) const;

  std::vector<Region> regions_;
  uint32_t epoch_ = 0, block_begin_ = 0;
};

}  // namespace stackvm
}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_STACKVM_GLOBAL_MEMORY_H_
