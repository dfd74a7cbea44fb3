/*!
 * \file handlers_conversion.cc
 * \brief Conversions between types and between scalars and vectors, in the stackvm.
 */
#include <cmath>
#include <limits>

#include "runtime/stackvm/machine.h"
#include "runtime/stackvm/scalar_types.h"

namespace tvm {
namespace runtime {
namespace stackvm {
namespace {

/*! \brief As a C cast, except that reals outside of an integer type go to its nearest end. */
template <typename To, typename From>
typename To::Register Convert(typename From::Register x) {
  using T = typename To::Register;
  using S = typename From::Register;
  if constexpr (To::kScalar == ScalarType::kBool) {
    return x != 0;
  } else if constexpr (std::is_floating_point_v<S> && std::is_integral_v<T>) {
    if (x != x) return 0;
    constexpr S kLow = static_cast<S>(std::numeric_limits<T>::min());
    constexpr S kHigh = static_cast<S>(std::numeric_limits<T>::max());
    if (x <= kLow) return std::numeric_limits<T>::min();
    // For wide integers kHigh is rounded up, to a value that no longer fits.
    if (x >= kHigh) return std::numeric_limits<T>::max();
    return static_cast<T>(x);
  } else {
    return To::Round(static_cast<T>(x));
  }
}

template <typename To, typename From>
const Instr* Cast(Machine& m, const Instr* i) {
  auto* __restrict out = m.Reg<typename To::Register>(i->a);
  const auto* x = m.Reg<typename From::Register>(i->b);
  const int begin = m.mask.begin * i->lanes, end = m.mask.end * i->lanes;
  if (end == 1) {
    out[0] = Convert<To, From>(x[0]);
    return i + 1;
  }
  for (int k = begin; k < end; ++k) out[k] = Convert<To, From>(x[k]);
  return i + 1;
}

template <typename To, typename From>
const Instr* Reinterpret(Machine& m, const Instr* i) {
  auto* __restrict out = m.Reg<typename To::Register>(i->a);
  const auto* x = m.Reg<typename From::Register>(i->b);
  const int begin = m.mask.begin * i->lanes, end = m.mask.end * i->lanes;
  for (int k = begin; k < end; ++k) {
    typename From::Memory source = From::ToMemory(x[k]);
    typename To::Memory target;
    std::memcpy(&target, &source, sizeof(target));
    out[k] = To::FromMemory(target);
  }
  return i + 1;
}

template <typename Lane>
const Instr* Broadcast(Machine& m, const Instr* i) {
  using T = typename Lane::Register;
  T* __restrict out = m.Reg<T>(i->a);
  const T* x = m.Reg<T>(i->b);
  for (int t = m.mask.begin; t < m.mask.end; ++t) {
    for (int lane = 0; lane < i->lanes; ++lane) out[t * i->lanes + lane] = x[t];
  }
  return i + 1;
}

template <typename Lane>
const Instr* Ramp(Machine& m, const Instr* i) {
  using T = typename Lane::Register;
  T* __restrict out = m.Reg<T>(i->a);
  const T* base = m.Reg<T>(i->b);
  const T* stride = m.Reg<T>(i->c);
  for (int t = m.mask.begin; t < m.mask.end; ++t) {
    for (int lane = 0; lane < i->lanes; ++lane) {
      if constexpr (std::is_integral_v<T>) {
        // In 64 bits without a sign, where wrapping around is defined.
        out[t * i->lanes + lane] = static_cast<T>(static_cast<uint64_t>(base[t]) +
                                                  static_cast<uint64_t>(stride[t]) * lane);
      } else {
        out[t * i->lanes + lane] = Lane::Round(base[t] + stride[t] * lane);
      }
    }
  }
  return i + 1;
}

template <typename Lane>
const Instr* CopyLane(Machine& m, const Instr* i) {
  using T = typename Lane::Register;
  T* out = m.Reg<T>(i->a);
  const T* x = m.Reg<T>(i->b);
  const int lanes = i->lanes, source_lanes = static_cast<int>(i->imm);
  for (int t = m.mask.begin; t < m.mask.end; ++t) {
    out[t * lanes + i->c] = x[t * source_lanes + i->d];
  }
  return i + 1;
}

template <typename Lane>
const Instr* Assign(Machine& m, const Instr* i) {
  using T = typename Lane::Register;
  T* out = m.Reg<T>(i->a);
  const T* x = m.Reg<T>(i->b);
  const int lanes = i->lanes;
  m.ForEachActive([&](int t) {
    for (int k = t * lanes; k < (t + 1) * lanes; ++k) out[k] = x[k];
  });
  return i + 1;
}

}  // namespace

Handler ConversionHandler(const Instr& instr) {
  return DispatchLane(instr.type, [&](auto lane) -> Handler {
    using Lane = decltype(lane);
    switch (instr.op) {
      case Opcode::kCast:
        return DispatchLane(instr.type2,
                            [](auto from) -> Handler { return &Cast<Lane, decltype(from)>; });
      case Opcode::kReinterpret:
        return DispatchLane(instr.type2, [](auto from) -> Handler {
          using From = decltype(from);
          if constexpr (sizeof(typename From::Memory) == sizeof(typename Lane::Memory)) {
            return &Reinterpret<Lane, From>;
          } else {
            return nullptr;
          }
        });
      case Opcode::kBroadcast:
        return &Broadcast<Lane>;
      case Opcode::kRamp:
        return &Ramp<Lane>;
      case Opcode::kCopyLane:
        return &CopyLane<Lane>;
      case Opcode::kAssign:
        return &Assign<Lane>;
      default:
        return nullptr;
    }
  });
}

}  // namespace stackvm
}  // namespace runtime
}  // namespace tvm
