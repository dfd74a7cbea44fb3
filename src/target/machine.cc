/*!
 * \file machine.cc
 * \brief Which machine a target means, and the facts about it.
 */
#include <tvm/runtime/registry.h>
#include <tvm/runtime/threading_backend.h>
#include <tvm/target/machine.h>

#include <algorithm>
#include <limits>

#include "gpu_architectures.h"

namespace tvm {

namespace {

bool HasKey(const Target& target, const char* wanted) {
  return std::any_of(target->keys.begin(), target->keys.end(),
                     [wanted](const String& key) { return key == wanted; });
}

/*! \brief The first architecture with tensor cores, and the oldest of the table. */
constexpr int kTensorCoresFrom = 70;

/*! \brief Bytes that a block of any CUDA device may have without asking. */
constexpr int64_t kGrantedSharedMemory = 48 << 10;

/*! \brief Whether code runs as blocks of threads; an emulated GPU is one too. */
bool IsGpu(const Target& target) { return HasKey(target, "gpu"); }

/*!
 * \brief Shared memory of a block that asks for it at its launch.
 *
 * From sm_70 on that is what a multiprocessor has, of which from sm_80 on the driver keeps 1 KiB
 * for each block (CUDA C++ Programming Guide, technical specifications per compute capability). A
 * target with less than every CUDA device grants is one that somebody limited.
 */
int64_t MaxDynamicSharedMemory(const Target& target, const GpuArchitecture& gpu, int64_t granted) {
  if (!HasKey(target, "cuda") || granted < kGrantedSharedMemory) return granted;
  const int number = GpuArchitecture::NumberOf(target->GetStr("arch", ""));
  if (number < gpu.number) return granted;
  return std::max(granted, gpu.shared_bytes - (number >= 80 ? int64_t{1} << 10 : 0));
}

}  // namespace

MachineFacts MachineFacts::Of(const Target& target) {
  auto fact = [&target](const char* key, int64_t otherwise) {
    return target->GetInt(key, otherwise);
  };
  MachineFacts facts{};
  facts.cache_line_bytes = static_cast<int>(fact("cache_line_bytes", 64));
  if (IsGpu(target)) {
    const GpuArchitecture& gpu = GpuArchitecture::Of(target->GetStr("arch", ""));
    facts.num_cores = static_cast<int>(fact("num_cores", gpu.multiprocessors));
    // A thread loads 16 bytes at a time; it has 255 registers at most, and spilled values go to
    // memory.
    facts.vector_bytes = 16;
    facts.num_vector_registers = 64;
    facts.warp_size = fact("thread_warp_size", 32);
    facts.max_shared_memory_per_block = fact(
        "max_shared_memory_per_block", HasKey(target, "mali") ? 32 << 10 : kGrantedSharedMemory);
    facts.max_dynamic_shared_memory_per_block =
        fact("max_dynamic_shared_memory_per_block",
             MaxDynamicSharedMemory(target, gpu, facts.max_shared_memory_per_block));
    facts.max_local_memory_per_block = std::numeric_limits<int32_t>::max();
    facts.max_threads_per_block = fact("max_threads_per_block", fact("max_num_threads", 1024));
    facts.max_vthread_extent =
        fact("max_vthread_extent", std::max<int64_t>(1, facts.warp_size / 4));
    facts.cache_bytes[0] = facts.max_shared_memory_per_block;
    facts.cache_bytes[1] = facts.cache_bytes[2] = fact("l2_cache_size_bytes", gpu.l2_bytes);
    facts.max_registers_per_thread = 255;
    facts.registers_per_block = fact("registers_per_block", 65536);
    facts.threads_per_multiprocessor = gpu.threads;
    facts.blocks_per_multiprocessor = gpu.blocks;
    facts.registers_per_multiprocessor = 65536;
    facts.shared_memory_per_multiprocessor = gpu.shared_bytes;
    facts.multiply_adds_per_cycle = gpu.multiply_adds;
    if (HasKey(target, "cuda")) {
      facts.compute_capability = GpuArchitecture::NumberOf(target->GetStr("arch", ""));
      const bool has_tensor_cores = facts.compute_capability >= kTensorCoresFrom;
      facts.tensor_multiply_adds_per_cycle = has_tensor_cores ? gpu.tensor_multiply_adds : 0;
    }
    facts.clock_rate = gpu.clock_rate;
    facts.memory_bandwidth = gpu.memory_bandwidth;
    facts.cache_latency = gpu.l2_latency;
    facts.memory_latency = gpu.memory_latency;
    return facts;
  }
  facts.num_cores = static_cast<int>(
      std::max<int64_t>(1, fact("num_cores", runtime::threading::MaxConcurrency())));
  // What every server of the last decade has at least, for a target that nobody probed.
  facts.vector_bytes = static_cast<int>(fact("vector_width", 256) / 8);
  facts.num_vector_registers = static_cast<int>(fact("num_vector_registers", 16));
  facts.cache_bytes[0] = fact("l1_cache_bytes", 32 << 10);
  facts.cache_bytes[1] = fact("l2_cache_bytes", 256 << 10);
  facts.cache_bytes[2] = fact("l3_cache_bytes", 4 << 20);
  return facts;
}

Target NameMachine(const Target& target) {
  ObjectPtr<TargetNode> node = make_object<TargetNode>(*target.get());
  for (const char* option : {"mtriple", "mcpu", "mattr", "arch", "num-cores"}) {
    if (!target->kind->option_types.count(option) || target->attrs.count(option)) continue;
    // What the probe found out; a name of a processor brings the flags that go with it.
    Any found = target->Find(option);
    if (found.defined() && target->GetStr(option, "") != "") node->attrs.Set(option, found);
  }
  return Target(ObjectPtr<Object>(node));
}

bool IsSameMachine(const Target& target, const Target& recorded) {
  if (target->kind->name != recorded->kind->name) return false;
  // Neither a model's seconds nor a schedule that rounds may come from where they were not asked
  // for.
  for (const char* choice : {"simulated", "allow_tf32"}) {
    if ((target->GetInt(choice, 0) != 0) != (recorded->GetInt(choice, 0) != 0)) return false;
  }
  const Target wanted = NameMachine(target);
  auto text = [](const Target& of, const char* option) {
    return of->attrs.count(option) ? of->GetStr(option, "") : "";
  };
  const std::string ours = text(wanted, "mtriple"), theirs = text(recorded, "mtriple");
  if (!theirs.empty() && theirs.substr(0, theirs.find('-')) != ours.substr(0, ours.find('-'))) {
    return false;
  }
  bool names_processor = false;
  for (const char* option : {"mcpu", "arch", "model"}) {
    const std::string name = text(recorded, option);
    if (name.empty()) continue;
    names_processor = true;
    if (name != text(wanted, option)) return false;
  }
  return !names_processor || text(recorded, "mattr") == text(wanted, "mattr");
}

TVM_REGISTER_GLOBAL("target.VectorBits").set_body_typed([](Target target) {
  return 8 * MachineFacts::Of(target).vector_bytes;
});
TVM_REGISTER_GLOBAL("target.NumVectorRegisters").set_body_typed([](Target target) {
  return MachineFacts::Of(target).num_vector_registers;
});
TVM_REGISTER_GLOBAL("target.CacheBytes").set_body_typed([](Target target) {
  const MachineFacts facts = MachineFacts::Of(target);
  return Array<int64_t>(std::begin(facts.cache_bytes), std::end(facts.cache_bytes));
});
TVM_REGISTER_GLOBAL("target.NumCores").set_body_typed([](Target target) {
  return MachineFacts::Of(target).num_cores;
});
TVM_REGISTER_GLOBAL("target.GpuFacts").set_body_typed([](Target target) {
  const MachineFacts facts = MachineFacts::Of(target);
  return Map<String, Any>{
      {"multiprocessors", facts.num_cores},
      {"warp_size", facts.warp_size},
      {"max_threads_per_block", facts.max_threads_per_block},
      {"max_shared_memory_per_block", facts.max_shared_memory_per_block},
      {"max_dynamic_shared_memory_per_block", facts.max_dynamic_shared_memory_per_block},
      {"max_registers_per_thread", facts.max_registers_per_thread},
      {"registers_per_block", facts.registers_per_block},
      {"threads_per_multiprocessor", facts.threads_per_multiprocessor},
      {"blocks_per_multiprocessor", facts.blocks_per_multiprocessor},
      {"registers_per_multiprocessor", facts.registers_per_multiprocessor},
      {"shared_memory_per_multiprocessor", facts.shared_memory_per_multiprocessor},
      {"multiply_adds_per_cycle", facts.multiply_adds_per_cycle},
      {"tensor_multiply_adds_per_cycle", facts.tensor_multiply_adds_per_cycle},
      {"compute_capability", facts.compute_capability},
      {"clock_rate", facts.clock_rate},
      {"memory_bandwidth", facts.memory_bandwidth},
      {"cache_latency", facts.cache_latency},
      {"memory_latency", facts.memory_latency},
      {"l2_bytes", facts.cache_bytes[1]}};
});
TVM_REGISTER_GLOBAL("target.NameMachine").set_body_typed(NameMachine);
TVM_REGISTER_GLOBAL("target.IsSameMachine").set_body_typed(IsSameMachine);

}  // namespace tvm
