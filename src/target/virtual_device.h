/*!
 * \file virtual_device.h
 * \brief Where a value of a program lives, as far as the program says so.
 */
#ifndef TVM_TARGET_VIRTUAL_DEVICE_H_
#define TVM_TARGET_VIRTUAL_DEVICE_H_

#include <tvm/node/node.h>
#include <tvm/target/target.h>

namespace tvm {

class VirtualDeviceNode : public Object {
 public:
  /*! \brief DLDeviceType, -1 where any will do; so for the number of the device. */
  int device_type_int = -1;
  int virtual_device_id = -1;
  /*! \brief What code for the device is compiled for; null for any. */
  Target target;
  /*! \brief Memory of the device, empty for any. */
  String memory_scope;

  TVM_DECLARE_NODE(VirtualDeviceNode, Object, "VirtualDevice", Value(device_type_int),
                   Value(virtual_device_id), Maybe(target), Value(memory_scope));
};

class VirtualDevice : public FromFields<ObjectRef, VirtualDeviceNode> {
 public:
  TVM_DEFINE_NODE_REF(VirtualDevice, VirtualDeviceNode);
};

}  // namespace tvm

#endif  // TVM_TARGET_VIRTUAL_DEVICE_H_
