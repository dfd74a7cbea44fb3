/*!
 * \file program_bound.cc
 * \brief Cycles that a program takes on a processor at least, from its loops alone.
 *
 * Of each store the work of the units of a core is counted, for the loops that are written out (a
 * body) and how often they run: multiply-adds, loads, stores, instructions, chains of sums, lines
 * that cross into each cache. After Williams et al., "Roofline", CACM 52(4), 2009, with a ceiling
 * for each unit. It orders programs before any was measured; it does not say how long they take.
 */
#include <tvm/arith/var_context.h>
#include <tvm/auto_scheduler/loop_features.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/registry.h>
#include <tvm/runtime/threading_backend.h>
#include <tvm/target/machine.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <vector>

#include "per_store_features.h"

namespace tvm {
namespace auto_scheduler {

using namespace tir;

namespace {

// What one cycle of a core does. Two units take multiply-adds and loads, one stores.
constexpr double kMultiplyAdds = 2, kLoads = 2, kStores = 1, kInstructions = 4;
// A dependent multiply-add starts so many cycles after the one before.
constexpr double kLatency = 4;
// A sum that leaves registers comes back from the store before it.
constexpr double kForwarding = 5;
// Instructions of a loop's own.
constexpr double kLoopInstructions = 3;
// Lanes far apart are an access each; where these follow no pattern, their addresses are divided
// for.
constexpr double kSingleLane = 1.5, kIrregularLane = 8;
// What divisions and elementary functions take, in multiply-adds.
constexpr double kDivision = 8, kFunction = 16;
// Bytes a cycle that come into the first cache, the second and the third.
constexpr double kBytesPerCycle[] = {32, 6, 2.5};
// Addresses so far apart share their place in a cache; the third is hashed.
constexpr double kSpan[] = {4096, 65536, 0};
// Lines of which no neighbour is read come without being fetched ahead.
constexpr double kAlone = 3;
// Runs of inner loops so short are written out by the compiler.
constexpr double kCompilerWritesOut = 8;
// What it costs, in cycles, to give work to all cores and to wait for them.
constexpr double kParallelCycles = 4000;
// Units work at the same time, but not perfectly so: the norm of this power is taken.
constexpr double kOverlap = 3;

bool Moves(const AccessInfo& access, const Var& var) {
  bool found = false;
  for (const Array<PrimExpr>& tuple : access.indices) {
    for (const PrimExpr& index : tuple) {
      PostOrderVisit(index, [&](const ObjectRef& node) { found = found || node.same_as(var); });
    }
  }
  return found;
}

/*! \brief One access as the units of a core see it. */
struct AccessWork {
  bool read, written;
  double width;                     // bytes of an element
  double pieces;                    // loads or stores for all lanes of one trip of the vector loop
  std::vector<bool> moves;          // with loop i
  std::vector<double> vectors;      // pieces that differ while loops i and inside run
  std::vector<double> bytes;        // in lines, while loops i and inside run
  std::vector<double> crowding[2];  // how much more of a cache they take for sharing places
  std::vector<double> run;          // bytes side by side
};

class StoreBound {
 public:
  StoreBound(const LoopProgram& program, const StoreInfo& store, const MachineFacts& machine)
      : program_(program), store_(store), machine_(machine), n_(store.loops.size()) {
    for (const LoopRef& loop : store.loops) {
      extents_.push_back(std::max(1.0, KnownTrips(loop->extent)));
    }
    width_ = program.element_bytes(store.buffer);
    lanes_ = std::max(1.0, machine.vector_bytes / width_);
    FindVectors();
    for (const AccessInfo& access : store.accesses) accesses_.push_back(Work(access));
    FindBody();
  }

  double Cycles() const {
    std::vector<double> parts = BodyParts();
    const double bodies = Product(0, body_);
    for (double& part : parts) part *= bodies;
    for (size_t level = 0; level < std::size(kBytesPerCycle); ++level) {
      parts.push_back(Traffic(level));
    }
    double sum = 0;
    for (double part : parts) sum += std::pow(part, kOverlap);
    return std::pow(sum, 1 / kOverlap) * Imbalance();
  }

 private:
  double Product(size_t from, size_t to) const {
    return std::accumulate(extents_.begin() + from, extents_.begin() + to, 1.0,
                           std::multiplies<double>());
  }

  /*! \brief The loop whose trips are lanes, and how many vectors these are. */
  void FindVectors() {
    vector_ = n_;
    size_t inner = n_;
    while (inner > 0 && extents_[inner - 1] == 1) --inner;
    if (inner == 0) return;
    const LoopInfo& loop = *store_.loops[inner - 1];
    const OpCounts ops = CountOps(store_.value);
    // A choice for each element is made element by element.
    const bool chooses = ops[static_cast<size_t>(OpKind::kSelect)] > 0;
    if (loop.kind == ForKind::kVectorized) {
      vector_ = inner - 1;
      lane_trips_ = extents_[vector_];
      vectors_ = chooses ? lane_trips_ : std::ceil(lane_trips_ / lanes_);
      return;
    }
    // What the compiler makes vectors of by itself: neighbours that are no sum.
    bool neighbours = !chooses && loop.kind == ForKind::kSerial;
    for (const AccessInfo& access : store_.accesses) {
      const bool moves = Moves(access, loop.var);
      neighbours = neighbours && (moves || access.type == AccessType::kRead) &&
                   (!moves || Step(access, loop.var, 1) == 1);
    }
    if (neighbours) {
      vector_ = inner - 1;
      lane_trips_ = std::min(extents_[vector_], lanes_);
      vectors_ = 1;
      extents_[vector_] /= lane_trips_;
      split_ = true;
    }
  }

  /*! \brief How far a trip of a loop is from its start in memory, in elements; -1 for a gather. */
  double Step(const AccessInfo& access, const Var& var, int64_t trip) const {
    const Array<PrimExpr>& shape = program_.buffers[access.buffer]->shape;
    const Array<PrimExpr>& tuple = access.indices.front();
    double row = 1, step = 0;
    for (size_t d = tuple.size(); d-- > 0;) {
      auto at = IndexAt(tuple[d], var.get(), trip), origin = IndexAt(tuple[d], nullptr, 0);
      if (!at || !origin) return -1;
      step += static_cast<double>(*at - *origin) * row;
      row *= KnownTrips(shape[d]);
    }
    return step;
  }

  /*! \brief Accesses for the lanes of one trip: lanes side by side come together. */
  double Pieces(const AccessInfo& access) const {
    if (vector_ == n_ || !Moves(access, store_.loops[vector_]->var)) return 1;
    if (split_) return 1;
    const auto lanes = static_cast<int64_t>(lane_trips_);
    const auto width = std::min(lanes, static_cast<int64_t>(lanes_));
    std::vector<double> steps;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      steps.push_back(Step(access, store_.loops[vector_]->var, lane));
    }
    // Whole registers of neighbours, or of one element, are one access each.
    bool whole = true, regular = true;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const double first = steps[lane / width * width], step = steps[1] - steps[0];
      whole = whole && (steps[lane] == first || steps[lane] == first + lane % width) &&
              steps[lane] >= 0;
      regular = regular && steps[lane] == steps[0] + step * static_cast<double>(lane);
    }
    if (whole) return std::ceil(lane_trips_ / lanes_);
    return lane_trips_ * (regular ? kSingleLane : kIrregularLane);
  }

  AccessWork Work(const AccessInfo& access) const {
    AccessWork out;
    out.read = access.type != AccessType::kWrite;
    out.written = access.type != AccessType::kRead;
    out.width = program_.element_bytes(access.buffer);
    out.pieces = Pieces(access);
    for (const LoopRef& loop : store_.loops) out.moves.push_back(Moves(access, loop->var));
    const Array<PrimExpr>& shape = program_.buffers[access.buffer]->shape;
    const double line = machine_.cache_line_bytes;
    for (const std::vector<PrimExpr>& extents : access.extents) {
      // Runs of neighbours, how many there are, and how far apart.
      double run = out.width, rows = 1, pitch = 0, row = out.width;
      bool whole = true;
      double elements = 1;
      for (size_t d = extents.size(); d-- > 0;) {
        const double extent = KnownTrips(extents[d]), size = KnownTrips(shape[d]);
        elements *= extent;
        if (whole) {
          run *= extent;
        } else if (extent > 1) {
          rows *= extent;
          if (pitch == 0) pitch = row;
        }
        whole = whole && extent == size;
        row *= size;
      }
      const double lines = std::ceil(run / line) * line;
      out.vectors.push_back(elements);
      out.bytes.push_back(rows * lines);
      out.run.push_back(run);
      for (int level = 0; level < 2; ++level) {
        double crowding = 1;
        if (rows > 1 && pitch > 0) {
          const double span = kSpan[level];
          const double common = static_cast<double>(
              std::gcd(static_cast<int64_t>(pitch), static_cast<int64_t>(span)));
          const double places = std::min(rows, span / common) * lines;
          crowding = std::max(1.0, span / std::max(places, line));
          // A few rows fit beside each other wherever they lie.
          crowding = std::min(crowding, std::max(1.0, span / lines));
        }
        out.crowding[level].push_back(crowding);
      }
    }
    const double of_lanes = vector_ == n_ ? 1 : std::max(1.0, out.vectors[vector_]);
    for (double& elements : out.vectors) {
      elements = split_ ? std::max(1.0, elements / lanes_)
                        : std::max(1.0, elements / of_lanes) * out.pieces;
    }
    return out;
  }

  /*! \brief The loops that are written out, by us or by the compiler. */
  void FindBody() {
    body_ = vector_ == n_ ? n_ : vector_;
    if (split_) ++body_;
    const double allowed = std::max(KnownTrips(store_.auto_unroll_max_step), kCompilerWritesOut);
    double steps = 1;
    while (body_ > 0) {
      const LoopInfo& loop = *store_.loops[body_ - 1];
      const double extent = extents_[body_ - 1];
      const bool marked = loop.kind == ForKind::kUnrolled || loop.kind == ForKind::kVectorized;
      if (extent > 1 && !marked) {
        if (loop.kind != ForKind::kSerial || steps * extent > allowed) break;
      }
      steps *= extent;
      --body_;
    }
    steps_ = steps;
  }

  /*! \brief Trips of the loops around the body that an access stands still in, side by side. */
  double StandsStill(const AccessWork& access) const {
    double trips = 1;
    for (size_t i = body_; i-- > 0;) {
      if (extents_[i] == 1) continue;
      if (access.moves[i]) break;
      trips *= extents_[i];
    }
    return trips;
  }

  /*! \brief Cycles of one body in each unit. */
  std::vector<double> BodyParts() const {
    const OpCounts counts = CountOps(store_.value);
    double work = 0;
    for (size_t kind = 0; kind < counts.size(); ++kind) {
      double cost = 1;
      if (kind == static_cast<size_t>(OpKind::kFloatDivMod)) cost = kDivision;
      if (kind == static_cast<size_t>(OpKind::kIntDivMod)) cost = kDivision;
      if (kind == static_cast<size_t>(OpKind::kFloatMath)) cost = kFunction;
      work += counts[kind] * cost;
    }
    const double operations = steps_ * vectors_ * work;
    // What stands still in the loop around the body stays in registers, if these suffice.
    double registers = 2;
    for (const AccessWork& access : accesses_) {
      if (StandsStill(access) > 1) registers += access.vectors[body_];
    }
    const bool fits = registers <= machine_.num_vector_registers;
    double loads = 0, stores = 0, chain = 0;
    for (const AccessWork& access : accesses_) {
      const double still = StandsStill(access);
      const double share = fits ? 1 / still : 1.0;
      if (access.read) loads += access.vectors[body_] * share;
      if (access.written) stores += access.vectors[body_] * share;
      if (access.read && access.written) {
        const double sums = std::max(1.0, access.vectors[body_] / access.pieces * vectors_);
        // Sums of other bodies go on meanwhile where the next ones are of other results.
        const double length = still > 1 ? 1.0 : 0.25;
        const double step = still > 1 && !fits ? kLatency + kForwarding : kLatency;
        chain = steps_ * vectors_ / sums * step * length;
      }
    }
    const double instructions = operations + loads + stores + kLoopInstructions;
    return {operations / kMultiplyAdds, loads / kLoads, stores / kStores, chain,
            instructions / kInstructions};
  }

  /*!
   * \brief Cycles for what crosses into a cache.
   *
   * If the data of loops i and inside fits, the cache is filled once for each trip of those
   * outside; data of F bytes fits a cache of C bytes to the degree 1 / (1 + (F / C)^2).
   */
  double Traffic(size_t level) const {
    const auto capacity = static_cast<double>(machine_.cache_bytes[level]);
    auto fit = [&](double bytes) { return 1 / (1 + (bytes / capacity) * (bytes / capacity)); };
    std::vector<double> fits(n_ + 1, 0);
    for (size_t i = 0; i <= n_; ++i) {
      for (const AccessWork& access : accesses_) fits[i] += access.bytes[i];
      fits[i] = fit(fits[i]);
    }
    double cycles = 0;
    for (const AccessWork& access : accesses_) {
      auto cost = [&](size_t i) {
        const bool alone = access.run[i] < 2 * machine_.cache_line_bytes;
        return access.bytes[i] / kBytesPerCycle[level] * (alone ? kAlone : 1.0);
      };
      double traffic = Product(0, n_) * cost(n_);
      for (size_t i = n_; i-- > 0;) {
        if (extents_[i] == 1) continue;
        // Those that share their places push each other out, not the rest.
        const double own = level < 2 ? fit(access.bytes[i] * access.crowding[level][i]) : 1.0;
        const double degree = std::min(own, fits[i]);
        traffic = degree * Product(0, i) * cost(i) + (1 - degree) * traffic;
      }
      cycles += traffic;
    }
    // A program runs again and again, and what fits is still there.
    double all = 0;
    for (const AccessWork& access : accesses_) all += access.bytes[0];
    return cycles * (all / (all + capacity));
  }

  double Imbalance() const {
    double chunks = 1;
    for (size_t i = 0; i < n_; ++i) {
      if (store_.loops[i]->kind == ForKind::kParallel) chunks *= extents_[i];
    }
    return std::ceil(chunks / machine_.num_cores) / chunks;
  }

  const LoopProgram& program_;
  const StoreInfo& store_;
  const MachineFacts& machine_;
  size_t n_;
  std::vector<double> extents_;
  double width_, lanes_;
  /*! \brief The loop of lanes, n_ if there is none. */
  size_t vector_;
  double lane_trips_ = 1, vectors_ = 1;
  /*! \brief Whether the compiler makes the vectors, and their loop goes on around them. */
  bool split_ = false;
  std::vector<AccessWork> accesses_;
  size_t body_ = 0;
  double steps_ = 1;
};

double CyclesOf(const LoopProgram& program, const MachineFacts& machine) {
  double cycles = 1, launches = 0;
  for (const StoreInfo& store : program.stores) {
    cycles += StoreBound(program, store, machine).Cycles();
    double outside = 1;
    for (const LoopRef& loop : store.loops) {
      if (loop->kind == ForKind::kParallel) {
        launches = std::max(launches, outside);
        break;
      }
      outside *= KnownTrips(loop->extent);
    }
  }
  return cycles + (machine.num_cores > 1 ? launches * kParallelCycles : 0);
}

}  // namespace

TVM_REGISTER_GLOBAL("auto_scheduler.BoundCyclesFromPrimFuncs")
    .set_body_typed([](Array<tir::PrimFunc> functions, Target target) {
      const MachineFacts machine = MachineFacts::Of(target);
      std::vector<double> cycles(functions.size());
      runtime::threading::ParallelFor(static_cast<int>(functions.size()), [&](int i) {
        cycles[i] = CyclesOf(ReadLoopProgram(functions[i], arith::VarContext::Make()), machine);
      });
      runtime::NDArray out = runtime::NDArray::Empty({static_cast<int64_t>(cycles.size())},
                                                     DataType::Float(64), Device{kDLCPU, 0});
      out.CopyFromBytes(cycles.data(), cycles.size() * sizeof(double));
      return out;
    });

}  // namespace auto_scheduler
}  // namespace tvm
