/*!
 * \file src/tir/analysis/domain_touched.cc
 * \brief The part of a buffer that a statement reads or writes.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/arith/int_set.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/stmt_functor.h>

#include <unordered_set>

namespace tvm {
namespace tir {

namespace {

using arith::Analyzer, arith::EvalSet, arith::IntSet;

class TouchCollector : public StmtExprVisitor {
 public:
  TouchCollector(const Buffer& buffer, bool loads, bool stores)
      : buffer_(buffer), loads_(loads), stores_(stores), touched_(buffer->shape.size()) {}

  Array<Range> Run(const Stmt& body) {
    PostOrderVisit(body, [this](const ObjectRef& node) {
      if (const auto* store = node.as<BufferStoreNode>()) {
        written_.insert(store->buffer->data.get());
      }
    });
    VisitStmt(body);
    Array<Range> out;
    for (size_t i = 0; i < touched_.size(); ++i) {
      Range whole = Range::FromMinExtent(make_zero(buffer_->shape[i].dtype()), buffer_->shape[i]);
      out.push_back(touched_[i].empty()
                        ? Range::FromMinExtent(whole->min, make_zero(whole->min.dtype()))
                        : Union(touched_[i], &analyzer_).CoverRange(whole));
    }
    return out;
  }

 private:
  using StmtExprVisitor::VisitExpr_;
  using StmtExprVisitor::VisitStmt_;

  void VisitStmt_(const ForNode* op) override {
    const VarNode* var = op->loop_var.get();
    domains_[var] = Relax(Range::FromMinExtent(op->min, op->extent));
    StmtExprVisitor::VisitStmt_(op);
    domains_.erase(var);
  }

  void VisitStmt_(const LetStmtNode* op) override {
    VisitExpr(op->value);
    const VarNode* var = op->var.get();
    domains_[var] = EvalSet(op->value, domains_, &analyzer_);
    VisitStmt(op->body);
    domains_.erase(var);
  }

  void VisitExpr_(const LetNode* op) override {
    VisitExpr(op->value);
    const VarNode* var = op->var.get();
    domains_[var] = EvalSet(op->value, domains_, &analyzer_);
    VisitExpr(op->body);
    domains_.erase(var);
  }

  void VisitStmt_(const BlockRealizeNode* op) override {
    const Array<IterVar>& iters = op->block->iter_vars;
    for (size_t i = 0; i < iters.size(); ++i) {
      domains_[iters[i]->var.get()] = EvalSet(op->iter_values[i], domains_, &analyzer_);
    }
    StmtExprVisitor::VisitStmt_(op);
    for (const IterVar& iter : iters) domains_.erase(iter->var.get());
  }

  void VisitStmt_(const AttrStmtNode* op) override {
    const auto* thread = op->node.as<IterVarNode>();
    if (thread && (op->attr_key == "thread_extent" || op->attr_key == "virtual_thread")) {
      domains_[thread->var.get()] =
          Relax(Range::FromMinExtent(make_zero(op->value.dtype()), op->value));
      StmtExprVisitor::VisitStmt_(op);
      domains_.erase(thread->var.get());
    } else {
      StmtExprVisitor::VisitStmt_(op);
    }
  }

  void VisitExpr_(const BufferLoadNode* op) override {
    if (loads_ && op->buffer.same_as(buffer_)) Touch(op->indices);
    StmtExprVisitor::VisitExpr_(op);
  }

  void VisitStmt_(const BufferStoreNode* op) override {
    if (stores_ && op->buffer.same_as(buffer_)) Touch(op->indices);
    StmtExprVisitor::VisitStmt_(op);
  }

  IntSet Relax(const Range& range) { return EvalSet(range, domains_, &analyzer_); }

  void Touch(const Array<PrimExpr>& indices) {
    for (size_t i = 0; i < touched_.size(); ++i) {
      touched_[i].push_back(ReadsWritten(indices[i]) ? IntSet::Everything()
                                                     : EvalSet(indices[i], domains_, &analyzer_));
    }
  }

  /*! \brief Whether an index is read from where the body writes: it has no one value. */
  bool ReadsWritten(const PrimExpr& index) const {
    bool found = false;
    PostOrderVisit(index, [&](const ObjectRef& node) {
      const auto* load = node.as<BufferLoadNode>();
      found = found || (load != nullptr && written_.count(load->buffer->data.get()) != 0);
    });
    return found;
  }

  Buffer buffer_;
  bool loads_, stores_;
  std::vector<Array<IntSet>> touched_;
  std::unordered_map<const VarNode*, IntSet> domains_;
  std::unordered_set<const VarNode*> written_;
  Analyzer analyzer_;
};

}  // namespace

Array<Range> DomainTouched(const Stmt& body, const Buffer& buffer, bool consider_loads,
                           bool consider_stores) {
  TVM_CHECK(body.defined() && buffer.defined(), ValueError)
      << "DomainTouched: needs a statement and a buffer, got None";
  return TouchCollector(buffer, consider_loads, consider_stores).Run(body);
}

TVM_REGISTER_GLOBAL("arith.DomainTouched").set_body_typed(DomainTouched);

}  // namespace tir
}  // namespace tvm
