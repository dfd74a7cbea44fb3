#include <pthread.h>
#include <tvm/runtime/stack_guard.h>

#include <exception>

namespace tvm {
namespace runtime {
namespace {

// Room for the deepest work that is done without asking, such as building an error's message.
constexpr size_t kReserve = 512 * 1024;
// Address space that becomes memory only where it is used.
constexpr size_t kNewStack = size_t{256} << 20;
// Graphs of millions of nodes in a row; more is a loop.
constexpr int kMaxStacks = 64;

thread_local int stacks_below = 0;

struct Work {
  const std::function<void()>* body;
  int stacks_below;
  std::exception_ptr error;
};

void* RunWork(void* argument) {
  auto* work = static_cast<Work*>(argument);
  stacks_below = work->stacks_below;
  try {
    (*work->body)();
  } catch (...) {
    work->error = std::current_exception();
  }
  return nullptr;
}

const char* FindStackLimit() {
#ifdef __linux__
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return nullptr;
  void* lowest = nullptr;
  size_t size = 0;
  int status = pthread_attr_getstack(&attributes, &lowest, &size);
  pthread_attr_destroy(&attributes);
  if (status != 0 || size < 2 * kReserve) return nullptr;
  return static_cast<const char*>(lowest) + kReserve;
#else
  return nullptr;
#endif
}

}  // namespace

const char* StackLimit() {
  thread_local const char* const limit = FindStackLimit();
  return limit;
}

void RunOnNewStack(const std::function<void()>& body) {
  Work work{&body, stacks_below + 1, nullptr};
  pthread_attr_t attributes;
  pthread_t thread;
  bool runs = work.stacks_below <= kMaxStacks && pthread_attr_init(&attributes) == 0;
  if (runs) {
    runs = pthread_attr_setstacksize(&attributes, kNewStack) == 0 &&
           pthread_create(&thread, &attributes, RunWork, &work) == 0;
    pthread_attr_destroy(&attributes);
  }
  if (!runs) ThrowStackUsedUp();
  pthread_join(thread, nullptr);
  if (work.error) std::rethrow_exception(work.error);
}

void ThrowStackUsedUp() {
  TVM_FATAL(RecursionError) << "the program is nested too deeply for the stack of this thread";
}

}  // namespace runtime
}  // namespace tvm
