/*!
 * \file arith/iter_map_inverse.cc
 * \brief Undoing maps of iterators, and padding iterators so that there is something to undo.
 */
#include <tvm/arith/iter_map_inverse.h>
#include <tvm/expr/analysis.h>
#include <tvm/expr/op.h>
#include <tvm/expr/substitute.h>
#include <tvm/runtime/registry.h>

#include <numeric>
#include <optional>
#include <unordered_map>

namespace tvm {
namespace arith {

using namespace tir;

namespace {

/*! \brief Collects, from the outermost fused iterator to the loops, what their digits give. */
class Inverter {
 public:
  Map<Var, PrimExpr> Run(const Array<IterSumExpr>& sums, const Array<PrimExpr>& outputs) {
    for (size_t i = 0; i < sums.size(); ++i) {
      const IterSumExpr& sum = sums[static_cast<int64_t>(i)];
      if (sum->args.empty()) continue;
      TVM_CHECK(sum->args.size() == 1, ValueError)
          << "InverseAffineIterMap: an index is one fused iterator, got " << sum;
      Give(sum->args[0], outputs[static_cast<int64_t>(i)] - sum->base);
    }
    // Digits of an iterator may come from several sums, so each waits until all are in.
    for (const Array<IterSplitExpr>& level : Order(sums)) {
      for (const IterSplitExpr& split : level) Expand(split->source);
    }
    return found_;
  }

 private:
  static PrimExpr Scaled(const PrimExpr& value, const PrimExpr& factor) {
    return is_one(factor) ? value : value * factor;
  }

  /*! \brief Note that the digits of a split are `value`. */
  void Give(const IterSplitExpr& split, PrimExpr value) {
    if (!is_one(split->scale)) value = floordiv(value, split->scale);
    value = Scaled(value, split->lower_factor);
    PrimExpr& total = values_[split->source.get()];
    total = total.defined() ? total + value : value;
  }

  /*! \brief Marks by depth: a fused one before all that it consists of. */
  std::vector<Array<IterSplitExpr>> Order(const Array<IterSumExpr>& sums) {
    std::vector<Array<IterSplitExpr>> levels;
    Array<IterSplitExpr> level;
    for (const IterSumExpr& sum : sums) {
      for (const IterSplitExpr& split : sum->args) level.push_back(split);
    }
    while (!level.empty()) {
      levels.push_back(level);
      Array<IterSplitExpr> next;
      for (const IterSplitExpr& split : level) {
        if (const auto* fused = split->source->source.as<IterSumExprNode>()) {
          for (const IterSplitExpr& part : fused->args) next.push_back(part);
        }
      }
      level = next;
    }
    // What occurs again further down belongs there.
    std::unordered_map<const IterMarkNode*, size_t> last;
    for (size_t i = 0; i < levels.size(); ++i) {
      for (const IterSplitExpr& split : levels[i]) last[split->source.get()] = i;
    }
    std::vector<Array<IterSplitExpr>> order(levels.size());
    for (size_t i = 0; i < levels.size(); ++i) {
      for (const IterSplitExpr& split : levels[i]) {
        if (last[split->source.get()] == i) order[i].push_back(split);
      }
    }
    return order;
  }

  void Expand(const IterMark& mark) {
    auto it = values_.find(mark.get());
    if (it == values_.end()) return;
    PrimExpr value = it->second;
    values_.erase(it);
    if (const auto* fused = mark->source.as<IterSumExprNode>()) {
      // A lengthened iterator begins before the one it stands for.
      if (!is_zero(fused->base)) value = value - fused->base;
      for (const IterSplitExpr& split : fused->args) {
        PrimExpr digit = value;
        if (!is_one(split->scale)) digit = floordiv(digit, split->scale);
        // The highest digit needs no remainder, nor does an iterator that was lengthened.
        bool highest = fused->args.size() == 1 ||
                       analyzer_.CanProveEqual(split->scale * split->extent, mark->extent);
        if (!highest) digit = floormod(digit, split->extent);
        digit = Scaled(digit, split->lower_factor);
        PrimExpr& total = values_[split->source.get()];
        total = total.defined() ? total + digit : digit;
      }
      return;
    }
    PrimExpr source = mark->source;
    if (const auto* shifted = source.as<SubNode>()) {
      value = value + shifted->b;
      source = shifted->a;
    }
    found_.Set(Downcast<Var>(source), value);
  }

  Analyzer analyzer_;
  std::unordered_map<const IterMarkNode*, PrimExpr> values_;
  Map<Var, PrimExpr> found_;
};

/*! \brief `((var + offset) // lower) % ...`, as far as digits of one iterator go. */
struct Digits {
  const VarNode* var;
  int64_t lower;
  int64_t offset;
};

class DivisorCollector {
 public:
  explicit DivisorCollector(const Map<Var, Range>& iters) : iters_(iters) {}

  struct Need {
    /*! \brief What the extent has to be a multiple of. */
    int64_t multiple = 1;
    std::optional<int64_t> offset;
    bool mixed = false;
  };
  std::unordered_map<const VarNode*, Need> needs;

  std::optional<Digits> Visit(const PrimExpr& e) {
    if (const auto* var = e.as<VarNode>()) {
      if (!iters_.count(GetRef<Var>(var))) return std::nullopt;
      return Digits{var, 1, 0};
    }
    if (const auto* op = e.as<AddNode>()) return Sum(op->a, op->b, 1);
    if (const auto* op = e.as<SubNode>()) return Sum(op->a, op->b, -1);
    if (const auto* op = e.as<MulNode>()) {
      Visit(op->a);
      Visit(op->b);
      return std::nullopt;
    }
    const auto* div = e.as<FloorDivNode>();
    const auto* mod = e.as<FloorModNode>();
    if (div == nullptr && mod == nullptr) return std::nullopt;
    std::optional<Digits> digits = Visit(div ? div->a : mod->a);
    const int64_t* divisor = as_const_int(div ? div->b : mod->b);
    int64_t multiple;
    if (!digits || divisor == nullptr || *divisor < 1 ||
        __builtin_mul_overflow(digits->lower, *divisor, &multiple) || multiple > (1 << 30)) {
      return std::nullopt;
    }
    Need& need = needs[digits->var];
    need.multiple = std::lcm(need.multiple, multiple);
    need.mixed |= need.offset.value_or(digits->offset) != digits->offset;
    need.mixed |= need.multiple > (1 << 30);
    need.offset = digits->offset;
    if (div) digits->lower = multiple;
    return digits;
  }

 private:
  std::optional<Digits> Sum(const PrimExpr& a, const PrimExpr& b, int64_t sign) {
    std::optional<Digits> left = Visit(a), right = Visit(b);
    const int64_t *first = as_const_int(a), *second = as_const_int(b);
    if (left && left->lower == 1 && second != nullptr) {
      left->offset += sign * *second;
      return left;
    }
    if (right && right->lower == 1 && first != nullptr && sign > 0) {
      right->offset += *first;
      return right;
    }
    return std::nullopt;
  }

  const Map<Var, Range>& iters_;
};

}  // namespace

Map<Var, PrimExpr> InverseAffineIterMap(const Array<IterSumExpr>& iter_map,
                                        const Array<PrimExpr>& outputs) {
  TVM_CHECK(iter_map.size() == outputs.size(), ValueError)
      << "InverseAffineIterMap: " << iter_map.size() << " indices and " << outputs.size()
      << " outputs; give one output for each index";
  return Inverter().Run(iter_map, outputs);
}

PaddedIters PadIters(const Array<PrimExpr>& indices, const Map<Var, Range>& iters,
                     Analyzer* analyzer) {
  DivisorCollector collector(iters);
  for (const PrimExpr& index : indices) collector.Visit(index);
  PaddedIters padded;
  std::unordered_map<const VarNode*, PrimExpr> moved;
  for (const auto& [var, range] : iters) {
    auto need = collector.needs.find(var.get());
    if (need == collector.needs.end() || need->second.mixed) {
      padded.ranges.Set(var, range);
      continue;
    }
    DataType dtype = var.dtype();
    const PrimExpr multiple = make_const(dtype, need->second.multiple);
    const PrimExpr offset = make_const(dtype, *need->second.offset);
    auto down = [&](const PrimExpr& value) {
      return analyzer->Simplify(floordiv(value, multiple) * multiple);
    };
    const PrimExpr first = analyzer->Simplify(range->min + offset);
    const PrimExpr last = analyzer->Simplify(first + range->extent);
    const PrimExpr begin = down(first);
    const PrimExpr end = down(last + multiple - make_const(dtype, 1));
    if (analyzer->CanProveEqual(begin, first) && analyzer->CanProveEqual(end, last)) {
      padded.ranges.Set(var, range);
      continue;
    }
    Var wide(var->name_hint, dtype);
    PrimExpr low = analyzer->Simplify(begin - offset);
    padded.ranges.Set(wide,
                      Range::FromMinExtent(make_const(dtype, 0), analyzer->Simplify(end - begin)));
    padded.pads.push_back({var, wide, low});
    moved[var.get()] = wide + low;
  }
  padded.indices = indices.Map([&](const PrimExpr& index) {
    return moved.empty() ? index : analyzer->Simplify(Substitute(index, moved));
  });
  return padded;
}

TVM_REGISTER_GLOBAL("arith.PadIters")
    .set_body_typed([](Array<PrimExpr> indices, Map<Var, Range> iters) {
      Analyzer analyzer;
      PaddedIters padded = PadIters(indices, iters, &analyzer);
      Array<ObjectRef> pads;
      for (const PaddedIters::Pad& pad : padded.pads) {
        pads.push_back(Array<PrimExpr>{pad.original, pad.padded, pad.begin});
      }
      Array<ObjectRef> parts{padded.indices, padded.ranges, pads};
      return parts;
    });
TVM_REGISTER_GLOBAL("arith.InverseAffineIterMap").set_body_typed(InverseAffineIterMap);

}  // namespace arith
}  // namespace tvm
