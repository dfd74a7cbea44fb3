/*!
 * \file codegen_llvm.h
 * \brief Translates lowered functions to the text of an LLVM module.
 */
#ifndef TVM_CODEGEN_LLVM_CODEGEN_LLVM_H_
#define TVM_CODEGEN_LLVM_CODEGEN_LLVM_H_

#include <tvm/expr/expr_functor.h>
#include <tvm/ir/module.h>
#include <tvm/target/target.h>
#include <tvm/tir/function.h>
#include <tvm/tir/stmt_functor.h>

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "codegen/llvm/ir_text.h"

namespace tvm {
namespace codegen {

/*!
 * \brief An index as a sum of 64-bit values times constants, plus a constant.
 *
 * Keeping the sum apart lets addresses that differ by a constant share one register, and lets the
 * part that does not change in a loop move out of it.
 */
struct LinearIndex {
  std::vector<std::pair<Value, int64_t>> terms;
  int64_t offset = 0;

  bool is_constant() const { return terms.empty(); }
  void Add(const LinearIndex& other, int64_t factor);
};

/*!
 * \brief The generator for processors.
 *
 * Needs lowered functions: no reductions, no thread-bound loops, no realizes. Loop variables and
 * indices are carried as i64 with nsw arithmetic, whatever their width in the program.
 */
class CodeGenLLVM : protected tir::ExprFunctor<Value(const PrimExpr&)>,
                    protected tir::StmtFunctor<void(const tir::Stmt&)> {
 public:
  explicit CodeGenLLVM(Target target);

  /*! \brief Announce a function, so that others of the module can call it. */
  void Declare(const std::string& name, const tir::PrimFunc& func);
  void AddFunction(const std::string& name, const tir::PrimFunc& func);
  std::string Finish();

 protected:
  struct Binding {
    /*! \brief Set for scalar integers; the value is made from it on demand. */
    std::unique_ptr<LinearIndex> linear;
    Value value;
  };
  using VarMap = std::unordered_map<const tir::VarNode*, Binding>;

  /*! \brief What belongs to the LLVM function being written. */
  struct Frame {
    explicit Frame(ModuleText* module) : text(module) {}
    FunctionText text;
    VarMap vars;
    /*! \brief Names of i64 values known to be at least zero. */
    std::unordered_set<std::string> non_negative;
    /*! \brief First value of the index of each innermost loop, by the index' name. */
    std::unordered_map<std::string, LinearIndex> first_trips;
    /*! \brief Workspaces to give back when the function is left half-way. */
    struct Workspace {
      Value memory, device_type, device_id;
    };
    std::vector<Workspace> workspaces;
    /*! \brief Device of allocations, where it is not the processor. */
    Value device_type, device_id;
    /*! \brief Whether the function returns a status, so that it can fail. */
    bool returns_status = false;
    int64_t frame_bytes = 0;
    /*! \brief Memory in which messages of failed assertions are put together. */
    Value message;
    struct Load {
      Value value;
      std::string block;
      int version;
    };
    std::unordered_map<std::string, Load> loads;
    std::unordered_map<const tir::VarNode*, int> stores;
  };
  FunctionText& text() { return frame_->text; }

  // Statements (codegen_llvm.cc, codegen_llvm_parallel.cc, codegen_llvm_memory.cc).
  void VisitStmt(const tir::Stmt& stmt) override;
  void VisitStmt_(const tir::LetStmtNode* op) override;
  void VisitStmt_(const tir::AttrStmtNode* op) override;
  void VisitStmt_(const tir::AssertStmtNode* op) override;
  void VisitStmt_(const tir::BufferStoreNode* op) override;
  void VisitStmt_(const tir::AllocateNode* op) override;
  void VisitStmt_(const tir::AllocateConstNode* op) override;
  void VisitStmt_(const tir::DeclBufferNode* op) override { VisitStmt(op->body); }
  void VisitStmt_(const tir::SeqStmtNode* op) override;
  void VisitStmt_(const tir::IfThenElseNode* op) override;
  void VisitStmt_(const tir::EvaluateNode* op) override;
  void VisitStmt_(const tir::ForNode* op) override;
  void VisitStmt_(const tir::WhileNode* op) override;
  void VisitStmtDefault_(const Object* op) override;
  void SerialLoop(const tir::Var& var, const LinearIndex& begin, const Value& end, bool runs,
                  const tir::Stmt& body);
  void ParallelLoop(const tir::ForNode* op);
  /*! \brief Start of a packed function: unpacks and checks arguments, then calls the rest. */
  void CheckArguments(tir::Stmt body);
  void CheckAssertion(const tir::AssertStmtNode* op);
  /*!
   * \brief What a statement needs of the present function when it moves to another.
   *
   * Constants are entered in `inner` at once; the rest is appended to `captured` in order of use.
   */
  using Captured = std::vector<std::pair<const tir::VarNode*, Value>>;
  void Capture(const tir::Stmt& stmt, Frame* inner, Captured* captured);
  /*! \brief Address of a record of what was captured, and its type. */
  Value WriteRecord(const Captured& captured, std::string* type);
  /*! \brief The parts of the record at %data, bound to their variables in the function `inner`. */
  std::vector<Value> ReadRecord(const Captured& captured, const std::string& type, Frame* inner);
  /*! \brief Hands the body, as a function, to the one that the attribute kRunOnce names. */
  void RunOnce(const tir::AttrStmtNode* op);
  /*! \brief Address of a new pointer that is null at first and lasts as long as the module. */
  Value StaticHandle();
  /*! \brief Bind a captured variable, `source` over there, to its value in the function `inner`. */
  void Receive(const tir::VarNode* var, const Value& source, const Value& value, Frame* inner);
  /*! \brief Give workspaces back and return -1; the error is set already. */
  void ReturnFailure();
  void FreeWorkspace(const Frame::Workspace& workspace);
  /*! \brief Give back what the function has taken, before it is left half-way. */
  void FreeWorkspaces();
  void CheckStatus(const Value& status, const std::string& hint);

  // Expressions (codegen_llvm_expr.cc).
  Value VisitExpr_(const tir::VarNode* op) override;
  Value VisitExpr_(const tir::IntImmNode* op) override;
  Value VisitExpr_(const tir::FloatImmNode* op) override;
  Value VisitExpr_(const tir::StringImmNode* op) override;
  Value VisitExpr_(const tir::CastNode* op) override;
  Value VisitExpr_(const tir::AddNode* op) override;
  Value VisitExpr_(const tir::SubNode* op) override;
  Value VisitExpr_(const tir::MulNode* op) override;
  Value VisitExpr_(const tir::DivNode* op) override;
  Value VisitExpr_(const tir::ModNode* op) override;
  Value VisitExpr_(const tir::FloorDivNode* op) override;
  Value VisitExpr_(const tir::FloorModNode* op) override;
  Value VisitExpr_(const tir::MinNode* op) override;
  Value VisitExpr_(const tir::MaxNode* op) override;
  Value VisitExpr_(const tir::EQNode* op) override;
  Value VisitExpr_(const tir::NENode* op) override;
  Value VisitExpr_(const tir::LTNode* op) override;
  Value VisitExpr_(const tir::LENode* op) override;
  Value VisitExpr_(const tir::GTNode* op) override;
  Value VisitExpr_(const tir::GENode* op) override;
  Value VisitExpr_(const tir::AndNode* op) override;
  Value VisitExpr_(const tir::OrNode* op) override;
  Value VisitExpr_(const tir::NotNode* op) override;
  Value VisitExpr_(const tir::SelectNode* op) override;
  Value VisitExpr_(const tir::BufferLoadNode* op) override;
  Value VisitExpr_(const tir::RampNode* op) override;
  Value VisitExpr_(const tir::BroadcastNode* op) override;
  Value VisitExpr_(const tir::ShuffleNode* op) override;
  Value VisitExpr_(const tir::LetNode* op) override;
  Value VisitExpr_(const tir::CallNode* op) override;
  Value VisitExprDefault_(const Object* op) override;

  Value Arithmetic(const std::string& op, const PrimExpr& a, const PrimExpr& b);
  Value Comparison(const std::string& op, const PrimExpr& a, const PrimExpr& b);
  Value Extremum(bool maximum, const PrimExpr& a, const PrimExpr& b);
  Value Division(const PrimExpr& a, const PrimExpr& b, bool floor, bool remainder);
  /*! \brief a / b or a % b of integers, by the rounding asked for. */
  Value DivideInts(const Value& a, const Value& b, bool is_unsigned, bool floor, bool remainder);
  Value CastTo(const Value& value, DataType from, DataType to);
  Value BFloatToFloat(const Value& value);
  Value FloatToBFloat(const Value& value);
  /*! \brief The float that is `exact`, a double, or the odd one of the two beside it. */
  Value RoundedToOdd(const Value& exact, const Value& nearest);
  /*! \brief A value as float32 when its type is bfloat16, which has no arithmetic. */
  Value Computable(const PrimExpr& expr);
  Value Constant(DataType dtype, int64_t value);
  Value Constant(DataType dtype, double value);

  // Calls (codegen_llvm_call.cc).
  Value CallMath(const std::string& name, const tir::CallNode* op);
  Value CallExtern(const std::string& name, const tir::CallNode* op, size_t first_arg, bool pure);
  Value StackAlloca(const tir::CallNode* op);
  Value CallPackedLowered(const tir::CallNode* op);
  /*! \brief Handle of a packed function, looked up once per module. */
  Value PackedFunction(const std::string& name);
  Value CallIfThenElse(const tir::CallNode* op);
  Value CallStructGet(const tir::CallNode* op);
  Value CallStructSet(const tir::CallNode* op);
  /*! \brief Address of the field a tvm_struct_* call names, for a value of type `dtype`. */
  Value StructField(const tir::CallNode* op, DataType dtype, DataType* stored_type);
  Value ErrorText(const PrimExpr& message);

  // Indices and memory (codegen_llvm_memory.cc).
  LinearIndex Index(const PrimExpr& expr);
  Value IndexAtom(const PrimExpr& expr);
  Value Materialize(const LinearIndex& index);
  bool IsNonNegative(const LinearIndex& index) const;
  Value Address(const Value& base, DataType element, const LinearIndex& index);
  /*!
   * \brief `index` steps from `base` as a pointer that the innermost loop carries along, where that
   *  saves a multiplication in each trip.
   */
  std::optional<Value> Advancing(const Value& base, DataType element, const LinearIndex& index);
  /*! \brief Position of the element at `offset`, counted in scalars. */
  LinearIndex ScalarIndex(const tir::Buffer& buffer, const PrimExpr& offset);
  Value LoadAt(const tir::Buffer& buffer, DataType element, int lanes, const LinearIndex& index);
  void StoreAt(const tir::Buffer& buffer, DataType element, const Value& value,
               const LinearIndex& index);
  /*! \brief One index per lane of a vector of offsets. */
  std::vector<LinearIndex> LaneIndices(const PrimExpr& offset);
  /*! \brief Pointers to the elements at a scalable vector of offsets, and what stands there. */
  Value LaneAddresses(const tir::Buffer& buffer, DataType element, const PrimExpr& offset);
  Value GatherAt(const tir::Buffer& buffer, DataType element, const PrimExpr& offset);
  void ScatterAt(const tir::Buffer& buffer, DataType element, const Value& value,
                 const PrimExpr& offset);
  int AlignmentOf(const tir::VarNode* data, int element_bytes, const LinearIndex& index) const;
  std::string AliasMetadata(const tir::VarNode* data);
  void CollectBuffers(const tir::PrimFunc& func);
  int VersionOf(const tir::VarNode* data) const;
  void ForgetLoads(const tir::VarNode* data);

  void Bind(const tir::Var& var, const PrimExpr& value);
  void BindIndex(const tir::Var& var, LinearIndex index);
  Value ValueOf(const tir::VarNode* var);

  Target target_;
  /*! \brief What the compiler may assume of floating point, behind the name of an instruction. */
  std::string float_flags_;
  ModuleText module_;
  std::unordered_map<std::string, std::string> signatures_;
  std::vector<std::string> entry_points_;
  /*! \brief Globals that keep handles of packed functions, by function. */
  std::unordered_map<std::string, std::string> function_handles_;
  /*! \brief Constants of the linked program that were declared. */
  std::unordered_set<std::string> linked_params_;
  std::string function_name_;
  Frame* frame_ = nullptr;
  /*! \brief Whether different buffers of the function may be taken to be different memory. */
  bool no_alias_ = false;
  /*! \brief Whether elements at any places are one instruction to read. */
  bool gathers_ = false;
  std::vector<const tir::VarNode*> buffers_;
  std::unordered_map<const tir::VarNode*, std::string> alias_metadata_;
  /*! \brief Alignment in bytes of memory this function allocates itself. */
  std::unordered_map<const tir::VarNode*, int> alignment_;
};

/*! \brief Text of an LLVM module for all PrimFuncs of `mod`. */
std::string EmitLLVM(const IRModule& mod, const Target& target);

}  // namespace codegen
}  // namespace tvm

#endif  // TVM_CODEGEN_LLVM_CODEGEN_LLVM_H_
