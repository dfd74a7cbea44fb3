/*!
 * \file dataflow.cc
 * \brief Writers and readers of buffers, and whether readers see finished values.
 */
#include "dataflow.h"

#include <algorithm>

#include "facts.h"
#include "regions.h"

namespace tvm {
namespace tir {
namespace sched {

Ids Flow::Users() const {
  Ids users;
  for (const Ids* ids : {&writers, &readers}) {
    for (Id id : *ids) {
      if (!Has(users, id)) users.push_back(id);
    }
  }
  return users;
}

Flows::Flows(const Tree& tree) {
  auto flow_of = [this](const Buffer& buffer) -> Flow& {
    auto [at, is_new] = index_.emplace(buffer.get(), flows_.size());
    if (is_new) flows_.push_back({buffer, {}, {}});
    return flows_[at->second];
  };
  for (Id unit : tree.UnitsBelow(tree.root())) {
    std::shared_ptr<const Access> access = AccessOf(tree, unit);
    for (const Buffer& buffer : access->written) flow_of(buffer).writers.push_back(unit);
    for (const Buffer& buffer : access->read) {
      if (access->opaque || !access->Writes(buffer)) flow_of(buffer).readers.push_back(unit);
    }
  }
}

const Flow& Flows::operator[](const Buffer& buffer) const {
  static const Flow nothing;
  auto at = index_.find(buffer.get());
  return at == index_.end() ? nothing : flows_[at->second];
}

Order::Order(const Tree& tree) {
  for (Id id : tree.Preorder(tree.root())) at_.emplace(id, at_.size());
}

Ids CommonLoops(const Tree& tree, Id a, Id b) {
  Ids common = tree.LoopsAbove(a), other = tree.LoopsAbove(b);
  std::erase_if(common, [&](Id id) { return !Has(other, id); });
  return common;
}

bool SeesFinished(const Tree& tree, Id writer, Id reader, const Buffer& buffer) {
  Ids common = CommonLoops(tree, writer, reader);
  if (common.empty()) return true;
  if (tree.VarsOfLoops(common).Intersects(FeedsOf(tree, writer).reducing)) return false;
  if (!tree.IsBlock(reader)) return false;
  LoopAnalyzer analyzer(tree, common.back());
  auto inside = [&](Id id) { return Without(tree.LoopsAbove(id), common); };
  std::optional<Box> box = ExactBox(tree, writer, buffer, inside(writer), &analyzer);
  if (!box) return false;
  auto boxes = ReadSpans(tree, reader, buffer, inside(reader), &analyzer);
  return std::all_of(boxes.begin(), boxes.end(), [&](const std::vector<Span>& spans) {
    return BoxCovers(*box, spans, buffer->shape, &analyzer);
  });
}

namespace {

/*! \brief Whether every element gets one final value, however often, that all readers see. */
bool IsFunctionOfPlace(Tree* tree, const Flow& flow, const Order& order) {
  auto is_block = [&](Id id) { return tree->IsBlock(id); };
  if (!std::all_of(flow.writers.begin(), flow.writers.end(), is_block) ||
      !std::all_of(flow.readers.begin(), flow.readers.end(), is_block)) {
    return false;
  }
  std::vector<BlockKind> kinds;
  for (Id writer : flow.writers) kinds.push_back(KindOf(*tree, writer));
  using Kinds = std::vector<BlockKind>;
  bool complete = kinds == Kinds{BlockKind::kComplete};
  if (kinds == Kinds{BlockKind::kComplete, BlockKind::kUpdate}) {
    Id init = flow.writers[0], update = flow.writers[1];
    std::vector<Buffer> made = WrittenBy(*tree, init);
    std::vector<Buffer> combined = WrittenBy(*tree, update);
    if (made != combined || !SeesFinished(*tree, init, update, flow.buffer)) return false;
    VarSet inside;
    for (Id loop : tree->LoopsAbove(update)) {
      if (!tree->IsUnder(init, loop)) inside.Add(tree->loop(loop).var);
    }
    if (!FeedsOf(*tree, update).reducing.IsSubsetOf(inside) ||
        tree->block(update).given.Intersects(inside)) {
      return false;
    }
    tree->EditBlock(update)->init_block = init;
  } else if (kinds == Kinds{BlockKind::kReduction}) {
    if (!StartsAtFirst(*tree, flow.writers[0])) return false;
  } else if (!complete) {
    return false;
  }
  Id last = flow.writers.back();
  if (!complete && !OrderError(*tree, last).empty()) return false;
  return std::all_of(flow.readers.begin(), flow.readers.end(), [&](Id reader) {
    return Has(flow.writers, reader) ||
           (order.IsBefore(last, reader) && SeesFinished(*tree, last, reader, flow.buffer));
  });
}

}  // namespace

void Prepare(Tree* tree) {
  Ids blocks = tree->BlocksBelow(tree->root());
  for (Id id : blocks) {
    Array<PrimExpr> exprs = Concat(tree->block(id).iter_values, tree->block(id).predicate);
    for (Id loop : tree->LoopsAbove(id)) {
      exprs.push_back(tree->loop(loop).min);
      exprs.push_back(tree->loop(loop).extent);
    }
    BlockItem* block = tree->EditBlock(id);
    block->erratic = std::any_of(exprs.begin(), exprs.end(), ReadsMemory);
    block->given = FindGiven(*tree, id);
    block->total = RunsAll(*tree, id);
    // An instance may choose to write nothing.
    block->covers = block->total && !AccessOf(*tree, id)->conditional;
    block->erratic |= !StaysInside(*tree, id);
  }
  Order order(*tree);
  Flows flows(*tree);
  for (const Flow& flow : flows) {
    // Buffers over the same memory are written by names that tell nothing about each other.
    bool aliased = std::any_of(flows.begin(), flows.end(), [&](const Flow& other) {
      return other.buffer->data.same_as(flow.buffer->data) && !other.buffer.same_as(flow.buffer);
    });
    if (aliased || (!flow.writers.empty() && !IsFunctionOfPlace(tree, flow, order))) {
      tree->Pin(flow.buffer);
    }
  }
  for (Id id : blocks) {
    if (tree->block(id).init_block == kNone) continue;
    // An update is one of several results: all of them start in one block, or none is moved.
    if (WritesPinned(*tree, id)) tree->EditBlock(id)->init_block = kNone;
  }
  // None of that is part of the function.
  tree->KeepGiven();
}

}  // namespace sched
}  // namespace tir
}  // namespace tvm
