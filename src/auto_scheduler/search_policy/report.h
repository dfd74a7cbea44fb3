/*!
 * \file report.h
 * \brief What policies print.
 */
#ifndef TVM_AUTO_SCHEDULER_SEARCH_POLICY_REPORT_H_
#define TVM_AUTO_SCHEDULER_SEARCH_POLICY_REPORT_H_

#include <chrono>
#include <string>

namespace tvm {
namespace auto_scheduler {

/*! \brief A section title on standard output, if `verbose` >= 1. */
void PrintTitle(const std::string& title, int verbose);

/*! \brief Seconds since it was made. */
class Stopwatch {
 public:
  double Seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/*! \brief A number with this many decimals. */
std::string Fixed(double value, int decimals);

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_SEARCH_POLICY_REPORT_H_
