#include <tvm/runtime/stack_guard.h>

#ifdef __linux__
#include <pthread.h>
#endif

namespace tvm {
namespace runtime {
namespace {

// Room for the deepest work that is done without asking, such as building an error's message.
constexpr size_t kReserve = 512 * 1024;

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

void ThrowStackUsedUp() {
  TVM_FATAL(RecursionError) << "the program is nested too deeply for the stack of this thread";
}

}  // namespace runtime
}  // namespace tvm
