#include <gtest/gtest.h>
#include <tvm/auto_scheduler/measure_record.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace tvm {
namespace auto_scheduler {
namespace {

using Line = std::pair<int64_t, std::string>;

TEST(RecordReader, PassesOverBlankLinesAndCommentsAndSeesWhatIsAppended) {
  const std::string path = testing::TempDir() + "records.json";
  std::ofstream(path) << "# a comment\n\n  {\"i\": 1}  \n\t# another\n{\"i\": 2}\r\n";
  RecordReader reader{String(path)};
  EXPECT_EQ(reader->ReadLine(), Line(3, "{\"i\": 1}"));
  EXPECT_EQ(reader->ReadLine(), Line(5, "{\"i\": 2}"));
  EXPECT_FALSE(reader->ReadLine());
  std::ofstream(path, std::ios::app) << "{\"i\": 3}";
  EXPECT_EQ(reader->ReadLine(), Line(6, "{\"i\": 3}"));
  EXPECT_FALSE(reader->ReadLine());
  std::filesystem::remove(path);
}

TEST(RecordReader, NamesAFileThatCannotBeRead) {
  try {
    RecordReader reader{String("/no/such/records.json")};
    FAIL() << "there is no such file";
  } catch (const runtime::Error& error) {
    EXPECT_EQ(error.kind(), "ValueError");
    EXPECT_NE(std::string(error.what()).find("/no/such/records.json"), std::string::npos);
  }
}

}  // namespace
}  // namespace auto_scheduler
}  // namespace tvm
