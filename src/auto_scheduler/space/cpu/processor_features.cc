/*!
 * \file processor_features.cc
 * \brief Feature columns of processors: the register tile, its loads, the caches, the cores.
 */
#include <tvm/expr/op.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <iterator>

#include "cpu_space.h"
#include "register_tile.h"

namespace tvm {
namespace auto_scheduler {

using namespace tir;

namespace {

/*!
 * \brief Bytes that cross into a cache during the whole program.
 *
 * If the data of loops i and inside fits, the cache is filled once for each trip of the loops
 * outside. The loop that counts is the outermost whose data fits; instead of a hard limit, data
 * of F bytes fits a cache of C bytes to the degree 1 / (1 + (F / C)^2).
 */
PrimExpr Traffic(const StoreFacts& store, int64_t cache) {
  const size_t n = store.runs.size();
  std::vector<PrimExpr> footprint(n + 1, RealConst(0));
  for (const AccessInfo& access : store.store.accesses) {
    PrimExpr width = RealConst(store.program.element_bytes(access.buffer));
    for (size_t i = 0; i <= n; ++i) footprint[i] = footprint[i] + access.touched[i] * width;
  }
  PrimExpr traffic = store.outer[n] * footprint[n];
  for (size_t i = n; i-- > 0;) {
    PrimExpr ratio = div(footprint[i], RealConst(static_cast<double>(cache)));
    PrimExpr fit = div(RealConst(1), RealConst(1) + ratio * ratio);
    PrimExpr blended = fit * (store.outer[i] * footprint[i]) + (RealConst(1) - fit) * traffic;
    traffic = Choose(store.runs[i], blended, traffic);
  }
  return traffic;
}

/*! \brief Whether steps of `var` move some dimension before the last, to elements far apart. */
bool Strides(const AccessInfo& access, const Var& var) {
  for (const Array<PrimExpr>& tuple : access.indices) {
    for (size_t dim = 0; dim + 1 < tuple.size(); ++dim) {
      bool moves = false;
      PostOrderVisit(tuple[dim], [&](const ObjectRef& node) { moves |= node.same_as(var); });
      if (moves) return true;
    }
  }
  return false;
}

struct ProcessorFacts {
  explicit ProcessorFacts(const StoreFacts& store) {
    const RegisterTile tile(store.store);
    const int64_t lanes =
        std::max(1, store.machine.vector_bytes / store.program.element_bytes(store.store.buffer));
    const PrimExpr vectors = CeilDivReal(tile.vector_length(), lanes);
    tile_rows = tile.rows();
    tile_vectors = tile_rows * vectors;
    waste = div(vectors * RealConst(static_cast<double>(lanes)), ToReal(tile.vector_length()));
    for (const AccessInfo& access : store.store.accesses) {
      if (access.buffer == store.store.buffer) continue;  // stays in registers
      PrimExpr elements = tile.At(access.touched);
      if (tile.vector_var().defined() && Mentions(access, tile.vector_var())) {
        // Elements come in runs of one vector loop; with a loop of one trip they are scalars.
        PrimExpr is_vector = IsMoreThanOne(tile.vector_length());
        if (Strides(access, tile.vector_var())) {
          // A load and an insertion each.
          broadcast = broadcast + Choose(is_vector, RealConst(2) * elements, elements);
          continue;
        }
        PrimExpr in_vectors = div(elements, ToReal(tile.vector_length())) * vectors;
        loaded = loaded + If(is_vector, in_vectors);
        broadcast = broadcast + Choose(is_vector, RealConst(0), elements);
      } else {
        broadcast = broadcast + elements;
      }
    }
    double work = 0;
    for (double count : store.op_counts) work += count;
    vector_ops = tile.unrolled() * vectors * RealConst(work);

    PrimExpr chunks = IntImm(DataType::Int(32), 1);
    for (const LoopRef& loop : store.store.loops) {
      if (loop->kind == ForKind::kParallel) chunks = chunks * loop->extent;
    }
    const int64_t cores = store.machine.num_cores;
    const PrimExpr real_cores = RealConst(static_cast<double>(cores));
    chunks_per_core = div(ToReal(chunks), real_cores);
    imbalance = div(CeilDivReal(chunks, cores) * real_cores, ToReal(chunks));

    const PrimExpr flop = store.trips() * RealConst(work + store.ops(OpKind::kFloatMad));
    for (size_t level = 0; level < std::size(traffic); ++level) {
      traffic[level] = Traffic(store, store.machine.cache_bytes[level]);
      intensity[level] = div(flop, traffic[level]);
    }
  }

  PrimExpr tile_vectors, tile_rows, waste;
  PrimExpr loaded = RealConst(0), broadcast = RealConst(0), vector_ops;
  PrimExpr chunks_per_core, imbalance;
  PrimExpr traffic[3], intensity[3];
};

}  // namespace

FeatureGroup ProcessorFeatures() {
  using Facts = ProcessorFacts;
  constexpr FeatureKind kNumber = FeatureKind::kNumber;
  return {
      "processor",
      std::vector<FeatureColumn<Facts>>{
          {"tile_vectors", kNumber, [](const Facts& f) { return f.tile_vectors; }},
          {"tile_rows", kNumber, [](const Facts& f) { return f.tile_rows; }},
          {"vector_waste", kNumber, [](const Facts& f) { return f.waste; }},
          {"vectors_loaded", kNumber, [](const Facts& f) { return f.loaded; }},
          {"scalars_broadcast", kNumber, [](const Facts& f) { return f.broadcast; }},
          {"vector_ops", kNumber, [](const Facts& f) { return f.vector_ops; }},
          {"ops_per_load", kNumber,
           [](const Facts& f) { return div(f.vector_ops, f.loaded + f.broadcast + RealConst(1)); }},
          {"chunks_per_core", kNumber, [](const Facts& f) { return f.chunks_per_core; }},
          {"core_imbalance", kNumber, [](const Facts& f) { return f.imbalance; }},
          {"l1_traffic", kNumber, [](const Facts& f) { return f.traffic[0]; }},
          {"l2_traffic", kNumber, [](const Facts& f) { return f.traffic[1]; }},
          {"l3_traffic", kNumber, [](const Facts& f) { return f.traffic[2]; }},
          {"l1_intensity", kNumber, [](const Facts& f) { return f.intensity[0]; }},
          {"l2_intensity", kNumber, [](const Facts& f) { return f.intensity[1]; }},
          {"l3_intensity", kNumber, [](const Facts& f) { return f.intensity[2]; }},
      }};
}

}  // namespace auto_scheduler
}  // namespace tvm
