/*!
 * \file codegen_stackvm.h
 * \brief Translates lowered functions to programs of the stackvm.
 */
#ifndef TVM_CODEGEN_STACKVM_CODEGEN_STACKVM_H_
#define TVM_CODEGEN_STACKVM_CODEGEN_STACKVM_H_

#include <tvm/expr/expr_functor.h>
#include <tvm/ir/module.h>
#include <tvm/target/target.h>
#include <tvm/tir/function.h>
#include <tvm/tir/stmt_functor.h>

#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "runtime/stackvm/bytecode.h"

namespace tvm {
namespace codegen {

/*!
 * \brief The generator for the stackvm.
 *
 * A function with the calling convention of a kernel runs for all threads of a block in step, so
 * its branches and loops narrow the set of active threads. Other functions run as one thread.
 * Loops marked parallel are serial.
 */
class CodeGenStackVM : private tir::ExprFunctor<int(const PrimExpr&)>,
                       private tir::StmtFunctor<void(const tir::Stmt&)> {
 public:
  explicit CodeGenStackVM(const Target& target);

  /*! \brief Announce a function, so that others of the module can call it. */
  void Declare(const std::string& name, const tir::PrimFunc& func);
  void AddFunction(const std::string& name, const tir::PrimFunc& func);
  runtime::stackvm::Program Finish() { return std::move(program_); }

 private:
  using Opcode = runtime::stackvm::Opcode;
  using ScalarType = runtime::stackvm::ScalarType;
  using Instr = runtime::stackvm::Instr;

  /*! \brief Number of the first slot of a register. */
  using Slot = int;

  /*! \brief Bytes of a buffer: a constant, or an int64 in a register. */
  struct Limit {
    Slot slot = -1;
    int64_t bytes = INT64_MAX;
  };

  /*! \brief Gives back the registers taken since it was made. */
  struct Temporaries {
    explicit Temporaries(CodeGenStackVM* generator) : generator(generator), top(generator->top_) {}
    ~Temporaries() { generator->top_ = top; }
    CodeGenStackVM* generator;
    int top;
  };

  // Functions and statements (codegen_stackvm.cc).
  void Compile(const tir::PrimFunc& func);
  void VisitStmt_(const tir::LetStmtNode* op) override;
  void VisitStmt_(const tir::AttrStmtNode* op) override;
  void VisitStmt_(const tir::AssertStmtNode* op) override;
  void VisitStmt_(const tir::BufferStoreNode* op) override;
  void VisitStmt_(const tir::AllocateNode* op) override;
  void VisitStmt_(const tir::DeclBufferNode* op) override { VisitStmt(op->body); }
  void VisitStmt_(const tir::SeqStmtNode* op) override;
  void VisitStmt_(const tir::IfThenElseNode* op) override;
  void VisitStmt_(const tir::EvaluateNode* op) override;
  void VisitStmt_(const tir::ForNode* op) override;
  void VisitStmt_(const tir::WhileNode* op) override;
  void VisitStmtDefault_(const Object* op) override;
  /*! \brief `then`, and `otherwise` unless it is empty, by a boolean. */
  template <typename Then, typename Otherwise>
  void Branch(Slot condition, Then then, Otherwise otherwise, bool has_otherwise);

  // Expressions (codegen_stackvm_expr.cc): the register that holds the value.
  Slot VisitExpr_(const tir::VarNode* op) override;
  Slot VisitExpr_(const tir::IntImmNode* op) override;
  Slot VisitExpr_(const tir::FloatImmNode* op) override;
  Slot VisitExpr_(const tir::StringImmNode* op) override;
  Slot VisitExpr_(const tir::CastNode* op) override;
  Slot VisitExpr_(const tir::AddNode* op) override;
  Slot VisitExpr_(const tir::SubNode* op) override;
  Slot VisitExpr_(const tir::MulNode* op) override;
  Slot VisitExpr_(const tir::DivNode* op) override;
  Slot VisitExpr_(const tir::ModNode* op) override;
  Slot VisitExpr_(const tir::FloorDivNode* op) override;
  Slot VisitExpr_(const tir::FloorModNode* op) override;
  Slot VisitExpr_(const tir::MinNode* op) override;
  Slot VisitExpr_(const tir::MaxNode* op) override;
  Slot VisitExpr_(const tir::EQNode* op) override;
  Slot VisitExpr_(const tir::NENode* op) override;
  Slot VisitExpr_(const tir::LTNode* op) override;
  Slot VisitExpr_(const tir::LENode* op) override;
  Slot VisitExpr_(const tir::GTNode* op) override;
  Slot VisitExpr_(const tir::GENode* op) override;
  Slot VisitExpr_(const tir::AndNode* op) override;
  Slot VisitExpr_(const tir::OrNode* op) override;
  Slot VisitExpr_(const tir::NotNode* op) override;
  Slot VisitExpr_(const tir::SelectNode* op) override;
  Slot VisitExpr_(const tir::BufferLoadNode* op) override;
  Slot VisitExpr_(const tir::RampNode* op) override;
  Slot VisitExpr_(const tir::BroadcastNode* op) override;
  Slot VisitExpr_(const tir::ShuffleNode* op) override;
  Slot VisitExpr_(const tir::LetNode* op) override;
  Slot VisitExpr_(const tir::CallNode* op) override;
  Slot VisitExprDefault_(const Object* op) override;
  /*! \brief op(a, b): operands of one type, result of type `result`. */
  Slot Binary(Opcode op, const PrimExpr& a, const PrimExpr& b, DataType result);
  Slot Unary(Opcode op, const PrimExpr& a, DataType result);
  Slot CastTo(Slot value, DataType from, DataType to);
  /*! \brief The value converted to a scalar of another type, such as int64. */
  Slot EvalAs(const PrimExpr& expr, DataType dtype);

  // Calls (codegen_stackvm_call.cc).
  Slot CallMath(const std::string& name, const tir::CallNode* op, size_t first_arg);
  Slot CallExtern(const tir::CallNode* op);
  Slot CallPacked(const std::string& name, const tir::CallNode* op, size_t first_arg);
  Slot CallFunction(const GlobalVarNode* callee, const tir::CallNode* op);
  Slot CallIfThenElse(const tir::CallNode* op);
  Slot CallShuffle(runtime::stackvm::ShuffleMode mode, const tir::CallNode* op);
  Slot CallStructGet(const tir::CallNode* op);
  Slot CallStructSet(const tir::CallNode* op);
  void StorageSync(const std::string& scope);
  void FillFragment(const tir::CallNode* op);
  void MoveFragment(const tir::CallNode* op, bool store);
  void MultiplyFragments(const tir::CallNode* op);
  /*! \brief Result of a call made for its effect. */
  Slot Nothing();

  // Memory (codegen_stackvm_memory.cc).
  struct Place {
    Slot index = -1;
    ScalarType index_type{};
    /*! \brief Whether `index` has one entry for each lane. */
    bool per_lane = false;
    /*! \brief All lanes are the one element at `index`. */
    bool broadcast = false;
    /*! \brief What `index` is known to be a multiple of; 0 where it is 0. */
    int64_t multiple = 1;
  };
  Place PlaceOf(const tir::Buffer& buffer, const Array<PrimExpr>& indices);
  /*! \brief A statement with an attribute of asynchronous copies; false if it has another. */
  bool AsyncStatement(const tir::AttrStmtNode* op);
  void Access(Opcode contiguous, Opcode scattered, Slot value, DataType dtype,
              const tir::Buffer& buffer, const Place& place);
  Limit LimitOf(const tir::Buffer& buffer);
  /*! \brief Bytes from the data pointer to the end of the buffer; undefined when not known. */
  static PrimExpr SpanBytes(const tir::Buffer& buffer);
  /*! \brief Compute sizes that became known by the variables bound last. */
  void ComputeLimits(std::vector<const tir::BufferNode*>* computed);
  bool IsBound(const PrimExpr& expr) const;
  uint8_t ScopeFlags(const tir::Buffer& buffer) const;
  Slot AddressOf(const tir::CallNode* op);

  ScalarType TypeOf(DataType dtype) const;
  Slot Allocate(DataType dtype) { return AllocateSlots(TypeOf(dtype), dtype.lanes()); }
  Slot AllocateSlots(ScalarType type, int lanes);
  Slot Constant(ScalarType type, int64_t bits);
  Slot Int64(int64_t value) { return Constant(ScalarType::kInt64, value); }
  Instr& Emit(Opcode op, DataType dtype, Slot a = -1, Slot b = -1, Slot c = -1, Slot d = -1);
  /*! \brief Number of the next instruction, as a target to jump to. */
  int Here() const { return static_cast<int>(function_->code.size()); }
  void SetTarget(int instr, int target) { function_->code[instr].a = target; }
  int StringIndex(const std::string& text);
  int BufferIndex(const std::string& name, DataType dtype);
  int List(std::vector<int64_t> items);
  bool in_kernel() const { return function_->kind == runtime::stackvm::CallKind::kKernel; }

  runtime::stackvm::Program program_;
  std::unordered_map<std::string, int> function_numbers_;

  // Of the function being compiled.
  runtime::stackvm::Function* function_ = nullptr;
  int top_ = 0;
  std::unordered_map<const tir::VarNode*, Slot> vars_;
  std::map<std::pair<ScalarType, int64_t>, Slot> constants_;
  /*! \brief Sizes of memory that the function allocates, by data pointer. */
  std::unordered_map<const tir::VarNode*, Limit> allocations_;
  std::unordered_map<const tir::BufferNode*, Limit> limits_;
  /*! \brief Memory that the function stores to: what is only read needs no watching. */
  std::unordered_set<const tir::VarNode*> written_;
  /*! \brief Buffers in use whose size is not computed yet. */
  std::vector<tir::Buffer> pending_;
  /*! \brief Whether copies may go on while the program does. */
  bool async_ = false;
  struct FragmentShape {
    int64_t m, n, k;
  };
  std::unordered_map<const tir::VarNode*, FragmentShape> fragments_;
  std::unordered_map<const tir::VarNode*, DataType> fragment_types_;
};

}  // namespace codegen
}  // namespace tvm

#endif  // TVM_CODEGEN_STACKVM_CODEGEN_STACKVM_H_
