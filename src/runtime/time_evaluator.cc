/*!
 * \file time_evaluator.cc
 * \brief Running time of a function, measured here so that no interpreter is in the timed loop.
 */
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <thread>
#include <vector>

#include "rpc/session.h"

namespace tvm {
namespace runtime {
namespace {

constexpr size_t kCacheLine = 64;

// Writing a buffer larger than the last-level cache evicts what the function left there.
void FlushCache(std::vector<char>* buffer) {
  for (size_t i = 0; i < buffer->size(); i += kCacheLine) {
    static_cast<volatile char*>(buffer->data())[i] = static_cast<char>(i);
  }
}

void FlushLines(const char* begin, size_t bytes) {
#if defined(__x86_64__) || defined(__i386__)
  for (size_t i = 0; i < bytes; i += kCacheLine) __builtin_ia32_clflush(begin + i);
  __builtin_ia32_mfence();
#elif defined(__aarch64__)
  for (size_t i = 0; i < bytes; i += kCacheLine) {
    asm volatile("dc civac, %0" ::"r"(begin + i) : "memory");
  }
  asm volatile("dsb sy" ::: "memory");
#else
  TVM_FATAL(RuntimeError) << "cache_flush_cpu_non_first_arg: not known how this processor empties "
                          << "caches; give time_evaluator a cache_flush_bytes instead";
#endif
}

/*! \brief What a time evaluator was asked to do; see the registration below. */
struct TimingPlan {
  PackedFunc func;
  Device device;
  int64_t number, repeat;
  double min_repeat_ms;
  int64_t limit_zero_time_iterations;
  double cooldown_interval_ms;
  int64_t repeats_to_cooldown, cache_flush_bytes;
  PackedFunc preprocess;

  double SecondsOf(Args args, int64_t calls) const {
    return DeviceAPI::Get(device)->ElapsedSeconds(device, [&] {
      Any ignored;
      for (int64_t i = 0; i < calls; ++i) func.CallPacked(args, &ignored);
    });
  }

  Array<double> Run(Args args) const {
    std::vector<char> flush(static_cast<size_t>(cache_flush_bytes));
    SecondsOf(args, 1);
    Array<double> seconds;
    int64_t calls = number;
    for (int64_t i = 0; i < repeat; ++i) {
      if (i > 0 && cooldown_interval_ms > 0 && i % repeats_to_cooldown == 0) {
        std::this_thread::sleep_for(
            std::chrono::duration<double, std::milli>(cooldown_interval_ms));
      }
      if (preprocess.defined()) {
        Any ignored;
        preprocess.CallPacked(args, &ignored);
      }
      double elapsed = 0;
      int64_t zero_times = 0;
      for (;;) {
        FlushCache(&flush);
        elapsed = SecondsOf(args, calls);
        if (elapsed > 0 && elapsed * 1e3 >= min_repeat_ms) break;
        // A function too short for the clock would otherwise be repeated forever.
        if (elapsed <= 0 && ++zero_times >= limit_zero_time_iterations) break;
        // Aim above the wanted time, so that a second round is usually the last.
        double wanted = min_repeat_ms * 1e-3 * 1.1 / std::max(elapsed, 1e-9);
        double factor = std::clamp(wanted, 1.618, 1e6);
        calls = static_cast<int64_t>(std::ceil(static_cast<double>(calls) * factor));
      }
      seconds.push_back(elapsed / static_cast<double>(calls));
    }
    return seconds;
  }
};

}  // namespace

/*!
 * \brief (func, device, number, repeat, min_repeat_ms, limit_zero_time_iterations,
 * cooldown_interval_ms, repeats_to_cooldown, cache_flush_bytes, preprocess or None) -> evaluator.
 *
 * The evaluator takes the arguments of `func` and returns the mean seconds of one call for each
 * repeat. A repeat is at least `number` calls and at least `min_repeat_ms` long, unless the clock
 * shows no time at all for `limit_zero_time_iterations` tries. Before a repeat, `preprocess` is
 * called with the arguments and the caches are flushed; every `repeats_to_cooldown` repeats there
 * is a pause. One call that is not timed comes first.
 */
TVM_REGISTER_GLOBAL("runtime.TimeEvaluator")
    .set_body_typed([](PackedFunc func, Device device, int64_t number, int64_t repeat,
                       double min_repeat_ms, int64_t limit_zero_time_iterations,
                       double cooldown_interval_ms, int64_t repeats_to_cooldown,
                       int64_t cache_flush_bytes, PackedFunc preprocess) {
      TVM_CHECK(func.defined(), ValueError) << "time_evaluator: the function is None";
      if (const auto* there = func.as<rpc::RemoteFunctionObj>()) {
        // Timed where it runs, so that no message is in the timed loop.
        return there->session
            ->CallByName("runtime.TimeEvaluator", func, device, number, repeat, min_repeat_ms,
                         limit_zero_time_iterations, cooldown_interval_ms, repeats_to_cooldown,
                         cache_flush_bytes, preprocess)
            .cast<PackedFunc>();
      }
      TVM_CHECK(number >= 1, ValueError) << "time_evaluator: number must be >= 1, got " << number;
      TVM_CHECK(repeat >= 1, ValueError) << "time_evaluator: repeat must be >= 1, got " << repeat;
      TVM_CHECK(limit_zero_time_iterations >= 1 && repeats_to_cooldown >= 1, ValueError)
          << "time_evaluator: limit_zero_time_iterations and repeats_to_cooldown must be >= 1";
      TVM_CHECK(min_repeat_ms >= 0 && cooldown_interval_ms >= 0 && cache_flush_bytes >= 0,
                ValueError)
          << "time_evaluator: times and sizes must not be negative";
      TimingPlan plan{std::move(func),
                      device,
                      number,
                      repeat,
                      min_repeat_ms,
                      limit_zero_time_iterations,
                      cooldown_interval_ms,
                      repeats_to_cooldown,
                      cache_flush_bytes,
                      std::move(preprocess)};
      return PackedFunc(
          [plan = std::move(plan)](Args args, RetValue* ret) { *ret = plan.Run(args); });
    });

/*!
 * \brief To be used as `preprocess`: puts all arrays but the first out of the caches. The first one
 * is the input, which a network's layer finds there; the others are its weights and its result.
 */
TVM_REGISTER_GLOBAL("cache_flush_cpu_non_first_arg").set_body([](Args args, RetValue*) {
  for (int i = 1; i < args.size(); ++i) {
    const std::optional<DLTensor*> tensor = AnyTraits<DLTensor*>::TryConvert(args[i]);
    if (!tensor || (*tensor)->device.device_type != kDLCPU) continue;
    size_t bytes = ((*tensor)->dtype.bits * (*tensor)->dtype.lanes + 7) / 8;
    for (int axis = 0; axis < (*tensor)->ndim; ++axis) bytes *= (*tensor)->shape[axis];
    FlushLines(static_cast<const char*>((*tensor)->data) + (*tensor)->byte_offset, bytes);
  }
});

}  // namespace runtime
}  // namespace tvm
