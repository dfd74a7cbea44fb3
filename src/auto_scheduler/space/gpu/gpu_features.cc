/*!
 * \file gpu_features.cc
 * \brief Feature columns of GPUs: what a kernel fills of the machine, and what it moves.
 */
#include <tvm/expr/op.h>

#include <algorithm>
#include <map>

#include "kernel_facts.h"
#include "kernel_times.h"
#include "symbolic_parts.h"

namespace tvm {
namespace auto_scheduler {

using namespace tir;

namespace {

PrimExpr CeilDiv(const PrimExpr& a, const PrimExpr& b) { return floordiv(a + b - 1, b); }

/*! \brief How many rows of features describe a kernel: one for each buffer, of its last store. */
double RowsOf(const LoopProgram& program, int kernel) {
  std::map<int, int> last_kernel;
  for (const StoreInfo& store : program.stores) last_kernel[store.buffer] = store.kernel;
  return static_cast<double>(
      std::count_if(last_kernel.begin(), last_kernel.end(),
                    [kernel](const auto& entry) { return entry.second == kernel; }));
}

/*! \brief A store and the kernel around it; all 0 on the host. */
struct GpuFacts {
  explicit GpuFacts(const StoreFacts& store) {
    if (store.store.kernel < 0) return;
    const MachineFacts& machine = store.machine;
    const KernelFacts kernel = KernelOf(store.program, store.store.kernel, machine);
    threads = ToReal(kernel.threads);
    PrimExpr full_warps = CeilDiv(kernel.threads, IntImm(DataType::Int(64), machine.warp_size));
    warps = ToReal(full_warps);
    idle_lanes = div(warps * RealConst(static_cast<double>(machine.warp_size)), threads);
    virtual_threads = ToReal(kernel.virtual_threads);
    registers = ToReal(kernel.registers);
    shared_bytes = ToReal(kernel.shared_bytes);
    resident_blocks = ToReal(kernel.resident_blocks);
    occupancy = resident_blocks * threads *
                RealConst(1.0 / static_cast<double>(machine.threads_per_multiprocessor));
    // A block that does not fit anywhere still has a number of waves, as if one did.
    PrimExpr at_once =
        max(kernel.resident_blocks, IntImm(DataType::Int(64), 1)) * machine.num_cores;
    waves = div(ToReal(kernel.blocks), ToReal(at_once));
    tail = div(ToReal(CeilDiv(kernel.blocks, at_once)), waves);

    std::vector<size_t> own, all;
    double work = 0;
    for (double count : store.op_counts) work += count;
    PrimExpr kernel_work = RealConst(0), tensor_work = RealConst(0);
    const std::vector<StoreInfo>& stores = store.program.stores;
    for (size_t i = 0; i < stores.size(); ++i) {
      if (stores[i].kernel != store.store.kernel) continue;
      all.push_back(i);
      if (&stores[i] == &store.store) own.push_back(i);
      PrimExpr trips = RealConst(1);
      for (const LoopRef& loop : stores[i].loops) trips = trips * ToReal(loop->extent);
      double operations = 0;
      for (double count : CountOps(stores[i].value)) operations += count;
      kernel_work = kernel_work + trips * RealConst(operations);
      if (stores[i].on_tensor_cores) tensor_work = tensor_work + trips * RealConst(operations);
    }
    kernel_share = RealConst(1.0 / RowsOf(store.program, store.store.kernel));
    tensor_cores = div(tensor_work, max(kernel_work, RealConst(1)));
    Traffic here = TrafficOf(store.program, own, machine);
    uncoalesced = here.uncoalesced;
    bank_conflicts = here.bank_conflicts;
    Traffic whole = TrafficOf(store.program, all, machine);
    memory_bytes = whole.memory;
    cache_bytes = whole.cache;
    shared_traffic = whole.shared;
    const KernelTimes times =
        KernelTimesOf(store.program, store.store.kernel, kernel, whole, machine);
    tensor_cycles = times.tensor_cores;
    arithmetic_cycles = times.arithmetic;
    shared_cycles = times.shared_memory;
    cache_cycles = times.cache;
    memory_cycles = times.memory;
    latency_cycles = times.latency;
    kernel_cycles = times.total;
    auto per_byte = [&](const PrimExpr& bytes) { return div(kernel_work, bytes + RealConst(1)); };
    memory_intensity = per_byte(whole.memory);
    cache_intensity = per_byte(whole.cache);
    shared_intensity = per_byte(whole.shared);
    lanes_busy =
        div(threads * ToReal(kernel.blocks),
            RealConst(static_cast<double>(machine.num_cores * machine.multiply_adds_per_cycle)));
  }

  PrimExpr threads = RealConst(0), warps = RealConst(0), idle_lanes = RealConst(0);
  PrimExpr virtual_threads = RealConst(0), registers = RealConst(0), shared_bytes = RealConst(0);
  PrimExpr resident_blocks = RealConst(0), occupancy = RealConst(0);
  PrimExpr waves = RealConst(0), tail = RealConst(0), lanes_busy = RealConst(0);
  PrimExpr uncoalesced = RealConst(0), bank_conflicts = RealConst(0);
  PrimExpr memory_bytes = RealConst(0), cache_bytes = RealConst(0), shared_traffic = RealConst(0);
  PrimExpr memory_intensity = RealConst(0), cache_intensity = RealConst(0);
  PrimExpr shared_intensity = RealConst(0);
  PrimExpr tensor_cores = RealConst(0);
  PrimExpr kernel_share = RealConst(0), kernel_cycles = RealConst(0);
  PrimExpr tensor_cycles = RealConst(0), arithmetic_cycles = RealConst(0);
  PrimExpr shared_cycles = RealConst(0), cache_cycles = RealConst(0), memory_cycles = RealConst(0);
  PrimExpr latency_cycles = RealConst(0);
};

}  // namespace

FeatureGroup GpuFeatures() {
  using Facts = GpuFacts;
  constexpr FeatureKind kNumber = FeatureKind::kNumber;
  return {"gpu",
          std::vector<FeatureColumn<Facts>>{
              {"threads", kNumber, [](const Facts& f) { return f.threads; }},
              {"warps", kNumber, [](const Facts& f) { return f.warps; }},
              {"idle_lanes", kNumber, [](const Facts& f) { return f.idle_lanes; }},
              {"virtual_threads", kNumber, [](const Facts& f) { return f.virtual_threads; }},
              {"registers", kNumber, [](const Facts& f) { return f.registers; }},
              {"shared_bytes", kNumber, [](const Facts& f) { return f.shared_bytes; }},
              {"resident_blocks", kNumber, [](const Facts& f) { return f.resident_blocks; }},
              {"occupancy", kNumber, [](const Facts& f) { return f.occupancy; }},
              {"waves", kNumber, [](const Facts& f) { return f.waves; }},
              {"tail_of_waves", kNumber, [](const Facts& f) { return f.tail; }},
              {"threads_per_lane", kNumber, [](const Facts& f) { return f.lanes_busy; }},
              {"uncoalesced", kNumber, [](const Facts& f) { return f.uncoalesced; }},
              {"bank_conflicts", kNumber, [](const Facts& f) { return f.bank_conflicts; }},
              {"memory_bytes", kNumber, [](const Facts& f) { return f.memory_bytes; }},
              {"cache_bytes", kNumber, [](const Facts& f) { return f.cache_bytes; }},
              {"shared_traffic", kNumber, [](const Facts& f) { return f.shared_traffic; }},
              {"memory_intensity", kNumber, [](const Facts& f) { return f.memory_intensity; }},
              {"cache_intensity", kNumber, [](const Facts& f) { return f.cache_intensity; }},
              {"shared_intensity", kNumber, [](const Facts& f) { return f.shared_intensity; }},
              {"tensor_cores", kNumber, [](const Facts& f) { return f.tensor_cores; }},
              {"kernel_share", kNumber, [](const Facts& f) { return f.kernel_share; }},
              {"kernel_cycles", kNumber, [](const Facts& f) { return f.kernel_cycles; }},
              {"tensor_cycles", kNumber, [](const Facts& f) { return f.tensor_cycles; }},
              {"arithmetic_cycles", kNumber, [](const Facts& f) { return f.arithmetic_cycles; }},
              {"shared_cycles", kNumber, [](const Facts& f) { return f.shared_cycles; }},
              {"cache_cycles", kNumber, [](const Facts& f) { return f.cache_cycles; }},
              {"memory_cycles", kNumber, [](const Facts& f) { return f.memory_cycles; }},
              {"latency_cycles", kNumber, [](const Facts& f) { return f.latency_cycles; }},
          }};
}

}  // namespace auto_scheduler
}  // namespace tvm
