#include <tvm/runtime/logging.h>

#include <cstdio>
#include <cstring>
#include <optional>

#include "backtrace.h"
#include "generated_error.h"

namespace tvm {
namespace runtime {
namespace {

// Paths in messages start at the source tree, whatever directory the build ran in.
const char* ShortPath(const char* file) {
  for (const char* root : {"/include/tvm/", "/src/"}) {
    if (const char* found = std::strstr(file, root)) return found + 1;
  }
  const char* slash = std::strrchr(file, '/');
  return slash == nullptr ? file : slash + 1;
}

struct LastError {
  std::string text;
  std::optional<Error> error;
};

LastError& ThreadLastError() {
  thread_local LastError last;
  return last;
}

// "ValueError: text" -> kind and text; other messages are runtime errors.
Error ParseMessage(const std::string& text) {
  size_t colon = text.find(": ");
  if (colon != std::string::npos && colon > 5 && text.compare(colon - 5, 5, "Error") == 0 &&
      text.find_first_of(" \n") > colon) {
    return Error(text.substr(0, colon), text.substr(colon + 2));
  }
  return Error("RuntimeError", text);
}

}  // namespace

Error::Error(std::string kind, std::string message, std::string backtrace,
             std::shared_ptr<void> origin) {
  auto state = std::make_shared<State>();
  state->what = kind + ": " + message;
  state->kind = std::move(kind);
  state->message = std::move(message);
  state->backtrace = std::move(backtrace);
  state->origin = std::move(origin);
  state_ = std::move(state);
}

MessageStream::MessageStream() = default;
MessageStream::~MessageStream() = default;

void ErrorThrower::operator&(std::ostream& message) const {
  std::string place = std::string(ShortPath(file_)) + ":" + std::to_string(line_);
  // A search raises and catches these by the thousand.
  const bool expected = std::strcmp(kind_, "ScheduleError") == 0;
  throw Error(kind_, static_cast<std::ostringstream&>(message).str(),
              expected ? place : place + "\n" + CaptureBacktrace());
}

LogBuilder::LogBuilder(const char* severity, const char* file, int line) {
  stream_ << "[" << severity << " " << ShortPath(file) << ":" << line << "] ";
}

LogBuilder::~LogBuilder() {
  // One write a line, so that lines of different threads do not mix.
  stream_ << '\n';
  std::string text = stream_.str();
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void SetLastError(const Error& error) {
  LastError& last = ThreadLastError();
  last.text = error.what();
  last.error = error;
}

Error TakeLastError() {
  LastError& last = ThreadLastError();
  if (last.error) {
    Error error = *std::move(last.error);
    last.error.reset();
    return error;
  }
  return ParseMessage(last.text.empty() ? "a compiled function failed without a message"
                                        : last.text);
}

void ThrowLastError() { throw TakeLastError(); }

}  // namespace runtime
}  // namespace tvm

extern "C" {

const char* TVMGetLastError(void) { return tvm::runtime::ThreadLastError().text.c_str(); }

void TVMAPISetLastError(const char* message) {
  auto& last = tvm::runtime::ThreadLastError();
  last.text = message == nullptr ? "" : tvm::runtime::SpellNumbers(message);
  last.error.reset();
}
}
