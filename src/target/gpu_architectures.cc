/*!
 * \file gpu_architectures.cc
 */
#include "gpu_architectures.h"

#include <tvm/runtime/logging.h>

#include <iterator>

namespace tvm {

namespace {

constexpr int64_t kKiB = 1 << 10, kMiB = 1 << 20;
constexpr double kGiga = 1e9;

// clang-format off
constexpr GpuArchitecture kArchitectures[] = {
    // number, board, threads, blocks, shared, FMA, tensor FMA, SMs, L2, clock, memory, cycles to L2, to memory
    {70, "V100",        2048, 32,  96 * kKiB,  64,  512,  80,   6 * kMiB, 1.53 * kGiga,  900 * kGiga, 193, 375},
    {72, "AGX Xavier",  2048, 32,  96 * kKiB,  64,  512,   8, 512 * kKiB, 1.38 * kGiga,  137 * kGiga, 193, 375},
    {75, "T4",          1024, 16,  64 * kKiB,  64,  512,  40,   4 * kMiB, 1.59 * kGiga,  320 * kGiga, 188, 296},
    {80, "A100",        2048, 32, 164 * kKiB,  64, 1024, 108,  40 * kMiB, 1.41 * kGiga, 1555 * kGiga, 262, 466},
    {86, "RTX 3090",    1536, 16, 100 * kKiB, 128,  256,  82,   6 * kMiB, 1.70 * kGiga,  936 * kGiga, 262, 466},
    {87, "AGX Orin",    1536, 16, 164 * kKiB, 128, 1024,  16,   4 * kMiB, 1.30 * kGiga,  205 * kGiga, 262, 466},
    {89, "RTX 4090",    1536, 24, 100 * kKiB, 128,  256, 128,  72 * kMiB, 2.52 * kGiga, 1008 * kGiga, 273, 542},
    {90, "H100",        2048, 32, 228 * kKiB, 128, 2048, 132,  50 * kMiB, 1.83 * kGiga, 3350 * kGiga, 263, 479},
    {100, "B200",       2048, 32, 228 * kKiB, 128, 4096, 148, 126 * kMiB, 1.85 * kGiga, 8000 * kGiga, 263, 479},
    {120, "RTX 5090",   1536, 24, 100 * kKiB, 128,  256, 170,  96 * kMiB, 2.41 * kGiga, 1792 * kGiga, 273, 542},
};
// clang-format on

constexpr const char* kUnnamed = "sm_80";

}  // namespace

int GpuArchitecture::NumberOf(const std::string& text) {
  const std::string arch = text.empty() ? kUnnamed : text;
  const std::string prefix = "sm_";
  std::string digits = arch.rfind(prefix, 0) == 0 ? arch.substr(prefix.size()) : "";
  if (!digits.empty() && (digits.back() == 'a' || digits.back() == 'f')) digits.pop_back();
  const bool is_number = !digits.empty() && digits.size() <= 4 &&
                         digits.find_first_not_of("0123456789") == std::string::npos;
  TVM_CHECK(is_number, ValueError)
      << "target: -arch=" << arch << " is no architecture of a GPU; write it as -arch=sm_80";
  return std::stoi(digits);
}

const GpuArchitecture& GpuArchitecture::Of(const std::string& arch) {
  const int number = NumberOf(arch);
  const GpuArchitecture* found = std::begin(kArchitectures);
  for (const GpuArchitecture& row : kArchitectures) {
    if (row.number <= number) found = &row;
  }
  return *found;
}

}  // namespace tvm
