#include "runtime/stackvm/machine.h"

#include <algorithm>
#include <cstring>

#include "runtime/stackvm/scalar_types.h"

namespace tvm {
namespace runtime {
namespace stackvm {

uint8_t* Arena::Push(size_t bytes) {
  constexpr size_t kAlignment = 64;
  bytes = std::max<size_t>((bytes + kAlignment - 1) / kAlignment * kAlignment, kAlignment);
  marks_.push_back({chunk_, used_});
  while (chunk_ < chunks_.size() && used_ + bytes > chunks_[chunk_].bytes) {
    ++chunk_;
    used_ = 0;
  }
  if (chunk_ == chunks_.size()) {
    size_t size = std::max<size_t>(bytes, size_t{1} << 16);
    chunks_.push_back({std::unique_ptr<uint8_t[]>(new uint8_t[size + kAlignment]), size});
    used_ = 0;
  }
  auto start = reinterpret_cast<uintptr_t>(chunks_[chunk_].memory.get());
  start = (start + kAlignment - 1) / kAlignment * kAlignment;
  uint8_t* memory = reinterpret_cast<uint8_t*>(start) + used_;
  used_ += bytes;
  return memory;
}

void Arena::Pop() {
  ICHECK(!marks_.empty()) << "stackvm: free without an allocation";
  chunk_ = marks_.back().chunk;
  used_ = marks_.back().used;
  marks_.pop_back();
}

Machine::Machine(const Program& program, const Function& function, int threads)
    : program(program), function(function), threads(threads), slot_bytes(8 * size_t(threads)) {
  register_memory_.reset(new uint8_t[slot_bytes * static_cast<size_t>(function.num_slots) + 64]);
  auto start = reinterpret_cast<uintptr_t>(register_memory_.get());
  registers = reinterpret_cast<uint8_t*>((start + 63) / 64 * 64);
  mask_bits_.emplace_back(new uint8_t[threads]);
  std::memset(mask_bits_[0].get(), 1, threads);
  mask = {mask_bits_[0].get(), 0, threads, threads};
  for (const Constant& constant : function.constants) {
    DispatchLane(constant.type, [&](auto lane) {
      using T = typename decltype(lane)::Register;
      T value = static_cast<T>(constant.bits);
      if constexpr (std::is_floating_point_v<T>) {
        double real;
        std::memcpy(&real, &constant.bits, sizeof(real));
        value = decltype(lane)::Round(static_cast<T>(real));
      }
      std::fill_n(Reg<T>(constant.slot), threads, value);
    });
  }
}

void Machine::PushMask() {
  outer_masks_.push_back(mask);
  if (mask_bits_.size() <= outer_masks_.size()) mask_bits_.emplace_back(new uint8_t[threads]);
  mask.bits = mask_bits_[outer_masks_.size()].get();
}

void Machine::PopMask() {
  ICHECK(!outer_masks_.empty()) << "stackvm: branches of " << function.name << " do not nest";
  mask = outer_masks_.back();
  outer_masks_.pop_back();
}

std::string Machine::Where(int thread) const {
  if (function.kind != CallKind::kKernel) return "function " + function.name;
  const int64_t* extents = thread_extent;
  auto point = [](int64_t x, int64_t y, int64_t z) {
    return "(" + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) + ")";
  };
  return "kernel " + function.name + ", block " + point(block[0], block[1], block[2]) +
         ", thread " +
         point(thread % extents[0], thread / extents[0] % extents[1],
               thread / (extents[0] * extents[1]));
}

void Machine::FailAccess(const Instr* instr, int thread, int64_t index, int64_t limit) const {
  const BufferInfo& buffer = program.buffers[instr->index];
  const bool stores = instr->op == Opcode::kStore || instr->op == Opcode::kStoreLater ||
                      instr->op == Opcode::kScatter;
  int64_t elements = limit / std::max(1, MemoryBytes(instr->type));
  TVM_FATAL(IndexError) << "stackvm: " << Where(thread) << ": "
                        << (stores ? "store to " : "load of ") << buffer.name << "[" << index << "]"
                        << (instr->lanes > 1 && instr->op != Opcode::kGather &&
                                    instr->op != Opcode::kScatter
                                ? " and the " + std::to_string(instr->lanes - 1) +
                                      " elements after it"
                                : std::string())
                        << ", but " << buffer.name << " has " << elements << " elements of "
                        << ScalarTypeName(instr->type) << "; the index is outside of the buffer";
}

}  // namespace stackvm
}  // namespace runtime
}  // namespace tvm
