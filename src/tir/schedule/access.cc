/*!
 * \file access.cc
 * \brief Reading accesses off bodies, and telling kinds of blocks by them.
 */
#include "access.h"

#include <tvm/arith/analyzer.h>
#include <tvm/arith/iter_affine_map.h>
#include <tvm/arith/pattern.h>
#include <tvm/expr/builtin.h>

#include <algorithm>

#include "regions.h"

namespace tvm {
namespace tir {
namespace sched {

bool Has(const std::vector<Buffer>& buffers, const Buffer& buffer) {
  return std::any_of(buffers.begin(), buffers.end(),
                     [&](const Buffer& other) { return other.same_as(buffer); });
}

bool SameIndices(const Array<PrimExpr>& a, const Array<PrimExpr>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!ExprDeepEqual()(a[i], b[i])) return false;
  }
  return true;
}

bool ReadsMemory(const PrimExpr& expr) { return Holds<BufferLoadNode>(expr); }

bool Chooses(const Stmt& stmt) {
  bool found = false;
  PreOrderVisit(stmt, [&](const ObjectRef& node) {
    const auto* call = node.as<CallNode>();
    // What is behind an "and" or an "or" need not be evaluated.
    found = found || (call != nullptr && call->op.same_as(builtin::if_then_else())) ||
            node->IsInstance<SelectNode>() || node->IsInstance<AndNode>() ||
            node->IsInstance<OrNode>();
    return !found;
  });
  return found;
}

namespace {

void ListBuffers(Access* found) {
  for (const Touch& touch : found->reads) {
    if (!found->Reads(touch.buffer)) found->read.push_back(touch.buffer);
  }
  for (const Touch& touch : found->writes) {
    if (!found->Writes(touch.buffer)) found->written.push_back(touch.buffer);
  }
}

/*! \brief A statement with the values of variables that it binds in the places of these. */
Stmt WithoutLets(const Stmt& stmt) {
  auto inlined = [](const ObjectRef& node) -> ObjectRef {
    const auto* let = node.as<LetStmtNode>();
    Stmt body = Substitute(let->body, {{let->var.get(), let->value}});
    // What the value reads is read, whether it is used or not.
    return SeqStmt::Flatten({Evaluate(let->value), body});
  };
  return IRTransform(stmt, nullptr, inlined, {"tir.LetStmt"});
}

void AddStmt(const Stmt& given, Access* found) {
  const Stmt stmt = Holds<LetStmtNode>(given) ? WithoutLets(given) : given;
  PostOrderVisit(stmt, [&](const ObjectRef& node) {
    if (const auto* load = node.as<BufferLoadNode>()) {
      found->reads.push_back({load->buffer, load->indices});
    } else if (const auto* store = node.as<BufferStoreNode>()) {
      found->writes.push_back({store->buffer, store->indices});
    } else if (node->IsInstance<IfThenElseNode>()) {
      found->conditional = true;
    } else if (node->IsInstance<ForNode>() || node->IsInstance<WhileNode>() ||
               node->IsInstance<AttrStmtNode>()) {
      found->opaque = true;
    } else if (node->IsInstance<CallNode>()) {
      found->opaque |= SideEffect(Downcast<PrimExpr>(node)) >= CallEffectKind::kUpdateState;
    } else if (const auto* var = node.as<VarNode>()) {
      found->opaque |= var->dtype.is_handle();
    }
  });
}

/*! \brief Accesses of an init, whose loops, of a block around others, are none of the tree's. */
void AddInit(const Stmt& init, Access* total) {
  if (!Holds<ForNode>(init)) {
    AddStmt(init, total);
    return;
  }
  // Variables of such loops mean nothing outside: what is accessed may be any part.
  PostOrderVisit(init, [&](const ObjectRef& node) {
    if (const auto* load = node.as<BufferLoadNode>()) {
      total->reads.push_back({load->buffer, {}});
    } else if (const auto* store = node.as<BufferStoreNode>()) {
      total->writes.push_back({store->buffer, {}});
    } else if (node->IsInstance<IfThenElseNode>()) {
      total->conditional = true;
    } else if (node->IsInstance<WhileNode>() || node->IsInstance<AttrStmtNode>() ||
               node->IsInstance<EvaluateNode>()) {
      total->opaque = true;
    } else if (const auto* var = node.as<VarNode>()) {
      total->opaque |= var->dtype.is_handle();
    }
  });
}

bool Declares(const Array<BufferRegion>& regions, const Buffer& buffer) {
  return std::any_of(regions.begin(), regions.end(),
                     [&](const BufferRegion& region) { return region->buffer.same_as(buffer); });
}

void AddBelow(const Tree& tree, Id id, Access* total) {
  if (tree.IsLeaf(id)) {
    AddStmt(tree.leaf(id).stmt, total);
    return;
  }
  if (tree.IsBlock(id)) {
    const BlockItem& block = tree.block(id);
    if (block.init.defined()) AddInit(block.init, total);
    total->opaque |= !block.match_buffers.empty() || block.erratic;
    for (const MatchBufferRegion& match : block.match_buffers) {
      // A view is used as the block declares; if that says nothing, in any way.
      const Buffer& source = match->source->buffer;
      bool read = Declares(block.reads, source), written = Declares(block.writes, source);
      if (read || !written) total->reads.push_back({source, {}});
      if (written || !read) total->writes.push_back({source, {}});
    }
  }
  for (Id child : tree[id].children) {
    std::shared_ptr<const Access> part = AccessOf(tree, child);
    total->reads.insert(total->reads.end(), part->reads.begin(), part->reads.end());
    total->writes.insert(total->writes.end(), part->writes.begin(), part->writes.end());
    total->opaque |= part->opaque;
    total->conditional |= part->conditional;
  }
  if (total->opaque && tree.IsBlock(id)) {
    // What hides behind a pointer is at least what the block declares.
    for (const BufferRegion& region : tree.block(id).reads) {
      total->reads.push_back({region->buffer, {}});
    }
    for (const BufferRegion& region : tree.block(id).writes) {
      total->writes.push_back({region->buffer, {}});
    }
  }
}

std::shared_ptr<const Access> Find(const Tree& tree, Id id) {
  auto found = std::make_shared<Access>();
  AddBelow(tree, id, found.get());
  ListBuffers(found.get());
  return found;
}

/*! \brief What is known of a leaf block's body, empty if the body is another; null for others. */
BlockFacts* FactsOf(const Tree& tree, Id id) {
  const BlockItem& block = tree.block(id);
  if (block.children.size() != 1 || !tree.IsLeaf(block.children[0])) return nullptr;
  const Stmt& body = tree.leaf(block.children[0]).stmt;
  BlockFacts* facts = block.facts.get();
  if (facts == nullptr || !facts->body.same_as(body) || !facts->init.same_as(block.init) ||
      !facts->iter_vars.same_as(block.iter_vars) || facts->erratic != block.erratic) {
    block.facts = std::make_shared<BlockFacts>(
        BlockFacts{body, block.init, block.iter_vars, block.erratic, nullptr, std::nullopt});
  }
  return block.facts.get();
}

/*! \brief Accesses of one buffer at different indices. */
std::vector<Touch> At(const std::vector<Touch>& touches, const Buffer& buffer) {
  std::vector<Touch> found;
  for (const Touch& touch : touches) {
    bool known = std::any_of(found.begin(), found.end(), [&](const Touch& other) {
      return SameIndices(other.indices, touch.indices);
    });
    if (touch.buffer.same_as(buffer) && !known) found.push_back(touch);
  }
  return found;
}

VarSet VarsOfIters(const Array<IterVar>& iters) {
  VarSet vars;
  for (const IterVar& iv : iters) vars.Add(iv->var);
  return vars;
}

/*! \brief Whether the init gives all that the block writes a value that does not depend on it. */
bool Starts(const BlockItem& block, const Access& body) {
  Access first;
  AddStmt(block.init, &first);
  ListBuffers(&first);
  bool same = first.written.size() == body.written.size();
  for (size_t i = 0; same && i < first.written.size(); ++i) {
    same = first.written[i].same_as(body.written[i]);
  }
  bool reads_itself = std::any_of(body.written.begin(), body.written.end(),
                                  [&](const Buffer& buffer) { return first.Reads(buffer); });
  return same && !first.opaque && !first.conditional && !reads_itself &&
         !VarsOf(block.init).Intersects(VarsOfIters(block.Reducing()));
}

/*! \brief Variables that do not change while a block runs: of blocks around it, and symbols. */
VarSet ConstantsOf(const Tree& tree, Id id) {
  VarSet found = tree.Symbols();
  for (Id at = tree[id].parent; at != kNone; at = tree[at].parent) {
    if (tree.IsBlock(at)) found.Add(VarsOfIters(tree.block(at).iter_vars));
  }
  return found;
}

/*! \brief The variable of which an index is the sum with constants. */
std::optional<Var> ShiftedVar(const PrimExpr& index, const VarSet& constant) {
  if (const auto* var = index.as<VarNode>()) return GetRef<Var>(var);
  if (const auto* gap = index.as<SubNode>()) {
    if (VarsOf(gap->b).IsSubsetOf(constant)) return ShiftedVar(gap->a, constant);
    return std::nullopt;
  }
  const auto* sum = index.as<AddNode>();
  if (sum == nullptr) return std::nullopt;
  for (const auto& [part, rest] : {std::pair(sum->a, sum->b), std::pair(sum->b, sum->a)}) {
    if (VarsOf(rest).IsSubsetOf(constant)) return ShiftedVar(part, constant);
  }
  return std::nullopt;
}

/*! \brief Whether different values of the variables give different indices, as in a new layout. */
bool IsInjective(const Array<PrimExpr>& indices, const Array<IterVar>& iters) {
  Map<Var, Range> domains;
  for (const IterVar& iv : iters) {
    if (AsInt(iv->dom->extent).value_or(1) < 1) return false;
    domains.Set(iv->var, iv->dom);
  }
  return arith::DetectIterMap(indices, domains, arith::IterMapLevel::kBijective)->errors.empty();
}

/*! \brief Whether only variables decide on what is under the conditionals of a statement. */
bool ChoosesByPlace(const Stmt& stmt) {
  bool by_place = true;
  PreOrderVisit(stmt, [&](const ObjectRef& node) {
    const auto* op = node.as<IfThenElseNode>();
    by_place = by_place && (op == nullptr || !ReadsMemory(op->condition));
    return by_place;
  });
  return by_place;
}

/*! \brief The variable of which a region is one of the tiles that lie side by side. */
const VarNode* TileOf(const Range& range) {
  std::optional<int64_t> extent = AsInt(range->extent);
  PrimExpr low = range->min;
  if (const auto* sum = low.as<AddNode>(); sum && AsInt(sum->b)) low = sum->a;
  int64_t step = 1;
  if (const auto* scaled = low.as<MulNode>(); scaled && AsInt(scaled->b)) {
    step = *AsInt(scaled->b);
    low = scaled->a;
  }
  return extent && *extent <= step ? low.as<VarNode>() : nullptr;
}

/*!
 * \brief The kind of a leaf block that hides accesses behind pointers or in loops of its own.
 *
 * Nobody but the block knows what it accesses, so what it declares is believed.
 */
BlockKind DeclaredKind(const BlockItem& block) {
  Array<IterVar> spatial = block.Spatial(), reducing = block.Reducing();
  if (block.erratic || block.writes.empty()) return BlockKind::kOpaque;
  VarSet added = VarsOfIters(reducing);
  bool reads_itself = false;
  for (const BufferRegion& region : block.writes) {
    std::vector<const VarNode*> tiled;
    for (const Range& range : region->region) {
      if (VarsOf(range->min).Intersects(added)) return BlockKind::kOpaque;
      tiled.push_back(TileOf(range));
    }
    for (const IterVar& iv : spatial) {
      bool apart = std::find(tiled.begin(), tiled.end(), iv->var.get()) != tiled.end();
      if (!apart && !is_const_int(iv->dom->extent, 1)) return BlockKind::kOpaque;
    }
    reads_itself |= Declares(block.reads, region->buffer);
  }
  if (block.init.defined()) {
    bool starts = reads_itself && !VarsOf(block.init).Intersects(added);
    return starts ? BlockKind::kReduction : BlockKind::kOpaque;
  }
  if (reads_itself) return reducing.empty() ? BlockKind::kOpaque : BlockKind::kUpdate;
  bool again = std::any_of(reducing.begin(), reducing.end(),
                           [](const IterVar& iv) { return !is_const_int(iv->dom->extent, 1); });
  return again ? BlockKind::kOpaque : BlockKind::kComplete;
}

BlockKind FindKind(const Tree& tree, Id id) {
  const BlockItem& block = tree.block(id);
  Array<IterVar> spatial = block.Spatial(), reducing = block.Reducing();
  if (!tree.IsLeafBlock(id) || spatial.size() + reducing.size() != block.iter_vars.size()) {
    return BlockKind::kOpaque;
  }
  std::shared_ptr<const Access> body = AccessOf(tree, id);
  if (body->opaque) return DeclaredKind(block);
  if (body->writes.empty()) return BlockKind::kOpaque;
  VarSet own_spatial = VarsOfIters(spatial), constant = ConstantsOf(tree, id);
  for (const Touch& touch : body->writes) {
    VarSet alone;
    for (const PrimExpr& index : touch.indices) {
      if (ReadsMemory(index) || !(VarsOf(index) - constant).IsSubsetOf(own_spatial)) {
        return BlockKind::kOpaque;
      }
      if (auto var = ShiftedVar(index, constant)) alone.Add(*var);
    }
    // Different values of the spatial variables have to give different indices.
    bool apart = std::all_of(spatial.begin(), spatial.end(), [&](const IterVar& iv) {
      return alone.Contains(iv->var) || is_const_int(iv->dom->extent, 1);
    });
    if (!apart && !IsInjective(touch.indices, spatial)) return BlockKind::kOpaque;
  }
  bool reads_itself = false;
  for (const Buffer& buffer : body->written) {
    std::vector<Touch> places = At(body->writes, buffer);
    // Two stores, or the store of the init and that of the update at different elements.
    if (places.size() != 1) return BlockKind::kOpaque;
    for (const Touch& read : At(body->reads, buffer)) {
      if (!SameIndices(read.indices, places[0].indices)) return BlockKind::kOpaque;
      reads_itself = true;
    }
  }
  if (block.init.defined()) {
    return Starts(block, *body) ? BlockKind::kReduction : BlockKind::kOpaque;
  }
  if (reads_itself) return reducing.empty() ? BlockKind::kOpaque : BlockKind::kUpdate;
  if (!reducing.empty()) return BlockKind::kOpaque;
  bool known = !body->conditional || ChoosesByPlace(tree.Body(id));
  return known ? BlockKind::kComplete : BlockKind::kOpaque;
}

/*! \brief Whether regions are those that a statement accesses, in whatever order. */
bool SameRegions(const Array<BufferRegion>& a, const Array<BufferRegion>& b) {
  arith::Analyzer analyzer;
  return a.size() == b.size() && std::all_of(a.begin(), a.end(), [&](const BufferRegion& region) {
           return std::any_of(b.begin(), b.end(), [&](const BufferRegion& other) {
             bool same = region->buffer.same_as(other->buffer);
             for (size_t d = 0; same && d < region->region.size(); ++d) {
               const Range &x = region->region[static_cast<int64_t>(d)],
                           &y = other->region[static_cast<int64_t>(d)];
               same = analyzer.CanProveEqual(x->min, y->min) &&
                      analyzer.CanProveEqual(x->extent, y->extent);
             }
             return same;
           });
         });
}

/*!
 * \brief Outer variables whose values tell apart what a nest writes, as in `outer * extent +
 * inner`; nothing if what one instance writes is not known to be a box.
 */
std::optional<VarSet> OuterVarsOf(const Tree& tree, const BlockItem& outer, const BlockItem& inner,
                                  const Ids& loops, const std::vector<Touch>& writes) {
  arith::Analyzer analyzer;
  VarMap values = inner.Values();
  VarSet own = VarsOfIters(outer.iter_vars), moving = tree.VarsOfLoops(loops), told;
  for (const Touch& touch : writes) {
    VarSet seen, moved;
    for (const PrimExpr& own_index : touch.indices) {
      PrimExpr index = analyzer.Simplify(Substitute(own_index, values));
      VarSet used = VarsOf(index) & moving;
      if (used.Intersects(moved)) return std::nullopt;
      moved.Add(used);
      Ids mine = loops;
      std::erase_if(mine, [&](Id loop) { return !used.Contains(tree.loop(loop).var); });
      Array<PrimExpr> row = Linear(tree, index, mine);
      std::optional<Span> span =
          row.empty() ? std::nullopt : Contiguous(tree, row, mine, &analyzer);
      std::optional<int64_t> length = span ? AsInt(span->extent) : std::nullopt;
      if (!length) return std::nullopt;
      VarSet outers = VarsOf(span->low) & own;
      if (outers.empty()) continue;
      Array<PrimExpr> steps = arith::DetectLinearEquation(span->low, {*outers.begin()});
      if (outers.size() > 1 || steps.empty() || AsInt(steps[0]).value_or(0) < *length) {
        return std::nullopt;
      }
      seen.Add(outers);
    }
    if (told.empty()) told = seen;
    told = told & seen;
  }
  return told;
}

/*! \brief The kind of a block around one nest, as blockize makes them and scripts have them. */
BlockKind FindNestedKind(const Tree& tree, Id id) {
  const BlockItem& block = tree.block(id);
  Array<IterVar> spatial = block.Spatial(), reducing = block.Reducing();
  if (spatial.size() + reducing.size() != block.iter_vars.size() || block.erratic) {
    return BlockKind::kOpaque;
  }
  Id at = id;
  Ids loops;
  do {
    if (tree[at].children.size() != 1) return BlockKind::kOpaque;
    at = tree[at].children[0];
    if (tree.IsLoop(at)) loops.push_back(at);
  } while (tree.IsLoop(at));
  if (!tree.IsBlock(at) || !tree.IsLeafBlock(at)) return BlockKind::kOpaque;
  const BlockItem& inner = tree.block(at);
  BlockKind kind = KindOf(tree, at);
  std::shared_ptr<const Access> access = AccessOf(tree, at);
  bool all_loops = inner.predicate.empty() && !access->conditional && !access->opaque;
  // A reduction of which an instance of `block` runs a part starts in some of these only.
  bool in_part = !inner.covers && kind == BlockKind::kReduction;
  if (kind == BlockKind::kOpaque || !all_loops || in_part || inner.erratic) {
    return BlockKind::kOpaque;
  }
  std::optional<VarSet> told = OuterVarsOf(tree, block, inner, loops, access->writes);
  if (!told) return BlockKind::kOpaque;
  for (const IterVar& iv : spatial) {
    if (!told->Contains(iv->var) && !is_const_int(iv->dom->extent, 1)) return BlockKind::kOpaque;
  }
  AccessRegions found = DetectAccessRegions(tree.Body(id), block.init);
  if (!SameRegions(found.writes, block.writes) || !SameRegions(found.reads, block.reads)) {
    return BlockKind::kOpaque;
  }
  if (block.init.defined()) {
    AccessRegions first = DetectAccessRegions(block.init);
    bool starts = kind == BlockKind::kUpdate && first.reads.empty() &&
                  SameRegions(first.writes, block.writes) &&
                  !VarsOf(block.init).Intersects(VarsOfIters(reducing));
    return starts ? BlockKind::kReduction : BlockKind::kOpaque;
  }
  if (kind == BlockKind::kUpdate) return kind;
  bool again = std::any_of(reducing.begin(), reducing.end(),
                           [](const IterVar& iv) { return !is_const_int(iv->dom->extent, 1); });
  return again ? BlockKind::kOpaque : BlockKind::kComplete;
}

}  // namespace

bool IsSealed(const Tree& tree, Id id) {
  if (tree.block(id).sealed) return true;
  bool hides = !tree.IsLeafBlock(id) || AccessOf(tree, id)->opaque;
  return hides && KindOf(tree, id) != BlockKind::kOpaque;
}

std::shared_ptr<const Access> AccessOf(const Tree& tree, Id id) {
  BlockFacts* facts = tree.IsBlock(id) ? FactsOf(tree, id) : nullptr;
  if (facts == nullptr) return Find(tree, id);
  if (!facts->access) facts->access = Find(tree, id);
  return facts->access;
}

std::vector<Buffer> WrittenBy(const Tree& tree, Id id) { return AccessOf(tree, id)->written; }

std::vector<Buffer> ReadBy(const Tree& tree, Id id) { return AccessOf(tree, id)->read; }

BlockKind KindOf(const Tree& tree, Id id) {
  if (tree.block(id).sealed) return *tree.block(id).sealed;
  if (!tree.IsLeafBlock(id)) return FindNestedKind(tree, id);
  BlockFacts* facts = FactsOf(tree, id);
  if (facts == nullptr) return FindKind(tree, id);
  if (!facts->kind) {
    BlockKind kind = FindKind(tree, id);
    facts->kind = kind;
  }
  return *facts->kind;
}

bool WritesPinned(const Tree& tree, Id id) {
  const std::vector<Buffer> written = WrittenBy(tree, id);
  return std::any_of(written.begin(), written.end(),
                     [&](const Buffer& buffer) { return tree.IsPinned(buffer); });
}

bool WritesEveryElement(const Tree& tree, Id id, const Buffer& buffer) {
  const BlockItem& block = tree.block(id);
  std::shared_ptr<const Access> access = AccessOf(tree, id);
  if (access->opaque || access->conditional) return false;
  if (!block.covers) return false;
  Touch place = At(access->writes, buffer)[0];
  Array<IterVar> spatial = block.Spatial();
  bool one_by_one = true;
  int64_t instances = 1, elements = 1;
  for (size_t d = 0; d < place.indices.size(); ++d) {
    const PrimExpr &index = place.indices[d], &extent = buffer->shape[d];
    std::optional<int64_t> length = AsInt(extent);
    bool fits = length && !__builtin_mul_overflow(elements, *length, &elements);
    if (!fits) elements = -1;
    if (is_const_int(index, 0) && is_const_int(extent, 1)) continue;
    auto at = std::find_if(spatial.begin(), spatial.end(),
                           [&](const IterVar& iv) { return iv->var.same_as(index); });
    one_by_one &= at != spatial.end() && is_const_int((*at)->dom->min, 0) &&
                  ExprDeepEqual()((*at)->dom->extent, extent);
  }
  if (one_by_one) return true;
  // Instances that write different elements write all if there are as many.
  for (const IterVar& iv : spatial) {
    std::optional<int64_t> length = AsInt(iv->dom->extent);
    if (!length || __builtin_mul_overflow(instances, *length, &instances)) return false;
  }
  return KindOf(tree, id) != BlockKind::kOpaque && instances == elements;
}

}  // namespace sched
}  // namespace tir
}  // namespace tvm
