/*!
 * \file tvm/auto_scheduler/measure.h
 * \brief Candidates, and what is exchanged with those who build and time them.
 *
 * A search proposes candidates of whatever kind; builders turn them into machine code, runners time
 * that, and a measurer puts both together, keeps the best of each workload and tells callbacks.
 */
#ifndef TVM_AUTO_SCHEDULER_MEASURE_H_
#define TVM_AUTO_SCHEDULER_MEASURE_H_

#include <tvm/auto_scheduler/loop_state.h>
#include <tvm/auto_scheduler/search_task.h>
#include <tvm/ir/module.h>

#include <string>

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
  /*! \brief What each kernel of a GPU takes, as JSON: name to registers, bytes of shared memory, of
   *         stack and of spills. Empty for processors. */
  String kernels;
  /*! \brief Mean of the costs in seconds, 1e10 on failure. */
  double MeanCost() const;
  TVM_DECLARE_NODE(MeasureResultNode, Object, "auto_scheduler.MeasureResult", Value(costs),
                   Value(error_no), Value(error_msg), Value(all_cost), Value(timestamp),
                   Default(kernels));
};

class MeasureResult : public FromFields<ObjectRef, MeasureResultNode> {
 public:
  TVM_DEFINE_NODE_REF(MeasureResult, MeasureResultNode);
};

/*!
 * \brief A program to measure, whatever describes it.
 *
 * The Python class of a kind says how a worker makes the program, see `Candidate.request`.
 */
class CandidateNode : public Object {
 public:
  /*! \brief Names the computation: only latencies of equal keys compare. */
  virtual String WorkloadKey() const = 0;
  virtual Target BuildTarget() const = 0;
  /*! \brief Operations of one run, for figures of throughput; 0 where nobody counted. */
  virtual double Flop() const { return 0; }
  /*! \brief The line of a record file that says this program took that long. */
  virtual String Record(const MeasureResult& result) const = 0;
  TVM_DECLARE_ABSTRACT_NODE(CandidateNode, Object, "auto_scheduler.Candidate");
};

class Candidate : public ObjectRef {
 public:
  TVM_DEFINE_REF(Candidate, ObjectRef, CandidateNode);
};

/*! \brief A loop state of a task. */
class MeasureInputNode : public CandidateNode {
 public:
  SearchTask task;
  State state;
  String WorkloadKey() const final { return task->workload_key; }
  Target BuildTarget() const final { return task->target; }
  double Flop() const final;
  String Record(const MeasureResult& result) const final;
  TVM_DECLARE_NODE(MeasureInputNode, CandidateNode, "auto_scheduler.MeasureInput", Value(task),
                   Value(state));
};

class MeasureInput : public FromFields<Candidate, MeasureInputNode> {
 public:
  TVM_DEFINE_NODE_REF(MeasureInput, MeasureInputNode);
};

/*! \brief A function that somebody else scheduled. */
class ModuleCandidateNode : public CandidateNode {
 public:
  /*! \brief One function over buffers, the last of which is the output. */
  IRModule mod;
  Target target;
  String workload_key;
  /*! \brief How the program was made, as JSON; becomes part of the record. */
  String origin;
  double flop{0};
  String WorkloadKey() const final { return workload_key; }
  Target BuildTarget() const final { return target; }
  double Flop() const final { return flop; }
  String Record(const MeasureResult& result) const final;
  /*! \brief ValueError unless the module has one function and the origin is JSON. */
  void Init();
  TVM_DECLARE_NODE(ModuleCandidateNode, CandidateNode, "auto_scheduler.ModuleCandidate", Value(mod),
                   Value(target), Value(workload_key), Value(origin), Value(flop));
};

class ModuleCandidate : public FromFields<Candidate, ModuleCandidateNode> {
 public:
  TVM_DEFINE_NODE_REF(ModuleCandidate, ModuleCandidateNode);
};

/*!
 * \brief A task's computation under the schedule that the operator library has for it.
 *
 * What a search has to beat: a kernel whose records are all slower is compiled with that schedule.
 */
class LibraryCandidateNode : public CandidateNode {
 public:
  SearchTask task;
  String WorkloadKey() const final { return task->workload_key; }
  Target BuildTarget() const final { return task->target; }
  double Flop() const final;
  /*! \brief Like that of a ModuleCandidate, of origin "library". */
  String Record(const MeasureResult& result) const final;
  TVM_DECLARE_NODE(LibraryCandidateNode, CandidateNode, "auto_scheduler.LibraryCandidate",
                   Value(task));
};

class LibraryCandidate : public FromFields<Candidate, LibraryCandidateNode> {
 public:
  TVM_DEFINE_NODE_REF(LibraryCandidate, LibraryCandidateNode);
};

/*! \brief A compiled program, or why it could not be compiled. */
class BuildResultNode : public Object {
 public:
  /*! \brief Path of a library, of builders that write files; else empty. */
  String filename;
  /*! \brief The function's arguments, of builders that write files. */
  Array<te::Tensor> args;
  int error_no{0};
  Optional<String> error_msg;
  /*! \brief Seconds spent on the build. */
  double time_cost{0};
  /*! \brief Contents of an object file, of builders that write none. */
  String code;
  /*! \brief JSON: functions, arguments and layouts of `code`. */
  String description;
  TVM_DECLARE_NODE(BuildResultNode, Object, "auto_scheduler.BuildResult", Value(filename),
                   Value(args), Value(error_no), Value(error_msg), Value(time_cost), Value(code),
                   Value(description));
};

class BuildResult : public FromFields<ObjectRef, BuildResultNode> {
 public:
  TVM_DEFINE_NODE_REF(BuildResult, BuildResultNode);
};

/*! \brief Compiles candidates. */
class ProgramBuilderNode : public Object {
 public:
  /*! \brief Builds at once. */
  int n_parallel{1};
  /*! \brief Seconds for one build. */
  double timeout{15};
  /*!
   * \brief Compile a batch.
   * \param unscheduled Build the computations of the candidates with nothing scheduled instead.
   * \return One result a candidate; failures are results too.
   */
  virtual Array<BuildResult> Build(const Array<Candidate>& candidates, bool unscheduled) const = 0;
  /*! \brief ValueError for a number out of range. */
  void Init();
  TVM_DECLARE_ABSTRACT_NODE(ProgramBuilderNode, Object, "auto_scheduler.ProgramBuilder",
                            Value(n_parallel), Value(timeout));
};

class ProgramBuilder : public ObjectRef {
 public:
  TVM_DEFINE_REF(ProgramBuilder, ObjectRef, ProgramBuilderNode);
};

/*! \brief What a runner may use of what is known already, and whom it tells. */
struct RunContext {
  /*! \brief Workload key to the latency in seconds of its best program; far slower ones are run
   *         only briefly. */
  Map<String, double> best_seconds;
  /*! \brief Workload key to the unscheduled program, where outputs are to be compared. */
  Map<String, BuildResult> references;
  /*! \brief Called with position and result as soon as a result is known; may be null. */
  PackedFunc on_result;
};

/*! \brief Times compiled programs. */
class ProgramRunnerNode : public Object {
 public:
  /*! \brief Seconds for one candidate. */
  double timeout{10};
  /*! \brief Calls in one repeat, at least, and number of repeats, each of which gives one cost. */
  int number{3};
  int repeat{1};
  /*! \brief A repeat is at least this long. */
  double min_repeat_ms{100};
  /*! \brief Seconds between repeats and between candidates. */
  double cooldown_interval{0};
  /*! \brief Empty the caches before each call. */
  bool enable_cpu_cache_flush{false};
  /*! \brief Index of the device. */
  int device{0};
  /*! \brief Whether outputs are compared with those of the unscheduled program. */
  bool check_correctness{false};
  /*!
   * \brief Time a batch. Failed builds are passed on as results.
   * \return One result a candidate.
   */
  virtual Array<MeasureResult> Run(const Array<Candidate>& candidates,
                                   const Array<BuildResult>& programs,
                                   const RunContext& context) const = 0;
  /*! \brief ValueError for a number out of range. */
  void Init();
  TVM_DECLARE_ABSTRACT_NODE(ProgramRunnerNode, Object, "auto_scheduler.ProgramRunner",
                            Value(timeout), Value(number), Value(repeat), Value(min_repeat_ms),
                            Value(cooldown_interval), Value(enable_cpu_cache_flush), Value(device),
                            Value(check_correctness));
};

class ProgramRunner : public ObjectRef {
 public:
  TVM_DEFINE_REF(ProgramRunner, ObjectRef, ProgramRunnerNode);
};

/*! \brief Hears of measurements. `policy` is the SearchPolicy that asked for them, or null. */
class MeasureCallbackNode : public Object {
 public:
  /*! \brief Called as soon as a result is known. */
  virtual void OnResult(const ObjectRef& policy, const Candidate& candidate,
                        const MeasureResult& result) {}
  /*! \brief Called after each batch. */
  virtual void Callback(const ObjectRef& policy, const Array<Candidate>& candidates,
                        const Array<MeasureResult>& results) {}
  TVM_DECLARE_ABSTRACT_NODE(MeasureCallbackNode, Object, "auto_scheduler.MeasureCallback");
};

class MeasureCallback : public ObjectRef {
 public:
  TVM_DEFINE_MUTABLE_REF(MeasureCallback, ObjectRef, MeasureCallbackNode);
};

/*! \brief Appends each result to a file as soon as it is known. */
class RecordToFileNode : public MeasureCallbackNode {
 public:
  String filename;
  void OnResult(const ObjectRef& policy, const Candidate& candidate,
                const MeasureResult& result) final;
  TVM_DECLARE_NODE(RecordToFileNode, MeasureCallbackNode, "auto_scheduler.RecordToFile",
                   Value(filename));
};

/*! \brief Builds and times batches of candidates, and keeps the best of each workload. */
class ProgramMeasurerNode : public Object {
 public:
  ProgramBuilder builder;
  ProgramRunner runner;
  Array<MeasureCallback> callbacks;
  /*! \brief 0: silent, 1: a character a program, 2: a paragraph a program. */
  int verbose{1};
  /*! \brief After this many failures in a row, whose cause is hardly the candidates, programs are
   *         shown with what went wrong until one succeeds. A constructor takes one below 1 for the
   *         usual number. */
  int max_continuous_error{kMaxContinuousError};
  /*! \brief Measurements, and failed ones among them. */
  int ct{0}, error_ct{0};
  /*! \brief What the last candidate that failed said. */
  Optional<String> last_error;
  /*! \brief Workload key to the latency of its best program, and to that program. */
  Map<String, double> best_seconds;
  Map<String, Candidate> best;

  static constexpr int kMaxContinuousError = 150;

  /*!
   * \brief Measure candidates in batches: each is built by all workers at once, then run program by
   *        program, so that no build disturbs a measurement.
   * \param policy Who asks; goes to the callbacks.
   * \param batch_size Programs in a batch; -1 for two a worker of the builder.
   */
  Array<MeasureResult> Measure(const ObjectRef& policy, const Array<Candidate>& candidates,
                               int batch_size = -1);
  /*! \brief Take a result that was measured earlier into account. */
  void Observe(const Candidate& candidate, const MeasureResult& result);
  /*! \brief Forget all results. */
  void Reset();

  void Init();
  TVM_DECLARE_NODE(ProgramMeasurerNode, Object, "auto_scheduler.ProgramMeasurer", Value(builder),
                   Value(runner), Value(callbacks), Default(verbose), Default(max_continuous_error),
                   Ignore(ct), Ignore(error_ct), Ignore(last_error), Ignore(best_seconds),
                   Ignore(best));

 private:
  Array<MeasureResult> MeasureBatch(const ObjectRef& policy, const Array<Candidate>& candidates);
  Map<String, BuildResult> References(const Array<Candidate>& candidates);
  void Show(const Candidate& candidate, const MeasureResult& result) const;

  int errors_in_a_row_{0};
  Map<String, BuildResult> references_;
};

class ProgramMeasurer : public FromFields<ObjectRef, ProgramMeasurerNode> {
 public:
  TVM_DEFINE_MUTABLE_REF(ProgramMeasurer, Constructors, ProgramMeasurerNode);
  using Constructors::Constructors;
};

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_MEASURE_H_
