/*!
 * \file measure.cc
 * \brief Candidates, the results of building and timing them, and who hears of these.
 */
#include <tvm/auto_scheduler/measure.h>
#include <tvm/runtime/registry.h>

#include <utility>

#include "../node/json.h"

namespace tvm {
namespace auto_scheduler {

TVM_REGISTER_NODE(MeasureInputNode);
TVM_REGISTER_NODE(ModuleCandidateNode);
TVM_REGISTER_NODE(BuildResultNode);
TVM_REGISTER_NODE(MeasureResultNode);
TVM_REGISTER_NODE(RecordToFileNode);

namespace {
// Cost in seconds of a program that could not be measured.
constexpr double kMaxCost = 1e10;
}  // namespace

MeasureInput::MeasureInput(SearchTask task, State state) {
  auto node = make_object<MeasureInputNode>();
  node->task = std::move(task);
  node->state = std::move(state);
  data_ = std::move(node);
}

double MeasureInputNode::Flop() const { return task->compute_dag->flop_ct; }

// Records name workloads of Python's registry, so Python writes and reads them.
String MeasureInputNode::Record(const MeasureResult& result) const {
  return Registry::Require("auto_scheduler.WriteMeasureRecords")(GetRef<MeasureInput>(this), result)
      .cast<String>();
}

ModuleCandidate::ModuleCandidate(IRModule mod, Target target, String workload_key, String origin,
                                 double flop) {
  TVM_CHECK(mod.defined() && target.defined(), ValueError)
      << "ModuleCandidate: give a module and a target";
  TVM_CHECK(mod->functions.size() == 1, ValueError)
      << "ModuleCandidate: expected a module of one function, got " << mod->functions.size();
  json::Value::Parse(std::string(origin));
  auto node = make_object<ModuleCandidateNode>();
  node->mod = std::move(mod);
  node->target = std::move(target);
  node->workload_key = std::move(workload_key);
  node->origin = std::move(origin);
  node->flop = flop;
  data_ = std::move(node);
}
TVM_REGISTER_NODE_CHECK(ModuleCandidateNode, [](const ModuleCandidateNode* node) {
  ModuleCandidate(node->mod, node->target, node->workload_key, node->origin, node->flop);
});

String ModuleCandidateNode::Record(const MeasureResult& result) const {
  json::ArrayValue costs;
  for (double cost : result->costs) costs.emplace_back(cost);
  json::ArrayValue measured{
      json::Value(std::move(costs)), json::Value(static_cast<int64_t>(result->error_no)),
      json::Value(result->all_cost), json::Value(static_cast<int64_t>(result->timestamp))};
  json::ObjectValue record;
  record.emplace_back("workload", json::Value(std::string(workload_key)));
  record.emplace_back("target", json::Value(std::string(target->str())));
  record.emplace_back("origin", json::Value::Parse(std::string(origin)));
  record.emplace_back("r", json::Value(std::move(measured)));
  if (result->error_msg.defined()) {
    record.emplace_back("e", json::Value(std::string(result->error_msg.value())));
  }
  std::string text;
  json::Value(std::move(record)).Write(&text);
  return text;
}

BuildResult::BuildResult(String filename, Array<te::Tensor> args, int error_no,
                         Optional<String> error_msg, double time_cost, String code,
                         String description) {
  auto node = make_object<BuildResultNode>();
  node->filename = std::move(filename);
  node->args = std::move(args);
  node->error_no = error_no;
  node->error_msg = std::move(error_msg);
  node->time_cost = time_cost;
  node->code = std::move(code);
  node->description = std::move(description);
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

double MeasureResultNode::MeanCost() const {
  if (error_no != static_cast<int>(MeasureErrorNO::kNoError) || costs.empty()) return kMaxCost;
  double sum = 0;
  for (double cost : costs) sum += cost;
  return sum / static_cast<double>(costs.size());
}

void RecordToFileNode::OnResult(const ObjectRef&, const Candidate& candidate,
                                const MeasureResult& result) {
  Registry::Require("auto_scheduler.AppendRecord")(filename, candidate->Record(result));
}

TVM_REGISTER_GLOBAL("auto_scheduler.MeasureInput").set_body_typed([](SearchTask task, State state) {
  return MeasureInput(task, state);
});
TVM_REGISTER_GLOBAL("auto_scheduler.ModuleCandidate")
    .set_body_typed([](IRModule mod, Target target, String key, String origin, double flop) {
      return ModuleCandidate(mod, target, key, origin, flop);
    });
TVM_REGISTER_GLOBAL("auto_scheduler.CandidateWorkloadKey").set_body_typed([](Candidate candidate) {
  return candidate->WorkloadKey();
});
TVM_REGISTER_GLOBAL("auto_scheduler.CandidateTarget").set_body_typed([](Candidate candidate) {
  return candidate->BuildTarget();
});
TVM_REGISTER_GLOBAL("auto_scheduler.CandidateRecord")
    .set_body_typed([](Candidate candidate, MeasureResult result) {
      return candidate->Record(result);
    });
TVM_REGISTER_GLOBAL("auto_scheduler.BuildResult")
    .set_body_typed([](String filename, Array<te::Tensor> args, int error_no,
                       Optional<String> error_msg, double time_cost, String code,
                       String description) {
      return BuildResult(filename, args, error_no, error_msg, time_cost, code, description);
    });
TVM_REGISTER_GLOBAL("auto_scheduler.MeasureResult")
    .set_body_typed([](Array<double> costs, int error_no, Optional<String> error_msg,
                       double all_cost, double timestamp) {
      return MeasureResult(costs, error_no, error_msg, all_cost, timestamp);
    });
TVM_REGISTER_GLOBAL("auto_scheduler.MeasureResultMeanCost")
    .set_body_method<MeasureResult>(&MeasureResultNode::MeanCost);
TVM_REGISTER_GLOBAL("auto_scheduler.RecordToFile").set_body_typed([](String filename) {
  auto node = make_object<RecordToFileNode>();
  node->filename = filename;
  return MeasureCallback(ObjectPtr<Object>(std::move(node)));
});

}  // namespace auto_scheduler
}  // namespace tvm
