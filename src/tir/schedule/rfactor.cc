/*!
 * \file rfactor.cc
 * \brief The primitive that reduces in two steps: first beside each other, then what that gave.
 */
#include <algorithm>

#include "primitives.h"

namespace tvm {
namespace tir {
namespace sched {
namespace {

/*! \brief The operator of a reduction, with its neutral element. */
struct Combiner {
  PrimExpr (*combine)(PrimExpr, PrimExpr);
  PrimExpr (*identity)(DataType);
  /*! \brief Whether starting from a value twice is the same as once, whatever the value. */
  bool idempotent;
  double neutral;
};

template <typename TOp>
PrimExpr Make(PrimExpr a, PrimExpr b) {
  return TOp(std::move(a), std::move(b));
}

const Combiner* CombinerOf(const PrimExpr& value) {
  static const Combiner sum{Make<Add>, [](DataType t) { return make_const(t, 0); }, false, 0};
  static const Combiner product{Make<Mul>, [](DataType t) { return make_const(t, 1); }, false, 1};
  static const Combiner most{Make<Max>, [](DataType t) { return min_value(t); }, true, 0};
  static const Combiner least{Make<Min>, [](DataType t) { return max_value(t); }, true, 0};
  if (value.as<AddNode>()) return &sum;
  if (value.as<MulNode>()) return &product;
  if (value.as<MaxNode>()) return &most;
  return value.as<MinNode>() ? &least : nullptr;
}

std::pair<PrimExpr, PrimExpr> Operands(const PrimExpr& value) {
  if (const auto* op = value.as<AddNode>()) return {op->a, op->b};
  if (const auto* op = value.as<MulNode>()) return {op->a, op->b};
  if (const auto* op = value.as<MaxNode>()) return {op->a, op->b};
  if (const auto* op = value.as<MinNode>()) return {op->a, op->b};
  return {};
}

/*! \brief A reduction of one result: its store, the conditions around it, and how it combines. */
struct Update {
  const BufferStoreNode* store;
  Array<PrimExpr> guards;
  const Combiner* combiner;
  /*! \brief What is combined into the result so far. */
  PrimExpr source;
};

Update Unwrap(const Tree& tree, Id id, Stmt stmt) {
  Update update;
  const auto* branch = stmt.as<IfThenElseNode>();
  for (; branch && !branch->else_case.defined(); branch = stmt.as<IfThenElseNode>()) {
    update.guards.push_back(branch->condition);
    stmt = branch->then_case;
  }
  update.store = stmt.as<BufferStoreNode>();
  TVM_CHECK(update.store != nullptr, ScheduleError)
      << "block " << tree.NameOf(id)
      << " has several results or computes them in several statements, of which rfactor does not "
         "know how to combine them; reduce one result";
  const PrimExpr& value = update.store->value;
  update.combiner = CombinerOf(value);
  auto [a, b] = Operands(value);
  auto is_result = [&](const PrimExpr& expr) {
    const auto* load = expr.as<BufferLoadNode>();
    return load != nullptr && load->buffer.same_as(update.store->buffer) &&
           SameIndices(load->indices, update.store->indices);
  };
  if (update.combiner != nullptr && is_result(a)) {
    update.source = b;
  } else if (update.combiner != nullptr && is_result(b)) {
    update.source = a;
  }
  TVM_CHECK(update.source.defined(), ScheduleError)
      << "block " << tree.NameOf(id) << " combines by " << value
      << "; rfactor knows sums, products, maxima and minima";
  return update;
}

bool IsNeutral(const Combiner& combiner, const PrimExpr& first) {
  if (combiner.idempotent) return true;
  if (const auto* literal = first.as<IntImmNode>()) {
    return static_cast<double>(literal->value) == combiner.neutral;
  }
  const auto* literal = first.as<FloatImmNode>();
  return literal != nullptr && literal->value == combiner.neutral;
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
  TVM_CHECK(fed.reducing.Contains(loop.var), ScheduleError)
      << "loop " << loop.name() << " does not feed the reduction of block " << block.name
      << "; those that do are " << (names.empty() ? "none" : names);
  Stmt body = tree->Body(id);
  Update update = Unwrap(*tree, id, body);
  const Combiner& combiner = *update.combiner;
  const Buffer& result = update.store->buffer;
  const auto* init = block.init.as<BufferStoreNode>();
  TVM_CHECK(init != nullptr && IsNeutral(combiner, init->value), ScheduleError)
      << "the first value of block " << block.name
      << " is not neutral, so it cannot start several partial results";
  int64_t rank = static_cast<int64_t>(update.store->indices.size());
  TVM_CHECK(-rank - 1 <= factor_axis && factor_axis <= rank, ScheduleError)
      << result->name << " has " << rank << " axes, so factor_axis is from " << -rank - 1 << " to "
      << rank << ", got " << factor_axis;
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
  Buffer partial = decl_buffer(with_factor(result->shape, loop.extent), result->dtype,
                               tree->NewBufferName(result->name + "_rf"), result.scope());
  VarMap values;
  Array<IterVar> iters = FreshIters(block.Spatial(), "", &values);
  Array<PrimExpr> iter_values;
  for (const IterVar& iv : block.Spatial()) iter_values.push_back(block.ValueOf(iv->var));
  VarMap inner, units;
  auto add_iter = [&](const LoopItem& item, IterVarType type) {
    iters.push_back(IterVar(item.range(), Var("v" + item.name(), item.var.dtype()), type));
    iter_values.push_back(item.var);
    inner[item.var.get()] = iters.back()->var;
  };
  add_iter(loop, kDataPar);
  PrimExpr lane = iters.back()->var - loop.min;
  for (Id item : path) {
    const LoopItem& l = tree->loop(item);
    if (fed.reducing.Contains(l.var) && item != loop_id) add_iter(l, kCommReduce);
  }
  for (Id item : path) {
    const LoopItem& l = tree->loop(item);
    if (l.IsUnit() && !inner.count(l.var.get())) units[l.var.get()] = l.min;
  }
  for (const IterVar& iv : block.Reducing()) {
    values[iv->var.get()] = Substitute(Substitute(block.ValueOf(iv->var), units), inner);
  }
  Array<PrimExpr> guards, outer;
  for (const PrimExpr& guard : update.guards) guards.push_back(Substitute(guard, values));
  for (const PrimExpr& condition : block.predicate) {
    if (VarsOf(condition).Intersects(fed.reducing)) {
      guards.push_back(Substitute(condition, inner));
    } else {
      outer.push_back(condition);
    }
  }
  Array<PrimExpr> place = with_factor(
      update.store->indices.Map([&](const PrimExpr& at) { return Substitute(at, values); }), lane);
  Stmt step = BufferStore(
      partial, combiner.combine(BufferLoad(partial, place), Substitute(update.source, values)),
      place);
  if (!guards.empty()) {
    PrimExpr all = guards[0];
    for (size_t i = 1; i < guards.size(); ++i) all = all && guards[i];
    step = IfThenElse(all, step);
  }
  Id first = tree->AddBlock(
      BlockLike(block, tree->NewBlockName(block.name + "_rf"), iters, iter_values,
                BufferStore(partial, combiner.identity(partial->dtype), place), outer),
      step);

  // Their combination: the block itself, with loops of its own behind the nest.
  Ids twins;
  VarMap moved;
  for (Id item : inside) {
    const LoopItem& l = tree->loop(item);
    if (fed.spatial.Contains(l.var)) {
      twins.push_back(TwinLoop(tree, item, l.name()));
      moved[l.var.get()] = tree->loop(twins.back()).var;
    } else if (item != loop_id) {
      moved[l.var.get()] = l.min;
    }
  }
  for (Id twin : twins) {
    LoopItem* made = tree->EditLoop(twin);
    made->extent = Substitute(made->extent, moved);
  }
  twins.push_back(TwinLoop(tree, loop_id, loop.name()));
  VarMap own;
  Array<IterVar> own_iters = FreshIters(block.Spatial(), "", &own);
  IterVar again(loop.range(), Var("v" + loop.name(), loop.var.dtype()), kCommReduce);
  own_iters.push_back(again);
  Array<PrimExpr> own_values;
  for (const IterVar& iv : block.Spatial()) {
    own_values.push_back(Substitute(block.ValueOf(iv->var), moved));
  }
  own_values.push_back(tree->loop(twins.back()).var);
  tree->Replace(block.parent, id, first);
  BlockItem* combined = tree->EditBlock(id);
  combined->iter_vars = own_iters;
  combined->iter_values = own_values;
  combined->predicate =
      outer.Map([&](const PrimExpr& condition) { return Substitute(condition, moved); });
  Array<PrimExpr> at =
      update.store->indices.Map([&](const PrimExpr& index) { return Substitute(index, own); });
  tree->SetBody(
      id,
      BufferStore(result,
                  combiner.combine(BufferLoad(result, at),
                                   BufferLoad(partial, with_factor(at, again->var - loop.min))),
                  at),
      Substitute(block.init, own));
  Id behind = tree->Nest(twins, {id});
  Id parent = (*tree)[top].parent;
  tree->Insert(parent, tree->IndexOf(parent, top) + 1, behind);
  tree->Allocate(partial);
  Tidy(tree, first);
  Tidy(tree, id);
  return first;
}

}  // namespace sched
}  // namespace tir
}  // namespace tvm
