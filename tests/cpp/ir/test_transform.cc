#include <gtest/gtest.h>
#include <tvm/ir/transform.h>

namespace {

using namespace tvm;
using namespace tvm::transform;

TVM_REGISTER_PASS_CONFIG_OPTION("test.limit", int64_t);

Pass Counting(int* runs, int opt_level, const char* name) {
  return CreateModulePass(
      [runs](IRModule mod, PassContext ctx) {
        ++*runs;
        return mod;
      },
      opt_level, name);
}

TEST(Sequential, LeavesOutDisabledAndTooHighPasses) {
  int low = 0, high = 0, off = 0;
  Sequential seq({Counting(&low, 0, "low"), Counting(&high, 3, "high"), Counting(&off, 0, "off")});
  PassContext ctx = PassContext::Create();
  ctx->disabled_pass = {"off"};
  {
    With<PassContext> scope(ctx);
    seq(IRModule());
  }
  EXPECT_EQ(low, 1);
  EXPECT_EQ(high, 0);
  EXPECT_EQ(off, 0);
  ctx->required_pass = {"high"};
  With<PassContext> scope(ctx);
  seq(IRModule());
  EXPECT_EQ(high, 1);
}

TEST(PassContext, ScopesNest) {
  PassContext outer = PassContext::Create(), inner = PassContext::Create();
  With<PassContext> a(outer);
  {
    With<PassContext> b(inner);
    EXPECT_TRUE(PassContext::Current().same_as(inner));
  }
  EXPECT_TRUE(PassContext::Current().same_as(outer));
}

TEST(PassContext, OptionsAreCheckedByNameAndType) {
  PassContext ctx = PassContext::Create();
  ctx->config = PassContext::CheckConfig({{"test.limit", Any(7)}});
  EXPECT_EQ(ctx->GetConfig<int64_t>("test.limit", 0), 7);
  EXPECT_EQ(ctx->GetConfig<int64_t>("test.other", 1), 1);
  try {
    PassContext::CheckConfig({{"test.limt", Any(7)}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), "ValueError");
    EXPECT_NE(error.message().find("unknown option \"test.limt\""), std::string::npos);
    EXPECT_NE(error.message().find("test.limit"), std::string::npos);
  }
  EXPECT_THROW(PassContext::CheckConfig({{"test.limit", Any(String("x"))}}), Error);
}

}  // namespace
