/*!
 * \file src/tir/transforms/split_host_device.cc
 * \brief Statements for another target become functions of their own, which the rest calls.
 */
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/target/target.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/launch.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
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

/*! \brief Buffers that a statement accesses without declaring them, in the order of their use. */
class ForeignBuffers final : public StmtExprVisitor {
 public:
  std::vector<Buffer> found;

 private:
  void Use(const Buffer& buffer) {
    if (seen_.insert(buffer.get()).second) found.push_back(buffer);
  }
  void VisitStmt_(const DeclBufferNode* op) final {
    seen_.insert(op->buffer.get());
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const BufferStoreNode* op) final {
    Use(op->buffer);
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitExpr_(const BufferLoadNode* op) final {
    Use(op->buffer);
    StmtExprVisitor::VisitExpr_(op);
  }

  std::unordered_set<const BufferNode*> seen_;
};

class HostDeviceSplitter final : public StmtMutator {
 public:
  HostDeviceSplitter(std::string name, std::unordered_set<std::string>* taken)
      : name_(std::move(name)), taken_(taken) {}

  std::vector<std::pair<GlobalVar, PrimFunc>> kernels;

 private:
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    if (op->attr_key != attr::kTarget || op->node.as<TargetNode>() == nullptr) {
      return StmtMutator::VisitStmt_(op);
    }
    return Split(op->body, Downcast<Target>(op->node));
  }

  Stmt Split(Stmt body, const Target& target) {
    GlobalVar kernel(FreshName());
    body = WithDeclarations(body);
    std::vector<Var> free;
    for (const Var& var : UndefinedVars(body, {})) free.push_back(var);
    // Pointers before numbers, as the launch of a kernel wants them.
    std::stable_sort(free.begin(), free.end(), [](const Var& a, const Var& b) {
      return std::make_tuple(!a->dtype.is_handle(), std::string(a->name_hint)) <
             std::make_tuple(!b->dtype.is_handle(), std::string(b->name_hint));
    });
    Array<Var> params;
    Array<PrimExpr> args;
    for (const Var& var : free) {
      std::string scope = StorageScopeOf(var);
      TVM_CHECK(scope == "global", ValueError)
          << "SplitHostDevice: kernel " << kernel->name_hint << " uses " << var << " of scope "
          << scope << ", which is allocated outside of it; allocate it inside of the kernel, or "
          << "give it the scope \"global\"";
      params.push_back(var);
      args.push_back(var);
    }
    body = OwnVariables().Rewrite(body, &params);
    // Code of a processor can say that it failed; a kernel on other devices has no way to.
    bool reports = RunsOnProcessor(target);
    DataType status = DataType::Int(32);
    if (reports) {
      body = SeqStmt::Flatten({body, Evaluate(Call(status, builtin::ret(), {PrimExpr(0)}))});
    }
    PrimFunc device(params, body, reports ? Type(PrimType(status)) : VoidType());
    device = WithAttr(std::move(device), attr::kTarget, target);
    device = WithAttr(std::move(device), attr::kNoAlias, true);
    device = WithAttr(std::move(device), attr::kIsGlobalFunc, true);
    kernels.emplace_back(kernel, device);
    if (!reports) return Evaluate(Call(DataType::Void(), kernel, args));
    Var error("kernel_error_code", status);
    return LetStmt(
        error, Call(status, kernel, args),
        AssertStmt(error == 0, StringImm("Error executing compute kernel"), Evaluate(PrimExpr(0))));
  }

  /*! \brief `body` with those buffers declared that it takes from around it. */
  static Stmt WithDeclarations(Stmt body) {
    std::unordered_set<const VarNode*> outside;
    for (const Var& var : UndefinedVars(body, {})) outside.insert(var.get());
    ForeignBuffers buffers;
    buffers(body);
    std::unordered_set<const VarNode*> bound = BoundVariables(body);
    auto is_bound = [&bound](const VarNode* var) { return bound.count(var) != 0; };
    for (const Buffer& buffer : buffers.found) {
      if (outside.count(buffer->data.get()) == 0) continue;
      // A view that begins where the threads say cannot be declared before they are.
      bool moves = UsesVar(buffer->elem_offset, is_bound);
      for (const Array<PrimExpr>& sizes : {buffer->shape, buffer->strides}) {
        for (const PrimExpr& size : sizes) moves = moves || UsesVar(size, is_bound);
      }
      if (!moves) body = DeclBuffer(buffer, body);
    }
    return body;
  }

  /*! \brief What the loops, threads and definitions of a statement bind. */
  static std::unordered_set<const VarNode*> BoundVariables(const Stmt& body) {
    std::unordered_set<const VarNode*> bound;
    PostOrderVisit(body, [&bound](const ObjectRef& node) {
      if (const auto* loop = node.as<ForNode>()) bound.insert(loop->loop_var.get());
      if (const auto* let = node.as<LetStmtNode>()) bound.insert(let->var.get());
      const auto* fact = node.as<AttrStmtNode>();
      const auto* axis = fact == nullptr ? nullptr : fact->node.as<IterVarNode>();
      if (axis != nullptr) bound.insert(axis->var.get());
    });
    return bound;
  }

  std::string FreshName() const {
    std::string name = name_ + "_kernel";
    for (int i = 1; !taken_->insert(name).second; ++i) {
      name = name_ + "_kernel_" + std::to_string(i);
    }
    return name;
  }

  std::string name_;
  std::unordered_set<std::string>* taken_;
};

IRModule SplitModule(IRModule mod) {
  std::unordered_set<std::string> taken;
  for (const auto& [var, base] : mod->functions) taken.insert(var->name_hint);
  Map<GlobalVar, BaseFunc> functions;
  bool changed = false;
  for (const auto& [var, base] : mod->functions) {
    if (base.as<PrimFuncNode>() == nullptr) {
      functions.Set(var, base);
      continue;
    }
    PrimFunc func = Downcast<PrimFunc>(base);
    HostDeviceSplitter splitter(func->GetAttr<String>(attr::kGlobalSymbol, var->name_hint), &taken);
    PrimFunc rest = WithBody(func, splitter(func->body));
    changed = changed || !rest.same_as(base);
    functions.Set(var, rest);
    for (const auto& [kernel, body] : splitter.kernels) functions.Set(kernel, body);
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

TVM_REGISTER_GLOBAL("tir.transform.SplitHostDevice").set_body_typed(SplitHostDevice);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
