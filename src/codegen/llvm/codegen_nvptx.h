/*!
 * \file codegen_nvptx.h
 * \brief Translates kernels to LLVM modules for NVIDIA GPUs.
 */
#ifndef TVM_CODEGEN_LLVM_CODEGEN_NVPTX_H_
#define TVM_CODEGEN_LLVM_CODEGEN_NVPTX_H_

#include <string>

#include "codegen/llvm/codegen_llvm.h"

namespace tvm {
namespace codegen {

/*!
 * \brief The LLVM generator with threads, shared memory, barriers and shuffles.
 *
 * Elementary functions are those that the LLVM generator writes out; the rest would need NVIDIA's
 * device library.
 */
class CodeGenNVPTX final : public CodeGenLLVM {
 public:
  using CodeGenLLVM::CodeGenLLVM;

  void AddKernel(const std::string& name, const tir::PrimFunc& func);
  std::string Finish();

 private:
  void VisitStmt_(const tir::AttrStmtNode* op) override;
  void VisitStmt_(const tir::AllocateNode* op) override;
  Value VisitExpr_(const tir::CallNode* op) override;
  Value Shuffle(const std::string& mode, const tir::CallNode* op);
  void Barrier(const std::string& scope);
};

}  // namespace codegen
}  // namespace tvm

#endif  // TVM_CODEGEN_LLVM_CODEGEN_NVPTX_H_
