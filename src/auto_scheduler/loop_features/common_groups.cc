/*!
 * \file common_groups.cc
 * \brief The feature columns that every target has.
 */
#include <tvm/auto_scheduler/loop_features.h>
#include <tvm/expr/op.h>

#include <algorithm>

namespace tvm {
namespace auto_scheduler {

using namespace tir;

namespace {

using StoreColumn = FeatureColumn<StoreFacts>;

PrimExpr Flag(bool value) { return RealConst(value ? 1 : 0); }
PrimExpr Flag(const PrimExpr& condition) { return If(condition, RealConst(1)); }

FeatureGroup Operations() {
  constexpr const char* kNames[] = {
      "float_mad",     "float_addsub",    "float_mul",        "float_divmod",
      "float_cmp",     "float_math_func", "float_other_func", "int_mad",
      "int_addsub",    "int_mul",         "int_divmod",       "int_cmp",
      "int_math_func", "int_other_func",  "bool_op",          "select_op"};
  static_assert(std::size(kNames) == static_cast<size_t>(OpKind::kCount));
  std::vector<StoreColumn> columns;
  for (size_t i = 0; i < std::size(kNames); ++i) {
    columns.push_back({kNames[i], FeatureKind::kNumber, [i](const StoreFacts& store) {
                         return store.trips() * RealConst(store.op_counts[i]);
                       }});
  }
  return {"operations", columns};
}

bool IsVector(const LoopInfo& loop) { return loop.kind == ForKind::kVectorized; }
bool IsUnrolled(const LoopInfo& loop) { return loop.kind == ForKind::kUnrolled; }
bool IsParallel(const LoopInfo& loop) {
  return loop.kind == ForKind::kParallel || loop.is_thread();
}

/*! \brief The loops of one mark: how many run, their product, the innermost, whether one runs. */
template <bool (*kHasMark)(const LoopInfo&)>
struct MarkFacts {
  explicit MarkFacts(const StoreFacts& store) {
    for (size_t i = 0; i < store.extents.size(); ++i) {
      if (!kHasMark(*store.store.loops[i])) continue;
      number = number + If(store.runs[i], RealConst(1));
      product = product * store.extents[i];
      innermost = Choose(store.runs[i], store.extents[i], innermost);
      any = EitherOf(any, store.runs[i]);
    }
  }
  PrimExpr number = RealConst(0), product = RealConst(1), innermost = RealConst(1);
  PrimExpr any = const_false();
};

template <bool (*kHasMark)(const LoopInfo&)>
FeatureGroup Marks(const std::string& mark) {
  using Facts = MarkFacts<kHasMark>;
  std::vector<FeatureColumn<Facts>> columns = {
      {mark + "_num", FeatureKind::kNumber, [](const Facts& f) { return f.number; }},
      {mark + "_prod", FeatureKind::kNumber, [](const Facts& f) { return If(f.any, f.product); }},
      {mark + "_len", FeatureKind::kNumber, [](const Facts& f) { return If(f.any, f.innermost); }},
      {mark + "_type.kPosNone", FeatureKind::kFlag,
       [](const Facts& f) { return Flag(Opposite(f.any)); }},
  };
  // A loop program does not keep which axis a loop is of, so every marked loop is of mixed
  // position.
  for (const char* position : {"InnerSpatial", "MiddleSpatial", "OuterSpatial", "InnerReduce",
                               "MiddleReduce", "OuterReduce"}) {
    columns.push_back({mark + "_type.kPos" + position, FeatureKind::kFlag,
                       [](const Facts&) { return RealConst(0); }});
  }
  columns.push_back(
      {mark + "_type.kPosMixed", FeatureKind::kFlag, [](const Facts& f) { return Flag(f.any); }});
  return {mark, columns};
}

PrimExpr ThreadLength(const StoreFacts& store, const std::string& tag) {
  PrimExpr length = RealConst(1);
  for (size_t i = 0; i < store.extents.size(); ++i) {
    if (store.store.loops[i]->thread_tag != tag) continue;
    // Nested virtual threads multiply; of a thread axis that is bound again the last one counts.
    length = tag == "vthread" ? length * store.extents[i] : store.extents[i];
  }
  return length;
}

FeatureGroup Threads() {
  std::vector<StoreColumn> columns = {{"is_gpu", FeatureKind::kFlag, [](const StoreFacts& store) {
                                         return Flag(store.store.kernel >= 0);
                                       }}};
  for (const std::string tag : {"blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x",
                                "threadIdx.y", "threadIdx.z", "vthread"}) {
    std::string name = tag + "_len";
    std::replace(name.begin(), name.end(), '.', '_');
    columns.push_back({name, FeatureKind::kNumber,
                       [tag](const StoreFacts& store) { return ThreadLength(store, tag); }});
  }
  return {"threads", columns};
}

/*! \brief `amount` for each use of the data; data that is not used again counts double. */
PrimExpr PerReuse(const BufferFacts& f, const PrimExpr& amount) {
  return Choose(f.none, amount * RealConst(2), div(amount, max(f.reuse_count, RealConst(1))));
}

FeatureGroup Buffers() {
  constexpr FeatureKind kNumber = FeatureKind::kNumber, kFlag = FeatureKind::kFlag;
  using Facts = BufferFacts;
  const std::vector<FeatureColumn<Facts>> of_one = {
      {"acc_type.kRead", kFlag,
       [](const Facts& f) { return Flag(f.access->type == AccessType::kRead); }},
      {"acc_type.kWrite", kFlag,
       [](const Facts& f) { return Flag(f.access->type == AccessType::kWrite); }},
      {"acc_type.kReadWrite", kFlag,
       [](const Facts& f) { return Flag(f.access->type == AccessType::kReadWrite); }},
      {"bytes", kNumber, [](const Facts& f) { return f.bytes; }},
      {"unique_bytes", kNumber, [](const Facts& f) { return f.unique_bytes; }},
      {"lines", kNumber, [](const Facts& f) { return f.lines; }},
      {"unique_lines", kNumber, [](const Facts& f) { return f.unique_lines; }},
      {"multi_read_cond", kFlag, [](const Facts& f) { return Flag(f.multi_read); }},
      {"serial_multi_rw_cond", kFlag, [](const Facts& f) { return Flag(f.serial); }},
      {"no_reuse_cond", kFlag, [](const Facts& f) { return Flag(f.none); }},
      {"reuse_dis_iter", kNumber, [](const Facts& f) { return f.reuse_iters; }},
      {"reuse_dis_bytes", kNumber, [](const Facts& f) { return f.reuse_bytes; }},
      {"reuse_ct", kNumber, [](const Facts& f) { return f.reuse_count; }},
      {"bytes_d_reuse_ct", kNumber, [](const Facts& f) { return PerReuse(f, f.bytes); }},
      {"unique_bytes_d_reuse_ct", kNumber,
       [](const Facts& f) { return PerReuse(f, f.unique_bytes); }},
      {"lines_d_reuse_ct", kNumber, [](const Facts& f) { return PerReuse(f, f.lines); }},
      {"unique_lines_d_reuse_ct", kNumber,
       [](const Facts& f) { return PerReuse(f, f.unique_lines); }},
      {"stride", kNumber, [](const Facts& f) { return f.stride; }},
  };
  std::vector<StoreColumn> columns;
  for (size_t slot = 0; slot < kMaxFeatureBuffers; ++slot) {
    for (const FeatureColumn<Facts>& column : of_one) {
      columns.push_back({"B" + std::to_string(slot) + "." + column.name, column.kind,
                         [slot, value = column.value](const StoreFacts& store) {
                           return slot < store.slots.size() ? value(store.slots[slot])
                                                            : RealConst(0);
                         }});
    }
  }
  return {"buffers", columns};
}

/*! \brief The memory that is allocated for the buffer that is stored to; 0 for an output. */
struct AllocationFacts {
  explicit AllocationFacts(const StoreFacts& store) {
    const RealizeInfo* realize = nullptr;
    for (const RealizeInfo& info : store.program.realizes) {
      if (info.buffer == store.store.buffer) realize = &info;
    }
    if (realize == nullptr) return;
    PrimExpr elements = RealConst(1);
    outside = RealConst(1);
    for (const PrimExpr& extent : realize->extents) elements = elements * ToReal(extent);
    for (const LoopRef& loop : realize->loops) outside = outside * ToReal(loop->extent);
    bytes = elements * RealConst(store.program.element_bytes(store.store.buffer));
    elements_of_all = elements * outside;
    inside = div(store.trips(), outside);
  }
  PrimExpr bytes = RealConst(0), elements_of_all = RealConst(0);
  PrimExpr outside = RealConst(0), inside = RealConst(0);
};

FeatureGroup Allocation() {
  using Facts = AllocationFacts;
  return {
      "allocation",
      std::vector<FeatureColumn<Facts>>{
          {"alloc_size", FeatureKind::kNumber, [](const Facts& f) { return f.bytes; }},
          {"alloc_prod", FeatureKind::kNumber, [](const Facts& f) { return f.elements_of_all; }},
          {"alloc_outer_prod", FeatureKind::kNumber, [](const Facts& f) { return f.outside; }},
          {"alloc_inner_prod", FeatureKind::kNumber, [](const Facts& f) { return f.inside; }},
      }};
}

PrimExpr NumLoops(const StoreFacts& store) {
  PrimExpr number = RealConst(0);
  for (const PrimExpr& runs : store.runs) number = number + If(runs, RealConst(1));
  return number;
}

FeatureGroup Nest() {
  return {"nest",
          std::vector<StoreColumn>{
              {"outer_prod", FeatureKind::kNumber,
               [](const StoreFacts& store) { return store.trips(); }},
              {"num_loops", FeatureKind::kNumber, NumLoops},
              {"auto_unroll_max_step", FeatureKind::kNumber,
               [](const StoreFacts& store) { return ToReal(store.store.auto_unroll_max_step); }},
          }};
}

}  // namespace

std::vector<FeatureGroup> CommonFeatureGroups() {
  return {Operations(),
          Marks<IsVector>("vec"),
          Marks<IsUnrolled>("unroll"),
          Marks<IsParallel>("parallel"),
          Threads(),
          Buffers(),
          Allocation(),
          Nest()};
}

}  // namespace auto_scheduler
}  // namespace tvm
