/*!
 * \file src/tir/transforms/software_pipeline_versions.cc
 * \brief Copies of the buffers through which the parts of a pipelined loop hand values on.
 */
#include <tvm/arith/int_set.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <string>
#include <utility>

#include "pointer_offsets.h"
#include "software_pipeline.h"
#include "storage_alignment.h"

namespace tvm {
namespace tir {
namespace {

const BufferRegion* FindRegion(const Array<BufferRegion>& regions, const Buffer& buffer) {
  auto it = std::find_if(regions.begin(), regions.end(), [&](const BufferRegion& region) {
    return region->buffer.same_as(buffer);
  });
  return it == regions.end() ? nullptr : &*it;
}

bool MayOverlap(const Array<Range>& a, const Array<Range>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (arith::Intersect({arith::IntSet::FromRange(a[i]), arith::IntSet::FromRange(b[i])})
            .IsNothing()) {
      return false;
    }
  }
  return true;
}

/*! \brief Whether a part reads what an earlier part of an earlier stage writes before it. */
bool NeedsTwo(const Buffer& buffer, const std::vector<PipelinePart>& parts) {
  for (const PipelinePart& writer : parts) {
    const BufferRegion* written = FindRegion(writer.block->writes, buffer);
    if (written == nullptr) continue;
    for (const PipelinePart& reader : parts) {
      const BufferRegion* read = FindRegion(reader.block->reads, buffer);
      if (read != nullptr && writer.order < reader.order && writer.stage < reader.stage &&
          MayOverlap((*written)->region, (*read)->region)) {
        return true;
      }
    }
  }
  return false;
}

class VersionAccess final : public StmtExprMutator {
 public:
  VersionAccess(const Map<Buffer, Buffer>& remap, const Map<Var, Buffer>& buffers,
                const std::unordered_map<const VarNode*, int64_t>& fragments, PrimExpr index,
                VersionRegion region)
      : remap_(remap),
        buffers_(buffers),
        fragments_(fragments),
        index_(std::move(index)),
        region_(region) {}

 private:
  Buffer Find(const Buffer& buffer) const {
    auto it = remap_.find(buffer);
    return it == remap_.end() ? Buffer(nullptr) : (*it).second;
  }
  PrimExpr Version(const Buffer& versioned) const { return floormod(index_, versioned->shape[0]); }
  template <typename T>
  static Array<T> Prepend(const T& first, const Array<T>& rest) {
    Array<T> all{first};
    for (const T& item : rest) all.push_back(item);
    return all;
  }

  Array<BufferRegion> Regions(const Array<BufferRegion>& regions) const {
    return regions.Map([this](const BufferRegion& region) {
      Buffer versioned = Find(region->buffer);
      if (!versioned.defined()) return region;
      const PrimExpr& all = versioned->shape[0];
      Range which = region_ == VersionRegion::kAll
                        ? Range::FromMinExtent(make_zero(all.dtype()), all)
                        : Range::FromMinExtent(Version(versioned), make_const(all.dtype(), 1));
      return BufferRegion(versioned, Prepend(which, region->region));
    });
  }

  /*! \brief Rows of storage alignment count axes, and there is one more now. */
  Map<String, ObjectRef> Annotations(const BlockNode* op) const {
    auto it = op->annotations.find(kBufferDimAlign);
    if (it == op->annotations.end()) return op->annotations;
    Array<Array<PrimExpr>> rows;
    for (Array<PrimExpr> row : Downcast<Array<Array<PrimExpr>>>((*it).second)) {
      const int64_t* number = row.size() == 4 ? as_const_int(row[0]) : nullptr;
      const bool known =
          number != nullptr && *number >= 0 && static_cast<size_t>(*number) < op->writes.size();
      if (known && Find(op->writes[*number]->buffer).defined()) {
        row.Set(1, row[1] + make_const(row[1].dtype(), 1));
      }
      rows.push_back(row);
    }
    Map<String, ObjectRef> annotations = op->annotations;
    annotations.Set(kBufferDimAlign, rows);
    return annotations;
  }

  Stmt VisitStmt_(const BlockNode* op) final {
    Map<String, ObjectRef> annotations = Annotations(op);
    Block block = Downcast<Block>(StmtExprMutator::VisitStmt_(op));
    BlockNode* node = block.CopyOnWrite();
    node->reads = Regions(node->reads);
    node->writes = Regions(node->writes);
    node->annotations = annotations;
    return block;
  }
  Stmt VisitStmt_(const BufferStoreNode* op) final {
    BufferStore store = Downcast<BufferStore>(StmtExprMutator::VisitStmt_(op));
    Buffer versioned = Find(store->buffer);
    if (!versioned.defined()) return store;
    return BufferStore(versioned, store->value, Prepend(Version(versioned), store->indices));
  }
  PrimExpr VisitExpr_(const BufferLoadNode* op) final {
    BufferLoad load = Downcast<BufferLoad>(StmtExprMutator::VisitExpr_(op));
    Buffer versioned = Find(load->buffer);
    if (!versioned.defined()) return load;
    return BufferLoad(versioned, Prepend(Version(versioned), load->indices));
  }
  PrimExpr VisitExpr_(const CallNode* op) final {
    Call call = Downcast<Call>(StmtExprMutator::VisitExpr_(op));
    Array<PrimExpr> args = call->args;
    const PointerOffsets* offsets = PointerOffsetsOf(call.get());
    for (size_t i = 0; i < args.size(); ++i) {
      const auto* var = args[i].as<VarNode>();
      if (var == nullptr) continue;
      auto it = buffers_.find(GetRef<Var>(var));
      Buffer versioned = it == buffers_.end() ? Buffer(nullptr) : Find((*it).second);
      if (!versioned.defined()) continue;
      size_t offset = OffsetOfPointer(offsets, i);
      TVM_CHECK(offset < args.size(), ValueError)
          << "InjectSoftwarePipeline: the call of " << call->op << " takes the data of "
          << versioned->name << " without an offset, so it cannot be told which of its "
          << versioned->shape[0] << " copies to use; hand it " << versioned->name
          << ".access_ptr(...)";
      PrimExpr old = args[offset];
      args.Set(offset, old + cast(old.dtype(), Version(versioned) * Stride(versioned)));
    }
    return args.same_as(call->args) ? PrimExpr(call) : PrimExpr(Call(call->dtype, call->op, args));
  }
  /*! \brief Between copies, in elements or, of arrays of fragments, in fragments. */
  PrimExpr Stride(const Buffer& versioned) const {
    PrimExpr stride =
        versioned->strides.empty() ? make_const(versioned.IndexDType(), 1) : versioned->strides[0];
    if (versioned->strides.empty()) {
      for (size_t i = 1; i < versioned->shape.size(); ++i) stride = stride * versioned->shape[i];
    }
    auto it = fragments_.find(versioned->data.get());
    if (it == fragments_.end()) return stride;
    return floordiv(stride, make_const(stride.dtype(), it->second));
  }

  const Map<Buffer, Buffer>& remap_;
  const Map<Var, Buffer>& buffers_;
  const std::unordered_map<const VarNode*, int64_t>& fragments_;
  PrimExpr index_;
  VersionRegion region_;
};

/*! \brief Elements by the scope of a fragment: a has m * k, b has n * k, the accumulator m * n. */
int64_t ElementsOf(const std::string& scope, int64_t m, int64_t n, int64_t k) {
  if (scope == "wmma.matrix_a") return m * k;
  if (scope == "wmma.matrix_b") return n * k;
  return m * n;
}

}  // namespace

int CountVersions(const Buffer& buffer, const std::vector<PipelinePart>& parts, bool doubled) {
  int first_write = -1;
  int last_read = -1;
  for (const PipelinePart& part : parts) {
    if (FindRegion(part.block->writes, buffer) != nullptr) {
      first_write = first_write < 0 ? part.stage : std::min(first_write, part.stage);
    }
    if (FindRegion(part.block->reads, buffer) != nullptr) {
      last_read = std::max(last_read, part.stage);
    }
  }
  if (first_write < 0) return 1;
  int versions = std::max(1, last_read - first_write + 1);
  // One trip between write and read: a copy is enough if the read comes before the next write.
  if (versions == 2 && !NeedsTwo(buffer, parts)) versions = 1;
  return versions == 1 && doubled ? 2 : versions;
}

Buffer AddVersions(const Buffer& buffer, int versions) {
  Buffer result = buffer;
  BufferNode* node = result.CopyOnWrite();
  Array<PrimExpr> shape{make_const(buffer.IndexDType(), versions)};
  for (const PrimExpr& extent : buffer->shape) shape.push_back(extent);
  if (!buffer->strides.empty()) {
    Array<PrimExpr> strides{buffer->strides[0] * buffer->shape[0]};
    for (const PrimExpr& stride : buffer->strides) strides.push_back(stride);
    node->strides = strides;
  }
  node->shape = shape;
  return result;
}

Block AccessVersions(const Block& block, const Map<Buffer, Buffer>& remap,
                     const Map<Var, Buffer>& buffers,
                     const std::unordered_map<const VarNode*, int64_t>& fragments,
                     const PrimExpr& index, VersionRegion region) {
  if (remap.empty()) return block;
  VersionAccess access(remap, buffers, fragments, index, region);
  return Downcast<Block>(access(block));
}

std::unordered_map<const VarNode*, int64_t> FragmentSizes(const Stmt& body) {
  std::unordered_map<const VarNode*, int64_t> sizes;
  PostOrderVisit(body, [&sizes](const ObjectRef& node) {
    const auto* call = node.as<CallNode>();
    if (call == nullptr || call->args.size() < 5) return;
    if (!call->op.same_as(builtin::tvm_load_matrix_sync()) &&
        !call->op.same_as(builtin::tvm_store_matrix_sync()) &&
        !call->op.same_as(builtin::tvm_fill_fragment())) {
      return;
    }
    const auto* data = call->args[0].as<VarNode>();
    if (data == nullptr) return;
    int64_t extents[3];
    for (size_t i = 0; i < 3; ++i) {
      const int64_t* extent = as_const_int(call->args[i + 1]);
      if (extent == nullptr) return;
      extents[i] = *extent;
    }
    const auto* pointer = data->type_annotation.as<PointerTypeNode>();
    std::string scope = pointer == nullptr ? "" : std::string(pointer->storage_scope);
    sizes[data] = ElementsOf(scope, extents[0], extents[1], extents[2]);
  });
  return sizes;
}

}  // namespace tir
}  // namespace tvm
