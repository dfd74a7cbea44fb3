/*!
 * \file src/tir/transforms/storage_flatten.cc
 * \brief From multi-dimensional buffers to flat ones with explicit allocations.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "pass_common.h"
#include "storage_alignment.h"

namespace tvm {
namespace tir {
namespace {

/*! \brief Cache lines of one prefetch up to which its loops are written out. */
constexpr int64_t kWrittenOutPrefetches = 16;

class Flattener final : public StmtExprMutator {
 public:
  Flattener(int cache_line_bytes, bool create_bound_attributes)
      : cache_line_bytes_(cache_line_bytes), create_bound_attributes_(create_bound_attributes) {}

  Stmt Run(const PrimFunc& func) {
    Stmt body = VisitStmt(func->body);
    if (!create_bound_attributes_) return body;
    for (const auto& [param, buffer] : func->buffer_map) {
      // A view with strides or an offset has its elements anywhere up to its end.
      PrimExpr size = LayoutOf(buffer).flat->shape[0];
      if (!is_zero(buffer->elem_offset)) size = size + buffer->elem_offset;
      body = WithBound(buffer->data, size, body);
    }
    return body;
  }

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

  /*! \brief An axis whose stride leaves gaps. */
  struct Padding {
    size_t axis;
    PrimExpr stride;
    PrimExpr compact;
  };

  Stmt VisitStmt_(const AttrStmtNode* op) final {
    if (op->attr_key == attr::buffer_bind_scope) return BindBlock(op);
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
    return Allocated(op->buffer, op->bounds, op->condition, op->body);
  }

  Stmt Allocated(const Buffer& buffer, const Array<Range>& bounds, const PrimExpr& condition,
                 const Stmt& inside) {
    Layout layout;
    Array<PrimExpr> extents;
    for (const Range& bound : bounds) {
      layout.lower.push_back(VisitExpr(bound->min));
      extents.push_back(VisitExpr(bound->extent));
    }
    PrimExpr size = make_const(buffer.IndexDType(), 1);
    PrimExpr compact = size;
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
      // Strides that the buffer states are known to whoever gets a pointer to it.
      if (buffer->strides.empty() && !analyzer_.CanProveEqual(strides[i - 1], compact)) {
        padded_.emplace(buffer->data.get(), Padding{i - 1, strides[i - 1], compact});
      }
      size = analyzer_.Simplify(strides[i - 1] * extents[i - 1]);
      compact = analyzer_.Simplify(compact * extents[i - 1]);
    }
    layout.strides = Array<PrimExpr>(strides);
    size = Countable(size);
    layout.flat = Buffer(buffer->data, buffer->dtype, {size}, {}, PrimExpr(), buffer->name,
                         cache_line_bytes_);
    layouts_[buffer.get()] = layout;
    Stmt body = VisitStmt(inside);
    return Allocate(buffer->data, buffer->dtype, {size}, VisitExpr(condition), body);
  }

  // Views are laid out where they are used, as they declare.
  Stmt VisitStmt_(const DeclBufferNode* op) final { return VisitStmt(op->body); }
  Stmt VisitStmt_(const AllocateNode* op) final {
    const auto* decl = op->body.as<DeclBufferNode>();
    std::vector<StorageAlignment> rows = AllocatedAlignment(op);
    if (!rows.empty() && decl != nullptr && decl->buffer->data.same_as(op->buffer_var) &&
        decl->buffer->strides.empty()) {
      for (const StorageAlignment& row : rows) {
        alignment_[decl->buffer.get()][static_cast<size_t>(*as_const_int(row.axis))] = {row.factor,
                                                                                        row.offset};
      }
      return Allocated(decl->buffer, BufferRegion::FullRegion(decl->buffer)->region, op->condition,
                       decl->body);
    }
    Allocate allocate = Downcast<Allocate>(StmtExprMutator::VisitStmt_(op));
    if (op->extents.size() != 1) allocate.CopyOnWrite()->extents = {Product(allocate->extents)};
    return allocate;
  }
  Stmt VisitStmt_(const AllocateConstNode* op) final {
    AllocateConst allocate = Downcast<AllocateConst>(StmtExprMutator::VisitStmt_(op));
    if (op->extents.size() != 1) allocate.CopyOnWrite()->extents = {Product(allocate->extents)};
    return allocate;
  }
  PrimExpr Product(const Array<PrimExpr>& extents) {
    PrimExpr product = make_const(extents.empty() ? DataType::Int(32) : extents[0].dtype(), 1);
    for (const PrimExpr& extent : extents) product = product * extent;
    return analyzer_.Simplify(product);
  }

  /*! \brief A number of elements, in 64 bits where it is known and does not fit fewer. */
  static PrimExpr Countable(const PrimExpr& size) {
    const PrimExpr wide = Wide(size);
    const int64_t* known = as_const_int(wide);
    return known != nullptr && *known > std::numeric_limits<int32_t>::max() ? wide : size;
  }
  static PrimExpr Wide(const PrimExpr& size) {
    // Products of literals that would overflow are left as they are.
    if (const auto* product = size.as<MulNode>()) return mul(Wide(product->a), Wide(product->b));
    return cast(DataType::Int(64), size);
  }

  static Stmt WithBound(const Var& data, const PrimExpr& size, const Stmt& body) {
    return AttrStmt(data, attr::buffer_bound, size, body);
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
    const Layout& layout = LayoutOf(op->buffer);
    Array<PrimExpr> first;
    std::vector<PrimExpr> extents;
    for (const Range& bound : op->bounds) {
      first.push_back(VisitExpr(bound->min));
      extents.push_back(VisitExpr(bound->extent));
    }
    const DataType index = op->buffer.IndexDType();
    PrimExpr position = FlatIndex(layout, first);
    // The inner axes without gaps are one run of memory, of which each cache line is touched once.
    size_t outer = extents.size();
    PrimExpr run = make_const(index, 1);
    while (outer != 0 && analyzer_.CanProveEqual(layout.strides[outer - 1], run)) {
      --outer;
      run = analyzer_.Simplify(run * extents[outer]);
    }
    std::vector<std::pair<Var, PrimExpr>> loops;
    for (size_t i = 0; i < outer; ++i) {
      if (is_one(extents[i])) continue;
      loops.emplace_back(Var(op->buffer->name + ".row", index), extents[i]);
      position = position + loops.back().first * layout.strides[i];
    }
    const int step = std::max(1, cache_line_bytes_ / std::max(1, op->buffer->dtype.bytes()));
    const PrimExpr line_elements = make_const(index, step);
    const bool starts_a_line = analyzer_.CanProveEqual(floormod(position, line_elements), 0);
    // A run that starts inside of a line may end in one more.
    PrimExpr lines = starts_a_line ? ceildiv(run, line_elements)
                                   : ceildiv(run - 1, line_elements) + make_const(index, 1);
    lines = analyzer_.Simplify(lines);
    if (!is_one(lines)) {
      loops.emplace_back(Var(op->buffer->name + ".line", index), lines);
      PrimExpr along = loops.back().first * line_elements;
      position = position + (starts_a_line ? along : min(along, run - 1));
    }
    PrimExpr address =
        Call(DataType::Handle(), builtin::address_of(), {BufferLoad(layout.flat, {position})});
    Stmt stmt = Evaluate(Call(DataType::Int(32), builtin::prefetch(), {address, 0, 3, 1}));
    // A few lines are read ahead in the middle of an inner loop, where one more loop would cost
    // more than they do.
    PrimExpr count = make_const(index, 1);
    for (const auto& loop : loops) count = analyzer_.Simplify(count * loop.second);
    const auto* known = count.as<IntImmNode>();
    const bool few = known != nullptr && known->value <= kWrittenOutPrefetches;
    const ForKind kind = few ? ForKind::kUnrolled : ForKind::kSerial;
    for (size_t i = loops.size(); i != 0; --i) {
      stmt = For(loops[i - 1].first, make_zero(index), loops[i - 1].second, kind, stmt);
    }
    return stmt;
  }

  PrimExpr VisitExpr_(const VarNode* op) final {
    auto padding = padded_.find(op);
    TVM_CHECK(padding == padded_.end(), ScheduleError)
        << "buffer " << op->name_hint << ": storage_align gives axis " << padding->second.axis
        << " the stride " << padding->second.stride << " instead of " << padding->second.compact
        << ", which code that gets a pointer to the buffer does not know; drop storage_align, read "
           "element by element, or copy into a stage without it";
    auto it = values_.find(op);
    return it == values_.end() ? GetRef<PrimExpr>(op) : it->second;
  }

  PrimExpr VisitExpr_(const CallNode* op) final {
    if (op->op.same_as(builtin::tvm_access_ptr())) {
      // A pointer to an element keeps the buffer in sight of later passes.
      const auto* data = op->args[1].as<VarNode>();
      ICHECK(data != nullptr);
      DataType element = op->args[0].dtype().element_of();
      PrimExpr offset = VisitExpr(op->args[2]);
      Var pointer = Downcast<Var>(VisitExpr(GetRef<Var>(data)));
      Buffer flat(pointer, element, {offset + VisitExpr(op->args[3])}, {}, PrimExpr(),
                  pointer->name_hint);
      return Call(DataType::Handle(), builtin::address_of(),
                  {BufferLoad(flat, {analyzer_.Simplify(offset)})});
    }
    return StmtExprMutator::VisitExpr_(op);
  }

  /*! \brief The body with a buffer laid out as a region of another one. */
  Stmt BindBlock(const AttrStmtNode* op) {
    Array<ObjectRef> pair = Downcast<Array<ObjectRef>>(op->node);
    Buffer block = Downcast<Buffer>(pair[0]);
    Buffer buffer = Downcast<Buffer>(pair[1]);
    const Layout& whole = LayoutOf(buffer);
    Array<PrimExpr> corners = op->value.as<CallNode>()->args;
    Array<PrimExpr> first, extents;
    for (size_t i = 0; i + 1 < corners.size(); i += 2) {
      first.push_back(VisitExpr(corners[i]));
      extents.push_back(VisitExpr(corners[i + 1]));
    }
    const std::string where =
        "buffer " + std::string(block->name) + " bound to a region of " + std::string(buffer->name);
    auto equal = [&](const PrimExpr& declared, const PrimExpr& actual, const char* what) {
      PrimExpr known = VisitExpr(declared);
      if (known.as<VarNode>() != nullptr && values_.count(known.as<VarNode>()) == 0) {
        values_[known.as<VarNode>()] = cast(known.dtype(), actual);
        return;
      }
      TVM_CHECK(analyzer_.CanProveEqual(known, actual), ScheduleError)
          << where << ": it declares " << what << " " << known << ", the region has " << actual
          << "; declare a variable or what the region has";
    };
    std::unordered_map<const VarNode*, PrimExpr> outer = values_;
    const auto* pointer = block->data->type_annotation.as<PointerTypeNode>();
    if (pointer != nullptr && !pointer->storage_scope.empty()) {
      TVM_CHECK(block.scope() == buffer.scope(), ScheduleError)
          << where << ": it declares scope " << block.scope() << ", the region is in "
          << buffer.scope();
    }
    TVM_CHECK(block->dtype == buffer->dtype, ScheduleError)
        << where << ": it declares dtype " << block->dtype << ", the region has " << buffer->dtype;
    size_t ndim = block->shape.size();
    TVM_CHECK(ndim <= extents.size(), ScheduleError)
        << where << ": it has " << ndim << " axes, the region " << extents.size();
    size_t lead = extents.size() - ndim;
    for (size_t i = 0; i < lead; ++i) {
      TVM_CHECK(is_one(extents[i]), ScheduleError)
          << where << ": it has " << ndim << " axes, so the first " << lead
          << " of the region must "
          << "have one element, but axis " << i << " has " << extents[i];
    }
    Layout layout;
    layout.flat = whole.flat;
    layout.offset = analyzer_.Simplify(FlatIndex(whole, first));
    values_[block->data.get()] = whole.flat->data;
    for (size_t i = 0; i < ndim; ++i) equal(block->shape[i], extents[lead + i], "extent");
    PrimExpr compact = make_const(block.IndexDType(), 1);
    std::vector<PrimExpr> strides(ndim);
    for (size_t i = ndim; i != 0; --i) {
      PrimExpr extent = extents[lead + i - 1];
      // No stride is ever multiplied by anything but zero on an axis of one element.
      bool used = !is_one(extent);
      PrimExpr actual = used ? whole.strides[lead + i - 1] : compact;
      if (!block->strides.empty()) {
        equal(block->strides[i - 1],
              used || block->strides[i - 1].as<VarNode>() != nullptr ? whole.strides[lead + i - 1]
                                                                     : block->strides[i - 1],
              "stride");
        actual = whole.strides[lead + i - 1];
      } else {
        TVM_CHECK(analyzer_.CanProveEqual(actual, compact), ScheduleError)
            << where << ": it declares no strides and so must be without gaps, but axis " << i - 1
            << " has stride " << actual << " instead of " << compact
            << "; declare the buffer with strides=[...] of variables";
      }
      strides[i - 1] = actual;
      compact = analyzer_.Simplify(compact * extent);
    }
    layout.strides = Array<PrimExpr>(strides);
    for (size_t i = 0; i < ndim; ++i) layout.lower.push_back(make_zero(block.IndexDType()));
    PrimExpr factor = make_const(layout.offset.dtype(), block->offset_factor);
    TVM_CHECK(analyzer_.CanProveEqual(floormod(layout.offset, factor), 0), ScheduleError)
        << where << ": it declares offset_factor " << block->offset_factor
        << ", the region starts at element " << layout.offset;
    if (is_zero(block->elem_offset)) {
      TVM_CHECK(analyzer_.CanProveEqual(layout.offset, 0), ScheduleError)
          << where << ": it declares no offset, the region starts at element " << layout.offset
          << "; declare the buffer with offset_factor=1";
    } else {
      equal(block->elem_offset, layout.offset, "offset");
    }
    auto known = layouts_.find(block.get());
    std::optional<Layout> before;
    if (known != layouts_.end()) before = known->second;
    layouts_[block.get()] = layout;
    // The same statements may serve several blocks, and every variable is to be bound once.
    bool innermost = op->body.as<AttrStmtNode>() == nullptr ||
                     op->body.as<AttrStmtNode>()->attr_key != attr::buffer_bind_scope;
    Stmt body = VisitStmt(op->body);
    if (innermost) body = RenewBindings(body);
    values_ = std::move(outer);
    if (before) {
      layouts_[block.get()] = *before;
    } else {
      layouts_.erase(block.get());
    }
    return body;
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
    layout.flat = Buffer(buffer->data, buffer->dtype, {Countable(size)}, {}, PrimExpr(),
                         buffer->name, buffer->data_alignment);
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
  bool create_bound_attributes_;
  arith::Analyzer analyzer_;
  std::unordered_map<const BufferNode*, Layout> layouts_;
  /*! \brief Variables that blocks in scope declare. */
  std::unordered_map<const VarNode*, PrimExpr> values_;
  std::unordered_map<const BufferNode*, std::unordered_map<size_t, Alignment>> alignment_;
  /*! \brief Data of realized buffers that have gaps. */
  std::unordered_map<const VarNode*, Padding> padded_;
};

}  // namespace

namespace transform {

Pass StorageFlatten(int cache_line_bytes, bool create_bound_attributes) {
  TVM_CHECK(cache_line_bytes > 0 && (cache_line_bytes & (cache_line_bytes - 1)) == 0, ValueError)
      << "StorageFlatten: cache_line_bytes must be a power of two, got " << cache_line_bytes;
  return BodyPass("tir.StorageFlatten", [=](const PrimFunc& func, const PassContext&) {
    return Flattener(cache_line_bytes, create_bound_attributes).Run(func);
  });
}

TVM_REGISTER_GLOBAL("tir.transform.StorageFlatten").set_body_typed(StorageFlatten);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
