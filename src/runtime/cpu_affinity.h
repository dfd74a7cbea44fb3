/*!
 * \file cpu_affinity.h
 * \brief Which processors the threads of the pool may run on.
 */
#ifndef TVM_RUNTIME_CPU_AFFINITY_H_
#define TVM_RUNTIME_CPU_AFFINITY_H_

#include <tvm/runtime/threading_backend.h>

#include <vector>

namespace tvm {
namespace runtime {
namespace threading {

/*! \brief Processors that this process may run on, in ascending order. */
std::vector<int> AllowedCpus();

/*!
 * \brief The processors of each thread, thread 0 being the caller; empty for no binding.
 * \param num_threads At least 1; threads beyond the processors start over at the first.
 * \throws ValueError for processors this process may not use, or none given where some are needed.
 */
std::vector<std::vector<int>> PlanAffinity(AffinityMode mode, int num_threads,
                                           const std::vector<int>& cpus);

/*! \brief How many threads a mode uses unless told. */
int DefaultThreadsOf(AffinityMode mode, const std::vector<int>& cpus);

/*! \brief Bind the calling thread to these processors. */
void BindThisThread(const std::vector<int>& cpus);

}  // namespace threading
}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_CPU_AFFINITY_H_
