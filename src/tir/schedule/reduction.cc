/*!
 * \file reduction.cc
 * \brief The primitive that writes the first values of a reduction in a block of their own.
 */
#include <tvm/arith/pattern.h>
#include <tvm/node/structural_equal.h>

#include <algorithm>
#include <cstdlib>

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

namespace {

/*! \brief The variables of `vars` of which a box tells the value: no two values share an element.
 */
VarSet ToldBy(const BufferRegion& box, const VarSet& vars) {
  VarSet told;
  for (const Range& range : box->region) {
    VarSet used = VarsOf(range->min) & vars;
    std::optional<int64_t> length = AsInt(range->extent);
    if (used.size() != 1 || !length) continue;
    Array<PrimExpr> steps = arith::DetectLinearEquation(range->min, {*used.begin()});
    if (!steps.empty() && std::abs(AsInt(steps[0]).value_or(0)) >= *length) told.Add(used);
  }
  return told;
}

/*! \brief Whether a statement reaches a buffer by its pointer, or by another name. */
bool ReachesOtherwise(const Stmt& stmt, const Buffer& buffer) {
  bool found = false;
  PostOrderVisit(stmt, [&](const ObjectRef& node) {
    found |= node.get() == buffer->data.get();
    if (const auto* inner = node.as<BlockNode>()) {
      for (const MatchBufferRegion& view : inner->match_buffers) {
        found |= view->source->buffer.same_as(buffer);
      }
    }
  });
  return found;
}

/*!
 * \brief Require that the first values of a block around others may be written before `loop`.
 *
 * What the block computes need not be known for that: between the first values of an element and
 * the first instance that reads or writes it nothing else may touch it, and each element belongs
 * to the instances of one choice of spatial variables.
 */
void RequireOwnStart(const Tree& tree, Id id, Id loop) {
  const BlockItem& block = tree.block(id);
  auto check = [&](bool holds, const std::string& why) {
    TVM_CHECK(holds, ScheduleError)
        << "the first values of block " << block.name << " cannot be written before loop "
        << tree.NameOf(loop) << ": " << why;
  };
  check(block.init.defined(), "it has no init");
  Array<IterVar> spatial = block.Spatial(), reducing = block.Reducing();
  check(spatial.size() + reducing.size() == block.iter_vars.size() && !block.erratic,
        "which instances it has is not known");
  check(!std::any_of(reducing.begin(), reducing.end(),
                     [&](const IterVar& iv) { return VarsOf(block.init).Contains(iv->var); }),
        "they depend on reducing variables");
  check(block.total && StartsAtFirst(tree, id), "not every element is known to start with them");
  const Stmt body = tree.Body(id);
  AccessRegions first = DetectAccessRegions(block.init), later = DetectAccessRegions(body);
  check(first.reads.empty(), "they are computed of what is in memory");
  const Flows flows(tree);
  VarSet moving;
  for (const IterVar& iv : spatial) {
    if (!is_const_int(iv->dom->extent, 1)) moving.Add(iv->var);
  }
  for (const BufferRegion& box : first.writes) {
    const Buffer& buffer = box->buffer;
    check(moving.IsSubsetOf(ToldBy(box, moving)),
          "several of its instances write one element of " + std::string(buffer->name));
    for (const BufferRegion& other : Concat(later.reads, later.writes)) {
      check(
          !other->buffer.same_as(buffer) || StructuralEqual()(other, box),
          "an instance uses elements of " + std::string(buffer->name) + " that it does not start");
    }
    check(!ReachesOtherwise(body, buffer) && !ReachesOtherwise(block.init, buffer),
          std::string(buffer->name) + " is reached by a pointer or under another name");
    for (Id unit : flows[buffer].Users()) {
      check(!tree.IsUnder(unit, loop) || unit == id || tree.IsUnder(unit, id),
            tree.NameOf(unit) + " under that loop uses " + std::string(buffer->name) + " as well");
    }
  }
  std::string why = OrderError(tree, id);
  check(why.empty(), why);
}

}  // namespace

Id DecomposeReduction(Tree* tree, Id id, Id loop) {
  if (tree->IsLeafBlock(id) || KindOf(*tree, id) == BlockKind::kReduction) {
    RequireReduction(*tree, id);
  } else {
    RequireOwnStart(*tree, id, loop);
  }
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
