/*!
 * \file module_loader.h
 * \brief Finding what loads modules of a kind.
 */
#ifndef TVM_RUNTIME_MODULE_LOADER_H_
#define TVM_RUNTIME_MODULE_LOADER_H_

#include <tvm/runtime/packed_func.h>

#include <string>
#include <string_view>

namespace tvm {
namespace runtime {

/*!
 * \brief The function `prefix + kind`; nullptr if there is none.
 *
 * Kinds that few programs have are in libraries of their own: libtvm_<kind>.so is looked for beside
 * this library and opened when the first such module is met.
 *
 * \throws ValueError when that library is there but cannot be opened.
 */
const PackedFunc* FindModuleLoader(std::string_view prefix, const std::string& kind);

}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_MODULE_LOADER_H_
