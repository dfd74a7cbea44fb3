/*!
 * \file handlers_arithmetic.cc
 * \brief Operators of the stackvm that work lane by lane.
 */
#include <cmath>
#include <limits>

#include "runtime/stackvm/machine.h"
#include "runtime/stackvm/scalar_types.h"

namespace tvm {
namespace runtime {
namespace stackvm {
namespace {

/*! \brief Type in which wrapping arithmetic of T is defined by C++. */
template <typename T>
using Wrapping = std::conditional_t<sizeof(T) < 4, uint32_t, std::make_unsigned_t<T>>;

template <typename T, typename F>
T Wrap(T a, T b, F f) {
  if constexpr (std::is_floating_point_v<T>) {
    return f(a, b);
  } else {
    return static_cast<T>(f(static_cast<Wrapping<T>>(a), static_cast<Wrapping<T>>(b)));
  }
}

struct AddOp {
  template <typename T>
  static T Apply(T a, T b) {
    return Wrap(a, b, [](auto x, auto y) { return x + y; });
  }
};
struct SubOp {
  template <typename T>
  static T Apply(T a, T b) {
    return Wrap(a, b, [](auto x, auto y) { return x - y; });
  }
};
struct MulOp {
  template <typename T>
  static T Apply(T a, T b) {
    return Wrap(a, b, [](auto x, auto y) { return x * y; });
  }
};
// NaN when one of them is: it differs from itself, and no other comparison with it holds.
struct MinOp {
  template <typename T>
  static T Apply(T a, T b) {
    return a < b || a != a ? a : b;
  }
};
struct MaxOp {
  template <typename T>
  static T Apply(T a, T b) {
    return a > b || a != a ? a : b;
  }
};
struct AndOp {
  template <typename T>
  static T Apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct OrOp {
  template <typename T>
  static T Apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct XorOp {
  template <typename T>
  static T Apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};
struct ShiftLeftOp {
  template <typename T>
  static T Apply(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) << (b & (sizeof(T) * 8 - 1)));
  }
};
struct ShiftRightOp {
  template <typename T>
  static T Apply(T a, T b) {
    return static_cast<T>(a >> (b & (sizeof(T) * 8 - 1)));
  }
};
struct EqOp {
  template <typename T>
  static uint8_t Apply(T a, T b) {
    return a == b;
  }
};
struct NeOp {
  template <typename T>
  static uint8_t Apply(T a, T b) {
    return a != b;
  }
};
struct LtOp {
  template <typename T>
  static uint8_t Apply(T a, T b) {
    return a < b;
  }
};
struct LeOp {
  template <typename T>
  static uint8_t Apply(T a, T b) {
    return a <= b;
  }
};

template <typename Op, typename Lane>
const Instr* Binary(Machine& m, const Instr* i) {
  using T = typename Lane::Register;
  T* __restrict out = m.Reg<T>(i->a);
  const T* x = m.Reg<T>(i->b);
  const T* y = m.Reg<T>(i->c);
  const int begin = m.mask.begin * i->lanes, end = m.mask.end * i->lanes;
  // A host function has one thread, and a vector loop costs more to enter than one element.
  if (end == 1) {
    out[0] = Lane::Round(Op::Apply(x[0], y[0]));
    return i + 1;
  }
  for (int k = begin; k < end; ++k) out[k] = Lane::Round(Op::Apply(x[k], y[k]));
  return i + 1;
}

template <typename Op, typename Lane>
const Instr* Compare(Machine& m, const Instr* i) {
  using T = typename Lane::Register;
  uint8_t* __restrict out = m.Reg<uint8_t>(i->a);
  const T* x = m.Reg<T>(i->b);
  const T* y = m.Reg<T>(i->c);
  const int begin = m.mask.begin * i->lanes, end = m.mask.end * i->lanes;
  if (end == 1) {
    out[0] = Op::Apply(x[0], y[0]);
    return i + 1;
  }
  for (int k = begin; k < end; ++k) out[k] = Op::Apply(x[k], y[k]);
  return i + 1;
}

enum class Rounding { kTruncate, kFloor };

template <typename T, Rounding kRounding, bool kRemainder>
T DivideInts(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    // The one quotient that does not fit; C++ would trap.
    if (b == T(-1)) return kRemainder ? T(0) : SubOp::Apply(T(0), a);
  }
  T quotient = static_cast<T>(a / b);
  T rest = static_cast<T>(a % b);
  if constexpr (std::is_signed_v<T> && kRounding == Rounding::kFloor) {
    if (rest != 0 && (rest ^ b) < 0) {
      quotient = static_cast<T>(quotient - 1);
      rest = static_cast<T>(rest + b);
    }
  }
  return kRemainder ? rest : quotient;
}

template <typename T, Rounding kRounding, bool kRemainder>
T DivideReals(T a, T b) {
  if constexpr (kRounding == Rounding::kFloor) {
    T quotient = std::floor(a / b);
    return kRemainder ? a - quotient * b : quotient;
  }
  return kRemainder ? std::fmod(a, b) : a / b;
}

template <typename Lane, Rounding kRounding, bool kRemainder>
const Instr* Divide(Machine& m, const Instr* i) {
  using T = typename Lane::Register;
  T* __restrict out = m.Reg<T>(i->a);
  const T* x = m.Reg<T>(i->b);
  const T* y = m.Reg<T>(i->c);
  const int begin = m.mask.begin * i->lanes, end = m.mask.end * i->lanes;
  for (int k = begin; k < end; ++k) {
    if constexpr (std::is_floating_point_v<T>) {
      out[k] = Lane::Round(DivideReals<T, kRounding, kRemainder>(x[k], y[k]));
    } else if (y[k] != 0) {
      out[k] = DivideInts<T, kRounding, kRemainder>(x[k], y[k]);
    } else {
      const int thread = k / i->lanes;
      TVM_CHECK(!m.IsActive(thread), ValueError)
          << "stackvm: " << m.Where(thread) << ": " << OpcodeName(i->op) << " of integer " << +x[k]
          << " by zero";
      out[k] = 0;
    }
  }
  return i + 1;
}

template <typename Lane>
const Instr* Not(Machine& m, const Instr* i) {
  using T = typename Lane::Register;
  T* __restrict out = m.Reg<T>(i->a);
  const T* x = m.Reg<T>(i->b);
  const int begin = m.mask.begin * i->lanes, end = m.mask.end * i->lanes;
  for (int k = begin; k < end; ++k) {
    out[k] = Lane::kScalar == ScalarType::kBool ? static_cast<T>(x[k] ^ 1) : static_cast<T>(~x[k]);
  }
  return i + 1;
}

template <typename Lane>
const Instr* Popcount(Machine& m, const Instr* i) {
  using T = typename Lane::Register;
  T* __restrict out = m.Reg<T>(i->a);
  const T* x = m.Reg<T>(i->b);
  const int begin = m.mask.begin * i->lanes, end = m.mask.end * i->lanes;
  for (int k = begin; k < end; ++k) {
    out[k] = static_cast<T>(__builtin_popcountll(static_cast<std::make_unsigned_t<T>>(x[k])));
  }
  return i + 1;
}

template <typename Lane, bool kWhole>
const Instr* Select(Machine& m, const Instr* i) {
  using T = typename Lane::Register;
  T* __restrict out = m.Reg<T>(i->a);
  const uint8_t* condition = m.Reg<uint8_t>(i->b);
  const T* yes = m.Reg<T>(i->c);
  const T* no = m.Reg<T>(i->d);
  const int begin = m.mask.begin * i->lanes, end = m.mask.end * i->lanes;
  for (int k = begin; k < end; ++k) {
    out[k] = condition[kWhole ? k / i->lanes : k] ? yes[k] : no[k];
  }
  return i + 1;
}

template <typename Op>
Handler BinaryOf(ScalarType type) {
  return DispatchLane(type, [](auto lane) -> Handler { return &Binary<Op, decltype(lane)>; });
}

template <typename Op>
Handler IntegerBinaryOf(ScalarType type) {
  return DispatchLane(type, [](auto lane) -> Handler {
    if constexpr (std::is_integral_v<typename decltype(lane)::Register>) {
      return &Binary<Op, decltype(lane)>;
    } else {
      return nullptr;
    }
  });
}

template <typename Op>
Handler CompareOf(ScalarType type) {
  return DispatchLane(type, [](auto lane) -> Handler { return &Compare<Op, decltype(lane)>; });
}

template <Rounding kRounding, bool kRemainder>
Handler DivideOf(ScalarType type) {
  return DispatchLane(
      type, [](auto lane) -> Handler { return &Divide<decltype(lane), kRounding, kRemainder>; });
}

}  // namespace

Handler ArithmeticHandler(const Instr& instr) {
  const ScalarType type = instr.type;
  switch (instr.op) {
    case Opcode::kAdd:
      return BinaryOf<AddOp>(type);
    case Opcode::kSub:
      return BinaryOf<SubOp>(type);
    case Opcode::kMul:
      return BinaryOf<MulOp>(type);
    case Opcode::kMin:
      return BinaryOf<MinOp>(type);
    case Opcode::kMax:
      return BinaryOf<MaxOp>(type);
    case Opcode::kDiv:
      return DivideOf<Rounding::kTruncate, false>(type);
    case Opcode::kMod:
      return DivideOf<Rounding::kTruncate, true>(type);
    case Opcode::kFloorDiv:
      return DivideOf<Rounding::kFloor, false>(type);
    case Opcode::kFloorMod:
      return DivideOf<Rounding::kFloor, true>(type);
    case Opcode::kAnd:
      return IntegerBinaryOf<AndOp>(type);
    case Opcode::kOr:
      return IntegerBinaryOf<OrOp>(type);
    case Opcode::kXor:
      return IntegerBinaryOf<XorOp>(type);
    case Opcode::kShiftLeft:
      return IntegerBinaryOf<ShiftLeftOp>(type);
    case Opcode::kShiftRight:
      return IntegerBinaryOf<ShiftRightOp>(type);
    case Opcode::kEQ:
      return CompareOf<EqOp>(type);
    case Opcode::kNE:
      return CompareOf<NeOp>(type);
    case Opcode::kLT:
      return CompareOf<LtOp>(type);
    case Opcode::kLE:
      return CompareOf<LeOp>(type);
    case Opcode::kNot:
      return DispatchLane(type, [](auto lane) -> Handler {
        if constexpr (std::is_integral_v<typename decltype(lane)::Register>) {
          return &Not<decltype(lane)>;
        } else {
          return nullptr;
        }
      });
    case Opcode::kPopcount:
      return DispatchLane(type, [](auto lane) -> Handler {
        if constexpr (std::is_integral_v<typename decltype(lane)::Register>) {
          return &Popcount<decltype(lane)>;
        } else {
          return nullptr;
        }
      });
    case Opcode::kSelect:
      return DispatchLane(type,
                          [](auto lane) -> Handler { return &Select<decltype(lane), false>; });
    case Opcode::kSelectScalar:
      return DispatchLane(type, [](auto lane) -> Handler { return &Select<decltype(lane), true>; });
    default:
      return nullptr;
  }
}

}  // namespace stackvm
}  // namespace runtime
}  // namespace tvm
