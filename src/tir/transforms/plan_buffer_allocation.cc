/*!
 * \file src/tir/transforms/plan_buffer_allocation.cc
 * \brief Buffers of blocks are allocated where all their uses are, and no further out.
 */
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/analysis.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "pass_common.h"

namespace tvm {
namespace tir {
namespace {

/*! \brief Finds the innermost loop or block around all uses of every allocated buffer. */
class PlaceFinder final : public StmtExprVisitor {
 public:
  /*! \brief Loops and blocks around all uses, outermost first, by buffer. */
  std::unordered_map<const BufferNode*, std::vector<const StmtNode*>> around;
  /*! \brief In order of allocation, so that the result is the same every time. */
  std::vector<Buffer> order;

 private:
  void VisitStmt_(const ForNode* op) final {
    VisitExpr(op->min);
    VisitExpr(op->extent);
    path_.push_back(op);
    VisitStmt(op->body);
    path_.pop_back();
  }
  void VisitStmt_(const BlockRealizeNode* op) final {
    const Block& block = op->block;
    for (const PrimExpr& value : op->iter_values) VisitExpr(value);
    VisitExpr(op->predicate);
    std::unordered_map<const BufferNode*, size_t> outer = carried_from_;
    // What the block allocates itself is new memory for every value of its variables.
    KeepOutside(CarriedFrom(op, false), Accessed(block, true));
    // In which way an opaque variable orders what is done, only its author knows.
    KeepOutside(CarriedFrom(op, true), Accessed(block, false));
    for (const Buffer& buffer : block->alloc_buffers) {
      if (allocated_.insert(buffer.get()).second) order.push_back(buffer);
    }
    path_.push_back(block.get());
    for (const MatchBufferRegion& match : block->match_buffers) Use(match->source->buffer);
    if (block->init.defined()) VisitStmt(block->init);
    VisitStmt(block->body);
    path_.pop_back();
    carried_from_ = outer;
  }
  void VisitStmt_(const BufferStoreNode* op) final {
    Use(op->buffer);
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitExpr_(const BufferLoadNode* op) final {
    Use(op->buffer);
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const VarNode* op) final {
    // A pointer passed on by itself is a use of its buffer.
    if (!op->dtype.is_handle()) return;
    for (const Buffer& buffer : order) {
      if (buffer->data.get() == op) Use(buffer);
    }
  }

  static constexpr size_t kNowhere = static_cast<size_t>(-1);

  void KeepOutside(size_t from, const std::unordered_set<const BufferNode*>& buffers) {
    if (from == kNowhere) return;
    for (const BufferNode* buffer : buffers) {
      if (allocated_.count(buffer) == 0) continue;
      auto [it, fresh] = carried_from_.try_emplace(buffer, from);
      if (!fresh) it->second = std::min(it->second, from);
    }
  }

  /*! \brief Place in the path of the outermost loop around which the block carries values. */
  size_t CarriedFrom(const BlockRealizeNode* op, bool opaque) const {
    for (size_t i = 0; i < path_.size(); ++i) {
      const auto* loop =
          path_[i]->IsInstance<ForNode>() ? static_cast<const ForNode*>(path_[i]) : nullptr;
      if (loop == nullptr) continue;
      for (size_t k = 0; k < op->iter_values.size(); ++k) {
        IterVarType type = op->block->iter_vars[k]->iter_type;
        bool carries = opaque ? type == kOpaque : type != kDataPar;
        if (carries && UsesVar(op->iter_values[k],
                               [&](const VarNode* var) { return var == loop->loop_var.get(); })) {
          return i;
        }
      }
    }
    return kNowhere;
  }

  /*! \brief Buffers that a block may write, or also read, by whatever name. */
  std::unordered_set<const BufferNode*> Accessed(const Block& block, bool only_written) const {
    std::unordered_set<const BufferNode*> found;
    auto written = [&](const Buffer& buffer) {
      return std::any_of(
          block->writes.begin(), block->writes.end(),
          [&](const BufferRegion& region) { return region->buffer.same_as(buffer); });
    };
    for (const MatchBufferRegion& match : block->match_buffers) {
      // Of what other names and pointers are for, the block says itself whether it writes it.
      const Buffer& source = match->source->buffer;
      if (!only_written || block->writes.empty() || written(source)) found.insert(source.get());
    }
    PostOrderVisit(block, [&](const ObjectRef& node) {
      const auto* load = node.as<BufferLoadNode>();
      if (const auto* store = node.as<BufferStoreNode>()) found.insert(store->buffer.get());
      if (load != nullptr && !only_written) found.insert(load->buffer.get());
      for (const Buffer& buffer : order) {
        if (buffer->data.same_as(node)) found.insert(buffer.get());
      }
    });
    return found;
  }

  void Use(const Buffer& buffer) {
    if (allocated_.count(buffer.get()) == 0) return;
    auto carried = carried_from_.find(buffer.get());
    size_t limit = carried == carried_from_.end() ? kNowhere : carried->second;
    std::vector<const StmtNode*> path(path_.begin(), path_.begin() + std::min(limit, path_.size()));
    auto [it, fresh] = around.try_emplace(buffer.get(), path);
    if (fresh) return;
    std::vector<const StmtNode*>& common = it->second;
    size_t length = 0;
    while (length < std::min(common.size(), path.size()) && common[length] == path[length]) {
      ++length;
    }
    common.resize(length);
  }

  std::vector<const StmtNode*> path_;
  /*! \brief Of buffers that blocks accumulate into: the place of the outermost loop that feeds it.
   */
  std::unordered_map<const BufferNode*, size_t> carried_from_;
  std::unordered_set<const BufferNode*> allocated_;
};

/*! \brief Puts allocations at the places found. */
class AllocationPlacer final : public StmtMutator {
 public:
  explicit AllocationPlacer(const PlaceFinder& places) {
    for (const Buffer& buffer : places.order) {
      auto it = places.around.find(buffer.get());
      if (it == places.around.end()) continue;
      std::vector<const StmtNode*> path = it->second;
      while (!path.empty() && !MayHold(path.back(), buffer)) path.pop_back();
      if (!path.empty()) at_[path.back()].push_back(buffer);
    }
  }

 private:
  /*! \brief Threads share what lies outside of their own storage. */
  static bool MayHold(const StmtNode* stmt, const Buffer& buffer) {
    if (!stmt->IsInstance<ForNode>()) return true;
    const auto* loop = static_cast<const ForNode*>(stmt);
    if (loop->kind == ForKind::kSerial || loop->kind == ForKind::kParallel) return true;
    if (loop->kind != ForKind::kThreadBinding) return false;
    return IsRegisters(buffer) || (IsShared(buffer) && RunsBlocks(loop));
  }
  /*! \brief Whether a buffer is a thread's, or a warp's as fragments are. */
  static bool IsRegisters(const Buffer& buffer) {
    const std::string scope = buffer.scope();
    return scope == "local" || scope == "warp" || scope.rfind("wmma.", 0) == 0 ||
           scope.rfind("m16n8k8.", 0) == 0;
  }
  static bool IsShared(const Buffer& buffer) {
    return std::string(buffer.scope()).rfind("shared", 0) == 0;
  }
  static bool RunsBlocks(const ForNode* loop) {
    return std::string(loop->thread_binding.value()->thread_tag).rfind("blockIdx", 0) == 0;
  }

  /*! \brief Regions of buffers that live on around the block that holds `held`. */
  static Array<BufferRegion> Outside(const Array<BufferRegion>& regions,
                                     const Array<Buffer>& held) {
    Array<BufferRegion> kept;
    for (const BufferRegion& region : regions) {
      bool inside = std::any_of(held.begin(), held.end(), [&](const Buffer& buffer) {
        return buffer.same_as(region->buffer);
      });
      if (!inside) kept.push_back(region);
    }
    return kept;
  }

  Stmt VisitStmt_(const ForNode* op) final {
    Stmt stmt = StmtMutator::VisitStmt_(op);
    auto it = at_.find(op);
    if (it == at_.end()) return stmt;
    for (const Buffer& buffer : it->second) below_.push_back(buffer);
    For loop = Downcast<For>(stmt);
    AccessRegions regions = DetectAccessRegions(loop->body);
    Block holder({}, Outside(regions.reads, it->second), Outside(regions.writes, it->second), "",
                 loop->body, Stmt(), it->second);
    loop.CopyOnWrite()->body = BlockRealize({}, const_true(), holder);
    return loop;
  }
  Stmt VisitStmt_(const BlockNode* op) final {
    const Array<Buffer> around = below_;
    below_ = {};
    Block block = Downcast<Block>(StmtMutator::VisitStmt_(op));
    auto it = at_.find(op);
    Array<Buffer> held = it == at_.end() ? Array<Buffer>() : it->second;
    for (const Buffer& buffer : held) below_.push_back(buffer);
    // What lives in a block is none of what others see of it.
    Array<BufferRegion> reads = Outside(block->reads, below_);
    Array<BufferRegion> writes = Outside(block->writes, below_);
    bool same = reads.size() == block->reads.size() && writes.size() == block->writes.size();
    for (const Buffer& buffer : around) below_.push_back(buffer);
    if (same && held.empty() && block->alloc_buffers.empty()) return block;
    BlockNode* node = block.CopyOnWrite();
    node->alloc_buffers = held;
    node->reads = reads;
    node->writes = writes;
    return block;
  }

  std::unordered_map<const StmtNode*, Array<Buffer>> at_;
  /*! \brief Buffers that were put into what was visited of the block around. */
  Array<Buffer> below_;
};

}  // namespace

namespace transform {

Pass PlanAndUpdateBufferAllocationLocation() {
  return BodyPass("tir.PlanAndUpdateBufferAllocationLocation",
                  [](const PrimFunc& func, const PassContext&) {
                    PlaceFinder finder;
                    finder(func->body);
                    if (finder.order.empty()) return func->body;
                    return AllocationPlacer(finder)(func->body);
                  });
}

TVM_REGISTER_GLOBAL("tir.transform.PlanAndUpdateBufferAllocationLocation")
    .set_body_typed(PlanAndUpdateBufferAllocationLocation);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
