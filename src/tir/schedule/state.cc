/*!
 * \file state.cc
 * \brief Looking at a schedule: references to its loops and blocks, and what blocks wait for.
 */
#include "state.h"

#include <tvm/arith/iter_affine_map.h>
#include <tvm/runtime/registry.h>

#include <algorithm>

#include "access.h"
#include "dataflow.h"
#include "facts.h"
#include "regions.h"

namespace tvm {
namespace tir {
namespace sched {

StmtSRefNode::~StmtSRefNode() { table->known.erase(id); }

StmtSRef SRefTable::At(const std::shared_ptr<SRefTable>& table, Id id) {
  auto known = table->known.find(id);
  if (known != table->known.end()) return GetRef<StmtSRef>(known->second);
  auto made = make_object<StmtSRefNode>();
  made->table = table;
  made->id = id;
  table->known[id] = made.get();
  return StmtSRef(made);
}

Id SRefTable::Find(const Stmt& stmt) const {
  for (Id id : tree->Preorder(tree->root())) {
    if (tree->IsLeaf(id)) continue;
    Stmt own = tree->ToStmt(id);
    if (own.same_as(stmt)) return id;
    const auto* realize = own.as<BlockRealizeNode>();
    if (realize != nullptr && realize->block.same_as(stmt)) return id;
  }
  return kNone;
}

namespace {

/*! \brief The loop or the block that a reference is for, or null once it is gone. */
Optional<Stmt> StmtOf(const StmtSRef& sref) {
  const Tree& tree = *sref->table->tree;
  if (!tree.IsAlive(sref->id)) return NullOpt;
  Stmt stmt = tree.ToStmt(sref->id);
  if (const auto* realize = stmt.as<BlockRealizeNode>()) return Stmt(realize->block);
  return stmt;
}

// Kinds as TVM numbers them.
enum class DepKind : int { kRAW = 0, kWAW = 1, kWAR = 2 };

bool Meet(const std::vector<Buffer>& a, const std::vector<Buffer>& b) {
  return std::any_of(a.begin(), a.end(), [&](const Buffer& buffer) { return Has(b, buffer); });
}

/*! \brief Triples [src, dst, kind] of the blocks of a scope, in the order of the program. */
Array<Array<ObjectRef>> DependenciesIn(const StmtSRef& scope) {
  const Tree& tree = *scope->table->tree;
  TVM_CHECK(tree.IsBlock(scope->id), ValueError)
      << "get_block_scope: a scope is a block, got loop " << tree.NameOf(scope->id);
  Ids units = tree.UnitsBelow(scope->id);
  std::erase_if(units, [&](Id unit) { return !tree.IsBlock(unit); });
  Array<Array<ObjectRef>> found;
  auto add = [&](Id from, Id to, DepKind kind) {
    found.push_back({SRefTable::At(scope->table, from), SRefTable::At(scope->table, to),
                     Integer(static_cast<int>(kind))});
  };
  for (size_t i = 0; i < units.size(); ++i) {
    auto first = AccessOf(tree, units[i]);
    for (size_t k = i + 1; k < units.size(); ++k) {
      auto second = AccessOf(tree, units[k]);
      if (Meet(first->written, second->read)) add(units[i], units[k], DepKind::kRAW);
      if (Meet(first->written, second->written)) add(units[i], units[k], DepKind::kWAW);
      if (Meet(first->read, second->written)) add(units[i], units[k], DepKind::kWAR);
    }
  }
  return found;
}

/*! \brief Whether the variables of a block are sums of digits of loops, each digit used once. */
bool IsAffine(const Tree& tree, Id id) {
  Map<Var, Range> ranges;
  VarSet outer;
  for (Id loop : tree.LoopsAbove(id)) {
    const LoopItem& l = tree.loop(loop);
    if (VarsOf(l.min).Intersects(outer) || VarsOf(l.extent).Intersects(outer)) return false;
    outer.Add(l.var);
    ranges.Set(l.var, l.range());
  }
  const Array<PrimExpr>& values = tree.block(id).iter_values;
  return values.empty() || arith::DetectIterMap(values, ranges)->IsExact();
}

/*!
 * \brief Whether all that a block reads of what its scope writes is written below the loops around
 *        both, as far as the blocks declare.
 */
bool IsCovered(const Tree& tree, Id id) {
  if (tree[id].parent == kNone) return true;
  Ids units = tree.UnitsBelow(tree.ScopeOf(id));
  Ids loops = tree.LoopsAbove(id);
  for (const BufferRegion& region : tree.block(id).reads) {
    const Buffer& buffer = region->buffer;
    std::vector<bool> found(buffer->shape.size(), false);
    bool written = false;
    for (Id unit : units) {
      if (unit == id || !tree.IsBlock(unit)) continue;
      Ids common = tree.LoopsAbove(unit);
      std::erase_if(common, [&](Id loop) { return !Has(loops, loop); });
      arith::Analyzer analyzer;
      auto box = DeclaredSpans(tree, unit, buffer, true, Without(tree.LoopsAbove(unit), common),
                               &analyzer);
      if (!box) continue;
      written = true;
      Id around = common.empty() ? tree.ScopeOf(id) : common.back();
      LoopAnalyzer knowing(tree, around);
      auto need = DeclaredSpans(tree, id, buffer, false, Without(loops, common), &analyzer);
      for (size_t d = 0; d < found.size(); ++d) {
        const Span &have = (*box)[d], &want = (*need)[d];
        bool low = knowing.CanProve(have.low <= want.low) || knowing.CanProve(have.low <= 0);
        bool high = knowing.CanProve(want.high() <= have.high()) ||
                    knowing.CanProve(have.high() >= buffer->shape[static_cast<int64_t>(d)] - 1);
        found[d] = found[d] || (low && high);
      }
    }
    if (written && std::find(found.begin(), found.end(), false) != found.end()) return false;
  }
  return true;
}

/*! \brief Whether blocks of a scope only read what blocks before them wrote, all of it. */
bool IsPipeline(const Tree& tree, Id scope) {
  Ids units = tree.UnitsBelow(scope);
  if (tree.IsLeafBlock(scope)) return true;
  for (size_t i = 0; i < units.size(); ++i) {
    if (!tree.IsBlock(units[i]) || !IsCovered(tree, units[i])) return false;
    for (size_t k = i + 1; k < units.size(); ++k) {
      if (Meet(AccessOf(tree, units[i])->read, AccessOf(tree, units[k])->written)) return false;
    }
  }
  return true;
}

/*! \brief What TVM keeps of a block: whether it is affine, covered, and a pipeline inside. */
Array<Any> FlagsOf(const StmtSRef& sref) {
  const Tree& tree = *sref->table->tree;
  TVM_CHECK(tree.IsBlock(sref->id), ValueError)
      << "cached flags are of blocks, got loop " << tree.NameOf(sref->id);
  return {Any(IsAffine(tree, sref->id)), Any(IsCovered(tree, sref->id)),
          Any(IsPipeline(tree, sref->id))};
}

/*! \brief Says which of the nodes that a statement became stands for which loop or block in it. */
void MatchNodes(const Tree& tree, Id id, const Stmt& stmt,
                std::vector<std::pair<Id, const StmtNode*>>* found) {
  if (tree.IsLeaf(id)) return;
  Stmt body;
  if (const auto* realize = stmt.as<BlockRealizeNode>()) {
    found->emplace_back(id, realize->block.get());
    body = realize->block->body;
  } else {
    found->emplace_back(id, stmt.get());
    body = Downcast<For>(stmt)->body;
  }
  Array<Stmt> parts = body.as<SeqStmtNode>() ? body.as<SeqStmtNode>()->seq : Array<Stmt>{body};
  const Ids& children = tree[id].children;
  // What is inside of constants has no counterpart here, and no reference of before.
  for (size_t i = 0; i < children.size() && parts.size() == children.size(); ++i) {
    MatchNodes(tree, children[i], parts[static_cast<int64_t>(i)], found);
  }
}

/*! \brief Let a node take the place and be what another one is, so that its references stay. */
void Become(Tree* tree, Id id, Id made) {
  Id parent = (*tree)[made].parent;
  Ids children = (*tree)[made].children;
  if (tree->IsLoop(id)) {
    LoopItem copy = tree->loop(made);
    copy.step = tree->Edit(id)->step;
    *tree->EditLoop(id) = copy;
  } else {
    BlockItem copy = tree->block(made);
    copy.step = tree->Edit(id)->step;
    *tree->EditBlock(id) = copy;
  }
  tree->SetChildren(id, children);
  tree->Edit(id)->parent = parent;
  if (parent == kNone) return;
  Ids siblings = (*tree)[parent].children;
  std::replace(siblings.begin(), siblings.end(), made, id);
  tree->SetChildren(parent, siblings);
}

/*! \brief Give loops variables of their own where two beside each other have one. */
void TellApart(Tree* tree) {
  VarSet seen;
  for (Id id : tree->Preorder(tree->root())) {
    if (!tree->IsLoop(id)) continue;
    Var var = tree->loop(id).var;
    if (seen.Contains(var)) {
      Var fresh(var->name_hint, var.dtype());
      tree->ReplaceVars(id, {{var.get(), fresh}});
      tree->EditLoop(id)->var = fresh;
    }
    seen.Add(tree->loop(id).var);
  }
}

void ReplaceStmt(const StmtSRef& sref, Stmt target, const Map<Block, Block>& reuse) {
  Tree* tree = sref->table->tree.get();
  Id id = sref->id;
  TVM_CHECK(tree->IsAlive(id), ValueError) << "replace: the loop or block is gone";
  bool block = tree->IsBlock(id);
  if (const auto* inner = target.as<BlockNode>(); inner && block) {
    const auto realize = Downcast<BlockRealize>(tree->ToStmt(id));
    target = BlockRealize(realize->iter_values, realize->predicate, GetRef<Block>(inner));
  } else {
    bool fits = !block && (target.as<ForNode>() || target.as<BlockRealizeNode>());
    TVM_CHECK(fits, TypeError) << "replace: a " << (block ? "block" : "loop")
                               << (block ? " is replaced by a block"
                                         : " is replaced by a loop or the realization of a block")
                               << ", got a " << target->GetTypeKey();
  }
  Tree::Mark mark = tree->Save();
  try {
    // What keeps its references: loops by their variables, blocks as the caller says.
    std::unordered_map<const Object*, Id> old;
    for (Id node : tree->Preorder(id)) {
      if (tree->IsLoop(node)) old[tree->loop(node).var.get()] = node;
    }
    for (const auto& [before, after] : reuse) {
      Id node = sref->table->Find(before);
      TVM_CHECK(node != kNone && tree->IsUnder(node, id), ValueError)
          << "replace: block " << before->name_hint << " is not in what is replaced";
      old[after.get()] = node;
    }
    Ids imported = tree->Import(target);
    TVM_CHECK(imported.size() == 1 && !tree->IsLeaf(imported[0]), ValueError)
        << "replace: what takes the place of " << tree->NameOf(id)
        << " holds no block, and the program of a schedule is made of loops around blocks";
    std::vector<std::pair<Id, const StmtNode*>> nodes;
    MatchNodes(*tree, imported[0], target, &nodes);
    if (id == tree->root()) {
      Become(tree, id, imported[0]);
    } else {
      tree->Replace((*tree)[id].parent, id, imported[0]);
    }
    for (const auto& [made, stmt] : nodes) {
      const Object* key = stmt;
      if (tree->IsLoop(made)) key = tree->loop(made).var.get();
      auto known = old.find(key);
      bool same_kind = known != old.end() && tree->IsLoop(known->second) == tree->IsLoop(made);
      if (same_kind && known->second != tree->root()) Become(tree, known->second, made);
    }
    TellApart(tree);
    for (Id node : tree->BlocksBelow(tree->root())) {
      BlockItem* item = tree->EditBlock(node);
      item->sealed = std::nullopt;
      item->init_block = kNone;
    }
    Prepare(tree);
    tree->doubts = ParallelismDoubts(*tree);
    tree->MarkChanged();
    tree->ToStmt(tree->root());
  } catch (...) {
    tree->Restore(mark);
    tree->Commit();
    throw;
  }
  tree->Commit();
}

}  // namespace

TVM_REGISTER_GLOBAL("tir.schedule.ReplaceStmt").set_body_typed(ReplaceStmt);
TVM_REGISTER_GLOBAL("tir.schedule.BlockFlags").set_body_typed(FlagsOf);
TVM_REGISTER_GLOBAL("tir.schedule.StmtSRefStmt").set_body_typed(StmtOf);
TVM_REGISTER_GLOBAL("tir.schedule.StmtSRefParent")
    .set_body_typed([](StmtSRef sref) -> Optional<StmtSRef> {
      const Tree& tree = *sref->table->tree;
      Id parent = tree[sref->id].parent;
      if (!tree.IsAlive(sref->id) || parent == kNone) return NullOpt;
      return SRefTable::At(sref->table, parent);
    });
TVM_REGISTER_GLOBAL("tir.schedule.BlockScopeDependencies").set_body_typed(DependenciesIn);

}  // namespace sched
}  // namespace tir
}  // namespace tvm
