/*!
 * \file cache.cc
 * \brief Primitives on the buffers between blocks: copies in other memory, scopes, strides.
 */
#include <algorithm>

#include "primitives.h"

namespace tvm {
namespace tir {
namespace sched {
namespace {

/*! \brief Buffer of one of the regions that a block declares. */
Buffer BufferAt(const Tree& tree, Id id, int64_t index, bool write) {
  const BlockItem& block = tree.block(id);
  const Array<BufferRegion>& regions = write ? block.writes : block.reads;
  const char* verb = write ? "writes" : "reads";
  std::string names;
  for (size_t i = 0; i < regions.size(); ++i) {
    names += (i == 0 ? "" : ", ") + std::to_string(i) + ": " + regions[i]->buffer->name;
  }
  TVM_CHECK(0 <= index && index < static_cast<int64_t>(regions.size()), ScheduleError)
      << "block " << block.name << " " << verb << " no buffer " << index << "; it " << verb << " "
      << names;
  Buffer buffer = regions[index]->buffer;
  std::shared_ptr<const Access> access = AccessOf(tree, id);
  TVM_CHECK(write ? access->Writes(buffer) : access->Reads(buffer), ScheduleError)
      << "block " << block.name << " declares " << buffer->name
      << " but does not access it; declare what it accesses";
  return buffer;
}

Buffer TwinBuffer(const Tree& tree, const Buffer& buffer, const std::string& scope) {
  std::string suffix = scope;
  std::replace(suffix.begin(), suffix.end(), '.', '_');
  return decl_buffer(buffer->shape, buffer->dtype, tree.NewBufferName(buffer->name + "_" + suffix),
                     scope);
}

/*! \brief A statement with accesses of one buffer in the place of those of another. */
Stmt Exchange(const Stmt& stmt, const Buffer& old_buffer, const Buffer& buffer) {
  Stmt loads = MapLoads(stmt, old_buffer, [&](const Array<PrimExpr>& indices) -> PrimExpr {
    return BufferLoad(buffer, indices);
  });
  auto store = [&](const ObjectRef& node) -> ObjectRef {
    const auto* op = node.as<BufferStoreNode>();
    if (!op->buffer.same_as(old_buffer)) return Stmt();
    return BufferStore(buffer, op->value, op->indices);
  };
  return IRTransform(loads, nullptr, store, {"tir.BufferStore"});
}

void Redirect(Tree* tree, Id id, const Buffer& old_buffer, const Buffer& buffer) {
  Stmt init = tree->block(id).init;
  if (init.defined()) init = Exchange(init, old_buffer, buffer);
  tree->SetBody(id, Exchange(tree->Body(id), old_buffer, buffer), init);
}

size_t SlotOf(const Tree& tree, Id id) { return tree.IndexOf(tree.root(), id); }

void RequireKnown(const Tree& tree, const Ids& units, const Buffer& buffer) {
  for (Id id : units) {
    bool known = tree.IsBlock(id) && !AccessOf(tree, id)->opaque && tree.IsLeafBlock(id);
    TVM_CHECK(known, ScheduleError)
        << (tree.IsBlock(id) ? tree.NameOf(id) : "a statement") << " accesses " << buffer->name
        << " in ways that are not all known";
  }
}

void CheckScope(const std::string& scope) {
  std::string kind = scope.substr(0, scope.find('.'));
  bool known =
      kind == "global" || kind == "shared" || kind == "local" || kind == "warp" || kind == "wmma";
  TVM_CHECK(known, ScheduleError)
      << "'" << scope
      << "' is no memory scope; there are global, shared, shared.dyn, local, warp, wmma.matrix_a, "
         "wmma.matrix_b and wmma.accumulator";
}

void RequireFinal(const Tree& tree, const Buffer& buffer) {
  TVM_CHECK(!tree.IsPinned(buffer), ScheduleError)
      << buffer->name << " does not have one final value, which a copy could hold";
}

/*! \brief Copy `source` to `target`, one of which is the new `twin`; `users` then use the twin. */
Id InsertCopy(Tree* tree, size_t slot, const Ids& users, const Buffer& twin, const Buffer& source,
              const Buffer& target) {
  Ids loops;
  Array<IterVar> iters;
  Array<PrimExpr> values, at;
  for (size_t d = 0; d < source->shape.size(); ++d) {
    const PrimExpr& extent = source->shape[d];
    std::string number = std::to_string(d);
    loops.push_back(tree->AddLoop("ax" + number, extent.dtype(), extent));
    Range dom = Range::FromMinExtent(make_const(extent.dtype(), 0), extent);
    iters.push_back(IterVar(dom, Var("v" + number, extent.dtype()), kDataPar));
    values.push_back(tree->loop(loops.back()).var);
    at.push_back(iters.back()->var);
  }
  Id copy =
      tree->AddBlock(std::make_shared<BlockItem>(tree->NewBlockName(twin->name), iters, values),
                     BufferStore(target, BufferLoad(source, at), at));
  Id top = tree->Nest(loops, {copy});
  for (Id user : users) Redirect(tree, user, twin.same_as(source) ? target : source, twin);
  tree->Insert(tree->root(), slot, top);
  tree->Allocate(twin);
  return copy;
}

}  // namespace

Id CacheRead(Tree* tree, Id id, int64_t index, const std::string& scope,
             const std::optional<Ids>& consumers) {
  CheckScope(scope);
  Buffer buffer = BufferAt(*tree, id, index, false);
  RequireFinal(*tree, buffer);
  Flows flows(*tree);
  Ids readers = flows[buffer].readers;
  std::erase_if(readers,
                [&](Id reader) { return consumers && reader != id && !Has(*consumers, reader); });
  RequireKnown(*tree, readers, buffer);
  TVM_CHECK(Has(readers, id), ScheduleError)
      << "block " << tree->NameOf(id)
      << " is inside of another block; name a block of the outermost scope";
  size_t slot = SlotOf(*tree, readers[0]);
  for (Id reader : readers) slot = std::min(slot, SlotOf(*tree, reader));
  for (Id writer : flows[buffer].writers) {
    TVM_CHECK(SlotOf(*tree, writer) < slot, ScheduleError)
        << "a block that writes " << buffer->name
        << " shares loops with one that reads it; call cache_read before compute_at";
  }
  Buffer twin = TwinBuffer(*tree, buffer, scope);
  return InsertCopy(tree, slot, readers, twin, buffer, twin);
}

Id CacheWrite(Tree* tree, Id id, int64_t index, const std::string& scope) {
  CheckScope(scope);
  Buffer buffer = BufferAt(*tree, id, index, true);
  RequireFinal(*tree, buffer);
  Flows flows(*tree);
  const Flow& flow = flows[buffer];
  RequireKnown(*tree, flow.writers, buffer);
  size_t slot = 0;
  for (Id writer : flow.writers) {
    TVM_CHECK(!tree->IsParam(buffer) || WritesEveryElement(*tree, writer, buffer), ScheduleError)
        << "block " << tree->NameOf(id) << " does not write all of " << buffer->name
        << ", so a copy would overwrite the rest";
    slot = std::max(slot, SlotOf(*tree, writer) + 1);
  }
  for (Id reader : flow.readers) {
    TVM_CHECK(SlotOf(*tree, reader) >= slot, ScheduleError)
        << "a block that reads " << buffer->name << " shares loops with " << tree->NameOf(id)
        << "; call cache_write before compute_at";
  }
  Buffer twin = TwinBuffer(*tree, buffer, scope);
  return InsertCopy(tree, slot, flow.writers, twin, twin, buffer);
}

void SetScope(Tree* tree, Id id, int64_t index, const std::string& scope) {
  CheckScope(scope);
  Buffer buffer = BufferAt(*tree, id, index, true);
  TVM_CHECK(!tree->IsParam(buffer), ScheduleError)
      << buffer->name << " is given by the caller, who decides where it is; use cache_write";
  Ids users = Flows(*tree)[buffer].Users();
  RequireKnown(*tree, users, buffer);
  Buffer twin = decl_buffer(buffer->shape, buffer->dtype, buffer->name, scope);
  for (Id user : users) Redirect(tree, user, buffer, twin);
  tree->Forget(buffer, twin);
  if (tree->IsPinned(buffer)) tree->Pin(twin);
}

void StorageAlign(Tree* tree, Id id, int64_t index, int64_t axis, int64_t factor, int64_t offset) {
  Buffer buffer = BufferAt(*tree, id, index, true);
  TVM_CHECK(!tree->IsParam(buffer), ScheduleError)
      << buffer->name << " is given by the caller, with the strides it has";
  int64_t rank = static_cast<int64_t>(buffer->shape.size());
  TVM_CHECK(-rank <= axis && axis < rank, ScheduleError)
      << buffer->name << " has " << rank << " axes, none of which is " << axis;
  TVM_CHECK(factor >= 1 && 0 <= offset && offset < factor, ScheduleError)
      << "the factor " << factor << " must be at least 1 and the offset " << offset
      << " from 0 to below it";
  RequireKnown(*tree, Flows(*tree)[buffer].Users(), buffer);
  if (axis < 0) axis += rank;
  const String key = "buffer_dim_align";
  using Row = Array<Integer>;
  Array<Row> rows;
  if (auto known = tree->block(id).annotations.Get(key)) {
    for (const Row& row : Any(known.value()).cast<Array<Row>>()) {
      if (row[0].IntValue() != index || row[1].IntValue() != axis) rows.push_back(row);
    }
  }
  rows.push_back({Integer(index), Integer(axis), Integer(factor), Integer(offset)});
  tree->EditBlock(id)->annotations.Set(key, rows);
}

}  // namespace sched
}  // namespace tir
}  // namespace tvm
