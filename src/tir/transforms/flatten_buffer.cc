/*!
 * \file src/tir/transforms/flatten_buffer.cc
 * \brief From multi-dimensional buffers to the axes that memory has.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>

#include <unordered_map>

#include "expr/flatten.h"
#include "pass_common.h"

namespace tvm {
namespace tir {
namespace {

/*! \brief Whether realizations are left, which StorageFlatten lays out. */
bool HasRealizes(const Stmt& stmt) {
  bool found = false;
  PostOrderVisit(stmt, [&](const ObjectRef& node) {
    found = found || node.as<BufferRealizeNode>() != nullptr;
  });
  return found;
}

class BufferFlattener final : public StmtExprMutator {
 public:
  Stmt Run(const Stmt& stmt) {
    // An allocation is cut where the buffer over it is.
    PostOrderVisit(stmt, [this](const ObjectRef& node) {
      if (const auto* op = node.as<DeclBufferNode>()) Note(op->buffer);
      if (const auto* op = node.as<BufferStoreNode>()) Note(op->buffer);
      if (const auto* op = node.as<BufferLoadNode>()) Note(op->buffer);
    });
    return VisitStmt(stmt);
  }

 private:
  void Note(const Buffer& buffer) {
    if (!buffer->axis_separators.empty()) cut_.emplace(buffer->data.get(), buffer);
  }

  Buffer Flat(const Buffer& buffer) {
    auto it = flat_.find(buffer.get());
    if (it != flat_.end()) return it->second;
    Buffer flat = FlattenedBuffer(buffer);
    Array<PrimExpr> shape =
        flat->shape.Map([this](const PrimExpr& e) { return analyzer_.Simplify(e); });
    const bool is_bool = flat->dtype.is_bool();
    if (is_bool || !shape.same_as(flat->shape) || !is_zero(flat->elem_offset)) {
      BufferNode* node = flat.CopyOnWrite();
      node->shape = shape;
      // A boolean occupies a byte in memory.
      if (is_bool) node->dtype = DataType::Int(8).with_lanes(node->dtype.lanes());
      node->elem_offset = make_zero(flat.IndexDType());
    }
    flat_.emplace(buffer.get(), flat);
    return flat;
  }

  Array<PrimExpr> Indices(const Buffer& buffer, const Array<PrimExpr>& indices) {
    Array<PrimExpr> flat =
        Flat(buffer).same_as(buffer) ? indices : FlattenedIndices(buffer, indices);
    return flat.Map([this](const PrimExpr& e) { return analyzer_.Simplify(e); });
  }

  BufferRegion Region(const BufferRegion& region) {
    const Buffer flat = Flat(region->buffer);
    if (flat.same_as(region->buffer)) return region;
    Array<PrimExpr> first, last;
    for (const Range& range : region->region) {
      first.push_back(range->min);
      last.push_back(range->min + range->extent - 1);
    }
    first = Indices(region->buffer, first);
    last = Indices(region->buffer, last);
    Array<Range> ranges;
    for (size_t i = 0; i < first.size(); ++i) {
      ranges.push_back(Range::FromMinExtent(first[i], analyzer_.Simplify(last[i] - first[i] + 1)));
    }
    return BufferRegion(flat, ranges);
  }

  PrimExpr VisitExpr_(const BufferLoadNode* op) final {
    BufferLoad load = Downcast<BufferLoad>(StmtExprMutator::VisitExpr_(op));
    const Buffer flat = Flat(op->buffer);
    Array<PrimExpr> indices = Indices(op->buffer, load->indices);
    if (flat.same_as(op->buffer) && indices.same_as(load->indices)) return load;
    BufferLoad moved(flat, indices);
    if (!op->buffer->dtype.is_bool()) return moved;
    return Cast(DataType::Bool(moved->dtype.lanes()), moved);
  }
  Stmt VisitStmt_(const BufferStoreNode* op) final {
    BufferStore store = Downcast<BufferStore>(StmtExprMutator::VisitStmt_(op));
    const Buffer flat = Flat(op->buffer);
    Array<PrimExpr> indices = Indices(op->buffer, store->indices);
    if (flat.same_as(op->buffer) && indices.same_as(store->indices)) return store;
    PrimExpr value = store->value;
    if (op->buffer->dtype.is_bool()) {
      value = Cast(DataType::Int(8).with_lanes(value.dtype().lanes()), value);
    }
    return BufferStore(flat, value, indices);
  }
  Stmt VisitStmt_(const DeclBufferNode* op) final { return VisitStmt(op->body); }

  Stmt VisitStmt_(const AllocateNode* op) final {
    Allocate allocate = Downcast<Allocate>(StmtExprMutator::VisitStmt_(op));
    Array<PrimExpr> extents = Extents(op->buffer_var, allocate->extents);
    const bool is_bool = op->dtype.is_bool();
    if (extents.same_as(allocate->extents) && !is_bool) return allocate;
    AllocateNode* node = allocate.CopyOnWrite();
    node->extents = extents;
    if (is_bool) node->dtype = DataType::Int(8).with_lanes(op->dtype.lanes());
    return allocate;
  }
  Stmt VisitStmt_(const AllocateConstNode* op) final {
    AllocateConst allocate = Downcast<AllocateConst>(StmtExprMutator::VisitStmt_(op));
    Array<PrimExpr> extents = Extents(op->buffer_var, allocate->extents);
    if (!extents.same_as(allocate->extents)) allocate.CopyOnWrite()->extents = extents;
    return allocate;
  }
  Array<PrimExpr> Extents(const Var& data, const Array<PrimExpr>& extents) {
    Array<Integer> separators;
    auto it = cut_.find(data.get());
    if (it != cut_.end() && it->second->shape.size() == extents.size()) {
      separators = it->second->axis_separators;
    }
    if (extents.size() == separators.size() + 1) return extents;
    Buffer shape(data, DataType::Int(8), extents, {}, PrimExpr(), "", 0, 0, separators);
    return FlattenedBuffer(shape)->shape.Map(
        [this](const PrimExpr& e) { return analyzer_.Simplify(e); });
  }

  Stmt VisitStmt_(const BlockNode* op) final {
    TVM_CHECK(op->match_buffers.empty(), ValueError)
        << "FlattenBuffer: block " << op->name_hint
        << " views regions; run LowerMatchBuffer before";
    Block block = Downcast<Block>(StmtExprMutator::VisitStmt_(op));
    Array<Buffer> buffers =
        block->alloc_buffers.Map([this](const Buffer& buffer) { return Flat(buffer); });
    auto flatten = [this](const BufferRegion& region) { return Region(region); };
    Array<BufferRegion> reads = block->reads.Map(flatten);
    Array<BufferRegion> writes = block->writes.Map(flatten);
    if (buffers.same_as(block->alloc_buffers) && reads.same_as(block->reads) &&
        writes.same_as(block->writes)) {
      return block;
    }
    BlockNode* node = block.CopyOnWrite();
    node->alloc_buffers = buffers;
    node->reads = reads;
    node->writes = writes;
    return block;
  }

  Stmt VisitStmt_(const ForNode* op) final {
    analyzer_.Bind(op->loop_var, Range::FromMinExtent(op->min, op->extent), true);
    return StmtExprMutator::VisitStmt_(op);
  }
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    if (op->attr_key == attr::thread_extent || op->attr_key == attr::virtual_thread) {
      if (const auto* iv = op->node.as<IterVarNode>()) {
        Range domain = Range::FromMinExtent(make_zero(op->value.dtype()), op->value);
        analyzer_.Bind(iv->var, domain, true);
      }
    }
    return StmtExprMutator::VisitStmt_(op);
  }
  Stmt VisitStmt_(const IfThenElseNode* op) final {
    PrimExpr condition = VisitExpr(op->condition);
    Stmt then_case, else_case;
    {
      arith::ConstraintContext holds(&analyzer_, condition);
      then_case = VisitStmt(op->then_case);
    }
    if (op->else_case.defined()) {
      arith::ConstraintContext holds(&analyzer_, Not(condition));
      else_case = VisitStmt(op->else_case);
    }
    if (condition.same_as(op->condition) && then_case.same_as(op->then_case) &&
        else_case.same_as(op->else_case)) {
      return GetRef<Stmt>(op);
    }
    return IfThenElse(condition, then_case, else_case);
  }

  arith::Analyzer analyzer_;
  std::unordered_map<const BufferNode*, Buffer> flat_;
  /*! \brief By data pointer, the first buffer that asks for several axes. */
  std::unordered_map<const VarNode*, Buffer> cut_;
};

}  // namespace

namespace transform {

Pass FlattenBuffer() {
  return BodyPass("tir.FlattenBuffer", [](const PrimFunc& func, const PassContext&) {
    return HasRealizes(func->body) ? func->body : BufferFlattener().Run(func->body);
  });
}

TVM_REGISTER_GLOBAL("tir.transform.FlattenBuffer").set_body_typed(FlattenBuffer);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
