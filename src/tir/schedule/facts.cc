/*!
 * \file facts.cc
 * \brief Proofs about the values that loops give the variables of a block.
 */
#include "facts.h"

#include <tvm/arith/iter_affine_map.h>
#include <tvm/arith/pattern.h>

#include <algorithm>
#include <cstdlib>

#include "regions.h"

namespace tvm {
namespace tir {
namespace sched {

LoopAnalyzer::LoopAnalyzer(const Tree& tree, Id id, bool fold_unit_loops) {
  Ids loops = tree.LoopsAbove(id);
  if (tree.IsLoop(id)) loops.push_back(id);
  for (Id loop : loops) {
    const LoopItem& l = tree.loop(loop);
    // What is inside of a loop runs only if the loop does.
    if (!AsInt(l.extent)) EnterConstraint(l.extent >= make_const(l.extent.dtype(), 1));
    if (fold_unit_loops || !l.IsUnit()) Bind(l.var, l.range());
  }
  for (Id at = tree[id].parent; at != kNone; at = tree[at].parent) {
    if (!tree.IsBlock(at)) continue;
    for (const IterVar& iv : tree.block(at).iter_vars) Bind(iv->var, iv->dom);
  }
}

namespace {

Ids LongLoops(const Tree& tree, Id block) {
  Ids loops = tree.LoopsAbove(block);
  std::erase_if(loops, [&](Id id) { return tree.loop(id).IsUnit(); });
  return loops;
}

}  // namespace

Feeds FeedsOf(const Tree& tree, Id id) {
  const BlockItem& block = tree.block(id);
  VarSet loops = tree.VarsOfLoops(LongLoops(tree, id));
  Feeds fed;
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    IterVarType type = block.iter_vars[i]->iter_type;
    if (type != kDataPar && type != kCommReduce) continue;
    (type == kDataPar ? fed.spatial : fed.reducing).Add(VarsOf(block.iter_values[i]) & loops);
  }
  fed.mixed = fed.spatial.Intersects(fed.reducing);
  VarSet known = fed.spatial;
  known.Add(fed.reducing);
  for (const PrimExpr& condition : block.predicate) {
    VarSet used = VarsOf(condition) & loops;
    fed.mixed |= used.Intersects(fed.reducing) && !used.IsSubsetOf(fed.reducing);
    fed.mixed |= !used.IsSubsetOf(known);
  }
  return fed;
}

namespace {

/*! \brief Whether `value` is a sum of multiples of loops that reach further than those before. */
bool IsInjective(const Tree& tree, const PrimExpr& value, const Ids& loops) {
  if (loops.size() == 1 && value.same_as(tree.loop(loops[0]).var)) return true;
  Array<PrimExpr> row = Linear(tree, value, loops);
  if (row.empty()) return false;
  std::vector<std::pair<int64_t, Id>> parts;
  for (size_t i = 0; i < loops.size(); ++i) {
    std::optional<int64_t> scale = AsInt(row[i]);
    if (!scale || *scale == 0) return false;
    parts.emplace_back(std::abs(*scale), loops[i]);
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  int64_t reach = 1;
  for (size_t k = 0; k < parts.size(); ++k) {
    std::optional<int64_t> extent = AsInt(tree.loop(parts[k].second).extent);
    // Only the last may be of any length.
    if (parts[k].first < reach || (!extent && k + 1 < parts.size())) return false;
    reach += parts[k].first * (extent.value_or(1) - 1);
  }
  return true;
}

}  // namespace

VarSet FindGiven(const Tree& tree, Id id, const VarSet& own) {
  const BlockItem& block = tree.block(id);
  Ids loops = LongLoops(tree, id);
  VarSet names = tree.VarsOfLoops(loops);
  std::vector<VarSet> used;
  VarSet all_used;
  for (const PrimExpr& value : block.iter_values) {
    used.push_back(VarsOf(value) & names);
    all_used.Add(used.back());
  }
  VarSet idle = names - all_used;
  Array<PrimExpr> left;
  VarSet busy;
  for (size_t i = 0; i < used.size(); ++i) {
    if (used[i].empty()) continue;
    bool alone = true;
    for (size_t k = 0; k < used.size(); ++k) alone &= k == i || !used[i].Intersects(used[k]);
    Ids mine = loops;
    std::erase_if(mine, [&](Id loop) { return !used[i].Contains(tree.loop(loop).var); });
    if (!alone || !IsInjective(tree, block.iter_values[i], mine)) {
      left.push_back(block.iter_values[i]);
      busy.Add(used[i]);
    }
  }
  Map<Var, Range> ranges;
  bool runs = true;
  for (Id loop : loops) {
    const LoopItem& l = tree.loop(loop);
    if (!busy.Contains(l.var)) continue;
    ranges.Set(l.var, l.range());
    bool fixed = !VarsOf(l.min).Intersects(busy) && !VarsOf(l.extent).Intersects(busy);
    runs &= fixed && AsInt(l.extent).value_or(1) > 0;
  }
  if (!left.empty() && runs) {
    auto map = arith::DetectIterMap(left, ranges, arith::IterMapLevel::kBijective);
    if (map->errors.empty()) busy = VarSet();
  }
  idle.Add(busy - own);
  return idle;
}

std::string OrderError(const Tree& tree, Id id) {
  Feeds fed = FeedsOf(tree, id);
  if (fed.mixed) return "a loop around it feeds spatial and reducing variables alike";
  bool below = false;
  VarSet inside;
  for (Id loop : tree.LoopsAbove(id)) {
    below = below || fed.reducing.Contains(tree.loop(loop).var);
    if (below) inside.Add(tree.loop(loop).var);
  }
  VarSet again = inside & tree.block(id).given;
  if (again.empty()) return "";
  return "inside of its reduction, loop " + again.Names() + " would add the same elements again";
}

std::string ReductionOrderError(const Tree& tree, Id id) {
  return KindOf(tree, id) == BlockKind::kReduction ? OrderError(tree, id) : "";
}

bool StartsAtFirst(const Tree& tree, Id id) {
  const BlockItem& block = tree.block(id);
  VarMap first;
  for (Id loop : tree.LoopsAbove(id)) first[tree.loop(loop).var.get()] = tree.loop(loop).min;
  arith::Analyzer analyzer;
  for (const IterVar& iv : block.Reducing()) {
    if (!analyzer.CanProveEqual(Substitute(block.ValueOf(iv->var), first), iv->dom->min)) {
      return false;
    }
  }
  VarSet reducing = FeedsOf(tree, id).reducing;
  for (const PrimExpr& condition : block.predicate) {
    if (VarsOf(condition).Intersects(reducing) &&
        !analyzer.CanProve(Substitute(condition, first))) {
      return false;
    }
  }
  return true;
}

namespace {

/*! \brief Conditions that say that the block's values are in their domains. */
Array<PrimExpr> Inside(const BlockItem& block) {
  Array<PrimExpr> bounds;
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    const Range& dom = block.iter_vars[i]->dom;
    bounds.push_back(block.iter_values[i] >= dom->min);
    bounds.push_back(block.iter_values[i] < dom->min + dom->extent);
  }
  return bounds;
}

bool Follow(const Tree& tree, Id id, const Array<PrimExpr>& facts, const Array<PrimExpr>& claims) {
  LoopAnalyzer analyzer(tree, id);
  std::vector<std::function<void()>> exits;
  for (const PrimExpr& fact : facts) exits.push_back(analyzer.EnterConstraint(fact));
  bool all = std::all_of(claims.begin(), claims.end(),
                         [&](const PrimExpr& claim) { return analyzer.CanProve(claim); });
  while (!exits.empty()) {
    exits.back()();
    exits.pop_back();
  }
  return all;
}

/*! \brief Whether each value runs over its domain by loops of its own. */
bool ReachesAllAlone(const Tree& tree, Id id, const Ids& loops) {
  const BlockItem& block = tree.block(id);
  arith::Analyzer analyzer;
  VarMap units;
  for (Id loop : tree.LoopsAbove(id)) {
    const LoopItem& l = tree.loop(loop);
    if (l.IsUnit()) units[l.var.get()] = l.min;
  }
  std::vector<VarSet> used;
  Array<PrimExpr> values =
      block.iter_values.Map([&](const PrimExpr& value) { return Substitute(value, units); });
  for (const PrimExpr& value : values) used.push_back(VarsOf(value));
  for (size_t i = 0; i < used.size(); ++i) {
    for (size_t k = 0; k < used.size(); ++k) {
      if (k != i && used[i].Intersects(used[k])) return false;
    }
    Ids mine = loops;
    std::erase_if(mine, [&](Id loop) { return !used[i].Contains(tree.loop(loop).var); });
    Array<PrimExpr> row = Linear(tree, values[i], mine);
    std::optional<Span> span = row.empty() ? std::nullopt : Contiguous(tree, row, mine, &analyzer);
    if (!span) return false;
    const Range& dom = block.iter_vars[i]->dom;
    if (!analyzer.CanProve(span->low <= dom->min) ||
        !analyzer.CanProve(dom->min + dom->extent - 1 <= span->high())) {
      return false;
    }
  }
  return true;
}

/*! \brief Whether as many different instances run as there are. */
bool ReachesAllTogether(const Tree& tree, Id id, const Ids& loops) {
  const BlockItem& block = tree.block(id);
  VarSet used;
  for (const PrimExpr& value : block.iter_values) used.Add(VarsOf(value));
  Ids busy = loops;
  std::erase_if(busy, [&](Id loop) { return !used.Contains(tree.loop(loop).var); });
  VarSet idle = tree.VarsOfLoops(loops) - tree.VarsOfLoops(busy);
  if (!block.predicate.empty() || !(FindGiven(tree, id) - idle).empty()) return false;
  int64_t running = 1, wanted = 1;
  // Sizes that are no numbers.
  PrimExpr run = make_const(DataType::Int(64), 1), want = run;
  auto count = [](const PrimExpr& extent, int64_t* number, PrimExpr* sizes) {
    std::optional<int64_t> known = AsInt(extent);
    if (!known) *sizes = *sizes * cast(DataType::Int(64), extent);
    return !__builtin_mul_overflow(*number, known.value_or(1), number);
  };
  for (Id loop : busy) {
    if (!count(tree.loop(loop).extent, &running, &run)) return false;
  }
  for (const IterVar& iv : block.iter_vars) {
    if (!count(iv->dom->extent, &wanted, &want)) return false;
  }
  if (AsInt(run) && AsInt(want)) return running == wanted;
  LoopAnalyzer analyzer(tree, id);
  return analyzer.CanProveEqual(run * make_const(run.dtype(), running),
                                want * make_const(want.dtype(), wanted));
}

}  // namespace

bool StaysInside(const Tree& tree, Id id) {
  return Follow(tree, id, tree.block(id).predicate, Inside(tree.block(id)));
}

bool RunsAll(const Tree& tree, Id id) {
  // A predicate may do no more than to keep values in their domains.
  if (!Follow(tree, id, Inside(tree.block(id)), tree.block(id).predicate)) return false;
  Ids loops = LongLoops(tree, id);
  return ReachesAllAlone(tree, id, loops) || ReachesAllTogether(tree, id, loops);
}

}  // namespace sched
}  // namespace tir
}  // namespace tvm
