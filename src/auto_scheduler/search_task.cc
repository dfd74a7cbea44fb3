/*!
 * \file search_task.cc
 * \brief Tasks, and hardware limits from targets.
 */
#include <tvm/auto_scheduler/search_task.h>
#include <tvm/runtime/registry.h>
#include <tvm/runtime/threading_backend.h>

namespace tvm {
namespace auto_scheduler {

TVM_REGISTER_NODE(HardwareParamsNode);
TVM_REGISTER_NODE(SearchTaskNode);

void SearchTaskNode::Init() {
  CheckLayoutRewrite(layout_rewrite_option);
  if (!hardware_params.defined()) hardware_params = HardwareParams::FromTarget(target);
  target = NameMachine(target);
}

TVM_REGISTER_GLOBAL("auto_scheduler.GetDefaultHardwareParams").set_body_typed([](Target target) {
  return HardwareParams::FromTarget(target);
});

}  // namespace auto_scheduler
}  // namespace tvm
