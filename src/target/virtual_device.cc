/*!
 * \file virtual_device.cc
 */
#include "virtual_device.h"

namespace tvm {

TVM_REGISTER_NODE(VirtualDeviceNode, "target.VirtualDevice");

}  // namespace tvm
