/*!
 * \file src/tir/transforms/lower_warp_memory.cc
 * \brief Memory shared by a warp becomes registers of its threads, read by shuffles.
 *
 * Element i of such a buffer lives in the registers of thread (i mod (m * width)) / m of the group
 * of `width` threads along threadIdx.x, where m is the number of neighbouring elements that one
 * thread writes.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/arith/pattern.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/target/target.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/launch.h>

#include <string>
#include <utility>
#include <vector>

#include "pass_common.h"
#include "pointer_offsets.h"

namespace tvm {
namespace tir {
namespace {

PrimExpr FirstLane(const PrimExpr& index) {
  const auto* ramp = index.as<RampNode>();
  return ramp != nullptr ? ramp->base : index;
}

/*! \brief Threads along x, and the loops around an access with their domains. */
struct Environment {
  Var lane;
  int64_t width = 0;
  arith::Analyzer analyzer;
};

/*! \brief How many neighbouring elements each thread writes: the stride of threadIdx.x. */
class StrideFinder final : public StmtExprVisitor {
 public:
  StrideFinder(const VarNode* data, const Environment* env) : data_(data), env_(env) {}
  int64_t stride = 0;

 private:
  void VisitStmt_(const BufferStoreNode* op) final {
    StmtExprVisitor::VisitStmt_(op);
    if (op->buffer->data.get() != data_) return;
    PrimExpr index = FirstLane(op->indices[0]);
    Array<PrimExpr> linear = arith::DetectLinearEquation(index, {env_->lane});
    const int64_t* found = linear.size() == 2 ? as_const_int(linear[0]) : nullptr;
    TVM_CHECK(found != nullptr && *found > 0, ValueError)
        << "LowerWarpMemory: a store to " << op->buffer->name << " at " << index
        << " does not have a constant stride along threadIdx.x; each thread must write elements "
        << "of its own";
    TVM_CHECK(stride == 0 || stride == *found, ValueError)
        << "LowerWarpMemory: stores to " << op->buffer->name << " have strides " << stride
        << " and " << *found << " along threadIdx.x; use one layout";
    stride = *found;
  }
  void VisitExpr_(const CallNode* op) final {
    StmtExprVisitor::VisitExpr_(op);
    const PointerOffsets* offsets = PointerOffsetsOf(op);
    if (offsets == nullptr) return;
    for (const auto& [pointer, offset] : *offsets) {
      if (op->args[pointer].get() != data_) continue;
      Array<PrimExpr> linear = arith::DetectLinearEquation(op->args[offset], {env_->lane});
      const int64_t* found = linear.size() == 2 ? as_const_int(linear[0]) : nullptr;
      // Fills and stores name the start of a tile and not the part of a thread.
      const bool of_tile = found != nullptr && *found == 0;
      const bool is_fill = op->op.same_as(Op::Get("tir.mma_fill"));
      if (of_tile && is_fill) found = as_const_int(op->args[0]);
      if (of_tile && !is_fill) continue;
      TVM_CHECK(found != nullptr && *found > 0 && (stride == 0 || stride == *found), ValueError)
          << "LowerWarpMemory: " << op->op << " takes " << GetRef<Var>(data_) << " at "
          << op->args[offset] << ", where threads have no constant number of elements each, or "
          << "another one than elsewhere";
      stride = *found;
    }
  }
  const VarNode* data_;
  const Environment* env_;
};

class WarpAccessRewriter final : public StmtExprMutator {
 public:
  WarpAccessRewriter(const AllocateNode* op, Environment* env, int64_t warp_size)
      : env_(env), warp_size_(warp_size) {
    StrideFinder finder(op->buffer_var.get(), env);
    finder(op->body);
    // Memory that nobody writes holds nothing to read either.
    stride_ = finder.stride == 0 ? 1 : finder.stride;
    const auto* pointer = op->buffer_var->type_annotation.as<PointerTypeNode>();
    local_ = Var(op->buffer_var->name_hint, PointerType(pointer->element_type, "local"));
    data_ = op->buffer_var.get();
  }

  Stmt Run(const AllocateNode* op) {
    int64_t size = op->ConstantAllocationSize();
    TVM_CHECK(size > 0, ValueError) << "LowerWarpMemory: the size of " << op->buffer_var
                                    << " is not constant; registers cannot be indexed by it";
    int64_t part = stride_ * env_->width;
    local_size_ = (size + part - 1) / part * stride_;
    Stmt body = VisitStmt(op->body);
    return Allocate(local_, op->dtype, {PrimExpr(static_cast<int>(local_size_))}, op->condition,
                    body, op->annotations);
  }

 private:
  /*! \brief Position within a thread's registers, and the thread. */
  std::pair<PrimExpr, PrimExpr> Place(const PrimExpr& index) {
    DataType dtype = index.dtype();
    PrimExpr m = make_const(dtype, stride_);
    PrimExpr part = make_const(dtype, stride_ * env_->width);
    arith::Analyzer& analyzer = env_->analyzer;
    PrimExpr position = analyzer.Simplify(floordiv(index, part) * m + floormod(index, m));
    PrimExpr thread = analyzer.Simplify(floordiv(floormod(index, part), m));
    return {position, thread};
  }

  static PrimExpr WithLanes(const PrimExpr& original, const PrimExpr& position) {
    const auto* ramp = original.as<RampNode>();
    return ramp != nullptr ? PrimExpr(Ramp(position, ramp->stride, ramp->lanes)) : position;
  }

  Buffer View(const Buffer& buffer) {
    auto [it, fresh] = views_.try_emplace(buffer.get(), buffer);
    if (fresh) {
      BufferNode* view = it->second.CopyOnWrite();
      view->data = local_;
      view->shape = {PrimExpr(static_cast<int>(local_size_))};
    }
    return it->second;
  }

  void CheckLanes(const Buffer& buffer, const PrimExpr& index) const {
    const auto* ramp = index.as<RampNode>();
    bool fits = index.dtype().is_scalar() || (ramp != nullptr && is_one(ramp->stride) &&
                                              ramp->lanes > 0 && stride_ % ramp->lanes == 0);
    TVM_CHECK(fits, ValueError) << "LowerWarpMemory: the vector access of " << buffer->name
                                << " at " << index << " crosses elements of several threads; "
                                << "vectorize at most " << stride_ << " neighbours";
  }

  Stmt VisitStmt_(const ForNode* op) final {
    env_->analyzer.Bind(op->loop_var, Range::FromMinExtent(op->min, op->extent), true);
    return StmtExprMutator::VisitStmt_(op);
  }

  Stmt VisitStmt_(const DeclBufferNode* op) final {
    if (op->buffer->data.get() != data_) return StmtExprMutator::VisitStmt_(op);
    return DeclBuffer(View(op->buffer), VisitStmt(op->body));
  }

  Stmt VisitStmt_(const BufferStoreNode* op) final {
    if (op->buffer->data.get() != data_) return StmtExprMutator::VisitStmt_(op);
    PrimExpr value = VisitExpr(op->value);
    CheckLanes(op->buffer, op->indices[0]);
    auto [position, thread] = Place(FirstLane(op->indices[0]));
    TVM_CHECK(env_->analyzer.CanProveEqual(thread, env_->lane), ValueError)
        << "LowerWarpMemory: a store to " << op->buffer->name << " at " << op->indices[0]
        << " is to thread " << thread << ", not to the one that stores; registers of other "
        << "threads can be read only";
    return BufferStore(View(op->buffer), value, {WithLanes(op->indices[0], position)});
  }

  PrimExpr VisitExpr_(const BufferLoadNode* op) final {
    if (op->buffer->data.get() != data_) return StmtExprMutator::VisitExpr_(op);
    CheckLanes(op->buffer, op->indices[0]);
    PrimExpr index = VisitExpr(FirstLane(op->indices[0]));
    auto [position, thread] = Place(index);
    PrimExpr own = BufferLoad(View(op->buffer), {WithLanes(op->indices[0], position)});
    if (env_->analyzer.CanProveEqual(thread, env_->lane)) return own;
    // The thread asked evaluates `position` for itself, so it must mean the same to both.
    TVM_CHECK(!UsesVar(position, [&](const VarNode* var) { return var == env_->lane.get(); }),
              ValueError)
        << "LowerWarpMemory: the read of " << op->buffer->name << " at " << op->indices[0]
        << " needs register " << position << " of another thread, which depends on threadIdx.x; "
        << "a shuffle reads the same register of all threads";
    PrimExpr mask = Call(DataType::UInt(32), builtin::tvm_warp_activemask(), {});
    return Call(own.dtype(), builtin::tvm_warp_shuffle(),
                {mask, own, thread, PrimExpr(static_cast<int>(env_->width)),
                 PrimExpr(static_cast<int>(warp_size_))});
  }

  /*! \brief Instructions that a warp carries out together take what their own thread has. */
  PrimExpr VisitExpr_(const CallNode* op) final {
    const PointerOffsets* offsets = PointerOffsetsOf(op);
    Array<PrimExpr> args = op->args;
    std::vector<bool> done(args.size(), false);
    if (offsets != nullptr) {
      for (const auto& [pointer, offset] : *offsets) {
        if (args[pointer].get() != data_) continue;
        PrimExpr position = Place(VisitExpr(args[offset])).first;
        args.Set(pointer, local_);
        args.Set(offset, position);
        done[pointer] = done[offset] = true;
      }
    }
    for (size_t i = 0; i < args.size(); ++i) {
      if (!done[i]) args.Set(i, VisitExpr(args[i]));
    }
    return args.same_as(op->args) ? GetRef<PrimExpr>(op) : Call(op->dtype, op->op, args);
  }

  PrimExpr VisitExpr_(const VarNode* op) final {
    TVM_CHECK(op != data_, ValueError)
        << "LowerWarpMemory: " << op->name_hint << " is passed on as a pointer, but memory of a "
        << "warp has no address";
    return GetRef<PrimExpr>(op);
  }

  Environment* env_;
  int64_t warp_size_;
  int64_t stride_ = 1;
  int64_t local_size_ = 0;
  const VarNode* data_ = nullptr;
  Var local_;
  std::unordered_map<const BufferNode*, Buffer> views_;
};

class WarpMemoryLowerer final : public StmtMutator {
 public:
  WarpMemoryLowerer(const Stmt& body, int64_t warp_size) : body_(body), warp_size_(warp_size) {}

 private:
  Stmt VisitStmt_(const AllocateNode* op) final {
    Stmt stmt = StmtMutator::VisitStmt_(op);
    op = stmt.as<AllocateNode>();
    if (StorageScopeOf(op->buffer_var) != "warp") return stmt;
    Environment env;
    FindLane(&env, op);
    return WarpAccessRewriter(op, &env, warp_size_).Run(op);
  }

  void FindLane(Environment* env, const AllocateNode* op) const {
    PostOrderVisit(body_, [&](const ObjectRef& node) {
      const auto* attribute = node.as<AttrStmtNode>();
      if (attribute == nullptr || attribute->attr_key != attr::thread_extent) return;
      IterVar axis = Downcast<IterVar>(attribute->node);
      env->analyzer.Bind(axis->var,
                         Range::FromMinExtent(make_zero(axis->var->dtype), attribute->value), true);
      if (axis->thread_tag != "threadIdx.x") return;
      const int64_t* extent = as_const_int(attribute->value);
      env->lane = axis->var;
      env->width = extent == nullptr ? 0 : *extent;
    });
    TVM_CHECK(env->width > 0 && warp_size_ % env->width == 0, ValueError)
        << "LowerWarpMemory: " << op->buffer_var << " is memory of a warp of " << warp_size_
        << " threads, but the extent of threadIdx.x, " << env->width << ", does not divide it; "
        << "bind a loop of that many trips to threadIdx.x, or state the target's "
        << "thread_warp_size";
  }

  Stmt body_;
  int64_t warp_size_;
};

}  // namespace

namespace transform {

Pass LowerWarpMemory() {
  return BodyPass("tir.LowerWarpMemory", [](const PrimFunc& func, const PassContext&) {
    auto target = func->GetAttr<Target>(attr::kTarget);
    int64_t warp_size = target ? (*target)->GetInt("thread_warp_size", 1) : 1;
    return WarpMemoryLowerer(func->body, warp_size)(func->body);
  });
}

TVM_REGISTER_GLOBAL("tir.transform.LowerWarpMemory").set_body_typed(LowerWarpMemory);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
