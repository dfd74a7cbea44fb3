/*!
 * \file handlers_block.cc
 * \brief What the threads of an emulated block do together: barriers, shuffles, matrix fragments.
 */
#include <cstring>
#include <vector>

#include "runtime/stackvm/machine.h"
#include "runtime/stackvm/scalar_types.h"

namespace tvm {
namespace runtime {
namespace stackvm {
namespace {

const Instr* ThreadIndex(Machine& m, const Instr* i) {
  const int axis = static_cast<int>(i->imm);
  const int64_t* extent = m.thread_extent;
  DispatchLane(i->type, [&](auto lane) {
    using T = typename decltype(lane)::Register;
    T* out = m.Reg<T>(i->a);
    for (int t = 0; t < m.threads; ++t) {
      int64_t value = axis < 3    ? m.block[axis]
                      : axis == 3 ? t % extent[0]
                      : axis == 4 ? t / extent[0] % extent[1]
                                  : t / (extent[0] * extent[1]);
      out[t] = static_cast<T>(value);
    }
  });
  return i + 1;
}

/*! \brief Calls `f(warp, first, last)` for each warp with an active thread; all must be active. */
template <typename F>
void ForEachWholeWarp(Machine& m, const char* what, F f) {
  for (int first = 0; first < m.threads; first += m.warp_size) {
    const int last = std::min(first + m.warp_size, m.threads);
    int active = 0, missing = -1;
    for (int t = first; t < last; ++t) {
      if (t >= m.mask.begin && t < m.mask.end && m.IsActive(t)) {
        ++active;
      } else {
        missing = t;
      }
    }
    if (active == 0) continue;
    TVM_CHECK(missing == -1, ValueError)
        << "stackvm: " << m.Where(missing) << ": " << what << " is reached by " << active << " of "
        << last - first << " threads of the warp, but not by this one; move it out of the "
        << "condition that differs between threads";
    f(first / m.warp_size, first, last);
  }
}

const Instr* Barrier(Machine& m, const Instr* i) {
  if (static_cast<Scope>(i->imm) == Scope::kWarp) {
    ForEachWholeWarp(m, "the barrier of a warp",
                     [&](int warp, int, int) { m.shared.SyncWarp(warp); });
    m.global.Sync();
    return i + 1;
  }
  if (m.mask.count != m.threads) {
    int missing = 0;
    while (missing >= m.mask.begin && missing < m.mask.end && m.IsActive(missing)) ++missing;
    TVM_FATAL(ValueError) << "stackvm: " << m.Where(missing) << ": the barrier is reached by "
                          << m.mask.count << " of " << m.threads
                          << " threads, but not by this one; move it out of the condition that "
                             "differs between threads";
  }
  m.shared.SyncBlock();
  m.global.Sync();
  return i + 1;
}

template <typename Lane>
const Instr* Shuffle(Machine& m, const Instr* i) {
  using T = typename Lane::Register;
  T* out = m.Reg<T>(i->a);
  const T* x = m.Reg<T>(i->b);
  m.ForEachActive([&](int t) {
    const int64_t operand = m.At<int64_t>(i->c, t), width = m.At<int64_t>(i->d, t);
    TVM_CHECK(width > 0 && width <= m.warp_size && (width & (width - 1)) == 0, ValueError)
        << "stackvm: " << m.Where(t) << ": shuffle of width " << width
        << "; it must be a power of two up to the warp's size " << m.warp_size;
    const int lane = t % m.warp_size;
    const int warp_start = t - lane;
    const int64_t group = lane / width * width, place = lane % width;
    int64_t source = lane;
    switch (static_cast<ShuffleMode>(i->imm)) {
      case ShuffleMode::kIndex:
        source = group + (operand % width + width) % width;
        break;
      case ShuffleMode::kUp:
        if (place - operand >= 0) source = lane - operand;
        break;
      case ShuffleMode::kDown:
        if (place + operand < width) source = lane + operand;
        break;
    }
    const int from = warp_start + static_cast<int>(source);
    const int64_t mask = m.At<int64_t>(i->index, t);
    bool takes_part = from >= m.mask.begin && from < m.mask.end && m.IsActive(from);
    TVM_CHECK(takes_part && (mask >> source & 1) != 0 && (mask >> lane & 1) != 0, ValueError)
        << "stackvm: " << m.Where(t) << ": shuffle from lane " << source
        << " of the warp, which does not take part; every lane that is read must be active and in "
           "the mask";
    for (int k = 0; k < i->lanes; ++k) out[t * i->lanes + k] = x[from * i->lanes + k];
  });
  return i + 1;
}

const Instr* ActiveMask(Machine& m, const Instr* i) {
  uint32_t* out = m.Reg<uint32_t>(i->a);
  for (int first = 0; first < m.threads; first += m.warp_size) {
    const int last = std::min(first + m.warp_size, m.threads);
    uint32_t bits = 0;
    for (int t = std::max(first, m.mask.begin); t < std::min(last, m.mask.end); ++t) {
      bits |= static_cast<uint32_t>(m.IsActive(t)) << (t - first);
    }
    std::fill(out + first, out + last, bits);
  }
  return i + 1;
}

// Fragments are matrices by rows in memory of their warp, whatever their layout was in memory.

template <typename Lane>
const Instr* FragmentFill(Machine& m, const Instr* i) {
  using M = typename Lane::Memory;
  ForEachWholeWarp(m, "fill of a fragment", [&](int, int first, int) {
    uint8_t* fragment = m.At<uint8_t*>(i->a, first);
    const int64_t at = m.At<int64_t>(i->c, first) * i->imm;
    const M value = Lane::ToMemory(m.At<typename Lane::Register>(i->b, first));
    for (int64_t k = 0; k < i->imm; ++k) {
      std::memcpy(fragment + (at + k) * sizeof(M), &value, sizeof(M));
    }
  });
  return i + 1;
}

/*! \brief To ten bits of mantissa, halves away from zero, as cvt.rna.tf32.f32 does. */
void RoundToTf32(uint8_t* value) {
  constexpr uint32_t kExponent = 0x7f800000, kHalf = 0x1000, kDropped = 0x1fff;
  uint32_t bits;
  std::memcpy(&bits, value, sizeof(bits));
  if ((bits & kExponent) != kExponent) bits = (bits + kHalf) & ~kDropped;
  std::memcpy(value, &bits, sizeof(bits));
}

/*! \brief The list of a fragment's load or store: rows, columns, then the buffer's bounds. */
enum FragmentList { kRows, kColumns, kBase, kLimitSlot, kLimitBytes };

template <typename Lane, bool kStore>
const Instr* FragmentMove(Machine& m, const Instr* i) {
  using M = typename Lane::Memory;
  const std::vector<int64_t>& list = m.program.lists[i->list];
  const int64_t rows = list[kRows], columns = list[kColumns];
  const std::string& buffer = m.program.buffers[i->index].name;
  ForEachWholeWarp(
      m, kStore ? "store of a fragment" : "load of a fragment", [&](int, int first, int last) {
        uint8_t* fragment =
            m.At<uint8_t*>(i->a, first) + m.At<int64_t>(i->b, first) * rows * columns * sizeof(M);
        uint8_t* memory = m.At<uint8_t*>(i->c, first);
        const int64_t stride = m.At<int64_t>(i->d, first);
        for (int t = first; t < last; ++t) {
          TVM_CHECK(m.At<uint8_t*>(i->c, t) == memory && m.At<int64_t>(i->d, t) == stride,
                    ValueError)
              << "stackvm: " << m.Where(t)
              << ": threads of a warp give different addresses or strides "
              << "for a fragment of " << buffer;
        }
        const bool bounded = list[kBase] >= 0;
        const int64_t limit = !bounded ? 0
                              : list[kLimitSlot] < 0
                                  ? list[kLimitBytes]
                                  : m.At<int64_t>(static_cast<int>(list[kLimitSlot]), first);
        const uint8_t* base =
            bounded ? m.At<uint8_t*>(static_cast<int>(list[kBase]), first) : nullptr;
        const bool watched = (i->flags & kSharedMemory) != 0 && m.program.limits.check_races;
        const bool watched_by_all =
            (i->flags & kGlobalMemory) != 0 && bounded && m.program.limits.check_races;
        for (int64_t row = 0; row < rows; ++row) {
          for (int64_t column = 0; column < columns; ++column) {
            const int64_t offset =
                (i->flags & kColumnMajor) != 0 ? column * stride + row : row * stride + column;
            uint8_t* outer = memory + offset * static_cast<int64_t>(sizeof(M));
            uint8_t* inner = fragment + (row * columns + column) * sizeof(M);
            if (bounded) {
              const int64_t byte = outer - base;
              if (byte < 0 || byte + static_cast<int64_t>(sizeof(M)) > limit) {
                m.FailAccess(i, first, byte / static_cast<int64_t>(sizeof(M)), limit);
              }
            }
            // Which thread of the warp touches which element is not specified: take the first.
            const bool changes = kStore && std::memcmp(outer, inner, sizeof(M)) != 0;
            int other = -1;
            if (watched) {
              other = kStore ? m.shared.OnWrite(first, outer, sizeof(M), changes)
                             : m.shared.OnRead(first, outer, sizeof(M));
            } else if (watched_by_all) {
              other = kStore ? m.global.OnWrite(first, base, limit, sizeof(M), outer, sizeof(M),
                                                changes)
                             : m.global.OnRead(first, base, limit, sizeof(M), outer, sizeof(M));
            }
            TVM_CHECK(other != GlobalMemory::kOtherBlock, ValueError)
                << "stackvm: " << m.Where(first) << ": race on " << buffer << ": this warp "
                << (kStore ? "stores" : "loads") << " a fragment over what another block of "
                << "threads accessed; put the accesses into kernels of their own";
            TVM_CHECK(other == -1 || (other >= first && other < last), ValueError)
                << "stackvm: " << m.Where(first) << ": race on " << buffer << ": this warp "
                << (kStore ? "stores" : "loads") << " a fragment over what thread " << other
                << " accessed since the last barrier; put a barrier between the accesses";
            std::memcpy(kStore ? outer : inner, kStore ? inner : outer, sizeof(M));
            if ((i->flags & kRoundToTf32) != 0) RoundToTf32(inner);
          }
        }
      });
  return i + 1;
}

template <typename Acc, typename In>
const Instr* FragmentMma(Machine& m, const Instr* i) {
  using A = typename Acc::Register;
  const std::vector<int64_t>& list = m.program.lists[i->list];
  const int64_t rows = list[0], columns = list[1], depth = list[2];
  std::vector<A> a(rows * depth), b(depth * columns), sum(rows * columns);
  ForEachWholeWarp(m, "matrix multiplication", [&](int, int first, int) {
    auto fragment = [&](int which, int64_t size, size_t bytes) {
      return m.At<uint8_t*>(static_cast<int>(list[3 + 2 * which]), first) +
             m.At<int64_t>(static_cast<int>(list[4 + 2 * which]), first) * size * bytes;
    };
    auto read = [&](auto lane, int which, std::vector<A>* out) {
      using M = typename decltype(lane)::Memory;
      const uint8_t* from = fragment(which, static_cast<int64_t>(out->size()), sizeof(M));
      for (size_t k = 0; k < out->size(); ++k) {
        M value;
        std::memcpy(&value, from + k * sizeof(M), sizeof(M));
        (*out)[k] = static_cast<A>(decltype(lane)::FromMemory(value));
      }
    };
    read(In(), 1, &a);
    read(In(), 2, &b);
    read(Acc(), 3, &sum);
    using M = typename Acc::Memory;
    uint8_t* to = fragment(0, rows * columns, sizeof(M));
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        A total = sum[row * columns + column];
        for (int64_t k = 0; k < depth; ++k) total += a[row * depth + k] * b[k * columns + column];
        M value = Acc::ToMemory(total);
        std::memcpy(to + (row * columns + column) * sizeof(M), &value, sizeof(M));
      }
    }
  });
  return i + 1;
}

Handler MmaHandler(const Instr& instr) {
  return DispatchLane(instr.type, [&](auto acc) -> Handler {
    using Acc = decltype(acc);
    return DispatchLane(instr.type2, [](auto in) -> Handler {
      using In = decltype(in);
      constexpr bool kReal = std::is_floating_point_v<typename Acc::Register>;
      constexpr bool kRealIn = std::is_floating_point_v<typename In::Register>;
      if constexpr (kReal == kRealIn && (kReal || Acc::kScalar == ScalarType::kInt32)) {
        return &FragmentMma<Acc, In>;
      } else {
        return nullptr;
      }
    });
  });
}

}  // namespace

Handler BlockHandler(const Instr& instr) {
  switch (instr.op) {
    case Opcode::kThreadIndex:
      return &ThreadIndex;
    case Opcode::kBarrier:
      return &Barrier;
    case Opcode::kActiveMask:
      return &ActiveMask;
    case Opcode::kFragmentMma:
      return MmaHandler(instr);
    case Opcode::kShuffle:
    case Opcode::kFragmentFill:
    case Opcode::kFragmentLoad:
    case Opcode::kFragmentStore:
      return DispatchLane(instr.type, [&](auto lane) -> Handler {
        using Lane = decltype(lane);
        if (instr.op == Opcode::kShuffle) return &Shuffle<Lane>;
        if (instr.op == Opcode::kFragmentFill) return &FragmentFill<Lane>;
        return instr.op == Opcode::kFragmentLoad ? &FragmentMove<Lane, false>
                                                 : &FragmentMove<Lane, true>;
      });
    default:
      return nullptr;
  }
}

}  // namespace stackvm
}  // namespace runtime
}  // namespace tvm
