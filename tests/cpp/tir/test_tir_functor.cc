#include <gtest/gtest.h>
#include <tvm/expr/op.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/stmt_functor.h>

#include "testing_text.h"

namespace tvm {
namespace tir {
namespace {

TEST(TirFunctor, MutatorReturnsTheSameObjectWhenNothingChanges) {
  Var i("i"), j("j");
  Buffer buffer = decl_buffer({16}, DataType::Float(32), "A");
  Stmt loop = For(i, 0, 16, ForKind::kSerial, BufferStore(buffer, BufferLoad(buffer, {i}), {i}));
  StmtExprMutator identity;
  EXPECT_TRUE(identity(loop).same_as(loop));
  EXPECT_TRUE(Substitute(loop, Map<Var, PrimExpr>{{j, 3}}).same_as(loop));
}

TEST(TirOp, EmptyStatementIsAStatement) {
  EXPECT_TRUE(Evaluate(0).defined());
  EXPECT_TRUE(is_no_op(Evaluate(0)));
  EXPECT_TRUE(is_no_op(SeqStmt::Flatten({Evaluate(0), Evaluate(0)})));
}

TEST(TirPrinter, ExpressionsHaveMinimalParentheses) {
  Var i("i"), j("j");
  EXPECT_EQ(Text(i * 4 + j), "i * 4 + j");
  EXPECT_EQ(Text((i + j) * 4), "(i + j) * 4");
  EXPECT_EQ(Text(i - (j - 1)), "i - (j - 1)");
}

}  // namespace
}  // namespace tir
}  // namespace tvm
