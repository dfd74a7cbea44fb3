/*!
 * \file kernel_info.h
 * \brief What the runtime is told about a kernel, from its function.
 */
#ifndef TVM_CODEGEN_SOURCE_KERNEL_INFO_H_
#define TVM_CODEGEN_SOURCE_KERNEL_INFO_H_

#include <tvm/tir/launch.h>

#include <string>

#include "runtime/cuda/cuda_module.h"

namespace tvm {
namespace codegen {

/*! \brief Symbol, parameters and launch of a kernel that the module calls `name`. */
inline runtime::KernelInfo KernelInfoOf(const std::string& name, const tir::PrimFunc& func) {
  runtime::KernelInfo info;
  info.name = func->GetAttr<String>(tir::attr::kGlobalSymbol, String(name));
  for (const tir::Var& param : func->params) info.param_types.push_back(param->dtype);
  for (const String& tag : func->GetAttr<Array<String>>(tir::attr::kKernelLaunchParams, {})) {
    if (tag == tir::attr::kUseDynSharedMemory) {
      info.uses_dynamic_shared = true;
    } else {
      info.thread_tags.push_back(tag);
    }
  }
  return info;
}

}  // namespace codegen
}  // namespace tvm

#endif  // TVM_CODEGEN_SOURCE_KERNEL_INFO_H_
