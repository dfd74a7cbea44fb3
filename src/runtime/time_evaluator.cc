/*!
 * \file time_evaluator.cc
 * \brief Running time of a function, measured here so that no interpreter is in the timed loop.
 */
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

namespace tvm {
namespace runtime {
namespace {

/*! \brief The device the tensor arguments live on; the cpu when all of them are there. */
Device DeviceOf(Args args) {
  for (const Any& arg : args) {
    const auto* array = arg.as<NDArrayObj>();
    if (array != nullptr && array->tensor.device.device_type != kDLCPU) return array->tensor.device;
  }
  return Device{kDLCPU, 0};
}

// Writing a buffer larger than the last-level cache evicts what the function left there.
void FlushCache(std::vector<char>* buffer) {
  for (size_t i = 0; i < buffer->size(); i += 64) {
    static_cast<volatile char*>(buffer->data())[i] = static_cast<char>(i);
  }
}

double SecondsOf(const PackedFunc& func, Args args, int64_t number) {
  Device device = DeviceOf(args);
  return DeviceAPI::Get(device)->ElapsedSeconds(device, [&] {
    Any ignored;
    for (int64_t i = 0; i < number; ++i) func.CallPacked(args, &ignored);
  });
}

}  // namespace

/*!
 * \brief (func, number, repeat, min_repeat_ms, cooldown_ms, cache_flush_bytes) -> evaluator.
 *
 * The evaluator takes the arguments of `func` and returns the mean seconds of one call for each
 * repeat. A repeat is at least `number` calls and at least `min_repeat_ms` long. One call that is
 * not timed comes first.
 */
TVM_REGISTER_GLOBAL("runtime.TimeEvaluator")
    .set_body_typed([](PackedFunc func, int64_t number, int64_t repeat, double min_repeat_ms,
                       double cooldown_ms, int64_t cache_flush_bytes) {
      TVM_CHECK(func.defined(), ValueError) << "time_evaluator: the function is None";
      TVM_CHECK(number >= 1, ValueError) << "time_evaluator: number must be >= 1, got " << number;
      TVM_CHECK(repeat >= 1, ValueError) << "time_evaluator: repeat must be >= 1, got " << repeat;
      TVM_CHECK(min_repeat_ms >= 0 && cooldown_ms >= 0 && cache_flush_bytes >= 0, ValueError)
          << "time_evaluator: times and sizes must not be negative";
      return PackedFunc([=](Args args, RetValue* ret) {
        std::vector<char> flush(static_cast<size_t>(cache_flush_bytes));
        SecondsOf(func, args, 1);
        Array<double> seconds;
        int64_t calls = number;
        for (int64_t i = 0; i < repeat; ++i) {
          if (i > 0 && cooldown_ms > 0) {
            std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(cooldown_ms));
          }
          double elapsed = 0;
          for (;;) {
            FlushCache(&flush);
            elapsed = SecondsOf(func, args, calls);
            if (elapsed * 1e3 >= min_repeat_ms) break;
            // Aim above the wanted time, so that a second round is usually the last.
            double wanted = min_repeat_ms * 1e-3 * 1.1 / std::max(elapsed, 1e-9);
            double factor = std::clamp(wanted, 1.618, 1e6);
            calls = static_cast<int64_t>(std::ceil(static_cast<double>(calls) * factor));
          }
          seconds.push_back(elapsed / static_cast<double>(calls));
        }
        *ret = seconds;
      });
    });

}  // namespace runtime
}  // namespace tvm
