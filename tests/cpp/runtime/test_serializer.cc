#include <gtest/gtest.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>
#include <tvm/runtime/serializer.h>

#include <string>
#include <vector>

namespace tvm {
namespace runtime {
namespace {

template <typename F>
std::string ErrorOf(F&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Serializer, ReadsWhatWasWritten) {
  ByteWriter writer;
  writer.Raw("MAGIC", 5);
  writer.Word(-3);
  writer.Text(std::string("a\0b", 3));
  writer.Words({1, 2, 3});
  writer.Texts({"x", ""});
  ByteReader reader("test", writer.bytes);
  reader.Expect("MAGIC");
  EXPECT_EQ(reader.Word(), -3);
  EXPECT_EQ(reader.Text(), std::string("a\0b", 3));
  EXPECT_EQ(reader.Words(), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(reader.Texts(), (std::vector<std::string>{"x", ""}));
  EXPECT_TRUE(reader.AtEnd());
}

TEST(Serializer, RefusesDataThatIsCutShort) {
  ByteWriter writer;
  writer.Texts({"some", "texts"});
  for (size_t size = 0; size < writer.bytes.size(); ++size) {
    ByteReader reader("test", std::string_view(writer.bytes).substr(0, size));
    EXPECT_NE(ErrorOf([&] { reader.Texts(); }).find("test: "), std::string::npos) << size;
  }
  ByteReader reader("test", "OTHER");
  EXPECT_NE(ErrorOf([&] { reader.Expect("MAGIC"); }).find("does not begin"), std::string::npos);
}

TEST(Serializer, LoadsATreeOfModulesByKind) {
  const std::string name = "runtime.module.loadbinary_test_tree";
  const PackedFunc& make = Registry::Require("runtime.ModuleFromFunctions");
  auto module = [&make](const std::string& text) {
    return make(String("test_tree"), Map<String, PackedFunc>(), String(text), String("txt"))
        .cast<Module>();
  };
  Registry::Register(name).set_body_typed([=](String text) { return module(text.str()); });
  Module root = module("root"), shared = module("shared"), leaf = module("leaf");
  root.Import(shared);
  root.Import(leaf);
  leaf.Import(shared);
  const std::string bytes = SerializeModuleTree(root);
  Module loaded = DeserializeModuleTree(bytes, Module());
  EXPECT_EQ(loaded->GetSource(""), "root");
  ASSERT_EQ(loaded->imports().size(), 2u);
  // A module that two others import is one module again.
  EXPECT_TRUE(loaded->imports()[0].same_as(loaded->imports()[1]->imports()[0]));
  for (size_t size = 0; size < bytes.size(); size += 5) {
    EXPECT_NE(ErrorOf([&] { DeserializeModuleTree(bytes.substr(0, size), Module()); }), "") << size;
  }
  Registry::Remove(name);
  EXPECT_NE(ErrorOf([&] { DeserializeModuleTree(bytes, Module()); }).find(name), std::string::npos);
}

}  // namespace
}  // namespace runtime
}  // namespace tvm
