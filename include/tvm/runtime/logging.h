/*!
 * \file tvm/runtime/logging.h
 * \brief Errors with a kind, the checks that raise them, and log lines.
 *
 * TVM_CHECK judges what a user gave us and names the kind of Python exception it becomes; ICHECK
 * states what must hold inside the compiler whatever the user did, and raises InternalError.
 */
#ifndef TVM_RUNTIME_LOGGING_H_
#define TVM_RUNTIME_LOGGING_H_

#ifndef __cpp_concepts
#error "the C++ headers of tvm need C++20; compile with -std=c++20"
#endif

#include <tvm/runtime/c_runtime_api.h>

#include <exception>
#include <memory>
#include <sstream>
#include <string>

namespace tvm {
namespace runtime {

/*!
 * \brief An error with its kind ("ValueError"), message, and the place it came from.
 *
 * The kind names a class of `tvm.error`. An error raised by a Python callback also carries the
 * original exception, so that it arrives back in Python as the very same object.
 */
class TVM_DLL Error : public std::exception {
 public:
  Error(std::string kind, std::string message, std::string backtrace = "",
        std::shared_ptr<void> origin = nullptr);

  const char* what() const noexcept override { return state_->what.c_str(); }
  const std::string& kind() const { return state_->kind; }
  const std::string& message() const { return state_->message; }
  /*! \brief Where it was raised, innermost last: "file:line" or a Python traceback. */
  const std::string& backtrace() const { return state_->backtrace; }
  /*! \brief The foreign exception this error stands for, or null. */
  const std::shared_ptr<void>& origin() const { return state_->origin; }

 private:
  struct State {
    std::string kind, message, backtrace, what;
    std::shared_ptr<void> origin;
  };
  std::shared_ptr<const State> state_;
};

/*! \brief Make `error` the calling thread's last error, keeping kind, traceback and origin. */
TVM_DLL void SetLastError(const Error& error);

/*! \brief The calling thread's last error, as set by SetLastError or TVMAPISetLastError. */
TVM_DLL Error TakeLastError();

/*! \brief Raise the calling thread's last error. */
[[noreturn]] TVM_DLL void ThrowLastError();

/*!
 * \brief Where the parts of a message go.
 *
 * Made and ended by the library: every check has one, and there are thousands of checks.
 */
class TVM_DLL MessageStream {
 public:
  MessageStream();
  ~MessageStream();
  std::ostringstream& stream() { return stream_; }

 private:
  std::ostringstream stream_;
};

/*!
 * \brief `ErrorThrower(...) & stream` raises what the stream holds.
 *
 * An operator and not a destructor at the end of the expression: putting the message together may
 * itself raise, and a destructor that raises meanwhile would end the process.
 */
class TVM_DLL ErrorThrower {
 public:
  ErrorThrower(const char* kind, const char* file, int line)
      : kind_(kind), file_(file), line_(line) {}
  [[noreturn]] void operator&(std::ostream& message) const;

 private:
  const char* kind_;
  const char* file_;
  int line_;
};

/*! \brief Collects one log line and writes it to stderr when the full expression ends. */
class TVM_DLL LogBuilder {
 public:
  LogBuilder(const char* severity, const char* file, int line);
  ~LogBuilder();
  std::ostringstream& stream() { return stream_; }

 private:
  std::ostringstream stream_;
};

}  // namespace runtime
using runtime::Error;
}  // namespace tvm

#define TVM_FATAL(Kind) \
  ::tvm::runtime::ErrorThrower(#Kind, __FILE__, __LINE__) & ::tvm::runtime::MessageStream().stream()

#define TVM_CHECK(cond, Kind) \
  __builtin_expect(static_cast<bool>(cond), 1) ? static_cast<void>(0) : TVM_FATAL(Kind)

#define ICHECK(cond) TVM_CHECK(cond, InternalError) << "check failed: " #cond ". "

#define TVM_ICHECK_OP(a, op, b)      \
  TVM_CHECK((a)op(b), InternalError) \
      << "check failed: " #a " " #op " " #b " (" << (a) << " vs. " << (b) << "). "
#define ICHECK_EQ(a, b) TVM_ICHECK_OP(a, ==, b)
#define ICHECK_NE(a, b) TVM_ICHECK_OP(a, !=, b)
#define ICHECK_LT(a, b) TVM_ICHECK_OP(a, <, b)
#define ICHECK_LE(a, b) TVM_ICHECK_OP(a, <=, b)
#define ICHECK_GT(a, b) TVM_ICHECK_OP(a, >, b)
#define ICHECK_GE(a, b) TVM_ICHECK_OP(a, >=, b)

/*! \brief LOG(INFO) << ... or LOG(WARNING) << ...: one line on stderr. */
#define LOG(severity) ::tvm::runtime::LogBuilder(#severity, __FILE__, __LINE__).stream()

#endif  // TVM_RUNTIME_LOGGING_H_
