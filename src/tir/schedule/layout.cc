/*!
 * \file layout.cc
 * \brief Primitives that lay out a buffer, or the variables of a block, by a map of indices.
 */
#include <tvm/expr/builtin.h>

#include <algorithm>

#include "buffers.h"
#include "primitives.h"
#include "rewrite.h"

namespace tvm {
namespace tir {
namespace sched {
namespace {

/*! \brief Simplifies indices, each after those that it holds. */
class IndexSimplifier final : public StmtExprMutator {
 public:
  explicit IndexSimplifier(arith::Analyzer* analyzer) : analyzer_(analyzer) {}

 private:
  using StmtExprMutator::VisitExpr_;
  using StmtExprMutator::VisitStmt_;

  PrimExpr VisitExpr_(const BufferLoadNode* op) final {
    auto load = Downcast<BufferLoad>(StmtExprMutator::VisitExpr_(op));
    return BufferLoad(load->buffer, Simple(load->indices));
  }

  Stmt VisitStmt_(const BufferStoreNode* op) final {
    auto store = Downcast<BufferStore>(StmtExprMutator::VisitStmt_(op));
    return BufferStore(store->buffer, store->value, Simple(store->indices));
  }

  Array<PrimExpr> Simple(const Array<PrimExpr>& indices) const {
    return indices.Map([this](const PrimExpr& index) { return analyzer_->Simplify(index); });
  }

  arith::Analyzer* analyzer_;
};

/*! \brief Ranges of all variables that the program binds, for simplifying indices. */
void BindWithin(const Stmt& stmt, arith::Analyzer* analyzer) {
  PostOrderVisit(stmt, [&](const ObjectRef& node) {
    if (const auto* loop = node.as<ForNode>()) {
      analyzer->Bind(loop->loop_var, Range::FromMinExtent(loop->min, loop->extent), true);
    } else if (const auto* block = node.as<BlockNode>()) {
      for (const IterVar& iv : block->iter_vars) analyzer->Bind(iv->var, iv->dom, true);
    }
  });
}

void BindAll(const Tree& tree, arith::Analyzer* analyzer) {
  for (Id id : tree.Preorder(tree.root())) {
    if (tree.IsLoop(id)) {
      analyzer->Bind(tree.loop(id).var, tree.loop(id).range(), true);
    } else if (tree.IsBlock(id)) {
      for (const IterVar& iv : tree.block(id).iter_vars) analyzer->Bind(iv->var, iv->dom, true);
      // That of a block around others has loops and blocks of its own.
      if (tree.block(id).init.defined()) BindWithin(tree.block(id).init, analyzer);
    } else {
      BindWithin(tree.leaf(id).stmt, analyzer);
    }
  }
}

Array<Range> FromZero(const Array<PrimExpr>& shape) {
  return shape.Map([](const PrimExpr& extent) {
    return Range::FromMinExtent(make_const(extent.dtype(), 0), extent);
  });
}

/*! \brief What stands in elements that no index of the old layout reaches. */
PrimExpr PadAt(const Optional<IndexMap>& pad, const Array<PrimExpr>& place, DataType dtype) {
  const IndexMap& map = pad.value();
  std::unordered_map<const VarNode*, PrimExpr> values;
  for (size_t i = 0; i < map->initial_indices.size(); ++i) {
    int64_t at = static_cast<int64_t>(i);
    values[map->initial_indices[at].get()] = place[at];
  }
  PrimExpr value = Substitute(map->final_indices[0], values);
  return value.dtype() == dtype ? value : cast(dtype, value);
}

struct Layout {
  Buffer from, to;
  IndexMap map, back;
  /*! \brief In terms of the indices of `back`: which elements are padding; undefined if none. */
  PrimExpr padding;
};

/*! \brief Loops and a block over all elements of a buffer. */
struct Sweep {
  Ids loops;
  Array<IterVar> iters;
  Array<PrimExpr> values, place;
  std::unordered_map<const VarNode*, PrimExpr> of_back;
};

Sweep SweepOver(Tree* tree, const Layout& layout) {
  Sweep sweep;
  for (size_t d = 0; d < layout.to->shape.size(); ++d) {
    int64_t at = static_cast<int64_t>(d);
    const PrimExpr& extent = layout.to->shape[at];
    const Var& name = layout.back->initial_indices[at];
    sweep.loops.push_back(tree->AddLoop(name->name_hint, extent.dtype(), extent));
    Range dom = Range::FromMinExtent(make_const(extent.dtype(), 0), extent);
    Var var("v_" + std::string(name->name_hint), extent.dtype());
    sweep.iters.push_back(IterVar(dom, var, kDataPar));
    sweep.values.push_back(tree->loop(sweep.loops.back()).var);
    sweep.place.push_back(var);
    sweep.of_back[name.get()] = var;
  }
  return sweep;
}

/*! \brief Let the block that writes all of a buffer write the padding too; false if it cannot. */
bool PadInBlock(Tree* tree, Id id, const Layout& layout, const Optional<IndexMap>& pad) {
  Stmt body = tree->Body(id);
  const auto* store = body.as<BufferStoreNode>();
  const BlockItem block = tree->block(id);
  if (store == nullptr || KindOf(*tree, id) != BlockKind::kComplete || !block.predicate.empty() ||
      !WritesEveryElement(*tree, id, layout.from) ||
      block.iter_vars.size() != store->indices.size() ||
      SideEffect(store->value) > CallEffectKind::kReadState) {
    return false;
  }
  for (size_t d = 0; d < store->indices.size(); ++d) {
    if (!store->indices[static_cast<int64_t>(d)].as<VarNode>()) return false;
  }
  Ids loops = tree->LoopsAbove(id);
  for (Id loop : loops) {
    const LoopItem& l = tree->loop(loop);
    bool plain = l.for_kind == ForKind::kSerial && l.annotations.empty();
    if ((*tree)[loop].children.size() != 1 || !plain) return false;
  }
  Sweep sweep = SweepOver(tree, layout);
  std::unordered_map<const VarNode*, PrimExpr> values;
  for (size_t d = 0; d < store->indices.size(); ++d) {
    int64_t at = static_cast<int64_t>(d);
    values[store->indices[at].as<VarNode>()] =
        Substitute(layout.back->final_indices[at], sweep.of_back);
  }
  arith::Analyzer analyzer;
  for (const IterVar& iv : sweep.iters) analyzer.Bind(iv->var, iv->dom);
  PrimExpr value = analyzer.Simplify(Substitute(store->value, values));
  PrimExpr outside = Substitute(layout.padding, sweep.of_back);
  PrimExpr filled = if_then_else(outside, PadAt(pad, sweep.place, layout.to->dtype), value);
  Id top = loops.empty() ? id : loops.front();
  Id parent = (*tree)[top].parent;
  size_t slot = tree->IndexOf(parent, top);
  BlockItem* own = tree->EditBlock(id);
  own->iter_vars = sweep.iters;
  own->iter_values = sweep.values;
  own->given = VarSet();
  Id nest = tree->Nest(sweep.loops, {id});
  tree->Edit(parent)->children[slot] = nest;
  tree->Edit(nest)->parent = parent;
  tree->SetBody(id, BufferStore(layout.to, filled, sweep.place));
  return true;
}

/*! \brief Write the padding after all else that writes a buffer. */
void PadAfterwards(Tree* tree, Id writer, const Layout& layout, const Optional<IndexMap>& pad) {
  Sweep sweep = SweepOver(tree, layout);
  Stmt store = BufferStore(layout.to, PadAt(pad, sweep.place, layout.to->dtype), sweep.place);
  Stmt body = IfThenElse(Substitute(layout.padding, sweep.of_back), store);
  auto item = std::make_shared<BlockItem>(
      tree->NewBlockName(tree->NameOf(writer) + "_pad_" + layout.to->name), sweep.iters,
      sweep.values);
  Id block = tree->AddBlock(item, body);
  Id scope = tree->ScopeOf(writer);
  tree->Insert(scope, tree->IndexOf(scope, writer) + 1, tree->Nest(sweep.loops, {block}));
}

/*! \brief Say of a buffer that the caller gives what stands in its padding. */
void AssumePadding(Tree* tree, const Layout& layout, const Optional<IndexMap>& pad) {
  Sweep sweep = SweepOver(tree, layout);
  PrimExpr outside = Substitute(layout.padding, sweep.of_back);
  PrimExpr holds = BufferLoad(layout.to, sweep.place) == PadAt(pad, sweep.place, layout.to->dtype);
  Stmt body = Evaluate(tir::Call(DataType::Bool(), Op::Get("tir.assume"), {!outside || holds}));
  auto item = std::make_shared<BlockItem>(
      tree->NewBlockName("buffer_" + std::string(layout.to->name) + "_assumptions"), sweep.iters,
      sweep.values);
  Id block = tree->AddBlock(item, body);
  tree->Insert(tree->root(), 0, tree->Nest(sweep.loops, {block}));
}

}  // namespace

void TransformLayout(Tree* tree, Id id, int64_t index, bool write, const IndexMap& given,
                     const Optional<IndexMap>& pad, bool assume_injective) {
  Layout layout;
  layout.from = BufferAt(*tree, id, index, write);
  const Buffer& buffer = layout.from;
  TVM_CHECK(buffer->strides.empty(), ScheduleError)
      << buffer->name << " has strides, which say how it is laid out";
  TVM_CHECK(given->initial_indices.size() == buffer->shape.size(), ScheduleError)
      << "the index map takes " << given->initial_indices.size() << " indices, and " << buffer->name
      << " has " << buffer->shape.size() << " axes";
  arith::Analyzer analyzer;
  BindAll(*tree, &analyzer);
  layout.map = given.WithDType(buffer.IndexDType());
  Array<PrimExpr> shape = layout.map->MapShape(buffer->shape, &analyzer);
  layout.to = buffer;
  layout.to.CopyOnWrite()->shape = shape;
  if (!assume_injective) {
    try {
      auto [back, padding] = layout.map.NonSurjectiveInverse(FromZero(buffer->shape), &analyzer);
      layout.back = back;
      if (!is_const_int(padding, 0)) layout.padding = padding;
    } catch (const Error& error) {
      if (error.kind() != "ValueError") throw;
      TVM_FATAL(ScheduleError) << error.message();
    }
  }
  TVM_CHECK(!layout.padding.defined() || pad.defined(), ScheduleError)
      << "the layout has elements that no element of " << buffer->name << " comes to: those where "
      << layout.padding << "; give pad_value";
  Ids writers;
  for (Id user : UsersOf(*tree, buffer)) {
    std::shared_ptr<const Access> access = AccessOf(*tree, user);
    TVM_CHECK(!access->opaque, ScheduleError)
        << (tree->IsBlock(user) ? tree->NameOf(user) : "a statement") << " accesses "
        << buffer->name << " in ways that are not all known";
    if (access->Writes(buffer)) writers.push_back(user);
  }
  bool padded = layout.padding.defined();
  bool done = padded && writers.size() == 1 && tree->IsBlock(writers[0]) &&
              PadInBlock(tree, writers[0], layout, pad);
  BufferChange change{buffer, layout.to, nullptr, nullptr};
  change.indices = [&](const Array<PrimExpr>& indices) {
    return layout.map->MapIndices(indices, &analyzer);
  };
  change.region = [&](const Array<Range>& region) {
    return layout.map->MapRanges(region, &analyzer);
  };
  for (Id child : Ids((*tree)[tree->root()].children)) ChangeBuffer(tree, child, change);
  if (tree->IsParam(buffer)) {
    tree->ReplaceParam(buffer, layout.to);
  } else {
    tree->Forget(buffer, layout.to);
  }
  if (tree->IsPinned(buffer)) tree->Pin(layout.to);
  if (padded && !done && writers.empty()) AssumePadding(tree, layout, pad);
  if (padded && !done && !writers.empty()) PadAfterwards(tree, writers.back(), layout, pad);
}

namespace {

/*! \brief The kind of a variable that is computed of others, all of one kind. */
IterVarType KindOfMapped(const BlockItem& block, const PrimExpr& index, const IndexMap& map) {
  std::optional<IterVarType> kind;
  VarSet used = VarsOf(index);
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    int64_t at = static_cast<int64_t>(i);
    if (!used.Contains(map->initial_indices[at])) continue;
    IterVarType own = block.iter_vars[at]->iter_type;
    TVM_CHECK(kind.value_or(own) == own, ScheduleError)
        << "the index " << index << " mixes spatial and reducing variables of block " << block.name;
    kind = own;
  }
  return kind.value_or(kDataPar);
}

}  // namespace

void TransformBlockLayout(Tree* tree, Id id, const IndexMap& given) {
  const BlockItem block = tree->block(id);
  TVM_CHECK(tree->IsLeafBlock(id), ScheduleError)
      << "block " << block.name << " holds other blocks; name one that holds none";
  TVM_CHECK(block.predicate.empty(), ScheduleError)
      << "block " << block.name << " has a predicate; transform its layout before splitting loops";
  TVM_CHECK(given->initial_indices.size() == block.iter_vars.size(), ScheduleError)
      << "the index map takes " << given->initial_indices.size() << " indices, and block "
      << block.name << " has " << block.iter_vars.size() << " variables";
  TVM_CHECK(!WritesPinned(*tree, id) && KindOf(*tree, id) != BlockKind::kOpaque, ScheduleError)
      << "what block " << block.name << " writes depends on the order of its iterations";
  Ids loops = tree->LoopsAbove(id), own;
  VarSet seen;
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    int64_t at = static_cast<int64_t>(i);
    const PrimExpr& value = block.iter_values[at];
    const Range& dom = block.iter_vars[at]->dom;
    auto loop = std::find_if(loops.begin(), loops.end(),
                             [&](Id l) { return tree->loop(l).var.same_as(value); });
    bool plain = loop != loops.end() && !seen.Contains(tree->loop(*loop).var) &&
                 is_zero(tree->loop(*loop).min) && is_zero(dom->min) &&
                 ExprDeepEqual()(tree->loop(*loop).extent, dom->extent);
    bool unit = is_const_int(dom->extent, 1) && VarsOf(value).empty();
    TVM_CHECK(plain || unit, ScheduleError)
        << "variable " << block.iter_vars[at]->var << " of block " << block.name << " is " << value
        << " and not a loop over its domain; transform the layout before loops are changed";
    if (plain) seen.Add(tree->loop(*loop).var);
  }
  for (Id loop : loops) {
    const LoopItem& l = tree->loop(loop);
    if (seen.Contains(l.var)) own.push_back(loop);
  }
  Ids tail(loops.end() - static_cast<std::ptrdiff_t>(own.size()), loops.end());
  TVM_CHECK(own == tail, ScheduleError)
      << "between the loops of block " << block.name << " are others; reorder first";
  for (Id loop : own) {
    const LoopItem& l = tree->loop(loop);
    TVM_CHECK((*tree)[loop].children.size() == 1 && l.for_kind == ForKind::kSerial &&
                  l.annotations.empty(),
              ScheduleError)
        << "loop " << l.name() << " has a kind or annotations, or holds more than block "
        << block.name;
  }
  DataType dtype = block.iter_vars.empty() ? DataType::Int(32) : block.iter_vars[0]->var.dtype();
  IndexMap map = given.WithDType(dtype);
  arith::Analyzer analyzer;
  Array<PrimExpr> extents;
  for (const IterVar& iv : block.iter_vars) extents.push_back(iv->dom->extent);
  Array<PrimExpr> shape = map->MapShape(extents, &analyzer);
  PrimExpr before = make_const(dtype, 1), after = before;
  for (const PrimExpr& extent : extents) before = before * extent;
  for (const PrimExpr& extent : shape) after = after * extent;
  TVM_CHECK(analyzer.CanProveEqual(before, after), ScheduleError)
      << "the map gives block " << block.name << " loops over " << shape
      << ", which are not as many instances as " << extents << "; tiles must divide the extents";
  IndexMap back;
  try {
    back = map.Inverse(FromZero(extents), &analyzer);
  } catch (const Error& error) {
    if (error.kind() != "ValueError") throw;
    TVM_FATAL(ScheduleError) << error.message();
  }
  Ids made;
  Array<IterVar> iters;
  Array<PrimExpr> values;
  VarMap of_back, replaced;
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t at = static_cast<int64_t>(d);
    made.push_back(tree->AddLoop("ax" + std::to_string(d), dtype, shape[at]));
    Var var("v" + std::to_string(d), dtype);
    Range dom = Range::FromMinExtent(make_const(dtype, 0), shape[at]);
    iters.push_back(IterVar(dom, var, KindOfMapped(block, map->final_indices[at], map)));
    values.push_back(tree->loop(made.back()).var);
    of_back[back->initial_indices[at].get()] = var;
    analyzer.Bind(var, dom);
  }
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    int64_t at = static_cast<int64_t>(i);
    replaced[block.iter_vars[at]->var.get()] =
        analyzer.Simplify(Substitute(back->final_indices[at], of_back));
  }
  Id top = own.empty() ? id : own.front();
  Id parent = (*tree)[top].parent;
  size_t slot = tree->IndexOf(parent, top);
  tree->ReplaceBodyVars(id, replaced);
  BlockItem* edited = tree->EditBlock(id);
  edited->iter_vars = iters;
  edited->iter_values = values;
  IndexSimplifier simplifier(&analyzer);
  Stmt init = edited->init;
  tree->SetBody(id, simplifier(tree->Body(id)), init.defined() ? simplifier(init) : init);
  edited = tree->EditBlock(id);
  edited->given = VarSet();
  Id nest = made.empty() ? id : tree->Nest(made, {id});
  tree->Edit(parent)->children[slot] = nest;
  tree->Edit(nest)->parent = parent;
  VarSet given_loops = FindGiven(*tree, id);
  tree->EditBlock(id)->given = given_loops;
}

void ReorderBlockIterVars(Tree* tree, Id id, const std::vector<int64_t>& order) {
  const BlockItem block = tree->block(id);
  std::vector<int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  bool permutes = sorted.size() == block.iter_vars.size();
  for (size_t i = 0; permutes && i < sorted.size(); ++i) {
    permutes = sorted[i] == static_cast<int64_t>(i);
  }
  std::string text;
  for (int64_t at : order) AddItem(&text, std::to_string(at));
  TVM_CHECK(permutes, ScheduleError)
      << "[" << text << "] does not name each of the " << block.iter_vars.size()
      << " variables of block " << block.name << " once, from 0 on";
  Array<IterVar> iters;
  Array<PrimExpr> values;
  for (int64_t at : order) {
    iters.push_back(block.iter_vars[at]);
    values.push_back(block.iter_values[at]);
  }
  BlockItem* edited = tree->EditBlock(id);
  edited->iter_vars = iters;
  edited->iter_values = values;
}

}  // namespace sched
}  // namespace tir
}  // namespace tvm
