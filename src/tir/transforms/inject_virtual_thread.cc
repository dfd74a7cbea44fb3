/*!
 * \file src/tir/transforms/inject_virtual_thread.cc
 * \brief Virtual threads run interleaved, statement by statement, within one real thread.
 */
#include <tvm/expr/analysis.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/launch.h>

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "pass_common.h"

namespace tvm {
namespace tir {
namespace {

/*! \brief From this many virtual threads on, a statement is looped over, not written out. */
constexpr int64_t kMaxWrittenOut = 16;

TVM_REGISTER_OP("tir.tvm_context_id")
    .describe("(): number of the virtual thread `cthread` that runs, as calls of devices need it")
    .set_attr<Integer>(kTCallEffectKind, Integer(static_cast<int>(CallEffectKind::kOpaque)))
    .set_num_inputs(0);

const Op& ContextId() {
  static const Op& op = Op::Get("tir.tvm_context_id");
  return op;
}

/*! \brief The call of tvm_access_ptr that `expr` is, or null. */
const CallNode* AccessPtr(const PrimExpr& expr) {
  const auto* call = expr.as<CallNode>();
  return call != nullptr && call->op.same_as(builtin::tvm_access_ptr()) ? call : nullptr;
}

/*! \brief Finds what differs between virtual threads: variables, and buffers allocated inside. */
class DependenceFinder final : public StmtExprVisitor {
 public:
  /*! \brief `shares`: whether threads have memory in common where they do the same with it. */
  DependenceFinder(const VarNode* thread, bool shares) : shares_(shares) { vars.insert(thread); }

  std::unordered_set<const VarNode*> vars;
  std::unordered_set<const VarNode*> buffers;

  void Run(const Stmt& body) {
    size_t before;
    do {
      // What one loop iteration writes may be read by an earlier statement in the next.
      before = vars.size() + buffers.size();
      VisitStmt(body);
    } while (vars.size() + buffers.size() != before);
  }

  template <typename T>
  bool Depends(const T& node) const {
    bool found = false;
    PreOrderVisit(node, [&](const ObjectRef& part) {
      if (found) return false;
      if (const auto* var = part.as<VarNode>()) {
        found = vars.count(var) != 0 || buffers.count(var) != 0;
      } else if (const auto* load = part.as<BufferLoadNode>()) {
        found = buffers.count(load->buffer->data.get()) != 0;
      } else if (const auto* call = part.as<CallNode>()) {
        found = !shares_ && call->op.same_as(ContextId());
      }
      return !found;
    });
    return found;
  }

 private:
  template <typename F>
  void Under(bool depends, F visit) {
    bool outer = control_;
    control_ = control_ || depends;
    visit();
    control_ = outer;
  }

  void VisitStmt_(const AllocateNode* op) final {
    allocated_.insert(op->buffer_var.get());
    if (!shares_) buffers.insert(op->buffer_var.get());
    bool depends = std::any_of(op->extents.begin(), op->extents.end(),
                               [this](const PrimExpr& extent) { return Depends(extent); });
    Under(depends, [&] { StmtExprVisitor::VisitStmt_(op); });
  }
  void VisitStmt_(const LetStmtNode* op) final {
    if (control_ || Depends(op->value)) vars.insert(op->var.get());
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const ForNode* op) final {
    bool depends = Depends(op->min) || Depends(op->extent);
    if (depends) vars.insert(op->loop_var.get());
    Under(depends, [&] { StmtExprVisitor::VisitStmt_(op); });
  }
  void VisitStmt_(const IfThenElseNode* op) final {
    Under(Depends(op->condition), [&] { StmtExprVisitor::VisitStmt_(op); });
  }
  void VisitStmt_(const WhileNode* op) final {
    Under(Depends(op->condition), [&] { StmtExprVisitor::VisitStmt_(op); });
  }
  void VisitStmt_(const BufferStoreNode* op) final {
    bool depends = control_ || Depends(op->value);
    for (const PrimExpr& index : op->indices) depends = depends || Depends(index);
    if (depends) Touch(op->buffer->data.get());
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitExpr_(const CallNode* op) final {
    // A call may write through any pointer that it gets, unless the pointer says otherwise.
    bool depends = control_ || Depends(GetRef<PrimExpr>(op));
    if (depends && !op->op.same_as(builtin::tvm_access_ptr())) {
      for (const PrimExpr& arg : op->args) {
        if (const CallNode* pointer = AccessPtr(arg)) {
          constexpr int64_t kWrites = 2;
          const int64_t* mask = as_const_int(pointer->args[4]);
          const auto* data = pointer->args[1].as<VarNode>();
          if (data != nullptr && (mask == nullptr || *mask & kWrites)) Touch(data);
          continue;
        }
        if (const auto* var = arg.as<VarNode>()) Touch(var);
        const auto* call = arg.as<CallNode>();
        const auto* load =
            call ? call->args.empty() ? nullptr : call->args[0].as<BufferLoadNode>() : nullptr;
        if (load != nullptr && call->dtype.is_handle()) Touch(load->buffer->data.get());
      }
    }
    StmtExprVisitor::VisitExpr_(op);
  }
  void Touch(const VarNode* data) {
    if (allocated_.count(data) != 0) buffers.insert(data);
  }

  std::unordered_set<const VarNode*> allocated_;
  bool shares_;
  bool control_ = false;
};

/*! \brief Repeats the statements of one virtual-thread scope for each of its threads. */
class ThreadInjector final : public StmtExprMutator {
 public:
  ThreadInjector(Var thread, PrimExpr count, const DependenceFinder& found, bool shares)
      : thread_(std::move(thread)), count_(std::move(count)), found_(found), shares_(shares) {}

 private:
  /*! \brief The statement for all virtual threads. */
  Stmt Repeat(const Stmt& stmt) {
    const int64_t* count = as_const_int(count_);
    if (count != nullptr && *count < kMaxWrittenOut && !HasLoop(stmt)) {
      Array<Stmt> copies;
      for (int64_t i = 0; i < *count; ++i) {
        Stmt copy = Substitute(stmt, Map<Var, PrimExpr>{{thread_, make_const(thread_->dtype, i)}});
        copies.push_back(i == 0 ? copy : RenewBindings(copy));
      }
      return SeqStmt::Flatten(copies);
    }
    Var index = thread_.copy_with_suffix(".s");
    Stmt body = Substitute(stmt, Map<Var, PrimExpr>{{thread_, index}});
    return For(index, make_zero(thread_->dtype), cast(thread_->dtype, count_), ForKind::kSerial,
               body);
  }

  static bool HasLoop(const Stmt& stmt) {
    bool found = false;
    PostOrderVisit(stmt, [&found](const ObjectRef& node) {
      found = found || node.as<ForNode>() != nullptr || node.as<WhileNode>() != nullptr;
    });
    return found;
  }

  template <typename Node, typename Rewrite>
  Stmt Whole(const Node* op, Rewrite rewrite) {
    // Inside, all statements belong to the one virtual thread of the present trip.
    bool outer = inside_;
    inside_ = true;
    Stmt stmt = rewrite(op);
    inside_ = outer;
    return outer ? stmt : Repeat(stmt);
  }

  Stmt VisitStmt_(const BufferStoreNode* op) final {
    bool depends = found_.buffers.count(op->buffer->data.get()) != 0 || found_.Depends(op->value);
    for (const PrimExpr& index : op->indices) depends = depends || found_.Depends(index);
    Array<PrimExpr> indices = VisitExprs(op->indices);
    PrimExpr value = VisitExpr(op->value);
    Stmt stmt = GetRef<Stmt>(op);
    if (found_.buffers.count(op->buffer->data.get()) != 0) {
      stmt = BufferStore(Expanded(op->buffer), value, Shifted(op->buffer, indices));
    } else if (!indices.same_as(op->indices) || !value.same_as(op->value)) {
      stmt = BufferStore(op->buffer, value, indices);
    }
    return depends && !inside_ ? Repeat(stmt) : stmt;
  }
  Stmt VisitStmt_(const EvaluateNode* op) final {
    Stmt stmt = StmtExprMutator::VisitStmt_(op);
    return found_.Depends(op->value) && !inside_ ? Repeat(stmt) : stmt;
  }
  Stmt VisitStmt_(const LetStmtNode* op) final {
    if (found_.vars.count(op->var.get()) == 0) return StmtExprMutator::VisitStmt_(op);
    return Whole(op, [this](const LetStmtNode* let) { return StmtExprMutator::VisitStmt_(let); });
  }
  Stmt VisitStmt_(const ForNode* op) final {
    if (found_.vars.count(op->loop_var.get()) == 0) return StmtExprMutator::VisitStmt_(op);
    return Whole(op, [this](const ForNode* loop) { return StmtExprMutator::VisitStmt_(loop); });
  }
  Stmt VisitStmt_(const IfThenElseNode* op) final {
    if (!found_.Depends(op->condition)) return StmtExprMutator::VisitStmt_(op);
    return Whole(op,
                 [this](const IfThenElseNode* test) { return StmtExprMutator::VisitStmt_(test); });
  }
  Stmt VisitStmt_(const WhileNode* op) final {
    if (!found_.Depends(op->condition)) return StmtExprMutator::VisitStmt_(op);
    return Whole(op, [this](const WhileNode* loop) { return StmtExprMutator::VisitStmt_(loop); });
  }
  Stmt VisitStmt_(const AssertStmtNode* op) final {
    if (!found_.Depends(op->condition)) return StmtExprMutator::VisitStmt_(op);
    return Whole(
        op, [this](const AssertStmtNode* check) { return StmtExprMutator::VisitStmt_(check); });
  }
  Stmt VisitStmt_(const AllocateNode* op) final {
    auto differs = [this](const PrimExpr& extent) { return found_.Depends(extent); };
    if (!inside_ && std::any_of(op->extents.begin(), op->extents.end(), differs)) {
      return Whole(
          op, [this](const AllocateNode* memory) { return StmtExprMutator::VisitStmt_(memory); });
    }
    // One that a trip makes anew needs no part per virtual thread.
    if (found_.buffers.count(op->buffer_var.get()) == 0 || inside_) {
      return StmtExprMutator::VisitStmt_(op);
    }
    PrimExpr size = op->extents.empty() ? PrimExpr(1) : op->extents[0];
    for (size_t i = 1; i < op->extents.size(); ++i) size = size * op->extents[i];
    sizes_[op->buffer_var.get()] = size;
    Stmt body = VisitStmt(op->body);
    PrimExpr total = size * cast(size.dtype(), count_);
    return Allocate(op->buffer_var, op->dtype, {total}, op->condition, body, op->annotations);
  }

  PrimExpr VisitExpr_(const BufferLoadNode* op) final {
    Array<PrimExpr> indices = VisitExprs(op->indices);
    if (sizes_.count(op->buffer->data.get()) != 0) {
      return BufferLoad(Expanded(op->buffer), Shifted(op->buffer, indices));
    }
    if (indices.same_as(op->indices)) return GetRef<PrimExpr>(op);
    return BufferLoad(op->buffer, indices);
  }
  PrimExpr VisitExpr_(const CallNode* op) final {
    if (!shares_ && op->op.same_as(ContextId())) return cast(op->dtype, thread_);
    const bool is_pointer = AccessPtr(GetRef<PrimExpr>(op)) != nullptr;
    const auto* data = is_pointer ? op->args[1].as<VarNode>() : nullptr;
    const auto size = sizes_.find(data);
    if (size == sizes_.end()) return StmtExprMutator::VisitExpr_(op);
    const PrimExpr start = VisitExpr(op->args[2]);
    const PrimExpr shift = cast(start.dtype(), thread_ * size->second);
    return Call(op->dtype, op->op,
                {op->args[0], op->args[1], start + shift, VisitExpr(op->args[3]), op->args[4]});
  }
  PrimExpr VisitExpr_(const VarNode* op) final {
    TVM_CHECK(sizes_.count(op) == 0, ValueError)
        << "InjectVirtualThread: memory " << op->name_hint << " differs between the virtual "
        << "threads of " << thread_ << " but is passed on as a whole; pass the address of an "
        << "element instead";
    return GetRef<PrimExpr>(op);
  }

  Buffer Expanded(const Buffer& buffer) {
    auto size = sizes_.find(buffer->data.get());
    if (size == sizes_.end()) return buffer;
    auto [it, fresh] = expanded_.try_emplace(buffer.get(), buffer);
    if (fresh) {
      it->second.CopyOnWrite()->shape = {size->second * cast(size->second.dtype(), count_)};
    }
    return it->second;
  }
  Array<PrimExpr> Shifted(const Buffer& buffer, const Array<PrimExpr>& indices) const {
    auto size = sizes_.find(buffer->data.get());
    if (size == sizes_.end()) return indices;
    ICHECK_EQ(indices.size(), 1U) << "InjectVirtualThread needs flat accesses";
    PrimExpr index = indices[0];
    PrimExpr offset = cast(index.dtype().element_of(), thread_ * size->second);
    if (const auto* ramp = index.as<RampNode>()) {
      return {Ramp(offset + ramp->base, ramp->stride, ramp->lanes)};
    }
    if (index.dtype().is_vector()) return {Broadcast(offset, index.dtype().lanes()) + index};
    return {offset + index};
  }

  Var thread_;
  PrimExpr count_;
  const DependenceFinder& found_;
  bool shares_;
  /*! \brief Elements per virtual thread of the buffers that have a part for each. */
  std::unordered_map<const VarNode*, PrimExpr> sizes_;
  std::unordered_map<const BufferNode*, Buffer> expanded_;
  bool inside_ = false;
};

class VirtualThreadRemover final : public StmtMutator {
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    // Inner scopes first: what is left of them is ordinary code.
    Stmt stmt = StmtMutator::VisitStmt_(op);
    op = stmt.as<AttrStmtNode>();
    if (op->attr_key != attr::virtual_thread) return stmt;
    const IterVar axis = Downcast<IterVar>(op->node);
    const Var thread = axis->var;
    // Contexts of a device (`cthread`) have no memory in common.
    const bool shares = axis->thread_tag != "cthread";
    if (is_one(op->value) && shares) {
      return Substitute(op->body, Map<Var, PrimExpr>{{thread, make_zero(thread->dtype)}});
    }
    DependenceFinder found(thread.get(), shares);
    found.Run(op->body);
    return ThreadInjector(thread, op->value, found, shares)(op->body);
  }
};

}  // namespace

namespace transform {

Pass InjectVirtualThread() {
  return BodyPass("tir.InjectVirtualThread", [](const PrimFunc& func, const PassContext&) {
    return VirtualThreadRemover()(func->body);
  });
}

TVM_REGISTER_GLOBAL("tir.transform.InjectVirtualThread").set_body_typed(InjectVirtualThread);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
