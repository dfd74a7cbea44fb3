/*!
 * \file program_builder_runner.cc
 * \brief Builders and runners: on this machine, and those that Python defines.
 *
 * What they do, they do in worker processes, which Python starts and watches.
 */
#include <tvm/auto_scheduler/measure.h>
#include <tvm/runtime/registry.h>

#include <mutex>
#include <utility>

namespace tvm {
namespace auto_scheduler {

/*! \brief A function of Python that goes with a node: made when first asked for, and kept. */
class Opened {
 public:
  /*! \brief Nodes that are copied open a function of their own. */
  Opened() = default;
  Opened(const Opened&) {}

  PackedFunc Get(const char* opener, const Object* node) {
    std::lock_guard lock(mutex_);
    if (!function_.defined()) {
      function_ = Registry::Require(opener)(GetRef<ObjectRef>(node)).cast<PackedFunc>();
    }
    return function_;
  }

 private:
  std::mutex mutex_;
  PackedFunc function_;
};

namespace {

void CheckCount(const char* what, size_t results, size_t candidates) {
  TVM_CHECK(results == candidates, ValueError)
      << what << ": " << results << " results for " << candidates << " candidates";
}

void CheckFunction(const char* where, const String& name) {
  TVM_CHECK(name == "default" || std::string(name).find(':') != std::string::npos, ValueError)
      << where << " must be \"default\" or \"module:function\", got \"" << name << '"';
}

}  // namespace

/*! \brief Compiles in worker processes of this machine. */
class LocalBuilderNode : public ProgramBuilderNode {
 public:
  /*! \brief "default", or `module:function` to be called in the workers. */
  String build_func;
  /*! \brief Memory that one build may take. */
  int64_t memory_bytes{0};
  Array<BuildResult> Build(const Array<Candidate>& candidates, bool unscheduled) const final {
    return Open()(candidates, unscheduled).cast<Array<BuildResult>>();
  }
  PackedFunc Open() const { return opened_.Get("auto_scheduler.local_builder.open", this); }
  void Init() {
    ProgramBuilderNode::Init();
    CheckFunction("LocalBuilder: build_func", build_func);
  }
  TVM_DECLARE_NODE(LocalBuilderNode, ProgramBuilderNode, "auto_scheduler.LocalBuilder",
                   Value(build_func), Value(memory_bytes));

 private:
  mutable Opened opened_;
};

/*! \brief Times in a worker process of this machine, one program at a time. */
class LocalRunnerNode : public ProgramRunnerNode {
 public:
  /*! \brief "default", or `module:function` to be called in the worker. */
  String run_func;
  /*! \brief Memory that a candidate may take. */
  int64_t memory_bytes{0};
  Array<MeasureResult> Run(const Array<Candidate>& candidates, const Array<BuildResult>& programs,
                           const RunContext& context) const final {
    return Open()(candidates, programs, context.best_seconds, context.references, context.on_result)
        .cast<Array<MeasureResult>>();
  }
  PackedFunc Open() const { return opened_.Get("auto_scheduler.local_runner.open", this); }
  void Init() {
    ProgramRunnerNode::Init();
    CheckFunction("LocalRunner: run_func", run_func);
  }
  TVM_DECLARE_NODE(LocalRunnerNode, ProgramRunnerNode, "auto_scheduler.LocalRunner",
                   Value(run_func), Value(memory_bytes));

 private:
  mutable Opened opened_;
};

/*! \brief Times on the devices of a tracker, through sessions of `tvm.rpc`. */
class RPCRunnerNode : public ProgramRunnerNode {
 public:
  /*! \brief Kind of device. */
  String key;
  /*! \brief The tracker. */
  String host;
  int port{0};
  /*! \brief Of the requests; higher ones go first. */
  int priority{1};
  /*! \brief Devices used at once. */
  int n_parallel{1};
  Array<MeasureResult> Run(const Array<Candidate>& candidates, const Array<BuildResult>& programs,
                           const RunContext& context) const final {
    return opened_
        .Get("auto_scheduler.rpc_runner.open", this)(candidates, programs, context.best_seconds,
                                                     context.references, context.on_result)
        .cast<Array<MeasureResult>>();
  }
  void Init() {
    ProgramRunnerNode::Init();
    TVM_CHECK(!key.str().empty(), ValueError) << "RPCRunner: the key of a device is empty";
    TVM_CHECK(port > 0 && port < 65536, ValueError)
        << "RPCRunner: port must be the tracker's, from 1 to 65535, got " << port;
    TVM_CHECK(n_parallel >= 1, ValueError)
        << "RPCRunner: n_parallel must be >= 1, got " << n_parallel;
  }
  TVM_DECLARE_NODE(RPCRunnerNode, ProgramRunnerNode, "auto_scheduler.RPCRunner", Value(key),
                   Value(host), Value(port), Value(priority), Value(n_parallel));

 private:
  mutable Opened opened_;
};

/*! \brief A builder whose `build` is written in Python. */
class PythonBasedBuilderNode : public ProgramBuilderNode {
 public:
  PackedFunc build;
  Array<BuildResult> Build(const Array<Candidate>& candidates, bool unscheduled) const final {
    auto results = build(candidates, unscheduled).cast<Array<BuildResult>>();
    CheckCount("ProgramBuilder.build", results.size(), candidates.size());
    return results;
  }
  TVM_DECLARE_NODE(PythonBasedBuilderNode, ProgramBuilderNode, "auto_scheduler.PythonBasedBuilder");
};

/*! \brief A runner whose `run` is written in Python. */
class PythonBasedRunnerNode : public ProgramRunnerNode {
 public:
  PackedFunc run;
  Array<MeasureResult> Run(const Array<Candidate>& candidates, const Array<BuildResult>& programs,
                           const RunContext& context) const final {
    auto results =
        run(candidates, programs, context.best_seconds, context.references, context.on_result)
            .cast<Array<MeasureResult>>();
    CheckCount("ProgramRunner.run", results.size(), candidates.size());
    return results;
  }
  TVM_DECLARE_NODE(PythonBasedRunnerNode, ProgramRunnerNode, "auto_scheduler.PythonBasedRunner");
};

/*! \brief A callback written in Python. */
class PythonBasedMeasureCallbackNode : public MeasureCallbackNode {
 public:
  PackedFunc on_result, callback;
  void OnResult(const ObjectRef& policy, const Candidate& candidate,
                const MeasureResult& result) final {
    if (on_result.defined()) on_result(policy, candidate, result);
  }
  void Callback(const ObjectRef& policy, const Array<Candidate>& candidates,
                const Array<MeasureResult>& results) final {
    if (callback.defined()) callback(policy, candidates, results);
  }
  TVM_DECLARE_NODE(PythonBasedMeasureCallbackNode, MeasureCallbackNode,
                   "auto_scheduler.PythonBasedMeasureCallback");
};

TVM_REGISTER_NODE(LocalBuilderNode);
TVM_REGISTER_NODE(LocalRunnerNode);
TVM_REGISTER_NODE(RPCRunnerNode);
TVM_REGISTER_NODE(PythonBasedBuilderNode);
TVM_REGISTER_NODE(PythonBasedRunnerNode);
TVM_REGISTER_NODE(PythonBasedMeasureCallbackNode);

void ProgramBuilderNode::Init() {
  TVM_CHECK(n_parallel >= 1, ValueError)
      << "ProgramBuilder: n_parallel must be >= 1, got " << n_parallel;
  TVM_CHECK(timeout > 0, ValueError)
      << "ProgramBuilder: timeout must be > 0 seconds, got " << timeout;
}

void ProgramRunnerNode::Init() {
  TVM_CHECK(timeout > 0, ValueError)
      << "ProgramRunner: timeout must be > 0 seconds, got " << timeout;
  const std::pair<const char*, double> at_least_zero[] = {{"min_repeat_ms", min_repeat_ms},
                                                          {"cooldown_interval", cooldown_interval},
                                                          {"device", device}};
  const std::pair<const char*, int> at_least_one[] = {{"number", number}, {"repeat", repeat}};
  for (const auto& [name, value] : at_least_zero) {
    TVM_CHECK(value >= 0, ValueError)
        << "ProgramRunner: " << name << " must be >= 0, got " << value;
  }
  for (const auto& [name, value] : at_least_one) {
    TVM_CHECK(value >= 1, ValueError)
        << "ProgramRunner: " << name << " must be >= 1, got " << value;
  }
}

TVM_REGISTER_GLOBAL("auto_scheduler.PythonBasedBuilder")
    .set_body_typed([](int n_parallel, double timeout, PackedFunc build) {
      auto node = make_object<PythonBasedBuilderNode>();
      node->n_parallel = n_parallel;
      node->timeout = timeout;
      node->build = build;
      node->Init();
      return ProgramBuilder(ObjectPtr<Object>(std::move(node)));
    });
TVM_REGISTER_GLOBAL("auto_scheduler.PythonBasedRunner")
    .set_body_typed([](double timeout, int number, int repeat, double min_repeat_ms,
                       double cooldown_interval, bool flush, int device, bool check,
                       PackedFunc run) {
      auto node = make_object<PythonBasedRunnerNode>();
      node->timeout = timeout;
      node->number = number;
      node->repeat = repeat;
      node->min_repeat_ms = min_repeat_ms;
      node->cooldown_interval = cooldown_interval;
      node->enable_cpu_cache_flush = flush;
      node->device = device;
      node->check_correctness = check;
      node->run = run;
      node->Init();
      return ProgramRunner(ObjectPtr<Object>(std::move(node)));
    });
TVM_REGISTER_GLOBAL("auto_scheduler.PythonBasedMeasureCallback")
    .set_body_typed([](PackedFunc on_result, PackedFunc callback) {
      auto node = make_object<PythonBasedMeasureCallbackNode>();
      node->on_result = on_result;
      node->callback = callback;
      return MeasureCallback(ObjectPtr<Object>(std::move(node)));
    });
TVM_REGISTER_GLOBAL("auto_scheduler.ProgramBuilderBuild")
    .set_body_typed([](ProgramBuilder builder, Array<Candidate> candidates, bool unscheduled) {
      return builder->Build(candidates, unscheduled);
    });
TVM_REGISTER_GLOBAL("auto_scheduler.ProgramRunnerRun")
    .set_body_typed([](ProgramRunner runner, Array<Candidate> candidates,
                       Array<BuildResult> programs, Map<String, double> best_seconds,
                       Map<String, BuildResult> references, PackedFunc on_result) {
      CheckCount("ProgramRunner.run", programs.size(), candidates.size());
      return runner->Run(candidates, programs, {best_seconds, references, on_result});
    });
TVM_REGISTER_GLOBAL("auto_scheduler.LocalOpen").set_body_typed([](ObjectRef local) {
  if (const auto* builder = local.as<LocalBuilderNode>()) return builder->Open();
  if (const auto* runner = local.as<LocalRunnerNode>()) return runner->Open();
  TVM_FATAL(TypeError) << "LocalOpen: expected a LocalBuilder or a LocalRunner, got "
                       << local->GetTypeKey();
});

}  // namespace auto_scheduler
}  // namespace tvm
