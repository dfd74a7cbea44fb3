/*!
 * \file driver_api.cc
 * \brief The pass pipeline of lowering and its entry points.
 */
#include <tvm/driver/driver_api.h>
#include <tvm/runtime/registry.h>
#include <tvm/target/machine.h>
#include <tvm/te/schedule_pass.h>
#include <tvm/tir/debug_spans.h>
#include <tvm/tir/transform.h>

#include <algorithm>
#include <utility>

namespace tvm {

using transform::Pass;
using transform::PassContext;

TVM_REGISTER_PASS_CONFIG_OPTION("tir.add_lower_pass", Array<Array<Any>>);
TVM_REGISTER_PASS_CONFIG_OPTION("tir.disable_vectorize", bool);
TVM_REGISTER_PASS_CONFIG_OPTION("tir.enable_debug", bool);
TVM_REGISTER_PASS_CONFIG_OPTION("tir.disable_storage_rewrite", bool);
TVM_REGISTER_PASS_CONFIG_OPTION("tir.debug_keep_trivial_loop", bool);

namespace {

/*! \brief Appends the passes the user added to `phase`; the last phase takes all later ones. */
void AddUserPasses(const PassContext& ctx, int phase, Array<Pass>* passes) {
  constexpr int kLastPhase = 3;
  Array<Array<Any>> added = ctx->GetConfig<Array<Array<Any>>>(kAddLowerPass, {});
  for (const Array<Any>& entry : added) {
    TVM_CHECK(entry.size() == 2, ValueError)
        << kAddLowerPass << ": expected pairs [phase, pass], got an entry of " << entry.size();
    auto wanted = entry[0].TryCast<int>();
    auto pass = entry[1].TryCast<Pass>();
    TVM_CHECK(wanted && *wanted >= 0 && pass, TypeError)
        << kAddLowerPass << ": expected pairs [phase, pass], got [" << entry[0].TypeName() << ", "
        << entry[1].TypeName()
        << "]; a phase is 0 to 3, and tvm.tir.transform.prim_func_pass makes a pass of a function";
    if (std::min(*wanted, kLastPhase) == phase) passes->push_back(*pass);
  }
}

/*! \brief Alignment of allocations: a line of the data cache of every CPU we generate for. */
constexpr int kCacheLineBytes = 64;
constexpr int kIndexBits = 32;

int VectorBits() {
  constexpr int kDefaultBits = 256;
  Target target = Target::Current(true);
  return target.defined() ? 8 * MachineFacts::Of(target).vector_bytes : kDefaultBits;
}

/*! \brief Vectors of elementary functions in one piece: LLVM splits what is wider than a register.
 */
int InterleavedVectors() {
  Target target = Target::Current(true);
  return target.defined() && target->kind->name == "llvm" ? 2 : 1;
}

/*! \brief Raises if the current target has warps of another size than fragments need. */
void CheckWarpSize() {
  constexpr int kWarp = 32;
  Target target = Target::Current(true);
  if (!target.defined()) return;
  int64_t threads = target->GetInt("thread_warp_size", kWarp);
  TVM_CHECK(threads == kWarp, ScheduleError)
      << "pragma \"tensor_core\": fragments belong to warps of " << kWarp << " threads, but target "
      << target->str() << " has thread_warp_size " << threads;
}

/*! \brief A function under its name, with the promise of the context about its arrays. */
tir::PrimFunc Published(tir::PrimFunc func, const String& name) {
  func = WithAttr(std::move(func), tvm::attr::kGlobalSymbol, name);
  if (func->attrs.defined() && func->attrs->dict.count(tvm::attr::kNoAlias)) return func;
  return WithAttr(std::move(func), tvm::attr::kNoAlias,
                  PassContext::Current()->GetConfig<bool>("tir.noalias", true));
}

}  // namespace

Array<Pass> LowerPasses(bool simple_mode) {
  namespace pass = tir::transform;
  PassContext ctx = PassContext::Current();
  bool vectorize = !ctx->GetConfig<bool>(kDisableVectorize, false);
  bool check_bounds = ctx->GetConfig<bool>(kInstrumentBoundCheckers, false);
  Array<Pass> passes;
  // Phase 0
  AddUserPasses(ctx, 0, &passes);
  // Phase 1
  passes.push_back(pass::InjectPrefetch());
  passes.push_back(pass::StorageFlatten(kCacheLineBytes, check_bounds));
  passes.push_back(pass::BF16Legalize());
  passes.push_back(pass::WidenIndex(/*only_large=*/true));
  passes.push_back(pass::NarrowDataType(kIndexBits));
  passes.push_back(pass::Simplify());
  AddUserPasses(ctx, 1, &passes);
  // Phase 2
  if (!simple_mode) passes.push_back(pass::LoopPartition());
  passes.push_back(pass::VectorizeLoop(vectorize, VectorBits(), InterleavedVectors()));
  passes.push_back(pass::InjectVirtualThread());
  passes.push_back(pass::InjectDoubleBuffer());
  if (!ctx->GetConfig<bool>("tir.disable_storage_rewrite", false)) {
    passes.push_back(pass::StorageRewrite());
  }
  passes.push_back(pass::UnrollLoop());
  AddUserPasses(ctx, 2, &passes);
  // Phase 3
  passes.push_back(pass::Simplify());
  passes.push_back(pass::RemoveNoOp());
  passes.push_back(pass::RewriteUnsafeSelect());
  passes.push_back(pass::UnswitchLoops());
  AddUserPasses(ctx, 3, &passes);
  if (check_bounds) passes.push_back(pass::InstrumentBoundCheckers());
  if (ctx->GetConfig<bool>("tir.enable_debug", false)) passes.push_back(pass::InstallDebugSpans());
  return passes;
}

IRModule LowerModule(IRModule mod, bool simple_mode) {
  Array<Pass> passes = tir::transform::LowerBlockPasses(mod);
  for (const Pass& pass : LowerPasses(simple_mode)) passes.push_back(pass);
  return transform::Sequential(passes, "lower")(std::move(mod));
}

IRModule LowerPrimFunc(tir::PrimFunc func, const String& name, bool simple_mode) {
  func = Published(std::move(func), name);
  return LowerModule(IRModule::FromExpr(func, name), simple_mode);
}

IRModule ScheduleToModule(const te::Schedule& sch, const Array<ObjectRef>& args, const String& name,
                          const Map<te::Tensor, tir::Buffer>& binds) {
  te::Schedule normalized = sch.normalize();
  const bool keep_trivial_loop =
      PassContext::Current()->GetConfig<bool>("tir.debug_keep_trivial_loop", false);
  tir::Stmt body = te::ScheduleOps(normalized, te::InferBound(normalized), keep_trivial_loop);
  tir::Stmt rewritten = te::SchedulePostProcRewriteForTensorCore(body, normalized, binds);
  if (!rewritten.same_as(body)) CheckWarpSize();
  body = te::ApplyLayouts(rewritten, normalized, binds);
  tir::PrimFunc func = te::SchedulePostProcToPrimFunc(args, body, binds);
  return IRModule::FromExpr(Published(std::move(func), name), name);
}

IRModule LowerSchedule(const te::Schedule& sch, const Array<ObjectRef>& args, const String& name,
                       const Map<te::Tensor, tir::Buffer>& binds, bool simple_mode) {
  return LowerModule(ScheduleToModule(sch, args, name, binds), simple_mode);
}

using Binds = Optional<Map<te::Tensor, tir::Buffer>>;

TVM_REGISTER_GLOBAL("driver.LowerPasses").set_body_typed(LowerPasses);
TVM_REGISTER_GLOBAL("driver.LowerModule").set_body_typed([](IRModule mod, bool simple_mode) {
  return LowerModule(mod, simple_mode);
});
TVM_REGISTER_GLOBAL("driver.LowerPrimFunc")
    .set_body_typed([](tir::PrimFunc func, String name, bool simple_mode) {
      return LowerPrimFunc(func, name, simple_mode);
    });
TVM_REGISTER_GLOBAL("driver.LowerSchedule")
    .set_body_typed([](te::Schedule sch, Array<ObjectRef> args, String name, Binds binds,
                       bool simple_mode) {
      return LowerSchedule(sch, args, name,
                           binds.defined() ? binds.value() : Map<te::Tensor, tir::Buffer>(),
                           simple_mode);
    });
TVM_REGISTER_GLOBAL("driver.ScheduleToModule")
    .set_body_typed([](te::Schedule sch, Array<ObjectRef> args, String name, Binds binds) {
      return ScheduleToModule(sch, args, name,
                              binds.defined() ? binds.value() : Map<te::Tensor, tir::Buffer>());
    });

}  // namespace tvm
