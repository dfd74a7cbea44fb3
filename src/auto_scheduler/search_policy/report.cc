/*!
 * \file report.cc
 * \brief What policies print.
 */
#include "report.h"

#include <tvm/runtime/registry.h>

#include <cstdio>
#include <iostream>

namespace tvm {
namespace auto_scheduler {

void PrintTitle(const std::string& title, int verbose) {
  if (verbose < 1) return;
  const std::string line(70, '-');
  std::cout << line << "\n"
            << std::string(30, '-') << "  [ " << title << " ]\n"
            << line << std::endl;
}

std::string Fixed(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", decimals, value);
  return text;
}

TVM_REGISTER_GLOBAL("auto_scheduler.PrintTitle").set_body_typed([](String title) {
  PrintTitle(title, 1);
});

}  // namespace auto_scheduler
}  // namespace tvm
