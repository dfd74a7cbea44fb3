/*!
 * \file src/tir/transforms/block_regions.cc
 * \brief Regions of statements from what their blocks declare.
 */
#include "block_regions.h"

#include <tvm/arith/analyzer.h>
#include <tvm/arith/int_set.h>
#include <tvm/expr/lanes.h>
#include <tvm/expr/op.h>
#include <tvm/node/structural_equal.h>
#include <tvm/tir/stmt_functor.h>

#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tvm {
namespace tir {
namespace {

using arith::IntSet;

/*! \brief Regions by buffer, in the order in which buffers came first. */
class RegionList {
 public:
  /*! \param exact The region itself, where it does not depend on loops. */
  void Add(const Buffer& buffer, const std::vector<IntSet>& sets, const Array<Range>& exact) {
    auto [it, is_new] = sets_.try_emplace(buffer.get(), Entry{sets, exact});
    if (is_new) {
      buffers_.push_back(buffer);
      return;
    }
    Entry& entry = it->second;
    if (!exact.defined() || !StructuralEqual()(entry.exact, exact))
      entry.exact = Array<Range>(nullptr);
    for (size_t i = 0; i < sets.size(); ++i) {
      entry.sets[i] = arith::Union({entry.sets[i], sets[i]});
    }
  }
  Array<BufferRegion> Regions(arith::Analyzer* analyzer) const {
    Array<BufferRegion> result;
    for (const Buffer& buffer : buffers_) {
      const auto& [sets, exact] = sets_.at(buffer.get());
      if (exact.defined()) {
        result.push_back(BufferRegion(buffer, exact));
        continue;
      }
      Array<Range> region;
      for (size_t i = 0; i < sets.size(); ++i) {
        const PrimExpr& all = buffer->shape[i];
        Range range = sets[i].CoverRange(Range::FromMinExtent(make_zero(all.dtype()), all));
        region.push_back(Range::FromMinExtent(analyzer->Simplify(range->min),
                                              analyzer->Simplify(range->extent)));
      }
      result.push_back(BufferRegion(buffer, region));
    }
    return result;
  }

 private:
  std::vector<Buffer> buffers_;
  struct Entry {
    std::vector<IntSet> sets;
    Array<Range> exact;
  };
  std::unordered_map<const BufferNode*, Entry> sets_;
};

class RegionCollector final : public StmtExprVisitor {
 public:
  explicit RegionCollector(const Map<Var, Buffer>& buffers) : buffers_(buffers) {}
  AccessRegions Result() { return {reads_.Regions(&analyzer_), writes_.Regions(&analyzer_)}; }

 private:
  void Add(RegionList* list, const Buffer& buffer, const Array<Range>& region) {
    if (inside_.count(buffer.get())) return;
    std::vector<IntSet> sets;
    for (const Range& range : region) sets.push_back(arith::EvalSet(range, loops_));
    list->Add(buffer, sets, loops_.empty() ? region : Array<Range>(nullptr));
  }

  void VisitStmt_(const ForNode* op) final {
    VisitExpr(op->min);
    VisitExpr(op->extent);
    loops_[op->loop_var.get()] = arith::EvalSet(Range::FromMinExtent(op->min, op->extent), loops_);
    VisitStmt(op->body);
    loops_.erase(op->loop_var.get());
  }
  void VisitStmt_(const LetStmtNode* op) final {
    VisitExpr(op->value);
    if (op->var->dtype.is_int()) loops_[op->var.get()] = arith::EvalSet(op->value, loops_);
    VisitStmt(op->body);
    loops_.erase(op->var.get());
  }
  void VisitStmt_(const BlockRealizeNode* op) final {
    for (const PrimExpr& value : op->iter_values) VisitExpr(value);
    VisitExpr(op->predicate);
    Map<Var, PrimExpr> values;
    for (size_t i = 0; i < op->iter_values.size(); ++i) {
      values.Set(op->block->iter_vars[i]->var, op->iter_values[i]);
    }
    auto add = [&](RegionList* list, const Array<BufferRegion>& regions) {
      for (const BufferRegion& region : regions) {
        Add(list, region->buffer,
            region->region.Map([&](const Range& range) { return Substitute(range, values); }));
      }
    };
    add(&reads_, op->block->reads);
    add(&writes_, op->block->writes);
  }
  void VisitStmt_(const BufferRealizeNode* op) final {
    inside_.insert(op->buffer.get());
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const BufferStoreNode* op) final {
    StmtExprVisitor::VisitStmt_(op);
    AddPoint(&writes_, op->buffer, op->indices);
  }
  void VisitExpr_(const BufferLoadNode* op) final {
    StmtExprVisitor::VisitExpr_(op);
    AddPoint(&reads_, op->buffer, op->indices);
  }
  void AddPoint(RegionList* list, const Buffer& buffer, const Array<PrimExpr>& indices) {
    Array<Range> region;
    for (const PrimExpr& index : indices) {
      const auto* ramp = index.as<RampNode>();
      bool run = ramp != nullptr && is_one(ramp->stride);
      region.push_back(
          run ? Range::FromMinExtent(ramp->base, LaneCount(ramp->lanes, ramp->base.dtype()))
              : Range::FromMinExtent(index, make_const(index.dtype(), 1)));
    }
    Add(list, buffer, region);
  }
  void VisitExpr_(const VarNode* op) final {
    auto it = buffers_.find(GetRef<Var>(op));
    if (it == buffers_.end()) return;
    Array<Range> all = BufferRegion::FullRegion((*it).second)->region;
    Add(&reads_, (*it).second, all);
    Add(&writes_, (*it).second, all);
  }

  const Map<Var, Buffer>& buffers_;
  arith::Analyzer analyzer_;
  std::unordered_map<const VarNode*, IntSet> loops_;
  std::unordered_set<const BufferNode*> inside_;
  RegionList reads_, writes_;
};

}  // namespace

AccessRegions DeclaredRegions(const Stmt& stmt, const Map<Var, Buffer>& buffers) {
  RegionCollector collector(buffers);
  collector(stmt);
  return collector.Result();
}

Block WrapInBlock(const Stmt& stmt, const Map<Var, Buffer>& buffers) {
  const auto* realize = stmt.as<BlockRealizeNode>();
  if (realize != nullptr && is_one(realize->predicate) && realize->iter_values.empty()) {
    return realize->block;
  }
  AccessRegions regions = DeclaredRegions(stmt, buffers);
  return Block({}, regions.reads, regions.writes, "", stmt);
}

}  // namespace tir
}  // namespace tvm
