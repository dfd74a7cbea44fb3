/*!
 * \file reduction.cc
 * \brief The primitive that writes the first values of a reduction in a block of their own.
 */
#include <algorithm>

#include "primitives.h"

namespace tvm {
namespace tir {
namespace sched {

void RequireReduction(const Tree& tree, Id id) {
  TVM_CHECK(!WritesPinned(tree, id) && KindOf(tree, id) == BlockKind::kReduction, ScheduleError)
      << "block " << tree.NameOf(id)
      << " is no reduction with an init, of which it is known that the order of its iterations "
         "does not matter";
  std::string why = OrderError(tree, id);
  TVM_CHECK(why.empty(), ScheduleError) << "block " << tree.NameOf(id) << ": " << why;
}

Id TwinLoop(Tree* tree, Id id, const std::string& name) {
  const LoopItem& loop = tree->loop(id);
  Id twin = tree->AddLoop(name, loop.var.dtype(), loop.extent);
  LoopItem* made = tree->EditLoop(twin);
  made->min = loop.min;
  if (loop.for_kind == ForKind::kThreadBinding) made->for_kind = loop.for_kind;
  // Each loop names its thread itself, so that two of them do not share a node.
  if (loop.thread_binding) {
    const IterVar& thread = loop.thread_binding.value();
    made->thread_binding = IterVar(thread->dom, thread->var.copy_with_suffix(""), thread->iter_type,
                                   thread->thread_tag);
  }
  return twin;
}

Array<IterVar> FreshIters(const Array<IterVar>& iters, const std::string& suffix, VarMap* renamed) {
  Array<IterVar> made;
  for (const IterVar& iv : iters) {
    made.push_back(IterVar(iv->dom, iv->var.copy_with_suffix(suffix), iv->iter_type));
    (*renamed)[iv->var.get()] = made.back()->var;
  }
  return made;
}

std::shared_ptr<BlockItem> BlockLike(const BlockItem& block, String name, Array<IterVar> iter_vars,
                                     Array<PrimExpr> iter_values, Stmt init,
                                     Array<PrimExpr> predicate) {
  auto made = std::make_shared<BlockItem>(name, iter_vars, iter_values, init, predicate);
  made->given = block.given;
  made->covers = block.covers;
  made->total = block.total;
  return made;
}

Id DecomposeReduction(Tree* tree, Id id, Id loop) {
  RequireReduction(*tree, id);
  Ids path = tree->LoopsAbove(id);
  auto at = std::find(path.begin(), path.end(), loop);
  std::string names = tree->NamesOf(path);
  TVM_CHECK(at != path.end(), ScheduleError)
      << "loop " << tree->NameOf(loop) << " is not around block " << tree->NameOf(id)
      << "; the loops around it are " << (names.empty() ? "none" : names);
  Feeds fed = FeedsOf(*tree, id);
  for (auto outer = path.begin(); outer != at; ++outer) {
    const std::string& name = tree->NameOf(*outer);
    TVM_CHECK(!fed.reducing.Contains(tree->loop(*outer).var), ScheduleError)
        << "loop " << name << " around " << tree->NameOf(loop) << " feeds the reduction of block "
        << tree->NameOf(id) << ", so the first values would be written again; give loop " << name
        << " or one around it";
  }
  Ids inside(at, path.end());
  const BlockItem block = tree->block(id);
  VarSet repeated = tree->VarsOfLoops(inside) & block.given;
  TVM_CHECK(repeated.empty(), ScheduleError)
      << "loop " << repeated.Names() << " inside of " << tree->NameOf(loop)
      << " runs the same elements of block " << block.name << " again; give a loop inside of it";
  Ids twins;
  VarMap values;
  for (Id item : inside) {
    const LoopItem& old = tree->loop(item);
    if (fed.spatial.Contains(old.var)) {
      twins.push_back(TwinLoop(tree, item, old.name() + "_init"));
      values[old.var.get()] = tree->loop(twins.back()).var;
    } else {
      // Unit loops of the reduction are not copied, but may be in an expression.
      values[old.var.get()] = old.min;
    }
  }
  for (Id item : inside) {
    // First values are as independent as what is added to them.
    const LoopItem& old = tree->loop(item);
    auto twin = values.find(old.var.get());
    for (Id made : twins) {
      if (!tree->loop(made).var.same_as(twin->second)) continue;
      LoopItem* loop_of_init = tree->EditLoop(made);
      loop_of_init->for_kind = old.for_kind;
      loop_of_init->annotations = old.annotations;
      loop_of_init->extent = Substitute(loop_of_init->extent, values);
    }
  }
  VarMap renamed;
  Array<IterVar> iters = FreshIters(block.Spatial(), "_init", &renamed);
  Array<PrimExpr> iter_values, predicate;
  for (const IterVar& iv : block.Spatial()) {
    iter_values.push_back(Substitute(block.ValueOf(iv->var), values));
  }
  for (const PrimExpr& condition : block.predicate) {
    if (!VarsOf(condition).Intersects(fed.reducing)) {
      predicate.push_back(Substitute(condition, values));
    }
  }
  Id first = tree->AddBlock(BlockLike(block, tree->NewBlockName(block.name + "_init"), iters,
                                      iter_values, Stmt(), predicate),
                            Substitute(block.init, renamed));
  Id parent = (*tree)[loop].parent;
  tree->Insert(parent, tree->IndexOf(parent, loop),
               twins.empty() ? first : tree->Nest(twins, {first}));
  Tidy(tree, first);
  tree->EditBlock(first)->annotations = block.annotations;
  tree->EditBlock(id)->name = tree->NewBlockName(block.name + "_update");
  tree->DropInit(id);
  BlockItem* update = tree->EditBlock(id);
  update->init_block = first;
  if (update->sealed) {
    update->sealed = BlockKind::kUpdate;
    tree->EditBlock(first)->sealed = BlockKind::kComplete;
  }
  return first;
}

}  // namespace sched
}  // namespace tir
}  // namespace tvm
