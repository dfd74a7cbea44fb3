/*!
 * \file regions.cc
 * \brief Boxes around accesses, by linear forms of their indices.
 */
#include "regions.h"

#include <tvm/arith/estimate_region.h>
#include <tvm/arith/int_set.h>
#include <tvm/arith/pattern.h>

#include <algorithm>

#include "facts.h"

namespace tvm {
namespace tir {
namespace sched {
namespace {

PrimExpr Zero(const PrimExpr& like) { return make_const(like.dtype(), 0); }

std::vector<Span> Whole(const Buffer& buffer) {
  std::vector<Span> spans;
  for (const PrimExpr& extent : buffer->shape) spans.push_back({Zero(extent), extent, true});
  return spans;
}

/*! \brief Indices at which a leaf block accesses a buffer, in terms of loops. */
std::vector<Array<PrimExpr>> Places(const Tree& tree, Id id, const Buffer& buffer,
                                    const std::vector<Touch>& touches) {
  VarMap values = tree.block(id).Values();
  std::vector<Array<PrimExpr>> places;
  for (const Touch& touch : touches) {
    if (!touch.buffer.same_as(buffer)) continue;
    places.push_back(
        touch.indices.Map([&](const PrimExpr& index) { return Substitute(index, values); }));
  }
  return places;
}

/*! \brief The interval of an index while loops run, if its ends are in terms of fixed ones. */
std::optional<Span> IntervalOf(const PrimExpr& index, const Map<Var, arith::IntSet>& moving,
                               const VarSet& fixed, arith::Analyzer* analyzer) {
  for (const Var& var : VarsOf(index)) {
    if (!fixed.Contains(var) && !moving.count(var)) return std::nullopt;
  }
  if (ReadsMemory(index)) return std::nullopt;
  arith::IntSet set = arith::EvalSet(index, moving);
  const auto* interval = set.as<arith::IntervalSetNode>();
  if (interval == nullptr) return std::nullopt;
  for (const PrimExpr& end : {interval->min_value, interval->max_value}) {
    // An end that is missing is a variable that nothing knows, so this asks for both.
    if (!VarsOf(end).IsSubsetOf(fixed)) return std::nullopt;
  }
  return Span{analyzer->Simplify(interval->min_value),
              analyzer->Simplify(interval->max_value - interval->min_value + 1)};
}

}  // namespace

std::vector<std::vector<Span>> ReadSpans(const Tree& tree, Id id, const Buffer& buffer,
                                         const Ids& free, arith::Analyzer* analyzer) {
  std::shared_ptr<const Access> access = AccessOf(tree, id);
  if (IsSealed(tree, id)) {
    auto spans = DeclaredSpans(tree, id, buffer, false, free, analyzer);
    if (spans) return {*spans};
  }
  if (access->opaque || !tree.IsLeafBlock(id)) return {Whole(buffer)};
  VarSet fixed = tree.VarsOfLoops(Without(tree.LoopsAbove(id), free));
  Map<Var, arith::IntSet> moving;
  for (Id loop : free) {
    moving.Set(tree.loop(loop).var, arith::IntSet::FromRange(tree.loop(loop).range()));
  }
  std::vector<std::vector<Span>> boxes;
  for (const Array<PrimExpr>& place : Places(tree, id, buffer, access->reads)) {
    std::vector<Span> spans = Whole(buffer);
    for (size_t d = 0; d < place.size(); ++d) {
      if (auto span = IntervalOf(place[d], moving, fixed, analyzer)) spans[d] = *span;
    }
    boxes.push_back(std::move(spans));
  }
  return boxes;
}

std::optional<std::vector<Span>> DeclaredSpans(const Tree& tree, Id id, const Buffer& buffer,
                                               bool write, const Ids& free,
                                               arith::Analyzer* analyzer) {
  const BlockItem& block = tree.block(id);
  VarMap values = block.Values();
  VarSet moving = tree.VarsOfLoops(free);
  Map<Var, arith::IntSet> sets;
  for (Id loop : free) {
    sets.Set(tree.loop(loop).var, arith::IntSet::FromRange(tree.loop(loop).range()));
  }
  std::optional<std::vector<Span>> found;
  for (const BufferRegion& region : write ? block.writes : block.reads) {
    if (!region->buffer.same_as(buffer)) continue;
    std::vector<Span> spans = Whole(buffer);
    for (size_t d = 0; d < spans.size(); ++d) {
      const Range& range = region->region[static_cast<int64_t>(d)];
      PrimExpr first = Substitute(range->min, values);
      PrimExpr last = Substitute(range->min + range->extent - 1, values);
      VarSet fixed = VarsOf(first);
      fixed.Add(VarsOf(last));
      fixed = fixed - moving;
      auto low = IntervalOf(first, sets, fixed, analyzer);
      auto high = IntervalOf(last, sets, fixed, analyzer);
      if (!low || !high) continue;
      PrimExpr begin = low->low, end = high->high();
      if (analyzer->CanProve(begin <= 0)) begin = spans[d].low;
      if (analyzer->CanProve(end >= spans[d].high())) end = spans[d].high();
      spans[d] = {analyzer->Simplify(begin), analyzer->Simplify(end - begin + 1)};
    }
    if (found && !SameSpans(*found, spans)) return Whole(buffer);
    found = spans;
  }
  return found;
}

bool SameSpans(const std::vector<Span>& a, const std::vector<Span>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Span& x, const Span& y) {
    return ExprDeepEqual()(x.low, y.low) && ExprDeepEqual()(x.extent, y.extent);
  });
}

Array<PrimExpr> Linear(const Tree& tree, const PrimExpr& expr, const Ids& loops) {
  if (loops.empty()) return {expr};
  Array<Var> vars;
  for (Id loop : loops) vars.push_back(tree.loop(loop).var);
  return arith::DetectLinearEquation(expr, vars);
}

std::optional<Span> Contiguous(const Tree& tree, const Array<PrimExpr>& row, const Ids& loops,
                               arith::Analyzer* analyzer, int64_t length) {
  PrimExpr low = row.back();
  std::vector<std::pair<int64_t, Id>> parts;
  for (size_t i = 0; i < loops.size(); ++i) {
    std::optional<int64_t> scale = AsInt(analyzer->Simplify(row[i]));
    if (!scale || *scale < 0) return std::nullopt;
    if (*scale == 0) continue;
    parts.emplace_back(*scale, loops[i]);
    low = low + tree.loop(loops[i]).min * *scale;
  }
  low = analyzer->Simplify(low);
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  int64_t reach = length;
  for (size_t k = 0; k < parts.size(); ++k) {
    auto [scale, id] = parts[k];
    const PrimExpr& length = tree.loop(id).extent;
    std::optional<int64_t> extent = AsInt(length);
    if (scale > reach || (extent && *extent < 1)) return std::nullopt;
    if (extent) {
      reach += scale * (*extent - 1);
    } else if (k + 1 == parts.size()) {
      // Only the last may be of any length.
      return Span{low, analyzer->Simplify(length * scale + (reach - scale))};
    } else {
      return std::nullopt;
    }
  }
  return Span{low, make_const(low.dtype(), reach)};
}

namespace {

/*! \brief The variable whose whole domain is on an axis, if the moving loops reach all of it. */
const IterVarNode* FullDomain(const Tree& tree, Id id, const PrimExpr& index,
                              const VarSet& moving) {
  const BlockItem& block = tree.block(id);
  if (!block.covers) return nullptr;
  for (const IterVar& iv : block.Spatial()) {
    if (!iv->var.same_as(index)) continue;
    // Loops that share a variable of the block, or a condition, move together.
    VarSet loops;
    for (Id loop : tree.LoopsAbove(id)) {
      if (!tree.loop(loop).IsUnit()) loops.Add(tree.loop(loop).var);
    }
    VarSet group = VarsOf(block.ValueOf(iv->var));
    size_t size = 0;
    while (size != group.size()) {
      size = group.size();
      for (const auto* parts : {&block.iter_values, &block.predicate}) {
        for (const PrimExpr& part : *parts) {
          VarSet used = VarsOf(part) & loops;
          if (used.Intersects(group)) group.Add(used);
        }
      }
    }
    return (group & loops).IsSubsetOf(moving) ? iv.get() : nullptr;
  }
  return nullptr;
}

std::optional<std::vector<int64_t>> Scales(const Array<PrimExpr>& row) {
  std::vector<int64_t> numbers;
  for (size_t i = 0; i + 1 < row.size(); ++i) {
    std::optional<int64_t> number = AsInt(row[i]);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

template <typename TNode>
bool Sides(const PrimExpr& condition, PrimExpr* a, PrimExpr* b) {
  const auto* op = condition.as<TNode>();
  if (op == nullptr) return false;
  *a = op->a;
  *b = op->b;
  return true;
}

PrimExpr Compare(const PrimExpr& like, const PrimExpr& a, const PrimExpr& b) {
  if (like.as<LTNode>()) return LT(a, b);
  if (like.as<LENode>()) return LE(a, b);
  if (like.as<GTNode>()) return GT(a, b);
  if (like.as<GENode>()) return GE(a, b);
  return EQ(a, b);
}

/*! \brief A condition on loops as one on the index of an axis; undefined if it is none. */
PrimExpr OnAxis(const Tree& tree, const PrimExpr& condition, const Ids& loops,
                const std::vector<Array<PrimExpr>>& rows, const Array<Var>& axes) {
  PrimExpr a, b;
  if (!Sides<LTNode>(condition, &a, &b) && !Sides<LENode>(condition, &a, &b) &&
      !Sides<GTNode>(condition, &a, &b) && !Sides<GENode>(condition, &a, &b) &&
      !Sides<EQNode>(condition, &a, &b)) {
    return PrimExpr();
  }
  Array<PrimExpr> wanted = Linear(tree, a - b, loops);
  if (wanted.empty()) return PrimExpr();
  auto numbers = Scales(wanted);
  if (!numbers) return PrimExpr();
  for (size_t d = 0; d < rows.size(); ++d) {
    if (rows[d].empty()) continue;
    auto scales = Scales(rows[d]);
    if (!scales) continue;
    auto first = std::find_if(scales->begin(), scales->end(), [](int64_t s) { return s != 0; });
    if (first == scales->end()) continue;
    int64_t number = (*numbers)[static_cast<size_t>(first - scales->begin())];
    int64_t factor = number / *first;
    if (factor == 0 || number % *first != 0) continue;
    bool same = true;
    for (size_t i = 0; i < scales->size(); ++i) same &= (*numbers)[i] == factor * (*scales)[i];
    if (!same) continue;
    // a - b = factor * (axis - the rest of its row) + the rest of wanted
    PrimExpr value = (axes[d] - rows[d].back()) * factor + wanted.back();
    return Compare(condition, value, Zero(value));
  }
  return PrimExpr();
}

/*! \brief The elements of a region while loops run, where quotients of one loop are indices. */
std::optional<Box> DividedBox(const Tree& tree, const Array<Range>& region, const Ids& free,
                              arith::Analyzer* analyzer) {
  Map<Var, Range> moving;
  for (Id loop : free) moving.Set(tree.loop(loop).var, tree.loop(loop).range());
  auto sets = arith::EstimateRegionStrictBound(region, moving, const_true());
  if (!sets.defined()) return std::nullopt;
  Box box;
  for (const arith::IntSet& set : sets.value()) {
    const auto* interval = set.as<arith::IntervalSetNode>();
    if (interval == nullptr) return std::nullopt;
    PrimExpr low = analyzer->Simplify(interval->min_value);
    PrimExpr extent = analyzer->Simplify(interval->max_value - interval->min_value + 1);
    box.axes.push_back(Var("x" + std::to_string(box.axes.size()), low.dtype()));
    box.spans.push_back({low, extent});
  }
  return box;
}

/*! \brief What a block that was put around a nest writes: boxes, one for each instance. */
std::optional<Box> SealedBox(const Tree& tree, Id id, const Buffer& buffer, const Ids& free,
                             arith::Analyzer* analyzer) {
  const BlockItem& block = tree.block(id);
  if (!block.predicate.empty()) return std::nullopt;
  auto region =
      std::find_if(block.writes.begin(), block.writes.end(),
                   [&](const BufferRegion& other) { return other->buffer.same_as(buffer); });
  if (region == block.writes.end()) return std::nullopt;
  Box box;
  VarMap values = block.Values();
  VarSet moving = tree.VarsOfLoops(free), seen;
  Array<Range> ranges = (*region)->region.Map([&](const Range& range) {
    return Range::FromMinExtent(Substitute(range->min, values), range->extent);
  });
  for (const Range& range : ranges) {
    const PrimExpr& low = range->min;
    std::optional<int64_t> length = AsInt(range->extent);
    VarSet used = VarsOf(low) & moving;
    Array<PrimExpr> row = Linear(tree, low, free);
    bool linear = !row.empty() && !used.Intersects(seen);
    if (!linear) return DividedBox(tree, ranges, free, analyzer);
    if (!length && !used.empty()) return std::nullopt;
    seen.Add(used);
    std::optional<Span> span = Span{analyzer->Simplify(low), range->extent};
    if (!used.empty()) span = Contiguous(tree, row, free, analyzer, *length);
    if (!span) return DividedBox(tree, ranges, free, analyzer);
    box.axes.push_back(Var("x" + std::to_string(box.axes.size()), low.dtype()));
    box.spans.push_back(*span);
  }
  return box;
}

}  // namespace

std::optional<Box> ExactBox(const Tree& tree, Id id, const Buffer& buffer, Ids free,
                            arith::Analyzer* analyzer) {
  std::shared_ptr<const Access> access = AccessOf(tree, id);
  if (IsSealed(tree, id)) return SealedBox(tree, id, buffer, free, analyzer);
  bool known = !access->opaque && !access->conditional && tree.IsLeafBlock(id);
  if (!known) return std::nullopt;
  std::vector<Array<PrimExpr>> places = Places(tree, id, buffer, access->writes);
  if (places.empty()) return std::nullopt;
  const Array<PrimExpr>& own_place =
      std::find_if(access->writes.begin(), access->writes.end(), [&](const Touch& touch) {
        return touch.buffer.same_as(buffer);
      })->indices;
  // Loops of one iteration do not move.
  VarMap fixed;
  for (Id loop : free) {
    const LoopItem& l = tree.loop(loop);
    if (l.IsUnit()) fixed[l.var.get()] = l.min;
  }
  std::erase_if(free, [&](Id loop) { return tree.loop(loop).IsUnit(); });
  VarSet moving = tree.VarsOfLoops(free);
  Box box;
  Array<PrimExpr> place =
      places[0].Map([&](const PrimExpr& index) { return Substitute(index, fixed); });
  LoopAnalyzer inside(tree, id);
  std::vector<Array<PrimExpr>> rows;
  std::vector<VarSet> by_axis;
  for (size_t d = 0; d < place.size(); ++d) {
    box.axes.push_back(Var("x" + std::to_string(d), place[d].dtype()));
    rows.push_back(Linear(tree, place[d], free));
    if (rows.back().empty()) {
      // Digits of a split variable are loops where the lengths of the loops fit.
      place.Set(static_cast<int64_t>(d), inside.Simplify(place[d]));
      rows.back() = Linear(tree, place[d], free);
    }
    by_axis.push_back(VarsOf(place[d]) & moving);
  }
  VarSet full;
  for (size_t d = 0; d < place.size(); ++d) {
    bool mingled = false;
    for (size_t e = 0; e < place.size(); ++e)
      mingled |= e != d && by_axis[d].Intersects(by_axis[e]);
    std::optional<Span> span;
    if (!rows[d].empty() && !mingled) span = Contiguous(tree, rows[d], free, analyzer);
    if (!span) {
      const IterVarNode* iv = FullDomain(tree, id, own_place[d], moving);
      if (iv == nullptr) return std::nullopt;
      span = Span{iv->dom->min, iv->dom->extent};
      full.Add(VarsOf(place[d]));
    }
    box.spans.push_back(*span);
  }
  VarSet idle = moving & FeedsOf(tree, id).reducing;
  for (const PrimExpr& given : tree.block(id).predicate) {
    PrimExpr condition = Substitute(given, fixed);
    VarSet used = VarsOf(condition) & moving;
    if (used.empty()) {
      box.conditions.push_back(condition);
    } else if (!used.IsSubsetOf(full) && !used.IsSubsetOf(idle)) {
      // Of the others all instances run: the condition is about how, not about which.
      PrimExpr found = OnAxis(tree, condition, free, rows, box.axes);
      if (!found.defined()) return std::nullopt;
      box.conditions.push_back(analyzer->Simplify(found));
    }
  }
  return box;
}

bool BoxCovers(const Box& box, const std::vector<Span>& spans, const Array<PrimExpr>& shape,
               arith::Analyzer* analyzer) {
  VarSet axes(box.axes);
  for (size_t d = 0; d < spans.size(); ++d) {
    const Span &have = box.spans[d], &need = spans[d];
    PrimExpr zero = Zero(box.axes[d]), end = zero + shape[d] - 1;
    if (!analyzer->CanProve(have.low <= need.low) && !analyzer->CanProve(have.low <= zero)) {
      return false;
    }
    if (!analyzer->CanProve(need.high() <= have.high()) &&
        !analyzer->CanProve(end <= have.high())) {
      return false;
    }
    for (const PrimExpr& condition : box.conditions) {
      if (!VarsOf(condition).Contains(box.axes[d])) continue;
      // Linear in the axis, so what holds at both ends holds between.
      auto holds_at = [&](const PrimExpr& at) {
        return analyzer->CanProve(Substitute(condition, VarMap{{box.axes[d].get(), at}}));
      };
      if (!holds_at(need.low) && !holds_at(zero)) return false;
      if (!holds_at(need.high()) && !holds_at(end)) return false;
    }
  }
  return std::all_of(box.conditions.begin(), box.conditions.end(), [&](const PrimExpr& condition) {
    return VarsOf(condition).Intersects(axes) || analyzer->CanProve(condition);
  });
}

}  // namespace sched
}  // namespace tir
}  // namespace tvm
