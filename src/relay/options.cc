/*!
 * \file src/relay/options.cc
 * \brief Settings of builds of relay programs.
 */
#include <tvm/ir/transform.h>

namespace tvm {
namespace relay {

// Whether kernels take the schedules of records that a dispatch context has; true by default.
TVM_REGISTER_PASS_CONFIG_OPTION("relay.backend.use_auto_scheduler", bool);

}  // namespace relay
}  // namespace tvm
