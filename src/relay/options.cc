/*!
 * \file src/relay/options.cc
 * \brief Settings of builds of relay programs.
 */
#include <tvm/ir/transform.h>

namespace tvm {
namespace relay {

// Whether kernels take the schedules of records that a dispatch context has; true by default.
TVM_REGISTER_PASS_CONFIG_OPTION("relay.backend.use_auto_scheduler", bool);

// Whether kernels take the schedules of the MetaSchedule database in scope; false by default.
TVM_REGISTER_PASS_CONFIG_OPTION("relay.backend.use_meta_schedule", bool);

// Whether what ToMixedPrecision makes has results of the program's types; false by default.
TVM_REGISTER_PASS_CONFIG_OPTION("relay.ToMixedPrecision.keep_orig_output_dtype", bool);

// DLDeviceType of what a program of several targets does not place; that of processors by default.
TVM_REGISTER_PASS_CONFIG_OPTION("relay.fallback_device_type", int64_t);

// How many operators a kernel has at most; 256 by default.
TVM_REGISTER_PASS_CONFIG_OPTION("relay.FuseOps.max_depth", int64_t);

}  // namespace relay
}  // namespace tvm
