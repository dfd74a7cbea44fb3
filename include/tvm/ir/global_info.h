/*!
 * \file tvm/ir/global_info.h
 * \brief What a module says that is no function: above all, the devices that its tensors live on.
 */
#ifndef TVM_IR_GLOBAL_INFO_H_
#define TVM_IR_GLOBAL_INFO_H_

#include <tvm/node/node.h>

namespace tvm {

class GlobalInfoNode : public Object {
 public:
  TVM_DECLARE_ABSTRACT_NODE(GlobalInfoNode, Object, "GlobalInfo");
};
class GlobalInfo : public ObjectRef {
 public:
  TVM_DEFINE_REF(GlobalInfo, ObjectRef, GlobalInfoNode);
};

/*! \brief Says nothing; for tests. */
class DummyGlobalInfoNode : public GlobalInfoNode {
 public:
  TVM_DECLARE_NODE(DummyGlobalInfoNode, GlobalInfoNode, "DummyGlobalInfo");
};

/*! \brief A device by what is compiled for it, its number and a memory of it. */
class VDeviceNode : public GlobalInfoNode {
 public:
  /*! \brief A Target; the rooms that know those stand on this one. */
  ObjectRef target;
  int vdevice_id = 0;
  String memory_scope;
  TVM_DECLARE_NODE(VDeviceNode, GlobalInfoNode, "VDevice", Maybe(target), Value(vdevice_id),
                   Value(memory_scope));
};
class VDevice : public FromFields<GlobalInfo, VDeviceNode> {
 public:
  TVM_DEFINE_NODE_REF(VDevice, VDeviceNode);
};

}  // namespace tvm

#endif  // TVM_IR_GLOBAL_INFO_H_
