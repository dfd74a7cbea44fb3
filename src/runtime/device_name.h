/*!
 * \file device_name.h
 * \brief Names of devices that are added at run time.
 */
#ifndef TVM_RUNTIME_DEVICE_NAME_H_
#define TVM_RUNTIME_DEVICE_NAME_H_

#include <string>

namespace tvm {
namespace runtime {

/*! \brief Make DeviceName answer `name`; ValueError when the number has another name. */
void RegisterDeviceName(int device_type, const std::string& name);

}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_DEVICE_NAME_H_
