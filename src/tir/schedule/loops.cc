/*!
 * \file loops.cc
 * \brief Primitives on loops: split, fuse, reorder, and how they run.
 */
#include <tvm/arith/iter_affine_map.h>
#include <tvm/expr/lanes.h>

#include <algorithm>
#include <sstream>

#include "primitives.h"

namespace tvm {
namespace tir {
namespace sched {
namespace {

/*! \brief Refuse extents whose product is no number of the type of the loop's variable. */
void RequireFit(const LoopItem& loop, const Array<PrimExpr>& extents) {
  DataType dtype = loop.var.dtype();
  int64_t product = 1;
  bool fits = true;
  for (const PrimExpr& extent : extents) {
    fits &= !__builtin_mul_overflow(product, AsInt(extent).value_or(1), &product);
  }
  int64_t limit = dtype.bits() < 64 ? (int64_t{1} << (dtype.bits() - 1)) - 1 : INT64_MAX;
  TVM_CHECK(fits && product <= limit, ScheduleError)
      << "the extents " << extents << " multiply to more than " << limit << ", which " << dtype
      << " cannot hold; declare sizes of int64";
}

/*! \brief Extents of the parts, and whether they multiply to that of the loop for sure. */
bool FindExtents(const LoopItem& loop, const std::string& given, arith::Analyzer* analyzer,
                 Array<PrimExpr>* factors) {
  TVM_CHECK(!factors->empty(), ScheduleError)
      << "no factors for loop " << loop.name() << "; give at least one";
  Array<PrimExpr> known;
  size_t inferred = factors->size();
  for (size_t i = 0; i < factors->size(); ++i) {
    const PrimExpr& factor = (*factors)[i];
    if (!factor.defined()) {
      TVM_CHECK(inferred == factors->size(), ScheduleError)
          << "factors " << given << " for loop " << loop.name()
          << ": at most one can be left to be inferred";
      inferred = i;
      continue;
    }
    TVM_CHECK(analyzer->CanProve(factor >= 1), ScheduleError)
        << "factor " << factor << " for loop " << loop.name() << ": extents are at least 1";
    known.push_back(factor);
  }
  RequireFit(loop, known);
  PrimExpr product = make_const(loop.var.dtype(), 1);
  for (const PrimExpr& size : known) product = product * size;
  product = analyzer->Simplify(product);
  if (inferred < factors->size()) {
    PrimExpr rest = analyzer->Simplify(floordiv(loop.extent + product - 1, product));
    factors->Set(static_cast<int64_t>(inferred), rest);
    product = analyzer->Simplify(product * rest);
  } else {
    TVM_CHECK(analyzer->CanProve(product >= loop.extent), ScheduleError)
        << "factors " << given << " multiply to " << product << ", which is less than the extent "
        << loop.extent << " of loop " << loop.name()
        << "; give None for one of them to have it inferred";
  }
  return analyzer->CanProveEqual(product, loop.extent);
}

/*!
 * \brief Leave out of a predicate what always holds or is said twice.
 * \param simplify Whether to write the rest shorter, or as it was put together.
 */
void TidyPredicate(Tree* tree, Id id, bool simplify) {
  if (tree->block(id).predicate.empty()) return;
  // Values show loops of one iteration; what holds is asked with all that is known of them.
  LoopAnalyzer analyzer(*tree, id, /*fold_unit_loops=*/false), knowing(*tree, id);
  BlockItem* block = tree->EditBlock(id);
  Array<PrimExpr> conditions;
  for (const PrimExpr& condition : block->predicate) {
    if (knowing.CanProve(condition)) continue;
    PrimExpr simple = simplify ? analyzer.Simplify(condition) : condition;
    // Several steps may have asked for the same.
    bool known = std::any_of(conditions.begin(), conditions.end(),
                             [&](const PrimExpr& other) { return ExprDeepEqual()(other, simple); });
    if (!known && !is_const_int(simple, 1)) conditions.push_back(simple);
  }
  block->predicate = conditions;
}

/*! \brief The values of a block's variables written as digits of the loops around it. */
Array<PrimExpr> Tidied(const Tree& tree, Id id, const Array<PrimExpr>& before,
                       bool preserve_unit_iters) {
  const BlockItem& block = tree.block(id);
  Map<Var, Range> loops;
  VarSet names;
  for (Id loop : tree.LoopsAbove(id)) {
    loops.Set(tree.loop(loop).var, tree.loop(loop).range());
    names.Add(tree.loop(loop).var);
  }
  // Loops that run to where others are have no digits.
  const bool apart = std::none_of(loops.begin(), loops.end(), [&names](const auto& item) {
    const Range& range = item.second;
    return VarsOf(range->min).Intersects(names) || VarsOf(range->extent).Intersects(names);
  });
  PrimExpr predicate = const_true();
  for (const PrimExpr& condition : block.predicate) predicate = predicate && condition;
  Array<PrimExpr> digits;
  if (apart) {
    digits = arith::IterMapSimplify(block.iter_values, loops, arith::IterMapLevel::kSurjective,
                                    predicate,
                                    /*simplify_trivial_iterators=*/!preserve_unit_iters);
  }
  if (!digits.empty()) return digits;
  LoopAnalyzer analyzer(tree, id, /*fold_unit_loops=*/false);
  for (const PrimExpr& value : block.iter_values) {
    const PrimExpr& old = before[static_cast<int64_t>(digits.size())];
    // Where a loop was the value, its parts stand there as they were put together.
    bool keep = value.same_as(old) || old.as<VarNode>();
    digits.push_back(keep ? value : analyzer.Simplify(value));
  }
  return digits;
}

/*! \brief Put `values` in below `top`, and run the blocks there only if a condition holds. */
void PutIn(Tree* tree, Id top, const VarMap& values, const PrimExpr& condition,
           bool preserve_unit_iters) {
  std::unordered_map<Id, Array<PrimExpr>> before;
  for (Id id : tree->BlocksBelow(top)) before[id] = tree->block(id).iter_values;
  tree->ReplaceVars(top, values);
  for (Id unit : tree->UnitsBelow(top)) {
    if (!tree->IsBlock(unit)) {
      TVM_CHECK(!condition.defined(), ScheduleError)
          << "below loop " << tree->NameOf(top)
          << " is a statement outside of blocks, which cannot have a predicate; split by factors "
             "that multiply to the extent";
      continue;
    }
    if (condition.defined()) tree->EditBlock(unit)->predicate.push_back(condition);
    tree->EditBlock(unit)->iter_values = Tidied(*tree, unit, before[unit], preserve_unit_iters);
    TidyPredicate(tree, unit, false);
  }
}

}  // namespace

void Tidy(Tree* tree, Id id) {
  LoopAnalyzer analyzer(*tree, id, /*fold_unit_loops=*/false);
  tree->EditBlock(id)->iter_values.MutateByApply(
      [&](const PrimExpr& value) { return analyzer.Simplify(value); });
  TidyPredicate(tree, id, true);
}

int64_t ConstantExtent(const Tree& tree, Id id) {
  std::optional<int64_t> extent = AsInt(tree.loop(id).extent);
  TVM_CHECK(extent.has_value(), ScheduleError)
      << "the extent " << tree.loop(id).extent << " of loop " << tree.NameOf(id)
      << " is no constant; bind the size of the function first";
  return *extent;
}

Ids Split(Tree* tree, Id id, Array<PrimExpr> factors, const std::string& given,
          bool preserve_unit_iters, bool disable_predication) {
  const LoopItem& loop = tree->loop(id);
  TVM_CHECK(loop.for_kind == ForKind::kSerial && loop.annotations.empty(), ScheduleError)
      << "loop " << loop.name()
      << " has a kind or annotations already, which its parts cannot all have; split first, then "
         "mark the parts";
  LoopAnalyzer analyzer(*tree, id);
  bool exact = FindExtents(loop, given, &analyzer, &factors);
  TVM_CHECK(exact || !disable_predication, ScheduleError)
      << "factors " << given << " do not provably multiply to the extent " << loop.extent
      << " of loop " << loop.name()
      << ", so the parts need a predicate; leave disable_predication=False";
  Ids parts;
  for (size_t i = 0; i < factors.size(); ++i) {
    parts.push_back(
        tree->AddLoop(loop.name() + "_" + std::to_string(i), loop.var.dtype(), factors[i]));
  }
  std::vector<PrimExpr> terms;
  PrimExpr scale = make_const(loop.var.dtype(), 1), nested = make_const(loop.var.dtype(), 0);
  for (Id part : parts) nested = nested * tree->loop(part).extent + tree->loop(part).var;
  for (size_t i = parts.size(); i-- > 0;) {
    const LoopItem& part = tree->loop(parts[i]);
    if (preserve_unit_iters || !part.IsUnit()) {
      terms.push_back(is_const_int(scale, 1) ? PrimExpr(part.var) : part.var * scale);
    }
    scale = analyzer.Simplify(scale * part.extent);
  }
  PrimExpr value = terms.empty() ? make_const(loop.var.dtype(), 0) : terms.back();
  for (size_t i = terms.size(); i-- > 1;) value = value + terms[i - 1];
  tree->Retarget(VarSet({loop.var}), tree->VarsOfLoops(parts));
  tree->Replace(loop.parent, id, parts[0]);
  tree->Nest(parts, loop.children);
  PrimExpr shifted = is_zero(loop.min) ? value : loop.min + value;
  PutIn(tree, parts.back(), {{loop.var.get(), shifted}}, exact ? PrimExpr() : nested < loop.extent,
        preserve_unit_iters);
  return parts;
}

namespace {

/*! \brief All loops from the outermost to the innermost given, if each holds only the next. */
Ids Chain(const Tree& tree, const Ids& loops) {
  for (size_t i = 0; i < loops.size(); ++i) {
    TVM_CHECK(std::find(loops.begin() + static_cast<std::ptrdiff_t>(i) + 1, loops.end(),
                        loops[i]) == loops.end(),
              ScheduleError)
        << "a loop is given twice; name each loop once";
  }
  Id deepest = *std::max_element(loops.begin(), loops.end(), [&](Id a, Id b) {
    return tree.LoopsAbove(a).size() < tree.LoopsAbove(b).size();
  });
  Ids chain = tree.LoopsAbove(deepest);
  chain.push_back(deepest);
  auto first = chain.end();
  for (Id loop : loops) {
    auto at = std::find(chain.begin(), chain.end(), loop);
    TVM_CHECK(at != chain.end(), ScheduleError)
        << "loop " << tree.NameOf(loop) << " is not around " << tree.NameOf(deepest)
        << "; the loops must be nested in each other, with nothing beside them";
    first = std::min(first, at);
  }
  chain.erase(chain.begin(), first);
  for (size_t i = 0; i + 1 < chain.size(); ++i) {
    TVM_CHECK(tree[chain[i]].children.size() == 1, ScheduleError)
        << "loop " << tree.NameOf(chain[i])
        << " holds more than the next loop, so the loops given are not one nest; give loops that "
           "have nothing beside them";
  }
  return chain;
}

}  // namespace

Id Fuse(Tree* tree, const Ids& loops, bool preserve_unit_iters) {
  Ids chain = Chain(*tree, loops);
  TVM_CHECK(chain == loops, ScheduleError)
      << "only loops directly inside of each other, given from outermost to innermost, can be "
         "fused; the nest is "
      << tree->NamesOf(chain) << ". Reorder first";
  VarSet vars = tree->VarsOfLoops(loops);
  Array<PrimExpr> extents;
  std::string name;
  for (Id id : loops) {
    const LoopItem& loop = tree->loop(id);
    TVM_CHECK(loop.for_kind == ForKind::kSerial && loop.annotations.empty(), ScheduleError)
        << "loop " << loop.name() << " has a kind or annotations already; fuse first, then mark";
    TVM_CHECK(!VarsOf(loop.extent).Intersects(vars), ScheduleError)
        << "the extent " << loop.extent << " of loop " << loop.name()
        << " depends on a loop it is to be fused with";
    TVM_CHECK(is_const_int(loop.min, 0), ScheduleError)
        << "loop " << loop.name() << " starts at " << loop.min
        << "; only loops from zero on can be fused";
    extents.push_back(loop.extent);
    name += loop.name() + "_";
  }
  const LoopItem& first = tree->loop(loops[0]);
  RequireFit(first, extents);
  PrimExpr total = extents[0];
  for (size_t i = 1; i < extents.size(); ++i) total = total * extents[i];
  total = LoopAnalyzer(*tree, loops[0]).Simplify(total);
  Id fused = tree->AddLoop(name + "fused", first.var.dtype(), total);
  VarMap values;
  arith::Analyzer analyzer;
  PrimExpr length = make_const(first.var.dtype(), 1);
  for (size_t i = loops.size(); i-- > 0;) {
    const LoopItem& loop = tree->loop(loops[i]);
    PrimExpr& value = values[loop.var.get()];
    if (loop.IsUnit()) {
      value = loop.min;
      continue;
    }
    PrimExpr longer = analyzer.Simplify(length * loop.extent);
    value = tree->loop(fused).var;
    if (i > 0) value = floormod(value, longer);
    if (!is_const_int(length, 1)) value = floordiv(value, length);
    length = longer;
  }
  tree->Retarget(vars, tree->VarsOfLoops({fused}));
  Ids inner = (*tree)[loops.back()].children;
  tree->Replace(first.parent, loops[0], fused);
  tree->SetChildren(fused, inner);
  PutIn(tree, fused, values, PrimExpr(), preserve_unit_iters);
  return fused;
}

namespace {

void CheckReorderable(const Tree& tree, Id unit) {
  TVM_CHECK(tree.IsBlock(unit), ScheduleError)
      << "below the loops is a statement outside of blocks, whose order counts";
  TVM_CHECK(!WritesPinned(tree, unit) && KindOf(tree, unit) != BlockKind::kOpaque, ScheduleError)
      << "what block " << tree.NameOf(unit)
      << " writes depends on the order of its iterations; only blocks that compute each element "
         "from others, or reduce, can be reordered";
  std::string why = ReductionOrderError(tree, unit);
  TVM_CHECK(why.empty(), ScheduleError)
      << "the order of block " << tree.NameOf(unit) << " counts: " << why;
}

}  // namespace

void Reorder(Tree* tree, const Ids& loops) {
  Ids chain = Chain(*tree, loops);
  VarSet vars = tree->VarsOfLoops(chain);
  for (Id id : chain) {
    const LoopItem& loop = tree->loop(id);
    TVM_CHECK(!VarsOf(loop.extent).Intersects(vars) && !VarsOf(loop.min).Intersects(vars),
              ScheduleError)
        << "the range of loop " << loop.name() << " depends on a loop it is to be reordered with";
  }
  for (Id unit : tree->UnitsBelow(chain.back())) CheckReorderable(*tree, unit);
  Id parent = (*tree)[chain[0]].parent;
  Ids inner = (*tree)[chain.back()].children;
  Ids order = chain;
  auto next = loops.begin();
  for (Id& id : order) {
    if (Has(loops, id)) id = *next++;
  }
  size_t slot = tree->IndexOf(parent, chain[0]);
  Id top = tree->Nest(order, inner);
  tree->Edit(parent)->children[slot] = top;
  tree->Edit(top)->parent = parent;
  for (Id unit : tree->UnitsBelow(order.back())) {
    std::string why = ReductionOrderError(*tree, unit);
    TVM_CHECK(why.empty(), ScheduleError)
        << "block " << tree->NameOf(unit) << " would lose its first values: " << why;
  }
}

void MarkLoop(Tree* tree, Id id, ForKind kind) {
  const bool scalable =
      kind == ForKind::kVectorized && LanesOfCount(tree->loop(id).extent).value_or(1) < 0;
  if (kind != ForKind::kParallel && !scalable) ConstantExtent(*tree, id);
  LoopItem* loop = tree->EditLoop(id);
  loop->for_kind = kind;
  loop->thread_binding = NullOpt;
}

Id AddUnitLoop(Tree* tree, Id id) {
  Id parent = (*tree)[id].parent;
  TVM_CHECK(parent != kNone, ScheduleError) << "no loop can be around the outermost block";
  DataType dtype = tree->IsLoop(id) ? tree->loop(id).var.dtype() : DataType::Int(32);
  Id unit = tree->AddLoop("u", dtype, make_const(dtype, 1));
  tree->Replace(parent, id, unit);
  tree->SetChildren(unit, {id});
  return unit;
}

void Bind(Tree* tree, Id id, const std::string& tag) {
  bool known = tag == "vthread";
  std::string tags;
  for (const char* kind : {"blockIdx", "threadIdx", "vthread"}) {
    for (const char* axis : {".x", ".y", ".z"}) {
      known |= tag == std::string(kind) + axis;
      AddItem(&tags, std::string(kind) + axis);
    }
  }
  TVM_CHECK(known, ScheduleError) << "'" << tag << "' is no thread axis; there are " << tags;
  const LoopItem& old = tree->loop(id);
  TVM_CHECK(is_const_int(old.min, 0), ScheduleError)
      << "loop " << old.name() << " starts at " << old.min << "; threads count from zero";
  LoopItem* loop = tree->EditLoop(id);
  loop->for_kind = ForKind::kThreadBinding;
  loop->thread_binding = IterVar(Range(), Var(tag, loop->var.dtype()), kThreadIndex, tag);
}

namespace {

Map<String, ObjectRef>* AnnotationsOf(Tree* tree, Id id) {
  return tree->IsLoop(id) ? &tree->EditLoop(id)->annotations : &tree->EditBlock(id)->annotations;
}

}  // namespace

void Annotate(Tree* tree, Id id, const String& key, const ObjectRef& value) {
  AnnotationsOf(tree, id)->Set(key, value);
}

void Unannotate(Tree* tree, Id id, const String& key) {
  Map<String, ObjectRef>* annotations = AnnotationsOf(tree, id);
  std::vector<std::string> known;
  for (const auto& [name, value] : *annotations) known.push_back(name);
  std::sort(known.begin(), known.end());
  std::string names;
  for (const std::string& name : known) AddItem(&names, name);
  TVM_CHECK(annotations->count(key), ScheduleError)
      << tree->NameOf(id) << " has no annotation '" << key << "'; it has "
      << (names.empty() ? "none" : names);
  annotations->erase(key);
}

}  // namespace sched
}  // namespace tir
}  // namespace tvm
