#include <gtest/gtest.h>
#include <sys/resource.h>
#include <tvm/runtime/logging.h>
#include <tvm/runtime/threading_backend.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <set>
#include <thread>
#include <vector>

namespace {

using namespace tvm::runtime;

class ThreadPoolTest : public ::testing::Test {
 protected:
  void SetUp() override { threading::Configure(3); }
  void TearDown() override { threading::Configure(0); }
};

TEST_F(ThreadPoolTest, RunsEveryTaskOnceInManyRegions) {
  std::vector<std::atomic<int>> counts(7);
  for (int region = 0; region < 2000; ++region) {
    threading::ParallelFor(7, [&](int i) { counts[static_cast<size_t>(i)]++; });
  }
  for (auto& count : counts) EXPECT_EQ(count, 2000);
}

TEST_F(ThreadPoolTest, ZeroTasksMeansOneForEachThread) {
  std::atomic<int> seen{0};
  auto body = [](int32_t, int32_t num_task, void* data) -> int32_t {
    *static_cast<std::atomic<int>*>(data) += num_task;
    return 0;
  };
  ASSERT_EQ(TVMBackendParallelLaunch(body, &seen, 0), 0);
  EXPECT_EQ(seen, 9);
}

TEST_F(ThreadPoolTest, ErrorOfATaskReachesTheCaller) {
  auto run = [] {
    threading::ParallelFor(
        5, [](int i) { TVM_CHECK(i != 3, IndexError) << "task " << i << " failed"; });
  };
  try {
    run();
    FAIL() << "the error of task 3 was lost";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "IndexError: task 3 failed");
  }
  // The pool works on after a failure.
  std::atomic<int> count{0};
  threading::ParallelFor(5, [&](int) { ++count; });
  EXPECT_EQ(count, 5);
}

TEST_F(ThreadPoolTest, RegionInsideARegionRunsSerially) {
  std::atomic<int> total{0};
  threading::ParallelFor(3, [&](int) {
    EXPECT_EQ(threading::MaxConcurrency(), 1);
    std::thread::id outer = std::this_thread::get_id();
    threading::ParallelFor(4, [&](int) {
      EXPECT_EQ(std::this_thread::get_id(), outer);
      ++total;
    });
  });
  EXPECT_EQ(total, 12);
}

TEST_F(ThreadPoolTest, TwoCallersAtOnceBothFinish) {
  std::atomic<int> total{0};
  auto work = [&] {
    for (int i = 0; i < 500; ++i) threading::ParallelFor(4, [&](int) { ++total; });
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(total, 4000);
}

TEST_F(ThreadPoolTest, WorkersStayAwakeWithinARunAndSleepAfterIt) {
  using std::chrono::milliseconds;
  using std::chrono::steady_clock;
  auto open_region = [] { threading::ParallelFor(3, [](int) {}); };
  auto times_slept = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw;
  };
  open_region();
  {
    threading::RunOfRegions run;
    open_region();
    const auto before = times_slept();
    for (int i = 0; i < 10; ++i) {
      const auto until = steady_clock::now() + milliseconds(2);
      while (steady_clock::now() < until) {
      }
      open_region();
    }
    // Two workers would have slept ten times each. On a machine with much else to do, one may get
    // no processor for so long that it finds the run to be over.
    EXPECT_LT(times_slept() - before, 10);
  }
  std::this_thread::sleep_for(milliseconds(30));
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 100);
}

TEST_F(ThreadPoolTest, NumberOfThreadsCanChange) {
  threading::Configure(2);
  EXPECT_EQ(threading::MaxConcurrency(), 2);
  EXPECT_THROW(threading::Configure(-1), Error);
}

}  // namespace
