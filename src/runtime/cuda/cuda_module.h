/*!
 * \file cuda_module.h
 * \brief Kernels for NVIDIA GPUs as a runtime module.
 */
#ifndef TVM_RUNTIME_CUDA_CUDA_MODULE_H_
#define TVM_RUNTIME_CUDA_CUDA_MODULE_H_

#include <tvm/runtime/module.h>

#include <string>
#include <vector>

namespace tvm {
namespace runtime {

/*! \brief What a caller has to know to launch a kernel. */
struct KernelInfo {
  std::string name;
  /*! \brief Types of the kernel's own parameters; pointers are handles. */
  std::vector<DataType> param_types;
  /*! \brief Thread tags whose extents follow the parameters in a call, in this order. */
  std::vector<std::string> thread_tags;
  /*! \brief Whether the last argument is the number of bytes of dynamic shared memory. */
  bool uses_dynamic_shared = false;
};

/*!
 * \brief A module of kernels.
 * \param binary What the driver loads: a cubin or PTX text.
 * \param source Text that GetSource returns.
 *
 * Nothing of the driver is needed until a kernel is launched; each device loads the binary then.
 */
TVM_DLL Module CUDAModuleCreate(std::string binary, std::string source,
                                std::vector<KernelInfo> kernels);

}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_CUDA_CUDA_MODULE_H_
