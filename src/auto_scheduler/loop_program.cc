/*!
 * \file loop_program.cc
 */
#include <tvm/auto_scheduler/loop_features.h>
#include <tvm/auto_scheduler/loop_program.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/expr/substitute.h>
#include <tvm/node/structural_equal.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace tvm {
namespace auto_scheduler {

using namespace tir;
using arith::IntSet;

PrimExpr ToReal(const PrimExpr& e) { return cast(DataType::Float(64), e); }

PrimExpr RealizeInfo::size() const {
  const DataType index = DataType::Int(64);
  if (extents.empty()) return make_const(index, 1);
  return cast(index, extents[0]) * strides[0];
}

PrimExpr RealizeInfo::inner_trips() const {
  // A loop of one trip is none, since lowering with numbers drops it.
  const DataType index = DataType::Int(64);
  PrimExpr trips = make_const(index, 1);
  for (const LoopRef& loop : loops) {
    if (loop->is_thread()) continue;
    trips = Choose(IsMoreThanOne(loop->extent), cast(index, loop->extent), trips);
  }
  return trips;
}

PrimExpr RealizeInfo::copies() const {
  if (is_zero(trips_ahead)) return make_const(DataType::Int(64), 1);
  return min(inner_trips(), trips_ahead + 1);
}

PrimExpr RealConst(double value) { return FloatImm(DataType::Float(64), value); }

PrimExpr Choose(const PrimExpr& cond, const PrimExpr& a, const PrimExpr& b) {
  if (is_one(cond)) return a;
  if (is_zero(cond) || a.same_as(b)) return b;
  return Select(cond, a, b);
}

bool IsLinearIndex(const PrimExpr& index) {
  bool linear = true;
  PostOrderVisit(index, [&](const ObjectRef& node) {
    linear = linear && !node.as<FloorDivNode>() && !node.as<FloorModNode>() &&
             !node.as<MinNode>() && !node.as<MaxNode>() && !node.as<SelectNode>();
  });
  return linear;
}

namespace {

/*! \brief IndexExtent, with nothing for what stands still; every part is looked at once. */
class MovingExtent {
 public:
  explicit MovingExtent(const std::vector<LoopRef>& loops) : loops_(loops) {}

  PrimExpr operator()(const PrimExpr& e) const {
    if (e.as<IntImmNode>()) return PrimExpr();
    if (e.as<VarNode>()) {
      for (const LoopRef& loop : loops_) {
        if (e.same_as(loop->var)) return loop->extent;
      }
      return PrimExpr();
    }
    const PrimExpr one = make_const(e.dtype(), 1);
    auto known = [&one](const PrimExpr& extent) { return extent.defined() ? extent : one; };
    // Combines the extents of two operands, of which one moves at least.
    auto both = [&](const auto* op, auto combine) {
      const PrimExpr a = (*this)(op->a), b = (*this)(op->b);
      return a.defined() || b.defined() ? combine(known(a), known(b)) : PrimExpr();
    };
    auto sum = [&one](const PrimExpr& a, const PrimExpr& b) { return a + b - one; };
    auto greater = [](const PrimExpr& a, const PrimExpr& b) { return max(a, b); };
    if (const auto* op = e.as<AddNode>()) return both(op, sum);
    if (const auto* op = e.as<SubNode>()) return both(op, sum);
    if (const auto* op = e.as<MinNode>()) return both(op, greater);
    if (const auto* op = e.as<MaxNode>()) return both(op, greater);
    if (const auto* op = e.as<MulNode>()) {
      const PrimExpr a = (*this)(op->a), b = (*this)(op->b);
      if (!a.defined() && !b.defined()) return PrimExpr();
      if (a.defined() && b.defined()) return a * b;
      const PrimExpr factor = a.defined() ? op->b : op->a;
      const int64_t* number = as_const_int(factor);
      PrimExpr scale = number && *number < 0 ? make_const(factor.dtype(), -*number) : factor;
      return scale * ((a.defined() ? a : b) - one) + one;
    }
    if (const auto* op = e.as<FloorDivNode>()) {
      return Rounded(op, [&](const PrimExpr& a) { return floordiv(a + op->b - one, op->b); });
    }
    if (const auto* op = e.as<FloorModNode>()) {
      return Rounded(op, [&](const PrimExpr& a) { return min(a, op->b); });
    }
    if (const auto* op = e.as<CastNode>()) {
      const PrimExpr value = (*this)(op->value);
      return value.defined() ? cast(e.dtype(), value) : PrimExpr();
    }
    if (StandsStill(e)) return PrimExpr();
    if (const auto* op = e.as<SelectNode>()) {
      return known((*this)(op->true_value)) + known((*this)(op->false_value));
    }
    return AllTrips(one);
  }

 private:
  template <typename T, typename F>
  PrimExpr Rounded(const T* op, F of_dividend) const {
    const PrimExpr a = (*this)(op->a);
    if (!StandsStill(op->b)) return AllTrips(make_const(op->dtype, 1));
    return a.defined() ? of_dividend(a) : PrimExpr();
  }

  // An index that is read from memory can be anything: every trip is a value of its own.
  PrimExpr AllTrips(PrimExpr trips) const {
    for (const LoopRef& loop : loops_) trips = trips * loop->extent;
    return trips;
  }

  bool StandsStill(const PrimExpr& e) const {
    return !UsesVar(e, [this](const VarNode* var) {
      return std::any_of(loops_.begin(), loops_.end(),
                         [var](const LoopRef& loop) { return loop->var.get() == var; });
    });
  }

  const std::vector<LoopRef>& loops_;
};

}  // namespace

PrimExpr IndexExtent(const PrimExpr& index, const std::vector<LoopRef>& loops) {
  const PrimExpr extent = MovingExtent(loops)(index);
  return extent.defined() ? extent : make_const(index.dtype(), 1);
}

namespace {

/*!
 * \brief Drops the minimums of an expression whose smaller side is known, as lengths of tiles are
 *        where their axis is constant: lowering with numbers has none.
 */
class ShorterMinimums final : public ExprMutator {
 public:
  explicit ShorterMinimums(arith::Analyzer* analyzer) : analyzer_(analyzer) {}

 private:
  PrimExpr VisitExpr_(const MinNode* op) final {
    const bool is_length = op->dtype.is_int() && op->dtype.is_scalar();
    if (is_length && analyzer_->CanProve(op->a <= op->b)) return VisitExpr(op->a);
    if (is_length && analyzer_->CanProve(op->b <= op->a)) return VisitExpr(op->b);
    return ExprMutator::VisitExpr_(op);
  }

  arith::Analyzer* analyzer_;
};

class Reader : public StmtExprVisitor {
 public:
  Reader(const PrimFunc& func, const arith::VarContext& context, ReboundThreads rebound)
      : rebound_(rebound) {
    program_.analyzer = std::make_shared<arith::Analyzer>();
    context.BindTo(program_.analyzer.get());
    for (const auto& [param, buffer] : func->buffer_map) buffer_ids_.emplace(buffer.get(), -1);
    VisitStmt(func->body);
  }

  LoopProgram Take() { return std::move(program_); }

 private:
  using StmtExprVisitor::VisitExpr_;
  using StmtExprVisitor::VisitStmt_;

  arith::Analyzer& analyzer() { return *program_.analyzer; }

  int BufferId(const Buffer& buffer) {
    auto it = buffer_ids_.find(buffer.get());
    if (it != buffer_ids_.end() && it->second >= 0) return it->second;
    int id = static_cast<int>(program_.buffers.size());
    program_.buffers.push_back(buffer);
    buffer_ids_[buffer.get()] = id;
    return id;
  }

  // The greatest value of an extent while the outer loops run.
  PrimExpr GreatestExtent(const PrimExpr& extent) {
    PrimExpr simple = analyzer().Simplify(extent);
    if (as_const_int(simple)) return simple;
    IntSet values = arith::EvalSet(simple, domains_, &analyzer());
    return values.HasUpperBound() ? analyzer().Simplify(values.max()) : simple;
  }

  template <typename F>
  void InLoop(LoopInfo info, F body) {
    info.min = analyzer().Simplify(info.min);
    info.extent = GreatestExtent(info.extent);
    Range range = Range::FromMinExtent(info.min, info.extent);
    const VarNode* var = info.var.get();
    if (!is_one(info.extent)) {
      domains_[var] = arith::EvalSet(range, domains_, &analyzer());
      analyzer().Bind(info.var, range, /*allow_override=*/true);
    } else {
      analyzer().Bind(info.var, info.min, /*allow_override=*/true);
    }
    bool trivial = is_one(info.extent);
    // A loop that runs once is no loop: lowering a concrete program drops most of them, so none
    // may count.
    const std::vector<LoopRef> around = loops_;
    if (!trivial) {
      if (rebound_ == ReboundThreads::kOnce) DropAxis(info.thread_tag);
      loops_.push_back(std::make_shared<LoopInfo>(std::move(info)));
    }
    body();
    loops_ = around;
    domains_.erase(var);
  }

  // A thread axis that is bound again is the same one.
  void DropAxis(const std::string& tag) {
    if (tag.empty() || tag == "vthread") return;
    std::erase_if(loops_, [&tag](const LoopRef& loop) { return loop->thread_tag == tag; });
  }

  // Runs `body` inside of the kernel that the outermost thread axis begins.
  template <typename F>
  void InKernel(bool is_thread, F body) {
    const bool begins = is_thread && kernel_ < 0;
    if (begins) kernel_ = num_kernels_++;
    body();
    if (begins) kernel_ = -1;
  }

  void VisitStmt_(const ForNode* op) override {
    LoopInfo info;
    info.var = op->loop_var;
    info.min = op->min;
    info.extent = op->extent;
    info.kind = op->kind;
    if (op->kind == ForKind::kThreadBinding && op->thread_binding.defined()) {
      info.thread_tag = op->thread_binding.value()->thread_tag;
    }
    InKernel(info.is_thread(), [&] { InLoop(std::move(info), [&] { VisitStmt(op->body); }); });
  }

  void VisitStmt_(const AttrStmtNode* op) override {
    const auto* axis = op->node.as<IterVarNode>();
    if (axis &&
        (op->attr_key == tir::attr::thread_extent || op->attr_key == tir::attr::virtual_thread)) {
      LoopInfo info;
      info.var = axis->var;
      info.min = make_zero(axis->var.dtype());
      info.extent = op->value;
      info.kind = ForKind::kThreadBinding;
      info.thread_tag =
          op->attr_key == tir::attr::virtual_thread ? "vthread" : std::string(axis->thread_tag);
      InKernel(true, [&] { InLoop(std::move(info), [&] { VisitStmt(op->body); }); });
    } else if (op->attr_key == tir::attr::pragma_auto_unroll_max_step) {
      PrimExpr outer = unroll_step_;
      unroll_step_ = op->value;
      VisitStmt(op->body);
      unroll_step_ = outer;
    } else if (op->attr_key == "pragma_tensor_core") {
      const bool around = on_tensor_cores_;
      on_tensor_cores_ = true;
      VisitStmt(op->body);
      on_tensor_cores_ = around;
    } else {
      if (op->attr_key == tir::attr::double_buffer_scope) {
        for (RealizeInfo& realize : program_.realizes) {
          const Buffer& buffer = program_.buffers[realize.buffer];
          if (!buffer->data.same_as(op->node)) continue;
          const PrimExpr ahead = AsyncTripsAhead(op->body);
          realize.trips_ahead = cast(DataType::Int(64), ahead.defined() ? ahead : PrimExpr(1));
          realize.is_async = ahead.defined();
        }
      }
      if (op->attr_key == tir::attr::storage_alignment) {
        alignments_[op->node.as<BufferNode>()].push_back(op->value.as<CallNode>()->args);
      }
      VisitStmt(op->body);
    }
  }

  void VisitStmt_(const IfThenElseNode* op) override {
    // Guards of tiles at the border hold nearly always; both arms of other branches count.
    const auto* call = op->condition.as<CallNode>();
    bool guard = call && call->op.same_as(builtin::likely());
    const PrimExpr around = share_;
    const size_t num_cut = cut_axes_.size();
    // A thread that a guard leaves out waits for the others of its warp, so that it counts.
    if (guard && kernel_ < 0) LimitShare(call->args[0]);
    VisitStmt(op->then_case);
    share_ = around;
    cut_axes_.resize(num_cut);
    if (op->else_case.defined() && !guard) VisitStmt(op->else_case);
  }

  // Takes trips that a guard of the last tile leaves out off the share of those that run.
  void LimitShare(const PrimExpr& guard) {
    if (const auto* both = guard.as<AndNode>()) {
      LimitShare(both->a);
      LimitShare(both->b);
      return;
    }
    const auto* less = guard.as<LTNode>();
    if (less == nullptr) return;
    const PrimExpr index = analyzer().Simplify(less->a);
    for (const LoopRef& loop : loops_) {
      if (!loop->var.same_as(index) || !is_zero(loop->min)) continue;
      // With numbers for the knobs the loop is that short.
      loop->extent = analyzer().Simplify(min(loop->extent, less->b));
      return;
    }
    // What follows may ask for no more than this axis has, which is said once more then.
    const bool is_known =
        std::any_of(cut_axes_.begin(), cut_axes_.end(),
                    [&index](const CutAxis& cut) { return StructuralEqual()(cut.index, index); });
    if (is_known) return;
    Map<Var, PrimExpr> first;
    for (const LoopRef& loop : loops_) first.Set(loop->var, loop->min);
    const PrimExpr inside = analyzer().Simplify(less->b - Substitute(index, first));
    const PrimExpr all = analyzer().Simplify(IndexExtent(index, loops_));
    if (!is_positive_const(inside) || analyzer().CanProve(all <= inside)) return;
    const PrimExpr share =
        min(div(ToReal(inside), ToReal(all)), make_const(DataType::Float(64), 1));
    share_ = share_.defined() ? share_ * share : share;
    cut_axes_.push_back({index, inside, all});
  }

  void VisitStmt_(const BufferRealizeNode* op) override {
    Realize(op->buffer, op->bounds);
    VisitStmt(op->body);
  }

  void VisitStmt_(const AllocateNode* op) override {
    allocated_.insert(op->buffer_var.get());
    VisitStmt(op->body);
  }

  // A buffer over memory of its own is one that is realized as a whole.
  void VisitStmt_(const DeclBufferNode* op) override {
    if (allocated_.erase(op->buffer->data.get()) != 0) {
      Realize(op->buffer, BufferRegion::FullRegion(op->buffer)->region);
    }
    VisitStmt(op->body);
  }

  void Realize(const Buffer& buffer, const Array<Range>& bounds) {
    RealizeInfo info{BufferId(buffer), loops_, {}, kernel_};
    for (size_t d = 0; d < bounds.size(); ++d) {
      PrimExpr extent = GreatestExtent(bounds[d]->extent);
      // Of a whole buffer last tiles ask for no more than there is; lowering with numbers knows.
      if (loops_.empty() && as_const_int(extent) == nullptr) {
        extent = analyzer().Simplify(min(extent, buffer->shape[d]));
      }
      info.extents.push_back(extent);
    }
    info.strides = StridesOf(buffer, info.extents);
    if (rebound_ == ReboundThreads::kOnce && buffer.scope() == "shared") {
      Tile tile{info.loops, {}, info.extents};
      for (const Range& bound : bounds) tile.mins.push_back(analyzer().Simplify(bound->min));
      tiles_[info.buffer] = std::move(tile);
    }
    program_.realizes.push_back(std::move(info));
  }

  std::vector<PrimExpr> StridesOf(const Buffer& buffer, const std::vector<PrimExpr>& extents) {
    std::vector<PrimExpr> strides(extents.size());
    const auto asked = alignments_.find(buffer.get());
    PrimExpr stride = make_const(DataType::Int(64), 1);
    for (size_t d = extents.size(); d-- > 0;) {
      if (asked != alignments_.end()) {
        for (const Array<PrimExpr>& entry : asked->second) {
          const int64_t* dim = as_const_int(entry[0]);
          if (dim == nullptr || *dim != static_cast<int64_t>(d)) continue;
          const PrimExpr factor = cast(stride.dtype(), entry[1]);
          const PrimExpr offset = cast(stride.dtype(), entry[2]);
          stride = stride + floormod(factor + offset - floormod(stride, factor), factor);
        }
      }
      strides[d] = analyzer().Simplify(stride);
      stride = strides[d] * cast(stride.dtype(), extents[d]);
    }
    return strides;
  }

  // Reductions of pairs have their new values before either is stored.
  void VisitStmt_(const LetStmtNode* op) override {
    values_.Set(op->var, Substitute(op->value, values_));
    VisitStmt(op->body);
  }
  void VisitStmt_(const BufferStoreNode* op) override {
    StoreInfo store;
    store.buffer = BufferId(op->buffer);
    store.value =
        ShorterMinimums(&analyzer())(values_.empty() ? op->value : Substitute(op->value, values_));
    const std::vector<LoopRef> around = loops_;
    if (rebound_ == ReboundThreads::kOnce && op->buffer.scope() == "shared") {
      // Virtual threads share it, so a copy that is the same for all of them is made once.
      const Stmt copy = GetRef<Stmt>(op);
      std::erase_if(loops_, [&copy](const LoopRef& loop) {
        return loop->thread_tag == "vthread" && !Mentions(copy, loop->var.get());
      });
    }
    store.loops = loops_;
    store.kernel = kernel_;
    store.on_tensor_cores = on_tensor_cores_;
    store.auto_unroll_max_step = unroll_step_;
    store.share = share_;
    store.cut_axes = cut_axes_;
    std::vector<AccessInfo>& accesses = store.accesses;
    accesses.push_back({store.buffer, AccessType::kWrite, {SimplifyAll(op->indices)}, {}, {}, {}});
    PostOrderVisit(store.value, [&](const ObjectRef& node) {
      const auto* load = node.as<BufferLoadNode>();
      if (!load) return;
      int id = BufferId(load->buffer);
      auto it = std::find_if(accesses.begin(), accesses.end(),
                             [id](const AccessInfo& a) { return a.buffer == id; });
      if (it == accesses.end()) {
        accesses.push_back({id, AccessType::kRead, {SimplifyAll(load->indices)}, {}, {}, {}});
      } else {
        if (it->type == AccessType::kWrite) it->type = AccessType::kReadWrite;
        AddIndices(&it->indices, SimplifyAll(load->indices));
      }
    });
    const auto tile = tiles_.find(store.buffer);
    const Array<PrimExpr> written = accesses[0].indices[0];
    for (AccessInfo& access : accesses) {
      FindRegions(&access, tile == tiles_.end() ? nullptr : &tile->second, written);
      FindThreadSteps(&access);
    }
    program_.stores.push_back(std::move(store));
    loops_ = around;
  }

  Array<PrimExpr> SimplifyAll(const Array<PrimExpr>& indices) {
    Array<PrimExpr> out;
    for (const PrimExpr& index : indices) out.push_back(analyzer().Simplify(index));
    return out;
  }

  // An index tuple that is there already touches nothing new.
  void AddIndices(std::vector<Array<PrimExpr>>* tuples, const Array<PrimExpr>& indices) {
    for (const Array<PrimExpr>& known : *tuples) {
      bool same = known.size() == indices.size();
      for (size_t d = 0; same && d < indices.size(); ++d) {
        same = analyzer().CanProveEqual(known[d], indices[d]);
      }
      if (same) return;
    }
    tuples->push_back(indices);
  }

  // Memory that the threads of a block share, and fill together.
  struct Tile {
    std::vector<LoopRef> around;
    std::vector<PrimExpr> mins, extents;
  };

  // Loops of the store that run outside of the tile's memory.
  size_t CountAround(const Tile& tile) const {
    size_t count = 0;
    while (count < loops_.size() &&
           std::find(tile.around.begin(), tile.around.end(), loops_[count]) != tile.around.end()) {
      ++count;
    }
    return count;
  }

  /*!
   * \brief The region of a copy into a tile, whose loops are one fused loop over all elements.
   *
   * The quotients and remainders of that loop say less than the tile itself, and what they say
   * depends on how far numbers let them be simplified. So all loops together touch the tile, and
   * the inner ones as many neighbours as they have trips. False for dimension d of an access that
   * does not follow one of the written.
   */
  bool FindTileRegion(AccessInfo* access, size_t d, const Tile& tile,
                      const Array<PrimExpr>& written) {
    if (access->indices.size() != 1) return false;
    const PrimExpr& index = access->indices[0][d];
    const size_t n = loops_.size(), around = CountAround(tile);
    const std::vector<LoopRef> inside(loops_.begin() + around, loops_.end());
    auto moves = [&inside](const PrimExpr& e) {
      return std::any_of(inside.begin(), inside.end(),
                         [&e](const LoopRef& loop) { return Mentions(e, loop->var.get()); });
    };
    size_t followed = d;
    PrimExpr distance;
    auto follows = [&](size_t dim) {
      distance = analyzer().Simplify(index - written[dim]);
      followed = dim;
      return !moves(distance);
    };
    bool found = d < written.size() && follows(d);
    for (size_t dim = 0; dim < written.size() && !found; ++dim) found = follows(dim);
    if (!found) return false;

    const PrimExpr extent = tile.extents[followed];
    PrimExpr row = make_const(extent.dtype(), 1), count = row;  // elements of one step, of a level
    for (size_t dim = followed + 1; dim < tile.extents.size(); ++dim) row = row * tile.extents[dim];
    access->extents[n][d] = count;
    for (size_t level = n; level-- > around;) {
      count = count * loops_[level]->extent;
      const PrimExpr steps = floordiv(count + row - 1, row);
      access->extents[level][d] =
          analyzer().Simplify(level == around ? extent : min(extent, steps));
    }
    const PrimExpr first = analyzer().Simplify(tile.mins[followed] + distance);
    for (size_t level = around; level-- > 0;) {
      const std::vector<LoopRef> outer(loops_.begin() + level, loops_.begin() + around);
      access->extents[level][d] = analyzer().Simplify(IndexExtent(first, outer) + extent - 1);
    }
    return true;
  }

  void FindRegions(AccessInfo* access, const Tile* tile, const Array<PrimExpr>& written) {
    size_t n = loops_.size(), num_dims = access->indices[0].size();
    access->extents.assign(n + 1, std::vector<PrimExpr>(num_dims));
    const Buffer& buffer = program_.buffers[access->buffer];
    for (size_t d = 0; d < num_dims; ++d) {
      if (tile != nullptr && FindTileRegion(access, d, *tile, written)) continue;
      bool linear = true;
      for (const Array<PrimExpr>& tuple : access->indices) {
        linear = linear && IsLinearIndex(tuple[d]);
      }
      if (!linear) {
        // The tuple that moves most stands for all.
        for (size_t level = n + 1; level-- > 0;) {
          const bool moves =
              level == n || std::any_of(access->indices.begin(), access->indices.end(),
                                        [&](const Array<PrimExpr>& tuple) {
                                          return Mentions(tuple[d], loops_[level]->var.get());
                                        });
          if (!moves) {
            access->extents[level][d] = access->extents[level + 1][d];
            continue;
          }
          std::vector<LoopRef> inside(loops_.begin() + level, loops_.end());
          PrimExpr most;
          for (const Array<PrimExpr>& tuple : access->indices) {
            PrimExpr extent = IndexExtent(tuple[d], inside);
            most = most.defined() ? max(most, extent) : extent;
          }
          access->extents[level][d] = analyzer().Simplify(most);
        }
        continue;
      }
      std::vector<IntSet> sets;
      for (const Array<PrimExpr>& tuple : access->indices) {
        sets.push_back(IntSet::SinglePoint(tuple[d]));
      }
      PrimExpr inner;  // extent at the loop inside
      for (size_t level = n + 1; level-- > 0;) {
        bool moved = level == n;
        if (level < n) {
          const VarNode* var = loops_[level]->var.get();
          std::unordered_map<const VarNode*, IntSet> domain{{var, OwnRange(*loops_[level])}};
          for (IntSet& set : sets) {
            if (!Mentions(set, var)) continue;
            moved = true;
            set = arith::EvalSet(set, domain, &analyzer());
          }
        }
        if (moved) inner = HullExtent(sets, buffer->shape[d]);
        access->extents[level][d] = inner;
      }
    }
    for (const std::vector<PrimExpr>& extents : access->extents) {
      PrimExpr product = RealConst(1);
      for (const PrimExpr& extent : extents) product = product * ToReal(extent);
      access->touched.push_back(product);
    }
  }

  void FindThreadSteps(AccessInfo* access) {
    Map<Var, PrimExpr> first;
    for (const LoopRef& loop : loops_) first.Set(loop->var, loop->min);
    for (const char* tag : {"threadIdx.y", "threadIdx.x"}) {
      const auto thread = std::find_if(loops_.begin(), loops_.end(), [tag](const LoopRef& loop) {
        return loop->thread_tag == tag;
      });
      if (thread == loops_.end()) continue;
      std::vector<PrimExpr>& steps = access->thread_steps;
      if (steps.empty()) {
        for (const PrimExpr& index : access->indices[0]) steps.push_back(make_zero(index.dtype()));
      }
      // Lowering with numbers drops an axis of one thread.
      const PrimExpr several =
          analyzer().Simplify(LT(make_const((*thread)->extent.dtype(), 1), (*thread)->extent));
      Map<Var, PrimExpr> second = first;
      second.Set((*thread)->var, (*thread)->min + 1);
      for (size_t d = 0; d < steps.size(); ++d) {
        const PrimExpr& index = access->indices[0][d];
        const PrimExpr step =
            Mentions(index, (*thread)->var.get())
                ? analyzer().Simplify(Substitute(index, second) - Substitute(index, first))
                : make_zero(index.dtype());
        steps[d] = is_zero(step) && is_zero(steps[d]) ? steps[d] : Choose(several, step, steps[d]);
      }
    }
  }

  // The loop's values with the outer loops fixed.
  IntSet OwnRange(const LoopInfo& loop) { return IntSet::FromMinExtent(loop.min, loop.extent); }

  template <typename T>
  static bool Mentions(const T& part, const VarNode* var) {
    return UsesVar(part, [var](const VarNode* used) { return used == var; });
  }
  static bool Mentions(const IntSet& set, const VarNode* var) {
    return Mentions(set.min(), var) || Mentions(set.max(), var);
  }

  PrimExpr HullExtent(const std::vector<IntSet>& sets, const PrimExpr& whole) {
    IntSet hull = sets.size() == 1
                      ? sets[0]
                      : arith::Union(Array<IntSet>(sets.begin(), sets.end()), &analyzer());
    if (!hull.HasLowerBound() || !hull.HasUpperBound()) return analyzer().Simplify(whole);
    if (hull.IsSinglePoint()) return make_const(whole.dtype(), 1);
    PrimExpr extent = GreatestExtent(hull.max() - hull.min() + 1);
    return is_positive_const(extent) || !as_const_int(extent) ? extent
                                                              : make_const(extent.dtype(), 1);
  }

  LoopProgram program_;
  std::unordered_map<const Object*, int> buffer_ids_;
  std::unordered_map<const VarNode*, IntSet> domains_;
  std::unordered_map<int, Tile> tiles_;  // by buffer
  /*! \brief Memory of its own whose buffer is not known yet. */
  std::unordered_set<const VarNode*> allocated_;
  /*! \brief What variables of the statements around stand for. */
  Map<Var, PrimExpr> values_;
  std::vector<LoopRef> loops_;
  ReboundThreads rebound_;
  int kernel_ = -1, num_kernels_ = 0;
  PrimExpr unroll_step_ = IntImm(DataType::Int(32), 0);
  bool on_tensor_cores_ = false;
  /*! \brief (dimension, factor, offset) of storage_align by buffer. */
  std::unordered_map<const BufferNode*, std::vector<Array<PrimExpr>>> alignments_;
  // See StoreInfo::share.
  PrimExpr share_;
  std::vector<CutAxis> cut_axes_;
};

}  // namespace

LoopProgram ReadLoopProgram(const PrimFunc& func, const arith::VarContext& context,
                            ReboundThreads rebound) {
  return Reader(func, context, rebound).Take();
}

}  // namespace auto_scheduler
}  // namespace tvm
