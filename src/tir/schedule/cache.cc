/*!
 * \file cache.cc
 * \brief Primitives that put a copy of a buffer between the blocks that write and those that read.
 */
#include <algorithm>

#include "buffers.h"
#include "primitives.h"
#include "regions.h"
#include "rewrite.h"

namespace tvm {
namespace tir {
namespace sched {
namespace {

/*! \brief Place for a copy: in front of a child of a loop or block. */
struct Slot {
  Id parent;
  size_t index;
};

/*! \brief Refuse users of a buffer that are no blocks. */
void RequireBlocks(const Tree& tree, const Ids& users, const Buffer& buffer) {
  for (Id id : users) {
    TVM_CHECK(tree.IsBlock(id), ScheduleError)
        << "a statement outside of blocks accesses " << buffer->name
        << ", so it cannot use a copy; put it into a block";
  }
}

/*! \brief Blocks and statements of a scope that write, and that read a buffer. */
struct Users {
  Ids writers, readers;
};

Users UsersIn(const Tree& tree, Id scope, const Buffer& buffer) {
  Users users;
  for (Id unit : tree.UnitsBelow(scope)) {
    std::shared_ptr<const Access> access = AccessOf(tree, unit);
    if (access->Writes(buffer)) users.writers.push_back(unit);
    bool itself = access->Writes(buffer) && !access->opaque;
    if (access->Reads(buffer) && !itself) users.readers.push_back(unit);
  }
  return users;
}

/*! \brief The innermost loop around both nodes, or their scope. */
Id Around(const Tree& tree, Id a, Id b) {
  Ids common = CommonLoops(tree, a, b);
  return common.empty() ? tree.ScopeOf(a) : common.back();
}

/*! \brief Loops between a node and `parent`, outermost first. */
Ids LoopsUpTo(const Tree& tree, Id id, Id parent) {
  Ids loops = tree.LoopsAbove(id);
  std::erase_if(loops, [&](Id loop) { return tree.IsUnder(parent, loop); });
  return loops;
}

/*! \brief What a node writes of a buffer while the loops `free` run, if that is a box. */
std::optional<std::vector<Span>> SpansWritten(const Tree& tree, Id id, const Buffer& buffer,
                                              const Ids& free, arith::Analyzer* analyzer,
                                              bool exactly) {
  if (tree.IsLeafBlock(id) && !AccessOf(tree, id)->opaque) {
    std::optional<Box> box = ExactBox(tree, id, buffer, free, analyzer);
    if (box && box->conditions.empty()) return box->spans;
    if (exactly) return std::nullopt;
  }
  // What hides behind pointers or in blocks further down is what the block declares.
  return DeclaredSpans(tree, id, buffer, /*write=*/true, free, analyzer);
}

/*! \brief A buffer that takes the place of another, and the element that its first one is. */
struct Twin {
  BufferChange change;
  Array<PrimExpr> lows;
};

/*! \brief A buffer that holds `spans` of another, or all of it where that lies outermost. */
Twin TwinOf(const Tree& tree, Id scope, const Buffer& buffer, const std::string& memory,
            const std::vector<Span>& spans) {
  std::string name = tree.NewBufferName(buffer->name + "_" + memory);
  Twin twin{{buffer, Buffer(nullptr), nullptr, nullptr}, {}};
  Array<PrimExpr> lows, shape;
  bool shifts = false;
  for (size_t d = 0; d < spans.size(); ++d) {
    DataType dtype = buffer->shape[static_cast<int64_t>(d)].dtype();
    lows.push_back(scope == tree.root() ? make_const(dtype, 0) : spans[d].low);
    shape.push_back(spans[d].extent);
    shifts |= !is_zero(lows.back());
  }
  twin.lows = lows;
  twin.change.to =
      decl_buffer(scope == tree.root() ? buffer->shape : shape, buffer->dtype, name, memory);
  if (!shifts) return twin;
  auto analyzer = std::make_shared<arith::Analyzer>();
  auto shift = [lows, analyzer](const PrimExpr& index, size_t d) {
    return analyzer->Simplify(index - lows[static_cast<int64_t>(d)]);
  };
  twin.change.indices = [shift](const Array<PrimExpr>& indices) {
    Array<PrimExpr> shifted;
    for (const PrimExpr& index : indices) shifted.push_back(shift(index, shifted.size()));
    return shifted;
  };
  twin.change.region = [shift](const Array<Range>& region) {
    Array<Range> shifted;
    for (const Range& range : region) {
      shifted.push_back(Range::FromMinExtent(shift(range->min, shifted.size()), range->extent));
    }
    return shifted;
  };
  return twin;
}

/*! \brief Say of a block in its place which instances its loops run. */
void FindFacts(Tree* tree, Id id, const Ids& own_loops) {
  VarSet given = FindGiven(*tree, id, tree->VarsOfLoops(own_loops));
  bool covers = RunsAll(*tree, id);
  BlockItem* made = tree->EditBlock(id);
  made->given = given;
  made->covers = covers;
}

/*!
 * \brief A block that copies `spans` from one of a buffer and its twin to the other.
 *
 * Where the copied block runs under a condition, its spans reach past the buffer in iterations of
 * which the condition does not hold; such elements are left out.
 */
Id InsertCopy(Tree* tree, const Slot& slot, const Twin& twin, bool to_twin,
              const std::vector<Span>& spans) {
  const Buffer &original = twin.change.from, &copy = twin.change.to;
  Ids loops;
  Array<IterVar> iters;
  Array<PrimExpr> values, own, other, predicate;
  arith::Analyzer analyzer;
  LoopAnalyzer inside(*tree, slot.parent);
  if (tree->IsBlock(slot.parent)) {
    for (const IterVar& iv : tree->block(slot.parent).iter_vars) inside.Bind(iv->var, iv->dom);
  }
  auto require = [&](const PrimExpr& condition) {
    if (!inside.CanProve(condition)) predicate.push_back(condition);
  };
  for (size_t d = 0; d < spans.size(); ++d) {
    const PrimExpr& extent = copy->shape[static_cast<int64_t>(d)];
    const PrimExpr& low = twin.lows[static_cast<int64_t>(d)];
    DataType dtype = extent.dtype();
    std::string number = std::to_string(d);
    loops.push_back(tree->AddLoop("ax" + number, dtype, spans[d].extent));
    Range dom = Range::FromMinExtent(make_const(dtype, 0), extent);
    iters.push_back(IterVar(dom, Var("v" + number, dtype), kDataPar));
    PrimExpr start = analyzer.Simplify(spans[d].low - low);
    const Var &at = tree->loop(loops.back()).var, &var = iters.back()->var;
    values.push_back(is_zero(start) ? PrimExpr(at) : start + at);
    own.push_back(var);
    other.push_back(is_zero(low) ? PrimExpr(var) : low + var);
    if (spans[d].whole) continue;
    inside.Bind(at, Range::FromMinExtent(make_const(dtype, 0), spans[d].extent));
    const PrimExpr element = analyzer.Simplify(spans[d].low + at);
    require(element >= make_const(dtype, 0));
    require(element < original->shape[static_cast<int64_t>(d)]);
  }
  Stmt body = to_twin ? BufferStore(copy, BufferLoad(original, other), own)
                      : BufferStore(original, BufferLoad(copy, own), other);
  auto block =
      std::make_shared<BlockItem>(tree->NewBlockName(copy->name), iters, values, Stmt(), predicate);
  Id id = tree->AddBlock(block, body);
  tree->Insert(slot.parent, slot.index, loops.empty() ? id : tree->Nest(loops, {id}));
  FindFacts(tree, id, loops);
  return id;
}

void RequireFinal(const Tree& tree, const Buffer& buffer) {
  TVM_CHECK(!tree.IsPinned(buffer), ScheduleError)
      << buffer->name << " does not have one final value, which a copy could hold";
}

std::vector<Span> All(const Buffer& buffer) {
  std::vector<Span> spans;
  for (const PrimExpr& extent : buffer->shape) {
    spans.push_back({make_const(extent.dtype(), 0), extent, true});
  }
  return spans;
}

Id FirstOf(const Tree& tree, const Ids& ids) {
  Order order(tree);
  return *std::min_element(ids.begin(), ids.end(),
                           [&](Id a, Id b) { return order.IsBefore(a, b); });
}

/*! \brief Spans that hold those of all accesses of a buffer while the loops of a scope run. */
std::vector<Span> ReadIn(const Tree& tree, Id scope, const Ids& readers, const Buffer& buffer) {
  // What the block around declares is the part that belongs to it.
  for (const BufferRegion& region : tree.block(scope).reads) {
    if (!region->buffer.same_as(buffer)) continue;
    std::vector<Span> spans;
    for (const Range& range : region->region) spans.push_back({range->min, range->extent});
    return spans;
  }
  std::optional<std::vector<Span>> hull;
  for (Id reader : readers) {
    arith::Analyzer analyzer;
    auto spans = DeclaredSpans(tree, reader, buffer, false, tree.LoopsAbove(reader), &analyzer);
    if (!spans || (hull && !SameSpans(*hull, *spans))) return All(buffer);
    hull = spans;
  }
  return hull ? *hull : All(buffer);
}

struct ReadPlan {
  Buffer buffer;
  Id scope;
  Ids readers, writers;
  Slot slot;
};

ReadPlan PlanRead(const Tree& tree, Id id, int64_t index, const std::optional<Ids>& consumers) {
  ReadPlan plan;
  plan.buffer = BufferAt(tree, id, index, false);
  plan.scope = tree.ScopeOf(id);
  Users users = UsersIn(tree, plan.scope, plan.buffer);
  plan.readers = users.readers;
  std::erase_if(plan.readers, [&](Id reader) {
    return consumers && !consumers->empty() && !Has(*consumers, reader);
  });
  TVM_CHECK(!plan.readers.empty(), ScheduleError)
      << "none of the consumers given reads " << plan.buffer->name << " beside block "
      << tree.NameOf(id);
  RequireBlocks(tree, plan.readers, plan.buffer);
  Order order(tree);
  Id first = FirstOf(tree, plan.readers);
  // Values from before this scope are read before any of its blocks writes others.
  bool initial = std::all_of(users.writers.begin(), users.writers.end(), [&](Id writer) {
    return std::all_of(plan.readers.begin(), plan.readers.end(), [&](Id reader) {
      Ids common = CommonLoops(tree, reader, writer);
      return reader != writer && order.IsBefore(reader, writer) &&
             std::all_of(common.begin(), common.end(),
                         [&](Id loop) { return tree.loop(loop).IsUnit(); });
    });
  });
  if (initial) {
    plan.slot = {plan.scope, 0};
    return plan;
  }
  plan.writers = users.writers;
  bool is_pair = plan.writers.size() == 2 && tree.IsBlock(plan.writers[1]) &&
                 tree.block(plan.writers[1]).init_block == plan.writers[0];
  TVM_CHECK(plan.writers.size() == 1 || is_pair, ScheduleError)
      << "several blocks write " << plan.buffer->name << ": " << tree.NamesOf(plan.writers)
      << "; a copy could hold the values of one only";
  Id writer = plan.writers.back();
  TVM_CHECK(order.IsBefore(writer, first), ScheduleError)
      << "block " << tree.NameOf(writer) << " writes " << plan.buffer->name << " after block "
      << tree.NameOf(first) << " reads it; name the consumers that run later";
  Id parent = Around(tree, writer, first);
  plan.slot = {parent, tree.IndexOf(parent, first)};
  if (parent != plan.scope) RequireFinal(tree, plan.buffer);
  return plan;
}

}  // namespace

Id CacheRead(Tree* tree, Id id, int64_t index, const std::string& memory,
             const std::optional<Ids>& consumers) {
  CheckScope(memory);
  ReadPlan plan = PlanRead(*tree, id, index, consumers);
  const Buffer& buffer = plan.buffer;
  arith::Analyzer analyzer;
  std::vector<Span> held = All(buffer), copied = held;
  if (plan.writers.empty()) {
    if (plan.scope != tree->root()) held = copied = ReadIn(*tree, plan.scope, plan.readers, buffer);
  } else {
    Id writer = plan.writers.back();
    LoopAnalyzer in_scope(*tree, plan.scope), at_slot(*tree, plan.slot.parent);
    auto whole =
        SpansWritten(*tree, writer, buffer, LoopsUpTo(*tree, writer, plan.scope), &in_scope, false);
    auto part = SpansWritten(*tree, writer, buffer, LoopsUpTo(*tree, writer, plan.slot.parent),
                             &at_slot, false);
    TVM_CHECK(part || plan.slot.parent == plan.scope, ScheduleError)
        << "what block " << tree->NameOf(writer) << " writes of " << buffer->name
        << " in one iteration of loop " << tree->NameOf(plan.slot.parent)
        << " is no box of elements; call cache_read before compute_at";
    if (whole) held = *whole;
    copied = part ? *part : held;
    if (tree->IsParam(buffer) && !tree->block(writer).covers) held = copied = All(buffer);
  }
  Twin twin = TwinOf(*tree, plan.scope, buffer, memory, held);
  twin.change.stores = false;
  for (Id reader : plan.readers) ChangeBuffer(tree, reader, twin.change);
  Id copy = InsertCopy(tree, plan.slot, twin, true, copied);
  tree->Allocate(twin.change.to, plan.scope);
  return copy;
}

namespace {

/*! \brief Whether a block reads elements of a buffer that it did not write before. */
bool ReadsOldValues(const Tree& tree, Id id, const Buffer& buffer) {
  std::shared_ptr<const Access> access = AccessOf(tree, id);
  BlockKind kind = KindOf(tree, id);
  if (kind == BlockKind::kComplete || kind == BlockKind::kReduction) return false;
  if (kind == BlockKind::kUpdate) return true;
  if (access->opaque) {
    const Array<BufferRegion>& reads = tree.block(id).reads;
    return std::any_of(reads.begin(), reads.end(),
                       [&](const BufferRegion& region) { return region->buffer.same_as(buffer); });
  }
  if (tree.IsLeafBlock(id)) return access->Reads(buffer);
  Users users = UsersIn(tree, id, buffer);
  Order order(tree);
  bool starts = std::any_of(users.writers.begin(), users.writers.end(), [&](Id writer) {
    return !tree.IsBlock(writer) || ReadsOldValues(tree, writer, buffer);
  });
  return starts || !std::all_of(users.readers.begin(), users.readers.end(), [&](Id reader) {
           return std::any_of(users.writers.begin(), users.writers.end(), [&](Id writer) {
             return order.IsBefore(writer, reader) && SeesFinished(tree, writer, reader, buffer);
           });
         });
}

struct WritePlan {
  Buffer buffer;
  Id scope;
  /*! \brief All that write and read the twin instead. */
  Ids writers, moved;
  Slot slot;
};

WritePlan PlanWrite(const Tree& tree, Id id, int64_t index, const std::optional<Ids>& consumers) {
  WritePlan plan;
  plan.buffer = BufferAt(tree, id, index, true);
  plan.scope = tree.ScopeOf(id);
  Users users = UsersIn(tree, plan.scope, plan.buffer);
  plan.writers = users.writers;
  bool is_pair = plan.writers.size() == 2 && tree.IsBlock(plan.writers[1]) &&
                 tree.block(plan.writers[1]).init_block == plan.writers[0];
  TVM_CHECK(plan.writers.size() == 1 || is_pair, ScheduleError)
      << "several blocks write " << plan.buffer->name << ": " << tree.NamesOf(plan.writers)
      << "; a copy could take the values of one only";
  RequireBlocks(tree, plan.writers, plan.buffer);
  Id writer = plan.writers.back();
  bool reads = !is_pair && ReadsOldValues(tree, writer, plan.buffer);
  TVM_CHECK(!reads, ScheduleError)
      << "block " << tree.NameOf(writer) << " goes on from values that " << plan.buffer->name
      << " had before, which a copy would not have; use cache_inplace";
  Ids rest;
  Order order(tree);
  for (Id reader : users.readers) {
    if (Has(plan.writers, reader)) continue;
    if (consumers && Has(*consumers, reader)) {
      plan.moved.push_back(reader);
    } else {
      Ids common = CommonLoops(tree, writer, reader);
      bool once = std::all_of(common.begin(), common.end(),
                              [&](Id loop) { return tree.loop(loop).IsUnit(); });
      // What was read before is what the copy has no part in.
      if (once && !order.IsBefore(writer, reader)) continue;
      TVM_CHECK(order.IsBefore(writer, reader), ScheduleError)
          << (tree.IsBlock(reader) ? tree.NameOf(reader) : "a statement") << " reads "
          << plan.buffer->name << " before block " << tree.NameOf(writer) << " writes it";
      rest.push_back(reader);
    }
  }
  RequireBlocks(tree, plan.moved, plan.buffer);
  plan.slot = {plan.scope, tree[plan.scope].children.size()};
  if (!rest.empty()) {
    Id first = FirstOf(tree, rest);
    Id parent = Around(tree, writer, first);
    plan.slot = {parent, tree.IndexOf(parent, first)};
    if (parent != plan.scope) RequireFinal(tree, plan.buffer);
  }
  return plan;
}

bool WritesAll(const Tree& tree, Id writer, const Buffer& buffer) {
  BlockKind kind = KindOf(tree, writer);
  return kind != BlockKind::kOpaque && tree.IsLeafBlock(writer) &&
         WritesEveryElement(tree, writer, buffer);
}

}  // namespace

Id CacheWrite(Tree* tree, Id id, int64_t index, const std::string& memory,
              const std::optional<Ids>& consumers) {
  CheckScope(memory);
  WritePlan plan = PlanWrite(*tree, id, index, consumers);
  const Buffer& buffer = plan.buffer;
  Id writer = plan.writers.back();
  LoopAnalyzer in_scope(*tree, plan.scope), at_slot(*tree, plan.slot.parent);
  Ids inside = LoopsUpTo(*tree, writer, plan.scope);
  // Elements of a buffer of the function's own that nobody writes may be anything.
  bool exactly = tree->IsParam(buffer) && !WritesAll(*tree, writer, buffer);
  auto held = SpansWritten(*tree, writer, buffer, inside, &in_scope, exactly);
  auto copied = SpansWritten(*tree, writer, buffer, LoopsUpTo(*tree, writer, plan.slot.parent),
                             &at_slot, exactly || plan.slot.parent != plan.scope);
  TVM_CHECK(held && copied, ScheduleError)
      << "block " << tree->NameOf(id) << " does not write all of " << buffer->name
      << ", nor a box of its elements, so a copy would overwrite the rest";
  Twin twin = TwinOf(*tree, plan.scope, buffer, memory, *held);
  for (const Ids* users : {&plan.writers, &plan.moved}) {
    for (Id user : *users) ChangeBuffer(tree, user, twin.change);
  }
  Id copy = InsertCopy(tree, plan.slot, twin, false, *copied);
  tree->Allocate(twin.change.to, plan.scope);
  if (tree->IsPinned(buffer)) tree->Pin(twin.change.to);
  return copy;
}

Ids CacheInplace(Tree* tree, Id id, int64_t index, const std::string& memory) {
  CheckScope(memory);
  Buffer buffer = BufferAt(*tree, id, index, false);
  const BlockItem& block = tree->block(id);
  bool both =
      std::any_of(block.writes.begin(), block.writes.end(),
                  [&](const BufferRegion& region) { return region->buffer.same_as(buffer); });
  TVM_CHECK(both, ScheduleError) << "block " << block.name << " only reads " << buffer->name
                                 << "; use cache_read";
  Id parent = block.parent, scope = tree->ScopeOf(id);
  arith::Analyzer analyzer;
  auto read = DeclaredSpans(*tree, id, buffer, false, {}, &analyzer);
  auto written = DeclaredSpans(*tree, id, buffer, true, {}, &analyzer);
  TVM_CHECK(read && written, ScheduleError)
      << "what block " << block.name << " accesses of " << buffer->name << " is not known";
  Twin twin = TwinOf(*tree, scope, buffer, memory, All(buffer));
  ChangeBuffer(tree, id, twin.change);
  size_t at = tree->IndexOf(parent, id);
  Id before = InsertCopy(tree, {parent, at}, twin, true, *read);
  Id after = InsertCopy(tree, {parent, at + 2}, twin, false, *written);
  tree->Allocate(twin.change.to, scope);
  tree->Pin(twin.change.to);
  return {before, after};
}

namespace {

/*! \brief The one element of a buffer that each instance of a leaf block accesses. */
Array<PrimExpr> OnePoint(const Tree& tree, Id id, const Buffer& buffer, bool write) {
  const Array<BufferRegion>& regions = write ? tree.block(id).writes : tree.block(id).reads;
  Array<PrimExpr> point;
  for (const BufferRegion& region : regions) {
    if (!region->buffer.same_as(buffer)) continue;
    for (const Range& range : region->region) {
      TVM_CHECK(is_const_int(range->extent, 1), ScheduleError)
          << "block " << tree.NameOf(id) << " accesses " << region
          << ", which is more than one element; only single elements can be put elsewhere";
      point.push_back(range->min);
    }
    break;
  }
  return point;
}

/*! \brief Copy, for each instance of a block's variables in `used`, the element at `point`. */
Id InsertPerInstance(Tree* tree, Id id, const Slot& slot, const VarSet& used, const Buffer& source,
                     const Array<PrimExpr>& from, const Buffer& target, const Array<PrimExpr>& to) {
  const BlockItem block = tree->block(id);
  Ids loops = LoopsUpTo(*tree, id, slot.parent), twins;
  VarMap values, renamed;
  VarSet needed;
  Array<IterVar> kept;
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    const IterVar& iv = block.iter_vars[static_cast<int64_t>(i)];
    if (!used.Contains(iv->var)) continue;
    kept.push_back(IterVar(iv->dom, iv->var, kDataPar));
    needed.Add(VarsOf(block.iter_values[static_cast<int64_t>(i)]));
  }
  for (Id loop : loops) {
    const LoopItem& old = tree->loop(loop);
    if (!needed.Contains(old.var)) continue;
    twins.push_back(TwinLoop(tree, loop, old.name()));
    values[old.var.get()] = tree->loop(twins.back()).var;
  }
  Array<IterVar> iters = FreshIters(kept, "", &renamed);
  Array<PrimExpr> iter_values, predicate;
  for (const IterVar& iv : kept) iter_values.push_back(Substitute(block.ValueOf(iv->var), values));
  VarSet dropped = tree->VarsOfLoops(loops) - needed;
  for (const PrimExpr& condition : block.predicate) {
    if (!VarsOf(condition).Intersects(dropped)) predicate.push_back(Substitute(condition, values));
  }
  auto rename = [&](const PrimExpr& expr) { return Substitute(expr, renamed); };
  const Buffer& named = tree->IsParam(source) ? target : source;
  auto item =
      BlockLike(block, tree->NewBlockName(named->name), iters, iter_values, Stmt(), predicate);
  Id copy = tree->AddBlock(
      item, BufferStore(target, BufferLoad(source, from.Map(rename)), to.Map(rename)));
  tree->Insert(slot.parent, slot.index, twins.empty() ? copy : tree->Nest(twins, {copy}));
  Tidy(tree, copy);
  FindFacts(tree, copy, twins);
  return copy;
}

/*! \brief The twin that a map of the block's variables lays out, and the place of an instance. */
std::pair<Buffer, Array<PrimExpr>> TwinAndPlace(const Tree& tree, Id id, const Buffer& buffer,
                                                const std::string& memory, const IndexMap& map,
                                                const Array<PrimExpr>& point) {
  const BlockItem& block = tree.block(id);
  TVM_CHECK(map->initial_indices.size() == block.iter_vars.size(), ScheduleError)
      << "the index map takes " << map->initial_indices.size() << " indices, and block "
      << block.name << " has " << block.iter_vars.size() << " variables";
  arith::Analyzer analyzer;
  Array<PrimExpr> vars;
  Array<Range> doms;
  VarSet used;
  for (const IterVar& iv : block.iter_vars) {
    vars.push_back(iv->var);
    doms.push_back(iv->dom);
    analyzer.Bind(iv->var, iv->dom);
  }
  Array<PrimExpr> place = map->MapIndices(vars, &analyzer);
  Array<PrimExpr> extents;
  for (const Range& range : map->MapRanges(doms, &analyzer)) {
    extents.push_back(analyzer.Simplify(range->min + range->extent));
  }
  VarSet in_point, in_place;
  for (const PrimExpr& index : point) in_point.Add(VarsOf(index));
  for (const PrimExpr& index : place) in_place.Add(VarsOf(index));
  for (const IterVar& iv : block.iter_vars) {
    if (is_const_int(iv->dom->extent, 1)) continue;
    TVM_CHECK(in_point.Contains(iv->var) == in_place.Contains(iv->var), ScheduleError)
        << "block " << block.name << " accesses " << buffer->name << " at " << point
        << ", and the index map puts that at " << place << "; both must depend on " << iv->var
        << " or neither";
  }
  return {
      decl_buffer(extents, buffer->dtype, tree.NewBufferName(buffer->name + "_" + memory), memory),
      place};
}

/*! \brief Refuse a layout in which two instances that differ would share an element. */
void RequireInjective(const Tree& tree, Id id, const Array<PrimExpr>& place) {
  const BlockItem& block = tree.block(id);
  Map<Var, Range> doms;
  VarSet used;
  for (const PrimExpr& index : place) used.Add(VarsOf(index));
  for (const IterVar& iv : block.iter_vars) {
    if (!used.Contains(iv->var)) continue;
    if (!AsInt(iv->dom->extent)) return;
    doms.Set(iv->var, iv->dom);
  }
  auto found = arith::DetectIterMap(place, doms, arith::IterMapLevel::kBijective);
  TVM_CHECK(found->errors.empty(), ScheduleError)
      << "the place " << place << " is not another one for each instance of block " << block.name
      << ": " << found->errors[0];
}

BufferChange ToPlace(const Buffer& from, const Buffer& to, const Array<PrimExpr>& place) {
  BufferChange change{from, to, nullptr, nullptr};
  change.indices = [place](const Array<PrimExpr>&) { return place; };
  change.region = [place](const Array<Range>&) {
    return place.Map([](const PrimExpr& index) {
      return Range::FromMinExtent(index, make_const(index.dtype(), 1));
    });
  };
  return change;
}

VarSet UsedBy(const Array<PrimExpr>& exprs) {
  VarSet used;
  for (const PrimExpr& expr : exprs) used.Add(VarsOf(expr));
  return used;
}

}  // namespace

Id ReindexCacheRead(Tree* tree, Id id, int64_t index, const std::string& memory,
                    const IndexMap& map) {
  CheckScope(memory);
  ReadPlan plan = PlanRead(*tree, id, index, Ids{id});
  Array<PrimExpr> point = OnePoint(*tree, id, plan.buffer, false);
  TVM_CHECK(!Chooses(tree->Body(id)), ScheduleError)
      << "block " << tree->NameOf(id) << " does not read " << plan.buffer->name
      << " in all of its instances, and a copy would read it in each";
  auto [twin, place] = TwinAndPlace(*tree, id, plan.buffer, memory, map, point);
  RequireInjective(*tree, id, place);
  if (plan.writers.empty()) plan.slot = {plan.scope, tree->IndexOf(plan.scope, id)};
  Id copy = InsertPerInstance(tree, id, plan.slot, UsedBy(place), plan.buffer, point, twin, place);
  BufferChange change = ToPlace(plan.buffer, twin, place);
  change.stores = false;
  ChangeBuffer(tree, id, change);
  tree->Allocate(twin, plan.scope);
  return copy;
}

Id ReindexCacheWrite(Tree* tree, Id id, int64_t index, const std::string& memory,
                     const IndexMap& map) {
  CheckScope(memory);
  WritePlan plan = PlanWrite(*tree, id, index, Ids());
  Array<PrimExpr> point = OnePoint(*tree, id, plan.buffer, true);
  auto [twin, place] = TwinAndPlace(*tree, id, plan.buffer, memory, map, point);
  TVM_CHECK(plan.writers == Ids{id}, ScheduleError)
      << "block " << tree->NameOf(id) << " goes on from what another block wrote; decompose the "
      << "reduction afterwards";
  RequireInjective(*tree, id, place);
  Id copy = InsertPerInstance(tree, id, plan.slot, UsedBy(point), twin, place, plan.buffer, point);
  ChangeBuffer(tree, id, ToPlace(plan.buffer, twin, place));
  tree->Allocate(twin, plan.scope);
  if (tree->IsPinned(plan.buffer)) tree->Pin(twin);
  return copy;
}

Id Reindex(Tree* tree, Id id, int64_t index, bool write) {
  Buffer buffer = BufferAt(*tree, id, index, write);
  Array<PrimExpr> point = OnePoint(*tree, id, buffer, write);
  std::shared_ptr<const Access> access = AccessOf(*tree, id);
  const auto& touches = write ? access->writes : access->reads;
  bool single =
      !access->opaque && std::all_of(touches.begin(), touches.end(), [&](const Touch& touch) {
        return !touch.buffer.same_as(buffer) || SameIndices(touch.indices, point);
      });
  TVM_CHECK(single, ScheduleError) << "block " << tree->NameOf(id) << " accesses " << buffer->name
                                   << " at several places; reindex needs one";
  TVM_CHECK(write || !Chooses(tree->Body(id)), ScheduleError)
      << "block " << tree->NameOf(id) << " does not read " << buffer->name
      << " in all of its instances, and a copy would read it in each";
  // An index may name variables that do not move it; those of one value are kept as such.
  arith::Analyzer analyzer;
  for (const IterVar& iv : tree->block(id).iter_vars) {
    if (!is_const_int(iv->dom->extent, 1)) analyzer.Bind(iv->var, iv->dom);
  }
  point = point.Map([&](const PrimExpr& index) { return analyzer.Simplify(index); });
  VarSet used = UsedBy(point);
  Array<PrimExpr> place, shape;
  for (const IterVar& iv : tree->block(id).iter_vars) {
    if (!used.Contains(iv->var)) continue;
    TVM_CHECK(is_zero(iv->dom->min), ScheduleError)
        << "variable " << iv->var << " of block " << tree->NameOf(id) << " does not begin at 0";
    place.push_back(iv->var);
    shape.push_back(iv->dom->extent);
  }
  Buffer twin = decl_buffer(shape, buffer->dtype, tree->NewBufferName(buffer->name + "_reindex"),
                            buffer.scope());
  Slot slot;
  Id scope = tree->ScopeOf(id), copy;
  BufferChange change = ToPlace(buffer, twin, place);
  if (write) {
    WritePlan plan = PlanWrite(*tree, id, index, Ids());
    TVM_CHECK(plan.writers == Ids{id}, ScheduleError)
        << "block " << tree->NameOf(id) << " and another one write " << buffer->name
        << " together; call reindex before decompose_reduction";
    slot = plan.slot;
    // The copy runs over the whole domain, so it stands where all of that is written.
    TVM_CHECK(slot.parent == scope, ScheduleError)
        << "a block that reads " << buffer->name << " shares loops with block " << tree->NameOf(id)
        << "; call reindex before compute_at";
  } else {
    ReadPlan plan = PlanRead(*tree, id, index, Ids{id});
    slot = plan.slot;
    if (slot.parent != scope) {
      for (Id writer : plan.writers) {
        TVM_CHECK(CommonLoops(*tree, writer, id).empty(), ScheduleError)
            << "block " << tree->NameOf(writer) << " shares loops with block " << tree->NameOf(id)
            << "; call reindex before compute_at";
      }
    }
    change.stores = false;
  }
  Ids loops;
  VarMap renamed;
  Array<IterVar> iters;
  Array<PrimExpr> values;
  for (const IterVar& iv : tree->block(id).iter_vars) {
    if (!used.Contains(iv->var)) continue;
    loops.push_back(
        tree->AddLoop("ax" + std::to_string(loops.size()), iv->var.dtype(), iv->dom->extent));
    values.push_back(tree->loop(loops.back()).var);
    Var var("v" + std::to_string(iters.size()), iv->var.dtype());
    iters.push_back(IterVar(iv->dom, var, kDataPar));
    renamed[iv->var.get()] = var;
  }
  auto rename = [&](const PrimExpr& expr) { return Substitute(expr, renamed); };
  Array<PrimExpr> at = point.Map(rename), own = place.Map(rename);
  auto item = std::make_shared<BlockItem>(tree->NewBlockName(twin->name), iters, values);
  copy = tree->AddBlock(item, write ? BufferStore(buffer, BufferLoad(twin, own), at)
                                    : BufferStore(twin, BufferLoad(buffer, at), own));
  tree->Insert(slot.parent, slot.index, loops.empty() ? copy : tree->Nest(loops, {copy}));
  ChangeBuffer(tree, id, change);
  tree->Allocate(twin, scope);
  return copy;
}

}  // namespace sched
}  // namespace tir
}  // namespace tvm
