/*!
 * \file buffer_facts.cc
 * \brief How a store uses its buffers: how far it moves in them, and what it reuses.
 */
#include "buffer_facts.h"

#include <tvm/expr/op.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <map>
#include <utility>

namespace tvm {
namespace auto_scheduler {

using namespace tir;

namespace {

class BufferAnalyzer {
 public:
  explicit BufferAnalyzer(const StoreFacts& store)
      : store_(store), num_loops_(store.store.loops.size()) {}

  BufferFacts Of(const AccessInfo& access) const {
    BufferFacts out;
    out.access = &access;
    double width = store_.program.element_bytes(access.buffer);
    out.bytes = store_.trips() * RealConst(width);
    out.unique_bytes = access.touched[0] * RealConst(width);
    Stride(access, width, &out);
    Contiguity(access, width, &out);
    Reuse(access, &out);
    return out;
  }

 private:
  // Whether one index moves with a loop at all, whether it does in the first trip, and how far.
  struct Movement {
    PrimExpr moves, moves_at_once;  // bool
    PrimExpr step;                  // float64
  };

  const Movement& MovementOf(const PrimExpr& index, const PrimExpr& length, size_t i) const {
    auto [found, is_new] = movements_.try_emplace({index.get(), i});
    if (is_new) found->second = FindMovement(index, length, i);
    return found->second;
  }

  Movement FindMovement(const PrimExpr& index, const PrimExpr& length, size_t i) const {
    const LoopInfo& loop = *store_.store.loops[i];
    bool mentioned = false, is_read = false;
    PostOrderVisit(index, [&](const ObjectRef& node) {
      mentioned = mentioned || node.same_as(loop.var);
      is_read = is_read || node.as<BufferLoadNode>();
    });
    if (!mentioned) return {const_false(), const_false(), RealConst(0)};
    // An index that is read from memory can be anything, as IndexExtent has it, too: two places
    // drawn evenly from a dimension are a third of it apart in the mean.
    if (is_read) return {const_true(), const_true(), ToReal(length) * RealConst(1.0 / 3)};
    arith::Analyzer& analyzer = *store_.program.analyzer;
    Map<Var, PrimExpr> origin;
    for (const LoopRef& other : store_.store.loops) origin.Set(other->var, other->min);
    PrimExpr at_zero = analyzer.Simplify(Substitute(index, origin));
    origin.Set(loop.var, loop.min + 1);
    PrimExpr step = analyzer.Simplify(Substitute(index, origin) - at_zero);
    if (const int64_t* value = as_const_int(step)) {
      if (*value < 0) step = make_const(step.dtype(), -*value);
    } else if (!analyzer.CanProve(step >= 0)) {
      step = max(step, make_zero(step.dtype()) - step);
    }
    if (IsLinearIndex(index)) return {const_true(), const_true(), ToReal(step)};
    const PrimExpr at_once = analyzer.Simplify(step != make_zero(step.dtype()));
    // A remainder of equal steps stays what it is if they are multiples of its divisor.
    const auto* remainder = index.as<FloorModNode>();
    if (remainder != nullptr && as_const_int(remainder->b) && IsLinearIndex(remainder->a)) {
      return {at_once, at_once, ToReal(step)};
    }
    // One with a quotient or a remainder, of fused loops, moves if it takes several values.
    std::vector<LoopRef> alone{store_.store.loops[i]};
    return {IsMoreThanOne(analyzer.Simplify(IndexExtent(index, alone))), at_once, ToReal(step)};
  }

  // Whether any index of the access moves with loop i.
  PrimExpr Uses(const AccessInfo& access, size_t i) const {
    PrimExpr out = const_false();
    const Array<PrimExpr>& shape = store_.program.buffers[access.buffer]->shape;
    for (const Array<PrimExpr>& tuple : access.indices) {
      for (size_t d = 0; d < tuple.size(); ++d) {
        out = EitherOf(out, MovementOf(tuple[d], shape[d], i).moves);
      }
    }
    return out;
  }

  // Distance in elements between two trips of loop i: the least of all index tuples.
  PrimExpr StrideOf(const AccessInfo& access, size_t i) const {
    const Array<PrimExpr>& shape = store_.program.buffers[access.buffer]->shape;
    PrimExpr least;
    for (const Array<PrimExpr>& tuple : access.indices) {
      PrimExpr stride = RealConst(0), row = RealConst(1);
      std::vector<std::pair<Movement, PrimExpr>> dims;
      for (size_t d = tuple.size(); d-- > 0;) {
        dims.emplace_back(MovementOf(tuple[d], shape[d], i), row);
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

  void Stride(const AccessInfo& access, double width, BufferFacts* out) const {
    // From the innermost loop outwards: the first one that runs and moves the index.
    PrimExpr searching = const_true();
    PrimExpr stride = RealConst(0), skipped = RealConst(0), reported = RealConst(0);
    PrimExpr none_ran = const_true();
    for (size_t i = num_loops_; i-- > 0;) {
      PrimExpr uses = Uses(access, i);
      PrimExpr found = BothOf(searching, BothOf(store_.runs[i], uses));
      if (!is_zero(found)) {
        PrimExpr s = StrideOf(access, i);
        stride = stride + If(found, s);
        skipped = skipped + If(found, store_.inner[i + 1]);
        reported = reported + If(BothOf(found, none_ran), s);
      }
      searching = BothOf(searching, Opposite(BothOf(store_.runs[i], uses)));
      none_ran = BothOf(none_ran, Opposite(store_.runs[i]));
    }
    out->stride = reported;
    // All trips of the skipped loops stay on one element.
    skipped = Choose(searching, store_.outer.back(), skipped);
    PrimExpr part = min(RealConst(1), stride * RealConst(width / store_.machine.cache_line_bytes));
    out->lines = max(div(store_.outer.back(), max(skipped, RealConst(1))) * part, RealConst(1));
  }

  // Bytes of a contiguous run: the last dimensions as far as they are touched as a whole, times
  // what is touched of the one before them.
  void Contiguity(const AccessInfo& access, double width, BufferFacts* out) const {
    const Array<PrimExpr>& shape = store_.program.buffers[access.buffer]->shape;
    const std::vector<PrimExpr>& region = access.extents[0];
    arith::Analyzer& analyzer = *store_.program.analyzer;
    PrimExpr run = RealConst(width), searching = const_true();
    for (size_t d = region.size(); d-- > 0;) {
      run = Choose(searching, run * ToReal(region[d]), run);
      searching = BothOf(searching, analyzer.Simplify(region[d] == shape[d]));
    }
    PrimExpr line = min(run, RealConst(store_.machine.cache_line_bytes));
    out->unique_lines = max(div(out->unique_bytes, line), RealConst(1));
  }

  void Reuse(const AccessInfo& access, BufferFacts* out) const {
    PrimExpr searching = const_true();
    out->multi_read = const_false();
    out->serial = const_false();
    out->reuse_iters = out->reuse_bytes = out->reuse_count = RealConst(0);
    // Bytes of one body, then of the next loop inside that runs.
    PrimExpr bytes_inside = RealConst(0);
    for (const AccessInfo& other : store_.store.accesses) {
      bytes_inside = bytes_inside + RealConst(store_.program.element_bytes(other.buffer));
    }
    for (size_t i = num_loops_; i-- > 0;) {
      PrimExpr uses = Uses(access, i);
      PrimExpr here = BothOf(searching, store_.runs[i]);
      PrimExpr multi = BothOf(here, Opposite(uses));
      // Every store inside the loop that touches the buffer is one record.
      int records = 0;
      PrimExpr least_touched, bytes_here = RealConst(0);
      ForRecords(i, [&](const AccessInfo& record, size_t level) {
        bytes_here = bytes_here +
                     record.touched[level] * RealConst(store_.program.element_bytes(record.buffer));
        if (record.buffer != access.buffer) return;
        ++records;
        least_touched = least_touched.defined() ? min(least_touched, record.touched[level])
                                                : record.touched[level];
      });
      bool shared = records > 1;
      PrimExpr serial = shared ? BothOf(here, uses) : const_false();
      out->multi_read = EitherOf(out->multi_read, multi);
      out->serial = EitherOf(out->serial, serial);
      out->reuse_iters = out->reuse_iters + If(multi, store_.inner[i + 1]) +
                         If(serial, div(least_touched, store_.extents[i]));
      out->reuse_bytes = out->reuse_bytes + If(multi, bytes_inside) +
                         If(serial, div(bytes_here, store_.extents[i]));
      out->reuse_count =
          out->reuse_count + If(multi, store_.extents[i]) + If(serial, RealConst(records - 1));
      bytes_inside = Choose(store_.runs[i], bytes_here, bytes_inside);
      searching = BothOf(searching, Opposite(shared ? store_.runs[i] : multi));
    }
    out->none = Opposite(EitherOf(out->multi_read, out->serial));
  }

  // Accesses of all stores below loop i of this store, each with its own level of that loop: a copy
  // for all threads has fewer loops around it than what each thread computes.
  template <typename F>
  void ForRecords(size_t i, F visit) const {
    const LoopRef& loop = store_.store.loops[i];
    for (const StoreInfo& store : store_.program.stores) {
      const auto found = std::find(store.loops.begin(), store.loops.end(), loop);
      if (found == store.loops.end()) continue;
      const auto level = static_cast<size_t>(found - store.loops.begin());
      for (const AccessInfo& access : store.accesses) visit(access, level);
    }
  }

  const StoreFacts& store_;
  size_t num_loops_;
  // By index, which the access holds, and loop: several facts are made of each.
  mutable std::map<std::pair<const Object*, size_t>, Movement> movements_;
};

}  // namespace

BufferFacts FactsOf(const StoreFacts& store, const AccessInfo& access) {
  return BufferAnalyzer(store).Of(access);
}

}  // namespace auto_scheduler
}  // namespace tvm
