/*!
 * \file measure.cc
 * \brief Candidates, the results of building and timing them, and who hears of these.
 */
#include <tvm/auto_scheduler/measure.h>
#include <tvm/runtime/registry.h>

#include <utility>

#include "runtime/json.h"

namespace tvm {
namespace auto_scheduler {

TVM_REGISTER_NODE(MeasureInputNode);
TVM_REGISTER_NODE(ModuleCandidateNode);
TVM_REGISTER_NODE(LibraryCandidateNode);
TVM_REGISTER_NODE(BuildResultNode);
TVM_REGISTER_NODE(MeasureResultNode);
TVM_REGISTER_NODE(RecordToFileNode);

namespace {
// Cost in seconds of a program that could not be measured.
constexpr double kMaxCost = 1e10;

/*! \brief The record of a program that is no loop state. */
String RecordOf(const String& workload_key, const Target& target, json::Value origin,
                const MeasureResult& result) {
  json::ArrayValue costs;
  for (double cost : result->costs) costs.emplace_back(cost);
  json::ArrayValue measured{
      json::Value(std::move(costs)), json::Value(static_cast<int64_t>(result->error_no)),
      json::Value(result->all_cost), json::Value(static_cast<int64_t>(result->timestamp))};
  json::ObjectValue record;
  record.emplace_back("workload", json::Value(std::string(workload_key)));
  record.emplace_back("target", json::Value(std::string(target->str())));
  record.emplace_back("origin", std::move(origin));
  record.emplace_back("r", json::Value(std::move(measured)));
  if (result->error_msg.defined()) {
    record.emplace_back("e", json::Value(std::string(result->error_msg.value())));
  }
  std::string text;
  json::Value(std::move(record)).Write(&text);
  return text;
}
}  // namespace

double MeasureInputNode::Flop() const { return task->compute_dag->flop_ct; }

// Records name workloads of Python's registry, so Python writes and reads them.
String MeasureInputNode::Record(const MeasureResult& result) const {
  return Registry::Require("auto_scheduler.WriteMeasureRecords")(GetRef<MeasureInput>(this), result)
      .cast<String>();
}

void ModuleCandidateNode::Init() {
  TVM_CHECK(mod->functions.size() == 1, ValueError)
      << "ModuleCandidate: expected a module of one function, got " << mod->functions.size();
  json::Value::Parse(std::string(origin));
}

String ModuleCandidateNode::Record(const MeasureResult& result) const {
  return RecordOf(workload_key, target, json::Value::Parse(std::string(origin)), result);
}

double LibraryCandidateNode::Flop() const { return task->compute_dag->flop_ct; }

String LibraryCandidateNode::Record(const MeasureResult& result) const {
  return RecordOf(task->workload_key, task->target, json::Value(std::string("library")), result);
}

double MeasureResultNode::MeanCost() const {
  if (error_no != static_cast<int>(MeasureErrorNO::kNoError) || costs.empty()) return kMaxCost;
  double sum = 0;
  for (double cost : costs) sum += cost;
  // Costs of 0 are those of a program that is only there to be measured.
  return sum == 0 ? kMaxCost : sum / static_cast<double>(costs.size());
}

void RecordToFileNode::OnResult(const ObjectRef&, const Candidate& candidate,
                                const MeasureResult& result) {
  Registry::Require("auto_scheduler.AppendRecord")(filename, candidate->Record(result));
}

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
TVM_REGISTER_GLOBAL("auto_scheduler.MeasureResultCosts").set_body_typed([](MeasureResult result) {
  return result->costs;
});
TVM_REGISTER_GLOBAL("auto_scheduler.MeasureResultMeanCost")
    .set_body_method<MeasureResult>(&MeasureResultNode::MeanCost);

}  // namespace auto_scheduler
}  // namespace tvm
