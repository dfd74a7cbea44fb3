/*!
 * \file cross_thread_reduction.cc
 * \brief Reductions whose loops are bound to the threads of a block.
 */
#include "cross_thread_reduction.h"

#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/expr/substitute.h>
#include <tvm/tir/stmt_functor.h>

#include <string>
#include <utility>
#include <vector>

#include "../schedule/loop_relations.h"

namespace tvm {
namespace te {

namespace {

bool IsReduction(const IterVar& loop) { return loop->iter_type == tir::kCommReduce; }

/*! \brief Loops of the stage by what becomes of them, each list in the stage's order. */
struct LoopKinds {
  /*! \brief Levels of the nest around the exchange between threads. */
  std::vector<size_t> outer;
  /*! \brief Levels of reduction loops that each thread runs on its own before it. */
  std::vector<size_t> serial;
  /*! \brief Thread axes that are reduced over. */
  Array<IterVar> threads;
};

LoopKinds Classify(const Stage& stage, const LoweringContext& ctx) {
  RefuseLoopsOfBothKinds(stage, "reduction by threads");
  LoopKinds kinds;
  const Array<IterVar>& loops = stage->leaf_iter_vars;
  for (size_t i = 0; i < loops.size(); ++i) {
    IterVar thread = BoundThread(stage, loops[i]);
    if (IsReduction(loops[i]) && thread.defined()) kinds.threads.push_back(thread);
    if (IsReduction(loops[i]) && !thread.defined()) {
      kinds.serial.push_back(i);
      continue;
    }
    kinds.outer.push_back(i);
    if (kinds.serial.empty()) continue;
    TVM_CHECK(thread.defined() || tir::is_one(ctx.domains.at(loops[i])->extent), ScheduleError)
        << "stage " << stage->op->name << ": loop " << loops[i]->var->name_hint
        << " is inside of a reduction that threads do together; reorder it outside of the "
        << "reduction loops";
    TVM_CHECK(ctx.attached.count(loops[i]) == 0, ScheduleError)
        << "stage " << stage->op->name << ": " << ctx.attached.at(loops[i])[0]->op->name
        << " is computed at loop " << loops[i]->var->name_hint
        << ", which follows a serial reduction loop; reorder that loop to the end";
  }
  return kinds;
}

LoopNest Levels(const LoopNest& nest, const std::vector<size_t>& which) {
  LoopNest picked;
  for (size_t i : which) picked.push_back(nest[i]);
  return picked;
}

Array<PrimExpr> Loads(const std::vector<Buffer>& cells) {
  Array<PrimExpr> loads;
  for (const Buffer& cell : cells) loads.push_back(tir::BufferLoad(cell, {PrimExpr(0)}));
  return loads;
}

/*! \brief cells = values, where every value is computed before the first store. */
Stmt StoreCells(const std::vector<Buffer>& cells, const Array<PrimExpr>& values) {
  if (cells.size() == 1) return tir::BufferStore(cells[0], values[0], {PrimExpr(0)});
  Array<Stmt> stores;
  std::vector<Var> names;
  for (size_t i = 0; i < cells.size(); ++i) {
    names.emplace_back(cells[i]->name + ".new", PrimExpr(values[i]).dtype());
    stores.push_back(tir::BufferStore(cells[i], names[i], {PrimExpr(0)}));
  }
  Stmt body = tir::SeqStmt::Flatten(stores);
  for (size_t i = cells.size(); i != 0; --i) {
    body = tir::LetStmt(names[i - 1], values[i - 1], body);
  }
  return body;
}

/*! \brief One element of thread-local memory per output. */
std::vector<Buffer> Cells(const ComputeOpNode* op, const std::string& suffix) {
  std::vector<Buffer> cells;
  for (int i = 0; i < op->num_outputs(); ++i) {
    std::string number = op->num_outputs() == 1 ? "" : ".v" + std::to_string(i);
    cells.push_back(tir::decl_buffer({PrimExpr(1)}, op->output_dtype(static_cast<size_t>(i)),
                                     op->name + number + suffix, "local"));
  }
  return cells;
}

Stmt AllocateCells(const std::vector<Buffer>& cells, Stmt body) {
  for (size_t i = cells.size(); i != 0; --i) {
    const Buffer& cell = cells[i - 1];
    body = tir::Allocate(cell->data, cell->dtype, {PrimExpr(1)}, tir::const_true(), body);
  }
  return body;
}

PrimExpr Conjunction(const std::vector<PrimExpr>& conditions) {
  PrimExpr all = tir::const_true();
  for (const PrimExpr& condition : conditions) {
    all = tir::is_one(all) ? condition : all && condition;
  }
  return all;
}

}  // namespace

bool ReducesOverThreads(const Stage& stage) {
  for (const IterVar& loop : stage->leaf_iter_vars) {
    if (IsReduction(loop) && BoundThread(stage, loop).defined()) return true;
  }
  return false;
}

Stmt ProvideCrossThreadReduction(const ComputeOpNode* op, const Stage& stage,
                                 LoweringContext* ctx) {
  const auto* reduce = op->body[0].as<tir::ReduceNode>();
  TVM_CHECK(reduce->init.empty(), ScheduleError)
      << "stage " << stage->op->name << ": a reduction that starts from given values cannot be "
      << "bound to threads, each of which would add them; use rfactor first";
  LoopKinds kinds = Classify(stage, *ctx);
  IterVarMap<PrimExpr> values;
  LoopNest nest = MakeLoopNest(stage, ctx, 0, false, {}, &values);
  PassUpIndex(stage, ctx->domains, &values);
  Map<Var, PrimExpr> vmap = VarValues(op->root_iter_vars(), values);
  Array<PrimExpr> sources = tir::Substitute(reduce->source, vmap);
  std::vector<PrimExpr> guards = MakeBoundCheck(stage, ctx->domains, values, &ctx->analyzer, false);
  PrimExpr condition = ctx->analyzer.Simplify(tir::Substitute(reduce->condition, vmap));
  if (!tir::is_one(condition)) guards.push_back(condition);

  Array<Stmt> steps;
  std::vector<Buffer> partial;
  PrimExpr counts = Conjunction(guards);
  if (!kinds.serial.empty()) {
    partial = Cells(op, ".partial");
    steps.push_back(StoreCells(partial, reduce->combiner->identity_element));
    Stmt update = StoreCells(partial, (*reduce->combiner.get())(Loads(partial), sources));
    LoopNest serial = Levels(nest, kinds.serial);
    steps.push_back(MergeNest(serial, 0, serial.size(), GuardedBy(guards, update)));
    sources = Loads(partial);
    counts = tir::const_true();
  }

  std::vector<Buffer> results = Cells(op, ".reduced");
  Array<PrimExpr> args{PrimExpr(op->num_outputs())};
  for (const PrimExpr& source : sources) args.push_back(source);
  args.push_back(counts);
  for (const PrimExpr& result : Loads(results)) args.push_back(result);
  for (const IterVar& thread : kinds.threads) args.push_back(thread->var);
  Stmt exchange =
      tir::Evaluate(tir::Call(DataType::Int(32), tir::builtin::tvm_thread_allreduce(), args));
  steps.push_back(tir::AttrStmt(reduce->combiner, tir::attr::reduce_scope, PrimExpr(0), exchange));

  Array<PrimExpr> indices;
  for (const IterVar& axis : op->axis) indices.push_back(values.at(axis));
  Array<Stmt> stores;
  for (size_t i = 0; i < results.size(); ++i) {
    stores.push_back(tir::BufferStore(ctx->buffers.at(stage->op.output(static_cast<int>(i))),
                                      tir::BufferLoad(results[i], {PrimExpr(0)}), indices));
  }
  Stmt store = tir::SeqStmt::Flatten(stores);
  if (stage->store_predicate.defined()) {
    store = tir::IfThenElse(stage->store_predicate, store);
  }
  steps.push_back(GuardedBy(
      MakeBoundCheck(stage, ctx->domains, values, &ctx->analyzer, /*skip_reduce=*/true), store));

  Stmt body = AllocateCells(results, tir::SeqStmt::Flatten(steps));
  body = AllocateCells(partial, body);
  LoopNest outer = Levels(nest, kinds.outer);
  return MergeNest(outer, 0, outer.size(), body);
}

}  // namespace te
}  // namespace tvm
