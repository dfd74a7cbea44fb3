#include <gtest/gtest.h>
#include <tvm/runtime/container.h>
#include <tvm/runtime/registry.h>

namespace {

using namespace tvm;

TVM_REGISTER_GLOBAL("test.Add").set_body_typed([](int a, double b) { return a + b; });

std::string MessageOf(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "(no error)";
}

TEST(PackedFunc, ConvertsArgumentsAndResult) {
  const PackedFunc* add = Registry::Get("test.Add");
  ASSERT_NE(add, nullptr);
  EXPECT_EQ((*add)(1, 2.5).cast<double>(), 3.5);
  TypedPackedFunc<double(int, double)> typed = *add;
  EXPECT_EQ(typed(1, 2), 3.0);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
TEST(PackedFunc, TakesBodiesWithTheTypesOfTVM) {
  PackedFunc add([](runtime::TVMArgs args, runtime::TVMRetValue* ret) {
    int a = args[0];
    int b = args[1];
    *ret = a + b;
  });
  EXPECT_EQ(add(1, 2).cast<int>(), 3);
}
#pragma GCC diagnostic pop

TEST(PackedFunc, BadArgumentReportsPositionAndTypes) {
  const PackedFunc& add = Registry::Require("test.Add");
  EXPECT_EQ(MessageOf([&] { add("x", 1.0); }),
            "TypeError: test.Add: argument 0: expected int of 32 bits, got str");
  EXPECT_EQ(MessageOf([&] { add(1); }), "TypeError: test.Add: expected 2 arguments, got 1");
}

TEST(PackedFunc, PassesFunctionsContainersAndNull) {
  PackedFunc apply([](Args args, RetValue* ret) {
    PackedFunc f = args[0];
    Array<int64_t> values = args[1];
    Optional<String> name = args[2];
    EXPECT_FALSE(name);
    *ret = f(values[1]);
  });
  auto twice = runtime::MakeTypedPacked([](int64_t x) { return 2 * x; });
  EXPECT_EQ(apply(twice, Array<int64_t>{1, 21}, nullptr).cast<int64_t>(), 42);
}

TEST(Registry, RefusesASecondFunctionOfOneName) {
  Registry::Register("test.once").set_body_typed([]() { return 1; });
  EXPECT_EQ(MessageOf([] { Registry::Register("test.once"); }),
            "ValueError: Registry: the global function \"test.once\" is already registered; pass "
            "override=True to replace it");
  Registry::Register("test.once", true).set_body_typed([]() { return 2; });
  EXPECT_EQ(Registry::Require("test.once")().cast<int>(), 2);
  EXPECT_TRUE(Registry::Remove("test.once"));
  EXPECT_EQ(Registry::Get("test.once"), nullptr);
}

TEST(Registry, SuggestsSimilarNames) {
  EXPECT_EQ(MessageOf([] { Registry::Require("test.Ad"); }),
            "ValueError: Registry: there is no global function \"test.Ad\"; did you mean "
            "\"test.Add\"");
}

TEST(CApi, CallsAndReportsErrors) {
  TVMFunctionHandle add = nullptr;
  ASSERT_EQ(TVMFuncGetGlobal("test.Add", &add), 0);
  TVMAny args[2] = {{kTVMInt, 0, {0}}, {kTVMFloat, 0, {0}}};
  args[0].v_int64 = 1;
  args[1].v_float64 = 0.5;
  TVMAny result;
  ASSERT_EQ(TVMFuncCall(add, args, 2, &result), 0);
  EXPECT_EQ(result.v_float64, 1.5);
  EXPECT_EQ(TVMFuncCall(add, args, 1, &result), -1);
  EXPECT_STREQ(TVMGetLastError(), "TypeError: test.Add: expected 2 arguments, got 1");
}

TEST(CApi, MessageOfCompiledCodeKeepsItsKind) {
  TVMAPISetLastError("ValueError: bad shape");
  EXPECT_EQ(runtime::TakeLastError().kind(), "ValueError");
  TVMAPISetLastError("no kind here: see below");
  EXPECT_EQ(runtime::TakeLastError().kind(), "RuntimeError");
}

}  // namespace
