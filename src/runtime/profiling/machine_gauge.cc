/*!
 * \file machine_gauge.cc
 * \brief A fixed piece of work, whose time says how fast the processor is at the moment.
 */
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <chrono>
#include <limits>

namespace tvm {
namespace runtime {
namespace profiling {
namespace {

// Vectors that every processor has. Work that shares the core's units slows them down as it does
// wider ones.
typedef float Vector __attribute__((vector_size(16)));
// Enough chains to fill two units of four cycles, and operands that stay in the nearest cache.
constexpr int kChains = 8;
constexpr int kOperands = 256;
constexpr int kRounds = 32;
constexpr int kTries = 3;

double SecondsOfOneTry(const Vector* operands, float* sink) {
  Vector chains[kChains] = {};
  const auto start = std::chrono::steady_clock::now();
  for (int round = 0; round < kRounds; ++round) {
    for (int first = 0; first < kOperands; first += kChains) {
      for (int i = 0; i < kChains; ++i) {
        chains[i] = chains[i] * operands[first + i] + operands[i];
      }
    }
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  for (const Vector& chain : chains) *sink += chain[0] + chain[1] + chain[2] + chain[3];
  return taken.count();
}

/*! \brief The least seconds of a few tries of some microseconds: an interrupt disturbs only one. */
double GaugeSeconds() {
  static const Vector operands[kOperands] = {};
  double least = std::numeric_limits<double>::infinity();
  float sum = 0;
  for (int i = 0; i < kTries; ++i) least = std::min(least, SecondsOfOneTry(operands, &sum));
  // The sum is zero, which the compiler does not know of an operand in memory.
  return least + sum;
}

}  // namespace

TVM_REGISTER_GLOBAL("runtime.profiling.GaugeSeconds").set_body_typed(GaugeSeconds);

}  // namespace profiling
}  // namespace runtime
}  // namespace tvm
