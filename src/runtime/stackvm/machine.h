/*!
 * \file machine.h
 * \brief State of a stackvm function while it runs: registers, active threads, memory.
 */
#ifndef TVM_RUNTIME_STACKVM_MACHINE_H_
#define TVM_RUNTIME_STACKVM_MACHINE_H_

#include <tvm/runtime/packed_func.h>

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/stackvm/bytecode.h"
#include "runtime/stackvm/global_memory.h"
#include "runtime/stackvm/shared_memory.h"

namespace tvm {
namespace runtime {
namespace stackvm {

/*!
 * \brief The active threads: those of [begin, end) whose byte is 1.
 *
 * Instructions without effects run on all of [begin, end): what they leave in the registers of
 * inactive threads is never read.
 */
struct Mask {
  uint8_t* bits = nullptr;
  int begin = 0;
  int end = 0;
  int count = 0;
  bool full() const { return count == end - begin; }
};

/*! \brief Memory given out and taken back in the order of a stack. */
class Arena {
 public:
  uint8_t* Push(size_t bytes);
  void Pop();

 private:
  struct Chunk {
    std::unique_ptr<uint8_t[]> memory;
    size_t bytes = 0;
  };
  struct Mark {
    size_t chunk, used;
  };
  std::vector<Chunk> chunks_;
  std::vector<Mark> marks_;
  size_t chunk_ = 0, used_ = 0;
};

/*!
 * \brief Stores of one thread that are under way: nobody knows when they happen until their group
 *        was waited for.
 */
class StoresUnderWay {
 public:
  static constexpr size_t kMostBytes = 16;
  struct Store {
    const Instr* instr;
    int64_t index;
    uint8_t* address;
    size_t bytes;
    std::array<uint8_t, kMostBytes> value;
  };

  void Begin(const Store& store) { open_.push_back(store); }
  void CloseGroup() { groups_.push_back(std::exchange(open_, {})); }
  /*! \brief Calls `f(store)` for those of the oldest groups until no more than `groups` are left.
   */
  template <typename F>
  void Wait(int64_t groups, F f) {
    while (static_cast<int64_t>(groups_.size()) > groups) {
      for (const Store& store : groups_.front()) f(store);
      groups_.pop_front();
    }
  }

 private:
  std::deque<std::vector<Store>> groups_;
  std::vector<Store> open_;
};

struct Machine {
  Machine(const Program& program, const Function& function, int threads);

  template <typename T>
  T* Reg(int slot) const {
    return reinterpret_cast<T*>(registers + static_cast<size_t>(slot) * slot_bytes);
  }
  /*! \brief Value of thread `t` in a register of one lane. */
  template <typename T>
  T& At(int slot, int t) const {
    return Reg<T>(slot)[t];
  }
  bool IsActive(int t) const { return mask.bits[t] != 0; }
  /*! \brief Calls `f(thread)` for all active threads. */
  template <typename F>
  void ForEachActive(F f) const {
    if (mask.full()) {
      for (int t = mask.begin; t < mask.end; ++t) f(t);
    } else {
      for (int t = mask.begin; t < mask.end; ++t) {
        if (mask.bits[t]) f(t);
      }
    }
  }

  /*! \brief Run from the first instruction to the return. */
  void Run() {
    const Instr* instr = function.code.data();
    while (instr != nullptr) instr = instr->handler(*this, instr);
  }

  /*! \brief Start a nested set of active threads; `bits` of the new mask are to be filled in. */
  void PushMask();
  void PopMask();

  /*! \brief "function f" or "kernel f, block (x, y, z), thread (x, y, z)". */
  std::string Where(int thread) const;
  [[noreturn]] void FailAccess(const Instr* instr, int thread, int64_t index, int64_t limit) const;

  const Program& program;
  const Function& function;
  /*! \brief Threads of the block. */
  int threads;
  size_t slot_bytes;
  uint8_t* registers;
  Mask mask;
  Arena arena;

  // Of a kernel.
  int64_t block[3] = {0, 0, 0};
  int64_t thread_extent[3] = {1, 1, 1};
  int warp_size = 32;
  int64_t dynamic_shared_bytes = -1;
  SharedMemory shared;
  GlobalMemory global;
  /*! \brief Of each thread; none before the first. */
  std::vector<StoresUnderWay> under_way;

  // Of a host function.
  /*! \brief The function that CallPacked names. */
  std::function<PackedFunc(const std::string&)> find_packed;
  std::vector<std::unique_ptr<uint8_t[]>> stack_memory;
  /*! \brief Bits of the returned value. */
  int64_t return_value = 0;
  /*! \brief Calls of functions of the program that are open. */
  int depth = 0;

 private:
  std::unique_ptr<uint8_t[]> register_memory_;
  std::vector<std::unique_ptr<uint8_t[]>> mask_bits_;
  std::vector<Mask> outer_masks_;
};

// Handlers by family; null when the instruction is of another one or its type does not fit.
Handler ArithmeticHandler(const Instr& instr);
Handler ConversionHandler(const Instr& instr);
Handler MathHandler(const Instr& instr);
Handler MemoryHandler(const Instr& instr);
Handler ControlHandler(const Instr& instr);
Handler CallHandler(const Instr& instr);
Handler BlockHandler(const Instr& instr);

}  // namespace stackvm
}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_STACKVM_MACHINE_H_
