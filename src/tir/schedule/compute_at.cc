/*!
 * \file compute_at.cc
 * \brief Primitives that move a block under a loop of its consumers or of its producers.
 */
#include <tvm/arith/int_set.h>
#include <tvm/arith/iter_map_inverse.h>

#include <algorithm>

#include "primitives.h"
#include "regions.h"

namespace tvm {
namespace tir {
namespace sched {

using Spans = std::unordered_map<const VarNode*, Span>;

void RequireSoleWriter(const Tree& tree, Id id, const Flows& flows) {
  for (const Buffer& buffer : WrittenBy(tree, id)) {
    TVM_CHECK(!tree.IsPinned(buffer), ScheduleError)
        << "block " << tree.NameOf(id)
        << " is no complete block: it cannot be shown that every element of " << buffer->name
        << ", which it writes, gets one final value before it is read; such blocks stay where they "
           "are";
    for (Id writer : flows[buffer].writers) {
      TVM_CHECK(!tree.IsBlock(writer) || writer == id, ScheduleError)
          << "block " << tree.NameOf(id) << " is no complete block: " << buffer->name
          << " is also written by block " << tree.NameOf(writer)
          << "; move a reduction first and decompose it then";
    }
  }
}

void RequireAllInstances(const Tree& tree, Id id) {
  const BlockItem& block = tree.block(id);
  const std::vector<Buffer> written = WrittenBy(tree, id);
  bool result = std::any_of(written.begin(), written.end(),
                            [&](const Buffer& buffer) { return tree.IsParam(buffer); });
  // An instance whose body chooses to write nothing does not cover, but may run elsewhere.
  TVM_CHECK(block.total && (block.covers || !result || RunsAll(tree, id)), ScheduleError)
      << "it cannot be shown that the loops run every instance of block " << block.name
      << ", and those that do not run must stay so";
}

void RequireOwnVariables(const Tree& tree, Id id, const Ids& kept) {
  VarSet used = VarsOf(Stmt(tree.ToBlock(id)));
  for (Id loop : tree.LoopsAbove(id)) {
    TVM_CHECK(Has(kept, loop) || !used.Contains(tree.loop(loop).var), ScheduleError)
        << "block " << tree.NameOf(id) << " uses the variable of loop " << tree.NameOf(loop)
        << " itself, not only through variables of its own, so it stays under that loop";
  }
}

namespace {

/*! \brief A loop and those around it. */
Ids Around(const Tree& tree, Id loop) {
  Ids around = tree.LoopsAbove(loop);
  around.push_back(loop);
  return around;
}

void CheckPlace(const Tree& tree, Id block, Id loop) {
  bool same_scope = tree[block].parent != kNone && tree.ScopeOf(loop) == tree.ScopeOf(block);
  TVM_CHECK(same_scope, ScheduleError)
      << "loop " << tree.NameOf(loop) << " and block " << tree.NameOf(block)
      << " are not in the same block scope: each is inside of another block";
  TVM_CHECK(!tree.IsUnder(block, loop), ScheduleError)
      << "loop " << tree.NameOf(loop) << " is an ancestor of block " << tree.NameOf(block)
      << " already";
  RequireOwnVariables(tree, block, Around(tree, loop));
}

void CheckInputs(const Tree& tree, Id block, const Flows& flows, const Order& order) {
  std::shared_ptr<const Access> access = AccessOf(tree, block);
  for (const Buffer& buffer : access->read) {
    if (access->Writes(buffer)) continue;
    const Ids& writers = flows[buffer].writers;
    bool late = std::any_of(writers.begin(), writers.end(),
                            [&](Id writer) { return order.IsBefore(block, writer); });
    TVM_CHECK(!late && !tree.IsPinned(buffer), ScheduleError)
        << buffer->name << ", which block " << tree.NameOf(block)
        << " reads, does not have one final value, so the block must read it where it does";
  }
}

/*! \brief Where among what is under a loop a block goes; -1 is as late, -2 as early as possible. */
size_t SlotUnder(const Tree& tree, Id loop, int64_t index, size_t first, size_t last) {
  if (index == -1) return last;
  if (index == -2) return first;
  TVM_CHECK(static_cast<int64_t>(first) <= index && index <= static_cast<int64_t>(last),
            ScheduleError)
      << "index " << index << " under loop " << tree.NameOf(loop) << ": places from " << first
      << " to " << last
      << " are behind what the block reads and before what reads it; -1 is the last of them, -2 "
         "the first";
  return static_cast<size_t>(index);
}

/*! \brief Put a block under a loop, with new loops over `spans` where there are any, else all. */
void Rebuild(Tree* tree, Id id, Id loop, size_t slot, const Spans& spans,
             bool preserve_unit_loops) {
  Ids loops;
  Array<PrimExpr> values, conditions;
  arith::Analyzer simple;
  for (const IterVar& iv : tree->block(id).iter_vars) {
    auto span = spans.find(iv->var.get());
    std::optional<int64_t> length = span == spans.end() ? std::nullopt : AsInt(span->second.extent);
    // What needs more than all from the first value on needs all.
    if (length && *length >= AsInt(iv->dom->extent).value_or(INT64_MAX) &&
        simple.CanProveEqual(span->second.low, iv->dom->min)) {
      span = spans.end();
    }
    PrimExpr low = span == spans.end() ? iv->dom->min : span->second.low;
    PrimExpr extent = span == spans.end() ? iv->dom->extent : span->second.extent;
    PrimExpr value = low;
    if (preserve_unit_loops || !is_const_int(extent, 1)) {
      loops.push_back(tree->AddLoop("ax" + std::to_string(loops.size()), iv->var.dtype(), extent));
      value = low + tree->loop(loops.back()).var;
    }
    values.push_back(value);
    if (span == spans.end()) continue;
    conditions.push_back(value >= iv->dom->min);
    conditions.push_back(value < iv->dom->min + iv->dom->extent);
  }
  tree->Detach(id);
  BlockItem* block = tree->EditBlock(id);
  block->iter_values = values;
  tree->Insert(loop, slot, loops.empty() ? id : tree->Nest(loops, {id}));
  LoopAnalyzer analyzer(*tree, id);
  Array<PrimExpr> limits;
  for (const PrimExpr& condition : conditions) {
    if (!analyzer.CanProve(condition)) limits.push_back(analyzer.Simplify(condition));
  }
  tree->EditBlock(id)->predicate = limits;
  VarSet given = FindGiven(*tree, id, tree->VarsOfLoops(loops));
  tree->EditBlock(id)->given = given;
}

/*! \brief Whether the threads that run a loop have a buffer in common. */
bool IsShared(const LoopItem& loop, const Buffer& buffer) {
  std::string scope = buffer.scope(), tag = loop.thread_tag();
  if (scope.rfind("shared", 0) == 0) {
    return tag.rfind("threadIdx", 0) == 0 || tag.rfind("vthread", 0) == 0;
  }
  return (scope.empty() || scope == "global") && !tag.empty();
}

/*! \brief An interval around all spans; nothing for the whole domain of a variable. */
std::optional<Span> Hull(const std::vector<Span>& spans, const IterVar& iv,
                         arith::Analyzer* analyzer) {
  PrimExpr low = spans[0].low, high = spans[0].high();
  for (size_t i = 0; i < spans.size(); ++i) {
    if (spans[i].whole) return std::nullopt;
    if (i == 0) continue;
    low = tvm::min(low, spans[i].low);
    high = tvm::max(high, spans[i].high());
  }
  low = analyzer->Simplify(low);
  PrimExpr extent = analyzer->Simplify(high - low + 1);
  std::optional<int64_t> size = AsInt(extent);
  if (!size) {
    int64_t bound = analyzer->const_int_bound(extent)->max_value;
    if (bound > 0 && bound < (int64_t{1} << 31)) size = bound;
  }
  std::optional<int64_t> whole = AsInt(iv->dom->extent);
  if (!size || *size < 1 || (whole && *size >= *whole)) return std::nullopt;
  return Span{low, make_const(iv->var.dtype(), *size)};
}

/*! \brief What the index of an axis says about a variable. */
struct WrittenAxis {
  const VarNode* var = nullptr;
  /*! \brief How many elements each value of the variable has. */
  int64_t scale = 1;
  /*! \brief What the variable is taken from, if the axis is written from its end on. */
  PrimExpr from = PrimExpr();
};
struct Written {
  Buffer buffer;
  std::vector<WrittenAxis> axes;
  /*! \brief The indices, where they are those of one element. */
  Array<PrimExpr> indices = {};
};

WrittenAxis AxisOf(const PrimExpr& index) {
  const auto* difference = index.as<SubNode>();
  if (difference != nullptr && AsInt(difference->a)) {
    return {difference->b.as<VarNode>(), 1, difference->a};
  }
  return {index.as<VarNode>()};
}

std::vector<Written> WrittenAt(const Tree& tree, Id id) {
  std::vector<Written> found;
  if (!IsSealed(tree, id)) {
    for (const Touch& touch : AccessOf(tree, id)->writes) {
      found.push_back({touch.buffer, {}, touch.indices});
      for (const PrimExpr& index : touch.indices) {
        found.back().axes.push_back(AxisOf(index));
      }
    }
    return found;
  }
  for (const BufferRegion& region : tree.block(id).writes) {
    found.push_back({region->buffer, {}});
    for (const Range& range : region->region) {
      PrimExpr low = range->min;
      int64_t scale = 1;
      if (const auto* scaled = low.as<MulNode>(); scaled && AsInt(scaled->b)) {
        scale = *AsInt(scaled->b);
        low = scaled->a;
      }
      // Boxes that overlap or leave gaps belong to no single value.
      bool tiles = AsInt(range->extent) == scale;
      found.back().axes.push_back({tiles ? low.as<VarNode>() : nullptr, scale});
    }
  }
  return found;
}

/*!
 * \brief Values of variables that indices mix, such as digits of them, for which the indices are in
 *        a box; nothing if the indices cannot be undone.
 * \param places Names of the indices.
 * \return Variables of which no bounds are known are missing.
 */
std::optional<Spans> Undo(const Array<PrimExpr>& indices, const Array<PrimExpr>& places,
                          const Map<Var, arith::IntSet>& box, const Map<Var, Range>& domains,
                          arith::Analyzer* analyzer) {
  arith::IterMapResult found =
      arith::DetectIterMap(indices, domains, arith::IterMapLevel::kBijective);
  if (!found->errors.empty()) return std::nullopt;
  Spans spans;
  for (const auto& [var, origin] : arith::InverseAffineIterMap(found->indices, places)) {
    const arith::IntSet set = arith::EvalSet(analyzer->Simplify(origin), box, analyzer);
    if (!set.HasLowerBound() || !set.HasUpperBound()) continue;
    const PrimExpr low = analyzer->Simplify(set.min());
    const PrimExpr extent = analyzer->Simplify(set.max() - low + 1);
    if (AsInt(extent)) spans.emplace(var.get(), Span{low, extent});
  }
  return spans;
}

/*!
 * \brief Values of the variables that no axis has to itself, such as those of which digits are
 *        indices, for which a block writes elements in `wanted`.
 */
Spans NeededMixed(const Array<IterVar>& iters, const Written& written,
                  const std::vector<Span>& wanted, arith::Analyzer* analyzer) {
  VarSet own, single, mixed;
  for (const IterVar& iv : iters) own.Add(iv->var);
  for (size_t d = 0; d < written.indices.size(); ++d) {
    if (written.axes[d].var) single.Add(VarsOf(written.indices[static_cast<int64_t>(d)]));
  }
  Array<PrimExpr> indices, places;
  Map<Var, arith::IntSet> box;
  bool apart = true;
  for (size_t d = 0; d < written.indices.size(); ++d) {
    const PrimExpr& index = written.indices[static_cast<int64_t>(d)];
    const VarSet used = VarsOf(index);
    if (written.axes[d].var || used.empty()) continue;
    apart = apart && used.IsSubsetOf(own) && !used.Intersects(single);
    mixed.Add(used - single);
    Var place("x" + std::to_string(d), index.dtype());
    indices.push_back(index);
    places.push_back(place);
    const Range range = Range::FromMinExtent(wanted[d].low, wanted[d].extent);
    box.Set(place, arith::IntSet::FromRange(range));
  }
  Map<Var, Range> domains;
  for (const IterVar& iv : iters) {
    if (mixed.Contains(iv->var)) domains.Set(iv->var, iv->dom);
  }
  Spans spans;
  if (apart && !domains.empty()) {
    spans = Undo(indices, places, box, domains, analyzer).value_or(Spans());
  }
  for (const auto& [var, domain] : domains) {
    spans.emplace(var.get(), Span{domain->min, domain->extent, /*whole=*/true});
  }
  return spans;
}

/*! \brief Values of an axis's variable that have the elements of a span. */
Span Scaled(const Span& span, const WrittenAxis& axis, arith::Analyzer* analyzer) {
  if (span.whole) return span;
  if (axis.from.defined()) return {analyzer->Simplify(axis.from - span.high()), span.extent};
  if (axis.scale == 1) return span;
  PrimExpr size = make_const(span.low.dtype(), axis.scale);
  PrimExpr first = analyzer->Simplify(floordiv(span.low, size));
  PrimExpr last = analyzer->Simplify(floordiv(span.high(), size));
  return {first, analyzer->Simplify(last - first + 1)};
}

/*!
 * \brief Values of the block's variables that one iteration of `loop` needs; all if not listed.
 *
 * Memory that threads share gets what all of them need, so that they can fill it together.
 */
Spans Needed(const Tree& tree, Id id, Id loop, const Ids& consumers, arith::Analyzer* analyzer) {
  std::unordered_map<const VarNode*, std::vector<Span>> found;
  std::vector<Buffer> seen;
  for (const Written& written : WrittenAt(tree, id)) {
    // The store of the init is at the same place as that of the update.
    if (Has(seen, written.buffer)) continue;
    seen.push_back(written.buffer);
    Ids still = Around(tree, loop);
    std::erase_if(still, [&](Id item) { return IsShared(tree.loop(item), written.buffer); });
    for (Id consumer : consumers) {
      Ids free = Without(tree.LoopsAbove(consumer), still);
      for (const auto& spans : ReadSpans(tree, consumer, written.buffer, free, analyzer)) {
        for (size_t d = 0; d < spans.size(); ++d) {
          const WrittenAxis& axis = written.axes[d];
          if (axis.var == nullptr) continue;
          found[axis.var].push_back(Scaled(spans[d], axis, analyzer));
        }
        Spans mixed = NeededMixed(tree.block(id).Spatial(), written, spans, analyzer);
        for (const auto& [var, span] : mixed) found[var].push_back(span);
      }
    }
  }
  Spans needed;
  for (const IterVar& iv : tree.block(id).Spatial()) {
    auto spans = found.find(iv->var.get());
    if (spans == found.end()) continue;
    if (auto hull = Hull(spans->second, iv, analyzer)) needed.emplace(iv->var.get(), *hull);
  }
  return needed;
}

}  // namespace

void ComputeAt(Tree* tree, Id id, Id loop, bool preserve_unit_loops, int64_t index) {
  CheckPlace(*tree, id, loop);
  Flows flows(*tree);
  Order order(*tree);
  BlockKind kind = KindOf(*tree, id);
  const std::string name = tree->NameOf(id);
  TVM_CHECK(kind == BlockKind::kComplete || kind == BlockKind::kReduction, ScheduleError)
      << "block " << name
      << " is no complete block, which computes its elements from others, and no reduction with an "
         "init; only such blocks can be computed elsewhere";
  RequireSoleWriter(*tree, id, flows);
  RequireAllInstances(*tree, id);
  CheckInputs(*tree, id, flows, order);
  Ids consumers;
  std::shared_ptr<const Access> access = AccessOf(*tree, id);
  for (const Buffer& buffer : access->written) {
    TVM_CHECK(!tree->IsParam(buffer), ScheduleError)
        << "block " << name << " is an output block: it writes " << buffer->name
        << ", a result of the function, all of which is needed; use reverse_compute_at to move it "
           "under a loop of its producers";
    for (Id user : flows[buffer].readers) {
      TVM_CHECK(tree->IsUnder(user, loop), ScheduleError)
          << (tree->IsBlock(user) ? tree->NameOf(user) : "a statement") << " reads " << buffer->name
          << " outside of loop " << tree->NameOf(loop) << "; compute_at requires all the consumers "
          << "of block " << name << " under the loop";
      consumers.push_back(user);
    }
  }
  TVM_CHECK(!consumers.empty(), ScheduleError)
      << "nothing under loop " << tree->NameOf(loop) << " reads what block " << name << " writes";
  LoopAnalyzer analyzer(*tree, loop);
  Spans spans = Needed(*tree, id, loop, consumers, &analyzer);
  size_t last = (*tree)[loop].children.size();
  for (Id consumer : consumers) last = std::min(last, tree->IndexOf(loop, consumer));
  size_t slot = SlotUnder(*tree, loop, index, 0, last);
  Rebuild(tree, id, loop, slot, spans, preserve_unit_loops);
  tree->EditBlock(id)->covers = false;
  std::string why = ReductionOrderError(*tree, id);
  TVM_CHECK(why.empty(), ScheduleError) << "block " << name << ": " << why;
}

namespace {

/*! \brief Whether a variable of a consumer has only values for which its producer writes. */
bool IsWithinWritten(const Tree& tree, const IterVar& iv, const Buffer& buffer, Id writer,
                     size_t axis) {
  std::shared_ptr<const Access> access = AccessOf(tree, writer);
  auto touch = std::find_if(access->writes.begin(), access->writes.end(),
                            [&](const Touch& other) { return other.buffer.same_as(buffer); });
  const PrimExpr& place = touch->indices[static_cast<int64_t>(axis)];
  PrimExpr low = place, high = place;
  for (const IterVar& own : tree.block(writer).iter_vars) {
    if (!own->var.same_as(place)) continue;
    low = own->dom->min;
    high = own->dom->min + own->dom->extent - 1;
  }
  arith::Analyzer analyzer;
  return analyzer.CanProve(low <= iv->dom->min) &&
         analyzer.CanProve(iv->dom->min + iv->dom->extent - 1 <= high);
}

/*! \brief An index that counts tiles of a variable. */
struct Tiled {
  const VarNode* var;
  int64_t size;
};

std::optional<Tiled> TileIndex(const PrimExpr& index, const Array<IterVar>& iters) {
  const auto* quotient = index.as<FloorDivNode>();
  const auto* var = quotient == nullptr ? nullptr : quotient->a.as<VarNode>();
  std::optional<int64_t> size = var == nullptr ? std::nullopt : AsInt(quotient->b);
  for (const IterVar& iv : iters) {
    if (size && *size >= 1 && iv->var.get() == var) return Tiled{var, *size};
  }
  return std::nullopt;
}

/*! \brief Reads at an index that is no variable; the elements that are written bound it. */
struct Mapped {
  size_t axis;
  /*! \brief Whether the elements are fewer than those of the axis. */
  bool limits;
};

/*!
 * \brief Values of variables that indices mix, from the elements in a box: what undoes the indices
 * is evaluated over it.
 * \return Conditions for instances that read an element outside of the box; nothing if the indices
 * cannot be undone.
 */
std::optional<Array<PrimExpr>> UndoIndices(const Array<IterVar>& iters,
                                           const Array<PrimExpr>& place, const Box& box,
                                           const std::vector<Mapped>& mapped,
                                           arith::Analyzer* analyzer, Spans* spans) {
  VarSet mixed, own;
  for (const IterVar& iv : iters) own.Add(iv->var);
  for (const Mapped& read : mapped) {
    if (read.limits) mixed.Add(VarsOf(place[static_cast<int64_t>(read.axis)]));
  }
  // Digits of one variable may be in several indices.
  Array<PrimExpr> indices, outputs;
  Map<Var, arith::IntSet> values;
  Array<PrimExpr> conditions;
  for (const Mapped& read : mapped) {
    const PrimExpr& index = place[static_cast<int64_t>(read.axis)];
    if (!VarsOf(index).Intersects(mixed)) continue;
    // Loops inside of the block move over more elements than one instance's.
    if (!VarsOf(index).IsSubsetOf(own)) return std::nullopt;
    mixed.Add(VarsOf(index));
    const Span& span = box.spans[read.axis];
    const Var& output = box.axes[static_cast<int64_t>(read.axis)];
    indices.push_back(index);
    outputs.push_back(output);
    values.Set(output, arith::IntSet::FromRange(Range::FromMinExtent(span.low, span.extent)));
    if (!read.limits) continue;
    conditions.push_back(index >= span.low);
    conditions.push_back(index <= span.high());
  }
  Map<Var, Range> domains;
  for (const IterVar& iv : iters) {
    if (!mixed.Contains(iv->var)) continue;
    if (spans->count(iv->var.get()) || AsInt(iv->dom->extent).value_or(1) < 1) return std::nullopt;
    domains.Set(iv->var, iv->dom);
  }
  std::optional<Spans> undone = Undo(indices, outputs, values, domains, analyzer);
  if (!undone) return std::nullopt;
  spans->insert(undone->begin(), undone->end());
  return conditions;
}

/*! \brief Values of the block's variables whose inputs one iteration of `loop` writes. */
Spans Produced(const Tree& tree, Id id, Id loop, const Buffer& buffer, Id writer,
               arith::Analyzer* analyzer, Array<PrimExpr>* conditions) {
  Ids still = Around(tree, loop);
  const std::string &name = tree.NameOf(id), &maker = tree.NameOf(writer);
  VarSet reducing = FeedsOf(tree, writer).reducing & tree.VarsOfLoops(still);
  TVM_CHECK(reducing.empty(), ScheduleError)
      << "loop " << (*reducing.begin())->name_hint << " feeds the reduction of block " << maker
      << ", so " << buffer->name << " is not finished under loop " << tree.NameOf(loop)
      << "; give a loop around the reduction";
  auto written = [&](const Ids& fixed) {
    return ExactBox(tree, writer, buffer, Without(tree.LoopsAbove(writer), fixed), analyzer);
  };
  // What threads wrote together they may read together; blocks of threads do not wait for others.
  Ids alone = still;
  if (std::string(buffer.scope()).rfind("shared", 0) == 0) {
    std::erase_if(alone, [&](Id item) { return IsShared(tree.loop(item), buffer); });
  }
  std::optional<Box> box = written(alone);
  if (!box) box = written(still);
  TVM_CHECK(box.has_value(), ScheduleError)
      << "what block " << maker << " writes of " << buffer->name << " in one iteration of loop "
      << tree.NameOf(loop) << " is no box of elements";
  std::shared_ptr<const Access> access = AccessOf(tree, id);
  Array<PrimExpr> place(nullptr);
  for (const Touch& touch : access->reads) {
    if (!touch.buffer.same_as(buffer)) continue;
    if (!place.defined()) place = touch.indices;
    TVM_CHECK(SameIndices(place, touch.indices), ScheduleError)
        << "block " << name << " reads " << buffer->name
        << " at several places, which need not be written in one iteration";
  }
  bool chooses = Chooses(tree.Body(id));
  TVM_CHECK(tree.block(writer).covers || !chooses, ScheduleError)
      << "block " << name << " does not read " << buffer->name
      << " in all of its instances, and block " << maker << " may not write all of it";
  // Of a buffer that the caller gives, elements that nothing writes have values too.
  bool given = tree.IsParam(buffer);
  TVM_CHECK(tree.block(writer).covers || !given, ScheduleError)
      << "block " << maker << " may not write all of " << buffer->name
      << ", the rest of which the caller gives and block " << name << " may read";
  Spans spans;
  VarMap names;
  VarSet limited;
  for (const PrimExpr& condition : box->conditions) limited.Add(VarsOf(condition));
  const Array<IterVar>& iters = tree.block(id).iter_vars;
  std::vector<Mapped> mapped;
  for (size_t d = 0; d < place.size(); ++d) {
    const PrimExpr& at = place[d];
    const Span& span = box->spans[d];
    auto own = std::find_if(iters.begin(), iters.end(),
                            [&](const IterVar& iv) { return iv->var.same_as(at); });
    bool is_own = own != iters.end() && !spans.count((*own)->var.get());
    if (std::optional<Tiled> tiled = TileIndex(at, iters);
        tiled && !chooses && !given && !span.whole && !spans.count(tiled->var)) {
      // Elements of one tile are those of as many instances.
      PrimExpr size = make_const(span.low.dtype(), tiled->size);
      spans.emplace(tiled->var, Span{analyzer->Simplify(span.low * size),
                                     analyzer->Simplify(span.extent * size)});
      names[box->axes[d].get()] = at;
      continue;
    }
    // An instance that reads nothing of what is written would run in no iteration.
    bool within = !(chooses || given) || (is_own && IsWithinWritten(tree, *own, buffer, writer, d));
    if (is_own && within) {
      spans.emplace((*own)->var.get(), span);
      names[box->axes[d].get()] = at;
      continue;
    }
    bool whole = analyzer->CanProve(span.low <= 0) &&
                 analyzer->CanProve(span.high() >= buffer->shape[d] - 1);
    bool limits = !whole || limited.Contains(box->axes[d]);
    TVM_CHECK(!limits || within || !is_own, ScheduleError)
        << "instances of block " << name << " for values of " << at << " that block " << maker
        << " writes nothing of " << buffer->name << " for would run in no iteration of loop "
        << tree.NameOf(loop) << "; use compute_at to move block " << maker << " instead";
    mapped.push_back({d, limits});
    names[box->axes[d].get()] = at;
  }
  *conditions =
      box->conditions.Map([&](const PrimExpr& condition) { return Substitute(condition, names); });
  auto first =
      std::find_if(mapped.begin(), mapped.end(), [](const Mapped& read) { return read.limits; });
  if (first == mapped.end()) return spans;
  // What the caller gives is read also where nothing writes.
  std::optional<Array<PrimExpr>> inside;
  if (!chooses && !given) {
    inside = UndoIndices(iters, place, *box, mapped, analyzer, &spans);
  }
  TVM_CHECK(inside.has_value(), ScheduleError)
      << "block " << name << " reads " << buffer->name << " at "
      << place[static_cast<int64_t>(first->axis)] << ", and an iteration of loop "
      << tree.NameOf(loop) << " writes only a part of that axis";
  for (const PrimExpr& condition : *inside) conditions->push_back(condition);
  return spans;
}

}  // namespace

void ReverseComputeAt(Tree* tree, Id id, Id loop, bool preserve_unit_loops, int64_t index) {
  CheckPlace(*tree, id, loop);
  Flows flows(*tree);
  Order order(*tree);
  const std::string name = tree->NameOf(id);
  BlockKind kind = KindOf(*tree, id);
  TVM_CHECK(kind == BlockKind::kComplete || kind == BlockKind::kReduction, ScheduleError)
      << "block " << name
      << " is no complete block, which computes each element once from others, and no reduction "
         "with an init; use compute_at to move its producers instead";
  RequireSoleWriter(*tree, id, flows);
  RequireAllInstances(*tree, id);
  CheckInputs(*tree, id, flows, order);
  std::shared_ptr<const Access> access = AccessOf(*tree, id);
  std::vector<std::pair<Buffer, Id>> sources;
  Ids own_loops = tree->LoopsAbove(id), around = Around(*tree, loop);
  for (const Buffer& buffer : access->read) {
    // A sum so far is what the block reads of itself.
    if (access->Writes(buffer)) continue;
    const Ids& writers = flows[buffer].writers;
    Ids blocks = writers;
    std::erase_if(blocks, [&](Id writer) { return !tree->IsBlock(writer); });
    bool single = writers.size() == 1 || (writers.size() == 2 && blocks.size() == 2 &&
                                          tree->block(blocks[1]).init_block == blocks[0]);
    for (Id writer : writers) {
      if (tree->IsUnder(writer, loop)) {
        TVM_CHECK(single, ScheduleError)
            << buffer->name << ", which block " << name << " reads, is written by "
            << tree->NamesOf(blocks) << ", each of which may write a part of what is needed";
        sources.emplace_back(buffer, writer);
        continue;
      }
      bool finished = order.IsBefore(writer, loop);
      for (Id item : tree->LoopsAbove(writer)) {
        finished &= !Has(around, item) || Has(own_loops, item);
      }
      TVM_CHECK(finished, ScheduleError)
          << buffer->name << ", which block " << name << " reads too, is not finished under loop "
          << tree->NameOf(loop)
          << "; reverse_compute_at requires all the producers under the loop, or before it";
    }
  }
  TVM_CHECK(!sources.empty(), ScheduleError)
      << "nothing under loop " << tree->NameOf(loop) << " writes what block " << name
      << " reads; reverse_compute_at requires all the producers under the loop";
  auto [buffer, writer] = sources.back();
  LoopAnalyzer analyzer(*tree, loop);
  Array<PrimExpr> conditions;
  Spans spans = Produced(*tree, id, loop, buffer, writer, &analyzer, &conditions);
  size_t first = 0, last = (*tree)[loop].children.size();
  for (const auto& [made, source] : sources) {
    first = std::max(first, tree->IndexOf(loop, source) + 1);
  }
  for (const Buffer& made : access->written) {
    for (Id user : flows[made].readers) {
      if (tree->IsUnder(user, loop)) last = std::min(last, tree->IndexOf(loop, user));
    }
  }
  Rebuild(tree, id, loop, SlotUnder(*tree, loop, index, first, last), spans, preserve_unit_loops);
  VarMap values = tree->block(id).Values();
  if (!conditions.empty()) {
    for (const PrimExpr& condition : conditions) {
      tree->EditBlock(id)->predicate.push_back(Substitute(condition, values));
    }
    Tidy(tree, id);
  }
  if (kind == BlockKind::kReduction) {
    std::string why = ReductionOrderError(*tree, id);
    TVM_CHECK(why.empty(), ScheduleError) << "block " << name << ": " << why;
    TVM_CHECK(StartsAtFirst(*tree, id), ScheduleError)
        << "block " << name << ": the first iteration under loop " << tree->NameOf(loop)
        << " would not be that of its init";
  }
  for (const auto& [other, source] : sources) {
    TVM_CHECK(other.same_as(buffer) || SeesFinished(*tree, source, id, other), ScheduleError)
        << "of " << other->name << ", which block " << name << " reads too, one iteration of loop "
        << tree->NameOf(loop) << " does not write what is needed";
  }
}

}  // namespace sched
}  // namespace tir
}  // namespace tvm
