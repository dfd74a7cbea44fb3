/*!
 * \file sampling.cc
 * \brief Random choices of a schedule: tile sizes, categories, places.
 */
#include <cmath>

#include "primitives.h"

namespace tvm {
namespace tir {
namespace sched {
namespace {

std::map<int64_t, int> PrimeFactors(int64_t value) {
  std::map<int64_t, int> powers;
  for (int64_t prime = 2; value > 1; ++prime) {
    if (prime > value / prime) prime = value;
    for (; value % prime == 0; value /= prime) ++powers[prime];
  }
  return powers;
}

/*! \brief Number of ordered factorisations into `parts` factors. */
double Ways(int64_t value, int64_t parts) {
  if (parts == 0) return value == 1;
  double ways = 1;
  for (const auto& [prime, power] : PrimeFactors(value)) {
    // Places for the powers among the parts: power + parts - 1 over power.
    for (int k = 1; k <= power; ++k) {
      ways *= static_cast<double>(parts - 1 + k) / k;
    }
  }
  return ways;
}

std::vector<int64_t> Divisors(int64_t value) {
  std::vector<int64_t> found{1};
  for (const auto& [prime, power] : PrimeFactors(value)) {
    size_t size = found.size();
    int64_t scale = 1;
    for (int k = 0; k < power; ++k) {
      scale *= prime;
      for (size_t i = 0; i < size; ++i) found.push_back(found[i] * scale);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

/*! \brief Whether a step can be done; it is undone. */
bool IsLegal(Tree* tree, const std::function<void()>& step) {
  Tree::Mark mark = tree->Save();
  bool legal = true;
  try {
    step();
    CheckParallelism(*tree);
  } catch (const Error& error) {
    tree->Restore(mark);
    if (error.kind() != "ScheduleError") throw;
    return false;
  }
  tree->Restore(mark);
  return legal;
}

}  // namespace

std::vector<int64_t> PerfectTile(RandomState* random, int64_t extent, int64_t n,
                                 int64_t max_innermost) {
  std::vector<int64_t> tile;
  int64_t rest = extent;
  for (int64_t left = n - 1; left >= 0; --left) {
    bool innermost = left == n - 1 && max_innermost > 0;
    std::vector<int64_t> sizes;
    std::vector<double> weights;
    for (int64_t size : Divisors(rest)) {
      if ((innermost && size > max_innermost) || (left == 0 && size != rest)) continue;
      sizes.push_back(size);
      weights.push_back(Ways(rest / size, left));
    }
    TVM_CHECK(!sizes.empty(), ScheduleError)
        << "sample_perfect_tile: extent " << extent << " has no " << n
        << " factors of which the innermost is at most " << max_innermost;
    tile.insert(tile.begin(), sizes[random->Weighted(weights)]);
    rest /= tile.front();
  }
  return tile;
}

std::vector<int64_t> PartitionedTile(RandomState* random, int64_t extent, int64_t n,
                                     int64_t position, int64_t inner) {
  std::vector<int64_t> tile(static_cast<size_t>(n), 1);
  // Nothing to choose where the inner part cannot be that.
  if (extent % inner != 0 || position >= n) {
    tile[0] = extent;
    return tile;
  }
  // One more factor stands for what the inner part has beyond `inner`.
  std::vector<int64_t> outer = PerfectTile(random, extent / inner, position + 1, -1);
  std::vector<int64_t> rest =
      PerfectTile(random, outer[static_cast<size_t>(position)] * inner, n - position, -1);
  std::copy(outer.begin(), outer.begin() + position, tile.begin());
  std::copy(rest.begin(), rest.end(), tile.begin() + position);
  return tile;
}

void CheckTile(const std::vector<int64_t>& tile, int64_t extent, int64_t n) {
  int64_t product = 1;
  bool fits = static_cast<int64_t>(tile.size()) == n;
  std::string text;
  for (int64_t size : tile) {
    fits &= size >= 1 && !__builtin_mul_overflow(product, size, &product);
    AddItem(&text, std::to_string(size));
  }
  TVM_CHECK(fits && product == extent, ScheduleError)
      << "sample_perfect_tile: the decision [" << text << "] is not " << n
      << " factors of the extent " << extent;
}

int64_t Categorical(RandomState* random, size_t candidates, const std::vector<double>& probs,
                    std::optional<int64_t> decision) {
  TVM_CHECK(candidates > 0 && candidates == probs.size(), ValueError)
      << "sample_categorical: " << candidates << " candidates with " << probs.size()
      << " probabilities";
  double sum = 0;
  bool valid = true;
  std::string text;
  for (double p : probs) {
    valid &= std::isfinite(p) && p >= 0;
    sum += p;
    std::ostringstream os;
    os << (text.empty() ? "" : ", ") << p;
    text += os.str();
  }
  TVM_CHECK(valid && sum > 0, ValueError)
      << "sample_categorical: probabilities are at least 0 and not all 0, got [" << text << "]";
  if (!decision) return static_cast<int64_t>(random->Weighted(probs));
  TVM_CHECK(0 <= *decision && *decision < static_cast<int64_t>(candidates), ScheduleError)
      << "sample_categorical: decision " << *decision << " for " << candidates << " candidates";
  return *decision;
}

namespace {

/*! \brief Loops around the first reader of what a block writes. */
Ids LoopsOfReader(const Tree& tree, Id block) {
  Flows flows(tree);
  for (const Buffer& buffer : WrittenBy(tree, block)) {
    const Ids& readers = flows[buffer].readers;
    if (!readers.empty()) return tree.LoopsAbove(readers[0]);
  }
  return {};
}

/*! \brief Whether a block may be computed at a place, which is one of its reader's loops or none.
 */
bool MayStandAt(Tree* tree, Id block, int64_t place, const Ids& loops) {
  if (place == kStay) return true;
  if (place == kInlined) return IsLegal(tree, [&] { ComputeInline(tree, block); });
  if (place < 0 || static_cast<size_t>(place) >= loops.size()) return false;
  Id loop = loops[static_cast<size_t>(place)];
  return IsLegal(tree, [&] { ComputeAt(tree, block, loop, false, -1); });
}

Id LoopAt(int64_t place, const Ids& loops) {
  return place < 0 ? kNone : loops[static_cast<size_t>(place)];
}

}  // namespace

std::map<int64_t, Id> ComputeLocations(Tree* tree, Id block) {
  std::map<int64_t, Id> places;
  Ids loops = LoopsOfReader(*tree, block);
  for (int64_t place = kInlined; place < static_cast<int64_t>(loops.size()); ++place) {
    if (MayStandAt(tree, block, place, loops)) places[place] = LoopAt(place, loops);
  }
  return places;
}

std::optional<Id> ComputeLocation(Tree* tree, Id block, int64_t place) {
  Ids loops = LoopsOfReader(*tree, block);
  if (!MayStandAt(tree, block, place, loops)) return std::nullopt;
  return LoopAt(place, loops);
}

}  // namespace sched
}  // namespace tir
}  // namespace tvm
