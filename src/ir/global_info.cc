#include <tvm/ir/global_info.h>

namespace tvm {

TVM_REGISTER_NODE(DummyGlobalInfoNode);
TVM_REGISTER_NODE(VDeviceNode, "ir.VDevice");

TVM_REGISTER_GLOBAL("ir.DummyGlobalInfo").set_body_typed([]() {
  return GlobalInfo(make_object<DummyGlobalInfoNode>());
});

}  // namespace tvm
