/*!
 * \file apply_layouts.cc
 * \brief Buffers of a lowered schedule in the layouts that its stages ask for.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/te/schedule_pass.h>
#include <tvm/tir/stmt_functor.h>

#include <unordered_map>

namespace tvm {
namespace te {

namespace {

/*! \brief A buffer, what stands for it, and the way between their indices. */
struct Relaid {
  Buffer buffer;
  Array<tir::IndexMap> layouts;
  Array<PrimExpr> old_shape;
};

class LayoutRewriter final : public tir::StmtExprMutator {
 public:
  explicit LayoutRewriter(std::unordered_map<const Object*, Relaid> relaid)
      : relaid_(std::move(relaid)) {
    for (const auto& [buffer, found] : relaid_) pointers_[found.buffer->data.get()] = &found;
  }

 private:
  Array<PrimExpr> MapIndices(const Relaid& found, Array<PrimExpr> indices) {
    for (const tir::IndexMap& layout : found.layouts) {
      indices = layout->MapIndices(indices, &analyzer_);
    }
    return indices;
  }

  const Relaid* Find(const Buffer& buffer) const {
    auto it = relaid_.find(buffer.get());
    return it == relaid_.end() ? nullptr : &it->second;
  }

  Stmt VisitStmt_(const tir::BufferStoreNode* op) override {
    Stmt stmt = StmtExprMutator::VisitStmt_(op);
    op = stmt.as<tir::BufferStoreNode>();
    const Relaid* found = Find(op->buffer);
    if (found == nullptr) return stmt;
    return tir::BufferStore(found->buffer, op->value, MapIndices(*found, op->indices));
  }

  PrimExpr VisitExpr_(const tir::BufferLoadNode* op) override {
    PrimExpr expr = StmtExprMutator::VisitExpr_(op);
    op = expr.as<tir::BufferLoadNode>();
    const Relaid* found = Find(op->buffer);
    if (found == nullptr) return expr;
    return tir::BufferLoad(found->buffer, MapIndices(*found, op->indices));
  }

  Stmt VisitStmt_(const tir::BufferRealizeNode* op) override {
    Stmt stmt = StmtExprMutator::VisitStmt_(op);
    op = stmt.as<tir::BufferRealizeNode>();
    const Relaid* found = Find(op->buffer);
    if (found == nullptr) return stmt;
    bool whole = true;
    for (size_t axis = 0; axis < op->bounds.size() && whole; ++axis) {
      whole = analyzer_.CanProveEqual(op->bounds[axis]->min, 0) &&
              analyzer_.CanProveEqual(op->bounds[axis]->extent, found->old_shape[axis]);
    }
    Array<Range> bounds = op->bounds;
    if (whole) {
      bounds = found->buffer->shape.Map([](const PrimExpr& extent) {
        return Range::FromMinExtent(tir::make_zero(extent.dtype()), extent);
      });
    } else {
      for (const tir::IndexMap& layout : found->layouts) {
        bounds = layout->MapRanges(bounds, &analyzer_);
      }
    }
    return tir::BufferRealize(found->buffer, bounds, op->condition, op->body);
  }

  Stmt VisitStmt_(const tir::ForNode* op) override {
    analyzer_.Bind(op->loop_var, Range::FromMinExtent(op->min, op->extent), true);
    return StmtExprMutator::VisitStmt_(op);
  }

  Stmt VisitStmt_(const tir::AttrStmtNode* op) override {
    if (op->attr_key == attr::tensor_buffer) {
      Array<ObjectRef> pair = Downcast<Array<ObjectRef>>(op->node);
      const Relaid* found = Find(Downcast<Buffer>(pair[1]));
      if (found == nullptr) return StmtExprMutator::VisitStmt_(op);
      pair.Set(1, found->buffer);
      return tir::AttrStmt(pair, op->attr_key, op->value, VisitStmt(op->body));
    }
    if (const auto* axis = op->node.as<IterVarNode>();
        axis != nullptr &&
        (op->attr_key == tir::attr::thread_extent || op->attr_key == tir::attr::virtual_thread)) {
      PrimExpr zero = tir::make_zero(op->value.dtype());
      analyzer_.Bind(axis->var, Range::FromMinExtent(zero, op->value), true);
    }
    if (op->attr_key == tir::attr::storage_alignment && op->node.as<tir::BufferNode>()) {
      Refuse(Downcast<Buffer>(op->node), "storage_align counts axes of the layout before");
    }
    if (op->attr_key == tir::attr::prefetch_scope && op->node.as<tir::BufferNode>()) {
      Refuse(Downcast<Buffer>(op->node), "prefetch reads it in the layout before");
    }
    if (op->attr_key == tir::attr::buffer_bind_scope) {
      ObjectRef bound = Downcast<Array<ObjectRef>>(op->node)[1];
      if (bound.as<tir::BufferNode>()) {
        Refuse(Downcast<Buffer>(bound), "a tensor intrinsic or an extern operation accesses it");
      }
    }
    return StmtExprMutator::VisitStmt_(op);
  }

  PrimExpr VisitExpr_(const VarNode* op) override {
    auto it = pointers_.find(op);
    if (it != pointers_.end()) Refuse(it->second->buffer, "its pointer is used");
    return GetRef<PrimExpr>(op);
  }

  void Refuse(const Buffer& buffer, const char* why) const {
    bool known = relaid_.count(buffer.get()) || pointers_.count(buffer->data.get());
    TVM_CHECK(!known, ScheduleError) << "transform_layout(" << buffer->name << "): " << why;
  }

  std::unordered_map<const Object*, Relaid> relaid_;
  std::unordered_map<const VarNode*, const Relaid*> pointers_;
  arith::Analyzer analyzer_;
};

}  // namespace

Stmt ApplyLayouts(const Stmt& stmt, const Schedule& schedule,
                  const Map<Tensor, Buffer>& extern_buffer) {
  TensorMap<Stage> asked;
  for (const Stage& stage : schedule->stages) {
    if (stage->layouts.empty()) continue;
    for (int i = 0; i < stage->origin_op->num_outputs(); ++i) {
      asked.emplace(stage->origin_op.output(i), stage);
    }
  }
  if (asked.empty()) return stmt;
  std::unordered_map<const Object*, Relaid> relaid;
  arith::Analyzer analyzer;
  Stmt rest = stmt;
  for (const auto* attr = rest.as<tir::AttrStmtNode>();
       attr != nullptr && attr->attr_key == attr::tensor_buffer;
       attr = rest.as<tir::AttrStmtNode>()) {
    Array<ObjectRef> pair = Downcast<Array<ObjectRef>>(attr->node);
    rest = attr->body;
    auto it = asked.find(Downcast<Tensor>(pair[0]));
    if (it == asked.end()) continue;
    Buffer buffer = Downcast<Buffer>(pair[1]);
    Array<PrimExpr> shape = buffer->shape;
    Array<tir::IndexMap> layouts;
    for (const tir::IndexMap& layout : it->second->layouts) {
      DataType dtype = shape.empty() ? DataType::Int(32) : shape[0].dtype();
      layouts.push_back(layout.WithDType(dtype));
      shape = layouts.back()->MapShape(shape, &analyzer);
    }
    Relaid found{buffer, layouts, buffer->shape};
    tir::BufferNode* node = found.buffer.CopyOnWrite();
    node->shape = shape;
    node->axis_separators = it->second->axis_separators;
    relaid.emplace(buffer.get(), found);
    for (const auto& [tensor, given] : extern_buffer) {
      if (!(tensor == it->first)) continue;
      TVM_CHECK(given->shape.size() == shape.size(), ScheduleError)
          << "transform_layout(" << buffer->name << "): the buffer bound to it has shape "
          << given->shape << ", its layout has " << shape;
    }
  }
  return LayoutRewriter(std::move(relaid))(stmt);
}

TVM_REGISTER_GLOBAL("te.ApplyLayouts")
    .set_body_typed([](Stmt stmt, Schedule schedule, Optional<Map<Tensor, Buffer>> binds) {
      return ApplyLayouts(stmt, schedule, binds.defined() ? binds.value() : Map<Tensor, Buffer>());
    });

}  // namespace te
}  // namespace tvm
