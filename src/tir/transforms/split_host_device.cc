/*!
 * \file src/tir/transforms/split_host_device.cc
 * \brief Kernels become functions of their own, launched by the host.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/target/target.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/launch.h>

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pass_common.h"

namespace tvm {
namespace tir {
namespace {

/*!
 * \brief A kernel's body with variables of its own.
 *
 * The host keeps those that it launches with, and other kernels may have the same threads; each
 * variable is then bound by one function only.
 */
class OwnVariables final : public StmtMutator {
 public:
  Stmt Rewrite(const Stmt& body, Array<Var>* params) {
    *params = params->Map([this](const Var& param) { return Renew(param); });
    PostOrderVisit(body, [this](const ObjectRef& node) {
      const auto* fact = node.as<AttrStmtNode>();
      bool launch = fact != nullptr && fact->attr_key == attr::thread_extent;
      const auto* axis = launch ? fact->node.as<IterVarNode>() : nullptr;
      if (axis != nullptr && fresh_.count(axis->var.get()) == 0) Renew(axis->var);
    });
    return VisitStmt(Substitute(body, fresh_));
  }

 private:
  Var Renew(const Var& var) {
    Var fresh = var.copy_with_suffix("");
    fresh_[var.get()] = fresh;
    return fresh;
  }
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    Stmt body = VisitStmt(op->body);
    ObjectRef node = op->node;
    // Other attributes speak of loops, which keep their variables.
    const auto* axis = node.as<IterVarNode>();
    if (axis != nullptr && op->attr_key == attr::thread_extent) {
      Var var = Downcast<Var>(fresh_.at(axis->var.get()));
      node = IterVar(axis->dom, var, axis->iter_type, axis->thread_tag);
    }
    if (node.same_as(op->node) && body.same_as(op->body)) return GetRef<Stmt>(op);
    return AttrStmt(node, op->attr_key, op->value, body);
  }

  std::unordered_map<const VarNode*, PrimExpr> fresh_;
};

/*! \brief Launch parameters of a kernel in the order in which its body mentions them. */
class LaunchCollector final : public StmtExprVisitor {
 public:
  explicit LaunchCollector(std::string kernel) : kernel_(std::move(kernel)) {}

  Array<String> tags;
  Array<PrimExpr> extents;
  /*! \brief Bytes of dynamic shared memory; undefined when there is none. */
  PrimExpr dynamic_bytes;

 private:
  void VisitStmt_(const AttrStmtNode* op) final {
    if (op->attr_key == attr::thread_extent) AddThread(Downcast<IterVar>(op->node), op->value);
    StmtExprVisitor::VisitStmt_(op);
  }

  void VisitStmt_(const AllocateNode* op) final {
    if (StorageScopeOf(op->buffer_var) == "shared.dyn") {
      TVM_CHECK(!dynamic_bytes.defined(), ValueError)
          << "SplitHostDevice: " << kernel_ << " has more than one allocation of scope "
          << "\"shared.dyn\", the second is " << op->buffer_var
          << "; run MergeDynamicSharedMemoryAllocations before";
      dynamic_bytes = make_const(DataType::Int(32), op->dtype.bytes() * op->dtype.lanes());
      for (const PrimExpr& extent : op->extents) dynamic_bytes = dynamic_bytes * extent;
      dynamic_bytes = analyzer_.Simplify(dynamic_bytes);
    }
    StmtExprVisitor::VisitStmt_(op);
  }

  void AddThread(const IterVar& thread, const PrimExpr& extent) {
    for (size_t i = 0; i < tags.size(); ++i) {
      if (tags[i] != thread->thread_tag) continue;
      TVM_CHECK(analyzer_.CanProveEqual(extents[i], extent), ValueError)
          << "SplitHostDevice: " << kernel_ << " uses " << thread->thread_tag << " with extent "
          << extents[i] << " and with extent " << extent
          << "; a launch has one extent per axis, so bind loops of the same extent";
      return;
    }
    tags.push_back(thread->thread_tag);
    extents.push_back(extent);
  }

  std::string kernel_;
  arith::Analyzer analyzer_;
};

class HostDeviceSplitter final : public StmtMutator {
 public:
  HostDeviceSplitter(const PrimFunc& func, std::string name)
      : func_(func), name_(std::move(name)) {}

  /*! \brief Kernels found, each with its name. */
  std::vector<std::pair<std::string, PrimFunc>> kernels;

 private:
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    if (op->attr_key != attr::thread_extent) return StmtMutator::VisitStmt_(op);
    return Split(GetRef<Stmt>(op));
  }

  Stmt Split(const Stmt& body) {
    std::string kernel = name_ + "_kernel" + std::to_string(kernels.size());
    LaunchCollector launch(kernel);
    launch(body);
    Array<Var> handles, scalars;
    for (const Var& var : UndefinedVars(body, {})) {
      std::string scope = StorageScopeOf(var);
      TVM_CHECK(scope == "global", ValueError)
          << "SplitHostDevice: kernel " << kernel << " uses " << var << " of scope " << scope
          << ", which is allocated outside of it; allocate it inside of the kernel, or give it the "
             "scope \"global\"";
      (var->dtype.is_handle() ? handles : scalars).push_back(var);
    }
    Array<Var> params = handles;
    for (const Var& var : scalars) params.push_back(var);
    Array<PrimExpr> args{StringImm(kernel)};
    for (const Var& param : params) args.push_back(param);
    for (size_t i = 0; i < launch.tags.size(); ++i) {
      CheckKnownToHost(body, launch.extents[i], kernel, launch.tags[i]);
      args.push_back(launch.extents[i]);
    }
    if (launch.dynamic_bytes.defined()) {
      CheckKnownToHost(body, launch.dynamic_bytes, kernel, "dynamic shared memory");
      launch.tags.push_back(attr::kUseDynSharedMemory);
      args.push_back(launch.dynamic_bytes);
    }
    Stmt own_body = OwnVariables().Rewrite(body, &params);
    PrimFunc device(params, own_body);
    device = WithAttr(std::move(device), attr::kGlobalSymbol, String(kernel));
    device = WithAttr(std::move(device), attr::kCallingConv,
                      static_cast<int>(CallingConv::kDeviceKernelLaunch));
    device = WithAttr(std::move(device), attr::kKernelLaunchParams, launch.tags);
    device = WithAttr(std::move(device), attr::kNoAlias, func_->HasNonzeroAttr(attr::kNoAlias));
    if (auto target = func_->GetAttr<Target>(attr::kTarget)) {
      device = WithAttr(std::move(device), attr::kTarget, WithoutHost(*target));
    }
    kernels.emplace_back(kernel, device);
    return Evaluate(Call(DataType::Int(32), builtin::tvm_call_packed(), args));
  }

  /*! \brief An extent may mention what the kernel is given, nothing that the kernel computes. */
  static void CheckKnownToHost(const Stmt& body, const PrimExpr& value, const std::string& kernel,
                               const std::string& what) {
    PostOrderVisit(body, [&](const ObjectRef& node) {
      Var bound;
      if (const auto* let = node.as<LetStmtNode>()) bound = let->var;
      if (const auto* loop = node.as<ForNode>()) bound = loop->loop_var;
      if (!bound.defined()) return;
      TVM_CHECK(!UsesVar(value, [&](const VarNode* used) { return used == bound.get(); }),
                ValueError)
          << "SplitHostDevice: the launch of " << kernel << " needs " << what << " = " << value
          << ", but " << bound << " is known inside of the kernel only; make it a constant or a "
          << "function of the arguments";
    });
  }

  static Target WithoutHost(const Target& target) {
    if (!target->host.defined()) return target;
    auto node = make_object<TargetNode>(*target.get());
    node->host = NullOpt;
    return Target(ObjectPtr<Object>(node));
  }

  PrimFunc func_;
  std::string name_;
};

IRModule SplitModule(IRModule mod) {
  Map<GlobalVar, BaseFunc> functions;
  bool changed = false;
  for (const auto& [var, base] : mod->functions) {
    const auto* node = base.as<PrimFuncNode>();
    if (node == nullptr ||
        GetCallingConv(GetRef<PrimFunc>(node)) == CallingConv::kDeviceKernelLaunch) {
      functions.Set(var, base);
      continue;
    }
    PrimFunc func = GetRef<PrimFunc>(node);
    HostDeviceSplitter splitter(func, func->GetAttr<String>(attr::kGlobalSymbol, var->name_hint));
    PrimFunc host = WithBody(func, splitter(func->body));
    if (auto target = func->GetAttr<Target>(attr::kTarget)) {
      Target host_target = (*target)->GetHost();
      if (host_target.defined()) host = WithAttr(host, attr::kTarget, host_target);
    }
    changed = changed || !host.same_as(base);
    functions.Set(var, host);
    for (const auto& [name, kernel] : splitter.kernels) functions.Set(GlobalVar(name), kernel);
  }
  return changed ? IRModule(functions, mod->attrs) : mod;
}

}  // namespace

namespace transform {

Pass SplitHostDevice() {
  return tvm::transform::CreateModulePass(
      [](IRModule mod, PassContext) { return SplitModule(std::move(mod)); }, 0,
      "tir.SplitHostDevice");
}

Pass BindTarget(const Target& target) {
  return CreatePrimFuncPass(
      [target](PrimFunc func, IRModule, PassContext) {
        return func->GetAttr<Target>(attr::kTarget) ? func : WithAttr(func, attr::kTarget, target);
      },
      0, "tir.BindTarget");
}

TVM_REGISTER_GLOBAL("tir.transform.SplitHostDevice").set_body_typed(SplitHostDevice);
TVM_REGISTER_GLOBAL("tir.transform.BindTarget").set_body_typed(BindTarget);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
