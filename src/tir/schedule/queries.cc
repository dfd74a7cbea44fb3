/*!
 * \file queries.cc
 * \brief Finding blocks by name and by what they read and write.
 */
#include <algorithm>

#include "primitives.h"

namespace tvm {
namespace tir {
namespace sched {
namespace {

bool Hides(const Stmt& stmt, const std::string& name) {
  bool found = false;
  PostOrderVisit(stmt, [&](const ObjectRef& node) {
    const auto* block = node.as<BlockNode>();
    found = found || (block != nullptr && block->name_hint == name);
  });
  return found;
}

/*! \brief Other blocks of the same scope of which a property holds. */
template <typename FKeep>
Ids Others(const Tree& tree, Id block, FKeep keep) {
  if (tree[block].parent == kNone) return {};
  Ids others = ChildBlocks(tree, tree.ScopeOf(block));
  std::erase_if(others, [&](Id other) { return other == block || !keep(*AccessOf(tree, other)); });
  return others;
}

}  // namespace

Id BlockNamed(const Tree& tree, const std::string& name) {
  Ids blocks = tree.BlocksBelow(tree.root());
  Ids found = blocks;
  std::erase_if(found, [&](Id id) { return tree.NameOf(id) != name; });
  if (found.size() == 1) return found[0];
  for (Id id : tree.Preorder(tree.root())) {
    TVM_CHECK(!found.empty() || !tree.IsLeaf(id) || !Hides(tree.leaf(id).stmt, name), ScheduleError)
        << "block '" << name
        << "' is under an if, a while or a let, of which it would have to stay inside; use "
           "T.where or a select in the block instead";
  }
  std::vector<std::string> names;
  std::string list;
  for (Id id : blocks) {
    if (std::find(names.begin(), names.end(), tree.NameOf(id)) != names.end()) continue;
    names.push_back(tree.NameOf(id));
    AddItem(&list, tree.NameOf(id));
  }
  TVM_CHECK(!found.empty(), ScheduleError)
      << "Cannot find a block with the name: " << name << "; the blocks are " << list;
  TVM_FATAL(ScheduleError) << "Found " << found.size() << " blocks with the name: " << name
                           << "; the blocks are " << list;
}

Ids ChildBlocks(const Tree& tree, Id id) {
  Ids found = tree.UnitsBelow(id);
  std::erase_if(found, [&](Id unit) { return !tree.IsBlock(unit); });
  return found;
}

Ids Producers(const Tree& tree, Id block) {
  std::shared_ptr<const Access> own = AccessOf(tree, block);
  return Others(tree, block, [&](const Access& other) {
    return std::any_of(own->read.begin(), own->read.end(),
                       [&](const Buffer& buffer) { return other.Writes(buffer); });
  });
}

Ids Consumers(const Tree& tree, Id block) {
  std::shared_ptr<const Access> own = AccessOf(tree, block);
  return Others(tree, block, [&](const Access& other) {
    return std::any_of(own->written.begin(), own->written.end(),
                       [&](const Buffer& buffer) { return other.Reads(buffer); });
  });
}

Ids OutputBlocks(const Tree& tree, Id scope) {
  const Array<Buffer>& own = tree.block(scope).alloc_buffers;
  Ids found = ChildBlocks(tree, scope);
  std::erase_if(found, [&](Id id) {
    std::shared_ptr<const Access> access = AccessOf(tree, id);
    return std::all_of(access->written.begin(), access->written.end(), [&](const Buffer& buffer) {
      return std::any_of(own.begin(), own.end(),
                         [&](const Buffer& other) { return other.same_as(buffer); });
    });
  });
  return found;
}

}  // namespace sched
}  // namespace tir
}  // namespace tvm
