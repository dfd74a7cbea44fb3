/*!
 * \file smooth.cc
 */
#include "smooth.h"

#include <tvm/expr/op.h>
#include <tvm/runtime/logging.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace tvm {
namespace felix {

namespace {

// Sums longer than this are kept as operations: multiplying them out costs more than it saves.
constexpr size_t kMaxSumTerms = 12;
constexpr size_t kMaxProductTerms = 4;

std::vector<std::pair<int64_t, int>> Factorize(int64_t n) {
  std::vector<std::pair<int64_t, int>> out;
  for (int64_t p = 2; p * p <= n; ++p) {
    int power = 0;
    for (; n % p == 0; n /= p) ++power;
    if (power > 0) out.emplace_back(p, power);
  }
  if (n > 1) out.emplace_back(n, 1);
  return out;
}

bool IsInteger(double value) { return value == std::floor(value); }

}  // namespace

ExponentSpace::ExponentSpace(const arith::VarContext& context) {
  auto add_knob = [this](Knob knob) {
    int id = static_cast<int>(knobs_.size());
    knob_ids_.emplace(knob.name, id);
    knobs_.push_back(std::move(knob));
    return id;
  };
  for (const arith::SplitGroup& group : context->split_groups) {
    const int64_t* extent = tir::as_const_int(group->extent_expr);
    TVM_CHECK(extent && *extent >= 1, ValueError)
        << "features: the extent " << group->extent_expr << " of " << group->extent
        << " is not a positive number; extract features for one task instance";
    extents_.emplace(group->extent->name_hint, *extent);
    Group entry{*extent, -1, {}};
    Knob quotient{group->quotient->name_hint, {}, true, *extent};
    auto primes = Factorize(*extent);
    for (const tir::SizeVar& var : group->vars) {
      Knob tile{var->name_hint, {}, false, 1};
      for (const auto& [prime, power] : primes) {
        int id = static_cast<int>(exponents_.size());
        exponents_.push_back({tile.name + "_" + std::to_string(prime), tile.name, prime, power});
        tile.exponents.push_back(id);
        quotient.exponents.push_back(id);
      }
      entry.tiles.push_back(add_knob(std::move(tile)));
    }
    entry.quotient = add_knob(std::move(quotient));
    groups_.push_back(std::move(entry));
  }
}

int ExponentSpace::FindKnob(const std::string& name) const {
  auto it = knob_ids_.find(name);
  return it == knob_ids_.end() ? -1 : it->second;
}

std::optional<int64_t> ExponentSpace::FindExtent(const std::string& name) const {
  auto it = extents_.find(name);
  if (it == extents_.end()) return std::nullopt;
  return it->second;
}

Smoother::Smoother(const ExponentSpace& space, TapeBuilder* out) : space_(space), out_(out) {
  // The table lists every exponent in order, whether or not the tape uses it.
  for (const Exponent& e : space.exponents()) {
    out_->Var({e.name, false, 0, static_cast<double>(e.upper)});
  }
}

Smoother::Smooth Smoother::FromSum(KnobSum sum) const {
  std::erase_if(sum, [](const auto& term) { return term.second == 0; });
  Smooth out;
  out.sum = std::move(sum);
  return out;
}

Smoother::Smooth Smoother::FromIndex(Index index) const {
  if (out_->IsConst(index)) return Number(out_->ConstValue(index));
  Smooth out;
  out.index = index;
  return out;
}

Smoother::Smooth Smoother::Number(double value) const { return FromSum({{KnobProduct(), value}}); }

// The product of a quotient and all tiles of its group is the extent, a number.
KnobProduct Smoother::Normalize(KnobProduct product, double* coef) const {
  auto power_of = [&](int knob) {
    auto it = std::lower_bound(product.begin(), product.end(), std::make_pair(knob, INT32_MIN));
    return it != product.end() && it->first == knob ? it->second : 0;
  };
  for (const ExponentSpace::Group& group : space_.groups()) {
    int common = power_of(group.quotient);
    if (common == 0) continue;
    for (int tile : group.tiles) {
      int power = power_of(tile);
      if ((power > 0) != (common > 0) || power == 0) {
        common = 0;
        break;
      }
      common = common > 0 ? std::min(common, power) : std::max(common, power);
    }
    if (common == 0) continue;
    *coef *= std::pow(static_cast<double>(group.extent), common);
    for (auto& [knob, power] : product) {
      if (knob == group.quotient ||
          std::find(group.tiles.begin(), group.tiles.end(), knob) != group.tiles.end()) {
        power -= common;
      }
    }
    std::erase_if(product, [](const auto& factor) { return factor.second == 0; });
  }
  return product;
}

std::optional<KnobSum> Smoother::MulSums(const KnobSum& a, const KnobSum& b) const {
  if (a.size() > 1 && b.size() > 1 && a.size() * b.size() > kMaxProductTerms) return std::nullopt;
  KnobSum out;
  for (const auto& [pa, ca] : a) {
    for (const auto& [pb, cb] : b) {
      std::map<int, int> powers(pa.begin(), pa.end());
      for (const auto& [knob, power] : pb) powers[knob] += power;
      KnobProduct product;
      for (const auto& factor : powers) {
        if (factor.second != 0) product.push_back(factor);
      }
      double coef = ca * cb;
      product = Normalize(std::move(product), &coef);
      out[std::move(product)] += coef;
    }
  }
  return out;
}

std::pair<std::vector<double>, double> Smoother::LogOf(const KnobProduct& product) const {
  std::vector<double> coefs(space_.exponents().size(), 0.0);
  double constant = 0;
  for (const auto& [id, power] : product) {
    const ExponentSpace::Knob& knob = space_.knobs()[id];
    constant += power * std::log(static_cast<double>(knob.scale));
    for (int e : knob.exponents) {
      double ln = std::log(static_cast<double>(space_.exponents()[e].prime));
      coefs[e] += (knob.is_quotient ? -power : power) * ln;
    }
  }
  // Sums of equal logarithms cancel exactly only up to rounding.
  for (double& coef : coefs) {
    if (std::fabs(coef) < 1e-12) coef = 0;
  }
  return {std::move(coefs), constant};
}

TapeBuilder::Index Smoother::EmitLogProduct(const KnobProduct& product) {
  auto [coefs, constant] = LogOf(product);
  Index sum = out_->Number(constant);
  for (size_t e = 0; e < coefs.size(); ++e) {
    if (coefs[e] == 0) continue;
    const Exponent& exponent = space_.exponents()[e];
    Index x = out_->Var({exponent.name, false, 0, static_cast<double>(exponent.upper)});
    sum = out_->Op(TapeOp::kAdd, sum, out_->Op(TapeOp::kMul, out_->Number(coefs[e]), x));
  }
  return sum;
}

TapeBuilder::Index Smoother::EmitProduct(const KnobProduct& product) {
  if (product.empty()) return out_->Int(1);
  return out_->Op(TapeOp::kExp, EmitLogProduct(product));
}

TapeBuilder::Index Smoother::Emit(Smooth* value) {
  if (value->index >= 0) return value->index;
  Index sum = out_->Int(0);
  for (const auto& [product, coef] : *value->sum) {
    Index term = out_->Op(TapeOp::kMul, out_->Number(std::fabs(coef)), EmitProduct(product));
    sum = out_->Op(coef < 0 ? TapeOp::kSub : TapeOp::kAdd, sum, term);
  }
  return value->index = sum;
}

// Points outside the constraints may make a size negative, which counts as 0.
TapeBuilder::Index Smoother::EmitLogSize(Smooth* value) {
  return out_->Op(TapeOp::kLogSize, Emit(value));
}

TapeBuilder::Index Smoother::EmitLog(Smooth* value) {
  if (value->sum && value->sum->size() == 1 && value->sum->begin()->second > 0) {
    const auto& [product, coef] = *value->sum->begin();
    return out_->Op(TapeOp::kAdd, out_->Number(std::log(coef)), EmitLogProduct(product));
  }
  Index x = out_->Op(TapeOp::kMax, Emit(value), out_->Real(1e-6));
  return out_->Op(TapeOp::kLog, x);
}

std::optional<std::pair<std::vector<double>, double>> Smoother::LogLinear(
    const Smooth& value) const {
  if (!value.sum || value.sum->size() != 1 || value.sum->begin()->second <= 0) return std::nullopt;
  auto [coefs, constant] = LogOf(value.sum->begin()->first);
  constant += std::log(value.sum->begin()->second);
  return std::make_pair(std::move(coefs), constant);
}

Smoother::Smooth Smoother::Add(Smooth* a, Smooth* b, double sign) {
  if (a->sum && b->sum && a->sum->size() + b->sum->size() <= kMaxSumTerms) {
    KnobSum sum = *a->sum;
    for (const auto& [product, coef] : *b->sum) sum[product] += sign * coef;
    return FromSum(std::move(sum));
  }
  Index x = Emit(a);
  return FromIndex(out_->Op(sign > 0 ? TapeOp::kAdd : TapeOp::kSub, x, Emit(b)));
}

Smoother::Smooth Smoother::Mul(Smooth* a, Smooth* b) {
  if (a->sum && b->sum) {
    if (auto product = MulSums(*a->sum, *b->sum)) return FromSum(std::move(*product));
  }
  Index x = Emit(a);
  return FromIndex(out_->Op(TapeOp::kMul, x, Emit(b)));
}

Smoother::Smooth Smoother::Div(Smooth* a, Smooth* b) {
  if (a->sum && b->sum && b->sum->size() == 1 && b->sum->begin()->second != 0) {
    KnobProduct inverse = b->sum->begin()->first;
    for (auto& factor : inverse) factor.second = -factor.second;
    KnobSum quotient = *MulSums(*a->sum, {{inverse, 1.0}});
    // Divided rather than multiplied by the reciprocal, so that 6 / 3 is 2 to the last bit.
    for (auto& term : quotient) term.second /= b->sum->begin()->second;
    return FromSum(std::move(quotient));
  }
  Index x = Emit(a);
  return FromIndex(out_->Op(TapeOp::kDiv, x, Emit(b)));
}

Smoother::Smooth Smoother::FloorDiv(Smooth* a, Smooth* b) {
  if (a->sum && b->sum && b->sum->size() == 1) {
    Smooth exact = Div(a, b);
    bool integral = std::all_of(exact.sum->begin(), exact.sum->end(), [](const auto& term) {
      return IsInteger(term.second) &&
             std::all_of(term.first.begin(), term.first.end(),
                         [](const auto& factor) { return factor.second > 0; });
    });
    if (integral) return exact;
  }
  Index x = Emit(a);
  return FromIndex(out_->Op(TapeOp::kSmoothFloorDiv, x, Emit(b)));
}

std::optional<KnobSum> Smoother::IntegerRatio(const Smooth& a, const Smooth& b) const {
  if (!a.sum || !b.sum || a.sum->size() != 1 || b.sum->size() != 1) return std::nullopt;
  KnobProduct inverse = a.sum->begin()->first;
  for (auto& factor : inverse) factor.second = -factor.second;
  auto ratio = MulSums(*b.sum, {{inverse, 1.0}});
  ratio->begin()->second /= a.sum->begin()->second;
  const auto& [product, coef] = *ratio->begin();
  bool integral = coef >= 1 && IsInteger(coef) &&
                  std::all_of(product.begin(), product.end(),
                              [](const auto& factor) { return factor.second > 0; });
  if (!integral) return std::nullopt;
  return ratio;
}

// A condition on integers changes between two of them. If one side divides the other, the quotient
// goes from 1 to at least 2, and its logarithm to base 2 is the position between; else the
// difference goes from 0 to 1.
Smoother::Smooth Smoother::Less(Smooth* a, Smooth* b, bool or_equal) {
  auto position = [&](const KnobSum& ratio) {
    Smooth value = FromSum(ratio);
    return out_->Op(TapeOp::kMul, out_->Real(1 / std::log(2.0)), EmitLog(&value));
  };
  if (!or_equal) {
    if (auto ratio = IntegerRatio(*a, *b))
      return FromIndex(out_->Op(TapeOp::kStep, position(*ratio)));
  } else if (auto ratio = IntegerRatio(*b, *a)) {
    // a <= b is the opposite of b < a.
    return FromIndex(Complement(out_->Op(TapeOp::kStep, position(*ratio))));
  }
  Smooth difference = Add(b, a, -1);
  Index t = Emit(&difference);
  if (or_equal) t = out_->Op(TapeOp::kAdd, t, out_->Int(1));
  return FromIndex(out_->Op(TapeOp::kStep, t));
}

Smoother::Smooth Smoother::Equal(Smooth* a, Smooth* b) {
  for (auto [x, y] : {std::make_pair(a, b), std::make_pair(b, a)}) {
    if (auto ratio = IntegerRatio(*x, *y)) {
      Smooth value = FromSum(*ratio);
      Index t = out_->Op(TapeOp::kMul, out_->Real(1 / std::log(2.0)), EmitLog(&value));
      return FromIndex(Complement(out_->Op(TapeOp::kStep, t)));
    }
  }
  Smooth difference = Add(b, a, -1);
  return FromIndex(Complement(out_->Op(TapeOp::kStep, out_->Op(TapeOp::kAbs, Emit(&difference)))));
}

std::vector<Smoother::Smooth> Smoother::Translate(const TapeData& tape) {
  std::vector<Smooth> values;
  values.reserve(tape.size());
  for (int32_t i = 0; i < tape.size(); ++i) {
    auto op = static_cast<TapeOp>(tape.ops[i]);
    auto arg = [&](int k) { return &values[tape.args[3 * i + k]]; };
    auto plain = [&] {
      int arity = TapeArity(op);
      Index a = Emit(arg(0)), b = arity > 1 ? Emit(arg(1)) : -1, c = arity > 2 ? Emit(arg(2)) : -1;
      return FromIndex(out_->Op(op, a, b, c));
    };
    Smooth value;
    switch (op) {
      case TapeOp::kIntConst:
        value = Number(static_cast<double>(tape.payload[i]));
        break;
      case TapeOp::kRealConst:
        value = Number(std::bit_cast<double>(tape.payload[i]));
        break;
      case TapeOp::kVar: {
        const std::string& name = tape.vars[tape.payload[i]].name;
        int knob = space_.FindKnob(name);
        std::optional<int64_t> extent = space_.FindExtent(name);
        TVM_CHECK(knob >= 0 || extent, ValueError)
            << "features: " << name << " is no knob of the sketch";
        value = extent ? Number(static_cast<double>(*extent)) : FromSum({{{{knob, 1}}, 1.0}});
        break;
      }
      case TapeOp::kAdd:
        value = Add(arg(0), arg(1), 1);
        break;
      case TapeOp::kSub:
        value = Add(arg(0), arg(1), -1);
        break;
      case TapeOp::kMul:
        value = Mul(arg(0), arg(1));
        break;
      case TapeOp::kDiv:
        value = Div(arg(0), arg(1));
        break;
      case TapeOp::kFloorDiv:
        value = FloorDiv(arg(0), arg(1));
        break;
      case TapeOp::kFloorMod: {
        Smooth quotient = FloorDiv(arg(0), arg(1));
        Smooth multiple = Mul(&quotient, arg(1));
        value = Add(arg(0), &multiple, -1);
        break;
      }
      case TapeOp::kLt:
        value = Less(arg(0), arg(1), /*or_equal=*/false);
        break;
      case TapeOp::kLe:
        value = Less(arg(0), arg(1), /*or_equal=*/true);
        break;
      case TapeOp::kEq:
        value = Equal(arg(0), arg(1));
        break;
      case TapeOp::kNe: {
        Smooth equal = Equal(arg(0), arg(1));
        value = FromIndex(Complement(Emit(&equal)));
        break;
      }
      case TapeOp::kAnd:
        value = Mul(arg(0), arg(1));
        break;
      case TapeOp::kOr: {
        Index a = Complement(Emit(arg(0)));
        value = FromIndex(Complement(out_->Op(TapeOp::kMul, a, Complement(Emit(arg(1))))));
        break;
      }
      case TapeOp::kNot:
        value = FromIndex(Complement(Emit(arg(0))));
        break;
      case TapeOp::kSelect: {
        Index cond = Emit(arg(0)), yes = Emit(arg(1));
        value = FromIndex(out_->Op(TapeOp::kMix, cond, yes, Emit(arg(2))));
        break;
      }
      default:
        value = plain();
    }
    values.push_back(std::move(value));
  }
  return values;
}

}  // namespace felix
}  // namespace tvm
