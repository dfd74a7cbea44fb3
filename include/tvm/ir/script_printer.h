/*!
 * \file tvm/ir/script_printer.h
 * \brief What the printers of all kinds of functions share when they write a script.
 */
#ifndef TVM_IR_SCRIPT_PRINTER_H_
#define TVM_IR_SCRIPT_PRINTER_H_

#include <tvm/node/repr_printer.h>

#include <map>
#include <string>
#include <vector>

namespace tvm {

/*!
 * \brief The script being written on this thread.
 *
 * The printer of a module or function opens one; inside of an open one that only joins it.
 */
class ScriptScope {
 public:
  ScriptScope();
  ~ScriptScope();
  ScriptScope(const ScriptScope&) = delete;
  ScriptScope& operator=(const ScriptScope&) = delete;

  /*! \brief Name that the module has for the function printed next; empty outside of modules. */
  std::string& function_name() { return root_->function_name_; }
  /*!
   * \brief Keep an object whose contents are no text in the script's metadata.
   * \return The expression that refers to it.
   */
  std::string Refer(const ObjectRef& object);
  /*! \brief Write a line about metadata that the text lacks, if this scope is the outermost. */
  void PrintFooter(std::ostream& os) const;
  /*! \brief Leave the footer away: the text will have the metadata. */
  void ShowMetadata() { root_->show_metadata_ = true; }
  /*! \brief Write every loop, axis and buffer of a parameter on a line of its own. */
  void LeaveSugar() { root_->sugar_ = false; }
  /*! \brief Whether the script being written on this thread may use short forms. */
  static bool HasSugar();
  /*! \brief Objects referred to so far, by type key. */
  const std::map<std::string, std::vector<ObjectRef>>& metadata() const { return root_->metadata_; }

 private:
  ScriptScope* root_;
  std::string function_name_;
  bool show_metadata_ = false;
  bool sugar_ = true;
  std::map<std::string, std::vector<ObjectRef>> metadata_;
};

/*! \brief `hint` with what Python does not allow in a name replaced. */
std::string PythonName(const std::string& hint);

/*! \brief Text as a Python literal. */
void PrintScriptText(std::ostream& os, const std::string& text);

/*!
 * \brief A value of an attribute, such that the same value can be read back.
 * \param objects Whether the value's container holds objects only, so that a plain number is a
 * literal of the tensor program; elsewhere plain numbers are plain and literals have their type.
 */
void PrintScriptValue(std::ostream& os, const Any& value, bool objects);

}  // namespace tvm
#endif  // TVM_IR_SCRIPT_PRINTER_H_
