/*!
 * \file self_check.cc
 * \brief Functions with which a connection can be tried: they need nothing and reach nothing, so
 * every server lets them be called. The programs' tests use them too.
 */
#include <tvm/runtime/container.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/registry.h>

#include <cstring>

namespace tvm {
namespace runtime {
namespace {

/*! \brief The sum, which wraps around: the numbers are whatever a client sends. */
int64_t Sum(int64_t left, int64_t right) {
  return static_cast<int64_t>(static_cast<uint64_t>(left) + static_cast<uint64_t>(right));
}

TVM_REGISTER_GLOBAL("rpc.test.addone").set_body_typed([](int64_t number) {
  return Sum(number, 1);
});

TVM_REGISTER_GLOBAL("rpc.test.strcat").set_body_typed([](std::string text, int64_t number) {
  return text + ":" + std::to_string(number);
});

TVM_REGISTER_GLOBAL("rpc.test.runtime_str_concat").set_body_typed([](String first, String second) {
  return String(first.str() + second.str());
});

TVM_REGISTER_GLOBAL("rpc.test.except").set_body_typed([](std::string name) {
  TVM_FATAL(ValueError) << "rpc.test.except: told to fail by " << name;
});

TVM_REGISTER_GLOBAL("rpc.test.add_to_lhs").set_body_typed([](int64_t left) {
  return MakeTypedPacked([left](int64_t right) { return Sum(left, right); });
});

/*! \brief Whether an array of float64 is all ones; RuntimeError if not. */
TVM_REGISTER_GLOBAL("rpc.test.remote_array_func").set_body_typed([](NDArray array) {
  TVM_CHECK(array.dtype() == DataType::Float(64), TypeError)
      << "rpc.test.remote_array_func: expected float64, got " << array.dtype();
  const NDArray host = array.CopyTo(Device{kDLCPU, 0});
  for (int64_t i = 0; i < host.NumElements(); ++i) {
    TVM_CHECK(static_cast<const double*>(host.data())[i] == 1.0, RuntimeError)
        << "rpc.test.remote_array_func: element " << i << " is not one";
  }
});

/*! \brief "get_arr", "ref_count", "get_elem" or "get_arr_elem": functions over one array. */
TVM_REGISTER_GLOBAL("rpc.test.remote_return_nd").set_body_typed([](std::string what) {
  static const NDArray* array = [] {
    auto* made = new NDArray(NDArray::Empty({2}, DataType::Float(32), Device{kDLCPU, 0}));
    std::memset(made->data(), 0, made->NumBytes());
    return made;
  }();
  auto element = [](const NDArray& from, int64_t at) {
    TVM_CHECK(at >= 0 && at < from.NumElements(), IndexError)
        << "rpc.test.remote_return_nd: there is no element " << at;
    return static_cast<double>(static_cast<const float*>(from.data())[at]);
  };
  if (what == "get_arr") return MakeTypedPacked([] { return *array; });
  if (what == "ref_count") return MakeTypedPacked([] { return array->use_count(); });
  if (what == "get_elem") {
    return MakeTypedPacked([element](int64_t at) { return element(*array, at); });
  }
  TVM_CHECK(what == "get_arr_elem", ValueError)
      << "rpc.test.remote_return_nd: there is no \"" << what << '"';
  return MakeTypedPacked([element](NDArray from, int64_t at) { return element(from, at); });
});

}  // namespace
}  // namespace runtime
}  // namespace tvm
