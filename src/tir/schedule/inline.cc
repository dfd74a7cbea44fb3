/*!
 * \file inline.cc
 * \brief Primitives that make one block of two by putting an expression in the place of a buffer.
 */
#include <algorithm>

#include "primitives.h"

namespace tvm {
namespace tir {
namespace sched {

Stmt MapLoads(const Stmt& stmt, const Buffer& buffer,
              const std::function<PrimExpr(const Array<PrimExpr>&)>& value) {
  auto exchange = [&](const ObjectRef& node) -> ObjectRef {
    const auto* load = node.as<BufferLoadNode>();
    return load->buffer.same_as(buffer) ? value(load->indices) : PrimExpr();
  };
  return IRTransform(stmt, nullptr, exchange, {"tir.BufferLoad"});
}

namespace {

/*! \brief Which instance of a block accesses an element of a buffer, if any does. */
struct Origin {
  /*! \brief Names of the element's indices. */
  Array<Var> axes;
  /*! \brief The block's variables in terms of `axes`. */
  VarMap values;
  /*! \brief What holds of elements that an instance accesses. */
  Array<PrimExpr> conditions;

  VarMap At(const Array<PrimExpr>& indices) const {
    VarMap named, found;
    for (size_t d = 0; d < axes.size(); ++d) named[axes[d].get()] = indices[d];
    for (const auto& [var, value] : values) found[var] = Substitute(value, named);
    return found;
  }
};

BufferStore OnlyStore(const Tree& tree, Id id) {
  RequireOwnVariables(tree, id);
  Stmt body = tree.Body(id);
  TVM_CHECK(KindOf(tree, id) == BlockKind::kComplete && body.as<BufferStoreNode>(), ScheduleError)
      << "block " << tree.NameOf(id)
      << " is not a single store whose value is computed from others; only such blocks can be "
         "inlined";
  return Downcast<BufferStore>(body);
}

void RequireFinal(const Tree& tree, Id id) {
  for (const Buffer& buffer : ReadBy(tree, id)) {
    TVM_CHECK(!tree.IsPinned(buffer), ScheduleError)
        << buffer->name << ", which block " << tree.NameOf(id)
        << " reads, does not have one final value, so the block must read it where it does";
  }
}

/*! \brief Each index is another variable, or constant where the axis has one element. */
std::optional<Origin> PlainOrigin(const BlockItem& block, const Array<PrimExpr>& indices,
                                  const Buffer& buffer, arith::Analyzer* analyzer) {
  Origin origin;
  for (const PrimExpr& index : indices) {
    const PrimExpr& extent = buffer->shape[static_cast<int64_t>(origin.axes.size())];
    Var axis("x" + std::to_string(origin.axes.size()), index.dtype());
    origin.axes.push_back(axis);
    if (is_const_int(extent, 1) && is_const_int(index, 0)) continue;
    auto iv = std::find_if(block.iter_vars.begin(), block.iter_vars.end(),
                           [&](const IterVar& own) { return own->var.same_as(index); });
    if (iv == block.iter_vars.end() || !origin.values.emplace((*iv)->var.get(), axis).second) {
      return std::nullopt;
    }
    const Range& domain = (*iv)->dom;
    if (!analyzer->CanProve(domain->min <= 0)) origin.conditions.push_back(axis >= domain->min);
    origin.conditions.push_back(axis < analyzer->Simplify(domain->min + domain->extent));
  }
  return origin;
}

/*! \brief The way back from `indices`, found by arithmetic; nothing if two instances share one. */
std::optional<Origin> MappedOrigin(const BlockItem& block, const Array<PrimExpr>& indices,
                                   arith::Analyzer* analyzer) {
  VarSet used;
  for (const PrimExpr& index : indices) used.Add(VarsOf(index));
  Array<Var> vars;
  Array<Range> domains;
  Array<PrimExpr> extents;
  for (const IterVar& iv : block.iter_vars) {
    if (!used.Contains(iv->var)) continue;
    if (!is_zero(iv->dom->min)) return std::nullopt;
    vars.push_back(iv->var);
    domains.push_back(iv->dom);
    extents.push_back(iv->dom->extent);
  }
  if (vars.size() != used.size()) return std::nullopt;
  IndexMap map(vars, indices);
  Origin origin;
  try {
    auto [back, padding] = map.NonSurjectiveInverse(domains, analyzer);
    origin.axes = back->initial_indices;
    for (size_t i = 0; i < vars.size(); ++i) {
      origin.values[vars[i].get()] = back->final_indices[static_cast<int64_t>(i)];
    }
    if (!is_const_int(padding, 0)) AddConjuncts(analyzer->Simplify(!padding), &origin.conditions);
  } catch (const Error& error) {
    if (error.kind() != "ValueError") throw;
    return std::nullopt;
  }
  Array<PrimExpr> reached = map->MapShape(extents, analyzer);
  for (size_t d = 0; d < reached.size(); ++d) {
    origin.conditions.push_back(origin.axes[static_cast<int64_t>(d)] < reached[d]);
  }
  return origin;
}

/*!
 * \brief The way back from the elements that a block accesses; ScheduleError if there is none.
 *
 * Each instance accesses one element, and no other instance accesses it.
 */
Origin OriginOf(const Tree& tree, Id id, const Array<PrimExpr>& given, const Buffer& buffer) {
  const BlockItem& block = tree.block(id);
  arith::Analyzer analyzer;
  VarMap units;
  for (const IterVar& iv : block.iter_vars) {
    analyzer.Bind(iv->var, iv->dom);
    if (is_const_int(iv->dom->extent, 1)) units[iv->var.get()] = iv->dom->min;
  }
  std::optional<Origin> origin = PlainOrigin(block, given, buffer, &analyzer);
  auto is_full = [&] {
    return origin &&
           std::all_of(block.iter_vars.begin(), block.iter_vars.end(), [&](const IterVar& iv) {
             const VarNode* var = iv->var.get();
             return units.count(var) || origin->values.count(var);
           });
  };
  if (!is_full()) {
    Array<PrimExpr> indices = given.Map(
        [&](const PrimExpr& index) { return analyzer.Simplify(Substitute(index, units)); });
    origin = MappedOrigin(block, indices, &analyzer);
  }
  TVM_CHECK(is_full(), ScheduleError)
      << "instances of block " << block.name << " do not each access one element of "
      << buffer->name << " of their own: from its place " << given
      << " the variables of the block cannot be told";
  for (const auto& [var, value] : units) origin->values.emplace(var, value);
  return *origin;
}

/*! \brief Whether a statement reaches a buffer otherwise than by loads and stores. */
bool PointsTo(const Tree& tree, Id id, const Buffer& buffer) {
  bool found = false;
  PostOrderVisit(tree.Body(id),
                 [&](const ObjectRef& node) { found = found || node.get() == buffer->data.get(); });
  for (const MatchBufferRegion& view : tree.block(id).match_buffers) {
    found |= view->source->buffer.same_as(buffer);
  }
  return found;
}

/*! \brief Value of an element of an inlined buffer. */
using ElementValue = std::function<PrimExpr(const Array<PrimExpr>&)>;

/*! \brief An expression without loads of a buffer. */
PrimExpr WithoutLoads(const PrimExpr& expr, const Buffer& buffer, const ElementValue& value) {
  if (!ReadsMemory(expr)) return expr;
  return MapLoads(Evaluate(expr), buffer, value).as<EvaluateNode>()->value;
}

/*!
 * \brief Declare what a block declared, and what it reads now in the place of a buffer.
 *
 * What is declared may itself be found by loads of the buffer, as where an index is kept in memory.
 */
void KeepDeclared(Tree* tree, Id id, const BlockItem& old, const Buffer& buffer,
                  const ElementValue& value) {
  auto without = [&](const BufferRegion& region) {
    Array<Range> box = region->region.Map([&](const Range& range) {
      return Range::FromMinExtent(WithoutLoads(range->min, buffer, value),
                                  WithoutLoads(range->extent, buffer, value));
    });
    return BufferRegion(region->buffer, box);
  };
  Array<BufferRegion> reads;
  for (const BufferRegion& region : old.reads) {
    if (!region->buffer.same_as(buffer)) reads.push_back(without(region));
  }
  for (const BufferRegion& region : tree->block(id).reads) {
    bool known = std::any_of(old.reads.begin(), old.reads.end(), [&](const BufferRegion& other) {
      return other->buffer.same_as(region->buffer);
    });
    if (!known) reads.push_back(region);
  }
  BlockItem* block = tree->EditBlock(id);
  block->reads = reads;
  block->writes = old.writes.Map(without);
}

/*! \brief Put values in the place of loads also where memory decides which instances run. */
void InlineIntoBindings(Tree* tree, Id id, const Buffer& buffer, const ElementValue& value) {
  auto exchange = [&](const PrimExpr& expr) { return WithoutLoads(expr, buffer, value); };
  BlockItem* block = tree->EditBlock(id);
  block->predicate.MutateByApply(exchange);
  block->iter_values.MutateByApply(exchange);
  for (Id above : tree->LoopsAbove(id)) {
    LoopItem* loop = tree->EditLoop(above);
    loop->min = exchange(loop->min);
    loop->extent = exchange(loop->extent);
  }
}

}  // namespace

void ComputeInline(Tree* tree, Id id) {
  BufferStore store = OnlyStore(*tree, id);
  const Buffer& buffer = store->buffer;
  const std::string name = tree->NameOf(id);
  TVM_CHECK(!tree->IsParam(buffer), ScheduleError)
      << "block " << name << " writes " << buffer->name
      << ", a result of the function, which has to be written";
  Flows flows(*tree);
  Ids consumers = flows[buffer].readers;
  std::erase_if(consumers, [&](Id consumer) { return !tree->IsBlock(consumer); });
  RequireSoleWriter(*tree, id, flows);
  RequireAllInstances(*tree, id);
  if (!consumers.empty()) RequireFinal(*tree, id);
  Origin origin = OriginOf(*tree, id, store->indices, buffer);
  for (Id consumer : consumers) {
    bool known = tree->IsLeafBlock(consumer) && !PointsTo(*tree, consumer, buffer);
    TVM_CHECK(known, ScheduleError) << "block " << tree->NameOf(consumer) << " reads "
                                    << buffer->name << " in ways that are not all known";
  }
  auto value = [&](const Array<PrimExpr>& indices) {
    return Substitute(store->value, origin.At(indices));
  };
  for (Id consumer : consumers) {
    Stmt init = tree->block(consumer).init;
    if (init.defined()) init = MapLoads(init, buffer, value);
    BlockItem old = tree->block(consumer);
    bool hides = AccessOf(*tree, consumer)->opaque;
    tree->SetBody(consumer, MapLoads(tree->Body(consumer), buffer, value), init);
    if (hides) KeepDeclared(tree, consumer, old, buffer, value);
  }
  for (Id block : tree->BlocksBelow(tree->root())) {
    if (tree->block(block).erratic) InlineIntoBindings(tree, block, buffer, value);
  }
  tree->Detach(id);
  tree->Forget(buffer);
}

namespace {

/*! \brief The one element of a buffer that each instance of a block reads. */
Array<PrimExpr> PlaceIn(const Tree& tree, Id id, const Buffer& buffer) {
  Array<PrimExpr> place(nullptr);
  std::shared_ptr<const Access> access = AccessOf(tree, id);
  for (const Touch& touch : access->reads) {
    if (!touch.buffer.same_as(buffer)) continue;
    bool same = !place.defined() || SameIndices(place, touch.indices);
    TVM_CHECK(same, ScheduleError) << "instances of block " << tree.NameOf(id)
                                   << " do not each read one element of " << buffer->name;
    place = touch.indices;
  }
  return place;
}

/*! \brief What a block reads besides one buffer. */
std::vector<Buffer> OthersRead(const Tree& tree, Id id, const Buffer& buffer) {
  std::vector<Buffer> others = ReadBy(tree, id);
  std::erase_if(others, [&](const Buffer& other) { return other.same_as(buffer); });
  return others;
}

/*! \brief Whether every instance of a block stands for an element at `place` that is written. */
bool ReadsWritten(const Tree& tree, Id id, const Array<PrimExpr>& place, const Buffer& buffer,
                  Id producer) {
  // What reads an element without asking relies on it.
  if (!Chooses(tree.Body(id))) return true;
  arith::Analyzer analyzer;
  for (const IterVar& iv : tree.block(id).iter_vars) analyzer.Bind(iv->var, iv->dom);
  for (size_t d = 0; d < place.size(); ++d) {
    const PrimExpr& index = place[static_cast<int64_t>(d)];
    if (!analyzer.CanProve(index >= 0) || !analyzer.CanProve(index < buffer->shape[d])) {
      return false;
    }
  }
  return WritesEveryElement(tree, producer, buffer);
}

/*! \brief Place at which a block reads a buffer whose only producer may compute what it does. */
Origin RequireMergeable(const Tree& tree, Id id, const Buffer& buffer, const Flows& flows,
                        const Order& order) {
  const Ids& writers = flows[buffer].writers;
  TVM_CHECK(writers.size() == 1 && tree.IsBlock(writers[0]), ScheduleError)
      << buffer->name << " is not written by one block";
  Id producer = writers[0];
  OnlyStore(tree, producer);
  Array<PrimExpr> place = PlaceIn(tree, id, buffer);
  Origin origin = OriginOf(tree, id, place, buffer);
  TVM_CHECK(ReadsWritten(tree, id, place, buffer, producer), ScheduleError)
      << "block " << tree.NameOf(id) << " does not read " << buffer->name
      << " in all of its instances, and block " << tree.NameOf(producer)
      << " may not write all of it";
  for (const Buffer& other : OthersRead(tree, id, buffer)) {
    for (Id writer : flows[other].writers) {
      TVM_CHECK(!order.IsBefore(producer, writer), ScheduleError)
          << "block " << tree.NameOf(producer) << " runs before all that " << tree.NameOf(id)
          << " reads";
    }
  }
  return origin;
}

void Merge(Tree* tree, Id id, const BufferStore& store, const Buffer& buffer, Id producer,
           const Origin& origin, const Flows& flows) {
  BufferStore made = Downcast<BufferStore>(tree->Body(producer));
  const BlockItem block = tree->block(id);
  const std::string& maker = tree->NameOf(producer);
  std::vector<Buffer> others = OthersRead(*tree, id, buffer);
  arith::Analyzer analyzer;
  for (const IterVar& iv : tree->block(producer).iter_vars) analyzer.Bind(iv->var, iv->dom);
  VarMap named;
  for (size_t d = 0; d < origin.axes.size(); ++d) {
    named[origin.axes[d].get()] = made->indices[static_cast<int64_t>(d)];
  }
  VarMap values = origin.At(made->indices);
  for (auto& [var, value] : values) {
    if (!value.as<VarNode>()) value = analyzer.Simplify(value);
  }
  Stmt body = MapLoads(store, buffer, [&](const Array<PrimExpr>&) { return made->value; });
  body = Substitute(body, values);
  PrimExpr runs;
  for (const PrimExpr& condition : origin.conditions) {
    PrimExpr here = analyzer.Simplify(Substitute(condition, named));
    if (analyzer.CanProve(here)) continue;
    runs = runs.defined() ? runs && here : here;
  }
  bool covers = block.covers && !runs.defined();
  if (runs.defined()) body = IfThenElse(runs, body);
  tree->Detach(id);
  tree->EditBlock(producer)->covers = covers;
  tree->SetBody(producer, body);
  for (const Buffer& other : others) {
    for (Id writer : flows[other].writers) {
      TVM_CHECK(!tree->IsBlock(writer) || SeesFinished(*tree, writer, producer, other),
                ScheduleError)
          << other->name << " is not finished where " << maker << " runs";
    }
  }
  TVM_CHECK(KindOf(*tree, producer) == BlockKind::kComplete, ScheduleError)
      << "block " << maker << " would write elements of " << store->buffer->name
      << " several times";
}

}  // namespace

void ReverseComputeInline(Tree* tree, Id id) {
  BufferStore store = OnlyStore(*tree, id);
  Flows flows(*tree);
  Order order(*tree);
  RequireSoleWriter(*tree, id, flows);
  RequireAllInstances(*tree, id);
  RequireFinal(*tree, id);
  std::string refusals;
  for (const Buffer& buffer : ReadBy(*tree, id)) {
    const Flow& flow = flows[buffer];
    if (flow.writers.empty() || tree->IsParam(buffer) || flow.readers != Ids{id}) continue;
    Origin origin;
    try {
      origin = RequireMergeable(*tree, id, buffer, flows, order);
    } catch (const Error& error) {
      if (error.kind() != "ScheduleError") throw;
      refusals += (refusals.empty() ? "" : "; ") + error.message();
      continue;
    }
    Merge(tree, id, store, buffer, flow.writers[0], origin, flows);
    tree->Forget(buffer);
    return;
  }
  TVM_CHECK(!refusals.empty(), ScheduleError)
      << "block " << tree->NameOf(id)
      << " reads no buffer that one block writes and no other reads";
  TVM_FATAL(ScheduleError) << refusals;
}

}  // namespace sched
}  // namespace tir
}  // namespace tvm
