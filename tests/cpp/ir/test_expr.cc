#include <gtest/gtest.h>
#include <tvm/ir/expr.h>
#include <tvm/ir/op.h>
#include <tvm/runtime/registry.h>

#include <cmath>

namespace {

using namespace tvm;

TEST(PrimExpr, LiteralsConvertToTheNarrowestUsualType) {
  EXPECT_EQ(PrimExpr(3).dtype(), DataType::Int(32));
  EXPECT_EQ(PrimExpr(int64_t{1} << 40).dtype(), DataType::Int(64));
  EXPECT_EQ(PrimExpr(true).dtype(), DataType::Bool());
  EXPECT_EQ(PrimExpr(1.5).dtype(), DataType::Float(32));
}

TEST(PrimExpr, NumbersInContainersConvertOneByOne) {
  auto count = runtime::MakeTypedPacked([](Array<PrimExpr> values) {
    for (const PrimExpr& value : values) EXPECT_TRUE(value.as<IntImmNode>());
    return static_cast<int64_t>(values.size());
  });
  EXPECT_EQ(count(Array<int64_t>{1, 2, 3}).cast<int64_t>(), 3);
}

TEST(PrimExpr, LiteralObjectsStandWhereNumbersAreExpected) {
  EXPECT_EQ(Any(IntImm(DataType::Int(32), 7)).cast<int64_t>(), 7);
  EXPECT_EQ(Any(FloatImm(DataType::Float(32), 0.5)).cast<double>(), 0.5);
  EXPECT_THROW(Any(FloatImm(DataType::Float(32), 0.5)).cast<int64_t>(), Error);
}

TEST(PrimExpr, NumbersBecomeLiteralsWhereAnyObjectIsAccepted) {
  auto attrs = Any(Map<String, Any>{{"n", Any(3)}}).cast<Map<String, ObjectRef>>();
  EXPECT_EQ(attrs["n"].as<IntImmNode>()->value, 3);
}

TEST(IntImm, RefusesValuesOutsideItsType) {
  EXPECT_EQ(IntImm(DataType::Int(8), -128)->value, -128);
  EXPECT_THROW(IntImm(DataType::Int(8), 128), Error);
  EXPECT_THROW(IntImm(DataType::UInt(8), -1), Error);
  EXPECT_THROW(IntImm(DataType::Bool(), 2), Error);
  EXPECT_THROW(IntImm(DataType::Float(32), 1), Error);
}

TEST(FloatImm, IsRoundedToItsType) {
  EXPECT_EQ(FloatImm(DataType::Float(32), 0.1)->value, static_cast<double>(0.1f));
  EXPECT_EQ(FloatImm(DataType::Float(16), 1.0 + 1.0 / 4096)->value, 1.0);
  EXPECT_EQ(FloatImm(DataType::Float(16), 65520.0)->value, HUGE_VAL);
  EXPECT_EQ(FloatImm(DataType::BFloat(16), 1.0 + 1.0 / 64)->value, 1.0 + 1.0 / 64);
  EXPECT_EQ(FloatImm(DataType::BFloat(16), 1.0 + 1.0 / 1024)->value, 1.0);
  EXPECT_EQ(FloatImm(DataType::Float(64), 0.1)->value, 0.1);
}

TVM_REGISTER_OP("test.op").set_num_inputs(2).set_attr<int64_t>("TTest", 5);

TEST(Op, HasOneObjectAndOpenAttributes) {
  EXPECT_TRUE(Op::Get("test.op").same_as(Op::Get("test.op")));
  EXPECT_EQ(Op::Get("test.op")->num_inputs, 2);
  EXPECT_EQ(Op::Get("test.op").GetAttr<int64_t>("TTest", 0), 5);
  EXPECT_EQ(Op::Get("test.op").GetAttr<int64_t>("TOther", 1), 1);
  EXPECT_TRUE(Op::HasAttrMap("TTest"));
  EXPECT_FALSE(Op::HasAttrMap("TNoOneSetThis"));
  EXPECT_THROW(Op::Get("test.no_such_op"), Error);
}

}  // namespace
