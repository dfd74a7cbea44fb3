/*!
 * \file src/tir/transforms/inject_double_buffer.cc
 * \brief A buffer filled in every trip of a loop gets several parts, of which one is read while the
 * others are filled: two halves, or one more than asynchronous copies are trips ahead.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/launch.h>

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <vector>

#include "pass_common.h"
#include "pass_option.h"
#include "software_pipeline.h"

namespace tvm {
namespace tir {
namespace {

/*! \brief Data pointers that a statement reads, writes, and passes on as values. */
class PointerUses final : public StmtExprVisitor {
 public:
  explicit PointerUses(const Stmt& body) { VisitStmt(body); }
  std::unordered_set<const VarNode*> read, written, escaped;

 private:
  void VisitExpr_(const BufferLoadNode* op) final {
    read.insert(op->buffer->data.get());
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitStmt_(const BufferStoreNode* op) final {
    written.insert(op->buffer->data.get());
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitExpr_(const CallNode* op) final {
    if (op->op.same_as(builtin::prefetch())) return;
    if (op->op.same_as(builtin::tvm_load_matrix_sync())) {
      // Reads from where it is told, and keeps nothing.
      for (const PrimExpr& arg : op->args) {
        const auto* address = arg.as<CallNode>();
        const bool from_memory = address != nullptr && address->op.same_as(builtin::address_of());
        VisitExpr(from_memory ? address->args[0] : arg);
      }
      return;
    }
    if (op->op.same_as(builtin::address_of())) {
      // Whoever has the address may read and write there.
      if (const auto* load = op->args[0].as<BufferLoadNode>()) {
        escaped.insert(load->buffer->data.get());
      }
    }
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const VarNode* op) final {
    if (op->dtype.is_handle()) escaped.insert(op);
  }
};

/*! \brief A buffer with the statement that fills it once in every trip of a loop. */
struct DoubleBuffer {
  const AllocateNode* allocation;
  const AttrStmtNode* filling;

  bool is_async() const { return AsyncTripsAhead(filling->body).defined(); }
  /*! \brief Trips between its filling and its use. */
  int64_t trips_ahead() const {
    const PrimExpr ahead = AsyncTripsAhead(filling->body);
    if (!ahead.defined()) return 1;
    const int64_t* trips = as_const_int(ahead);
    TVM_CHECK(trips != nullptr && *trips >= 1, ValueError)
        << "InjectDoubleBuffer: " << attr::pragma_async_copy << " of "
        << allocation->buffer_var->name_hint << " must be a number of trips >= 1, got " << ahead;
    return *trips;
  }
};

/*! \brief A copy whose end only async_wait_queue_scope waits for. */
Stmt StartOf(const Stmt& copy) {
  const PrimExpr zero = make_zero(DataType::Int(32));
  return AttrStmt(zero, attr::async_commit_queue_scope, zero,
                  AttrStmt(zero, attr::async_scope, zero, copy));
}

/*! \brief `body` once no more than so many copies are under way. */
Stmt AfterCopies(int64_t under_way, const Stmt& body) {
  const PrimExpr zero = make_zero(DataType::Int(32));
  return AttrStmt(zero, attr::async_wait_queue_scope, zero,
                  AttrStmt(zero, attr::async_wait_inflight_count,
                           make_const(DataType::Int(32), under_way), body));
}

/*! \brief A loop's buffers in their new memory. */
struct Parts {
  /*! \brief Elements of one part by data pointer. */
  std::unordered_map<const VarNode*, PrimExpr> sizes;
  /*! \brief Trips between filling and use; there is one part more. */
  int64_t trips_ahead = 1;

  PrimExpr count(DataType dtype) const { return make_const(dtype, trips_ahead + 1); }
};

/*! \brief Finds candidates on the way down that every trip of the loop takes exactly once. */
class DoubleBufferFinder {
 public:
  explicit DoubleBufferFinder(const Stmt& loop_body) { Walk(loop_body); }
  std::vector<DoubleBuffer> found;

 private:
  void Walk(const Stmt& stmt) {
    if (const auto* seq = stmt.as<SeqStmtNode>()) {
      for (const Stmt& child : seq->seq) Walk(child);
    } else if (const auto* allocation = stmt.as<AllocateNode>()) {
      allocations_[allocation->buffer_var.get()] = allocation;
      Walk(allocation->body);
    } else if (const auto* attr = stmt.as<AttrStmtNode>()) {
      if (attr->attr_key != attr::double_buffer_scope) return Walk(attr->body);
      auto it = allocations_.find(attr->node.as<VarNode>());
      if (it != allocations_.end()) found.push_back({it->second, attr});
    }
  }

  std::unordered_map<const Object*, const AllocateNode*> allocations_;
};

/*! \brief Accesses of buffers moved to one part of their new memory. */
class PartSelector : public StmtExprMutator {
 public:
  PartSelector(const Parts& parts, PrimExpr part) : parts_(parts), part_(std::move(part)) {}

 protected:
  Stmt VisitStmt_(const AttrStmtNode* op) override {
    if (op->attr_key == attr::pragma_async_copy) return VisitStmt(op->body);
    return StmtExprMutator::VisitStmt_(op);
  }
  PrimExpr VisitExpr_(const BufferLoadNode* op) final {
    Array<PrimExpr> indices = VisitExprs(op->indices);
    auto it = parts_.sizes.find(op->buffer->data.get());
    if (it != parts_.sizes.end()) {
      return BufferLoad(Enlarged(op->buffer, it->second), Shift(indices, it->second));
    }
    return indices.same_as(op->indices) ? GetRef<PrimExpr>(op) : BufferLoad(op->buffer, indices);
  }
  Stmt VisitStmt_(const BufferStoreNode* op) final {
    Array<PrimExpr> indices = VisitExprs(op->indices);
    PrimExpr value = VisitExpr(op->value);
    auto it = parts_.sizes.find(op->buffer->data.get());
    if (it != parts_.sizes.end()) {
      return BufferStore(Enlarged(op->buffer, it->second), value, Shift(indices, it->second));
    }
    if (indices.same_as(op->indices) && value.same_as(op->value)) return GetRef<Stmt>(op);
    return BufferStore(op->buffer, value, indices);
  }

  Buffer Enlarged(const Buffer& buffer, const PrimExpr& size) {
    auto [it, fresh] = enlarged_.try_emplace(buffer.get(), buffer);
    if (fresh) it->second.CopyOnWrite()->shape = {size * parts_.count(size.dtype())};
    return it->second;
  }
  Array<PrimExpr> Shift(const Array<PrimExpr>& indices, const PrimExpr& size) {
    ICHECK_EQ(indices.size(), 1U);
    DataType index = indices[0].dtype();
    PrimExpr offset = cast(index.element_of(), part_) * cast(index.element_of(), size);
    if (index.is_scalar()) return {indices[0] + offset};
    if (const auto* ramp = indices[0].as<RampNode>()) {
      return {Ramp(ramp->base + offset, ramp->stride, ramp->lanes)};
    }
    return {indices[0] + Broadcast(offset, index.lanes())};
  }

  const Parts& parts_;
  PrimExpr part_;
  std::unordered_map<const BufferNode*, Buffer> enlarged_;
};

/*! \brief One trip of a loop: reads the present part, fills another one for a later trip. */
class TripRewriter final : public PartSelector {
 public:
  TripRewriter(const std::vector<DoubleBuffer>& candidates, const Parts& parts, const For& loop,
               PrimExpr part)
      : PartSelector(parts, part), loop_(loop) {
    for (const DoubleBuffer& candidate : candidates) {
      allocations_.insert(candidate.allocation);
      fillings_[candidate.filling] = &candidate;
    }
  }

  /*!
   * \brief The statement that fills `part` for the trip with this value of the loop variable.
   * \param runs Whether there is such a trip.
   * \param is_later Whether other threads may still read another part meanwhile.
   */
  static Stmt Filling(const DoubleBuffer& candidate, const Parts& parts, const For& loop,
                      const PrimExpr& value, const PrimExpr& part, const PrimExpr& runs,
                      bool is_later) {
    // First the trip: the part is that of the present one.
    Stmt body = Substitute(candidate.filling->body, Map<Var, PrimExpr>{{loop->loop_var, value}});
    Stmt filled = RenewBindings(PartSelector(parts, part)(body));
    if (is_later) {
      // Threads that fill this part do not wait for those that still read another one.
      filled = AttrStmt(candidate.filling->node, attr::double_buffer_write,
                        make_const(DataType::Int(32), 1), std::move(filled));
    }
    if (!is_one(runs)) filled = IfThenElse(runs, filled);
    // A trip that starts no copy ends a group as well, so that waits can count them.
    return candidate.is_async() ? StartOf(filled) : filled;
  }

 private:
  Stmt VisitStmt_(const AllocateNode* op) final {
    if (allocations_.count(op)) return VisitStmt(op->body);
    return StmtExprMutator::VisitStmt_(op);
  }
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    auto it = fillings_.find(op);
    if (it == fillings_.end()) return PartSelector::VisitStmt_(op);
    const DataType index = loop_->loop_var->dtype;
    PrimExpr later = loop_->loop_var + make_const(index, parts_.trips_ahead);
    // That of the last trip, whose threads are done with it.
    PrimExpr last = parts_.trips_ahead == 1
                        ? make_const(part_.dtype(), 1) - part_
                        : floormod(part_ + make_const(part_.dtype(), parts_.trips_ahead),
                                   parts_.count(part_.dtype()));
    return Filling(*it->second, parts_, loop_, later, analyzer_.Simplify(last),
                   later < loop_->min + loop_->extent, /*is_later=*/true);
  }

  const For& loop_;
  std::unordered_set<const AllocateNode*> allocations_;
  std::unordered_map<const AttrStmtNode*, const DoubleBuffer*> fillings_;
  arith::Analyzer analyzer_;
};

class DoubleBufferInjector final : public StmtMutator {
 public:
  explicit DoubleBufferInjector(int split_loop) : split_loop_(split_loop) {}

 private:
  Stmt VisitStmt_(const ForNode* op) final {
    // What the body says first: inner loops take the allocations inside of them.
    Stmt stmt = StmtMutator::VisitStmt_(op);
    const auto* loop = stmt.as<ForNode>();
    if (loop->kind != ForKind::kSerial && loop->kind != ForKind::kUnrolled) return stmt;
    std::vector<DoubleBuffer> candidates;
    for (const DoubleBuffer& candidate : DoubleBufferFinder(loop->body).found) {
      if (CanOverlap(loop, candidate)) candidates.push_back(candidate);
    }
    return candidates.empty() ? stmt : Inject(GetRef<For>(loop), candidates);
  }

  /*! \brief Whether a later trip's contents can be computed before this trip has ended. */
  static bool CanOverlap(const ForNode* loop, const DoubleBuffer& candidate) {
    const VarNode* data = candidate.allocation->buffer_var.get();
    PointerUses all(loop->body), filling(candidate.filling->body);
    // A pointer handed on would have to be told which part is meant.
    if (all.escaped.count(data) || filling.read.count(data)) return false;
    for (const VarNode* written : filling.written) {
      if (written != data) return false;
    }
    if (!filling.escaped.empty()) return false;
    for (const VarNode* read : filling.read) {
      if (all.written.count(read) || all.escaped.count(read)) return false;
    }
    for (const PrimExpr& extent : candidate.allocation->extents) {
      if (UsesVar(extent, [&](const VarNode* var) { return var == loop->loop_var.get(); })) {
        return false;
      }
    }
    return is_one(candidate.allocation->condition);
  }

  /*! \brief Trips that all buffers of a loop can be filled ahead, and that the loop has. */
  static int64_t TripsAhead(const For& loop, const std::vector<DoubleBuffer>& candidates) {
    int64_t ahead = candidates[0].trips_ahead();
    for (const DoubleBuffer& candidate : candidates) {
      ahead = std::min(ahead, candidate.trips_ahead());
    }
    const int64_t* trips = as_const_int(loop->extent);
    return trips == nullptr ? ahead : std::clamp<int64_t>(*trips - 1, 1, ahead);
  }

  Stmt Inject(const For& loop, const std::vector<DoubleBuffer>& candidates) {
    Parts parts;
    parts.trips_ahead = TripsAhead(loop, candidates);
    for (const DoubleBuffer& candidate : candidates) {
      PrimExpr size = make_const(DataType::Int(32), 1);
      for (const PrimExpr& extent : candidate.allocation->extents) size = size * extent;
      parts.sizes[candidate.allocation->buffer_var.get()] = analyzer_.Simplify(size);
    }
    Array<Stmt> seq;
    const DataType index = loop->loop_var->dtype;
    for (int64_t trip = 0; trip < parts.trips_ahead; ++trip) {
      const PrimExpr part = make_const(index, trip);
      const PrimExpr runs = part < loop->extent;
      for (const DoubleBuffer& candidate : candidates) {
        seq.push_back(TripRewriter::Filling(candidate, parts, loop,
                                            analyzer_.Simplify(loop->min + part), part,
                                            analyzer_.CanProve(runs) ? const_true() : runs,
                                            /*is_later=*/false));
      }
    }
    const bool splits = split_loop_ > 1 && split_loop_ % (parts.trips_ahead + 1) == 0;
    seq.push_back(splits ? SplitLoop(loop, candidates, parts) : WholeLoop(loop, candidates, parts));
    Stmt result = SeqStmt::Flatten(seq);
    for (size_t i = candidates.size(); i != 0; --i) {
      const AllocateNode* old = candidates[i - 1].allocation;
      PrimExpr size = parts.sizes.at(old->buffer_var.get());
      PrimExpr all = analyzer_.Simplify(size * parts.count(size.dtype()));
      result =
          Allocate(old->buffer_var, old->dtype, {all}, old->condition, result, old->annotations);
    }
    return result;
  }

  static Stmt Trip(const std::vector<DoubleBuffer>& candidates, const Parts& parts, const For& loop,
                   const PrimExpr& part) {
    Stmt body = TripRewriter(candidates, parts, loop, part)(loop->body);
    const auto groups =
        std::count_if(candidates.begin(), candidates.end(),
                      [](const DoubleBuffer& candidate) { return candidate.is_async(); });
    // Those of later trips may be on their way.
    return groups == 0 ? body : AfterCopies(groups * (parts.trips_ahead - 1), body);
  }

  Stmt WholeLoop(For loop, const std::vector<DoubleBuffer>& candidates, const Parts& parts) {
    const Var& var = loop->loop_var;
    PrimExpr trip = is_zero(loop->min) ? PrimExpr(var) : var - loop->min;
    Stmt body = Trip(candidates, parts, loop, floormod(trip, parts.count(var->dtype)));
    loop.CopyOnWrite()->body = body;
    return loop;
  }

  /*! \brief The loop in steps of several trips, each of which knows its part as a constant. */
  Stmt SplitLoop(const For& loop, const std::vector<DoubleBuffer>& candidates, const Parts& parts) {
    DataType index = loop->loop_var->dtype;
    PrimExpr factor = make_const(index, split_loop_);
    PrimExpr steps = analyzer_.Simplify(floordiv(loop->extent, factor));
    PrimExpr rest = analyzer_.Simplify(floormod(loop->extent, factor));
    Var step = loop->loop_var.copy_with_suffix("_step");
    // The parts divide the trips of a step, so a trip's place in its step decides its part.
    auto trip = [&](const PrimExpr& base, int place) {
      Stmt body = Trip(candidates, parts, loop, make_const(index, place % (parts.trips_ahead + 1)));
      PrimExpr value = loop->min + base + make_const(index, place);
      return RenewBindings(Substitute(body, Map<Var, PrimExpr>{{loop->loop_var, value}}));
    };
    Array<Stmt> trips, tail;
    for (int i = 0; i < split_loop_; ++i) trips.push_back(trip(step * factor, i));
    for (int i = 0; i + 1 < split_loop_; ++i) {
      PrimExpr runs = analyzer_.Simplify(make_const(index, i) < rest);
      if (is_zero(runs)) break;
      Stmt last = trip(steps * factor, i);
      tail.push_back(is_one(runs) ? last : IfThenElse(runs, last));
    }
    Stmt main = For(step, make_zero(index), steps, loop->kind, SeqStmt::Flatten(trips), NullOpt,
                    loop->annotations);
    tail.insert(tail.begin(), main);
    return SeqStmt::Flatten(tail);
  }

  int split_loop_;
  arith::Analyzer analyzer_;
};

/*! \brief Requests that no loop could follow. */
class RequestRemover final : public StmtMutator {
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    if (op->attr_key == attr::double_buffer_scope || op->attr_key == attr::pragma_async_copy) {
      return VisitStmt(op->body);
    }
    return StmtMutator::VisitStmt_(op);
  }
};

}  // namespace

namespace transform {

Pass InjectDoubleBuffer() {
  return BodyPass("tir.InjectDoubleBuffer", [](const PrimFunc& func, const PassContext& ctx) {
    int split_loop = 1;
    for (const auto& [key, value] :
         ctx->GetConfig<Map<String, Any>>("tir.InjectDoubleBuffer", {})) {
      TVM_CHECK(key == "split_loop", ValueError)
          << "tir.InjectDoubleBuffer has no option " << key << "; there is split_loop";
      split_loop = OptionEntry<int>("tir.InjectDoubleBuffer", key, value);
    }
    TVM_CHECK(split_loop == 1 || (split_loop > 0 && split_loop % 2 == 0), ValueError)
        << "tir.InjectDoubleBuffer: split_loop must be 1 or even, got " << split_loop
        << "; the two halves take turns";
    return RequestRemover()(DoubleBufferInjector(split_loop)(func->body));
  });
}

using Options = Map<String, Any>;
TVM_REGISTER_PASS_CONFIG_OPTION("tir.InjectDoubleBuffer", Options);
TVM_REGISTER_GLOBAL("tir.transform.InjectDoubleBuffer").set_body_typed(InjectDoubleBuffer);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
