/*!
 * \file run_once.cc
 * \brief What compiled code does only once, however often it is called.
 */
#include <tvm/runtime/c_backend_api.h>

#include <atomic>
#include <cstdint>
#include <thread>

namespace {

/*! \brief What a handle holds: null before the first run, then one of these. */
void* const kRunning = reinterpret_cast<void*>(uintptr_t{1});
void* const kDone = reinterpret_cast<void*>(uintptr_t{2});

}  // namespace

extern "C" int TVMBackendRunOnce(void** handle, int (*run)(void* data), void* data,
                                 int /*num_bytes*/) {
  std::atomic_ref<void*> state(*handle);
  while (state.load() != kDone) {
    void* fresh = nullptr;
    if (state.compare_exchange_strong(fresh, kRunning)) {
      const int status = run(data);
      state.store(status == 0 ? kDone : nullptr);
      return status;
    }
    std::this_thread::yield();
  }
  return 0;
}
