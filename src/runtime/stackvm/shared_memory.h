/*!
 * \file shared_memory.h
 * \brief Memory of an emulated block, and the search for races on it.
 */
#ifndef TVM_RUNTIME_STACKVM_SHARED_MEMORY_H_
#define TVM_RUNTIME_STACKVM_SHARED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tvm {
namespace runtime {
namespace stackvm {

/*!
 * \brief Who last touched each cell of the block's shared memory, and when.
 *
 * Threads of a block run in step here, so a missing barrier would not show in the results. Two
 * accesses of different threads to one cell without a barrier between them are a race, unless both
 * read, or the write leaves the value as it was (threads that store the same value).
 */
class SharedMemory {
 public:
  void Reset(int threads, int warp_size);
  /*! \param of_block Whether it takes the shared memory of the block, as registers of warps do not.
   */
  void Add(const uint8_t* memory, size_t bytes, size_t cell_bytes, bool of_block);
  void RemoveLast();
  /*! \brief Bytes of shared memory of the block. */
  size_t bytes() const { return bytes_; }

  /*! \brief A barrier of all threads. */
  void SyncBlock() { ++block_epoch_; }
  /*! \brief A barrier of the threads of one warp. */
  void SyncWarp(int warp) { ++warp_epochs_[warp]; }

  /*! \brief The other thread of a race, -2 for several, -1 when there is none. */
  int OnRead(int thread, const uint8_t* address, size_t bytes);
  int OnWrite(int thread, const uint8_t* address, size_t bytes, bool changes);

 private:
  struct Access {
    /*! \brief Thread; -1 for none; several threads of warp w are -2 - w. */
    int32_t who = -1;
    uint32_t block_epoch = 0;
    uint32_t warp_epoch = 0;
  };
  struct Cell {
    Access read, write;
  };
  struct Region {
    const uint8_t* memory;
    size_t bytes, cell_bytes;
    bool of_block;
    std::vector<Cell> cells;
  };
  /*! \brief Accesses by threads of different warps. */
  static constexpr int32_t kMany = INT32_MIN;

  Region* Find(const uint8_t* address);
  bool Conflicts(const Access& access, int thread) const;
  void Record(Access* access, int thread);
  int WarpOf(int who) const { return who >= 0 ? who / warp_size_ : -2 - who; }
  static int Report(int who) { return who >= 0 ? who : -2; }

  std::vector<Region> regions_;
  std::vector<uint32_t> warp_epochs_;
  size_t bytes_ = 0;
  int warp_size_ = 32;
  uint32_t block_epoch_ = 1;
};

}  // namespace stackvm
}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_STACKVM_SHARED_MEMORY_H_
