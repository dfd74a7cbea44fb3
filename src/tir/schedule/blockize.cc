/*!
 * \file blockize.cc
 * \brief The primitive that puts a block around a nest of loops.
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

}  // namespace

Id Blockize(Tree* tree, Id top, bool preserve_unit_iters) {
  Ids inside;
  Id id = top;
  while (tree->IsLoop(id)) {
    inside.push_back(id);
    TVM_CHECK((*tree)[id].children.size() == 1, ScheduleError)
        << "loop " << tree->NameOf(id)
        << " holds more than one loop or block; only a nest around one block can become a block";
    id = (*tree)[id].children[0];
  }
  TVM_CHECK(tree->IsBlock(id), ScheduleError)
      << "loop " << tree->NameOf(top) << " holds a statement outside of blocks";
  RequireOwnVariables(*tree, id, tree->LoopsAbove(id));
  const BlockItem block = tree->block(id);
  BlockKind kind = KindOf(*tree, id);
  arith::Analyzer analyzer;
  VarMap first;
  Map<Var, Range> ranges;
  for (Id loop : tree->LoopsAbove(id)) {
    const LoopItem& l = tree->loop(loop);
    analyzer.Bind(l.var, l.range());
    if (!Has(inside, loop)) continue;
    first[l.var.get()] = l.min;
    if (AsInt(l.extent)) ranges.Set(l.var, l.range());
  }
  Array<IterVar> outer, inner;
  Array<PrimExpr> outer_values, inner_values;
  VarMap replaced;
  bool outer_reduction = false;
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    const IterVar& iv = block.iter_vars[static_cast<int64_t>(i)];
    const PrimExpr& value = block.iter_values[static_cast<int64_t>(i)];
    Division parts = Divide(*tree, id, iv, value, inside, first, &analyzer);
    DataType dtype = iv->var.dtype();
    PrimExpr zero = make_const(dtype, 0), base = zero;
    bool unit_inside = is_const_int(parts.inner_extent, 1);
    if (preserve_unit_iters || !is_const_int(parts.outer_extent, 1)) {
      outer.push_back(IterVar(Range::FromMinExtent(zero, parts.outer_extent),
                              iv->var.copy_with_suffix("_o"), iv->iter_type));
      outer_values.push_back(parts.outer);
      outer_reduction |= iv->iter_type == kCommReduce;
      bool one = is_const_int(parts.outer_extent, 1);
      analyzer.Bind(outer.back()->var, outer.back()->dom);
      if (!one || unit_inside) base = outer.back()->var;
    }
    if (unit_inside) {
      replaced[iv->var.get()] = base;
      continue;
    }
    inner.push_back(IterVar(Range::FromMinExtent(zero, parts.inner_extent),
                            iv->var.copy_with_suffix("_i"), iv->iter_type));
    analyzer.Bind(inner.back()->var, inner.back()->dom);
    inner_values.push_back(parts.inner);
    replaced[iv->var.get()] =
        is_zero(base) ? PrimExpr(inner.back()->var) : base * parts.inner_extent + inner.back()->var;
  }
  if (ranges.size() == inside.size() && !inner_values.empty()) {
    auto found = arith::DetectIterMap(inner_values, ranges, arith::IterMapLevel::kSurjective);
    TVM_CHECK(found->errors.empty(), ScheduleError)
        << "the loops inside of the new block do not give the variables of block " << block.name
        << " all of their values: " << found->errors[0];
    TVM_CHECK(found->IsExact(), ScheduleError)
        << "the loops inside of the new block end within a tile of what the variables of block "
        << block.name << " are: " << inner_values;
  }
  Array<PrimExpr> outer_predicate, inner_predicate;
  VarSet moving = tree->VarsOfLoops(inside);
  for (const PrimExpr& condition : block.predicate) {
    bool uses_inside = VarsOf(condition).Intersects(moving);
    TVM_CHECK(!uses_inside || VarsOf(condition).IsSubsetOf(moving), ScheduleError)
        << "block " << block.name << " runs where " << condition
        << " holds, which loops inside and outside of the new block decide together";
    (uses_inside ? inner_predicate : outer_predicate).push_back(condition);
  }
  bool split_init = block.init.defined() && outer_reduction;
  TVM_CHECK(!split_init || inner_predicate.empty(), ScheduleError)
      << "block " << block.name << " writes first values, and runs where " << inner_predicate[0]
      << " holds, which loops inside of the new block decide; decompose the reduction first";
  auto made = std::make_shared<BlockItem>(tree->NewBlockName(block.name + "_o"), outer,
                                          outer_values, Stmt(), outer_predicate);
  made->reads = Relaxed(*tree, block.reads, replaced, inner, inside, &analyzer);
  made->writes = Relaxed(*tree, block.writes, replaced, inner, inside, &analyzer);
  made->covers = block.covers;
  made->total = block.total;
  made->erratic = block.erratic;
  made->init_block = block.init_block;
  if (kind != BlockKind::kOpaque) {
    bool alone = kind == BlockKind::kReduction && !split_init;
    made->sealed = alone ? BlockKind::kComplete : kind;
  }
  if (split_init) made->init = OuterInit(*tree, block, inside, inner, inner_values, replaced);
  Id parent = (*tree)[top].parent;
  size_t slot = tree->IndexOf(parent, top);
  Id around = tree->Add(made);
  tree->ReplaceBodyVars(id, replaced);
  BlockItem* own = tree->EditBlock(id);
  own->iter_vars = inner;
  own->iter_values = inner_values;
  own->predicate = inner_predicate;
  own->init_block = kNone;
  if (split_init) own->init = Stmt();
  tree->SetChildren(around, {top});
  tree->Edit(parent)->children[slot] = around;
  tree->Edit(around)->parent = parent;
  VarSet given = FindGiven(*tree, id), outer_given = FindGiven(*tree, around);
  bool covers = RunsAll(*tree, id) && !AccessOf(*tree, id)->conditional;
  own = tree->EditBlock(id);
  own->given = given;
  own->covers = covers;
  tree->EditBlock(around)->given = outer_given;
  return around;
}

}  // namespace sched
}  // namespace tir
}  // namespace tvm
