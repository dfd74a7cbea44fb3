/*!
 * \file src/tir/transforms/lower_thread_allreduce.cc
 * \brief Reductions over threads by exchanges within a warp or through shared memory.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/target/target.h>
#include <tvm/tir/launch.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "pass_common.h"

namespace tvm {
namespace tir {
namespace {

bool IsPowerOfTwo(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

class AllreduceLowerer final : public StmtExprMutator {
 public:
  AllreduceLowerer(std::string function, int64_t warp_size)
      : function_(std::move(function)), warp_size_(warp_size) {}

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
        return Lower(Downcast<CommReducer>(op->node), call);
      }
    }
    return StmtExprMutator::VisitStmt_(op);
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
    bool within_warp = group.consecutive && IsPowerOfTwo(group.size) && warp_size_ > 1 &&
                       warp_size_ % group.size == 0 && CanShuffle(starts);
    return within_warp ? InWarp(combiner, group, results, starts)
                       : InShared(combiner, group, results, starts);
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

  static Buffer Scratch(const std::string& name, DataType dtype, int64_t size,
                        const std::string& scope) {
    return decl_buffer({PrimExpr(static_cast<int>(size))}, dtype, name, scope);
  }

  static Stmt AllocateAll(const std::vector<Buffer>& buffers, Stmt body) {
    for (auto it = buffers.rbegin(); it != buffers.rend(); ++it) {
      body = Allocate((*it)->data, (*it)->dtype, (*it)->shape, const_true(), body);
    }
    return body;
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

  Stmt InWarp(const CommReducer& combiner, const Group& group,
              const std::vector<BufferLoad>& results, const std::vector<PrimExpr>& starts) {
    std::vector<Buffer> values, received;
    for (size_t i = 0; i < starts.size(); ++i) {
      std::string name = results[i]->buffer->name;
      values.push_back(Scratch(name + ".lane", starts[i].dtype(), 1, "local"));
      received.push_back(Scratch(name + ".other", starts[i].dtype(), 1, "local"));
    }
    PrimExpr zero(0);
    Var mask("mask", DataType::UInt(32));
    auto shuffle = [&](const Op& op, const Buffer& buffer, int64_t lane) {
      PrimExpr own = BufferLoad(buffer, {zero});
      return Call(own.dtype(), op,
                  {mask, own, PrimExpr(static_cast<int>(lane)),
                   PrimExpr(static_cast<int>(group.size)), PrimExpr(static_cast<int>(warp_size_))});
    };
    Array<Stmt> steps;
    for (size_t i = 0; i < values.size(); ++i) {
      steps.push_back(BufferStore(values[i], starts[i], {zero}));
    }
    Array<Stmt> exchanges;
    for (int64_t distance = group.size / 2; distance >= 1; distance /= 2) {
      Array<PrimExpr> others;
      for (size_t i = 0; i < values.size(); ++i) {
        // Received first: every thread takes part in the exchange, whatever the combiner skips.
        exchanges.push_back(BufferStore(
            received[i], shuffle(builtin::tvm_warp_shuffle_down(), values[i], distance), {zero}));
        others.push_back(BufferLoad(received[i], {zero}));
      }
      exchanges.push_back(Combine(combiner, values, zero, others));
    }
    std::vector<PrimExpr> totals;
    for (const Buffer& value : values) {
      totals.push_back(shuffle(builtin::tvm_warp_shuffle(), value, 0));
    }
    exchanges.push_back(Copy(results, totals));
    steps.push_back(LetStmt(mask, Call(DataType::UInt(32), builtin::tvm_warp_activemask(), {}),
                            SeqStmt::Flatten(exchanges)));
    return AllocateAll(values, AllocateAll(received, SeqStmt::Flatten(steps)));
  }

  Stmt InShared(const CommReducer& combiner, const Group& group,
                const std::vector<BufferLoad>& results, const std::vector<PrimExpr>& starts) {
    std::vector<Buffer> buffers;
    for (size_t i = 0; i < starts.size(); ++i) {
      buffers.push_back(Scratch(results[i]->buffer->name + ".exchange", starts[i].dtype(),
                                group.size * group.count, "shared"));
    }
    Stmt barrier =
        Evaluate(Call(DataType::Int(32), builtin::tvm_storage_sync(), {StringImm("shared")}));
    arith::Analyzer analyzer;
    PrimExpr first = analyzer.Simplify(group.number * static_cast<int>(group.size));
    PrimExpr own = analyzer.Simplify(first + group.lane);
    Array<Stmt> steps;
    for (size_t i = 0; i < buffers.size(); ++i) {
      steps.push_back(BufferStore(buffers[i], starts[i], {own}));
    }
    steps.push_back(barrier);
    auto fold = [&](int64_t distance, int64_t active) {
      Array<PrimExpr> others;
      for (const Buffer& buffer : buffers) {
        others.push_back(BufferLoad(buffer, {own + static_cast<int>(distance)}));
      }
      steps.push_back(IfThenElse(group.lane < static_cast<int>(active),
                                 Combine(combiner, buffers, own, others)));
      steps.push_back(barrier);
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
    steps.push_back(barrier);
    return AllocateAll(buffers, SeqStmt::Flatten(steps));
  }

  std::string function_;
  int64_t warp_size_;
  std::vector<Thread> threads_;
};

}  // namespace

namespace transform {

Pass LowerThreadAllreduce() {
  return BodyPass("tir.LowerThreadAllreduce", [](const PrimFunc& func, const PassContext&) {
    auto target = func->GetAttr<Target>(attr::kTarget);
    int64_t warp_size = target ? (*target)->GetInt("thread_warp_size", 1) : 1;
    std::string name = func->GetAttr<String>(attr::kGlobalSymbol, "the function");
    return AllreduceLowerer(name, warp_size)(func->body);
  });
}

TVM_REGISTER_GLOBAL("tir.transform.LowerThreadAllreduce").set_body_typed(LowerThreadAllreduce);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
