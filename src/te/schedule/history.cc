/*!
 * \file history.cc
 * \brief What was done to a schedule, for those who look at its steps.
 */
#include <tvm/te/schedule.h>

namespace tvm {
namespace te {

ScheduleNode::~ScheduleNode() {
  for (const Array<Stage>& kept : {stages, groups}) {
    for (const Stage& stage : kept) {
      if (stage.defined() && stage->keeper == this) stage.get()->keeper = nullptr;
    }
  }
}

void ScheduleNode::Record(const char* primitive) {
  // The primitive may have made stages.
  for (const Array<Stage>& kept : {stages, groups}) {
    for (const Stage& stage : kept) stage.get()->keeper = this;
  }
  schedule_record.push_back(GetRef<Schedule>(this).copy());
  primitive_record.push_back(primitive);
}

}  // namespace te
}  // namespace tvm
