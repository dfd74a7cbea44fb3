/*!
 * \file primitive_table.cc
 * \brief The table of primitives. A new one is a row here, a function in primitives.h and a method
 *        of Python's Schedule.
 */
#include "primitive_table.h"

#include <tvm/expr/lanes.h>

#include <algorithm>
#include <tuple>

#include "primitives.h"

namespace tvm {
namespace tir {

TVM_REGISTER_NODE(InstructionKindNode);

void InstructionKindNode::Init() { sched::PrimitiveOf(GetRef<InstructionKind>(this)); }

namespace sched {
namespace {

using A = ArgumentKind;
enum Flag { kChanges = 0, kLooks = 1, kSamples = 2, kPostproc = 4, kGivesList = 8 };

void Compute(Call* call, void (*move)(Tree*, Id, Id, bool, int64_t)) {
  move(call->Change(), call->node(0), call->node(1), call->get<bool>(2), call->get<int64_t>(3));
}

/*! \brief The lanes of scalable vectors, if a factor is their number. */
std::optional<int> ScalableLanes(const Any& factor) {
  const auto* expr = factor.as<PrimExprNode>();
  std::optional<int> lanes = expr ? LanesOfCount(GetRef<PrimExpr>(expr)) : std::nullopt;
  return lanes && *lanes < 0 ? lanes : std::nullopt;
}

/*! \brief Sizes in the type of the loop's variable, and how they were written. */
Array<PrimExpr> SizesOf(Call* call, std::string* text) {
  DataType dtype = call->tree()->loop(call->node(0)).var.dtype();
  Array<PrimExpr> sizes;
  for (const Any& factor : call->get<Array<Any>>(1)) {
    *text += text->empty() ? "" : ", ";
    if (factor.is_null()) {
      sizes.push_back(PrimExpr());
      *text += "None";
    } else if (std::optional<int> lanes = ScalableLanes(factor)) {
      sizes.push_back(LaneCount(*lanes, dtype));
      *text += std::to_string(-*lanes) + " * vscale()";
    } else {
      int64_t size = call->Number(factor);
      sizes.push_back(make_const(dtype, size));
      *text += std::to_string(size);
    }
  }
  return sizes;
}

void SplitLoop(Call* call) {
  std::string text;
  Array<PrimExpr> factors = SizesOf(call, &text);
  call->Give(Split(call->Change(), call->node(0), factors, "[" + text + "]", call->get<bool>(2),
                   call->get<bool>(3)));
}

void PartitionLoop(Call* call) {
  std::string text;
  Array<PrimExpr> sizes = SizesOf(call, &text);
  call->Give(LoopPartition(call->Change(), call->node(0), sizes));
}

/*! \brief A value as a node can hold it, with the numbers that sampled variables stand for. */
ObjectRef AnnotationOf(Call* call, const Any& value) {
  if (const auto* items = value.as<ArrayNode>()) {
    Array<ObjectRef> made;
    for (const Any& item : items->data) made.push_back(AnnotationOf(call, item));
    return made;
  }
  if (const auto* entries = value.as<runtime::MapNode>()) {
    Map<String, ObjectRef> made;
    for (const auto& [key, item] : entries->entries()) {
      made.Set(key.cast<String>(), AnnotationOf(call, item));
    }
    return made;
  }
  if (auto text = value.TryCast<std::string>()) return String(*text);
  if (const auto* literal = value.as<StringImmNode>()) return literal->value;
  if (value.as<FloatImmNode>()) return value.ref();
  if (value.as<PrimExprNode>()) return PrimExpr(Any(call->Number(value)).cast<PrimExpr>());
  std::optional<ObjectRef> number = runtime::BoxNumber(value);
  TVM_CHECK(number.has_value() && !value.is_object() && !value.is_null(), TypeError)
      << "annotate: values are numbers, texts, lists and dicts, got a " << value.TypeName();
  return *number;
}

void GiveTile(Call* call, const std::vector<int64_t>& tile) {
  Array<Any> drawn;
  for (int64_t size : tile) {
    call->GiveNumber(size);
    drawn.push_back(Any(size));
  }
  call->decision = drawn;
}

void SamplePerfectTile(Call* call) {
  int64_t extent = ConstantExtent(*call->tree(), call->node(0));
  int64_t n = call->get<int64_t>(1), limit = call->get<int64_t>(2);
  TVM_CHECK(n >= 1, ScheduleError) << "n=" << n << " factors; take at least one";
  std::vector<int64_t> tile;
  if (call->decision.is_null()) {
    tile = PerfectTile(call->random(), extent, n, limit);
  } else {
    for (const Any& size : call->decision.cast<Array<Any>>()) tile.push_back(call->Number(size));
    CheckTile(tile, extent, n);
  }
  GiveTile(call, tile);
}

void SamplePartitionedTile(Call* call) {
  int64_t extent = ConstantExtent(*call->tree(), call->node(0));
  int64_t n = call->get<int64_t>(1), position = call->get<int64_t>(2);
  int64_t inner = call->get<int64_t>(3);
  TVM_CHECK(n >= 1 && position >= 0 && inner >= 1, ScheduleError)
      << "n=" << n << ", partition_pos=" << position << ", innerpart_factor=" << inner
      << "; take at least one factor, a position from 0 on and a factor from 1 on";
  std::vector<int64_t> tile;
  if (call->decision.is_null()) {
    tile = PartitionedTile(call->random(), extent, n, position, inner);
  } else {
    for (const Any& size : call->decision.cast<Array<Any>>()) tile.push_back(call->Number(size));
    CheckTile(tile, extent, n);
  }
  GiveTile(call, tile);
}

void SampleCategorical(Call* call) {
  Array<Any> candidates = call->get<Array<Any>>(0);
  std::vector<double> probs;
  for (const Any& p : call->get<Array<Any>>(1)) probs.push_back(p.cast<double>());
  std::optional<int64_t> decision;
  if (!call->decision.is_null()) decision = call->Number(call->decision);
  int64_t index = Categorical(call->random(), candidates.size(), probs, decision);
  call->GiveNumber(candidates[index].cast<int64_t>());
  call->decision = index;
}

[[noreturn]] void RefuseLocation(Tree* tree, Id block, int64_t place) {
  std::string list;
  for (const auto& [other, loop] : ComputeLocations(tree, block)) {
    AddItem(&list, std::to_string(other));
  }
  TVM_FATAL(ScheduleError) << "block " << tree->NameOf(block) << " cannot be computed at place "
                           << place << "; places that are legal: [" << list << "]";
}

void SampleComputeLocation(Call* call) {
  Tree* tree = call->tree();
  Id block = call->node(0);
  int64_t chosen = 0;
  Id loop = kNone;
  if (call->decision.is_null()) {
    std::map<int64_t, Id> places = ComputeLocations(tree, block);
    auto at = std::next(places.begin(),
                        static_cast<std::ptrdiff_t>(call->random()->Below(places.size())));
    std::tie(chosen, loop) = *at;
  } else {
    // A place that was chosen before is looked at alone.
    chosen = call->Number(call->decision);
    std::optional<Id> found = ComputeLocation(tree, block, chosen);
    if (!found) RefuseLocation(tree, block, chosen);
    loop = *found;
  }
  call->decision = chosen;
  if (chosen < 0) {
    call->GivePlace(chosen);
  } else {
    call->Give(loop);
  }
}

std::vector<int64_t> IntsOf(Call* call, size_t i) {
  std::vector<int64_t> numbers;
  for (const Any& number : call->get<Array<Any>>(i)) numbers.push_back(call->Number(number));
  return numbers;
}

void CacheReadBuffer(Call* call) {
  std::optional<Ids> consumers;
  if (!call->value(3).is_null()) consumers = call->nodes(3);
  call->Give(CacheRead(call->Change(), call->node(0), call->get<int64_t>(1),
                       call->get<std::string>(2), consumers));
}

void CacheWriteBuffer(Call* call) {
  std::optional<Ids> consumers;
  if (!call->value(3).is_null()) consumers = call->nodes(3);
  call->Give(CacheWrite(call->Change(), call->node(0), call->get<int64_t>(1),
                        call->get<std::string>(2), consumers));
}

/*! \brief Position of the buffer that an argument names, and whether the block writes it. */
std::pair<int64_t, bool> BufferOf(Call* call, size_t i) {
  Array<Any> parts = call->get<Array<Any>>(i);
  return {parts[1].cast<int64_t>(), parts[0].cast<std::string>() == "write"};
}

void TransformBufferLayout(Call* call) {
  Optional<IndexMap> pad;
  if (call->value(3).as<IndexMapNode>()) {
    pad = call->MapOf(3);
  } else if (!call->value(3).is_null()) {
    pad = IndexMap(Array<Var>(), Array<PrimExpr>{call->get<PrimExpr>(3)});
  }
  auto [index, write] = BufferOf(call, 1);
  TransformLayout(call->Change(), call->node(0), index, write, call->MapOf(2), pad,
                  call->get<bool>(4));
}

void ComputeBlockAt(Call* call) {
  // A place that sample_compute_location returned may be none of the loops.
  const auto* loop = call->value(1).as<LoopRVNode>();
  if (loop->place.empty()) return Compute(call, ComputeAt);
  Tree* tree = call->Change();
  if (loop->place == "inlined") ComputeInline(tree, call->node(0));
}

Primitive Row(const char* name, const char* method, int flags, std::vector<Argument> arguments,
              void (*apply)(Call*)) {
  auto kind = make_object<InstructionKindNode>();
  kind->name = name;
  kind->method = method;
  kind->is_pure = flags & kLooks;
  kind->is_sampling = flags & kSamples;
  kind->is_postproc = flags & kPostproc;
  kind->returns_list = flags & kGivesList;
  for (const Argument& argument : arguments) {
    kind->arguments.push_back(argument.name);
    if (argument.kind == A::kLoops) kind->variadic = argument.name;
  }
  return {InstructionKind(kind), std::move(arguments), apply};
}

const std::vector<Primitive>& Table() {
  const Argument block{"block", A::kBlock}, loop{"loop", A::kLoop};
  const Argument thing{"block_or_loop", A::kBlockOrLoop}, scope{"storage_scope", A::kText};
  const Argument units{"preserve_unit_loops", A::kBool, true, Any(false)};
  const Argument index{"index", A::kInt, true, Any(-1)};
  // clang-format off
  static const std::vector<Primitive> rows = {
    Row("GetBlock", "get_block", kLooks,
        {{"name", A::kText}, {"func_name", A::kOptionalText, true}},
        [](Call* c) { c->Give(BlockNamed(*c->TreeOf(c->get<String>(1)), c->get<String>(0))); }),
    Row("GetLoops", "get_loops", kLooks | kGivesList, {block},
        [](Call* c) { c->Give(c->tree()->LoopsAbove(c->node(0))); }),
    Row("GetChildBlocks", "get_child_blocks", kLooks | kGivesList, {thing},
        [](Call* c) { c->Give(ChildBlocks(*c->tree(), c->node(0))); }),
    Row("GetProducers", "get_producers", kLooks | kGivesList, {block},
        [](Call* c) { c->Give(Producers(*c->tree(), c->node(0))); }),
    Row("GetConsumers", "get_consumers", kLooks | kGivesList, {block},
        [](Call* c) { c->Give(Consumers(*c->tree(), c->node(0))); }),
    Row("GetOutputBlocks", "get_output_blocks", kLooks | kGivesList, {{"scope_block", A::kBlock}},
        [](Call* c) { c->Give(OutputBlocks(*c->tree(), c->node(0))); }),
    Row("SamplePerfectTile", "sample_perfect_tile", kSamples | kGivesList,
        {loop, {"n", A::kInt}, {"max_innermost_factor", A::kInt, true, Any(16)}}, SamplePerfectTile),
    Row("SamplePartitionedTile", "sample_partitioned_tile", kSamples | kGivesList,
        {loop, {"n", A::kInt}, {"partition_pos", A::kInt, true, Any(0)},
         {"innerpart_factor", A::kInt, true, Any(1)}},
        SamplePartitionedTile),
    Row("SampleCategorical", "sample_categorical", kSamples,
        {{"candidates", A::kInts}, {"probs", A::kReals}}, SampleCategorical),
    Row("SampleComputeLocation", "sample_compute_location", kSamples, {block},
        SampleComputeLocation),
    Row("EnterPostproc", "enter_postproc", kPostproc, {}, [](Call*) {}),
    Row("Split", "split", kGivesList,
        {loop, {"factors", A::kSizes}, {"preserve_unit_iters", A::kBool, true, Any(true)},
         {"disable_predication", A::kBool, true, Any(false)}}, SplitLoop),
    Row("Fuse", "fuse", kChanges,
        {{"loops", A::kLoops}, {"preserve_unit_iters", A::kBool, true, Any(true)}},
        [](Call* c) { c->Give(Fuse(c->Change(), c->nodes(0), c->get<bool>(1))); }),
    Row("Merge", "merge", kChanges, {{"loops", A::kLoops}},
        [](Call* c) { c->Give(Merge(c->Change(), c->nodes(0))); }),
    Row("LoopPartition", "loop_partition", kGivesList,
        {loop, {"factors", A::kSizes}, {"preserve_unit_iters", A::kBool, true, Any(true)}},
        PartitionLoop),
    Row("Reorder", "reorder", kChanges, {{"loops", A::kLoops}},
        [](Call* c) { Reorder(c->Change(), c->nodes(0)); }),
    Row("Parallel", "parallel", kChanges, {loop},
        [](Call* c) { MarkLoop(c->Change(), c->node(0), ForKind::kParallel); }),
    Row("Vectorize", "vectorize", kChanges, {loop},
        [](Call* c) { MarkLoop(c->Change(), c->node(0), ForKind::kVectorized); }),
    Row("Unroll", "unroll", kChanges, {loop},
        [](Call* c) { MarkLoop(c->Change(), c->node(0), ForKind::kUnrolled); }),
    Row("Bind", "bind", kChanges, {loop, {"thread_axis", A::kThread}},
        [](Call* c) { Bind(c->Change(), c->node(0), c->get<std::string>(1)); }),
    Row("Annotate", "annotate", kChanges, {thing, {"ann_key", A::kText}, {"ann_val", A::kValue}},
        [](Call* c) {
          Annotate(c->Change(), c->node(0), c->get<String>(1), AnnotationOf(c, c->value(2)));
        }),
    Row("Unannotate", "unannotate", kChanges, {thing, {"ann_key", A::kText}},
        [](Call* c) { Unannotate(c->Change(), c->node(0), c->get<String>(1)); }),
    Row("DecomposeReduction", "decompose_reduction", kChanges, {block, loop},
        [](Call* c) { c->Give(DecomposeReduction(c->Change(), c->node(0), c->node(1))); }),
    Row("RFactor", "rfactor", kChanges, {loop, {"factor_axis", A::kInt}},
        [](Call* c) { c->Give(RFactor(c->Change(), c->node(0), c->get<int64_t>(1))); }),
    Row("ComputeAt", "compute_at", kChanges,
        {block, {"loop", A::kPlace}, units, index}, ComputeBlockAt),
    Row("ReverseComputeAt", "reverse_compute_at", kChanges, {block, loop, units, index},
        [](Call* c) { Compute(c, ReverseComputeAt); }),
    Row("ComputeInline", "compute_inline", kChanges, {block},
        [](Call* c) { ComputeInline(c->Change(), c->node(0)); }),
    Row("ReverseComputeInline", "reverse_compute_inline", kChanges, {block},
        [](Call* c) { ReverseComputeInline(c->Change(), c->node(0)); }),
    Row("CacheRead", "cache_read", kChanges,
        {block, {"read_buffer_index", A::kInt}, scope, {"consumer_blocks", A::kBlocks, true}},
        CacheReadBuffer),
    Row("CacheWrite", "cache_write", kChanges,
        {block, {"write_buffer_index", A::kInt}, scope, {"consumer_blocks", A::kBlocks, true}},
        CacheWriteBuffer),
    Row("CacheInplace", "cache_inplace", kGivesList,
        {block, {"read_buffer_index", A::kInt}, scope},
        [](Call* c) {
          c->Give(CacheInplace(c->Change(), c->node(0), c->get<int64_t>(1),
                               c->get<std::string>(2)));
        }),
    Row("ReindexCacheRead", "reindex_cache_read", kChanges,
        {block, {"read_buffer_index", A::kInt}, scope, {"index_map", A::kIndexMap}},
        [](Call* c) {
          c->Give(ReindexCacheRead(c->Change(), c->node(0), c->get<int64_t>(1),
                                   c->get<std::string>(2), c->MapOf(3)));
        }),
    Row("ReindexCacheWrite", "reindex_cache_write", kChanges,
        {block, {"write_buffer_index", A::kInt}, scope, {"index_map", A::kIndexMap}},
        [](Call* c) {
          c->Give(ReindexCacheWrite(c->Change(), c->node(0), c->get<int64_t>(1),
                                    c->get<std::string>(2), c->MapOf(3)));
        }),
    Row("ReIndex", "reindex", kChanges, {block, {"buffer", A::kBufferOf}},
        [](Call* c) {
          auto [at, write] = BufferOf(c, 1);
          c->Give(Reindex(c->Change(), c->node(0), at, write));
        }),
    Row("TransformLayout", "transform_layout", kChanges,
        {block, {"buffer", A::kBufferOf}, {"index_map", A::kIndexMap},
         {"pad_value", A::kPadValue, true},
         {"assume_injective_transform", A::kBool, true, Any(false)}}, TransformBufferLayout),
    Row("TransformBlockLayout", "transform_block_layout", kChanges,
        {block, {"index_map", A::kIndexMap}},
        [](Call* c) { TransformBlockLayout(c->Change(), c->node(0), c->MapOf(1)); }),
    Row("ReorderBlockIterVar", "reorder_block_iter_var", kChanges,
        {block, {"new_order", A::kInts}},
        [](Call* c) { ReorderBlockIterVars(c->Change(), c->node(0), IntsOf(c, 1)); }),
    Row("Blockize", "blockize", kChanges,
        {{"target", A::kBlocksOrLoop}, {"preserve_unit_iters", A::kBool, true, Any(true)}},
        [](Call* c) {
          const Ids& nodes = c->nodes(0);
          const bool several = nodes.size() > 1;
          c->Give(several ? Blockize(c->Change(), nodes, c->get<bool>(1))
                          : Blockize(c->Change(), nodes.at(0), c->get<bool>(1)));
        }),
    Row("Tensorize", "tensorize", kChanges,
        {thing, {"tensor_intrin", A::kText}, {"preserve_unit_iters", A::kBool, true, Any(true)}},
        [](Call* c) { Tensorize(c->Change(), c->node(0), c->get<String>(1), c->get<bool>(2)); }),
    Row("ReadAt", "read_at", kChanges,
        {loop, block, {"read_buffer_index", A::kInt}, scope},
        [](Call* c) {
          c->Give(ReadAt(c->Change(), c->node(0), c->node(1), c->get<int64_t>(2),
                         c->get<std::string>(3)));
        }),
    Row("WriteAt", "write_at", kChanges,
        {loop, block, {"write_buffer_index", A::kInt}, scope},
        [](Call* c) {
          c->Give(WriteAt(c->Change(), c->node(0), c->node(1), c->get<int64_t>(2),
                          c->get<std::string>(3)));
        }),
    Row("RollingBuffer", "rolling_buffer", kChanges, {block, {"write_buffer_index", A::kInt}},
        [](Call* c) { RollingBuffer(c->Change(), c->node(0), c->get<int64_t>(1)); }),
    Row("CacheIndex", "cache_index", kGivesList, {block, scope, {"cse_thresh", A::kInt, true, Any(0)}},
        [](Call* c) {
          c->Give(CacheIndex(c->Change(), c->node(0), c->get<std::string>(1), c->get<int64_t>(2)));
        }),
    Row("UnsafeHideBufferAccess", "unsafe_hide_buffer_access", kChanges,
        {block, {"buf_type", A::kText}, {"buf_index_array", A::kInts}},
        [](Call* c) {
          UnsafeHideBufferAccess(c->Change(), c->node(0), c->get<std::string>(1), IntsOf(c, 2));
        }),
    Row("DecomposePadding", "decompose_padding", kChanges, {block, loop},
        [](Call* c) { c->Give(DecomposePadding(c->Change(), c->node(0), c->node(1))); }),
    Row("PadEinsum", "pad_einsum", kChanges, {block, {"padding", A::kInts}},
        [](Call* c) { PadEinsum(c->Change(), c->node(0), IntsOf(c, 1)); }),
    Row("AddUnitLoop", "add_unit_loop", kChanges, {thing},
        [](Call* c) { c->Give(AddUnitLoop(c->Change(), c->node(0))); }),
    Row("UnsafeSetDType", "unsafe_set_dtype", kChanges,
        {block, {"buffer_index", A::kInt}, {"dtype", A::kText}},
        [](Call* c) {
          UnsafeSetDType(c->Change(), c->node(0), c->get<int64_t>(1), c->get<std::string>(2));
        }),
    Row("SetScope", "set_scope", kChanges, {block, {"buffer_index", A::kInt}, scope},
        [](Call* c) {
          SetScope(c->Change(), c->node(0), c->get<int64_t>(1), c->get<std::string>(2));
        }),
    Row("SetAxisSeparator", "set_axis_separator", kChanges,
        {block, {"buffer", A::kBufferOf}, {"axis_separators", A::kInts}},
        [](Call* c) {
          auto [at, write] = BufferOf(c, 1);
          SetAxisSeparator(c->Change(), c->node(0), at, write, IntsOf(c, 2));
        }),
    Row("StorageAlign", "storage_align", kChanges,
        {block, {"buffer_index", A::kInt}, {"axis", A::kInt}, {"factor", A::kInt},
         {"offset", A::kInt}},
        [](Call* c) {
          StorageAlign(c->Change(), c->node(0), c->get<int64_t>(1), c->get<int64_t>(2),
                       c->get<int64_t>(3), c->get<int64_t>(4));
        }),
  };
  // clang-format on
  return rows;
}

}  // namespace

const Primitive& PrimitiveOf(const InstructionKind& kind) {
  for (const Primitive& row : Table()) {
    if (row.kind.same_as(kind)) return row;
  }
  // A kind that was read from text is another object.
  for (const Primitive& row : Table()) {
    if (row.kind->name == kind->name) return row;
  }
  TVM_FATAL(ValueError) << "no instruction is called '" << kind->name << "'";
}

size_t ArgumentNamed(const InstructionKind& kind, const std::string& name) {
  std::string names;
  for (size_t i = 0; i < kind->arguments.size(); ++i) {
    if (kind->arguments[i] == name) return i;
    names += (i == 0 ? "" : ", ") + kind->arguments[i];
  }
  TVM_FATAL(ValueError) << kind->name << " of a trace: there is no argument " << name << "; it has "
                        << (names.empty() ? "none" : names);
}

}  // namespace sched

InstructionKind InstructionKind::Get(const std::string& name) {
  std::vector<std::string> known;
  for (const sched::Primitive& row : sched::Table()) {
    if (row.kind->name == name) return row.kind;
    known.push_back(row.kind->name);
  }
  std::sort(known.begin(), known.end());
  std::string list;
  for (const std::string& other : known) sched::AddItem(&list, other);
  TVM_FATAL(KeyError) << "no instruction is called '" << name << "'; there are " << list;
}

TVM_REGISTER_GLOBAL("tir.schedule.InstructionKindGet").set_body_typed(InstructionKind::Get);
/*! \brief All kinds, by the method of a schedule that records them. */
TVM_REGISTER_GLOBAL("tir.schedule.InstructionKinds").set_body_typed([]() {
  Map<String, InstructionKind> kinds;
  for (const sched::Primitive& row : sched::Table()) kinds.Set(row.kind->method, row.kind);
  return kinds;
});

}  // namespace tir
}  // namespace tvm
