/*!
 * \file thread_pool.cc
 * \brief Fork-join thread pool whose workers spin between regions and then sleep.
 *
 * One 64-bit word describes the open region: its generation, how many tasks it has and the next
 * one to take. Everybody, the caller included, takes tasks by advancing that word, so a region
 * finishes even if no worker shows up (a process that was forked has none), and a late worker
 * cannot touch a region that is over: its generation no longer matches.
 */
#include <pthread.h>
#include <sched.h>
#include <tvm/runtime/container/array.h>
#include <tvm/runtime/logging.h>
#include <tvm/runtime/registry.h>
#include <tvm/runtime/threading_backend.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "cpu_affinity.h"
#include "runtime_base.h"

namespace tvm {
namespace runtime {
namespace threading {
namespace {

using Clock = std::chrono::steady_clock;

// Waking a sleeper takes about 50 microseconds on a busy machine. Regions that follow each other
// within this time find workers awake, so do runs of a network whose results a program only looks
// at; a process that waits longer burns no processor.
constexpr auto kSpinTime = std::chrono::milliseconds(1);
// Within a run of regions, longer stretches of one thread's work are waited out. What takes longer
// than this is no kernel of a network that is in a hurry.
constexpr auto kSpinTimeOfRuns = std::chrono::milliseconds(20);
// Regions within a network mostly follow each other sooner; until then a worker keeps its
// processor.
constexpr auto kYieldTime = std::chrono::microseconds(60);

// How many RunOfRegions there are. Alone on its line, as idle workers poll it.
alignas(64) std::atomic<int> runs_of_regions{0};

void CpuRelax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// True while this thread runs a task: a region opened from there runs serially.
thread_local bool in_region = false;

class Region {
 public:
  static constexpr uint64_t kMaxTasks = 0xffff;
  static uint64_t Pack(uint32_t generation, uint64_t tasks) {
    return static_cast<uint64_t>(generation) << 32 | tasks << 16;
  }
  static uint64_t Tasks(uint64_t word) { return word >> 16 & 0xffff; }
  static uint64_t Next(uint64_t word) { return word & 0xffff; }
  static bool Open(uint64_t word) { return Next(word) < Tasks(word); }
};

class ThreadPool {
 public:
  /*! \param binding Processors of each thread; empty for none. The caller binds itself. */
  explicit ThreadPool(int num_threads, const std::vector<std::vector<int>>& binding = {})
      : num_threads_(num_threads) {
    for (int i = 1; i < num_threads; ++i) {
      std::vector<int> cpus = binding.empty() ? std::vector<int>() : binding[i];
      workers_.emplace_back([this, cpus = std::move(cpus)] {
        // The plan was checked, so this fails only if processors were taken away meanwhile; the
        // thread then runs wherever it may.
        if (!cpus.empty()) GuardedCall([&cpus] { BindThisThread(cpus); });
        WorkerLoop();
      });
    }
  }

  ~ThreadPool() {
    stop_.store(true, std::memory_order_seq_cst);
    wake_.fetch_add(1, std::memory_order_seq_cst);
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  int num_threads() const { return num_threads_; }

  int Launch(TVMParallelBody body, void* data, int num_task) {
    // A second thread that wants the pool meanwhile does its work itself rather than wait.
    if (num_task == 1 || num_threads_ == 1 || in_region || busy_.test_and_set()) {
      return RunSerially(body, data, num_task);
    }
    body_.store(body, std::memory_order_relaxed);
    data_.store(data, std::memory_order_relaxed);
    remaining_.store(num_task, std::memory_order_relaxed);
    failed_.store(false, std::memory_order_relaxed);
    region_.store(Region::Pack(++generation_, static_cast<uint64_t>(num_task)),
                  std::memory_order_seq_cst);
    // Paired with the check in Park: either the sleeper sees the region or we see the sleeper.
    if (sleepers_.load(std::memory_order_seq_cst) > 0) {
      wake_.fetch_add(1, std::memory_order_seq_cst);
      wake_.notify_all();
    }
    in_region = true;
    TakeTasks();
    in_region = false;
    for (int spins = 0; remaining_.load(std::memory_order_acquire) != 0; ++spins) {
      // The last task may be on a processor that something else occupies.
      if (spins < 4096) {
        CpuRelax();
      } else {
        sched_yield();
      }
    }
    std::optional<Error> error;
    if (failed_.load(std::memory_order_relaxed)) error = std::exchange(error_, std::nullopt);
    busy_.clear();
    if (!error) return 0;
    SetLastError(*error);
    return -1;
  }

 private:
  static int RunSerially(TVMParallelBody body, void* data, int num_task) {
    bool outer = std::exchange(in_region, true);
    int status = 0;
    for (int i = 0; i < num_task && status == 0; ++i) status = body(i, num_task, data);
    in_region = outer;
    return status == 0 ? 0 : -1;
  }

  void TakeTasks() {
    for (;;) {
      uint64_t word = region_.load(std::memory_order_acquire);
      if (!Region::Open(word)) return;
      TVMParallelBody body = body_.load(std::memory_order_relaxed);
      void* data = data_.load(std::memory_order_relaxed);
      // Success proves that body and data belong to this generation.
      if (!region_.compare_exchange_weak(word, word + 1, std::memory_order_acq_rel)) continue;
      if (body(static_cast<int>(Region::Next(word)), static_cast<int>(Region::Tasks(word)), data) !=
          0) {
        std::lock_guard lock(error_mutex_);
        if (!failed_.exchange(true)) error_ = TakeLastError();
      }
      remaining_.fetch_sub(1, std::memory_order_acq_rel);
    }
  }

  void WorkerLoop() {
    in_region = true;
    while (!stop_.load(std::memory_order_relaxed)) {
      if (SpinForRegion()) {
        TakeTasks();
      } else {
        Park();
      }
    }
  }

  bool SpinForRegion() {
    const Clock::time_point start = Clock::now();
    for (;;) {
      // The clock costs as much as some tens of pauses, so it is read once in a while.
      for (int i = 0; i < 64; ++i) {
        if (Region::Open(region_.load(std::memory_order_acquire))) return true;
        CpuRelax();
      }
      const Clock::duration waited = Clock::now() - start;
      const bool within_run = runs_of_regions.load(std::memory_order_relaxed) > 0;
      if (waited >= (within_run ? kSpinTimeOfRuns : kSpinTime)) return false;
      // The thread that is to open the next region may wait for this processor.
      if (waited >= kYieldTime) sched_yield();
    }
  }

  void Park() {
    int seen = wake_.load(std::memory_order_seq_cst);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    if (!Region::Open(region_.load(std::memory_order_seq_cst)) &&
        !stop_.load(std::memory_order_seq_cst)) {
      wake_.wait(seen, std::memory_order_seq_cst);
    }
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  }

  const int num_threads_;
  // What workers poll and what they write lie on different cache lines.
  alignas(64) std::atomic<uint64_t> region_{0};
  std::atomic<TVMParallelBody> body_{nullptr};
  std::atomic<void*> data_{nullptr};
  alignas(64) std::atomic<int> remaining_{0};
  alignas(64) std::atomic<int> wake_{0};
  std::atomic<int> sleepers_{0};
  std::atomic<bool> stop_{false};
  std::atomic<bool> failed_{false};
  std::atomic_flag busy_;
  uint32_t generation_ = 0;
  std::mutex error_mutex_;
  std::optional<Error> error_;
  std::vector<std::thread> workers_;
};

AffinityMode DefaultMode() {
  const char* text = std::getenv("TVM_BIND_THREADS");
  if (text == nullptr || std::strcmp(text, "0") == 0) return AffinityMode::kNone;
  TVM_CHECK(std::strcmp(text, "1") == 0, ValueError)
      << "TVM_BIND_THREADS: expected 0 or 1, got \"" << text << '"';
  return AffinityMode::kBig;
}

int DefaultNumThreads(AffinityMode mode, const std::vector<int>& cpus) {
  if (const char* text = std::getenv("TVM_NUM_THREADS")) {
    char* end = nullptr;
    long n = std::strtol(text, &end, 10);
    TVM_CHECK(end != text && *end == '\0' && n >= 1 && n <= 1024, ValueError)
        << "TVM_NUM_THREADS: expected a number from 1 to 1024, got \"" << text << '"';
    return static_cast<int>(n);
  }
  // What holds for OpenMP's threads holds for ours, as users of other libraries expect. It may be a
  // list, one number for each level of nesting; what OpenMP cannot read is for it to tell.
  if (const char* text = std::getenv("OMP_NUM_THREADS")) {
    char* end = nullptr;
    long n = std::strtol(text, &end, 10);
    if (end != text && n >= 1 && n <= 1024) return static_cast<int>(n);
  }
  return DefaultThreadsOf(mode, cpus);
}

std::mutex config_mutex;
std::atomic<ThreadPool*> current_pool{nullptr};
struct PoolConfig {
  int threads = 0;
  AffinityMode mode = AffinityMode::kNone;
  std::vector<int> cpus;
};
PoolConfig config;
// Where the caller of Configure could run before it was first bound.
std::vector<int> unbound_cpus;

// With config_mutex held.
ThreadPool* MakePool() {
  const AffinityMode mode = config.mode == AffinityMode::kNone ? DefaultMode() : config.mode;
  const int threads = config.threads > 0 ? config.threads : DefaultNumThreads(mode, config.cpus);
  const auto binding = PlanAffinity(mode, threads, config.cpus);
  if (!binding.empty()) {
    if (unbound_cpus.empty()) unbound_cpus = AllowedCpus();
    BindThisThread(binding[0]);
  }
  return new ThreadPool(threads, binding);
}

ThreadPool& Pool() {
  if (ThreadPool* pool = current_pool.load(std::memory_order_acquire)) return *pool;
  std::lock_guard lock(config_mutex);
  if (ThreadPool* pool = current_pool.load()) return *pool;
  // A forked child has no workers. It forgets the pool and makes its own when it needs one.
  static const int at_fork =
      pthread_atfork([] { config_mutex.lock(); }, [] { config_mutex.unlock(); },
                     [] {
                       current_pool.store(nullptr);
                       runs_of_regions.store(0);
                       in_region = false;
                       config_mutex.unlock();
                     });
  ICHECK_EQ(at_fork, 0);
  ThreadPool* pool = MakePool();
  current_pool.store(pool, std::memory_order_release);
  return *pool;
}

}  // namespace

int MaxConcurrency() { return in_region ? 1 : Pool().num_threads(); }

void Configure(int num_threads, AffinityMode mode, std::vector<int> cpus) {
  TVM_CHECK(num_threads >= 0 && num_threads <= 1024, ValueError)
      << "config_threadpool: expected 0 to 1024 threads, got " << num_threads;
  TVM_CHECK(!in_region, RuntimeError) << "config_threadpool: called from inside a parallel region";
  std::lock_guard lock(config_mutex);
  if (!unbound_cpus.empty()) {
    BindThisThread(unbound_cpus);
    unbound_cpus.clear();
  }
  // Wrong processors are refused here rather than when the pool is first used.
  PlanAffinity(mode, 1, cpus);
  config = {num_threads, mode, std::move(cpus)};
  delete current_pool.exchange(nullptr);
  if (mode != AffinityMode::kNone) current_pool.store(MakePool(), std::memory_order_release);
}

void ParallelFor(int n, const std::function<void(int)>& f) {
  if (n <= 0) return;
  struct Closure {
    const std::function<void(int)>& f;
    int n;
  } closure{f, n};
  auto body = [](int32_t task, int32_t num_task, void* data) -> int32_t {
    return GuardedCall([&] {
      auto* c = static_cast<Closure*>(data);
      for (int i = task; i < c->n; i += num_task) c->f(i);
    });
  };
  int tasks = static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(n), Region::kMaxTasks - 1));
  if (Pool().Launch(body, &closure, tasks) != 0) ThrowLastError();
}

RunOfRegions::RunOfRegions() { runs_of_regions.fetch_add(1, std::memory_order_relaxed); }

RunOfRegions::~RunOfRegions() { runs_of_regions.fetch_sub(1, std::memory_order_relaxed); }

TVM_REGISTER_GLOBAL("runtime.NumThreads").set_body_typed([]() { return MaxConcurrency(); });

/*! \brief (threads), (affinity mode, threads) or (affinity mode, threads, processors). */
TVM_REGISTER_GLOBAL("runtime.config_threadpool").set_body([](Args args, RetValue* ret) {
  constexpr const char* kWhere = "runtime.config_threadpool";
  TVM_CHECK(args.size() >= 1 && args.size() <= 3, TypeError)
      << kWhere << ": expected 1 to 3 arguments, got " << args.size();
  if (args.size() == 1) return Configure(ReadArg<int>(kWhere, args, 0));
  const int number = ReadArg<int>(kWhere, args, 0);
  TVM_CHECK(number >= -3 && number <= 1, ValueError)
      << kWhere << ": unknown affinity mode " << number << "; 0 none, 1 big cores, -1 little "
      << "cores, -2 one thread a given processor, -3 given processors shared by all threads";
  std::vector<int> cpus;
  if (args.size() == 3) {
    for (int64_t cpu : ReadArg<Array<int64_t>>(kWhere, args, 2)) {
      cpus.push_back(static_cast<int>(cpu));
    }
  }
  Configure(ReadArg<int>(kWhere, args, 1), static_cast<AffinityMode>(number), std::move(cpus));
});

/*! \brief (n, f): f(0), ..., f(n-1) on the pool's threads, the calling one included. */
TVM_REGISTER_GLOBAL("runtime.ParallelFor").set_body_typed([](int n, PackedFunc f) {
  ParallelFor(n, [&f](int i) { f(i); });
});

}  // namespace threading
}  // namespace runtime
}  // namespace tvm

extern "C" int32_t TVMBackendParallelLaunch(TVMParallelBody body, void* data, int32_t num_task) {
  using namespace tvm::runtime;
  int status = 0;
  int guarded = GuardedCall([&] {
    threading::ThreadPool& pool = threading::Pool();
    if (num_task == 0) num_task = threading::MaxConcurrency();
    TVM_CHECK(num_task > 0 && static_cast<uint64_t>(num_task) < threading::Region::kMaxTasks,
              ValueError)
        << "TVMBackendParallelLaunch: cannot run " << num_task << " tasks";
    status = pool.Launch(body, data, num_task);
  });
  return guarded != 0 ? guarded : status;
}
