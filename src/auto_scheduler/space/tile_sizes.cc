/*!
 * \file tile_sizes.cc
 * \brief The ways to write an extent as a product of split lengths.
 */
#include "tile_sizes.h"

#include <tvm/runtime/logging.h>

#include <algorithm>
#include <map>
#include <mutex>

namespace tvm {
namespace auto_scheduler {

namespace {

std::vector<int64_t> FindDivisors(int64_t n) {
  std::vector<int64_t> small, large;
  for (int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    small.push_back(d);
    if (d * d != n) large.push_back(n / d);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

}  // namespace

const std::vector<int64_t>& Divisors(int64_t n) {
  ICHECK_GE(n, 1);
  static std::mutex mutex;
  // Elements of a map stay where they are, so references outlive the lock.
  static std::map<int64_t, std::vector<int64_t>> known;
  std::lock_guard<std::mutex> lock(mutex);
  auto found = known.find(n);
  if (found == known.end()) found = known.emplace(n, FindDivisors(n)).first;
  return found->second;
}

int64_t CountFactorizations(int64_t n, int parts) {
  // The exponents of each prime are spread over the parts independently: C(e + parts - 1, e) ways.
  int64_t ways = 1;
  auto spread = [&](int64_t exponent) {
    int64_t choose = 1;
    for (int64_t i = 1; i <= exponent; ++i) choose = choose * (parts - 1 + i) / i;
    ways *= choose;
  };
  for (int64_t p = 2; p * p <= n; ++p) {
    int64_t exponent = 0;
    for (; n % p == 0; n /= p) ++exponent;
    spread(exponent);
  }
  if (n > 1) spread(1);
  return ways;
}

std::vector<int64_t> SampleSplitLengths(int64_t extent, int n_lengths, int64_t max_innermost,
                                        std::mt19937* random) {
  std::vector<int64_t> lengths(n_lengths);
  int64_t rest = extent;
  std::vector<int64_t> ways;
  for (int i = n_lengths - 1; i >= 0; --i) {
    // A length is as likely as what it leaves to the i other lengths and the remaining part.
    const std::vector<int64_t>& divisors = Divisors(rest);
    ways.clear();
    int64_t total = 0;
    for (int64_t divisor : divisors) {
      if (i == n_lengths - 1 && divisor > max_innermost) break;
      total += CountFactorizations(rest / divisor, i + 1);
      ways.push_back(total);
    }
    int64_t drawn = Below(random, total);
    lengths[i] = divisors[std::upper_bound(ways.begin(), ways.end(), drawn) - ways.begin()];
    rest /= lengths[i];
  }
  return lengths;
}

}  // namespace auto_scheduler
}  // namespace tvm
