/*!
 * \file src/relax/printer.h
 * \brief Text of graph functions, in the manner of a Python function.
 */
#ifndef TVM_SRC_RELAX_PRINTER_H_
#define TVM_SRC_RELAX_PRINTER_H_

#include <tvm/expr/var.h>
#include <tvm/relax/expr.h>

#include <ostream>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tvm {
namespace relax {

/*!
 * \brief Prints one graph function, or a part of one.
 *
 * In a function, different variables have different names, all of them names of Python. Constants
 * of more than one number are references to the metadata of the script.
 */
class RelaxPrinter {
 public:
  explicit RelaxPrinter(std::ostream& os, int indent = 0) : os_(os), indent_(indent) {}

  void Print(const StructInfo& info);
  void Print(const RelayExpr& expr);
  void Print(const Binding& binding);
  void Print(const FunctionNode* func);
  /*! \brief The lines of a block; `scoped` sets a plain one off from the lines before it. */
  void PrintBlock(const BindingBlock& block, bool scoped);
  /*! \brief The blocks of a body; what follows them, which is not printed, is the result. */
  RelayExpr PrintBlocks(const RelayExpr& body);
  /*! \brief The blocks and the result. */
  void PrintBody(const RelayExpr& body);

 private:
  void Print(const TensorStructInfoNode* tensor);
  void Print(const FuncStructInfoNode* func);
  void PrintScalar(const PrimExpr& value);
  void PrintSetting(const Any& value);
  /*! \brief A conditional, whose value the branches bind to `var` if there is one. */
  void PrintIf(const IfNode* node, const Var* var);
  void PrintNested(const FunctionNode* func, const Var& var);
  /*! \brief Parameters and result, from behind the opening parenthesis on. */
  void PrintSignature(const FunctionNode* func);
  void PrintExtent(const PrimExpr& extent);
  void PrintExtents(const Array<PrimExpr>& extents);
  void PrintInfos(const Array<StructInfo>& infos);
  void PrintList(const Array<RelayExpr>& items);
  void PrintCall(const CallNode* call);
  void PrintAnnotation(const RelayExpr& expr);
  void PrintAttrs(const FunctionNode* func, bool symbol_is_name);
  /*! \brief The symbolic extents, and the name of the module around. */
  void PrintHead(const FunctionNode* func, bool in_module);
  void NewLine();
  std::string Fresh(const Object* key, const std::string& hint);

  std::ostream& os_;
  int indent_;
  bool in_function_ = false;
  /*! \brief Symbolic extents are texts here: the variables are declared in the body. */
  bool in_signature_ = false;
  std::unordered_map<const Object*, std::string> names_;
  std::unordered_set<std::string> taken_;
};

/*!
 * \brief What the text of a function has to introduce.
 * \param extents The variables of symbolic extents in order of appearance.
 * \param calls_module Whether the function names others of its module.
 */
void CollectNames(const FunctionNode* func, std::vector<tir::Var>* extents, bool* calls_module);

}  // namespace relax
}  // namespace tvm
#endif  // TVM_SRC_RELAX_PRINTER_H_
