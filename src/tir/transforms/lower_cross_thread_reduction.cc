/*!
 * \file src/tir/transforms/lower_cross_thread_reduction.cc
 * \brief Blocks that reduce over the threads of a block of threads.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/launch.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../analysis/reduction_step.h"
#include "pass_common.h"

namespace tvm {
namespace tir {
namespace {

bool IsThread(const For& loop) {
  return loop->kind == ForKind::kThreadBinding &&
         ParseThreadTag(loop->thread_binding.value()->thread_tag).kind == ThreadKind::kThread;
}

/*! \brief Variables of the loops around a block that feed its variables of one type. */
class Feeding {
 public:
  Feeding(const BlockRealizeNode* op, IterVarType type) : op_(op), type_(type) {}
  bool operator()(const For& loop) const {
    for (size_t i = 0; i < op_->iter_values.size(); ++i) {
      if (op_->block->iter_vars[i]->iter_type != type_) continue;
      if (Uses(op_->iter_values[i], loop->loop_var)) return true;
    }
    return false;
  }
  static bool Uses(const PrimExpr& expr, const Var& var) {
    return UsesVar(expr, [&](const VarNode* used) { return used == var.get(); });
  }

 private:
  const BlockRealizeNode* op_;
  IterVarType type_;
};

/*! \brief A copy of block variables, for another block that computes the same places. */
struct Iters {
  Array<IterVar> vars;
  Array<PrimExpr> values;
  Map<Var, PrimExpr> renamed;

  Iters(const BlockRealizeNode* op, bool reducing) {
    for (size_t i = 0; i < op->iter_values.size(); ++i) {
      const IterVar& iv = op->block->iter_vars[i];
      if (iv->iter_type == kCommReduce && !reducing) continue;
      Var fresh(iv->var->name_hint, iv->var.dtype());
      vars.push_back(IterVar(iv->dom, fresh, iv->iter_type, iv->thread_tag));
      values.push_back(op->iter_values[i]);
      renamed.Set(iv->var, fresh);
    }
  }
};

/*! \brief One element per result in the memory of each thread. */
Array<Buffer> Cells(const ReductionStep& step, const std::string& prefix) {
  Array<Buffer> cells;
  for (const BufferStore& result : step.results) {
    Buffer cell =
        decl_buffer({PrimExpr(1)}, result->buffer->dtype, prefix + result->buffer->name, "local");
    cell.CopyOnWrite()->strides = {PrimExpr(1)};
    cells.push_back(cell);
  }
  return cells;
}

BufferLoad Load(const Buffer& cell) { return BufferLoad(cell, {PrimExpr(0)}); }
Stmt Store(const Buffer& cell, const PrimExpr& value) {
  return BufferStore(cell, value, {PrimExpr(0)});
}
Array<BufferRegion> Regions(const Array<Buffer>& cells) {
  return cells.Map([](const Buffer& cell) { return BufferRegion::FromPoint(cell, {PrimExpr(0)}); });
}

/*! \brief cells = values, all of them computed before the first store. */
Stmt StoreAll(const Array<Buffer>& cells, const Array<PrimExpr>& values) {
  if (cells.size() == 1) return Store(cells[0], values[0]);
  Array<Stmt> stores;
  std::vector<Var> names;
  for (size_t i = 0; i < cells.size(); ++i) {
    names.emplace_back("v_" + cells[i]->name, cells[i]->dtype);
    stores.push_back(Store(cells[i], names[i]));
  }
  Stmt body = SeqStmt(stores);
  for (size_t i = cells.size(); i-- > 0;) body = LetStmt(names[i], values[i], body);
  return body;
}

Stmt Opaque(const std::string& name, Array<BufferRegion> reads, Array<BufferRegion> writes,
            Stmt body) {
  return BlockRealize({}, const_true(), Block({}, reads, writes, name, body));
}

/*! \brief Views the loads of results so far as loads of cells. */
class ResultReplacer final : public StmtExprMutator {
 public:
  ResultReplacer(const ReductionStep& step, const Array<Buffer>& cells)
      : step_(step), cells_(cells) {}

 private:
  PrimExpr VisitExpr_(const BufferLoadNode* op) final {
    for (size_t i = 0; i < cells_.size(); ++i) {
      if (op->buffer.same_as(step_.results[i]->buffer)) return Load(cells_[i]);
    }
    return StmtExprMutator::VisitExpr_(op);
  }
  Stmt VisitStmt_(const BufferStoreNode* op) final {
    for (size_t i = 0; i < cells_.size(); ++i) {
      if (op->buffer.same_as(step_.results[i]->buffer)) {
        return Store(cells_[i], VisitExpr(op->value));
      }
    }
    return StmtExprMutator::VisitStmt_(op);
  }

  const ReductionStep& step_;
  const Array<Buffer>& cells_;
};

/*! \brief Axes of the threads that run a kernel, those with more than one thread. */
class ThreadFinder final : public StmtVisitor {
 public:
  std::set<std::string> tags;

 private:
  void VisitStmt_(const ForNode* op) final {
    if (IsThread(GetRef<For>(op)) && !is_one(op->extent)) {
      tags.insert(op->thread_binding.value()->thread_tag);
    }
    StmtVisitor::VisitStmt_(op);
  }
};

/*!
 * \brief Refuses blocks whose threads all read one element of what each of them has a part of, in
 *        memory of its own.
 */
class PartsOfThreads final : public StmtExprVisitor {
 private:
  using Tags = std::set<std::string>;
  struct Read {
    Buffer buffer;
    std::string block;
    Tags tags;
  };

  void VisitStmt_(const ForNode* op) final {
    if (op->kind != ForKind::kThreadBinding) {
      Enter(op);
      return StmtExprVisitor::VisitStmt_(op);
    }
    const std::string tag = op->thread_binding.value()->thread_tag;
    if (IsThread(GetRef<For>(op)) && !is_one(op->extent)) feeds_[op->loop_var.get()] = {tag};
    Enter(op);
    const bool kernel = !in_kernel_;
    in_kernel_ = true;
    StmtExprVisitor::VisitStmt_(op);
    if (kernel) {
      Check();
      in_kernel_ = false;
    }
  }

  void VisitStmt_(const BlockRealizeNode* op) final {
    const BlockNode* outside = block_;
    block_ = op->block.get();
    for (size_t i = 0; i < op->iter_values.size(); ++i) {
      values_.Set(op->block->iter_vars[i]->var, Substitute(op->iter_values[i], values_));
    }
    StmtExprVisitor::VisitStmt_(op);
    block_ = outside;
  }

  void VisitStmt_(const BufferStoreNode* op) final {
    if (in_kernel_ && op->buffer.scope() == "local") {
      const Tags tags = TagsIn(op->indices);
      parts_[op->buffer.get()].insert(tags.begin(), tags.end());
    }
    StmtExprVisitor::VisitStmt_(op);
  }

  void VisitExpr_(const BufferLoadNode* op) final {
    if (in_kernel_ && block_ != nullptr && op->buffer.scope() == "local") {
      reads_.push_back({op->buffer, block_->name_hint, TagsIn(op->indices)});
    }
    StmtExprVisitor::VisitExpr_(op);
  }

  void Enter(const ForNode* op) {
    analyzer_.Bind(op->loop_var, Range::FromMinExtent(op->min, op->extent), true);
  }

  /*! \brief The axes on which the value of an index depends: of (i * 64 + thread) / 64, none. */
  Tags TagsIn(const Array<PrimExpr>& exprs) {
    Tags tags;
    for (const PrimExpr& expr : exprs) {
      PostOrderVisit(analyzer_.Simplify(Substitute(expr, values_)), [&](const ObjectRef& node) {
        auto found = feeds_.find(node.get());
        if (found != feeds_.end()) tags.insert(found->second.begin(), found->second.end());
      });
    }
    return tags;
  }

  void Check() {
    for (const Read& read : reads_) {
      for (const std::string& tag : parts_[read.buffer.get()]) {
        TVM_CHECK(read.tags.count(tag), ValueError)
            << "LowerCrossThreadReduction: each thread of " << tag << " has a part of "
            << read.buffer->name << " in memory of its own, and block " << read.block
            << " reads the same element in all of them; give the buffer the scope \"shared\", or "
               "bind a loop over the parts";
      }
    }
    reads_.clear();
    parts_.clear();
  }

  bool in_kernel_ = false;
  const BlockNode* block_ = nullptr;
  arith::Analyzer analyzer_;
  /*! \brief The thread axes that variables of loops are. */
  std::map<const Object*, Tags> feeds_;
  /*! \brief What variables of blocks are, in those of loops. */
  Map<Var, PrimExpr> values_;
  std::map<const BufferNode*, Tags> parts_;
  std::vector<Read> reads_;
};

/*! \brief Puts another statement in the place of one block. */
class BlockReplacer final : public StmtMutator {
 public:
  BlockReplacer(const BlockRealizeNode* old, const Stmt& made) : old_(old), made_(made) {}

 private:
  Stmt VisitStmt_(const BlockRealizeNode* op) final {
    return op == old_ ? made_ : GetRef<Stmt>(op);
  }

  const BlockRealizeNode* old_;
  Stmt made_;
};

/*! \brief The blocks below a statement that are in no other block, with the loops around each. */
class BlocksInLoops final : public StmtVisitor {
 public:
  std::vector<std::pair<const BlockRealizeNode*, std::vector<For>>> found;

 private:
  void VisitStmt_(const BlockRealizeNode* op) final { found.emplace_back(op, loops_); }
  void VisitStmt_(const ForNode* op) final {
    loops_.push_back(GetRef<For>(op));
    StmtVisitor::VisitStmt_(op);
    loops_.pop_back();
  }

  std::vector<For> loops_;
};

class CrossThreadLowerer final : public StmtMutator {
 public:
  /*! \brief Memory that no block around could be given. */
  Array<Buffer> cells;

 private:
  Stmt VisitStmt_(const BlockNode* op) final {
    std::vector<For> loops;
    Array<Buffer> made;
    std::swap(loops, loops_);
    std::swap(made, cells);
    Block block = Downcast<Block>(StmtMutator::VisitStmt_(op));
    std::swap(loops, loops_);
    std::swap(made, cells);
    if (!made.empty()) {
      BlockNode* node = block.CopyOnWrite();
      for (const Buffer& cell : made) node->alloc_buffers.push_back(cell);
    }
    return block;
  }

  Stmt VisitStmt_(const ForNode* op) final {
    bool starts = op->kind == ForKind::kThreadBinding && !kernel_;
    if (starts) {
      ThreadFinder finder;
      finder(GetRef<Stmt>(op));
      idle_ = finder.tags;
      kernel_ = true;
    }
    std::string tag;
    if (op->kind == ForKind::kThreadBinding) tag = op->thread_binding.value()->thread_tag;
    bool runs = idle_.erase(tag) != 0;
    Stmt stmt = InKernel(op);
    if (runs) idle_.insert(tag);
    if (starts) {
      kernel_ = false;
      idle_.clear();
    }
    return stmt;
  }

  Stmt InKernel(const ForNode* op) {
    std::vector<For> chain;
    Stmt inner = GetRef<Stmt>(op);
    while (const auto* loop = inner.as<ForNode>()) {
      chain.push_back(GetRef<For>(loop));
      inner = loop->body;
    }
    // Reductions of each thread are what lies between the exchange and the loops around it.
    BlocksInLoops blocks;
    if (op->kind != ForKind::kThreadBinding) blocks(inner);
    std::erase_if(blocks.found, [&](const auto& block) {
      std::vector<For> around = chain;
      around.insert(around.end(), block.second.begin(), block.second.end());
      return !IsSerialReduction(chain[0], block.first) ||
             !(Crosses(block.first, around) || Repeats(block.first, around));
    });
    if (!blocks.found.empty()) {
      const auto& [realize, below] = blocks.found.front();
      TVM_CHECK(blocks.found.size() == 1, ValueError)
          << Title(realize->block) << "loop " << op->loop_var
          << " of the reduction is around another reduction of threads, block "
          << blocks.found[1].first->block->name_hint << "; put each into a nest of its own";
      return Lower(realize, chain, inner, below);
    }
    loops_.push_back(GetRef<For>(op));
    Stmt stmt = StmtMutator::VisitStmt_(op);
    loops_.pop_back();
    return stmt;
  }

  Stmt VisitStmt_(const BlockRealizeNode* op) final {
    if (Crosses(op, {}) || Repeats(op, {})) return Lower(op, {}, GetRef<Stmt>(op), {});
    CheckIdle(op);
    return StmtMutator::VisitStmt_(op);
  }

  static bool IsSerialReduction(const For& loop, const BlockRealizeNode* op) {
    return loop->kind != ForKind::kThreadBinding && Feeding(op, kCommReduce)(loop);
  }

  bool Crosses(const BlockRealizeNode* op, const std::vector<For>& chain) const {
    if (!op->block->init.defined()) return false;
    Feeding reducing(op, kCommReduce);
    auto crosses = [&](const For& loop) { return IsThread(loop) && reducing(loop); };
    return std::any_of(loops_.begin(), loops_.end(), crosses) ||
           std::any_of(chain.begin(), chain.end(), crosses);
  }

  /*!
   * \brief Whether several threads would add all of a sum to memory that they share.
   *
   * Each of them then adds it up in memory of its own, and all write the same result.
   */
  bool Repeats(const BlockRealizeNode* op, const std::vector<For>& chain) const {
    if (idle_.empty() || !op->block->init.defined()) return false;
    std::set<std::string> idle = idle_;
    for (const For& loop : chain) {
      if (loop->kind != ForKind::kThreadBinding) continue;
      idle.erase(loop->thread_binding.value()->thread_tag);
    }
    bool outside = std::any_of(loops_.begin(), loops_.end(),
                               [&](const For& loop) { return IsSerialReduction(loop, op); });
    if (idle.empty() || outside) return false;
    ReductionStep step = MatchReductionStep(op->block->body, op->block->init);
    return step.error.empty() &&
           std::any_of(step.results.begin(), step.results.end(),
                       [](const BufferStore& result) { return result->buffer.scope() != "local"; });
  }

  /*! \brief Refuse a sum in memory that threads share, to which all of an axis would add at once.
   */
  void CheckIdle(const BlockRealizeNode* op) const {
    const auto* store = op->block->body.as<BufferStoreNode>();
    if (idle_.empty() || store == nullptr || !is_one(op->predicate)) return;
    const std::string scope = store->buffer.scope();
    const bool shared = scope.empty() || scope == "global" || scope.rfind("shared", 0) == 0;
    bool adds = false;
    PostOrderVisit(store->value, [&](const ObjectRef& node) {
      const auto* load = node.as<BufferLoadNode>();
      adds |= load != nullptr && load->buffer.same_as(store->buffer);
    });
    const bool reduces =
        std::any_of(op->block->iter_vars.begin(), op->block->iter_vars.end(),
                    [](const IterVar& iv) { return iv->iter_type == kCommReduce; });
    TVM_CHECK(!adds || !reduces || !shared, ValueError)
        << "LowerCrossThreadReduction: block " << op->block->name_hint << " is in a kernel with "
        << *idle_.begin() << " but not under such a loop, so all these threads would add to "
        << store->buffer->name << "; bind a loop of the block, or sum up in memory of a thread";
  }

  /*!
   * \brief The parts of threads, their exchange, and the result.
   * \param chain The loops that are around nothing but `inner`.
   * \param inner The block, or loops and other blocks that make what it reads, as well.
   * \param below The loops in `inner` around the block.
   */
  Stmt Lower(const BlockRealizeNode* op, const std::vector<For>& chain, const Stmt& inner,
             const std::vector<For>& below) {
    const Block& block = op->block;
    Feeding reducing(op, kCommReduce), spatial(op, kDataPar);
    std::vector<For> serial, hoisted, threads;
    for (const For& loop : loops_) {
      TVM_CHECK(!IsSerialReduction(loop, op), ValueError)
          << Title(block) << "loop " << loop->loop_var
          << " of the reduction is around other statements too, which would see parts of sums; "
             "put the block into a nest of its own";
    }
    for (const For& loop : chain) {
      bool moves = loop->kind == ForKind::kThreadBinding || is_one(loop->extent);
      if (!moves) {
        TVM_CHECK(!spatial(loop), ValueError)
            << Title(block) << "loop " << loop->loop_var
            << " of a spatial variable is inside of the reduction; reorder it to the outside";
      }
      (moves ? hoisted : serial).push_back(loop);
    }
    for (const For& loop : below) {
      TVM_CHECK(is_one(loop->extent) || !spatial(loop), ValueError)
          << Title(block) << "loop " << loop->loop_var
          << " of a spatial variable is inside of the reduction; reorder it to the outside";
    }
    std::vector<For> around = loops_;
    around.insert(around.end(), hoisted.begin(), hoisted.end());
    for (const For& loop : below) {
      if (loop->kind == ForKind::kThreadBinding) around.push_back(loop);
    }
    for (const For& loop : around) {
      if (!reducing(loop) || (!IsThread(loop) && is_one(loop->extent))) continue;
      TVM_CHECK(IsThread(loop), ValueError)
          << Title(block) << "loop " << loop->loop_var << " is bound to "
          << loop->thread_binding.value()->thread_tag
          << "; only threads of one block can combine what they have";
      threads.push_back(loop);
    }
    ReductionStep step = MatchReductionStep(block->body, block->init);
    TVM_CHECK(step.error.empty(), ValueError) << Title(block) << step.error;

    Array<Buffer> totals;
    if (!threads.empty()) totals = Cells(step, "cross_thread_");
    for (const Buffer& total : totals) cells.push_back(total);
    Array<Stmt> steps;
    bool on_its_own = threads.empty() || !serial.empty() || !inner.same_as(GetRef<Stmt>(op)) ||
                      !is_one(op->predicate) || !step.guards.empty() || ReadsShared(step.sources);
    if (on_its_own) {
      Array<Buffer> partial = Cells(step, "in_thread_");
      for (const Buffer& cell : partial) cells.push_back(cell);
      steps.push_back(Opaque(block->name_hint + "_in_thread_init", {}, Regions(partial),
                             StoreAll(partial, step.combiner->identity_element)));
      steps.push_back(OwnPart(op, step, partial, serial, inner));
      if (threads.empty()) {
        totals = partial;
      } else {
        Array<PrimExpr> sources =
            partial.Map([](const Buffer& cell) { return PrimExpr(Load(cell)); });
        steps.push_back(Opaque(block->name_hint + "_cross_thread_reduction", Regions(partial),
                               Regions(totals), Exchange(step, sources, totals, threads)));
      }
    } else {
      Iters iters(op, true);
      Stmt body = Exchange(step, step.sources, totals, threads);
      Block whole(iters.vars, WithoutResults(block->reads, step), Regions(totals),
                  block->name_hint + "_cross_thread_reduction",
                  Stmt(Substitute(body, iters.renamed)));
      steps.push_back(BlockRealize(iters.values, const_true(), Renamed(whole, iters)));
    }
    std::vector<For> adding = threads;
    adding.insert(adding.end(), serial.begin(), serial.end());
    adding.insert(adding.end(), below.begin(), below.end());
    steps.push_back(WriteBack(op, step, totals, threads, adding));
    const bool again = std::any_of(below.begin(), below.end(), [](const For& loop) {
      return loop->kind == ForKind::kThreadBinding;
    });
    if (again) {
      Array<Stmt> behind(steps.begin() + 2, steps.end());
      steps = {steps[0], steps[1], AmongThreads(below, SeqStmt::Flatten(behind))};
    }
    Stmt body = SeqStmt::Flatten(steps);
    for (size_t i = hoisted.size(); i-- > 0;) body = WithBody(hoisted[i], body);
    return body;
  }

  static std::string Title(const Block& block) {
    return "LowerCrossThreadReduction: threads reduce in block " + std::string(block->name_hint) +
           ", but ";
  }

  /*! \brief Whether threads may have to wait for values, which they do between statements. */
  static bool ReadsShared(const Array<PrimExpr>& sources) {
    bool found = false;
    for (const PrimExpr& source : sources) {
      PostOrderVisit(source, [&](const ObjectRef& node) {
        const auto* load = node.as<BufferLoadNode>();
        if (load != nullptr) found |= std::string(load->buffer.scope()).rfind("shared", 0) == 0;
      });
    }
    return found;
  }

  static For WithBody(For loop, Stmt body) {
    loop.CopyOnWrite()->body = std::move(body);
    return loop;
  }

  static Array<BufferRegion> WithoutResults(const Array<BufferRegion>& regions,
                                            const ReductionStep& step) {
    Array<BufferRegion> kept;
    for (const BufferRegion& region : regions) {
      bool result = std::any_of(
          step.results.begin(), step.results.end(),
          [&](const BufferStore& store) { return store->buffer.same_as(region->buffer); });
      if (!result) kept.push_back(region);
    }
    return kept;
  }

  /*! \brief What is behind loops, of which some are threads, run by these threads again. */
  static Stmt AmongThreads(const std::vector<For>& loops, Stmt body) {
    for (const For& loop : loops) {
      if (loop->kind != ForKind::kThreadBinding) continue;
      Var thread(loop->loop_var->name_hint, loop->loop_var.dtype());
      body = For(thread, loop->min, loop->extent, loop->kind,
                 Substitute(body, {{loop->loop_var, thread}}), loop->thread_binding,
                 loop->annotations);
    }
    return body;
  }

  /*! \brief Regions in terms of other variables. */
  static Block Renamed(Block block, const Iters& iters) {
    auto rename = [&](const BufferRegion& region) {
      Array<Range> ranges = region->region.Map([&](const Range& range) {
        return Range::FromMinExtent(Substitute(range->min, iters.renamed),
                                    Substitute(range->extent, iters.renamed));
      });
      return BufferRegion(region->buffer, ranges);
    };
    BlockNode* node = block.CopyOnWrite();
    node->reads = node->reads.Map(rename);
    node->writes = node->writes.Map(rename);
    return block;
  }

  /*! \brief What a thread combines before the exchange, into memory of its own. */
  static Stmt OwnPart(const BlockRealizeNode* op, const ReductionStep& step,
                      const Array<Buffer>& partial, const std::vector<For>& serial,
                      const Stmt& inner) {
    Iters iters(op, true);
    Block block = op->block;
    BlockNode* node = block.CopyOnWrite();
    node->iter_vars = iters.vars;
    node->reads = WithoutResults(node->reads, step);
    node->writes = Regions(partial);
    node->name_hint = node->name_hint + "_in_thread";
    node->init = Stmt();
    node->body = Substitute(ResultReplacer(step, partial)(node->body), iters.renamed);
    Stmt body =
        BlockReplacer(op, BlockRealize(iters.values, op->predicate, Renamed(block, iters)))(inner);
    for (size_t i = serial.size(); i-- > 0;) body = WithBody(serial[i], body);
    return body;
  }

  static Stmt Exchange(const ReductionStep& step, const Array<PrimExpr>& sources,
                       const Array<Buffer>& totals, const std::vector<For>& threads) {
    Array<PrimExpr> args{make_const(DataType::UInt(32), static_cast<int64_t>(totals.size()))};
    for (const PrimExpr& source : sources) args.push_back(source);
    args.push_back(const_true());
    for (const Buffer& total : totals) args.push_back(Load(total));
    for (const For& thread : threads) args.push_back(thread->loop_var);
    Stmt call = Evaluate(Call(DataType::Handle(), builtin::tvm_thread_allreduce(), args));
    return AttrStmt(step.combiner, attr::reduce_scope, make_zero(DataType::Handle()), call);
  }

  /*! \brief The results from where every thread has them to where the block stores them. */
  static Stmt WriteBack(const BlockRealizeNode* op, const ReductionStep& step,
                        const Array<Buffer>& totals, const std::vector<For>& threads,
                        const std::vector<For>& adding) {
    Iters iters(op, false);
    Array<Stmt> stores;
    Array<BufferRegion> writes;
    bool own = true;
    for (size_t i = 0; i < totals.size(); ++i) {
      Array<PrimExpr> indices = step.results[i]->indices.Map(
          [&](const PrimExpr& index) { return Substitute(index, iters.renamed); });
      stores.push_back(BufferStore(step.results[i]->buffer, Load(totals[i]), indices));
      writes.push_back(BufferRegion::FromPoint(step.results[i]->buffer, indices));
      own &= step.results[i]->buffer.scope() == "local";
    }
    PrimExpr predicate = const_true();
    auto also = [&](const PrimExpr& condition) {
      predicate = is_one(predicate) ? condition : predicate && condition;
    };
    for (const PrimExpr& condition : Conjuncts(op->predicate)) {
      bool bounds = std::any_of(adding.begin(), adding.end(), [&](const For& loop) {
        return Feeding::Uses(condition, loop->loop_var);
      });
      // One that depends on the reduction says what is added, not where the result is stored.
      if (!bounds) also(condition);
    }
    // Where the threads share the memory, one of them writes.
    for (const For& thread : threads) {
      if (!own) also(thread->loop_var == thread->min);
    }
    Block block(iters.vars, Regions(totals), writes, op->block->name_hint + "_write_back",
                SeqStmt::Flatten(stores));
    return BlockRealize(iters.values, predicate, block);
  }

  static Array<PrimExpr> Conjuncts(const PrimExpr& condition) {
    if (is_one(condition)) return {};
    const auto* both = condition.as<AndNode>();
    if (both == nullptr) return {condition};
    Array<PrimExpr> found = Conjuncts(both->a);
    for (const PrimExpr& other : Conjuncts(both->b)) found.push_back(other);
    return found;
  }

  std::vector<For> loops_;
  bool kernel_ = false;
  /*! \brief Axes of the kernel that no loop around is bound to. */
  std::set<std::string> idle_;
};

}  // namespace

namespace transform {

Pass LowerCrossThreadReduction() {
  return BodyPass("tir.LowerCrossThreadReduction", [](const PrimFunc& func, const PassContext&) {
    PartsOfThreads()(func->body);
    CrossThreadLowerer lowerer;
    Stmt body = lowerer(func->body);
    if (lowerer.cells.empty()) return body;
    return Stmt(
        BlockRealize({}, const_true(), Block({}, {}, {}, "root", body, Stmt(), lowerer.cells)));
  });
}

TVM_REGISTER_GLOBAL("tir.transform.LowerCrossThreadReduction")
    .set_body_typed(LowerCrossThreadReduction);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
