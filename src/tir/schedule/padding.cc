/*!
 * \file padding.cc
 * \brief Primitives that write padding apart from what is padded, and that pad contractions.
 */
#include <tvm/arith/bound.h>
#include <tvm/expr/builtin.h>

#include <algorithm>
#include <optional>

#include "buffers.h"
#include "primitives.h"
#include "rewrite.h"

namespace tvm {
namespace tir {
namespace sched {
namespace {

/*! \brief A store of values from another buffer where a condition holds, and of padding elsewhere.
 */
struct PaddedStore {
  BufferStore store;
  PrimExpr inside, value, padding;
};

PaddedStore RequirePaddedStore(const Tree& tree, Id id) {
  Stmt body = tree.Body(id);
  const auto* store = body.as<BufferStoreNode>();
  const auto* choice = store == nullptr ? nullptr : store->value.as<CallNode>();
  bool chooses = choice != nullptr && choice->op.same_as(builtin::if_then_else());
  TVM_CHECK(chooses && KindOf(tree, id) == BlockKind::kComplete && tree.block(id).total,
            ScheduleError)
      << "block " << tree.NameOf(id)
      << " is not a single store of T.if_then_else(condition, value, padding) in every instance";
  PaddedStore padded{GetRef<BufferStore>(store), choice->args[0], choice->args[1], choice->args[2]};
  TVM_CHECK(is_const_number(padded.padding), ScheduleError)
      << "block " << tree.NameOf(id) << " pads with " << padded.padding
      << ", which is no constant; only constant padding can be written apart";
  return padded;
}

/*! \brief Values of a block's variables for which conditions hold; undefined where others do. */
std::unordered_map<const VarNode*, Range> InsideOf(const BlockItem& block,
                                                   const PrimExpr& condition,
                                                   arith::Analyzer* analyzer) {
  Map<Var, arith::IntSet> domains;
  for (const IterVar& iv : block.iter_vars) {
    domains.Set(iv->var, arith::IntSet::FromRange(iv->dom));
  }
  std::unordered_map<const VarNode*, PrimExpr> low, high;
  for (const IterVar& iv : block.iter_vars) {
    low[iv->var.get()] = iv->dom->min;
    high[iv->var.get()] = analyzer->Simplify(iv->dom->min + iv->dom->extent - 1);
  }
  Array<PrimExpr> conjuncts;
  AddConjuncts(condition, &conjuncts);
  for (const PrimExpr& conjunct : conjuncts) {
    VarSet used = VarsOf(conjunct);
    Array<Var> own;
    for (const IterVar& iv : block.iter_vars) {
      if (used.Contains(iv->var)) own.push_back(iv->var);
    }
    arith::IntSet set = own.size() == 1 ? arith::DeduceBound(own[0], conjunct, domains, {})
                                        : arith::IntSet::Nothing();
    TVM_CHECK(own.size() == 1 && !set.IsNothing(), ScheduleError)
        << "in block " << block.name << ", " << conjunct
        << " is no bound of one variable, so what is not padding is no box";
    const VarNode* var = own[0].get();
    if (set.HasLowerBound()) low[var] = analyzer->Simplify(max(low[var], set.min()));
    if (set.HasUpperBound()) high[var] = analyzer->Simplify(min(high[var], set.max()));
  }
  std::unordered_map<const VarNode*, Range> inside;
  for (const IterVar& iv : block.iter_vars) {
    const VarNode* var = iv->var.get();
    PrimExpr extent = analyzer->Simplify(high[var] - low[var] + 1);
    inside[var] = Range::FromMinExtent(low[var], extent);
  }
  return inside;
}

/*! \brief The loop that alone is the value of a variable, from zero on over all of its domain. */
Id OwnLoop(const Tree& tree, Id id, const IterVar& iv, const Ids& loops) {
  const BlockItem& block = tree.block(id);
  const PrimExpr value = block.ValueOf(iv->var);
  for (Id loop : loops) {
    const LoopItem& l = tree.loop(loop);
    if (!l.var.same_as(value)) continue;
    bool whole = is_zero(l.min) && is_zero(iv->dom->min) &&
                 ExprDeepEqual()(l.extent, iv->dom->extent) && tree[loop].children.size() == 1;
    size_t uses = 0;
    for (const auto* exprs : {&block.iter_values, &block.predicate}) {
      for (const PrimExpr& expr : *exprs) uses += VarsOf(expr).Contains(l.var);
    }
    return whole && uses == 1 ? loop : kNone;
  }
  return kNone;
}

/*! \brief Loops around nothing but a block, from `loop` inwards; `loop` must be one of them. */
Ids LoopsFrom(const Tree& tree, Id id, Id loop) {
  Ids path = tree.LoopsAbove(id);
  auto at = std::find(path.begin(), path.end(), loop);
  std::string names = tree.NamesOf(path);
  TVM_CHECK(at != path.end(), ScheduleError)
      << "loop " << tree.NameOf(loop) << " is not around block " << tree.NameOf(id)
      << "; the loops around it are " << (names.empty() ? "none" : names);
  Ids inside(at, path.end());
  for (Id item : inside) {
    TVM_CHECK(tree[item].children.size() == 1, ScheduleError)
        << "loop " << tree.NameOf(item) << " holds more than block " << tree.NameOf(id)
        << ", which the padding must not come before; give a loop inside of it";
  }
  return inside;
}

}  // namespace

Id DecomposePadding(Tree* tree, Id id, Id loop) {
  PaddedStore padded = RequirePaddedStore(*tree, id);
  RequireOwnVariables(*tree, id);
  Ids inside = LoopsFrom(*tree, id, loop);
  const BlockItem block = tree->block(id);
  arith::Analyzer analyzer;
  for (const IterVar& iv : block.iter_vars) analyzer.Bind(iv->var, iv->dom);
  auto region = InsideOf(block, padded.inside, &analyzer);
  bool pads = false;
  for (const IterVar& iv : block.iter_vars) {
    pads |= !analyzer.CanProveEqual(region[iv->var.get()]->extent, iv->dom->extent);
  }
  TVM_CHECK(pads, ScheduleError) << "block " << block.name
                                 << " pads nothing: its condition always holds";
  // The padding, under copies of the loops.
  Ids twins;
  VarMap renamed_loops, renamed;
  for (Id item : inside) {
    const LoopItem& old = tree->loop(item);
    twins.push_back(TwinLoop(tree, item, old.name()));
    LoopItem* twin = tree->EditLoop(twins.back());
    renamed_loops[old.var.get()] = twin->var;
    twin->for_kind = old.for_kind;
    twin->annotations = old.annotations;
    twin->extent = Substitute(twin->extent, renamed_loops);
  }
  auto rename = [&](const PrimExpr& expr) { return Substitute(expr, renamed_loops); };
  Array<IterVar> iters = FreshIters(block.iter_vars, "", &renamed);
  Stmt fill = BufferStore(
      padded.store->buffer, padded.padding,
      padded.store->indices.Map([&](const PrimExpr& index) { return Substitute(index, renamed); }));
  Id first =
      tree->AddBlock(BlockLike(block, tree->NewBlockName(block.name + "_pad_const"), iters,
                               block.iter_values.Map(rename), Stmt(), block.predicate.Map(rename)),
                     fill);
  Id parent = (*tree)[loop].parent;
  tree->Insert(parent, tree->IndexOf(parent, loop), tree->Nest(twins, {first}));
  // What is inside, over fewer iterations where a loop is all there is to a variable.
  VarMap shifted;
  Array<IterVar> own;
  Array<PrimExpr> values, predicate = block.predicate;
  for (const IterVar& iv : block.iter_vars) {
    const Range& box = region[iv->var.get()];
    PrimExpr value = block.ValueOf(iv->var);
    PrimExpr zero = make_const(iv->var.dtype(), 0);
    bool same = analyzer.CanProveEqual(box->extent, iv->dom->extent);
    own.push_back(same ? iv
                       : IterVar(Range::FromMinExtent(zero, box->extent), iv->var, iv->iter_type));
    if (!same) {
      Id mine = OwnLoop(*tree, id, iv, inside);
      if (mine != kNone) {
        tree->EditLoop(mine)->extent = cast(tree->loop(mine).var.dtype(), box->extent);
      } else {
        predicate.push_back(value >= box->min);
        predicate.push_back(value < box->min + box->extent);
        value = value - box->min;
      }
      shifted[iv->var.get()] = is_zero(box->min) ? PrimExpr(iv->var) : iv->var + box->min;
    }
    values.push_back(value);
  }
  BlockItem* rest = tree->EditBlock(id);
  rest->iter_vars = own;
  rest->iter_values = values;
  rest->predicate = predicate;
  arith::Analyzer simplifier;
  for (const IterVar& iv : own) simplifier.Bind(iv->var, iv->dom);
  auto tidy = [&](const PrimExpr& expr) { return simplifier.Simplify(expr); };
  Stmt moved =
      Substitute(BufferStore(padded.store->buffer, padded.value, padded.store->indices), shifted);
  const auto* store = moved.as<BufferStoreNode>();
  auto load = [&](const ObjectRef& node) -> ObjectRef {
    const auto* read = node.as<BufferLoadNode>();
    return BufferLoad(read->buffer, read->indices.Map(tidy));
  };
  Stmt body = BufferStore(store->buffer, store->value, store->indices.Map(tidy));
  tree->SetBody(id, IRTransform(body, nullptr, load, {"tir.BufferLoad"}));
  Tidy(tree, id);
  VarSet given = FindGiven(*tree, id);
  tree->EditBlock(id)->given = given;
  return first;
}

namespace {

/*! \brief A variable of a contraction, and the length that it is padded to. */
struct PaddedVar {
  IterVar iv;
  PrimExpr extent, padded;
  bool grows() const { return !ExprDeepEqual()(extent, padded); }
};

/*! \brief The variables that are the indices of an access, none for an axis of one place. */
std::vector<std::optional<size_t>> AxesOf(const BlockItem& block, const Array<PrimExpr>& indices,
                                          const Buffer& buffer) {
  std::vector<std::optional<size_t>> axes;
  for (const PrimExpr& index : indices) {
    if (index.as<IntImmNode>()) {
      axes.push_back(std::nullopt);
      continue;
    }
    size_t at = 0;
    while (at < block.iter_vars.size() && !block.iter_vars[at]->var.same_as(index)) ++at;
    TVM_CHECK(at < block.iter_vars.size(), ScheduleError)
        << "block " << block.name << " accesses " << buffer->name << " at " << indices
        << ", and only variables of the block can be padded";
    axes.emplace_back(at);
  }
  return axes;
}

/*! \brief Factors of a product, through casts. */
void AddFactors(const PrimExpr& expr, std::vector<PrimExpr>* factors) {
  if (const auto* product = expr.as<MulNode>()) {
    AddFactors(product->a, factors);
    AddFactors(product->b, factors);
  } else if (const auto* op = expr.as<CastNode>()) {
    AddFactors(op->value, factors);
  } else {
    factors->push_back(expr);
  }
}

/*! \brief Refuse an update that zeros in the padding of a summed variable would change. */
void RequireSumOfProducts(const BlockItem& block, const BufferStoreNode* store,
                          const std::vector<PaddedVar>& vars) {
  const auto* sum = store->value.as<AddNode>();
  auto is_old = [&](const PrimExpr& expr) {
    const auto* load = expr.as<BufferLoadNode>();
    return load != nullptr && load->buffer.same_as(store->buffer);
  };
  PrimExpr term = sum == nullptr ? PrimExpr() : is_old(sum->a) ? sum->b : sum->a;
  bool adds = sum != nullptr && (is_old(sum->a) || is_old(sum->b));
  std::vector<PrimExpr> factors;
  if (adds) AddFactors(term, &factors);
  for (const PaddedVar& var : vars) {
    if (var.iv->iter_type != kCommReduce || !var.grows()) continue;
    bool vanishes = std::any_of(factors.begin(), factors.end(), [&](const PrimExpr& factor) {
      return factor.as<BufferLoadNode>() && VarsOf(factor).Contains(var.iv->var);
    });
    TVM_CHECK(vanishes, ScheduleError)
        << "block " << block.name << " is no sum of products with a factor that depends on "
        << var.iv->var << ", so zeros as padding of that variable would change the result";
  }
}

/*! \brief A block that copies between a buffer and its padded twin, at a place below the root. */
Id InsertPadCopy(Tree* tree, Id parent, size_t slot, const Buffer& buffer, const Buffer& twin,
                 bool to_twin) {
  const Array<PrimExpr>& shape = to_twin ? twin->shape : buffer->shape;
  Ids loops;
  Array<IterVar> iters;
  Array<PrimExpr> values, place;
  PrimExpr inside;
  for (size_t d = 0; d < shape.size(); ++d) {
    const PrimExpr& extent = shape[static_cast<int64_t>(d)];
    const PrimExpr& length = buffer->shape[static_cast<int64_t>(d)];
    DataType dtype = extent.dtype();
    loops.push_back(tree->AddLoop("i" + std::to_string(d), dtype, extent));
    Var var("v" + std::to_string(d), dtype);
    iters.push_back(IterVar(Range::FromMinExtent(make_const(dtype, 0), extent), var, kDataPar));
    values.push_back(tree->loop(loops.back()).var);
    place.push_back(var);
    if (!to_twin || ExprDeepEqual()(extent, length)) continue;
    PrimExpr condition = var < length;
    inside = inside.defined() ? inside && condition : condition;
  }
  PrimExpr value = BufferLoad(to_twin ? buffer : twin, place);
  if (inside.defined()) value = if_then_else(inside, value, make_const(buffer->dtype, 0));
  Id id = tree->AddBlock(std::make_shared<BlockItem>(tree->NewBlockName(twin->name), iters, values),
                         BufferStore(to_twin ? twin : buffer, value, place));
  tree->Insert(parent, slot, loops.empty() ? id : tree->Nest(loops, {id}));
  return id;
}

}  // namespace

void PadEinsum(Tree* tree, Id id, const std::vector<int64_t>& padding) {
  RequireReduction(*tree, id);
  const BlockItem block = tree->block(id);
  Id scope = tree->ScopeOf(id);
  TVM_CHECK(padding.size() == block.iter_vars.size(), ScheduleError)
      << padding.size() << " numbers to pad to multiples of, and block " << block.name << " has "
      << block.iter_vars.size() << " variables";
  Stmt body = tree->Body(id);
  const auto* store = body.as<BufferStoreNode>();
  TVM_CHECK(store != nullptr && block.init.as<BufferStoreNode>(), ScheduleError)
      << "block " << block.name << " is not one store to one buffer";
  arith::Analyzer analyzer;
  std::vector<PaddedVar> vars;
  Ids loops = tree->LoopsAbove(id);
  for (Id loop : loops) {
    TVM_CHECK((*tree)[loop].children.size() == 1, ScheduleError)
        << "loop " << tree->NameOf(loop) << " holds more than block " << block.name
        << ", which would run more often too; pad before blocks are moved under common loops";
  }
  std::vector<Id> own;
  for (size_t i = 0; i < padding.size(); ++i) {
    const IterVar& iv = block.iter_vars[static_cast<int64_t>(i)];
    TVM_CHECK(padding[i] >= 1, ScheduleError)
        << "variable " << iv->var << " cannot be padded to multiples of " << padding[i]
        << "; 1 leaves it as it is";
    PrimExpr multiple = make_const(iv->var.dtype(), padding[i]);
    PrimExpr padded = analyzer.Simplify(ceildiv(iv->dom->extent, multiple) * multiple);
    vars.push_back({iv, iv->dom->extent, padded});
    own.push_back(OwnLoop(*tree, id, iv, loops));
    bool unit = is_const_int(iv->dom->extent, 1) && !vars.back().grows();
    TVM_CHECK(own.back() != kNone || unit, ScheduleError)
        << "variable " << iv->var << " of block " << block.name << " is "
        << block.iter_values[static_cast<int64_t>(i)]
        << " and not a loop over its domain around nothing else; pad before loops are changed";
  }
  TVM_CHECK(block.predicate.empty(), ScheduleError)
      << "block " << block.name << " has a predicate; pad before loops are split";
  RequireSumOfProducts(block, store, vars);
  struct Change {
    Buffer from, to;
    bool written;
  };
  std::vector<Change> changes;
  auto add = [&](const Buffer& buffer, const Array<PrimExpr>& indices, bool written) {
    std::vector<std::optional<size_t>> axes = AxesOf(block, indices, buffer);
    for (const Change& known : changes) {
      if (known.from.same_as(buffer)) return;
    }
    Array<PrimExpr> shape;
    bool grows = false;
    for (const std::optional<size_t>& axis : axes) {
      const PrimExpr& length = buffer->shape[static_cast<int64_t>(shape.size())];
      if (!axis.has_value()) {
        shape.push_back(length);
        continue;
      }
      const PaddedVar& var = vars[*axis];
      TVM_CHECK(ExprDeepEqual()(length, var.extent), ScheduleError)
          << "variable " << var.iv->var << " of block " << block.name
          << " does not run over all of axis " << shape.size() << " of " << buffer->name;
      shape.push_back(var.padded);
      grows |= var.grows();
    }
    if (!grows) return;
    Buffer twin = decl_buffer(shape, buffer->dtype, tree->NewBufferName(buffer->name + "_pad"),
                              buffer.scope());
    changes.push_back({buffer, twin, written});
  };
  std::shared_ptr<const Access> access = AccessOf(*tree, id);
  for (const Touch& touch : access->reads) {
    if (!access->Writes(touch.buffer)) add(touch.buffer, touch.indices, false);
  }
  for (const Touch& touch : access->writes) add(touch.buffer, touch.indices, true);
  if (changes.empty()) return;
  Id top = loops.empty() ? id : loops.front();
  Id parent = (*tree)[top].parent;
  for (const Change& change : changes) {
    size_t slot = tree->IndexOf(parent, top);
    InsertPadCopy(tree, parent, change.written ? slot + 1 : slot, change.from, change.to,
                  !change.written);
    BufferChange edit{change.from, change.to, nullptr, nullptr};
    ChangeBuffer(tree, id, edit);
    tree->Allocate(change.to, scope);
  }
  Array<IterVar> iters;
  for (size_t i = 0; i < vars.size(); ++i) {
    const IterVar& iv = vars[i].iv;
    iters.push_back(
        IterVar(Range::FromMinExtent(iv->dom->min, vars[i].padded), iv->var, iv->iter_type));
    if (own[i] != kNone) tree->EditLoop(own[i])->extent = vars[i].padded;
  }
  tree->EditBlock(id)->iter_vars = iters;
}

}  // namespace sched
}  // namespace tir
}  // namespace tvm
