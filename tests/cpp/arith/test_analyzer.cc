#include <gtest/gtest.h>
#include <tvm/arith/analyzer.h>
#include <tvm/arith/bound.h>
#include <tvm/arith/pattern.h>
#include <tvm/arith/var_context.h>
#include <tvm/expr/op.h>
#include <tvm/node/structural_equal.h>

#include <functional>
#include <random>
#include <unordered_map>

namespace tvm {
namespace {

using arith::Analyzer;
using tir::SizeVar;
using tir::Var;

bool Same(const PrimExpr& a, const PrimExpr& b) { return StructuralEqual()(a, b); }

int64_t FloorDivOf(int64_t a, int64_t b) {
  int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

// The values that the expressions of the random tests stand for, computed the plain way.
int64_t Evaluate(const PrimExpr& e, const std::unordered_map<const Object*, int64_t>& env) {
  auto at = [&](const PrimExpr& x) { return Evaluate(x, env); };
  if (const auto* op = e.as<tir::IntImmNode>()) return op->value;
  if (const auto* op = e.as<tir::VarNode>()) return env.at(op);
  if (const auto* op = e.as<tir::AddNode>()) return at(op->a) + at(op->b);
  if (const auto* op = e.as<tir::SubNode>()) return at(op->a) - at(op->b);
  if (const auto* op = e.as<tir::MulNode>()) return at(op->a) * at(op->b);
  if (const auto* op = e.as<tir::FloorDivNode>()) return FloorDivOf(at(op->a), at(op->b));
  if (const auto* op = e.as<tir::FloorModNode>()) {
    int64_t a = at(op->a), b = at(op->b);
    return a - b * FloorDivOf(a, b);
  }
  if (const auto* op = e.as<tir::MinNode>()) return std::min(at(op->a), at(op->b));
  if (const auto* op = e.as<tir::MaxNode>()) return std::max(at(op->a), at(op->b));
  if (const auto* op = e.as<tir::LTNode>()) return at(op->a) < at(op->b);
  if (const auto* op = e.as<tir::LENode>()) return at(op->a) <= at(op->b);
  if (const auto* op = e.as<tir::EQNode>()) return at(op->a) == at(op->b);
  if (const auto* op = e.as<tir::NENode>()) return at(op->a) != at(op->b);
  if (const auto* op = e.as<tir::AndNode>()) return at(op->a) && at(op->b);
  if (const auto* op = e.as<tir::OrNode>()) return at(op->a) || at(op->b);
  if (const auto* op = e.as<tir::NotNode>()) return !at(op->a);
  if (const auto* op = e.as<tir::SelectNode>()) {
    return at(op->condition) ? at(op->true_value) : at(op->false_value);
  }
  ADD_FAILURE() << "no value for " << e;
  return 0;
}

TEST(Analyzer, AddsUpProductsOfSizes) {
  SizeVar a("a"), b("b"), q("q");
  EXPECT_TRUE(Same(Analyzer().Simplify((a - 1) * b + (b - 1) + 1), a * b));
  EXPECT_TRUE(Same(Analyzer().Simplify(floordiv(q * a * b, b)), q * a));
  EXPECT_TRUE(Same(Analyzer().Simplify(floormod(q * a * b, b)), IntImm(DataType::Int(32), 0)));
}

TEST(Analyzer, ReturnsTheSameObjectWhenNothingChanges) {
  Analyzer ana;
  Var i("i"), n("n");
  ana.Bind(i, Range::FromMinExtent(0, 16));
  PrimExpr e = i * 16 + floordiv(n, 4);
  PrimExpr once = ana.Simplify(e);
  EXPECT_TRUE(ana.Simplify(once).same_as(once));
}

TEST(Analyzer, SplitsFusedIndices) {
  Analyzer ana;
  Var i("i"), j("j"), k("k");
  SizeVar q("q"), a("a"), b("b");
  ana.Bind(i, Range::FromMinExtent(0, q));
  ana.Bind(j, Range::FromMinExtent(0, a));
  ana.Bind(k, Range::FromMinExtent(0, b));
  PrimExpr fused = (i * a + j) * b + k;
  EXPECT_TRUE(ana.CanProveEqual(floordiv(fused, a * b), i));
  EXPECT_TRUE(ana.CanProveEqual(floormod(floordiv(fused, b), a), j));
  EXPECT_TRUE(ana.CanProveEqual(floormod(fused, b), k));
  EXPECT_TRUE(ana.CanProve(fused < q * a * b));
  EXPECT_TRUE(ana.CanProve(fused >= 0));
  EXPECT_FALSE(ana.CanProve(fused < q * a * b - 1));
}

TEST(Analyzer, PutsQuotientAndRemainderTogether) {
  Analyzer ana;
  Var f("f");
  PrimExpr e = floordiv(f, 12) * 12 + floormod(floordiv(f, 4), 3) * 4 + floormod(f, 4);
  EXPECT_TRUE(ana.Simplify(e).same_as(f));
}

TEST(Analyzer, DecidesMinimaByTheirDifference) {
  Analyzer ana;
  SizeVar n("n"), s("s"), q("q");
  Var i("i");
  EXPECT_TRUE(Same(ana.Simplify(min(q * s, s)), s));
  EXPECT_TRUE(Same(ana.Simplify(max(i * 4 + 3, i * 4)), i * 4 + 3));
  EXPECT_TRUE(ana.CanProveEqual(min(n, i * 16 + 16) - i * 16, min(n - i * 16, 16)));
}

TEST(Analyzer, UsesConditionsInsideTheirScope) {
  Analyzer ana;
  Var i("i"), n("n");
  {
    arith::ConstraintContext inside(&ana, i * 4 + 3 < n && i >= 0);
    EXPECT_TRUE(ana.CanProve(i * 4 < n));
    EXPECT_TRUE(ana.CanProve(i + 1 > 0));
  }
  EXPECT_FALSE(ana.CanProve(i * 4 < n));
  EXPECT_FALSE(ana.CanProve(i + 1 > 0));
}

TEST(Analyzer, SolvesForAVariable) {
  Var x("x"), y("y");
  arith::IntSet set =
      arith::DeduceBound(x, x * 4 + 1 < y, Map<Var, arith::IntSet>{}, Map<Var, arith::IntSet>{});
  Analyzer ana;
  EXPECT_TRUE(ana.CanProveEqual(set.max(), floordiv(y - 2, 4)));
  EXPECT_FALSE(set.HasLowerBound());
}

TEST(Analyzer, FindsLinearForms) {
  Var i("i"), j("j"), n("n");
  Array<PrimExpr> form = arith::DetectLinearEquation((i + j * n) * 4 + 7, {i, j});
  ASSERT_EQ(form.size(), 3);
  Analyzer ana;
  EXPECT_TRUE(tir::is_const_int(form[0], 4));
  EXPECT_TRUE(ana.CanProveEqual(form[1], n * 4));
  EXPECT_TRUE(tir::is_const_int(form[2], 7));
  EXPECT_EQ(arith::DetectLinearEquation(i * j, {i, j}).size(), 0);
}

TEST(VarContext, DividesExtentsByTheirTilesExactly) {
  arith::VarContext ctx = arith::VarContext::Make();
  arith::SplitGroup g0 = ctx.DefineSplitGroup(64, 2);
  arith::SplitGroup g1 = ctx.DefineSplitGroup(64, 2);
  auto [outer, inner] = ctx.SplitSizes(64, g1->vars[1]);
  Analyzer ana;
  EXPECT_TRUE(ana.CanProveEqual(outer, g1->quotient * g1->vars[0]));
  EXPECT_TRUE(inner.same_as(g1->vars[1]));
  auto [rest, mid] = ctx.SplitSizes(outer, g1->vars[0]);
  EXPECT_TRUE(rest.same_as(g1->quotient));
  ctx.BindTo(&ana);
  EXPECT_TRUE(ana.CanProveEqual(g0->quotient * g0->vars[0] * g0->vars[1], 64));
  EXPECT_TRUE(ana.CanProve(g0->vars[0] <= 64));
}

// Random expressions over small variables keep their values, and a proof is never wrong.
class RandomExpressions {
 public:
  explicit RandomExpressions(uint32_t seed) : random_(seed) {}

  int Pick(int n) { return static_cast<int>(random_() % n); }

  PrimExpr Index(int depth) {
    if (depth == 0 || Pick(6) == 0) {
      if (Pick(3) == 0) return IntImm(DataType::Int(32), Pick(13) - 6);
      return vars[Pick(static_cast<int>(vars.size()))];
    }
    switch (Pick(9)) {
      case 0:
      case 1:
        return tir::Add(Index(depth - 1), Index(depth - 1));
      case 2:
        return tir::Sub(Index(depth - 1), Index(depth - 1));
      case 3:
        return tir::Mul(Index(depth - 1), IntImm(DataType::Int(32), Pick(9) - 3));
      case 4:
        return tir::Mul(Index(depth - 1), Index(depth - 2 > 0 ? depth - 2 : 0));
      case 5:
        return tir::FloorDiv(Index(depth - 1), Divisor());
      case 6:
        return tir::FloorMod(Index(depth - 1), Divisor());
      case 7:
        return Pick(2) ? PrimExpr(tir::Min(Index(depth - 1), Index(depth - 1)))
                       : PrimExpr(tir::Max(Index(depth - 1), Index(depth - 1)));
      default:
        return tir::Select(Condition(depth - 1), Index(depth - 1), Index(depth - 1));
    }
  }

  PrimExpr Condition(int depth) {
    PrimExpr a = Index(depth > 0 ? depth - 1 : 0), b = Index(depth > 0 ? depth - 1 : 0);
    switch (Pick(depth > 1 ? 7 : 4)) {
      case 0:
        return tir::LT(a, b);
      case 1:
        return tir::LE(a, b);
      case 2:
        return tir::EQ(a, b);
      case 3:
        return tir::NE(a, b);
      case 4:
        return tir::And(Condition(depth - 1), Condition(depth - 1));
      case 5:
        return tir::Or(Condition(depth - 1), Condition(depth - 1));
      default:
        return tir::Not(Condition(depth - 1));
    }
  }

  std::vector<Var> vars;
  std::vector<SizeVar> sizes;

 private:
  PrimExpr Divisor() {
    if (!sizes.empty() && Pick(3) == 0) {
      PrimExpr size = sizes[Pick(static_cast<int>(sizes.size()))];
      return Pick(2) ? size : size * sizes[Pick(static_cast<int>(sizes.size()))];
    }
    int d = Pick(12) - 3;
    return IntImm(DataType::Int(32), d >= 0 ? d + 1 : d - 1);
  }

  std::mt19937 random_;
};

TEST(Analyzer, KeepsTheValueOfRandomExpressions) {
  for (int round = 0; round < 1500; ++round) {
    RandomExpressions random(round);
    SizeVar a("a"), b("b");
    Var i("i"), j("j"), x("x");
    random.vars = {i, j, x, a, b};
    random.sizes = {a, b};
    Analyzer ana;
    ana.Bind(i, Range::FromMinExtent(0, a));
    ana.Bind(j, Range::FromMinExtent(i - 1, b * 2));
    ana.const_int_bound.Update(x, arith::ConstIntBound(-7, 9));
    bool boolean = round % 3 == 0;
    PrimExpr e = boolean ? random.Condition(4) : random.Index(5);
    PrimExpr simple = ana.Simplify(e);
    arith::ConstIntBound bound = ana.const_int_bound(e);
    arith::ModularSet mod = ana.modular_set(e);
    for (int sample = 0; sample < 20; ++sample) {
      std::unordered_map<const Object*, int64_t> env;
      env[a.get()] = 1 + random.Pick(5);
      env[b.get()] = 1 + random.Pick(5);
      env[i.get()] = random.Pick(static_cast<int>(env[a.get()]));
      env[j.get()] = env[i.get()] - 1 + random.Pick(static_cast<int>(env[b.get()] * 2));
      env[x.get()] = random.Pick(17) - 7;
      int64_t value = Evaluate(e, env);
      ASSERT_EQ(value, Evaluate(simple, env))
          << "round " << round << ": " << e << "\n  became " << simple;
      ASSERT_LE(bound->min_value, value) << "round " << round << ": " << e;
      ASSERT_GE(bound->max_value, value) << "round " << round << ": " << e;
      if (!boolean && mod->coeff != 1) {
        int64_t rest = value - mod->base;
        ASSERT_TRUE(mod->coeff == 0 ? rest == 0 : rest % mod->coeff == 0) << e;
      }
    }
    PrimExpr again = ana.Simplify(simple);
    for (int sample = 0; sample < 2 && !again.same_as(simple); ++sample) {
      simple = again;
      again = ana.Simplify(simple);
    }
    EXPECT_TRUE(again.same_as(simple))
        << "round " << round << ": " << e << "\n  never settles: " << simple << "\n  and " << again;
  }
}

TEST(IntSet, HoldsTheValuesOfRandomExpressions) {
  for (int round = 0; round < 1000; ++round) {
    RandomExpressions random(round + 100000);
    SizeVar a("a"), b("b");
    Var i("i"), j("j"), x("x");
    random.vars = {i, j, x, a};
    random.sizes = {a, b};
    PrimExpr e = random.Index(4);
    Analyzer ana;
    Map<Var, arith::IntSet> domains{
        {i, arith::IntSet::FromMinExtent(x, a)},
        {j, arith::IntSet::FromMinExtent(0, b)},
    };
    arith::IntSet set = arith::EvalSet(e, domains, &ana);
    for (int sample = 0; sample < 20; ++sample) {
      std::unordered_map<const Object*, int64_t> env;
      env[a.get()] = 1 + random.Pick(5);
      env[b.get()] = 1 + random.Pick(5);
      env[x.get()] = random.Pick(17) - 7;
      env[i.get()] = env[x.get()] + random.Pick(static_cast<int>(env[a.get()]));
      env[j.get()] = random.Pick(static_cast<int>(env[b.get()]));
      int64_t value = Evaluate(e, env);
      if (set.HasLowerBound()) {
        ASSERT_LE(Evaluate(set.min(), env), value) << "round " << round << ": " << e;
      }
      if (set.HasUpperBound()) {
        ASSERT_GE(Evaluate(set.max(), env), value) << "round " << round << ": " << e;
      }
    }
  }
}

}  // namespace
}  // namespace tvm
