#include <tvm/runtime/c_host_api.h>
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>

#include <cstring>

#include "runtime_base.h"

namespace tvm {
namespace runtime {
namespace {

// Handles are pointers to the object, whatever its class; the caller gets one reference.
void* Release(ObjectRef ref) { return std::move(ref).MoveObjectPtr().release(); }

Module AsModule(TVMModuleHandle handle, const char* where) {
  const auto* object = static_cast<const Object*>(handle);
  TVM_CHECK(object != nullptr && object->IsInstance<ModuleNode>(), TypeError)
      << where << ": the handle is not a module";
  return GetRef<Module>(static_cast<const ModuleNode*>(object));
}

PackedFunc AsFunction(TVMFunctionHandle handle, const char* where) {
  const auto* object = static_cast<const Object*>(handle);
  TVM_CHECK(object != nullptr && object->IsInstance<PackedFuncObj>(), TypeError)
      << where << ": the handle is not a function";
  return GetRef<PackedFunc>(static_cast<const PackedFuncObj*>(object));
}

void CopyHost(const DLTensor& array, const void* from, Device from_device, void* to,
              Device to_device, uint64_t bytes) {
  TVM_CHECK(bytes == NumBytes(array), ValueError)
      << "TVMArrayCopy: the array takes " << NumBytes(array) << " bytes, got " << bytes;
  TVM_CHECK(IsContiguous(array), ValueError) << "TVMArrayCopy: the array is not compact";
  DeviceAPI* api = DeviceAPI::Get(array.device);
  api->CopyBytes(from, from_device, to, to_device, bytes, nullptr);
  api->StreamSync(array.device, nullptr);
}

constexpr Device kHost{kDLCPU, 0};

}  // namespace
}  // namespace runtime
}  // namespace tvm

using namespace tvm::runtime;

extern "C" {

int TVMModLoadFromFile(const char* path, const char* format, TVMModuleHandle* out) {
  return GuardedCall(
      [&] { *out = Release(Module::LoadFromFile(path, format == nullptr ? "" : format)); });
}

int TVMModGetFunction(TVMModuleHandle module, const char* name, int query_imports,
                      TVMFunctionHandle* out) {
  return GuardedCall([&] {
    PackedFunc function =
        AsModule(module, "TVMModGetFunction").GetFunction(name, query_imports != 0);
    TVM_CHECK(function.defined(), AttributeError)
        << "TVMModGetFunction: the module has no function \"" << name << '"';
    *out = Release(std::move(function));
  });
}

int TVMModImport(TVMModuleHandle module, TVMModuleHandle other) {
  return GuardedCall(
      [&] { AsModule(module, "TVMModImport").Import(AsModule(other, "TVMModImport")); });
}

int TVMObjectFree(void* object) {
  return GuardedCall([&] {
    if (object != nullptr) static_cast<Object*>(object)->DecRef();
  });
}

int TVMFuncCreateFromCFunc(TVMPackedCFunc function, TVMFunctionHandle* out) {
  return GuardedCall(
      [&] { *out = Release(PackedFuncFromAddress("C function", function, ObjectRef())); });
}

int TVMFuncRegisterGlobal(const char* name, TVMFunctionHandle function, int override_entry) {
  return GuardedCall([&] {
    Registry::Register(name, override_entry != 0)
        .set_body(AsFunction(function, "TVMFuncRegisterGlobal"));
  });
}

int TVMArrayAlloc(const int64_t* shape, int ndim, DLDataType dtype, DLDevice device, TVMAny* out) {
  return GuardedCall([&] {
    NDArray array = NDArray::Empty({shape, shape + ndim}, tvm::DataType(dtype), device);
    *out = tvm::Any(std::move(array)).MoveToRaw();
  });
}

int TVMArrayCopyFromBytes(DLTensor* array, const void* data, uint64_t bytes) {
  return GuardedCall([&] {
    CopyHost(*array, data, kHost, static_cast<char*>(array->data) + array->byte_offset,
             array->device, bytes);
  });
}

int TVMArrayCopyToBytes(const DLTensor* array, void* data, uint64_t bytes) {
  return GuardedCall([&] {
    CopyHost(*array, static_cast<const char*>(array->data) + array->byte_offset, array->device,
             data, kHost, bytes);
  });
}

int TVMAnyGetTensor(const TVMAny* value, DLTensor** out) {
  return GuardedCall([&] {
    *out = reinterpret_cast<const tvm::Any*>(value)->cast<DLTensor*>();
    TVM_CHECK(*out != nullptr, TypeError) << "TVMAnyGetTensor: the value is no array but null";
  });
}

int TVMDeviceSync(DLDevice device) {
  return GuardedCall([&] { DeviceAPI::Get(device)->StreamSync(device, nullptr); });
}
}
