/*!
 * \file read_write_at.cc
 * \brief Primitives that copy between scopes, as one block, what one iteration of a loop uses.
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

/*! \brief Blocks below a loop that access a buffer, and no statement besides. */
Ids UsersBelow(const Tree& tree, Id loop, const Buffer& buffer, bool write) {
  Ids users;
  for (Id unit : tree.UnitsBelow(loop)) {
    std::shared_ptr<const Access> access = AccessOf(tree, unit);
    bool uses = access->Reads(buffer) || access->Writes(buffer);
    if (!uses) continue;
    TVM_CHECK(tree.IsBlock(unit), ScheduleError)
        << "a statement outside of blocks under loop " << tree.NameOf(loop) << " accesses "
        << buffer->name << ", so it cannot use a copy; put it into a block";
    TVM_CHECK(write || !access->Writes(buffer), ScheduleError)
        << "block " << tree.NameOf(unit) << " under loop " << tree.NameOf(loop) << " writes "
        << buffer->name << ", so a copy would not have the values it gets there";
    users.push_back(unit);
  }
  return users;
}

/*! \brief Whether all threads of a loop see one copy, which then has what any of them needs. */
bool IsCommon(const LoopItem& loop, const std::string& scope) {
  std::string tag = loop.thread_tag();
  bool threads = tag.rfind("threadIdx", 0) == 0 || tag.rfind("vthread", 0) == 0;
  return scope.rfind("shared", 0) == 0 && threads;
}

/*! \brief What blocks access of a buffer in one iteration of a loop, as one box of fixed size. */
std::vector<Span> BoxOf(const Tree& tree, Id loop, const Ids& users, const Buffer& buffer,
                        bool write, const std::string& scope) {
  LoopAnalyzer analyzer(tree, loop);
  Ids still = tree.LoopsAbove(loop);
  still.push_back(loop);
  std::erase_if(still, [&](Id item) { return IsCommon(tree.loop(item), scope); });
  std::optional<std::vector<Span>> box;
  for (Id user : users) {
    Ids free = Without(tree.LoopsAbove(user), still);
    auto spans = DeclaredSpans(tree, user, buffer, write, free, &analyzer);
    if (!spans) continue;
    TVM_CHECK(!box || SameSpans(*box, *spans), ScheduleError)
        << "blocks under loop " << tree.NameOf(loop) << " access different parts of "
        << buffer->name << "; one copy has one part";
    box = spans;
  }
  ICHECK(box.has_value());
  for (size_t d = 0; d < box->size(); ++d) {
    const Span& span = (*box)[d];
    // A copy accesses all of the box, and a block may choose not to.
    bool inside = analyzer.CanProve(span.low >= 0) &&
                  analyzer.CanProve(span.high() < buffer->shape[static_cast<int64_t>(d)]);
    TVM_CHECK(inside, ScheduleError)
        << "one iteration of loop " << tree.NameOf(loop) << " may access " << buffer->name
        << " from " << span.low << " on, which is not all in axis " << d << " of the buffer";
    TVM_CHECK(AsInt(span.extent), ScheduleError)
        << "one iteration of loop " << tree.NameOf(loop) << " accesses " << span.extent
        << " elements of an axis of " << buffer->name << ", which is no constant";
  }
  return *box;
}

/*! \brief A block under a loop that copies a box from one buffer to the other, element by element.
 */
Id InsertTileCopy(Tree* tree, Id loop, size_t slot, const Buffer& twin, const Buffer& from,
                  const Buffer& to, const std::vector<Span>& box) {
  LoopAnalyzer analyzer(*tree, loop);
  Array<IterVar> iters;
  Array<PrimExpr> values, place;
  Array<Var> inner;
  Array<Range> region;
  for (size_t d = 0; d < box.size(); ++d) {
    const PrimExpr &length = twin->shape[static_cast<int64_t>(d)], &extent = box[d].extent;
    PrimExpr low = analyzer.Simplify(box[d].low);
    DataType dtype = length.dtype();
    Var var("v" + std::to_string(d), dtype);
    bool tiles = analyzer.CanProveEqual(floormod(low, extent), make_const(dtype, 0)) &&
                 analyzer.CanProveEqual(floormod(length, extent), make_const(dtype, 0));
    // Boxes that overlap begin where they still end within the buffer.
    PrimExpr count = analyzer.Simplify(tiles ? floordiv(length, extent) : length - extent + 1);
    iters.push_back(IterVar(Range::FromMinExtent(make_const(dtype, 0), count), var, kDataPar));
    values.push_back(tiles ? analyzer.Simplify(floordiv(low, extent)) : low);
    PrimExpr start = tiles ? var * extent : PrimExpr(var);
    inner.push_back(Var("ax" + std::to_string(d), dtype));
    place.push_back(start + inner.back());
    region.push_back(Range::FromMinExtent(start, extent));
  }
  Stmt body = BufferStore(to, BufferLoad(from, place), place);
  for (size_t d = box.size(); d-- > 0;) {
    int64_t at = static_cast<int64_t>(d);
    body = For(inner[at], make_const(inner[at].dtype(), 0), box[d].extent, ForKind::kSerial, body);
  }
  Id id = tree->AddBlock(std::make_shared<BlockItem>(tree->NewBlockName(twin->name), iters, values),
                         body);
  BlockItem* made = tree->EditBlock(id);
  made->reads = {BufferRegion(from, region)};
  made->writes = {BufferRegion(to, region)};
  // Who lowers the copy may share it out among threads.
  made->annotations.Set("auto_copy", Integer(1));
  made->sealed = BlockKind::kComplete;
  tree->Insert(loop, slot, id);
  VarSet given = FindGiven(*tree, id);
  made = tree->EditBlock(id);
  made->given = given;
  made->covers = false;
  return id;
}

Buffer TwinOf(Tree* tree, Id loop, const Buffer& buffer, const std::string& scope) {
  std::string suffix = scope;
  std::replace(suffix.begin(), suffix.end(), '.', '_');
  Buffer twin = decl_buffer(buffer->shape, buffer->dtype,
                            tree->NewBufferName(buffer->name + "_" + suffix), scope);
  tree->Allocate(twin, tree->ScopeOf(loop));
  return twin;
}

void RequireUnder(const Tree& tree, Id block, Id loop) {
  TVM_CHECK(Has(tree.LoopsAbove(block), loop), ScheduleError)
      << "loop " << tree.NameOf(loop) << " is not around block " << tree.NameOf(block);
}

}  // namespace

Id ReadAt(Tree* tree, Id loop, Id id, int64_t index, const std::string& scope) {
  CheckScope(scope);
  RequireUnder(*tree, id, loop);
  Buffer buffer = BufferAt(*tree, id, index, false);
  TVM_CHECK(!tree->IsPinned(buffer), ScheduleError)
      << buffer->name << " does not have one final value, which a copy could hold";
  Ids users = UsersBelow(*tree, loop, buffer, false);
  std::vector<Span> box = BoxOf(*tree, loop, users, buffer, false, scope);
  Flows flows(*tree);
  for (Id writer : flows[buffer].writers) {
    bool finished = !tree->IsBlock(writer) || CommonLoops(*tree, writer, id).empty();
    TVM_CHECK(finished, ScheduleError)
        << "block " << tree->NameOf(writer) << " writes " << buffer->name
        << " in a loop that is around block " << tree->NameOf(id)
        << " too, and may not have written what other iterations read; use cache_read";
  }
  Buffer twin = TwinOf(tree, loop, buffer, scope);
  BufferChange change{buffer, twin, nullptr, nullptr};
  for (Id user : users) ChangeBuffer(tree, user, change);
  size_t slot = (*tree)[loop].children.size();
  for (Id user : users) slot = std::min(slot, tree->IndexOf(loop, user));
  return InsertTileCopy(tree, loop, slot, twin, buffer, twin, box);
}

Id WriteAt(Tree* tree, Id loop, Id id, int64_t index, const std::string& scope) {
  CheckScope(scope);
  RequireUnder(*tree, id, loop);
  Buffer buffer = BufferAt(*tree, id, index, true);
  RequireSoleWriter(*tree, id, Flows(*tree));
  BlockKind kind = KindOf(*tree, id);
  TVM_CHECK(kind == BlockKind::kComplete || kind == BlockKind::kReduction, ScheduleError)
      << "block " << tree->NameOf(id) << " goes on from values that " << buffer->name
      << " had before, which a copy would not have";
  VarSet reducing = FeedsOf(*tree, id).reducing;
  Ids around = tree->LoopsAbove(loop);
  around.push_back(loop);
  TVM_CHECK(!tree->VarsOfLoops(around).Intersects(reducing), ScheduleError)
      << "loop " << tree->NameOf(loop) << " or one around it feeds the reduction of block "
      << tree->NameOf(id) << ", so " << buffer->name << " is not finished there";
  Ids users = UsersBelow(*tree, loop, buffer, true);
  TVM_CHECK(users == Ids{id}, ScheduleError)
      << "block " << tree->NameOf(id) << " is not the only one under loop " << tree->NameOf(loop)
      << " that accesses " << buffer->name << "; use cache_write";
  std::vector<Span> box = BoxOf(*tree, loop, users, buffer, true, scope);
  LoopAnalyzer analyzer(*tree, loop);
  Ids still = around;
  std::erase_if(still, [&](Id item) { return IsCommon(tree->loop(item), scope); });
  // What nobody wrote to the copy must not be copied back.
  auto written = ExactBox(*tree, id, buffer, Without(tree->LoopsAbove(id), still), &analyzer);
  bool exact = written && written->conditions.empty() && SameSpans(written->spans, box);
  TVM_CHECK(exact, ScheduleError) << "block " << tree->NameOf(id)
                                  << " does not write a whole box of elements of " << buffer->name
                                  << " in one iteration of loop " << tree->NameOf(loop);
  Buffer twin = TwinOf(tree, loop, buffer, scope);
  BufferChange change{buffer, twin, nullptr, nullptr};
  ChangeBuffer(tree, id, change);
  return InsertTileCopy(tree, loop, tree->IndexOf(loop, id) + 1, twin, twin, buffer, box);
}

}  // namespace sched
}  // namespace tir
}  // namespace tvm
