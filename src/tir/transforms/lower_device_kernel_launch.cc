/*!
 * \file src/tir/transforms/lower_device_kernel_launch.cc
 * \brief Calls of functions for another target become launches or external calls.
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
#include <unordered_set>
#include <utility>
#include <vector>

#include "pass_common.h"

namespace tvm {
namespace tir {
namespace {

/*! \brief Launch parameters of a kernel in the order in which its body mentions them. */
class LaunchCollector final : public StmtExprVisitor {
 public:
  explicit LaunchCollector(std::string kernel) : kernel_(std::move(kernel)) {}

  Array<String> tags;
  Array<PrimExpr> extents;

  void Collect(const Stmt& body) {
    VisitStmt(body);
    if (!dynamic_bytes_.defined()) return;
    tags.push_back(attr::kUseDynSharedMemory);
    extents.push_back(dynamic_bytes_);
  }

  /*! \brief An extent may mention what the kernel is given, nothing that the kernel computes. */
  void CheckKnownToHost(const PrimFunc& func) const {
    for (size_t i = 0; i < extents.size(); ++i) {
      for (const Var& used : UndefinedVars(extents[i])) {
        bool given = false;
        for (const Var& param : func->params) given = given || param.same_as(used);
        TVM_CHECK(given, ValueError)
            << "LowerDeviceKernelLaunch: the launch of " << kernel_ << " needs " << tags[i] << " = "
            << extents[i] << ", but " << used << " is known inside of the kernel only; make it a "
            << "constant or a function of the arguments";
      }
    }
  }

 private:
  void VisitStmt_(const AttrStmtNode* op) final {
    if (op->attr_key == attr::thread_extent) AddThread(Downcast<IterVar>(op->node), op->value);
    StmtExprVisitor::VisitStmt_(op);
  }

  void VisitStmt_(const AllocateNode* op) final {
    if (StorageScopeOf(op->buffer_var) == "shared.dyn") {
      TVM_CHECK(!dynamic_bytes_.defined(), ValueError)
          << "LowerDeviceKernelLaunch: " << kernel_ << " has more than one allocation of scope "
          << "\"shared.dyn\", the second is " << op->buffer_var
          << "; run MergeDynamicSharedMemoryAllocations before";
      dynamic_bytes_ = make_const(DataType::Int(32), op->dtype.bytes() * op->dtype.lanes());
      for (const PrimExpr& extent : op->extents) dynamic_bytes_ = dynamic_bytes_ * extent;
      dynamic_bytes_ = analyzer_.Simplify(dynamic_bytes_);
    }
    StmtExprVisitor::VisitStmt_(op);
  }

  void AddThread(const IterVar& thread, const PrimExpr& extent) {
    for (size_t i = 0; i < tags.size(); ++i) {
      if (tags[i] != thread->thread_tag) continue;
      TVM_CHECK(analyzer_.CanProveEqual(extents[i], extent), ValueError)
          << "LowerDeviceKernelLaunch: " << kernel_ << " uses " << thread->thread_tag
          << " with extent " << extents[i] << " and with extent " << extent
          << "; a launch has one extent per axis, so bind loops of the same extent";
      return;
    }
    tags.push_back(thread->thread_tag);
    extents.push_back(extent);
  }

  std::string kernel_;
  /*! \brief Bytes of dynamic shared memory; undefined when there is none. */
  PrimExpr dynamic_bytes_;
  arith::Analyzer analyzer_;
};

/*! \brief Drops returns of success, which a kernel that is launched has nobody to tell. */
class ReturnRemover final : public StmtExprMutator {
 public:
  explicit ReturnRemover(std::string kernel) : kernel_(std::move(kernel)) {}

 private:
  Stmt VisitStmt_(const EvaluateNode* op) final {
    const auto* call = op->value.as<CallNode>();
    if (call == nullptr || !call->op.same_as(builtin::ret())) {
      return StmtExprMutator::VisitStmt_(op);
    }
    TVM_CHECK(is_zero(call->args[0]), ValueError)
        << "LowerDeviceKernelLaunch: " << kernel_ << " is launched and returns " << call->args[0]
        << ", but a kernel has no result; write it to a buffer";
    return Evaluate(PrimExpr(0));
  }

  std::string kernel_;
};

class CallLowerer final : public StmtExprMutator {
 public:
  explicit CallLowerer(IRModule mod) : mod_(std::move(mod)) {}

  IRModule Run() {
    Map<GlobalVar, BaseFunc> functions;
    bool changed = false;
    for (const auto& [var, base] : mod_->functions) {
      functions.Set(var, base);
      if (base.as<PrimFuncNode>() == nullptr) continue;
      PrimFunc func = Downcast<PrimFunc>(base);
      auto target = func->GetAttr<Target>(attr::kTarget);
      caller_ = target ? WithoutHost(*target) : Target(nullptr);
      name_ = var->name_hint;
      functions.Set(var, WithBody(func, VisitStmt(func->body)));
      changed = changed || !functions[var].same_as(base);
    }
    if (!changed) return mod_;
    for (const auto& [var, base] : mod_->functions) {
      if (base.as<PrimFuncNode>() == nullptr) continue;
      functions.Set(var, Marked(var, Downcast<PrimFunc>(functions[var])));
    }
    return IRModule(functions, mod_->attrs);
  }

 private:
  /*! \brief The name under which a function is found from outside of its module. */
  static String SymbolOf(const GlobalVar& var, const PrimFunc& func) {
    return func->GetAttr<String>(attr::kGlobalSymbol, var->name_hint);
  }

  PrimExpr VisitExpr_(const CallNode* op) final {
    PrimExpr expr = StmtExprMutator::VisitExpr_(op);
    op = expr.as<CallNode>();
    const auto* callee = op->op.as<GlobalVarNode>();
    if (callee == nullptr) return expr;
    GlobalVar var = GetRef<GlobalVar>(callee);
    Optional<BaseFunc> found = mod_->functions.Get(var);
    TVM_CHECK(found.defined() && found.value().as<PrimFuncNode>() != nullptr, ValueError)
        << "LowerDeviceKernelLaunch: " << name_ << " calls " << var->name_hint
        << ", which is no PrimFunc of the module; add it to the module";
    PrimFunc func = Downcast<PrimFunc>(found.value());
    auto target = func->GetAttr<Target>(attr::kTarget);
    TVM_CHECK(caller_.defined() && target.has_value(), ValueError)
        << "LowerDeviceKernelLaunch: " << (caller_.defined() ? std::string(var->name_hint) : name_)
        << " has no target; run BindTarget before";
    // Generators know how to call within a module.
    if (caller_->str() == WithoutHost(*target)->str()) return expr;
    Array<PrimExpr> args{StringImm(SymbolOf(var, func))};
    for (const PrimExpr& arg : op->args) args.push_back(arg);
    if (caller_->GetTargetDeviceType() == (*target)->GetTargetDeviceType() &&
        RunsOnProcessor(caller_) == RunsOnProcessor(*target)) {
      external_.insert(callee);
      return Call(op->dtype, builtin::call_extern(), args);
    }
    launched_.insert(callee);
    TVM_CHECK(op->args.size() == func->params.size(), ValueError)
        << "LowerDeviceKernelLaunch: " << name_ << " calls " << var->name_hint << " with "
        << op->args.size() << " arguments, but it takes " << func->params.size();
    LaunchCollector launch(var->name_hint);
    launch.Collect(func->body);
    launch.CheckKnownToHost(func);
    Map<Var, PrimExpr> given;
    for (size_t i = 0; i < op->args.size(); ++i) given.Set(func->params[i], op->args[i]);
    for (const PrimExpr& extent : launch.extents) args.push_back(Substitute(extent, given));
    return Call(op->dtype.is_void() ? DataType::Int(32) : op->dtype, builtin::tvm_call_packed(),
                args);
  }

  /*! \brief The function with what its callers rely on. */
  PrimFunc Marked(const GlobalVar& var, PrimFunc func) const {
    bool launched = launched_.count(var.get()) != 0;
    bool external = external_.count(var.get()) != 0;
    if (!launched && !external) return func;
    TVM_CHECK(!launched || !external, ValueError)
        << "LowerDeviceKernelLaunch: " << var->name_hint << " is launched by one function and "
        << "called by another one; give each a copy of it";
    func = WithAttr(std::move(func), attr::kIsGlobalFunc, true);
    func = WithAttr(std::move(func), attr::kGlobalSymbol, SymbolOf(var, func));
    if (external) return func;
    LaunchCollector launch(var->name_hint);
    launch.Collect(func->body);
    PrimFuncNode* node = func.CopyOnWrite();
    node->body = ReturnRemover(var->name_hint)(node->body);
    node->ret_type = VoidType();
    func = WithAttr(std::move(func), attr::kCallingConv,
                    static_cast<int>(CallingConv::kDeviceKernelLaunch));
    return WithAttr(std::move(func), attr::kKernelLaunchParams, launch.tags);
  }

  IRModule mod_;
  Target caller_{nullptr};
  std::string name_;
  std::unordered_set<const GlobalVarNode*> launched_;
  std::unordered_set<const GlobalVarNode*> external_;
};

}  // namespace

namespace transform {

Pass LowerDeviceKernelLaunch() {
  return tvm::transform::CreateModulePass(
      [](IRModule mod, PassContext) { return CallLowerer(std::move(mod)).Run(); }, 0,
      "tir.LowerDeviceKernelLaunch");
}

TVM_REGISTER_GLOBAL("tir.transform.LowerDeviceKernelLaunch")
    .set_body_typed(LowerDeviceKernelLaunch);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
