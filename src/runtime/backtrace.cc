#include "backtrace.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace tvm {
namespace runtime {
namespace {

constexpr int kMaxFrames = 48;

std::string Demangled(const char* symbol) {
  int status = 0;
  char* text = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
  if (text == nullptr) return symbol;
  std::string name = text;
  std::free(text);
  // Template arguments and parameters fill lines without saying more about the place.
  constexpr size_t kMaxLength = 160;
  if (name.size() > kMaxLength) {
    name.resize(kMaxLength);
    name += "...";
  }
  return name;
}

std::string FileName(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

// Frames of the interpreter itself: the Python traceback tells better what happened there.
bool IsInterpreter(const char* symbol) {
  return std::strncmp(symbol, "Py", 2) == 0 || std::strncmp(symbol, "_Py", 3) == 0;
}

// How an error is made and passed on is the same every time.
bool IsMachinery(const std::string& name) {
  for (const char* prefix : {"tvm::runtime::CaptureBacktrace",
                             "tvm::runtime::ErrorThrower::", "tvm::bindings::TakePythonError",
                             "void std::__invoke", "std::_Function_handler"}) {
    if (name.compare(0, std::strlen(prefix), prefix) == 0) return true;
  }
  return false;
}

}  // namespace

std::string CaptureBacktrace() {
  void* addresses[kMaxFrames];
  const int count = ::backtrace(addresses, kMaxFrames);
  std::ostringstream os;
  for (int i = 1; i < count; ++i) {
    Dl_info info;
    // A return address may lie behind the last instruction of the function that called.
    const auto* call = static_cast<const char*>(addresses[i]) - 1;
    if (dladdr(call, &info) == 0 || info.dli_fname == nullptr) {
      os << "  compiled code\n";
      continue;
    }
    const std::string file = FileName(info.dli_fname);
    // The bindings, whose functions are hidden.
    if (file.compare(0, 6, "_core.") == 0) continue;
    if (info.dli_sname == nullptr) {
      os << "  " << file << ": +0x" << std::hex << (call - static_cast<const char*>(info.dli_fbase))
         << std::dec << '\n';
      continue;
    }
    if (IsInterpreter(info.dli_sname)) break;
    const std::string name = Demangled(info.dli_sname);
    if (!IsMachinery(name)) os << "  " << file << ": " << name << '\n';
  }
  return os.str();
}

}  // namespace runtime
}  // namespace tvm
