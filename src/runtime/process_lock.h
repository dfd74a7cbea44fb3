/*!
 * \brief Locks of the whole process that work in the children of fork.
 */
#ifndef TVM_RUNTIME_PROCESS_LOCK_H_
#define TVM_RUNTIME_PROCESS_LOCK_H_

#include <pthread.h>
#include <tvm/runtime/logging.h>

#include <new>

namespace tvm {
namespace runtime {

/*!
 * \brief A lock that is free in every child of fork.
 *
 * A child has one thread. It would wait for ever for a lock that another thread held at that
 * moment, and find what that lock guards half changed. So whoever forks waits for the lock first.
 *
 * Locks of this kind are never destroyed, and no other of them is taken while one is held: whoever
 * forks takes all of them.
 */
template <typename Mutex, typename Tag>
class ProcessLock {
 public:
  /*! \brief The lock that belongs to a tag. */
  static Mutex& Get() {
    static Mutex* lock = Make();
    return *lock;
  }

 private:
  static Mutex* Make() {
    static Mutex* lock = new Mutex();
    // New rather than unlocked: threads that wait for a lock leave marks in it.
    const int registered =
        pthread_atfork([] { lock->lock(); }, [] { lock->unlock(); }, [] { new (lock) Mutex(); });
    ICHECK_EQ(registered, 0);
    return lock;
  }
};

}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_PROCESS_LOCK_H_
