/*!
 * \file message_passing.cc
 * \brief Domains, indices and facts along split, fuse, rebase and singleton relations.
 */
#include "message_passing.h"

#include <tvm/expr/lanes.h>
#include <tvm/expr/op.h>
#include <tvm/tir/stmt_functor.h>

#include <utility>

#include "loop_relations.h"

namespace tvm {
namespace te {

using arith::IntSet;

namespace {

/*! \brief What an index is divided by for a loop of `extent` trips; a loop of none has no index. */
PrimExpr Divisor(const PrimExpr& extent) {
  return tir::is_zero(extent) ? tir::make_const(extent.dtype(), 1) : extent;
}

/*! \brief Extents of (ceil(extent / factor), factor), where the factor may exceed the extent. */
std::pair<PrimExpr, PrimExpr> SplitSizes(const PrimExpr& extent, const PrimExpr& factor,
                                         bool no_tighten, arith::Analyzer* analyzer) {
  PrimExpr size = cast(extent.dtype(), factor);
  if (tir::is_one(extent) && !no_tighten) return {extent, extent};
  PrimExpr trips = analyzer->Simplify(floordiv(extent + (size - 1), size));
  if (no_tighten) return {trips, size};
  PrimExpr shorter = analyzer->Simplify(min(extent, size));
  // A loop of constant length can be vectorised, unrolled and reduced over threads, which is worth
  // more than the few idle trips of an extent that turns out to be shorter. So can one of the
  // length of a scalable vector, however long the loop is.
  const bool scalable = tir::LanesOfCount(size).value_or(1) < 0;
  // The smaller of both may be simplified into another form, min(2 * n, 6) into min(n, 3) * 2.
  const bool undecided = shorter.as<tir::MinNode>() != nullptr ||
                         (!tir::is_const_int(shorter) && !analyzer->CanProveEqual(shorter, extent));
  bool keep = (tir::is_const_int(size) && undecided) || scalable;
  return {trips, keep ? size : shorter};
}

/*! \brief Records `domain`; two loops that share a thread axis have to agree on its extent. */
void UpdateDomain(const Stage& stage, const IterVar& loop, const Range& domain, RangeMap* domains,
                  arith::Analyzer* analyzer) {
  auto [it, is_new] = domains->emplace(loop, domain);
  if (is_new) return;
  TVM_CHECK(analyzer->CanProveEqual(it->second->extent, domain->extent), ScheduleError)
      << "stage " << stage->op->name << ": loop " << loop->var->name_hint << " has extent "
      << it->second->extent << " in one place and " << domain->extent
      << " in another; split so that both agree";
  it->second = domain;
}

bool MentionsRounding(const PrimExpr& expr) {
  bool found = false;
  tir::PostOrderVisit(expr, [&found](const ObjectRef& node) {
    if (node.as<tir::FloorDivNode>() || node.as<tir::MinNode>() || node.as<tir::DivNode>()) {
      found = true;
    }
  });
  return found;
}

bool MentionsSizeVar(const PrimExpr& expr) {
  bool found = false;
  tir::PostOrderVisit(expr, [&found](const ObjectRef& node) {
    if (node.as<tir::SizeVarNode>()) found = true;
  });
  return found;
}

}  // namespace

bool IsExactSplit(const PrimExpr& parent, const PrimExpr& outer, const PrimExpr& inner,
                  arith::Analyzer* analyzer) {
  if (analyzer->CanProveEqual(outer * inner, parent)) return true;
  // The extents of an inexact symbolic split are a rounded quotient and a minimum. Where neither
  // is left the VarContext knew the division to be exact, although the variables do not show it.
  if (!MentionsSizeVar(outer) && !MentionsSizeVar(inner)) return false;
  return !MentionsRounding(outer) && !MentionsRounding(inner);
}

namespace {

/*! \brief Loops that are bound to threads or from which such loops derive. */
IterVarMap<bool> LoopsOfThreads(const Stage& stage) {
  IterVarMap<bool> threaded;
  for (const IterVar& loop : stage->leaf_iter_vars) {
    threaded[loop] = BoundThread(stage, loop).defined();
  }
  WalkUp(
      stage.get(),
      [&](const SplitNode* split) {
        threaded[split->parent] = threaded[split->outer] || threaded[split->inner];
      },
      [&](const FuseNode* fuse) {
        threaded[fuse->outer] = threaded[fuse->inner] = threaded[fuse->fused];
      },
      [&](const RebaseNode* rebase) { threaded[rebase->parent] = threaded[rebase->rebased]; });
  return threaded;
}

}  // namespace

void PassDownDomain(const Stage& stage, RangeMap* domains, arith::Analyzer* analyzer,
                    const arith::VarContext* var_context) {
  auto update = [&](const IterVar& loop, const PrimExpr& extent) {
    UpdateDomain(stage, loop, Range::FromMinExtent(tir::make_zero(extent.dtype()), extent), domains,
                 analyzer);
  };
  // All loops bound to one thread axis have its extent, however short a loop could be: threads
  // beyond the end wait.
  IterVarMap<bool> threaded = LoopsOfThreads(stage);
  WalkDown(
      stage.get(),
      [&](const SplitNode* split) {
        PrimExpr extent = domains->at(split->parent)->extent;
        std::pair<PrimExpr, PrimExpr> sizes;  // outer, inner
        if (split->factor.defined()) {
          bool no_tighten = threaded[split->inner] || split->pads;
          sizes = var_context != nullptr
                      ? var_context->SplitSizes(extent, split->factor, no_tighten)
                      : SplitSizes(extent, split->factor, no_tighten, analyzer);
        } else {
          bool no_tighten = threaded[split->outer];
          if (var_context != nullptr) {
            sizes = var_context->SplitSizesByParts(extent, split->nparts);
          } else {
            auto [inner, outer] = SplitSizes(extent, split->nparts, no_tighten, analyzer);
            sizes = {outer, inner};
          }
        }
        update(split->outer, sizes.first);
        update(split->inner, sizes.second);
      },
      [&](const FuseNode* fuse) {
        PrimExpr extent =
            analyzer->Simplify(domains->at(fuse->outer)->extent * domains->at(fuse->inner)->extent);
        if (var_context != nullptr) extent = var_context->DefineShorthand(extent);
        update(fuse->fused, extent);
      },
      [&](const RebaseNode* rebase) {
        update(rebase->rebased, domains->at(rebase->parent)->extent);
      },
      [&](const SingletonNode* single) { update(single->iter, PrimExpr(1)); });
  for (const IterVar& loop : stage->leaf_iter_vars) {
    IterVar thread = BoundThread(stage, loop);
    if (!thread.defined()) continue;
    PrimExpr extent = domains->at(loop)->extent;
    if (thread->dom.defined()) {
      TVM_CHECK(analyzer->CanProveEqual(thread->dom->extent, extent), ScheduleError)
          << "stage " << stage->op->name << ": loop " << loop->var->name_hint << " of extent "
          << extent << " is bound to " << thread->thread_tag << ", which was declared with extent "
          << thread->dom->extent << "; split the loop to that extent";
    }
    update(thread, extent);
  }
}

void PassUpIndex(const Stage& stage, const RangeMap& domains, IterVarMap<PrimExpr>* values) {
  // Adding a zero or scaling by one would only be noise for the simplifier to remove.
  auto offset = [&](PrimExpr value, const IterVar& root) {
    const PrimExpr& start = domains.at(root)->min;
    return tir::is_zero(start) ? value : value + start;
  };
  WalkUp(
      stage.get(),
      [&](const SplitNode* split) {
        if (!values->count(split->outer) || !values->count(split->inner)) return;
        PrimExpr outer = values->at(split->outer);
        PrimExpr inner = values->at(split->inner);
        PrimExpr factor = domains.at(split->inner)->extent;
        (*values)[split->parent] = offset(outer * factor + inner, split->parent);
      },
      [&](const FuseNode* fuse) {
        if (!values->count(fuse->fused)) return;
        PrimExpr value = values->at(fuse->fused);
        PrimExpr factor = Divisor(domains.at(fuse->inner)->extent);
        PrimExpr trips = domains.at(fuse->outer)->extent;
        PrimExpr zero = tir::make_zero(value.dtype());
        PrimExpr outer = tir::is_one(trips) ? zero : floordiv(value, factor);
        // With one trip of both, a value past the end must show in one of them to be guarded.
        PrimExpr inner = tir::is_one(trips)    ? value
                         : tir::is_one(factor) ? zero
                                               : floormod(value, factor);
        (*values)[fuse->outer] = offset(outer, fuse->outer);
        (*values)[fuse->inner] = offset(inner, fuse->inner);
      },
      [&](const RebaseNode* rebase) {
        if (!values->count(rebase->rebased)) return;
        (*values)[rebase->parent] = offset(values->at(rebase->rebased), rebase->parent);
      });
}

void PassDownIndex(const Stage& stage, const RangeMap& domains, IterVarMap<PrimExpr>* values) {
  auto from_zero = [&](const IterVar& root) {
    const PrimExpr& start = domains.at(root)->min;
    PrimExpr value = values->at(root);
    return tir::is_zero(start) ? value : value - start;
  };
  WalkDown(
      stage.get(),
      [&](const SplitNode* split) {
        if (!values->count(split->parent)) return;
        PrimExpr value = from_zero(split->parent);
        PrimExpr factor = Divisor(domains.at(split->inner)->extent);
        (*values)[split->outer] = floordiv(value, factor);
        (*values)[split->inner] = floormod(value, factor);
      },
      [&](const FuseNode* fuse) {
        if (!values->count(fuse->outer) || !values->count(fuse->inner)) return;
        PrimExpr factor = domains.at(fuse->inner)->extent;
        (*values)[fuse->fused] = from_zero(fuse->outer) * factor + from_zero(fuse->inner);
      },
      [&](const RebaseNode* rebase) {
        if (!values->count(rebase->parent)) return;
        (*values)[rebase->rebased] = from_zero(rebase->parent);
      },
      [&](const SingletonNode* single) {
        (*values)[single->iter] = tir::make_zero(single->iter->var.dtype());
      });
}

namespace {

/*! \brief Sets of the two loops that were fused, given the set of the fused loop. */
std::pair<IntSet, IntSet> UnfuseSet(const IntSet& fused, const Range& fused_dom,
                                    const Range& outer_dom, const Range& inner_dom,
                                    arith::Analyzer* analyzer) {
  PrimExpr factor = Divisor(inner_dom->extent);
  if (fused.MatchRange(fused_dom)) {
    return {IntSet::FromRange(outer_dom), IntSet::FromRange(inner_dom)};
  }
  if (fused.IsSinglePoint()) {
    PrimExpr value = fused.PointValue();
    if (tir::is_one(outer_dom->extent)) {
      return {IntSet::SinglePoint(outer_dom->min), IntSet::SinglePoint(value + inner_dom->min)};
    }
    if (tir::is_one(factor)) {
      return {IntSet::SinglePoint(value + outer_dom->min), IntSet::SinglePoint(inner_dom->min)};
    }
    return {IntSet::SinglePoint(floordiv(value, factor) + outer_dom->min),
            IntSet::SinglePoint(floormod(value, factor) + inner_dom->min)};
  }
  if (!fused.HasLowerBound() || !fused.HasUpperBound()) {
    return {IntSet::FromRange(outer_dom), IntSet::FromRange(inner_dom)};
  }
  PrimExpr start = fused.min();
  PrimExpr length = analyzer->Simplify(fused.max() - start + 1);
  PrimExpr last = analyzer->Simplify(fused.max());
  IntSet outer = IntSet::Interval(analyzer->Simplify(floordiv(start, factor) + outer_dom->min),
                                  analyzer->Simplify(floordiv(last, factor) + outer_dom->min));
  PrimExpr zero = tir::make_zero(factor.dtype());
  // A window of the fused loop stays inside one row of the inner loop when it is aligned to its
  // own length and that length divides the row. Otherwise it may wrap, and any column is possible.
  if (analyzer->CanProveEqual(floormod(factor, length), zero) &&
      analyzer->CanProveEqual(floormod(start, length), zero)) {
    PrimExpr column = analyzer->Simplify(floormod(start, factor) + inner_dom->min);
    outer = IntSet::SinglePoint(analyzer->Simplify(floordiv(start, factor) + outer_dom->min));
    return {outer, IntSet::FromMinExtent(column, length)};
  }
  // Whole rows: the number of rows is then exact, not one too many.
  if (analyzer->CanProveEqual(floormod(length, factor), zero) &&
      analyzer->CanProveEqual(floormod(start, factor), zero)) {
    outer = IntSet::FromMinExtent(analyzer->Simplify(floordiv(start, factor) + outer_dom->min),
                                  analyzer->Simplify(floordiv(length, factor)));
  }
  return {outer, IntSet::FromRange(inner_dom)};
}

}  // namespace

void PassUpDomain(const Stage& stage, const RangeMap& domains, IterVarMap<IntSet>* sets,
                  arith::Analyzer* analyzer) {
  WalkUp(
      stage.get(),
      [&](const SplitNode* split) {
        const IntSet& outer = sets->at(split->outer);
        const IntSet& inner = sets->at(split->inner);
        const Range& domain = domains.at(split->parent);
        const Range& outer_dom = domains.at(split->outer);
        const Range& inner_dom = domains.at(split->inner);
        if (!split->pads && outer.MatchRange(outer_dom) && inner.MatchRange(inner_dom)) {
          (*sets)[split->parent] = IntSet::FromRange(domain);
          return;
        }
        IntSetMap env{{split->outer->var.get(), outer}, {split->inner->var.get(), inner}};
        PrimExpr value = split->outer->var * inner_dom->extent + split->inner->var;
        (*sets)[split->parent] = arith::EvalSet(value + domain->min, env, analyzer);
      },
      [&](const FuseNode* fuse) {
        auto [outer, inner] = UnfuseSet(sets->at(fuse->fused), domains.at(fuse->fused),
                                        domains.at(fuse->outer), domains.at(fuse->inner), analyzer);
        (*sets)[fuse->outer] = outer;
        (*sets)[fuse->inner] = inner;
      },
      [&](const RebaseNode* rebase) {
        const IntSet& rebased = sets->at(rebase->rebased);
        const Range& domain = domains.at(rebase->parent);
        if (rebased.MatchRange(domains.at(rebase->rebased))) {
          (*sets)[rebase->parent] = IntSet::FromRange(domain);
          return;
        }
        IntSetMap env{{rebase->rebased->var.get(), rebased}};
        (*sets)[rebase->parent] = arith::EvalSet(rebase->rebased->var + domain->min, env, analyzer);
      });
}

void PassUpBitMask(const Stage& stage, IterVarMap<int>* bits) {
  WalkUp(
      stage.get(),
      [&](const SplitNode* split) {
        (*bits)[split->parent] |= (*bits)[split->outer] | (*bits)[split->inner];
      },
      [&](const FuseNode* fuse) {
        (*bits)[fuse->outer] |= (*bits)[fuse->fused];
        (*bits)[fuse->inner] |= (*bits)[fuse->fused];
      },
      [&](const RebaseNode* rebase) { (*bits)[rebase->parent] |= (*bits)[rebase->rebased]; });
}

void PassDownBitMask(const Stage& stage, IterVarMap<int>* bits) {
  WalkDown(
      stage.get(),
      [&](const SplitNode* split) {
        (*bits)[split->outer] |= (*bits)[split->parent];
        (*bits)[split->inner] |= (*bits)[split->parent];
      },
      [&](const FuseNode* fuse) {
        (*bits)[fuse->fused] |= (*bits)[fuse->outer] | (*bits)[fuse->inner];
      },
      [&](const RebaseNode* rebase) { (*bits)[rebase->rebased] |= (*bits)[rebase->parent]; });
}

IterVarSet LoopsOfBothKinds(const Stage& stage) {
  constexpr int kSpatial = 1, kReduces = 2;
  IterVarMap<int> bits;
  for (const IterVar& root : stage->op->root_iter_vars()) {
    bits[root] = root->iter_type == tir::kCommReduce ? kReduces : kSpatial;
  }
  PassDownBitMask(stage, &bits);
  IterVarSet loops;
  for (const IterVar& loop : stage->leaf_iter_vars) {
    if (bits[loop] == (kSpatial | kReduces)) loops.insert(loop);
  }
  return loops;
}

void RefuseLoopsOfBothKinds(const Stage& stage, const std::string& what) {
  const IterVarSet loops = LoopsOfBothKinds(stage);
  TVM_CHECK(loops.empty(), ScheduleError)
      << what << "(" << stage->op->name << "): loop " << (*loops.begin())->var->name_hint
      << " runs over spatial and reduction axes at once; fuse loops of one kind";
}

namespace {

/*! \brief Which loops may run past their domain, because a split below them is not exact. */
IterVarMap<bool> LoopsThatOverrun(const Stage& stage, const RangeMap& domains,
                                  arith::Analyzer* analyzer) {
  IterVarMap<bool> overruns;
  WalkUp(
      stage.get(),
      [&](const SplitNode* split) {
        overruns[split->parent] =
            overruns[split->outer] || overruns[split->inner] ||
            (!split->disable_predication &&
             !IsExactSplit(domains.at(split->parent)->extent, domains.at(split->outer)->extent,
                           domains.at(split->inner)->extent, analyzer));
      },
      [&](const FuseNode* fuse) {
        // Past its end the fused loop keeps raising the outer index while the inner one wraps,
        // except that PassUpIndex does not wrap where the outer loop has one trip.
        bool one_row = tir::is_one(domains.at(fuse->outer)->extent);
        overruns[fuse->outer] = overruns[fuse->fused] && !one_row;
        overruns[fuse->inner] = overruns[fuse->fused] && one_row;
      },
      [&](const RebaseNode* rebase) { overruns[rebase->parent] = overruns[rebase->rebased]; });
  return overruns;
}

}  // namespace

std::vector<PrimExpr> MakeBoundCheck(const Stage& stage, const RangeMap& domains,
                                     const IterVarMap<PrimExpr>& values, arith::Analyzer* analyzer,
                                     bool skip_reduce) {
  std::vector<PrimExpr> checks;
  auto require = [&](const PrimExpr& cond) {
    if (!analyzer->CanProve(cond)) checks.push_back(analyzer->Simplify(cond));
  };
  IterVarMap<bool> overruns = LoopsThatOverrun(stage, domains, analyzer);
  auto guard = [&](const IterVar& loop) {
    if (!overruns[loop] || !values.count(loop)) return;
    if (skip_reduce && loop->iter_type == tir::kCommReduce) return;
    const Range& domain = domains.at(loop);
    PrimExpr value = values.at(loop);
    require((tir::is_zero(domain->min) ? value : value - domain->min) < domain->extent);
  };
  for (const IterVar& root : stage->op->root_iter_vars()) guard(root);
  // Past its end an inner loop repeats elements of its neighbour, which a reduction would count
  // twice. Any other loop that overruns takes its root past the end too.
  WalkDown(stage.get(), [&](const SplitNode* split) { guard(split->inner); });
  // A region computed for the sake of a reader may reach beyond the tensor.
  for (const IterVar& root : stage->op->root_iter_vars()) {
    if (root->iter_type == tir::kCommReduce || !root->dom.defined()) continue;
    const Range& domain = domains.at(root);
    const Range& whole = root->dom;
    if (domain.same_as(whole) || (analyzer->CanProveEqual(domain->min, whole->min) &&
                                  analyzer->CanProveEqual(domain->extent, whole->extent))) {
      continue;
    }
    const PrimExpr& value = values.at(root);
    require(value >= whole->min);
    require(value < analyzer->Simplify(whole->min + whole->extent));
  }
  return checks;
}

}  // namespace te
}  // namespace tvm
