/*!
 * \file src/tir/transforms/inject_prefetch.cc
 * \brief Requests to read ahead become Prefetch statements with their regions.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/analysis.h>

#include <unordered_set>
#include <vector>

#include "pass_common.h"

namespace tvm {
namespace tir {
namespace {

/*! \brief The buffers a statement reads in order of first read, and those it writes. */
class AccessedBuffers final : public StmtExprVisitor {
 public:
  explicit AccessedBuffers(const Stmt& body) { VisitStmt(body); }
  std::vector<Buffer> read;
  std::unordered_set<const VarNode*> written;

 private:
  void VisitExpr_(const BufferLoadNode* op) final {
    if (seen_.insert(op->buffer.get()).second) read.push_back(op->buffer);
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitStmt_(const BufferStoreNode* op) final {
    written.insert(op->buffer->data.get());
    StmtExprVisitor::VisitStmt_(op);
  }

  std::unordered_set<const BufferNode*> seen_;
};

class PrefetchInjector final : public StmtMutator {
 private:
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    if (op->attr_key == attr::prefetch_scope) {
      const auto* buffer = op->node.as<BufferNode>();
      TVM_CHECK(buffer != nullptr, TypeError)
          << "InjectPrefetch: " << attr::prefetch_scope << " must name a buffer";
      Stmt body = VisitStmt(op->body);
      return SeqStmt::Flatten({Ahead(GetRef<Buffer>(buffer), body, op->value), body});
    }
    const auto* iv = op->node.as<IterVarNode>();
    if (iv != nullptr && op->attr_key == attr::pragma_prefetch) {
      distances_[iv->var.get()] = op->value;
      return VisitStmt(op->body);
    }
    if (iv == nullptr ||
        (op->attr_key != attr::thread_extent && op->attr_key != attr::virtual_thread)) {
      return StmtMutator::VisitStmt_(op);
    }
    loops_.push_back(iv->var);
    analyzer_.Bind(iv->var, Range::FromMinExtent(make_zero(iv->var->dtype), op->value), true);
    Stmt stmt = StmtMutator::VisitStmt_(op);
    loops_.pop_back();
    return stmt;
  }

  Stmt VisitStmt_(const ForNode* op) final {
    loops_.push_back(op->loop_var);
    analyzer_.Bind(op->loop_var, Range::FromMinExtent(op->min, op->extent), true);
    Stmt stmt = StmtMutator::VisitStmt_(op);
    PrimExpr distance;
    if (auto it = distances_.find(op->loop_var.get()); it != distances_.end()) {
      distance = it->second;
    } else if (Optional<ObjectRef> value = op->annotations.Get(attr::pragma_prefetch)) {
      distance = Downcast<PrimExpr>(value.value());
    }
    if (distance.defined()) {
      For loop = Downcast<For>(stmt);
      loop.CopyOnWrite()->body = AllAhead(loop->body, distance);
      if (loop->annotations.count(attr::pragma_prefetch)) {
        loop.CopyOnWrite()->annotations.erase(attr::pragma_prefetch);
      }
      stmt = loop;
    }
    loops_.pop_back();
    return stmt;
  }

  /*! \brief Prefetch of what `body` reads of `buffer` `distance` trips later. */
  Stmt Ahead(const Buffer& buffer, const Stmt& body, const PrimExpr& distance) const {
    if (loops_.empty()) return Evaluate(0);
    const Var& loop = loops_.back();
    Map<Var, PrimExpr> later{{loop, loop + cast(loop->dtype, distance)}};
    bool moves = false;
    Array<Range> bounds;
    for (const Range& range : DomainTouched(body, buffer, true, false)) {
      // What the loop's range makes of a place decides where it is later: behind the loop's last
      // trip memory goes on, and digits of a place cost more to carry than reading ahead saves.
      const PrimExpr place = analyzer_.Simplify(range->min);
      bounds.push_back(Range::FromMinExtent(Substitute(place, later), range->extent));
      moves = moves || !bounds.back()->min.same_as(place);
    }
    // The same region in every trip is in the cache after the first.
    return moves ? Stmt(Prefetch(buffer, bounds)) : Evaluate(0);
  }

  /*! \brief `body` after prefetches of every buffer that it only reads. */
  Stmt AllAhead(const Stmt& body, const PrimExpr& distance) const {
    AccessedBuffers accessed(body);
    Array<Stmt> seq;
    for (const Buffer& buffer : accessed.read) {
      if (!accessed.written.count(buffer->data.get())) {
        seq.push_back(Ahead(buffer, body, distance));
      }
    }
    seq.push_back(body);
    return SeqStmt::Flatten(seq);
  }

  /*! \brief Loops and threads around the present statement, outermost first. */
  std::vector<Var> loops_;
  /*! \brief Ranges of these. Simplifying changes it. */
  mutable arith::Analyzer analyzer_;
  std::unordered_map<const VarNode*, PrimExpr> distances_;
};

}  // namespace

namespace transform {

Pass InjectPrefetch() {
  return BodyPass("tir.InjectPrefetch", [](const PrimFunc& func, const PassContext&) {
    return PrefetchInjector()(func->body);
  });
}

TVM_REGISTER_GLOBAL("tir.transform.InjectPrefetch").set_body_typed(InjectPrefetch);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
