/*!
 * \file build.cc
 * \brief The pass pipeline between lowering and code generation.
 */
#include <tvm/codegen/codegen.h>
#include <tvm/driver/build.h>
#include <tvm/runtime/registry.h>
#include <tvm/target/machine.h>
#include <tvm/tir/launch.h>
#include <tvm/tir/legalize_halves.h>
#include <tvm/tir/transform.h>

#include <algorithm>
#include <string>
#include <unordered_set>
#include <vector>

namespace tvm {

using transform::Pass;
using transform::PassContext;

TVM_REGISTER_PASS_CONFIG_OPTION("tir.disable_assert", bool);
TVM_REGISTER_PASS_CONFIG_OPTION("tir.use_async_copy", bool);
TVM_REGISTER_PASS_CONFIG_OPTION("tir.ptx_ldg32", bool);

namespace {

/*! \brief Appends the pass that lowers types of users, if any has been given operators. */
void LowerCustomDatatypes(Array<Pass>* passes) {
  const runtime::PackedFunc* make = runtime::Registry::Get("tvm.datatype.lowering");
  if (make != nullptr) passes->push_back((*make)());
}

/*! \brief Keeps the kernels and what they call, or the other functions. */
Pass Filter(bool kernels) {
  return tir::transform::CreatePrimFuncPass(
      [kernels](tir::PrimFunc func, IRModule, PassContext) {
        auto target = func->GetAttr<Target>(attr::kTarget);
        bool on_device = tir::GetCallingConv(func) == CallingConv::kDeviceKernelLaunch ||
                         (target && !tir::RunsOnProcessor(*target));
        return on_device == kernels ? func : tir::PrimFunc(nullptr);
      },
      0, kernels ? "driver.KeepKernels" : "driver.KeepHostFunctions");
}

/*! \brief InjectPTXAsyncCopy for functions of te schedules, which have none unless one asks. */
Pass AsyncCopiesOfSchedules() {
  return tir::transform::CreatePrimFuncPass(
      [inject = tir::transform::InjectPTXAsyncCopy()](tir::PrimFunc func, IRModule, PassContext) {
        if (!func->HasNonzeroAttr(tir::attr::kFromLegacyTESchedule)) return func;
        const GlobalVar name("main");
        const IRModule alone = inject(IRModule(Map<GlobalVar, BaseFunc>{{name, func}}));
        return Downcast<tir::PrimFunc>(alone->functions.at(name));
      },
      0, "driver.AsyncCopiesOfSchedules");
}

bool HasScalableVectors(const Target& target) {
  const auto* ask = runtime::Registry::Get("target.has_scalable_vectors");
  return ask != nullptr && (*ask)(target).cast<bool>();
}

bool HasHalfConversions(const Target& target) {
  const auto* ask = runtime::Registry::Get("target.has_half_conversions");
  return ask == nullptr || (*ask)(target).cast<bool>();
}

}  // namespace

Array<Pass> MixedPasses(const Target& target) {
  namespace pass = tir::transform;
  Array<Pass> passes;
  if (!HasScalableVectors(target)) passes.push_back(pass::FixScalableVectors());
  if (target->kind->name == "llvm") passes.push_back(pass::TransposeInRegisters());
  passes.push_back(pass::PromoteAccumulators());
  passes.push_back(pass::BindTarget(target));
  passes.push_back(pass::VerifyMemory());
  passes.push_back(pass::UnifyThreadBinding());
  passes.push_back(pass::ThreadSync("shared"));
  passes.push_back(pass::MergeDynamicSharedMemoryAllocations());
  passes.push_back(pass::ThreadSync("warp"));
  passes.push_back(pass::LowerThreadAllreduce());
  if (target->kind->name == "stackvm") {
    // The interpreter carries out the attributes themselves.
  } else if (PassContext::Current()->GetConfig<bool>("tir.use_async_copy", false)) {
    passes.push_back(pass::InjectPTXAsyncCopy());
  } else if (target->kind->name == "cuda" &&
             MachineFacts::Of(target).compute_capability >= kAsyncCopiesFrom) {
    passes.push_back(AsyncCopiesOfSchedules());
  }
  if (PassContext::Current()->GetConfig<bool>("tir.ptx_ldg32", false)) {
    // Written in Python, as few programs ask for it.
    passes.push_back(runtime::Registry::Require("tir.transform.InjectPTXLDG32")());
  }
  passes.push_back(pass::AnnotateDeviceRegions());
  passes.push_back(pass::SplitHostDevice());
  passes.push_back(pass::MakePackedAPI());
  passes.push_back(pass::LowerDeviceKernelLaunch());
  return passes;
}

Array<Pass> HostPasses(const Target& host) {
  namespace pass = tir::transform;
  Array<Pass> passes;
  passes.push_back(Filter(false));
  passes.push_back(pass::FP8StorageLegalize());
  if (!HasHalfConversions(host)) {
    passes.push_back(pass::FP16ComputeLegalize());
    passes.push_back(pass::FP16StorageLegalize());
  }
  LowerCustomDatatypes(&passes);
  passes.push_back(pass::LowerTVMBuiltin());
  passes.push_back(pass::LowerIntrin());
  if (PassContext::Current()->GetConfig<bool>(kDisableAssert, false)) {
    passes.push_back(pass::SkipAssert());
  }
  return passes;
}

Array<Pass> DevicePasses(const Target& target) {
  namespace pass = tir::transform;
  Array<Pass> passes;
  passes.push_back(Filter(true));
  passes.push_back(pass::FP8StorageLegalize());
  LowerCustomDatatypes(&passes);
  passes.push_back(pass::LowerWarpMemory());
  passes.push_back(pass::Simplify());
  passes.push_back(pass::LowerIntrin());
  return passes;
}

Target HostOf(const Target& target, const Target& host) {
  // A processor launches its own functions, so options such as its vector unit hold for them.
  if (tir::RunsOnProcessor(target)) return target;
  if (host.defined()) return host;
  return target->host.defined() ? target->GetHost() : DefaultTargetHost(target);
}

std::pair<IRModule, IRModule> SplitDevHostFuncs(IRModule lowered, const Target& target,
                                                const Target& host) {
  Target both = tir::RunsOnProcessor(target) ? target : Target(target, HostOf(target, host));
  IRModule mixed = transform::Sequential(MixedPasses(both), "build")(std::move(lowered));
  IRModule on_host = transform::Sequential(HostPasses(HostOf(target, host)), "build_host")(mixed);
  bool kernels =
      std::any_of(mixed->functions.begin(), mixed->functions.end(), [](const auto& entry) {
        const auto* func = entry.second.template as<tir::PrimFuncNode>();
        return func != nullptr &&
               tir::GetCallingConv(GetRef<tir::PrimFunc>(func)) == CallingConv::kDeviceKernelLaunch;
      });
  // Most programs for a processor have no kernels, and need no passes over them.
  if (!kernels) return {on_host, IRModule({}, mixed->attrs)};
  return {on_host, transform::Sequential(DevicePasses(target), "build_device")(mixed)};
}

runtime::Module DeviceBuild(const IRModule& kernels, const Target& target) {
  if (kernels->functions.empty()) return runtime::Module(nullptr);
  return codegen::Build(kernels, target);
}

runtime::Module Build(const Map<Target, IRModule>& lowered, Target host) {
  TVM_CHECK(!lowered.empty(), ValueError) << "build: no target is given; give at least one";
  for (const auto& [target, mod] : lowered) {
    codegen::Generator(target);  // a missing one is reported before the program is looked at
    if (!host.defined() && target->host.defined()) host = target->GetHost();
  }
  for (const auto& [target, mod] : lowered) {
    if (!host.defined() && tir::RunsOnProcessor(target)) host = target;
  }
  // One target that is a processor is its own host, whatever else it is told.
  if (lowered.size() == 1) host = HostOf((*lowered.begin()).first, host);
  if (!host.defined()) host = DefaultTargetHost((*lowered.begin()).first);

  Map<GlobalVar, BaseFunc> on_host;
  std::unordered_set<std::string> names;
  std::vector<runtime::Module> device_modules;
  // What the module says of itself, such as the prefix of its names, holds for all its parts.
  DictAttrs attrs = (*lowered.begin()).second->attrs;
  for (const auto& [target, mod] : lowered) {
    auto [host_part, kernels] = SplitDevHostFuncs(mod, target, host);
    for (const auto& [var, func] : host_part->functions) {
      TVM_CHECK(names.insert(var->name_hint).second, ValueError)
          << "build: two functions are called " << var->name_hint << "; give each its own name";
      on_host.Set(var, func);
    }
    runtime::Module device = DeviceBuild(kernels, target);
    if (device.defined()) device_modules.push_back(device);
  }
  runtime::Module result = codegen::Build(IRModule(on_host, attrs), host);
  for (const runtime::Module& device : device_modules) result.Import(device);
  return result;
}

runtime::Module Build(IRModule lowered, const Target& target) {
  return Build(Map<Target, IRModule>{{target, std::move(lowered)}});
}

using OptionalHost = Optional<Target>;

Target HostOrNone(const OptionalHost& host) {
  return host.defined() ? host.value() : Target(nullptr);
}

TVM_REGISTER_GLOBAL("driver.MixedPasses").set_body_typed(MixedPasses);
TVM_REGISTER_GLOBAL("driver.HostPasses").set_body_typed(HostPasses);
TVM_REGISTER_GLOBAL("driver.DevicePasses").set_body_typed(DevicePasses);
TVM_REGISTER_GLOBAL("driver.HostOf").set_body_typed([](Target target, OptionalHost host) {
  return HostOf(target, HostOrNone(host));
});
TVM_REGISTER_GLOBAL("driver.SplitDevHostFuncs")
    .set_body_typed([](IRModule lowered, Target target, OptionalHost host) {
      auto [on_host, kernels] = SplitDevHostFuncs(lowered, target, HostOrNone(host));
      return Array<IRModule>{on_host, kernels};
    });
TVM_REGISTER_GLOBAL("driver.DeviceBuild").set_body_typed([](IRModule kernels, Target target) {
  return DeviceBuild(kernels, target);
});
TVM_REGISTER_GLOBAL("driver.BuildModules")
    .set_body_typed([](Array<Target> targets, Array<IRModule> modules, OptionalHost host) {
      Map<Target, IRModule> lowered;
      for (size_t i = 0; i < targets.size(); ++i) lowered.Set(targets[i], modules[i]);
      return Build(lowered, HostOrNone(host));
    });

}  // namespace tvm
