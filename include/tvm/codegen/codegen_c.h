/*!
 * \file tvm/codegen/codegen_c.h
 * \brief The base of code generators whose output is text in a C-like language.
 */
#ifndef TVM_CODEGEN_CODEGEN_C_H_
#define TVM_CODEGEN_CODEGEN_C_H_

#include <tvm/arith/analyzer.h>
#include <tvm/expr/expr_functor.h>
#include <tvm/ir/module.h>
#include <tvm/target/target.h>
#include <tvm/tir/function.h>
#include <tvm/tir/stmt_functor.h>

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tvm {
namespace codegen {

/*!
 * \brief Prints lowered functions as C.
 *
 * A language derived from C overrides the hooks: how types are spelt, what stands before functions
 * and allocations of each memory scope, what a thread index and a barrier are, and which calls it
 * has of its own. Expressions come back as text that can stand anywhere an operand can; what they
 * need computed before goes into lines of its own ahead of the statement.
 *
 * Vectors are arrays. The text of a vector expression is that of one lane, chosen by the variable
 * of the loop over lanes that is being printed, so a language needs no vector types at all.
 * Loads and stores of neighbouring elements are hooks, for languages that have wide ones.
 *
 * Needs lowered functions: flat buffers, no reductions, no realizes.
 */
class CodeGenC : protected tir::ExprFunctor<std::string(const PrimExpr&)>,
                 protected tir::StmtFunctor<void(const tir::Stmt&)> {
 public:
  explicit CodeGenC(Target target);

  /*! \brief Announce a function, so that others of the module can call it. */
  void Declare(const std::string& name, const tir::PrimFunc& func);
  virtual void AddFunction(const std::string& name, const tir::PrimFunc& func);
  /*! \brief The whole text: prelude, helper functions, declarations, functions. */
  virtual std::string Finish();

 protected:
  // Hooks: spelling.
  /*! \brief Name of the language in messages. */
  virtual std::string LanguageName() const { return "c"; }
  /*! \brief Type of one lane. */
  virtual std::string Type(DataType dtype) const;
  /*! \brief Whether values of the type have to be widened to float32 for arithmetic. */
  virtual bool IsStorageOnly(DataType dtype) const { return dtype.is_bfloat16(); }
  virtual std::string FloatLiteral(DataType dtype, double value);
  /*! \brief Conversion of scalar text between different element types. */
  virtual std::string CastText(const std::string& value, DataType from, DataType to);
  /*! \brief What stands before the name in a function's definition: linkage and result. */
  virtual std::string FunctionPrefix(const tir::PrimFunc& func, bool exported);
  /*! \brief Declaration of a parameter. `written` tells whether stores go through it. */
  virtual std::string Parameter(const tir::Var& param, const std::string& name, bool written);
  /*! \brief First lines of the file, before helper functions. */
  virtual std::string Prelude() const { return ""; }
  /*! \brief What stands before the definition of a helper function. */
  virtual std::string HelperPrefix() const { return "static inline "; }
  /*! \brief The keyword for a pointer that nothing else aliases, with a blank, or nothing. */
  virtual std::string RestrictKeyword() const { return "restrict "; }
  /*! \brief The line before a loop that asks for unrolling; empty for none. */
  virtual std::string UnrollLine(int64_t extent) const { return ""; }

  // Hooks: meaning.
  /*! \brief Start of a function's body; `func` is the one being printed. */
  virtual void BeginFunction(const tir::PrimFunc& func) {}
  virtual void EndFunction(const tir::PrimFunc& func) {}
  /*! \brief Text of a hardware thread index such as "threadIdx.x". */
  virtual std::string ThreadIndex(const std::string& tag);
  /*! \brief A barrier among the threads that share memory of the scope. */
  virtual void StorageSync(const std::string& scope);
  /*! \brief Declares memory that lives until the end of the block being printed. */
  virtual void AllocateIn(const std::string& scope, const tir::AllocateNode* op,
                          const std::string& name);
  /*! \brief An operator that C does not have: text of its value, or false. */
  virtual bool CallIntrinsic(const std::string& name, const tir::CallNode* op, std::string* text) {
    return false;
  }
  /*! \brief A function of the mathematical library on scalar texts of type `dtype`. */
  virtual std::string MathCall(const std::string& name, DataType dtype,
                               const std::vector<std::string>& args);
  /*! \brief An attribute the base has no meaning for; true when the language has dealt with it. */
  virtual bool Attribute(const tir::AttrStmtNode* op) { return false; }
  /*!
   * \brief Before a loop over lanes: may load vectors that `value` reads, see `wide_loads_`.
   * What is behind an if_then_else may not be touched yet.
   */
  virtual void PrepareVector(const PrimExpr& value) {}
  /*! \brief Store a vector at neighbouring places; false leaves it to a loop over lanes. */
  virtual bool StoreWide(const tir::BufferStoreNode* op, const tir::RampNode* place) {
    return false;
  }

  // For hooks: text.
  /*! \brief One line in the body being printed, at the present indentation. */
  void Line(const std::string& text);
  /*! \brief `text {`, the lines of `body` indented, `}`. */
  void Block(const std::string& text, const std::function<void()>& body);
  /*! \brief A name that nothing else in the function has, made from `hint`. */
  std::string NewName(const std::string& hint);
  /*! \brief Such a name that no other function of the module has either. */
  std::string NewGlobalName(const std::string& hint);
  /*! \brief Register a helper function once: `text` without HelperPrefix. Returns `name`. */
  std::string Helper(const std::string& name, const std::string& text);
  /*! \brief Text of an expression: of its present lane when it is a vector. */
  std::string Print(const PrimExpr& expr) { return VisitExpr(expr); }
  /*! \brief `body` once for each lane, in a loop whose variable is the present lane. */
  void LaneLoop(int lanes, const std::function<void(const std::string& lane)>& body);
  /*! \brief Name of an array that holds the lanes of a vector. */
  std::string Materialize(const PrimExpr& vector);
  /*! \brief Text of the pointer to a buffer's memory as `Type(element)*`. */
  std::string Pointer(const tir::Var& data, DataType element);
  /*! \brief Text of an element; `index` counts scalars. */
  std::string Element(const tir::Var& data, DataType element, const std::string& index);
  /*! \brief Text of a buffer's flat offset in scalars, given the offset in elements. */
  std::string ScalarOffset(const tir::Buffer& buffer, const PrimExpr& offset);
  std::string NameOf(const tir::VarNode* var) const;
  static std::string ScopeOf(const tir::Var& data);
  [[noreturn]] void Unsupported(const std::string& what, const std::string& remedy) const;

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

  std::string VisitExpr_(const tir::VarNode* op) override;
  std::string VisitExpr_(const tir::IntImmNode* op) override;
  std::string VisitExpr_(const tir::FloatImmNode* op) override;
  std::string VisitExpr_(const tir::StringImmNode* op) override;
  std::string VisitExpr_(const tir::CastNode* op) override;
  std::string VisitExpr_(const tir::AddNode* op) override;
  std::string VisitExpr_(const tir::SubNode* op) override;
  std::string VisitExpr_(const tir::MulNode* op) override;
  std::string VisitExpr_(const tir::DivNode* op) override;
  std::string VisitExpr_(const tir::ModNode* op) override;
  std::string VisitExpr_(const tir::FloorDivNode* op) override;
  std::string VisitExpr_(const tir::FloorModNode* op) override;
  std::string VisitExpr_(const tir::MinNode* op) override;
  std::string VisitExpr_(const tir::MaxNode* op) override;
  std::string VisitExpr_(const tir::EQNode* op) override;
  std::string VisitExpr_(const tir::NENode* op) override;
  std::string VisitExpr_(const tir::LTNode* op) override;
  std::string VisitExpr_(const tir::LENode* op) override;
  std::string VisitExpr_(const tir::GTNode* op) override;
  std::string VisitExpr_(const tir::GENode* op) override;
  std::string VisitExpr_(const tir::AndNode* op) override;
  std::string VisitExpr_(const tir::OrNode* op) override;
  std::string VisitExpr_(const tir::NotNode* op) override;
  std::string VisitExpr_(const tir::SelectNode* op) override;
  std::string VisitExpr_(const tir::BufferLoadNode* op) override;
  std::string VisitExpr_(const tir::RampNode* op) override;
  std::string VisitExpr_(const tir::BroadcastNode* op) override;
  std::string VisitExpr_(const tir::ShuffleNode* op) override;
  std::string VisitExpr_(const tir::LetNode* op) override;
  std::string VisitExpr_(const tir::CallNode* op) override;
  std::string VisitExprDefault_(const Object* op) override;

  std::string Binary(const char* op, const PrimExpr& a, const PrimExpr& b);
  std::string Comparison(const char* op, const PrimExpr& a, const PrimExpr& b);
  std::string Extremum(bool maximum, const PrimExpr& a, const PrimExpr& b);
  std::string FloorDivision(const PrimExpr& a, const PrimExpr& b, bool remainder);
  std::string CallExtern(const std::string& symbol, const tir::CallNode* op, size_t first_arg);
  std::string CallIfThenElse(const tir::CallNode* op);
  /*! \brief Operand as text in a type that has arithmetic. */
  std::string Computable(const PrimExpr& expr);
  std::string FromComputed(const std::string& text, DataType dtype);
  void SerialLoop(const tir::ForNode* op, const std::string& begin, const std::string& end);
  /*! \brief Declares and sets a variable for the rest of the block. */
  void Bind(const tir::Var& var, const PrimExpr& value);
  /*! \brief Whether the expression is known to be at least zero. */
  bool IsNonNegative(const PrimExpr& expr);

  Target target_;
  arith::Analyzer analyzer_;
  std::string function_name_;
  /*! \brief Whether different buffers of the function may be taken to be different memory. */
  bool no_alias_ = false;
  /*! \brief Declared element type of pointer variables. */
  std::unordered_map<const tir::VarNode*, DataType> pointee_;
  /*! \brief Array that holds the lanes of a vector load that was done ahead. */
  std::unordered_map<const Object*, std::string> wide_loads_;
  /*! \brief Variables that the function being printed uses, and memory it stores to. */
  std::unordered_set<const tir::VarNode*> used_, written_;
  /*! \brief The body being printed, and its indentation in blanks. */
  std::string body_;
  int indent_ = 0;
  /*! \brief Variable of the loop over lanes being printed. */
  std::string lane_;
  std::unordered_map<const tir::VarNode*, std::string> names_;
  /*! \brief Symbols of the module's functions. */
  std::unordered_map<std::string, std::string> symbols_;
  /*! \brief Finished definitions, and declarations that precede them. */
  std::string declarations_, definitions_;
  /*! \brief Code that pragmas brought along, which is printed once. */
  std::unordered_set<std::string> imported_;

 private:
  /*! \brief Names of the function being printed, and of what belongs to the module. */
  std::unordered_set<std::string> taken_, globals_;
  std::unordered_set<std::string> helper_names_;
  std::string helpers_;
};

/*!
 * \brief Text of all PrimFuncs of `mod`, sorted by name so that it does not depend on the order of
 * insertion.
 */
std::string PrintModule(CodeGenC* generator, const IRModule& mod);

/*! \brief The functions of a module that are PrimFuncs, sorted by name. */
std::vector<std::pair<std::string, tir::PrimFunc>> SortedPrimFuncs(const IRModule& mod);

}  // namespace codegen
}  // namespace tvm

#endif  // TVM_CODEGEN_CODEGEN_C_H_
