/*!
 * \file pass_options.cc
 * \brief Options of passes over graph modules, which are written in Python.
 */
#include <tvm/ir/transform.h>

namespace tvm {
namespace relax {

TVM_REGISTER_PASS_CONFIG_OPTION("relax.backend.use_cuda_graph", bool);

// How many operators FuseOps puts into a kernel at most; 256 by default.
TVM_REGISTER_PASS_CONFIG_OPTION("relax.FuseOps.max_depth", int64_t);

}  // namespace relax
}  // namespace tvm
