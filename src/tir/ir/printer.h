/*!
 * \file src/tir/ir/printer.h
 * \brief Text of expressions, statements and functions, close to the script a user would write.
 */
#ifndef TVM_SRC_TIR_IR_PRINTER_H_
#define TVM_SRC_TIR_IR_PRINTER_H_

#include <tvm/ir/script_marks.h>
#include <tvm/tir/function.h>
#include <tvm/tir/stmt_functor.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "script_names.h"

namespace tvm {
namespace tir {

/*!
 * \brief Prints one expression, statement or function.
 *
 * Different variables of one name get distinct names within one printer. Parentheses are written
 * only where the text would otherwise read as another tree. The text of a function is complete: it
 * declares every variable and buffer, so that tvm.script reads the same function from it. The text
 * of an expression or statement by itself names what it uses and leaves the declarations out.
 */
class TIRPrinter final : private ExprFunctor<void(const PrimExpr&)>,
                         private StmtFunctor<void(const Stmt&)> {
 public:
  explicit TIRPrinter(std::ostream& os, int indent = 0) : os_(os), indent_(indent) {}

  void Print(const PrimExpr& expr);
  /*! \brief Lines without a final newline; the first is not indented. */
  void Print(const Stmt& stmt);
  void Print(const PrimFuncNode* func);
  /*! \brief Where the text of each statement begins in the stream, in order, while it is printed.
   */
  std::vector<std::pair<const StmtNode*, std::streamoff>> places;
  void Print(const BufferNode* buffer);
  void Print(const IterVarNode* iv);
  void Print(const RangeNode* range);
  void Print(const Type& type) { PrintType(type); }
  void Print(const CommReducerNode* combiner);
  void Print(const BufferRegionNode* region);
  void Print(const MatchBufferRegionNode* match);

 private:
  // Binding strength, weakest first, as in Python.
  enum Level : int { kOr = 1, kAnd, kNot, kCompare, kSum, kProduct, kAtom };

  void PrintAt(const PrimExpr& expr, int level);
  void PrintInfix(const PrimExpr& a, const char* op, const PrimExpr& b, int level);
  void PrintProduct(const PrimExpr& a, const char* op, const PrimExpr& b);
  void PrintList(const Array<PrimExpr>& values);
  void PrintCallLike(const char* name, std::initializer_list<PrimExpr> args);
  void PrintIndices(const Array<PrimExpr>& indices);
  void PrintBounds(const Array<Range>& bounds);
  void PrintValue(const Any& value, bool objects);
  void PrintShape(const Array<PrimExpr>& shape);
  /*! \brief What stands in the parentheses of T.Buffer. */
  void PrintBufferArguments(const BufferNode* buffer, bool always_dtype);
  void PrintType(const Type& type);
  /*! \brief Type of a variable as an annotation, or the call that makes such a variable. */
  void PrintVarType(const VarNode* var, bool call);
  /*! \brief `min, end` or `min:end`, from which the extent can be read back as it is. */
  void PrintInterval(const PrimExpr& min, const PrimExpr& extent, const char* separator);
  void PrintThread(const IterVarNode* iv);
  void PrintRange(const RangeNode* range);
  /*! \brief Whether the attribute is the extent of a thread, as T.launch_thread gives it. */
  bool IsLaunch(const AttrStmtNode* op) const;
  void PrintLaunch(const AttrStmtNode* op);
  /*! \brief End of T.allocate: the view that goes by the name of the memory. */
  void ShowAllocation(const AllocateNode* op);
  /*! \brief A constant as a list of its elements, a long one as an entry of the metadata. */
  void PrintTensor(const runtime::NDArray& tensor);
  void PrintAttrNode(const ObjectRef& node);
  void PrintSignature(const PrimFuncNode* func, const std::string& name);
  /*! \brief Decide whether the root block of a function goes without saying. */
  void FindRoot(const PrimFuncNode* func);
  /*! \brief The block around the whole function; undefined if it has none. */
  static Block RootOf(const PrimFuncNode* func);
  bool HasSugar(const PrimFuncNode* func, const Var& param, const Buffer& buffer) const;
  /*! \brief Lines that declare what only the text of a function needs to say. */
  void PrintFreeVariables();
  void PrintReadyBuffers();
  void PrintBody(const Stmt& body);
  void PrintAnnotations(const Map<String, ObjectRef>& annotations);
  void PrintForHeader(const ForNode* op);
  /*! \brief The loops of a perfect nest around a block, from `op` on; nothing for other nests. */
  std::vector<const ForNode*> LoopsOfBlock(const ForNode* op) const;
  void PrintBlockAxes(const BlockRealizeNode* op);
  void PrintRegions(const char* name, const Array<BufferRegion>& regions);
  void PrintBlockContents(const BlockRealizeNode* op);
  void PrintBlock(const BlockRealizeNode* op, const char* options);
  void PrintRegion(const BufferRegionNode* region);
  void PrintMatch(const MatchBufferRegionNode* match);
  /*! \brief A line that opens the scope of `body`; the scope ends with the enclosing block. */
  template <typename FLine, typename FWith>
  void PrintScope(FLine line, FWith with, const Stmt& body);
  void NewLine();
  /*!
   * \brief Print what may be a whole script.
   *
   * If it is, variables and buffers that it names and does not introduce are declared in front of
   * it, in the order in which it names them.
   */
  void PrintPart(bool is_statement, const std::function<void(TIRPrinter*)>& print);
  /*! \brief A line that makes a variable or buffer by its key, unless the part introduces it. */
  void Declare(const Object* named);
  /*! \brief Whether everything is written as in a function, from which it can be read back. */
  bool IsFull() const;
  /*! \brief Whether expressions are written as keys of workloads have them. */
  bool IsCompact() const;
  /*! \brief The variable can be named from here on. */
  void Show(const VarNode* var);
  void ShowBuffer(const BufferNode* buffer);
  std::string NameOf(const VarNode* var);
  std::string NameOf(const BufferNode* buffer);
  std::string Fresh(const Object* key, const std::string& hint);

#define TVM_TIR_DECLARE_VISIT(Name) void VisitExpr_(const Name##Node* op) final;
  TVM_TIR_FOR_EACH_EXPR(TVM_TIR_DECLARE_VISIT)
#undef TVM_TIR_DECLARE_VISIT
#define TVM_TIR_DECLARE_VISIT(Name) void VisitStmt_(const Name##Node* op) final;
  TVM_TIR_FOR_EACH_STMT(TVM_TIR_DECLARE_VISIT)
  void VisitStmt(const Stmt& stmt) final {
    ScriptMark mark(os_, stmt.get());
    places.emplace_back(stmt.get(), os_.tellp());
    StmtFunctor::VisitStmt(stmt);
  }
#undef TVM_TIR_DECLARE_VISIT

  std::ostream& os_;
  int indent_;
  int level_ = 0;
  /*! \brief Nothing follows the current statement in its block. */
  bool tail_ = true;
  std::unordered_map<const Object*, std::string> names_;
  std::unordered_set<std::string> taken_;
  /*! \brief Keys of names in the order in which they were given, and the buffers among them. */
  std::vector<const Object*> named_;
  std::unordered_map<const Object*, const BufferNode*> buffers_;
  /*! \brief Variables and buffers that a line has introduced. */
  std::unordered_set<const Object*> introduced_;
  /*! \brief Loops around the present statement. */
  std::unordered_map<const VarNode*, const ForNode*> loops_;
  /*! \brief Of the function being printed; null while something smaller is. */
  std::unique_ptr<ScriptNames> script_;
  /*! \brief The root block of the function if a comment stands for it. */
  const BlockNode* root_ = nullptr;
  /*! \brief The function has blocks but none around all of them. */
  bool lacks_root_ = false;
};

}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_IR_PRINTER_H_
