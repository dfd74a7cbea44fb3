/*!
 * \file src/tir/transforms/merge_dynamic_shared_memory.cc
 * \brief One allocation of dynamic shared memory per kernel, whose size the launch states.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/launch.h>

#include <vector>

#include "pass_common.h"

namespace tvm {
namespace tir {
namespace {

/*! \brief Every part starts where vector loads of the widest kind and loads of fragments may. */
constexpr int kPartAlignment = 32;

bool IsDynamic(const Var& data) { return StorageScopeOf(data) == "shared.dyn"; }

class Merger final : public StmtExprMutator {
 public:
  explicit Merger(const std::vector<const AllocateNode*>& parts) {
    arith::Analyzer analyzer;
    PrimExpr total(0);
    for (const AllocateNode* part : parts) {
      int bytes = part->dtype.bytes() * part->dtype.lanes();
      offsets_[part->buffer_var.get()] = total;
      PrimExpr size(bytes);
      for (const PrimExpr& extent : part->extents) size = size * extent;
      size = floordiv(size + (kPartAlignment - 1), kPartAlignment) * kPartAlignment;
      total = analyzer.Simplify(total + size);
    }
    total_ = total;
  }

  Stmt Run(const Stmt& body) {
    return Allocate(merged_, DataType::UInt(8), {total_}, const_true(), VisitStmt(body));
  }

 private:
  Stmt VisitStmt_(const AllocateNode* op) final {
    if (offsets_.count(op->buffer_var.get()) != 0) return VisitStmt(op->body);
    return StmtExprMutator::VisitStmt_(op);
  }
  Stmt VisitStmt_(const BufferStoreNode* op) final {
    Array<PrimExpr> indices = VisitExprs(op->indices);
    PrimExpr value = VisitExpr(op->value);
    if (offsets_.count(op->buffer->data.get()) != 0) {
      return BufferStore(View(op->buffer), value, {Shifted(op->buffer, indices)});
    }
    if (indices.same_as(op->indices) && value.same_as(op->value)) return GetRef<Stmt>(op);
    return BufferStore(op->buffer, value, indices);
  }
  PrimExpr VisitExpr_(const BufferLoadNode* op) final {
    Array<PrimExpr> indices = VisitExprs(op->indices);
    if (offsets_.count(op->buffer->data.get()) != 0) {
      return BufferLoad(View(op->buffer), {Shifted(op->buffer, indices)});
    }
    return indices.same_as(op->indices) ? GetRef<PrimExpr>(op) : BufferLoad(op->buffer, indices);
  }
  PrimExpr VisitExpr_(const VarNode* op) final {
    TVM_CHECK(offsets_.count(op) == 0, ValueError)
        << "MergeDynamicSharedMemoryAllocations: " << op->name_hint
        << " is passed on as a whole; pass the address of its first element instead";
    return GetRef<PrimExpr>(op);
  }

  Buffer View(const Buffer& buffer) {
    auto [it, fresh] = views_.try_emplace(buffer.get(), buffer);
    if (fresh) {
      BufferNode* view = it->second.CopyOnWrite();
      view->data = merged_;
      int bytes = buffer->dtype.bytes() * buffer->dtype.lanes();
      view->shape = {floordiv(total_, bytes)};
    }
    return it->second;
  }
  PrimExpr Shifted(const Buffer& buffer, const Array<PrimExpr>& indices) const {
    int bytes = buffer->dtype.bytes() * buffer->dtype.lanes();
    TVM_CHECK(kPartAlignment % bytes == 0, ValueError)
        << "MergeDynamicSharedMemoryAllocations: elements of " << buffer->name << " have " << bytes
        << " bytes, which do not divide " << kPartAlignment;
    PrimExpr index = indices[0];
    arith::Analyzer analyzer;
    PrimExpr start = cast(index.dtype().element_of(),
                          analyzer.Simplify(floordiv(offsets_.at(buffer->data.get()), bytes)));
    if (is_zero(start)) return index;
    if (const auto* ramp = index.as<RampNode>()) {
      return Ramp(analyzer.Simplify(ramp->base + start), ramp->stride, ramp->lanes);
    }
    if (index.dtype().is_vector()) return index + Broadcast(start, index.dtype().lanes());
    return analyzer.Simplify(index + start);
  }

  Var merged_{"buf_dyn_shmem", PointerType(PrimType(DataType::UInt(8)), "shared.dyn")};
  PrimExpr total_;
  /*! \brief Where each part starts, in bytes. */
  std::unordered_map<const VarNode*, PrimExpr> offsets_;
  std::unordered_map<const BufferNode*, Buffer> views_;
};

class LaunchVisitor final : public StmtMutator {
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    if (op->attr_key != attr::thread_extent) return StmtMutator::VisitStmt_(op);
    std::vector<const AllocateNode*> parts;
    PreOrderVisit(op->body, [&](const ObjectRef& node) {
      const auto* allocate = node.as<AllocateNode>();
      if (allocate != nullptr && IsDynamic(allocate->buffer_var)) parts.push_back(allocate);
      return true;
    });
    if (parts.size() < 2) return GetRef<Stmt>(op);
    Merger merger(parts);
    AttrStmt launch = GetRef<AttrStmt>(op);
    launch.CopyOnWrite()->body = merger.Run(op->body);
    return launch;
  }
};

}  // namespace

namespace transform {

Pass MergeDynamicSharedMemoryAllocations() {
  return BodyPass(
      "tir.MergeDynamicSharedMemoryAllocations",
      [](const PrimFunc& func, const PassContext&) { return LaunchVisitor()(func->body); });
}

TVM_REGISTER_GLOBAL("tir.transform.MergeDynamicSharedMemoryAllocations")
    .set_body_typed(MergeDynamicSharedMemoryAllocations);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
