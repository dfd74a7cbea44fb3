/*!
 * \file arith/iter_affine_map.cc
 */
#include <tvm/arith/int_set.h>
#include <tvm/arith/iter_affine_map.h>
#include <tvm/expr/analysis.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/expr/substitute.h>
#include <tvm/node/repr_printer.h>
#include <tvm/node/structural_equal.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "iter_sizes.h"

namespace tvm {
namespace arith {

using namespace tir;

TVM_REGISTER_NODE(IterMarkNode);
TVM_REGISTER_NODE(IterSplitExprNode);
TVM_REGISTER_NODE(IterSumExprNode);
TVM_REGISTER_NODE(IterMapResultNode);

void IterSplitExprNode::Init() { dtype = source->source.dtype(); }
void IterSumExprNode::Init() { dtype = base.dtype(); }

namespace {

/*! \brief The indices are not of the form; the text says which part is not. */
struct NotAffine {
  std::string reason;
};

/*! \brief `(marks[mark] // lower) % extent * scale`. */
struct Split {
  size_t mark;
  PrimExpr lower;
  PrimExpr extent;
  PrimExpr scale;
};

struct Sum {
  std::vector<Split> splits;
  PrimExpr base;
};

struct Mark {
  IterMark node;
  /*! \brief What a fused or lengthened iterator consists of; empty for a loop. */
  std::vector<Split> digits;
  /*! \brief What has to be added where the iterator stands for its source. */
  PrimExpr min;
};

/*! \brief An iterator is lengthened to whole tiles; its first value then is `left`. */
struct Padding {
  PrimExpr factor;
  PrimExpr left;
  size_t padded;
};

std::string Text(const char* reason, const PrimExpr& e) {
  return std::string(reason) + ": " + AsRepr(e);
}

/*! \brief `less - more < limit`, of which the sum uses so many digits. */
struct Condition {
  PrimExpr less;
  PrimExpr more;
  int limit;
  size_t digits;
};

class Detector {
 public:
  /*!
   * \brief `trivial`: whether loops of one trip are digits as well; `bijective`: whether iterators
   * have to be made of whole tiles, and sums of digits that do not reach into each other.
   */
  Detector(const Map<Var, Range>& iters, bool trivial, bool bijective)
      : trivial_(trivial), bijective_(bijective) {
    for (const auto& [var, range] : iters) {
      const int64_t* extent = as_const_int(range->extent);
      TVM_CHECK(extent == nullptr || *extent >= 1, ValueError)
          << "DetectIterMap: the extent of " << var << " must be positive, got " << range->extent;
      for (const PrimExpr& part : {range->min, range->extent}) {
        PostOrderVisit(part, [&](const ObjectRef& node) {
          const auto* other = node.as<VarNode>();
          TVM_CHECK(other == nullptr || iters.count(GetRef<Var>(other)) == 0, ValueError)
              << "DetectIterMap: the range of " << var
              << " must not depend on other iterators, got " << range;
        });
      }
      sizes_.AtLeast(range->extent, 1);
      vars_[var.get()] = marks_.size();
      marks_.push_back(LoopMark(var, range->min, cast(var.dtype(), range->extent)));
    }
    num_loops_ = marks_.size();
  }

  /*! \brief Only iterations run for which `predicate` holds. */
  void Assume(const PrimExpr& predicate) {
    std::vector<Condition> conditions;
    Collect(predicate, &conditions);
    // Loops first, and sums before sums of them.
    std::stable_sort(conditions.begin(), conditions.end(),
                     [](const Condition& a, const Condition& b) { return a.digits < b.digits; });
    for (const Condition& condition : conditions) Shorten(condition);
  }

  /*! \brief The indices, after as many attempts as it takes to learn which iterators are longer. */
  std::vector<Sum> ParseAll(const Array<PrimExpr>& indices) {
    constexpr int kMostAttempts = 64;
    std::vector<Sum> sums;
    for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
      longer_ = false;
      sums.clear();
      for (const PrimExpr& index : indices) sums.push_back(Fuse(Parse(index), index));
      if (!longer_) return sums;
    }
    throw NotAffine{"the tiles of one iterator do not fit each other"};
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
      if (!trivial_ && sizes_.Is(mark.node->extent, 1)) return {{}, mark.min};
      PrimExpr one = make_const(e.dtype(), 1);
      return {{{it->second, one, mark.node->extent, one}}, mark.min};
    }
    if (!UsesLoops(e)) return {{}, e};
    if (const auto* op = e.as<AddNode>()) return Add(Parse(op->a), Parse(op->b), 1, e);
    if (const auto* op = e.as<SubNode>()) return Add(Parse(op->a), Parse(op->b), -1, e);
    if (const auto* op = e.as<MulNode>()) {
      const bool left = !UsesLoops(op->a);
      if (!left && UsesLoops(op->b))
        throw NotAffine{Text("a product by something not constant", e)};
      const PrimExpr& factor = left ? op->a : op->b;
      Sum sum = Parse(left ? op->b : op->a);
      for (Split& split : sum.splits) split.scale = Checked(sizes_.Product(split.scale, factor), e);
      if (sizes_.Is(factor, 0)) sum.splits.clear();
      sum.base = Simplify(sum.base * factor);
      return sum;
    }
    const auto* div = e.as<FloorDivNode>();
    const auto* mod = e.as<FloorModNode>();
    if (div == nullptr && mod == nullptr) throw NotAffine{Text("not linear in the iterators", e)};
    const PrimExpr& divisor = div ? div->b : mod->b;
    if (UsesLoops(divisor) || !sizes_.Positive(divisor)) {
      throw NotAffine{Text("the divisor is not a positive constant", e)};
    }
    return Cut(Fuse(Parse(div ? div->a : mod->a), e), divisor, div != nullptr, e);
  }

  /*! \brief The same sum as one split at most, whose source is a fused iterator where needed. */
  Sum Fuse(Sum sum, const PrimExpr& e) {
    if (sum.splits.empty() || (sum.splits.size() == 1 && limited_.empty())) return sum;
    const PrimExpr unit = Unit(sum.splits, e);
    PrimExpr next = unit;
    std::vector<Split> left = std::move(sum.splits), digits;
    while (!left.empty()) {
      std::optional<Split> digit = TakeLimited(&left, next, &sum.base);
      if (!digit) digit = TakeDigit(&left, next, unit, e);
      const bool follows = sizes_.Equal(digit->scale, next);
      // A digit that begins below the end of the others adds a step for each of its further values.
      const PrimExpr steps =
          follows ? digit->extent : Simplify(digit->extent - make_const(next.dtype(), 1));
      const PrimExpr reach = Checked(sizes_.Product(digit->scale, steps), e);
      next = follows ? reach : Checked(sizes_.Sum(next, reach), e);
      if (!digits.empty() && follows && Joins(digits.back(), *digit)) {
        Split& below = digits.back();
        below.extent = Simplify(below.extent * digit->extent);
      } else {
        digits.push_back(*digit);
      }
    }
    sum.splits.clear();
    if (digits.size() == 1) {
      sum.splits = digits;
      return sum;
    }
    for (Split& split : digits) split.scale = sizes_.Quotient(split.scale, unit);
    const size_t fused = Fused(digits, make_const(e.dtype(), 0), sizes_.Quotient(next, unit));
    sum.splits.push_back({fused, make_const(e.dtype(), 1), marks_[fused].node->extent, unit});
    return sum;
  }

  /*! \brief Check that indices take the iterators that were shortened as a whole. */
  void CheckShortened(const std::vector<Sum>& sums) const {
    const std::vector<bool> taken = Taken(sums);
    for (size_t id : limited_) {
      if (taken[id]) continue;
      throw NotAffine{"the predicate bounds " + AsRepr(marks_[id].node->source) +
                      ", which no index takes as a whole"};
    }
  }

  /*! \brief Check the digits that the indices take of every iterator. */
  void CheckDigits(const std::vector<Sum>& sums, bool all_used) {
    std::vector<std::vector<Split>> taken(marks_.size());
    for (const Sum& sum : sums) {
      for (const Split& split : sum.splits) taken[split.mark].push_back(split);
    }
    // Fused iterators were made after those they consist of.
    for (size_t id = marks_.size(); id-- > 0;) {
      std::vector<Split> splits = std::move(taken[id]);
      const IterMark& mark = marks_[id].node;
      if (splits.empty() && (id >= num_loops_ || !all_used || sizes_.Is(mark->extent, 1))) continue;
      PrimExpr reached = make_const(mark->source.dtype(), 1);
      while (!splits.empty()) {
        auto next = NextDigit(splits, reached);
        if (next == splits.end()) {
          throw NotAffine{"digits of " + AsRepr(mark->source) + " are used twice"};
        }
        if (all_used && !sizes_.Equal(next->lower, reached)) break;
        reached = Simplify(next->lower * next->extent);
        splits.erase(next);
      }
      if (all_used && !(splits.empty() && sizes_.Equal(reached, mark->extent))) {
        throw NotAffine{"some digits of " + AsRepr(mark->source) + " are not used"};
      }
      for (const Split& digit : marks_[id].digits) taken[digit.mark].push_back(digit);
    }
  }

  /*! \brief Where iterators that the indices take are longer than what runs. */
  PrimExpr PaddingPredicate(const std::vector<Sum>& sums) {
    const std::vector<bool> taken = Taken(sums);
    PrimExpr outside = const_false();
    for (const auto& [id, padding] : paddings_) {
      if (!taken[padding.padded]) continue;
      const Mark& mark = marks_[padding.padded];
      const PrimExpr& factor = padding.factor;
      // In parts by the tile, which indices take apart as well.
      PrimExpr value = NormalizeIterMapToExpr(mark.node->source);
      PrimExpr tile = floordiv(value, factor), inside = floormod(value, factor);
      const PrimExpr end = Simplify(padding.left + marks_[id].node->extent);
      if (!sizes_.Is(padding.left, 0)) {
        outside = outside || (tile == make_const(value.dtype(), 0) && inside < padding.left);
      }
      if (!sizes_.Divides(factor, end)) {
        outside = outside || (tile == floordiv(end, factor) && inside >= floormod(end, factor));
      }
    }
    return Simplify(outside);
  }

  IterSumExpr ToNode(const Sum& sum) const { return IterSumExpr(ToNodes(sum.splits), sum.base); }

  /*! \brief An index as a sum of digits that are not fused; parts that are not affine are opaque.
   */
  Sum ParseLoose(const PrimExpr& e) {
    try {
      return Parse(e);
    } catch (const NotAffine&) {
      if (const auto* op = e.as<AddNode>()) return Add(ParseLoose(op->a), ParseLoose(op->b), 1, e);
      if (const auto* op = e.as<SubNode>()) return Add(ParseLoose(op->a), ParseLoose(op->b), -1, e);
      if (const auto* op = e.as<MulNode>(); op != nullptr && !UsesLoops(op->b)) {
        Sum sum = ParseLoose(op->a);
        for (Split& split : sum.splits)
          split.scale = Checked(sizes_.Product(split.scale, op->b), e);
        sum.base = Simplify(sum.base * op->b);
        return sum;
      }
      return Opaque(e);
    }
  }

  /*! \brief Sort splits by scale, the largest first. */
  void SortByScale(std::vector<Split>* splits) {
    std::stable_sort(splits->begin(), splits->end(), [&](const Split& a, const Split& b) {
      const int64_t *left = as_const_int(a.scale), *right = as_const_int(b.scale);
      if (left && right) return std::abs(*left) > std::abs(*right);
      // Products of sizes are taken to be larger than numbers, and than their factors.
      if (left || right) return right != nullptr;
      return !sizes_.Equal(a.scale, b.scale) && sizes_.Divides(b.scale, a.scale);
    });
  }

  Analyzer* analyzer() { return &sizes_.analyzer; }

 private:
  static Mark LoopMark(const Var& var, const PrimExpr& min, const PrimExpr& extent) {
    PrimExpr from_zero = is_zero(min) ? PrimExpr(var) : var - min;
    return {IterMark(from_zero, extent), {}, min};
  }

  static PrimExpr Checked(const std::optional<PrimExpr>& value, const PrimExpr& e) {
    if (!value) throw NotAffine{Text("a number is too large", e)};
    return *value;
  }

  PrimExpr Simplify(const PrimExpr& e) { return sizes_.analyzer.Simplify(e); }

  bool UsesLoops(const PrimExpr& e) const {
    bool uses = false;
    PostOrderVisit(e, [&](const ObjectRef& node) {
      if (const auto* var = node.as<VarNode>()) uses = uses || vars_.count(var) != 0;
    });
    return uses;
  }

  bool SameDigits(const Split& a, const Split& b) {
    return a.mark == b.mark && sizes_.Equal(a.lower, b.lower) && sizes_.Equal(a.extent, b.extent);
  }

  /*! \brief Whether one digit goes on where another of its iterator ends, as in x//4*4 + x%4. */
  bool Joins(const Split& below, const Split& above) {
    return below.mark == above.mark &&
           sizes_.Equal(Simplify(below.lower * below.extent), above.lower);
  }

  Sum Add(Sum a, const Sum& b, int sign, const PrimExpr& e) {
    for (Split split : b.splits) {
      if (sign < 0) {
        split.scale = Checked(sizes_.Product(split.scale, make_const(split.scale.dtype(), -1)), e);
      }
      auto same = std::find_if(a.splits.begin(), a.splits.end(),
                               [&](const Split& s) { return SameDigits(s, split); });
      if (same == a.splits.end()) {
        a.splits.push_back(split);
      } else {
        same->scale = Checked(sizes_.Sum(same->scale, split.scale), e);
        if (sizes_.Is(same->scale, 0)) a.splits.erase(same);
      }
    }
    a.base = Simplify(sign > 0 ? a.base + b.base : a.base - b.base);
    return a;
  }

  /*! \brief The scale of the lowest digit: the least number, or what divides all others. */
  PrimExpr Unit(const std::vector<Split>& splits, const PrimExpr& e) {
    Optional<PrimExpr> unit;
    for (const Split& split : splits) {
      const int64_t* scale = as_const_int(split.scale);
      if (scale == nullptr) continue;
      if (!unit || *scale < *as_const_int(unit.value())) unit = split.scale;
    }
    for (size_t i = 0; !unit && i < splits.size(); ++i) {
      const PrimExpr& scale = splits[i].scale;
      if (sizes_.Positive(scale) && std::all_of(splits.begin(), splits.end(), [&](const Split& s) {
            return sizes_.Divides(scale, s.scale);
          })) {
        unit = scale;
      }
    }
    if (splits.size() == 1) return splits[0].scale;
    if (!unit || !sizes_.Positive(unit.value())) throw Gaps(e);
    return unit.value();
  }

  static NotAffine Gaps(const PrimExpr& e) {
    return NotAffine{Text("the iterators do not follow each other without gaps", e)};
  }

  /*!
   * \brief Take the digit of this scale out of a list; iterators of one value come first.
   *
   * If there is none, and digits may reach into each other as in the windows `h + kh`, it is the
   * one that begins next below: the sum takes all values in between as well.
   */
  Split TakeDigit(std::vector<Split>* splits, const PrimExpr& scale, const PrimExpr& unit,
                  const PrimExpr& e) {
    auto found = splits->end();
    for (auto it = splits->begin(); it != splits->end(); ++it) {
      if (!sizes_.Equal(it->scale, scale)) continue;
      if (found == splits->end() || sizes_.Is(it->extent, 1)) found = it;
    }
    if (found == splits->end() && !bijective_) found = NextBelow(splits, scale, unit);
    if (found == splits->end()) throw Gaps(e);
    Split digit = *found;
    splits->erase(found);
    return digit;
  }

  /*! \brief The digit of the largest scale below `end`, of those that step by whole units. */
  std::vector<Split>::iterator NextBelow(std::vector<Split>* splits, const PrimExpr& end,
                                         const PrimExpr& unit) {
    auto found = splits->end();
    const int64_t* limit = as_const_int(end);
    for (auto it = splits->begin(); limit != nullptr && it != splits->end(); ++it) {
      const int64_t* scale = as_const_int(it->scale);
      if (scale == nullptr || *scale < 1 || *scale > *limit) continue;
      if (!sizes_.Divides(unit, it->scale)) continue;
      if (found == splits->end() || *scale > *as_const_int(found->scale)) found = it;
    }
    return found;
  }

  /*! \brief Take the digits that begin at this scale and are an iterator that was shortened. */
  std::optional<Split> TakeLimited(std::vector<Split>* splits, const PrimExpr& scale,
                                   PrimExpr* base) {
    std::optional<size_t> longest;
    for (size_t id : limited_) {
      const std::vector<Split>& digits = marks_[id].digits;
      bool all = std::all_of(digits.begin(), digits.end(), [&](const Split& digit) {
        return std::any_of(splits->begin(), splits->end(), [&](const Split& split) {
          return SameDigits(split, digit) &&
                 sizes_.Equal(split.scale, Simplify(digit.scale * scale));
        });
      });
      if (all && (!longest || marks_[*longest].digits.size() < digits.size())) longest = id;
    }
    if (!longest) return std::nullopt;
    const Mark& mark = marks_[*longest];
    std::erase_if(*splits, [&](const Split& split) {
      return std::any_of(mark.digits.begin(), mark.digits.end(),
                         [&](const Split& digit) { return SameDigits(split, digit); });
    });
    *base = Simplify(*base + mark.min * scale);
    return Split{*longest, make_const(scale.dtype(), 1), mark.node->extent, scale};
  }

  /*! \brief The iterator made of these digits, from the lowest up; the same ones are one iterator.
   */
  size_t Fused(const std::vector<Split>& digits, const PrimExpr& shift, const PrimExpr& extent) {
    for (size_t id = num_loops_; id < marks_.size(); ++id) {
      const std::vector<Split>& other = marks_[id].digits;
      bool same = other.size() == digits.size() && sizes_.Equal(marks_[id].node->extent, extent) &&
                  sizes_.Equal(Downcast<IterSumExpr>(marks_[id].node->source)->base, shift);
      for (size_t i = 0; same && i < digits.size(); ++i) {
        same = SameDigits(other[i], digits[i]) && sizes_.Equal(other[i].scale, digits[i].scale);
      }
      if (same) return id;
    }
    std::vector<Split> outer_first(digits.rbegin(), digits.rend());
    IterSumExpr source(ToNodes(outer_first), shift);
    marks_.push_back({IterMark(source, extent), digits, make_const(extent.dtype(), 0)});
    return marks_.size() - 1;
  }

  Sum Cut(Sum sum, const PrimExpr& divisor, bool quotient, const PrimExpr& e) {
    if (sum.splits.empty()) {
      return {{}, Simplify(quotient ? floordiv(sum.base, divisor) : floormod(sum.base, divisor))};
    }
    Split split = sum.splits[0];
    if (sizes_.Divides(divisor, split.scale)) {
      PrimExpr rest = sizes_.Remainder(sum.base, divisor);
      if (!quotient) return {{}, rest};
      split.scale = sizes_.Quotient(split.scale, divisor);
      return {{split}, sizes_.Quotient(sum.base, divisor)};
    }
    if (!sizes_.Positive(split.scale) || !sizes_.Divides(split.scale, divisor)) {
      throw NotAffine{Text("the divisor cuts between digits", e)};
    }
    // With d = scale * cut, (x * scale + base) // d is (x + base // scale) // cut, and
    // (x * scale + base) % d is (x + base // scale) % cut * scale + base % scale.
    const PrimExpr cut = sizes_.Quotient(divisor, split.scale);
    PrimExpr offset = sizes_.Quotient(sum.base, split.scale);
    const PrimExpr below = sizes_.Remainder(sum.base, split.scale);
    const PrimExpr first = sizes_.Remainder(offset, cut);
    if (sizes_.NotAbove(first + split.extent, cut)) {
      if (quotient) return {{}, sizes_.Quotient(offset, cut)};
      return {{split}, Simplify(first * split.scale + below)};
    }
    Align(&split, &offset, cut, e);
    const PrimExpr base = sizes_.Quotient(offset, cut);
    const PrimExpr rest = Simplify(floordiv(split.extent, cut));
    const PrimExpr one = make_const(cut.dtype(), 1);
    if (quotient) {
      if (sizes_.Is(rest, 1)) return {{}, base};
      return {{{split.mark, Simplify(split.lower * cut), rest, one}}, base};
    }
    return {{{split.mark, split.lower, sizes_.Is(rest, 1) ? split.extent : cut, split.scale}},
            below};
  }

  /*!
   * \brief Make `split` one that consists of whole tiles of `cut` values, with an offset at a
   * multiple of it, by lengthening its iterator where that is needed.
   */
  void Align(Split* split, PrimExpr* offset, const PrimExpr& cut, const PrimExpr& e) {
    const bool aligned = sizes_.Divides(cut, *offset);
    const bool exact = aligned && sizes_.Divides(cut, split->extent);
    const PrimExpr whole = marks_[split->mark].node->extent;
    const bool top = sizes_.Equal(Simplify(split->lower * split->extent), whole);
    if (exact && !(top && paddings_.count(split->mark))) return;
    if (bijective_) {
      throw NotAffine{Text(
          aligned ? "the divisor leaves a partial tile" : "the divisor does not divide the offset",
          e)};
    }
    if (!top) {
      // Lower digits are an iterator of their own.
      const PrimExpr one = make_const(cut.dtype(), 1);
      std::vector<Split> digit{{split->mark, split->lower, split->extent, one}};
      const size_t own = Fused(digit, make_const(cut.dtype(), 0), split->extent);
      *split = {own, one, split->extent, split->scale};
    }
    // An iterator that is longer already becomes longer still.
    size_t id = split->mark;
    PrimExpr left = make_const(cut.dtype(), 0);
    for (const auto& [original, padding] : paddings_) {
      if (padding.padded != id) continue;
      id = original;
      left = padding.left;
      break;
    }
    const PrimExpr factor = Simplify(split->lower * cut);
    const PrimExpr begin = Simplify(left + *offset * split->lower);
    const PrimExpr first = sizes_.Remainder(begin, factor);
    auto known = paddings_.find(id);
    if (known == paddings_.end()) {
      known = paddings_.emplace(id, Padding{factor, first, 0}).first;
      Lengthen(id, &known->second);
    } else {
      Combine(id, &known->second, factor, first, e);
    }
    const Padding& padding = known->second;
    *offset = sizes_.Quotient(begin - padding.left, split->lower);
    const PrimExpr& extent = marks_[padding.padded].node->extent;
    *split = {padding.padded, split->lower, sizes_.Quotient(extent, split->lower), split->scale};
  }

  /*! \brief Ask for tiles of another size as well of an iterator that is lengthened. */
  void Combine(size_t id, Padding* padding, const PrimExpr& factor, const PrimExpr& first,
               const PrimExpr& e) {
    auto moved = [&](const PrimExpr& by, const PrimExpr& tile) {
      return sizes_.Is(sizes_.Remainder(by, tile), 0);
    };
    if (sizes_.Divides(factor, padding->factor) && moved(padding->left - first, factor)) return;
    std::optional<PrimExpr> common = sizes_.CommonMultiple(padding->factor, factor);
    PrimExpr left = padding->left;
    if (!moved(left - first, factor)) {
      // Within larger tiles the iterator may begin further in.
      if (!moved(first - left, padding->factor)) {
        throw NotAffine{Text("the divisor does not divide the offset", e)};
      }
      left = first;
    }
    padding->factor = Checked(common, e);
    padding->left = left;
    Lengthen(id, padding);
  }

  void Lengthen(size_t id, Padding* padding) {
    const PrimExpr& extent = marks_[id].node->extent;
    const PrimExpr one = make_const(extent.dtype(), 1);
    const PrimExpr longer = sizes_.RoundUp(Simplify(padding->left + extent), padding->factor);
    padding->padded = Fused({{id, one, extent, one}}, padding->left, longer);
    longer_ = true;
  }

  void Collect(const PrimExpr& e, std::vector<Condition>* conditions) {
    if (const auto* both = e.as<AndNode>()) {
      Collect(both->a, conditions);
      Collect(both->b, conditions);
      return;
    }
    if (const auto* call = e.as<CallNode>();
        call != nullptr && call->op.same_as(builtin::likely())) {
      return Collect(call->args[0], conditions);
    }
    if (is_const_int(e)) {
      if (is_zero(e)) throw NotAffine{Text("no iteration runs", e)};
      return;
    }
    if (!UsesLoops(e)) return;
    auto compare = [&](const PrimExpr& less, const PrimExpr& more, int limit) {
      const size_t digits = Add(Parse(less), Parse(more), -1, e).splits.size();
      if (digits == 0) throw NotAffine{Text("the predicate does not bound iterators", e)};
      conditions->push_back({less, more, limit, digits});
    };
    if (const auto* op = e.as<LTNode>()) return compare(op->a, op->b, 0);
    if (const auto* op = e.as<LENode>()) return compare(op->a, op->b, 1);
    if (const auto* op = e.as<GTNode>()) return compare(op->b, op->a, 0);
    if (const auto* op = e.as<GENode>()) return compare(op->b, op->a, 1);
    if (const auto* op = e.as<EQNode>()) {
      compare(op->a, op->b, 1);
      return compare(op->b, op->a, 1);
    }
    throw NotAffine{Text("the predicate is more than bounds of iterators and sums", e)};
  }

  void Shorten(const Condition& condition) {
    const PrimExpr expr = condition.less - condition.more;
    Sum sum = Add(Parse(condition.less), Parse(condition.more), -1, expr);
    // Conditions before this one may have left a single value.
    if (sum.splits.empty()) return;
    PrimExpr bound = Simplify(make_const(sum.base.dtype(), condition.limit) - sum.base);
    const bool falling = !sizes_.Positive(sum.splits[0].scale);
    if (falling) {
      // -x < bound is x >= 1 - bound.
      bound = Simplify(make_const(bound.dtype(), 1) - bound);
      for (Split& split : sum.splits) {
        split.scale = Checked(sizes_.Product(split.scale, make_const(bound.dtype(), -1)), expr);
      }
    }
    sum.base = make_const(bound.dtype(), 0);
    sum = Fuse(sum, expr);
    Split split = sum.splits[0];
    const PrimExpr one = make_const(split.scale.dtype(), 1);
    bool whole = sizes_.Positive(split.scale) && sizes_.Is(split.lower, 1) &&
                 sizes_.Equal(split.extent, marks_[split.mark].node->extent);
    if (!whole) throw NotAffine{Text("the predicate bounds more than one iterator", expr)};
    // x * scale >= bound is x >= ceil(bound / scale), and so for the end.
    bound = Simplify(floordiv(bound - sum.base + split.scale - one, split.scale));
    const PrimExpr extent = split.extent, zero = make_const(extent.dtype(), 0);
    PrimExpr low = falling && !sizes_.NotAbove(bound, zero) ? bound : zero;
    PrimExpr high =
        falling || sizes_.NotAbove(extent, bound) ? extent : Simplify(min(bound, extent));
    if (sizes_.NotAbove(high, low)) {
      throw NotAffine{Text("no iteration runs, by the bound of", expr)};
    }
    if (sizes_.Is(low, 0) && sizes_.Equal(high, extent)) return;
    Mark& mark = marks_[split.mark];
    const PrimExpr shorter = Simplify(high - low);
    if (split.mark < num_loops_) {
      const auto* moved = mark.node->source.as<SubNode>();
      Var var = Downcast<Var>(moved ? moved->a : mark.node->source);
      mark = LoopMark(var, Simplify(mark.min + low), shorter);
      return;
    }
    IterSumExpr source = Downcast<IterSumExpr>(mark.node->source);
    mark.node = IterMark(IterSumExpr(source->args, Simplify(source->base - low)), shorter);
    mark.min = Simplify(mark.min + low);
    if (std::find(limited_.begin(), limited_.end(), split.mark) == limited_.end()) {
      limited_.push_back(split.mark);
    }
  }

  std::vector<bool> Taken(const std::vector<Sum>& sums) const {
    std::vector<bool> taken(marks_.size());
    for (const Sum& sum : sums) {
      for (const Split& split : sum.splits) taken[split.mark] = true;
    }
    for (size_t id = marks_.size(); id-- > 0;) {
      if (!taken[id]) continue;
      for (const Split& digit : marks_[id].digits) taken[digit.mark] = true;
    }
    return taken;
  }

  /*! \brief The digit above `reached` that is known to be the next one. */
  std::vector<Split>::iterator NextDigit(std::vector<Split>& splits, const PrimExpr& reached) {
    auto next = splits.end();
    for (auto it = splits.begin(); it != splits.end(); ++it) {
      if (!sizes_.NotAbove(reached, it->lower)) return splits.end();
      bool lower = next == splits.end() || sizes_.NotAbove(it->lower, next->lower);
      if (lower && next != splits.end() && sizes_.Equal(it->lower, next->lower)) {
        lower = sizes_.NotAbove(it->extent, next->extent);
      }
      if (lower) next = it;
    }
    return next;
  }

  Array<IterSplitExpr> ToNodes(const std::vector<Split>& splits) const {
    Array<IterSplitExpr> nodes;
    for (const Split& split : splits) {
      nodes.push_back(
          IterSplitExpr(marks_[split.mark].node, split.lower, split.extent, split.scale));
    }
    return nodes;
  }

  Sum Opaque(const PrimExpr& e) {
    Map<Var, IntSet> sets;
    for (const auto& [var, id] : vars_) {
      const Mark& mark = marks_[id];
      sets.Set(GetRef<Var>(var),
               IntSet::FromRange(Range::FromMinExtent(mark.min, mark.node->extent)));
    }
    const IntSet values = sizes_.analyzer.int_set(e, sets);
    if (!values.HasLowerBound() || !values.HasUpperBound()) {
      throw NotAffine{Text("not linear in the iterators, and without bounds", e)};
    }
    const PrimExpr one = make_const(e.dtype(), 1), min = Simplify(values.min());
    const PrimExpr extent = Simplify(values.max() - min + one);
    PrimExpr from_zero = is_zero(min) ? e : e - min;
    for (size_t id = num_loops_; id < marks_.size(); ++id) {
      if (marks_[id].digits.empty() && StructuralEqual()(marks_[id].node->source, from_zero)) {
        return {{{id, one, extent, one}}, min};
      }
    }
    marks_.push_back({IterMark(from_zero, extent), {}, min});
    return {{{marks_.size() - 1, one, extent, one}}, min};
  }

  Sizes sizes_;
  bool trivial_;
  bool bijective_;
  /*! \brief Fused iterators of which a predicate leaves out a part. */
  std::vector<size_t> limited_;
  // Loops in the order given, then fused iterators as they are met.
  std::vector<Mark> marks_;
  size_t num_loops_ = 0;
  std::unordered_map<const VarNode*, size_t> vars_;
  /*! \brief By the iterators that they lengthen. */
  std::map<size_t, Padding> paddings_;
  /*! \brief Whether what was parsed may have taken an iterator before it was lengthened. */
  bool longer_ = false;
};

PrimExpr SplitToExpr(const IterSplitExprNode* split) {
  PrimExpr value = NormalizeIterMapToExpr(split->source->source);
  Analyzer analyzer;
  // The highest digit needs no remainder.
  bool highest = analyzer.CanProveEqual(split->lower_factor * split->extent, split->source->extent);
  if (!highest) value = floormod(value, split->lower_factor * split->extent);
  return floordiv(value, split->lower_factor) * split->scale;
}

}  // namespace

IterMapResult DetectIterMap(const Array<PrimExpr>& indices, const Map<Var, Range>& iters,
                            IterMapLevel level, const PrimExpr& predicate,
                            bool simplify_trivial_iterators) {
  Array<IterSumExpr> found;
  PrimExpr outside = const_false();
  try {
    const bool bijective = level == IterMapLevel::kBijective;
    Detector detector(iters, !simplify_trivial_iterators, bijective);
    detector.Assume(predicate);
    const std::vector<Sum> sums = detector.ParseAll(indices);
    if (level != IterMapLevel::kNoCheck) {
      detector.CheckShortened(sums);
      detector.CheckDigits(sums, bijective);
    }
    outside = detector.PaddingPredicate(sums);
    for (const Sum& sum : sums) found.push_back(detector.ToNode(sum));
  } catch (const NotAffine& error) {
    return IterMapResult(Array<IterSumExpr>(), Array<String>{error.reason}, const_false());
  }
  return IterMapResult(found, Array<String>(), outside);
}

IterSumExpr NormalizeToIterSum(const PrimExpr& index, const Map<Var, Range>& iters) {
  try {
    Detector detector(iters, /*trivial=*/false, /*bijective=*/true);
    Sum sum = detector.ParseLoose(detector.analyzer()->Simplify(index));
    detector.SortByScale(&sum.splits);
    return detector.ToNode(sum);
  } catch (const NotAffine& error) {
    TVM_CHECK(false, ValueError) << "NormalizeToIterSum: " << error.reason;
  }
}

PrimExpr NormalizeIterMapToExpr(const PrimExpr& expr) {
  if (const auto* split = expr.as<IterSplitExprNode>()) return SplitToExpr(split);
  const auto* sum = expr.as<IterSumExprNode>();
  if (sum == nullptr) return expr;
  PrimExpr total = make_const(sum->base.dtype(), 0);
  for (const IterSplitExpr& split : sum->args) total = total + SplitToExpr(split.get());
  return total + sum->base;
}

Array<PrimExpr> IterMapSimplify(const Array<PrimExpr>& indices, const Map<Var, Range>& iters,
                                IterMapLevel level, const PrimExpr& predicate,
                                bool simplify_trivial_iterators) {
  IterMapResult found = DetectIterMap(indices, iters, level, predicate, simplify_trivial_iterators);
  if (!found->errors.empty() && level != IterMapLevel::kBijective && !is_one(predicate)) {
    // What holds for all iterations holds for those that run.
    found = DetectIterMap(indices, iters, level, const_true(), simplify_trivial_iterators);
  }
  return found->indices.Map(
      [](const IterSumExpr& sum) -> PrimExpr { return NormalizeIterMapToExpr(sum); });
}

TVM_REGISTER_REPR(IterMarkNode, [](const IterMarkNode* node, ReprPrinter* p) {
  p->stream << "IterMark(" << node->source << ", extent=" << node->extent << ')';
});

TVM_REGISTER_REPR(IterSplitExprNode, [](const IterSplitExprNode* node, ReprPrinter* p) {
  p->stream << "IterSplit(" << node->source << ", lower_factor=" << node->lower_factor
            << ", extent=" << node->extent << ", scale=" << node->scale << ')';
});

TVM_REGISTER_REPR(IterSumExprNode, [](const IterSumExprNode* node, ReprPrinter* p) {
  p->stream << "IterSum(" << node->args << ", " << node->base << ')';
});

namespace {

IterMapLevel LevelOf(int level, const char* who) {
  TVM_CHECK(level == 0 || level == 1 || level == 3, ValueError)
      << who << ": level must be NoCheck (0), Surjective (1) or Bijective (3), got " << level;
  return static_cast<IterMapLevel>(level);
}

}  // namespace

TVM_REGISTER_GLOBAL("arith.DetectIterMap")
    .set_body_typed([](Array<PrimExpr> indices, Map<Var, Range> iters, PrimExpr predicate,
                       int level, bool simplify_trivial_iterators) {
      return DetectIterMap(indices, iters, LevelOf(level, "detect_iter_map"), predicate,
                           simplify_trivial_iterators);
    });

TVM_REGISTER_GLOBAL("arith.IterMapSimplify")
    .set_body_typed([](Array<PrimExpr> indices, Map<Var, Range> iters, PrimExpr predicate,
                       int level, bool simplify_trivial_iterators) {
      return IterMapSimplify(indices, iters, LevelOf(level, "iter_map_simplify"), predicate,
                             simplify_trivial_iterators);
    });

TVM_REGISTER_GLOBAL("arith.NormalizeToIterSum")
    .set_body_typed([](PrimExpr index, Map<Var, Range> iters) {
      return NormalizeToIterSum(index, iters);
    });

TVM_REGISTER_GLOBAL("arith.NormalizeIterMapToExpr").set_body_typed([](PrimExpr expr) {
  return NormalizeIterMapToExpr(expr);
});

}  // namespace arith
}  // namespace tvm
