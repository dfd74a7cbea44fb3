/*!
 * \file device_model.cc
 */
#include "device_model.h"

#include <tvm/auto_scheduler/knob_point.h>
#include <tvm/auto_scheduler/loop_features.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/te/schedule_pass.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "kernel_facts.h"

namespace tvm {
namespace auto_scheduler {

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
// Resources are used at the same time, but never perfectly so.
constexpr double kNotOverlapped = 0.1;
// Where the next tile is on its way while the present one is used, threads wait at barriers only.
constexpr double kNotOverlappedAhead = 0.05;

double Ceil(double a, double b) { return std::ceil(a / b); }

class KernelModel {
 public:
  KernelModel(const LoopProgram& program, const MachineFacts& machine)
      : program_(program), machine_(machine) {}

  double Seconds(int id, const KernelUse* used) const {
    std::vector<size_t> stores;
    const std::set<int> fragments = FragmentBuffers(program_);
    double operations = 0, chains = 1, tensor_seconds = 0, fragment_sums = 0;
    for (size_t i = 0; i < program_.stores.size(); ++i) {
      const StoreInfo& store = program_.stores[i];
      if (store.kernel != id) continue;
      stores.push_back(i);
      PrimExpr trips = RealConst(1), written_out = RealConst(1);
      for (const LoopRef& loop : store.loops) {
        trips = trips * ToReal(loop->extent);
        if (loop->kind == tir::ForKind::kUnrolled) written_out = written_out * ToReal(loop->extent);
      }
      if (store.on_tensor_cores) {
        tensor_seconds += Value(trips) / TensorRate(store);
        fragment_sums = std::max(fragment_sums, FragmentsOf(store.buffer));
        continue;
      }
      chains = std::max(chains, Value(written_out));
      const double at_once = MovesFragments(fragments, store) ? kElementsOfFragmentMove : 1;
      operations += Value(trips) * Issued(store) / at_once;
    }
    const KernelFacts facts = KernelOf(program_, id, machine_);
    const Traffic traffic = TrafficOf(program_, stores, machine_);
    const double blocks = Value(facts.blocks), threads = Value(facts.threads);
    const double registers = used ? static_cast<double>(used->registers) : Value(facts.registers);
    const double shared =
        used ? static_cast<double>(used->shared_bytes) : Value(facts.shared_bytes);
    const double warps = Ceil(threads, static_cast<double>(machine_.warp_size));
    const double resident = ResidentBlocks(warps, registers, shared);
    TVM_CHECK(resident >= 1, ValueError)
        << "device model: no block of kernel " << id << " fits a multiprocessor: " << threads
        << " threads of " << registers << " registers, " << shared << " bytes of shared memory";

    // The fullest multiprocessor is done last.
    const double cores = machine_.num_cores;
    const double blocks_of_fullest = Ceil(blocks, cores);
    const double share = blocks_of_fullest / blocks;
    const double warps_at_once = std::min(resident, blocks_of_fullest) * warps;
    const double most_warps =
        static_cast<double>(machine_.threads_per_multiprocessor / machine_.warp_size);
    const double busy =
        std::min(1.0, warps_at_once * std::min(chains, kMostOverlapped) / kWarpsForArithmetic);
    const double reached = std::min(1.0, warps_at_once / (kShareOfWarpsForMemory * most_warps)) *
                           std::min(1.0, blocks / cores);
    const double idle_lanes = warps * static_cast<double>(machine_.warp_size) / threads;

    const double tensor_busy =
        std::min(1.0, warps_at_once * std::min(std::max(fragment_sums, 1.0), kMostOverlapped) /
                          kWarpsForArithmetic);
    const double bounds[] = {
        tensor_seconds * share / tensor_busy,
        operations * share * idle_lanes /
            (static_cast<double>(machine_.multiply_adds_per_cycle) * busy * machine_.clock_rate),
        Value(traffic.shared) * share / (kSharedBytesPerCycle * machine_.clock_rate),
        Value(traffic.cache) * share / (kCacheBytesPerCycle * machine_.clock_rate),
        Value(traffic.memory) / (machine_.memory_bandwidth * reached)};
    double longest = 0, sum = 0;
    for (double bound : bounds) {
      longest = std::max(longest, bound);
      sum += bound;
    }
    const double apart = FillsAhead(id) ? kNotOverlappedAhead : kNotOverlapped;
    return kLaunchSeconds + longest + apart * (sum - longest);
  }

 private:
  static double Value(const PrimExpr& e) { return EvaluateAt({e}, {})[0]; }

  /*! \brief Instructions for one stored element: a multiply and an add are one. */
  static double Issued(const StoreInfo& store) {
    const OpCounts counts = CountOps(store.value);
    double all = 0;
    for (double count : counts) all += count;
    const double fused = std::min(counts[static_cast<size_t>(OpKind::kFloatAddSub)],
                                  counts[static_cast<size_t>(OpKind::kFloatMul)]);
    // A copy takes an instruction too.
    return std::max(1.0, all - fused);
  }

  /*! \brief Multiply-adds a second of the tensor cores of one multiprocessor. */
  double TensorRate(const StoreInfo& store) const {
    TVM_CHECK(machine_.tensor_multiply_adds_per_cycle > 0, ValueError)
        << "device model: the program uses tensor cores, which the target does not have";
    const auto operand =
        std::find_if(store.accesses.begin(), store.accesses.end(),
                     [&store](const AccessInfo& access) { return access.buffer != store.buffer; });
    // Twice the elements of half the bits take the same time.
    const double halves = static_cast<double>(program_.element_bytes(operand->buffer)) / 2;
    return static_cast<double>(machine_.tensor_multiply_adds_per_cycle) / halves *
           machine_.clock_rate;
  }

  /*! \brief Whether all tiles that are filled in loops are filled before they are needed. */
  bool FillsAhead(int kernel) const {
    bool found = false;
    for (const RealizeInfo& realize : program_.realizes) {
      if (realize.kernel != kernel || program_.buffers[realize.buffer].scope() != "shared")
        continue;
      const bool in_loop = std::any_of(realize.loops.begin(), realize.loops.end(),
                                       [](const LoopRef& loop) { return !loop->is_thread(); });
      if (!in_loop) continue;
      if (!realize.is_double_buffer) return false;
      found = true;
    }
    return found;
  }

  /*! \brief How many fragments a warp has of a sum. */
  double FragmentsOf(int buffer) const {
    for (const RealizeInfo& realize : program_.realizes) {
      if (realize.buffer == buffer) return Value(ToReal(realize.size())) / kElementsOfFragment;
    }
    return 1;
  }

  double ResidentBlocks(double warps, double registers, double shared) const {
    const double lanes = warps * static_cast<double>(machine_.warp_size);
    double blocks =
        std::min(static_cast<double>(machine_.blocks_per_multiprocessor),
                 std::floor(static_cast<double>(machine_.threads_per_multiprocessor) / lanes));
    blocks =
        std::min(blocks, std::floor(static_cast<double>(machine_.registers_per_multiprocessor) /
                                    (std::max(registers, 1.0) * lanes)));
    if (shared > 0) {
      blocks = std::min(
          blocks,
          std::floor(static_cast<double>(machine_.shared_memory_per_multiprocessor) / shared));
    }
    return blocks;
  }

  const LoopProgram& program_;
  const MachineFacts& machine_;
};

}  // namespace

double ModeledSeconds(const LoopProgram& program, const MachineFacts& machine,
                      const std::vector<KernelUse>& used) {
  const KernelModel model(program, machine);
  const int num_kernels = CountKernels(program);
  TVM_CHECK(num_kernels > 0, ValueError)
      << "device model: the program has no kernel; bind loops to threads";
  TVM_CHECK(used.empty() || static_cast<int>(used.size()) == num_kernels, ValueError)
      << "device model: resources of " << used.size() << " kernels are given, the program has "
      << num_kernels;
  double seconds = 0;
  for (int i = 0; i < num_kernels; ++i) {
    seconds += model.Seconds(i, used.empty() ? nullptr : &used[i]);
  }
  return seconds;
}

/*! \brief (schedule, arguments, target, [[registers, shared bytes] of each kernel]) -> seconds. */
TVM_REGISTER_GLOBAL("auto_scheduler.ModeledSeconds")
    .set_body_typed([](te::Schedule schedule, Array<te::Tensor> args, Target target,
                       Array<Array<Any>> used) {
      std::vector<KernelUse> uses;
      for (const Array<Any>& of_one : used) {
        uses.push_back({of_one[0].cast<int64_t>(), of_one[1].cast<int64_t>()});
      }
      te::Schedule normalized = schedule.normalize_for_feature_extraction();
      te::Stmt body = te::ScheduleOps(normalized, te::InferBound(normalized));
      Array<ObjectRef> params(args.begin(), args.end());
      tir::PrimFunc func = te::SchedulePostProcToPrimFunc(params, body);
      return ModeledSeconds(ReadLoopProgram(func, arith::VarContext::Make()),
                            MachineFacts::Of(target), uses);
    });

}  // namespace auto_scheduler
}  // namespace tvm
