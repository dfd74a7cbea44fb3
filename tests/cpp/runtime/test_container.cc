#include <gtest/gtest.h>
#include <tvm/runtime/container.h>
#include <tvm/runtime/registry.h>

namespace {

using namespace tvm;

TEST(Array, IsSharedUntilWritten) {
  Array<int64_t> a = {1, 2, 3};
  Array<int64_t> b = a;
  EXPECT_TRUE(a.same_as(b));
  b.push_back(4);
  EXPECT_EQ(a.size(), 3u);
  EXPECT_EQ(b.back(), 4);
}

TEST(Array, MapReturnsTheSameArrayWhenNothingChanges) {
  Array<String> names = {"a", "b"};
  EXPECT_TRUE(names.Map([](String s) { return s; }).same_as(names));
  Array<String> longer = names.Map([](String s) { return s == "b" ? String("bb") : s; });
  EXPECT_EQ(longer[1], "bb");
  EXPECT_TRUE(longer[0].same_as(names[0]));
  EXPECT_EQ(names[1], "b");
}

TEST(Array, InsertEraseAndOrder) {
  Array<int64_t> a = {1, 4};
  std::vector<int64_t> middle = {2, 3};
  a.insert(a.begin() + 1, middle.begin(), middle.end());
  a.erase(a.begin());
  EXPECT_EQ(std::vector<int64_t>(a.begin(), a.end()), (std::vector<int64_t>{2, 3, 4}));
}

TEST(Array, BadIndexNamesIndexAndSize) {
  Array<int64_t> a = {1};
  try {
    a[3];
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "IndexError: Array: index 3 is out of range for 1 elements");
  }
}

TEST(Array, DowncastChecksElements) {
  ObjectRef mixed = Array<Any>{Any(1), Any(String("a"))};
  EXPECT_THROW(Downcast<Array<ObjectRef>>(mixed), Error);
  EXPECT_EQ(Downcast<Array<Any>>(mixed).size(), 2u);
}

TEST(Map, KeepsTheOrderOfInsertion) {
  Map<String, int64_t> map;
  for (int i = 0; i < 40; ++i) map.Set("k" + std::to_string(i * 7 % 40), i);
  int64_t expected = 0;
  for (const auto& [key, value] : map) EXPECT_EQ(value, expected++);
  EXPECT_EQ(expected, 40);
}

TEST(Map, FindsErasesAndReplacesAtEverySize) {
  Map<int64_t, int64_t> map;
  for (int64_t i = 0; i < 100; ++i) {
    map.Set(i, 2 * i);
    for (int64_t j = 0; j <= i; ++j) ASSERT_EQ(map.at(j), 2 * j);
    ASSERT_FALSE(map.contains(i + 1));
  }
  for (int64_t i = 0; i < 100; i += 2) map.erase(i);
  EXPECT_EQ(map.size(), 50u);
  EXPECT_FALSE(map.contains(42));
  map.Set(43, 0);
  EXPECT_EQ(map.at(43), 0);
  EXPECT_EQ(map.size(), 50u);
}

TEST(Map, MissingKeyIsAKeyErrorAndGetIsEmpty) {
  Map<String, String> map = {{"a", "x"}};
  EXPECT_FALSE(map.Get("b").defined());
  EXPECT_EQ(map.Get("a").value(), "x");
  EXPECT_THROW(map.at("b"), Error);
}

TEST(Optional, HoldsAValueOrNothing) {
  Optional<String> none = NullOpt;
  Optional<String> some = String("x");
  EXPECT_FALSE(none);
  EXPECT_EQ(none.value_or("y"), "y");
  EXPECT_EQ(some.value(), "x");
}

TEST(Any, KeepsNumbersExactlyAndOwnsBorrowedStrings) {
  EXPECT_EQ(Any(int64_t{1} << 62).cast<int64_t>(), int64_t{1} << 62);
  EXPECT_THROW(Any(int64_t{1} << 40).cast<int32_t>(), Error);
  TVMAny raw{kTVMStr, 0, {0}};
  std::string text = "hello";
  raw.v_str = text.c_str();
  Any copy(*reinterpret_cast<const Any*>(&raw));
  text = "other";
  EXPECT_EQ(copy.cast<std::string>(), "hello");
}

}  // namespace
