/*!
 * \file src/tir/analysis/verify.cc
 * \brief Checks that hold between any two passes.
 */
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/stmt_functor.h>

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tvm {
namespace tir {
namespace {

class SSAVerifier final : public StmtExprVisitor {
 public:
  bool ok = true;
  void Define(const VarNode* var) { ok = bound_.insert(var).second && ok; }

 private:
  void VisitExpr_(const LetNode* op) final {
    // One Let may be shared by several expressions: it is still one binding.
    if (!lets_.insert(op).second) return;
    Define(op->var.get());
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitStmt_(const LetStmtNode* op) final {
    Define(op->var.get());
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const ForNode* op) final {
    Define(op->loop_var.get());
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const AllocateNode* op) final {
    Define(op->buffer_var.get());
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const AllocateConstNode* op) final {
    Define(op->buffer_var.get());
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const BlockNode* op) final {
    for (const IterVar& iv : op->iter_vars) Define(iv->var.get());
    for (const Buffer& buffer : op->alloc_buffers) Define(buffer->data.get());
    for (const MatchBufferRegion& match : op->match_buffers) Define(match->buffer->data.get());
    StmtExprVisitor::VisitStmt_(op);
  }

  std::unordered_set<const VarNode*> bound_;
  std::unordered_set<const LetNode*> lets_;
};

class WellFormedVerifier final : public StmtExprVisitor {
 public:
  std::string problem;

  void Define(const VarNode* var) { scope_.insert(var); }
  void DefineBuffer(const Buffer& buffer) {
    Define(buffer->data.get());
    // Variables of extents, strides and the offset get their values from the argument.
    auto bind = [this](const PrimExpr& e) {
      PostOrderVisit(e, [this](const ObjectRef& node) {
        if (const auto* var = node.as<VarNode>()) Define(var);
      });
    };
    for (const PrimExpr& e : buffer->shape) bind(e);
    for (const PrimExpr& e : buffer->strides) bind(e);
    bind(buffer->elem_offset);
  }

 private:
  template <typename F>
  void Scoped(const VarNode* var, F body) {
    bool added = scope_.insert(var).second;
    body();
    if (added) scope_.erase(var);
  }

  void Report(const std::string& text) {
    if (problem.empty()) problem = text;
  }

  void CheckVar(const VarNode* var, const std::string& where) {
    if (auto block = hidden_.find(var); block != hidden_.end()) {
      Report("loop variable " + var->name_hint.str() + " is used" + where + " in block " +
             block->second + ", which has variables of its own; bind one of them to it");
    }
    if (scope_.count(var) == 0) {
      Report("variable " + var->name_hint.str() + " is used" + where + " but not bound there");
    }
  }

  void CheckAccess(const Buffer& buffer, const Array<PrimExpr>& indices) {
    const std::string name = buffer->name;
    CheckVar(buffer->data.get(), " as the data of buffer " + name);
    if (indices.size() != buffer->shape.size()) {
      Report("buffer " + name + " has " + std::to_string(buffer->shape.size()) +
             " axes but is accessed with " + std::to_string(indices.size()) + " indices");
    }
    for (size_t i = 0; i < indices.size(); ++i) {
      if (!indices[i].dtype().is_int() && !indices[i].dtype().is_uint()) {
        Report("an index of buffer " + name + " is no integer");
      }
      if (i + 1 < indices.size() && indices[i].dtype().is_vector()) {
        Report("an index of buffer " + name + " other than the last is a vector");
      }
      VisitExpr(indices[i]);
    }
  }

  int AccessLanes(const Buffer& buffer, const Array<PrimExpr>& indices) {
    int lanes = buffer->dtype.lanes();
    return indices.empty() ? lanes : lanes * indices.back().dtype().lanes();
  }

  void VisitExpr_(const VarNode* op) final { CheckVar(op, ""); }
  void VisitExpr_(const LetNode* op) final {
    VisitExpr(op->value);
    Scoped(op->var.get(), [&] { VisitExpr(op->body); });
  }
  void VisitExpr_(const BufferLoadNode* op) final {
    CheckAccess(op->buffer, op->indices);
    if (op->dtype.lanes() != AccessLanes(op->buffer, op->indices)) {
      Report("the lanes of a load of buffer " + op->buffer->name.str() + " are not its index's");
    }
  }
  void VisitExpr_(const ReduceNode* op) final { Report("a Reduce is left; only te may hold one"); }
  void VisitExpr_(const ProducerLoadNode* op) final {
    Report("a ProducerLoad of " + op->producer->GetNameHint() + " is left; only te may hold one");
  }
  void VisitStmt_(const ProducerStoreNode* op) final {
    Report("a ProducerStore to " + op->producer->GetNameHint() + " is left; only te may hold one");
  }
  void VisitStmt_(const ProducerRealizeNode* op) final {
    Report("a ProducerRealize of " + op->producer->GetNameHint() +
           " is left; only te may hold one");
  }
  void VisitStmt_(const LetStmtNode* op) final {
    VisitExpr(op->value);
    Scoped(op->var.get(), [&] { VisitStmt(op->body); });
  }
  void VisitStmt_(const AttrStmtNode* op) final {
    VisitExpr(op->value);
    const auto* iv = op->node.as<IterVarNode>();
    const bool is_launch = op->attr_key == attr::thread_extent;
    if (is_launch && (iv == nullptr || iv->thread_tag.empty())) {
      Report("a launch of threads names no thread axis");
    } else if (is_launch) {
      CheckExtent(iv->thread_tag, op->value);
    }
    if (iv != nullptr && (is_launch || op->attr_key == attr::virtual_thread)) {
      Scoped(iv->var.get(), [&] { VisitStmt(op->body); });
    } else {
      VisitStmt(op->body);
    }
    if (is_launch && iv != nullptr) LeaveExtent(iv->thread_tag);
  }
  void VisitStmt_(const ForNode* op) final {
    VisitExpr(op->min);
    VisitExpr(op->extent);
    if (scope_.count(op->loop_var.get()) != 0) {
      Report("loop variable " + op->loop_var->name_hint.str() + " is bound again inside its scope");
    }
    const bool is_thread = op->kind == ForKind::kThreadBinding;
    if (is_thread && !op->thread_binding) {
      Report("loop " + op->loop_var->name_hint.str() + " runs on threads but has no thread axis");
    } else if (is_thread) {
      CheckExtent(op->thread_binding.value()->thread_tag, op->extent);
    }
    // A thread knows which one it is everywhere in its kernel.
    if (!is_thread) loops_.push_back(op->loop_var.get());
    Scoped(op->loop_var.get(), [&] { VisitStmt(op->body); });
    if (!is_thread) loops_.pop_back();
    if (is_thread && op->thread_binding) LeaveExtent(op->thread_binding.value()->thread_tag);
  }
  void VisitStmt_(const AllocateNode* op) final {
    for (const PrimExpr& extent : op->extents) VisitExpr(extent);
    VisitExpr(op->condition);
    Scoped(op->buffer_var.get(), [&] { VisitStmt(op->body); });
  }
  void VisitStmt_(const AllocateConstNode* op) final {
    for (const PrimExpr& extent : op->extents) VisitExpr(extent);
    Scoped(op->buffer_var.get(), [&] { VisitStmt(op->body); });
  }
  void VisitStmt_(const DeclBufferNode* op) final {
    CheckVar(op->buffer->data.get(), " as the data of buffer " + op->buffer->name.str());
    VisitStmt(op->body);
  }
  void VisitStmt_(const BufferRealizeNode* op) final {
    for (const Range& range : op->bounds) {
      VisitExpr(range->min);
      VisitExpr(range->extent);
    }
    VisitExpr(op->condition);
    Scoped(op->buffer->data.get(), [&] { VisitStmt(op->body); });
  }
  void VisitStmt_(const BlockNode* op) final {
    // Names of a block are its own, so leaving them bound after it cannot hide a wrong use.
    for (const IterVar& iv : op->iter_vars) Define(iv->var.get());
    for (const Buffer& buffer : op->alloc_buffers) Define(buffer->data.get());
    for (const MatchBufferRegion& match : op->match_buffers) DefineBuffer(match->buffer);
    // What a block with variables does follows from them, whatever loops stand around it. Their
    // domains may depend on loops.
    for (const IterVar& iv : op->iter_vars) {
      if (!iv->dom.defined()) continue;
      VisitExpr(iv->dom->min);
      VisitExpr(iv->dom->extent);
    }
    std::vector<const VarNode*> hidden;
    if (!op->iter_vars.empty()) {
      for (const VarNode* loop : loops_) {
        if (hidden_.emplace(loop, op->name_hint).second) hidden.push_back(loop);
      }
    }
    ObjectPtr<BlockNode> inside = make_object<BlockNode>(*op);
    inside->iter_vars = {};
    StmtExprVisitor::VisitStmt_(inside.get());
    for (const VarNode* loop : hidden) hidden_.erase(loop);
  }
  void VisitStmt_(const BufferStoreNode* op) final {
    CheckAccess(op->buffer, op->indices);
    if (op->value.dtype().lanes() != AccessLanes(op->buffer, op->indices)) {
      Report("the lanes of a value stored to buffer " + op->buffer->name.str() +
             " are not its index's");
    }
    VisitExpr(op->value);
  }

  /*! \brief Threads of one launch: the same axis has the same extent wherever it is named. */
  void CheckExtent(const std::string& tag, const PrimExpr& extent) {
    const int64_t* value = as_const_int(extent);
    auto& outer = extents_[tag];
    const bool is_index = tag.rfind("threadIdx.", 0) == 0 || tag.rfind("blockIdx.", 0) == 0;
    if (is_index && value != nullptr && !outer.empty() && outer.back() > 0 &&
        outer.back() != *value) {
      Report("thread axis " + tag + " has " + std::to_string(*value) + " threads inside of " +
             std::to_string(outer.back()));
    }
    outer.push_back(value == nullptr && !outer.empty() ? outer.back() : value ? *value : 0);
  }
  void LeaveExtent(const std::string& tag) { extents_[tag].pop_back(); }

  std::unordered_set<const VarNode*> scope_;
  std::vector<const VarNode*> loops_;
  /*! \brief Loops outside of a block with variables, by the name of that block. */
  std::unordered_map<const VarNode*, std::string> hidden_;
  std::unordered_map<std::string, std::vector<int64_t>> extents_;
};

/*! \brief The first thing wrong with a function; empty if there is none. */
std::string FirstProblem(const PrimFunc& func) {
  WellFormedVerifier verifier;
  for (const Var& param : func->params) verifier.Define(param.get());
  for (const Var& param : func->params) {
    if (Optional<Buffer> buffer = func->buffer_map.Get(param)) {
      verifier.DefineBuffer(buffer.value());
    }
  }
  // A launch gives its thread axis a meaning in the whole kernel: a store may ask which thread it
  // is beside the reduction that binds the threads, until UnifyThreadBinding moves the launch
  // outwards.
  PostOrderVisit(func->body, [&verifier](const ObjectRef& node) {
    const auto* launch = node.as<AttrStmtNode>();
    if (launch == nullptr || launch->attr_key != attr::thread_extent) return;
    if (const auto* iv = launch->node.as<IterVarNode>()) verifier.Define(iv->var.get());
  });
  verifier(func->body);
  return verifier.problem;
}

/*! \brief Raises InternalError if `pass` spoilt a function, ValueError if it was given so. */
void VerifyAfterPass(const String& pass, const IRModule& before, const IRModule& after) {
  auto problem_of = [](const BaseFunc& func) {
    if (!func->IsInstance<PrimFuncNode>()) return std::string();
    PrimFunc prim = Downcast<PrimFunc>(func);
    std::string problem = FirstProblem(prim);
    return !problem.empty() || VerifySSA(prim) ? problem : "a variable is bound twice";
  };
  for (const auto& [var, func] : after->functions) {
    auto old = before->functions.find(var);
    if (old != before->functions.end() && (*old).second.same_as(func)) continue;
    std::string problem = problem_of(func);
    if (problem.empty()) continue;
    TVM_CHECK(old == before->functions.end() || problem_of((*old).second).empty(), ValueError)
        << "pass " << pass << " was given " << var->name_hint
        << " that is not well formed: " << problem_of((*old).second);
    TVM_FATAL(InternalError) << "pass " << pass << " left " << var->name_hint
                             << " not well formed: " << problem;
  }
}

}  // namespace

bool VerifySSA(const PrimFunc& func) {
  SSAVerifier verifier;
  for (const Var& param : func->params) verifier.Define(param.get());
  verifier(func->body);
  return verifier.ok;
}

bool VerifyWellFormed(const PrimFunc& func, bool assert_mode) {
  std::string problem = FirstProblem(func);
  if (problem.empty() && !VerifySSA(func)) problem = "a variable is bound twice";
  TVM_CHECK(!assert_mode || problem.empty(), ValueError)
      << func->GetAttr<String>(attr::kGlobalSymbol, "main") << " is not well formed: " << problem;
  return problem.empty();
}

TVM_REGISTER_GLOBAL("tir.analysis.verify_after_pass").set_body_typed(VerifyAfterPass);
TVM_REGISTER_GLOBAL("tir.analysis.verify_ssa").set_body_typed([](PrimFunc func) {
  return VerifySSA(func);
});
TVM_REGISTER_GLOBAL("tir.analysis.verify_well_formed")
    .set_body_typed([](PrimFunc func, bool assert_mode) {
      return VerifyWellFormed(func, assert_mode);
    });

}  // namespace tir
}  // namespace tvm
