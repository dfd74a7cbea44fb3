/*!
 * \file processor_features.cc
 * \brief Feature columns of processors: the register tile, its loads, the caches, the cores.
 */
#include <tvm/expr/op.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <functional>
#include <iterator>

#include "cpu_space.h"
#include "register_tile.h"

namespace tvm {
namespace auto_scheduler {

using namespace tir;

namespace {

/*! \brief What is counted of an access while loops i and those inside it run. */
using CountOf = std::function<PrimExpr(const AccessInfo& access, size_t i)>;

/*!
 * \brief What crosses into a cache during the whole program, by its bytes or its pieces.
 *
 * If the data of loops i and inside fits, the cache is filled once for each trip of the loops
 * outside. The loop that counts is the outermost whose data fits; instead of a hard limit, data
 * of F bytes fits a cache of C bytes to the degree 1 / (1 + (F / C)^2).
 */
PrimExpr Traffic(const StoreFacts& store, int64_t cache, const CountOf& count) {
  const size_t n = store.runs.size();
  std::vector<PrimExpr> footprint(n + 1, RealConst(0)), counted(n + 1, RealConst(0));
  for (const AccessInfo& access : store.store.accesses) {
    PrimExpr width = RealConst(store.program.element_bytes(access.buffer));
    for (size_t i = 0; i <= n; ++i) {
      footprint[i] = footprint[i] + access.touched[i] * width;
      counted[i] = counted[i] + count(access, i);
    }
  }
  PrimExpr traffic = store.outer[n] * counted[n];
  for (size_t i = n; i-- > 0;) {
    PrimExpr ratio = div(footprint[i], RealConst(static_cast<double>(cache)));
    PrimExpr fit = div(RealConst(1), RealConst(1) + ratio * ratio);
    PrimExpr blended = fit * (store.outer[i] * counted[i]) + (RealConst(1) - fit) * traffic;
    traffic = Choose(store.runs[i], blended, traffic);
  }
  return traffic;
}

/*!
 * \brief In how many contiguous pieces the data of an access lies while loops i and those inside
 *        it run: the last dimensions as far as they are touched as a whole, and what is touched of
 *        the one before them, are one piece.
 */
PrimExpr Pieces(const StoreFacts& store, const AccessInfo& access, size_t i) {
  const Array<PrimExpr>& shape = store.program.buffers[access.buffer]->shape;
  const std::vector<PrimExpr>& region = access.extents[i];
  arith::Analyzer& analyzer = *store.program.analyzer;
  PrimExpr piece = RealConst(1), searching = const_true();
  for (size_t d = region.size(); d-- > 0;) {
    piece = Choose(searching, piece * ToReal(region[d]), piece);
    searching = BothOf(searching, analyzer.Simplify(region[d] == shape[d]));
  }
  return div(access.touched[i], piece);
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

/*! \brief Loads of one body. */
struct TileLoads {
  PrimExpr vectors = RealConst(0), scalars = RealConst(0);
};

/*! \brief What a body loads of an access of which it needs so many elements. */
TileLoads LoadsOf(const StoreFacts& store, const RegisterTile& tile, const AccessInfo& access,
                  const PrimExpr& elements) {
  TileLoads out;
  if (!tile.vector_var().defined() || !Mentions(access, tile.vector_var())) {
    out.scalars = elements;
    return out;
  }
  // Elements come in runs of one vector loop; with a loop of one trip they are scalars.
  PrimExpr is_vector = IsMoreThanOne(tile.vector_length());
  if (Strides(access, tile.vector_var())) {
    // A load and an insertion each.
    out.scalars = Choose(is_vector, RealConst(2) * elements, elements);
    return out;
  }
  const int64_t lanes =
      std::max(1, store.machine.vector_bytes / store.program.element_bytes(store.store.buffer));
  const PrimExpr vectors = CeilDivReal(tile.vector_length(), lanes);
  out.vectors = If(is_vector, div(elements, ToReal(tile.vector_length())) * vectors);
  out.scalars = Choose(is_vector, RealConst(0), elements);
  return out;
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
      const TileLoads loads = LoadsOf(store, tile, access, tile.At(access.touched));
      loaded = loaded + loads.vectors;
      broadcast = broadcast + loads.scalars;
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
    const CountOf bytes = [&](const AccessInfo& access, size_t i) {
      return access.touched[i] * RealConst(store.program.element_bytes(access.buffer));
    };
    for (size_t level = 0; level < std::size(traffic); ++level) {
      traffic[level] = Traffic(store, store.machine.cache_bytes[level], bytes);
      intensity[level] = div(flop, traffic[level]);
    }
  }

  PrimExpr tile_vectors, tile_rows, waste;
  PrimExpr loaded = RealConst(0), broadcast = RealConst(0), vector_ops;
  PrimExpr chunks_per_core, imbalance;
  PrimExpr traffic[3], intensity[3];
};

/*! \brief How often a loop of steps of a reduction directly around the register tile begins. */
PrimExpr TileVisits(const StoreInfo& store) {
  PrimExpr visits = RealConst(1), moves_inside = const_false(), has_loop = const_false();
  for (size_t i = store.loops.size(); i-- > 0;) {
    const LoopInfo& loop = *store.loops[i];
    if (loop.kind == ForKind::kVectorized || loop.kind == ForKind::kUnrolled) continue;
    const PrimExpr trips = ToReal(loop.extent);
    if (Mentions(store.accesses[0], loop.var)) {
      visits = visits * trips;
      moves_inside = EitherOf(moves_inside, IsMoreThanOne(loop.extent));
    } else {
      // Steps of a reduction directly around the tile find it in registers.
      has_loop = EitherOf(has_loop, BothOf(IsMoreThanOne(loop.extent), Opposite(moves_inside)));
      visits = visits * Choose(moves_inside, trips, RealConst(1));
    }
  }
  return If(has_loop, visits);
}

/*!
 * \brief Elements of an access that one body needs: of windows that move by several steps those
 *        that are read, and not their hull; that of four pixels with a stride of two is seven.
 */
PrimExpr ElementsOf(const StoreFacts& store, const RegisterTile& tile, const AccessInfo& access) {
  PrimExpr places = RealConst(static_cast<double>(access.indices.size()));
  for (const LoopRef& loop : store.store.loops) {
    if (loop->kind != ForKind::kUnrolled && loop->kind != ForKind::kVectorized) continue;
    if (Mentions(access, loop->var)) places = places * ToReal(loop->extent);
  }
  return min(tile.At(access.touched), places);
}

struct BoundFacts {
  explicit BoundFacts(const StoreFacts& store) {
    const RegisterTile tile(store.store);
    visits = TileVisits(store.store);
    if (!store.store.cut_axes.empty()) {
      const CutAxis& cut = store.store.cut_axes.front();
      std::vector<LoopRef> written_out;
      for (const LoopRef& loop : store.store.loops) {
        if (loop->kind == ForKind::kUnrolled || loop->kind == ForKind::kVectorized) {
          written_out.push_back(loop);
        }
      }
      arith::Analyzer& analyzer = *store.program.analyzer;
      const PrimExpr steps = ToReal(analyzer.Simplify(IndexExtent(cut.index, written_out)));
      const PrimExpr left = steps - (ToReal(cut.covered) - ToReal(cut.extent));
      // Some lengths leave nothing over.
      const PrimExpr is_cut = LT(cut.extent, cut.covered);
      last_part = Choose(is_cut, div(max(left, RealConst(1)), steps), RealConst(1));
      last_share = If(is_cut, div(steps, ToReal(cut.covered)));
    }
    const CountOf count = [&](const AccessInfo& access, size_t i) {
      return Pieces(store, access, i);
    };
    l2_pieces = Traffic(store, store.machine.cache_bytes[1], count);
    l3_pieces = Traffic(store, store.machine.cache_bytes[2], count);
    for (const AccessInfo& access : store.store.accesses) {
      if (access.buffer == store.store.buffer) continue;  // stays in registers
      const TileLoads part = LoadsOf(store, tile, access, ElementsOf(store, tile, access));
      loads = loads + part.vectors + part.scalars;
    }
  }

  PrimExpr visits;
  PrimExpr last_part = RealConst(1), last_share = RealConst(0);
  PrimExpr l2_pieces, l3_pieces, loads = RealConst(0);
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

FeatureGroup BoundFeatures() {
  using Facts = BoundFacts;
  constexpr FeatureKind kNumber = FeatureKind::kNumber;
  return {"bound", std::vector<FeatureColumn<Facts>>{
                       {"tile_visits", kNumber, [](const Facts& f) { return f.visits; }},
                       {"last_tile_part", kNumber, [](const Facts& f) { return f.last_part; }},
                       {"last_tile_share", kNumber, [](const Facts& f) { return f.last_share; }},
                       {"tile_loads", kNumber, [](const Facts& f) { return f.loads; }},
                       {"l2_pieces", kNumber, [](const Facts& f) { return f.l2_pieces; }},
                       {"l3_pieces", kNumber, [](const Facts& f) { return f.l3_pieces; }},
                   }};
}

}  // namespace auto_scheduler
}  // namespace tvm
