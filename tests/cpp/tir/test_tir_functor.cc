#include <gtest/gtest.h>
#include <tvm/expr/op.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/stmt_functor.h>

#include <sstream>

namespace tvm {
namespace tir {
namespace {

std::string Text(const ObjectRef& ref) {
  std::ostringstream os;
  os << ref;
  return os.str();
}

struct VarCounter : public StmtExprVisitor {
  int count = 0;
  void VisitExpr_(const VarNode* op) override { ++count; }
};

TEST(TirFunctor, VisitorReachesSizeVarsThroughTheCaseOfVars) {
  Var i("i");
  SizeVar n("n");
  VarCounter counter;
  counter(i * n + n);
  EXPECT_EQ(counter.count, 3);
}

TEST(TirFunctor, MutatorReturnsTheSameObjectWhenNothingChanges) {
  Var i("i"), j("j");
  Buffer buffer = decl_buffer({16}, DataType::Float(32), "A");
  Stmt loop = For(i, 0, 16, ForKind::kSerial, BufferStore(buffer, BufferLoad(buffer, {i}), {i}));
  StmtExprMutator identity;
  EXPECT_TRUE(identity(loop).same_as(loop));
  EXPECT_TRUE(Substitute(loop, Map<Var, PrimExpr>{{j, 3}}).same_as(loop));
}

TEST(TirFunctor, UnhandledClassIsAnInternalErrorThatNamesIt) {
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

TEST(TirOp, NumbersTakeTheTypeOfTheExpression) {
  Var wide("i", DataType::Int(64));
  EXPECT_EQ((wide + 1).dtype(), DataType::Int(64));
  EXPECT_EQ((2 * Var("x", DataType::Float(16))).dtype(), DataType::Float(16));
  EXPECT_EQ((Var("i") + 1.5).dtype(), DataType::Float(32));
}

TEST(TirOp, EmptyStatementIsAStatement) {
  EXPECT_TRUE(Evaluate(0).defined());
  EXPECT_TRUE(is_no_op(Evaluate(0)));
  EXPECT_TRUE(is_no_op(SeqStmt::Flatten({Evaluate(0), Evaluate(0)})));
}

TEST(TirAnalysis, DeepHashAgreesWithDeepEquality) {
  Var i("i"), j("j");
  ExprDeepEqual equal;
  ExprDeepHash hash;
  EXPECT_TRUE(equal(i * 4 + j, i * 4 + j));
  EXPECT_EQ(hash(i * 4 + j), hash(i * 4 + j));
  EXPECT_FALSE(equal(i * 4 + j, j * 4 + i));
  EXPECT_FALSE(equal(floordiv(i, j), floormod(i, j)));
}

TEST(TirPrinter, ExpressionsHaveMinimalParentheses) {
  Var i("i"), j("j");
  EXPECT_EQ(Text(i * 4 + j), "i*4 + j");
  EXPECT_EQ(Text((i + j) * 4), "(i + j)*4");
  EXPECT_EQ(Text(i - (j - 1)), "i - (j - 1)");
}

}  // namespace
}  // namespace tir
}  // namespace tvm
