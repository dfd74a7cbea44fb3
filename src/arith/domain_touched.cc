/*!
 * \file arith/domain_touched.cc
 * \brief The part of a buffer that a statement reads or writes.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/arith/bound.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/op.h>
#include <tvm/tir/stmt.h>
#include <tvm/tir/stmt_functor.h>

namespace tvm {
namespace arith {

using namespace tir;

namespace {

class TouchCollector : public StmtExprVisitor {
 public:
  TouchCollector(const Buffer& buffer, bool loads, bool stores)
      : buffer_(buffer), loads_(loads), stores_(stores), touched_(buffer->shape.size()) {}

  Array<Range> Run(const Stmt& body) {
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
      touched_[i].push_back(EvalSet(indices[i], domains_, &analyzer_));
    }
  }

  Buffer buffer_;
  bool loads_, stores_;
  std::vector<Array<IntSet>> touched_;
  std::unordered_map<const VarNode*, IntSet> domains_;
  Analyzer analyzer_;
};

}  // namespace

Array<Range> DomainTouched(const Stmt& body, const Buffer& buffer, bool consider_loads,
                           bool consider_stores) {
  return TouchCollector(buffer, consider_loads, consider_stores).Run(body);
}

TVM_REGISTER_GLOBAL("arith.DomainTouched").set_body_typed(DomainTouched);

}  // namespace arith
}  // namespace tvm
