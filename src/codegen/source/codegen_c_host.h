/*!
 * \file codegen_c_host.h
 * \brief C11 for processors, in the calling convention of packed functions.
 */
#ifndef TVM_CODEGEN_SOURCE_CODEGEN_C_HOST_H_
#define TVM_CODEGEN_SOURCE_CODEGEN_C_HOST_H_

#include <tvm/codegen/codegen_c.h>

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

namespace tvm {
namespace codegen {

/*!
 * \brief Adds to C what a host function does: checks with messages, parallel loops, scratch memory
 * from the runtime, and calls of packed functions.
 */
class CodeGenCHost final : public CodeGenC {
 public:
  using CodeGenC::CodeGenC;
  void AddFunction(const std::string& name, const tir::PrimFunc& func) final;
  std::string Finish() final;

 private:
  std::string Prelude() const final;
  std::string FunctionPrefix(const tir::PrimFunc& func, bool exported) final;
  std::string Parameter(const tir::Var& param, const std::string& name, bool written) final;
  std::string UnrollLine(int64_t extent) const final;
  void BeginFunction(const tir::PrimFunc& func) final;
  void EndFunction(const tir::PrimFunc& func) final;
  void AllocateIn(const std::string& scope, const tir::AllocateNode* op,
                  const std::string& name) final;
  bool CallIntrinsic(const std::string& name, const tir::CallNode* op, std::string* text) final;
  bool Attribute(const tir::AttrStmtNode* op) final;
  void VisitStmt_(const tir::AssertStmtNode* op) final;
  void VisitStmt_(const tir::AllocateNode* op) final;
  void VisitStmt_(const tir::ForNode* op) final;

  /*! \brief Text of the field a struct_get or struct_set names, and the type it is kept in. */
  std::string StructField(const tir::CallNode* op, const std::string& qualifier, DataType dtype,
                          DataType* stored);
  /*! \brief Lines that set a TVMAny to an argument. */
  void SetPacked(const std::string& slot, const PrimExpr& arg);
  std::string CallPacked(const tir::CallNode* op);
  /*! \brief Handle of a packed function, looked up where it is still missing. */
  std::string PackedFunction(const tir::StringImmNode* callee);
  /*! \brief Address of a new pointer that is NULL at first and lasts as long as the module. */
  std::string StaticHandle();
  /*! \brief A struct that takes variables of one function to another. */
  struct Record {
    /*! \brief Text of its members, of their values, and of the lines that read variables. */
    std::string fields, setters, readers;
    void Add(const std::string& type, const std::string& member, const std::string& value) {
      fields += "  " + type + " " + member + ";\n";
      setters += (setters.empty() ? "." : ", .") + member + " = " + value;
    }
  };
  /*! \brief The variables of this function that the statement uses, under their own names. */
  Record Capture(const tir::Stmt& stmt);
  /*!
   * \brief A function `symbol(params void* data)` with the lines that `body` prints.
   * Returns the name of the struct, in the present function, that `data` has to point to.
   */
  std::string Outline(const std::string& symbol, const std::string& params, const Record& record,
                      const std::function<void()>& body);
  void ParallelLoop(const tir::ForNode* op);
  /*! \brief Hands the body, as a function, to the one that the attribute kRunOnce names. */
  void RunOnce(const tir::AttrStmtNode* op);
  /*! \brief Lines that give scratch memory back and leave with the status of failure. */
  void ReturnFailure();
  /*! \brief Give back what the function has taken, before it is left half-way. */
  void FreeWorkspaces();
  /*! \brief Stops when a runtime function, given as a call, fails. */
  void CheckStatus(const std::string& call);
  /*! \brief Scratch memory: its device, as two arguments of a call, and its name. */
  struct Workspace {
    std::string device, name;
  };
  std::string FreeCall(const Workspace& workspace) const;
  void NeedsStatus(const std::string& what) const;

  /*! \brief Whether the function returns a status, so that it can fail. */
  bool returns_status_ = false;
  int64_t frame_bytes_ = 0;
  /*! \brief Scratch memory to give back when the function fails half-way. */
  std::vector<Workspace> workspaces_;
  /*! \brief Where allocations are: text of the device's type and number. */
  std::string device_type_, device_id_;
  std::vector<std::string> entry_points_;
  /*! \brief Number of parts of the function that became functions of their own. */
  int parts_ = 0;
  /*! \brief Variables that keep handles of packed functions, by function. */
  std::unordered_map<std::string, std::string> function_handles_;
};

}  // namespace codegen
}  // namespace tvm

#endif  // TVM_CODEGEN_SOURCE_CODEGEN_C_HOST_H_
