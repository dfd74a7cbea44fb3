/*!
 * \file src/tir/transforms/allocation_lifetimes.cc
 * \brief When allocations are used, and which of them may take over the memory of another one.
 */
#include "allocation_lifetimes.h"

#include <tvm/arith/analyzer.h>
#include <tvm/arith/pattern.h>
#include <tvm/expr/analysis.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/launch.h>

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

namespace tvm {
namespace tir {
namespace {

/*! \brief Assigns allocations to threads and measures their lifetimes. */
class LifetimeFinder final : public StmtExprVisitor {
 public:
  AllocationLifetimes found;

  void Run(const Stmt& body) {
    EnterThread(nullptr, [&] { VisitStmt(body); });
  }

 private:
  /*! \brief A loop being visited, and the moment it began. */
  struct OpenLoop {
    int64_t begin;
    /*! \brief Allocations used inside that live outside: alive until the loop ends. */
    std::vector<const VarNode*> carried;
  };

  template <typename F>
  void EnterThread(const Object* key, F visit) {
    const Object* outer = thread_;
    std::vector<OpenLoop> outer_loops;
    std::swap(outer_loops, loops_);
    thread_ = key;
    found.threads[key];
    visit();
    thread_ = outer;
    std::swap(outer_loops, loops_);
  }

  AllocationLifetime* Find(const VarNode* data) {
    auto it = place_.find(data);
    if (it == place_.end()) return nullptr;
    return &found.threads.at(it->second.first)[it->second.second];
  }

  /*! \brief A use from moment `since` to the present one. */
  void Touch(const VarNode* data, int64_t since) {
    AllocationLifetime* lifetime = Find(data);
    if (lifetime == nullptr) return;
    if (place_.at(data).first != thread_) {
      // Whoever started the present threads uses it while they run.
      crossing_.push_back(data);
      return;
    }
    // A value may be carried around every loop between the allocation and the access.
    if (lifetime->depth < loops_.size()) {
      since = loops_[lifetime->depth].begin;
      loops_[lifetime->depth].carried.push_back(data);
    }
    lifetime->first = std::min(lifetime->first, since);
    lifetime->last = std::max(lifetime->last, now_);
  }

  void Access(const Buffer& buffer, const Array<PrimExpr>& indices) {
    Touch(buffer->data.get(), now_);
    AllocationLifetime* lifetime = Find(buffer->data.get());
    if (lifetime != nullptr && indices.size() != 1) lifetime->opaque = true;
  }

  /*! \brief Visits what is evaluated at a moment of its own. */
  void Evaluated(const PrimExpr& expr) {
    ++now_;
    VisitExpr(expr);
  }

  void Leaf(const StmtNode* op) { found.starts[now_] = {GetRef<Stmt>(op), now_}; }

  template <typename F>
  void VisitLoop(const StmtNode* op, F visit) {
    int64_t begin = ++now_;
    loops_.push_back({begin, {}});
    visit();
    OpenLoop loop = std::move(loops_.back());
    loops_.pop_back();
    ++now_;
    for (const VarNode* data : loop.carried) {
      AllocationLifetime* lifetime = Find(data);
      lifetime->last = std::max(lifetime->last, now_);
    }
    found.starts[begin] = {GetRef<Stmt>(op), now_};
  }

  void VisitStmt_(const ForNode* op) final {
    Evaluated(op->min);
    VisitExpr(op->extent);
    bool threads = op->kind == ForKind::kParallel || op->kind == ForKind::kThreadBinding;
    bound_in_[op->loop_var.get()] = thread_;
    if (!threads) {
      VisitLoop(op, [&] { VisitStmt(op->body); });
    } else {
      Launch(op, op->body);
    }
  }
  /*! \brief `body` runs on threads of its own, which end before the next statement. */
  void Launch(const StmtNode* key, const Stmt& body) {
    std::vector<const VarNode*> used;
    std::swap(used, crossing_);
    int64_t begin = ++now_;
    EnterThread(key, [&] { VisitStmt(body); });
    ++now_;
    std::swap(used, crossing_);
    for (const VarNode* data : used) Touch(data, begin);
    found.starts[begin] = {GetRef<Stmt>(key), now_};
  }
  void VisitStmt_(const AttrStmtNode* op) final {
    Evaluated(op->value);
    if (const auto* axis = op->node.as<IterVarNode>()) bound_in_[axis->var.get()] = thread_;
    if (op->attr_key != attr::thread_extent || in_kernel_) {
      VisitStmt(op->body);
      return;
    }
    // What a kernel allocates belongs to the kernel.
    in_kernel_ = true;
    Launch(op, op->body);
    in_kernel_ = false;
  }
  void VisitStmt_(const WhileNode* op) final {
    VisitLoop(op, [&] {
      Evaluated(op->condition);
      VisitStmt(op->body);
    });
  }
  void VisitStmt_(const LetStmtNode* op) final {
    Evaluated(op->value);
    bound_in_[op->var.get()] = thread_;
    std::vector<const VarNode*> pointed;
    if (op->var.dtype().is_handle()) {
      PostOrderVisit(op->value, [&](const ObjectRef& part) {
        const auto* var = part.as<VarNode>();
        if (const auto* load = part.as<BufferLoadNode>()) var = load->buffer->data.get();
        if (var != nullptr && place_.count(var) != 0) pointed.push_back(var);
      });
    }
    VisitStmt(op->body);
    if (pointed.empty()) return;
    // The other name of the memory may be used up to here.
    ++now_;
    for (const VarNode* data : pointed) {
      Touch(data, now_);
      Find(data)->opaque = true;
    }
  }
  void VisitStmt_(const AssertStmtNode* op) final {
    Evaluated(op->condition);
    VisitStmt(op->body);
  }
  void VisitStmt_(const IfThenElseNode* op) final {
    Evaluated(op->condition);
    VisitStmt(op->then_case);
    if (op->else_case.defined()) VisitStmt(op->else_case);
  }
  /*! \brief Whether the top of the present thread knows the size. */
  bool IsKnownAtTop(const AllocateNode* op) const {
    return is_one(op->condition) &&
           std::all_of(op->extents.begin(), op->extents.end(), [&](const PrimExpr& extent) {
             return SideEffect(extent) <= CallEffectKind::kPure &&
                    !UsesVar(extent, [&](const VarNode* var) {
                      auto it = bound_in_.find(var);
                      return it != bound_in_.end() && it->second == thread_;
                    });
           });
  }
  void VisitStmt_(const AllocateNode* op) final {
    ++now_;
    for (const PrimExpr& extent : op->extents) VisitExpr(extent);
    if (IsKnownAtTop(op)) {
      std::vector<AllocationLifetime>& list = found.threads.at(thread_);
      place_[op->buffer_var.get()] = {thread_, list.size()};
      AllocationLifetime lifetime;
      lifetime.op = op;
      lifetime.depth = loops_.size();
      list.push_back(lifetime);
    }
    VisitStmt(op->body);
  }
  void VisitStmt_(const BufferStoreNode* op) final {
    ++now_;
    StmtExprVisitor::VisitStmt_(op);
    Access(op->buffer, op->indices);
    Leaf(op);
  }
  void VisitStmt_(const EvaluateNode* op) final {
    ++now_;
    StmtExprVisitor::VisitStmt_(op);
    Leaf(op);
  }
  void VisitExpr_(const BufferLoadNode* op) final {
    StmtExprVisitor::VisitExpr_(op);
    Access(op->buffer, op->indices);
  }
  void VisitExpr_(const VarNode* op) final {
    Touch(op, now_);
    if (AllocationLifetime* lifetime = Find(op)) lifetime->opaque = true;
  }

  int64_t now_ = 0;
  bool in_kernel_ = false;
  const Object* thread_ = nullptr;
  std::vector<OpenLoop> loops_;
  /*! \brief Allocations of outer threads used in the present one. */
  std::vector<const VarNode*> crossing_;
  std::unordered_map<const VarNode*, std::pair<const Object*, size_t>> place_;
  /*! \brief The thread in whose code a variable gets its value. */
  std::unordered_map<const VarNode*, const Object*> bound_in_;
};

/*! \brief Finds the one store of `to`, the loops around it, and what else is done with both. */
class InPlaceChecker final : public StmtExprVisitor {
 public:
  InPlaceChecker(const Var& to, const Var& from) : to_(to.get()), from_(from.get()) {}

  bool Run(const Stmt& stmt) {
    VisitStmt(stmt);
    return allowed_ && store_ != nullptr && WritesOnce();
  }

 private:
  bool IsEither(const VarNode* var) const { return var == to_ || var == from_; }

  template <typename F>
  void Inside(const Var& var, const PrimExpr& extent, F visit) {
    loops_.emplace_back(var, extent);
    visit();
    loops_.pop_back();
  }

  void VisitStmt_(const ForNode* op) final {
    VisitExpr(op->min);
    VisitExpr(op->extent);
    Inside(op->loop_var, op->extent, [&] { VisitStmt(op->body); });
  }
  void VisitStmt_(const AttrStmtNode* op) final {
    VisitExpr(op->value);
    const auto* axis = op->node.as<IterVarNode>();
    bool threads = op->attr_key == attr::thread_extent || op->attr_key == attr::virtual_thread;
    if (threads && axis != nullptr) {
      Inside(axis->var, op->value, [&] { VisitStmt(op->body); });
      return;
    }
    for (const char* key : {"extern_scope", "volatile_scope", "double_buffer_scope"}) {
      if (op->attr_key == key) allowed_ = false;
    }
    if (op->attr_key == attr::double_buffer_write) allowed_ = false;
    VisitStmt(op->body);
  }
  void VisitStmt_(const WhileNode*) final { allowed_ = false; }
  void VisitStmt_(const BufferStoreNode* op) final {
    const VarNode* data = op->buffer->data.get();
    if (data == from_) allowed_ = false;
    for (const PrimExpr& index : op->indices) VisitExpr(index);
    if (data != to_) {
      VisitExpr(op->value);
      return;
    }
    if (store_ != nullptr) allowed_ = false;
    store_ = op;
    around_ = loops_;
    making_ = true;
    VisitExpr(op->value);
    making_ = false;
  }
  void VisitExpr_(const BufferLoadNode* op) final {
    const VarNode* data = op->buffer->data.get();
    // An element that is read again once it is written would be another one.
    if (data == to_ || (data == from_ && !(making_ && SameElement(op)))) allowed_ = false;
    for (const PrimExpr& index : op->indices) VisitExpr(index);
  }
  bool SameElement(const BufferLoadNode* op) const {
    return op->indices.size() == store_->indices.size() &&
           op->buffer->dtype == store_->buffer->dtype &&
           std::equal(op->indices.begin(), op->indices.end(), store_->indices.begin(),
                      ExprDeepEqual());
  }
  void VisitExpr_(const CallNode* op) final {
    if (op->op.same_as(builtin::address_of())) {
      const auto* load = op->args[0].as<BufferLoadNode>();
      if (load != nullptr && IsEither(load->buffer->data.get())) allowed_ = false;
    }
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const VarNode* op) final {
    if (IsEither(op)) allowed_ = false;
  }

  /*! \brief Whether no two trips of the loops around the store write the same element. */
  bool WritesOnce() const {
    // Digits of a number never carry, whatever the other ones are; each index has its own loops.
    std::unordered_set<const VarNode*> placed;
    for (const PrimExpr& index : store_->indices) {
      std::vector<Digit> digits;
      PrimExpr rest = index;
      if (index.dtype().is_scalable_vector()) return false;
      if (const auto* ramp = index.as<RampNode>()) {
        digits.push_back({ramp->stride, ramp->lanes});
        rest = ramp->base;
      }
      if (!rest.dtype().is_scalar()) return false;
      for (auto it = around_.rbegin(); it != around_.rend(); ++it) {
        const auto& [var, extent] = *it;
        if (is_one(extent) || !UsesVar(rest, [v = var.get()](auto* used) { return used == v; })) {
          continue;
        }
        Array<PrimExpr> linear = arith::DetectLinearEquation(rest, {var});
        if (linear.size() != 2) return false;
        digits.push_back({linear[0], extent});
        rest = linear[1];
        placed.insert(var.get());
      }
      if (!NeverCarry(std::move(digits))) return false;
    }
    return std::all_of(around_.begin(), around_.end(), [&](const auto& loop) {
      return is_one(loop.second) || placed.count(loop.first.get()) != 0;
    });
  }

  struct Digit {
    PrimExpr stride;
    PrimExpr extent;
  };
  static bool NeverCarry(std::vector<Digit> digits) {
    bool constant = std::all_of(digits.begin(), digits.end(), [](const Digit& digit) {
      return as_const_int(digit.stride) != nullptr;
    });
    // Inner loops mostly have the smaller strides, so symbols stay in that order.
    if (constant) {
      std::stable_sort(digits.begin(), digits.end(), [](const Digit& a, const Digit& b) {
        return *as_const_int(a.stride) < *as_const_int(b.stride);
      });
    }
    arith::Analyzer analyzer;
    PrimExpr reach = make_const(DataType::Int(64), 0);  // largest sum of the smaller digits
    for (const Digit& digit : digits) {
      PrimExpr stride = cast(DataType::Int(64), digit.stride);
      PrimExpr extent = cast(DataType::Int(64), digit.extent);
      if (!analyzer.CanProve(stride > reach)) return false;
      reach = analyzer.Simplify(reach + stride * (extent - 1));
    }
    return true;
  }

  const VarNode* to_;
  const VarNode* from_;
  bool allowed_ = true;
  bool making_ = false;
  const BufferStoreNode* store_ = nullptr;
  std::vector<std::pair<Var, PrimExpr>> loops_;
  std::vector<std::pair<Var, PrimExpr>> around_;
};

}  // namespace

AllocationLifetimes FindAllocationLifetimes(const Stmt& body) {
  LifetimeFinder finder;
  finder.Run(body);
  return std::move(finder.found);
}

bool CanWriteInPlace(const Stmt& stmt, const Var& to, const Var& from) {
  return InPlaceChecker(to, from).Run(stmt);
}

}  // namespace tir
}  // namespace tvm
