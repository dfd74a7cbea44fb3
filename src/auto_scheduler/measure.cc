/*!
 * \file measure.cc
 * \brief The nodes that builders and runners exchange.
 */
#include <tvm/auto_scheduler/measure.h>
#include <tvm/runtime/registry.h>

namespace tvm {
namespace auto_scheduler {

TVM_REGISTER_NODE(MeasureInputNode);
TVM_REGISTER_NODE(BuildResultNode);
TVM_REGISTER_NODE(MeasureResultNode);

MeasureInput::MeasureInput(SearchTask task, State state) {
  auto node = make_object<MeasureInputNode>();
  node->task = std::move(task);
  node->state = std::move(state);
  data_ = std::move(node);
}

BuildResult::BuildResult(String filename, Array<te::Tensor> args, int error_no,
                         Optional<String> error_msg, double time_cost) {
  auto node = make_object<BuildResultNode>();
  node->filename = std::move(filename);
  node->args = std::move(args);
  node->error_no = error_no;
  node->error_msg = std::move(error_msg);
  node->time_cost = time_cost;
  data_ = std::move(node);
}

MeasureResult::MeasureResult(Array<double> costs, int error_no, Optional<String> error_msg,
                             double all_cost, double timestamp) {
  auto node = make_object<MeasureResultNode>();
  node->costs = std::move(costs);
  node->error_no = error_no;
  node->error_msg = std::move(error_msg);
  node->all_cost = all_cost;
  node->timestamp = timestamp;
  data_ = std::move(node);
}

TVM_REGISTER_GLOBAL("auto_scheduler.MeasureInput").set_body_typed([](SearchTask task, State state) {
  return MeasureInput(task, state);
});
TVM_REGISTER_GLOBAL("auto_scheduler.BuildResult")
    .set_body_typed([](String filename, Array<te::Tensor> args, int error_no,
                       Optional<String> error_msg, double time_cost) {
      return BuildResult(filename, args, error_no, error_msg, time_cost);
    });
TVM_REGISTER_GLOBAL("auto_scheduler.MeasureResult")
    .set_body_typed([](Array<double> costs, int error_no, Optional<String> error_msg,
                       double all_cost, double timestamp) {
      return MeasureResult(costs, error_no, error_msg, all_cost, timestamp);
    });

}  // namespace auto_scheduler
}  // namespace tvm
