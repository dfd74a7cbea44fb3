/*!
 * \file ragged_axis.cc
 * \brief Axes whose register tile should not have to divide them.
 */
#include <tvm/expr/op.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "../tile_sizes.h"
#include "cpu_space.h"

namespace tvm {
namespace auto_scheduler {

namespace {

// Vectors of a register tile's columns.
constexpr int64_t kMaxVectors = 4;
// What tiles with a remainder must take at most of what those that divide the axis take: more
// structures take longer to be searched.
constexpr double kWorthIt = 0.98;

/*! \brief Whether some read that moves with `last` moves with `axis`, too. */
bool MovesWithLast(const te::ComputeOpNode* compute, const tir::Var& axis, const tir::Var& last) {
  bool found = false;
  auto uses = [](const Array<PrimExpr>& indices, const tir::Var& var) {
    bool used = false;
    for (const PrimExpr& index : indices) {
      tir::PostOrderVisit(index, [&](const ObjectRef& node) { used |= node.same_as(var); });
    }
    return used;
  };
  for (const PrimExpr& body : compute->body) {
    tir::PostOrderVisit(body, [&](const ObjectRef& node) {
      const auto* load = node.as<tir::ProducerLoadNode>();
      if (load == nullptr) return;
      found |= uses(load->indices, last) && uses(load->indices, axis);
    });
  }
  return found;
}

/*!
 * \brief What a step of the reduction takes in a register tile, in multiply-adds of a vector:
 * these, its loads, and its vectors once more, which come from the second cache.
 */
double StepSlots(int64_t height, int64_t vectors) {
  // Accumulators below which the latency of multiply-adds shows.
  constexpr int64_t kHideLatency = 8;
  // As many loads as multiply-adds are issued at a time, and they overlap as the bound of the
  // search has it (felix.bound): where both fill the ports, neither is as fast as alone.
  const auto sums = static_cast<double>(std::max(height * vectors, kHideLatency));
  const auto loads = static_cast<double>(height + vectors);
  const double issued = std::pow(std::pow(sums, 4) + std::pow(loads, 4), 0.25);
  return issued + loads / 4 + 2 * static_cast<double>(vectors);
}

/*! \brief All products of a divisor of each extent. */
std::vector<int64_t> ProductsOfDivisors(const std::vector<int64_t>& extents) {
  std::vector<int64_t> products = {1};
  for (int64_t extent : extents) {
    std::vector<int64_t> more;
    for (int64_t product : products) {
      for (int64_t divisor : Divisors(extent)) more.push_back(product * divisor);
    }
    products = std::move(more);
  }
  return products;
}

/*!
 * \brief The least slots for each multiply-add, of tiles of some height along an axis, of some rows
 *        for each step along it, and of some vectors.
 */
double LeastSlots(int64_t extent, const std::vector<int64_t>& heights,
                  const std::vector<int64_t>& rows, const std::vector<int64_t>& widths,
                  const MachineFacts& machine) {
  double least = std::numeric_limits<double>::infinity();
  for (int64_t vectors : widths) {
    for (int64_t height : heights) {
      for (int64_t each : rows) {
        // As the constraint on register tiles has it.
        if (height * each * vectors + vectors + 1 > machine.num_vector_registers) continue;
        const int64_t rest = extent % height;
        double slots = static_cast<double>(extent / height) * StepSlots(height * each, vectors);
        if (rest != 0) slots += StepSlots(rest * each, vectors);
        least = std::min(least, slots / static_cast<double>(extent * each * vectors));
      }
    }
  }
  return least;
}

}  // namespace

int64_t RaggedTiles(int64_t extent) {
  // Below twelve, rows of an image whose columns fill the tile: pairs and threes of seven.
  constexpr std::array<int64_t, 9> kHeights = {504, 168, 84, 42, 28, 24, 12, 6, 4};
  for (int64_t heights : kHeights) {
    if (heights <= extent) return heights;
  }
  return 0;
}

int RaggedAxis(const te::Operation& op, const MachineFacts& machine) {
  const auto* compute = op.as<te::ComputeOpNode>();
  if (compute == nullptr || compute->axis.size() < 2 || compute->reduce_axis.empty()) return -1;
  // Without its splits at all levels the stage could not be told from one of a reduction.
  if (compute->attrs.count("auto_scheduler_no_split_at_inner")) return -1;
  const int64_t* columns = tir::as_const_int(compute->axis.back()->dom->extent);
  if (columns == nullptr) return -1;
  // Rows of a tile share the vectors that they are multiplied with.
  std::vector<int> shared;
  std::vector<int64_t> extents;
  for (size_t i = 0; i + 1 < compute->axis.size(); ++i) {
    const int64_t* extent = tir::as_const_int(compute->axis[i]->dom->extent);
    if (extent == nullptr) return -1;
    if (*extent == 1 || MovesWithLast(compute, compute->axis[i]->var, compute->axis.back()->var)) {
      continue;
    }
    shared.push_back(static_cast<int>(i));
    extents.push_back(*extent);
  }
  const int lanes = std::max(1, machine.vector_bytes / op.output(0)->dtype.bytes());
  std::vector<int64_t> widths;
  for (int64_t vectors = 1; vectors <= kMaxVectors; ++vectors) {
    // Columns that fill no vectors have what waste they have, whatever the rows.
    if (*columns % lanes != 0 || *columns % (vectors * lanes) == 0) widths.push_back(vectors);
  }
  double least = kWorthIt * LeastSlots(1, {1}, ProductsOfDivisors(extents), widths, machine);
  int found = -1;
  for (size_t i = shared.size(); i-- > 0;) {
    const int64_t tiles = RaggedTiles(extents[i]);
    if (tiles == 0) continue;
    std::vector<int64_t> others = extents;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const double slots =
        LeastSlots(extents[i], Divisors(tiles), ProductsOfDivisors(others), widths, machine);
    if (slots >= least) continue;
    least = slots;
    found = shared[i];
  }
  return found;
}

}  // namespace auto_scheduler
}  // namespace tvm
