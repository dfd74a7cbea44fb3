/*!
 * \file src/tir/transforms/merge_dynamic_shared_memory.cc
 * \brief One allocation of shared memory of a kind per kernel; a launch states the dynamic one's
 * size. All of a kernel's is dynamic where it has more than a block may have without asking.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/target/machine.h>
#include <tvm/tir/launch.h>

#include <limits>
#include <vector>

#include "pass_common.h"
#include "pointer_offsets.h"

namespace tvm {
namespace tir {
namespace {

/*! \brief Every part starts where vector loads of the widest kind and loads of fragments may. */
constexpr int kPartAlignment = 32;

constexpr const char* kMergeStatic = "tir.merge_static_smem";

TVM_REGISTER_PASS_CONFIG_OPTION("tir.merge_static_smem", bool);

class Merger final : public StmtExprMutator {
 public:
  Merger(const std::vector<const AllocateNode*>& parts, const String& scope, const char* name)
      : merged_(name, PointerType(PrimType(DataType::UInt(8)), scope)) {
    arith::Analyzer analyzer;
    PrimExpr total(0);
    for (const AllocateNode* part : parts) {
      int bytes = part->dtype.bytes() * part->dtype.lanes();
      offsets_[part->buffer_var.get()] = total;
      elements_[part->buffer_var.get()] = part->dtype.element_of();
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
  Stmt VisitStmt_(const DeclBufferNode* op) final {
    if (offsets_.count(op->buffer->data.get()) == 0) return StmtExprMutator::VisitStmt_(op);
    return DeclBuffer(View(op->buffer), VisitStmt(op->body));
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
  PrimExpr VisitExpr_(const CallNode* op) final {
    // Instructions take a pointer and an offset from it.
    const PointerOffsets* pairs = PointerOffsetsOf(op);
    Array<PrimExpr> args;
    for (size_t i = 0; i < op->args.size(); ++i) {
      const auto* data = op->args[i].as<VarNode>();
      const bool is_part = pairs != nullptr && data != nullptr && offsets_.count(data) != 0 &&
                           OffsetOfPointer(pairs, i) < op->args.size();
      args.push_back(is_part ? AddressOf(GetRef<Var>(data)) : VisitExpr(op->args[i]));
    }
    if (op->op.same_as(builtin::tvm_access_ptr())) {
      const auto* data = op->args[1].as<VarNode>();
      if (data != nullptr && offsets_.count(data) != 0) {
        DataType element = op->args[0].dtype().element_of();
        args.Set(1, merged_);
        args.Set(2, args[2] + StartOf(data, element, args[2].dtype()));
      }
    }
    return args.same_as(op->args) ? GetRef<PrimExpr>(op) : Call(op->dtype, op->op, args);
  }
  PrimExpr VisitExpr_(const VarNode* op) final {
    TVM_CHECK(offsets_.count(op) == 0, ValueError)
        << "MergeSharedMemoryAllocations: " << op->name_hint
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
  /*! \brief Where a part begins, in elements of `element`, which may be vectors. */
  PrimExpr StartOf(const VarNode* data, DataType element, DataType index) const {
    arith::Analyzer analyzer;
    const int bytes = element.bytes() * element.lanes();
    return cast(index, analyzer.Simplify(floordiv(offsets_.at(data), bytes)));
  }
  /*! \brief The address of the first element of a part. */
  PrimExpr AddressOf(const Var& data) {
    auto [it, fresh] = first_.try_emplace(data.get());
    DataType element = elements_.at(data.get());
    if (fresh) {
      it->second = decl_buffer({floordiv(total_, element.bytes())}, element, data->name_hint);
      it->second.CopyOnWrite()->data = merged_;
    }
    PrimExpr start = StartOf(data.get(), element, DataType::Int(32));
    return Call(DataType::Handle(), builtin::address_of(), {BufferLoad(it->second, {start})});
  }
  PrimExpr Shifted(const Buffer& buffer, const Array<PrimExpr>& indices) const {
    int bytes = buffer->dtype.bytes() * buffer->dtype.lanes();
    TVM_CHECK(kPartAlignment % bytes == 0, ValueError)
        << "MergeSharedMemoryAllocations: elements of " << buffer->name << " have " << bytes
        << " bytes, which do not divide " << kPartAlignment;
    PrimExpr index = indices[0];
    arith::Analyzer analyzer;
    PrimExpr start = StartOf(buffer->data.get(), buffer->dtype, index.dtype().element_of());
    if (is_zero(start)) return index;
    if (const auto* ramp = index.as<RampNode>()) {
      return Ramp(analyzer.Simplify(ramp->base + start), ramp->stride, ramp->lanes);
    }
    if (index.dtype().is_vector()) return index + Broadcast(start, index.dtype().lanes());
    return analyzer.Simplify(index + start);
  }

  Var merged_;
  PrimExpr total_;
  /*! \brief Where each part starts, in bytes. */
  std::unordered_map<const VarNode*, PrimExpr> offsets_;
  std::unordered_map<const VarNode*, DataType> elements_;
  std::unordered_map<const VarNode*, Buffer> first_;
  std::unordered_map<const BufferNode*, Buffer> views_;
};

/*! \brief Bytes of allocations of constant size; those of others are not known. */
int64_t ConstantBytes(const std::vector<const AllocateNode*>& parts) {
  int64_t total = 0;
  for (const AllocateNode* part : parts) {
    int64_t bytes = part->dtype.bytes() * part->dtype.lanes();
    for (const PrimExpr& extent : part->extents) {
      const int64_t* constant = as_const_int(extent);
      bytes = constant == nullptr ? 0 : bytes * *constant;
    }
    total += bytes;
  }
  return total;
}

class LaunchVisitor final : public StmtMutator {
 public:
  /*! \param granted Bytes of static shared memory beyond which all of a kernel's is dynamic. */
  LaunchVisitor(const char* scope, const char* name,
                int64_t granted = std::numeric_limits<int64_t>::max())
      : scope_(scope), name_(name), granted_(granted) {}

 private:
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    if (op->attr_key != attr::thread_extent) return StmtMutator::VisitStmt_(op);
    std::vector<const AllocateNode*> parts, fixed;
    PreOrderVisit(op->body, [&](const ObjectRef& node) {
      if (const auto* allocate = node.as<AllocateNode>()) {
        const std::string scope = StorageScopeOf(allocate->buffer_var);
        if (scope == scope_) parts.push_back(allocate);
        if (scope == "shared") fixed.push_back(allocate);
      }
      return true;
    });
    if (ConstantBytes(fixed) > granted_) {
      parts.insert(parts.end(), fixed.begin(), fixed.end());
    } else if (parts.size() < 2) {
      return GetRef<Stmt>(op);
    }
    Merger merger(parts, scope_, name_);
    AttrStmt launch = GetRef<AttrStmt>(op);
    launch.CopyOnWrite()->body = merger.Run(op->body);
    return launch;
  }

  String scope_;
  const char* name_;
  int64_t granted_;
};

/*! \brief Shared memory of a kernel for `func` that may be static; unlimited where all may be. */
int64_t StaticLimit(const PrimFunc& func) {
  constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  auto target = func->GetAttr<Target>(tvm::attr::kTarget);
  if (!target.has_value()) return kNoLimit;
  const MachineFacts facts = MachineFacts::Of(*target);
  const bool may_ask =
      facts.max_dynamic_shared_memory_per_block > facts.max_shared_memory_per_block;
  return may_ask ? facts.max_shared_memory_per_block : kNoLimit;
}

}  // namespace

namespace transform {

Pass MergeDynamicSharedMemoryAllocations() {
  return BodyPass(
      "tir.MergeSharedMemoryAllocations", [](const PrimFunc& func, const PassContext& context) {
        Stmt body = LaunchVisitor("shared.dyn", "buf_dyn_shmem", StaticLimit(func))(func->body);
        if (!context->GetConfig<bool>(kMergeStatic, false)) return body;
        return LaunchVisitor("shared", "buf_shmem")(body);
      });
}

TVM_REGISTER_GLOBAL("tir.transform.MergeDynamicSharedMemoryAllocations")
    .set_body_typed(MergeDynamicSharedMemoryAllocations);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
