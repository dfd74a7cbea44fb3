/*!
 * \file src/tir/transforms/thread_sync.cc
 * \brief Barriers between accesses of different threads to the memory they share.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/arith/iter_affine_map.h>
#include <tvm/arith/pattern.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/launch.h>

#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "pass_common.h"
#include "software_pipeline.h"

namespace tvm {
namespace tir {
namespace {

struct ThreadAccess {
  const VarNode* data;
  bool write;
  /*! \brief Undefined when it is not known which elements are meant. */
  PrimExpr index;
  int lanes;
  /*! \brief Into the half of a double buffer that nobody reads in the same trip. */
  bool other_half;
  /*! \brief Made in an earlier trip of a loop around the present statement. */
  bool carried;
};
using ThreadAccesses = std::vector<ThreadAccess>;

/*! \brief A statement with its barriers, as its surroundings see it. */
struct Planned {
  Stmt stmt;
  /*! \brief Accesses that no barrier of the statement precedes. */
  ThreadAccesses exposed;
  /*! \brief Accesses, also earlier ones, that no barrier follows. */
  ThreadAccesses pending;
  /*! \brief Whether every execution passes a barrier. */
  bool barrier = false;
};

class BarrierPlanner final {
 public:
  explicit BarrierPlanner(std::string scope)
      : scope_(std::move(scope)), rank_(StorageRankOf(scope_)) {}

  Stmt Run(const Stmt& launch) {
    PostOrderVisit(launch, [this](const ObjectRef& node) {
      const auto* op = node.as<AttrStmtNode>();
      if (op == nullptr || op->attr_key != attr::thread_extent || is_one(op->value)) return;
      String tag = Downcast<IterVar>(op->node)->thread_tag;
      if (ParseThreadTag(tag).kind == ThreadKind::kThread) tags_.insert(tag);
    });
    // One thread alone needs to wait for nobody.
    return tags_.empty() ? launch : Plan(launch, {}).stmt;
  }

 private:
  Planned Plan(const Stmt& stmt, const ThreadAccesses& before) {
    if (const auto* op = stmt.as<SeqStmtNode>()) return PlanSequence(op, before);
    if (const auto* op = stmt.as<AttrStmtNode>()) return PlanAttr(op, before);
    if (const auto* op = stmt.as<ForNode>()) return PlanLoop(op, before);
    if (const auto* op = stmt.as<WhileNode>()) return PlanWhile(op, before);
    if (const auto* op = stmt.as<IfThenElseNode>()) return PlanIf(op, before);
    if (const auto* op = stmt.as<AllocateNode>()) {
      return Through(stmt, op, op->body, {}, before);
    }
    if (const auto* op = stmt.as<AllocateConstNode>()) {
      return Through(stmt, op, op->body, {}, before);
    }
    if (const auto* op = stmt.as<DeclBufferNode>()) {
      return Through(stmt, op, op->body, {}, before);
    }
    if (const auto* op = stmt.as<LetStmtNode>()) {
      if (IsDivergent(op->value)) divergent_.insert(op->var.get());
      return Through(stmt, op, op->body, Collect(op->value), before);
    }
    if (const auto* op = stmt.as<AssertStmtNode>()) {
      return Through(stmt, op, op->body, Collect(op->condition), before);
    }
    if (IsBarrier(stmt)) return {stmt, {}, {}, true};
    return Leaf(stmt, Collect(stmt), before);
  }

  Planned Leaf(const Stmt& stmt, ThreadAccesses own, const ThreadAccesses& before) {
    if (Conflict(before, own)) return {SeqStmt::Flatten({Barrier(), stmt}), {}, own, true};
    ThreadAccesses pending = before;
    pending.insert(pending.end(), own.begin(), own.end());
    return {stmt, std::move(own), std::move(pending), false};
  }

  /*! \brief A statement whose own expressions are evaluated before its only body. */
  template <typename Node>
  Planned Through(const Stmt& stmt, const Node* op, const Stmt& body, const ThreadAccesses& own,
                  const ThreadAccesses& before) {
    Planned head = Leaf(Evaluate(0), own, before);
    Planned inner = Plan(body, head.pending);
    Stmt result = stmt;
    if (!inner.stmt.same_as(body)) {
      auto node = make_object<Node>(*op);
      node->body = inner.stmt;
      result = Stmt(ObjectPtr<Object>(node));
    }
    if (head.barrier) return {SeqStmt::Flatten({Barrier(), result}), {}, inner.pending, true};
    head.exposed.insert(head.exposed.end(), inner.exposed.begin(), inner.exposed.end());
    return {result, head.exposed, inner.pending, inner.barrier};
  }

  Planned PlanSequence(const SeqStmtNode* op, const ThreadAccesses& before) {
    Planned whole{GetRef<Stmt>(op), {}, before, false};
    Array<Stmt> steps;
    bool changed = false;
    for (const Stmt& step : op->seq) {
      Planned part = Plan(step, whole.pending);
      changed = changed || !part.stmt.same_as(step);
      steps.push_back(part.stmt);
      if (!whole.barrier) {
        whole.exposed.insert(whole.exposed.end(), part.exposed.begin(), part.exposed.end());
      }
      whole.barrier = whole.barrier || part.barrier;
      whole.pending = std::move(part.pending);
    }
    if (changed) whole.stmt = SeqStmt::Flatten(steps);
    return whole;
  }

  Planned PlanAttr(const AttrStmtNode* op, const ThreadAccesses& before) {
    const auto* thread = op->node.as<IterVarNode>();
    if (op->attr_key == attr::thread_extent && thread != nullptr &&
        ParseThreadTag(thread->thread_tag).kind == ThreadKind::kThread) {
      threads_.push_back({GetRef<IterVar>(thread)->var, op->value});
      if (!is_one(op->value)) divergent_.insert(thread->var.get());
      Planned result = Through(GetRef<Stmt>(op), op, op->body, {}, before);
      threads_.pop_back();
      return result;
    }
    if (op->attr_key == attr::async_wait_queue_scope) return PlanWait(op, before);
    if (op->attr_key != attr::double_buffer_write) {
      return Through(GetRef<Stmt>(op), op, op->body, {}, before);
    }
    size_t outer = std::exchange(loops_of_halves_, loops_.size());
    Planned result = Through(GetRef<Stmt>(op), op, op->body, {}, before);
    loops_of_halves_ = outer;
    return result;
  }

  /*! \brief A thread waits for its own copies; those of others are there after a barrier. */
  Planned PlanWait(const AttrStmtNode* op, const ThreadAccesses& before) {
    if (rank_ != StorageRank::kShared) return Through(GetRef<Stmt>(op), op, op->body, {}, before);
    Planned inner = Plan(op->body, {});
    AttrStmt wait = GetRef<AttrStmt>(op);
    const auto* count = op->body.as<AttrStmtNode>();
    if (count != nullptr && count->attr_key == attr::async_wait_inflight_count) {
      // The barrier stands behind the wait, which is made where this attribute begins.
      AttrStmt planned = Downcast<AttrStmt>(inner.stmt);
      planned.CopyOnWrite()->body = SeqStmt::Flatten({Barrier(), planned->body});
      wait.CopyOnWrite()->body = planned;
    } else {
      wait.CopyOnWrite()->body = SeqStmt::Flatten({Barrier(), inner.stmt});
    }
    return {wait, {}, inner.pending, true};
  }

  Planned PlanLoop(const ForNode* op, const ThreadAccesses& before) {
    ThreadAccesses head = Collect(op->min);
    ThreadAccesses extent = Collect(op->extent);
    head.insert(head.end(), extent.begin(), extent.end());
    bool differs = IsDivergent(op->min) || IsDivergent(op->extent);
    if (differs) divergent_.insert(op->loop_var.get());
    loops_.push_back({op->loop_var, Range::FromMinExtent(op->min, op->extent)});
    // What the last trips leave behind meets what the next one does first.
    Planned body = Plan(op->body, {});
    ThreadAccesses carried = Carried(body.pending);
    if (!is_one(op->extent) && Conflict(carried, body.exposed)) body = Plan(op->body, carried);
    loops_.pop_back();
    CheckUniform(differs, op->body, body.stmt, "loop over " + op->loop_var->name_hint.str());
    Stmt stmt = GetRef<Stmt>(op);
    if (!body.stmt.same_as(op->body)) {
      For loop = GetRef<For>(op);
      loop.CopyOnWrite()->body = body.stmt;
      stmt = loop;
    }
    const int64_t* trips = as_const_int(op->extent);
    bool runs = trips != nullptr && *trips > 0;
    return Around(stmt, head, body, runs && body.barrier, before);
  }

  Planned PlanWhile(const WhileNode* op, const ThreadAccesses& before) {
    ThreadAccesses head = Collect(op->condition);
    Planned body = Plan(op->body, head);
    ThreadAccesses carried = Carried(body.pending);
    if (Conflict(carried, body.exposed)) body = Plan(op->body, carried);
    // The condition is evaluated where the body ends.
    if (Conflict(body.pending, head)) {
      body.stmt = SeqStmt::Flatten({body.stmt, Barrier()});
      body.pending.clear();
    }
    CheckUniform(IsDivergent(op->condition), op->body, body.stmt, "while loop");
    Stmt stmt = GetRef<Stmt>(op);
    if (!body.stmt.same_as(op->body)) stmt = While(op->condition, body.stmt);
    return Around(stmt, head, body, false, before);
  }

  Planned PlanIf(const IfThenElseNode* op, const ThreadAccesses& before) {
    Planned yes = Plan(op->then_case, {});
    Planned no{op->else_case, {}, {}, false};
    if (op->else_case.defined()) no = Plan(op->else_case, {});
    bool differs = IsDivergent(op->condition);
    CheckUniform(differs, op->then_case, yes.stmt, "condition");
    if (op->else_case.defined()) CheckUniform(differs, op->else_case, no.stmt, "condition");
    Stmt stmt = GetRef<Stmt>(op);
    if (!yes.stmt.same_as(op->then_case) || !no.stmt.same_as(op->else_case)) {
      stmt = IfThenElse(op->condition, yes.stmt, no.stmt);
    }
    Planned both = yes;
    both.exposed.insert(both.exposed.end(), no.exposed.begin(), no.exposed.end());
    both.pending.insert(both.pending.end(), no.pending.begin(), no.pending.end());
    return Around(stmt, Collect(op->condition), both, yes.barrier && no.barrier, before);
  }

  /*! \brief A statement whose parts were planned without what happened before it. */
  Planned Around(const Stmt& stmt, const ThreadAccesses& head, const Planned& inner, bool barrier,
                 const ThreadAccesses& before) {
    ThreadAccesses exposed = head;
    exposed.insert(exposed.end(), inner.exposed.begin(), inner.exposed.end());
    ThreadAccesses pending = inner.pending;
    if (!barrier) pending.insert(pending.end(), exposed.begin(), exposed.end());
    if (Conflict(before, exposed)) {
      return {SeqStmt::Flatten({Barrier(), stmt}), {}, pending, true};
    }
    if (!barrier) pending.insert(pending.end(), before.begin(), before.end());
    return {stmt, exposed, pending, barrier};
  }

  static ThreadAccesses Carried(ThreadAccesses accesses) {
    for (ThreadAccess& access : accesses) access.carried = true;
    return accesses;
  }

  /*! \brief Threads that skip a barrier make the others wait for ever. */
  void CheckUniform(bool differs, const Stmt& before, const Stmt& after, const std::string& what) {
    TVM_CHECK(!differs || before.same_as(after), ValueError)
        << "ThreadSync(\"" << scope_ << "\"): memory of this scope is written and read by several "
        << "threads inside of a " << what
        << " that differs between threads, where no barrier can be; move the accesses apart, or "
        << "make the extents divide";
  }

  bool InScope(const Var& data) const {
    const std::string scope = StorageScopeOf(data);
    return scope_ == "shared.dyn" ? scope == scope_ : StorageRankOf(scope) == rank_;
  }

  bool IsDivergent(const PrimExpr& expr) const {
    bool found = false;
    PostOrderVisit(expr, [&](const ObjectRef& node) {
      if (const auto* var = node.as<VarNode>()) found = found || divergent_.count(var) != 0;
      if (const auto* load = node.as<BufferLoadNode>()) {
        // Registers hold what each thread made of them.
        found = found || StorageRankOf(StorageScopeOf(load->buffer->data)) > StorageRank::kShared;
      }
    });
    return found;
  }

  bool IsBarrier(const Stmt& stmt) const {
    const auto* evaluate = stmt.as<EvaluateNode>();
    const auto* call = evaluate ? evaluate->value.as<CallNode>() : nullptr;
    if (call == nullptr || !call->op.same_as(builtin::tvm_storage_sync())) return false;
    std::string scope = Downcast<StringImm>(call->args[0])->value;
    // A barrier of the block is one of its warps too.
    return StorageRankOf(scope) <= rank_;
  }

  Stmt Barrier() const {
    return Evaluate(Call(DataType::Int(32), builtin::tvm_storage_sync(), {StringImm(scope_)}));
  }

  ThreadAccesses Collect(const ObjectRef& node) const {
    ThreadAccesses found;
    auto add = [&](const Var& data, bool write, const PrimExpr& index, DataType dtype) {
      if (InScope(data)) {
        found.push_back(
            {data.get(), write, index, dtype.lanes(), write && IsOtherHalf(index), false});
      }
    };
    std::function<void(const ObjectRef&)> visit = [&](const ObjectRef& root) {
      PreOrderVisit(root, [&](const ObjectRef& part) {
        if (const auto* store = part.as<BufferStoreNode>()) {
          add(store->buffer->data, true, store->indices[0], store->buffer->dtype);
        } else if (const auto* load = part.as<BufferLoadNode>()) {
          add(load->buffer->data, false, load->indices[0], load->buffer->dtype);
        } else if (const auto* var = part.as<VarNode>()) {
          Var data = GetRef<Var>(var);
          if (var->dtype.is_handle() && InScope(data)) {
            add(data, true, PrimExpr(), DataType::Int(8));
            add(data, false, PrimExpr(), DataType::Int(8));
          }
        } else if (const auto* call = part.as<CallNode>()) {
          return AddCall(call, add, visit);
        }
        return true;
      });
    };
    visit(node);
    return found;
  }

  /*! \brief Whether the arguments are still to be visited. */
  template <typename Add, typename Visit>
  static bool AddCall(const CallNode* call, const Add& add, const Visit& visit) {
    bool reads = !call->op.same_as(builtin::tvm_store_matrix_sync());
    bool writes = !call->op.same_as(builtin::tvm_load_matrix_sync());
    if (call->op.same_as(builtin::address_of())) {
      const auto* load = call->args[0].as<BufferLoadNode>();
      if (load == nullptr) return true;
      // Where the pointer goes from here is the callee's business.
      if (reads) add(load->buffer->data, false, PrimExpr(), load->dtype);
      if (writes) add(load->buffer->data, true, PrimExpr(), load->dtype);
      for (const PrimExpr& index : load->indices) visit(index);
      return false;
    }
    if (reads && writes) return true;
    for (const PrimExpr& arg : call->args) {
      const auto* address = arg.as<CallNode>();
      const auto* load = address != nullptr && address->op.same_as(builtin::address_of())
                             ? address->args[0].as<BufferLoadNode>()
                             : nullptr;
      if (load == nullptr) {
        if (!arg.as<VarNode>()) visit(arg);
      } else {
        add(load->buffer->data, writes, PrimExpr(), load->dtype);
      }
    }
    return false;
  }

  /*!
   * \brief Whether a store of the present statement goes to the half that is read in the next trip.
   *
   * It changes with a loop then. Where the loop was written out, the next trip may be the next
   * statement.
   */
  bool IsOtherHalf(const PrimExpr& index) const {
    if (!index.defined()) return false;
    return UsesVar(index, [this](const VarNode* var) {
      return std::any_of(loops_.begin(), loops_.begin() + loops_of_halves_,
                         [var](const auto& loop) { return loop.first.get() == var; });
    });
  }

  bool Conflict(const ThreadAccesses& earlier, const ThreadAccesses& later) {
    for (const ThreadAccess& a : earlier) {
      for (const ThreadAccess& b : later) {
        if (a.data != b.data || (!a.write && !b.write)) continue;
        if (a.other_half && !a.carried && !b.write) continue;
        if (!SameThread(a, b)) return true;
      }
    }
    return false;
  }

  /*! \brief Whether no element of both accesses belongs to different threads. */
  bool SameThread(const ThreadAccess& a, const ThreadAccess& b) {
    if (!a.index.defined() || !b.index.defined() || a.lanes != b.lanes) return false;
    if (!ExprDeepEqual()(a.index, b.index)) return false;
    return OneElementPerThread(a.index);
  }

  using Digits = std::vector<std::pair<int64_t, int64_t>>;  // stride, extent

  /*! \brief Whether threads, in whatever trip of their loops, have different values of `index`. */
  bool OneElementPerThread(PrimExpr index) {
    if (index.dtype().is_scalable_vector()) return false;
    Digits lanes;
    if (const auto* ramp = index.as<RampNode>()) {
      const int64_t* stride = as_const_int(ramp->stride);
      if (stride == nullptr || *stride <= 0) return false;
      lanes.emplace_back(*stride, ramp->lanes);
      index = ramp->base;
    }
    if (!index.dtype().is_scalar()) return false;
    const auto axes = std::count_if(threads_.begin(), threads_.end(),
                                    [](const auto& axis) { return !is_one(axis.second); });
    // Threads along an axis that is bound elsewhere in the launch all do the same here.
    if (static_cast<size_t>(axes) != tags_.size()) return false;
    return TellsThreadsByStrides(index, lanes) || TellsThreadsByDigits(index, lanes);
  }

  /*! \brief Whether digits of these strides do not reach into each other. */
  static bool AreApart(Digits digits) {
    std::sort(digits.begin(), digits.end());
    int64_t reach = 0;  // largest sum of the smaller digits
    for (const auto& [stride, extent] : digits) {
      if (stride <= reach) return false;
      reach += stride * (extent - 1);
    }
    return true;
  }

  static bool Uses(const PrimExpr& index, const Var& var) {
    return UsesVar(index, [&](const VarNode* v) { return v == var.get(); });
  }

  /*! \brief Whether every thread axis and every loop has a stride of its own. */
  bool TellsThreadsByStrides(PrimExpr index, Digits digits) {
    auto take = [&](const Var& var, const PrimExpr& extent, bool must) {
      if (!Uses(index, var)) return !must;
      Array<PrimExpr> linear = arith::DetectLinearEquation(index, {var});
      const int64_t* size = as_const_int(extent);
      const int64_t* stride = linear.size() == 2 ? as_const_int(linear[0]) : nullptr;
      if (size == nullptr || stride == nullptr || *stride <= 0) return false;
      digits.emplace_back(*stride, *size);
      index = linear[1];
      return true;
    };
    for (const auto& [var, extent] : threads_) {
      if (!is_one(extent) && !take(var, extent, true)) return false;
    }
    for (const auto& [var, trips] : loops_) {
      if (!take(var, trips->extent, false)) return false;
    }
    // What is left must be the same for all threads.
    return !IsDivergent(index) && AreApart(digits);
  }

  /*! \brief Whether an index holds all digits of every thread axis, such as `t // 4 * 6 + t % 4`.
   */
  bool TellsThreadsByDigits(const PrimExpr& index, Digits digits) {
    Map<Var, Range> iters;
    for (const auto& [var, extent] : threads_) {
      if (is_one(extent)) continue;
      if (as_const_int(extent) == nullptr || !Uses(index, var)) return false;
      iters.Set(var, Range(0, extent));
    }
    for (const auto& [var, trips] : loops_) {
      if (!Uses(index, var)) continue;
      if (as_const_int(trips->min) == nullptr || as_const_int(trips->extent) == nullptr)
        return false;
      iters.Set(var, trips);
    }
    arith::IterSumExpr sum;
    try {
      sum = arith::NormalizeToIterSum(index, iters);
    } catch (const Error& error) {
      if (error.kind() != "ValueError") throw;
      return false;
    }
    if (IsDivergent(sum->base)) return false;
    std::unordered_map<const Object*, Digits> digits_of;  // of a variable: lower factor, extent
    for (const arith::IterSplitExpr& split : sum->args) {
      const int64_t* stride = as_const_int(split->scale);
      const int64_t* extent = as_const_int(split->extent);
      const int64_t* lower = as_const_int(split->lower_factor);
      if (stride == nullptr || extent == nullptr || lower == nullptr || *stride <= 0) return false;
      digits.emplace_back(*stride, *extent);
      digits_of[split->source->source.get()].emplace_back(*lower, *extent);
    }
    for (const auto& [var, extent] : threads_) {
      if (is_one(extent)) continue;
      Digits& own = digits_of[var.get()];
      std::sort(own.begin(), own.end());
      int64_t covered = 1;
      for (const auto& [lower, size] : own) {
        if (lower > covered) return false;
        covered = std::max(covered, lower * size);
      }
      if (covered < *as_const_int(extent)) return false;
    }
    return AreApart(digits);
  }

  std::string scope_;
  StorageRank rank_;
  /*! \brief How many of the loops are around a filling of half a double buffer; 0 outside of one.
   */
  size_t loops_of_halves_ = 0;
  /*! \brief Axes of threadIdx along which the launch has several threads. */
  std::set<std::string> tags_;
  std::vector<std::pair<Var, PrimExpr>> threads_;
  std::vector<std::pair<Var, Range>> loops_;
  /*! \brief Variables whose values differ between the threads of a block. */
  std::unordered_set<const VarNode*> divergent_;
};

class LaunchFinder final : public StmtMutator {
 public:
  explicit LaunchFinder(std::string scope) : scope_(std::move(scope)) {}

 private:
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    if (op->attr_key != attr::thread_extent) return StmtMutator::VisitStmt_(op);
    return BarrierPlanner(scope_).Run(GetRef<Stmt>(op));
  }
  std::string scope_;
};

}  // namespace

namespace transform {

Pass ThreadSync(String scope) {
  TVM_CHECK(scope == "shared" || scope == "shared.dyn" || scope == "warp", ValueError)
      << "ThreadSync: threads can wait for each other in scopes \"shared\", \"shared.dyn\" and "
      << "\"warp\", got \"" << scope
      << "\"; split the program into two kernels for memory of the whole device";
  return BodyPass("tir.ThreadSync", [scope](const PrimFunc& func, const PassContext&) {
    return LaunchFinder(scope)(func->body);
  });
}

TVM_REGISTER_GLOBAL("tir.transform.ThreadSync").set_body_typed(ThreadSync);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
