/*!
 * \file src/tir/transforms/storage_rewrite.cc
 * \brief Allocations of constant size are hoisted, and share memory where lifetimes allow.
 */
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "pass_common.h"
#include "tir/ir/buffer_mutator.h"

namespace tvm {
namespace tir {
namespace {

/*! \brief An allocation that may be moved to the top of its thread. */
struct Candidate {
  const AllocateNode* op;
  /*! \brief First and last moment of use; moments number leaf statements in program order. */
  int64_t first = std::numeric_limits<int64_t>::max();
  int64_t last = -1;
  /*! \brief Number of loops around the allocation within its thread. */
  size_t depth = 0;
};

/*! \brief The code of one thread: a function's body, or that of a parallel or launched loop. */
struct Thread {
  /*! \brief In program order. */
  std::vector<Candidate> candidates;
};

/*! \brief Assigns candidates to threads and measures their lifetimes. */
class LifetimeFinder final : public StmtExprVisitor {
 public:
  std::unordered_map<const Object*, Thread> threads;

  void Run(const Stmt& body) {
    EnterThread(nullptr, [&] { VisitStmt(body); });
  }

 private:
  /*! \brief A loop being visited, and the moment it began. */
  struct OpenLoop {
    int64_t begin;
    /*! \brief Candidates used inside that live outside: alive until the loop ends. */
    std::vector<const VarNode*> carried;
  };

  template <typename F>
  void EnterThread(const Object* key, F visit) {
    const Object* outer = thread_;
    std::vector<OpenLoop> outer_loops;
    std::swap(outer_loops, loops_);
    thread_ = key;
    threads[key];
    visit();
    thread_ = outer;
    std::swap(outer_loops, loops_);
  }

  /*! \brief A use from moment `since` to the present one. */
  void Touch(const VarNode* data, int64_t since) {
    auto it = place_.find(data);
    if (it == place_.end()) return;
    const auto& [thread, position] = it->second;
    if (thread != thread_) {
      // Whoever started the present threads uses it while they run.
      crossing_.push_back(data);
      return;
    }
    Candidate& candidate = threads.at(thread).candidates[position];
    // A value may be carried around every loop between the allocation and the access.
    if (candidate.depth < loops_.size()) {
      since = loops_[candidate.depth].begin;
      loops_[candidate.depth].carried.push_back(data);
    }
    candidate.first = std::min(candidate.first, since);
    candidate.last = std::max(candidate.last, now_);
  }

  void ExtendTo(const std::vector<const VarNode*>& used, int64_t moment) {
    for (const VarNode* data : used) {
      const auto& [thread, position] = place_.at(data);
      Candidate& candidate = threads.at(thread).candidates[position];
      candidate.last = std::max(candidate.last, moment);
    }
  }

  template <typename F>
  void VisitLoop(F visit) {
    loops_.push_back({++now_, {}});
    visit();
    OpenLoop loop = std::move(loops_.back());
    loops_.pop_back();
    ++now_;
    ExtendTo(loop.carried, now_);
  }

  void VisitStmt_(const ForNode* op) final {
    VisitExpr(op->min);
    VisitExpr(op->extent);
    if (op->kind != ForKind::kParallel && op->kind != ForKind::kThreadBinding) {
      VisitLoop([&] { VisitStmt(op->body); });
      return;
    }
    Launch(op, op->body);
  }
  /*! \brief `body` runs on threads of its own, which end before the next statement. */
  void Launch(const Object* key, const Stmt& body) {
    std::vector<const VarNode*> used;
    std::swap(used, crossing_);
    int64_t begin = ++now_;
    EnterThread(key, [&] { VisitStmt(body); });
    ++now_;
    std::swap(used, crossing_);
    for (const VarNode* data : used) Touch(data, begin);
  }
  void VisitStmt_(const AttrStmtNode* op) final {
    if (op->attr_key != attr::thread_extent || in_kernel_) {
      StmtExprVisitor::VisitStmt_(op);
      return;
    }
    // What a kernel allocates belongs to the kernel.
    VisitExpr(op->value);
    in_kernel_ = true;
    Launch(op, op->body);
    in_kernel_ = false;
  }
  void VisitStmt_(const WhileNode* op) final {
    VisitLoop([&] {
      VisitExpr(op->condition);
      VisitStmt(op->body);
    });
  }
  void VisitStmt_(const AllocateNode* op) final {
    for (const PrimExpr& extent : op->extents) VisitExpr(extent);
    if (op->ConstantAllocationSize() > 0 && is_one(op->condition)) {
      std::vector<Candidate>& list = threads.at(thread_).candidates;
      place_[op->buffer_var.get()] = {thread_, list.size()};
      Candidate candidate;
      candidate.op = op;
      candidate.depth = loops_.size();
      list.push_back(candidate);
    }
    VisitStmt(op->body);
  }
  void VisitStmt_(const BufferStoreNode* op) final {
    ++now_;
    StmtExprVisitor::VisitStmt_(op);
    Touch(op->buffer->data.get(), now_);
  }
  void VisitStmt_(const EvaluateNode* op) final {
    ++now_;
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitExpr_(const BufferLoadNode* op) final {
    StmtExprVisitor::VisitExpr_(op);
    Touch(op->buffer->data.get(), now_);
  }
  void VisitExpr_(const VarNode* op) final { Touch(op, now_); }

  int64_t now_ = 0;
  bool in_kernel_ = false;
  const Object* thread_ = nullptr;
  std::vector<OpenLoop> loops_;
  /*! \brief Candidates of outer threads used in the present one. */
  std::vector<const VarNode*> crossing_;
  std::unordered_map<const VarNode*, std::pair<const Object*, size_t>> place_;
};

/*! \brief Moves the planned allocations to the top of their threads. */
class AllocationMover final : public BufferMutator {
 public:
  explicit AllocationMover(const std::unordered_map<const Object*, Thread>& threads) {
    for (const auto& [key, thread] : threads) Plan(key, thread);
  }

  Stmt Run(const Stmt& body) { return AtTop(nullptr, VisitStmt(body)); }

 private:
  /*! \brief Memory that one or several allocations use one after the other. */
  struct Slot {
    const AllocateNode* first;
    int64_t size;
    int64_t free_after;
  };

  static String ScopeOf(const AllocateNode* op) {
    return op->buffer_var->type_annotation.as<PointerTypeNode>()->storage_scope;
  }

  void Plan(const Object* key, const Thread& thread) {
    std::vector<const Candidate*> order;
    for (const Candidate& candidate : thread.candidates) {
      if (candidate.last >= 0) order.push_back(&candidate);
      moved_.insert(candidate.op);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const Candidate* a, const Candidate* b) { return a->first < b->first; });
    std::vector<Slot>& slots = slots_[key];
    for (const Candidate* candidate : order) {
      const AllocateNode* op = candidate->op;
      int64_t size = op->ConstantAllocationSize();
      auto fits = [&](const Slot& slot) {
        // The shape of a matrix fragment is that of all uses of its array.
        return ScopeOf(op).str().rfind("wmma.", 0) != 0 && slot.free_after < candidate->first &&
               slot.first->dtype == op->dtype && ScopeOf(slot.first) == ScopeOf(op) &&
               op->annotations.empty() && slot.first->annotations.empty();
      };
      // The smallest free slot that is large enough, else the largest free one, which grows.
      Slot* best = nullptr;
      for (Slot& slot : slots) {
        if (!fits(slot)) continue;
        if (best == nullptr || (best->size < size ? slot.size > best->size
                                                  : slot.size >= size && slot.size < best->size)) {
          best = &slot;
        }
      }
      if (best == nullptr) {
        slots.push_back({op, size, candidate->last});
        continue;
      }
      best->size = std::max(best->size, size);
      best->free_after = candidate->last;
      shared_[op->buffer_var.get()] = best->first->buffer_var;
    }
  }

  Stmt AtTop(const Object* key, Stmt body) {
    const std::vector<Slot>& slots = slots_[key];
    for (auto it = slots.rbegin(); it != slots.rend(); ++it) {
      const AllocateNode* op = it->first;
      // One extent is enough: accesses are flat.
      PrimExpr size =
          make_const(op->extents.empty() ? DataType::Int(32) : op->extents[0].dtype(), it->size);
      body = Allocate(op->buffer_var, op->dtype, {size}, const_true(), body, op->annotations);
    }
    return body;
  }

  Stmt VisitStmt_(const AllocateNode* op) final {
    if (moved_.count(op) != 0) return VisitStmt(op->body);
    return BufferMutator::VisitStmt_(op);
  }
  Stmt VisitStmt_(const ForNode* op) final {
    Stmt stmt = BufferMutator::VisitStmt_(op);
    auto it = slots_.find(op);
    if (it == slots_.end() || it->second.empty()) return stmt;
    For loop = Downcast<For>(stmt);
    loop.CopyOnWrite()->body = AtTop(op, loop->body);
    return loop;
  }
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    Stmt stmt = BufferMutator::VisitStmt_(op);
    auto it = slots_.find(op);
    if (it == slots_.end() || it->second.empty()) return stmt;
    AttrStmt launch = Downcast<AttrStmt>(stmt);
    launch.CopyOnWrite()->body = AtTop(op, launch->body);
    return launch;
  }
  PrimExpr VisitExpr_(const VarNode* op) final {
    auto it = shared_.find(op);
    return it == shared_.end() ? GetRef<PrimExpr>(op) : PrimExpr(it->second);
  }
  Buffer VisitBuffer(const Buffer& buffer) final {
    auto it = shared_.find(buffer->data.get());
    if (it == shared_.end()) return buffer;
    auto [at, fresh] = buffers_.try_emplace(buffer.get(), buffer);
    if (fresh) at->second.CopyOnWrite()->data = it->second;
    return at->second;
  }

  std::unordered_map<const Object*, std::vector<Slot>> slots_;
  std::unordered_set<const AllocateNode*> moved_;
  /*! \brief The pointer that an allocation without a slot of its own uses. */
  std::unordered_map<const VarNode*, Var> shared_;
  std::unordered_map<const BufferNode*, Buffer> buffers_;
};

}  // namespace

namespace transform {

Pass StorageRewrite() {
  return BodyPass("tir.StorageRewrite", [](const PrimFunc& func, const PassContext&) {
    LifetimeFinder lifetimes;
    lifetimes.Run(func->body);
    bool any = std::any_of(lifetimes.threads.begin(), lifetimes.threads.end(),
                           [](const auto& entry) { return !entry.second.candidates.empty(); });
    return any ? AllocationMover(lifetimes.threads).Run(func->body) : func->body;
  });
}

TVM_REGISTER_GLOBAL("tir.transform.StorageRewrite").set_body_typed(StorageRewrite);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
