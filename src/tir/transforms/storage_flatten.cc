/*!
 * \file src/tir/transforms/storage_flatten.cc
 * \brief From multi-dimensional buffers to flat ones with explicit allocations.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/builtin.h>
#include <tvm/tir/op.h>

#include "pass_common.h"

namespace tvm {
namespace tir {
namespace {

class Flattener final : public StmtExprMutator {
 public:
  explicit Flattener(int cache_line_bytes) : cache_line_bytes_(cache_line_bytes) {}

 private:
  /*! \brief How a buffer is laid out, and the flat view that takes its place. */
  struct Layout {
    Buffer flat;
    Array<PrimExpr> lower;
    Array<PrimExpr> strides;
    PrimExpr offset;
  };
  struct Alignment {
    PrimExpr factor;
    PrimExpr offset;
  };

  Stmt VisitStmt_(const AttrStmtNode* op) final {
    if (op->attr_key != attr::storage_alignment) return StmtExprMutator::VisitStmt_(op);
    const auto* call = op->value.as<CallNode>();
    const auto* buffer = op->node.as<BufferNode>();
    ICHECK(call != nullptr && call->args.size() == 3 && buffer != nullptr);
    const int64_t* axis = as_const_int(call->args[0]);
    ICHECK(axis != nullptr);
    alignment_[buffer][static_cast<size_t>(*axis)] = {call->args[1], call->args[2]};
    return VisitStmt(op->body);
  }

  Stmt VisitStmt_(const BufferRealizeNode* op) final {
    const Buffer& buffer = op->buffer;
    Layout layout;
    Array<PrimExpr> extents;
    for (const Range& bound : op->bounds) {
      layout.lower.push_back(VisitExpr(bound->min));
      extents.push_back(VisitExpr(bound->extent));
    }
    PrimExpr size = make_const(buffer.IndexDType(), 1);
    auto aligned = alignment_.find(buffer.get());
    std::vector<PrimExpr> strides(extents.size());
    for (size_t i = extents.size(); i != 0; --i) {
      PrimExpr stride = size;
      if (aligned != alignment_.end()) {
        auto it = aligned->second.find(i - 1);
        if (it != aligned->second.end()) {
          const Alignment& a = it->second;
          stride = stride + floormod(a.factor + a.offset - floormod(stride, a.factor), a.factor);
        }
      }
      strides[i - 1] = analyzer_.Simplify(stride);
      size = analyzer_.Simplify(strides[i - 1] * extents[i - 1]);
    }
    layout.strides = Array<PrimExpr>(strides);
    layout.flat = Buffer(buffer->data, buffer->dtype, {size}, {}, PrimExpr(), buffer->name,
                         cache_line_bytes_);
    layouts_[buffer.get()] = layout;
    Stmt body = VisitStmt(op->body);
    return Allocate(buffer->data, buffer->dtype, {size}, VisitExpr(op->condition), body);
  }

  Stmt VisitStmt_(const BufferStoreNode* op) final {
    Array<PrimExpr> indices = VisitExprs(op->indices);
    PrimExpr value = VisitExpr(op->value);
    if (IsFlat(op->buffer)) {
      if (indices.same_as(op->indices) && value.same_as(op->value)) return GetRef<Stmt>(op);
      return BufferStore(op->buffer, value, indices);
    }
    const Layout& layout = LayoutOf(op->buffer);
    return BufferStore(layout.flat, value, {FlatIndex(layout, indices)});
  }

  PrimExpr VisitExpr_(const BufferLoadNode* op) final {
    Array<PrimExpr> indices = VisitExprs(op->indices);
    if (IsFlat(op->buffer)) {
      if (indices.same_as(op->indices)) return GetRef<PrimExpr>(op);
      return BufferLoad(op->buffer, indices);
    }
    const Layout& layout = LayoutOf(op->buffer);
    return BufferLoad(layout.flat, {FlatIndex(layout, indices)});
  }

  Stmt VisitStmt_(const PrefetchNode* op) final {
    // The first element of the region stands for it: hardware fetches whole lines.
    const Layout& layout = LayoutOf(op->buffer);
    Array<PrimExpr> first;
    for (const Range& bound : op->bounds) first.push_back(VisitExpr(bound->min));
    PrimExpr address = Call(DataType::Handle(), builtin::address_of(),
                            {BufferLoad(layout.flat, {FlatIndex(layout, first)})});
    return Evaluate(Call(DataType::Int(32), builtin::prefetch(), {address, 0, 3, 1}));
  }

  /*! \brief A view that needs no rewriting: one axis, from the start of the data, without gaps. */
  bool IsFlat(const Buffer& buffer) const {
    return layouts_.count(buffer.get()) == 0 && buffer->shape.size() == 1 &&
           buffer->strides.empty() && is_zero(buffer->elem_offset);
  }

  const Layout& LayoutOf(const Buffer& buffer) {
    auto it = layouts_.find(buffer.get());
    if (it != layouts_.end()) return it->second;
    // Neither realized here nor rewritten before: a parameter, laid out as it declares.
    Layout layout;
    DataType index = buffer.IndexDType();
    size_t ndim = buffer->shape.size();
    std::vector<PrimExpr> strides(ndim);
    PrimExpr size = make_const(index, 1);
    for (size_t i = ndim; i != 0; --i) {
      strides[i - 1] = buffer->strides.empty() ? size : buffer->strides[i - 1];
      size = analyzer_.Simplify(strides[i - 1] * buffer->shape[i - 1]);
      layout.lower.push_back(make_zero(index));
    }
    if (!buffer->strides.empty() && ndim != 0) size = strides[0] * buffer->shape[0];
    layout.strides = Array<PrimExpr>(strides);
    if (!is_zero(buffer->elem_offset)) layout.offset = buffer->elem_offset;
    layout.flat = Buffer(buffer->data, buffer->dtype, {size}, {}, PrimExpr(), buffer->name,
                         buffer->data_alignment);
    return layouts_.emplace(buffer.get(), layout).first->second;
  }

  PrimExpr FlatIndex(const Layout& layout, const Array<PrimExpr>& indices) {
    PrimExpr flat = layout.offset;
    for (size_t i = 0; i < indices.size(); ++i) {
      PrimExpr position = indices[i];
      if (!is_zero(layout.lower[i])) position = position - layout.lower[i];
      PrimExpr term = position * layout.strides[i];
      flat = flat.defined() ? flat + term : term;
    }
    return flat.defined() ? flat : make_zero(DataType::Int(32));
  }

  int cache_line_bytes_;
  arith::Analyzer analyzer_;
  std::unordered_map<const BufferNode*, Layout> layouts_;
  std::unordered_map<const BufferNode*, std::unordered_map<size_t, Alignment>> alignment_;
};

}  // namespace

namespace transform {

Pass StorageFlatten(int cache_line_bytes) {
  TVM_CHECK(cache_line_bytes > 0 && (cache_line_bytes & (cache_line_bytes - 1)) == 0, ValueError)
      << "StorageFlatten: cache_line_bytes must be a power of two, got " << cache_line_bytes;
  return BodyPass("tir.StorageFlatten",
                  [cache_line_bytes](const PrimFunc& func, const PassContext&) {
                    return Flattener(cache_line_bytes)(func->body);
                  });
}

TVM_REGISTER_GLOBAL("tir.transform.StorageFlatten").set_body_typed(StorageFlatten);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
