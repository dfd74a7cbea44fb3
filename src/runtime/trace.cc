/*!
 * \file src/runtime/trace.cc
 * \brief Values of expressions shown to a function while a program runs.
 */
#include <tvm/runtime/packed_func.h>
#include <tvm/runtime/registry.h>

#include <cstdio>
#include <sstream>

namespace tvm {
namespace runtime {

namespace {

std::string NumberText(const Any& value) {
  std::ostringstream os;
  int64_t integer = 0;
  double real = 0;
  if (value.type_code() != kTVMFloat && AnyToInt(value, &integer)) {
    os << integer;
  } else if (AnyToFloat(value, &real)) {
    os << real;
  } else {
    os << "a value of type code " << value.type_code();
  }
  return os.str();
}

}  // namespace

/*! \brief Calls the function named first with the rest; returns what it gives, or the last value.
 */
TVM_REGISTER_GLOBAL("runtime.Trace").set_body([](Args args, RetValue* result) {
  TVM_CHECK(args.size() >= 2, ValueError)
      << "runtime.Trace: a name and at least one value are needed";
  const std::string name = args[0].cast<std::string>();
  const PackedFunc* action = Registry::Get(name);
  TVM_CHECK(action != nullptr, ValueError)
      << "trace: there is no global function \"" << name << "\"; register one, or use the default";
  RetValue given;
  action->CallPacked(args.slice(1), &given);
  *result = given.is_null() ? args[args.size() - 1] : given;
});

TVM_REGISTER_GLOBAL("tvm.default_trace_action").set_body([](Args args, RetValue* result) {
  std::string line;
  for (int i = 0; i < static_cast<int>(args.size()); ++i) {
    line += (i == 0 ? "" : " ") + NumberText(args[i]);
  }
  std::printf("%s\n", line.c_str());
});

}  // namespace runtime
}  // namespace tvm
