#include <gtest/gtest.h>
#include <tvm/node/serialization.h>

namespace {

using namespace tvm;

/*! \brief A part of a parent class, with an argument of its own. */
class NamedNode : public Object {
 public:
  String name;
  TVM_DECLARE_ABSTRACT_NODE(NamedNode, Object, "test.Named", Value(name));
};

class BoxNode : public NamedNode {
 public:
  Array<int64_t> extents;
  ObjectRef content;
  int64_t volume = 0;
  Map<String, int64_t> notes = {{"made", 1}};
  void Init() {
    volume = 1;
    for (int64_t extent : extents) {
      TVM_CHECK(extent > 0, ValueError) << "test.Box " << name << ": extent " << extent;
      volume *= extent;
    }
  }
  TVM_DECLARE_NODE(BoxNode, NamedNode, "test.Box", Default(notes), Value(extents), Maybe(content),
                   Derived(volume));
};
class Box : public FromFields<ObjectRef, BoxNode> {
 public:
  TVM_DEFINE_NODE_REF_COW(Box, BoxNode);
};

/*! \brief Needs other nodes, and takes its fields in another order than it lists them. */
class PairNode : public Object {
 public:
  Box first;
  Array<Box> rest;
  TVM_DECLARE_NODE(PairNode, Object, "test.Pair", Value(first), Value(rest));
  TVM_NODE_ARGS(Value(rest), Value(first));
};
class Pair : public FromFields<ObjectRef, PairNode> {
 public:
  TVM_DEFINE_NODE_REF(Pair, PairNode);
};

/*! \brief Not made of the values of its fields. */
class HandleNode : public Object {
 public:
  int64_t id = 0;
  TVM_DECLARE_NODE(HandleNode, Object, "test.Handle", Value(id));
  TVM_NODE_ARGS();
};

TVM_REGISTER_NODE(NamedNode);
TVM_REGISTER_NODE(BoxNode);
TVM_REGISTER_NODE(PairNode, "test.MakePair");
TVM_REGISTER_NODE(HandleNode);

template <typename F>
std::string MessageOf(F make) {
  try {
    make();
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

TEST(Construct, TakesTheParentsArgumentsFirstAndThoseThatMayBeLeftOutLast) {
  Box box("b", {2, 3}, ObjectRef(), {{"own", 7}});
  EXPECT_EQ(box->name, "b");
  EXPECT_EQ(box->extents.size(), 2);
  EXPECT_FALSE(box->content.defined());
  EXPECT_EQ(box->notes.at("own"), 7);
  EXPECT_EQ(Box("b", {2}, box)->notes.at("made"), 1);
}

TEST(Construct, InitSetsWhatFollowsAndRefusesWhatDoesNotFit) {
  EXPECT_EQ(Box("b", {2, 3, 4}, ObjectRef())->volume, 24);
  EXPECT_EQ(MessageOf([] { Box("b", {2, 0}, ObjectRef()); }), "test.Box b: extent 0");
}

TEST(Construct, ReferencesMustBeThereAndAbsentListsAreEmpty) {
  Box box("b", Array<int64_t>(nullptr), ObjectRef());
  EXPECT_TRUE(box->extents.defined());
  EXPECT_EQ(MessageOf([&] { Pair({box}, Box()); }), "test.Pair.first is missing");
  EXPECT_EQ(MessageOf([&] { Pair({box, Box()}, box); }), "test.Pair.rest[1] is missing");
}

TEST(Construct, AGlobalFunctionTakesTheSameArguments) {
  const PackedFunc& make = Registry::Require("test.Box");
  Box box = make("b", Array<int64_t>{5}, nullptr);
  EXPECT_EQ(box->volume, 5);
  EXPECT_EQ(MessageOf([&] { make("b"); }), "test.Box: expected 4 arguments, got 1");
  EXPECT_EQ(MessageOf([&] { make("b", "x", nullptr); }),
            "test.Box: argument 1: expected Array[int], got str");
  Pair pair = Registry::Require("test.MakePair")(Array<Box>{box}, box);
  EXPECT_TRUE(pair->first.same_as(box));
  EXPECT_EQ(Registry::Get("test.Handle"), nullptr);
  EXPECT_EQ(Registry::Get("test.Named"), nullptr);
}

TEST(Construct, AFunctionRegisteredByHandTakesThePlaceOfTheImpliedOne) {
  Registry::RegisterImplied("test.hand", [](Args, RetValue* ret) { *ret = 1; });
  EXPECT_EQ(Registry::Require("test.hand")().cast<int>(), 1);
  Registry::Register("test.hand").set_body([](Args, RetValue* ret) { *ret = 2; });
  Registry::RegisterImplied("test.hand", [](Args, RetValue* ret) { *ret = 3; });
  EXPECT_EQ(Registry::Require("test.hand")().cast<int>(), 2);
  EXPECT_NE(MessageOf([] { Registry::Register("test.hand"); }), "no error");
  Registry::Remove("test.hand");
}

TEST(Construct, JsonThatNoConstructorWritesIsRefused) {
  std::string text = SaveJSON(Box("b", {2, 3}, ObjectRef()));
  EXPECT_EQ(LoadJSON(text).cast<Box>()->volume, 6);
  size_t at = text.find("\"volume\": 6");
  ASSERT_NE(at, std::string::npos) << text;
  text.replace(at, 11, "\"volume\": 7");
  EXPECT_NE(
      MessageOf([&] { LoadJSON(text); }).find("test.Box.volume: the other fields make it 6, not 7"),
      std::string::npos);
}

TEST(Construct, MakeNodeNeedsNoFieldThatFollowsFromOthers) {
  Any box = MakeNode("test.Box", {{"name", String("b")}, {"extents", Array<int64_t>{4}}});
  EXPECT_EQ(box.cast<Box>()->volume, 4);
}

}  // namespace
