/*!
 * \file src/target/memory_info.cc
 * \brief What is said of the special memory of a machine, scope by scope.
 */
#include <tvm/runtime/registry.h>
#include <tvm/target/memory_info.h>

#include <string>

namespace tvm {

TVM_REGISTER_NODE(MemoryInfoNode);

Optional<MemoryInfo> MemoryInfo::Of(const String& scope) {
  const runtime::PackedFunc* info = runtime::Registry::Get("tvm.info.mem." + std::string(scope));
  if (info == nullptr) return NullOpt;
  return (*info)().cast<Optional<MemoryInfo>>();
}

}  // namespace tvm
