// Scalar expressions: dispatch, operators, equality, substitution.
#include <gtest/gtest.h>
#include <tvm/expr/analysis.h>
#include <tvm/expr/expr_functor.h>
#include <tvm/expr/op.h>
#include <tvm/expr/substitute.h>

#include <string>

namespace tvm {
namespace tir {
namespace {

struct VarCounter : public ExprVisitor {
  int count = 0;
  void VisitExpr_(const VarNode* op) override { ++count; }
};

TEST(ExprFunctors, VisitorReachesSizeVarsThroughTheCaseOfVars) {
  Var i("i");
  SizeVar n("n");
  VarCounter counter;
  counter(i * n + n);
  EXPECT_EQ(counter.count, 3);
}

TEST(ExprFunctors, UnhandledClassIsAnInternalErrorThatNamesIt) {
  struct OnlyVars : public ExprFunctor<int(const PrimExpr&)> {
    int VisitExpr_(const VarNode*) override { return 1; }
  };
  Var i("i");
  OnlyVars functor;
  EXPECT_EQ(functor(i), 1);
  try {
    functor(i + 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), "InternalError");
    EXPECT_NE(error.message().find("tir.Add"), std::string::npos);
  }
}

TEST(Operators, NumbersTakeTheTypeOfTheExpression) {
  Var wide("i", DataType::Int(64));
  EXPECT_EQ((wide + 1).dtype(), DataType::Int(64));
  EXPECT_EQ((2 * Var("x", DataType::Float(16))).dtype(), DataType::Float(16));
  EXPECT_EQ((Var("i") + 1.5).dtype(), DataType::Float(32));
}

TEST(ExprAnalysis, DeepHashAgreesWithDeepEquality) {
  Var i("i"), j("j");
  ExprDeepEqual equal;
  ExprDeepHash hash;
  EXPECT_TRUE(equal(i * 4 + j, i * 4 + j));
  EXPECT_EQ(hash(i * 4 + j), hash(i * 4 + j));
  EXPECT_FALSE(equal(i * 4 + j, j * 4 + i));
  EXPECT_FALSE(equal(floordiv(i, j), floormod(i, j)));
}

TEST(Substitution, ReplacesABufferByOneAtAllItsUses) {
  Var i("i"), n("n");
  Buffer buffer = decl_buffer({n, 4}, DataType::Float(32), "A");
  PrimExpr sum = BufferLoad(buffer, {i, 0}) + BufferLoad(buffer, {i + 1, 0});
  PrimExpr result = Substitute(sum, Map<Var, PrimExpr>{{n, 8}});
  const auto* add = result.as<AddNode>();
  ASSERT_NE(add, nullptr);
  const auto *left = add->a.as<BufferLoadNode>(), *right = add->b.as<BufferLoadNode>();
  EXPECT_TRUE(is_const_int(left->buffer->shape[0], 8));
  EXPECT_TRUE(left->buffer.same_as(right->buffer));
  EXPECT_FALSE(left->buffer.same_as(buffer));
}

TEST(Substitution, GivesBackWhatItDoesNotChange) {
  Var i("i"), other("other");
  PrimExpr expr = floordiv(i * 4 + 2, 3);
  EXPECT_TRUE(Substitute(expr, Map<Var, PrimExpr>{{other, 1}}).same_as(expr));
}

TEST(Substitution, RefusesAValueOfAnotherType) {
  Var i("i");
  try {
    Substitute(i + 1, Map<Var, PrimExpr>{{i, make_const(DataType::Float(32), 1.0)}});
    FAIL() << "a real number took the place of an integer";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), "TypeError");
  }
}

TEST(Visit, MeetsSharedNodesOnceAndOperandsFirst) {
  Var i("i");
  PrimExpr twice = i * 2;
  std::string order;
  PostOrderVisit(twice + twice, [&order](const ObjectRef& node) {
    order += node.as<VarNode>() ? 'i' : node.as<MulNode>() ? '*' : node.as<AddNode>() ? '+' : '2';
  });
  EXPECT_EQ(order, "i2*+");
}

}  // namespace
}  // namespace tir
}  // namespace tvm
