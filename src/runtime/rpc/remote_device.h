/*!
 * \file remote_device.h
 * \brief Devices behind a session.
 */
#ifndef TVM_RUNTIME_RPC_REMOTE_DEVICE_H_
#define TVM_RUNTIME_RPC_REMOTE_DEVICE_H_

#include <tvm/runtime/device_api.h>

namespace tvm {
namespace runtime {
namespace rpc {

/*! \brief Whether a device is behind a session. */
bool IsRemote(Device device);
/*! \brief The one that stands for all devices of all sessions. */
DeviceAPI* RemoteDeviceAPI();

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_RPC_REMOTE_DEVICE_H_
