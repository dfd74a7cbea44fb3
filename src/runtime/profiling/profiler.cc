/*!
 * \file profiler.cc
 * \brief Timers, and the recording of calls.
 */
#include <tvm/runtime/module.h>
#include <tvm/runtime/profiling.h>
#include <tvm/runtime/registry.h>

#include <chrono>
#include <sstream>

namespace tvm {
namespace runtime {
namespace profiling {
namespace {

using Clock = std::chrono::steady_clock;

int64_t Nanoseconds(Clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
}

class CPUTimerNode final : public TimerNode {
 public:
  void Start() override { begin_ = Clock::now(); }
  void Stop() override { elapsed_ = Clock::now() - begin_; }
  int64_t SyncAndGetElapsedNanos() override { return Nanoseconds(elapsed_); }
  TVM_DECLARE_OBJECT(CPUTimerNode, TimerNode, "runtime.profiling.CPUTimer");

 private:
  Clock::time_point begin_;
  Clock::duration elapsed_{};
};

/*! \brief For devices without a timer of their own: the queue is empty when a clock is read. */
class SyncTimerNode final : public TimerNode {
 public:
  explicit SyncTimerNode(Device device) : device_(device) {}
  void Start() override {
    DeviceAPI::Get(device_)->StreamSync(device_, nullptr);
    begin_ = Clock::now();
  }
  void Stop() override {
    DeviceAPI::Get(device_)->StreamSync(device_, nullptr);
    elapsed_ = Clock::now() - begin_;
  }
  int64_t SyncAndGetElapsedNanos() override { return Nanoseconds(elapsed_); }
  TVM_DECLARE_OBJECT(SyncTimerNode, TimerNode, "runtime.profiling.SyncTimer");

 private:
  Device device_;
  Clock::time_point begin_;
  Clock::duration elapsed_{};
};

std::string NameOf(Device device) {
  return std::string(DeviceName(device.device_type)) + std::to_string(device.device_id);
}

}  // namespace

Timer Timer::Start(Device device) {
  const PackedFunc* make =
      Registry::Get("profiling.timer." + std::string(DeviceName(device.device_type)));
  Timer timer = make != nullptr ? (*make)(device).cast<Timer>()
                                : Timer(ObjectPtr<Object>(make_object<SyncTimerNode>(device)));
  timer->Start();
  return timer;
}

Profiler::Profiler(std::vector<Device> devices, Array<MetricCollector> collectors,
                   Metrics configuration)
    : devices_(std::move(devices)),
      collectors_(std::move(collectors)),
      configuration_(std::move(configuration)) {
  for (const MetricCollector& collector : collectors_) collector->Init(devices_);
}

Profiler::Call Profiler::Begin(String name, Device device, Metrics metrics) const {
  Call call{std::move(name), device, Timer(), std::move(metrics), {}};
  for (const MetricCollector& collector : collectors_) {
    ObjectRef started = collector->Start(device);
    if (started.defined()) call.running.emplace_back(collector, std::move(started));
  }
  call.timer = Timer::Start(device);
  return call;
}

void Profiler::End(Call* call) {
  call->timer->Stop();
  for (auto& [collector, started] : call->running) {
    for (const auto& [name, value] : collector->Stop(started)) call->metrics.Set(name, value);
  }
  call->running.clear();
}

void Profiler::Start() {
  for (Device device : devices_) totals_.push_back(Begin("total", device, {}));
}

void Profiler::StartCall(String name, Device device, Metrics extra) {
  open_.push_back(Begin(std::move(name), device, std::move(extra)));
}

void Profiler::StopCall(Metrics extra) {
  TVM_CHECK(!open_.empty(), ValueError) << "Profiler: StopCall without StartCall";
  Call call = std::move(open_.back());
  open_.pop_back();
  End(&call);
  for (const auto& [name, value] : extra) call.metrics.Set(name, value);
  calls_.push_back(std::move(call));
}

void Profiler::Stop() {
  for (Call& total : totals_) End(&total);
}

profiling::Report Profiler::Report() const {
  auto microseconds = [](const Call& call) {
    return static_cast<double>(call.timer->SyncAndGetElapsedNanos()) * 1e-3;
  };
  Map<String, Metrics> device_metrics;
  double total_us = 0;
  for (const Call& total : totals_) {
    Metrics metrics = total.metrics;
    const double us = microseconds(total);
    total_us = std::max(total_us, us);
    metrics.Set("Duration (us)", ObjectRef(make_object<DurationNode>(us)));
    device_metrics.Set(NameOf(total.device), metrics);
  }
  Array<Metrics> calls;
  for (const Call& call : calls_) {
    const double us = microseconds(call);
    Metrics metrics;
    metrics.Set("Name", call.name);
    metrics.Set("Duration (us)", ObjectRef(make_object<DurationNode>(us)));
    const double percent = total_us > 0 ? 100 * us / total_us : 0;
    metrics.Set("Percent", ObjectRef(make_object<PercentNode>(percent)));
    metrics.Set("Device", String(NameOf(call.device)));
    metrics.Set("Count", ObjectRef(make_object<CountNode>(1)));
    for (const auto& [name, value] : call.metrics) metrics.Set(name, value);
    calls.push_back(metrics);
  }
  return profiling::Report(calls, device_metrics, configuration_);
}

String ShapeText(Args args) {
  std::ostringstream os;
  for (const Any& arg : args) {
    std::optional<DLTensor*> tensor = arg.TryCast<DLTensor*>();
    if (!tensor || *tensor == nullptr) continue;
    os << (os.tellp() > 0 ? ", " : "") << DataType((*tensor)->dtype) << "[";
    for (int i = 0; i < (*tensor)->ndim; ++i) os << (i ? ", " : "") << (*tensor)->shape[i];
    os << "]";
  }
  return os.str();
}

TVM_REGISTER_GLOBAL("profiling.timer.cpu").set_body_typed([](Device device) {
  return Timer(ObjectPtr<Object>(make_object<CPUTimerNode>()));
});
TVM_REGISTER_GLOBAL("profiling.start_timer").set_body_typed([](Device device) {
  return Timer::Start(device);
});
TVM_REGISTER_GLOBAL("runtime.profiling.TimerStop").set_body_typed([](Timer timer) {
  timer->Stop();
});
TVM_REGISTER_GLOBAL("runtime.profiling.TimerElapsedNanos").set_body_typed([](Timer timer) {
  return timer->SyncAndGetElapsedNanos();
});

/*!
 * \brief (module, function name, device type, device id, warm-up calls, collectors) -> profiler.
 *
 * The profiler takes the function's arguments, calls it `warm-up` times and once more under the
 * timer and the collectors, and returns the metrics of that call.
 */
TVM_REGISTER_GLOBAL("runtime.profiling.ProfileFunction")
    .set_body_typed([](Module mod, String name, int device_type, int device_id, int warmup,
                       Array<MetricCollector> collectors) {
      TVM_CHECK(warmup >= 0, ValueError)
          << "profile_function: warmup_iters must be >= 0, got " << warmup;
      PackedFunc function = mod.GetFunction(name, true);
      TVM_CHECK(function.defined(), ValueError)
          << "profile_function: the module has no function \"" << name << '"';
      const Device device{device_type, device_id};
      DeviceAPI::Get(device);
      return PackedFunc([=](Args args, RetValue* ret) {
        Any ignored;
        for (int i = 0; i < warmup; ++i) function.CallPacked(args, &ignored);
        Profiler profiler({device}, collectors, {});
        profiler.Start();
        profiler.StartCall(name, device, {{"Argument Shapes", Any(ShapeText(args))}});
        function.CallPacked(args, &ignored);
        profiler.StopCall();
        profiler.Stop();
        *ret = profiler.Report()->calls[0];
      });
    });

}  // namespace profiling
}  // namespace runtime
}  // namespace tvm
