/*!
 * \file tvm/runtime/threading_backend.h
 * \brief The thread pool that parallel loops run on.
 */
#ifndef TVM_RUNTIME_THREADING_BACKEND_H_
#define TVM_RUNTIME_THREADING_BACKEND_H_

#include <tvm/runtime/c_runtime_api.h>

#include <functional>

namespace tvm {
namespace runtime {
namespace threading {

/*! \brief Threads that take part in a parallel region, the caller included. */
TVM_DLL int MaxConcurrency();

/*!
 * \brief Use `num_threads` threads from now on; 0 means the default: TVM_NUM_THREADS if set, else
 * the number of processors this process may run on. Must not be called from a parallel region.
 */
TVM_DLL void Configure(int num_threads);

/*! \brief Run f(i) for i in [0, n) on the pool. The first exception is raised in the caller. */
TVM_DLL void ParallelFor(int n, const std::function<void(int)>& f);

}  // namespace threading
}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_THREADING_BACKEND_H_
