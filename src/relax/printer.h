/*!
 * \file src/relax/printer.h
 * \brief Text of graph functions, in the manner of a Python function.
 */
#ifndef TVM_SRC_RELAX_PRINTER_H_
#define TVM_SRC_RELAX_PRINTER_H_

#include <tvm/expr/var.h>
#include <tvm/ir/script_printer.h>
#include <tvm/relax/distributed.h>
#include <tvm/relax/expr.h>

#include <ostream>
#include <sstream>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
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
  explicit RelaxPrinter(std::ostream& os, int indent = 0) : os_(os.rdbuf()), indent_(indent) {}
  /*!
   * \brief Print a part that is a script by itself, after the variables that it does not bind, if
   * the style of the script wants them declared.
   */
  template <typename Part>
  void PrintPart(const Part& part) {
    verbose_ = ScriptScope::TakeWhole();
    Framed([&] { Print(part); });
  }
  void Print(const BindingBlock& block) { PrintBlock(block, false); }

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
  void Print(const distributed::DTensorStructInfoNode* parts);
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

  /*! \brief Print, with the declarations that this makes necessary in front. */
  template <typename F>
  void Framed(F print) {
    if (!verbose_) return print();
    std::vector<std::string> outer = std::exchange(declarations_, {});
    std::ostringstream text;
    std::streambuf* sink = os_.rdbuf(text.rdbuf());
    print();
    os_.rdbuf(sink);
    for (const std::string& declaration : std::exchange(declarations_, std::move(outer))) {
      os_ << declaration;
      NewLine();
    }
    os_ << text.str();
  }
  /*! \brief Name of a variable that the text binds. */
  void Bind(const Var& var) { bound_.insert(var.get()); }
  /*! \brief Have a variable that is named for the first time declared. */
  void Declare(const Object* key, const std::string& name);

  std::ostream os_;
  int indent_;
  bool in_function_ = false;
  /*! \brief Symbolic extents are texts here: the variables are declared in the body. */
  bool in_signature_ = false;
  std::unordered_map<const Object*, std::string> names_;
  std::unordered_set<std::string> taken_;
  /*! \brief Whether variables that a part names without binding them are declared. */
  bool verbose_ = false;
  std::unordered_set<const Object*> bound_;
  std::vector<std::string> declarations_;
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
