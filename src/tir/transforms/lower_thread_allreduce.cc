/*!
 * \file src/tir/transforms/lower_thread_allreduce.cc
 * \brief Reductions over threads by exchanges within a warp or through shared memory.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/target/target.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/launch.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "pass_common.h"

namespace tvm {
namespace tir {
namespace {

bool IsPowerOfTwo(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

/*!
 * \brief Counts how memory of one element is used, to know which results may move.
 *
 * A result that only one exchange writes, and that is read by its element alone, may live wherever
 * the exchange leaves it.
 */
class ResultUses final : public StmtExprVisitor {
 public:
  explicit ResultUses(const Stmt& body) { VisitStmt(body); }

  /*! \brief Whether one exchange alone writes it, and `place` can be told wherever it is read. */
  bool CanMove(const Buffer& result, const PrimExpr& place) const {
    auto it = uses_.find(result->data.get());
    if (it == uses_.end() || !it->second.allocated || it->second.exchanges != 1 ||
        it->second.otherwise) {
      return false;
    }
    const auto& threads = it->second.threads;
    return !UsesVar(place, [&](const VarNode* var) {
      return std::find(threads.begin(), threads.end(), var) == threads.end();
    });
  }

 private:
  struct Uses {
    bool allocated = false;
    int exchanges = 0;
    bool otherwise = false;
    /*! \brief The thread axes around all reads. */
    std::vector<const VarNode*> threads;
    bool read = false;
  };

  void VisitStmt_(const AttrStmtNode* op) final {
    bool thread = op->attr_key == attr::thread_extent;
    if (thread) threads_.push_back(Downcast<IterVar>(op->node)->var.get());
    StmtExprVisitor::VisitStmt_(op);
    if (thread) threads_.pop_back();
  }

  void VisitStmt_(const AllocateNode* op) final {
    Uses& uses = uses_[op->buffer_var.get()];
    bool one = op->extents.size() == 1 && is_one(op->extents[0]);
    if (one && is_one(op->condition) && !uses.allocated) {
      uses.allocated = true;
    } else {
      uses.otherwise = true;
    }
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const DeclBufferNode* op) final { VisitStmt(op->body); }
  void VisitStmt_(const BufferStoreNode* op) final {
    uses_[op->buffer->data.get()].otherwise = true;
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitExpr_(const BufferLoadNode* op) final {
    Uses& uses = uses_[op->buffer->data.get()];
    if (!IsTheElement(op)) uses.otherwise = true;
    // Nested axes: those around two reads are what their lists begin with alike.
    auto end =
        std::mismatch(uses.threads.begin(), uses.threads.end(), threads_.begin(), threads_.end());
    uses.threads =
        uses.read ? std::vector<const VarNode*>(uses.threads.begin(), end.first) : threads_;
    uses.read = true;
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const VarNode* op) final { uses_[op].otherwise = true; }
  void VisitExpr_(const CallNode* op) final {
    if (op->op.same_as(builtin::tvm_thread_allreduce())) {
      size_t count = static_cast<size_t>(*as_const_int(op->args[0]));
      for (size_t i = 2 + count; i < 2 + 2 * count; ++i) {
        if (const auto* load = op->args[i].as<BufferLoadNode>()) {
          ++uses_[load->buffer->data.get()].exchanges;
        }
      }
    }
    StmtExprVisitor::VisitExpr_(op);
  }

  static bool IsTheElement(const BufferLoadNode* op) {
    return op->buffer->shape.size() == 1 && is_one(op->buffer->shape[0]) && is_zero(op->indices[0]);
  }

  std::unordered_map<const VarNode*, Uses> uses_;
  std::vector<const VarNode*> threads_;
};

/*! \brief Reads a result where the exchange left it. */
class ResultMover final : public StmtExprMutator {
 public:
  ResultMover(Var from, BufferLoad to) : from_(std::move(from)), to_(std::move(to)) {}

 private:
  Stmt VisitStmt_(const DeclBufferNode* op) final {
    if (op->buffer->data.same_as(from_)) return VisitStmt(op->body);
    return StmtExprMutator::VisitStmt_(op);
  }
  PrimExpr VisitExpr_(const BufferLoadNode* op) final {
    if (op->buffer->data.same_as(from_)) return to_;
    return StmtExprMutator::VisitExpr_(op);
  }

  Var from_;
  BufferLoad to_;
};

class AllreduceLowerer final : public StmtExprMutator {
 public:
  AllreduceLowerer(std::string function, const Stmt& body, int64_t warp_size, bool takes_mask)
      : function_(std::move(function)),
        uses_(body),
        warp_size_(warp_size),
        takes_mask_(takes_mask) {}

 private:
  struct Thread {
    IterVar axis;
    PrimExpr extent;
  };
  /*! \brief The threads of the block, as seen by one reduction. */
  struct Group {
    /*! \brief Threads that are combined, and the place of this one among them. */
    int64_t size = 1;
    PrimExpr lane = PrimExpr(0);
    /*! \brief Groups of the block, and the place of this one's. */
    int64_t count = 1;
    PrimExpr number = PrimExpr(0);
    /*! \brief Whether the threads of a group have consecutive numbers. */
    bool consecutive = true;
  };
  /*! \brief Statements in order, and the memory that they need. */
  struct Exchange {
    std::vector<Buffer> memory;
    Array<Stmt> steps;

    Buffer Need(const std::string& name, DataType dtype, int64_t size, const std::string& scope) {
      memory.push_back(decl_buffer({PrimExpr(static_cast<int>(size))}, dtype, name, scope));
      return memory.back();
    }
    Stmt Finish() const {
      Stmt body = SeqStmt::Flatten(steps);
      for (auto it = memory.rbegin(); it != memory.rend(); ++it) {
        body =
            Allocate((*it)->data, (*it)->dtype, (*it)->shape, const_true(), DeclBuffer(*it, body));
      }
      return body;
    }
  };

  Stmt VisitStmt_(const AttrStmtNode* op) final {
    if (op->attr_key == attr::thread_extent) {
      IterVar axis = Downcast<IterVar>(op->node);
      bool counts = ParseThreadTag(axis->thread_tag).kind == ThreadKind::kThread;
      if (counts) threads_.push_back({axis, op->value});
      Stmt stmt = StmtExprMutator::VisitStmt_(op);
      if (counts) threads_.pop_back();
      return stmt;
    }
    if (op->attr_key == attr::reduce_scope && op->node.as<CommReducerNode>()) {
      const auto* evaluate = op->body.as<EvaluateNode>();
      const auto* call = evaluate ? evaluate->value.as<CallNode>() : nullptr;
      if (call != nullptr && call->op.same_as(builtin::tvm_thread_allreduce())) {
        return AttrStmt(op->node, op->attr_key, op->value,
                        Lower(Downcast<CommReducer>(op->node), call));
      }
    }
    return StmtExprMutator::VisitStmt_(op);
  }

  Stmt VisitStmt_(const AllocateNode* op) final {
    Stmt stmt = StmtExprMutator::VisitStmt_(op);
    auto it = moved_.find(op->buffer_var.get());
    if (it == moved_.end()) return stmt;
    const Buffer& to = it->second->buffer;
    Stmt body = ResultMover(op->buffer_var, it->second)(Downcast<Allocate>(stmt)->body);
    return Allocate(to->data, to->dtype, to->shape, const_true(),
                    AttrStmt(to->data, "volatile_scope", 1, body));
  }

  Stmt Lower(const CommReducer& combiner, const CallNode* call) {
    size_t count = static_cast<size_t>(*as_const_int(call->args[0]));
    std::vector<PrimExpr> starts;
    std::vector<BufferLoad> results;
    PrimExpr condition = call->args[1 + count];
    for (size_t i = 0; i < count; ++i) {
      PrimExpr source = call->args[1 + i];
      PrimExpr nothing = combiner->identity_element[i];
      starts.push_back(is_one(condition) ? source : if_then_else(condition, source, nothing));
      results.push_back(Downcast<BufferLoad>(call->args[2 + count + i]));
    }
    std::vector<const VarNode*> reduced;
    for (size_t i = 2 + 2 * count; i < call->args.size(); ++i) {
      if (const VarNode* thread = ReducedThread(call->args[i])) reduced.push_back(thread);
    }
    Group group = GroupOf(reduced);
    if (group.size == 1) return Copy(results, starts);
    if (warp_size_ > 1 && group.consecutive && CanShuffle(starts)) {
      if (IsPowerOfTwo(group.size) && warp_size_ % group.size == 0) {
        return InWarp(combiner, group, results, starts);
      }
      if (group.size % warp_size_ == 0 && group.size <= warp_size_ * warp_size_) {
        return OverWarps(combiner, group, results, starts);
      }
    }
    return InShared(combiner, group, results, starts);
  }

  /*! \brief The variable of a thread axis that an operand names; null for an axis of one thread. */
  const VarNode* ReducedThread(PrimExpr operand) const {
    // Passes that narrow or widen variables extend them back where they are read.
    while (const auto* cast = operand.as<CastNode>()) operand = cast->value;
    if (is_zero(operand)) return nullptr;
    const auto* var = operand.as<VarNode>();
    bool is_thread = std::any_of(threads_.begin(), threads_.end(), [&](const Thread& thread) {
      return thread.axis->var.get() == var;
    });
    TVM_CHECK(is_thread, ValueError)
        << "LowerThreadAllreduce: " << function_ << " reduces over " << operand
        << ", which is not the variable of a thread axis around the reduction";
    return var;
  }

  static Stmt Copy(const std::vector<BufferLoad>& results, const std::vector<PrimExpr>& values) {
    Array<Stmt> stores;
    for (size_t i = 0; i < results.size(); ++i) {
      stores.push_back(BufferStore(results[i]->buffer, values[i], results[i]->indices));
    }
    return SeqStmt::Flatten(stores);
  }

  static bool CanShuffle(const std::vector<PrimExpr>& values) {
    return std::all_of(values.begin(), values.end(), [](const PrimExpr& value) {
      DataType dtype = value.dtype();
      return dtype.is_scalar() && (dtype.bits() == 32 || dtype.bits() == 64);
    });
  }

  Group GroupOf(const std::vector<const VarNode*>& reduced) const {
    // One axis may be named by several variables; the outermost attribute says its extent.
    const Thread* by_dim[3] = {nullptr, nullptr, nullptr};
    bool is_reduced[3] = {false, false, false};
    for (const Thread& thread : threads_) {
      int dim = ParseThreadTag(thread.axis->thread_tag).dim;
      if (by_dim[dim] == nullptr) by_dim[dim] = &thread;
      for (const VarNode* var : reduced) {
        if (var == thread.axis->var.get()) is_reduced[dim] = true;
      }
    }
    Group group;
    for (int dim = 0; dim < 3; ++dim) {
      if (by_dim[dim] == nullptr) continue;
      const int64_t* extent = as_const_int(by_dim[dim]->extent);
      TVM_CHECK(extent != nullptr, ValueError)
          << "LowerThreadAllreduce: " << function_ << " reduces over threads, but the extent "
          << by_dim[dim]->extent << " of " << by_dim[dim]->axis->thread_tag
          << " is not constant; split the loop by a constant and bind the inner part";
      if (*extent == 1) continue;
      const Var& var = by_dim[dim]->axis->var;
      if (is_reduced[dim]) {
        if (group.count > 1) group.consecutive = false;
        group.lane =
            group.size == 1 ? PrimExpr(var) : group.lane + var * static_cast<int>(group.size);
        group.size *= *extent;
      } else {
        group.number =
            group.count == 1 ? PrimExpr(var) : group.number + var * static_cast<int>(group.count);
        group.count *= *extent;
      }
    }
    return group;
  }

  /*! \brief buffers[index] = combiner(buffers[index], others), all computed before the stores. */
  static Stmt Combine(const CommReducer& combiner, const std::vector<Buffer>& buffers,
                      const PrimExpr& index, const Array<PrimExpr>& others) {
    Array<PrimExpr> own;
    for (const Buffer& buffer : buffers) own.push_back(BufferLoad(buffer, {index}));
    Array<PrimExpr> combined = (*combiner.get())(own, others);
    Array<Stmt> stores;
    std::vector<Var> names;
    for (size_t i = 0; i < buffers.size(); ++i) {
      names.emplace_back(buffers[i]->name + ".new", buffers[i]->dtype);
      PrimExpr value = buffers.size() == 1 ? PrimExpr(combined[i]) : PrimExpr(names[i]);
      stores.push_back(BufferStore(buffers[i], value, {index}));
    }
    Stmt body = SeqStmt::Flatten(stores);
    if (buffers.size() == 1) return body;
    for (size_t i = buffers.size(); i != 0; --i) {
      body = LetStmt(names[i - 1], combined[i - 1], body);
    }
    return body;
  }

  /*!
   * \brief Combines `values` over the first `size` of each `width` lanes; the first has the total.
   *
   * The other lanes end with something.
   */
  void ShuffleDown(const CommReducer& combiner, const std::vector<Buffer>& values,
                   const PrimExpr& mask, const std::vector<Buffer>& received, int64_t size,
                   int64_t width, Exchange* exchange) const {
    PrimExpr zero(0);
    for (int64_t distance = size / 2; distance >= 1; distance /= 2) {
      Array<PrimExpr> others;
      for (size_t i = 0; i < values.size(); ++i) {
        // Received first: every thread takes part in the exchange, whatever the combiner skips.
        exchange->steps.push_back(
            BufferStore(received[i],
                        Shuffle(builtin::tvm_warp_shuffle_down(), mask, values[i],
                                PrimExpr(static_cast<int>(distance)), width),
                        {zero}));
        others.push_back(BufferLoad(received[i], {zero}));
      }
      exchange->steps.push_back(Combine(combiner, values, zero, others));
    }
  }

  PrimExpr Shuffle(const Op& op, const PrimExpr& mask, const Buffer& buffer, PrimExpr lane,
                   int64_t width) const {
    PrimExpr own = BufferLoad(buffer, {PrimExpr(0)});
    return Call(own.dtype(), op,
                {mask, own, std::move(lane), PrimExpr(static_cast<int>(width)),
                 PrimExpr(static_cast<int>(warp_size_))});
  }

  /*! \brief Memory for the mask of active lanes; every lane that shuffles has to be in its mask. */
  PrimExpr NeedMask(Exchange* exchange) const {
    if (!takes_mask_) return PrimExpr(0);
    return BufferLoad(exchange->Need("mask", DataType::UInt(32), 1, "local"), {PrimExpr(0)});
  }
  static void SetMask(const PrimExpr& mask, Exchange* exchange) {
    if (const auto* load = mask.as<BufferLoadNode>()) {
      exchange->steps.push_back(
          BufferStore(load->buffer, Call(DataType::UInt(32), builtin::tvm_warp_activemask(), {}),
                      load->indices));
    }
  }

  static std::vector<Buffer> NeedAll(const std::string& name, const std::vector<PrimExpr>& like,
                                     int64_t size, const std::string& scope, Exchange* exchange) {
    std::vector<Buffer> buffers;
    for (size_t i = 0; i < like.size(); ++i) {
      buffers.push_back(exchange->Need(name + std::to_string(i), like[i].dtype(), size, scope));
    }
    return buffers;
  }

  static void SetAll(const std::vector<Buffer>& buffers, const std::vector<PrimExpr>& values,
                     Array<Stmt>* steps) {
    for (size_t i = 0; i < buffers.size(); ++i) {
      steps->push_back(BufferStore(buffers[i], values[i], {PrimExpr(0)}));
    }
  }

  /*! \brief Whether the lanes may combine their values in the memory of the results. */
  static bool AreRegisters(const std::vector<BufferLoad>& results,
                           const std::vector<PrimExpr>& starts) {
    std::unordered_set<const VarNode*> vars;
    for (const BufferLoad& result : results) {
      const Buffer& buffer = result->buffer;
      if (buffer.scope() != "local" || buffer->shape.size() != 1 || !is_one(buffer->shape[0]) ||
          !is_zero(result->indices[0]) || !vars.insert(buffer->data.get()).second) {
        return false;
      }
    }
    // Of several values the first would be overwritten before the second is read.
    return starts.size() == 1 ||
           std::none_of(starts.begin(), starts.end(), [&](const PrimExpr& start) {
             bool reads = false;
             PostOrderVisit(start, [&](const ObjectRef& node) {
               const auto* load = node.as<BufferLoadNode>();
               reads |= load != nullptr && vars.count(load->buffer->data.get()) != 0;
             });
             return reads;
           });
  }

  Stmt InWarp(const CommReducer& combiner, const Group& group,
              const std::vector<BufferLoad>& results, const std::vector<PrimExpr>& starts) {
    Exchange exchange;
    bool in_place = AreRegisters(results, starts);
    std::vector<Buffer> values;
    if (in_place) {
      for (const BufferLoad& result : results) values.push_back(result->buffer);
    } else {
      values = NeedAll("red_buf", starts, 1, "local", &exchange);
    }
    PrimExpr mask = NeedMask(&exchange);
    std::vector<Buffer> received = NeedAll("t", starts, 1, "local", &exchange);
    SetAll(values, starts, &exchange.steps);
    SetMask(mask, &exchange);
    ShuffleDown(combiner, values, mask, received, group.size, group.size, &exchange);
    PrimExpr first =
        group.count == 1 ? PrimExpr(0) : PrimExpr(static_cast<int>(group.size)) * group.number;
    std::vector<PrimExpr> totals;
    for (const Buffer& value : values) {
      totals.push_back(Shuffle(builtin::tvm_warp_shuffle(), mask, value, first, group.size));
    }
    exchange.steps.push_back(Copy(results, totals));
    return exchange.Finish();
  }

  /*!
   * \brief Each warp combines its lanes, then the first of a group combines what the warps found.
   *
   * Two barriers, however many warps there are.
   */
  Stmt OverWarps(const CommReducer& combiner, const Group& group,
                 const std::vector<BufferLoad>& results, const std::vector<PrimExpr>& starts) {
    int64_t warps = group.size / warp_size_;
    int64_t lanes = 1;
    while (lanes < warps) lanes *= 2;
    PrimExpr zero(0);
    Exchange exchange;
    std::vector<Buffer> second = NeedAll("red_buf", starts, 1, "local", &exchange);
    PrimExpr second_mask = NeedMask(&exchange);
    std::vector<Buffer> second_received = NeedAll("t", starts, 1, "local", &exchange);
    std::vector<Buffer> first = NeedAll("red_buf", starts, 1, "local", &exchange);
    PrimExpr first_mask = NeedMask(&exchange);
    std::vector<Buffer> first_received = NeedAll("t", starts, 1, "local", &exchange);
    std::vector<Buffer> staging =
        NeedAll("red_buf_staging", starts, warps * group.count, "shared", &exchange);

    SetAll(first, starts, &exchange.steps);
    SetMask(first_mask, &exchange);
    ShuffleDown(combiner, first, first_mask, first_received, warp_size_, warp_size_, &exchange);
    auto place = [&](const PrimExpr& warp) {
      return group.count == 1 ? warp : group.number * static_cast<int>(warps) + warp;
    };
    PrimExpr warp_size(static_cast<int>(warp_size_));
    Array<Stmt> hand_over, take;
    for (size_t i = 0; i < starts.size(); ++i) {
      hand_over.push_back(BufferStore(staging[i], BufferLoad(first[i], {zero}),
                                      {place(floordiv(group.lane, warp_size))}));
      take.push_back(BufferStore(second[i], BufferLoad(staging[i], {place(group.lane)}), {zero}));
    }
    exchange.steps.push_back(
        IfThenElse(floormod(group.lane, warp_size) == 0, SeqStmt::Flatten(hand_over)));
    exchange.steps.push_back(Barrier());
    if (lanes != warps) {
      SetAll(second, {combiner->identity_element.begin(), combiner->identity_element.end()},
             &exchange.steps);
    }
    exchange.steps.push_back(
        IfThenElse(group.lane < static_cast<int>(warps), SeqStmt::Flatten(take)));
    SetMask(second_mask, &exchange);
    ShuffleDown(combiner, second, second_mask, second_received, lanes, warp_size_, &exchange);

    Array<Stmt> publish, fetch;
    for (size_t i = 0; i < starts.size(); ++i) {
      bool move = uses_.CanMove(results[i]->buffer, group.number);
      PrimExpr extent(static_cast<int>(group.count));
      Buffer total = move ? decl_buffer({extent}, starts[i].dtype(), "red_result", "shared")
                          : exchange.Need("red_result", starts[i].dtype(), group.count, "shared");
      BufferLoad load(total, {group.number});
      publish.push_back(BufferStore(total, BufferLoad(second[i], {zero}), {group.number}));
      if (move) {
        moved_.emplace(results[i]->buffer->data.get(), load);
      } else {
        fetch.push_back(BufferStore(results[i]->buffer, load, results[i]->indices));
      }
    }
    exchange.steps.push_back(IfThenElse(group.lane == 0, SeqStmt::Flatten(publish)));
    exchange.steps.push_back(Barrier());
    for (const Stmt& step : fetch) exchange.steps.push_back(step);
    return exchange.Finish();
  }

  static Stmt Barrier() {
    return Evaluate(Call(DataType::Int(32), builtin::tvm_storage_sync(), {StringImm("shared")}));
  }

  Stmt InShared(const CommReducer& combiner, const Group& group,
                const std::vector<BufferLoad>& results, const std::vector<PrimExpr>& starts) {
    Exchange exchange;
    std::vector<Buffer> buffers =
        NeedAll("red_buf", starts, group.size * group.count, "shared", &exchange);
    arith::Analyzer analyzer;
    PrimExpr first = analyzer.Simplify(group.number * static_cast<int>(group.size));
    PrimExpr own = analyzer.Simplify(first + group.lane);
    Array<Stmt>& steps = exchange.steps;
    for (size_t i = 0; i < buffers.size(); ++i) {
      steps.push_back(BufferStore(buffers[i], starts[i], {own}));
    }
    steps.push_back(Barrier());
    auto fold = [&](int64_t distance, int64_t active) {
      Array<PrimExpr> others;
      for (const Buffer& buffer : buffers) {
        others.push_back(BufferLoad(buffer, {own + static_cast<int>(distance)}));
      }
      steps.push_back(IfThenElse(group.lane < static_cast<int>(active),
                                 Combine(combiner, buffers, own, others)));
      steps.push_back(Barrier());
    };
    int64_t whole = 1;
    while (whole * 2 <= group.size) whole *= 2;
    // Beyond the largest power of two, each thread hands its value to the one that far before it.
    if (whole < group.size) fold(whole, group.size - whole);
    for (int64_t distance = whole / 2; distance >= 1; distance /= 2) fold(distance, distance);
    std::vector<PrimExpr> totals;
    for (const Buffer& buffer : buffers) totals.push_back(BufferLoad(buffer, {first}));
    steps.push_back(Copy(results, totals));
    // The next reduction, perhaps of the next trip of a loop, writes where others still read.
    steps.push_back(Barrier());
    return exchange.Finish();
  }

  std::string function_;
  ResultUses uses_;
  int64_t warp_size_;
  bool takes_mask_;
  std::vector<Thread> threads_;
  /*! \brief Memory of results, and where the exchange leaves them instead. */
  std::unordered_map<const VarNode*, BufferLoad> moved_;
};

}  // namespace

namespace transform {

Pass LowerThreadAllreduce() {
  return BodyPass("tir.LowerThreadAllreduce", [](const PrimFunc& func, const PassContext&) {
    auto target = func->GetAttr<Target>(attr::kTarget);
    int64_t warp_size = target ? (*target)->GetInt("thread_warp_size", 1) : 1;
    std::string name = func->GetAttr<String>(attr::kGlobalSymbol, "the function");
    bool takes_mask = !target || (*target)->kind->name != "metal";
    return AllreduceLowerer(name, func->body, warp_size, takes_mask)(func->body);
  });
}

TVM_REGISTER_GLOBAL("tir.transform.LowerThreadAllreduce").set_body_typed(LowerThreadAllreduce);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
