/*!
 * \file measure_record.cc
 * \brief Reading record files line by line.
 */
#include <tvm/auto_scheduler/measure_record.h>
#include <tvm/runtime/container/bytes.h>
#include <tvm/runtime/registry.h>

#include <limits>

namespace tvm {
namespace auto_scheduler {

TVM_REGISTER_NODE(RecordReaderNode);

void RecordReaderNode::Init() {
  file_.open(std::string(filename));
  TVM_CHECK(file_.is_open(), ValueError)
      << "RecordReader: the file " << filename << " cannot be read";
}

std::optional<std::pair<int64_t, std::string>> RecordReaderNode::ReadLine() {
  constexpr const char* kBlanks = " \t\r\f\v";
  // The end seen by an earlier read may be further down by now.
  file_.clear();
  for (std::string line; std::getline(file_, line);) {
    ++line_number_;
    const size_t begin = line.find_first_not_of(kBlanks);
    if (begin == std::string::npos || line[begin] == '#') continue;
    const size_t end = line.find_last_not_of(kBlanks);
    return std::pair(line_number_, line.substr(begin, end + 1 - begin));
  }
  return std::nullopt;
}

std::optional<RecordReaderNode::Record> RecordReaderNode::ReadNext() {
  // Records name workloads of Python's registry, so Python makes inputs of them.
  const PackedFunc& parse = Registry::Require("auto_scheduler.ReadRecordLine");
  while (auto line = ReadLine()) {
    Array<ObjectRef> record =
        parse(filename, line->first, Bytes(std::move(line->second))).cast<Array<ObjectRef>>();
    if (record.empty()) continue;
    return Record(Downcast<MeasureInput>(record[0]), Downcast<MeasureResult>(record[1]));
  }
  return std::nullopt;
}

std::pair<Array<MeasureInput>, Array<MeasureResult>> RecordReaderNode::ReadLines(
    int64_t max_lines, int64_t skip_lines) {
  if (max_lines < 0) max_lines = std::numeric_limits<int64_t>::max();
  Array<MeasureInput> inputs;
  Array<MeasureResult> results;
  for (; skip_lines > 0 && ReadNext(); --skip_lines) {
  }
  while (static_cast<int64_t>(inputs.size()) < max_lines) {
    std::optional<Record> record = ReadNext();
    if (!record) break;
    inputs.push_back(record->first);
    results.push_back(record->second);
  }
  return {inputs, results};
}

TVM_REGISTER_GLOBAL("auto_scheduler.RecordReaderReadLine").set_body_typed([](RecordReader reader) {
  Array<Any> out;
  if (auto line = reader->ReadLine()) {
    out.push_back(line->first);
    out.push_back(Bytes(std::move(line->second)));
  }
  return out;
});
TVM_REGISTER_GLOBAL("auto_scheduler.RecordReaderReadNext").set_body_typed([](RecordReader reader) {
  Array<ObjectRef> out;
  if (auto record = reader->ReadNext()) out = {record->first, record->second};
  return out;
});
TVM_REGISTER_GLOBAL("auto_scheduler.RecordReaderReadLines")
    .set_body_typed([](RecordReader reader, int64_t max_lines, int64_t skip_lines) {
      auto [inputs, results] = reader->ReadLines(max_lines, skip_lines);
      return Array<ObjectRef>{inputs, results};
    });

}  // namespace auto_scheduler
}  // namespace tvm
