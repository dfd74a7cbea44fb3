/*!
 * \file nests.cc
 * \brief Primitives that make one nest of several, and several of one.
 */
#include <algorithm>

#include "primitives.h"

namespace tvm {
namespace tir {
namespace sched {
namespace {

void RequirePlain(const Tree& tree, Id id) {
  const LoopItem& loop = tree.loop(id);
  TVM_CHECK(loop.for_kind == ForKind::kSerial && loop.annotations.empty(), ScheduleError)
      << "loop " << loop.name()
      << " has a kind or annotations already; merge or partition first, then mark loops";
}

/*! \brief Loops from right below `parent` to `loop`, each of which holds only the next. */
Ids NestTo(const Tree& tree, Id parent, Id loop) {
  Ids nest{loop};
  while (tree[nest.front()].parent != parent) nest.insert(nest.begin(), tree[nest.front()].parent);
  for (size_t i = 0; i < nest.size(); ++i) {
    RequirePlain(tree, nest[i]);
    TVM_CHECK(i + 1 == nest.size() || tree[nest[i]].children.size() == 1, ScheduleError)
        << "loop " << tree.NameOf(nest[i]) << " holds more than loop "
        << tree.NameOf(nest[std::min(i + 1, nest.size() - 1)]);
  }
  return nest;
}

/*! \brief The innermost node around all loops. */
Id CommonParent(const Tree& tree, const Ids& loops) {
  Id parent = tree[loops[0]].parent;
  auto is_around_all = [&](Id node) {
    return std::all_of(loops.begin(), loops.end(),
                       [&](Id loop) { return loop != node && tree.IsUnder(loop, node); });
  };
  while (!is_around_all(parent)) parent = tree[parent].parent;
  return parent;
}

/*! \brief Refuse nests of which one iteration does not leave what the next nest's same one needs.
 */
void RequireMergeable(const Tree& tree, Id first, Id second, const Flows& flows) {
  for (const Flow& flow : flows) {
    auto under = [&](const Ids& ids, Id loop) {
      Ids found = ids;
      std::erase_if(found, [&](Id id) { return !tree.IsUnder(id, loop); });
      return found;
    };
    Ids writers = under(flow.writers, first), later = under(flow.writers, second);
    Ids readers = under(flow.readers, second), earlier = under(flow.readers, first);
    bool apart = (writers.empty() || readers.empty()) && later.empty();
    bool again = !later.empty() && (!earlier.empty() || !writers.empty());
    TVM_CHECK(!again, ScheduleError)
        << "loop " << tree.NameOf(second) << " writes " << flow.buffer->name << ", which loop "
        << tree.NameOf(first) << " uses too, so their iterations keep their order";
    bool known =
        apart || (writers.size() == 1 && tree.IsBlock(writers[0]) && !tree.IsPinned(flow.buffer));
    TVM_CHECK(known || !later.empty(), ScheduleError)
        << "not all is known of what loop " << tree.NameOf(first) << " writes of "
        << flow.buffer->name;
  }
}

}  // namespace

Id Merge(Tree* tree, const Ids& loops) {
  TVM_CHECK(loops.size() >= 2, ScheduleError) << "only one loop given; give at least two";
  for (size_t i = 0; i < loops.size(); ++i) {
    for (size_t k = i + 1; k < loops.size(); ++k) {
      bool nested = tree->IsUnder(loops[i], loops[k]) || tree->IsUnder(loops[k], loops[i]);
      TVM_CHECK(!nested, ScheduleError) << "loops " << tree->NameOf(loops[i]) << " and "
                                        << tree->NameOf(loops[k]) << " are in each other";
    }
    TVM_CHECK(tree->ScopeOf(loops[i]) == tree->ScopeOf(loops[0]), ScheduleError)
        << "loops " << tree->NameOf(loops[0]) << " and " << tree->NameOf(loops[i])
        << " are not in the same block scope";
  }
  Id parent = CommonParent(*tree, loops);
  std::vector<Ids> nests;
  for (Id loop : loops) nests.push_back(NestTo(*tree, parent, loop));
  size_t slot = tree->IndexOf(parent, nests[0].front());
  arith::Analyzer analyzer;
  Flows flows(*tree);
  for (size_t k = 0; k < nests.size(); ++k) {
    TVM_CHECK((*tree)[parent].children.size() > slot + k &&
                  (*tree)[parent].children[slot + k] == nests[k].front(),
              ScheduleError)
        << "loop " << tree->NameOf(nests[k].front()) << " is not right behind the loops before it";
    TVM_CHECK(nests[k].size() == nests[0].size(), ScheduleError)
        << "loops " << tree->NameOf(loops[0]) << " and " << tree->NameOf(loops[k])
        << " are not equally deep";
    for (size_t i = 0; i < nests[k].size(); ++i) {
      const LoopItem &one = tree->loop(nests[0][i]), &other = tree->loop(nests[k][i]);
      bool same = analyzer.CanProveEqual(one.extent, other.extent) && is_zero(one.min) &&
                  is_zero(other.min);
      TVM_CHECK(same, ScheduleError)
          << "loops " << one.name() << " and " << other.name() << " run over " << one.range()
          << " and " << other.range() << "; merged loops start at 0 and have one extent";
    }
    for (size_t j = 0; j < k; ++j) {
      RequireMergeable(*tree, nests[j].front(), nests[k].front(), flows);
    }
  }
  std::vector<std::pair<Id, Id>> passed;
  std::vector<Buffer> through;
  for (const Flow& flow : flows) {
    for (Id writer : flow.writers) {
      for (Id reader : flow.readers) {
        size_t from = nests.size(), to = nests.size();
        for (size_t k = 0; k < nests.size(); ++k) {
          if (tree->IsUnder(writer, nests[k].front())) from = k;
          if (tree->IsUnder(reader, nests[k].front())) to = k;
        }
        if (from == to || from == nests.size() || to == nests.size()) continue;
        passed.emplace_back(writer, reader);
        through.push_back(flow.buffer);
      }
    }
  }
  Ids merged;
  VarMap values;
  for (Id loop : nests[0]) {
    const LoopItem& old = tree->loop(loop);
    merged.push_back(tree->AddLoop(old.name() + "_m", old.var.dtype(), old.extent));
  }
  Ids bodies;
  for (const Ids& nest : nests) {
    for (size_t i = 0; i < nest.size(); ++i) {
      const Var old = tree->loop(nest[i]).var, made = tree->loop(merged[i]).var;
      values[old.get()] = cast(old.dtype(), made);
      tree->Retarget(VarSet({old}), VarSet({made}));
    }
    for (Id child : (*tree)[nest.back()].children) {
      tree->ReplaceVars(child, values);
      bodies.push_back(child);
    }
  }
  Ids& children = tree->Edit(parent)->children;
  children.erase(children.begin() + static_cast<std::ptrdiff_t>(slot),
                 children.begin() + static_cast<std::ptrdiff_t>(slot + nests.size()));
  tree->Insert(parent, slot, tree->Nest(merged, bodies));
  for (size_t i = 0; i < passed.size(); ++i) {
    auto [writer, reader] = passed[i];
    TVM_CHECK(SeesFinished(*tree, writer, reader, through[i]), ScheduleError)
        << "in one iteration of the merged loops, block " << tree->NameOf(writer)
        << " does not write all of " << through[i]->name << " that "
        << (tree->IsBlock(reader) ? tree->NameOf(reader) : "a statement") << " reads";
  }
  return merged.back();
}

namespace {

/*! \brief Where each part begins, and where the last one ends. */
Array<PrimExpr> Borders(const LoopItem& loop, const Array<PrimExpr>& sizes,
                        arith::Analyzer* analyzer) {
  PrimExpr known = make_const(loop.var.dtype(), 0);
  size_t inferred = sizes.size();
  for (size_t i = 0; i < sizes.size(); ++i) {
    const PrimExpr& size = sizes[static_cast<int64_t>(i)];
    TVM_CHECK(size.defined() || inferred == sizes.size(), ScheduleError)
        << "factors for loop " << loop.name() << ": at most one can be left to be inferred";
    if (!size.defined()) {
      inferred = i;
      continue;
    }
    TVM_CHECK(analyzer->CanProve(size >= 1), ScheduleError)
        << "factor " << size << " for loop " << loop.name() << ": parts have at least 1 iteration";
    known = known + size;
  }
  known = analyzer->Simplify(known);
  PrimExpr rest = analyzer->Simplify(loop.extent - known);
  bool exact = inferred == sizes.size() && is_zero(rest);
  TVM_CHECK(exact || analyzer->CanProve(rest >= 1), ScheduleError)
      << "factors for loop " << loop.name() << " add up to " << known
      << ", which is not less than its extent " << loop.extent;
  Array<PrimExpr> borders{loop.min};
  auto add = [&](const PrimExpr& size) {
    borders.push_back(analyzer->Simplify(borders.back() + size));
  };
  for (const PrimExpr& size : sizes) add(size.defined() ? size : rest);
  if (inferred == sizes.size() && !exact) add(rest);
  return borders;
}

/*! \brief A statement with variables of its own for its loops and lets. */
Stmt WithFreshVars(const Stmt& stmt) {
  auto renew = [](const ObjectRef& node) -> ObjectRef {
    if (const auto* let = node.as<LetStmtNode>()) {
      Var fresh = let->var.copy_with_suffix("");
      return LetStmt(fresh, let->value, Substitute(let->body, {{let->var.get(), fresh}}));
    }
    if (const auto* let = node.as<LetNode>()) {
      Var fresh = let->var.copy_with_suffix("");
      return Let(fresh, let->value, Substitute(let->body, {{let->var.get(), fresh}}));
    }
    For loop = Downcast<For>(node);
    Var fresh(loop->loop_var->name_hint, loop->loop_var.dtype());
    return For(fresh, loop->min, loop->extent, loop->kind,
               Substitute(loop->body, {{loop->loop_var.get(), fresh}}), loop->thread_binding,
               loop->annotations);
  };
  return IRTransform(stmt, nullptr, renew, {"tir.For", "tir.LetStmt", "tir.Let"});
}

/*! \brief A copy of a node with variables of its own, and suffixes at the names of blocks. */
Id Copy(Tree* tree, Id id, const std::string& suffix, VarMap* values) {
  auto rename = [&](const PrimExpr& expr) { return Substitute(expr, *values); };
  if (tree->IsLeaf(id)) {
    return tree->AddLeaf(WithFreshVars(Substitute(tree->leaf(id).stmt, *values)));
  }
  Ids children = (*tree)[id].children, made;
  Id copy = kNone;
  if (tree->IsLoop(id)) {
    const LoopItem old = tree->loop(id);
    copy = tree->AddLoop(old.name() + suffix, old.var.dtype(), rename(old.extent));
    LoopItem* loop = tree->EditLoop(copy);
    loop->min = rename(old.min);
    loop->for_kind = old.for_kind;
    loop->thread_binding = old.thread_binding;
    loop->annotations = old.annotations;
    (*values)[old.var.get()] = loop->var;
  } else {
    auto block = std::make_shared<BlockItem>(tree->block(id));
    block->name = tree->NewBlockName(block->name + suffix);
    block->iter_values = block->iter_values.Map(rename);
    block->predicate = block->predicate.Map(rename);
    block->iter_vars = FreshIters(tree->block(id).iter_vars, "", values);
    auto region = [&](const BufferRegion& old) {
      return BufferRegion(old->buffer, old->region.Map([&](const Range& range) {
        return Range::FromMinExtent(rename(range->min), rename(range->extent));
      }));
    };
    block->reads = block->reads.Map(region);
    block->writes = block->writes.Map(region);
    if (block->init.defined()) block->init = WithFreshVars(Substitute(block->init, *values));
    block->children.clear();
    block->facts = nullptr;
    block->covers = block->total = false;
    copy = tree->Add(block);
  }
  for (Id child : children) made.push_back(Copy(tree, child, suffix, values));
  tree->SetChildren(copy, made);
  return copy;
}

/*! \brief What is declared by the blocks below a node, with all loops inside running. */
void Declare(Tree* tree, Id id) {
  AccessRegions regions = DetectAccessRegions(tree->Body(id));
  BlockItem* block = tree->EditBlock(id);
  block->reads = regions.reads;
  block->writes = regions.writes;
}

}  // namespace

Ids LoopPartition(Tree* tree, Id id, const Array<PrimExpr>& sizes) {
  RequirePlain(*tree, id);
  TVM_CHECK(!sizes.empty(), ScheduleError)
      << "no factors for loop " << tree->NameOf(id) << "; give at least one";
  const LoopItem old = tree->loop(id);
  LoopAnalyzer analyzer(*tree, id);
  Array<PrimExpr> borders = Borders(old, sizes, &analyzer);
  Ids blocks = tree->BlocksBelow(id);
  for (Id block : blocks) {
    TVM_CHECK(tree->block(block).match_buffers.empty() && tree->block(block).alloc_buffers.empty(),
              ScheduleError)
        << "block " << tree->NameOf(block) << " allocates buffers or has views of them, which "
        << "cannot be in several places; partition before";
    // The parts of a reduction go on from each other.
    bool split = FeedsOf(*tree, block).reducing.Contains(old.var);
    for (const Buffer& buffer : WrittenBy(*tree, block)) {
      if (split && !tree->IsPinned(buffer)) tree->Pin(buffer);
    }
  }
  std::string name = blocks.empty() ? old.name() : tree->NameOf(blocks[0]);
  name += "_" + old.name();
  Id parent = (*tree)[id].parent;
  size_t slot = tree->IndexOf(parent, id);
  Ids loops, parts;
  auto outer = [&](const std::string& wanted) {
    return tree->Add(std::make_shared<BlockItem>(tree->NewBlockName(wanted), Array<IterVar>(),
                                                 Array<PrimExpr>()));
  };
  for (size_t k = 0; k + 1 < borders.size(); ++k) {
    int64_t at = static_cast<int64_t>(k);
    std::string suffix = std::to_string(k);
    VarMap values;
    Id loop = tree->AddLoop(old.name() + suffix, old.var.dtype(),
                            analyzer.Simplify(borders[at + 1] - borders[at]));
    tree->EditLoop(loop)->min = borders[at];
    values[old.var.get()] = tree->loop(loop).var;
    Ids bodies;
    for (Id child : Ids(old.children)) {
      bodies.push_back(Copy(tree, child, "_" + old.name() + suffix, &values));
    }
    tree->SetChildren(loop, bodies);
    Id part = outer(name + suffix + "_partition");
    tree->SetChildren(part, {loop});
    loops.push_back(loop);
    parts.push_back(part);
  }
  Id common = outer(name + "_common");
  tree->SetChildren(common, parts);
  tree->Edit(parent)->children[slot] = common;
  tree->Edit(common)->parent = parent;
  for (Id part : parts) Declare(tree, part);
  Declare(tree, common);
  for (Id loop : loops) {
    for (Id block : tree->BlocksBelow(loop)) {
      VarSet given = FindGiven(*tree, block);
      tree->EditBlock(block)->given = given;
    }
  }
  return loops;
}

}  // namespace sched
}  // namespace tir
}  // namespace tvm
