/*!
 * \file tvm/auto_scheduler/measure.h
 * \brief What is handed to builders and runners, and what comes back.
 */
#ifndef TVM_AUTO_SCHEDULER_MEASURE_H_
#define TVM_AUTO_SCHEDULER_MEASURE_H_

#include <tvm/auto_scheduler/loop_state.h>
#include <tvm/auto_scheduler/search_task.h>

namespace tvm {
namespace auto_scheduler {

/*! \brief Why a measurement gave no cost. The values are those of the record format. */
enum class MeasureErrorNO : int {
  kNoError = 0,
  kInstantiationError = 1,
  kCompileHostError = 2,
  kCompileDeviceError = 3,
  kRuntimeDeviceError = 4,
  kWrongAnswerError = 5,
  kBuildTimeoutError = 6,
  kRunTimeoutError = 7,
  kUnknownError = 8,
};

/*! \brief A program to measure. */
class MeasureInputNode : public Object {
 public:
  SearchTask task;
  State state;
  TVM_DECLARE_NODE(MeasureInputNode, Object, "auto_scheduler.MeasureInput", Value(task),
                   Value(state));
};

class MeasureInput : public ObjectRef {
 public:
  MeasureInput(SearchTask task, State state);
  TVM_DEFINE_REF(MeasureInput, ObjectRef, MeasureInputNode);
};

/*! \brief A compiled program, or why it could not be compiled. */
class BuildResultNode : public Object {
 public:
  /*! \brief Path of the library file, empty on failure. */
  String filename;
  Array<te::Tensor> args;
  int error_no{0};
  Optional<String> error_msg;
  /*! \brief Seconds spent on the build. */
  double time_cost{0};
  TVM_DECLARE_NODE(BuildResultNode, Object, "auto_scheduler.BuildResult", Value(filename),
                   Value(args), Value(error_no), Value(error_msg), Value(time_cost));
};

class BuildResult : public ObjectRef {
 public:
  BuildResult(String filename, Array<te::Tensor> args, int error_no, Optional<String> error_msg,
              double time_cost);
  TVM_DEFINE_REF(BuildResult, ObjectRef, BuildResultNode);
};

/*! \brief Times of one program. */
class MeasureResultNode : public Object {
 public:
  /*! \brief Seconds per run, one entry a repeat; [1e10] on failure. */
  Array<double> costs;
  int error_no{0};
  Optional<String> error_msg;
  /*! \brief Seconds for build and run together. */
  double all_cost{0};
  /*! \brief Seconds since the epoch at which the measurement ended. */
  double timestamp{0};
  TVM_DECLARE_NODE(MeasureResultNode, Object, "auto_scheduler.MeasureResult", Value(costs),
                   Value(error_no), Value(error_msg), Value(all_cost), Value(timestamp));
};

class MeasureResult : public ObjectRef {
 public:
  MeasureResult(Array<double> costs, int error_no, Optional<String> error_msg, double all_cost,
                double timestamp);
  TVM_DEFINE_REF(MeasureResult, ObjectRef, MeasureResultNode);
};

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_MEASURE_H_
