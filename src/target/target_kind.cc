/*!
 * \file target_kind.cc
 * \brief Registry of target kinds, and the kinds this project knows by itself.
 */
#include <tvm/node/repr_printer.h>
#include <tvm/runtime/dlpack.h>
#include <tvm/runtime/logging.h>
#include <tvm/target/target_kind.h>

#include <map>
#include <mutex>

namespace tvm {

TVM_REGISTER_NODE(TargetKindNode);

TVM_REGISTER_REPR(TargetKindNode, [](const TargetKindNode* kind, ReprPrinter* p) {
  p->stream << std::string(kind->name);
});

namespace {

struct KindTable {
  std::mutex mutex;
  std::map<std::string, ObjectPtr<TargetKindNode>> kinds;

  static KindTable& Global() {
    static KindTable table;
    return table;
  }
};

std::string Join(const Array<String>& names) {
  std::string text;
  for (const String& name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

}  // namespace

Array<String> TargetKind::List() {
  KindTable& table = KindTable::Global();
  std::lock_guard<std::mutex> lock(table.mutex);
  Array<String> names;
  for (const auto& entry : table.kinds) names.push_back(entry.first);
  return names;
}

TargetKind TargetKind::Get(const String& name) {
  KindTable& table = KindTable::Global();
  {
    std::lock_guard<std::mutex> lock(table.mutex);
    auto it = table.kinds.find(name);
    if (it != table.kinds.end()) return TargetKind(it->second);
  }
  TVM_FATAL(ValueError) << "Target: unknown kind \"" << name << "\"; known kinds: " << Join(List())
                        << ". Register a new one with tvm.target.register_target_kind.";
}

TargetKindEntry TargetKindEntry::Register(const String& name, int device_type) {
  KindTable& table = KindTable::Global();
  ObjectPtr<TargetKindNode> node = make_object<TargetKindNode>();
  node->name = name;
  node->device_type = device_type;
  {
    std::lock_guard<std::mutex> lock(table.mutex);
    bool inserted = table.kinds.emplace(name, node).second;
    TVM_CHECK(inserted, ValueError)
        << "register_target_kind(\"" << name << "\"): this name is taken; choose another one";
  }
  return TargetKindEntry(node)
      .add_option("model", "str")
      .add_option("device", "str")
      .add_option("tag", "str")
      .add_option("libs", "array");
}

TargetKindEntry& TargetKindEntry::set_default_keys(Array<String> keys) {
  node_->default_keys = std::move(keys);
  return *this;
}

TargetKindEntry& TargetKindEntry::add_option(const String& name, const String& type) {
  TVM_CHECK(
      type == "str" || type == "int" || type == "bool" || type == "array" || type == "targets",
      ValueError)
      << "register_target_kind(\"" << node_->name << "\"): option " << name << " has type \""
      << type << "\"; the types are \"str\", \"int\", \"bool\", \"array\" and \"targets\"";
  node_->option_types.Set(name, type);
  return *this;
}

TargetKindEntry& TargetKindEntry::add_feature(const String& name, int64_t value) {
  node_->default_features.Set(name, value);
  return *this;
}

TVM_REGISTER_TARGET_KIND("llvm", kDLCPU)
    .set_default_keys({"cpu"})
    .add_option("mcpu", "str")
    .add_option("mattr", "array")
    .add_option("mtriple", "str")
    // How functions are called on ARM and RISC-V: "soft" or "hard", and the name of the convention.
    .add_option("mfloat-abi", "str")
    .add_option("mabi", "str")
    // TVM's two ways to run code in this process; here is one, which serves both.
    .add_option("jit", "str")
    .add_option("num-cores", "int")
    .add_option("vector-width", "int")
    .add_option("num-vector-registers", "int")
    .add_option("l1-cache-bytes", "int")
    .add_option("l2-cache-bytes", "int")
    .add_option("l3-cache-bytes", "int")
    .add_option("cache-line-bytes", "int")
    .add_option("opt-level", "int")
    // What may be assumed of floating point: LLVM's flags of the same names, and all of them.
    .add_option("fast-math", "bool")
    .add_option("fast-math-nnan", "bool")
    .add_option("fast-math-ninf", "bool")
    .add_option("fast-math-nsz", "bool")
    .add_option("fast-math-arcp", "bool")
    .add_option("fast-math-contract", "bool")
    .add_option("fast-math-reassoc", "bool")
    // The functions join tvm.runtime.system_lib in the program they are linked into.
    .add_option("system-lib", "bool");

TVM_REGISTER_TARGET_KIND("c", kDLCPU)
    .set_default_keys({"cpu"})
    .add_option("mcpu", "str")
    .add_option("mattr", "array")
    .add_option("march", "str")
    .add_option("num-cores", "int")
    .add_option("system-lib", "bool");

// Boards without an operating system, whose toolchains take C.
TVM_REGISTER_TARGET_KIND("micro_dev", kDLCPU)
    .set_default_keys({"micro_dev", "cpu"})
    .add_option("mcpu", "str")
    .add_option("march", "str")
    .add_option("num-cores", "int");

// The options after check_races describe the GPU that is emulated (tvm.target.emulated).
TVM_REGISTER_TARGET_KIND("stackvm", kDLCPU)
    .set_default_keys({"cpu"})
    .add_option("num-cores", "int")
    .add_option("check_races", "bool")
    .add_option("arch", "str")
    .add_option("allow_tf32", "bool")
    .add_option("max_num_threads", "int")
    .add_option("thread_warp_size", "int")
    .add_option("max_threads_per_block", "int")
    .add_option("max_shared_memory_per_block", "int")
    .add_option("max_dynamic_shared_memory_per_block", "int")
    .add_option("max_local_memory_per_block", "int")
    .add_option("max_vthread_extent", "int")
    .add_option("registers_per_block", "int")
    .add_option("l2_cache_size_bytes", "int");

// The limits every CUDA device since compute capability 3.0 grants without opting in; the probe of
// a present device and the user's options override them.
TVM_REGISTER_TARGET_KIND("cuda", kDLCUDA)
    .set_default_keys({"cuda", "gpu"})
    .add_option("arch", "str")
    .add_option("mcpu", "str")
    .add_option("from_device", "int")
    .add_option("max_num_threads", "int")
    .add_option("thread_warp_size", "int")
    .add_option("max_threads_per_block", "int")
    .add_option("max_shared_memory_per_block", "int")
    .add_option("max_dynamic_shared_memory_per_block", "int")
    .add_option("max_local_memory_per_block", "int")
    .add_option("max_vthread_extent", "int")
    .add_option("registers_per_block", "int")
    .add_option("num-cores", "int")
    .add_option("l2_cache_size_bytes", "int")
    // Tensor cores may round operands of float32 products to 10 bits of mantissa (from sm_80).
    .add_option("allow_tf32", "bool")
    // Seconds are from a model of the device (tvm.auto_scheduler.simulated).
    .add_option("simulated", "bool")
    .add_feature("max_num_threads", 1024)
    .add_feature("thread_warp_size", 32)
    .add_feature("max_threads_per_block", 1024)
    .add_feature("max_shared_memory_per_block", 49152)
    .add_feature("max_local_memory_per_block", 1 << 30)
    .add_feature("max_vthread_extent", 8)
    .add_feature("registers_per_block", 65536);

// Limits of blocks of threads, and the number of the device to take them from.
// clang-format off
#define TVM_GPU_OPTIONS                           \
  .add_option("max_num_threads", "int")           \
  .add_option("thread_warp_size", "int")          \
  .add_option("max_threads_per_block", "int")     \
  .add_option("max_shared_memory_per_block", "int") \
  .add_option("from_device", "int")
// clang-format on

TVM_REGISTER_TARGET_KIND("opencl", kDLOpenCL)
    .set_default_keys({"opencl", "gpu"}) TVM_GPU_OPTIONS.add_feature("max_num_threads", 256)
    .add_feature("thread_warp_size", 1);

TVM_REGISTER_TARGET_KIND("metal", kDLMetal)
    .set_default_keys({"metal", "gpu"}) TVM_GPU_OPTIONS.add_feature("max_num_threads", 256)
    .add_feature("thread_warp_size", 16);

TVM_REGISTER_TARGET_KIND("rocm", kDLROCM)
    .set_default_keys({"rocm", "gpu"})
    .add_option("mcpu", "str")
    .add_option("mattr", "array")
    .add_option("mtriple", "str") TVM_GPU_OPTIONS.add_feature("max_num_threads", 256)
    .add_feature("thread_warp_size", 64);

// Known by name, so that schedules and searches can be asked for them; a build says that no
// generator is enabled unless the user registers one.
TVM_REGISTER_TARGET_KIND("vulkan", kDLVulkan)
    .set_default_keys({"vulkan", "gpu"}) TVM_GPU_OPTIONS.add_option("device_name", "str")
    .add_option("device_type", "str")
    .add_option("supports_float16", "bool")
    .add_option("supports_float32", "bool")
    .add_option("supports_float64", "bool")
    .add_option("supports_int8", "bool")
    .add_option("supports_int16", "bool")
    .add_option("supports_int32", "bool")
    .add_option("supports_int64", "bool")
    .add_feature("max_num_threads", 256)
    .add_feature("thread_warp_size", 1);

TVM_REGISTER_TARGET_KIND("opengl", kDLOpenCL)
    .set_default_keys({"opengl", "gpu"})
    .add_option("max_num_threads", "int")
    .add_feature("max_num_threads", 256)
    .add_feature("thread_warp_size", 1);

// Several devices that one program is for. Each is built for its own target.
TVM_REGISTER_TARGET_KIND("composite", kDLCPU).add_option("devices", "targets");

// PTX by way of LLVM, without NVIDIA's compiler.
TVM_REGISTER_TARGET_KIND("nvptx", kDLCUDA)
    .set_default_keys({"cuda", "gpu"})
    .add_option("mcpu", "str")
    .add_option("mtriple", "str")
    .add_option("max_num_threads", "int")
    .add_option("thread_warp_size", "int")
    .add_feature("max_num_threads", 1024)
    .add_feature("thread_warp_size", 32);

#undef TVM_GPU_OPTIONS

TVM_REGISTER_GLOBAL("target.TargetKindGet").set_body_typed(TargetKind::Get);
TVM_REGISTER_GLOBAL("target.ListTargetKinds").set_body_typed(TargetKind::List);
TVM_REGISTER_GLOBAL("target.RegisterTargetKind")
    .set_body_typed([](String name, int device_type, Array<String> keys,
                       Map<String, String> option_types) {
      TargetKindEntry entry = TargetKindEntry::Register(name, device_type);
      entry.set_default_keys(keys);
      for (const auto& option : option_types) entry.add_option(option.first, option.second);
      return TargetKind::Get(name);
    });

}  // namespace tvm
