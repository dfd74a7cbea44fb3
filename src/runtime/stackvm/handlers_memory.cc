/*!
 * \file handlers_memory.cc
 * \brief Memory of the stackvm: every access is checked against the size of its buffer.
 */
#include <algorithm>
#include <cstring>

#include "runtime/stackvm/machine.h"
#include "runtime/stackvm/scalar_types.h"

namespace tvm {
namespace runtime {
namespace stackvm {
namespace {

[[noreturn]] void FailRace(const Machine& m, const Instr* i, int thread, int64_t index, int other,
                           bool store) {
  TVM_FATAL(ValueError) << "stackvm: " << m.Where(thread) << ": race on "
                        << m.program.buffers[i->index].name << "[" << index
                        << "]: " << (store ? "this thread stores" : "this thread loads") << " what "
                        << (other >= 0 ? "thread " + std::to_string(other) : "other threads")
                        << (store ? " loaded or stored" : " stored")
                        << " since the last barrier; put a barrier between the accesses";
}

[[noreturn]] void FailGlobalRace(const Machine& m, const Instr* i, int thread, int64_t index,
                                 int other, bool store) {
  if (other != GlobalMemory::kOtherBlock) FailRace(m, i, thread, index, other, store);
  TVM_FATAL(ValueError) << "stackvm: " << m.Where(thread) << ": race on "
                        << m.program.buffers[i->index].name << "[" << index << "]: this thread "
                        << (store ? "stores" : "loads") << " what another block of threads "
                        << (store ? "loaded or stored" : "stored")
                        << "; blocks of a launch run in any order, so put the accesses into "
                           "kernels of their own";
}

/*! \brief Bytes that an access is bounded by. */
inline int64_t LimitOf(const Machine& m, const Instr* i, int thread) {
  return i->d < 0 ? i->imm : m.At<int64_t>(i->d, thread);
}

/*! \brief Address of an element, after all checks; `bytes` is what the access touches. */
inline uint8_t* Check(const Machine& m, const Instr* i, int thread, int64_t index,
                      int element_bytes, int bytes) {
  const int64_t limit = LimitOf(m, i, thread);
  uint8_t* base = m.At<uint8_t*>(i->b, thread);
  // As a number without sign, a negative offset is larger than every limit.
  const uint64_t offset = static_cast<uint64_t>(index) * static_cast<uint64_t>(element_bytes);
  if (limit < bytes || offset > static_cast<uint64_t>(limit - bytes)) [[unlikely]] {
    m.FailAccess(i, thread, index, limit);
  }
  if (base == nullptr) [[unlikely]] {
    TVM_FATAL(ValueError) << "stackvm: " << m.Where(thread) << ": access to "
                          << m.program.buffers[i->index].name << "[" << index
                          << "] through a null pointer";
  }
  return base + offset;
}

void CheckAlignment(const Machine& m, const Instr* i, int thread, int64_t index,
                    const uint8_t* address, int bytes) {
  if ((i->flags & kAligned) == 0 || reinterpret_cast<uintptr_t>(address) % bytes == 0) return;
  TVM_FATAL(ValueError) << "stackvm: " << m.Where(thread) << ": access of " << i->lanes
                        << " elements of " << m.program.buffers[i->index].name << " at index "
                        << index << " is not aligned to its " << bytes
                        << " bytes, which a GPU requires; let the memory of the buffer begin at "
                           "a multiple of them";
}

template <typename Lane>
void ReadLanes(Machine& m, const Instr* i, int t, int64_t index, const uint8_t* address,
               typename Lane::Register* out, int lanes) {
  using M = typename Lane::Memory;
  if ((i->flags & (kSharedMemory | kWarpMemory)) != 0 && m.program.limits.check_races) {
    int other = m.shared.OnRead(t, address, sizeof(M) * lanes);
    if (other != -1) FailRace(m, i, t, index, other, false);
  }
  if ((i->flags & kGlobalMemory) != 0 && m.program.limits.check_races) {
    int other = m.global.OnRead(t, m.At<uint8_t*>(i->b, t), LimitOf(m, i, t), sizeof(M), address,
                                sizeof(M) * lanes);
    if (other != GlobalMemory::kNone) FailGlobalRace(m, i, t, index, other, false);
  }
  for (int lane = 0; lane < lanes; ++lane) {
    M value;
    std::memcpy(&value, address + lane * sizeof(M), sizeof(M));
    out[lane] = Lane::FromMemory(value);
  }
}

template <typename Lane>
void WriteLanes(Machine& m, const Instr* i, int t, int64_t index, uint8_t* address,
                const typename Lane::Register* values, int lanes) {
  using M = typename Lane::Memory;
  const bool watched = (i->flags & (kSharedMemory | kWarpMemory | kGlobalMemory)) != 0 &&
                       m.program.limits.check_races;
  bool changes = false;
  for (int lane = 0; lane < lanes; ++lane) {
    M value = Lane::ToMemory(values[lane]);
    if (watched && !changes) {
      changes = std::memcmp(address + lane * sizeof(M), &value, sizeof(M)) != 0;
    }
    std::memcpy(address + lane * sizeof(M), &value, sizeof(M));
  }
  if (watched && (i->flags & kGlobalMemory) != 0) {
    int other = m.global.OnWrite(t, m.At<uint8_t*>(i->b, t), LimitOf(m, i, t), sizeof(M), address,
                                 sizeof(M) * lanes, changes);
    if (other != GlobalMemory::kNone) FailGlobalRace(m, i, t, index, other, true);
  } else if (watched) {
    int other = m.shared.OnWrite(t, address, sizeof(M) * lanes, changes);
    if (other != -1) FailRace(m, i, t, index, other, true);
  }
}

template <typename Lane, typename Index>
const Instr* Load(Machine& m, const Instr* i) {
  using M = typename Lane::Memory;
  auto* out = m.Reg<typename Lane::Register>(i->a);
  const Index* index = m.Reg<Index>(i->c);
  const int lanes = i->lanes, bytes = static_cast<int>(sizeof(M)) * lanes;
  if (lanes == 1 && i->flags == 0) {
    m.ForEachActive([&](int t) {
      M value;
      std::memcpy(&value, Check(m, i, t, index[t], sizeof(M), sizeof(M)), sizeof(M));
      out[t] = Lane::FromMemory(value);
    });
    return i + 1;
  }
  m.ForEachActive([&](int t) {
    const uint8_t* address = Check(m, i, t, index[t], sizeof(M), bytes);
    CheckAlignment(m, i, t, index[t], address, bytes);
    ReadLanes<Lane>(m, i, t, index[t], address, out + t * lanes, lanes);
  });
  return i + 1;
}

template <typename Lane, typename Index>
const Instr* Store(Machine& m, const Instr* i) {
  using M = typename Lane::Memory;
  const auto* values = m.Reg<typename Lane::Register>(i->a);
  const Index* index = m.Reg<Index>(i->c);
  const int lanes = i->lanes, bytes = static_cast<int>(sizeof(M)) * lanes;
  if (lanes == 1 && i->flags == 0) {
    m.ForEachActive([&](int t) {
      M value = Lane::ToMemory(values[t]);
      std::memcpy(Check(m, i, t, index[t], sizeof(M), sizeof(M)), &value, sizeof(M));
    });
    return i + 1;
  }
  m.ForEachActive([&](int t) {
    uint8_t* address = Check(m, i, t, index[t], sizeof(M), bytes);
    CheckAlignment(m, i, t, index[t], address, bytes);
    WriteLanes<Lane>(m, i, t, index[t], address, values + t * lanes, lanes);
  });
  return i + 1;
}

/*!
 * \brief Takes the values now and stores them when their thread waits; until then memory has what
 *        was never written, since it may hold the old values or the new ones.
 */
template <typename Lane, typename Index>
const Instr* StoreLater(Machine& m, const Instr* i) {
  using M = typename Lane::Memory;
  const auto* values = m.Reg<typename Lane::Register>(i->a);
  const Index* index = m.Reg<Index>(i->c);
  const int lanes = i->lanes, bytes = static_cast<int>(sizeof(M)) * lanes;
  TVM_CHECK(static_cast<size_t>(bytes) <= StoresUnderWay::kMostBytes, ValueError)
      << "stackvm: kernel " << m.function.name << ": an asynchronous store of " << bytes
      << " bytes; " << StoresUnderWay::kMostBytes << " are possible";
  const bool watched = (i->flags & kSharedMemory) != 0 && m.program.limits.check_races;
  m.under_way.resize(m.threads);
  m.ForEachActive([&](int t) {
    StoresUnderWay::Store store{
        i, index[t], Check(m, i, t, index[t], sizeof(M), bytes), static_cast<size_t>(bytes), {}};
    CheckAlignment(m, i, t, index[t], store.address, bytes);
    for (int lane = 0; lane < lanes; ++lane) {
      const M value = Lane::ToMemory(values[t * lanes + lane]);
      std::memcpy(store.value.data() + lane * sizeof(M), &value, sizeof(M));
    }
    if (watched) {
      const int other = m.shared.OnWrite(t, store.address, store.bytes, /*changes=*/true);
      if (other != -1) FailRace(m, i, t, store.index, other, true);
    }
    std::memset(store.address, 0xFF, store.bytes);
    m.under_way[t].Begin(store);
  });
  return i + 1;
}

const Instr* CloseGroup(Machine& m, const Instr* i) {
  m.under_way.resize(m.threads);
  m.ForEachActive([&](int t) { m.under_way[t].CloseGroup(); });
  return i + 1;
}

const Instr* WaitForGroups(Machine& m, const Instr* i) {
  if (m.under_way.empty()) return i + 1;
  m.ForEachActive([&](int t) {
    m.under_way[t].Wait(m.At<int64_t>(i->a, t), [&](const StoresUnderWay::Store& store) {
      if ((store.instr->flags & kSharedMemory) != 0 && m.program.limits.check_races) {
        const int other = m.shared.OnWrite(t, store.address, store.bytes, /*changes=*/true);
        if (other != -1) FailRace(m, store.instr, t, store.index, other, true);
      }
      std::memcpy(store.address, store.value.data(), store.bytes);
    });
  });
  return i + 1;
}

template <typename Lane, typename Index>
const Instr* Gather(Machine& m, const Instr* i) {
  using M = typename Lane::Memory;
  auto* out = m.Reg<typename Lane::Register>(i->a);
  const Index* index = m.Reg<Index>(i->c);
  m.ForEachActive([&](int t) {
    for (int k = t * i->lanes; k < (t + 1) * i->lanes; ++k) {
      const uint8_t* address = Check(m, i, t, index[k], sizeof(M), sizeof(M));
      ReadLanes<Lane>(m, i, t, index[k], address, out + k, 1);
    }
  });
  return i + 1;
}

template <typename Lane, typename Index>
const Instr* Scatter(Machine& m, const Instr* i) {
  using M = typename Lane::Memory;
  const auto* values = m.Reg<typename Lane::Register>(i->a);
  const Index* index = m.Reg<Index>(i->c);
  m.ForEachActive([&](int t) {
    for (int k = t * i->lanes; k < (t + 1) * i->lanes; ++k) {
      uint8_t* address = Check(m, i, t, index[k], sizeof(M), sizeof(M));
      WriteLanes<Lane>(m, i, t, index[k], address, values + k, 1);
    }
  });
  return i + 1;
}

template <typename Index>
const Instr* Address(Machine& m, const Instr* i) {
  uint64_t* __restrict out = m.Reg<uint64_t>(i->a);
  const uint64_t* base = m.Reg<uint64_t>(i->b);
  const Index* index = m.Reg<Index>(i->c);
  for (int t = m.mask.begin; t < m.mask.end; ++t) {
    out[t] = base[t] + static_cast<uint64_t>(index[t]) * static_cast<uint64_t>(i->imm);
  }
  return i + 1;
}

/*! \brief One thread after the other, so that the sum does not depend on the machine. */
template <typename Lane>
const Instr* AtomicAdd(Machine& m, const Instr* i) {
  using M = typename Lane::Memory;
  using T = typename Lane::Register;
  T* out = m.Reg<T>(i->a);
  m.ForEachActive([&](int t) {
    uint8_t* address = m.At<uint8_t*>(i->b, t);
    TVM_CHECK(address != nullptr, ValueError)
        << "stackvm: " << m.Where(t) << ": atomic_add through a null pointer";
    M old;
    std::memcpy(&old, address, sizeof(M));
    out[t] = Lane::FromMemory(old);
    T sum;
    if constexpr (std::is_integral_v<T>) {
      sum = static_cast<T>(static_cast<uint64_t>(out[t]) + static_cast<uint64_t>(m.At<T>(i->c, t)));
    } else {
      sum = Lane::Round(out[t] + m.At<T>(i->c, t));
    }
    M value = Lane::ToMemory(sum);
    std::memcpy(address, &value, sizeof(M));
  });
  return i + 1;
}

const Instr* Allocate(Machine& m, const Instr* i) {
  // The region of reads that are never made may have an end before its start.
  const int64_t size = std::max<int64_t>(m.At<int64_t>(i->b, m.mask.begin), 0);
  const Scope scope = static_cast<Scope>(i->imm);
  const std::string& name = m.program.buffers[i->index].name;
  constexpr int64_t kMaxBytes = int64_t{1} << 40;
  TVM_CHECK(size < kMaxBytes, ValueError) << "stackvm: " << m.Where(m.mask.begin) << ": buffer "
                                          << name << " asks for " << size << " bytes";
  // Vector accesses of a thread are aligned relative to the start of its own part.
  const size_t part = (static_cast<size_t>(size) + 63) / 64 * 64;
  const int warps = (m.threads + m.warp_size - 1) / m.warp_size;
  const size_t parts = scope == Scope::kThread ? m.threads : scope == Scope::kWarp ? warps : 1;
  uint8_t* memory = m.arena.Push(part * parts);
  if (m.function.kind == CallKind::kKernel) {
    // NaN as a real and -1 as an integer: reading what was never written shows in the result.
    std::memset(memory, 0xFF, part * parts);
  }
  for (int t = 0; t < m.threads; ++t) {
    const size_t own = scope == Scope::kThread ? t : scope == Scope::kWarp ? t / m.warp_size : 0;
    m.At<uint8_t*>(i->a, t) = memory + own * part;
  }
  if (scope == Scope::kThread) return i + 1;
  m.shared.Add(memory, part * parts, static_cast<size_t>(MemoryBytes(i->type)),
               /*of_block=*/scope != Scope::kWarp);
  const int64_t limit = m.program.limits.max_shared_memory_per_block;
  const int64_t used = static_cast<int64_t>(m.shared.bytes());
  if (scope == Scope::kDynamicBlock) {
    TVM_CHECK(m.dynamic_shared_bytes < 0 || size <= m.dynamic_shared_bytes, ValueError)
        << "stackvm: kernel " << m.function.name << ": buffer " << name << " takes " << size
        << " bytes of dynamic shared memory, but the launch provides " << m.dynamic_shared_bytes;
  } else {
    TVM_CHECK(limit == 0 || used <= limit, ValueError)
        << "stackvm: kernel " << m.function.name << ": buffer " << name << " brings the shared "
        << "memory of a block to " << used << " bytes; the target has " << limit
        << " (option max_shared_memory_per_block)";
  }
  return i + 1;
}

const Instr* Free(Machine& m, const Instr* i) {
  if (static_cast<Scope>(i->imm) != Scope::kThread) m.shared.RemoveLast();
  m.arena.Pop();
  return i + 1;
}

template <typename Index>
Handler IndexedHandler(const Instr& instr) {
  if (instr.op == Opcode::kAddress) return &Address<Index>;
  return DispatchLane(instr.type, [&](auto lane) -> Handler {
    using Lane = decltype(lane);
    switch (instr.op) {
      case Opcode::kLoad:
        return &Load<Lane, Index>;
      case Opcode::kStore:
        return &Store<Lane, Index>;
      case Opcode::kStoreLater:
        return &StoreLater<Lane, Index>;
      case Opcode::kGather:
        return &Gather<Lane, Index>;
      case Opcode::kScatter:
        return &Scatter<Lane, Index>;
      default:
        return nullptr;
    }
  });
}

}  // namespace

Handler MemoryHandler(const Instr& instr) {
  switch (instr.op) {
    case Opcode::kAllocate:
      return &Allocate;
    case Opcode::kFree:
      return &Free;
    case Opcode::kCloseGroup:
      return &CloseGroup;
    case Opcode::kWaitForGroups:
      return &WaitForGroups;
    case Opcode::kAtomicAdd:
      return DispatchLane(instr.type,
                          [](auto lane) -> Handler { return &AtomicAdd<decltype(lane)>; });
    case Opcode::kLoad:
    case Opcode::kStore:
    case Opcode::kStoreLater:
    case Opcode::kGather:
    case Opcode::kScatter:
    case Opcode::kAddress:
      if (instr.type2 == ScalarType::kInt32) return IndexedHandler<int32_t>(instr);
      if (instr.type2 == ScalarType::kInt64) return IndexedHandler<int64_t>(instr);
      return nullptr;
    default:
      return nullptr;
  }
}

}  // namespace stackvm
}  // namespace runtime
}  // namespace tvm
