#include <gtest/gtest.h>
#include <sys/wait.h>
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/registry.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace {

using namespace tvm::runtime;

/*! \brief How many children of 50 forks do not end: they wait for what other threads held. */
int HangingChildren(const std::function<void()>& busy, const std::function<void()>& in_child) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!stop) busy();
    });
  }
  int hanging = 0;
  for (int i = 0; i < 50 && hanging < 3; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(5);
      in_child();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    hanging += WIFSIGNALED(status);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  return hanging;
}

TEST(Fork, ChildrenAllocateWhileThreadsDid) {
  const Device cpu{kDLCPU, 0};
  auto allocate = [&] {
    void* data = DeviceAPI::Get(cpu)->AllocDataSpace(cpu, 1 << 16, 64);
    DeviceAPI::Get(cpu)->FreeDataSpace(cpu, data);
  };
  EXPECT_EQ(HangingChildren(allocate, allocate), 0);
}

TEST(Fork, ChildrenRegisterFunctionsWhileThreadsLookedThemUp) {
  auto look_up = [] { Registry::Get("testing.no_function_of_this_name"); };
  auto add = [] {
    Registry::Register("testing.of_a_child").set_body_typed([](int64_t x) { return x; });
  };
  EXPECT_EQ(HangingChildren(look_up, add), 0);
}

TEST(Fork, ChildrenDeclareTypesWhileThreadsLookedThemUp) {
  auto look_up = [] { TypeInfo::Find("testing.NoTypeOfThisName"); };
  auto add = [] { TypeInfo::GetOrAlloc("testing.TypeOfAChild", Object::StaticTypeInfo()); };
  EXPECT_EQ(HangingChildren(look_up, add), 0);
}

}  // namespace
