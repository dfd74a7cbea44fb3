/*!
 * \file kernel_times.cc
 */
#include "kernel_times.h"

#include <tvm/auto_scheduler/loop_features.h>
#include <tvm/expr/op.h>

#include <algorithm>
#include <set>

namespace tvm {
namespace auto_scheduler {

using namespace tir;

namespace {

// Of NVIDIA's architectures since Volta: a launch and the end of it, bytes that a multiprocessor
// exchanges in a cycle with its shared memory and with the L2 cache, warps that hide the four
// cycles of dependent arithmetic on its four schedulers, and the share of all warps that keeps the
// memory busy (Jia et al., "Dissecting the NVIDIA Volta GPU architecture via microbenchmarking",
// 2018).
constexpr double kLaunchSeconds = 2e-6;
constexpr double kSharedBytesPerCycle = 128;
constexpr double kCacheBytesPerCycle = 64;
constexpr double kWarpsForArithmetic = 16;
constexpr double kShareOfWarpsForMemory = 0.25;
// Accumulators of one thread whose chains the hardware overlaps.
constexpr double kMostOverlapped = 4;
// What the 32 threads of a warp have of a sum in one fragment, and what one of them moves at a
// time.
constexpr double kElementsOfFragment = 256;
constexpr double kElementsOfFragmentMove = 8;
// Resources are used at the same time, but never perfectly so: of all but the longest, this part
// adds to it.
constexpr double kNotOverlapped = 0.1;
// What an asynchronous copy moves at least (PTX ISA, cp.async).
constexpr int64_t kLeastAsyncBytes = 4;
// Where the next tile is on its way while the present one is used, threads wait at barriers only.
constexpr double kNotOverlappedAhead = 0.05;

PrimExpr AtMost(const PrimExpr& value, double limit) { return min(value, RealConst(limit)); }

/*! \brief Instructions for one stored element: a multiply and an add are one. */
double Issued(const StoreInfo& store) {
  const OpCounts counts = CountOps(store.value);
  double all = 0;
  for (double count : counts) all += count;
  const double fused = std::min(counts[static_cast<size_t>(OpKind::kFloatAddSub)],
                                counts[static_cast<size_t>(OpKind::kFloatMul)]);
  // A copy takes an instruction too.
  return std::max(1.0, all - fused);
}

/*! \brief Multiply-adds a cycle of the tensor cores of one multiprocessor. */
double TensorRate(const LoopProgram& program, const StoreInfo& store, const MachineFacts& machine) {
  TVM_CHECK(machine.tensor_multiply_adds_per_cycle > 0, ValueError)
      << "device model: the program uses tensor cores, which the target does not have";
  const auto operand =
      std::find_if(store.accesses.begin(), store.accesses.end(),
                   [&store](const AccessInfo& access) { return access.buffer != store.buffer; });
  // Twice the elements of half the bits take the same time.
  const double halves = static_cast<double>(program.element_bytes(operand->buffer)) / 2;
  return static_cast<double>(machine.tensor_multiply_adds_per_cycle) / halves;
}

/*! \brief How many fragments a warp has of a sum. */
PrimExpr FragmentsOf(const LoopProgram& program, int buffer) {
  for (const RealizeInfo& realize : program.realizes) {
    if (realize.buffer == buffer) {
      return ToReal(realize.size()) * RealConst(1 / kElementsOfFragment);
    }
  }
  return RealConst(1);
}

/*! \brief Whether a buffer of shared memory is filled from global memory. */
bool IsFetched(const LoopProgram& program, int buffer) {
  return std::any_of(program.stores.begin(), program.stores.end(), [&](const StoreInfo& store) {
    return store.buffer == buffer &&
           std::any_of(store.accesses.begin(), store.accesses.end(), [&](const AccessInfo& access) {
             return MemoryOf(program, access) == Memory::kGlobal;
           });
  });
}

/*!
 * \brief Whether the copies that fill a buffer move as much as asynchronous ones have to; bool.
 *
 * Those that move less are carried out by their threads, which wait for what they have loaded.
 */
PrimExpr AreAsynchronous(const LoopProgram& program, int buffer) {
  PrimExpr all = const_true();
  for (const StoreInfo& store : program.stores) {
    if (store.buffer != buffer) continue;
    PrimExpr bytes = IntImm(DataType::Int(64), program.element_bytes(buffer));
    for (const LoopRef& loop : store.loops) {
      if (loop->kind != ForKind::kVectorized) continue;
      bytes = bytes * cast(DataType::Int(64), loop->extent);
    }
    all = BothOf(all, LE(IntImm(DataType::Int(64), kLeastAsyncBytes), bytes));
  }
  return all;
}

/*! \brief How the tiles of a kernel come into shared memory. */
struct Fetches {
  /*! \brief Whether all that are filled in loops are filled before they are needed, and whether
   *         some are not; bool. A loop of one trip is none, since lowering with numbers drops it.
   */
  PrimExpr ahead, waited_for;
  /*! \brief Latencies that a block waits for one after the other, float64; 0 without tiles. */
  PrimExpr rounds = RealConst(0);
};

Fetches FetchesOf(const LoopProgram& program, int kernel) {
  Fetches out;
  PrimExpr some = const_false(), others = const_false();
  for (const RealizeInfo& realize : program.realizes) {
    if (realize.kernel != kernel || program.buffers[realize.buffer].scope() != "shared") continue;
    PrimExpr in_loop = const_false(), trips = RealConst(1);
    for (const LoopRef& loop : realize.loops) {
      if (loop->is_thread()) continue;
      in_loop = EitherOf(in_loop, IsMoreThanOne(loop->extent));
      trips = trips * ToReal(loop->extent);
    }
    PrimExpr is_ahead = is_zero(realize.trips_ahead) ? const_false() : const_true();
    if (realize.is_async) is_ahead = AreAsynchronous(program, realize.buffer);
    some = EitherOf(some, BothOf(in_loop, is_ahead));
    others = EitherOf(others, BothOf(in_loop, Opposite(is_ahead)));
    if (!IsFetched(program, realize.buffer)) continue;
    PrimExpr rounds = trips;
    if (!is_zero(is_ahead)) {
      // Each time that the innermost loop begins, nothing is on its way.
      const PrimExpr inner = ToReal(realize.inner_trips());
      rounds = Choose(is_ahead,
                      div(trips, inner) *
                          (RealConst(1) + div(inner - RealConst(1), ToReal(realize.trips_ahead))),
                      trips);
    }
    out.rounds = max(out.rounds, rounds);
  }
  out.ahead = BothOf(some, Opposite(others));
  out.waited_for = others;
  return out;
}

}  // namespace

KernelTimes KernelTimesOf(const LoopProgram& program, int kernel, const KernelFacts& facts,
                          const Traffic& traffic, const MachineFacts& machine) {
  const std::set<int> fragments = FragmentBuffers(program);
  PrimExpr instructions = RealConst(0), chains = RealConst(1);
  PrimExpr tensor_cycles = RealConst(0), sums = RealConst(1);
  for (const StoreInfo& store : program.stores) {
    if (store.kernel != kernel) continue;
    PrimExpr trips = RealConst(1), written_out = RealConst(1);
    for (const LoopRef& loop : store.loops) {
      trips = trips * ToReal(loop->extent);
      if (loop->kind == tir::ForKind::kUnrolled) written_out = written_out * ToReal(loop->extent);
    }
    if (store.on_tensor_cores) {
      tensor_cycles = tensor_cycles + trips * RealConst(1 / TensorRate(program, store, machine));
      sums = max(sums, FragmentsOf(program, store.buffer));
      continue;
    }
    chains = max(chains, written_out);
    const double at_once = MovesFragments(fragments, store) ? kElementsOfFragmentMove : 1;
    instructions = instructions + trips * RealConst(Issued(store) / at_once);
  }

  const PrimExpr warp_size = IntImm(DataType::Int(64), machine.warp_size);
  const PrimExpr cores = IntImm(DataType::Int(64), machine.num_cores);
  const PrimExpr warps = ToReal(floordiv(facts.threads + (warp_size - 1), warp_size));
  const PrimExpr blocks = ToReal(facts.blocks);
  // The fullest multiprocessor is done last.
  const PrimExpr fullest = ToReal(floordiv(facts.blocks + (cores - 1), cores));
  const PrimExpr share = div(fullest, blocks);
  const PrimExpr resident = max(ToReal(facts.resident_blocks), RealConst(1));
  const PrimExpr warps_at_once = min(resident, fullest) * warps;
  auto busy = [&](const PrimExpr& overlapped) {
    const PrimExpr filled = warps_at_once * AtMost(overlapped, kMostOverlapped);
    return AtMost(filled * RealConst(1 / kWarpsForArithmetic), 1);
  };
  const double enough_warps =
      kShareOfWarpsForMemory *
      static_cast<double>(machine.threads_per_multiprocessor / machine.warp_size);
  const Fetches fetches = FetchesOf(program, kernel);
  // Copies that go on by themselves are kept waiting by their latency alone.
  const PrimExpr reached =
      Choose(fetches.ahead, RealConst(1), AtMost(warps_at_once * RealConst(1 / enough_warps), 1)) *
      AtMost(blocks * RealConst(1.0 / machine.num_cores), 1);
  const PrimExpr idle_lanes =
      div(warps * RealConst(static_cast<double>(machine.warp_size)), ToReal(facts.threads));

  KernelTimes times;
  times.tensor_cores = div(tensor_cycles * share, busy(sums));
  times.arithmetic =
      div(instructions * share * idle_lanes,
          busy(chains) * RealConst(static_cast<double>(machine.multiply_adds_per_cycle)));
  times.shared_memory = traffic.shared * share * RealConst(1 / kSharedBytesPerCycle);
  times.cache = traffic.cache * share * RealConst(1 / kCacheBytesPerCycle);
  times.memory =
      div(traffic.memory * RealConst(machine.clock_rate / machine.memory_bandwidth), reached);
  PrimExpr longest = RealConst(0), sum = RealConst(0);
  for (const PrimExpr& cycles :
       {times.tensor_cores, times.arithmetic, times.shared_memory, times.cache, times.memory}) {
    longest = max(longest, cycles);
    sum = sum + cycles;
  }
  // A part of what is read comes from memory, the rest out of the cache.
  const PrimExpr from_memory = div(traffic.memory, max(traffic.cache, RealConst(1)));
  const double cache_latency = static_cast<double>(machine.cache_latency);
  const double memory_latency = static_cast<double>(machine.memory_latency);
  const PrimExpr latency =
      RealConst(cache_latency) + from_memory * RealConst(memory_latency - cache_latency);
  const PrimExpr at_once = min(resident, fullest);
  const PrimExpr own_work = Choose(fetches.waited_for, div(longest, at_once), RealConst(0));
  times.latency = div(fullest, at_once) * fetches.rounds * latency + own_work;
  const PrimExpr apart =
      Choose(fetches.ahead, RealConst(kNotOverlappedAhead), RealConst(kNotOverlapped));
  times.total = RealConst(kLaunchSeconds * machine.clock_rate) + max(longest, times.latency) +
                apart * (sum - longest);
  return times;
}

}  // namespace auto_scheduler
}  // namespace tvm
