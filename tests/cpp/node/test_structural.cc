#include <gtest/gtest.h>
#include <tvm/ir/expr.h>
#include <tvm/node/repr_printer.h>
#include <tvm/node/serialization.h>
#include <tvm/node/structural_equal.h>
#include <tvm/node/structural_hash.h>

#include <cmath>

namespace {

using namespace tvm;

/*! \brief A variable, a use of one, and a function that binds one: the smallest binding IR. */
class VarNode : public Object {
 public:
  static constexpr bool kIsVariable = true;
  String name;
  DataType dtype = DataType::Int(32);
  TVM_DECLARE_NODE(VarNode, Object, "test.Var", Ignore(name), Value(dtype));
  TVM_NODE_ARGS(Value(name), Default(dtype));
};
class Var : public FromFields<ObjectRef, VarNode> {
 public:
  TVM_DEFINE_NODE_REF(Var, VarNode);
};

class LambdaNode : public Object {
 public:
  Array<Var> params;
  Array<ObjectRef> body;
  int64_t flag = 0;
  double weight = 0;
  TVM_DECLARE_NODE(LambdaNode, Object, "test.Lambda", Bind(params), Value(body), Default(flag),
                   Default(weight));
};
class Lambda : public FromFields<ObjectRef, LambdaNode> {
 public:
  TVM_DEFINE_NODE_REF(Lambda, LambdaNode);
};

TVM_REGISTER_NODE(VarNode);
TVM_REGISTER_NODE(LambdaNode);

void ExpectEqual(const ObjectRef& a, const ObjectRef& b) {
  auto mismatch = FindStructuralMismatch(a, b);
  EXPECT_FALSE(mismatch.has_value()) << mismatch->path << ": " << mismatch->reason;
  EXPECT_EQ(StructuralHash()(a), StructuralHash()(b));
}

TEST(StructuralEqual, RenamingABoundVariableChangesNothing) {
  Var x("x"), y("y"), u("u"), v("v");
  ExpectEqual(Lambda({x, y}, {x, y, x}), Lambda({u, v}, {u, v, u}));
}

TEST(StructuralEqual, ReportsThePathOfTheFirstDifference) {
  Var x("x"), y("y"), u("u"), v("v");
  auto mismatch = FindStructuralMismatch(Lambda({x, y}, {x, y}), Lambda({u, v}, {u, u}));
  ASSERT_TRUE(mismatch.has_value());
  EXPECT_EQ(mismatch->path, "<root>.body[1]");
  mismatch = FindStructuralMismatch(Lambda({x}, {x}, 1), Lambda({u}, {u}, 2));
  EXPECT_EQ(mismatch->path, "<root>.flag");
  EXPECT_EQ(mismatch->reason, "1 vs. 2");
}

TEST(StructuralEqual, FreeVariableEqualsOnlyItselfUnlessMapped) {
  Var x("x"), u("u"), w("w");
  EXPECT_FALSE(StructuralEqual()(Any(x), Any(u)));
  EXPECT_TRUE(StructuralEqual()(Any(x), Any(u), true));
  EXPECT_EQ(StructuralHash()(Any(x), true), StructuralHash()(Any(u), true));
  // Mapping is one to one.
  EXPECT_FALSE(StructuralEqual()(Any(Array<Var>{x, x}), Any(Array<Var>{u, w}), true));
  EXPECT_FALSE(StructuralEqual()(Any(Array<Var>{u, w}), Any(Array<Var>{x, x}), true));
}

TEST(StructuralEqual, VariablesOfDifferentTypesDiffer) {
  Var x("x"), u("u", DataType::Int(64));
  auto mismatch = FindStructuralMismatch(Lambda({x}, {}), Lambda({u}, {}));
  EXPECT_EQ(mismatch->path, "<root>.params[0].dtype");
}

TEST(StructuralEqual, MapsIgnoreTheOrderOfEntries) {
  Map<String, int64_t> a = {{"x", 1}, {"y", 2}}, b = {{"y", 2}, {"x", 1}};
  ExpectEqual(a, b);
  b.Set("y", 3);
  EXPECT_EQ(FindStructuralMismatch(a, b)->path, "<root>[\"y\"]");
}

TEST(StructuralEqual, NaNEqualsItselfAndHashesAlike) {
  EXPECT_TRUE(StructuralEqual()(Any(std::nan("")), Any(std::nan(""))));
  EXPECT_FALSE(StructuralEqual()(Any(0.0), Any(-0.0)));
}

TEST(StructuralEqual, SharedSubtreesTakeLinearTime) {
  // 2^60 paths, 60 nodes.
  auto tower = [] {
    Array<ObjectRef> level = {IntImm(DataType::Int(32), 1)};
    for (int i = 0; i < 60; ++i) level = {level, level};
    return level;
  };
  ExpectEqual(tower(), tower());
}

TEST(Json, RoundTripKeepsStructureAndSharing) {
  Var x("x");
  Lambda shared({x}, {x, String("text \"quoted\"\n"), IntImm(DataType::Int(64), -5)}, 3);
  Array<ObjectRef> graph = {shared, shared};
  Any back = LoadJSON(SaveJSON(graph));
  ExpectEqual(back.cast<ObjectRef>(), graph);
  auto loaded = back.cast<Array<ObjectRef>>();
  EXPECT_TRUE(loaded[0].same_as(loaded[1]));
  EXPECT_EQ(loaded[0].as<LambdaNode>()->params[0]->name, "x");
}

TEST(Json, KeepsNumbersThatJsonHasNoSpellingFor) {
  for (double value : {0.1, -0.0, 1e300, HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    EXPECT_TRUE(StructuralEqual()(LoadJSON(SaveJSON(Any(value))), Any(value))) << value;
  }
  EXPECT_EQ(LoadJSON(SaveJSON(Any(DataType::Float(16, 4)))).cast<DataType>(),
            DataType::Float(16, 4));
}

TEST(Json, MalformedTextIsAValueError) {
  const char* texts[] = {
      "",
      "{",
      "[1, 2",
      "{\"version\": 1}",
      "{\"version\": 99, \"root\": 1, \"nodes\": []}",
      "{\"version\": 1, \"root\": {\"node\": 0}, \"nodes\": []}",
      "{\"version\": 1, \"root\": {\"node\": -1}, \"nodes\": []}",
      "{\"version\": 1, \"root\": null, \"nodes\": [{\"type\": \"no.such\", \"fields\": {}}]}",
      "{\"version\": 1, \"root\": null, \"nodes\": [{\"type\": \"IntImm\", \"fields\": {}}]}",
      "{\"version\": 1, \"root\": null, \"nodes\": [{\"type\": \"PrimExpr\", \"fields\": {}}]}",
      "{\"version\": 1, \"root\": null, \"nodes\": [{\"type\": \"Array\", \"items\": "
      "[{\"node\": 0}]}]}",
      "{\"version\": 1, \"root\": null, \"nodes\": [{\"type\": \"runtime.NDArray\", \"tensor\": "
      "{\"dtype\": \"float32\", \"shape\": [1000000000000, 4], \"bytes\": \"00\"}}]}",
      "{\"version\": 1, \"root\": \"\\u12\", \"nodes\": []}",
  };
  for (const char* text : texts) {
    try {
      LoadJSON(text);
      ADD_FAILURE() << "accepted: " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), "ValueError") << text << " gave " << error.what();
    }
  }
  std::string deep(100000, '[');
  EXPECT_THROW(LoadJSON(deep), Error);
}

TEST(Repr, DefaultFormNamesTypeAndFields) {
  EXPECT_EQ(AsRepr(Lambda({}, {IntImm(DataType::Int(32), 1)}, 2)),
            "test.Lambda(params=[], body=[1], flag=2, weight=0.0)");
}

TEST(Reflection, FieldOfTheWrongTypeIsNamed) {
  try {
    MakeNode("test.Lambda", {{"flag", Any(String("x"))}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "test.Lambda.flag: expected int, got str");
  }
  EXPECT_THROW(MakeNode("test.Lambda", {{"nope", Any(1)}}), Error);
}

}  // namespace
