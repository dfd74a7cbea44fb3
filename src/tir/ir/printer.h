/*!
 * \file src/tir/ir/printer.h
 * \brief Text of expressions, statements and functions, close to the script a user would write.
 */
#ifndef TVM_SRC_TIR_IR_PRINTER_H_
#define TVM_SRC_TIR_IR_PRINTER_H_

#include <tvm/tir/stmt_functor.h>

#include <ostream>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tvm {
namespace tir {

/*!
 * \brief Prints one expression, statement or function.
 *
 * Different variables of one name get distinct names within one printer. Parentheses are written
 * only where the text would otherwise read as another tree.
 */
class TIRPrinter final : private ExprFunctor<void(const PrimExpr&)>,
                         private StmtFunctor<void(const Stmt&)> {
 public:
  explicit TIRPrinter(std::ostream& os, int indent = 0) : os_(os), indent_(indent) {}

  void Print(const PrimExpr& expr) { PrintAt(expr, 0); }
  /*! \brief Lines without a final newline; the first is not indented. */
  void Print(const Stmt& stmt);
  void Print(const PrimFuncNode* func);
  void Print(const BufferNode* buffer);
  void Print(const IterVarNode* iv);
  void Print(const CommReducerNode* combiner);
  void Print(const BufferRegionNode* region);
  void Print(const MatchBufferRegionNode* match);

 private:
  // Binding strength, weakest first, as in Python.
  enum Level : int { kOr = 1, kAnd, kNot, kCompare, kSum, kProduct, kAtom };

  void PrintAt(const PrimExpr& expr, int level);
  void PrintInfix(const PrimExpr& a, const char* op, const PrimExpr& b, int level);
  void PrintList(const Array<PrimExpr>& values);
  void PrintCallLike(const char* name, std::initializer_list<PrimExpr> args);
  void PrintIndices(const Array<PrimExpr>& indices);
  void PrintBounds(const Array<Range>& bounds);
  void PrintAny(const Any& value);
  void PrintShape(const Array<PrimExpr>& shape);
  void PrintBufferType(const BufferNode* buffer);
  void PrintBody(const Stmt& body);
  void PrintAnnotations(const Map<String, ObjectRef>& annotations);
  void PrintForHeader(const ForNode* op);
  /*! \brief The loops of a perfect nest around a block, from `op` on; nothing for other nests. */
  std::vector<const ForNode*> LoopsOfBlock(const ForNode* op) const;
  void PrintBlockAxes(const BlockRealizeNode* op);
  void PrintRegions(const char* name, const Array<BufferRegion>& regions);
  void PrintBlockContents(const BlockRealizeNode* op);
  /*! \brief A line that opens the scope of `body`; the scope ends with the enclosing block. */
  template <typename FLine, typename FWith>
  void PrintScope(FLine line, FWith with, const Stmt& body);
  void NewLine();
  std::string NameOf(const VarNode* var);
  std::string NameOf(const BufferNode* buffer);
  std::string Fresh(const Object* key, const std::string& hint);

#define TVM_TIR_DECLARE_VISIT(Name) void VisitExpr_(const Name##Node* op) final;
  TVM_TIR_FOR_EACH_EXPR(TVM_TIR_DECLARE_VISIT)
#undef TVM_TIR_DECLARE_VISIT
#define TVM_TIR_DECLARE_VISIT(Name) void VisitStmt_(const Name##Node* op) final;
  TVM_TIR_FOR_EACH_STMT(TVM_TIR_DECLARE_VISIT)
#undef TVM_TIR_DECLARE_VISIT

  std::ostream& os_;
  int indent_;
  int level_ = 0;
  /*! \brief Nothing follows the current statement in its block. */
  bool tail_ = true;
  std::unordered_map<const Object*, std::string> names_;
  std::unordered_set<std::string> taken_;
  /*! \brief Loops around the present statement. */
  std::unordered_map<const VarNode*, const ForNode*> loops_;
};

}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_IR_PRINTER_H_
