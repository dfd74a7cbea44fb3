/*!
 * \file per_store_features.cc
 */
#include "per_store_features.h"

#include <tvm/auto_scheduler/loop_features.h>
#include <tvm/expr/op.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_set>
#include <utility>

namespace tvm {
namespace auto_scheduler {

using namespace tir;

namespace {

constexpr int kCurvePoints = 10;
constexpr int kPositions = 8;
constexpr int kMixedPosition = 7;
constexpr std::array<const char*, 7> kThreadTags = {"blockIdx.x",  "blockIdx.y",  "blockIdx.z",
                                                    "threadIdx.x", "threadIdx.y", "threadIdx.z",
                                                    "vthread"};

constexpr OpKind kFloatOps[] = {OpKind::kFloatMad,    OpKind::kFloatAddSub, OpKind::kFloatMul,
                                OpKind::kFloatDivMod, OpKind::kFloatCmp,    OpKind::kFloatMath,
                                OpKind::kFloatOther};

enum ReuseType { kLoopMultipleRead, kSerialMultipleReadWrite, kNoReuse, kNumReuseTypes };

/*! \brief Loops of one kind around a store. */
struct AnnotationNumbers {
  double number = 0;
  double product = 0;
  double innermost = 0;
};

/*! \brief One buffer as one store uses it; all zero stands for a place that no buffer takes. */
struct BufferNumbers {
  bool used = false;
  AccessType access = AccessType::kRead;
  ReuseType reuse = kNoReuse;
  double bytes = 0, unique_bytes = 0, lines = 0, unique_lines = 0;
  double reuse_dis_iter = 0, reuse_dis_bytes = 0, reuse_ct = 0, stride = 0;

  /*! \brief A quantity for each time that data is used; what is used once counts double. */
  double PerReuse(double quantity) const {
    return reuse_ct > 0.5 ? quantity / reuse_ct : 2 * quantity;
  }
};

/*! \brief What the columns of a row read. */
struct StoreNumbers {
  OpCounts ops{};
  AnnotationNumbers vectorized, unrolled, parallel;
  bool on_gpu = false;
  std::array<double, kThreadTags.size()> threads;
  std::vector<BufferNumbers> buffers;
  std::array<double, kCurvePoints> intensity{};
  double alloc_size = 0, alloc_prod = 0, alloc_outer_prod = 0, alloc_inner_prod = 0;
  double outer_prod = 1;
  double num_loops = 0;
  double auto_unroll_max_step = 0;
};

// ------------------------------------------------------------------------------------ the table

/*! \brief kMagnitude: passed on as sign(x) log2(|x| + 1), since values span many powers of two. */
enum class Scale { kMagnitude, kRaw };

struct Column {
  std::string name;
  const char* group;
  Scale scale;
  std::function<double(const StoreNumbers&)> value;
};

std::vector<Column> MakeColumns(int max_n_bufs) {
  std::vector<Column> columns;
  const char* group = "operations";
  auto number = [&](std::string name, std::function<double(const StoreNumbers&)> value) {
    columns.push_back({std::move(name), group, Scale::kMagnitude, std::move(value)});
  };
  auto raw = [&](std::string name, std::function<double(const StoreNumbers&)> value) {
    columns.push_back({std::move(name), group, Scale::kRaw, std::move(value)});
  };
  using S = StoreNumbers;

  static constexpr const char* kOps[] = {
      "float_mad",    "float_addsub",   "float_mul",       "float_divmod",
      "float_cmp",    "float_mathfunc", "float_otherfunc", "int_mad",
      "int_addsub",   "int_mul",        "int_divmod",      "int_cmp",
      "int_mathfunc", "int_otherfunc",  "bool_op",         "select_op"};
  static_assert(std::size(kOps) == static_cast<size_t>(OpKind::kCount));
  for (size_t op = 0; op < std::size(kOps); ++op) {
    number(kOps[op], [op](const S& s) { return s.ops[op] * s.outer_prod; });
  }

  group = "annotations";
  static constexpr const char* kPositionNames[kPositions] = {
      "kPosNone",        "kPosInnerSpatial", "kPosMiddleSpatial", "kPosOuterSpatial",
      "kPosInnerReduce", "kPosMiddleReduce", "kPosOuterReduce",   "kPosMixed"};
  const std::pair<const char*, AnnotationNumbers S::*> annotations[] = {
      {"vec", &S::vectorized}, {"unroll", &S::unrolled}, {"parallel", &S::parallel}};
  for (auto [prefix, loops] : annotations) {
    std::string kind = prefix;
    number(kind + "_num", [loops](const S& s) { return (s.*loops).number; });
    number(kind + "_prod", [loops](const S& s) { return (s.*loops).product; });
    number(kind + "_len", [loops](const S& s) { return (s.*loops).innermost; });
    for (int position = 0; position < kPositions; ++position) {
      raw(kind + "_type." + kPositionNames[position], [loops, position](const S& s) {
        return position == ((s.*loops).number > 0 ? kMixedPosition : 0) ? 1 : 0;
      });
    }
  }

  group = "threads";
  raw("is_gpu", [](const S& s) { return s.on_gpu ? 1 : 0; });
  for (size_t axis = 0; axis < kThreadTags.size(); ++axis) {
    std::string name = kThreadTags[axis];
    std::replace(name.begin(), name.end(), '.', '_');
    number(name + "_len", [axis](const S& s) { return s.threads[axis]; });
  }

  group = "buffers";
  using B = BufferNumbers;
  for (int slot = 0; slot < max_n_bufs; ++slot) {
    std::string prefix = "B" + std::to_string(slot) + ".";
    auto of_buffer = [&](const char* name, std::function<double(const B&)> value) {
      number(prefix + name, [slot, value](const S& s) { return value(s.buffers[slot]); });
    };
    static constexpr std::pair<const char*, AccessType> kAccesses[] = {
        {"acc_type.kRead", AccessType::kRead},
        {"acc_type.kWrite", AccessType::kWrite},
        {"acc_type.kReadWrite", AccessType::kReadWrite}};
    for (auto [name, access] : kAccesses) {
      raw(prefix + name, [slot, access](const S& s) {
        return s.buffers[slot].used && s.buffers[slot].access == access ? 1 : 0;
      });
    }
    of_buffer("bytes", [](const B& b) { return b.bytes; });
    of_buffer("unique_bytes", [](const B& b) { return b.unique_bytes; });
    of_buffer("lines", [](const B& b) { return b.lines; });
    of_buffer("unique_lines", [](const B& b) { return b.unique_lines; });
    static constexpr const char* kReuseNames[kNumReuseTypes] = {
        "reuse_type.kLoopMultipleRead", "reuse_type.kSerialMultipleReadWrite",
        "reuse_type.kNoReuse"};
    for (int reuse = 0; reuse < kNumReuseTypes; ++reuse) {
      raw(prefix + kReuseNames[reuse], [slot, reuse](const S& s) {
        return s.buffers[slot].used && s.buffers[slot].reuse == reuse ? 1 : 0;
      });
    }
    of_buffer("reuse_dis_iter", [](const B& b) { return b.reuse_dis_iter; });
    of_buffer("reuse_dis_bytes", [](const B& b) { return b.reuse_dis_bytes; });
    of_buffer("reuse_ct", [](const B& b) { return b.reuse_ct; });
    of_buffer("bytes_d_reuse_ct", [](const B& b) { return b.PerReuse(b.bytes); });
    of_buffer("unique_bytes_d_reuse_ct", [](const B& b) { return b.PerReuse(b.unique_bytes); });
    of_buffer("lines_d_reuse_ct", [](const B& b) { return b.PerReuse(b.lines); });
    of_buffer("unique_lines_d_reuse_ct", [](const B& b) { return b.PerReuse(b.unique_lines); });
    of_buffer("stride", [](const B& b) { return b.stride; });
  }

  group = "intensity";
  for (int point = 0; point < kCurvePoints; ++point) {
    raw("arith_intensity_curve_" + std::to_string(point),
        [point](const S& s) { return s.intensity[point]; });
  }

  group = "allocation";
  number("alloc_size", [](const S& s) { return s.alloc_size; });
  number("alloc_prod", [](const S& s) { return s.alloc_prod; });
  number("alloc_outer_prod", [](const S& s) { return s.alloc_outer_prod; });
  number("alloc_inner_prod", [](const S& s) { return s.alloc_inner_prod; });

  group = "loops";
  number("outer_prod", [](const S& s) { return s.outer_prod; });
  number("num_loops", [](const S& s) { return s.num_loops; });
  number("auto_unroll_max_step", [](const S& s) { return s.auto_unroll_max_step; });
  return columns;
}

// ---------------------------------------------------------------------- numbers of one program

/*! \brief An access of a store with its loops, in numbers; vectors have one entry a loop. */
struct AccessNumbers {
  double width;                 // bytes of an element
  std::vector<double> touched;  // elements, while this loop and those inside run; then of one body
  std::vector<bool> uses;       // whether any index moves with the loop
  std::vector<double> stride;   // elements between two trips, the least of all accesses
};

class ProgramReader {
 public:
  ProgramReader(const LoopProgram& program, int cache_line_bytes, int max_n_bufs)
      : program_(program), line_(cache_line_bytes), max_n_bufs_(max_n_bufs) {
    for (const StoreInfo& store : program.stores) {
      accesses_.emplace_back();
      for (const AccessInfo& access : store.accesses) {
        accesses_.back().push_back(Measure(store, access));
      }
    }
  }

  StoreNumbers Read(size_t number) const {
    const StoreInfo& store = program_.stores[number];
    StoreNumbers out;
    out.threads.fill(1);
    std::vector<double> extents;
    for (const LoopRef& loop : store.loops) {
      extents.push_back(KnownTrips(loop->extent));
      out.outer_prod *= extents.back();
      if (loop->is_thread()) out.on_gpu = true;
    }
    out.ops = CountOps(store.value);
    out.vectorized = Annotated(store, ForKind::kVectorized);
    out.unrolled = Annotated(store, ForKind::kUnrolled);
    out.parallel = Annotated(store, ForKind::kParallel);
    // An inner binding of a thread axis is the one in force; virtual threads multiply.
    for (size_t i = 0; i < extents.size(); ++i) {
      const std::string& tag = store.loops[i]->thread_tag;
      for (size_t axis = 0; axis < kThreadTags.size(); ++axis) {
        if (tag != kThreadTags[axis] && !(axis + 1 == kThreadTags.size() && IsVThread(tag))) {
          continue;
        }
        out.threads[axis] = IsVThread(tag) ? out.threads[axis] * extents[i] : extents[i];
      }
    }
    Buffers(number, extents, &out);
    Intensity(number, extents, &out);
    Allocation(store, &out);
    out.num_loops = static_cast<double>(extents.size());
    out.auto_unroll_max_step = KnownTrips(store.auto_unroll_max_step);
    return out;
  }

 private:
  static bool IsVThread(const std::string& tag) { return tag.rfind("vthread", 0) == 0; }

  AccessNumbers Measure(const StoreInfo& store, const AccessInfo& access) const {
    AccessNumbers out;
    out.width = program_.element_bytes(access.buffer);
    for (const std::vector<PrimExpr>& extents : access.extents) {
      double touched = 1;
      for (const PrimExpr& extent : extents) touched *= KnownTrips(extent);
      out.touched.push_back(touched);
    }
    size_t n = store.loops.size();
    out.uses.assign(n, false);
    out.stride.assign(n, 0);
    const Array<PrimExpr>& shape = program_.buffers[access.buffer]->shape;
    for (const Array<PrimExpr>& tuple : access.indices) {
      std::vector<double> stride(n, 0);
      double row = 1;
      for (size_t d = tuple.size(); d-- > 0;) {
        std::unordered_set<const Object*> variables;
        PostOrderVisit(tuple[d], [&variables](const ObjectRef& node) {
          if (node.as<VarNode>()) variables.insert(node.get());
        });
        for (size_t i = 0; i < n; ++i) {
          const VarNode* var = store.loops[i]->var.get();
          if (!variables.count(var)) continue;
          out.uses[i] = true;
          if (stride[i] != 0) continue;  // a dimension further right decides
          std::optional<int64_t> at_one = IndexAt(tuple[d], var, 1),
                                 at_zero = IndexAt(tuple[d], nullptr, 0);
          if (at_one && at_zero)
            stride[i] = std::abs(static_cast<double>(*at_one - *at_zero)) * row;
        }
        row *= KnownTrips(shape[d]);
      }
      bool first = tuple.same_as(access.indices.front());
      for (size_t i = 0; i < n; ++i) {
        out.stride[i] = first ? stride[i] : std::min(out.stride[i], stride[i]);
      }
    }
    return out;
  }

  static AnnotationNumbers Annotated(const StoreInfo& store, ForKind kind) {
    AnnotationNumbers out;
    for (const LoopRef& loop : store.loops) {
      if (loop->kind != kind) continue;
      out.innermost = KnownTrips(loop->extent);
      out.product = (out.number > 0 ? out.product : 1) * out.innermost;
      out.number += 1;
    }
    return out;
  }

  /*! \brief Calls `visit(buffer, access)` for all accesses of all stores inside loop i. */
  template <typename F>
  void ForAccessesIn(const StoreInfo& store, size_t i, F visit) const {
    for (size_t s = 0; s < program_.stores.size(); ++s) {
      const StoreInfo& other = program_.stores[s];
      if (i >= other.loops.size() || other.loops[i] != store.loops[i]) continue;
      for (size_t a = 0; a < other.accesses.size(); ++a) {
        visit(other.accesses[a].buffer, accesses_[s][a]);
      }
    }
  }

  double BytesIn(const StoreInfo& store, size_t i) const {
    double bytes = 0;
    ForAccessesIn(store, i, [&](int, const AccessNumbers& access) {
      bytes += access.touched[i] * access.width;
    });
    return bytes;
  }

  void Buffers(size_t number, const std::vector<double>& extents, StoreNumbers* out) const {
    const StoreInfo& store = program_.stores[number];
    for (size_t a = 0; a < store.accesses.size(); ++a) {
      const AccessNumbers& access = accesses_[number][a];
      BufferNumbers buffer;
      buffer.used = true;
      buffer.access = store.accesses[a].type;
      buffer.bytes = out->outer_prod * access.width;
      buffer.unique_bytes = access.touched[0] * access.width;
      Lines(store.accesses[a], access, extents, out->outer_prod, &buffer);
      Reuse(store, store.accesses[a].buffer, access, extents, &buffer);
      out->buffers.push_back(buffer);
    }
    std::stable_sort(out->buffers.begin(), out->buffers.end(),
                     [](const BufferNumbers& x, const BufferNumbers& y) {
                       return std::make_pair(x.lines, x.bytes) > std::make_pair(y.lines, y.bytes);
                     });
    out->buffers.resize(max_n_bufs_);
  }

  void Lines(const AccessInfo& info, const AccessNumbers& access,
             const std::vector<double>& extents, double trips, BufferNumbers* out) const {
    // From the innermost loop outwards, the first one that moves on in memory.
    double stride = 0, repeated = 1;
    for (size_t i = extents.size(); i-- > 0;) {
      stride = access.stride[i];
      if (stride != 0) {
        if (i + 1 == extents.size()) out->stride = stride;
        break;
      }
      repeated *= extents[i];
    }
    double part = std::min(1.0, stride * access.width / line_);
    out->lines = std::max(trips / repeated * part, 1.0);

    // Bytes in a row: dimensions touched as a whole, times what is touched of the one before.
    const Array<PrimExpr>& shape = program_.buffers[info.buffer]->shape;
    double run = access.width;
    for (size_t d = shape.size(); d-- > 0;) {
      run *= KnownTrips(info.extents[0][d]);
      if (KnownTrips(info.extents[0][d]) != KnownTrips(shape[d])) break;
    }
    out->unique_lines = std::max(out->unique_bytes / std::min(run, line_), 1.0);
  }

  void Reuse(const StoreInfo& store, int buffer, const AccessNumbers& access,
             const std::vector<double>& extents, BufferNumbers* out) const {
    double iterations = 1, bytes = 0;
    for (const AccessInfo& one : store.accesses) bytes += program_.element_bytes(one.buffer);
    for (size_t i = extents.size(); i-- > 0;) {
      if (!access.uses[i]) {
        out->reuse = kLoopMultipleRead;
        out->reuse_dis_iter = iterations;
        out->reuse_dis_bytes = bytes;
        out->reuse_ct = extents[i];
        return;
      }
      double records = 0, least = 0;
      ForAccessesIn(store, i, [&](int other, const AccessNumbers& record) {
        if (other != buffer) return;
        least = records == 0 ? record.touched[i] : std::min(least, record.touched[i]);
        records += 1;
      });
      iterations *= extents[i];
      bytes = BytesIn(store, i);
      if (records > 1) {
        out->reuse = kSerialMultipleReadWrite;
        out->reuse_dis_iter = least / extents[i];
        out->reuse_dis_bytes = bytes / extents[i];
        out->reuse_ct = records - 1;
        return;
      }
    }
  }

  /*! \brief Operations a byte, at ten steps of work from the innermost loop to all of them. */
  void Intensity(size_t number, const std::vector<double>& extents, StoreNumbers* out) const {
    double ops = 0;
    for (OpKind op : kFloatOps) ops += out->ops[static_cast<size_t>(op)];
    if (ops == 0 || extents.empty()) return;
    std::vector<double> work, intensity;  // from the innermost loop outwards, logarithms
    for (size_t i = extents.size(); i-- > 0;) {
      ops *= extents[i];
      work.push_back(std::log2(ops));
      // Less than two bytes would divide by nothing.
      double moved = std::log2(std::max(BytesIn(program_.stores[number], i), 2.0));
      intensity.push_back(work.back() / moved);
    }
    for (int point = 0; point < kCurvePoints; ++point) {
      double at = work.back() * (point + 1) / kCurvePoints;
      size_t next = std::lower_bound(work.begin(), work.end(), at) - work.begin();
      next = std::min(next, work.size() - 1);
      if (next == 0 || work[next] == work[next - 1]) {
        out->intensity[point] = intensity[next];
        continue;
      }
      double share = (at - work[next - 1]) / (work[next] - work[next - 1]);
      out->intensity[point] = intensity[next - 1] + share * (intensity[next] - intensity[next - 1]);
    }
  }

  void Allocation(const StoreInfo& store, StoreNumbers* out) const {
    for (const RealizeInfo& realize : program_.realizes) {
      if (realize.buffer != store.buffer) continue;
      double elements = 1, outside = 1;
      for (const PrimExpr& extent : realize.extents) elements *= KnownTrips(extent);
      for (const LoopRef& loop : realize.loops) outside *= KnownTrips(loop->extent);
      out->alloc_size = elements * program_.element_bytes(store.buffer);
      out->alloc_prod = elements * outside;
      out->alloc_outer_prod = outside;
      out->alloc_inner_prod = out->outer_prod / outside;
    }
  }

  const LoopProgram& program_;
  double line_;
  int max_n_bufs_;
  std::vector<std::vector<AccessNumbers>> accesses_;  // of each store
};

const std::vector<Column>& Columns(int max_n_bufs) {
  static const std::vector<Column> usual = MakeColumns(kDefaultMaxBuffers);
  if (max_n_bufs == kDefaultMaxBuffers) return usual;
  thread_local std::map<int, std::vector<Column>> others;
  auto [it, fresh] = others.try_emplace(max_n_bufs);
  if (fresh) it->second = MakeColumns(max_n_bufs);
  return it->second;
}

}  // namespace

std::optional<int64_t> IndexAt(const PrimExpr& e, const VarNode* var, int64_t value) {
  if (const auto* op = e.as<IntImmNode>()) return op->value;
  if (e.as<VarNode>()) return e.get() == var ? value : 0;
  if (const auto* op = e.as<CastNode>()) return IndexAt(op->value, var, value);
  auto both = [var, value](const auto* op, auto combine) -> std::optional<int64_t> {
    std::optional<int64_t> a = IndexAt(op->a, var, value), b = IndexAt(op->b, var, value);
    if (!a || !b) return std::nullopt;
    return combine(*a, *b);
  };
  using Result = std::optional<int64_t>;
  if (const auto* op = e.as<AddNode>()) {
    return both(op, [](int64_t a, int64_t b) -> Result { return a + b; });
  }
  if (const auto* op = e.as<SubNode>()) {
    return both(op, [](int64_t a, int64_t b) -> Result { return a - b; });
  }
  if (const auto* op = e.as<MulNode>()) {
    return both(op, [](int64_t a, int64_t b) -> Result { return a * b; });
  }
  if (const auto* op = e.as<MinNode>()) {
    return both(op, [](int64_t a, int64_t b) -> Result { return std::min(a, b); });
  }
  if (const auto* op = e.as<MaxNode>()) {
    return both(op, [](int64_t a, int64_t b) -> Result { return std::max(a, b); });
  }
  // Both operands are small and mostly not negative here: rounding down is good enough for both
  // kinds of division.
  auto quotient = [](int64_t a, int64_t b) -> Result {
    if (b <= 0) return std::nullopt;
    return a >= 0 ? a / b : -((-a + b - 1) / b);
  };
  auto remainder = [quotient](int64_t a, int64_t b) -> Result {
    Result q = quotient(a, b);
    return q ? Result(a - *q * b) : std::nullopt;
  };
  if (const auto* op = e.as<FloorDivNode>()) return both(op, quotient);
  if (const auto* op = e.as<DivNode>()) return both(op, quotient);
  if (const auto* op = e.as<FloorModNode>()) return both(op, remainder);
  if (const auto* op = e.as<ModNode>()) return both(op, remainder);
  return std::nullopt;
}

double KnownTrips(const PrimExpr& extent) {
  const int64_t* value = as_const_int(extent);
  return value ? static_cast<double>(*value) : 1.0;
}

std::vector<std::string> PerStoreFeatureNames(int max_n_bufs) {
  std::vector<std::string> names;
  for (const Column& column : Columns(max_n_bufs)) names.push_back(column.name);
  return names;
}

std::vector<std::vector<float>> PerStoreFeatures(const LoopProgram& program, int cache_line_bytes,
                                                 int max_n_bufs) {
  std::vector<int> order;
  std::map<int, size_t> last_store;
  for (size_t s = 0; s < program.stores.size(); ++s) {
    int buffer = program.stores[s].buffer;
    if (!last_store.count(buffer)) order.push_back(buffer);
    last_store[buffer] = s;
  }
  ProgramReader reader(program, cache_line_bytes, max_n_bufs);
  std::vector<std::vector<float>> rows;
  for (int buffer : order) {
    StoreNumbers numbers = reader.Read(last_store[buffer]);
    rows.emplace_back();
    for (const Column& column : Columns(max_n_bufs)) {
      double x = column.value(numbers);
      if (column.scale == Scale::kMagnitude) x = std::copysign(std::log2(std::fabs(x) + 1), x);
      rows.back().push_back(static_cast<float>(x));
    }
  }
  return rows;
}

}  // namespace auto_scheduler
}  // namespace tvm
