/*!
 * \file arith/iter_affine_map.cc
 */
#include <tvm/arith/iter_affine_map.h>
#include <tvm/expr/analysis.h>
#include <tvm/expr/op.h>
#include <tvm/expr/substitute.h>
#include <tvm/node/repr_printer.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

namespace tvm {
namespace arith {

using namespace tir;

TVM_REGISTER_NODE(IterMarkNode);
TVM_REGISTER_NODE(IterSplitExprNode);
TVM_REGISTER_NODE(IterSumExprNode);
TVM_REGISTER_NODE(IterMapResultNode);

void IterSumExprNode::Init() { dtype = base.dtype(); }

namespace {

/*! \brief The indices are not of the form; the text says which part is not. */
struct NotAffine {
  std::string reason;
};

/*! \brief `(marks[mark] // lower) % extent * scale`. */
struct Split {
  size_t mark;
  int64_t lower;
  int64_t extent;
  int64_t scale;

  bool SameDigits(const Split& other) const {
    return mark == other.mark && lower == other.lower && extent == other.extent;
  }
};

int64_t Product(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) throw NotAffine{"a number is too large"};
  return product;
}

struct Sum {
  std::vector<Split> splits;
  PrimExpr base;
};

class Detector {
 public:
  /*! \brief `trivial`: whether loops of one trip are digits as well. */
  Detector(const Map<Var, Range>& iters, bool trivial) : trivial_(trivial) {
    for (const auto& [var, range] : iters) {
      const int64_t* extent = as_const_int(range->extent);
      TVM_CHECK(extent != nullptr && *extent >= 1, ValueError)
          << "DetectIterMap: the extent of " << var << " must be a positive constant, got "
          << range->extent;
      PostOrderVisit(range->min, [&](const ObjectRef& node) {
        const auto* other = node.as<VarNode>();
        TVM_CHECK(other == nullptr || iters.count(GetRef<Var>(other)) == 0, ValueError)
            << "DetectIterMap: the range of " << var << " must not depend on other iterators, got "
            << range;
      });
      vars_[var.get()] = marks_.size();
      PrimExpr from_zero = is_zero(range->min) ? PrimExpr(var) : var - range->min;
      marks_.push_back({IterMark(from_zero, *extent), {}, range->min});
    }
    num_loops_ = marks_.size();
  }

  Sum Parse(const PrimExpr& e) {
    if (!e.dtype().is_scalar() || !(e.dtype().is_int() || e.dtype().is_uint())) {
      throw NotAffine{Text("not a scalar integer", e)};
    }
    if (const auto* var = e.as<VarNode>()) {
      auto it = vars_.find(var);
      if (it == vars_.end()) return {{}, e};
      const Mark& mark = marks_[it->second];
      // A loop of one trip has no digits.
      if (mark.node->extent == 1 && !trivial_) return {{}, mark.min};
      return {{{it->second, 1, mark.node->extent, 1}}, mark.min};
    }
    if (!UsesLoops(e)) return {{}, e};
    if (const auto* op = e.as<AddNode>()) return Add(Parse(op->a), Parse(op->b), 1, e);
    if (const auto* op = e.as<SubNode>()) return Add(Parse(op->a), Parse(op->b), -1, e);
    if (const auto* op = e.as<MulNode>()) {
      bool left = as_const_int(op->a) != nullptr;
      const int64_t* factor = as_const_int(left ? op->a : op->b);
      if (factor == nullptr) throw NotAffine{Text("a product by something not constant", e)};
      Sum sum = Parse(left ? op->b : op->a);
      for (Split& split : sum.splits) split.scale = Product(split.scale, *factor);
      if (*factor == 0) sum.splits.clear();
      sum.base = analyzer_.Simplify(sum.base * make_const(sum.base.dtype(), *factor));
      return sum;
    }
    const auto* div = e.as<FloorDivNode>();
    const auto* mod = e.as<FloorModNode>();
    if (div == nullptr && mod == nullptr) throw NotAffine{Text("not linear in the iterators", e)};
    const int64_t* divisor = as_const_int(div ? div->b : mod->b);
    if (divisor == nullptr || *divisor <= 0) {
      throw NotAffine{Text("the divisor is not a positive constant", e)};
    }
    return Cut(Fuse(Parse(div ? div->a : mod->a), e), *divisor, div != nullptr, e);
  }

  /*! \brief The same sum as one split at most, whose source is a fused iterator where needed. */
  Sum Fuse(Sum sum, const PrimExpr& e) {
    if (sum.splits.size() <= 1) return sum;
    std::sort(sum.splits.begin(), sum.splits.end(), [](const Split& a, const Split& b) {
      return a.scale != b.scale ? a.scale < b.scale : a.extent < b.extent;
    });
    const int64_t unit = sum.splits[0].scale;
    int64_t next = unit;
    for (const Split& split : sum.splits) {
      if (unit <= 0 || split.scale != next) {
        throw NotAffine{Text("the iterators do not follow each other without gaps", e)};
      }
      next = Product(next, split.extent);
    }
    const int64_t extent = next / unit;
    // The same digits fused twice are one iterator.
    std::vector<std::array<int64_t, 3>> key;
    for (const Split& split : sum.splits) {
      key.push_back({static_cast<int64_t>(split.mark), split.lower, split.extent});
    }
    auto [it, added] = fused_.try_emplace(key, marks_.size());
    if (added) {
      std::vector<Split> digits = sum.splits;
      for (Split& split : digits) split.scale /= unit;
      PrimExpr zero = make_const(e.dtype(), 0);
      Array<IterSplitExpr> args = ToNodes(digits, e.dtype());
      marks_.push_back({IterMark(IterSumExpr(args, zero), extent), digits, zero});
    }
    return {{{it->second, 1, marks_[it->second].node->extent, unit}}, sum.base};
  }

  /*! \brief Only iterations with `e < limit` run, which makes an iterator that much shorter. */
  void Shorten(const PrimExpr& e, int64_t limit) {
    Sum sum = Parse(e);
    const int64_t* base = as_const_int(sum.base);
    sum = Fuse(sum, e);
    bool whole = base != nullptr && sum.splits.size() == 1 && sum.splits[0].scale == 1 &&
                 sum.splits[0].lower == 1 &&
                 sum.splits[0].extent == marks_[sum.splits[0].mark].node->extent;
    if (!whole) throw NotAffine{Text("the predicate bounds more than one iterator", e)};
    Mark& mark = marks_[sum.splits[0].mark];
    const int64_t extent = limit - *base;
    if (extent < 1) throw NotAffine{Text("no iteration runs, by the bound of", e)};
    if (extent >= mark.node->extent) return;
    mark.node = IterMark(mark.node->source, extent);
    if (sum.splits[0].mark >= num_loops_) shortened_.push_back(sum.splits[0].mark);
  }

  /*! \brief Check that indices take the iterators that were shortened as a whole. */
  void CheckShortened(const std::vector<Sum>& sums) const {
    std::vector<bool> taken(marks_.size());
    for (const Sum& sum : sums) {
      for (const Split& split : sum.splits) taken[split.mark] = true;
    }
    // Fused iterators were made after those they consist of.
    for (size_t id = marks_.size(); id-- > 0;) {
      if (!taken[id]) continue;
      for (const Split& digit : marks_[id].digits) taken[digit.mark] = true;
    }
    for (size_t id : shortened_) {
      if (taken[id]) continue;
      throw NotAffine{"the predicate bounds " + AsRepr(marks_[id].node->source) +
                      ", which no index takes as a whole"};
    }
  }

  IterSumExpr ToNode(const Sum& sum) const {
    return IterSumExpr(ToNodes(sum.splits, sum.base.dtype()), sum.base);
  }

  /*! \brief Check the digits that the indices take of every iterator. */
  void CheckDigits(const std::vector<Sum>& sums, bool all_used) const {
    std::vector<std::vector<Split>> taken(marks_.size());
    for (const Sum& sum : sums) {
      for (const Split& split : sum.splits) taken[split.mark].push_back(split);
    }
    // Fused iterators were made after those they consist of.
    for (size_t id = marks_.size(); id-- > 0;) {
      std::vector<Split>& splits = taken[id];
      const Mark& mark = marks_[id];
      if (splits.empty() && (id >= num_loops_ || !all_used || mark.node->extent == 1)) continue;
      std::sort(splits.begin(), splits.end(),
                [](const Split& a, const Split& b) { return a.lower < b.lower; });
      int64_t reached = 1;
      for (const Split& split : splits) {
        if (split.lower < reached) {
          throw NotAffine{"digits of " + AsRepr(mark.node->source) + " are used twice"};
        }
        if (split.lower > reached && all_used) break;
        reached = split.lower * split.extent;
      }
      if (all_used && reached != mark.node->extent) {
        throw NotAffine{"some digits of " + AsRepr(mark.node->source) + " are not used"};
      }
      for (const Split& digit : mark.digits) taken[digit.mark].push_back(digit);
    }
  }

 private:
  struct Mark {
    IterMark node;
    /*! \brief What a fused iterator consists of; empty for a loop. */
    std::vector<Split> digits;
    PrimExpr min;
  };

  static std::string Text(const char* reason, const PrimExpr& e) {
    return std::string(reason) + ": " + AsRepr(e);
  }

  bool UsesLoops(const PrimExpr& e) const {
    bool uses = false;
    PostOrderVisit(e, [&](const ObjectRef& node) {
      if (const auto* var = node.as<VarNode>()) uses = uses || vars_.count(var) != 0;
    });
    return uses;
  }

  Sum Add(Sum a, const Sum& b, int64_t sign, const PrimExpr& e) {
    for (Split split : b.splits) {
      split.scale = Product(split.scale, sign);
      auto same = std::find_if(a.splits.begin(), a.splits.end(),
                               [&](const Split& s) { return s.SameDigits(split); });
      if (same == a.splits.end()) {
        a.splits.push_back(split);
      } else {
        if (__builtin_add_overflow(same->scale, split.scale, &same->scale)) {
          throw NotAffine{Text("a number is too large", e)};
        }
        if (same->scale == 0) a.splits.erase(same);
      }
    }
    a.base = analyzer_.Simplify(sign > 0 ? a.base + b.base : a.base - b.base);
    return a;
  }

  Sum Cut(Sum sum, int64_t divisor, bool quotient, const PrimExpr& e) {
    PrimExpr by = make_const(sum.base.dtype(), divisor);
    PrimExpr zero = make_const(sum.base.dtype(), 0);
    if (!analyzer_.CanProveEqual(floormod(sum.base, by), zero)) {
      throw NotAffine{Text("the divisor does not divide the offset", e)};
    }
    PrimExpr base = quotient ? analyzer_.Simplify(floordiv(sum.base, by)) : zero;
    if (sum.splits.empty()) return {{}, base};
    Split split = sum.splits[0];
    if (split.scale % divisor == 0) {
      if (!quotient) return {{}, base};
      split.scale /= divisor;
      return {{split}, base};
    }
    if (split.scale < 0 || divisor % split.scale != 0) {
      throw NotAffine{Text("the divisor cuts between digits", e)};
    }
    // (x * scale) // d is x // (d / scale), and (x * scale) % d is (x % (d / scale)) * scale.
    const int64_t cut = divisor / split.scale;
    if (cut >= split.extent) {
      return quotient ? Sum{{}, base} : Sum{{split}, base};
    }
    if (split.extent % cut != 0) throw NotAffine{Text("the divisor leaves a partial tile", e)};
    if (quotient) return {{{split.mark, split.lower * cut, split.extent / cut, 1}}, base};
    return {{{split.mark, split.lower, cut, split.scale}}, base};
  }

  Array<IterSplitExpr> ToNodes(const std::vector<Split>& splits, DataType dtype) const {
    Array<IterSplitExpr> nodes;
    for (const Split& split : splits) {
      nodes.push_back(
          IterSplitExpr(marks_[split.mark].node, split.lower, split.extent, split.scale, dtype));
    }
    return nodes;
  }

  Analyzer analyzer_;
  bool trivial_;
  /*! \brief Fused iterators of which a predicate leaves out the end. */
  std::vector<size_t> shortened_;
  // Loops in the order given, then fused iterators as they are met.
  std::vector<Mark> marks_;
  size_t num_loops_ = 0;
  std::unordered_map<const VarNode*, size_t> vars_;
  std::map<std::vector<std::array<int64_t, 3>>, size_t> fused_;
};

PrimExpr SplitToExpr(const IterSplitExprNode* split) {
  PrimExpr value = NormalizeIterMapToExpr(split->source->source);
  DataType dtype = split->dtype;
  // The highest digit needs no remainder.
  bool highest = split->lower_factor * split->extent == split->source->extent;
  value = floordiv(value, make_const(dtype, split->lower_factor));
  if (!highest) value = floormod(value, make_const(dtype, split->extent));
  return value * make_const(dtype, split->scale);
}

}  // namespace

namespace {

/*! \brief `sums[i] < limits[i]` holds for the iterations that run. */
IterMapResult Detect(const Array<PrimExpr>& indices, const Map<Var, Range>& iters,
                     IterMapLevel level, bool trivial, const Array<PrimExpr>& bounded,
                     const Array<Integer>& limits) {
  Array<IterSumExpr> sums_found;
  Array<String> errors;
  try {
    Detector detector(iters, trivial);
    for (size_t i = 0; i < bounded.size(); ++i) detector.Shorten(bounded[i], limits[i]->value);
    std::vector<Sum> sums;
    for (const PrimExpr& index : indices) {
      sums.push_back(detector.Fuse(detector.Parse(index), index));
    }
    detector.CheckShortened(sums);
    if (level != IterMapLevel::kNoCheck) {
      detector.CheckDigits(sums, level == IterMapLevel::kBijective);
    }
    for (const Sum& sum : sums) sums_found.push_back(detector.ToNode(sum));
  } catch (const NotAffine& error) {
    errors.push_back(error.reason);
  }
  return IterMapResult(sums_found, errors);
}

}  // namespace

IterMapResult DetectIterMap(const Array<PrimExpr>& indices, const Map<Var, Range>& iters,
                            IterMapLevel level) {
  return Detect(indices, iters, level, /*trivial=*/false, {}, {});
}

PrimExpr NormalizeIterMapToExpr(const PrimExpr& expr) {
  if (const auto* split = expr.as<IterSplitExprNode>()) return SplitToExpr(split);
  const auto* sum = expr.as<IterSumExprNode>();
  if (sum == nullptr) return expr;
  PrimExpr total = sum->base;
  for (const IterSplitExpr& split : sum->args) total = total + SplitToExpr(split.get());
  return total;
}

TVM_REGISTER_REPR(IterSplitExprNode, [](const IterSplitExprNode* node, ReprPrinter* p) {
  p->Print(SplitToExpr(node));
});

TVM_REGISTER_REPR(IterSumExprNode, [](const IterSumExprNode* node, ReprPrinter* p) {
  p->Print(NormalizeIterMapToExpr(GetRef<PrimExpr>(node)));
});

TVM_REGISTER_GLOBAL("arith.DetectIterMap")
    .set_body_typed([](Array<PrimExpr> indices, Map<Var, Range> iters, int level, bool trivial,
                       Array<PrimExpr> bounded, Array<Integer> limits) {
      TVM_CHECK(level == 0 || level == 1 || level == 3, ValueError)
          << "detect_iter_map: level must be NoCheck (0), Surjective (1) or Bijective (3), got "
          << level;
      TVM_CHECK(bounded.size() == limits.size(), ValueError)
          << "detect_iter_map: " << bounded.size() << " sums have " << limits.size() << " limits";
      return Detect(indices, iters, static_cast<IterMapLevel>(level), trivial, bounded, limits);
    });

TVM_REGISTER_GLOBAL("arith.NormalizeIterMapToExpr").set_body_typed([](PrimExpr expr) {
  return NormalizeIterMapToExpr(expr);
});

}  // namespace arith
}  // namespace tvm
