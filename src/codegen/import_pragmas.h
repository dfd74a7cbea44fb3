/*!
 * \file import_pragmas.h
 * \brief Pragmas that bring code along which the functions of a module call.
 */
#ifndef TVM_CODEGEN_IMPORT_PRAGMAS_H_
#define TVM_CODEGEN_IMPORT_PRAGMAS_H_

#include <tvm/tir/stmt.h>

namespace tvm {
namespace codegen {

/*! \brief C, which is printed before the functions. */
constexpr const char* kImportC = "pragma_import_c";
/*! \brief LLVM IR, as text or as the path of a file, which is linked with the functions. */
constexpr const char* kImportLLVM = "pragma_import_llvm";

/*! \brief The code of such an attribute. */
inline String ImportedCode(const tir::AttrStmtNode* op) {
  const auto* code = op->value.as<tir::StringImmNode>();
  TVM_CHECK(code != nullptr, TypeError)
      << op->attr_key << ": expected code as text, got " << op->value;
  return code->value;
}

}  // namespace codegen
}  // namespace tvm

#endif  // TVM_CODEGEN_IMPORT_PRAGMAS_H_
