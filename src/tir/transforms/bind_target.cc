/*!
 * \file src/tir/transforms/bind_target.cc
 * \brief Which target functions, and parts of them, are for.
 */
#include <tvm/runtime/registry.h>
#include <tvm/target/target.h>
#include <tvm/tir/launch.h>

#include <unordered_set>
#include <utility>

#include "pass_common.h"

namespace tvm {
namespace tir {

Target WithoutHost(const Target& target) {
  if (!target->host.defined()) return target;
  auto node = make_object<TargetNode>(*target.get());
  node->host = NullOpt;
  return Target(ObjectPtr<Object>(node));
}

bool RunsOnProcessor(const Target& target) {
  for (const String& key : target->keys) {
    if (key == "gpu") return false;
  }
  return target->GetTargetDeviceType() == kDLCPU;
}

namespace {

/*! \brief Marks what only a device can run with the device's target. */
class DeviceRegionMarker final : public StmtMutator {
 public:
  explicit DeviceRegionMarker(Target device) : device_(std::move(device)) {}

 private:
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    if (op->attr_key == attr::kTarget) return GetRef<Stmt>(op);
    bool on_device = op->attr_key == attr::thread_extent || op->attr_key == attr::device_scope ||
                     op->attr_key == attr::pipeline_exec_scope;
    if (!on_device) return StmtMutator::VisitStmt_(op);
    return AttrStmt(device_, attr::kTarget, PrimExpr(0), GetRef<Stmt>(op));
  }

  Target device_;
};

/*! \brief Which functions are called by code that runs on threads, and which by other code. */
class CallerFinder final : public StmtExprVisitor {
 public:
  std::unordered_set<const GlobalVarNode*> by_host, by_device;

  explicit CallerFinder(const IRModule& mod) : mod_(mod) {
    for (const auto& [var, func] : mod->functions) {
      if (func->GetAttr<String>(attr::kGlobalSymbol).has_value()) Visit(func);
    }
  }

 private:
  void Visit(const BaseFunc& func) {
    if (const auto* node = func.as<PrimFuncNode>()) VisitStmt(node->body);
  }
  void VisitExpr_(const CallNode* op) final {
    StmtExprVisitor::VisitExpr_(op);
    const auto* callee = op->op.as<GlobalVarNode>();
    if (callee == nullptr) return;
    if (!(on_threads_ ? by_device : by_host).insert(callee).second) return;
    if (Optional<BaseFunc> func = mod_->functions.Get(GetRef<GlobalVar>(callee))) {
      Visit(func.value());
    }
  }
  void VisitStmt_(const AttrStmtNode* op) final {
    bool outer = on_threads_;
    on_threads_ =
        on_threads_ || op->attr_key == attr::thread_extent || op->attr_key == attr::virtual_thread;
    StmtExprVisitor::VisitStmt_(op);
    on_threads_ = outer;
  }
  void VisitStmt_(const ForNode* op) final {
    bool outer = on_threads_;
    on_threads_ = on_threads_ || op->kind == ForKind::kThreadBinding;
    StmtExprVisitor::VisitStmt_(op);
    on_threads_ = outer;
  }

  const IRModule& mod_;
  bool on_threads_ = false;
};

PrimFunc Bind(const GlobalVar& var, PrimFunc func, const Target& target,
              const CallerFinder& callers) {
  // A function without a name of its own is called by others of the module only.
  bool is_private = !func->GetAttr<String>(attr::kGlobalSymbol).has_value();
  Target host = target->GetHost();
  if (auto own = func->GetAttr<Target>(attr::kTarget)) {
    bool lacks_host = host.defined() && !(*own)->GetHost().defined() && !is_private;
    return lacks_host ? WithAttr(func, attr::kTarget, Target(*own, host)) : func;
  }
  if (func->HasNonzeroAttr(attr::kIsHostFunc)) {
    // What tvm.build takes, too, where a device names no host.
    if (!host.defined()) host = Target(String("llvm"));
    func = WithoutAttr(std::move(func), attr::kIsHostFunc);
    return WithAttr(std::move(func), attr::kTarget, Target(host, host));
  }
  if (!is_private) return WithAttr(std::move(func), attr::kTarget, target);
  bool of_host = host.defined() && callers.by_host.count(var.get()) != 0 &&
                 callers.by_device.count(var.get()) == 0;
  return WithAttr(std::move(func), attr::kTarget, of_host ? host : WithoutHost(target));
}

/*! \brief Marks the function that callers from outside begin with, if there is only one. */
IRModule AnnotateEntry(IRModule mod) {
  GlobalVar entry(nullptr);
  for (const auto& [var, func] : mod->functions) {
    bool only = mod->functions.size() == 1;
    if (!only && !func->GetAttr<String>(attr::kGlobalSymbol).has_value()) continue;
    if (entry.defined() || func.as<PrimFuncNode>() == nullptr) return mod;
    entry = var;
  }
  if (!entry.defined()) return mod;
  Map<GlobalVar, BaseFunc> functions = mod->functions;
  functions.Set(entry, WithAttr(Downcast<PrimFunc>(functions[entry]), attr::kIsEntryFunc, true));
  return IRModule(functions, mod->attrs);
}

}  // namespace

namespace transform {

Pass BindTarget(const Target& target) {
  auto run = [target](IRModule mod, PassContext) {
    CallerFinder callers(mod);
    Map<GlobalVar, BaseFunc> functions;
    for (const auto& [var, base] : mod->functions) {
      bool tensor_program = base.as<PrimFuncNode>() != nullptr;
      functions.Set(var, tensor_program
                             ? BaseFunc(Bind(var, Downcast<PrimFunc>(base), target, callers))
                             : base);
    }
    return IRModule(functions, mod->attrs);
  };
  return tvm::transform::CreateModulePass(run, 0, "tir.BindTarget");
}

Pass AnnotateEntryFunc() {
  return tvm::transform::CreateModulePass(
      [](IRModule mod, PassContext) { return AnnotateEntry(std::move(mod)); }, 0,
      "tir.AnnotateEntryFunc");
}

Pass AnnotateDeviceRegions() {
  return BodyPass("tir.AnnotateDeviceRegions", [](const PrimFunc& func, const PassContext&) {
    auto target = func->GetAttr<Target>(attr::kTarget);
    TVM_CHECK(target.has_value(), ValueError)
        << "AnnotateDeviceRegions: function " << func->GetAttr<String>(attr::kGlobalSymbol, "main")
        << " has no target; run BindTarget before";
    if (!(*target)->GetHost().defined()) return func->body;
    return DeviceRegionMarker(WithoutHost(*target))(func->body);
  });
}

TVM_REGISTER_GLOBAL("tir.transform.BindTarget").set_body_typed(BindTarget);
TVM_REGISTER_GLOBAL("tir.transform.AnnotateEntryFunc").set_body_typed(AnnotateEntryFunc);
TVM_REGISTER_GLOBAL("tir.transform.AnnotateDeviceRegions").set_body_typed(AnnotateDeviceRegions);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
