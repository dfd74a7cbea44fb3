/*! \file float32_bits.h
 *  \brief The float32 of a number, for comparing settings.
 */
#ifndef TVM_SRC_NODE_FLOAT32_BITS_H_
#define TVM_SRC_NODE_FLOAT32_BITS_H_

#include <cstdint>
#include <cstring>

namespace tvm {

/*! \brief The bits of the float32 nearest to a number. */
inline uint32_t Float32Bits(double value) {
  auto narrow = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &narrow, sizeof(bits));
  return bits;
}

}  // namespace tvm

#endif  // TVM_SRC_NODE_FLOAT32_BITS_H_
