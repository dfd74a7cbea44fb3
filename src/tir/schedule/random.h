/*!
 * \file random.h
 * \brief Random numbers that are the same for a seed on every machine.
 */
#ifndef TVM_SRC_TIR_SCHEDULE_RANDOM_H_
#define TVM_SRC_TIR_SCHEDULE_RANDOM_H_

#include <cstdint>
#include <random>
#include <vector>

namespace tvm {
namespace tir {
namespace sched {

class RandomState {
 public:
  /*! \brief A negative seed draws one. */
  explicit RandomState(int64_t seed = -1)
      : engine_(seed < 0 ? std::random_device()() : static_cast<uint64_t>(seed)) {}
  /*! \brief One of 0 .. bound - 1. */
  uint64_t Below(uint64_t bound) { return engine_() % bound; }
  /*! \brief An index, as likely as its weight is of the sum of all. */
  size_t Weighted(const std::vector<double>& weights) {
    double sum = 0;
    for (double weight : weights) sum += weight;
    // The distributions of the standard library differ between implementations; 53 bits do not.
    double at = static_cast<double>(engine_() >> 11) * 0x1.0p-53 * sum;
    size_t last = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] <= 0) continue;
      last = i;
      if (at < weights[i]) break;
      at -= weights[i];
    }
    return last;
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace sched
}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_SCHEDULE_RANDOM_H_
