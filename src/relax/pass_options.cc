/*!
 * \file pass_options.cc
 * \brief Options of passes over graph modules, which are written in Python.
 */
#include <tvm/ir/transform.h>

namespace tvm {
namespace relax {

TVM_REGISTER_PASS_CONFIG_OPTION("relax.backend.use_cuda_graph", bool);

}  // namespace relax
}  // namespace tvm
