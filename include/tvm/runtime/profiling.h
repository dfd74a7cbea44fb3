/*!
 * \file tvm/runtime/profiling.h
 * \brief Where the time of a program goes: timers, metrics, and reports of the calls of one run.
 */
#ifndef TVM_RUNTIME_PROFILING_H_
#define TVM_RUNTIME_PROFILING_H_

#include <tvm/runtime/container/array.h>
#include <tvm/runtime/container/map.h>
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/packed_func.h>

#include <string>
#include <vector>

namespace tvm {
namespace runtime {
namespace profiling {

/*! \brief Measures the time of work queued on a device between Start and Stop. */
class TVM_DLL TimerNode : public Object {
 public:
  virtual void Start() = 0;
  virtual void Stop() = 0;
  /*! \brief Wait for the work if need be; nanoseconds between Start and Stop. */
  virtual int64_t SyncAndGetElapsedNanos() = 0;
  TVM_DECLARE_OBJECT(TimerNode, Object, "runtime.profiling.Timer");
};

class Timer : public ObjectRef {
 public:
  TVM_DEFINE_MUTABLE_REF(Timer, ObjectRef, TimerNode);
  /*!
   * \brief A running timer of a device.
   *
   * Made by the global function `profiling.timer.<device name>`, called with the device. A device
   * without one is waited for and timed with the processor's clock.
   */
  TVM_DLL static Timer Start(Device device);
};

/*! \brief What a report's cell holds, beside texts. */
class DurationNode final : public Object {
 public:
  double microseconds = 0;
  explicit DurationNode(double us = 0) : microseconds(us) {}
  TVM_DECLARE_OBJECT(DurationNode, Object, "runtime.profiling.Duration");
};
class PercentNode final : public Object {
 public:
  double percent = 0;
  explicit PercentNode(double value = 0) : percent(value) {}
  TVM_DECLARE_OBJECT(PercentNode, Object, "runtime.profiling.Percent");
};
class CountNode final : public Object {
 public:
  int64_t value = 0;
  explicit CountNode(int64_t count = 0) : value(count) {}
  TVM_DECLARE_OBJECT(CountNode, Object, "runtime.profiling.Count");
};
class RatioNode final : public Object {
 public:
  double ratio = 0;
  explicit RatioNode(double value = 0) : ratio(value) {}
  TVM_DECLARE_OBJECT(RatioNode, Object, "runtime.profiling.Ratio");
};

/*! \brief A device where an object is needed, such as in a map. */
class DeviceWrapperNode final : public Object {
 public:
  Device device{};
  explicit DeviceWrapperNode(Device value = {}) : device(value) {}
  TVM_DECLARE_OBJECT(DeviceWrapperNode, Object, "runtime.profiling.DeviceWrapper");
};

/*! \brief Metrics by name; each is one of the nodes above or a text. */
using Metrics = Map<String, Any>;

/*! \brief Measures more than time: counters of the processor, of a device, or a user's own. */
class TVM_DLL MetricCollectorNode : public Object {
 public:
  /*! \brief Called once before the first measurement. */
  virtual void Init(const std::vector<Device>& devices) {}
  /*! \brief Begin measuring on a device; what is returned goes to Stop. Null: nothing there. */
  virtual ObjectRef Start(Device device) = 0;
  virtual Metrics Stop(ObjectRef started) = 0;
  TVM_DECLARE_OBJECT(MetricCollectorNode, Object, "runtime.profiling.MetricCollector");
};
class MetricCollector : public ObjectRef {
 public:
  TVM_DEFINE_MUTABLE_REF(MetricCollector, ObjectRef, MetricCollectorNode);
};

class ReportNode final : public Object {
 public:
  /*! \brief One entry a call, in the order of the calls: "Name", "Duration (us)", ... */
  Array<Metrics> calls;
  /*! \brief Totals of each device, by the device's name ("cpu0"). */
  Map<String, Metrics> device_metrics;
  /*! \brief What was run, and how. */
  Metrics configuration;

  /*!
   * \brief The report as a text table.
   * \param sort Longest calls first, instead of the order of the calls.
   * \param aggregate One line for calls that agree in name, device and argument shapes.
   * \param column_sums Add a line of sums.
   */
  String AsTable(bool sort = true, bool aggregate = true, bool column_sums = true) const;
  /*! \brief One line a call, columns separated by commas. */
  String AsCSV() const;
  /*! \brief Everything, in a form that Report::FromJSON reads. */
  String AsJSON() const;
  TVM_DECLARE_OBJECT(ReportNode, Object, "runtime.profiling.Report");
};

class Report : public ObjectRef {
 public:
  TVM_DEFINE_REF(Report, ObjectRef, ReportNode);
  TVM_DLL Report(Array<Metrics> calls, Map<String, Metrics> device_metrics, Metrics configuration);
  /*! \brief Inverse of AsJSON; ValueError with the position for text that is not a report. */
  TVM_DLL static Report FromJSON(const std::string& text);
};

/*! \brief Records the calls of one run. Calls may nest; StopCall ends the innermost. */
class TVM_DLL Profiler {
 public:
  Profiler(std::vector<Device> devices, Array<MetricCollector> collectors, Metrics configuration);
  void Start();
  void StartCall(String name, Device device, Metrics extra = {});
  void StopCall(Metrics extra = {});
  void Stop();
  /*! \brief The calls between Start and Stop. */
  profiling::Report Report() const;

 private:
  struct Call {
    String name;
    Device device;
    Timer timer;
    Metrics metrics;
    std::vector<std::pair<MetricCollector, ObjectRef>> running;
  };
  Call Begin(String name, Device device, Metrics metrics) const;
  static void End(Call* call);

  std::vector<Device> devices_;
  Array<MetricCollector> collectors_;
  Metrics configuration_;
  std::vector<Call> open_;
  std::vector<Call> calls_;
  std::vector<Call> totals_;
};

/*! \brief "float32[1, 64], int32[8]": shapes of the tensors among the arguments. */
TVM_DLL String ShapeText(Args args);

}  // namespace profiling
}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_PROFILING_H_
