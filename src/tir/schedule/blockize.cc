/*!
 * \file blockize.cc
 * \brief The primitive that puts a block around a nest of loops, or around several.
 */
#include <tvm/arith/iter_affine_map.h>

#include <algorithm>

#include "primitives.h"
#include "regions.h"

namespace tvm {
namespace tir {
namespace sched {
namespace {

/*! \brief One variable of a block as `outer * inner extent + inner`. */
struct Division {
  PrimExpr outer, outer_extent, inner, inner_extent;
};

/*! \brief A value by loops outside and loops inside of the new block; ScheduleError if it mixes. */
Division Divide(const Tree& tree, Id id, const IterVar& iv, const PrimExpr& value,
                const Ids& inside, const VarMap& first, arith::Analyzer* analyzer) {
  PrimExpr outer = analyzer->Simplify(Substitute(value, first));
  PrimExpr inner = analyzer->Simplify(value - outer);
  VarSet moving = tree.VarsOfLoops(inside);
  bool apart = VarsOf(inner).IsSubsetOf(moving) && !VarsOf(outer).Intersects(moving);
  Map<Var, arith::IntSet> sets;
  for (Id loop : inside) {
    sets.Set(tree.loop(loop).var, arith::IntSet::FromRange(tree.loop(loop).range()));
  }
  arith::IntSet set = arith::EvalSet(inner, sets);
  TVM_CHECK(apart && set.HasUpperBound() && set.HasLowerBound(), ScheduleError)
      << "the value " << value << " of variable " << iv->var << " of block " << tree.NameOf(id)
      << " is no sum of multiples of what the loops inside and what those outside give";
  PrimExpr extent = analyzer->Simplify(set.max() + 1);
  PrimExpr quotient = analyzer->Simplify(floordiv(outer, extent));
  PrimExpr whole = analyzer->Simplify(ceildiv(iv->dom->extent, extent));
  bool exact = analyzer->CanProveEqual(set.min(), make_const(inner.dtype(), 0)) &&
               analyzer->CanProveEqual(quotient * extent, outer) && is_zero(iv->dom->min);
  TVM_CHECK(exact, ScheduleError) << "the loops inside give variable " << iv->var << " of block "
                                  << tree.NameOf(id) << " values " << inner
                                  << ", and those outside " << outer
                                  << ", which is no multiple of their number " << extent;
  return {quotient, whole, inner, extent};
}

/*!
 * \brief Regions in terms of the outer block's variables, over all that the inner block's give, and
 *        the loops inside where a block uses them itself.
 */
Array<BufferRegion> Relaxed(const Tree& tree, const Array<BufferRegion>& regions,
                            const VarMap& values, const Array<IterVar>& inner, const Ids& inside,
                            arith::Analyzer* analyzer) {
  Map<Var, arith::IntSet> sets;
  for (Id loop : inside) {
    sets.Set(tree.loop(loop).var, arith::IntSet::FromRange(tree.loop(loop).range()));
  }
  for (const IterVar& iv : inner) sets.Set(iv->var, arith::IntSet::FromRange(iv->dom));
  return regions.Map([&](const BufferRegion& region) {
    Array<Range> ranges;
    for (size_t d = 0; d < region->region.size(); ++d) {
      const Range& range = region->region[static_cast<int64_t>(d)];
      PrimExpr low = analyzer->Simplify(Substitute(range->min, values));
      PrimExpr high = analyzer->Simplify(Substitute(range->min + range->extent - 1, values));
      arith::IntSet from = arith::EvalSet(low, sets), to = arith::EvalSet(high, sets);
      if (!from.HasLowerBound() || !to.HasUpperBound()) {
        const PrimExpr& extent = region->buffer->shape[static_cast<int64_t>(d)];
        ranges.push_back(Range::FromMinExtent(make_const(extent.dtype(), 0), extent));
        continue;
      }
      PrimExpr min = analyzer->Simplify(from.min());
      ranges.push_back(Range::FromMinExtent(min, analyzer->Simplify(to.max() - min + 1)));
    }
    return BufferRegion(region->buffer, ranges);
  });
}

/*! \brief First values for all that the loops inside of a block run over. */
Stmt OuterInit(const Tree& tree, const BlockItem& block, const Ids& inside,
               const Array<IterVar>& inner, const Array<PrimExpr>& values, const VarMap& replaced) {
  VarMap renamed;
  Array<IterVar> iters;
  Array<PrimExpr> bindings;
  VarSet used;
  for (size_t i = 0; i < inner.size(); ++i) {
    const IterVar& iv = inner[static_cast<int64_t>(i)];
    if (iv->iter_type != kDataPar) continue;
    iters.push_back(IterVar(iv->dom, iv->var.copy_with_suffix("_init"), kDataPar));
    renamed[iv->var.get()] = iters.back()->var;
    bindings.push_back(values[static_cast<int64_t>(i)]);
    used.Add(VarsOf(bindings.back()));
  }
  VarMap twins;
  Array<Var> vars;
  Ids loops;
  for (Id loop : inside) {
    if (!used.Contains(tree.loop(loop).var)) continue;
    loops.push_back(loop);
    vars.push_back(tree.loop(loop).var.copy_with_suffix("_init"));
    twins[tree.loop(loop).var.get()] = vars.back();
  }
  Stmt body = Substitute(Substitute(block.init, replaced), renamed);
  AccessRegions regions = DetectAccessRegions(body);
  Stmt nest = BlockRealize(
      bindings.Map([&](const PrimExpr& value) { return Substitute(value, twins); }), const_true(),
      Block(iters, regions.reads, regions.writes, tree.NewBlockName(block.name + "_init"), body));
  for (size_t i = loops.size(); i-- > 0;) {
    const LoopItem& loop = tree.loop(loops[i]);
    nest = For(vars[static_cast<int64_t>(i)], loop.min, loop.extent, ForKind::kSerial, nest);
  }
  return nest;
}

/*! \brief What a block becomes inside of the new one. */
struct Parts {
  Array<IterVar> inner;
  Array<PrimExpr> inner_values;
  /*! \brief Its variables by those of the new block and its new own ones. */
  VarMap replaced;
  Array<PrimExpr> outer_predicate, inner_predicate;
  bool outer_reduction = false;
};

/*! \brief The variables of a block around others, and their values outside. */
struct Outer {
  Array<IterVar> vars;
  Array<PrimExpr> values;

  /*! \brief The variable of that value; a new one unless there is one already. */
  IterVar VarOf(const IterVar& like, const Division& parts, arith::Analyzer* analyzer) {
    for (size_t i = 0; i < vars.size(); ++i) {
      const IterVar& known = vars[static_cast<int64_t>(i)];
      if (known->iter_type == like->iter_type && known->var.dtype() == like->var.dtype() &&
          analyzer->CanProveEqual(values[static_cast<int64_t>(i)], parts.outer) &&
          analyzer->CanProveEqual(known->dom->extent, parts.outer_extent)) {
        return known;
      }
    }
    PrimExpr zero = make_const(like->var.dtype(), 0);
    vars.push_back(IterVar(Range::FromMinExtent(zero, parts.outer_extent),
                           like->var.copy_with_suffix("_o"), like->iter_type));
    values.push_back(parts.outer);
    analyzer->Bind(vars.back()->var, vars.back()->dom);
    return vars.back();
  }
};

/*! \brief Divide the variables of a block between it and the new one. `shared` blocks share the
 *         new one's, `inside` are the loops that stay between the two. */
Parts DivideBlock(const Tree& tree, Id id, const Ids& inside, bool preserve_unit_iters, bool shared,
                  Outer* outer, arith::Analyzer* analyzer) {
  const BlockItem& block = tree.block(id);
  VarMap first;
  Map<Var, Range> ranges;
  for (Id loop : tree.LoopsAbove(id)) {
    const LoopItem& l = tree.loop(loop);
    analyzer->Bind(l.var, l.range(), true);
    if (!Has(inside, loop)) continue;
    first[l.var.get()] = l.min;
    if (AsInt(l.extent)) ranges.Set(l.var, l.range());
  }
  Parts made;
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    const IterVar& iv = block.iter_vars[static_cast<int64_t>(i)];
    const PrimExpr& value = block.iter_values[static_cast<int64_t>(i)];
    Division parts = Divide(tree, id, iv, value, inside, first, analyzer);
    DataType dtype = iv->var.dtype();
    PrimExpr zero = make_const(dtype, 0), base = zero;
    bool unit_inside = is_const_int(parts.inner_extent, 1);
    bool one = is_const_int(parts.outer_extent, 1);
    if (preserve_unit_iters || !one) {
      Outer alone;
      IterVar var = (shared ? outer : &alone)->VarOf(iv, parts, analyzer);
      if (!shared) {
        outer->vars.push_back(var);
        outer->values.push_back(parts.outer);
      }
      made.outer_reduction |= iv->iter_type == kCommReduce;
      if (!one || unit_inside) base = var->var;
    }
    if (unit_inside) {
      made.replaced[iv->var.get()] = base;
      continue;
    }
    made.inner.push_back(IterVar(Range::FromMinExtent(zero, parts.inner_extent),
                                 iv->var.copy_with_suffix("_i"), iv->iter_type));
    analyzer->Bind(made.inner.back()->var, made.inner.back()->dom);
    made.inner_values.push_back(parts.inner);
    made.replaced[iv->var.get()] = is_zero(base)
                                       ? PrimExpr(made.inner.back()->var)
                                       : base * parts.inner_extent + made.inner.back()->var;
  }
  if (ranges.size() == inside.size() && !made.inner_values.empty()) {
    auto found = arith::DetectIterMap(made.inner_values, ranges, arith::IterMapLevel::kSurjective);
    TVM_CHECK(found->errors.empty(), ScheduleError)
        << "the loops inside of the new block do not give the variables of block " << block.name
        << " all of their values: " << found->errors[0];
    TVM_CHECK(found->IsExact(), ScheduleError)
        << "the loops inside of the new block end within a tile of what the variables of block "
        << block.name << " are: " << made.inner_values;
  }
  VarSet moving = tree.VarsOfLoops(inside);
  for (const PrimExpr& condition : block.predicate) {
    bool uses_inside = VarsOf(condition).Intersects(moving);
    TVM_CHECK(!uses_inside || VarsOf(condition).IsSubsetOf(moving), ScheduleError)
        << "block " << block.name << " runs where " << condition
        << " holds, which loops inside and outside of the new block decide together";
    (uses_inside ? made.inner_predicate : made.outer_predicate).push_back(condition);
  }
  return made;
}

/*! \brief Loops from the top of a nest down to its block, which is returned too. */
std::pair<Ids, Id> NestBelow(const Tree& tree, Id top) {
  Ids inside;
  Id id = top;
  while (tree.IsLoop(id)) {
    inside.push_back(id);
    TVM_CHECK(tree[id].children.size() == 1, ScheduleError)
        << "loop " << tree.NameOf(id)
        << " holds more than one loop or block; only a nest around one block can become a block";
    id = tree[id].children[0];
  }
  TVM_CHECK(tree.IsBlock(id), ScheduleError)
      << "loop " << tree.NameOf(top) << " holds a statement outside of blocks";
  return {inside, id};
}

/*! \brief Leave a block what it does inside of the new one. */
void BecomeInner(Tree* tree, Id id, const Parts& parts) {
  tree->ReplaceBodyVars(id, parts.replaced);
  BlockItem* own = tree->EditBlock(id);
  own->iter_vars = parts.inner;
  own->iter_values = parts.inner_values;
  own->predicate = parts.inner_predicate;
  own->init_block = kNone;
}

/*! \brief What follows for a block from where it stands now. */
void FollowPlace(Tree* tree, Id id) {
  VarSet given = FindGiven(*tree, id);
  bool covers = RunsAll(*tree, id) && !AccessOf(*tree, id)->conditional;
  BlockItem* own = tree->EditBlock(id);
  own->given = given;
  own->covers = covers;
}

/*! \brief Regions of one buffer become the smallest that holds them. */
void Join(const Array<BufferRegion>& more, Array<BufferRegion>* regions,
          arith::Analyzer* analyzer) {
  for (const BufferRegion& region : more) {
    size_t at = 0;
    while (at < regions->size() &&
           !(*regions)[static_cast<int64_t>(at)]->buffer.same_as(region->buffer)) {
      ++at;
    }
    if (at == regions->size()) {
      regions->push_back(region);
      continue;
    }
    const Array<Range> before = (*regions)[static_cast<int64_t>(at)]->region;
    Array<Range> ranges;
    for (size_t d = 0; d < before.size(); ++d) {
      const Range& x = before[static_cast<int64_t>(d)];
      const Range& y = region->region[static_cast<int64_t>(d)];
      PrimExpr low = analyzer->Simplify(min(x->min, y->min));
      PrimExpr end = analyzer->Simplify(max(x->min + x->extent, y->min + y->extent));
      ranges.push_back(Range::FromMinExtent(low, analyzer->Simplify(end - low)));
    }
    regions->Set(static_cast<int64_t>(at), BufferRegion(region->buffer, ranges));
  }
}

}  // namespace

Id Blockize(Tree* tree, Id top, bool preserve_unit_iters) {
  auto [inside, id] = NestBelow(*tree, top);
  RequireOwnVariables(*tree, id, tree->LoopsAbove(id));
  const BlockItem block = tree->block(id);
  BlockKind kind = KindOf(*tree, id);
  arith::Analyzer analyzer;
  Outer outer;
  Parts parts = DivideBlock(*tree, id, inside, preserve_unit_iters, false, &outer, &analyzer);
  bool split_init = block.init.defined() && parts.outer_reduction;
  TVM_CHECK(!split_init || parts.inner_predicate.empty(), ScheduleError)
      << "block " << block.name << " writes first values, and runs where "
      << parts.inner_predicate[0]
      << " holds, which loops inside of the new block decide; decompose the reduction first";
  auto made = std::make_shared<BlockItem>(tree->NewBlockName(block.name + "_o"), outer.vars,
                                          outer.values, Stmt(), parts.outer_predicate);
  made->reads = Relaxed(*tree, block.reads, parts.replaced, parts.inner, inside, &analyzer);
  made->writes = Relaxed(*tree, block.writes, parts.replaced, parts.inner, inside, &analyzer);
  made->covers = block.covers;
  made->total = block.total;
  made->erratic = block.erratic;
  made->init_block = block.init_block;
  if (kind != BlockKind::kOpaque) {
    bool alone = kind == BlockKind::kReduction && !split_init;
    made->sealed = alone ? BlockKind::kComplete : kind;
  }
  if (split_init) {
    made->init = OuterInit(*tree, block, inside, parts.inner, parts.inner_values, parts.replaced);
  }
  Id parent = (*tree)[top].parent;
  size_t slot = tree->IndexOf(parent, top);
  Id around = tree->Add(made);
  BecomeInner(tree, id, parts);
  if (split_init) tree->EditBlock(id)->init = Stmt();
  tree->SetChildren(around, {top});
  tree->Edit(parent)->children[slot] = around;
  tree->Edit(around)->parent = parent;
  VarSet outer_given = FindGiven(*tree, around);
  FollowPlace(tree, id);
  tree->EditBlock(around)->given = outer_given;
  return around;
}

Id Blockize(Tree* tree, const Ids& blocks, bool preserve_unit_iters) {
  TVM_CHECK(!blocks.empty(), ScheduleError) << "no blocks given; give at least one";
  if (blocks.size() == 1) return Blockize(tree, blocks[0], preserve_unit_iters);
  // The innermost loop or block around all of them, and what of it holds each.
  auto path = [tree](Id id) {
    Ids above;
    for (Id at = (*tree)[id].parent; at != kNone; at = (*tree)[at].parent) above.push_back(at);
    return above;
  };
  Ids common = path(blocks[0]);
  for (Id id : blocks) {
    Ids own = path(id);
    std::erase_if(common, [&own](Id at) { return !Has(own, at); });
  }
  TVM_CHECK(!common.empty(), ScheduleError) << "the blocks have nothing around them in common";
  const Id parent = common[0];
  std::vector<std::pair<size_t, Id>> tops;
  for (Id id : blocks) {
    Id top = id;
    while ((*tree)[top].parent != parent) top = (*tree)[top].parent;
    tops.push_back({tree->IndexOf(parent, top), id});
  }
  std::sort(tops.begin(), tops.end());
  for (size_t i = 1; i < tops.size(); ++i) {
    TVM_CHECK(tops[i].first == tops[0].first + i, ScheduleError)
        << "blocks " << tree->NameOf(tops[i - 1].second) << " and " << tree->NameOf(tops[i].second)
        << " do not follow each other within " << tree->NameOf(parent)
        << "; only nests side by side become one block";
  }
  Outer outer;
  std::vector<Parts> parts;
  Array<BufferRegion> reads, writes;
  std::string name = "outer_";
  Ids nests;
  bool covers = true, total = true, erratic = false;
  for (const auto& [slot, id] : tops) {
    const Id top = (*tree)[parent].children[slot];
    auto [inside, found] = NestBelow(*tree, top);
    TVM_CHECK(found == id, ScheduleError)
        << "block " << tree->NameOf(id) << " is inside of block " << tree->NameOf(found)
        << ", which is beside the others; name that one";
    RequireOwnVariables(*tree, id, tree->LoopsAbove(id));
    const BlockItem& block = tree->block(id);
    arith::Analyzer analyzer;
    for (const IterVar& iv : outer.vars) analyzer.Bind(iv->var, iv->dom);
    parts.push_back(DivideBlock(*tree, id, inside, preserve_unit_iters, true, &outer, &analyzer));
    TVM_CHECK(!block.init.defined() || !parts.back().outer_reduction, ScheduleError)
        << "block " << block.name
        << " writes first values, and loops outside of the new block go on with its reduction; "
           "decompose the reduction first";
    TVM_CHECK(parts.back().outer_predicate.empty(), ScheduleError)
        << "block " << block.name << " runs where " << parts.back().outer_predicate[0]
        << " holds, which loops outside of the new block decide for it alone";
    const VarMap& values = parts.back().replaced;
    Join(Relaxed(*tree, block.reads, values, parts.back().inner, inside, &analyzer), &reads,
         &analyzer);
    Join(Relaxed(*tree, block.writes, values, parts.back().inner, inside, &analyzer), &writes,
         &analyzer);
    name += block.name + "_";
    nests.push_back(top);
    covers = covers && block.covers;
    total = total && block.total;
    erratic = erratic || block.erratic;
  }
  auto made = std::make_shared<BlockItem>(tree->NewBlockName(name), outer.vars, outer.values);
  made->reads = reads;
  made->writes = writes;
  made->covers = covers;
  made->total = total;
  made->erratic = erratic;
  Id around = tree->Add(made);
  for (size_t i = 0; i < tops.size(); ++i) BecomeInner(tree, tops[i].second, parts[i]);
  Ids children = (*tree)[parent].children;
  auto begin = children.begin() + static_cast<int64_t>(tops[0].first);
  *begin = around;
  children.erase(begin + 1, begin + static_cast<int64_t>(tops.size()));
  tree->SetChildren(around, nests);
  tree->SetChildren(parent, children);
  VarSet outer_given = FindGiven(*tree, around);
  for (const auto& [slot, id] : tops) FollowPlace(tree, id);
  tree->EditBlock(around)->given = outer_given;
  return around;
}

}  // namespace sched
}  // namespace tir
}  // namespace tvm
