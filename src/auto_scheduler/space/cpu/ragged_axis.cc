/*!
 * \file ragged_axis.cc
 * \brief Axes whose register tile should not have to divide them.
 */
#include <tvm/expr/op.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "../tile_sizes.h"
#include "../structure_rules.h"
#include "cpu_space.h"

namespace tvm {
namespace auto_scheduler {

namespace {

// Vectors of a register tile's columns.
constexpr int64_t kMaxVectors = 4;
// What tiles that divide the axis must do at least, of what those with a remainder do, to be enough
// alone: more structures take longer to be searched.
constexpr double kEnough = 0.85;

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

/*! \brief Multiply-adds for each vector that is loaded or repeated, of the best register tile. */
double BestTile(const std::vector<int64_t>& rows, int64_t columns, const MachineFacts& machine,
                int lanes, const std::function<double(int64_t)>& used) {
  double best = 0;
  for (int64_t vectors = 1; vectors <= kMaxVectors; ++vectors) {
    if (columns % (vectors * lanes) != 0 && columns % lanes == 0) continue;
    for (int64_t height : rows) {
      // As the constraint on register tiles has it.
      if (height * vectors + vectors + 1 > machine.num_vector_registers) continue;
      const double products = static_cast<double>(height * vectors);
      best = std::max(best, products / static_cast<double>(height + vectors) * used(height));
    }
  }
  return best;
}

}  // namespace

int64_t RaggedTiles(int64_t extent) {
  constexpr std::array<int64_t, 5> kHeights = {504, 168, 84, 24, 12};
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
  int axis = -1;
  std::vector<int64_t> heights = {1};
  for (size_t i = 0; i + 1 < compute->axis.size(); ++i) {
    const int64_t* extent = tir::as_const_int(compute->axis[i]->dom->extent);
    if (extent == nullptr) return -1;
    if (*extent == 1 || MovesWithLast(compute, compute->axis[i]->var, compute->axis.back()->var)) {
      continue;
    }
    axis = static_cast<int>(i);
    std::vector<int64_t> products;
    for (int64_t height : heights) {
      for (int64_t divisor : Divisors(*extent)) products.push_back(height * divisor);
    }
    heights = std::move(products);
  }
  if (axis == -1) return -1;
  const int64_t extent = *tir::as_const_int(compute->axis[axis]->dom->extent);
  const int64_t tiles = RaggedTiles(extent);
  if (tiles == 0) return -1;
  const int lanes = std::max(1, machine.vector_bytes / op.output(0)->dtype.bytes());
  const double exact =
      BestTile(heights, *columns, machine, lanes, [](int64_t) { return 1.0; });
  const double ragged = BestTile(Divisors(tiles), *columns, machine, lanes, [&](int64_t height) {
    const double trips = std::ceil(static_cast<double>(extent) / static_cast<double>(height));
    return static_cast<double>(extent) / (trips * static_cast<double>(height));
  });
  return exact < kEnough * ragged ? axis : -1;
}

}  // namespace auto_scheduler
}  // namespace tvm
