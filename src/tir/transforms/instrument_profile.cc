/*!
 * \file src/tir/transforms/instrument_profile.cc
 * \brief What tir.transform.InstrumentProfileIntrinsics puts into programs, and its options.
 */
#include <tvm/expr/analysis.h>
#include <tvm/ir/op.h>
#include <tvm/ir/transform.h>
#include <tvm/runtime/registry.h>

namespace tvm {
namespace tir {

// Their argument is the number of the stretch of the program that begins or ends here.
TVM_REGISTER_OP("tir.start_profile_intrinsic")
    .set_num_inputs(1)
    .set_attr<Integer>(kTCallEffectKind, Integer(static_cast<int>(CallEffectKind::kOpaque)));
TVM_REGISTER_OP("tir.end_profile_intrinsic")
    .set_num_inputs(1)
    .set_attr<Integer>(kTCallEffectKind, Integer(static_cast<int>(CallEffectKind::kOpaque)));

namespace transform {

TVM_REGISTER_PASS_CONFIG_OPTION("tir.instrument_lwp", bool);
TVM_REGISTER_PASS_CONFIG_OPTION("tir.lwp_disable_func_prof", bool);
TVM_REGISTER_PASS_CONFIG_OPTION("tir.lwp_max_depth", int64_t);
TVM_REGISTER_PASS_CONFIG_OPTION("tir.lwp_min_height", int64_t);
TVM_REGISTER_PASS_CONFIG_OPTION("tir.instr_siblings", bool);
TVM_REGISTER_PASS_CONFIG_OPTION("tir.reset_start_id", bool);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
