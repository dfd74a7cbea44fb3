/*!
 * \file perf_counters.cc
 * \brief The processor's event counters as metrics, through Linux' perf_event_open.
 */
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <tvm/runtime/profiling.h>
#include <tvm/runtime/registry.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tvm {
namespace runtime {
namespace profiling {
namespace {

struct Event {
  const char* name;
  uint32_t type;
  uint64_t config;
};

constexpr Event kEvents[] = {
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
    {"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    {"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
    {"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    {"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
};

const Event& FindEvent(const std::string& name) {
  std::string known;
  for (const Event& event : kEvents) {
    if (name == event.name) return event;
    known += (known.empty() ? "" : ", ") + std::string(event.name);
  }
  TVM_FATAL(ValueError) << "PerfMetricCollector: unknown event \"" << name
                        << "\"; known: " << known;
}

/*! \brief Open counters of the calling thread. */
class RunningCountersNode final : public Object {
 public:
  std::vector<std::pair<std::string, int>> files;
  ~RunningCountersNode() override {
    for (const auto& [name, file] : files) close(file);
  }
  TVM_DECLARE_OBJECT(RunningCountersNode, Object, "runtime.profiling.RunningCounters");
};

/*! \brief Counts the events of the thread that makes the calls, on the cpu. */
class PerfMetricCollectorNode final : public MetricCollectorNode {
 public:
  explicit PerfMetricCollectorNode(std::vector<std::string> names = {}) : names_(std::move(names)) {
    for (const std::string& name : names_) FindEvent(name);
  }
  void Init(const std::vector<Device>& devices) override {
    // A counter that cannot be had is reported before anything runs.
    Open();
  }
  ObjectRef Start(Device device) override {
    if (device.device_type != kDLCPU) return ObjectRef();
    ObjectPtr<RunningCountersNode> running = Open();
    for (const auto& [name, file] : running->files) {
      ioctl(file, PERF_EVENT_IOC_RESET, 0);
      ioctl(file, PERF_EVENT_IOC_ENABLE, 0);
    }
    return ObjectRef(running);
  }
  Metrics Stop(ObjectRef started) override {
    Metrics metrics;
    for (const auto& [name, file] : started.as<RunningCountersNode>()->files) {
      ioctl(file, PERF_EVENT_IOC_DISABLE, 0);
      int64_t count = 0;
      if (read(file, &count, sizeof(count)) == static_cast<ssize_t>(sizeof(count))) {
        metrics.Set(name, ObjectRef(make_object<CountNode>(count)));
      }
    }
    return metrics;
  }
  TVM_DECLARE_OBJECT(PerfMetricCollectorNode, MetricCollectorNode,
                     "runtime.profiling.PerfMetricCollector");

 private:
  ObjectPtr<RunningCountersNode> Open() const {
    auto running = make_object<RunningCountersNode>();
    for (const std::string& name : names_) {
      const Event& event = FindEvent(name);
      perf_event_attr attr{};
      attr.size = sizeof(attr);
      attr.type = event.type;
      attr.config = event.config;
      attr.disabled = 1;
      attr.exclude_kernel = 1;
      attr.exclude_hv = 1;
      const auto file = static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
      TVM_CHECK(file >= 0, RuntimeError)
          << "PerfMetricCollector: the counter \"" << name << "\" is not available here ("
          << std::strerror(errno) << "); it needs a processor that exposes it and "
          << "kernel.perf_event_paranoid at 2 or below";
      running->files.emplace_back(name, file);
    }
    return running;
  }

  std::vector<std::string> names_;
};

}  // namespace

TVM_REGISTER_GLOBAL("runtime.profiling.PerfMetricCollector")
    .set_body_typed([](Array<String> events) {
      std::vector<std::string> names;
      for (const String& event : events) names.push_back(event);
      return MetricCollector(ObjectPtr<Object>(make_object<PerfMetricCollectorNode>(names)));
    });

}  // namespace profiling
}  // namespace runtime
}  // namespace tvm
