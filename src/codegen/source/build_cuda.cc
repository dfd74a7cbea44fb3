/*!
 * \file build_cuda.cc
 * \brief Target "cuda": from kernels to a module the driver can load.
 */
#include <tvm/codegen/codegen_c.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/launch.h>

#include "codegen/source/codegen_cuda.h"
#include "codegen/source/kernel_info.h"

namespace tvm {
namespace codegen {

using namespace tir;  // NOLINT(*)

/*!
 * \brief Print the kernels, let `tvm_callback_cuda_postproc(code, target)` change the text if there
 * is such a function, and compile it with `tvm_callback_cuda_compile(code, target)`.
 */
runtime::Module BuildCUDA(IRModule mod, Target target) {
  std::vector<runtime::KernelInfo> kernels;
  for (const auto& [name, func] : SortedPrimFuncs(mod)) {
    if (GetCallingConv(func) == CallingConv::kDeviceKernelLaunch) {
      kernels.push_back(KernelInfoOf(name, func));
    }
  }
  TVM_CHECK(!kernels.empty(), ValueError)
      << "target.build.cuda: the module has no kernel; bind loops to threadIdx and blockIdx, and "
         "build with tvm.build, which splits kernels from host code";
  CodeGenCUDA generator(target);
  String code = PrintModule(&generator, mod);
  if (const PackedFunc* rewrite = runtime::Registry::Get("tvm_callback_cuda_postproc")) {
    code = (*rewrite)(code, target).cast<String>();
  }
  const PackedFunc* compile = runtime::Registry::Get("tvm_callback_cuda_compile");
  TVM_CHECK(compile != nullptr, ValueError)
      << "target.build.cuda: no compiler of CUDA C is registered as tvm_callback_cuda_compile; "
         "import the Python module tvm.contrib.nvrtc, or register one that returns a cubin or PTX";
  String binary = (*compile)(code, target).cast<String>();
  return runtime::CUDAModuleCreate(binary, code, std::move(kernels));
}

TVM_REGISTER_GLOBAL("target.build.cuda").set_body_typed(BuildCUDA);

TVM_REGISTER_GLOBAL("target.EmitCUDA").set_body_typed([](IRModule mod, Target target) {
  CodeGenCUDA generator(target);
  return String(PrintModule(&generator, mod));
});

/*! \brief What this machine's first GPU has, unless the target is for another architecture. */
TVM_REGISTER_GLOBAL("target.features.cuda").set_body_typed([](Target target) {
  Map<String, Any> facts =
      runtime::Registry::Require("runtime.cuda.DeviceFacts")(0).cast<Map<String, Any>>();
  std::string wanted = target->GetStr("arch", "");
  std::optional<Any> own = facts.Get("arch");
  bool other = own && !wanted.empty() && own->cast<String>() != wanted;
  return other ? Map<String, Any>() : facts;
});

}  // namespace codegen
}  // namespace tvm
