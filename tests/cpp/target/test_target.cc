/*!
 * \file test_target.cc
 * \brief Parsing, printing and refusals of targets.
 */
#include <gtest/gtest.h>
#include <tvm/runtime/dlpack.h>
#include <tvm/target/target.h>

namespace tvm {
namespace {

std::string MessageOf(const std::string& text) {
  try {
    Target target{String(text)};
    return "accepted as " + target->str();
  } catch (const Error& error) {
    return error.kind() + ": " + error.message();
  }
}

TEST(Target, TextFormParsesBackToItself) {
  Target target(String("llvm -num-cores=4 --mattr=+avx2,+fma -model=unknown"));
  EXPECT_EQ(target->GetInt("num-cores", 0), 4);
  EXPECT_EQ(target->GetInt("num_cores", 0), 4);
  EXPECT_EQ(target->GetStr("mattr", ""), "+avx2,+fma");
  EXPECT_EQ(Target(String(target->str()))->str(), target->str());
}

TEST(Target, RefusalsNameTheKnownChoices) {
  EXPECT_NE(MessageOf("nosuch").find("ValueError: Target: unknown kind \"nosuch\"; known kinds: "),
            std::string::npos);
  EXPECT_NE(MessageOf("nosuch").find("llvm"), std::string::npos);
  EXPECT_NE(MessageOf("llvm -nosuch=1").find("unknown option \"nosuch\""), std::string::npos);
  EXPECT_NE(MessageOf("llvm -num-cores=two").find("must be an integer, got \"two\""),
            std::string::npos);
  EXPECT_NE(MessageOf("").find("the text is empty"), std::string::npos);
}

TEST(Target, HostIsKeptApartFromThePrintedForm) {
  Target target(Target(String("cuda")), Target(String("llvm")));
  EXPECT_EQ(target->GetHost()->kind->name, "llvm");
  EXPECT_EQ(target->str(), "cuda -keys=cuda,gpu");
  EXPECT_EQ(target->GetTargetDeviceType(), kDLCUDA);
  EXPECT_EQ(target->GetInt("max_threads_per_block", 0), 1024);
}

TEST(Target, ScopesNest) {
  EXPECT_FALSE(Target::Current(true).defined());
  Target outer(String("llvm -num-cores=1")), inner(String("llvm -num-cores=2"));
  outer.EnterScope();
  inner.EnterScope();
  EXPECT_TRUE(Target::Current().same_as(inner));
  inner.ExitScope();
  EXPECT_TRUE(Target::Current().same_as(outer));
  outer.ExitScope();
  EXPECT_THROW(Target::Current(false), Error);
}

TEST(Target, AnyLibraryMayRegisterAKind) {
  TargetKindEntry::Register("testdev", kDLExtDev)
      .set_default_keys({"testdev"})
      .add_option("units", "int");
  Target target(String("testdev -units=3"));
  EXPECT_EQ(target->str(), "testdev -keys=testdev -units=3");
  EXPECT_THROW(TargetKindEntry::Register("testdev", kDLExtDev), Error);
}

}  // namespace
}  // namespace tvm
