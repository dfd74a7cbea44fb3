/*!
 * \file program_measurer.cc
 * \brief Building and timing in batches, with the best of each workload and who is told.
 */
#include <tvm/auto_scheduler/measure.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <limits>
#include <sstream>
#include <utility>

namespace tvm {
namespace auto_scheduler {

TVM_REGISTER_NODE(ProgramMeasurerNode);

namespace {

/*! \brief The verbosity at which programs are shown with their results. */
constexpr int kShowPrograms = 2;
/*! \brief Seconds of a program that could not be measured. */
constexpr double kNoTime = 1e10;

/*! \brief "", "T" for timeouts or "E" for other errors. */
const char* Mark(int error_no) {
  switch (static_cast<MeasureErrorNO>(error_no)) {
    case MeasureErrorNO::kNoError:
      return "";
    case MeasureErrorNO::kBuildTimeoutError:
    case MeasureErrorNO::kRunTimeoutError:
      return "T";
    default:
      return "E";
  }
}

/*!
 * \brief The result; a failure where a runner tells of no error and of no time either.
 *
 * A clock that is too coarse gives zero seconds, one that jumps may give less. Such a record could
 * not be read again, and a search that compares times would come to nothing.
 */
MeasureResult WithTime(const MeasureResult& result) {
  if (result->error_no != static_cast<int>(MeasureErrorNO::kNoError)) return result;
  bool is_time = !result->costs.empty();
  std::ostringstream costs;
  for (double cost : result->costs) {
    is_time = is_time && std::isfinite(cost) && cost > 0;
    costs << ' ' << cost;
  }
  if (is_time) return result;
  auto failed = make_object<MeasureResultNode>(*result.get());
  failed->costs = {kNoTime};
  failed->error_no = static_cast<int>(MeasureErrorNO::kRuntimeDeviceError);
  failed->error_msg = String("the runner told of no error, but its seconds are no times:" +
                             (costs.str().empty() ? " there are none" : costs.str()));
  return MeasureResult(std::move(failed));
}

}  // namespace

void ProgramMeasurerNode::Init() {
  if (max_continuous_error <= 0) max_continuous_error = kMaxContinuousError;
}

void ProgramMeasurerNode::Reset() {
  ct = error_ct = errors_in_a_row_ = 0;
  last_error = {};
  best_seconds = {};
  best = {};
}

void ProgramMeasurerNode::Observe(const Candidate& candidate, const MeasureResult& result) {
  ++ct;
  if (result->error_no != static_cast<int>(MeasureErrorNO::kNoError)) {
    ++error_ct;
    last_error = result->error_msg;
    return;
  }
  String key = candidate->WorkloadKey();
  double seconds = result->MeanCost();
  if (seconds < best_seconds.Get(key).value_or(std::numeric_limits<double>::infinity())) {
    best_seconds.Set(key, seconds);
    best.Set(key, candidate);
  }
}

Map<String, BuildResult> ProgramMeasurerNode::References(const Array<Candidate>& candidates) {
  if (!runner->check_correctness) return {};
  for (const Candidate& candidate : candidates) {
    String key = candidate->WorkloadKey();
    if (references_.contains(key)) continue;
    BuildResult reference = builder->Build({candidate}, /*unscheduled=*/true)[0];
    TVM_CHECK(reference->error_no == 0, RuntimeError)
        << "ProgramMeasurer: the unscheduled program, which outputs are compared with, does not "
           "build: "
        << reference->error_msg.value_or("no message");
    references_.Set(key, reference);
  }
  return references_;
}

void ProgramMeasurerNode::Show(const Candidate& candidate, const MeasureResult& result) const {
  const int level =
      errors_in_a_row_ >= max_continuous_error ? std::max(verbose, kShowPrograms) : verbose;
  if (level < 1) return;
  if (level < kShowPrograms) {
    std::cout << '*' << Mark(result->error_no) << std::flush;
    return;
  }
  auto throughput = [&](double seconds) { return candidate->Flop() / seconds / 1e9; };
  double best_so_far = best_seconds.Get(candidate->WorkloadKey()).value_or(1e10);
  std::cout << std::string(50, '=') << "\nNo: " << ct << "\tGFLOPS: " << std::fixed
            << std::setprecision(2) << throughput(result->MeanCost()) << " / "
            << throughput(best_so_far) << std::defaultfloat << "\tresult: " << result << '\n';
  if (const auto* input = candidate.as<MeasureInputNode>())
    std::cout << input->state.ToStr() << '\n';
  std::cout << std::flush;
}

Array<MeasureResult> ProgramMeasurerNode::MeasureBatch(const ObjectRef& policy,
                                                       const Array<Candidate>& candidates) {
  Array<BuildResult> programs = builder->Build(candidates, /*unscheduled=*/false);
  if (verbose >= 1) {
    for (const BuildResult& program : programs) std::cout << '.' << Mark(program->error_no);
    std::cout << std::flush;
  }
  std::vector<bool> told(candidates.size(), false);
  // In the order in which they are known, which a runner of several devices need not keep.
  Array<Candidate> measured;
  Array<MeasureResult> known;
  auto tell_batch = [&] {
    for (const MeasureCallback& callback : callbacks) callback->Callback(policy, measured, known);
  };
  RunContext context{best_seconds, References(candidates), {}};
  auto on_result = [&](int64_t position, const MeasureResult& told_of) {
    const MeasureResult result = WithTime(told_of);
    const int64_t count = static_cast<int64_t>(candidates.size());
    TVM_CHECK(position >= 0 && position < count, RuntimeError)
        << "ProgramMeasurer: the runner told of a result at position " << position << " of "
        << count << " candidates";
    TVM_CHECK(!told[position], RuntimeError)
        << "ProgramMeasurer: the runner told of the result at position " << position << " twice";
    told[position] = true;
    const Candidate& candidate = candidates[position];
    measured.push_back(candidate);
    known.push_back(result);
    Observe(candidate, result);
    for (const MeasureCallback& callback : callbacks) {
      callback->OnResult(policy, candidate, result);
    }
    errors_in_a_row_ = result->error_no == 0 ? 0 : errors_in_a_row_ + 1;
    if (errors_in_a_row_ == max_continuous_error) {
      std::cout << "\nProgramMeasurer: " << errors_in_a_row_ << " candidates failed in a row, the "
                << "last with error " << result->error_no << ": "
                << result->error_msg.value_or("no message")
                << "\nUntil one succeeds, programs are shown." << std::endl;
    }
    Show(candidate, result);
  };
  context.on_result = PackedFunc([&](Args args, RetValue*) {
    on_result(args[0].cast<int64_t>(), args[1].cast<MeasureResult>());
  });
  Array<MeasureResult> results;
  try {
    results = runner->Run(candidates, programs, context);
  } catch (...) {
    // What was measured before an interruption counts all the same.
    if (!known.empty()) tell_batch();
    throw;
  }
  // A runner that knows all results at once need not tell of each.
  for (size_t i = 0; i < told.size(); ++i) {
    if (!told[i]) on_result(static_cast<int64_t>(i), results[i]);
    results.Set(static_cast<int64_t>(i), WithTime(results[i]));
  }
  tell_batch();
  return results;
}

Array<MeasureResult> ProgramMeasurerNode::Measure(const ObjectRef& policy,
                                                  const Array<Candidate>& candidates,
                                                  int batch_size) {
  if (batch_size < 1) batch_size = 2 * builder->n_parallel;
  auto start = std::chrono::steady_clock::now();
  if (verbose >= 1) std::cout << "Get " << candidates.size() << " programs to measure:\n";
  Array<MeasureResult> results;
  for (size_t begin = 0; begin < candidates.size(); begin += static_cast<size_t>(batch_size)) {
    size_t end = std::min(candidates.size(), begin + static_cast<size_t>(batch_size));
    Array<Candidate> batch(candidates.begin() + static_cast<int64_t>(begin),
                           candidates.begin() + static_cast<int64_t>(end));
    for (const MeasureResult& result : MeasureBatch(policy, batch)) results.push_back(result);
  }
  if (verbose >= 1) {
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::cout << "\nTime elapsed for measurement: " << std::fixed << std::setprecision(2)
              << seconds.count() << std::defaultfloat << " s" << std::endl;
  }
  return results;
}

TVM_REGISTER_GLOBAL("auto_scheduler.MeasurePerformance")
    .set_body_typed([](ProgramMeasurer measurer, ObjectRef policy, Array<Candidate> candidates,
                       int batch_size) {
      return measurer->Measure(policy, candidates, batch_size);
    });
TVM_REGISTER_GLOBAL("auto_scheduler.ProgramMeasurerObserve")
    .set_body_typed([](ProgramMeasurer measurer, Candidate candidate, MeasureResult result) {
      measurer->Observe(candidate, result);
    });
TVM_REGISTER_GLOBAL("auto_scheduler.ProgramMeasurerReset")
    .set_body_typed([](ProgramMeasurer measurer) { measurer->Reset(); });

}  // namespace auto_scheduler
}  // namespace tvm
