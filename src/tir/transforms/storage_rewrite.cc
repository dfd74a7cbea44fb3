/*!
 * \file src/tir/transforms/storage_rewrite.cc
 * \brief Allocations of known size are hoisted, and share memory where lifetimes allow.
 */
#include <tvm/expr/analysis.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/target/memory_info.h>
#include <tvm/tir/launch.h>

#include <algorithm>
#include <map>
#include <string>
#include <unordered_set>

#include "allocation_lifetimes.h"
#include "pass_common.h"
#include "tir/ir/buffer_mutator.h"

namespace tvm {
namespace tir {
namespace {

/*! \brief Memory that one or several allocations use one after the other. */
struct Slot {
  const AllocateNode* first;
  /*! \brief Who uses it at present, and until when. */
  const AllocateNode* holder;
  int64_t free_after;
  /*! \brief Size; 0 where it is not constant, and all users have the extents of the first. */
  int64_t bits;
  /*! \brief Widest element of all users. */
  int64_t widest_bits;
  /*! \brief Someone has the pointer, so the beginning of the memory is the allocation's. */
  bool opaque;
};

int64_t ElementBits(DataType dtype) { return dtype.bits() * dtype.lanes(); }

std::string ScopeOf(const AllocateNode* op) { return StorageScopeOf(op->buffer_var); }

/*!
 * \brief Whether a scope's name goes on after that of its rank: memory of a special machine, which
 * is one piece that all allocations are parts of.
 */
bool IsTagged(const std::string& scope) {
  for (const char* known : {"shared.dyn", "shared.barrier", "global.workspace", "global.vtcm",
                            "global.texture", "global.texture-nhwc", "global.texture-weight"}) {
    if (scope == known) return false;
  }
  for (const std::string rank : {"global", "shared", "warp", "local"}) {
    if (scope.rfind(rank, 0) == 0) return scope.size() > rank.size();
  }
  return false;
}

/*! \brief Registers of a thread, which compilers assign by themselves. */
bool IsRegisters(const std::string& scope) {
  return StorageRankOf(scope) > StorageRank::kShared && !IsTagged(scope);
}

bool SameExtents(const AllocateNode* a, const AllocateNode* b) {
  return a->extents.size() == b->extents.size() &&
         std::equal(a->extents.begin(), a->extents.end(), b->extents.begin(), ExprDeepEqual());
}

/*! \brief Gives the allocations of one thread their memory. */
class SlotPlanner {
 public:
  explicit SlotPlanner(const AllocationLifetimes& lifetimes) : lifetimes_(lifetimes) {}

  /*! \brief Slots in order of first use. */
  std::vector<Slot> slots;
  /*! \brief The slot of each allocation that is used. */
  std::unordered_map<const AllocateNode*, size_t> slot_of;

  void Plan(const std::vector<AllocationLifetime>& thread) {
    std::vector<const AllocationLifetime*> order;
    for (const AllocationLifetime& lifetime : thread) {
      if (lifetime.last >= 0) order.push_back(&lifetime);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const auto* a, const auto* b) { return a->first < b->first; });
    for (const AllocationLifetime* lifetime : order) Place(*lifetime);
  }

 private:
  void Place(const AllocationLifetime& lifetime) {
    const AllocateNode* op = lifetime.op;
    int64_t bits = op->ConstantAllocationSize() * ElementBits(op->dtype);
    Slot* slot = FindInPlace(lifetime);
    if (slot == nullptr) slot = FindFree(lifetime, bits);
    if (slot == nullptr) {
      slots.push_back({op, op, 0, bits, 0, false});
      slot = &slots.back();
    }
    slot->holder = op;
    slot->free_after = lifetime.last;
    slot->bits = std::max(slot->bits, bits);
    slot->widest_bits = std::max(slot->widest_bits, ElementBits(op->dtype));
    slot->opaque = slot->opaque || lifetime.opaque;
    slot_of[op] = slot - slots.data();
  }

  /*! \brief The shape of a matrix fragment is that of all uses of its array. */
  static bool MayShare(const AllocateNode* a, const AllocateNode* b) {
    return ScopeOf(a) == ScopeOf(b) && ScopeOf(a).rfind("wmma.", 0) != 0 &&
           a->annotations.empty() && b->annotations.empty();
  }

  /*! \brief Memory that is read for the last time where the allocation is first written. */
  Slot* FindInPlace(const AllocationLifetime& lifetime) {
    const AllocateNode* op = lifetime.op;
    auto start = lifetimes_.starts.find(lifetime.first);
    if (start == lifetimes_.starts.end() || IsRegisters(ScopeOf(op))) return nullptr;
    for (Slot& slot : slots) {
      if (slot.free_after == start->second.end && MayShare(slot.holder, op) &&
          slot.holder->dtype == op->dtype && SameExtents(slot.holder, op) &&
          CanWriteInPlace(start->second.stmt, op->buffer_var, slot.holder->buffer_var)) {
        return &slot;
      }
    }
    return nullptr;
  }

  /*! \brief The smallest free slot that is large enough, else the largest free one, which grows. */
  Slot* FindFree(const AllocationLifetime& lifetime, int64_t bits) {
    const AllocateNode* op = lifetime.op;
    Slot* best = nullptr;
    for (Slot& slot : slots) {
      if (slot.free_after >= lifetime.first || !MayShare(slot.first, op)) continue;
      // Memory of several axes, or of a size that is not constant, is shared as it is.
      bool flat =
          op->extents.size() <= 1 && slot.first->extents.size() <= 1 && bits > 0 && slot.bits > 0;
      if (!flat && !SameExtents(slot.first, op)) continue;
      // In C a pointer to one type must not reach what was written as another one.
      if (slot.first->dtype != op->dtype && !(flat && IsTagged(ScopeOf(op)))) continue;
      if (best == nullptr || (best->bits < bits ? slot.bits > best->bits
                                                : slot.bits >= bits && slot.bits < best->bits)) {
        best = &slot;
      }
    }
    return best;
  }

  const AllocationLifetimes& lifetimes_;
};

/*! \brief An allocation to be made, and the allocations that use parts of it. */
struct Memory {
  const AllocateNode* first;
  Array<PrimExpr> extents;
};

/*! \brief Moves the planned allocations to the top of their threads. */
class AllocationMover final : public BufferMutator {
 public:
  explicit AllocationMover(const AllocationLifetimes& lifetimes) {
    for (const auto& [key, thread] : lifetimes.threads) {
      SlotPlanner planner(lifetimes);
      planner.Plan(thread);
      Assign(key, planner);
      for (const AllocationLifetime& lifetime : thread) {
        moved_.insert(lifetime.op);
        if (lifetime.last < 0) unused_.insert(lifetime.op->buffer_var.get());
      }
    }
  }

  Stmt Run(const Stmt& body) { return AtTop(nullptr, VisitStmt(body)); }

  /*! \brief Where buffers begin in the memory they are part of, in bits; only if not at 0. */
  std::unordered_map<const BufferNode*, int64_t> offsets;

 private:
  static PrimExpr SizeInElements(const AllocateNode* op, int64_t bits) {
    DataType index = op->extents.empty() ? DataType::Int(32) : op->extents[0].dtype();
    int64_t element = ElementBits(op->dtype);
    return make_const(index, (bits + element - 1) / element);
  }

  void Assign(const Object* key, const SlotPlanner& planner) {
    std::vector<Memory>& memories = memories_[key];
    // What parts of tagged memory are used by now, and whose pointer they are reached by.
    struct Packed {
      size_t memory;
      int64_t bits;
    };
    std::map<std::string, Packed> packed;
    std::vector<std::pair<Var, int64_t>> places;
    for (const Slot& slot : planner.slots) {
      std::string scope = ScopeOf(slot.first);
      bool tagged = IsTagged(scope) && slot.bits > 0;
      int64_t align = 32, limit = 0;
      if (Optional<MemoryInfo> info = tagged ? MemoryInfo::Of(scope) : NullOpt) {
        align = std::max<int64_t>(1, info.value()->max_simd_bits);
        limit = info.value()->max_num_bits;
      }
      align = std::max(align, slot.widest_bits);
      auto at = tagged && !slot.opaque ? packed.find(scope) : packed.end();
      int64_t begin = 0;
      if (at != packed.end()) {
        begin = (at->second.bits + align - 1) / align * align;
        at->second.bits = begin + (slot.bits + align - 1) / align * align;
        Memory& memory = memories[at->second.memory];
        memory.extents = {SizeInElements(memory.first, at->second.bits)};
        places.emplace_back(memory.first->buffer_var, begin);
        CheckLimit(scope, at->second.bits, limit);
        continue;
      }
      // The size may have grown; several axes stay as they are.
      bool grown = slot.first->extents.size() <= 1 && slot.bits > 0;
      int64_t bits = tagged ? (slot.bits + align - 1) / align * align : slot.bits;
      memories.push_back({slot.first, grown ? Array<PrimExpr>{SizeInElements(slot.first, bits)}
                                            : slot.first->extents});
      places.emplace_back(slot.first->buffer_var, 0);
      if (!tagged) continue;
      CheckLimit(scope, bits, limit);
      if (!slot.opaque) packed[scope] = {memories.size() - 1, bits};
    }
    for (const auto& [op, slot] : planner.slot_of) {
      const auto& [data, begin] = places[slot];
      if (!data.same_as(op->buffer_var)) shared_[op->buffer_var.get()] = data;
      if (begin != 0) begins_[op->buffer_var.get()] = begin;
    }
  }

  static void CheckLimit(const std::string& scope, int64_t bits, int64_t limit) {
    TVM_CHECK(limit == 0 || bits <= limit, ValueError)
        << "StorageRewrite: Allocation exceed bound of memory tag " << scope << ": " << bits
        << " bits are in use at once, and tvm.info.mem." << scope << " says there are " << limit
        << "; compute in smaller tiles, or keep less in this scope";
  }

  Stmt AtTop(const Object* key, Stmt body) {
    const std::vector<Memory>& memories = memories_[key];
    for (auto it = memories.rbegin(); it != memories.rend(); ++it) {
      const AllocateNode* op = it->first;
      body = Allocate(op->buffer_var, op->dtype, it->extents, const_true(), body, op->annotations);
    }
    return body;
  }

  Stmt VisitStmt_(const AllocateNode* op) final {
    if (moved_.count(op) != 0) return VisitStmt(op->body);
    return BufferMutator::VisitStmt_(op);
  }
  Stmt VisitStmt_(const DeclBufferNode* op) final {
    if (unused_.count(op->buffer->data.get()) != 0) return VisitStmt(op->body);
    return BufferMutator::VisitStmt_(op);
  }
  Stmt VisitStmt_(const ForNode* op) final {
    Stmt stmt = BufferMutator::VisitStmt_(op);
    auto it = memories_.find(op);
    if (it == memories_.end() || it->second.empty()) return stmt;
    For loop = Downcast<For>(stmt);
    loop.CopyOnWrite()->body = AtTop(op, loop->body);
    return loop;
  }
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    Stmt stmt = BufferMutator::VisitStmt_(op);
    auto it = memories_.find(op);
    if (it == memories_.end() || it->second.empty()) return stmt;
    AttrStmt launch = Downcast<AttrStmt>(stmt);
    launch.CopyOnWrite()->body = AtTop(op, launch->body);
    return launch;
  }
  PrimExpr VisitExpr_(const VarNode* op) final {
    auto it = shared_.find(op);
    return it == shared_.end() ? GetRef<PrimExpr>(op) : PrimExpr(it->second);
  }
  Buffer VisitBuffer(const Buffer& buffer) final {
    auto it = shared_.find(buffer->data.get());
    if (it == shared_.end()) return buffer;
    auto [at, fresh] = buffers_.try_emplace(buffer.get(), buffer);
    if (!fresh) return at->second;
    auto begin = begins_.find(buffer->data.get());
    at->second.CopyOnWrite()->data = it->second;
    if (begin != begins_.end()) offsets[at->second.get()] = begin->second;
    return at->second;
  }

  std::unordered_map<const Object*, std::vector<Memory>> memories_;
  std::unordered_set<const AllocateNode*> moved_;
  std::unordered_set<const VarNode*> unused_;
  /*! \brief The pointer that an allocation without memory of its own uses. */
  std::unordered_map<const VarNode*, Var> shared_;
  std::unordered_map<const VarNode*, int64_t> begins_;
  std::unordered_map<const BufferNode*, Buffer> buffers_;
};

/*! \brief Adds to indices where an array begins in its memory. */
class OffsetAdder final : public StmtExprMutator {
 public:
  explicit OffsetAdder(const std::unordered_map<const BufferNode*, int64_t>& offsets)
      : offsets_(offsets) {}

 private:
  Array<PrimExpr> Shifted(const Buffer& buffer, const Array<PrimExpr>& indices) const {
    auto it = offsets_.find(buffer.get());
    if (it == offsets_.end()) return indices;
    int64_t elements = it->second / ElementBits(buffer->dtype);
    return {indices[0] + make_const(indices[0].dtype(), elements)};
  }
  Stmt VisitStmt_(const BufferStoreNode* op) final {
    BufferStore store = Downcast<BufferStore>(StmtExprMutator::VisitStmt_(op));
    Array<PrimExpr> indices = Shifted(store->buffer, store->indices);
    if (!indices.same_as(store->indices)) store.CopyOnWrite()->indices = indices;
    return store;
  }
  PrimExpr VisitExpr_(const BufferLoadNode* op) final {
    BufferLoad load = Downcast<BufferLoad>(StmtExprMutator::VisitExpr_(op));
    Array<PrimExpr> indices = Shifted(load->buffer, load->indices);
    return indices.same_as(load->indices) ? load : BufferLoad(load->buffer, indices);
  }
  const std::unordered_map<const BufferNode*, int64_t>& offsets_;
};

}  // namespace

namespace transform {

Pass StorageRewrite() {
  return BodyPass("tir.StorageRewrite", [](const PrimFunc& func, const PassContext&) {
    AllocationLifetimes lifetimes = FindAllocationLifetimes(func->body);
    bool any = std::any_of(lifetimes.threads.begin(), lifetimes.threads.end(),
                           [](const auto& entry) { return !entry.second.empty(); });
    if (!any) return func->body;
    AllocationMover mover(lifetimes);
    Stmt moved = mover.Run(func->body);
    return mover.offsets.empty() ? moved : OffsetAdder(mover.offsets)(moved);
  });
}

TVM_REGISTER_GLOBAL("tir.transform.StorageRewrite").set_body_typed(StorageRewrite);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
