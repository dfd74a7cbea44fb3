#include "cpu_affinity.h"

#include <sched.h>
#include <tvm/runtime/logging.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

namespace tvm {
namespace runtime {
namespace threading {
namespace {

// What sets big cores apart from little ones; 0 where the system does not tell.
int64_t MaxKiloHertz(int cpu) {
  std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                     "/cpufreq/cpuinfo_max_freq");
  int64_t value = 0;
  file >> value;
  return value;
}

// The cores of the highest (or lowest) frequency; all of them where they are alike.
std::vector<int> CpusOfKind(bool big) {
  std::vector<int> cpus = AllowedCpus();
  std::vector<int64_t> speed;
  for (int cpu : cpus) speed.push_back(MaxKiloHertz(cpu));
  const int64_t wanted = big ? *std::max_element(speed.begin(), speed.end())
                             : *std::min_element(speed.begin(), speed.end());
  std::vector<int> out;
  for (size_t i = 0; i < cpus.size(); ++i) {
    if (speed[i] == wanted) out.push_back(cpus[i]);
  }
  return out;
}

std::vector<int> CpusOf(AffinityMode mode, const std::vector<int>& cpus) {
  switch (mode) {
    case AffinityMode::kBig:
    case AffinityMode::kLittle:
      TVM_CHECK(cpus.empty(), ValueError)
          << "config_threadpool: processors are given, but the affinity mode chooses its own; use "
          << "the mode of specified processors";
      return CpusOfKind(mode == AffinityMode::kBig);
    default:
      break;
  }
  TVM_CHECK(!cpus.empty(), ValueError)
      << "config_threadpool: this affinity mode needs a list of processors";
  const std::vector<int> allowed = AllowedCpus();
  for (int cpu : cpus) {
    TVM_CHECK(std::find(allowed.begin(), allowed.end(), cpu) != allowed.end(), ValueError)
        << "config_threadpool: this process may not run on processor " << cpu << "; it may use "
        << allowed.size() << " processors, from " << allowed.front() << " to " << allowed.back();
  }
  return cpus;
}

}  // namespace

std::vector<int> AllowedCpus() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
    }
  }
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

std::vector<std::vector<int>> PlanAffinity(AffinityMode mode, int num_threads,
                                           const std::vector<int>& cpus) {
  if (mode == AffinityMode::kNone) {
    TVM_CHECK(cpus.empty(), ValueError)
        << "config_threadpool: processors are given, but no affinity mode that uses them";
    return {};
  }
  const std::vector<int> chosen = CpusOf(mode, cpus);
  std::vector<std::vector<int>> plan;
  for (int i = 0; i < num_threads; ++i) {
    if (mode == AffinityMode::kShareSpecified) {
      plan.push_back(chosen);
    } else {
      plan.push_back({chosen[static_cast<size_t>(i) % chosen.size()]});
    }
  }
  return plan;
}

int DefaultThreadsOf(AffinityMode mode, const std::vector<int>& cpus) {
  return static_cast<int>(mode == AffinityMode::kNone ? AllowedCpus().size()
                                                      : CpusOf(mode, cpus).size());
}

void BindThisThread(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu : cpus) CPU_SET(cpu, &set);
  TVM_CHECK(sched_setaffinity(0, sizeof(set), &set) == 0, RuntimeError)
      << "config_threadpool: a thread cannot be bound to processor " << cpus[0] << ": "
      << std::strerror(errno);
}

}  // namespace threading
}  // namespace runtime
}  // namespace tvm
