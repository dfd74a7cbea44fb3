/*!
 * \file src/tir/transforms/promote_accumulators.cc
 * \brief The tile that a reduction accumulates into is kept in registers.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/analysis.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>

#include "pass_common.h"

namespace tvm {
namespace tir {
namespace {

/*! \brief A store in place of `source`, of whose line debuggers take it to be. */
Stmt StoreAt(const StmtNode* source, const Buffer& buffer, const PrimExpr& value,
             const PrimExpr& index) {
  BufferStore store(buffer, value, {index});
  store->span = source->span;
  return store;
}

/*! \brief The elements base, base + stride, ... that one flat access touches. */
struct Lanes {
  PrimExpr base;
  int64_t stride = 1;
  int lanes = 1;
  /*! \brief Nothing if the index is neither a scalar nor a ramp of constant stride. */
  static std::optional<Lanes> FromIndex(const PrimExpr& index) {
    if (index.dtype().is_scalar()) return Lanes{index, 1, 1};
    const auto* ramp = index.as<RampNode>();
    if (ramp == nullptr || ramp->dtype.is_scalable_vector()) return std::nullopt;
    const int64_t* stride = as_const_int(ramp->stride);
    if (stride == nullptr || *stride <= 0) return std::nullopt;
    return Lanes{ramp->base, *stride, ramp->lanes};
  }
};

/*! \brief All accesses to one buffer inside of a loop. */
struct BufferUse {
  Buffer buffer;
  /*! \brief Indices in order of first use; each is one access or several. */
  std::vector<PrimExpr> indices;
  /*! \brief Indices of accesses that are not made every time. */
  std::vector<PrimExpr> guarded;
  bool loaded = false;
  bool stored = false;
  /*! \brief Some access is of a form that a register cannot take the place of. */
  bool refused = false;
};

/*! \brief Collects the accesses of a loop body by data pointer, in order of first use. */
class UseCollector final : public StmtExprVisitor {
 public:
  std::vector<const VarNode*> order;
  std::unordered_map<const VarNode*, BufferUse> uses;
  /*! \brief Something inside may touch any memory. */
  bool opaque = false;

 private:
  BufferUse& Use(const Buffer& buffer) {
    auto [it, fresh] = uses.try_emplace(buffer->data.get());
    if (fresh) {
      it->second.buffer = buffer;
      order.push_back(buffer->data.get());
    }
    return it->second;
  }
  void Access(const Buffer& buffer, const Array<PrimExpr>& indices, bool store) {
    BufferUse& use = Use(buffer);
    (store ? use.stored : use.loaded) = true;
    if (indices.size() != 1 || !buffer->dtype.is_scalar() || buffer->dtype != use.buffer->dtype) {
      use.refused = true;
      return;
    }
    if (!Lanes::FromIndex(indices[0]) ||
        UsesVar(indices[0], [this](const VarNode* var) { return bound_.count(var) != 0; }) ||
        SideEffect(indices[0]) > CallEffectKind::kPure) {
      use.refused = true;
      return;
    }
    if (!use.refused) (guards_ != 0 ? use.guarded : use.indices).push_back(indices[0]);
  }

  void VisitExpr_(const BufferLoadNode* op) final {
    Access(op->buffer, op->indices, false);
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const CallNode* op) final {
    if (op->op.same_as(builtin::address_of())) {
      // Whoever has the address may read or write the memory, not the register.
      const auto* load = op->args[0].as<BufferLoadNode>();
      ICHECK(load != nullptr);
      if (!prefetching_) Use(load->buffer).refused = true;
      for (const PrimExpr& index : load->indices) VisitExpr(index);
      return;
    }
    if (op->op.same_as(builtin::prefetch())) {
      prefetching_ = true;
      StmtExprVisitor::VisitExpr_(op);
      prefetching_ = false;
      return;
    }
    if (op->op.same_as(builtin::if_then_else())) {
      VisitExpr(op->args[0]);
      ++guards_;
      VisitExpr(op->args[1]);
      VisitExpr(op->args[2]);
      --guards_;
      return;
    }
    if (SideEffect(GetRef<PrimExpr>(op)) > CallEffectKind::kReadState) opaque = true;
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const LetNode* op) final {
    bound_.insert(op->var.get());
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const VarNode* op) final {
    // A pointer passed on as a value.
    if (op->dtype.is_handle()) opaque = true;
  }

  void VisitStmt_(const BufferStoreNode* op) final {
    Access(op->buffer, op->indices, true);
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const ForNode* op) final {
    // Threads and lanes would share the register.
    if (op->kind != ForKind::kSerial) opaque = true;
    bound_.insert(op->loop_var.get());
    // A loop that may not run at all guards its accesses.
    const int64_t* extent = as_const_int(op->extent);
    bool runs = extent != nullptr && *extent > 0;
    guards_ += runs ? 0 : 1;
    StmtExprVisitor::VisitStmt_(op);
    guards_ -= runs ? 0 : 1;
  }
  void VisitStmt_(const AttrStmtNode* op) final {
    // The threads of a launch inside of the loop are not there outside of it.
    if (op->attr_key == attr::thread_extent || op->attr_key == attr::virtual_thread) opaque = true;
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const LetStmtNode* op) final {
    bound_.insert(op->var.get());
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const AllocateNode* op) final {
    bound_.insert(op->buffer_var.get());
    Use(Buffer(op->buffer_var, op->dtype, {1}, {}, PrimExpr(), "")).refused = true;
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const IfThenElseNode* op) final {
    VisitExpr(op->condition);
    ++guards_;
    VisitStmt(op->then_case);
    if (op->else_case.defined()) VisitStmt(op->else_case);
    --guards_;
  }
  void VisitStmt_(const WhileNode* op) final {
    VisitExpr(op->condition);
    ++guards_;
    VisitStmt(op->body);
    --guards_;
  }

  std::unordered_set<const VarNode*> bound_;
  int guards_ = 0;
  bool prefetching_ = false;
};

/*! \brief The registers that take the place of a buffer around one loop. */
struct Tile {
  /*! \brief One register: the elements of the buffer it stands for, and its place. */
  struct Register {
    PrimExpr index;
    Buffer storage;
    int position = 0;
  };
  Buffer buffer;
  std::vector<Register> registers;
  /*! \brief One allocation for each number of lanes. */
  std::vector<Buffer> storages;
  /*! \brief Constant distance from the first index, and lanes, of each register. */
  std::map<std::pair<int64_t, int>, size_t> at;
};

class AccumulatorPromoter final : public StmtExprMutator {
 public:
  AccumulatorPromoter(bool no_alias, int max_elements, const PrimFunc& func)
      : no_alias_(no_alias), max_elements_(max_elements) {
    for (const Var& param : func->params) outside_.insert(param.get());
    for (const auto& [param, buffer] : func->buffer_map) outside_.insert(buffer->data.get());
  }

 private:
  Stmt VisitStmt_(const ForNode* op) final {
    Stmt promoted = TryPromote(op, {});
    return promoted.defined() ? promoted : Descend(op);
  }

  Stmt VisitStmt_(const SeqStmtNode* op) final {
    // A loop may take over the stores right before it as the start values of its registers.
    Array<Stmt> out;
    bool changed = false;
    for (const Stmt& stmt : op->seq) {
      Stmt result;
      if (const auto* loop = stmt.as<ForNode>()) {
        std::vector<Stmt> before;
        size_t first = out.size();
        while (first > 0 && out[first - 1].as<BufferStoreNode>() != nullptr) --first;
        for (size_t i = first; i < out.size(); ++i) before.push_back(out[i]);
        result = TryPromote(loop, before);
        if (result.defined() && taken_over_) out.erase(out.begin() + first, out.end());
        if (!result.defined()) result = Descend(loop);
      } else {
        result = VisitStmt(stmt);
      }
      changed = changed || !result.same_as(stmt);
      out.push_back(result);
    }
    return changed ? SeqStmt::Flatten(out) : GetRef<Stmt>(op);
  }

  Stmt Descend(const ForNode* op) {
    analyzer_.Bind(op->loop_var, Range::FromMinExtent(op->min, op->extent), true);
    return StmtExprMutator::VisitStmt_(op);
  }

  /*!
   * \brief The loop with its accumulators in registers, or undefined.
   * \param before Stores that come right before the loop. If they were folded into the result,
   * taken_over_ is set.
   */
  Stmt TryPromote(const ForNode* op, const std::vector<Stmt>& before) {
    taken_over_ = false;
    if (op->kind != ForKind::kSerial) return Stmt();
    UseCollector collector;
    collector(GetRef<Stmt>(op));
    if (collector.opaque) return Stmt();
    std::vector<Tile> tiles;
    int elements = 0;
    for (const VarNode* data : collector.order) {
      const BufferUse& use = collector.uses.at(data);
      if (use.refused || !use.loaded || !use.stored || registers_.count(data) != 0) continue;
      if (!AlwaysAccessed(use)) continue;
      if (!no_alias_ && outside_.count(data) != 0) continue;
      std::optional<Tile> tile = MakeTile(use);
      if (!tile) continue;
      elements += static_cast<int>(tile->registers.size());
      tiles.push_back(std::move(*tile));
    }
    if (tiles.empty() || elements > max_elements_) return Stmt();
    return Promote(op, before, std::move(tiles));
  }

  /*!
   * \brief Whether every element is accessed without a guard too. One that is not may be out of
   * bounds where the guard fails, and the accesses before and after the loop have no guard.
   */
  static bool AlwaysAccessed(const BufferUse& use) {
    std::unordered_set<PrimExpr, ExprDeepHash, ExprDeepEqual> known(use.indices.begin(),
                                                                    use.indices.end());
    return !known.empty() &&
           std::all_of(use.guarded.begin(), use.guarded.end(),
                       [&](const PrimExpr& index) { return known.count(index) != 0; });
  }

  /*! \brief Registers for the distinct indices of a buffer, or nothing if some may overlap. */
  std::optional<Tile> MakeTile(const BufferUse& use) {
    Tile tile;
    tile.buffer = use.buffer;
    // Elements from the first index, to see that two registers never stand for one element.
    std::unordered_map<int64_t, size_t> owner;
    PrimExpr origin = Lanes::FromIndex(use.indices[0])->base;
    std::unordered_map<int, int> count;
    std::unordered_set<PrimExpr, ExprDeepHash, ExprDeepEqual> seen;
    for (const PrimExpr& index : use.indices) {
      if (!seen.insert(index).second) continue;
      Lanes access = *Lanes::FromIndex(index);
      std::optional<int64_t> distance = Distance(access.base, origin);
      if (!distance) return std::nullopt;
      size_t next = tile.registers.size();
      auto [it, fresh] = tile.at.try_emplace({*distance, access.lanes}, next);
      if (!fresh) next = it->second;
      for (int lane = 0; lane < access.lanes; ++lane) {
        int64_t element = *distance + lane * access.stride;
        auto [at, first] = owner.try_emplace(element, next);
        if (fresh ? !first : first || at->second != next) return std::nullopt;
      }
      if (fresh) tile.registers.push_back({index, Buffer(), count[access.lanes]++});
    }
    for (Tile::Register& reg : tile.registers) {
      int lanes = reg.index.dtype().lanes();
      auto known = std::find_if(tile.storages.begin(), tile.storages.end(),
                                [&](const Buffer& b) { return b->dtype.lanes() == lanes; });
      if (known != tile.storages.end()) {
        reg.storage = *known;
        continue;
      }
      DataType dtype = use.buffer->dtype.with_lanes(lanes);
      String name = use.buffer->name + "_acc";
      Var data(name, PointerType(PrimType(dtype), "local"));
      PrimExpr size = make_const(origin.dtype(), count[lanes]);
      // Aligned as all allocations are, so that it reads like one of them.
      reg.storage = Buffer(data, dtype, {size}, {}, PrimExpr(), name, kAllocationAlignment);
      tile.storages.push_back(reg.storage);
    }
    return tile;
  }

  std::optional<int64_t> Distance(const PrimExpr& base, const PrimExpr& origin) {
    if (base.dtype() != origin.dtype()) return std::nullopt;
    PrimExpr difference = analyzer_.Simplify(base - origin);
    const int64_t* value = as_const_int(difference);
    return value == nullptr ? std::nullopt : std::optional<int64_t>(*value);
  }

  const Tile::Register* Find(const Tile& tile, const PrimExpr& index) {
    std::optional<Lanes> access = Lanes::FromIndex(index);
    if (!access) return nullptr;
    std::optional<int64_t> distance =
        Distance(access->base, Lanes::FromIndex(tile.registers[0].index)->base);
    if (!distance) return nullptr;
    auto it = tile.at.find({*distance, access->lanes});
    if (it == tile.at.end()) return nullptr;
    const Tile::Register& reg = tile.registers[it->second];
    return Lanes::FromIndex(reg.index)->stride == access->stride ? &reg : nullptr;
  }

  static PrimExpr Place(const Tile::Register& reg) {
    return make_const(reg.index.dtype().element_of(), reg.position);
  }

  Stmt Promote(const ForNode* op, const std::vector<Stmt>& before, std::vector<Tile> tiles) {
    Array<Stmt> result;
    std::vector<std::unordered_set<const Tile::Register*>> started(tiles.size());
    taken_over_ = !before.empty() && !ReadsAny(before, tiles);
    if (taken_over_) {
      // Later stores to one place win, so only the last of them is the start value.
      std::unordered_map<const Tile::Register*, size_t> last;
      std::vector<const Tile::Register*> target(before.size(), nullptr);
      std::vector<size_t> tile_of(before.size(), 0);
      for (size_t i = 0; i < before.size(); ++i) {
        const auto* store = before[i].as<BufferStoreNode>();
        for (size_t t = 0; t < tiles.size(); ++t) {
          if (!store->buffer->data.same_as(tiles[t].buffer->data)) continue;
          target[i] = Find(tiles[t], store->indices[0]);
          tile_of[i] = t;
          // A store that covers part of a register cannot be taken over.
          if (target[i] == nullptr) taken_over_ = false;
        }
        if (target[i] != nullptr) last[target[i]] = i;
      }
      for (size_t i = 0; taken_over_ && i < before.size(); ++i) {
        const auto* store = before[i].as<BufferStoreNode>();
        if (target[i] == nullptr) {
          result.push_back(before[i]);
        } else if (last[target[i]] == i) {
          result.push_back(StoreAt(store, target[i]->storage, store->value, Place(*target[i])));
          started[tile_of[i]].insert(target[i]);
        }
      }
    }
    for (size_t t = 0; t < tiles.size(); ++t) {
      for (const Tile::Register& reg : tiles[t].registers) {
        if (taken_over_ && started[t].count(&reg) != 0) continue;
        result.push_back(
            StoreAt(op, reg.storage, BufferLoad(tiles[t].buffer, {reg.index}), Place(reg)));
      }
    }
    for (const Tile& tile : tiles) {
      for (const Buffer& storage : tile.storages) registers_.insert(storage->data.get());
    }
    // Promote clobbers the flag when it finds more to do further in.
    bool taken_over = taken_over_;
    Stmt loop = Replace(GetRef<Stmt>(op), tiles);
    result.push_back(Descend(loop.as<ForNode>()));
    taken_over_ = taken_over;
    for (const Tile& tile : tiles) {
      for (const Tile::Register& reg : tile.registers) {
        result.push_back(
            StoreAt(op, tile.buffer, BufferLoad(reg.storage, {Place(reg)}), reg.index));
      }
    }
    Stmt body = SeqStmt::Flatten(result);
    for (const Tile& tile : tiles) {
      for (const Buffer& storage : tile.storages) {
        body = Allocate(storage->data, storage->dtype, storage->shape, const_true(), body);
      }
    }
    return body;
  }

  static bool ReadsAny(const std::vector<Stmt>& stores, const std::vector<Tile>& tiles) {
    bool reads = false;
    for (const Stmt& stmt : stores) {
      PostOrderVisit(stmt, [&](const ObjectRef& node) {
        const auto* load = node.as<BufferLoadNode>();
        if (load == nullptr) return;
        for (const Tile& tile : tiles) reads |= load->buffer->data.same_as(tile.buffer->data);
      });
      if (SideEffect(stmt.as<BufferStoreNode>()->value) > CallEffectKind::kReadState) reads = true;
    }
    return reads;
  }

  /*! \brief The loop with all accesses to the tiles' buffers replaced. */
  Stmt Replace(const Stmt& loop, const std::vector<Tile>& tiles) {
    struct Replacer final : public StmtExprMutator {
      AccumulatorPromoter* parent;
      const std::vector<Tile>& tiles;
      Replacer(AccumulatorPromoter* parent, const std::vector<Tile>& tiles)
          : parent(parent), tiles(tiles), cache(tiles.size()) {}
      const Tile::Register* Lookup(const Buffer& buffer, const PrimExpr& index) {
        for (size_t t = 0; t < tiles.size(); ++t) {
          if (!buffer->data.same_as(tiles[t].buffer->data)) continue;
          const Tile::Register*& known = cache[t][index];
          if (known == nullptr) known = parent->Find(tiles[t], index);
          ICHECK(known != nullptr);
          return known;
        }
        return nullptr;
      }
      PrimExpr VisitExpr_(const BufferLoadNode* op) final {
        if (op->indices.size() == 1) {
          if (const Tile::Register* reg = Lookup(op->buffer, op->indices[0])) {
            return BufferLoad(reg->storage, {Place(*reg)});
          }
        }
        return StmtExprMutator::VisitExpr_(op);
      }
      Stmt VisitStmt_(const BufferStoreNode* op) final {
        if (op->indices.size() == 1) {
          if (const Tile::Register* reg = Lookup(op->buffer, op->indices[0])) {
            return StoreAt(op, reg->storage, VisitExpr(op->value), Place(*reg));
          }
        }
        // Its place may be read from a register, too.
        return StmtExprMutator::VisitStmt_(op);
      }
      using Cache =
          std::unordered_map<PrimExpr, const Tile::Register*, ExprDeepHash, ExprDeepEqual>;
      std::vector<Cache> cache;
    };
    return Replacer(this, tiles)(loop);
  }

  bool no_alias_;
  int max_elements_;
  /*! \brief Pointers given by the caller, which may overlap each other. */
  std::unordered_set<const VarNode*> outside_;
  /*! \brief Allocations this pass made. */
  std::unordered_set<const VarNode*> registers_;
  bool taken_over_ = false;
  arith::Analyzer analyzer_;
};

}  // namespace

namespace transform {

Pass PromoteAccumulators(int max_elements) {
  TVM_CHECK(max_elements > 0, ValueError)
      << "PromoteAccumulators: max_elements must be > 0, got " << max_elements;
  return BodyPass("tir.PromoteAccumulators",
                  [max_elements](const PrimFunc& func, const PassContext&) {
                    bool no_alias = func->GetAttr<bool>(attr::kNoAlias, true);
                    return AccumulatorPromoter(no_alias, max_elements, func)(func->body);
                  });
}

TVM_REGISTER_GLOBAL("tir.transform.PromoteAccumulators").set_body_typed(PromoteAccumulators);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
