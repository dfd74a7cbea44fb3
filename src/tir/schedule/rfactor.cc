/*!
 * \file rfactor.cc
 * \brief The primitive that reduces in two steps: first beside each other, then what that gave.
 */
#include <algorithm>

#include "../analysis/reduction_step.h"
#include "primitives.h"

namespace tvm {
namespace tir {
namespace sched {
namespace {

/*! \brief Stores of several results, all of which are computed before the first is stored. */
Stmt StoreAll(const std::vector<Buffer>& buffers, const std::vector<Array<PrimExpr>>& places,
              const Array<PrimExpr>& values) {
  if (buffers.size() == 1) return BufferStore(buffers[0], values[0], places[0]);
  Array<Stmt> stores;
  std::vector<Var> names;
  for (size_t i = 0; i < buffers.size(); ++i) {
    names.push_back(Var("v_" + std::string(buffers[i]->name), values[i].dtype()));
    stores.push_back(BufferStore(buffers[i], names.back(), places[i]));
  }
  Stmt body = SeqStmt(stores);
  for (size_t i = names.size(); i-- > 0;) body = LetStmt(names[i], values[i], body);
  return body;
}

Array<PrimExpr> LoadAll(const std::vector<Buffer>& buffers,
                        const std::vector<Array<PrimExpr>>& places) {
  Array<PrimExpr> loads;
  for (size_t i = 0; i < buffers.size(); ++i) loads.push_back(BufferLoad(buffers[i], places[i]));
  return loads;
}

/*! \brief The outermost loop that holds nothing but the nest of a loop. */
Id TopOfNest(const Tree& tree, Id id) {
  for (Id up = tree[id].parent; tree.IsLoop(up) && tree[up].children.size() == 1;
       up = tree[id].parent) {
    id = up;
  }
  return id;
}

}  // namespace

Id RFactor(Tree* tree, Id loop_id, int64_t factor_axis) {
  Ids blocks = tree->BlocksBelow(loop_id);
  const LoopItem loop = tree->loop(loop_id);
  TVM_CHECK(blocks.size() == 1, ScheduleError)
      << "loop " << loop.name() << " is around " << blocks.size()
      << " blocks; rfactor needs a loop around one";
  Id id = blocks[0];
  RequireReduction(*tree, id);
  RequireSoleWriter(*tree, id, Flows(*tree));
  Feeds fed = FeedsOf(*tree, id);
  std::vector<std::string> feeding;
  for (const Var& var : fed.reducing) feeding.push_back(var->name_hint);
  std::sort(feeding.begin(), feeding.end());
  std::string names;
  for (const std::string& name : feeding) AddItem(&names, name);
  const BlockItem block = tree->block(id);
  // A split by the whole length leaves a loop of one iteration that no binding names any more.
  bool is_one_part = loop.IsUnit() && !fed.spatial.Contains(loop.var);
  TVM_CHECK(fed.reducing.Contains(loop.var) || is_one_part, ScheduleError)
      << "loop " << loop.name() << " does not feed the reduction of block " << block.name
      << "; those that do are " << (names.empty() ? "none" : names);
  const ReductionStep step = MatchReductionStep(tree->Body(id), block.init);
  TVM_CHECK(step.error.empty(), ScheduleError)
      << "block " << block.name << " is no reduction whose parts can be combined: " << step.error;
  int64_t rank = static_cast<int64_t>(step.results[0]->indices.size());
  for (const BufferStore& result : step.results) {
    TVM_CHECK(static_cast<int64_t>(result->indices.size()) == rank, ScheduleError)
        << "results of block " << block.name << " have different numbers of axes";
  }
  TVM_CHECK(-rank - 1 <= factor_axis && factor_axis <= rank, ScheduleError)
      << step.results[0]->buffer->name << " has " << rank << " axes, so factor_axis is from "
      << -rank - 1 << " to " << rank << ", got " << factor_axis;
  int64_t axis = factor_axis < 0 ? factor_axis + rank + 1 : factor_axis;
  auto with_factor = [&](Array<PrimExpr> indices, const PrimExpr& factor) {
    indices.insert(indices.begin() + axis, factor);
    return indices;
  };
  Ids path = tree->LoopsAbove(id);
  Id top = TopOfNest(*tree, loop_id);
  Ids inside(std::find(path.begin(), path.end(), top), path.end());
  VarSet inside_vars = tree->VarsOfLoops(inside);
  TVM_CHECK(fed.reducing.IsSubsetOf(inside_vars), ScheduleError)
      << "a loop of the reduction of block " << block.name
      << " is around other blocks too, in each iteration of which its result would start anew";
  TVM_CHECK(!inside_vars.Intersects(block.given), ScheduleError)
      << "a loop around block " << block.name
      << " runs its elements again; rfactor needs each once";

  // Partial results: every loop of the reduction but `loop` is a variable of its own.
  std::vector<Buffer> results, partials;
  for (const BufferStore& store : step.results) {
    const Buffer& result = store->buffer;
    results.push_back(result);
    partials.push_back(decl_buffer(with_factor(result->shape, loop.extent), result->dtype,
                                   tree->NewBufferName(result->name + "_rf"), result.scope()));
  }
  VarMap values, inner, units;
  Array<IterVar> iters;
  Array<PrimExpr> iter_values;
  auto add_iter = [&](const LoopItem& item, IterVarType type) {
    iters.push_back(IterVar(item.range(), Var("v" + item.name(), item.var.dtype()), type));
    iter_values.push_back(item.var);
    inner[item.var.get()] = iters.back()->var;
  };
  // Loops of one iteration feed nothing, but those that bindings name belong to what they name.
  VarSet summed;
  for (const IterVar& iv : block.Reducing()) summed.Add(VarsOf(block.ValueOf(iv->var)));
  auto belongs = [&](const LoopItem& item) {
    return fed.reducing.Contains(item.var) || (item.IsUnit() && summed.Contains(item.var));
  };
  add_iter(loop, kDataPar);
  PrimExpr lane = iters.back()->var - loop.min;
  for (const IterVar& iv : block.iter_vars) {
    if (iv->iter_type != kCommReduce) {
      iters.push_back(FreshIters({iv}, "", &values)[0]);
      iter_values.push_back(block.ValueOf(iv->var));
      continue;
    }
    VarSet parts = VarsOf(block.ValueOf(iv->var));
    for (Id item : path) {
      const LoopItem& l = tree->loop(item);
      bool is_new = item != loop_id && !inner.count(l.var.get());
      if (is_new && belongs(l) && parts.Contains(l.var)) add_iter(l, kCommReduce);
    }
  }
  for (Id item : path) {
    const LoopItem& l = tree->loop(item);
    if (l.IsUnit() && !inner.count(l.var.get())) units[l.var.get()] = l.min;
  }
  for (const IterVar& iv : block.Reducing()) {
    values[iv->var.get()] = Substitute(Substitute(block.ValueOf(iv->var), units), inner);
  }
  Array<PrimExpr> guards, outer;
  for (const PrimExpr& guard : step.guards) guards.push_back(Substitute(guard, values));
  for (const PrimExpr& condition : block.predicate) {
    if (VarsOf(condition).Intersects(fed.reducing)) {
      guards.push_back(Substitute(condition, inner));
    } else {
      outer.push_back(condition);
    }
  }
  auto put_in = [&](const PrimExpr& expr) { return Substitute(expr, values); };
  std::vector<Array<PrimExpr>> places;
  for (const BufferStore& store : step.results) {
    places.push_back(with_factor(store->indices.Map(put_in), lane));
  }
  Stmt part =
      StoreAll(partials, places,
               step.combiner->operator()(LoadAll(partials, places), step.sources.Map(put_in)));
  if (!guards.empty()) {
    PrimExpr all = guards[0];
    for (size_t i = 1; i < guards.size(); ++i) all = all && guards[i];
    part = IfThenElse(all, part);
  }
  Array<Stmt> starts;
  for (size_t i = 0; i < partials.size(); ++i) {
    starts.push_back(
        BufferStore(partials[i], put_in(step.combiner->identity_element[i]), places[i]));
  }
  Id first = tree->AddBlock(BlockLike(block, tree->NewBlockName(block.name + "_rf"), iters,
                                      iter_values, SeqStmt::Flatten(starts), outer),
                            part);

  // Their combination: the block itself, with loops of its own behind the nest.
  Ids twins;
  VarMap moved;
  Id factor = kNone;
  for (Id item : inside) {
    const LoopItem& l = tree->loop(item);
    if (item == loop_id) {
      factor = TwinLoop(tree, item, l.name());
      twins.push_back(factor);
    } else if (fed.spatial.Contains(l.var) || (l.IsUnit() && !belongs(l))) {
      twins.push_back(TwinLoop(tree, item, l.name()));
      moved[l.var.get()] = tree->loop(twins.back()).var;
    } else {
      moved[l.var.get()] = l.min;
    }
  }
  if (is_one_part) moved[loop.var.get()] = loop.min;
  for (Id twin : twins) {
    LoopItem* made = tree->EditLoop(twin);
    made->extent = Substitute(made->extent, moved);
  }
  VarMap own;
  IterVar again(loop.range(), Var("v" + loop.name(), loop.var.dtype()), kCommReduce);
  Array<IterVar> own_iters = {again};
  for (const IterVar& iv : FreshIters(block.Spatial(), "", &own)) own_iters.push_back(iv);
  Array<PrimExpr> own_values = {tree->loop(factor).var};
  for (const IterVar& iv : block.Spatial()) {
    own_values.push_back(Substitute(block.ValueOf(iv->var), moved));
  }
  tree->Replace(block.parent, id, first);
  BlockItem* combined = tree->EditBlock(id);
  combined->iter_vars = own_iters;
  combined->iter_values = own_values;
  combined->predicate =
      outer.Map([&](const PrimExpr& condition) { return Substitute(condition, moved); });
  std::vector<Array<PrimExpr>> at, parts;
  for (const BufferStore& store : step.results) {
    at.push_back(store->indices.Map([&](const PrimExpr& index) { return Substitute(index, own); }));
    parts.push_back(with_factor(at.back(), again->var - loop.min));
  }
  tree->SetBody(id,
                StoreAll(results, at,
                         step.combiner->operator()(LoadAll(results, at), LoadAll(partials, parts))),
                Substitute(block.init, own));
  Id behind = tree->Nest(twins, {id});
  Id parent = (*tree)[top].parent;
  tree->Insert(parent, tree->IndexOf(parent, top) + 1, behind);
  for (const Buffer& partial : partials) tree->Allocate(partial);
  Tidy(tree, first);
  Tidy(tree, id);
  return first;
}

}  // namespace sched
}  // namespace tir
}  // namespace tvm
