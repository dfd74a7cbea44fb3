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

/*! \brief Axes of a buffer by variables of a block; an axis of one element has none. */
using Place = std::vector<Optional<Var>>;

BufferStore OnlyStore(const Tree& tree, Id id) {
  RequireOwnVariables(tree, id);
  Stmt body = tree.Body(id);
  TVM_CHECK(KindOf(tree, id) == BlockKind::kComplete && body.as<BufferStoreNode>(), ScheduleError)
      << "block " << tree.NameOf(id)
      << " is not a single store whose value is computed from others; only such blocks can be "
         "inlined";
  return Downcast<BufferStore>(body);
}

bool IsAt(const Place& place, const Var& var) {
  return std::any_of(place.begin(), place.end(), [&](const Optional<Var>& other) {
    return other.defined() && other.value().same_as(var);
  });
}

/*! \brief Variables of the block by axis, if `indices` run over the whole buffer one by one. */
Place AtOwnPlace(const Tree& tree, Id id, const Array<PrimExpr>& indices, const Buffer& buffer) {
  Place found;
  Array<IterVar> spatial = tree.block(id).Spatial();
  for (size_t d = 0; d < indices.size(); ++d) {
    const PrimExpr &index = indices[d], &extent = buffer->shape[d];
    auto iv = std::find_if(spatial.begin(), spatial.end(),
                           [&](const IterVar& own) { return own->var.same_as(index); });
    if (iv == spatial.end() && is_const_int(index, 0) && is_const_int(extent, 1)) {
      found.push_back(NullOpt);
      continue;
    }
    TVM_CHECK(iv != spatial.end() && !IsAt(found, (*iv)->var) && is_const_int((*iv)->dom->min, 0) &&
                  ExprDeepEqual()((*iv)->dom->extent, extent),
              ScheduleError)
        << "block " << tree.NameOf(id) << " accesses " << buffer->name << " at " << index
        << ", which is no variable of the block that runs over the whole axis";
    found.push_back((*iv)->var);
  }
  return found;
}

void RequireFinal(const Tree& tree, Id id) {
  for (const Buffer& buffer : ReadBy(tree, id)) {
    TVM_CHECK(!tree.IsPinned(buffer), ScheduleError)
        << buffer->name << ", which block " << tree.NameOf(id)
        << " reads, does not have one final value, so the block must read it where it does";
  }
}

/*! \brief Values of a block's variables at the place where an element is computed. */
VarMap ValuesAt(const BlockItem& block, const Place& place, const Array<PrimExpr>& indices) {
  VarMap at;
  // A variable that is on no axis has one value.
  for (const IterVar& iv : block.iter_vars) at[iv->var.get()] = iv->dom->min;
  for (size_t d = 0; d < place.size(); ++d) {
    if (place[d].defined()) at[place[d].value().get()] = indices[d];
  }
  return at;
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
  RequireSoleWriter(*tree, id, flows);
  RequireAllInstances(*tree, id);
  RequireFinal(*tree, id);
  Place place = AtOwnPlace(*tree, id, store->indices, buffer);
  Ids consumers = flows[buffer].readers;
  std::erase_if(consumers, [&](Id consumer) { return !tree->IsBlock(consumer); });
  TVM_CHECK(!consumers.empty(), ScheduleError) << "nothing reads what block " << name << " writes";
  for (Id consumer : consumers) {
    TVM_CHECK(!AccessOf(*tree, consumer)->opaque && tree->IsLeafBlock(consumer), ScheduleError)
        << "block " << tree->NameOf(consumer) << " reads " << buffer->name
        << " in ways that are not all known";
  }
  auto value = [&](const Array<PrimExpr>& indices) {
    return Substitute(store->value, ValuesAt(tree->block(id), place, indices));
  };
  for (Id consumer : consumers) {
    Stmt init = tree->block(consumer).init;
    if (init.defined()) init = MapLoads(init, buffer, value);
    tree->SetBody(consumer, MapLoads(tree->Body(consumer), buffer, value), init);
  }
  tree->Detach(id);
  tree->Forget(buffer);
}

namespace {

/*! \brief Variables by axis at which a block reads, if each instance reads an element of its own.
 */
Place PlaceIn(const Tree& tree, Id id, const Buffer& buffer) {
  std::optional<Place> first;
  bool same = true;
  std::shared_ptr<const Access> access = AccessOf(tree, id);
  for (const Touch& touch : access->reads) {
    if (!touch.buffer.same_as(buffer)) continue;
    Place place = AtOwnPlace(tree, id, touch.indices, buffer);
    if (!first) first = place;
    for (size_t d = 0; d < place.size(); ++d) same &= place[d].same_as((*first)[d]);
  }
  for (const IterVar& iv : tree.block(id).Spatial()) {
    same &= IsAt(*first, iv->var) || is_const_int(iv->dom->extent, 1);
  }
  TVM_CHECK(same, ScheduleError) << "instances of block " << tree.NameOf(id)
                                 << " do not each read one element of " << buffer->name
                                 << " of their own";
  return *first;
}

/*! \brief What a block reads besides one buffer. */
std::vector<Buffer> OthersRead(const Tree& tree, Id id, const Buffer& buffer) {
  std::vector<Buffer> others = ReadBy(tree, id);
  std::erase_if(others, [&](const Buffer& other) { return other.same_as(buffer); });
  return others;
}

/*! \brief Place at which a block reads a buffer whose only producer may compute what it does. */
Place RequireMergeable(const Tree& tree, Id id, const Buffer& buffer, const Flows& flows,
                       const Order& order) {
  const Ids& writers = flows[buffer].writers;
  TVM_CHECK(writers.size() == 1 && tree.IsBlock(writers[0]), ScheduleError)
      << buffer->name << " is not written by one block";
  Id producer = writers[0];
  BufferStore made = OnlyStore(tree, producer);
  Place place = PlaceIn(tree, id, buffer);
  AtOwnPlace(tree, producer, made->indices, buffer);
  for (const Buffer& other : OthersRead(tree, id, buffer)) {
    for (Id writer : flows[other].writers) {
      TVM_CHECK(!order.IsBefore(producer, writer), ScheduleError)
          << "block " << tree.NameOf(producer) << " runs before all that " << tree.NameOf(id)
          << " reads";
    }
  }
  return place;
}

void Merge(Tree* tree, Id id, const BufferStore& store, const Buffer& buffer, Id producer,
           const Place& place, const Flows& flows) {
  BufferStore made = Downcast<BufferStore>(tree->Body(producer));
  const BlockItem block = tree->block(id);
  const std::string& maker = tree->NameOf(producer);
  TVM_CHECK(tree->block(producer).covers || !Chooses(store), ScheduleError)
      << "block " << block.name << " does not read " << buffer->name
      << " in all of its instances, and block " << maker << " may not write all of it";
  std::vector<Buffer> others = OthersRead(*tree, id, buffer);
  Stmt body = MapLoads(store, buffer, [&](const Array<PrimExpr>&) { return made->value; });
  tree->Detach(id);
  tree->EditBlock(producer)->covers = block.covers;
  tree->SetBody(producer, Substitute(body, ValuesAt(block, place, made->indices)));
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
    Place place;
    try {
      place = RequireMergeable(*tree, id, buffer, flows, order);
    } catch (const Error& error) {
      if (error.kind() != "ScheduleError") throw;
      refusals += (refusals.empty() ? "" : "; ") + error.message();
      continue;
    }
    Merge(tree, id, store, buffer, flow.writers[0], place, flows);
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
