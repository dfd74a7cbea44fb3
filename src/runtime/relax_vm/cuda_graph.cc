/*!
 * \file cuda_graph.cc
 * \brief What relax.transform.RewriteCUDAGraph calls, on machines that have nothing to replay.
 */
#include <tvm/runtime/container/array.h>
#include <tvm/runtime/logging.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/packed_func.h>
#include <tvm/runtime/registry.h>

#include <vector>

namespace tvm {
namespace runtime {
namespace relax_vm {
namespace {

/*! \brief (machine, function, number) -> memory that the function allocated at the first call. */
void GetCachedAlloc(Args args, RetValue* ret) {
  const char* who = "vm.builtin.cuda_graph.get_cached_alloc";
  const PackedFunc once = ReadArg<Module>(who, args, 0).GetFunction("run_once");
  TVM_CHECK(once.defined(), TypeError) << who << ": the first argument must be a virtual machine";
  const std::vector<Any> given{args[2], args[1]};
  once.CallPacked(Args(given.data(), 2), ret);
}

/*!
 * \brief (machine, function, its arguments as a tuple, number[, extents]) -> what it gives.
 *
 * Programs of the machine run on processors, where launching kernels again costs nothing that a
 * recorded graph would save: so the function is called.
 */
void RunOrCapture(Args args, RetValue* ret) {
  const char* who = "vm.builtin.cuda_graph.run_or_capture";
  std::vector<Any> given;
  for (const Any& value : ReadArg<Array<Any>>(who, args, 2)) given.push_back(value);
  ReadArg<PackedFunc>(who, args, 1)
      .CallPacked(Args(given.data(), static_cast<int32_t>(given.size())), ret);
}

}  // namespace

TVM_REGISTER_GLOBAL("vm.builtin.cuda_graph.get_cached_alloc").set_body(GetCachedAlloc);
TVM_REGISTER_GLOBAL("vm.builtin.cuda_graph.run_or_capture").set_body(RunOrCapture);

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
