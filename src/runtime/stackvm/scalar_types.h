/*!
 * \file scalar_types.h
 * \brief The C++ type behind each ScalarType, in registers and in memory.
 */
#ifndef TVM_RUNTIME_STACKVM_SCALAR_TYPES_H_
#define TVM_RUNTIME_STACKVM_SCALAR_TYPES_H_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "runtime/stackvm/bytecode.h"

namespace tvm {
namespace runtime {
namespace stackvm {

inline uint32_t FloatBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
inline float FloatFromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/*!
 * \brief The float that `value` is, or the odd one of the two beside it: never halfway between
 * numbers of fewer bits, so rounding it further rounds `value` once.
 */
inline float RoundToOdd(double value) {
  const float nearest = static_cast<float>(value);
  const uint32_t bits = FloatBits(nearest);
  if (nearest == value || value != value || (bits & 1u) != 0) return nearest;
  return FloatFromBits(std::fabs(nearest) < std::fabs(value) ? bits + 1 : bits - 1);
}

inline float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t magnitude = half & 0x7FFFu;
  if (magnitude >= 0x7C00u) return FloatFromBits(sign | 0x7F800000u | (magnitude & 0x3FFu) << 13);
  // Multiplying by 2^112 moves the exponent from one bias to the other, subnormals included.
  return FloatFromBits(sign | FloatBits(FloatFromBits(magnitude << 13) * 0x1p112f));
}

/*! \brief Rounds to nearest, ties to even. */
inline uint16_t FloatToHalf(float value) {
  const uint32_t bits = FloatBits(value);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return sign | 0x7E00u;
  if (magnitude >= 0x477FF000u) return sign | 0x7C00u;
  if (magnitude < 0x38800000u) {
    // Below the smallest normal number: adding 0.5 lines the last kept place up with bit 0.
    return sign | static_cast<uint16_t>(FloatBits(FloatFromBits(magnitude) + 0.5f) - 0x3F000000u);
  }
  magnitude += 0xFFFu + (magnitude >> 13 & 1u);
  return sign | static_cast<uint16_t>((magnitude - 0x38000000u) >> 13);
}

inline float BFloatToFloat(uint16_t bits) {
  return FloatFromBits(static_cast<uint32_t>(bits) << 16);
}
inline uint16_t FloatToBFloat(float value) {
  const uint32_t bits = FloatBits(value);
  if (value != value) return static_cast<uint16_t>(bits >> 16 | 0x40u);
  return static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

/*! \brief A lane type whose register and memory forms agree. */
template <ScalarType kType, typename T>
struct PlainLane {
  using Register = T;
  using Memory = T;
  static constexpr ScalarType kScalar = kType;
  static T Round(T value) { return value; }
  static T FromMemory(T value) { return value; }
  static T ToMemory(T value) { return value; }
};

struct BoolLane : PlainLane<ScalarType::kBool, uint8_t> {
  static uint8_t FromMemory(uint8_t value) { return value != 0; }
};

struct Float16Lane {
  using Register = float;
  using Memory = uint16_t;
  static constexpr ScalarType kScalar = ScalarType::kFloat16;
  static float Round(float value) { return HalfToFloat(FloatToHalf(value)); }
  static float FromMemory(uint16_t bits) { return HalfToFloat(bits); }
  static uint16_t ToMemory(float value) { return FloatToHalf(value); }
};

struct BFloat16Lane {
  using Register = float;
  using Memory = uint16_t;
  static constexpr ScalarType kScalar = ScalarType::kBFloat16;
  static float Round(float value) { return BFloatToFloat(FloatToBFloat(value)); }
  static float FromMemory(uint16_t bits) { return BFloatToFloat(bits); }
  static uint16_t ToMemory(float value) { return FloatToBFloat(value); }
};

/*! \brief Calls `f` with a value of the lane type of `type`. */
template <typename F>
auto DispatchLane(ScalarType type, F f) {
  switch (type) {
    case ScalarType::kInt8:
      return f(PlainLane<ScalarType::kInt8, int8_t>());
    case ScalarType::kInt16:
      return f(PlainLane<ScalarType::kInt16, int16_t>());
    case ScalarType::kInt32:
      return f(PlainLane<ScalarType::kInt32, int32_t>());
    case ScalarType::kInt64:
      return f(PlainLane<ScalarType::kInt64, int64_t>());
    case ScalarType::kUInt8:
      return f(PlainLane<ScalarType::kUInt8, uint8_t>());
    case ScalarType::kUInt16:
      return f(PlainLane<ScalarType::kUInt16, uint16_t>());
    case ScalarType::kUInt32:
      return f(PlainLane<ScalarType::kUInt32, uint32_t>());
    case ScalarType::kBool:
      return f(BoolLane());
    case ScalarType::kFloat16:
      return f(Float16Lane());
    case ScalarType::kBFloat16:
      return f(BFloat16Lane());
    case ScalarType::kFloat32:
      return f(PlainLane<ScalarType::kFloat32, float>());
    case ScalarType::kFloat64:
      return f(PlainLane<ScalarType::kFloat64, double>());
    case ScalarType::kUInt64:
    case ScalarType::kHandle:
      break;
  }
  return f(PlainLane<ScalarType::kUInt64, uint64_t>());
}

}  // namespace stackvm
}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_STACKVM_SCALAR_TYPES_H_
