/*!
 * \file state.cc
 * \brief Looking at a schedule: references to its loops and blocks, and what blocks wait for.
 */
#include "state.h"

#include <tvm/runtime/registry.h>

#include <algorithm>

#include "access.h"

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

}  // namespace

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
