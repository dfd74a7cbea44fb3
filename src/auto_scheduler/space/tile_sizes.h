/*!
 * \file tile_sizes.h
 * \brief The ways to write an extent as a product of split lengths.
 */
#ifndef TVM_AUTO_SCHEDULER_SPACE_TILE_SIZES_H_
#define TVM_AUTO_SCHEDULER_SPACE_TILE_SIZES_H_

#include <cstdint>
#include <random>
#include <vector>

namespace tvm {
namespace auto_scheduler {

/*! \brief A number in [0, n). */
inline int64_t Below(std::mt19937* random, int64_t n) {
  return static_cast<int64_t>((*random)() % static_cast<uint64_t>(n));
}

/*! \brief Divisors of `n` >= 1, ascending. Remembered for each n; safe to call from any thread. */
const std::vector<int64_t>& Divisors(int64_t n);

/*! \brief In how many ways `n` is a product of `parts` ordered factors. */
int64_t CountFactorizations(int64_t n, int parts);

/*!
 * \brief Lengths of a split that divides `extent`, drawn uniformly from all that there are.
 *
 * What the lengths leave is the remaining part. The last length is at most `max_innermost`.
 */
std::vector<int64_t> SampleSplitLengths(int64_t extent, int n_lengths, int64_t max_innermost,
                                        std::mt19937* random);

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_SPACE_TILE_SIZES_H_
