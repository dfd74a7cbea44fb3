/*!
 * \file features.cc
 */
#include "features.h"

#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/logging.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "tape_builder.h"
#include "tape_eval.h"

namespace tvm {
namespace felix {

using namespace tir;

namespace {

constexpr int kMaxBuffers = 5;
constexpr const char* kPositions[] = {"None",         "InnerSpatial", "MiddleSpatial",
                                      "OuterSpatial", "InnerReduce",  "MiddleReduce",
                                      "OuterReduce",  "Mixed"};
constexpr const char* kOpNames[] = {
    "float_mad",     "float_addsub",    "float_mul",        "float_divmod",
    "float_cmp",     "float_math_func", "float_other_func", "int_mad",
    "int_addsub",    "int_mul",         "int_divmod",       "int_cmp",
    "int_math_func", "int_other_func",  "bool_op",          "select_op"};
enum Op {
  kFloatMad,
  kFloatAddSub,
  kFloatMul,
  kFloatDivMod,
  kFloatCmp,
  kFloatMath,
  kFloatOther,
  kIntMad,
  kIntAddSub,
  kIntMul,
  kIntDivMod,
  kIntCmp,
  kIntMath,
  kIntOther,
  kBoolOp,
  kSelectOp,
  kNumOps
};

struct FeatureTable {
  std::vector<std::string> names;
  std::vector<bool> numeric;

  void Number(std::string name) { Add(std::move(name), true); }
  void Flag(std::string name) { Add(std::move(name), false); }
  void Add(std::string name, bool is_number) {
    names.push_back(std::move(name));
    numeric.push_back(is_number);
  }

  FeatureTable() {
    for (const char* op : kOpNames) Number(op);
    for (const std::string kind : {"vec", "unroll", "parallel"}) {
      for (const char* what : {"_num", "_prod", "_len"}) Number(kind + what);
      for (const char* position : kPositions) Flag(kind + "_type.kPos" + position);
    }
    Flag("is_gpu");
    for (const char* axis : {"blockIdx_x", "blockIdx_y", "blockIdx_z", "threadIdx_x", "threadIdx_y",
                             "threadIdx_z", "vthread"}) {
      Number(std::string(axis) + "_len");
    }
    for (int j = 0; j < kMaxBuffers; ++j) {
      std::string b = "B" + std::to_string(j) + ".";
      for (const char* type : {"kRead", "kWrite", "kReadWrite"}) Flag(b + "acc_type." + type);
      for (const char* what : {"bytes", "unique_bytes", "lines", "unique_lines"}) Number(b + what);
      for (const char* cond : {"multi_read_cond", "serial_multi_rw_cond", "no_reuse_cond"}) {
        Flag(b + cond);
      }
      for (const char* what :
           {"reuse_dis_iter", "reuse_dis_bytes", "reuse_ct", "bytes_d_reuse_ct",
            "unique_bytes_d_reuse_ct", "lines_d_reuse_ct", "unique_lines_d_reuse_ct", "stride"}) {
        Number(b + what);
      }
    }
    for (const char* what : {"alloc_size", "alloc_prod", "alloc_outer_prod", "alloc_inner_prod",
                             "outer_prod", "num_loops", "auto_unroll_max_step"}) {
      Number(what);
    }
    for (const char* what :
         {"tile_vectors", "tile_rows", "vector_waste", "vectors_loaded", "scalars_broadcast",
          "vector_ops", "ops_per_load", "chunks_per_core", "core_imbalance", "l1_traffic",
          "l2_traffic", "l3_traffic", "l1_intensity", "l2_intensity", "l3_intensity"}) {
      Number(what);
    }
  }

  static const FeatureTable& Get() {
    static const FeatureTable table;
    return table;
  }
};

/*!
 * \brief Operations of a stored value, per element.
 *
 * Index arithmetic is left out: it folds into addresses, and how much of it is visible depends on
 * what lowering could simplify.
 */
class OpCounter : public ExprVisitor {
 public:
  std::array<double, kNumOps> counts{};

 private:
  using ExprVisitor::VisitExpr_;

  static bool IsFloat(const PrimExpr& e) { return e.dtype().is_float() || e.dtype().is_bfloat16(); }

  void Count(const PrimExpr& typed, Op for_float, Op for_int) {
    counts[IsFloat(typed) ? for_float : for_int] += 1;
  }

  // x + a * b is one multiply-add; of two products one is left over.
  void VisitSum(const PrimExpr& sum, const PrimExpr& a, const PrimExpr& b) {
    const auto* product = b.as<MulNode>();
    PrimExpr other = a;
    if (!product) product = a.as<MulNode>(), other = b;
    if (!product) {
      Count(sum, kFloatAddSub, kIntAddSub);
      VisitExpr(a);
      VisitExpr(b);
      return;
    }
    Count(sum, kFloatMad, kIntMad);
    VisitExpr(product->a);
    VisitExpr(product->b);
    VisitExpr(other);
  }

  void VisitExpr_(const AddNode* op) override { VisitSum(GetRef<PrimExpr>(op), op->a, op->b); }
  void VisitExpr_(const SubNode* op) override { VisitSum(GetRef<PrimExpr>(op), op->a, op->b); }

#define TVM_COUNT(Node, for_float, for_int)  \
  void VisitExpr_(const Node* op) override { \
    Count(op->a, for_float, for_int);        \
    VisitExpr(op->a);                        \
    VisitExpr(op->b);                        \
  }
  TVM_COUNT(MulNode, kFloatMul, kIntMul)
  TVM_COUNT(DivNode, kFloatDivMod, kIntDivMod)
  TVM_COUNT(ModNode, kFloatDivMod, kIntDivMod)
  TVM_COUNT(FloorDivNode, kFloatDivMod, kIntDivMod)
  TVM_COUNT(FloorModNode, kFloatDivMod, kIntDivMod)
  TVM_COUNT(MinNode, kFloatCmp, kIntCmp)
  TVM_COUNT(MaxNode, kFloatCmp, kIntCmp)
#undef TVM_COUNT

  // Comparisons of indices, as padding has them, are decided outside the inner loop.
#define TVM_COMPARE(Node)                    \
  void VisitExpr_(const Node* op) override { \
    if (!IsFloat(op->a)) return;             \
    counts[kFloatCmp] += 1;                  \
    VisitExpr(op->a);                        \
    VisitExpr(op->b);                        \
  }
  TVM_COMPARE(EQNode)
  TVM_COMPARE(NENode)
  TVM_COMPARE(LTNode)
  TVM_COMPARE(LENode)
  TVM_COMPARE(GTNode)
  TVM_COMPARE(GENode)
#undef TVM_COMPARE

  // For the same reason only what joins conditions on values counts.
  template <typename F>
  void VisitCondition(F visit_operands) {
    double before = counts[kFloatCmp];
    visit_operands();
    if (counts[kFloatCmp] > before) counts[kBoolOp] += 1;
  }
  void VisitExpr_(const AndNode* op) override {
    VisitCondition([&] { ExprVisitor::VisitExpr_(op); });
  }
  void VisitExpr_(const OrNode* op) override {
    VisitCondition([&] { ExprVisitor::VisitExpr_(op); });
  }
  void VisitExpr_(const NotNode* op) override {
    VisitCondition([&] { ExprVisitor::VisitExpr_(op); });
  }

  void VisitExpr_(const SelectNode* op) override {
    counts[kSelectOp] += 1;
    VisitExpr(op->condition);
    VisitExpr(op->true_value);
    VisitExpr(op->false_value);
  }

  void VisitExpr_(const CallNode* op) override {
    if (op->op.same_as(builtin::if_then_else())) {
      counts[kSelectOp] += 1;
    } else if (!op->op.same_as(builtin::likely())) {
      bool pure = op->op.as<OpNode>() && !op->op.same_as(builtin::call_extern());
      Count(GetRef<PrimExpr>(op), pure ? kFloatMath : kFloatOther, pure ? kIntMath : kIntOther);
    }
    for (const PrimExpr& arg : op->args) VisitExpr(arg);
  }

  void VisitExpr_(const BufferLoadNode*) override {}
};

PrimExpr IsMoreThanOne(const PrimExpr& extent) {
  if (const int64_t* value = as_const_int(extent)) return *value > 1 ? const_true() : const_false();
  return LT(make_const(extent.dtype(), 1), extent);
}

PrimExpr BothOf(const PrimExpr& a, const PrimExpr& b) {
  if (is_zero(a) || is_one(b)) return a;
  if (is_one(a) || is_zero(b)) return b;
  return And(a, b);
}

PrimExpr EitherOf(const PrimExpr& a, const PrimExpr& b) {
  if (is_one(a) || is_zero(b)) return a;
  if (is_zero(a) || is_one(b)) return b;
  return Or(a, b);
}

PrimExpr Opposite(const PrimExpr& a) {
  if (is_one(a)) return const_false();
  if (is_zero(a)) return const_true();
  return Not(a);
}

PrimExpr If(const PrimExpr& cond, const PrimExpr& value) {
  return Choose(cond, value, RealConst(0));
}

/*! \brief Analyses one store against the loops around it. */
class StoreAnalyzer {
 public:
  StoreAnalyzer(const LoopProgram& program, const StoreInfo& store, const Machine& machine)
      : program_(program), store_(store), machine_(machine), num_loops_(store.loops.size()) {
    for (const LoopRef& loop : store.loops) {
      runs_.push_back(IsMoreThanOne(loop->extent));
      extents_.push_back(ToReal(loop->extent));
    }
    outer_.assign(num_loops_ + 1, RealConst(1));
    inner_.assign(num_loops_ + 1, RealConst(1));
    for (size_t i = 0; i < num_loops_; ++i) outer_[i + 1] = outer_[i] * extents_[i];
    for (size_t i = num_loops_; i-- > 0;) inner_[i] = extents_[i] * inner_[i + 1];
    OpCounter counter;
    counter(store.value);
    ops_ = counter.counts;
  }

  const PrimExpr& trips() const { return outer_[num_loops_]; }
  const std::array<double, kNumOps>& ops() const { return ops_; }

  struct BufferFeatures {
    PrimExpr bytes, unique_bytes, lines, unique_lines;
    PrimExpr multi_read, serial, none;
    PrimExpr reuse_iters, reuse_bytes, reuse_count, stride;
  };

  BufferFeatures OfBuffer(const AccessInfo& access) const {
    BufferFeatures out;
    double width = program_.element_bytes(access.buffer);
    out.bytes = trips() * RealConst(width);
    out.unique_bytes = access.touched[0] * RealConst(width);
    Stride(access, width, &out);
    Contiguity(access, width, &out);
    Reuse(access, &out);
    return out;
  }

  // Loops of one annotation: how many run, their product, the innermost, and whether there is one.
  void Annotation(bool (*is_kind)(const LoopInfo&), std::vector<PrimExpr>* row) const {
    PrimExpr number = RealConst(0), product = RealConst(1), length = RealConst(1);
    PrimExpr any = const_false();
    for (size_t i = 0; i < num_loops_; ++i) {
      if (!is_kind(*store_.loops[i])) continue;
      number = number + If(runs_[i], RealConst(1));
      product = product * extents_[i];
      length = Choose(runs_[i], extents_[i], length);
      any = EitherOf(any, runs_[i]);
    }
    row->push_back(number);
    row->push_back(If(any, product));
    row->push_back(If(any, length));
    row->push_back(If(Opposite(any), RealConst(1)));
    for (int i = 0; i < 6; ++i) row->push_back(RealConst(0));
    row->push_back(If(any, RealConst(1)));
  }

  PrimExpr ThreadLength(const std::string& tag) const {
    PrimExpr length = RealConst(1);
    bool vthread = tag == "vthread";
    for (size_t i = 0; i < num_loops_; ++i) {
      if (store_.loops[i]->thread_tag != tag) continue;
      // Nested virtual threads multiply; of a thread axis that is bound again the last one counts.
      length = vthread ? length * extents_[i] : extents_[i];
    }
    return length;
  }

  bool OnGpu() const {
    return std::any_of(store_.loops.begin(), store_.loops.end(),
                       [](const LoopRef& loop) { return loop->is_thread(); });
  }

  PrimExpr NumLoops() const {
    PrimExpr number = RealConst(0);
    for (size_t i = 0; i < num_loops_; ++i) {
      // A launch has its threads even where they are one.
      number = number + (store_.loops[i]->is_thread() ? RealConst(1) : If(runs_[i], RealConst(1)));
    }
    return number;
  }

  // What the processor does: the register tile, its loads, the caches, the cores.
  void Processor(std::vector<PrimExpr>* row) const {
    RegisterTile tile(store_);
    int64_t lanes = std::max(1, machine_.vector_bytes / program_.element_bytes(store_.buffer));
    PrimExpr vectors = CeilDivReal(tile.vector_length(), lanes);
    PrimExpr tile_vectors = tile.unrolled() * vectors;
    row->push_back(tile_vectors);
    row->push_back(tile.unrolled());
    row->push_back(
        div(vectors * RealConst(static_cast<double>(lanes)), ToReal(tile.vector_length())));
    PrimExpr loaded = RealConst(0), broadcast = RealConst(0);
    for (const AccessInfo& access : store_.accesses) {
      if (access.buffer == store_.buffer) continue;  // stays in registers
      PrimExpr elements = tile.At(access.touched);
      bool along_vector = false;
      if (tile.vector_var().defined()) {
        for (const Array<PrimExpr>& tuple : access.indices) {
          for (const PrimExpr& index : tuple) {
            PostOrderVisit(index, [&](const ObjectRef& node) {
              along_vector = along_vector || node.same_as(tile.vector_var());
            });
          }
        }
      }
      if (along_vector) {
        // Elements come in runs of one vector loop; with a loop of one trip they are scalars.
        PrimExpr in_vectors = div(elements, ToReal(tile.vector_length())) * vectors;
        PrimExpr is_vector = IsMoreThanOne(tile.vector_length());
        loaded = loaded + If(is_vector, in_vectors);
        broadcast = broadcast + Choose(is_vector, RealConst(0), elements);
      } else {
        broadcast = broadcast + elements;
      }
    }
    double work = 0;
    for (double count : ops_) work += count;
    PrimExpr vector_ops = tile_vectors * RealConst(work);
    row->push_back(loaded);
    row->push_back(broadcast);
    row->push_back(vector_ops);
    row->push_back(div(vector_ops, loaded + broadcast + RealConst(1)));

    PrimExpr chunks = IntImm(DataType::Int(32), 1);
    for (const LoopRef& loop : store_.loops) {
      if (loop->kind == ForKind::kParallel) chunks = chunks * loop->extent;
    }
    int64_t cores = std::max(1, machine_.num_cores);
    row->push_back(div(ToReal(chunks), RealConst(static_cast<double>(cores))));
    row->push_back(
        div(CeilDivReal(chunks, cores) * RealConst(static_cast<double>(cores)), ToReal(chunks)));

    double flop = work + ops_[kFloatMad];
    std::vector<PrimExpr> intensities;
    for (int64_t cache : machine_.cache_bytes) {
      PrimExpr traffic = Traffic(cache);
      row->push_back(traffic);
      intensities.push_back(div(trips() * RealConst(flop), traffic));
    }
    row->insert(row->end(), intensities.begin(), intensities.end());
  }

 private:
  /*!
   * \brief Bytes that cross into a cache during the whole program.
   *
   * If the data of loops i and inside fits, the cache is filled once for each trip of the loops
   * outside. The loop that counts is the outermost whose data fits; instead of a hard limit, data
   * of F bytes fits a cache of C bytes to the degree 1 / (1 + (F / C)^2).
   */
  PrimExpr Traffic(int64_t cache) const {
    std::vector<PrimExpr> footprint(num_loops_ + 1, RealConst(0));
    for (const AccessInfo& access : store_.accesses) {
      PrimExpr width = RealConst(program_.element_bytes(access.buffer));
      for (size_t i = 0; i <= num_loops_; ++i) {
        footprint[i] = footprint[i] + access.touched[i] * width;
      }
    }
    PrimExpr traffic = outer_[num_loops_] * footprint[num_loops_];
    for (size_t i = num_loops_; i-- > 0;) {
      PrimExpr ratio = div(footprint[i], RealConst(static_cast<double>(cache)));
      PrimExpr fit = div(RealConst(1), RealConst(1) + ratio * ratio);
      PrimExpr blended = fit * (outer_[i] * footprint[i]) + (RealConst(1) - fit) * traffic;
      traffic = Choose(runs_[i], blended, traffic);
    }
    return traffic;
  }

  // Whether one index moves with a loop at all, whether it does in the first trip, and how far.
  struct Movement {
    PrimExpr moves, moves_at_once;  // bool
    PrimExpr step;                  // float64
  };

  Movement MovementOf(const PrimExpr& index, size_t i) const {
    const LoopInfo& loop = *store_.loops[i];
    bool mentioned = false;
    PostOrderVisit(index,
                   [&](const ObjectRef& node) { mentioned = mentioned || node.same_as(loop.var); });
    if (!mentioned) return {const_false(), const_false(), RealConst(0)};
    arith::Analyzer& analyzer = *program_.analyzer;
    Map<Var, PrimExpr> origin;
    for (const LoopRef& other : store_.loops) origin.Set(other->var, other->min);
    PrimExpr at_zero = analyzer.Simplify(Substitute(index, origin));
    origin.Set(loop.var, loop.min + 1);
    PrimExpr step = analyzer.Simplify(Substitute(index, origin) - at_zero);
    if (const int64_t* value = as_const_int(step)) {
      if (*value < 0) step = make_const(step.dtype(), -*value);
    } else if (!analyzer.CanProve(step >= 0)) {
      step = max(step, make_zero(step.dtype()) - step);
    }
    if (IsLinearIndex(index)) return {const_true(), const_true(), ToReal(step)};
    // One with a quotient or a remainder, of fused loops, moves if it takes several values.
    std::vector<LoopRef> alone{store_.loops[i]};
    return {IsMoreThanOne(analyzer.Simplify(IndexExtent(index, alone))),
            analyzer.Simplify(step != make_zero(step.dtype())), ToReal(step)};
  }

  // Whether any index of the access moves with loop i.
  PrimExpr Uses(const AccessInfo& access, size_t i) const {
    PrimExpr out = const_false();
    for (const Array<PrimExpr>& tuple : access.indices) {
      for (const PrimExpr& index : tuple) {
        out = EitherOf(out, MovementOf(index, i).moves);
      }
    }
    return out;
  }

  // Distance in elements between two trips of loop i: the least of all index tuples.
  PrimExpr StrideOf(const AccessInfo& access, size_t i) const {
    const Array<PrimExpr>& shape = program_.buffers[access.buffer]->shape;
    PrimExpr least;
    for (const Array<PrimExpr>& tuple : access.indices) {
      PrimExpr stride = RealConst(0), row = RealConst(1);
      std::vector<std::pair<Movement, PrimExpr>> dims;
      for (size_t d = tuple.size(); d-- > 0;) {
        dims.emplace_back(MovementOf(tuple[d], i), row);
        row = row * ToReal(shape[d]);
      }
      // The last dimension that moves decides.
      for (auto it = dims.rbegin(); it != dims.rend(); ++it) {
        stride = Choose(it->first.moves_at_once, it->first.step * it->second, stride);
      }
      least = least.defined() ? min(least, stride) : stride;
    }
    return least;
  }

  void Stride(const AccessInfo& access, double width, BufferFeatures* out) const {
    // From the innermost loop outwards: the first one that runs and moves the index.
    PrimExpr searching = const_true();
    PrimExpr stride = RealConst(0), skipped = RealConst(0), reported = RealConst(0);
    PrimExpr none_ran = const_true();
    for (size_t i = num_loops_; i-- > 0;) {
      PrimExpr uses = Uses(access, i);
      PrimExpr found = BothOf(searching, BothOf(runs_[i], uses));
      if (!is_zero(found)) {
        PrimExpr s = StrideOf(access, i);
        stride = stride + If(found, s);
        skipped = skipped + If(found, inner_[i + 1]);
        reported = reported + If(BothOf(found, none_ran), s);
      }
      searching = BothOf(searching, Opposite(BothOf(runs_[i], uses)));
      none_ran = BothOf(none_ran, Opposite(runs_[i]));
    }
    out->stride = reported;
    // All trips of the skipped loops stay on one element.
    skipped = Choose(searching, trips(), skipped);
    PrimExpr part = min(RealConst(1), stride * RealConst(width / machine_.cache_line_bytes));
    out->lines = max(div(trips(), max(skipped, RealConst(1))) * part, RealConst(1));
  }

  // Bytes of a contiguous run: the last dimensions as far as they are touched as a whole, times
  // what is touched of the one before them.
  void Contiguity(const AccessInfo& access, double width, BufferFeatures* out) const {
    const Array<PrimExpr>& shape = program_.buffers[access.buffer]->shape;
    const std::vector<PrimExpr>& region = access.extents[0];
    arith::Analyzer& analyzer = *program_.analyzer;
    PrimExpr run = RealConst(width), searching = const_true();
    for (size_t d = region.size(); d-- > 0;) {
      run = Choose(searching, run * ToReal(region[d]), run);
      searching = BothOf(searching, analyzer.Simplify(region[d] == shape[d]));
    }
    PrimExpr line = min(run, RealConst(machine_.cache_line_bytes));
    out->unique_lines = max(div(out->unique_bytes, line), RealConst(1));
  }

  void Reuse(const AccessInfo& access, BufferFeatures* out) const {
    PrimExpr searching = const_true();
    out->multi_read = const_false();
    out->serial = const_false();
    out->reuse_iters = out->reuse_bytes = out->reuse_count = RealConst(0);
    // Bytes of one body, then of the next loop inside that runs.
    PrimExpr bytes_inside = RealConst(0);
    for (const AccessInfo& other : store_.accesses) {
      bytes_inside = bytes_inside + RealConst(program_.element_bytes(other.buffer));
    }
    for (size_t i = num_loops_; i-- > 0;) {
      PrimExpr uses = Uses(access, i);
      PrimExpr here = BothOf(searching, runs_[i]);
      PrimExpr multi = BothOf(here, Opposite(uses));
      // Every store inside the loop that touches the buffer is one record.
      int records = 0;
      PrimExpr least_touched, bytes_here = RealConst(0);
      ForRecords(i, [&](const AccessInfo& record, size_t level) {
        bytes_here =
            bytes_here + record.touched[level] * RealConst(program_.element_bytes(record.buffer));
        if (record.buffer != access.buffer) return;
        ++records;
        least_touched = least_touched.defined() ? min(least_touched, record.touched[level])
                                                : record.touched[level];
      });
      bool shared = records > 1;
      PrimExpr serial = shared ? BothOf(here, uses) : const_false();
      out->multi_read = EitherOf(out->multi_read, multi);
      out->serial = EitherOf(out->serial, serial);
      out->reuse_iters =
          out->reuse_iters + If(multi, inner_[i + 1]) + If(serial, div(least_touched, extents_[i]));
      out->reuse_bytes =
          out->reuse_bytes + If(multi, bytes_inside) + If(serial, div(bytes_here, extents_[i]));
      out->reuse_count =
          out->reuse_count + If(multi, extents_[i]) + If(serial, RealConst(records - 1));
      bytes_inside = Choose(runs_[i], bytes_here, bytes_inside);
      searching = BothOf(searching, Opposite(shared ? runs_[i] : multi));
    }
    out->none = Opposite(EitherOf(out->multi_read, out->serial));
  }

  // Accesses of all stores below loop i of this store, each with its own level of that loop.
  template <typename F>
  void ForRecords(size_t i, F visit) const {
    const LoopRef& loop = store_.loops[i];
    for (const StoreInfo& store : program_.stores) {
      if (i >= store.loops.size() || store.loops[i] != loop) continue;
      for (const AccessInfo& access : store.accesses) visit(access, i);
    }
  }

  const LoopProgram& program_;
  const StoreInfo& store_;
  const Machine& machine_;
  size_t num_loops_;
  std::vector<PrimExpr> runs_;     // loop i has more than one trip
  std::vector<PrimExpr> extents_;  // float64
  std::vector<PrimExpr> outer_;    // product of the extents of loops before i
  std::vector<PrimExpr> inner_;    // product of the extents of loop i and those inside it
  std::array<double, kNumOps> ops_;
};

}  // namespace

Machine Machine::Of(const auto_scheduler::SearchTask& task) {
  const auto_scheduler::HardwareParams& limits = task->hardware_params;
  const Target& target = task->target;
  Machine out;
  out.num_cores = std::max(1, limits->num_cores);
  out.vector_bytes = limits->vector_unit_bytes;
  out.cache_line_bytes = limits->cache_line_bytes;
  // What every processor of the last decade has at least, for a target that was not probed.
  out.num_vector_registers = static_cast<int>(target->GetInt("num_vector_registers", 16));
  out.cache_bytes[0] = target->GetInt("l1_cache_bytes", 32 << 10);
  out.cache_bytes[1] = target->GetInt("l2_cache_bytes", 256 << 10);
  out.cache_bytes[2] = target->GetInt("l3_cache_bytes", 4 << 20);
  return out;
}

const std::vector<std::string>& FeatureNames() { return FeatureTable::Get().names; }

bool IsNumericFeature(size_t i) { return FeatureTable::Get().numeric[i]; }

PrimExpr CeilDivReal(const PrimExpr& extent, int64_t n) {
  if (n == 1) return ToReal(extent);
  return ToReal(floordiv(extent + (n - 1), n));
}

RegisterTile::RegisterTile(const StoreInfo& store)
    : vector_length_(IntImm(DataType::Int(32), 1)), unrolled_(RealConst(1)) {
  inside_.assign(store.loops.size() + 1, const_true());
  PrimExpr open = const_true();
  for (size_t i = store.loops.size(); i-- > 0;) {
    const LoopInfo& loop = *store.loops[i];
    bool written_out = loop.kind == ForKind::kVectorized || loop.kind == ForKind::kUnrolled;
    if (!written_out) open = BothOf(open, Opposite(IsMoreThanOne(loop.extent)));
    inside_[i] = open;
    if (loop.kind == ForKind::kVectorized && !vector_var_.defined()) {
      vector_length_ = loop.extent;
      vector_var_ = loop.var;
    } else if (written_out) {
      unrolled_ = unrolled_ * Choose(open, ToReal(loop.extent), RealConst(1));
    }
  }
}

PrimExpr RegisterTile::At(const std::vector<PrimExpr>& per_level) const {
  PrimExpr out = per_level.back();
  for (size_t i = per_level.size() - 1; i-- > 0;) out = Choose(inside_[i], per_level[i], out);
  return out;
}

std::map<std::string, double> ReferencePoint(const arith::VarContext& context) {
  std::map<std::string, double> out;
  for (const arith::SplitGroup& group : context->split_groups) {
    const int64_t* extent = as_const_int(group->extent_expr);
    TVM_CHECK(extent, ValueError) << "features: the extent " << group->extent_expr
                                  << " is not a number; extract features for one task instance";
    double part = std::pow(static_cast<double>(*extent), 1.0 / (group->vars.size() + 1.0));
    out[group->quotient->name_hint] = part;
    out[group->extent->name_hint] = static_cast<double>(*extent);
    for (const SizeVar& var : group->vars) out[var->name_hint] = part;
  }
  return out;
}

std::vector<double> EvaluateAt(const std::vector<PrimExpr>& exprs,
                               const std::map<std::string, double>& point) {
  TapeBuilder builder;
  ExprToTape convert(&builder);
  for (const PrimExpr& e : exprs) builder.AddRoot(convert.Convert(e));
  const TapeData& tape = builder.tape();
  std::vector<double> values;
  for (const TapeVar& var : tape.vars) {
    auto it = point.find(var.name);
    TVM_CHECK(it != point.end(), ValueError) << "features: no value for " << var.name;
    values.push_back(it->second);
  }
  std::vector<double> out(exprs.size());
  if (!exprs.empty()) TapeProgram(tape)->Forward(values.data(), 1, out.data());
  return out;
}

ProgramFeatures ExtractFeatures(const LoopProgram& program, const Machine& machine,
                                const std::map<std::string, double>& reference,
                                const std::vector<std::vector<int>>* order) {
  ProgramFeatures out;
  // One row for each buffer that is stored to. Of several stores, initialisation and update, the
  // last is the one that does the work.
  std::vector<int> row_buffers;
  std::map<int, const StoreInfo*> last_store;
  for (const StoreInfo& store : program.stores) {
    if (!last_store.count(store.buffer)) row_buffers.push_back(store.buffer);
    last_store[store.buffer] = &store;
  }
  TVM_CHECK(!order || order->size() == row_buffers.size(), ValueError)
      << "features: the order of buffers is for " << order->size() << " stores, the program has "
      << row_buffers.size();
  for (size_t r = 0; r < row_buffers.size(); ++r) {
    const StoreInfo& store = *last_store[row_buffers[r]];
    StoreAnalyzer analyzer(program, store, machine);
    std::vector<PrimExpr> row;
    for (double count : analyzer.ops()) row.push_back(analyzer.trips() * RealConst(count));
    analyzer.Annotation([](const LoopInfo& l) { return l.kind == ForKind::kVectorized; }, &row);
    analyzer.Annotation([](const LoopInfo& l) { return l.kind == ForKind::kUnrolled; }, &row);
    analyzer.Annotation(
        [](const LoopInfo& l) { return l.kind == ForKind::kParallel || l.is_thread(); }, &row);
    row.push_back(RealConst(analyzer.OnGpu() ? 1 : 0));
    for (const char* tag : {"blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y",
                            "threadIdx.z", "vthread"}) {
      row.push_back(analyzer.ThreadLength(tag));
    }

    std::vector<StoreAnalyzer::BufferFeatures> buffers;
    std::vector<PrimExpr> traffic;
    for (const AccessInfo& access : store.accesses) {
      buffers.push_back(analyzer.OfBuffer(access));
      traffic.push_back(buffers.back().lines);
      traffic.push_back(buffers.back().bytes);
    }
    std::vector<size_t> slots;
    if (order) {
      for (int id : (*order)[r]) {
        for (size_t k = 0; k < store.accesses.size(); ++k) {
          if (store.accesses[k].buffer == id) slots.push_back(k);
        }
      }
    } else {
      std::vector<double> values = EvaluateAt(traffic, reference);
      slots.resize(store.accesses.size());
      std::iota(slots.begin(), slots.end(), size_t{0});
      std::stable_sort(slots.begin(), slots.end(), [&](size_t x, size_t y) {
        return std::make_pair(values[2 * x], values[2 * x + 1]) >
               std::make_pair(values[2 * y], values[2 * y + 1]);
      });
    }
    if (slots.size() > kMaxBuffers) slots.resize(kMaxBuffers);
    std::vector<int> used;
    for (size_t k : slots) {
      const AccessInfo& access = store.accesses[k];
      const StoreAnalyzer::BufferFeatures& f = buffers[k];
      used.push_back(access.buffer);
      for (AccessType type : {AccessType::kRead, AccessType::kWrite, AccessType::kReadWrite}) {
        row.push_back(RealConst(access.type == type ? 1 : 0));
      }
      for (const PrimExpr& e : {f.bytes, f.unique_bytes, f.lines, f.unique_lines}) row.push_back(e);
      for (const PrimExpr& cond : {f.multi_read, f.serial, f.none}) {
        row.push_back(If(cond, RealConst(1)));
      }
      for (const PrimExpr& e : {f.reuse_iters, f.reuse_bytes, f.reuse_count}) row.push_back(e);
      for (const PrimExpr& e : {f.bytes, f.unique_bytes, f.lines, f.unique_lines}) {
        // Data that is not used again counts double.
        PrimExpr count = max(f.reuse_count, RealConst(1));
        row.push_back(Choose(f.none, e * RealConst(2), div(e, count)));
      }
      row.push_back(f.stride);
    }
    row.resize(row.size() + 18 * (kMaxBuffers - slots.size()), RealConst(0));
    out.buffer_order.push_back(std::move(used));

    const RealizeInfo* realize = nullptr;
    for (const RealizeInfo& info : program.realizes) {
      if (info.buffer == store.buffer) realize = &info;
    }
    if (realize) {
      PrimExpr elements = RealConst(1), outside = RealConst(1);
      for (const PrimExpr& extent : realize->extents) elements = elements * ToReal(extent);
      for (const LoopRef& loop : realize->loops) outside = outside * ToReal(loop->extent);
      row.push_back(elements * RealConst(program.element_bytes(store.buffer)));
      row.push_back(elements * outside);
      row.push_back(outside);
      row.push_back(div(analyzer.trips(), outside));
    } else {
      for (int i = 0; i < 4; ++i) row.push_back(RealConst(0));
    }
    row.push_back(analyzer.trips());
    row.push_back(analyzer.NumLoops());
    row.push_back(ToReal(store.auto_unroll_max_step));
    analyzer.Processor(&row);
    ICHECK_EQ(row.size(), FeatureNames().size());
    out.rows.push_back(std::move(row));
    out.store_names.push_back(program.buffers[store.buffer]->name);
  }
  return out;
}

}  // namespace felix
}  // namespace tvm
