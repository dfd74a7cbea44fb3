/*!
 * \file tvm/auto_scheduler/measure_record.h
 * \brief Reading record files, which hold a JSON line for each measurement.
 */
#ifndef TVM_AUTO_SCHEDULER_MEASURE_RECORD_H_
#define TVM_AUTO_SCHEDULER_MEASURE_RECORD_H_

#include <tvm/auto_scheduler/measure.h>

#include <fstream>
#include <optional>
#include <string>
#include <utility>

namespace tvm {
namespace auto_scheduler {

/*!
 * \brief A place in a record file, which every read moves on.
 *
 * At the end of the file, a later read sees what was appended meanwhile.
 */
class RecordReaderNode : public Object {
 public:
  String filename;

  using Record = std::pair<MeasureInput, MeasureResult>;

  /*! \brief The next line that is neither blank nor a comment, with its number from 1 on. */
  std::optional<std::pair<int64_t, std::string>> ReadLine();
  /*!
   * \brief The next record. Lines that are no JSON, as a killed run leaves behind, are passed over
   *        with a warning.
   * \throws ValueError for JSON that is no record; the message says which line.
   */
  std::optional<Record> ReadNext();
  /*! \brief Up to `max_lines` records behind the next `skip_lines`; -1 for all. */
  std::pair<Array<MeasureInput>, Array<MeasureResult>> ReadLines(int64_t max_lines,
                                                                 int64_t skip_lines);
  /*! \brief Opens the file; ValueError if it cannot be read. */
  void Init();
  TVM_DECLARE_NODE(RecordReaderNode, Object, "auto_scheduler.RecordReader", Value(filename));

 private:
  std::ifstream file_;
  int64_t line_number_{0};
};

class RecordReader : public FromFields<ObjectRef, RecordReaderNode> {
 public:
  TVM_DEFINE_MUTABLE_REF(RecordReader, Constructors, RecordReaderNode);
  using Constructors::Constructors;
};

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_MEASURE_RECORD_H_
