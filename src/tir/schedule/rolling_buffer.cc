/*!
 * \file rolling_buffer.cc
 * \brief The primitive that keeps, from one iteration of a loop to the next, what both need.
 */
#include <algorithm>

#include "buffers.h"
#include "primitives.h"
#include "regions.h"
#include "rewrite.h"

namespace tvm {
namespace tir {
namespace sched {
namespace {

/*! \brief An axis of which an iteration of a loop writes a part that overlaps the next one's. */
struct RollingAxis {
  size_t axis;
  Var var;
  int64_t extent, overlap;
  PrimExpr low;
};

/*! \brief The variable that an interval moves with, by how much in one step at most. */
struct Motion {
  Var var;
  int64_t step;
};

/*! \brief Reads `var`, `var * step`, and the floors of quotients of these. */
std::optional<Motion> MotionOf(PrimExpr low) {
  int64_t divisor = 1;
  if (const auto* quotient = low.as<FloorDivNode>()) {
    divisor = AsInt(quotient->b).value_or(0);
    low = quotient->a;
  }
  int64_t scale = 1;
  if (const auto* product = low.as<MulNode>()) {
    scale = AsInt(product->b).value_or(0);
    low = product->a;
  }
  const auto* var = low.as<VarNode>();
  if (var == nullptr || divisor < 1 || scale < 1) return std::nullopt;
  return Motion{GetRef<Var>(var), (scale + divisor - 1) / divisor};
}

/*! \brief The loops around a block and all blocks that read what it writes. */
Ids LoopsAroundAll(const Tree& tree, Id id, const Ids& readers) {
  Ids common = tree.LoopsAbove(id);
  for (Id reader : readers) {
    Ids other = tree.LoopsAbove(reader);
    std::erase_if(common, [&](Id loop) { return !Has(other, loop); });
  }
  return common;
}

/*! \brief Axes that roll as the loops `common` go on. */
std::vector<RollingAxis> FindRolling(const Tree& tree, Id id, const Buffer& buffer,
                                     const Ids& common) {
  LoopAnalyzer analyzer(tree, common.back());
  auto spans =
      DeclaredSpans(tree, id, buffer, true, Without(tree.LoopsAbove(id), common), &analyzer);
  ICHECK(spans.has_value());
  std::vector<RollingAxis> rolling;
  VarSet moving = tree.VarsOfLoops(common), seen;
  for (size_t d = 0; d < spans->size(); ++d) {
    const Span& span = (*spans)[d];
    VarSet used = VarsOf(span.low) & moving;
    if (used.empty()) continue;
    std::optional<Motion> motion = MotionOf(span.low);
    std::optional<int64_t> extent = AsInt(span.extent);
    // Elsewhere, what the iteration before wrote need not be what this one needs.
    bool known = motion && extent && !used.Intersects(seen);
    TVM_CHECK(known, ScheduleError)
        << "block " << tree.NameOf(id) << " writes axis " << d << " of " << buffer->name << " from "
        << span.low << " on, which matches no rolling pattern such as hh.outer * "
        << "stride + hh.inner of a loop of its own";
    seen.Add(used);
    int64_t overlap = *extent - motion->step;
    if (overlap > 0) rolling.push_back({d, motion->var, *extent, overlap, span.low});
  }
  return rolling;
}

/*! \brief Let values of a loop be taken by variables whose order matters. */
void KeepOrder(Tree* tree, Id loop) {
  const Var var = tree->loop(loop).var;
  for (Id id : tree->UnitsBelow(loop)) {
    if (!tree->IsBlock(id)) continue;
    BlockItem* block = tree->EditBlock(id);
    Array<IterVar> iters;
    for (size_t i = 0; i < block->iter_vars.size(); ++i) {
      const IterVar& iv = block->iter_vars[i];
      bool ordered = iv->iter_type == kDataPar && VarsOf(block->iter_values[i]).Contains(var);
      iters.push_back(ordered ? IterVar(iv->dom, iv->var, kOpaque, iv->thread_tag) : iv);
    }
    block->iter_vars = iters;
  }
}

}  // namespace

void RollingBuffer(Tree* tree, Id id, int64_t index) {
  Buffer buffer = BufferAt(*tree, id, index, true);
  const std::string name = tree->NameOf(id);
  TVM_CHECK(!tree->IsParam(buffer), ScheduleError)
      << "block " << name << " is an output block: " << buffer->name
      << " is a result of the function, all of which is kept";
  BlockKind kind = KindOf(*tree, id);
  bool known = tree->IsLeafBlock(id) && !AccessOf(*tree, id)->opaque &&
               (kind == BlockKind::kComplete || kind == BlockKind::kReduction);
  TVM_CHECK(known, ScheduleError)
      << "block " << name << " is no complete block, which computes its elements from others, and "
      << "no reduction with an init";
  Flows flows(*tree);
  RequireSoleWriter(*tree, id, flows);
  RequireAllInstances(*tree, id);
  const Ids readers = flows[buffer].readers;
  TVM_CHECK(!readers.empty(), ScheduleError) << "nothing reads " << buffer->name;
  for (Id reader : readers) {
    TVM_CHECK(tree->IsBlock(reader) && !AccessOf(*tree, reader)->opaque, ScheduleError)
        << (tree->IsBlock(reader) ? tree->NameOf(reader) : "a statement") << " reads "
        << buffer->name << " in ways that are not all known";
  }
  // An instance that nobody needed so far may have run before what it reads was written.
  for (const Buffer& input : AccessOf(*tree, id)->read) {
    for (Id writer : flows[input].writers) {
      bool finished = writer == id || (tree->IsBlock(writer) && !tree->IsPinned(input) &&
                                       SeesFinished(*tree, writer, id, input));
      TVM_CHECK(finished, ScheduleError)
          << "it cannot be shown that all that block " << name << " reads of " << input->name
          << " is written in the same iteration, and what it computes would be kept";
    }
  }
  Ids common = LoopsAroundAll(*tree, id, readers);
  TVM_CHECK(!common.empty(), ScheduleError)
      << "block " << name << " should be tiled so that a loop is around all accesses of "
      << buffer->name << "; use compute_at before";
  std::vector<RollingAxis> rolling = FindRolling(*tree, id, buffer, common);
  const RollingAxis* outermost = nullptr;
  Id loop = kNone;
  for (Id item : common) {
    for (const RollingAxis& axis : rolling) {
      if (outermost != nullptr || !axis.var.same_as(tree->loop(item).var)) continue;
      outermost = &axis;
      loop = item;
    }
  }
  TVM_CHECK(outermost != nullptr, ScheduleError)
      << "no axis of " << buffer->name << " that block " << name << " writes has a range that "
      << "matches a rolling pattern such as hh.outer * stride + hh.inner, in which parts overlap";

  // What was written in the iteration before is not written again.
  std::shared_ptr<const Access> access = AccessOf(*tree, id);
  auto place = std::find_if(access->writes.begin(), access->writes.end(),
                            [&](const Touch& touch) { return touch.buffer.same_as(buffer); });
  VarMap values = tree->block(id).Values();
  arith::Analyzer analyzer;
  for (const RollingAxis& axis : rolling) {
    const PrimExpr& at = place->indices[static_cast<int64_t>(axis.axis)];
    PrimExpr offset = analyzer.Simplify(Substitute(at, values) - axis.low);
    auto own = std::find_if(common.begin(), common.end(),
                            [&](Id item) { return tree->loop(item).var.same_as(axis.var); });
    TVM_CHECK(is_zero(tree->loop(*own).min), ScheduleError)
        << "loop " << axis.var << " starts at " << tree->loop(*own).min << " and not at 0";
    DataType dtype = axis.var.dtype();
    PrimExpr condition =
        axis.var < make_const(dtype, 1) || offset >= make_const(offset.dtype(), axis.overlap);
    tree->EditBlock(id)->predicate.push_back(analyzer.Simplify(condition));
  }

  Buffer twin = buffer;
  BufferNode* node = twin.CopyOnWrite();
  int64_t rolled = static_cast<int64_t>(outermost->axis);
  PrimExpr length = make_const(buffer->shape[rolled].dtype(), outermost->extent);
  node->shape.Set(rolled, length);
  node->strides = {};
  node->data = Var(buffer->data->name_hint, buffer->data->type_annotation);
  BufferChange change{buffer, twin, nullptr, nullptr};
  change.indices = [=](Array<PrimExpr> indices) {
    indices.Set(rolled, floormod(indices[rolled], length));
    return indices;
  };
  change.region = [=](Array<Range> region) {
    const Range& range = region[rolled];
    bool point = is_const_int(range->extent, 1);
    PrimExpr first = point ? floormod(range->min, length) : make_const(length.dtype(), 0);
    region.Set(rolled, Range::FromMinExtent(first, point ? range->extent : length));
    return region;
  };
  ChangeBuffer(tree, id, change);
  for (Id reader : readers) ChangeBuffer(tree, reader, change);
  tree->Forget(buffer, twin);
  tree->Pin(twin);
  KeepOrder(tree, loop);
}

}  // namespace sched
}  // namespace tir
}  // namespace tvm
