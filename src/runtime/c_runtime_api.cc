#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/registry.h>

#include "runtime_base.h"

using namespace tvm::runtime;

extern "C" {

int TVMFuncGetGlobal(const char* name, TVMFunctionHandle* out) {
  return GuardedCall([&] { *out = const_cast<PackedFuncObj*>(Registry::Require(name).get()); });
}

int TVMFuncCall(TVMFunctionHandle func, const TVMAny* args, int32_t num_args, TVMAny* ret) {
  return GuardedCall([&] {
    Any result;
    static_cast<const PackedFuncObj*>(func)->CallPacked(
        Args(reinterpret_cast<const Any*>(args), num_args), &result);
    if (ret != nullptr) *ret = result.MoveToRaw();
  });
}

void TVMAnyFree(TVMAny* value) {
  if (value->type_code == kTVMObject) static_cast<Object*>(value->v_handle)->DecRef();
  *value = TVMAny{kTVMNull, 0, {0}};
}
}
