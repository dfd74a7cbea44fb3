/*!
 * \file ffi_testing.cc
 * \brief Functions with which frontends try out how values, errors and time cross the border.
 */
#include <tvm/runtime/logging.h>
#include <tvm/runtime/registry.h>

#include <chrono>
#include <thread>

namespace tvm {
namespace runtime {

TVM_REGISTER_GLOBAL("testing.echo").set_body([](Args args, RetValue* ret) {
  TVM_CHECK(args.size() == 1, TypeError) << "testing.echo: takes one argument";
  *ret = args[0];
});
TVM_REGISTER_GLOBAL("testing.nop").set_body([](Args, RetValue*) {});
/*! \brief A function without arguments that calls the given one. */
TVM_REGISTER_GLOBAL("testing.test_wrap_callback").set_body_typed([](PackedFunc callback) {
  return PackedFunc([callback](Args, RetValue* ret) { *ret = callback(); });
});
/*! \brief A function without arguments that raises a RuntimeError with the given text. */
TVM_REGISTER_GLOBAL("testing.test_raise_error_callback").set_body_typed([](String message) {
  return PackedFunc([message](Args, RetValue*) { TVM_FATAL(RuntimeError) << message; });
});
TVM_REGISTER_GLOBAL("testing.sleep_in_ffi").set_body_typed([](double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
});

}  // namespace runtime
}  // namespace tvm
