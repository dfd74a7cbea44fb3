/*!
 * \file tvm/runtime/threading_backend.h
 * \brief The thread pool that parallel loops run on.
 */
#ifndef TVM_RUNTIME_THREADING_BACKEND_H_
#define TVM_RUNTIME_THREADING_BACKEND_H_

#include <tvm/runtime/c_runtime_api.h>

#include <functional>
#include <vector>

namespace tvm {
namespace runtime {
namespace threading {

/*! \brief Threads that take part in a parallel region, the caller included. */
TVM_DLL int MaxConcurrency();

/*! \brief How threads are bound to processors. The numbers are what config_threadpool takes. */
enum class AffinityMode : int {
  /*! \brief The system places threads. The default, as other programs need processors too. */
  kNone = 0,
  /*! \brief One thread a processor, on those with the highest clock rate. */
  kBig = 1,
  /*! \brief One thread a processor, on those with the lowest clock rate. */
  kLittle = -1,
  /*! \brief One thread for each of the given processors. */
  kOnePerSpecified = -2,
  /*! \brief All threads share the given processors. */
  kShareSpecified = -3,
};

/*!
 * \brief Use `num_threads` threads from now on; 0 means the default: TVM_NUM_THREADS if set, else
 * the number of processors of the mode. Must not be called from a parallel region.
 *
 * Modes other than kNone bind the calling thread too. TVM_BIND_THREADS=1 makes kBig the mode that
 * kNone stands for.
 */
TVM_DLL void Configure(int num_threads, AffinityMode mode = AffinityMode::kNone,
                       std::vector<int> cpus = {});

/*! \brief Run f(i) for i in [0, n) on the pool. The first exception is raised in the caller. */
TVM_DLL void ParallelFor(int n, const std::function<void(int)>& f);

/*!
 * \brief While one exists, a sequence of parallel regions is under way: workers that have nothing
 * to do for a moment stay awake, as waking them takes longer than many a region.
 *
 * They sleep all the same if no region is opened for some milliseconds.
 */
class TVM_DLL RunOfRegions {
 public:
  RunOfRegions();
  ~RunOfRegions();
  RunOfRegions(const RunOfRegions&) = delete;
  RunOfRegions& operator=(const RunOfRegions&) = delete;
};

}  // namespace threading
}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_THREADING_BACKEND_H_
