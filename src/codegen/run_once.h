/*!
 * \file run_once.h
 * \brief Statements that a function of the runtime runs, at most once.
 */
#ifndef TVM_CODEGEN_RUN_ONCE_H_
#define TVM_CODEGEN_RUN_ONCE_H_

#include <tvm/tir/stmt.h>

namespace tvm {
namespace codegen {

/*!
 * \brief The attribute of such a statement; its value names the C function that runs it.
 *
 * Called as `int f(void** handle, int (*run)(void*), void* data, int num_bytes)`, see
 * TVMBackendRunOnce; code for accelerators pushes micro-operations this way.
 */
constexpr const char* kRunOnce = "coproc_uop_scope";

/*! \brief The function that such an attribute names. */
inline String RunnerName(const tir::AttrStmtNode* op) {
  const auto* name = op->value.as<tir::StringImmNode>();
  TVM_CHECK(name != nullptr && !name->value.empty(), TypeError)
      << op->attr_key << ": expected the name of a C function, got " << op->value;
  return name->value;
}

}  // namespace codegen
}  // namespace tvm

#endif  // TVM_CODEGEN_RUN_ONCE_H_
